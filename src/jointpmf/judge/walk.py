"""A walk through a valley to where an answer is smallest or largest (docs/math.md, eqs. 66 and 67).

Steps are affine scaling: a direction that the data do not see, short where a probability is small.
Each is followed by a return to the valley. All probabilities stay positive; those that the end has
as zeros are approached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from jointpmf.point import Point
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.judge.smooth_query import Question
    from jointpmf.judge.valley import Valley

_BLIND = 1e-11
"""Part of the trace of the scaled JᵀJ below which the data do not see a direction. Larger, steps
leave the valley farther; smaller, rounding decides."""

_FIRST, _LONGEST, _SHORTEST = 0.5, 2.0, 1e-3
"""By how much the logarithm of a probability changes in a step: in the first one, at most, and
before the walk ends."""

_CORRECTION = 2.0
"""The same for a step back to the valley."""

_MAX_RETURN, _MAX_NEWTON = 12, 40
"""Steps of a return with one matrix, and returns with a new one, before a model is given up."""

_FALL = 0.5
"""Part of the misfit that one step back must leave at most."""

_ENOUGH = 1e-3
"""Part of the tolerance at which a return ends; it goes below the tolerance where that is easy."""

_PATIENCE, _GAIN = 3, 1e-4
"""How many steps in a row that gain no more than a part of the way so far end a walk."""

_FLOOR, _NOTICED = 1e-13, 1e-6
"""The least probability of a walk, from which it returns; and the least that limits a step."""


class Place(NamedTuple):
    """A model in the valley: its parameters, and the answer there."""

    values: np.ndarray
    answer: float


class Walker:
    """Moves models of one rank within a valley.

    Parameters
    ----------
    valley : Valley
        The models that fit as well.
    rank : int
        Number of components.
    """

    def __init__(self, valley: Valley, rank: int) -> None:
        self.valley, self.rank = valley, rank
        sizes = valley.domain.sizes
        of_level = np.repeat(np.arange(len(sizes)), sizes)[:, None] * rank + np.arange(rank)
        self._simplex = np.concatenate([np.zeros(rank, int), 1 + of_level.ravel()])
        places = np.arange(len(self._simplex)), self._simplex
        self._of_simplex = csr_array((np.ones(len(self._simplex)), places))

    def point_at(self, values: np.ndarray) -> Point:
        """Return the point of parameters."""
        return Point.of_vector(values, self.rank)

    def mixed(self, values: np.ndarray, towards: np.ndarray, part: float) -> np.ndarray:
        """Return parameters that are in part others."""
        found = (1 - part) * values + part * towards
        return found / self.sums(found)[self._simplex]

    def returned(self, values: np.ndarray) -> np.ndarray | None:
        """Return a model of the valley near some model, by Newton's method; None if none is."""
        lowest, since = np.inf, 0
        for _ in range(_MAX_NEWTON):
            view = _View(self, values)
            found, misfit = self._with_view(values, view)
            if found is not None:
                return found
            lowest, since = (misfit, 0) if misfit < _FALL * lowest else (lowest, since + 1)
            if since > _PATIENCE:
                return None
            values = self._moved(values, view.correction(self._gaps(values)), _CORRECTION)
        return None

    def walked(self, values: np.ndarray, question: Question, sign: int, n_steps: int) -> Place:
        """Return where the answer, times a sign, is largest; `values` are of the valley."""
        here = Place(values, question.value(self.point_at(values)))
        view, radius, first, n_small = None, _FIRST, here.answer, 0
        for _ in range(n_steps):
            if view is None:
                view = _View(self, here.values)
                change = view.unseen(sign * question.slope(self.point_at(here.values)))
            ahead = self._stepped(here, change, radius, view, question)
            if ahead is None or sign * (ahead.answer - here.answer) <= 0:
                radius /= 3
                if radius < _SHORTEST:
                    break
                continue
            gain, way = abs(ahead.answer - here.answer), abs(ahead.answer - first)
            n_small = n_small + 1 if gain <= _GAIN * max(way, _GAIN * abs(first)) else 0
            here, view, radius = ahead, None, min(2 * radius, _LONGEST)
            if n_small == _PATIENCE:
                break
        return here

    def _stepped(
        self, here: Place, change: np.ndarray, radius: float, view: _View, question: Question
    ) -> Place | None:
        """Return where a step along a direction and the return from there lead, if back."""
        largest = np.abs(change[here.values > _NOTICED]).max()
        if not largest > 0:
            return None
        ahead = self._moved(here.values, change * (radius / largest), radius)
        found, _ = self._with_view(ahead, view)
        return None if found is None else Place(found, question.value(self.point_at(found)))

    def _with_view(self, values: np.ndarray, view: _View) -> tuple[np.ndarray | None, float]:
        """Return a model of the valley by one matrix, or None if the misfit falls too slowly."""
        lowest, found = np.inf, None
        for _ in range(_MAX_RETURN):
            gaps = self._gaps(values)
            misfit = self.valley.misfit(gaps)
            is_falling = misfit < _FALL * lowest
            lowest = min(lowest, misfit)
            if misfit == lowest and misfit <= self.valley.tolerance:
                found = values
            if not is_falling or misfit <= _ENOUGH * self.valley.tolerance:
                break
            values = self._moved(values, view.correction(gaps), _CORRECTION)
        return found, lowest

    def _gaps(self, values: np.ndarray) -> np.ndarray:
        return self.valley.gaps(self.point_at(values))

    def _moved(self, values: np.ndarray, change: np.ndarray, most: float) -> np.ndarray:
        """Return parameters after a change of their logarithms; columns sum to one again."""
        moved = np.maximum(values * np.exp(np.clip(change, -most, most)), _FLOOR * (values > 0))
        return moved / self.sums(moved)[self._simplex]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of each simplex."""
        return np.bincount(self._simplex, values)

    def centred(self, slopes: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return derivatives less their mean in each simplex: those along feasible directions."""
        return slopes - ((slopes * values) @ self._of_simplex)[..., self._simplex]


class _View:
    """What the data see from one model: J in logarithms of the parameters, and JᵀJ or JJᵀ.

    Whichever of the two is smaller is factorised.
    """

    def __init__(self, walker: Walker, values: np.ndarray) -> None:
        self._walker, self._values = walker, values
        with one_blas_thread:
            seen = walker.valley.jacobian(walker.point_at(values))
            self._scaled = walker.centred(seen, values) * values
            n_shown, n_parameters = self._scaled.shape
            self._is_dual = n_shown < n_parameters
            square = (
                self._scaled @ self._scaled.T if self._is_dual else self._scaled.T @ self._scaled
            )
            self._blind = _BLIND * max(float(np.trace(square)), np.finfo(float).tiny)
            square[np.diag_indices_from(square)] += self._blind
            self._factor = cho_factor(square, overwrite_a=True, check_finite=False)

    def correction(self, gaps: np.ndarray) -> np.ndarray:
        """Return the least change of logarithms that closes gaps, to first order (eq. 67)."""
        with one_blas_thread:
            if self._is_dual:
                return -self._scaled.T @ self._solved(gaps)
            return -self._solved(self._scaled.T @ gaps)

    def unseen(self, slope: np.ndarray) -> np.ndarray:
        """Return the part of a slope that the data do not see (eq. 66)."""
        slope = self._values * self._walker.centred(slope, self._values)
        with one_blas_thread:
            if self._is_dual:
                return slope - self._scaled.T @ self._solved(self._scaled @ slope)
            return self._blind * self._solved(slope)

    def _solved(self, right: np.ndarray) -> np.ndarray:
        return cho_solve(self._factor, right, check_finite=False)
