"""e_1 … e_k, elementary symmetric polynomials, of the cells of rows, and sums of them by level.

The functions that go over rows take `source`, the tuple (columns, offsets, room): columns of codes,
the first level of each variable, and memory in which cells are listed.
"""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.cells import list_cells, room_for_cells
from jointpmf.compiled.jit import LANES, compiled, once
from jointpmf.compiled.loops import add_row, exchange_row, symmetric_row

_MAX_REGISTERS = 12
"""Vectors of e_1 … e_k that are kept in registers at once."""

_PANEL_COST = 4
"""What another panel of numbers costs, in numbers."""

_BLOCK_ROWS, _BLOCK_VARIABLES = 256, 32
"""Rows and variables whose cells are listed at once: what they touch stays in the cache."""

_PASS_ROWS = 1024
"""Rows that a pass works on at once."""


def symmetric_panel(n_numbers: int, order: int) -> int:
    """Return how many numbers are worked on at once, so that there are few passes and padding."""
    widths = range(LANES, max(_MAX_REGISTERS // order, 1) * LANES + 1, LANES)
    return min(widths, key=lambda width: -(-n_numbers // width) * (width + _PANEL_COST))


def padded(n_numbers: int, order: int) -> int:
    """Return how many numbers are kept of each of e_1 … e_k: whole panels.

    Examples
    --------
    >>> padded(10, order=3), padded(20, order=3)
    (12, 24)
    """
    width = symmetric_panel(n_numbers, order)
    return -(-n_numbers // width) * width


def symmetric_room(n_variables: int, n_levels: int) -> np.ndarray:
    """Return memory for the cells that are listed at once."""
    return room_for_cells(n_variables, n_levels, _BLOCK_ROWS * min(_BLOCK_VARIABLES, n_variables))


@compiled
def set_symmetric(source, table, rows, begin_row, end_row, lanes, orders):
    """Set rows[row] to e_1 … e_k of all of its cells."""
    columns, offsets, room = source
    block = len(room) // max(len(columns), 1)
    ptr = np.empty(block + 1, np.int64)
    for start in range(begin_row, end_row, block):
        stop = min(start + block, end_row)
        list_cells(columns, offsets, start, stop, ptr, room)
        for first in range(0, table.shape[1], len(lanes)):
            for k in range(stop - start):
                symmetric_row(
                    rows, start + k, table, first, room, ptr[k], ptr[k + 1], lanes, orders
                )


@compiled
def pass_over_rows(source, weights, changed, summed, old, change, rows, sums, row_range, panels):
    """Bring rows up to date after a change of some variables, and add them to the sums of others.

    `changed`, `summed` and `row_range` are pairs (begin, end); `panels` is (lanes, orders, lanes
    of the sums). Both are done for some rows while they are near the processor.
    """
    lanes, orders, added = panels
    begin_row, end_row = row_range
    for start in range(begin_row, end_row, _PASS_ROWS):
        stop = min(start + _PASS_ROWS, end_row)
        exchange_symmetric(source, changed, old, change, rows, start, stop, lanes, orders)
        width = (len(orders) - 1) * old.shape[1]
        add_symmetric(source, summed, weights, rows, sums, start, stop, added, width)


@once
def exchange_symmetric(source, changed, old, change, rows, begin_row, end_row, lanes, orders):
    """Update rows[row], computed under `old`, after a change of the variables `changed`."""
    columns, offsets, room = source
    begin, end = changed
    ptr = np.empty(_BLOCK_ROWS + 1, np.int64)
    for start in range(begin_row, end_row, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, end_row)
        for n in range(begin, end, _BLOCK_VARIABLES):
            last = min(n + _BLOCK_VARIABLES, end)
            list_cells(columns[n:last], offsets[n:], start, stop, ptr, room)
            for first in range(0, old.shape[1], len(lanes)):
                for k in range(stop - start):
                    exchange_row(
                        rows, start + k, old, change, first, room, ptr[k], ptr[k + 1], lanes, orders
                    )


@once
def add_symmetric(source, summed, weights, rows, sums, begin_row, end_row, lanes, width):
    """Add weight · rows[row], of that width, to the sums of all levels a row has in `summed`."""
    columns, offsets, room = source
    begin, end = summed
    ptr = np.empty(_BLOCK_ROWS + 1, np.int64)
    for start in range(begin_row, end_row, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, end_row)
        for n in range(begin, end, _BLOCK_VARIABLES):
            last = min(n + _BLOCK_VARIABLES, end)
            list_cells(columns[n:last], offsets[n:], start, stop, ptr, room)
            for first in range(0, width, len(lanes)):
                for k in range(stop - start):
                    row, scale = start + k, weights[start + k]
                    add_row(sums, -1, rows, row, scale, first, room, ptr[k], ptr[k + 1], lanes)
