"""Maximum likelihood of components that lie at points: EM with Newton steps on their coefficients.

An E-step at a model gives its likelihood and, for every variable, a logistic regression over the
points; one damped Newton step of each is the M-step (docs/math.md, eqs. 75 and 76). It never lowers
the likelihood, less what the ridge takes from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jointpmf.solvers.loop import Arrays, State
from jointpmf.solvers.trait_sums import Summing, Sums
from jointpmf.threads import run_all
from jointpmf.traits import TraitModel, columns_of

if TYPE_CHECKING:
    from jointpmf.point import Point

_LARGEST_STEP = 4.0
"""How far one step may move any log-odds, in nats."""

_HALVINGS = 6
"""How often a step that makes things worse is halved before the variable stays where it is."""

_MOST_COUPLED = 400
"""Coefficients of a variable whose curvature is taken whole; with more, each level has its own."""


@dataclass(frozen=True)
class Ridge:
    """How strongly coefficients are pulled to zero, and intercepts to where they began.

    Attributes
    ----------
    traits, waves : float
        On the coefficients of coordinates and of waves.
    intercepts : float
        About half a row of each level that was never seen.
    """

    traits: float = 0.1
    waves: float = 1.0
    intercepts: float = 0.1

    def on(self, model: TraitModel) -> np.ndarray:
        """Return the ridge on each feature of a model."""
        n_traits = model.space.n_traits
        return np.repeat([self.traits, self.waves], [n_traits, len(model.space.phases)])


@dataclass(frozen=True, kw_only=True)
class TraitState(State):
    """A model, its objective, and the sums of the E-step there."""

    model: TraitModel
    weights: np.ndarray
    sums: Sums


class TraitEM:
    """EM over the coefficients of a trait model, as a solver for the loop.

    Parameters
    ----------
    observed : RowSums, or what else has their sums
        What was observed.
    begin : TraitModel
        Where it begins.
    ridge : Ridge
        What keeps coefficients small; a level that a feature predicts perfectly needs it.
    total : float
        The weight of all rows.
    weights : array, optional
        What each point counts for; by default all count alike. They stay as they are.
    """

    relative = False
    floor = 0.0
    resolution = 0.0

    def __init__(
        self,
        observed: Summing,
        begin: TraitModel,
        ridge: Ridge,
        total: float,
        weights: np.ndarray | None = None,
    ) -> None:
        self.domain = begin.domain
        n_points = len(begin.space.points)
        self._weights = np.full(n_points, 1 / n_points) if weights is None else weights
        self._observed, self._begin, self._ridge, self._total = observed, begin, ridge, total

    def start(self, point: Point) -> TraitState:
        """Return the state at the model that the solver begins with, whose point this is."""
        return self._at(self._begin)

    def step(self, state: State) -> TraitState:
        """Return the state after a Newton step of every variable."""
        assert isinstance(state, TraitState)
        return self._at(self._moved(state.model, state.sums))

    def memory(self, state: State) -> Arrays:
        """Return the coefficients, from which everything else follows."""
        assert isinstance(state, TraitState)
        model = state.model
        return {"intercepts": model.intercepts, "coefficients": model.coefficients}

    def recalled(self, state: State, memory: Arrays) -> TraitState:
        """Return the state that had these coefficients."""
        intercepts, coefficients = memory["intercepts"], memory["coefficients"]
        return self._at(replace(self._begin, intercepts=intercepts, coefficients=coefficients))

    def _at(self, model: TraitModel) -> TraitState:
        sums = self._observed.sums(model, self._weights)
        penalty = (self._ridge.on(model) * model.coefficients**2).sum()
        penalty += self._ridge.intercepts * self._drift(model.intercepts)
        objective = (penalty / 2 - sums.log_likelihood) / self._total
        point = model.point(self._weights)
        return TraitState(point, float(objective), model=model, weights=self._weights, sums=sums)

    def _drift(self, intercepts: np.ndarray) -> float:
        return float(((intercepts - self._begin.intercepts) ** 2).sum())

    def _moved(self, model: TraitModel, sums: Sums) -> TraitModel:
        """Return the model after one Newton step of each variable."""
        intercepts, coefficients = model.intercepts.copy(), model.coefficients.copy()
        offsets, own = model.domain.offsets, model.scores.offsets
        ridges = self._ridge.on(model)
        counts = self._observed.counts

        def move(n: int) -> None:
            levels, scores = slice(*offsets[n : n + 2]), slice(*own[n : n + 2])
            regression = _Regression(
                model.scores.all[n],
                model.features,
                sums.scores[scores],
                sums.total_of(n),
                counts[levels],
                ridges,
                self._ridge.intercepts,
                self._begin.intercepts[levels],
            )
            here = model.intercepts[levels], model.coefficients[scores]
            intercepts[levels], coefficients[scores] = regression.stepped(*here)

        run_all([partial(move, n) for n in range(len(model.domain)) if own[n + 1] > own[n]])
        return replace(model, intercepts=intercepts, coefficients=coefficients)


@dataclass(frozen=True)
class _Regression:
    """The logistic regression of one variable's levels on the features of the points."""

    scores: np.ndarray
    features: np.ndarray
    sums: np.ndarray
    totals: np.ndarray
    counts: np.ndarray
    ridges: np.ndarray
    anchor: float
    anchors: np.ndarray

    def stepped(self, intercepts: np.ndarray, coefficients: np.ndarray) -> tuple:
        """Return intercepts and coefficients after one damped Newton step."""
        columns, value = self._at(intercepts, coefficients)
        pulls = self._gradient(columns, intercepts, coefficients)
        is_coupled = coefficients.size + len(intercepts) <= _MOST_COUPLED
        ahead = (self._newton if is_coupled else self._by_level)(columns, *pulls)
        moved = ahead[0][:, None] + self.scores @ (ahead[1] @ self.features.T)
        part = min(1.0, _LARGEST_STEP / max(float(np.abs(moved).max()), 1e-300))
        for _ in range(_HALVINGS):
            there = intercepts + part * ahead[0], coefficients + part * ahead[1]
            if self._at(*there)[1] >= value:
                return there
            part /= 2
        return intercepts, coefficients

    def _at(self, intercepts: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the columns, and the expected log-likelihood less the ridge."""
        tilts = coefficients @ self.features.T
        columns, log_totals = columns_of(intercepts[:, None] + self.scores @ tilts)
        value = (self.sums * tilts).sum() + self.counts @ intercepts - self.totals @ log_totals
        value -= (self.ridges * coefficients**2).sum() / 2
        return columns, float(value - self.anchor * ((intercepts - self.anchors) ** 2).sum() / 2)

    def _gradient(
        self, columns: np.ndarray, intercepts: np.ndarray, coefficients: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        expected = self.totals * (self.scores.T @ columns)
        of_coefficients = (self.sums - expected) @ self.features - self.ridges * coefficients
        of_intercepts = self.counts - columns @ self.totals
        return of_intercepts - self.anchor * (intercepts - self.anchors), of_coefficients

    def _newton(self, columns: np.ndarray, of_levels: np.ndarray, of_scores: np.ndarray) -> tuple:
        """Return the Newton direction, with the whole curvature (eq. 76)."""
        n_levels, (n_scores, n_features) = len(of_levels), of_scores.shape
        weighted, means = self.totals * columns, self.scores.T @ columns
        size = n_levels + of_scores.size
        curvature = np.zeros((size, size))
        curvature[:n_levels, :n_levels] = -weighted @ columns.T
        curvature[np.arange(n_levels), np.arange(n_levels)] += weighted.sum(axis=1) + self.anchor
        for r in range(n_scores):
            rows = slice(n_levels + r * n_features, n_levels + (r + 1) * n_features)
            across = (weighted * (self.scores[:, r, None] - means[r])) @ self.features
            curvature[:n_levels, rows] = across
            for s in range(r + 1):
                both = self.scores[:, r] * self.scores[:, s]
                spread = self.totals * (both @ columns - means[r] * means[s])
                block = (self.features * spread[:, None]).T @ self.features
                curvature[n_levels + s * n_features : n_levels + (s + 1) * n_features, rows] = block
        places = np.arange(n_levels, size)
        curvature[places, places] += np.tile(self.ridges, n_scores)
        pull = np.concatenate([of_levels, of_scores.ravel()])
        factored = cho_factor(curvature, lower=False, overwrite_a=True, check_finite=False)
        found = cho_solve(factored, pull, check_finite=False)
        return found[:n_levels], found[n_levels:].reshape(of_scores.shape)

    def _by_level(self, columns: np.ndarray, of_levels: np.ndarray, of_scores: np.ndarray) -> tuple:
        """Return a direction in which each level moves by itself.

        Its curvature is at least that of all levels together, so the step is safe, and shorter.
        """
        ahead_levels, ahead_scores = np.empty_like(of_levels), np.empty_like(of_scores)
        for i, column in enumerate(columns):
            design = np.hstack([np.ones((len(column), 1)), self.scores[i, i] * self.features])
            curvature = (design * (self.totals * column)[:, None]).T @ design
            curvature[np.diag_indices_from(curvature)] += [self.anchor, *self.ridges]
            found = np.linalg.solve(curvature, [of_levels[i], *of_scores[i]])
            ahead_levels[i], ahead_scores[i] = found[0], found[1:]
        return ahead_levels, ahead_scores
