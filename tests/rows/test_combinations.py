"""Variables looked up together, against one cell after the other."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf import threads
from jointpmf.compiled.posteriors import stack_of
from jointpmf.point import Point
from jointpmf.rows.combinations import Combinations
from jointpmf.rows.table import ColumnRows, Rows
from support import oracle

KINDS = {
    "listed": lambda codes, weights: Rows.of_columns(codes.domain, codes.columns, weights),
    "columns": lambda codes, weights: ColumnRows(codes.domain, codes.columns, weights),
}


def problem(seed, sizes, n_rows, rank=3, holes=0.3):
    generator = np.random.default_rng(seed)
    domain = jp.Domain.of_sizes(sizes)
    codes = jp.Codes(domain, oracle.random_table(generator, domain, n_rows, holes))
    point = Point.of_pmf(jp.random_pmf(domain, rank, generator))
    return codes, generator.random(n_rows) + 0.5, point


def counts_of(rows, point, is_combined):
    vars(rows)["combinations"] = Combinations(rows.domain) if is_combined else None
    expectation = rows.expectation(len(point.weights))
    return expectation.counts(expectation.stack(point))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 30), min_size=1, max_size=9))
def test_a_stack_has_the_product_of_each_combination(seed, sizes):
    domain = jp.Domain.of_sizes(sizes)
    generator = np.random.default_rng(seed)
    factors = generator.random((sum(sizes), 3))
    stack = stack_of(generator.random(3), factors)
    combinations = Combinations(domain)
    found = combinations.stack(stack)
    np.testing.assert_array_equal(found[-1], stack[-1])
    expected = []
    for begin, end in zip(combinations.bounds[:-1], combinations.bounds[1:], strict=True):
        levels = [range(-1, sizes[n]) for n in range(begin, end)]
        for codes in product(*levels):
            row = np.ones(stack.shape[1])
            for n, code in zip(range(begin, end), codes, strict=True):
                row = row * (stack[domain.offsets[n] + code] if code >= 0 else 1.0)
            expected.append(row)
    np.testing.assert_allclose(found[:-1], expected, rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [[5] * 10, [2] * 17, [3, 20, 2, 9, 1, 4], [20] * 4])
def test_the_same_is_expected_of_all_levels(kind, sizes):
    codes, weights, point = problem(0, sizes, 3000)
    rows = KINDS[kind](codes, weights)
    plain, total = counts_of(rows, point, is_combined=False)
    combined, same = counts_of(rows, point, is_combined=True)
    np.testing.assert_allclose(combined, plain, rtol=1e-11)
    assert same == pytest.approx(total, rel=1e-12)


def test_listed_rows_and_columns_give_the_same_bits_for_any_number_of_threads():
    codes, weights, point = problem(1, [4] * 8, 30_000)
    found = []
    for make in KINDS.values():
        for n_threads in (1, 3):
            with threads.limited_to(n_threads):
                found.append(counts_of(make(codes, weights), point, is_combined=True))
    for counts, total in found[1:]:
        np.testing.assert_array_equal(counts, found[0][0])
        assert total == found[0][1]


def test_products_that_would_underflow_are_not_made():
    codes, weights, point = problem(2, [2] * 6, 200)
    point.factors[::2] *= 1e-200
    rows = KINDS["columns"](codes, weights)
    plain, total = counts_of(rows, point, is_combined=False)
    combined, same = counts_of(rows, point, is_combined=True)
    np.testing.assert_array_equal(combined, plain)
    assert same == total
    assert np.isfinite(total)


def test_they_are_used_where_rows_are_many_and_cells_do_not_repeat():
    few, many = (problem(3, [3] * 6, n)[0] for n in (300, 30_000))
    assert ColumnRows.as_they_are(few).combinations is None
    assert ColumnRows.as_they_are(many).combinations is not None
    listed = Rows.of_columns(many.domain, many.columns, np.ones(many.n_rows))
    assert listed.combinations is not None
    assert listed.emphasised(0, 3).combinations is None
    assert listed.emphasised(0, 3).taken(np.arange(20_000)).combinations is None
    wide = problem(4, [60] * 4, 10**5)[0]  # of two such variables there are too many
    assert ColumnRows.as_they_are(wide).combinations is None
