"""Elementary symmetric polynomials of the cells of rows, and their sums by level, compiled.

With r_n the row of the factors at the cell of variable n, the sum over all subsets of k variables
of the products of their r_n is e_k of all r_n. Kept per row, e_1 … e_k make everything that the
coupled objective over *all* subsets asks of rows one pass over the cells (docs/math.md, eq. 28).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from jointpmf.compiled.counting import add_level_counts
from jointpmf.compiled.panels import aligned_zeros, lanes_of, panel_width
from jointpmf.compiled.symmetric import (
    padded,
    pass_over_rows,
    set_symmetric,
    symmetric_panel,
    symmetric_room,
)
from jointpmf.threads import run_all

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
    chunk_work : int
        Numbers that a pass over a chunk touches at least.
    """

    def __init__(
        self,
        columns: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray,
        n_numbers: int,
        order: int,
        chunk_work: int = CHUNK_WORK,
    ) -> None:
        self.columns, self.offsets, self.weights = columns, offsets, weights
        self.n_numbers, self.order = n_numbers, order
        self.width = padded(n_numbers, order)
        n_rows, n_levels = len(weights), int(offsets[-1])
        self._table = aligned_zeros(n_levels, self.width)
        self._rows = aligned_zeros(n_rows, order * self.width)
        size = 8 * n_levels * order * self.width
        work = columns.size * order * self.width
        n_chunks = max(min(work // chunk_work, MAX_CHUNKS, CHUNK_BYTES // size, n_rows), 1)
        self._bounds = np.linspace(0, n_rows, n_chunks + 1).astype(np.int64)
        self._sums = [aligned_zeros(n_levels, order * self.width) for _ in range(n_chunks)]
        self._counts = np.zeros(n_levels)
        for n, first in enumerate(offsets[:-1]):
            add_level_counts(columns[n], weights, self._counts[first:])
        added = panel_width((order - 1) * self.width)
        self._panels = lanes_of(symmetric_panel(n_numbers, order)), (0,) * order, lanes_of(added)
        self._old = self._change = self._table
        self._changed: tuple[int, int] | None = None

    def _source(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the columns, where each variable's levels begin, and memory for lists of cells."""
        room = symmetric_room(len(self.columns), int(self.offsets[-1]))
        return self.columns, self.offsets, room

    def load(self, table: np.ndarray) -> None:
        """Compute e_1 … e_k of every row under a table of shape (levels, n_numbers)."""
        self._table[:, : self.n_numbers] = table
        self._changed = None

        def chunk(k: int) -> None:
            begin, end = self._bounds[k : k + 2]
            lanes, orders, _ = self._panels
            set_symmetric(self._source(), self._table, self._rows, begin, end, lanes, orders)

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
            self._source(),
            self.weights,
            self._changed or (0, 0),
            (begin, end),
            self._old,
            self._change,
            self._rows,
            sums,
            (self._bounds[k], self._bounds[k + 1]),
            self._panels,
        )

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
