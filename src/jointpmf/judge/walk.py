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
    from jointpmf.judge.questions import Question
    from jointpmf.judge.valley import Sight, Valley

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

    def values_of(self, point: Point) -> np.ndarray:
        """Return the parameters at a point as one vector."""
        return np.concatenate([point.weights, point.factors.ravel()])

    def point_at(self, values: np.ndarray) -> Point:
        """Return the point of parameters."""
        return Point(values[: self.rank], values[self.rank :].reshape(-1, self.rank))

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
        last = np.inf
        for _ in range(_MAX_RETURN):
            gaps = self._gaps(values)
            misfit = self.valley.misfit(gaps)
            if misfit <= self.valley.tolerance:
                return values, misfit
            if not misfit < _FALL * last:
                break
            last = misfit
            values = self._moved(values, view.correction(gaps), _CORRECTION)
        return None, misfit

    def _gaps(self, values: np.ndarray) -> np.ndarray:
        return self.valley.gaps(self.point_at(values))

    def _moved(self, values: np.ndarray, change: np.ndarray, most: float) -> np.ndarray:
        """Return parameters after a change of their logarithms; columns sum to one again."""
        moved = np.maximum(values * np.exp(np.clip(change, -most, most)), _FLOOR * (values > 0))
        return moved / self.sums(moved)[self._simplex]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of each simplex."""
        return np.bincount(self._simplex, values)

    def centred(self, slope: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return derivatives less their mean in each simplex: those along feasible directions."""
        return slope - self.sums(values * slope)[self._simplex]

    def reduced(self, matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return a quadratic form over feasible directions."""
        places = self._simplex, np.arange(len(values))
        means = csr_array((values, places))
        side = (means @ matrix)[self._simplex]
        both = (means @ (means @ matrix).T)[np.ix_(self._simplex, self._simplex)]
        return matrix - side - side.T + both


class _View:
    """What the data see from one model: JᵀJ in logarithms of the parameters, factorised."""

    def __init__(self, walker: Walker, values: np.ndarray) -> None:
        self._walker, self._values = walker, values
        self._sight: Sight = walker.valley.sight(walker.point_at(values))
        with one_blas_thread:
            matrix = walker.reduced(self._sight.matrix(len(values)), values)
            matrix *= np.outer(values, values)
            self._blind = _BLIND * max(float(np.trace(matrix)), np.finfo(float).tiny)
            matrix[np.diag_indices_from(matrix)] += self._blind
            self._factor = cho_factor(matrix, overwrite_a=True, check_finite=False)

    def correction(self, gaps: np.ndarray) -> np.ndarray:
        """Return the least change of logarithms that closes gaps, to first order (eq. 67)."""
        return -self._solved(self._sight.back(gaps, len(self._values)))

    def unseen(self, slope: np.ndarray) -> np.ndarray:
        """Return the part of a slope that the data do not see (eq. 66)."""
        return self._blind * self._solved(slope)

    def _solved(self, slope: np.ndarray) -> np.ndarray:
        right = self._values * self._walker.centred(slope, self._values)
        with one_blas_thread:
            return cho_solve(self._factor, right, check_finite=False)
