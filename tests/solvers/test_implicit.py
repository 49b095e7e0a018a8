"""The objective from rows against the one from counted tables: gram, cross, cost, gradient, JᵀJ."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.rows.table import ColumnRows
from jointpmf.solvers import implicit
from jointpmf.solvers.aoadmm import AOADMM
from jointpmf.solvers.curvature import Curvature
from jointpmf.solvers.implicit import ImplicitLeastSquares, Limits
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Loop, Status, iterate
from jointpmf.solvers.newton import Newton
from jointpmf.solvers.starts.closed_form import point_of_all_subsets
from jointpmf.solvers.starts.random import random_point
from support import oracle


def random_codes(seed, n_rows=400, missing=0.0, n_variables=7, rank=3):
    generator = np.random.default_rng(seed)
    truth = jp.random_pmf(oracle.random_domain(generator, n_variables, 5), rank, generator)
    array = truth.sample(n_rows, random_state=seed, backend="codes")
    array[generator.random(array.shape) < missing] = -1
    return jp.Codes(truth.domain, array), generator


def both(codes, rank, order, weights=None, **limits):
    tables = CoupledLeastSquares(jp.MarginalSet.from_table(codes, order, weights), rank, "counts")
    rows = ColumnRows.of_codes(codes, weights)
    return tables, ImplicitLeastSquares(rows, rank, order, Limits(**limits))


def assert_close(found, expected, relative=1e-12):
    assert np.abs(np.asarray(found) - expected).max() <= relative * np.abs(expected).max()


CASES = [(order, missing) for order in (2, 3, 4) for missing in (0.0, 0.3)]


@pytest.mark.parametrize(("order", "missing"), CASES)
@pytest.mark.parametrize("is_weighted", [False, True])
class TestEqualsTables:
    def test_sweep(self, order, missing, is_weighted):
        codes, generator = random_codes(order, missing=missing)
        weights = generator.random(codes.n_rows) if is_weighted else None
        groups = len(codes.domain)  # one per variable, as with tables
        tables, rows = both(codes, 3, order, weights, min_groups=groups)
        points = [random_point(codes.domain, 3, np.random.default_rng(1)) for _ in range(2)]
        blocks = zip(tables.sweep(points[0]), rows.sweep(points[1]), strict=True)
        for expected, found in blocks:
            assert_close(found.gram, expected.gram)
            assert_close(found.cross, expected.cross)
            assert found.rows == expected.rows
            if found.rows is not None:
                new = generator.dirichlet(np.ones(found.cross.shape[1]), 3).T
                for point in points:
                    point.factors[found.rows] = new
        assert_close(rows.cost(points[1]), tables.cost(points[0]))
        assert_close(rows.norm, tables.norm)

    def test_gradient_and_curvature(self, order, missing, is_weighted):
        codes, generator = random_codes(order, missing=missing)
        weights = generator.random(codes.n_rows) if is_weighted else None
        tables, rows = both(codes, 3, order, weights, most_curved=1000)
        point = random_point(codes.domain, 3, generator)
        cost, gradient = tables.gradient(point)
        found_cost, found_gradient = rows.gradient(point)
        assert_close(found_cost, cost)
        assert_close(found_gradient, gradient)
        curvature = Curvature(codes.domain, tables.subsets, tables.marginal_weights).at(point)
        vector = generator.normal(size=len(gradient))
        assert_close(rows.curvature_at(point).times(vector), curvature.times(vector))
        assert_close(rows.curvature_at(point).own_blocks().trace(), curvature.trace())


def test_blocks_of_a_group_see_the_newest_values_of_the_others():
    codes, generator = random_codes(0)
    tables, rows = both(codes, 2, 3)
    point = random_point(codes.domain, 2, generator)
    seen = point.copy()
    groups = list(zip(rows._groups[:-1], rows._groups[1:], strict=True))
    assert len(groups) == Limits().min_groups
    blocks = rows.sweep(point)
    for begin, end in groups:
        for n in range(begin, end):
            found = next(blocks)
            expected = list(tables.sweep(seen.copy()))[n]
            assert_close(found.gram, expected.gram)
            assert_close(found.cross, expected.cross)
            new = generator.dirichlet(np.ones(found.cross.shape[1]), 2).T
            point.factors[found.rows] = new
        seen = point.copy()


def test_some_patterns_give_a_curvature_of_the_same_size():
    codes, generator = random_codes(0, 1000, 0.3)
    point = random_point(codes.domain, 3, generator)
    vector = generator.normal(size=3 + point.factors.size)
    products = []
    for most in (10**4, 20):
        problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), 3, 3, Limits(most_curved=most))
        assert problem.n_patterns > 20
        products.append(problem.curvature_at(point).times(vector))
    difference = np.linalg.norm(products[0] - products[1]) / np.linalg.norm(products[0])
    assert 0 < difference < 0.5


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("solver", [AOADMM, Newton])
def test_solvers_reach_the_optimum_of_the_tables(missing, solver):
    codes, _ = random_codes(3, 2000, missing)
    tables, rows = both(codes, 2, 3)
    start = random_point(codes.domain, 2, np.random.default_rng(0))
    ends = [
        iterate(solver(problem), start.copy(), Loop(max_iter=1000, tol=1e-12))
        for problem in (tables, rows)
    ]
    costs = [tables.cost(outcome.point) for outcome in ends]
    assert costs[1] == pytest.approx(costs[0], rel=1e-6)
    assert ends[1].objective == pytest.approx(costs[1], rel=1e-9)


def test_an_estimated_norm_leaves_the_fit_as_it_is():
    codes, _ = random_codes(4, 3000)
    start = random_point(codes.domain, 3, np.random.default_rng(0))
    exact = ImplicitLeastSquares(ColumnRows.of_codes(codes), 3, 3)
    limits = Limits(most_counted=0, few_counted=0, fewest_subsets=12)
    some = ImplicitLeastSquares(ColumnRows.of_codes(codes), 3, 3, limits)
    assert some.norm != exact.norm
    assert some.norm == pytest.approx(exact.norm, rel=0.5)
    ends = [iterate(AOADMM(p), start.copy(), Loop(30, 0.0)) for p in (exact, some)]
    np.testing.assert_array_equal(ends[0].point.weights, ends[1].point.weights)
    falls = [np.diff([step.objective for step in end.history[1:]]) for end in ends]
    np.testing.assert_allclose(falls[0], falls[1], atol=1e-10 * exact.norm)


def test_all_subsets_estimate_the_norm_exactly():
    codes, generator = random_codes(5, 500, 0.3, n_variables=5)
    exact = ImplicitLeastSquares(ColumnRows.of_codes(codes), 2, 3)
    some = ImplicitLeastSquares(ColumnRows.of_codes(codes), 2, 3, Limits(most_counted=0))
    point = random_point(codes.domain, 2, generator)
    assert some.norm == pytest.approx(exact.norm)
    assert some.cost(point) == pytest.approx(exact.cost(point))


@pytest.mark.parametrize(("refresh", "n_loads"), [(1, 40), (10, 4), (10**9, 1)])
def test_sums_are_refreshed(refresh, n_loads, monkeypatch):
    codes, _ = random_codes(6, 300)
    problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), 3, 4, Limits(refresh))
    start = random_point(codes.domain, 3, np.random.default_rng(0))
    loads = []
    load = problem._sums.load
    monkeypatch.setattr(problem._sums, "load", lambda table: (loads.append(0), load(table)))
    iterate(AOADMM(problem), start, Loop(40, 0.0))
    assert n_loads <= len(loads) <= n_loads + 1


def test_an_interrupt_while_sums_are_computed_leaves_no_wrong_ones(monkeypatch):
    codes, generator = random_codes(6, 300)
    problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), 3, 3)
    first, second = (random_point(codes.domain, 3, generator) for _ in range(2))
    cost = problem.cost(first)
    with monkeypatch.context() as patch:
        patch.setattr(problem._grams, "load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            problem.cost(second)
    assert problem.cost(first) == cost


def interrupted(table):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("sizes", "order"), [((3,) * 40, 20), ((2,) * 18, 17), ((200,) * 9, 4)])
def test_tables_of_any_size_are_counted_by_the_cells_that_were_seen(sizes, order):
    codes = jp.random_pmf(jp.Domain.of_sizes(sizes), 2, random_state=0).sample(
        300, random_state=0, backend="codes"
    )
    codes = jp.Codes(jp.Domain.of_sizes(sizes), np.where(codes == 1, -1, codes))
    rows = ColumnRows.of_codes(codes)
    subset = tuple(range(order))
    (seen,) = implicit._seen(rows, iter([subset]))
    whole = codes.array[(codes.array[:, :order] >= 0).all(axis=1), :order]
    expected, counts = np.unique(whole, axis=0, return_counts=True)
    found = np.stack(seen.levels, axis=1)
    place = np.lexsort(found.T[::-1])
    np.testing.assert_array_equal(found[place], expected)
    np.testing.assert_array_equal(seen.counts[place], counts)


def test_an_estimate_keeps_few_cells():
    codes = jp.random_pmf(jp.Domain.of_sizes([40] * 30), 2, random_state=0).sample(
        2000, random_state=0, backend="codes"
    )
    rows = ColumnRows.of_codes(jp.Codes(jp.Domain.of_sizes([40] * 30), codes))
    problem = ImplicitLeastSquares(rows, 2, 3, Limits(most_counted=0, most_kept=50_000))
    assert 40_000 < sum(len(table.counts) for table in problem._some.tables) <= 50_000


class TestStart:
    def test_many_rows_of_many_variables_give_nearly_the_truth(self):
        truth = jp.random_pmf(jp.Domain.of_sizes([4] * 30), 3, random_state=0)
        codes = jp.Codes(truth.domain, truth.sample(30_000, random_state=0, backend="codes"))
        problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), 3, 3)
        point = point_of_all_subsets(problem, np.random.default_rng(0))
        anywhere = random_point(truth.domain, 3, np.random.default_rng(0))
        errors = [
            jp.factor_error(truth, jp.JointPMF.at(p, truth.domain)) for p in (point, anywhere)
        ]
        assert errors[0] < 0.1 < 0.5 < errors[1]

    def test_variables_outside_of_the_groups_are_solved_for(self, monkeypatch):
        truth = jp.random_pmf(jp.Domain.of_sizes([3] * 40), 2, random_state=1)
        codes = jp.Codes(truth.domain, truth.sample(20_000, random_state=0, backend="codes"))
        problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), 2, 3)
        zeroed = []
        blocks = problem.blocks

        def noted(point):
            zeroed.append((point.factors == 0).all(axis=1).sum())
            return blocks(point)

        monkeypatch.setattr(problem, "blocks", noted)
        point = point_of_all_subsets(problem, np.random.default_rng(0))
        assert min(zeroed) > 40
        assert jp.factor_error(truth, jp.JointPMF.at(point, truth.domain)) < 0.05

    def test_there_is_none_for_too_large_a_rank(self):
        codes, generator = random_codes(0, n_variables=3)
        problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), 200, 2)
        assert point_of_all_subsets(problem, generator) is None


@pytest.mark.parametrize("order", [0, 1, 8])
def test_orders_that_make_no_sense_are_refused(order):
    codes, _ = random_codes(0)
    with pytest.raises(jp.JointPMFError, match="order"):
        ImplicitLeastSquares(ColumnRows.of_codes(codes), 2, order)


def test_rows_with_too_few_cells_are_refused():
    domain = jp.Domain.of_sizes([2, 2, 2])
    codes = jp.Codes(domain, np.array([[0, 1, -1], [-1, 0, 1]]))
    with pytest.raises(jp.JointPMFError, match="no row has 3 observed cells"):
        ImplicitLeastSquares(ColumnRows.of_codes(codes), 2, 3)


def test_a_fit_that_is_stopped_is_feasible():
    codes, generator = random_codes(1)
    problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), 2, 3)
    start = random_point(codes.domain, 2, generator)
    outcome = iterate(AOADMM(problem), start, Loop(9, 0.0, callback=lambda step, point: True))
    assert outcome.status is Status.STOPPED
    for factor in jp.JointPMF.at(outcome.point, codes.domain).factors:
        np.testing.assert_allclose(factor.sum(axis=0), 1, atol=1e-12)
