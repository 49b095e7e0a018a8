"""The distinct rows of a table: each row as one number, and the numbers sorted.

The order does not depend on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from jointpmf.compiled.cells import n_observed
from jointpmf.compiled.counting import set_row_keys
from jointpmf.data.codes import Codes
from jointpmf.threads import row_blocks, run_all

_NEGLIGIBLE = 1e-20
"""Rows with less than this part of all weight change nothing, and are left out."""

_PROBED, _PROBE_BITS = 2**16, 6
"""Whether more rows than this repeat is told by about one kind in two to this power."""


@dataclass(frozen=True)
class Kinds:
    """The distinct rows of a table, and which row is which of them.

    Attributes
    ----------
    columns : array of shape (variables, kinds)
        Their codes.
    weights : array
        What the rows of each kind count for together.
    n_empty : int
        How many rows had no observed cell.
    used, starts : arrays
        The positions of the rows that count, those of the first kind first, and where the rows of
        each kind begin and end among them.
    """

    columns: np.ndarray
    weights: np.ndarray
    n_empty: int
    used: np.ndarray
    starts: np.ndarray

    @property
    def inverse(self) -> np.ndarray:
        """The kind of each row that counts."""
        return np.repeat(np.arange(len(self.weights)), np.diff(self.starts))


def distinct_codes(codes: Codes, sample_weight: np.ndarray | None) -> tuple[Codes, np.ndarray]:
    """Return the distinct rows of a table, in an order of their own, and their weights."""
    found = kinds_of_rows(codes, sample_weight)
    return Codes(codes.domain, found.columns.T), found.weights


def kinds_if_few(codes: Codes, sample_weight: np.ndarray | None, most: float = 1.0) -> Kinds | None:
    """Return the distinct rows of a table, or None if they are more than a part of all."""
    keys = _keys(codes.columns, codes.domain.sizes)
    if most < 1 and most < _part_that_is_distinct(keys):
        return None
    return _kinds(codes, sample_weight, keys)


def kinds_of_rows(codes: Codes, sample_weight: np.ndarray | None) -> Kinds:
    """Return the distinct rows of a table, in an order that does not depend on its own."""
    return _kinds(codes, sample_weight, _keys(codes.columns, codes.domain.sizes))


def _kinds(codes: Codes, sample_weight: np.ndarray | None, keys: np.ndarray) -> Kinds:
    columns, which, n_empty = codes.columns, None, 0
    if sample_weight is not None and not (counted := _counted(sample_weight)).all():
        observed = n_observed(columns) > 0
        n_empty = int(len(observed) - observed.sum())
        which = np.flatnonzero(observed & counted)
        columns, keys = _taken(columns, which), keys[which]
    places, starts = _sorted_rows(columns, keys, codes.domain.sizes)
    if len(places) and (columns[:, places[0]] < 0).all():  # the empty row comes first
        n_empty += int(starts[1])
        places, starts = places[starts[1] :], starts[1:] - starts[1]
    used = places if which is None else which[places]
    if sample_weight is None:
        weights = np.diff(starts).astype(np.float64)
    else:
        weights = np.add.reduceat(sample_weight[used], starts[:-1]) if len(used) else np.empty(0)
    return Kinds(_taken(columns, places[starts[:-1]]), weights, n_empty, used, starts)


def _counted(weights: np.ndarray) -> np.ndarray:
    return weights > _NEGLIGIBLE * weights.sum()


def _part_that_is_distinct(keys: np.ndarray) -> float:
    """Return how many kinds of rows there are for each row.

    Of many rows all that are of some kinds are looked at, so that the answer holds for the table.
    """
    if len(keys) > _PROBED:
        scattered = keys * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: high bits are random
        keys = keys[scattered >> np.uint64(64 - _PROBE_BITS) == 0]
    return len(np.unique(keys)) / max(len(keys), 1)


def _sorted_rows(
    columns: np.ndarray, keys: np.ndarray, sizes: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of all rows, equal ones together, and where each kind of them begins."""
    ordered, places = _sorted(keys)
    begins = np.ones(len(keys) + 1, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:-1])
    if _is_one_number(sizes) or all(_is_constant_between(begins, c[places]) for c in columns):
        return places, np.flatnonzero(begins)
    # a hash that two kinds of rows have in common
    _, inverse, counts = np.unique(columns, axis=1, return_inverse=True, return_counts=True)
    return np.argsort(inverse, kind="stable"), np.concatenate([[0], np.cumsum(counts)])


def _is_constant_between(begins: np.ndarray, column: np.ndarray) -> bool:
    return bool((begins[1:-1] | (column[1:] == column[:-1])).all())


def _is_one_number(sizes: tuple[int, ...]) -> bool:
    return math.prod(size + 1 for size in sizes) < 2**64


def _keys(columns: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Return each row as one number, or as a hash of it where there are too many."""
    if _is_one_number(sizes):
        radix = np.cumprod([1, *(size + 1 for size in sizes[:-1])], dtype=np.uint64)
    else:
        radix = _hash_radix(len(sizes))
    return row_keys(columns, radix)


def row_keys(columns: np.ndarray, radix: np.ndarray) -> np.ndarray:
    """Return Σ over variables of (code + 1) · radix, modulo 2**64, for each row."""
    keys = np.empty(columns.shape[1], np.uint64)
    blocks = row_blocks(len(keys))
    run_all([partial(set_row_keys, columns, radix, *block, keys) for block in blocks])
    return keys


def _hash_radix(n_variables: int) -> np.ndarray:
    odd = 2 * np.random.default_rng(0).integers(2**63, size=n_variables) + 1
    return odd.astype(np.uint64)


def row_hashes(columns: np.ndarray) -> np.ndarray:
    """Return a hash of each row whose sums tell tables apart.

    Sums of plain keys would not: they follow from how often each level was seen.
    """
    keys = row_keys(columns, _hash_radix(len(columns)))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # as SplitMix64
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return keys ^ (keys >> np.uint64(31))


def _sorted(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return keys in order and where each came from; of equal ones the first comes first."""
    place_bits = len(keys).bit_length()
    if int(keys.max(initial=0)).bit_length() + place_bits > 64:
        places = np.argsort(keys, kind="stable")
        return keys[places], places
    # key and place in one number: numpy sorts numbers several times as fast as their places
    shift = np.uint64(place_bits)
    packed = (keys << shift) | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    return packed >> shift, (packed & np.uint64(2**place_bits - 1)).astype(np.int64)


def _taken(columns: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return some rows, as columns."""
    found = np.empty((len(columns), len(places)), columns.dtype)
    # nothing lies outside; "clip" only leaves out the copy that "raise" makes first
    pairs = zip(columns, found, strict=True)
    run_all([partial(np.take, column, places, out=own, mode="clip") for column, own in pairs])
    return found
