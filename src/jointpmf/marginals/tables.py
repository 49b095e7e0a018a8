"""Tables of many cells, dense or sparse: what a marginal holds.

A table that is mostly zeros is kept as its non-zero cells only. Both kinds have a `shape`, a sum,
and a *matrix* form, rows the first half of the variables and columns the rest; that is all that
the solvers ask of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class TableLimits:
    """Which tables are kept sparse, and how they are counted."""

    sparse_below: float = 1 / 3
    """A table with a smaller part of non-zero cells is kept sparse: that is smaller and faster."""
    smallest_sparse: int = 4096
    """Tables of fewer cells are always dense: products with them cost next to nothing."""
    max_scratch: int = 2**24
    """Cells of the largest table that is counted directly; larger ones are counted by sorting."""

    def are_sparse(self, n_nonzero: int, n_cells: int) -> bool:
        """Tell whether a table is large enough, and empty enough, to be kept sparse."""
        return n_cells >= self.smallest_sparse and n_nonzero < self.sparse_below * n_cells


DEFAULT_LIMITS = TableLimits()


class CompressedRows(NamedTuple):
    """The non-zero entries of a matrix, row after row: row r has the entries ptr[r]:ptr[r + 1]."""

    ptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @classmethod
    def of_entries(
        cls, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]
    ) -> CompressedRows:
        """Return entries that are ordered by row and column, in the smallest types for them."""
        ptr = np.zeros(shape[0] + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=shape[0]), out=ptr[1:])
        if values.dtype.kind in "iu" and values.min(initial=0) >= 0:
            values = values.astype(_unsigned(int(values.max(initial=0))))
        return cls(ptr, columns.astype(_unsigned(shape[1] - 1)), np.ascontiguousarray(values))

    @property
    def rows(self) -> np.ndarray:
        """The row of every entry."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))


def _unsigned(largest: int) -> type[np.unsignedinteger]:
    return np.uint16 if largest < 2**16 else np.uint32 if largest < 2**32 else np.uint64


@dataclass(frozen=True)
class SparseTable:
    """The non-zero cells of a table: `scale` times the entries of its matrix form.

    Counts stay the small integers that they are, also when the table is made to sum to one;
    `np.asarray` gives the dense table.

    Examples
    --------
    >>> import numpy as np
    >>> table = SparseTable.of_cells(np.array([1, 5]), np.array([1, 3]), (2, 3)) / 4
    >>> np.asarray(table).tolist()
    [[0.0, 0.25, 0.0], [0.0, 0.0, 0.75]]
    """

    shape: tuple[int, ...]
    entries: CompressedRows
    scale: float = 1.0

    @classmethod
    def of_cells(cls, cells: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> SparseTable:
        """Return the table with these values at these increasing flat cells."""
        matrix = matrix_shape(shape)
        rows, columns = np.divmod(cells, matrix[1])
        return cls(tuple(shape), CompressedRows.of_entries(rows, columns, values, matrix))

    @property
    def nbytes(self) -> int:
        """Bytes that the table takes."""
        return sum(part.nbytes for part in self.entries)

    @property
    def cells(self) -> np.ndarray:
        """The flat cells that are stored, increasing."""
        return self.entries.rows * matrix_shape(self.shape)[1] + self.entries.columns

    @property
    def values(self) -> np.ndarray:
        """What the stored cells hold."""
        return self.entries.values if self.scale == 1.0 else self.entries.values * self.scale

    def sum(self) -> Any:
        """Return the sum of all cells."""
        return self.entries.values.sum() * self.scale

    def dense_rows(self, rows: slice) -> np.ndarray:
        """Return some rows of the matrix form."""
        n_rows, n_columns = matrix_shape(self.shape)
        begin, end, _ = rows.indices(n_rows)
        part = slice(self.entries.ptr[begin], self.entries.ptr[end])
        dense = np.zeros((end - begin, n_columns))
        dense[self.entries.rows[part] - begin, self.entries.columns[part]] = self.values[part]
        return dense

    def transposed_entries(self) -> CompressedRows:
        """Return the entries of the transposed matrix form, before scaling."""
        n_rows, n_columns = matrix_shape(self.shape)
        order = np.argsort(self.entries.columns, kind="stable")
        rows, values = self.entries.rows[order], self.entries.values[order]
        columns = self.entries.columns[order].astype(np.int64)
        return CompressedRows.of_entries(columns, rows, values, (n_columns, n_rows))

    def __truediv__(self, total: float) -> SparseTable:
        """Return the table with every cell divided by a number."""
        return SparseTable(self.shape, self.entries, self.scale / total)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the dense table."""
        values = self.values
        if values.dtype.kind == "u":
            values = values.astype(np.int64)
        dense = np.zeros(math.prod(self.shape), dtype or values.dtype)
        dense[self.cells] = values
        return dense.reshape(self.shape)


Table = np.ndarray | SparseTable


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the shape of the matrix form: the first half of the axes by the rest."""
    head = len(shape) // 2
    return math.prod(shape[:head]), math.prod(shape[head:])


def compact(table: np.ndarray, limits: TableLimits = DEFAULT_LIMITS) -> Table:
    """Return a table as a sparse one if that is worth it, and otherwise unchanged."""
    if not limits.are_sparse(int(np.count_nonzero(table)), table.size):
        return table
    flat = np.ascontiguousarray(table).reshape(-1)
    cells = np.flatnonzero(flat)
    return SparseTable.of_cells(cells, flat[cells], table.shape)


def add(first: Table, second: Table, limits: TableLimits = DEFAULT_LIMITS) -> Table:
    """Return the sum of two tables of one shape, again sparse only where that is worth it."""
    if not (isinstance(first, SparseTable) and isinstance(second, SparseTable)):
        return compact(np.asarray(first) + np.asarray(second), limits)
    cells = np.concatenate([first.cells, second.cells])
    values = np.concatenate([_wide(first.values), _wide(second.values)])
    cells, where = np.unique(cells, return_inverse=True)
    totals = np.zeros(len(cells), values.dtype)
    np.add.at(totals, where, values)
    if not limits.are_sparse(len(cells), math.prod(first.shape)):
        return np.asarray(first) + np.asarray(second)
    return SparseTable.of_cells(cells, totals, first.shape)


def _wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64) if values.dtype.kind == "u" else values


def low_order_sums(table: Table) -> dict[tuple[int, ...], np.ndarray]:
    """Return the tables of every axis and every two axes alone: everything else summed out."""
    axes = range(len(table.shape))
    if isinstance(table, SparseTable):
        levels, values = np.unravel_index(table.cells, table.shape), table.values
        sums = {
            (a, b): np.bincount(
                levels[a] * table.shape[b] + levels[b], values, table.shape[a] * table.shape[b]
            ).reshape(table.shape[a], table.shape[b])
            for a, b in combinations(axes, 2)
        }
    else:
        sums = {
            (a, b): table.sum(axis=tuple(k for k in axes if k not in (a, b)))
            for a, b in combinations(axes, 2)
        }
    if len(table.shape) == 1:
        return {(0,): np.asarray(table)}
    singles = {(a,): sums[a, a + 1].sum(axis=1) for a in axes[:-1]}
    return sums | singles | {(axes[-1],): sums[axes[-2], axes[-1]].sum(axis=0)}


def transpose(table: Table, axes: tuple[int, ...]) -> Table:
    """Return the table with its axes in another order."""
    if axes == tuple(range(len(axes))):
        return table
    if isinstance(table, SparseTable):
        levels = np.unravel_index(table.cells, table.shape)
        shape = tuple(table.shape[k] for k in axes)
        cells = np.ravel_multi_index(tuple(levels[k] for k in axes), shape)
        order = np.argsort(cells)
        moved = SparseTable.of_cells(cells[order], table.entries.values[order], shape)
        return SparseTable(shape, moved.entries, table.scale)
    return np.ascontiguousarray(table.transpose(axes))
