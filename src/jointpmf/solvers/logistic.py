"""Logistic regressions of levels on the features of points: one damped Newton step of each.

A point counts for the rows that are expected there. All binary variables are moved at once, by
products of matrices; one with more levels is moved by itself (docs/math.md, eqs. 75 and 76).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from jointpmf.threads import run_all
from jointpmf.traits import columns_of

LARGEST_STEP = 4.0
"""How far one step may move any log-odds, in nats."""

_HALVINGS = 6
"""How often a step that makes things worse is halved before the variable stays where it is."""

_MOST_COUPLED = 400
"""Coefficients of a nominal variable whose curvature is taken whole; with more, by level."""

_N_FEATURE_CHUNKS = 8
"""Parts of the products of features that are computed at once."""


@dataclass(frozen=True)
class BinaryRegressions:
    """The logistic regressions of many binary variables on the same features.

    Attributes
    ----------
    features : array of shape (points, features)
        The first is one.
    sums, totals : arrays of shape (variables, points)
        How many rows are expected to have the second level, and how many observe the variable.
    ridges : array of shape (features,)
        What pulls coefficients to zero, and the first to its anchor.
    anchors : array of shape (variables,)
        Where the intercepts are pulled to.
    """

    features: np.ndarray
    sums: np.ndarray
    totals: np.ndarray
    ridges: np.ndarray
    anchors: np.ndarray

    def stepped(self, here: np.ndarray) -> np.ndarray:
        """Return the coefficients of all variables after one damped Newton step."""
        odds = here @ self.features.T
        shares, values = expit(odds), self._values(here, odds)
        pull = (self.sums - self.totals * shares) @ self.features - self._ridge_pull(here)
        curvatures = self._curvatures(self.totals * shares * (1 - shares))
        ahead = np.linalg.solve(curvatures, pull[:, :, None])[:, :, 0]
        moved = ahead @ self.features.T
        part = np.minimum(1.0, LARGEST_STEP / np.maximum(np.abs(moved).max(axis=1), 1e-300))
        there, left = here.copy(), np.arange(len(here))
        for _ in range(_HALVINGS):
            tried = here[left] + part[left, None] * ahead[left]
            found = self._values(tried, odds[left] + part[left, None] * moved[left], left)
            is_better = found >= values[left]
            there[left[is_better]] = tried[is_better]
            left = left[~is_better]
            if not len(left):
                break
            part[left] /= 2
        return there

    def _values(
        self, there: np.ndarray, odds: np.ndarray, which: np.ndarray | slice = slice(None)
    ) -> np.ndarray:
        """Return the expected log-likelihoods less the ridge, of some variables."""
        values = (self.sums[which] * odds - self.totals[which] * np.logaddexp(0, odds)).sum(axis=1)
        off = there.copy()
        off[:, 0] -= self.anchors[which]
        return values - off**2 @ self.ridges / 2

    def _ridge_pull(self, here: np.ndarray) -> np.ndarray:
        off = here.copy()
        off[:, 0] -= self.anchors
        return off * self.ridges

    def _curvatures(self, weights: np.ndarray) -> np.ndarray:
        """Return the curvature of every variable: products of features, summed over points."""
        features = np.ascontiguousarray(self.features.T)
        n_features = len(features)
        curvatures = np.empty((len(self.sums), n_features, n_features))

        def part(k: int) -> None:
            for i in range(k, n_features, _N_FEATURE_CHUNKS):
                own = weights @ (features[i] * features[: i + 1]).T
                curvatures[:, i, : i + 1] = own
                curvatures[:, : i + 1, i] = own

        run_all([partial(part, k) for k in range(_N_FEATURE_CHUNKS)], features.size)
        curvatures[:, np.arange(n_features), np.arange(n_features)] += self.ridges
        return curvatures


@dataclass(frozen=True)
class Regression:
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
        pulls = self.pulls(columns, intercepts, coefficients)
        is_ordered = len(coefficients) < len(intercepts)  # its scores are shared by all levels
        is_coupled = is_ordered or coefficients.size + len(intercepts) <= _MOST_COUPLED
        ahead = (self._newton if is_coupled else self._by_level)(columns, *pulls)
        moved = ahead[0][:, None] + self.scores @ (ahead[1] @ self.features.T)
        part = min(1.0, LARGEST_STEP / max(float(np.abs(moved).max()), 1e-300))
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

    def pulls(
        self, columns: np.ndarray, intercepts: np.ndarray, coefficients: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how the value changes with the intercepts and with the coefficients."""
        expected = self.totals * (self.scores.T @ columns)
        of_coefficients = (self.sums - expected) @ self.features - self.ridges * coefficients
        of_intercepts = self.counts - columns @ self.totals
        return of_intercepts - self.anchor * (intercepts - self.anchors), of_coefficients

    def _newton(self, columns: np.ndarray, of_levels: np.ndarray, of_scores: np.ndarray) -> tuple:
        """Return the Newton direction, with the whole curvature (eq. 76)."""
        factored = cho_factor(self.curvature(columns), overwrite_a=True, check_finite=False)
        pull = np.concatenate([of_levels, of_scores.ravel()])
        found = cho_solve(factored, pull, check_finite=False)
        return found[: len(of_levels)], found[len(of_levels) :].reshape(of_scores.shape)

    def curvature(self, columns: np.ndarray) -> np.ndarray:
        """Return how the pull changes with intercepts and coefficients: its upper triangle."""
        n_levels, n_scores, n_features = *self.scores.shape, self.features.shape[1]
        weighted, means = self.totals * columns, self.scores.T @ columns
        size = n_levels + n_scores * n_features
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
        curvature[places, places] += self.ridges.ravel()
        return curvature

    def _by_level(self, columns: np.ndarray, of_levels: np.ndarray, of_scores: np.ndarray) -> tuple:
        """Return a direction in which each level moves by itself.

        Its curvature is at least that of all levels together, so the step is safe, and shorter.
        """
        pulls = np.column_stack([of_levels, of_scores])
        found = np.linalg.solve(self.level_curvatures(columns), pulls[:, :, None])[:, :, 0]
        return found[:, 0], found[:, 1:]

    def level_curvatures(self, columns: np.ndarray) -> np.ndarray:
        """Return the curvature of each level by itself, of its intercept and coefficients."""
        found = []
        for i, column in enumerate(columns):
            design = np.hstack([np.ones((len(column), 1)), self.scores[i, i] * self.features])
            curvature = (design * (self.totals * column)[:, None]).T @ design
            curvature[np.diag_indices_from(curvature)] += [self.anchor, *self.ridges[i]]
            found.append(curvature)
        return np.stack(found)
