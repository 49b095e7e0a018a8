"""Codes → tables of counts: compiled passes over the columns, and sums of them.

A row counts for a subset if it observes all of it. Counts are integers unless rows are weighted,
so neither the order of the rows nor the number of threads changes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.compiled.counting import count_blocks, flat_cells
from jointpmf.data.codes import Codes
from jointpmf.domain import checked_domain
from jointpmf.errors import JointPMFError, check_size, instance_of, items_of
from jointpmf.marginals.orders import check_listed
from jointpmf.marginals.tables import DEFAULT_LIMITS, SparseTable, Table, TableLimits, compact
from jointpmf.threads import run_all

if TYPE_CHECKING:
    from jointpmf.domain import Domain

Subset = tuple[int, ...]


def count_tables(
    codes: Codes,
    subsets: Sequence[Subset],
    weights: np.ndarray | None,
    limits: TableLimits = DEFAULT_LIMITS,
) -> list[Table]:
    """Return the table of counts of every subset, in the order asked."""
    instance_of(limits, TableLimits, "limits")
    n_kept = sum(min(_extended_cells(codes, subset), codes.n_rows) for subset in subsets)
    check_size(8 * n_kept, f"{len(subsets):,} tables of {codes.n_rows:,} rows")
    by_prefix: dict[Subset, list[int]] = {}
    for position, subset in enumerate(subsets):
        by_prefix.setdefault(subset[:-1], []).append(position)
    counted: list[Table] = [np.empty(0)] * len(subsets)
    tasks: list[Callable[[], None]] = [
        partial(_count_prefix, codes, subsets, part, weights, limits, counted)
        for positions in by_prefix.values()
        for part in _parts_that_fit(codes, subsets, positions, limits.max_scratch)
    ]
    run_all(tasks)
    return counted


def _parts_that_fit(
    codes: Codes, subsets: Sequence[Subset], positions: list[int], max_scratch: int
) -> list[list[int]]:
    """Split subsets that share a prefix so that one part's tables fit the scratch memory."""
    parts: list[list[int]] = []
    room = 0
    for position in positions:
        cells = _extended_cells(codes, subsets[position])
        if cells > room:
            parts.append([])
            room = max_scratch
        parts[-1].append(position)
        room -= cells
    return parts


def _extended_cells(codes: Codes, subset: Subset) -> int:
    return math.prod(codes.domain.sizes[n] + 1 for n in subset)


def _count_prefix(
    codes: Codes,
    subsets: Sequence[Subset],
    positions: list[int],
    weights: np.ndarray | None,
    limits: TableLimits,
    counted: list[Table],
) -> None:
    """Count the subsets at these positions, which share all but their last variable."""
    sizes = codes.domain.sizes
    cells = [_extended_cells(codes, subsets[position]) for position in positions]
    if cells[0] > limits.max_scratch:
        counted[positions[0]] = _count_by_sorting(codes, subsets[positions[0]], weights)
        return
    prefix = subsets[positions[0]][:-1]
    lasts = [subsets[position][-1] for position in positions]
    starts = np.concatenate([[0], np.cumsum(cells)])
    counts = np.zeros(starts[-1], np.int64 if weights is None else np.float64)
    count_blocks(
        codes.columns,
        np.array(prefix, np.int64),
        np.array([sizes[n] + 1 for n in prefix], np.int64),
        np.array(lasts, np.int64),
        np.array([sizes[n] for n in lasts], np.int64),
        starts[:-1],
        np.empty(0) if weights is None else weights,
        counts,
    )
    for k, position in enumerate(positions):
        shape = tuple(sizes[n] + 1 for n in subsets[position])
        extended = counts[starts[k] : starts[k + 1]].reshape(shape)
        counted[position] = compact(extended[(slice(1, None),) * len(shape)].copy(), limits)


def _count_by_sorting(codes: Codes, subset: Subset, weights: np.ndarray | None) -> SparseTable:
    shape = tuple(codes.domain.sizes[n] for n in subset)
    if math.prod(shape) >= 2**63:
        names = [codes.domain.names[n] for n in subset]
        raise JointPMFError(f"the table of {names} would have {math.prod(shape):.1e} cells")
    cells = flat_cells(codes.columns, np.array(subset), np.array(shape))
    observed = cells >= 0
    if weights is None:
        distinct, counts = np.unique(cells[observed], return_counts=True)
    else:
        distinct, inverse = np.unique(cells[observed], return_inverse=True)
        counts = np.bincount(inverse, weights=weights[observed], minlength=len(distinct))
    return SparseTable.of_cells(distinct, counts, shape)


def names_of_order(domain: Domain, order: int) -> list[tuple[str, ...]]:
    """Return the names of all subsets of `order` variables."""
    checked_domain(domain)
    check_listed(domain, order)
    return list(combinations(domain.names, order))


def positions_of(domain: Domain, subsets: Iterable[Sequence[str]]) -> list[Subset]:
    """Return the positions of each subset's variables, increasing."""
    checked_domain(domain)
    listed = items_of(subsets, "the subsets must be a list")
    positions = [tuple(sorted(domain.indices(names))) for names in listed]
    if () in positions:
        raise JointPMFError("a marginal needs at least one variable")
    return positions
