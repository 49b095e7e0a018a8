"""Gram, cross and cost of every block against one einsum per marginal."""

import numpy as np
import pytest
from benchmarks import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf import threads
from jointpmf.compiled.simplex import project_simplex
from jointpmf.fit.coupled import CoupledFit
from jointpmf.marginals.tables import SparseTable, TableLimits
from jointpmf.point import Point
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Loop
from support import oracle
from support.planted import random_marginals


def check_terms(marginals, rank, weights, generator, **limits):
    """Compare a sweep in which every block is replaced by a random one with the oracle."""
    point = Point.of_pmf(jp.random_pmf(marginals.domain, rank, generator))
    problem = CoupledLeastSquares(marginals, rank, weights, **limits)
    scales, offsets = problem.marginal_weights, marginals.domain.offsets

    def factors():
        return np.split(point.factors, offsets[1:-1])

    for n, block in enumerate(problem.sweep(point)):
        if block.rows is None:
            gram, cross = reference.weight_block(
                marginals, point.weights, factors(), problem.marginal_weights
            )
            np.testing.assert_allclose(block.cross[:, 0], cross, atol=1e-13)
        else:
            gram, cross = reference.factor_block(marginals, point.weights, factors(), scales, n)
            np.testing.assert_allclose(block.cross.T, cross, atol=1e-13)
            point.factors[block.rows] = generator.dirichlet(np.ones(block.cross.shape[1]), rank).T
        np.testing.assert_allclose(block.gram, gram, atol=1e-13)
    expected = oracle.coupled_cost(marginals, point.weights, factors(), scales)
    assert problem.cost(point) == pytest.approx(expected, rel=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 8), st.integers(1, 6))
def test_terms_of_any_set_of_marginals(seed, n_variables, n_subsets, rank):
    marginals, generator = random_marginals(seed, n_variables, n_subsets)
    check_terms(marginals, rank, generator.random(len(marginals)) + 0.1, generator)


@pytest.mark.parametrize("rank", [3, 4, 33, 70])
@pytest.mark.parametrize("kept", ["dense", "sparse"])
def test_terms_of_large_tables(rank, kept):
    """Tables beyond the stack's bound, with the bound lowered so that the oracle can follow."""
    limits = TableLimits(1.1, 0 if kept == "sparse" else 10**9)
    generator = np.random.default_rng(0)
    rows = np.column_stack([generator.integers(0, size, 40) for size in (3, 5, 4, 2, 6)])
    rows[generator.random(rows.shape) < 0.1] = -1
    for order in (2, 3, 4, 5):
        marginals = jp.MarginalSet.from_table(
            rows, order, domain=jp.Domain.of_sizes([3, 5, 4, 2, 6]), limits=limits
        )
        kinds = {isinstance(m.table, SparseTable) for m in marginals}
        assert kinds == {kept == "sparse"}
        check_terms(marginals, rank, "counts", generator, stack_below=8, residual_cells=16)


def test_weighted_rows_make_sparse_tables_of_real_numbers():
    generator = np.random.default_rng(0)
    rows = np.column_stack([generator.integers(0, 4, 30) for _ in range(4)])
    domain = jp.Domain.of_sizes([4] * 4)
    marginals = jp.MarginalSet.from_table(
        rows, 4, generator.random(30), domain, limits=TableLimits(1.1, 0)
    )
    assert marginals[0].table.values.dtype == np.float64
    check_terms(marginals, 3, None, generator)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 80))
def test_projection_on_the_simplex(seed, size):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=size) * generator.choice([0.01, 1, 100])
    projected = x.copy()
    project_simplex(projected)
    np.testing.assert_allclose(projected, reference.project_columns(x[:, None])[:, 0], atol=1e-10)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1, abs=1e-14)


def test_a_small_cost_keeps_its_digits():
    truth = jp.random_pmf(jp.Domain.of_sizes([4, 5, 3]), 2, 0)
    marginals = truth.marginals(3)
    near = Point.of_pmf(truth)
    near.factors[0, 0] += 1e-12
    near.factors[1, 0] -= 1e-12
    expected = oracle.coupled_cost(
        marginals, near.weights, np.split(near.factors, truth.domain.offsets[1:-1]), [1.0]
    )
    assert expected < 1e-24
    assert CoupledLeastSquares(marginals, 2).cost(near) == pytest.approx(expected, rel=1e-2)


def test_a_small_cost_of_a_sparse_table_is_not_negative():
    """A block-diagonal table that rank 4 fits exactly, kept sparse and kept dense."""
    levels = np.arange(40)
    rows = np.array([(a, b) for a in levels for b in levels if a // 10 == b // 10])
    domain = jp.Domain.of_sizes([40, 40])
    fits = {}
    for kind, smallest in (("sparse", 0), ("dense", 10**9)):
        limits = TableLimits(smallest_sparse=smallest)
        marginals = jp.MarginalSet.from_table(rows, 2, domain=domain, limits=limits)
        assert isinstance(marginals[0].table, SparseTable) == (kind == "sparse")
        fits[kind] = jp.fit_marginals(
            marginals, 4, loss="squares", random_state=0, tol=0, max_iter=100
        )
    assert fits["sparse"].n_iter == fits["dense"].n_iter
    for fit in fits.values():
        assert 0 <= fit.objective < 1e-30


def test_an_abandoned_sweep_leaves_no_trace():
    marginals = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2]), 2, 0).marginals(3)
    point = Point.of_pmf(jp.random_pmf(marginals.domain, 2, 1))
    problem = CoupledLeastSquares(marginals, 2)
    for block in problem.sweep(point):
        if block.rows is not None and block.rows.start == 3:
            break
        point.factors[block.rows] = 1 / 3
    assert problem.cost(point) == CoupledLeastSquares(marginals, 2).cost(point)


def test_the_scale_of_the_weighting_does_not_matter():
    marginals = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2]), 2, 0).marginals(2)
    fits = [
        jp.fit_marginals(marginals, 2, weighting=[s, s, s], random_state=0, max_iter=50).pmf
        for s in (1.0, 1e-300, 1e300)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].factors[0], other.factors[0])


def test_large_tables_are_not_copied():
    marginals = jp.random_pmf(jp.Domain.of_sizes([3, 3, 3]), 2, 0).marginals(2)
    problem = CoupledLeastSquares(marginals, 2, stack_below=8)
    pieces = [p for chunks in problem._large for chunk in chunks for p in chunk]
    assert len(pieces) == 3
    for piece in pieces:
        assert any(np.shares_memory(piece.matrix, marginal.table) for marginal in marginals)


def test_threads_do_not_change_the_bits():
    marginals = jp.random_pmf(jp.Domain.of_sizes([7] * 6), 5, 0).marginals(4)
    solutions = []
    for count in (1, 2, 3):
        with threads.limited_to(count):
            problem = CoupledLeastSquares(marginals, 5, stack_below=8)
            fit = CoupledFit(Loop(max_iter=20, tol=1e-10))
            solutions.append(fit.run(problem, marginals, np.random.default_rng(3)).pmf)
    for other in solutions[1:]:
        for a, b in zip(solutions[0].factors, other.factors, strict=True):
            np.testing.assert_array_equal(a, b)
