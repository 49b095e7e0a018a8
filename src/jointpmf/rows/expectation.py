"""Rows against components: the E-step, compiled and shared over threads.

Rows are taken in fixed chunks that have sums of their own, so that the bits depend neither on the
number of threads nor on the size of a block (docs/math.md, eq. 20).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from jointpmf.compiled.panels import aligned_zeros, lanes_of, padded_width, panel_width
from jointpmf.compiled.posteriors import (
    Panels,
    Rooms,
    are_many,
    e_step,
    e_step_of_many,
    empty_panels,
    panels_of,
    stack_of,
    stack_of_panels,
)
from jointpmf.point import Point
from jointpmf.threads import run_all

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.rows.combinations import Combinations

CHUNK_WORK, CELLS_PER_SUM, MAX_CHUNKS, CHUNK_BYTES = 2**19, 128, 32, 2**28
"""Cells times components of a chunk at least, so that it takes longer than to share it out; its
cells for each sum that it has; how many chunks there are at most, and the memory of their sums."""

ListedRows = tuple[slice, np.ndarray, np.ndarray]
"""Which rows, their cells one after the other, and where the cells of each row begin and end."""


class Weighted(Protocol):
    """Rows with weights, some of which can be listed at a time."""

    @property
    def domain(self) -> Domain:
        """What can happen."""

    @property
    def weights(self) -> np.ndarray:
        """What each row counts for."""

    @property
    def combinations(self) -> Combinations | None:
        """How variables are taken together, if there are rows enough for that."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def listed(
        self, begin: int, end: int, combinations: Combinations | None = None
    ) -> Iterator[ListedRows]:
        """Yield rows begin:end in blocks: their cells, or their combinations of cells."""


class Stacks:
    """Models of one rank as `stacks`, in the form that the E-step reads.

    A stack has the factors of all variables, one row per level, and the weights as the last row;
    columns are padded with zeros to whole vectors.
    """

    def __init__(self, domain: Domain, rank: int) -> None:
        self.rank = rank
        self.width = padded_width(rank)
        self.n_levels = int(domain.offsets[-1])

    def empty_stack(self) -> np.ndarray:
        """Return a stack of zeros."""
        return aligned_zeros(self.n_levels + 1, self.width)

    def stack(self, point: Point) -> np.ndarray:
        """Return a point as a stack."""
        return stack_of(point.weights, point.factors)

    def point(self, stack: np.ndarray) -> Point:
        """Return the point that a stack is."""
        return Point(stack[-1, : self.rank], stack[:-1, : self.rank])


class Expectation(Stacks):
    """The E-step of some rows for models of one rank, with its working memory: one call at a time.

    It takes `panel` components at a time, by default as many as are fastest. Each number is
    compiled on its own, so what is computed but once does better with one that is common.
    """

    def __init__(
        self,
        rows: Weighted,
        rank: int,
        chunk_bytes: int = CHUNK_BYTES,
        panel: int | None = None,
    ) -> None:
        super().__init__(rows.domain, rank)
        self.rows = rows
        n_cells = len(rows) * len(rows.domain)
        self._lanes = lanes_of(panel or panel_width(rank, n_cells))
        n_chunks = self._n_chunks(n_cells, chunk_bytes)
        self._bounds = np.linspace(0, len(rows), n_chunks + 1).astype(np.int64)
        self._sums = np.empty(len(self._bounds) - 1)
        self._panels: dict[int, Panels] = {}
        self._counts: dict[int, list[np.ndarray]] = {}
        self._rooms = Rooms()

    def _n_chunks(self, n_cells: int, n_bytes: int) -> int:
        """Return into how many chunks rows are divided, whatever the number of threads."""
        combinations = self.rows.combinations
        n_combined = 0 if combinations is None else combinations.n_combinations
        n_sums = max(self.n_levels, n_combined) + 1
        by_work = n_cells * self.rank // CHUNK_WORK
        by_sums = n_cells // (CELLS_PER_SUM * n_sums)
        by_memory = n_bytes // (8 * n_sums * self.width)
        most = max(min(by_work, by_sums, by_memory, MAX_CHUNKS), 1)
        return 1 << int(most).bit_length() - 1  # three chunks take two threads as long as four

    def counts(self, stack: np.ndarray) -> tuple[np.ndarray, float]:
        """Return how often each level is expected with each component, and Σ log-likelihood."""
        combinations = self.rows.combinations
        if combinations is not None and combinations.are_safe(stack):
            counted = combinations.counts(self._counted(combinations.stack(stack), combinations))
        else:
            counted = self._counted(stack, None)
        return counted, sum(self._sums.tolist())

    def _counted(self, stack: np.ndarray, combinations: Combinations | None) -> np.ndarray:
        """Return the sum of what all chunks count of each row of a stack."""
        n_rows, panels = len(stack), self._panels_of(stack)
        if n_rows not in self._counts:
            shape = n_rows, self.width
            self._counts[n_rows] = [empty_panels(shape, len(self._lanes)) for _ in self._sums]
        chunks = self._counts[n_rows]
        self._run(panels, chunks, combinations)
        for chunk in chunks[1:]:
            chunks[0] += chunk
        counts = stack_of_panels(chunks[0])
        return counts.copy() if len(chunks[0]) == 1 else counts  # of one panel it is its memory

    def _panels_of(self, stack: np.ndarray) -> Panels:
        made = self._panels.get(len(stack))
        self._panels[len(stack)] = panels_of(stack, len(self._lanes), made)
        return self._panels[len(stack)]

    def log_likelihoods(self, stack: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of each distinct row."""
        logs, nothing = np.empty(len(self.rows)), np.empty((0, 0, 0))
        panels = self._panels_of(stack)
        self._run(panels, [nothing] * len(self._sums), None, logs)
        return logs

    def _run(
        self,
        panels: Panels,
        counts: list[np.ndarray],
        combinations: Combinations | None,
        logs: np.ndarray | None = None,
    ) -> None:
        def chunk(k: int) -> None:
            counts[k][:] = 0
            begin, end = self._bounds[k], self._bounds[k + 1]
            own = np.empty(end - begin) if logs is None else logs[begin:end]
            for rows, cells, ptr in self.rows.listed(begin, end, combinations):
                weights = self.rows.weights[rows]
                found = own[rows.start - begin : rows.stop - begin]
                given = cells, ptr, weights, *panels, self._rooms.of(panels.columns)
                step = e_step_of_many if logs is None and are_many(self.rank) else e_step
                step(*given, counts[k], found, self._lanes)
            if logs is None:
                self._sums[k] = weighted_sum(self.rows.weights[begin:end], own)

        run_all([partial(chunk, k) for k in range(len(counts))])


def weighted_sum(weights: np.ndarray, logs: np.ndarray) -> float:
    """Return Σ weight · log; a row that counts for nothing may be impossible."""
    total = float(np.einsum("k,k->", weights, logs))  # half the time of a product and a sum
    if math.isnan(total):
        do_count = weights > 0
        total = float(weights[do_count] @ logs[do_count])
    return total
