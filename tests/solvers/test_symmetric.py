"""Elementary symmetric polynomials of rows against sums over all subsets, one by one."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointpmf import threads
from jointpmf.solvers.patterns import PatternCurvature, Patterns, PatternSums
from jointpmf.solvers.symmetric import SymmetricSums


def random_rows(seed, n_variables, n_rows, missing=0.3):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 5, n_variables)
    columns = np.array([generator.integers(0, size, n_rows) for size in sizes], np.int8)
    columns[generator.random(columns.shape) < missing] = -1
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return columns, offsets, generator.random(n_rows), generator


def by_subsets(columns, offsets, weights, table, order):
    """Return Σ of products by level without its own variable, and Σ of all products."""
    without, whole = np.zeros(table.shape), np.zeros(table.shape[1])
    for m, weight in enumerate(weights):
        seen = [n for n in range(len(columns)) if columns[n, m] >= 0]
        cell = {n: offsets[n] + columns[n, m] for n in seen}
        for subset in combinations(seen, order):
            whole += weight * np.prod([table[cell[n]] for n in subset], axis=0)
            for n in subset:
                others = [table[cell[j]] for j in subset if j != n]
                without[cell[n]] += weight * np.prod(others, axis=0)
    return without, whole


SHAPES = [(1, 2), (6, 2), (4, 3), (6, 3), (3, 4), (6, 4), (13, 5)]
"""Numbers per level and order: less than a vector, a whole one, several, and several panels. Each
is a loop to compile; the first six are also those of other tests."""


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_variables=st.integers(2, 6),
    n_rows=st.integers(1, 30),
    shape=st.sampled_from(SHAPES),
)
def test_sums_equal_those_over_all_subsets(seed, n_variables, n_rows, shape):
    n_numbers, order = shape
    columns, offsets, weights, generator = random_rows(seed, n_variables, n_rows)
    sums = SymmetricSums(columns, offsets, weights, n_numbers, order)
    table, new = generator.random((2, offsets[-1], n_numbers))
    sums.load(table)
    without, whole = by_subsets(columns, offsets, weights, table, order)
    np.testing.assert_allclose(sums.without(0, n_variables), without, atol=1e-10)
    np.testing.assert_allclose(sums.whole(), whole, atol=1e-10)

    begin, end = 1, n_variables
    sums.exchange(begin, end, new)
    table[offsets[begin] : offsets[end]] = new[offsets[begin] : offsets[end]]
    without, whole = by_subsets(columns, offsets, weights, table, order)
    np.testing.assert_allclose(sums.without(0, begin), without[: offsets[begin]], atol=1e-10)
    np.testing.assert_allclose(sums.without(begin, end), without[offsets[begin] :], atol=1e-10)
    np.testing.assert_allclose(sums.whole(), whole, atol=1e-10)


def test_more_variables_and_rows_than_a_block():
    columns, offsets, weights, generator = random_rows(0, 40, 600, missing=0.7)
    sums = SymmetricSums(columns, offsets, weights, 2, 2, chunk_work=1000)
    table = generator.random((offsets[-1], 2))
    sums.load(generator.random(table.shape))
    sums.exchange(0, 40, table)
    without, whole = by_subsets(columns, offsets, weights, table, 2)
    np.testing.assert_allclose(sums.without(0, 40), without, rtol=1e-12)
    np.testing.assert_allclose(sums.whole(), whole, rtol=1e-12)


def test_bits_do_not_depend_on_the_number_of_threads():
    columns, offsets, weights, generator = random_rows(1, 10, 3000)
    table, new = generator.random((2, offsets[-1], 6))
    results = []
    for count in (1, 2, 5):
        with threads.limited_to(count):
            sums = SymmetricSums(columns, offsets, weights, 6, 3, chunk_work=1000)
            sums.load(table)
            sums.exchange(3, 7, new)
            results.append(sums.without(2, 9))
    assert all(np.array_equal(results[0], result) for result in results[1:])


def random_patterns(seed, n_variables, count, missing=0.3):
    columns, _, weights, generator = random_rows(seed, n_variables, count, missing)
    patterns = np.where(columns >= 0, 0, -1)
    return Patterns(patterns == 0, weights), (patterns, np.arange(n_variables + 1)), generator


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_variables=st.integers(2, 6),
    count=st.integers(1, 30),
    order=st.integers(2, 5),
)
def test_sums_over_patterns_equal_those_over_all_subsets(seed, n_variables, count, order):
    patterns, cells, generator = random_patterns(seed, n_variables, count)
    sums = PatternSums(patterns, 3, order)
    table, new = generator.random((2, n_variables, 3))
    sums.load(table)
    without, whole = by_subsets(*cells, patterns.weights, table, order)
    np.testing.assert_allclose(sums.without(0, n_variables), without, atol=1e-10)
    np.testing.assert_allclose(sums.whole(), whole, atol=1e-10)

    sums.exchange(1, n_variables, new)
    table[1:] = new[1:]
    without, whole = by_subsets(*cells, patterns.weights, table, order)
    np.testing.assert_allclose(sums.whole(), whole, atol=1e-10)
    np.testing.assert_allclose(sums.without(0, 1), without[:1], atol=1e-10)
    np.testing.assert_allclose(sums.without(1, n_variables), without[1:], atol=1e-10)


def test_bits_of_many_patterns_do_not_depend_on_the_number_of_threads():
    patterns, cells, generator = random_patterns(1, 8, 3000)
    table, new = generator.random((2, 8, 6))
    results = []
    for count in (1, 2, 5):
        with threads.limited_to(count):
            sums = PatternSums(patterns, 6, 3)
            sums.load(table)
            sums.exchange(3, 7, new)
            results.append(np.concatenate([sums.without(2, 8), sums.whole()[None]]))
    assert all(np.array_equal(results[0], result) for result in results[1:])
    table[3:7] = new[3:7]
    without, whole = by_subsets(*cells, patterns.weights, table, 3)
    np.testing.assert_allclose(results[0], [*without[2:], whole], rtol=1e-11)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_derivatives_are_those_of_the_sums(order):
    patterns, _, generator = random_patterns(2, 6, 5, missing=0.2)
    grams, changes = generator.random((2, 6, 2, 2))
    step = 1e-5

    def at(matrices):
        sums = PatternSums(patterns, 4, order)
        sums.load(matrices.reshape(6, 4))
        return sums.without(0, 6).reshape(6, 2, 2), sums.whole().reshape(2, 2)

    here = PatternCurvature(patterns, grams, order)
    for found, expected in zip((here.others, here.whole), at(grams), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    ahead, behind = at(grams + step * changes), at(grams - step * changes)
    for one, other, derivative in zip(ahead, behind, here.moved(changes), strict=True):
        np.testing.assert_allclose(derivative, (one - other) / (2 * step), atol=1e-7)
