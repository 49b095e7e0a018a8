"""Models and replicates in few bytes.

Of a model, the columns of components that lie at points of a space of traits are not written: the
page computes them from the points and the coefficients, which are far fewer numbers (traits.js).

Of replicates, each number takes two bytes. What matters is how far the replicates are apart, so
that each number has a grid of its own, from its smallest to its largest. The grid is even in the
logarithm, since a probability given evidence is a ratio of small numbers, of which each must keep
its digits: a number that varies threefold is moved by at most 1e-5 of itself, and one that varies
as much as can be by 6e-4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.encode import encode
from jointpmf.judge.pairs import pairs_of
from jointpmf.traits import parts_of

if TYPE_CHECKING:
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.pmf import JointPMF
    from jointpmf.traits import TraitModel

_PAGE_ERROR = 1e-9
"""Part of a probability by which what the page computes may differ from the model."""

_STEPS = 2**16 - 2
"""Of a grid; the place before its first is that of zero."""

_SMALLEST_PACKED = 1e-30
"""What is smaller, but not zero, is raised to this: it is never seen in a sample."""


def packed_model(pmf: JointPMF) -> tuple[list[dict[str, Any]], bytes]:
    """Return which components the page computes, and the numbers of the model.

    The numbers are the weights, what the page needs of each trait model, and the columns of the
    components that it does not compute.
    """
    stacked = np.concatenate(pmf.factors)
    described: list[dict[str, Any]] = []
    parts, is_stored = [pmf.weights], np.ones(pmf.rank, bool)
    for model, own in zip(pmf.trait_models, parts_of(pmf.trait_models), strict=True):
        numbers = _numbers_of(model)
        if numbers.size < stacked[:, own].size and _are_computed(model, stacked[:, own]):
            place = {"begin": own.start, "points": own.stop - own.start}
            described.append({**place, **_sizes_of(model)})
            parts.append(numbers)
            is_stored[own] = False
    parts.append(stacked[:, is_stored].ravel())
    return described, np.concatenate(parts).astype("<f8").tobytes()


def _are_computed(model: TraitModel, columns: np.ndarray) -> bool:
    """Tell whether columns are those of a trait model: steps without it may have moved them."""
    return bool(np.allclose(model.factors, columns, rtol=_PAGE_ERROR, atol=0.0))


def _sizes_of(model: TraitModel) -> dict[str, Any]:
    """Return how many traits and waves there are, and scores of each variable."""
    counts = np.diff(model.scores.offsets).tolist()
    return {"traits": model.space.n_traits, "waves": len(model.space.phases), "scores": counts}


def _numbers_of(model: TraitModel) -> np.ndarray:
    """Return all that the columns are computed from."""
    scores = [own.ravel() for own in model.scores.all]
    arrays: list[Any] = [*model.space, model.intercepts, *scores, model.coefficients]
    return np.concatenate([np.ravel(array) for array in arrays])


def packed_residuals(pmf: JointPMF, rows: Any) -> bytes:
    """Return χ²/df of each pair of variables in a table; NaN where no row tells.

    Those of a variable with all that follow it stand side by side.
    """
    codes = encode(rows, pmf.domain)
    pairs = pairs_of(pmf, codes, np.ones(len(codes.array)))
    n = len(pmf.domain)
    table = np.full((n, n), np.nan, "<f4")
    table[pairs.first, pairs.second] = pairs.residual
    return table[np.triu_indices(n, 1)].tobytes()


def packed(sure: Uncertainty) -> bytes:
    """Return the numbers of the reference, then the ends of the grids, then places on them."""
    reference = sure.reference
    around = np.concatenate([reference.weights, *map(np.ravel, reference.factors)])
    flat = sure.factors.reshape(len(sure), -1)
    numbers = np.concatenate([sure.weights, flat], axis=1)
    logs = np.log(np.maximum(numbers, _SMALLEST_PACKED))
    high = logs.max(axis=0)
    low = np.where(numbers > 0, logs, high).min(axis=0)
    width = np.where(high > low, high - low, 1.0)
    places = np.where(numbers > 0, 1 + np.rint((logs - low) / width * _STEPS), 0)
    ends = np.concatenate([around, low, high])
    return ends.astype("<f8").tobytes() + places.astype("<u2").tobytes()
