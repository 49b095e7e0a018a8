"""Where a fit of traits begins: along the main directions in which variables vary together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.domain import MISSING
from jointpmf.traits import TraitModel

if TYPE_CHECKING:
    from jointpmf.traits import Scores, Space

_UNSEEN = 0.5
"""Rows that are added to every level, so that one that was never seen has finite log-odds."""

_OWN = 0.9
"""Part of a direction's variance that one variable explains by itself."""

_LEAST_SIZE = 0.05
"""Variance of the weakest directions, so that no trait begins at zero, where it would stay."""

_STRETCH = 1.2
"""Log-odds per standard deviation, about, as coefficients of a logistic curve are larger."""


def flat_model(scores: Scores, space: Space, counts: np.ndarray) -> TraitModel:
    """Return the model in which all points are alike: every variable as it is distributed."""
    counts = counts + _UNSEEN
    totals = np.add.reduceat(counts, scores.domain.offsets[:-1])
    intercepts = np.log(counts / np.repeat(totals, scores.domain.sizes))
    n_features = space.n_traits + len(space.phases)
    return TraitModel(scores, space, intercepts, np.zeros((int(scores.offsets[-1]), n_features)))


def along_directions(flat: TraitModel, correlations: np.ndarray) -> TraitModel:
    """Return a model whose traits are the main directions of correlated scores (eq. 77)."""
    values, vectors = np.linalg.eigh(correlations)
    top = np.argsort(-values, kind="stable")[: flat.space.n_traits]
    sizes = _STRETCH * np.sqrt(np.maximum(values[top] - _OWN, _LEAST_SIZE))
    coefficients = np.zeros_like(flat.coefficients)
    coefficients[:, : len(top)] = vectors[:, top] * sizes
    return replace(flat, coefficients=coefficients)


def correlations_of_rows(columns: np.ndarray, weights: np.ndarray, scores: Scores) -> np.ndarray:
    """Return how scores vary together in rows, over those that observe both.

    How wide an ordered variable is does not take part: that follows.
    """
    design = np.zeros((columns.shape[1], int(scores.offsets[-1])))
    seen = np.zeros_like(design)
    for n, own in enumerate(scores.all):
        places = slice(*scores.offsets[n : n + 2])
        observed = columns[n] != MISSING
        values = own[columns[n]] * observed[:, None]
        mean = weights @ values / max(weights @ observed, 1e-300)
        design[:, places] = (values - mean) * observed[:, None]
        seen[:, places] = observed[:, None]
    design[:, scores.widths] = 0.0
    weighted = design * weights[:, None]
    products, together = weighted.T @ design, (seen * weights[:, None]).T @ seen
    return between_variables(products / np.maximum(together, 1e-300), scores)


def between_variables(covariances: np.ndarray, scores: Scores) -> np.ndarray:
    """Return correlations; those of what does not vary, and of levels of one variable, are zero.

    Levels of one variable exclude each other, which is no trait.
    """
    spreads = np.sqrt(np.maximum(np.diag(covariances), 0.0))
    scaled = np.where(spreads > 1e-9, 1 / np.maximum(spreads, 1e-9), 0.0)
    owner = np.repeat(np.arange(len(scores.domain)), np.diff(scores.offsets))
    is_own = (owner[:, None] == owner) & ~np.eye(len(owner), dtype=bool)
    return np.where(is_own, 0.0, covariances * scaled[:, None] * scaled)
