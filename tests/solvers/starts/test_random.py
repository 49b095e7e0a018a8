"""Where EM begins: every start is feasible, and mergers lose what brute force says they lose."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.data.codes import Codes
from jointpmf.point import Point
from jointpmf.rows.table import Rows
from jointpmf.solvers.em import EM
from jointpmf.solvers.loop import Loop, iterate
from jointpmf.solvers.starts.random import (
    enlarged_point,
    merged,
    mixed,
    point_at_rows,
    point_of_merged_rows,
    random_point,
)
from support import oracle
from support.feasibility import is_feasible
from support.planted import planted

distinct = partial(planted, concentration=0.4, evenness=9.0)


def random_rows(seed, n_variables=4, n_rows=40, holes=0.3):
    generator = np.random.default_rng(seed)
    domain = oracle.random_domain(generator, n_variables)
    table = oracle.random_table(generator, domain, n_rows, holes)
    table[0] = 0  # every variable is observed somewhere
    return Rows.of_codes(Codes(domain, table), generator.random(n_rows) + 0.1)


def from_a_model(rows, rank, generator):
    model = jp.random_pmf(rows.domain, 2, random_state=0)
    return enlarged_point(Point.of_pmf(model), rows, rank, generator)


STARTS = {
    "random": lambda rows, rank, generator: random_point(rows.domain, rank, generator),
    "rows": point_at_rows,
    "merged rows": point_of_merged_rows,
    "enlarged": from_a_model,
}


def assert_feasible(domain, point, rank):
    assert point.weights.shape == (rank,)
    assert point.factors.shape == (sum(domain.sizes), rank)
    assert is_feasible(domain, point.weights, point.factors)


@pytest.mark.parametrize("kind", STARTS)
class TestEveryStart:
    @settings(max_examples=25, deadline=None)
    @given(seed=st.integers(0, 10**6), rank=st.integers(1, 6), n_rows=st.integers(1, 30))
    def test_is_feasible(self, kind, seed, rank, n_rows):
        rows = random_rows(seed, n_rows=n_rows)
        point = STARTS[kind](rows, rank, np.random.default_rng(seed))
        assert_feasible(rows.domain, point, rank)

    def test_depends_on_the_generator_and_on_nothing_else(self, kind):
        rows = random_rows(0, n_variables=5, n_rows=200)
        first, second, other = (
            STARTS[kind](rows, 3, np.random.default_rng(seed)) for seed in (7, 7, 8)
        )
        np.testing.assert_array_equal(first.weights, second.weights)
        np.testing.assert_array_equal(first.factors, second.factors)
        assert np.abs(first.factors - other.factors).max() > 1e-3

    def test_its_components_differ(self, kind):
        rows = random_rows(1, n_variables=5, n_rows=200)
        point = STARTS[kind](rows, 3, np.random.default_rng(0))
        for f, g in combinations(range(3), 2):
            assert np.abs(point.factors[:, f] - point.factors[:, g]).max() > 1e-3

    def test_is_a_model_of_the_domain(self, kind):
        rows = random_rows(2)
        pmf = jp.JointPMF.at(STARTS[kind](rows, 3, np.random.default_rng(0)), rows.domain)
        assert oracle.joint(pmf).sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["rows", "merged rows", "enlarged"])
@pytest.mark.parametrize("seed", range(5))
def test_every_row_is_possible_where_a_start_knows_the_rows(kind, seed):
    rows = random_rows(seed)
    point = STARTS[kind](rows, 2, np.random.default_rng(seed))
    assert np.isfinite(EM(rows, 2).start(point).objective)
    assert point.factors[rows.counts > 0].min() > 0


class TestPointAtRows:
    def expected(self, rows, row):
        """Return the column of a component at one row: half of each observed level, and the rest
        as the variable is distributed."""
        column = rows.marginal.copy()
        for n, code in enumerate(row):
            part = slice(*rows.domain.offsets[n : n + 2])
            if code >= 0:
                column[part] = rows.marginal[part] / 2
                column[rows.domain.offsets[n] + code] += 1 / 2
        return column

    def test_each_component_leans_towards_a_row(self):
        domain = jp.Domain.of_sizes([3, 2, 4])
        table = oracle.random_table(np.random.default_rng(0), domain, 30, 0.3)
        rows = Rows.of_codes(Codes(domain, table))
        columns = [self.expected(rows, row) for row in table.tolist() if max(row) >= 0]
        point = point_at_rows(rows, 8, np.random.default_rng(0))
        for column in point.factors.T:
            assert min(np.abs(column - expected).max() for expected in columns) < 1e-15
        np.testing.assert_allclose(point.weights, 1 / 8)

    def test_no_row_is_taken_twice_as_long_as_there_are_others(self):
        domain = jp.Domain.of_sizes([2, 3])
        rows = Rows.of_codes(Codes(domain, oracle.all_cells(domain)))
        point = point_at_rows(rows, 6, np.random.default_rng(0))
        assert len(np.unique(point.factors, axis=1).T) == 6

    def test_heavy_rows_are_taken_first(self):
        domain = jp.Domain.of_sizes([2, 3])
        weights = np.array([1.0, 1e-9, 1e-9, 1e-9, 1e-9, 1.0])
        rows = Rows.of_codes(Codes(domain, oracle.all_cells(domain)), weights)
        found = {
            tuple(column.round(6))
            for seed in range(10)
            for column in point_at_rows(rows, 2, np.random.default_rng(seed)).factors.T
        }
        heavy = {tuple(self.expected(rows, row).round(6)) for row in ([0, 0], [1, 2])}
        assert found == heavy

    def test_more_components_than_rows(self):
        rows = random_rows(0, n_rows=2)
        assert_feasible(rows.domain, point_at_rows(rows, 9, np.random.default_rng(0)), 9)


class TestRandomPoint:
    def test_weights_are_equal_and_columns_uniform_on_the_simplex(self):
        domain = jp.Domain.of_sizes([2, 4])
        point = random_point(domain, 20_000, np.random.default_rng(0))
        np.testing.assert_allclose(point.weights, 1 / 20_000)
        means = point.factors.mean(axis=1)
        np.testing.assert_allclose(means, [1 / 2] * 2 + [1 / 4] * 4, atol=0.01)
        # of a uniform point of the simplex of I levels, the square of an entry is 2 / I (I + 1)
        squares = (point.factors**2).mean(axis=1)
        np.testing.assert_allclose(squares, [1 / 3] * 2 + [1 / 10] * 4, atol=0.01)


def test_a_mix_has_a_part_of_the_marginals_in_every_column():
    rows = random_rows(0)
    point = random_point(rows.domain, 3, np.random.default_rng(0))
    blend = mixed(point, rows.marginal, 0.25)
    np.testing.assert_allclose(blend.factors, 0.75 * point.factors + 0.25 * rows.marginal[:, None])
    np.testing.assert_array_equal(blend.weights, point.weights)
    assert_feasible(rows.domain, blend, 3)


def random_counts(generator, domain, n_components):
    """Return the expected counts of a random model on a random table."""
    table = oracle.random_table(generator, domain, 40, 0.3)
    pmf = jp.random_pmf(domain, n_components, generator)
    levels, components = oracle.expected_counts(pmf.weights, pmf.factors, table, np.ones(40))
    return np.vstack([*levels, components])


def normalised(counts, offsets):
    """Return weights and columns, as counts say."""
    blocks = np.split(counts[:-1], offsets[1:-1])
    factors = np.concatenate([block / block.sum(axis=0) for block in blocks])
    return counts[-1] / counts[-1].sum(), factors


class TestMerged:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10**6), st.integers(2, 7), st.integers(1, 6))
    def test_the_cheapest_pair_is_merged_again_and_again(self, seed, n_components, rank):
        rank = min(rank, n_components)
        generator = np.random.default_rng(seed)
        domain = jp.Domain.of_sizes([3, *oracle.random_domain(generator, 3).sizes])  # no ties
        counts = random_counts(generator, domain, n_components)
        point = merged(counts, domain.offsets, rank)
        assert_feasible(domain, point, rank)
        expected = oracle.merged_components(counts, domain.offsets, rank)
        weights, factors = normalised(expected, domain.offsets)
        order, expected_order = np.argsort(point.weights), np.argsort(weights)
        np.testing.assert_allclose(point.weights[order], weights[expected_order])
        np.testing.assert_allclose(
            point.factors[:, order], factors[:, expected_order], rtol=1e-9, atol=1e-12
        )

    def test_the_loss_is_that_of_the_expected_log_likelihood(self):
        """Of all pairs, the one taken leaves the expected log-likelihood highest."""
        generator = np.random.default_rng(1)
        domain = jp.Domain.of_sizes([3, 2, 4])
        counts = random_counts(generator, domain, 5)

        def expected_log_likelihood(table):
            return (table[:-1] * np.log(normalised(table, domain.offsets)[1])).sum()

        before = expected_log_likelihood(counts)
        left = {}
        for f, g in combinations(range(5), 2):
            rest = [k for k in range(5) if k not in (f, g)]
            both = np.column_stack([counts[:, rest], counts[:, f] + counts[:, g]])
            left[f, g] = expected_log_likelihood(both)
            loss = oracle.merging_loss(counts, domain.offsets, f, g)
            assert before - left[f, g] == pytest.approx(loss)
            assert loss >= 0
        f, g = max(left, key=left.get)
        point = merged(counts, domain.offsets, 4)
        together = (counts[-1, f] + counts[-1, g]) / counts[-1].sum()
        assert np.abs(point.weights - together).min() < 1e-14

    @pytest.mark.parametrize("pair", [(0, 3), (1, 2), (2, 4)])
    def test_equal_components_are_merged_first(self, pair):
        generator = np.random.default_rng(2)
        domain = jp.Domain.of_sizes([3, 2, 4])
        counts = random_counts(generator, domain, 5)
        counts[:, pair[1]] = 2.5 * counts[:, pair[0]]
        point = merged(counts, domain.offsets, 4)
        factors = normalised(np.delete(counts, pair[1], axis=1), domain.offsets)[1]
        np.testing.assert_allclose(point.factors, factors)
        together = counts[-1, list(pair)].sum() / counts[-1].sum()
        assert point.weights[pair[0]] == pytest.approx(together)

    def test_a_rare_component_goes_before_two_common_ones(self):
        domain = jp.Domain.of_sizes([2, 2])
        columns = np.array([[0.9, 0.1, 0.9, 0.1], [0.1, 0.9, 0.1, 0.9], [0.9, 0.1, 0.1, 0.9]]).T
        sizes = np.array([100.0, 100.0, 1.0])
        point = merged(np.vstack([columns * sizes, sizes]), domain.offsets, 2)
        np.testing.assert_allclose(np.sort(point.weights), [100 / 201, 101 / 201])

    def test_one_component_is_left_with_the_marginals(self):
        rows = random_rows(3)
        em = EM(rows, 6)
        state = em.start(random_point(rows.domain, 6, np.random.default_rng(0)))
        point = merged(em.expected_counts(state), rows.domain.offsets, 1)
        np.testing.assert_allclose(point.factors[:, 0], rows.marginal)
        assert point.weights.tolist() == [1]

    def test_nothing_to_merge(self):
        domain = jp.Domain.of_sizes([3, 2])
        counts = random_counts(np.random.default_rng(0), domain, 3)
        weights, factors = normalised(counts, domain.offsets)
        point = merged(counts, domain.offsets, 3)
        np.testing.assert_allclose(point.weights, weights)
        np.testing.assert_allclose(point.factors, factors)

    def test_columns_without_counts_become_uniform(self):
        domain = jp.Domain.of_sizes([2, 4])
        counts = np.array([[3.0, 1], [1, 5], [0, 1], [0, 2], [0, 1], [0, 2], [4, 6]])
        point = merged(counts, domain.offsets, 2)
        np.testing.assert_allclose(point.factors[2:, 0], 1 / 4)
        assert_feasible(domain, point, 2)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_the_counts_given_are_not_changed(self, order):
        domain = jp.Domain.of_sizes([3, 2])
        counts = np.array(random_counts(np.random.default_rng(0), domain, 4), order=order)
        before = counts.copy()
        merged(counts, domain.offsets, 2)
        np.testing.assert_array_equal(counts, before)


class TestMergedRows:
    def test_they_are_near_the_truth(self):
        truth = distinct([6] * 10, 4)
        table = truth.sample(5000, random_state=0, backend="codes")
        rows = Rows.of_codes(Codes(truth.domain, table))
        point = point_of_merged_rows(rows, 4, np.random.default_rng(0))
        single = point_at_rows(rows, 4, np.random.default_rng(0))
        at_truth = EM(rows, 4).start(Point.of_pmf(truth)).objective
        merged_gap, single_gap = (
            EM(rows, 4).start(p).objective - at_truth for p in (point, single)
        )
        assert merged_gap < 0.2 * single_gap

    def test_they_keep_a_part_of_the_marginals(self):
        rows = random_rows(0, n_rows=100)
        point = point_of_merged_rows(rows, 3, np.random.default_rng(0))
        least = 0.01 * rows.marginal[:, None]
        assert (point.factors >= least * (1 - 1e-12)).all()


class TestEnlargedPoint:
    def test_it_is_better_than_the_model_it_began_with(self):
        truth = distinct([5] * 8, 4)
        table = truth.sample(3000, random_state=0, backend="codes")
        rows = Rows.of_codes(Codes(truth.domain, table))
        start = point_of_merged_rows(rows, 3, np.random.default_rng(0))
        small = iterate(EM(rows, 3), start, Loop(max_iter=100, tol=1e-9))
        point = enlarged_point(small.point, rows, 4, np.random.default_rng(0))
        assert_feasible(truth.domain, point, 4)
        em = EM(rows, 4)
        assert em.step(em.start(point)).objective < small.objective

    def test_components_of_the_model_survive(self):
        """The model is the truth but for one component: the others are found again."""
        truth = distinct([5] * 8, 3, seed=1)
        table = truth.sample(5000, random_state=0, backend="codes")
        rows = Rows.of_codes(Codes(truth.domain, table))
        weights = truth.weights[:2] / truth.weights[:2].sum()
        partial = jp.JointPMF(truth.domain, weights, [factor[:, :2] for factor in truth.factors])
        point = enlarged_point(Point.of_pmf(partial), rows, 3, np.random.default_rng(0))
        assert jp.factor_error(truth, jp.JointPMF.at(point, truth.domain)) < 0.1
