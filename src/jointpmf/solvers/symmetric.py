"""Elementary symmetric polynomials of the cells of rows, and their sums by level, compiled.

With r_n the row of the factors at the cell of variable n, the sum over all subsets of k variables
of the products of their r_n is e_k of all r_n. Kept per row, e_1 … e_k make everything that the
coupled objective over *all* subsets asks of rows one pass over the cells (docs/math.md, eq. 28).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from jointpmf.compiled.aligned import aligned_zeros
from jointpmf.compiled.loops import compiled
from jointpmf.compiled.vectors import LANES, add_row, exchange_row, symmetric_row
from jointpmf.rows.table import (
    LISTED_AT_ONCE,
    add_level_counts,
    cell_dtype,
    list_cells,
    panel_width,
)
from jointpmf.threads import run_all

MAX_REGISTERS = 12
"""Vectors of e_1 … e_k that are kept in registers at once."""

PANEL_COST = 4
"""What another panel of numbers costs, in numbers."""

BLOCK_ROWS, BLOCK_VARIABLES = 256, 32
"""Rows and variables whose cells are listed at once: what they touch stays in the cache."""

PASS_ROWS = 1024
"""Rows that a pass works on at once."""

CHUNK_WORK, MAX_CHUNKS, CHUNK_BYTES = 2**22, 32, 2**26
"""Numbers that a pass over a chunk touches at least, how many chunks there are at most, and the
memory of their sums; fixed, so that the bits do not depend on the number of threads."""


class SymmetricSums:
    """e_1 … e_k of every row under a table of numbers per level, and their sums by level.

    Parameters
    ----------
    columns : array of shape (variables, rows)
        Codes, −1 where a cell was not observed.
    offsets : array
        The first level of each variable, and the number of all levels.
    weights : array of shape (rows,)
        What each row counts for.
    n_numbers, order : int
        Numbers per level, and k.
    """

    def __init__(
        self,
        columns: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray,
        n_numbers: int,
        order: int,
    ) -> None:
        self.columns, self.offsets, self.weights = columns, offsets, weights
        self.n_numbers, self.order = n_numbers, order
        self.width = padded(n_numbers, order)
        n_rows, n_levels = len(weights), int(offsets[-1])
        self._table = aligned_zeros(n_levels, self.width)
        self._rows = aligned_zeros(n_rows, order * self.width)
        size = 8 * n_levels * order * self.width
        work = columns.size * order * self.width
        n_chunks = max(min(work // CHUNK_WORK, MAX_CHUNKS, CHUNK_BYTES // size, n_rows), 1)
        self._bounds = np.linspace(0, n_rows, n_chunks + 1).astype(np.int64)
        self._sums = [aligned_zeros(n_levels, order * self.width) for _ in range(n_chunks)]
        self._counts = np.zeros(n_levels)
        for n, first in enumerate(offsets[:-1]):
            add_level_counts(columns[n], weights, self._counts[first:])
        self._lanes = (0,) * _panel_lanes(n_numbers, order)
        self._added = (0,) * panel_width((order - 1) * self.width)
        self._orders = (0,) * order
        self._old = self._change = self._table
        self._changed: tuple[int, int] | None = None

    def _room(self) -> np.ndarray:
        """Return memory for a list of cells."""
        n_all = len(self.columns)
        size = max(BLOCK_ROWS * min(BLOCK_VARIABLES, n_all), LISTED_AT_ONCE, n_all)
        return np.empty(size, cell_dtype(self.offsets[-1]))

    def load(self, table: np.ndarray) -> None:
        """Compute e_1 … e_k of every row under a table of shape (levels, n_numbers)."""
        self._table[:, : self.n_numbers] = table
        self._changed = None

        def chunk(k: int) -> None:
            set_symmetric(
                self.columns, self.offsets, self._table, self._rows, *self._bounds[k : k + 2],
                self._lanes, self._orders, self._room(),
            )  # fmt: skip

        run_all([partial(chunk, k) for k in range(len(self._sums))])

    def exchange(self, begin: int, end: int, table: np.ndarray) -> None:
        """Take new numbers of the variables begin:end; rows follow when they are next looked at."""
        self._bring_up_to_date()
        self._old = self._table
        self._table = self._old.copy()
        levels = slice(int(self.offsets[begin]), int(self.offsets[end]))
        self._table[levels, : self.n_numbers] = table[levels]
        self._change = self._table - self._old
        self._changed = (begin, end)

    def _bring_up_to_date(self) -> None:
        if self._changed is not None:
            run_all([partial(self._pass, k, 0, 0) for k in range(len(self._sums))])
            self._changed = None

    def _pass(self, k: int, begin: int, end: int) -> None:
        """Bring the rows of a chunk up to date, and add them to the sums of begin:end."""
        sums = self._sums[k]
        sums[self.offsets[begin] : self.offsets[end]] = 0.0
        pass_over_rows(
            self.columns, self.offsets, *(self._changed or (0, 0)), begin, end, self._old,
            self._change, self.weights, self._rows, sums, *self._bounds[k : k + 2], self._lanes,
            self._orders, self._added, self._room(),
        )  # fmt: skip

    def without(self, begin: int, end: int) -> np.ndarray:
        """Return, for each level of the variables begin:end, what the rows that have it sum to.

        The sum is of e_{k−1} over all variables but the level's own, in shape (levels, n_numbers).
        """
        first, last = int(self.offsets[begin]), int(self.offsets[end])
        run_all([partial(self._pass, k, begin, end) for k in range(len(self._sums))])
        self._changed = None
        used = (self.order - 1) * self.width
        total = self._sums[0][first:last, :used].copy()
        for sums in self._sums[1:]:
            total += sums[first:last, :used]
        own = self._table[first:last, : self.n_numbers]
        found = np.repeat(self._counts[first:last, None], self.n_numbers, axis=1)
        for j in range(self.order - 1):  # eq. 29
            part = total[:, j * self.width : j * self.width + self.n_numbers]
            found = part - own * found
        return found

    def whole(self) -> np.ndarray:
        """Return Σ over rows of e_k, in shape (n_numbers,)."""
        self._bring_up_to_date()
        last = (self.order - 1) * self.width
        return np.asarray(self.weights @ self._rows[:, last : last + self.n_numbers])


def padded(n_numbers: int, order: int) -> int:
    """Return how many numbers are kept of each of e_1 … e_k: whole panels.

    Examples
    --------
    >>> padded(10, order=3), padded(20, order=3)
    (12, 24)
    """
    lanes = _panel_lanes(n_numbers, order)
    return -(-n_numbers // lanes) * lanes


def _panel_lanes(n_numbers: int, order: int) -> int:
    """Return how many numbers are worked on at once, so that all need little padding, few times."""
    widths = range(LANES, max(MAX_REGISTERS // order, 1) * LANES + 1, LANES)
    return min(widths, key=lambda width: -(-n_numbers // width) * (width + PANEL_COST))


@compiled
def set_symmetric(columns, offsets, table, rows, begin_row, end_row, lanes, orders, room):
    """Set rows[row] to e_1 … e_k of all of its cells."""
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
def pass_over_rows(
    columns, offsets, begin_changed, end_changed, begin, end, old, change, weights, rows, sums,
    begin_row, end_row, lanes, orders, added, room,
):  # fmt: skip
    """Bring rows up to date after a change, and add them to the sums of begin:end.

    Both are done for some rows while they are near the processor.
    """
    for start in range(begin_row, end_row, PASS_ROWS):
        stop = min(start + PASS_ROWS, end_row)
        exchange_symmetric(
            columns, offsets, begin_changed, end_changed, old, change, rows, start, stop, lanes,
            orders, room,
        )  # fmt: skip
        add_symmetric(
            columns, offsets, begin, end, weights, rows, sums, start, stop, added,
            (len(orders) - 1) * old.shape[1], room,
        )  # fmt: skip


@compiled
def exchange_symmetric(
    columns, offsets, begin, end, old, change, rows, begin_row, end_row, lanes, orders, room
):
    """Make rows[row], computed under `old`, what they are after a change of begin:end."""
    ptr = np.empty(BLOCK_ROWS + 1, np.int64)
    for start in range(begin_row, end_row, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, end_row)
        for n in range(begin, end, BLOCK_VARIABLES):
            last = min(n + BLOCK_VARIABLES, end)
            list_cells(columns[n:last], offsets[n:], start, stop, ptr, room)
            for first in range(0, old.shape[1], len(lanes)):
                for k in range(stop - start):
                    exchange_row(
                        rows, start + k, old, change, first, room, ptr[k], ptr[k + 1], lanes, orders
                    )


@compiled
def add_symmetric(
    columns, offsets, begin, end, weights, rows, sums, begin_row, end_row, lanes, width, room
):
    """Add weight · rows[row], of that width, to the sums of all levels a row has in begin:end."""
    ptr = np.empty(BLOCK_ROWS + 1, np.int64)
    for start in range(begin_row, end_row, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, end_row)
        for n in range(begin, end, BLOCK_VARIABLES):
            last = min(n + BLOCK_VARIABLES, end)
            list_cells(columns[n:last], offsets[n:], start, stop, ptr, room)
            for first in range(0, width, len(lanes)):
                for k in range(stop - start):
                    row, scale = start + k, weights[start + k]
                    add_row(sums, -1, rows, row, scale, first, room, ptr[k], ptr[k + 1], lanes)


@compiled
def symmetric_derivatives(columns, weights, grams, changes, order):
    """Return how e_{k−1} without each variable, and e_k, of matrices move when the matrices do.

    Sums over patterns, columns of 0 and −1; `changes` is how each variable's matrix moves.
    """
    n_all, rank = grams.shape[0], grams.shape[1]
    moved = np.zeros_like(grams)
    whole = np.zeros((rank, rank))
    sums, speeds = np.empty((order + 1, rank)), np.empty((order + 1, rank))
    sum_, speed = np.empty(rank), np.empty(rank)
    for p in range(len(weights)):
        for f in range(rank):
            sums[:] = 0.0
            speeds[:] = 0.0
            sums[0] = 1.0
            for n in range(n_all):
                if columns[n, p] < 0:
                    continue
                gram, change = grams[n, f], changes[n, f]
                for j in range(order, 0, -1):
                    for g in range(rank):
                        step = speeds[j - 1, g] * gram[g] + sums[j - 1, g] * change[g]
                        speeds[j, g] += step
                        sums[j, g] += sums[j - 1, g] * gram[g]
            for g in range(rank):
                whole[f, g] += weights[p] * speeds[order, g]
            for n in range(n_all):
                if columns[n, p] < 0:
                    continue
                gram, change = grams[n, f], changes[n, f]
                sum_[:] = 1.0
                speed[:] = 0.0
                for j in range(1, order):
                    for g in range(rank):
                        speed[g] = speeds[j, g] - change[g] * sum_[g] - gram[g] * speed[g]
                        sum_[g] = sums[j, g] - gram[g] * sum_[g]
                for g in range(rank):
                    moved[n, f, g] += weights[p] * speed[g]
    return moved, whole
