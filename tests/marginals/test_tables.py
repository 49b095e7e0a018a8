"""Sparse tables are their dense tables: cells, sums, turns."""

import numpy as np
import pytest

from jointpmf.marginals import tables
from jointpmf.marginals.tables import SparseTable, TableLimits, compact
from support import oracle

SHAPES = [(5,), (3, 4), (4, 1, 3), (6, 7, 5, 8)]

SPARSE = TableLimits(sparse_below=2, smallest_sparse=0)


def random_table(shape, seed=0):
    """Return integer counts, about two thirds of them zero."""
    generator = np.random.default_rng(seed)
    return generator.integers(1, 9, shape) * (generator.random(shape) < 1 / 3)


def test_a_large_table_is_sparse_by_itself_only_if_it_is_mostly_zeros():
    mostly_zeros = np.zeros((64, 64))
    mostly_zeros[3, 5] = 1
    assert isinstance(compact(mostly_zeros), SparseTable)
    assert isinstance(compact(np.ones((64, 64))), np.ndarray)
    assert isinstance(compact(np.zeros((63, 65))), np.ndarray)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sparse_table_is_its_dense_table(shape):
    table = random_table(shape)
    sparse = compact(table, SPARSE)
    flat = table.ravel()
    np.testing.assert_array_equal(np.asarray(sparse), table)
    np.testing.assert_array_equal(sparse.cells, np.flatnonzero(flat))
    np.testing.assert_array_equal(sparse.values, flat[flat > 0])
    assert sparse.sum() == table.sum()
    np.testing.assert_allclose(np.asarray(sparse / 7), table / 7)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sparse_matrix_form_is_transposed_with_its_entries_in_order(shape):
    n_rows, n_columns = tables.matrix_shape(shape)
    truth = random_table(shape).reshape(n_rows, n_columns).T
    ptr, columns, values = compact(random_table(shape), SPARSE).transposed_entries()
    rows = np.repeat(np.arange(n_columns), np.diff(ptr))
    np.testing.assert_array_equal(rows * n_rows + columns, np.flatnonzero(truth))
    np.testing.assert_array_equal(values, truth[truth > 0])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sparse_table_is_summed_and_turned_as_a_dense_one(shape):
    table = random_table(shape)
    for kept in (table / 2, compact(table, SPARSE) / 2):
        sums = tables.low_order_sums(kept)
        assert len(sums) == len(shape) + len(shape) * (len(shape) - 1) // 2
        for axes, found in sums.items():
            np.testing.assert_allclose(found, oracle.sum_onto(table, axes) / 2)
    axes = tuple(np.roll(np.arange(len(shape)), 1).tolist())
    turned = tables.transpose(compact(table, SPARSE) / 2, axes)
    assert isinstance(turned, SparseTable)
    np.testing.assert_allclose(np.asarray(turned), table.transpose(axes) / 2)


@pytest.mark.parametrize("kinds", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_sparse_and_dense_tables_add_up_alike(kinds):
    both = [random_table((3, 4, 5), seed) for seed in (0, 1)]
    mixed = [
        compact(table, SPARSE) if kind else table for table, kind in zip(both, kinds, strict=True)
    ]
    total = tables.add(*mixed, SPARSE)
    np.testing.assert_array_equal(np.asarray(total), sum(both))


def test_a_sum_that_fills_up_becomes_dense():
    limits = TableLimits(smallest_sparse=0)
    first, second = np.diag([1, 2, 3, 4]), np.diag([5, 6, 7], 1)
    total = tables.add(compact(first, limits), compact(second, limits), limits)
    assert isinstance(total, np.ndarray)
    np.testing.assert_array_equal(total, first + second)


@pytest.mark.parametrize("count", [2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**40])
def test_a_sparse_table_holds_any_count(count):
    table = SparseTable.of_cells(np.array([1]), np.array([count]), (2, 2))
    assert np.asarray(table).tolist() == [[0, count], [0, 0]]


@pytest.mark.parametrize("size", [2**8, 2**16, 70_000])
def test_a_sparse_table_may_be_very_wide(size):
    cells = np.array([5, 2 * size**2 - 1])
    table = SparseTable.of_cells(cells, np.array([1, 2]), (2, size, size))
    np.testing.assert_array_equal(table.cells, cells)
