"""The second-order finish: convergence, optima on the boundary, and the default method."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.point import Point
from jointpmf.solvers.curvature import Curvature, CurvatureAtPoint
from jointpmf.solvers.jacobian import whole_tangent
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Loop, iterate
from jointpmf.solvers.newton import Newton, conjugate_gradients
from jointpmf.solvers.starts.random import random_point
from support.oracle import jacobian, residual


def counted(seed, n_rows, sizes=(3, 4, 3, 2), rank=3, order=3):
    """Return the empirical marginals of a few rows of a random model."""
    truth = jp.random_pmf(jp.Domain.of_sizes(list(sizes)), rank, seed)
    rows = truth.sample(n_rows, random_state=seed, backend="codes")
    return jp.MarginalSet.from_table(rows, order, domain=truth.domain)


def fit(marginals, rank=3, start="auto", **options):
    options = {
        "method": "newton",
        "loss": "squares",
        "tol": 0,
        "search": jp.Search(start),
    } | options
    return jp.fit_marginals(marginals, rank, **options)


def by_products(marginals, start):
    """Return where steps by conjugate gradients end, and the model there."""
    solver = Newton(CoupledLeastSquares(marginals, start.rank), largest_factorised=0)
    outcome = iterate(solver, Point.of_pmf(start), Loop(1500, 0.0))
    return outcome, jp.JointPMF.at(outcome.point, start.domain)


def near(pmf, seed, distance=0.05):
    """Return a model a little way from another."""
    other = jp.random_pmf(pmf.domain, pmf.rank, seed)
    pairs = zip([pmf.weights, *pmf.factors], [other.weights, *other.factors], strict=True)
    weights, *factors = [(1 - distance) * a + distance * b for a, b in pairs]
    return jp.JointPMF(pmf.domain, weights, factors)


def complementarity(marginals, pmf):
    """Return, over all simplices, how much mass lies where the gradient is not least."""
    scales = np.ones(len(marginals))
    j = jacobian(marginals.subsets, pmf.weights, pmf.factors, scales)
    gradient = j.T @ residual(marginals, pmf.weights, pmf.factors, scales)
    rows = np.split(gradient[pmf.rank :].reshape(-1, pmf.rank), pmf.domain.offsets[1:-1])
    simplices = [(pmf.weights[:, None], gradient[: pmf.rank, None])]
    simplices += zip(pmf.factors, rows, strict=True)
    return max(float((x * (g - g.min(axis=0))).sum(axis=0).max()) for x, g in simplices)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", [2, 3])
def test_the_objective_never_rises(seed, order):
    marginals = counted(seed, 60, order=order)
    objective = [s.objective for s in fit(marginals, start="random", random_state=seed).history]
    assert len(objective) > 3
    assert (np.diff(objective) <= 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_convergence_to_exact_triples_is_quadratic(seed):
    truth = jp.random_pmf(jp.Domain.of_sizes([4, 3, 5, 4]), 3, seed)
    solution = fit(truth.marginals(3), start=near(truth, 100 + seed))
    assert solution.n_iter <= 10
    assert solution.objective < 1e-28
    assert jp.factor_error(truth, solution.pmf) < 1e-11
    objective = np.array([step.objective for step in solution.history])
    digits = np.log10(objective[objective > 1e-28])
    assert np.diff(digits)[-1] < 1.2 * np.diff(digits)[-3]
    assert np.diff(digits).min() < -6


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 6, 7, 8, 9, 11])
def test_an_optimum_on_the_boundary_is_reached(seed):
    marginals = counted(seed, 40)
    start = jp.random_pmf(marginals.domain, 3, 50 + seed)
    solution = fit(marginals, start=start)
    sweeps = fit(marginals, start=solution.pmf, method="aoadmm", max_iter=200)
    assert min(factor.min() for factor in solution.pmf.factors) < 1e-15
    assert solution.status is jp.Status.CONVERGED
    assert solution.kkt < 1e-6
    assert complementarity(marginals, solution.pmf) < 1e-8
    assert solution.objective <= sweeps.objective * (1 + 1e-9)


@pytest.mark.parametrize("seed", [5, 10])
def test_a_step_does_not_throw_a_component_away(seed):
    """Full steps empty a weight here, and end far above AO-ADMM from the same start."""
    marginals = counted(seed, 40)
    start = jp.random_pmf(marginals.domain, 3, 50 + seed)
    sweeps = fit(marginals, start=start, method="aoadmm", max_iter=600)
    assert sweeps.pmf.weights.min() > 0.05
    assert fit(marginals, start=start).objective <= sweeps.objective * (1 + 1e-6)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_solution_carries_a_small_kkt_residual(order, seed):
    solution = fit(counted(seed, 200, order=order), 2, random_state=seed, tol=1e-10)
    assert solution.kkt < 1e-6


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_default_carries_a_small_kkt_residual_too(order, seed):
    counts = counted(seed, 200, order=order)
    solution = jp.fit_marginals(counts, 2, loss="squares", random_state=seed)
    assert solution.kkt is not None
    assert solution.kkt < 1e-4


def test_far_from_an_optimum_the_kkt_residual_is_large():
    marginals = counted(0, 40)
    start = jp.random_pmf(marginals.domain, 3, 50)
    assert fit(marginals, start=start, max_iter=0).kkt > 1e-3


def never(self):
    raise AssertionError("JᵀJ was formed")


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_conjugate_gradients_find_the_same_optimum(monkeypatch, seed):
    marginals = counted(seed, 300, [3] * 5)
    start = jp.random_pmf(marginals.domain, 3, 9)
    factorised = fit(marginals, start=start)
    monkeypatch.setattr(CurvatureAtPoint, "matrix", never)
    outcome, pmf = by_products(marginals, start)
    assert outcome.objective == pytest.approx(factorised.objective, rel=1e-9)
    assert outcome.kkt < 1e-6
    assert jp.factor_error(factorised.pmf, pmf) < 1e-4


def test_conjugate_gradients_reach_exact_triples():
    truth = jp.random_pmf(jp.Domain.of_sizes([4, 3, 5, 4]), 3, 0)
    _, pmf = by_products(truth.marginals(3), near(truth, 100))
    assert jp.factor_error(truth, pmf) < 1e-10


@pytest.mark.parametrize("size", [1, 7, 40])
def test_conjugate_gradients_solve(size):
    generator = np.random.default_rng(size)
    root = generator.normal(size=(size, size))
    matrix, right = root @ root.T + np.eye(size), generator.normal(size=size)
    found = conjugate_gradients(matrix.__matmul__, lambda x: x / np.diag(matrix), right)
    error = found - np.linalg.solve(matrix, right)
    assert error @ matrix @ error <= 1e-4 * (right @ np.linalg.solve(matrix, right))


def blocks_alone(matrix, rank, offsets):
    """Return the parts of JᵀJ within the weights and within single rows of factors."""
    alone = np.zeros_like(matrix)
    for begin in range(0, rank * (1 + offsets[-1]), rank):
        own = slice(begin, begin + rank)
        alone[own, own] = matrix[own, own]
    return alone


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_what_preconditions_is_the_inverse_of_the_blocks(shift):
    domain = jp.Domain.of_sizes([3, 2, 4])
    point = random_point(domain, 2, np.random.default_rng(0))
    curvature = Curvature(domain, [(0, 1, 2)], np.ones(1)).at(point)
    tangent = whole_tangent(domain, point)
    alone = blocks_alone(curvature.matrix(), 2, domain.offsets)
    reduced = tangent.reduce_matrix(alone + shift * np.eye(len(alone)))
    free = np.ones(len(reduced), bool)
    near_inverse = curvature.own_blocks().near_inverse(tangent, free, shift)
    found = np.array([near_inverse(row) for row in np.eye(len(reduced))])
    weights = slice(1, None)  # the only coordinate of two weights is not projected exactly
    expected = np.linalg.inv(reduced)
    np.testing.assert_allclose(found[weights, weights], expected[weights, weights], rtol=1e-6)
    np.testing.assert_allclose(found, found.T, rtol=1e-9, atol=1e-12 * found.max())
    free[::3] = False
    some = curvature.own_blocks().near_inverse(tangent, free, shift)
    form = np.array([some(row) for row in np.eye(free.sum())])
    np.testing.assert_allclose(form, form.T, rtol=1e-9, atol=1e-12 * form.max())
    assert np.linalg.eigvalsh(form).min() > 0


@pytest.mark.parametrize(("seed", "missing"), [(0, 0.0), (1, 0.2), (2, 0.4)])
def test_small_components_do_not_hold_second_order_up(seed, missing):
    generator = np.random.default_rng(seed)
    domain = jp.Domain.of_sizes([3] * 12)
    factors = [generator.dirichlet(np.ones(3), 4).T for _ in range(12)]
    truth = jp.JointPMF(domain, [0.6, 0.3, 0.08, 0.02], factors)
    rows = truth.sample(20_000, random_state=seed, backend="codes")
    rows[generator.random(rows.shape) < missing] = -1
    codes = jp.Codes(domain, rows)
    tables = CoupledLeastSquares(jp.MarginalSet.from_table(codes, 3), 4, "counts")
    expected = iterate(Newton(tables), Point.of_pmf(truth), Loop(500, 1e-12))
    found = iterate(Newton(tables, largest_factorised=0), Point.of_pmf(truth), Loop(60, 1e-10))
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    assert found.n_iter < 60


@pytest.mark.parametrize("method", ["newton", "auto"])
@pytest.mark.parametrize("start", ["auto", "random"])
def test_the_same_seed_gives_the_same_bits(method, start):
    marginals = counted(2, 100)
    first, second = (
        fit(marginals, method=method, start=start, tol=1e-10, random_state=4) for _ in range(2)
    )
    assert first.objective == second.objective
    assert first.start == second.start
    np.testing.assert_array_equal(first.pmf.weights, second.pmf.weights)
    for a, b in zip(first.pmf.factors, second.pmf.factors, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(3))
def test_the_default_is_as_good_as_the_best_of_several_aoadmm_runs(seed):
    marginals = counted(seed, 300, [3] * 5)
    default = jp.fit_marginals(marginals, 3, loss="squares", random_state=0)
    runs = [
        fit(marginals, method="aoadmm", start="random", tol=1e-9, max_iter=400, random_state=k)
        for k in range(4)
    ]
    assert default.objective <= min(run.objective for run in runs) * (1 + 1e-6)


@pytest.mark.parametrize("method", ["newton", "auto"])
def test_a_given_start_is_where_the_fit_begins(method):
    marginals = counted(0, 40)
    start = jp.random_pmf(marginals.domain, 3, 5)
    still = fit(marginals, method=method, start=start, max_iter=0)
    assert jp.factor_error(start, still.pmf) < 1e-15
    assert still.start.kind == "given"
    moved = fit(marginals, method=method, start=start)
    assert moved.history[0].objective == pytest.approx(still.objective, rel=1e-12)
    assert moved.start.kind == "given"


def test_a_given_start_is_not_changed():
    marginals = counted(0, 40)
    start = jp.random_pmf(marginals.domain, 3, 5)
    before = [factor.copy() for factor in start.factors]
    fit(marginals, start=start)
    for a, b in zip(before, start.factors, strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_of_marginals_are_respected():
    marginals = counted(0, 40)
    weights = np.array([1.0, 0.1, 0.5, 0.3])
    start = jp.random_pmf(marginals.domain, 3, 50)
    solution = fit(marginals, start=start, weighting=weights)
    scaled = residual(marginals, solution.pmf.weights, solution.pmf.factors, weights)
    assert solution.objective == pytest.approx(0.5 * scaled @ scaled, rel=1e-10)
    assert solution.kkt < 1e-6
