"""Distinct rows of many, against numpy's sort; and rows drawn by weight."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf import threads
from jointpmf.rows.distinct import kinds_if_few, kinds_of_rows
from jointpmf.rows.source import Table
from jointpmf.rows.table import ColumnRows, Rows, drawn_by_weight


def table(n_rows, sizes, seed=0, missing=0.3):
    generator = np.random.default_rng(seed)
    rows = np.stack([generator.integers(0, size, n_rows) for size in sizes], axis=1)
    rows[generator.random(rows.shape) < missing] = jp.MISSING
    return jp.Codes(jp.Domain.of_sizes(sizes), rows)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("sizes", [[3] * 5, [30_000, 2, 30_000], [1000] * 6, [2] * 70])
def test_kinds_of_many_rows(sizes, n_threads):
    codes = table(20_000, sizes)
    doubled = jp.Codes(codes.domain, np.repeat(codes.array, 2, axis=0))
    weights = np.random.default_rng(1).random(doubled.n_rows) + 0.5
    with threads.limited_to(n_threads):
        kinds = kinds_of_rows(doubled, weights)
    rows, first, inverse = np.unique(doubled.array, axis=0, return_index=True, return_inverse=True)
    is_empty = (rows < 0).all(axis=1)
    sums = np.bincount(inverse, weights)
    expected = {tuple(r): s for r, s, e in zip(rows.tolist(), sums, is_empty, strict=True) if not e}
    found = dict(zip(map(tuple, kinds.columns.T.tolist()), kinds.weights, strict=True))
    assert found == pytest.approx(expected)
    assert kinds.n_empty == (doubled.array < 0).all(axis=1).sum()
    assert (kinds.columns[:, kinds.inverse] == doubled.columns[:, kinds.used]).all()
    assert set(kinds.used[kinds.starts[:-1]]) == set(first[~is_empty])
    assert len(kinds.used) == doubled.n_rows - kinds.n_empty


def test_the_order_depends_neither_on_the_table_nor_on_threads():
    codes = table(30_000, [4] * 9)
    shuffled = np.random.default_rng(3).permutation(codes.n_rows)
    found = []
    for n_threads, array in ((1, codes.array), (2, codes.array), (2, codes.array[shuffled])):
        with threads.limited_to(n_threads):
            found.append(kinds_of_rows(jp.Codes(codes.domain, array), None))
    for other in found[1:]:
        np.testing.assert_array_equal(other.columns, found[0].columns)
        np.testing.assert_array_equal(other.weights, found[0].weights)


@pytest.mark.parametrize("n_rows", [3000, 80_000])
def test_they_are_not_looked_for_where_rows_do_not_repeat(n_rows):
    alike, different = table(n_rows, [2] * 4), table(n_rows, [50] * 12, missing=0.0)
    assert kinds_if_few(alike, None, most=0.5) is not None
    assert kinds_if_few(different, None, most=0.5) is None
    assert kinds_if_few(different, None) is not None  # always, if all may be different


def test_what_a_sample_tells_holds_for_the_table():
    """Rows that occur twice, far apart, are found although few of them meet in a sample."""
    once = table(60_000, [50] * 12, missing=0.0).array
    twice = jp.Codes(jp.Domain.of_sizes([50] * 12), np.concatenate([once, once]))
    kinds = kinds_if_few(twice, None, most=0.6)
    assert kinds is not None
    assert (kinds.weights == 2).all()


def test_tables_of_many_rows_that_do_not_repeat_keep_their_columns():
    many, repeated = table(100_000, [8] * 10), table(100_000, [2] * 6)
    assert isinstance(Table.of_codes(many).rows, ColumnRows)
    assert isinstance(Table.of_codes(repeated).rows, Rows)
    assert isinstance(Table.of_codes(table(20_000, [8] * 10)).rows, Rows)


class TestDrawn:
    def test_each_row_is_drawn_by_its_weight(self):
        generator = np.random.default_rng(0)
        weights = generator.random(500) * (generator.random(500) < 0.7)
        sums = np.zeros(500)
        for seed in range(400):
            which, counts = drawn_by_weight(weights, 3.0, np.random.default_rng(seed))
            assert abs(counts.sum() - 3.0 * weights.sum()) <= 1
            assert (np.diff(which) > 0).all()
            sums[which] += counts
        assert sums[weights == 0].sum() == 0
        np.testing.assert_allclose(sums / 400, 3.0 * weights, atol=0.15)

    def test_rows_at_equal_distances_are_drawn_as_often_as_others(self):
        weights, sums = np.ones(1000), np.zeros(10)
        for seed in range(50):
            which, counts = drawn_by_weight(weights, 0.1, np.random.default_rng(seed))
            sums += np.bincount(which % 10, counts, minlength=10)
        assert sums.min() > 0.7 * sums.mean()

    def test_of_nothing_nothing_is_drawn(self):
        for weights in (np.empty(0), np.zeros(3)):
            which, counts = drawn_by_weight(weights, 2.0, np.random.default_rng(0))
            assert len(which) == len(counts) == 0
