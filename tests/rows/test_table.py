"""Distinct rows against a Counter, and the compiled E-step against one row after the other."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf import threads
from jointpmf.data.codes import Codes
from jointpmf.point import Point
from jointpmf.rows import distinct as distinct_module
from jointpmf.rows.expectation import Expectation
from jointpmf.rows.table import (
    ColumnRows,
    Rows,
    log_likelihoods,
    mean_log_likelihood,
    rows_of_codes,
)
from support import oracle


def rows_of(table, domain, sample_weight=None):
    return Rows.of_codes(Codes(domain, np.asarray(table)), sample_weight)


def decoded(rows):
    """Return the distinct rows as tuples of codes, −1 where nothing was observed."""
    offsets = rows.domain.offsets
    found = []
    for begin, end in pairwise(rows.ptr):
        row = [-1] * len(rows.domain)
        for cell in rows.cells[begin:end].astype(int):
            n = int(np.searchsorted(offsets, cell, side="right")) - 1
            row[n] = int(cell - offsets[n])
        found.append(tuple(row))
    return found


def counted(table, weights=None):
    """Return how often each row with an observed cell occurs."""
    counter = Counter()
    for m, row in enumerate(np.asarray(table).tolist()):
        if max(row) >= 0:
            counter[tuple(row)] += 1 if weights is None else weights[m]
    return counter


def assert_counted(rows, table, weights=None):
    """Compare with a Counter: every distinct row once, with its weight."""
    found, expected = decoded(rows), counted(table, weights)
    assert len(found) == len(set(found)) == len(rows)
    assert dict(zip(found, rows.weights, strict=True)) == pytest.approx(dict(expected))


def assert_same(first, second):
    """Compare two sets of rows bit by bit."""
    for name in ("cells", "ptr", "weights"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def repeated_table(generator, domain, n_distinct, n_rows, holes=0.3):
    """Return a table in which rows occur several times."""
    table = oracle.random_table(generator, domain, n_distinct, holes)
    return table[generator.integers(0, n_distinct, n_rows)]


class TestDistinctRows:
    @settings(max_examples=80, deadline=None)
    @given(
        st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 40), st.sampled_from([0, 0.4, 0.9])
    )
    @example(seed=0, n_variables=2, n_rows=3, holes=1.0)
    def test_they_and_their_weights_are_those_of_a_counter(self, seed, n_variables, n_rows, holes):
        generator = np.random.default_rng(seed)
        domain = oracle.random_domain(generator, n_variables)
        table = oracle.random_table(generator, domain, n_rows, holes)
        rows = rows_of(table, domain)
        assert_counted(rows, table)
        assert rows.n_empty == sum(max(row) < 0 for row in table.tolist())
        assert rows.total == n_rows - rows.n_empty

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10**6), st.integers(1, 40))
    def test_sample_weights_are_added(self, seed, n_rows):
        generator = np.random.default_rng(seed)
        domain = oracle.random_domain(generator, 3)
        table = oracle.random_table(generator, domain, n_rows, 0.3)
        weights = generator.random(n_rows) + 0.1
        assert_counted(rows_of(table, domain, weights), table, weights)

    def test_rows_of_no_or_negligible_weight_are_left_out(self):
        table = [[0, 0], [0, 1], [1, 0], [1, 1]]
        weights = np.array([1.0, 0.0, 1e-21, 1e-19])
        rows = rows_of(table, jp.Domain.of_sizes([2, 2]), weights)
        assert decoded(rows) == [(0, 0), (1, 1)]
        assert rows.n_empty == 0

    def test_empty_rows_are_counted_whatever_they_weigh(self):
        table = [[-1, -1], [0, 1], [-1, -1], [-1, -1], [-1, 0]]
        rows = rows_of(table, jp.Domain.of_sizes([2, 2]), np.array([1.0, 1.0, 0.0, 2.0, 1.0]))
        assert rows.n_empty == 3
        assert rows.total == 2

    def test_cells_of_a_row_are_in_the_order_of_the_variables(self):
        domain = jp.Domain.of_sizes([3, 2, 4])
        rows = rows_of([[2, -1, 3], [0, 1, -1]], domain)
        listed = [rows.cells[a:b].tolist() for a, b in pairwise(rows.ptr)]
        assert sorted(listed) == [[0, 4], [2, 8]]

    @pytest.mark.parametrize("n_variables", [4, 70])
    def test_the_order_of_the_table_does_not_matter(self, n_variables):
        generator = np.random.default_rng(0)
        domain = jp.Domain.of_sizes([2] * n_variables)
        table = repeated_table(generator, domain, 50, 200)
        shuffled = generator.permutation(len(table))
        assert_same(rows_of(table, domain), rows_of(table[shuffled], domain))

    @pytest.mark.parametrize(
        "sizes", [[3] * 31, [3] * 32, [3] * 31 + [2], [2] * 70, [100] * 300, [30000] * 5]
    )
    def test_of_as_many_variables_as_one_number_holds_and_more(self, sizes):
        generator = np.random.default_rng(1)
        domain = jp.Domain.of_sizes(sizes)
        table = repeated_table(generator, domain, 30, 90)
        table[0] = -1
        table[1] = np.array(sizes) - 1
        rows = rows_of(table, domain)
        assert_counted(rows, table)
        assert rows.n_empty >= 1

    @pytest.mark.parametrize("remaining", [0, 1, 7])
    def test_colliding_hashes_are_noticed(self, monkeypatch, remaining):
        row_keys = distinct_module.row_keys
        monkeypatch.setattr(
            distinct_module,
            "row_keys",
            lambda columns, radix: row_keys(columns, radix) & np.uint64(remaining),
        )
        generator = np.random.default_rng(2)
        domain = jp.Domain.of_sizes([2] * 70)
        table = repeated_table(generator, domain, 40, 120)
        rows = rows_of(table, domain)
        assert_counted(rows, table)
        assert_same(rows, rows_of(table[::-1], domain))

    @pytest.mark.parametrize(
        ("sizes", "dtype"),
        [
            ([40000, 25535], np.uint16),
            ([40000, 25536], np.uint32),
            ([40000, 3, 40000], np.uint32),
        ],
    )
    def test_cells_have_room_for_every_level(self, sizes, dtype):
        generator = np.random.default_rng(3)
        domain = jp.Domain.of_sizes(sizes)
        table = repeated_table(generator, domain, 20, 50)
        table[0] = np.array(sizes) - 1
        rows = rows_of(table, domain)
        assert rows.cells.dtype == dtype
        assert rows.cells.max() == sum(sizes) - 1
        assert_counted(rows, table)


class TestParts:
    @pytest.fixture
    def table(self):
        return repeated_table(np.random.default_rng(0), jp.Domain.of_sizes([3, 2, 4]), 15, 60)

    @pytest.fixture
    def rows(self, table):
        return rows_of(table, jp.Domain.of_sizes([3, 2, 4]), np.arange(1.0, len(table) + 1))

    def test_counts_are_those_of_single_variables(self, rows, table):
        weights = np.arange(1.0, len(table) + 1)
        expected = [oracle.count_table(table, [n], (3, 2, 4), weights) for n in range(3)]
        np.testing.assert_allclose(rows.counts, np.concatenate(expected))

    def test_the_marginal_is_over_the_rows_that_observe_a_variable(self, rows, table):
        weights = np.arange(1.0, len(table) + 1)
        expected = [oracle.count_table(table, [n], (3, 2, 4), weights) for n in range(3)]
        np.testing.assert_allclose(rows.marginal, np.concatenate([c / c.sum() for c in expected]))

    def test_levels_that_were_never_seen_have_counts_too(self):
        rows = rows_of([[0, 1], [0, -1]], jp.Domain.of_sizes([3, 4]))
        assert rows.counts.tolist() == [2, 0, 0, 0, 1, 0, 0]

    def test_the_marginal_of_a_variable_that_no_row_observes_is_uniform(self):
        rows = rows_of([[0, -1], [2, -1]], jp.Domain.of_sizes([3, 4]))
        assert rows.marginal.tolist() == [0.5, 0, 0.5, 0.25, 0.25, 0.25, 0.25]

    @pytest.mark.parametrize("which", [[0], [3, 1, 4], [2, 2, 5], []])
    def test_cells_of_some_rows(self, rows, which):
        owner, cells = rows.cells_of(np.array(which, int))
        expected = [
            (k, cell)
            for k, m in enumerate(which)
            for cell in rows.cells[rows.ptr[m] : rows.ptr[m + 1]]
        ]
        assert list(zip(owner, cells, strict=True)) == expected

    @pytest.mark.parametrize("which", [[0], [3, 1, 4], [5, 2], []])
    def test_some_rows_are_rows(self, rows, which):
        taken = rows.taken(np.array(which, int))
        assert decoded(taken) == [decoded(rows)[m] for m in which]
        assert taken.weights.tolist() == [rows.weights[m] for m in which]
        assert taken.total == sum(rows.weights[m] for m in which)
        assert len(taken) == len(which)


def random_model(generator, domain, rank, concentration=1.0):
    """Return weights and factors that are no model of special structure."""
    weights = generator.dirichlet(np.ones(rank))
    columns = [generator.dirichlet(np.full(s, concentration), rank).T for s in domain.sizes]
    return weights, columns


def point_of(weights, factors):
    return Point(np.asarray(weights, float), np.concatenate(factors))


def assert_expected(rows, weights, factors, rtol=1e-11):
    """Compare counts and log-likelihoods with the oracle; return the log-likelihoods."""
    table = decoded(rows)
    expectation = Expectation(rows, len(weights))
    stack = expectation.stack(point_of(weights, factors))
    counts, total = expectation.counts(stack)
    logs = expectation.log_likelihoods(stack)
    expected_logs = np.array([oracle.log_probability(weights, factors, row) for row in table])
    levels, components = oracle.expected_counts(weights, factors, table, rows.weights)
    np.testing.assert_allclose(logs, expected_logs, rtol=rtol, atol=1e-13)
    np.testing.assert_allclose(
        counts[:, : len(weights)], np.vstack([*levels, components]), rtol=rtol, atol=1e-290
    )
    assert not counts[:, len(weights) :].any()
    assert total == pytest.approx((rows.weights * expected_logs).sum(), rel=1e-12)
    return logs


class TestExpectation:
    @pytest.mark.parametrize("rank", range(1, 71))
    def test_of_every_rank(self, rank):
        generator = np.random.default_rng(rank)
        domain = jp.Domain.of_sizes([3, 2, 5, 4])
        table = oracle.random_table(generator, domain, 15, 0.3)
        rows = rows_of(table, domain, generator.random(len(table)) + 0.1)
        assert_expected(rows, *random_model(generator, domain, rank))

    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(0, 10**6),
        st.integers(1, 6),
        st.integers(1, 9),
        st.sampled_from([0, 0.3, 0.8]),
        st.sampled_from([0.01, 0.3, 1.0]),
    )
    def test_of_any_table_and_model(self, seed, n_variables, rank, holes, concentration):
        generator = np.random.default_rng(seed)
        domain = oracle.random_domain(generator, n_variables)
        table = oracle.random_table(generator, domain, 20, holes)
        table[0] = 0
        weights, factors = random_model(generator, domain, rank, concentration)
        factors = [np.where(f < 1e-100, 0.0, f) for f in factors]
        assert_expected(rows_of(table, domain), weights, factors)

    def test_a_row_without_cells_has_the_weights_as_posterior(self):
        domain = jp.Domain.of_sizes([2, 3])
        cells = np.array([0, 3], np.uint16)
        rows = Rows(domain, cells, np.array([0, 0, 2, 2]), np.array([2.0, 1.0, 0.5]))
        weights, factors = random_model(np.random.default_rng(0), domain, 3)
        logs = assert_expected(rows, weights, factors)
        np.testing.assert_allclose(logs[[0, 2]], 0, atol=1e-15)

    def test_no_rows_expect_nothing(self):
        rows = rows_of([[-1, -1]], jp.Domain.of_sizes([2, 3]))
        model = random_model(np.random.default_rng(0), rows.domain, 3)
        assert assert_expected(rows, *model).shape == (0,)

    def test_cells_of_four_bytes(self):
        generator = np.random.default_rng(0)
        domain = jp.Domain.of_sizes([40000, 3, 40000])
        table = oracle.random_table(generator, domain, 20, 0.2)
        weights, factors = random_model(generator, domain, 2)
        assert_expected(rows_of(table, domain), weights, factors)

    def test_a_stack_is_the_point(self):
        rows = rows_of([[0, 1]], jp.Domain.of_sizes([2, 3]))
        point = point_of(*random_model(np.random.default_rng(0), rows.domain, 5))
        expectation = Expectation(rows, 5)
        stack = expectation.stack(point)
        assert stack.shape == (6, 8)
        assert not stack[:, 5:].any()
        np.testing.assert_array_equal(expectation.point(stack).weights, point.weights)
        np.testing.assert_array_equal(expectation.point(stack).factors, point.factors)

    def test_what_is_returned_is_not_overwritten(self):
        generator = np.random.default_rng(0)
        domain = jp.Domain.of_sizes([2, 3])
        expectation = Expectation(rows_of(oracle.all_cells(domain), domain), 2)
        first, second = (
            expectation.stack(point_of(*random_model(generator, domain, 2))) for _ in range(2)
        )
        counts, logs = expectation.counts(first)[0], expectation.log_likelihoods(first)
        before = counts.copy(), logs.copy()
        expectation.counts(second)
        expectation.log_likelihoods(second)
        np.testing.assert_array_equal(counts, before[0])
        np.testing.assert_array_equal(logs, before[1])

    def test_the_model_agrees(self):
        domain = jp.Domain.of_sizes([3, 2, 5, 4])
        pmf = jp.random_pmf(domain, 6, 0)
        table = oracle.random_table(np.random.default_rng(0), domain, 40, 0.3)
        rows = rows_of(table, domain)
        expected = pmf.log_probability(np.array(decoded(rows)))
        np.testing.assert_allclose(log_likelihoods(rows, Point.of_pmf(pmf)), expected, rtol=1e-12)

    def test_the_mean_is_by_weight_and_over_rows_that_say_something(self):
        domain = jp.Domain.of_sizes([3, 2, 5])
        pmf = jp.random_pmf(domain, 4, 0)
        generator = np.random.default_rng(0)
        table, weights = oracle.random_table(generator, domain, 40, 0.6), generator.random(40)
        seen = (table >= 0).any(axis=1)
        assert not seen.all()
        logs = [np.log(oracle.row_probability(pmf, row)) for row in table[seen]]
        found = mean_log_likelihood(rows_of(table, domain, weights), Point.of_pmf(pmf))
        assert found == pytest.approx(np.average(logs, weights=weights[seen]), rel=1e-12)


class TestZeros:
    def test_an_impossible_row_is_minus_infinity_and_adds_nothing(self):
        domain = jp.Domain.of_sizes([2, 2])
        factors = [np.eye(2), np.eye(2)]
        rows = rows_of([[0, 0], [0, 1], [1, -1]], domain)
        logs = assert_expected(rows, [0.25, 0.75], factors)
        by_row = dict(zip(decoded(rows), logs, strict=True))
        assert by_row[0, 1] == -np.inf
        assert by_row[0, 0] == pytest.approx(np.log(0.25))
        expectation = Expectation(rows, 2)
        counts, total = expectation.counts(expectation.stack(point_of([0.25, 0.75], factors)))
        assert total == -np.inf
        np.testing.assert_allclose(counts[:, :2], [[1, 0], [0, 1], [1, 0], [0, 0], [1, 1]])

    def test_a_component_of_no_weight_explains_nothing(self):
        domain = jp.Domain.of_sizes([2, 2])
        rows = rows_of([[0, 0], [1, 1]], domain)
        logs = assert_expected(rows, [1.0, 0.0], [np.eye(2), np.full((2, 2), 0.5)])
        assert sorted(np.isneginf(logs)) == [False, True]

    @pytest.mark.parametrize("rank", [3, 40])
    def test_zeros_in_long_rows(self, rank):
        generator = np.random.default_rng(0)
        domain = jp.Domain.of_sizes([10] * 700)
        weights, factors = random_model(generator, domain, rank)
        for f in range(1, rank):
            factors[generator.integers(700)][:, f] = np.eye(10)[f % 10]
        rows = rows_of(oracle.random_table(generator, domain, 6, 0.1), domain)
        assert_expected(rows, weights, factors, rtol=1e-9)

    def test_a_long_row_can_be_impossible(self):
        domain = jp.Domain.of_sizes([2] * 1500)
        factors = [np.full((2, 2), 0.5) for _ in range(1500)]
        factors[3], factors[1400] = np.array([[0, 0.5], [1, 0.5]]), np.array([[0.5, 0], [0.5, 1]])
        rows = rows_of([[0] * 1500, [1] * 1500], domain)
        logs = assert_expected(rows, [0.5, 0.5], factors, rtol=1e-9)
        assert np.isneginf(logs).tolist() == [code[0] == 0 for code in decoded(rows)]

    def test_a_component_can_lead_by_far_until_it_is_impossible(self):
        """Component 0 leads by 1e800, and its last level cannot happen."""
        domain = jp.Domain.of_sizes([2] * 401)
        factors = [np.array([[0.9, 0.009], [0.1, 0.991]])] * 400
        factors.append(np.array([[0.0, 0.5], [1.0, 0.5]]))
        rows = rows_of([[0] * 401], domain)
        logs = assert_expected(rows, [0.5, 0.5], factors, rtol=1e-9)
        assert logs[0] == pytest.approx(2 * np.log(0.5) + 400 * np.log(0.009))


class TestLongRows:
    def test_of_a_thousand_variables(self):
        generator = np.random.default_rng(0)
        domain = jp.Domain.of_sizes(generator.integers(2, 12, 1000).tolist())
        table = oracle.random_table(generator, domain, 20, 0.2)
        table[:5] = oracle.random_table(generator, domain, 5, 0.99)
        weights, factors = random_model(generator, domain, 7)
        rows = rows_of(table, domain)
        logs = assert_expected(rows, weights, factors, rtol=1e-9)
        assert logs.min() < -1000
        pmf = jp.JointPMF(domain, weights, factors)
        np.testing.assert_allclose(logs, pmf.log_probability(np.array(decoded(rows))), rtol=1e-12)

    @pytest.mark.parametrize("rank", [2, 5, 65])
    @pytest.mark.parametrize("base", [0.1, 1e-3, 1e-30])
    def test_of_as_many_cells_as_are_safe_and_one_more(self, rank, base):
        """Uniform columns: a row of k cells has probability base ** k, if nothing underflows."""
        domain = jp.Domain.of_sizes([2] * 900)
        factor = np.tile([[base], [1 - base]], (1, rank))
        n_safe = int(290 / -np.log10(base)) - 1
        lengths = sorted({1, n_safe - 1, n_safe, n_safe + 1, 2 * n_safe, 2 * n_safe + 1, 900})
        rows = rows_of([[0] * k + [-1] * (900 - k) for k in lengths], domain)
        expectation = Expectation(rows, rank)
        stack = expectation.stack(point_of(np.full(rank, 1 / rank), [factor] * 900))
        expected = np.diff(rows.ptr) * np.log(base)
        np.testing.assert_allclose(expectation.log_likelihoods(stack), expected, rtol=1e-12)
        counts = expectation.counts(stack)[0]
        np.testing.assert_allclose(counts[-1, :rank], len(rows) / rank)
        np.testing.assert_allclose(counts[0, :rank], len(rows) / rank)

    @pytest.mark.parametrize("rank", [2, 6, 34])
    def test_a_component_far_behind_comes_back(self, rank):
        """For half of the row component 0 leads by 1e400; in the end another one wins."""
        half = 250
        domain = jp.Domain.of_sizes([2] * (2 * half))
        first = np.tile([[1e-2], [0.99]], (1, rank))
        first[:, 0] = [0.9, 0.1]
        second = first.copy()
        second[:, 0], second[:, -1] = [1e-3, 0.999], [0.9, 0.1]
        factors = [first] * half + [second] * half
        rows = rows_of([[0] * (2 * half), [0] * half + [-1] * half], domain)
        weights = np.full(rank, 1 / rank)
        logs = assert_expected(rows, weights, factors, rtol=1e-9)
        lead = half * np.log10(first[0, 0] / first[0, -1])
        assert lead > 400
        expectation = Expectation(rows, rank)
        counts = expectation.counts(expectation.stack(point_of(weights, factors)))[0]
        np.testing.assert_allclose(counts[-1, [0, rank - 1]], 1, rtol=1e-9)
        assert logs.min() == pytest.approx(half * np.log(0.9 * 1e-2) - np.log(rank))

    def test_components_that_are_level_after_being_far_apart(self):
        """Component 0 leads by 1e400 in the first half, component 1 in the second."""
        domain = jp.Domain.of_sizes([2] * 400)
        ahead, behind = np.array([0.9, 0.1]), np.array([0.009, 0.991])
        factors = [np.column_stack([ahead, behind])] * 200
        factors += [np.column_stack([behind, ahead])] * 200
        rows = rows_of([[0] * 400], domain)
        expectation = Expectation(rows, 2)
        stack = expectation.stack(point_of([0.3, 0.7], factors))
        counts, total = expectation.counts(stack)
        np.testing.assert_allclose(counts[-1, :2], [0.3, 0.7], rtol=1e-9)
        assert total == pytest.approx(200 * np.log(0.9 * 0.009))

    def test_a_rare_component_that_explains_all(self):
        domain = jp.Domain.of_sizes([2] * 300)
        factors = [np.array([[1e-25, 0.5], [1.0, 0.5]])] * 300
        rows = rows_of([[0] * 300, [1] * 300], domain)
        logs = assert_expected(rows, [1 - 1e-28, 1e-28], factors, rtol=1e-9)
        assert logs.min() == pytest.approx(np.log(1e-28) + 300 * np.log(0.5))


class TestBits:
    """Sums are the same whoever makes them."""

    @pytest.fixture
    def problem(self):
        generator = np.random.default_rng(0)
        domain = jp.Domain.of_sizes([5, 4, 6, 3, 2, 7, 5, 4])
        table = oracle.random_table(generator, domain, 40_000, 0.2)
        table[::4, 4:] = -1
        rows = rows_of(table, domain, generator.random(len(table)))
        # rows that have both of these levels are multiplied exactly, others as they are
        weights, factors = random_model(generator, domain, 13)
        factors[0][0, 1:] *= 1e-190
        factors[1][0, :1] *= 1e-190
        return rows, point_of(weights, factors)

    def results(self, problem, **settings):
        rows, point = problem
        expectation = Expectation(rows, 13, **settings)
        stack = expectation.stack(point)
        return *expectation.counts(stack), expectation.log_likelihoods(stack)

    def assert_equal(self, first, second):
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_there_are_several_chunks_and_both_kinds_of_rows(self, problem):
        rows, point = problem
        expectation = Expectation(rows, 13)
        logs = expectation.log_likelihoods(expectation.stack(point))
        assert len(expectation._sums) >= 3
        assert 0 < (logs < -400).sum() < len(rows)

    @pytest.mark.parametrize("n_threads", [2, 5])
    def test_for_any_number_of_threads(self, problem, n_threads):
        with threads.limited_to(1):
            alone = self.results(problem)
        with threads.limited_to(n_threads):
            together = self.results(problem)
        self.assert_equal(alone, together)

    def test_they_are_right(self, problem):
        rows, point = problem
        factors = np.split(point.factors, rows.domain.offsets[1:-1])
        table = decoded(rows)
        counts, _, logs = self.results(problem)
        levels, components = oracle.expected_counts(point.weights, factors, table, rows.weights)
        np.testing.assert_allclose(counts[:, :13], np.vstack([*levels, components]), rtol=1e-10)
        expected = [oracle.log_probability(point.weights, factors, row) for row in table]
        np.testing.assert_allclose(logs, expected, rtol=1e-12)

    def test_chunks_without_memory_for_their_sums_become_one(self, problem):
        several = self.results(problem)
        one = self.results(problem, chunk_bytes=0)
        for a, b in zip(several, one, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_array_equal(several[2], one[2])


class TestManyDistinctRows:
    """Above 65,536 rows that do not repeat, a table keeps its columns."""

    @pytest.fixture
    def codes(self):
        return jp.encode(np.random.default_rng(0).integers(2, size=(70_000, 24)))

    def test_a_row_that_counts_for_nothing_may_be_impossible(self, codes):
        weights = np.ones(codes.n_rows)
        weights[0] = 0
        rows = rows_of_codes(codes, weights)
        assert isinstance(rows, ColumnRows)
        factors = np.full((48, 1), 0.5)
        factors[:2, 0] = np.eye(2)[1 - codes.array[0, 0]]
        point = Point(np.ones(1), factors)
        same = codes.array[:, 0] != codes.array[0, 0]
        weights[~same] = 0
        rows = rows_of_codes(codes, weights)
        assert mean_log_likelihood(rows, point) == pytest.approx(-23 * np.log(2))

    def test_they_can_be_emphasised(self, codes):
        rows = rows_of_codes(codes)
        found = rows.emphasised(3, 5)
        assert isinstance(found, Rows)
        assert len(found.cells) == (23 + 5) * codes.n_rows

    def test_sums_of_chunks_stay_within_their_memory(self, codes):
        rows = rows_of_codes(codes)
        assert rows.combinations is not None
        found = Expectation(rows, 8, chunk_bytes=2**20)
        found.counts(found.stack(Point(np.full(8, 1 / 8), np.full((48, 8), 0.5))))
        assert (
            sum(chunk.nbytes for chunk in found._counts[rows.combinations.n_combinations + 1])
            <= 2**20
        )
