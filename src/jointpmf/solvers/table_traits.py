"""Traits fitted to tables: Newton steps that learn from the steps before them.

A row of a table observes few variables, so it tells little about where it lies, and EM is slow. The
curvature of the M-step is taken for a first guess of that of the likelihood, and the last steps say
how the two differ (docs/math.md, eq. 80): ten to thirty times fewer E-steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jointpmf.solvers.logistic import LARGEST_STEP
from jointpmf.solvers.loop import Arrays, State
from jointpmf.solvers.trait_sums import LevelSums
from jointpmf.solvers.traits import TraitEM, TraitState
from jointpmf.threads import run_all

if TYPE_CHECKING:
    from jointpmf.point import Point
    from jointpmf.solvers.logistic import Regression
    from jointpmf.solvers.table_cells import TableCells
    from jointpmf.solvers.trait_sums import Sums
    from jointpmf.solvers.traits import Ridge
    from jointpmf.traits import TraitModel

_REMEMBERED = 15
"""Steps that say how the curvature differs from that of the M-step."""

_FRESH = 20
"""Steps after which the curvature of the M-step is computed anew."""

_SHORTER, _MOST_TRIED, _ENOUGH = 0.4, 12, 1e-4
"""What a step that gains too little is shortened by, how often, and the part of what its slope
promises that is enough."""

_MOST_WHOLE = 800
"""Numbers of a variable without order whose curvature is taken whole; else each level's own."""

_Inverse = Callable[[np.ndarray], np.ndarray]

_DAMPING = 1e-8
"""Part of the mean curvature that is added to all, so that no direction is without any."""


@dataclass(frozen=True, kw_only=True)
class SlopedState(TraitState):
    """A model, the sums of the E-step there, and how the objective changes with each number."""

    pull: np.ndarray


class _Secant(NamedTuple):
    """One step, and how it changed the pull."""

    move: np.ndarray
    bend: np.ndarray


class TraitSecants(TraitEM):
    """A quasi-Newton climb over the coefficients of a trait model, as a solver for the loop."""

    @classmethod
    def on_tables(cls, cells: TableCells, begin: TraitModel, ridge: Ridge) -> TraitSecants:
        """Return the solver for the cells of tables."""
        observed = LevelSums(cells, begin.scores, len(begin.space.points))
        return cls(observed, begin, ridge, cells.total)

    def start(self, point: Point) -> TraitState:
        """Return the state at a point that was computed from coefficients."""
        self._secants: list[_Secant] = []
        found = super().start(point)
        self._age, self._anchor = 0, _vector_of(found.model)
        return found

    def step(self, state: State) -> TraitState:
        """Return the state after a step that raises the likelihood, less what the ridge takes."""
        assert isinstance(state, SlopedState)
        if self._age % _FRESH == 0:
            self._look(state.model, state.sums)
        self._age += 1
        found = self._climbed(state)
        if found is None and self._secants:
            self._secants = []
            self._look(state.model, state.sums)
            found = self._climbed(state)
        return replace(state, stalled=True) if found is None else found

    def memory(self, state: State) -> Arrays:
        """Return the last steps, and where the curvature of the M-step was computed."""
        size = len(self._anchor)
        moves = np.array([secant.move for secant in self._secants]).reshape(-1, size)
        bends = np.array([secant.bend for secant in self._secants]).reshape(-1, size)
        return {"moves": moves, "bends": bends, "anchor": self._anchor, "age": np.array(self._age)}

    def recalled(self, state: State, memory: Arrays) -> TraitState:
        """Return the state, and go on from it, that had this point and these steps behind it."""
        found = self.start(state.point)
        self._age = int(memory["age"])
        if self._age:
            model = _at_vector(found.model, memory["anchor"])
            self._look(model, self._observed.sums(model, state.point.weights))
        pairs = zip(memory["moves"], memory["bends"], strict=True)
        self._secants = [_Secant(*pair) for pair in pairs]
        return found

    def _at(self, model: TraitModel, weights: np.ndarray) -> SlopedState:
        found, pull = super()._at(model, weights), np.zeros(_size_of(model))
        for n in range(len(model.domain)):
            levels, scores = model.places(n)
            regression = self.regression(n, model, found.sums)
            here = model.intercepts[levels], model.coefficients[scores]
            parts = regression.pulls(model.factors[levels], *here)
            pull[_places_of(model, n)] = np.concatenate([part.ravel() for part in parts])
        return SlopedState(
            found.point, found.objective, model=model, sums=found.sums, pull=pull / self._total
        )

    def _look(self, model: TraitModel, sums: Sums) -> None:
        """Compute the curvature of the M-step here."""
        self._anchor = _vector_of(model)
        self._inverses: list[_Inverse] = [np.copy] * len(model.domain)

        def look(n: int) -> None:
            columns, places = model.factors[model.places(n)[0]], _places_of(model, n)
            regression = self.regression(n, model, sums)
            is_whole = places.stop - places.start <= _MOST_WHOLE or model.scores.scales[n] > 0
            inverse = _whole_inverse if is_whole else _inverse_by_level
            self._inverses[n] = inverse(regression, columns, self._total)

        run_all([partial(look, n) for n in range(len(model.domain))], model.features.size)

    def _climbed(self, state: SlopedState) -> SlopedState | None:
        """Return the state after a step, or None if none of any length gains enough."""
        model, here = state.model, _vector_of(state.model)
        ahead = self._direction(model, state.pull)
        slope = float(ahead @ state.pull)
        if not slope > 0:
            return None
        part = min(1.0, LARGEST_STEP / max(_largest_move(model, ahead), 1e-300))
        for _ in range(_MOST_TRIED):
            found = self._at(_at_vector(model, here + part * ahead), state.point.weights)
            if found.objective <= state.objective - _ENOUGH * part * slope:
                self._remember(_Secant(part * ahead, state.pull - found.pull))
                return found
            part *= _SHORTER
        return None

    def _remember(self, secant: _Secant) -> None:
        size = np.linalg.norm(secant.move) * np.linalg.norm(secant.bend)
        if secant.move @ secant.bend > 1e-10 * size:
            self._secants = [*self._secants, secant][-_REMEMBERED:]

    def _direction(self, model: TraitModel, pull: np.ndarray) -> np.ndarray:
        """Return where to go: the M-step's direction, bent by what the last steps say (eq. 80)."""
        left, shares = pull.copy(), []
        for move, bend in reversed(self._secants):
            shares.append(float(move @ left) / float(move @ bend))
            left -= shares[-1] * bend
        ahead = np.empty_like(left)
        for n, inverse in enumerate(self._inverses):
            places = _places_of(model, n)
            ahead[places] = inverse(left[places])
        for (move, bend), share in zip(self._secants, reversed(shares), strict=True):
            ahead += (share - float(bend @ ahead) / float(move @ bend)) * move
        return ahead


def _whole_inverse(regression: Regression, columns: np.ndarray, total: float) -> _Inverse:
    """Return what a pull is divided by: the curvature of all levels together."""
    curvature = regression.curvature(columns) / total
    diagonal = np.diag_indices_from(curvature)
    curvature[diagonal] += _DAMPING * curvature[diagonal].mean() + np.finfo(float).tiny
    factored = cho_factor(curvature, overwrite_a=True, check_finite=False)
    return lambda pull: cho_solve(factored, pull, check_finite=False)


def _inverse_by_level(regression: Regression, columns: np.ndarray, total: float) -> _Inverse:
    """Return what a pull is divided by: the curvature of each level by itself."""
    inverses = np.linalg.inv(regression.level_curvatures(columns) / total)

    def inverse(pull: np.ndarray) -> np.ndarray:
        n_levels = len(inverses)
        pulls = np.column_stack([pull[:n_levels], pull[n_levels:].reshape(n_levels, -1)])
        ahead = (inverses @ pulls[:, :, None])[:, :, 0]
        return np.concatenate([ahead[:, 0], ahead[:, 1:].ravel()])

    return inverse


def _places_of(model: TraitModel, n: int) -> slice:
    """Return where the numbers of a variable are in the vector of all: intercepts, coefficients."""
    offsets, own = model.domain.offsets, model.scores.offsets
    n_features = model.coefficients.shape[1]
    return slice(*(int(offsets[k] + n_features * own[k]) for k in (n, n + 1)))


def _size_of(model: TraitModel) -> int:
    return model.intercepts.size + model.coefficients.size


def _vector_of(model: TraitModel) -> np.ndarray:
    """Return intercepts and coefficients, variable by variable."""
    vector = np.empty(_size_of(model))
    for n in range(len(model.domain)):
        levels, scores = model.places(n)
        own = model.intercepts[levels], model.coefficients[scores].ravel()
        vector[_places_of(model, n)] = np.concatenate(own)
    return vector


def _at_vector(model: TraitModel, vector: np.ndarray) -> TraitModel:
    """Return the model with these intercepts and coefficients."""
    intercepts, coefficients = np.empty_like(model.intercepts), np.empty_like(model.coefficients)
    for n in range(len(model.domain)):
        levels, scores = model.places(n)
        own, n_levels = vector[_places_of(model, n)], levels.stop - levels.start
        intercepts[levels] = own[:n_levels]
        coefficients[scores] = own[n_levels:].reshape(-1, coefficients.shape[1])
    return model.moved(intercepts, coefficients)


def _largest_move(model: TraitModel, ahead: np.ndarray) -> float:
    """Return the most that a step changes any log-odds by."""
    moved = _at_vector(model, ahead)
    return max(float(np.abs(moved.log_odds(n)).max()) for n in range(len(model.domain)))
