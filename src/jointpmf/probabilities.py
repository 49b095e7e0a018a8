"""Arrays of probabilities: checked, normalised, summed up, multiplied out and labelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.compiled.sampling import draw_levels
from jointpmf.errors import (
    JointPMFError,
    at_least_zero,
    check_size,
    float_array,
    text_of_count,
    text_of_size,
)

if TYPE_CHECKING:
    from jointpmf.domain import Domain, Variable

SUM_TOLERANCE = 1e-6
"""How far from one a sum may be in what a user gives; a larger one would accept other mistakes."""

_ROUNDED = 1e-14
"""How far from one the sum of probabilities may be that were divided by their sum."""


def on_simplex(given: Any, what: str) -> np.ndarray:
    """Return an array whose columns are checked to be probabilities; they sum to one to rounding.

    Examples
    --------
    >>> on_simplex([0.25, 0.75], "the weights").tolist()
    [0.25, 0.75]
    """
    array = float_array(given, f"{what} must be an array of numbers").copy()
    is_possible = bool(((array >= 0) & (array < 2)).all())  # sums of others could overflow
    if not is_possible and not np.isfinite(array).all():
        raise JointPMFError(f"{what} must be finite")
    off = np.abs(array.sum(axis=0) - 1).max(initial=0) if is_possible else np.inf
    if off > SUM_TOLERANCE:
        raise JointPMFError(f"{what} must be non-negative and sum to one")
    return array if off < _ROUNDED else normalised(array)  # a normalised array keeps its bits


def checked_factor(given: Any, variable: Variable, rank: int) -> np.ndarray:
    """Return a variable's factor, checked: a column of probabilities for each component."""
    array = on_simplex(given, f"the factor of {variable.name!r}")
    if array.shape != (variable.size, rank):
        raise JointPMFError(
            f"the factor of {variable.name!r} has shape {array.shape}, "
            f"not ({variable.size}, {rank})"
        )
    return array


def checked_factors(given: Sequence[Any], domain: Domain, rank: int) -> tuple[np.ndarray, ...]:
    """Return the factors of all variables, checked and not to be written to.

    Those of a model are mostly right as they are, and are then looked through all at once.

    Examples
    --------
    >>> from jointpmf.domain import Domain
    >>> [factor.tolist() for factor in checked_factors([np.eye(2)], Domain.of_sizes([2]), rank=2)]
    [[[1.0, 0.0], [0.0, 1.0]]]
    """
    each = given, domain.variables, [rank] * len(given)
    if len(given) and all(map(_is_factor, *each)):
        # in C order whatever theirs is: a model that was saved and loaded gives the same bits
        stacked = np.concatenate(given, out=np.empty((domain.offsets[-1], rank)))
        is_possible = stacked.min() >= 0 and stacked.max() < 2  # sums of others could overflow
        sums = np.add.reduceat(stacked, domain.offsets[:-1]) if is_possible else np.inf
        if np.abs(sums - 1).max() < _ROUNDED:
            stacked.setflags(write=False)
            return tuple(stacked[begin:end] for begin, end in pairwise(domain.offsets.tolist()))
    factors = tuple(map(checked_factor, *each))
    for factor in factors:
        factor.setflags(write=False)
    return factors


def _is_factor(given: Any, variable: Variable, rank: int) -> bool:
    """Tell whether something has the form of a variable's factor, whatever its numbers are."""
    is_array = type(given) is np.ndarray and given.dtype == np.float64
    return is_array and given.shape == (variable.size, rank)


def normalised(array: np.ndarray) -> np.ndarray:
    """Return an array whose columns are divided by their sums."""
    return array / array.sum(axis=0)


def cumulative(columns: np.ndarray) -> np.ndarray:
    """Return cumulative probabilities, one row per component; each row ends in exactly one."""
    cumulative = np.ascontiguousarray(columns.cumsum(axis=0).T)
    cumulative[cumulative >= cumulative[:, -1:]] = 1.0  # from the last possible level on
    return cumulative


def drawn_codes(
    weights: np.ndarray, factors: Sequence[np.ndarray], n: int, generator: np.random.Generator
) -> np.ndarray:
    """Return n rows of codes drawn from a model: a component, then a level of each variable."""
    check_size(8 * n * (len(factors) + 2), f"{text_of_count(n)} rows")
    array = np.empty((n, len(factors) + 1), np.int32, order="F")
    components = array[:, -1]
    draw_levels(
        cumulative(weights[:, None]), np.zeros(n, np.int32), generator.random(n), components
    )
    for v, factor in enumerate(factors):
        draw_levels(cumulative(factor), components, generator.random(n), array[:, v])
    return array[:, :-1]


def multiplied_out(weights: np.ndarray, factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the joint table, one axis per factor: a product of two joint factors (eq. 2).

    Examples
    --------
    >>> multiplied_out(np.array([0.25, 0.75]), [np.eye(2), np.eye(2)]).tolist()
    [[0.25, 0.0], [0.0, 0.75]]
    """
    half = len(factors) // 2
    left = _joint_factor(len(weights), factors[:half]) * weights
    table = left @ _joint_factor(len(weights), factors[half:]).T
    return table.reshape([len(factor) for factor in factors])


def _joint_factor(rank: int, factors: Sequence[np.ndarray]) -> np.ndarray:
    joint = np.ones((1, rank))
    for factor in factors:
        joint = (joint[:, None] * factor).reshape(-1, rank)
    return joint


def check_memory(sizes: Sequence[int], max_bytes: int, n_columns: int = 1) -> None:
    """Raise if a table of all cells, with `n_columns` numbers per cell, would be too large."""
    size = 8 * n_columns * math.prod(sizes)
    most = int(at_least_zero(max_bytes, "max_bytes"))
    if size > most:
        raise JointPMFError(
            f"the table of {len(sizes)} variables would take {text_of_size(size)}, more than "
            f"{text_of_size(most)}; ask for a marginal, or raise max_bytes"
        )
