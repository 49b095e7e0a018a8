"""What is held out against brute force, and the loop that stops by it."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf import threads
from jointpmf.data.codes import Codes
from jointpmf.point import Point
from jointpmf.rows.table import Rows
from jointpmf.solvers.em import EM
from jointpmf.solvers.held_out import Answers, HeldOut, HeldOutCells
from jointpmf.solvers.loop import Loop, State, iterate
from jointpmf.solvers.starts.random import point_at_rows
from support import oracle


def random_problem(seed, n_variables=4, n_rows=25, holes=0.3, rank=3):
    """Return a model, a table with holes, and weights of its rows."""
    generator = np.random.default_rng(seed)
    domain = oracle.random_domain(generator, n_variables)
    table = oracle.random_table(generator, domain, n_rows, holes)
    table[0] = 0
    return jp.random_pmf(domain, rank, generator), table, generator.random(n_rows) + 0.1


def cost_of_rows(pmf, table, weights=None):
    held_out = HeldOut(Rows.of_codes(Codes(pmf.domain, np.asarray(table)), weights))
    return held_out.cost(Point.of_pmf(pmf))


def cost_of_cells(pmf, table, hidden, weights=None, scoring="likelihood"):
    return cells_of(pmf, table, hidden, weights, scoring).cost(Point.of_pmf(pmf))


def cells_of(pmf, table, hidden, weights=None, scoring="likelihood"):
    return HeldOutCells(Codes(pmf.domain, np.asarray(table)), np.asarray(hidden), weights, scoring)


def expected_cost_of_cells(pmf, table, hidden, weights, scoring="likelihood"):
    """Return what each hidden cell costs given the cells of its row that are not, on average."""
    losses, total = 0.0, 0.0
    for row, is_hidden, weight in zip(table.tolist(), hidden, weights, strict=True):
        visible = [-1 if hide else code for code, hide in zip(row, is_hidden, strict=True)]
        for n, code in enumerate(row):
            if is_hidden[n] and code >= 0:
                chances = oracle.row_prediction(pmf, visible, n)
                values = np.array(pmf.domain.variables[n].values)
                error = (values[code] - values @ chances) ** 2
                losses += weight * (error if scoring == "error" else -np.log(chances[code]))
                total += weight
    return np.sqrt(losses / total) if scoring == "error" else losses / total


def corner_pmf(seed, sizes=(3, 2, 3, 2), rank=2):
    """Return a model of few possible rows: every component has one level of most variables."""
    generator = np.random.default_rng(seed)
    columns = [np.eye(size)[:, generator.integers(size, size=rank)] for size in sizes[:-1]]
    columns.append(generator.dirichlet(np.ones(sizes[-1]), rank).T)
    return jp.JointPMF(jp.Domain.of_sizes(sizes), generator.dirichlet(np.ones(rank)), columns)


def logs_or_errors(pmf, table, hidden, scoring):
    """Return what the model itself says of every hidden cell, in the order of the table."""
    visible = Codes(pmf.domain, np.where(hidden, -1, table))
    found = []
    for m, n in zip(*np.nonzero(hidden & (table >= 0)), strict=True):
        name = pmf.domain.names[n]
        if scoring == "error":
            found.append(pmf.expectation(visible, name)[m] - pmf.domain[name].values[table[m, n]])
        else:
            found.append(np.log(pmf.predict_proba(visible, name)[m, table[m, n]]))
    return np.array(found)


class TestRows:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.8]))
    def test_the_cost_is_minus_the_mean_log_probability(self, seed, n_variables, holes):
        pmf, table, weights = random_problem(seed, n_variables, holes=holes)
        is_seen = (table >= 0).any(axis=1)
        logs = [np.log(oracle.row_probability(pmf, row)) for row in table[is_seen]]
        expected = -np.average(logs, weights=weights[is_seen])
        assert cost_of_rows(pmf, table, weights) == pytest.approx(expected, rel=1e-10, abs=1e-12)
        assert cost_of_rows(pmf, table) == pytest.approx(-np.mean(logs), rel=1e-10, abs=1e-12)

    def test_it_is_that_of_the_point_given(self):
        pmf, table, _ = random_problem(0)
        other = jp.random_pmf(pmf.domain, 3, 99)
        held_out = HeldOut(Rows.of_codes(Codes(pmf.domain, table)))
        first = held_out.cost(Point.of_pmf(pmf))
        assert held_out.cost(Point.of_pmf(other)) == cost_of_rows(other, table) != first
        assert held_out.cost(Point.of_pmf(pmf)) == first

    def test_impossible_rows_are_finite_and_dear(self):
        pmf = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2), np.eye(2)])
        possible = [[0, 0], [1, 1]]
        costs = [cost_of_rows(pmf, possible + [[0, 1]] * k) for k in range(3)]
        assert costs[0] == pytest.approx(np.log(2))
        assert np.isfinite(costs).all()
        assert costs[0] + 100 < costs[1] < costs[2]

    @pytest.mark.parametrize(("rank", "rel"), [(1, 1e-10), (3, 1e-10), (300, 1e-5)])
    def test_rows_given_some_of_their_cells(self, rank, rel):
        """Minus the mean log-probability of what one has and the other has not.

        Many components are judged in single precision.
        """
        pmf, table, weights = random_problem(2, n_variables=3, holes=0.0, rank=rank)
        without = table.copy()
        without[:, 1] = -1
        rows, given_rows = (
            Rows.of_codes(Codes(pmf.domain, part), weights) for part in (table, without)
        )
        found = HeldOut(rows, given_rows).cost(Point.of_pmf(pmf))
        logs = [np.log(oracle.row_prediction(pmf, row, 1)[row[1]]) for row in table]
        assert found == pytest.approx(-np.average(logs, weights=weights), rel=rel)

    def test_given_nothing_and_what_cannot_happen(self):
        """What is given and impossible costs nothing more than the impossible row itself."""
        pmf = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [1.0], [np.array([[1.0], [0.0]])] * 2)
        point = Point.of_pmf(pmf)

        def cost(table, given_table):
            rows = (Rows.of_codes(Codes(pmf.domain, np.array(t))) for t in (table, given_table))
            return HeldOut(*rows).cost(point)

        assert cost([[0, 0]], [[-1, -1]]) == 0
        alone = cost_of_rows(pmf, [[1, 0]])
        assert alone > 100
        assert cost([[1, 0]], [[1, -1]]) == alone


SCORINGS = ["likelihood", "error"]


@pytest.mark.parametrize("scoring", SCORINGS)
class TestCells:
    @settings(max_examples=40, deadline=None)
    @given(
        seed=st.integers(0, 10**6),
        n_variables=st.integers(1, 5),
        holes=st.sampled_from([0.0, 0.3]),
        part=st.sampled_from([0.1, 0.5, 1.0]),
    )
    def test_the_cost_is_that_of_each_cell_given_what_is_not_hidden(
        self, scoring, seed, n_variables, holes, part
    ):
        pmf, table, weights = random_problem(seed, n_variables, holes=holes)
        hidden = np.random.default_rng(seed + 1).random(table.shape) < part
        hidden[0, 0] = True
        for given_weights in (weights, None):
            rows_count = np.ones(len(table)) if given_weights is None else weights
            expected = expected_cost_of_cells(pmf, table, hidden, rows_count, scoring)
            found = cost_of_cells(pmf, table, hidden, given_weights, scoring)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)

    def test_it_is_what_the_model_says_of_rows_it_finds_impossible_too(self, scoring):
        """Then the evidence is not used, as by every other question to a model."""
        pmf = corner_pmf(0)
        table = oracle.all_cells(pmf.domain)
        hidden = np.zeros(table.shape, bool)
        hidden[:, 3] = True
        hidden[::3, 1] = True
        losses = logs_or_errors(pmf, table, hidden, "error")
        visible = np.where(hidden, -1, table)
        assert 0 < np.isneginf(pmf.log_probability(visible)).sum() < len(table)
        if scoring == "error":
            expected = np.sqrt((losses**2).mean())
        else:
            with np.errstate(divide="ignore"):
                logs = logs_or_errors(pmf, table, hidden, "likelihood")
            assert np.isneginf(logs).any()
            expected = -np.maximum(logs, -1e6).mean()
        assert cost_of_cells(pmf, table, hidden, None, scoring) == pytest.approx(expected)

    def test_hidden_cells_that_are_missing_do_not_count(self, scoring):
        pmf, table, _ = random_problem(1)
        hidden = np.zeros(table.shape, bool)
        hidden[:3] = True
        without = hidden & (table >= 0)
        assert without.sum() < hidden.sum()
        costs = [cost_of_cells(pmf, table, part, None, scoring) for part in (hidden, without)]
        assert costs[0] == costs[1]
        assert len(cells_of(pmf, table, hidden)) == without.sum()

    def test_a_row_of_weight_two_is_a_row_twice_and_one_of_weight_zero_is_none(self, scoring):
        pmf, table, _ = random_problem(3)
        hidden = np.random.default_rng(0).random(table.shape) < 0.4
        times = np.arange(len(table)) % 3
        weighted = cost_of_cells(pmf, table, hidden, times.astype(float), scoring)
        repeated = (np.repeat(part, times, axis=0) for part in (table, hidden))
        assert weighted == pytest.approx(cost_of_cells(pmf, *repeated, None, scoring), rel=1e-13)

    def test_other_hidden_cells_of_a_row_are_not_used(self, scoring):
        domain = jp.Domain.of_sizes([2, 2, 2])
        pmf = jp.JointPMF(domain, [0.5, 0.5], [np.array([[0.9, 0.1], [0.1, 0.9]])] * 3)
        two, one = ([[True, True, False]], [[True, False, False]])
        given_one = 0.9 * 0.9 + 0.1 * 0.1
        given_two = (0.9**3 + 0.1**3) / (0.9**2 + 0.1**2)
        for hidden, chance in (two, given_one), (one, given_two):
            expected = 1 - chance if scoring == "error" else -np.log(chance)
            found = cost_of_cells(pmf, [[0, 0, 0]], hidden, None, scoring)
            assert found == pytest.approx(expected)

    def test_a_cell_alone_in_its_row_has_its_marginal(self, scoring):
        pmf = jp.random_pmf(jp.Domain.of_sizes([3, 2]), 2, 0)
        marginal = pmf.marginal(["x0"]).table()
        expected = 2 - marginal @ [0, 1, 2] if scoring == "error" else -np.log(marginal[2])
        table, hidden = [[2, -1], [2, 1]], [[True, False], [False, False]]
        assert cost_of_cells(pmf, table, hidden, None, scoring) == pytest.approx(expected)

    def test_the_patience_is_what_was_asked(self, scoring):
        codes = Codes(jp.Domain.of_sizes([2]), np.array([[0], [1]]))
        assert HeldOutCells(codes, codes.array == 0, None, scoring, 7).patience == 7
        assert HeldOutCells(codes, codes.array == 0, None, scoring).patience > 0


class TestCellsOfAllKinds:
    def test_an_impossible_cell_is_finite_and_dear(self):
        pmf = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2), np.eye(2)])
        table = np.array([[0, 0], [0, 1]])
        hidden = np.array([[True, False], [True, False]])
        assert cost_of_cells(pmf, table[:1], hidden[:1]) == pytest.approx(0)
        assert 100 < cost_of_cells(pmf, table, hidden) < np.inf

    def test_by_error_only_variables_with_values_count(self):
        domain = jp.Domain(
            [
                jp.Variable("vote", ("no", "yes")),
                jp.Variable("size", ("S", "L", "M"), values=(1.0, 40.0, 5.0)),
            ]
        )
        pmf = jp.random_pmf(domain, 2, 0)
        table, hidden = np.array([[0, 1], [1, 2], [0, 0]]), np.ones((3, 2), bool)
        hidden[1, 0] = False
        cells = cells_of(pmf, table, hidden, None, "error")
        assert len(cells) == 3
        assert len(cells_of(pmf, table, hidden)) == 5
        visible = Codes(domain, np.where(hidden, -1, table))
        errors = pmf.expectation(visible, "size") - [40, 5, 1]
        assert cells.cost(Point.of_pmf(pmf)) == pytest.approx(np.sqrt((errors**2).mean()))

    def test_the_truth_costs_least_on_average(self):
        truth = jp.JointPMF(
            jp.Domain.of_sizes([3] * 4),
            [0.5, 0.5],
            [np.array([[0.8, 0.1], [0.1, 0.1], [0.1, 0.8]])] * 4,
        )
        table = truth.sample(2000, random_state=0, backend="codes")
        hidden = np.random.default_rng(0).random(table.shape) < 0.3
        independent = jp.JointPMF(
            truth.domain, [1.0], [f.mean(axis=1)[:, None] for f in truth.factors]
        )
        for scoring in SCORINGS:
            costs = [
                cost_of_cells(pmf, table, hidden, None, scoring)
                for pmf in (truth, independent, jp.random_pmf(truth.domain, 2, 0))
            ]
            assert costs[0] < min(costs[1:]) - 0.05


# threads that wait for each other wait for ever, so that they do it in a process of their own
MANY_BLOCKS = """
import numpy as np
import jointpmf as jp
from jointpmf import pmf, threads
from jointpmf.solvers import held_out
from jointpmf.point import Point

split = threads.row_blocks
pmf.row_blocks = lambda n_rows: split(n_rows, 10)  # a block of cells is many blocks of rows
held_out.BLOCK = 100
model = jp.random_pmf(jp.Domain.of_sizes([3, 3]), 2, 0)
codes = jp.Codes(model.domain, model.sample(1000, random_state=0, backend="codes"))
cells = held_out.HeldOutCells(codes, np.tile([True, False], (1000, 1)))
with threads.limited_to(2):
    for _ in range(50):
        cells.cost(Point.of_pmf(model))
"""


class TestBlocks:
    def test_threads_do_not_wait_for_each_other(self):
        subprocess.run([sys.executable, "-c", MANY_BLOCKS], check=True, timeout=60)

    @pytest.mark.parametrize("scoring", SCORINGS)
    def test_any_size_and_any_number_of_threads_give_the_same_bits(self, scoring):
        pmf, table, weights = random_problem(5, n_rows=200)
        hidden = np.random.default_rng(0).random(table.shape) < 0.4
        cells = cells_of(pmf, table, hidden, weights, scoring)
        expected = cells.answers(Point.of_pmf(pmf))
        for at_once, count in (1, 1), (50, 1), (50, 2):
            with threads.limited_to(count):
                found = cells.answers(Point.of_pmf(pmf), at_once)
            np.testing.assert_array_equal(found.said, expected.said)
            np.testing.assert_array_equal(found.log_given, expected.log_given)


@pytest.mark.parametrize("scoring", SCORINGS)
class TestAnswers:
    """Several models together say what the one model says that `average` makes of them."""

    @settings(max_examples=40, deadline=None)
    @given(
        seed=st.integers(0, 10**6),
        n_models=st.integers(1, 4),
        corners=st.booleans(),
        with_zeros=st.booleans(),
    )
    def test_they_are_those_of_the_average(self, scoring, seed, n_models, corners, with_zeros):
        generator = np.random.default_rng(seed)
        domain = jp.Domain.of_sizes((3, 2, 3, 2))
        pmfs = [
            corner_pmf(seed + k) if corners else jp.random_pmf(domain, k + 1, generator)
            for k in range(n_models)
        ]
        shares = generator.random(n_models) + 0.01
        if with_zeros:
            shares[1:] *= generator.integers(2, size=n_models - 1)
        table = oracle.all_cells(domain)
        table[generator.random(table.shape) < 0.2] = -1
        hidden = generator.random(table.shape) < 0.4
        hidden[0], table[0] = True, 0
        cells = cells_of(pmfs[0], table, hidden, None, scoring)
        answers = Answers.of_all([cells.answers(Point.of_pmf(pmf)) for pmf in pmfs])
        assert answers.said.shape == (n_models, len(cells))
        for given_shares in (shares, None):
            together = Point.of_pmf(jp.average(pmfs, given_shares))
            (said,) = cells.answers(together).said
            np.testing.assert_allclose(answers.combined(given_shares), said, rtol=1e-12, atol=1e-12)
            assert cells.cost_of(answers, given_shares) == pytest.approx(
                cells.cost(together), rel=1e-9, abs=1e-12
            )

    def test_the_scale_of_shares_does_not_matter(self, scoring):
        pmfs = [jp.random_pmf(jp.Domain.of_sizes((3, 2, 3)), 2, seed) for seed in (0, 1)]
        table, hidden = np.array([[0, 1, 2], [2, 0, 0]]), np.eye(3, dtype=bool)[:2]
        cells = cells_of(pmfs[0], table, hidden, None, scoring)
        answers = Answers.of_all([cells.answers(Point.of_pmf(pmf)) for pmf in pmfs])
        one, other = (answers.combined(scale * np.array([1.0, 3.0])) for scale in (1.0, 1e-3))
        np.testing.assert_allclose(one, other, rtol=1e-13)
        alone = answers.combined(np.array([0.0, 1.0]))
        np.testing.assert_array_equal(alone, answers.said[1])
        assert np.abs(one - alone).max() > 1e-4

    def test_a_thousand_visible_cells_do_not_underflow(self, scoring):
        domain = jp.Domain.of_sizes([4] * 1001)
        pmfs = [jp.random_pmf(domain, 2, seed) for seed in (0, 1)]
        table = pmfs[0].sample(3, random_state=0, backend="codes")
        hidden = np.zeros(table.shape, bool)
        hidden[:, 0] = True
        cells = cells_of(pmfs[0], table, hidden, None, scoring)
        answers = Answers.of_all([cells.answers(Point.of_pmf(pmf)) for pmf in pmfs])
        assert answers.log_given.max() < np.log(5e-324)
        np.testing.assert_allclose(answers.combined(), answers.said[0], rtol=1e-12)
        assert np.abs(answers.said[0] - answers.said[1]).max() > 1e-4


class Script:
    """A solver whose objectives are written down; the point says which iteration it is."""

    floor = -np.inf

    def __init__(self, objectives, relative=False):
        self.domain = jp.Domain.of_sizes([2])
        self.objectives, self.relative = list(objectives), relative
        self.at = 0

    def start(self, point):
        return State(self.point(0), self.objectives[0])

    def step(self, state):
        self.at += 1
        last = min(self.at, len(self.objectives) - 1)
        return State(self.point(self.at), self.objectives[last])

    def point(self, iteration):
        return Point(np.ones(1), np.array([[0.001 * iteration], [1 - 0.001 * iteration]]))


class Costs:
    """A validation part whose costs are written down."""

    def __init__(self, costs, patience, min_gain):
        self.costs, self.patience, self.min_gain = costs, patience, min_gain

    def cost(self, point):
        return self.costs[iteration_of(point.factors[0, 0])]


def iteration_of(probability):
    return round(1000 * float(probability))


def run(objectives, costs=None, patience=3, min_gain=0.0, relative=False, **limits):
    solver = Script(objectives, relative)
    validation = None if costs is None else Costs(costs, patience, min_gain)
    loop = Loop(**{"max_iter": 50, "tol": 0.0} | limits)
    return iterate(solver, solver.point(0), loop, validation=validation)


def returned(outcome):
    """Return which iteration's point an outcome holds."""
    return iteration_of(outcome.point.factors[0, 0])


FALLING = [float(100 - k) for k in range(51)]


class TestStoppingByValidation:
    def test_the_best_model_is_returned_after_patience(self):
        solution = run(FALLING, [5, 4, 3, 2, 3, 2.5, 4, 1, 0], patience=3)
        assert solution.status is jp.Status.VALIDATED
        assert returned(solution) == 3
        assert solution.n_iter == 6
        assert (solution.validation, solution.objective) == (2, 97)
        assert "validation part stopped improving" in str(solution)

    def test_an_improvement_in_time_starts_patience_anew(self):
        solution = run(FALLING, [5, 4, 4.5, 4.5, 3, 6, 6, 6, 0], patience=3)
        assert (returned(solution), solution.n_iter) == (4, 7)

    @pytest.mark.parametrize(("min_gain", "n_iter"), [(0.0, 9), (0.3, 8), (0.5, 7), (0.7, 5)])
    def test_too_little_gained_in_time_ends_it_too(self, min_gain, n_iter):
        costs = [5, 4, 3, 2.8, 2.6, 2.4, 2.2, 2.3, 2.3, 2.3, 0]
        solution = run(FALLING, costs, patience=3, min_gain=min_gain)
        assert (solution.status, solution.n_iter) == (jp.Status.VALIDATED, n_iter)
        assert solution.validation == min(costs[: n_iter + 1])

    def test_the_first_of_equals_is_the_best(self):
        solution = run(FALLING, [5, 4, 4, 4, 4, 4], patience=3)
        assert (returned(solution), solution.n_iter) == (1, 4)

    def test_the_start_can_be_the_best(self):
        solution = run(FALLING, [1, 2, 3, 4, 5], patience=2)
        assert (returned(solution), solution.n_iter) == (0, 2)
        assert solution.objective == 100

    def test_the_history_has_every_cost(self):
        costs = [5, 4, 3, 2, 3, 2.5, 4]
        solution = run(FALLING, costs, patience=3)
        assert [step.validation for step in solution.history] == costs
        assert [step.objective for step in solution.history] == FALLING[:7]

    def test_without_one_the_history_and_the_solution_have_none(self):
        solution = run(FALLING, max_iter=4)
        assert [step.validation for step in solution.history] == [None] * 5
        assert solution.validation is None
        assert returned(solution) == 4

    def test_the_budget_can_end_before_patience(self):
        solution = run(FALLING, [5, 3, 4, 4, 4], patience=10, max_iter=4)
        assert (solution.status, returned(solution)) == (jp.Status.MAX_ITER, 1)

    def test_convergence_can_come_before_patience(self):
        solution = run([9, 8, 7, 7, 7, 7], [5, 3, 4, 4, 4, 4], patience=10, tol=1e-6)
        assert (solution.status, returned(solution)) == (jp.Status.CONVERGED, 1)
        assert solution.n_iter == 4
        assert (solution.objective, solution.validation) == (8, 3)

    def test_a_callback_sees_the_cost_and_the_best_is_returned_all_the_same(self):
        seen = []

        def callback(step, point):
            seen.append((step.validation, iteration_of(point.factors[0, 0])))
            return step.iteration == 3

        solution = run(FALLING, [5, 2, 4, 4, 4], patience=10, callback=callback)
        assert seen == [(2, 1), (4, 2), (4, 3)]
        assert (solution.status, returned(solution)) == (jp.Status.STOPPED, 1)

    def test_without_one_the_lowest_objective_is_the_best(self):
        assert returned(run([9, 8, 7, 8, 9, 10], max_iter=5)) == 2


class TestTolerance:
    """Two steps in a row must be small: as an amount, or as a part of the objective."""

    STEPS = tuple(1000.0 - 0.5 * k for k in range(40))

    @pytest.mark.parametrize(
        ("relative", "tol", "converges"),
        [(False, 0.4, False), (False, 0.6, True), (True, 4e-4, False), (True, 6e-4, True)],
    )
    def test_an_amount_or_a_part(self, relative, tol, converges):
        solution = run(self.STEPS, tol=tol, relative=relative, max_iter=30)
        status = jp.Status.CONVERGED if converges else jp.Status.MAX_ITER
        assert (solution.status, solution.n_iter) == (status, 2 if converges else 30)

    def test_one_small_step_is_not_enough(self):
        solution = run([9, 8, 8, 7, 6, 6, 5, 5, 5, 4], tol=1e-3)
        assert solution.n_iter == 8

    def test_a_part_of_a_small_objective_is_smaller_than_the_amount(self):
        objectives = [1e-3 * 0.9**k for k in range(20)]
        assert run(objectives, tol=0.05, relative=False, max_iter=15).n_iter == 2
        assert run(objectives, tol=0.05, relative=True, max_iter=15).n_iter == 15

    def test_em_takes_amounts(self):
        """Nats per row: a table and the same table twice converge alike."""
        assert EM.relative is False
        pmf, table, _ = random_problem(0, n_rows=60, rank=2)
        start = Point.of_pmf(pmf)
        lengths = []
        for rows in (table, np.vstack([table, table])):
            em = EM(Rows.of_codes(Codes(pmf.domain, rows)), 2)
            lengths.append(iterate(em, start, Loop(500, 1e-6)).n_iter)
        assert 2 < lengths[0] == lengths[1] < 500


class TestEarlyStopping:
    """All parts together: too many components for too few rows."""

    @pytest.fixture
    def problem(self):
        truth = jp.random_pmf(jp.Domain.of_sizes([5] * 6), 2, random_state=0)
        table = truth.sample(300, random_state=0, backend="codes")
        fitted, other = (Rows.of_codes(Codes(truth.domain, t)) for t in (table[:150], table[150:]))
        return fitted, HeldOut(other), point_at_rows(fitted, 12, np.random.default_rng(0))

    def test_the_model_returned_predicts_best_of_all_iterates(self, problem):
        fitted, held_out, start = problem
        costs = []

        def callback(step, point):
            costs.append(held_out.cost(point))

        em, loop = EM(fitted, 12, accelerated=False), Loop(500, 1e-10, callback)
        solution = iterate(em, start, loop, validation=held_out)
        assert solution.status is jp.Status.VALIDATED
        assert solution.validation == min(step.validation for step in solution.history)
        assert held_out.cost(solution.point) == pytest.approx(solution.validation)
        np.testing.assert_allclose(costs, [step.validation for step in solution.history[1:]])
        best = int(np.argmin([step.validation for step in solution.history]))
        assert solution.n_iter == best + held_out.patience
        assert solution.objective == solution.history[best].objective

    def test_it_predicts_better_than_the_fit_that_converged(self, problem):
        fitted, held_out, start = problem
        loop = Loop(max_iter=500, tol=1e-8)
        early = iterate(EM(fitted, 12, accelerated=False), start, loop, validation=held_out)
        late = iterate(EM(fitted, 12), start, loop)
        assert late.objective < early.objective
        assert early.validation < held_out.cost(late.point)
