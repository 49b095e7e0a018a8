"""Rows as numbers, and counting: tables of several subsets in one pass, one variable's levels."""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.jit import compiled

_COUNTED_AT_ONCE = 4096
"""Rows whose numbers are made at a time, so that they stay near the processor."""


@compiled
def set_row_keys(columns, radix, begin, end, keys):
    """Set keys[row] to Σ over variables of (code + 1) · radix, modulo 2**64, for rows begin:end."""
    for first in range(begin, end, _COUNTED_AT_ONCE):
        last = min(first + _COUNTED_AT_ONCE, end)
        for row in range(first, last):
            keys[row] = 0
        for n in range(len(columns)):
            factor = radix[n]
            for row in range(first, last):
                keys[row] += np.uint64(columns[n, row] + 1) * factor


@compiled
def count_blocks(columns, prefix, radix, lasts, last_sizes, starts, weights, counts):
    """Add to `counts` the tables of the subsets prefix + (last,), for every last.

    Code −1 becomes slot 0 of a table that is one larger in every direction, so that nothing
    branches on missing cells; the caller drops those slots. `weights` is empty for ones.
    """
    n_rows = columns.shape[1]
    block = 8192
    index = np.empty(block, np.int64)
    for begin in range(0, n_rows, block):
        size = min(block, n_rows - begin)
        for row in range(size):
            index[row] = 0
        for p in range(len(prefix)):
            n = prefix[p]
            for row in range(size):
                index[row] = index[row] * radix[p] + columns[n, begin + row] + 1
        for k in range(len(lasts)):
            n = lasts[k]
            radix_k = last_sizes[k] + 1
            start = starts[k] + 1
            if len(weights):
                for row in range(size):
                    cell = start + index[row] * radix_k + columns[n, begin + row]
                    counts[cell] += weights[begin + row]
            else:
                for row in range(size):
                    counts[start + index[row] * radix_k + columns[n, begin + row]] += 1


@compiled
def flat_cells(columns, subset, sizes):
    """Return each row's cell in the subset's table, or −1 where a cell of it is missing."""
    cells = np.zeros(columns.shape[1], np.int64)
    for k in range(len(subset)):
        column = columns[subset[k]]
        for row in range(len(cells)):
            if cells[row] >= 0:
                code = column[row]
                cells[row] = cells[row] * sizes[k] + code if code >= 0 else -1
    return cells


@compiled
def add_cell_counts(cells, ptr, weights, counts):
    """Add the weight of each row to the count of each of its cells."""
    for row in range(len(weights)):
        for k in range(ptr[row], ptr[row + 1]):
            counts[cells[k]] += weights[row]


@compiled
def add_level_counts(column, weights, counts):
    """Add the weight of each row to the count of its level."""
    for row in range(len(column)):
        if column[row] >= 0:
            counts[column[row]] += weights[row]
