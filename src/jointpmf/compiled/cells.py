"""Rows as lists of their observed cells, each the position of a level among all levels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jointpmf.compiled.jit import compiled

_LISTED_AT_ONCE, _ROWS_AT_ONCE, _MOST_LISTED = 2**17, 2**11, 2**20
"""Cells that are listed at a time, so that they stay near the processor; but no fewer rows than the
second, which make up for bringing a model near it; and no more cells than the third."""


def cell_dtype(n_levels: int) -> type[np.unsignedinteger]:
    """Return the type of positions among all levels of all variables."""
    return np.uint16 if n_levels < 2**16 else np.uint32


def listed_cells(
    columns: np.ndarray, offsets: np.ndarray, begin: int, end: int
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield rows begin:end in blocks: which rows, their cells, and where each row's begin and end.

    Each block's arrays are overwritten by the next.
    """
    n_variables = max(len(columns), 1)
    wished = max(_LISTED_AT_ONCE, min(_ROWS_AT_ONCE * n_variables, _MOST_LISTED))
    step = max(min(wished // n_variables, end - begin), 1)
    cells = np.empty(step * n_variables, cell_dtype(int(offsets[-1])))
    ptr = np.empty(step + 1, np.int64)
    for first in range(begin, end, step):
        last = min(first + step, end)
        list_cells(columns, offsets, first, last, ptr, cells)
        yield slice(first, last), cells, ptr[: last - first + 1]


def n_observed(columns: np.ndarray) -> np.ndarray:
    """Return how many cells of each row are observed."""
    counts = np.zeros(columns.shape[1], np.int32)
    for column in columns:
        counts += column >= 0
    return counts


@compiled
def list_cells(columns, offsets, begin, end, ptr, cells):
    """Set cells[ptr[k]:ptr[k + 1]] to the observed cells of row begin + k, and ptr with it.

    Cells are positions in the stack. Columns are read along their length, as they lie in memory.
    """
    size = end - begin
    n_variables = len(columns)
    room = np.empty(size, np.int64)
    for k in range(size):
        room[k] = k * n_variables
    for n in range(n_variables):
        first = offsets[n]
        for k in range(size):
            code = columns[n, begin + k]
            cells[room[k]] = first + code
            room[k] += code >= 0
    ptr[0] = 0
    for k in range(size):
        count = room[k] - k * n_variables
        if ptr[k] < k * n_variables:
            for c in range(count):
                cells[ptr[k] + c] = cells[k * n_variables + c]
        ptr[k + 1] = ptr[k] + count


@compiled
def list_combinations(columns, radix, bounds, firsts, begin, end, cells):
    """Set cells[k * n + g] to the combination in which row begin + k has the g-th of n groups.

    Group g has the variables bounds[g]:bounds[g + 1], and its combinations lie from firsts[g] on,
    the last variable fastest; a code is one more than it was, so that a missing one is zero.
    """
    size, n_groups = end - begin, len(firsts)
    place = np.empty(size, np.int32)
    for g in range(n_groups):
        place[:] = 0
        for n in range(bounds[g], bounds[g + 1]):
            column, factor = columns[n, begin:end], np.int32(radix[n])
            for k in range(size):
                place[k] = place[k] * factor + np.int32(column[k] + 1)
        for k in range(size):
            cells[k * n_groups + g] = firsts[g] + place[k]


@compiled
def set_combinations(stack, offsets, bounds, firsts, out):
    """Set the rows of `out` to the products of each combination's rows of a stack.

    What is missing counts for one, and the last row stays what it is.
    """
    out[-1] = stack[-1]
    for g in range(len(firsts)):
        first, count = firsts[g], 1
        out[first] = 1.0
        for n in range(bounds[g], bounds[g + 1]):
            radix = offsets[n + 1] - offsets[n] + 1
            for p in range(count - 1, -1, -1):  # from the end, so that nothing is overwritten
                for code in range(radix - 1, -1, -1):
                    for f in range(out.shape[1]):
                        factor = stack[offsets[n] + code - 1, f] if code else 1.0
                        out[first + p * radix + code, f] = out[first + p, f] * factor
            count *= radix


@compiled
def add_combinations(counts, offsets, bounds, firsts, out):
    """Add what was counted of each combination to the levels that it has, and the last row."""
    out[-1] += counts[-1]
    for g in range(len(firsts)):
        count = 1
        for n in range(bounds[g], bounds[g + 1]):
            count *= offsets[n + 1] - offsets[n] + 1
        for p in range(count):
            left = p
            for n in range(bounds[g + 1] - 1, bounds[g] - 1, -1):
                radix = offsets[n + 1] - offsets[n] + 1
                code = left % radix
                left //= radix
                if code:
                    for f in range(out.shape[1]):
                        out[offsets[n] + code - 1, f] += counts[firsts[g] + p, f]


@compiled
def set_codes(cells, ptr, offsets, columns):
    """Set columns[n, row] to the code of each observed cell; those of a row are in order."""
    for row in range(len(ptr) - 1):
        n = 0
        for cell in cells[ptr[row] : ptr[row + 1]]:
            while offsets[n + 1] <= cell:
                n += 1
            columns[n, row] = cell - offsets[n]
