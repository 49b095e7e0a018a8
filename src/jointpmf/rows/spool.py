"""Codes in a temporary file: rows that are read again and again, but never held all at once.

A block has a fixed size, however much memory there is, so that the same rows give the same bits.
Where rows repeat often, a block holds the distinct ones and how often each was seen, unless they
have weights of their own.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from jointpmf.data.codes import Codes, code_dtype
from jointpmf.output import keeping_codes
from jointpmf.rows.parts import Part, PartedRows, S, Task
from jointpmf.rows.table import ColumnRows

if TYPE_CHECKING:
    from jointpmf.domain import Domain

_BYTES_BESIDE = 16
"""What a row takes of a block's memory beside its codes: a weight and a log-likelihood."""


class _Block(NamedTuple):
    """Where some rows are in the file; without weights each counts for one."""

    place: int
    n_rows: int
    has_weights: bool
    n_empty: int


class Spool:
    """A table in parts that lies in a temporary file, which is gone when the spool is closed.

    Parameters
    ----------
    domain : Domain
        What the codes are positions in.
    block_bytes : int
        Memory of a block, which is read and worked on at once.
    """

    def __init__(self, domain: Domain, block_bytes: int = 2**24) -> None:
        self.domain = domain
        self.n_rows = 0
        self.is_weighted = False
        dtype = np.dtype(code_dtype(max(domain.sizes, default=1)))
        size = max(block_bytes // (len(domain) * dtype.itemsize + _BYTES_BESIDE), 1)
        self._columns, self._weights = np.empty((len(domain), size), dtype), np.empty(size)
        self._filled = self._n_empty = 0
        self._blocks: list[_Block] = []
        self._units = np.empty(0)
        with keeping_codes():
            self._file = tempfile.TemporaryFile(prefix="jointpmf-")  # noqa: SIM115  closed on exit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, codes: Codes, weights: np.ndarray | None = None) -> None:
        """Take more rows in, each of which counts for one unless there are weights."""
        assert len(self._weights), "the spool is finished"
        self.n_rows += codes.n_rows
        self.is_weighted = self.is_weighted or weights is not None
        begin = 0
        while begin < codes.n_rows:
            first = self._filled
            count = min(codes.n_rows - begin, len(self._weights) - first)
            self._columns[:, first : first + count] = codes.columns[:, begin : begin + count]
            own = 1.0 if weights is None else weights[begin : begin + count]
            self._weights[first : first + count] = own
            self._filled += count
            begin += count
            if self._filled == len(self._weights):
                self._empty_block(len(self._weights) // 2)

    def finish(self) -> None:
        """Write what is still in memory; no rows can be added any more."""
        if self._filled or not self._blocks:
            self._empty_block(-1)
        self._columns, self._weights = self._columns[:, :0].copy(), self._weights[:0].copy()

    def _empty_block(self, few: int) -> None:
        """Write the block; but if it has only few distinct rows, keep those and go on filling."""
        filled = Codes(self.domain, self._columns[:, : self._filled].T)
        # a row with a weight stays one observation: replicates draw for each of them
        kept = ColumnRows.as_they_are if self.is_weighted else ColumnRows.of_codes
        rows = kept(filled, self._weights[: self._filled].copy())
        self._n_empty += rows.n_empty
        if len(rows) > few:
            self._write(rows)
            self._filled = 0
        else:
            self._columns[:, : len(rows)], self._weights[: len(rows)] = rows.columns, rows.weights
            self._filled = len(rows)

    def _write(self, rows: ColumnRows) -> None:
        has_weights = bool((rows.weights != 1).any())
        with keeping_codes():
            self._blocks.append(_Block(self._file.tell(), len(rows), has_weights, self._n_empty))
            self._file.write(np.ascontiguousarray(rows.columns).data)
            if has_weights:
                self._file.write(np.ascontiguousarray(rows.weights).data)
            self._file.flush()
        self._n_empty = 0

    @property
    def n_parts(self) -> int:
        """How many blocks were written."""
        return len(self._blocks)

    def parts(self, which: Iterable[int] | None = None) -> Iterator[Part]:
        """Read the blocks, or some of them, one after the other."""
        for index in range(self.n_parts) if which is None else which:
            yield Part(index, self._read(self._blocks[index]))

    def mixed_steps(
        self, generator: np.random.Generator, size: int, n_blocks: int = 4
    ) -> Iterator[ColumnRows]:
        """Yield all rows, at most `size` at a time, each time from several blocks.

        A file may be sorted, so neighbours are often alike.
        """
        order = generator.permutation(self.n_parts)
        for begin in range(0, len(order), n_blocks):
            parts = [part.rows for part in self.parts(order[begin : begin + n_blocks].tolist())]
            columns = np.concatenate([part.columns for part in parts], axis=1)
            weights = np.concatenate([part.weights for part in parts])
            n_steps = -(-len(weights) // size)
            for k in range(n_steps):
                some = np.ascontiguousarray(columns[:, k::n_steps])
                yield ColumnRows(self.domain, some, weights[k::n_steps].copy())

    def total(self, task: Task[S]) -> S:
        """Return the sum of a task's results over all blocks, in their order."""
        parts = self.parts()
        found = task(next(parts))
        for part in parts:
            found = found.merged(task(part))
        return found

    def _read(self, block: _Block) -> ColumnRows:
        """Return the rows of a block, whose codes stay where they are: in the file's own pages."""
        shape, dtype = (len(self.domain), block.n_rows), self._columns.dtype
        size = dtype.itemsize * shape[0] * shape[1]
        n_bytes = size + (8 * block.n_rows if block.has_weights else 0)
        if not n_bytes:
            return ColumnRows(self.domain, np.empty(shape, dtype), np.empty(0), block.n_empty)
        begin = block.place % mmap.ALLOCATIONGRANULARITY
        # a copy only where it is written to, which it never is; the map goes with its last array
        pages = mmap.mmap(
            self._file.fileno(),
            begin + n_bytes,
            access=mmap.ACCESS_COPY,
            offset=block.place - begin,
        )
        found = np.frombuffer(pages, np.uint8)[begin:]
        weights = found[size:].copy().view(np.float64) if block.has_weights else self._ones(block)
        columns = found[:size].view(dtype).reshape(shape)
        return ColumnRows(self.domain, columns, weights, block.n_empty)

    def _ones(self, block: _Block) -> np.ndarray:
        """Return the weights of rows that count for one each, the same memory for all blocks."""
        if len(self._units) < block.n_rows:
            self._units = np.ones(block.n_rows)
        return self._units[: block.n_rows]


class SpooledRows(PartedRows):
    """The rows of a spool, as a source whose rows can also be read in blocks."""

    def __init__(self, spool: Spool) -> None:
        spool.finish()
        super().__init__(spool)
        self.spool = spool
        self.is_weighted = spool.is_weighted

    @property
    def n_read(self) -> int:
        """How many rows went into the spool, whatever they count for."""
        return self.spool.n_rows

    def mixed_steps(self, generator: np.random.Generator, size: int) -> Iterator[ColumnRows]:
        """Yield all rows, at most `size` at a time, in an order that mixes the blocks."""
        return self.spool.mixed_steps(generator, size)
