"""JᵀJ, its products and the gradient against a Jacobian by brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.marginals.tables import SparseTable, TableLimits
from jointpmf.point import Point
from jointpmf.solvers.curvature import Curvature, Tangent, pivot_of_each_parameter
from jointpmf.solvers.least_squares import CoupledLeastSquares
from support import oracle
from support.oracle import jacobian, residual
from support.planted import random_marginals


def split(point, domain):
    return np.split(point.factors, domain.offsets[1:-1])


def random_point(domain, rank, generator):
    """Return a model some entries of which are zero."""
    columns = [generator.dirichlet(np.ones(size), rank).T for size in domain.sizes]
    for column in columns:
        column[generator.random(column.shape) < 0.2] = 0.0
    return Point(generator.dirichlet(np.ones(rank)), np.concatenate(columns))


def random_case(seed, n_variables, n_subsets, rank):
    """Return a curvature of orders 1 to 4, a point, the brute-force JᵀJ, and the generator."""
    generator = np.random.default_rng(seed)
    domain = oracle.random_domain(generator, n_variables, largest=5)
    orders = range(1, min(4, n_variables) + 1)
    everything = [s for k in orders for s in combinations(range(n_variables), k)]
    subsets = [everything[k] for k in generator.integers(len(everything), size=n_subsets)]
    scales = generator.random(n_subsets) + 0.1
    point = random_point(domain, rank, generator)
    j = jacobian(subsets, point.weights, split(point, domain), scales)
    return Curvature(domain, subsets, scales), point, j.T @ j, generator


cases = given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 7), st.integers(1, 4))


@settings(max_examples=40, deadline=None)
@cases
def test_the_matrix_is_that_of_the_jacobian(seed, n_variables, n_subsets, rank):
    curvature, point, expected, _ = random_case(seed, n_variables, n_subsets, rank)
    np.testing.assert_allclose(curvature.matrix(point), expected, atol=1e-13)


@settings(max_examples=40, deadline=None)
@cases
def test_the_product_is_that_of_the_matrix(seed, n_variables, n_subsets, rank):
    curvature, point, expected, generator = random_case(seed, n_variables, n_subsets, rank)
    times = curvature.at(point).times
    for vector in generator.normal(size=(3, len(expected))):
        np.testing.assert_allclose(times(vector), expected @ vector, atol=1e-12)


@settings(max_examples=40, deadline=None)
@cases
def test_the_trace_is_that_of_the_matrix(seed, n_variables, n_subsets, rank):
    curvature, point, expected, _ = random_case(seed, n_variables, n_subsets, rank)
    assert curvature.at(point).trace() == pytest.approx(np.trace(expected), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_all_subsets_of_one_order_of_unequal_alphabets(order):
    domain = jp.Domain.of_sizes([2, 5, 3, 4, 1])
    point = random_point(domain, 5, np.random.default_rng(order))
    subsets = list(combinations(range(5), order))
    scales = np.linspace(0.5, 2, len(subsets))
    curvature = Curvature(domain, subsets, scales)
    j = jacobian(subsets, point.weights, split(point, domain), scales)
    np.testing.assert_allclose(curvature.matrix(point), j.T @ j, atol=1e-13)
    vector = np.arange(j.shape[1], dtype=float)
    np.testing.assert_allclose(curvature.at(point).times(vector), j.T @ (j @ vector), rtol=1e-12)


class TestTangent:
    @pytest.fixture
    def domain(self):
        return jp.Domain.of_sizes([3, 4, 2, 1])

    @pytest.fixture
    def generator(self):
        return np.random.default_rng(3)

    @pytest.fixture
    def point(self, domain, generator):
        return random_point(domain, 3, generator)

    @pytest.fixture
    def fixed(self, domain, point, generator):
        """Return a random third of the parameters, without the largest of each simplex."""
        pivots = pivot_of_each_parameter(point, domain.offsets)
        chosen = generator.random(len(pivots)) < 0.3
        chosen[pivots] = False
        return chosen

    def sums(self, change, domain, rank):
        """Return the sum of every simplex."""
        factors = np.split(change[rank:].reshape(-1, rank), domain.offsets[1:-1])
        return np.concatenate([[change[:rank].sum()], *(a.sum(axis=0) for a in factors)])

    def explicit(self, tangent):
        return np.column_stack([tangent.expand(e) for e in np.eye(len(tangent.moved))])

    def test_an_expanded_change_keeps_every_sum(self, domain, point, fixed, generator):
        tangent = Tangent.at(point, domain.offsets, fixed)
        for coordinates in generator.normal(size=(5, len(tangent.moved))):
            change = tangent.expand(coordinates)
            assert np.abs(change).max() > 0.1
            np.testing.assert_allclose(self.sums(change, domain, 3), 0, atol=1e-14)

    def test_fixed_parameters_do_not_move(self, domain, point, fixed, generator):
        tangent = Tangent.at(point, domain.offsets, fixed)
        change = tangent.expand(generator.normal(size=len(tangent.moved)))
        assert fixed.any()
        assert (change[fixed] == 0).all()
        assert (change[tangent.moved] != 0).all()

    def test_the_pivot_is_the_largest_of_its_simplex(self, domain, point):
        pivots = pivot_of_each_parameter(point, domain.offsets)
        values = np.concatenate([point.weights, point.factors.ravel()])
        largest = [np.full(3, point.weights.max())]
        for factor in split(point, domain):
            largest.append(np.broadcast_to(factor.max(axis=0), factor.shape).ravel())
        np.testing.assert_array_equal(values[pivots], np.concatenate(largest))
        np.testing.assert_array_equal(pivots[pivots], pivots)

    def test_it_spans_all_feasible_directions(self, domain, point):
        free = np.zeros(3 + point.factors.size, bool)
        z = self.explicit(Tangent.at(point, domain.offsets, free))
        n_simplices = 1 + 3 * len(domain)
        assert z.shape == (len(free), len(free) - n_simplices)
        assert np.linalg.matrix_rank(z) == z.shape[1]

    def test_it_spans_all_feasible_directions_that_are_not_fixed(self, domain, point, fixed):
        z = self.explicit(Tangent.at(point, domain.offsets, fixed))
        n_simplices = 1 + 3 * len(domain)
        assert np.linalg.matrix_rank(z) == len(fixed) - n_simplices - fixed.sum()

    def test_reducing_is_multiplying_with_the_directions(self, domain, point, fixed, generator):
        tangent = Tangent.at(point, domain.offsets, fixed)
        z = self.explicit(tangent)
        square = generator.normal(size=(len(fixed), len(fixed)))
        matrix, vector = square + square.T, generator.normal(size=len(fixed))
        np.testing.assert_allclose(tangent.reduce_matrix(matrix), z.T @ matrix @ z, atol=1e-13)
        np.testing.assert_allclose(tangent.reduce_vector(vector), z.T @ vector, atol=1e-14)


def check_gradient(marginals, rank, weighting, generator, **limits):
    problem = CoupledLeastSquares(marginals, rank, weighting, **limits)
    scales = problem.marginal_weights
    point = random_point(marginals.domain, rank, generator)
    factors = split(point, marginals.domain)
    expected = jacobian(marginals.subsets, point.weights, factors, scales).T @ residual(
        marginals, point.weights, factors, scales
    )
    cost, gradient = problem.gradient(point)
    np.testing.assert_allclose(gradient, expected, atol=1e-13)
    assert cost == pytest.approx(problem.cost(point), rel=1e-12)
    assert cost == pytest.approx(
        oracle.coupled_cost(marginals, point.weights, factors, scales), rel=1e-10
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 7), st.integers(1, 5))
def test_the_gradient_of_small_tables(seed, n_variables, n_subsets, rank):
    marginals, generator = random_marginals(seed, n_variables, n_subsets)
    check_gradient(marginals, rank, generator.random(len(marginals)) + 0.1, generator)


@pytest.mark.parametrize("rank", [3, 33])
@pytest.mark.parametrize("kept", ["dense", "sparse"])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_gradient_of_large_tables(rank, kept, order):
    """Tables beyond the stack's bound, with the bound lowered so that the oracle can follow."""
    limits = TableLimits(1.1, 0 if kept == "sparse" else 10**9)
    generator = np.random.default_rng(0)
    sizes = [3, 5, 4, 2]
    rows = np.column_stack([generator.integers(0, size, 40) for size in sizes])
    rows[generator.random(rows.shape) < 0.1] = -1
    domain = jp.Domain.of_sizes(sizes)
    marginals = jp.MarginalSet.from_table(rows, order, domain=domain, limits=limits)
    assert {isinstance(m.table, SparseTable) for m in marginals} == {kept == "sparse"}
    check_gradient(marginals, rank, "counts", generator, stack_below=8, residual_cells=16)


def test_the_gradient_of_small_and_large_tables_together():
    truth = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 5]), 2, 0)
    marginals = truth.marginals(2)
    sizes = [m.table.size for m in marginals]
    assert min(sizes) < 13 <= max(sizes)
    weights = [1.0, 0.0, 0.5, 2.0, 1.0, 0.3]
    check_gradient(marginals, 3, weights, np.random.default_rng(1), stack_below=13)


def test_the_gradient_keeps_its_digits_close_to_the_truth():
    truth = jp.random_pmf(jp.Domain.of_sizes([4, 5, 3]), 2, 0)
    near = Point.of_pmf(truth)
    change = np.zeros(2 + near.factors.size)
    change[2], change[4] = 1e-12, -1e-12
    near.factors += change[2:].reshape(near.factors.shape)
    change[2:] = (near.factors - Point.of_pmf(truth).factors).ravel()
    j = jacobian([(0, 1, 2)], truth.weights, truth.factors, [1.0])
    _, gradient = CoupledLeastSquares(truth.marginals(3), 2).gradient(near)
    expected = j.T @ (j @ change)
    np.testing.assert_allclose(gradient, expected, atol=1e-3 * np.abs(expected).max())


def test_a_gradient_between_two_sweeps_leaves_no_trace():
    marginals = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2]), 2, 0).marginals(2)
    problem = CoupledLeastSquares(marginals, 2)
    first, second = (Point.of_pmf(jp.random_pmf(marginals.domain, 2, seed)) for seed in (1, 2))
    before = list(problem.sweep(first))
    problem.gradient(second)
    after = list(problem.sweep(first))
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a.gram, b.gram)
        np.testing.assert_array_equal(a.cross, b.cross)
