"""Maximum likelihood of components that lie at points: EM with Newton steps on their coefficients.

An E-step at a model gives its likelihood and, for every variable, a logistic regression over the
points; one damped Newton step of each is the M-step (docs/math.md, eqs. 75 and 76). It never lowers
the likelihood, less what the ridge takes from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.point import Point, columns_of_one
from jointpmf.solvers.logistic import BinaryRegressions, Regression
from jointpmf.solvers.loop import Arrays, State
from jointpmf.solvers.trait_sums import RowSums, Summing, Sums
from jointpmf.threads import run_all
from jointpmf.traits import FreeColumns, Scores, TraitModel

if TYPE_CHECKING:
    from jointpmf.rows.table import TableRows


@dataclass(frozen=True)
class Ridge:
    """How strongly coefficients are pulled to zero, and intercepts to where they began.

    Attributes
    ----------
    traits, waves : float
        On the coefficients of coordinates and of waves.
    intercepts : float
        About half a row of each level that was never seen.
    widths : float
        How many times stronger it is on how wide an ordered variable is than on where it is: that
        is much harder to tell from data.
    """

    traits: float = 0.1
    waves: float = 1.0
    intercepts: float = 0.1
    widths: float = 30.0

    def on(self, model: TraitModel) -> np.ndarray:
        """Return the ridge on each coefficient of a model."""
        space, scores = model.space, model.scores
        ridges = np.repeat([self.traits, self.waves], [space.n_traits, len(space.phases)])
        strength = np.ones(len(model.coefficients))
        strength[scores.widths] = self.widths
        return strength[:, None] * ridges


@dataclass(frozen=True, kw_only=True)
class TraitState(State):
    """A model, its objective, and the sums of the E-step there."""

    model: TraitModel
    sums: Sums


class PointSolver(ABC):
    """What solvers of a likelihood have in common that remember nothing but their point."""

    relative = False
    floor = 0.0

    @abstractmethod
    def start(self, point: Point) -> State:
        """Return the state at a point."""

    def memory(self, state: State) -> Arrays:
        """Return nothing: all follows from the point."""
        return {}

    def recalled(self, state: State, memory: Arrays) -> State:
        """Return the state that had this point."""
        return self.start(state.point)


class TraitEM(PointSolver):
    """EM over the coefficients of a trait model, as a solver for the loop.

    Parameters
    ----------
    observed : RowSums, or what else has their sums
        What was observed.
    begin : TraitModel
        Where intercepts are pulled to, and the space; a run begins at a point of it.
    ridge : Ridge
        What keeps coefficients small; a level that a feature predicts perfectly needs it.
    total : float
        The weight of all rows.
    """

    def __init__(self, observed: Summing, begin: TraitModel, ridge: Ridge, total: float) -> None:
        self.domain = begin.domain
        self._observed, self._begin, self._total = observed, begin, total
        self._ridges, self._intercept_ridge = ridge.on(begin), ridge.intercepts

    def start(self, point: Point) -> TraitState:
        """Return the state at a point that was computed from coefficients."""
        return self._at(self._begin.of_point(point), point.weights)

    def step(self, state: State) -> TraitState:
        """Return the state after a Newton step of every variable."""
        assert isinstance(state, TraitState)
        return self._at(self._moved(state.model, state.sums), state.point.weights)

    def _at(self, model: TraitModel, weights: np.ndarray) -> TraitState:
        sums = self._observed.sums(model, weights)
        penalty = (self._ridges * model.coefficients**2).sum()
        drift = ((model.intercepts - self._begin.intercepts) ** 2).sum()
        penalty += self._intercept_ridge * drift
        objective = (penalty / 2 - sums.log_likelihood) / self._total
        return TraitState(model.point(weights), float(objective), model=model, sums=sums)

    def _moved(self, model: TraitModel, sums: Sums) -> TraitModel:
        """Return the model after one Newton step of each variable."""
        intercepts, coefficients = model.intercepts.copy(), model.coefficients.copy()
        moved = model.moved(intercepts, coefficients)
        sizes = np.array(model.domain.sizes)
        binary = np.flatnonzero(sizes == 2)
        larger = np.flatnonzero(sizes > 2).tolist()
        tasks = [partial(self._move, n, model, sums, moved) for n in larger]
        run_all(tasks, model.features.size)
        if len(binary):
            self._move_binary(binary, model, sums, moved)
        return moved

    def _move(self, n: int, model: TraitModel, sums: Sums, moved: TraitModel) -> None:
        """Move one variable, in place."""
        levels, scores = model.places(n)
        here = model.intercepts[levels], model.coefficients[scores]
        there = self.regression(n, model, sums).stepped(*here)
        moved.intercepts[levels], moved.coefficients[scores] = there

    def regression(self, n: int, model: TraitModel, sums: Sums) -> Regression:
        """Return what the sums say of one variable."""
        levels, scores = model.places(n)
        return Regression(
            model.scores.all[n],
            model.features,
            sums.scores[scores],
            sums.totals[n],
            self._observed.counts[levels],
            self._ridges[scores],
            self._intercept_ridge,
            self._begin.intercepts[levels],
        )

    def _move_binary(
        self, which: np.ndarray, model: TraitModel, sums: Sums, moved: TraitModel
    ) -> None:
        """Move all binary variables at once, in place."""
        no, scores = model.domain.offsets[which], model.scores.offsets[which]
        totals, anchors = sums.totals[which], self._begin.intercepts
        regressions = BinaryRegressions(
            np.hstack([np.ones((len(model.features), 1)), model.features]),
            sums.scores[scores] + totals / 2,
            totals,
            np.array([self._intercept_ridge / 2, *self._ridges[scores[0]]]),
            anchors[no + 1] - anchors[no],
        )
        odds = model.intercepts[no + 1] - model.intercepts[no]
        here = np.column_stack([odds, model.coefficients[scores]])
        there = regressions.stepped(here)
        moved.intercepts[no] -= (there[:, 0] - odds) / 2
        moved.intercepts[no + 1] += (there[:, 0] - odds) / 2
        moved.coefficients[scores] = there[:, 1:]


class RedrawnEM(TraitEM):
    """EM whose points are others in every step (docs/math.md, eq. 25).

    Few fixed points are far between where there are many traits, and coefficients would adapt to
    where they lie.

    Parameters
    ----------
    observed, begin, ridge, total
        As of `TraitEM`.
    seed : int
        Decides the points of every step.
    """

    def __init__(
        self, observed: Summing, begin: TraitModel, ridge: Ridge, total: float, seed: int
    ) -> None:
        super().__init__(observed, begin, ridge, total)
        self._seed, self._n_steps = seed, 0

    def step(self, state: State) -> TraitState:
        """Return the state after a Newton step of every variable, at other points."""
        assert isinstance(state, TraitState)
        self._n_steps += 1
        return self._redrawn(self._moved(state.model, state.sums), state.point.weights)

    def memory(self, state: State) -> Arrays:
        """Return how many steps were made."""
        return {"n_steps": np.array(self._n_steps)}

    def recalled(self, state: State, memory: Arrays) -> TraitState:
        """Return the state that had this point after so many steps."""
        self._n_steps = int(memory["n_steps"])
        if not self._n_steps:
            return self.start(state.point)
        return self._redrawn(self._begin.of_point(state.point), state.point.weights)

    def _redrawn(self, model: TraitModel, weights: np.ndarray) -> TraitState:
        points = self._begin.space.redrawn(len(weights), self._seed, self._n_steps)
        return self._at(model.at(points), weights)


@dataclass(frozen=True, kw_only=True)
class WeightState(State):
    """Weights, their objective, and how many rows are expected at each point."""

    expected: np.ndarray


class WeightEM(PointSolver):
    """EM over the weights of points whose columns stay: a convex problem (eq. 78).

    Parameters
    ----------
    observed : RowSums, or what else has their sums
        What was observed.
    model : TraitModel
        What the columns are.
    total : float
        The weight of all rows.
    """

    def __init__(self, observed: Summing, model: TraitModel, total: float) -> None:
        self.domain = model.domain
        self._observed, self._model, self._total = observed, model, total

    def start(self, point: Point) -> WeightState:
        """Return the state at some weights."""
        expected, log_likelihood = self._observed.at_points(self._model, point.weights)
        own = self._model.point(point.weights)
        return WeightState(own, -log_likelihood / self._total, expected=expected)

    def step(self, state: State) -> WeightState:
        """Return the state in which a point counts for the rows that are expected there."""
        assert isinstance(state, WeightState)
        weights = state.expected / state.expected.sum()
        return self.start(Point(weights, state.point.factors))


@dataclass(frozen=True, kw_only=True)
class PulledState(State):
    """A model, its objective, and where an EM step leads from it."""

    ahead: Point


class PulledEM(PointSolver):
    """EM over free columns and weights that are pulled to where they begin (eq. 79).

    Parameters
    ----------
    rows : Rows or ColumnRows
        What was observed.
    begin : Point
        Where columns are pulled to.
    pull : float
        How many rows of each component that counts for.
    """

    def __init__(self, rows: TableRows, begin: Point, pull: float) -> None:
        self.domain, self._total = rows.domain, rows.total
        self._scores = Scores.unordered(rows.domain)
        self._observed, self._prior = RowSums(rows, self._scores), pull * begin.factors

    def start(self, point: Point) -> PulledState:
        """Return the state at a point."""
        columns = FreeColumns(self._scores, point.factors)
        sums = self._observed.sums(columns, point.weights)
        counts = np.maximum(columns.level_counts(sums.scores, sums.totals), 0) + self._prior
        gain = sums.log_likelihood + (self._prior * np.log(point.factors)).sum()
        ahead = Point(sums.weights / sums.weights.sum(), columns_of_one(counts, self.domain))
        return PulledState(point, -float(gain) / self._total, ahead=ahead)

    def step(self, state: State) -> PulledState:
        """Return the state after one EM step."""
        assert isinstance(state, PulledState)
        return self.start(state.ahead)
