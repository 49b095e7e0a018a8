"""Tables of many cells, dense or sparse: what a marginal holds.

A table that is mostly zeros is kept as its non-zero cells only. Both kinds have a `shape`, a sum,
and a *matrix* form, rows the first half of the variables and columns the rest; that is all that
the solvers ask of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

SPARSE_BELOW = 1 / 3
"""A table with a smaller part of non-zero cells is kept sparse: smaller and faster from there on."""

SMALLEST_SPARSE = 4096
"""Tables of fewer cells are always dense: the product of so few costs nothing."""


@dataclass(frozen=True)
class SparseTable:
    """The non-zero cells of a table, as the compressed rows of its matrix form.

    `np.asarray` gives the dense table.

    Examples
    --------
    >>> import numpy as np
    >>> table = SparseTable.of_cells(np.array([1, 5]), np.array([0.25, 0.75]), (2, 3))
    >>> np.asarray(table).tolist()
    [[0.0, 0.25, 0.0], [0.0, 0.0, 0.75]]
    """

    shape: tuple[int, ...]
    ptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @classmethod
    def of_cells(
        cls, cells: np.ndarray, values: np.ndarray, shape: tuple[int, ...]
    ) -> SparseTable:
        """Return the table with these values at these increasing flat cells."""
        n_rows, n_columns = matrix_shape(shape)
        rows, columns = np.divmod(cells, n_columns)
        ptr = np.zeros(n_rows + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=n_rows), out=ptr[1:])
        small = np.uint16 if n_columns <= 2**16 else np.uint32
        return cls(tuple(shape), ptr, columns.astype(small), np.ascontiguousarray(values))

    @property
    def nbytes(self) -> int:
        """Bytes that the table takes."""
        return self.ptr.nbytes + self.columns.nbytes + self.values.nbytes

    @property
    def cells(self) -> np.ndarray:
        """The flat cells that are stored, increasing."""
        rows = np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))
        return rows * matrix_shape(self.shape)[1] + self.columns

    def sum(self) -> Any:
        """Return the sum of all cells."""
        return self.values.sum()

    def __truediv__(self, total: float) -> SparseTable:
        """Return the table with every cell divided by a number."""
        return SparseTable(self.shape, self.ptr, self.columns, self.values / total)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the dense table."""
        dense = np.zeros(math.prod(self.shape), dtype or self.values.dtype)
        dense[self.cells] = self.values
        return dense.reshape(self.shape)


Table = np.ndarray | SparseTable


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the shape of the matrix form: the first half of the axes by the rest."""
    head = len(shape) // 2
    return math.prod(shape[:head]), math.prod(shape[head:])


def compact(table: np.ndarray) -> Table:
    """Return a table sparse where that is worth it, and as it is otherwise."""
    if table.size < SMALLEST_SPARSE or np.count_nonzero(table) >= SPARSE_BELOW * table.size:
        return table
    flat = np.ascontiguousarray(table).reshape(-1)
    cells = np.flatnonzero(flat)
    return SparseTable.of_cells(cells, flat[cells], table.shape)


def add(first: Table, second: Table) -> Table:
    """Return the sum of two tables of one shape, again sparse only where that is worth it."""
    if isinstance(first, SparseTable) and isinstance(second, SparseTable):
        total = _as_scipy(first) + _as_scipy(second)
        total.sort_indices()
        coordinates = total.tocoo()
        cells = coordinates.row.astype(np.int64) * total.shape[1] + coordinates.col
        if len(cells) >= SPARSE_BELOW * math.prod(first.shape):
            return np.asarray(first) + np.asarray(second)
        return SparseTable.of_cells(cells, total.data, first.shape)
    return compact(np.asarray(first) + np.asarray(second))


def _as_scipy(table: SparseTable) -> Any:
    parts = (table.values, table.columns.astype(np.int64), table.ptr)
    return sparse.csr_array(parts, shape=matrix_shape(table.shape))


def sum_onto(table: Table, axis: int) -> np.ndarray:
    """Return the table of one variable alone: everything else summed out."""
    if isinstance(table, SparseTable):
        levels = np.unravel_index(table.cells, table.shape)[axis]
        return np.bincount(levels, weights=table.values, minlength=table.shape[axis])
    return table.sum(axis=tuple(k for k in range(table.ndim) if k != axis))


def transpose(table: Table, axes: tuple[int, ...]) -> Table:
    """Return the table with its axes in another order."""
    if axes == tuple(range(len(axes))):
        return table
    if isinstance(table, SparseTable):
        levels = np.unravel_index(table.cells, table.shape)
        shape = tuple(table.shape[k] for k in axes)
        cells = np.ravel_multi_index(tuple(levels[k] for k in axes), shape)
        order = np.argsort(cells)
        return SparseTable.of_cells(cells[order], table.values[order], shape)
    return np.ascontiguousarray(table.transpose(axes))
