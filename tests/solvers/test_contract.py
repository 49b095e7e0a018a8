"""The contract of every solver, and the loop that runs them.

A new method is tested by adding one line to METHODS.
"""

import logging
import signal
import threading
from functools import cache

import numpy as np
import pytest
from benchmarks.reference import ReferenceSweep

import jointpmf as jp
from jointpmf.point import Point
from jointpmf.solvers.aoadmm import AOADMM, Inner
from jointpmf.solvers.least_squares import CoupledLeastSquares
from support import oracle
from support.feasibility import feasible

METHODS = ["aoadmm", "newton", "auto"]

RANDOM = jp.Search(start="random")

SETS = {
    "pairs": {"order": 2},
    "triples": {"order": 3},
    "quadruples": {"order": 4},
    "mixed": {"subsets": [("x0", "x1", "x2"), ("x2", "x3"), ("x1", "x3", "x4"), ("x0",)]},
}


TRUTH = jp.random_pmf(jp.Domain.of_sizes([4, 2, 5, 3, 4]), 3, random_state=1)


@pytest.fixture
def truth():
    return TRUTH


def fit_kind(method, kind, **options):
    """Fit marginals of the truth of one kind, by default for long enough to be near the end."""
    options = {"random_state": 0, "max_iter": 300, "search": RANDOM, "loss": "squares"} | options
    return jp.fit_marginals(TRUTH.marginals(**SETS[kind]), 3, method=method, **options)


# the same fit once, for whoever only looks at it
fitted = cache(fit_kind)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", SETS)
class TestContract:
    def test_the_result_is_feasible(self, method, kind):
        assert feasible(fitted(method, kind).pmf)

    def test_the_objective_does_not_rise(self, method, kind):
        objective = np.array([s.objective for s in fitted(method, kind).history])
        assert (np.diff(objective) <= 1e-12 * objective[0]).all()

    def test_the_reported_objective_is_that_of_the_model(self, truth, method, kind):
        solution = fitted(method, kind)
        marginals = truth.marginals(**SETS[kind])
        expected = oracle.coupled_cost(
            marginals, solution.pmf.weights, solution.pmf.factors, np.ones(len(marginals))
        )
        assert solution.objective == pytest.approx(expected, rel=1e-6)

    def test_exact_marginals_are_fitted(self, truth, method, kind):
        solution = fit_kind(method, kind, max_iter=3000)
        for marginal in truth.marginals(**SETS[kind]):
            found = solution.pmf.marginal(marginal.names).table()
            np.testing.assert_allclose(found, marginal.table, atol=2e-3)

    def test_the_same_seed_gives_the_same_bits(self, method, kind):
        first, second = fitted(method, kind).pmf, fit_kind(method, kind).pmf
        for a, b in zip(first.factors, second.factors, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_other_names_change_nothing(self, truth, method, kind):
        names = {name: f"variable {name}" for name in truth.domain.names}
        domain = jp.Domain(
            [jp.Variable(names[v.name], [f"level {x}" for x in v.levels]) for v in truth.domain]
        )
        marginals = [
            jp.Marginal([names[n] for n in m.names], m.table) for m in truth.marginals(**SETS[kind])
        ]
        renamed = jp.fit_marginals(
            jp.MarginalSet(domain, marginals),
            3,
            loss="squares",
            method=method,
            search=RANDOM,
            random_state=0,
            max_iter=300,
        )
        plain = fitted(method, kind)
        for a, b in zip(plain.pmf.factors, renamed.pmf.factors, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_a_true_start_stays(self, truth, method, kind):
        solution = fit_kind(method, kind, search=jp.Search(truth), max_iter=20)
        assert jp.factor_error(truth, solution.pmf) < 1e-7


@pytest.mark.parametrize("method", METHODS)
class TestRecovery:
    @pytest.mark.parametrize("order", [3, 4])
    def test_a_planted_model_is_found(self, method, order):
        generator = np.random.default_rng(0)
        domain = jp.Domain.of_sizes([4, 2, 5, 3, 4])
        columns = [generator.dirichlet(np.full(size, 0.5), 3).T for size in domain.sizes]
        truth = jp.JointPMF(domain, [0.5, 0.3, 0.2], columns)
        marginals = truth.marginals(order)
        fits = [
            jp.fit_marginals(marginals, 3, method=method, random_state=seed, tol=0)
            for seed in range(3)
        ]
        best = min(fits, key=lambda solution: solution.objective)
        assert jp.factor_error(truth, best.pmf) < 1e-3
        assert jp.tensor_error(truth, best.pmf) < 1e-4

    def test_a_row_twice_is_a_row_of_weight_two(self, truth, method):
        rows = truth.sample(300, random_state=0, backend="codes")
        double = jp.MarginalSet.from_table(np.vstack([rows, rows[:100]]), domain=truth.domain)
        weights = np.where(np.arange(300) < 100, 2.0, 1.0)
        weighted = jp.MarginalSet.from_table(rows, sample_weight=weights, domain=truth.domain)
        fits = [
            jp.fit_marginals(m, 3, method=method, random_state=0, max_iter=50)
            for m in (double, weighted)
        ]
        assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-9)

    def test_a_model_is_learned_from_an_incomplete_table(self, truth, method):
        rows = truth.sample(200_000, random_state=0, backend="codes").astype(float)
        rows[np.random.default_rng(1).random(rows.shape) < 0.3] = np.nan
        marginals = jp.MarginalSet.from_table(rows, 3, domain=truth.domain)
        assert min(m.n_obs for m in marginals) < 80_000
        solution = jp.fit_marginals(marginals, 3, method=method, random_state=0)
        assert jp.tensor_error(truth, solution.pmf) < 0.05

    def test_heavier_marginals_are_fitted_better(self, truth, method):
        other = jp.random_pmf(truth.domain, 3, 7)
        contradicting = jp.MarginalSet(truth.domain, [*truth.marginals(2), *other.marginals(2)])
        n = len(contradicting) // 2
        solution = jp.fit_marginals(
            contradicting, 3, method=method, weighting=[1.0] * n + [1e-6] * n, random_state=0
        )
        errors = [
            np.abs(solution.pmf.marginal(m.names).table() - m.table).max() for m in contradicting
        ]
        assert max(errors[:n]) < min(errors[n:])

    @pytest.mark.parametrize("sizes", [[1, 3, 1], [1], [2, 1, 1, 2]])
    def test_variables_of_one_level(self, method, sizes):
        pmf = jp.random_pmf(jp.Domain.of_sizes(sizes), 2, 0)
        solution = jp.fit_marginals(pmf.marginals(1), 2, method=method, random_state=0)
        assert feasible(solution.pmf)
        np.testing.assert_allclose(solution.pmf.factors[0].sum(axis=0), 1)

    def test_a_rank_of_one_is_independence(self, truth, method):
        solution = jp.fit_marginals(truth.marginals(1), 1, method=method, random_state=0)
        for n, name in enumerate(truth.domain.names):
            expected = truth.marginal([name]).table()
            np.testing.assert_allclose(solution.pmf.factors[n][:, 0], expected, atol=1e-6)


def test_a_sweep_is_the_reference_sweep(truth):
    marginals = truth.marginals(3)
    start = jp.random_pmf(truth.domain, 4, 0)
    solver = AOADMM(CoupledLeastSquares(marginals, 4), Inner(15, precision=0.0, least_tol=0.0))
    reference = ReferenceSweep(marginals, 4, max_iter=15, tol=0.0)
    state = solver.start(Point.of_pmf(start))
    weights, factors = start.weights, start.factors
    for _ in range(5):
        state = solver.step(state)
        weights, factors = reference(weights, factors)
    np.testing.assert_allclose(state.point.weights, weights, atol=1e-12)
    np.testing.assert_allclose(state.point.factors, np.concatenate(factors), atol=1e-12)


def fit(marginals, rank, **options):
    """Fit by a method that takes its time, so that there is something to watch."""
    return jp.fit_marginals(marginals, rank, **({"method": "aoadmm", "search": RANDOM} | options))


class TestLoop:
    def test_the_budget_is_kept_and_said(self, truth):
        solution = fit(truth.marginals(3), 3, max_iter=7, tol=0, random_state=0)
        assert solution.status is jp.Status.MAX_ITER
        assert solution.n_iter == 7
        assert [step.iteration for step in solution.history] == list(range(8))
        assert "budget" in str(solution)

    def test_no_iterations_return_the_start(self, truth):
        start = jp.random_pmf(truth.domain, 3, 5)
        solution = fit(truth.marginals(3), 3, search=jp.Search(start), max_iter=0)
        assert jp.factor_error(start, solution.pmf) < 1e-15
        assert solution.n_iter == 0

    def test_convergence_is_said(self, truth):
        solution = fit(truth.marginals(3), 3, tol=1e-2, random_state=0)
        assert solution.status is jp.Status.CONVERGED
        last = solution.history[-2:]
        assert last[0].objective - last[1].objective < 1e-2 * last[0].objective

    def test_the_callback_sees_every_model_and_can_stop(self, truth):
        seen = []

        def callback(step, pmf):
            seen.append((step.iteration, feasible(pmf)))
            return step.iteration == 4

        solution = fit(truth.marginals(3), 3, random_state=0, callback=callback)
        assert seen == [(k, True) for k in range(1, 5)]
        assert solution.status is jp.Status.STOPPED

    def test_ctrl_c_returns_the_best_model_so_far(self, truth):
        def interrupt(step, _):
            if step.iteration == 5:
                raise KeyboardInterrupt

        solution = fit(truth.marginals(3), 3, random_state=0, callback=interrupt)
        assert solution.status is jp.Status.STOPPED
        assert solution.n_iter == 5
        assert feasible(solution.pmf)
        lowest = min(step.objective for step in solution.history)
        assert solution.objective == pytest.approx(lowest, rel=1e-9)

    def test_an_interrupt_before_the_first_iteration_returns_the_start(self, truth, monkeypatch):
        def interrupt(self, point):
            raise KeyboardInterrupt

        monkeypatch.setattr(AOADMM, "start", interrupt)
        start = jp.random_pmf(truth.domain, 3, 5)
        solution = fit(truth.marginals(3), 3, search=jp.Search(start))
        assert (solution.status, solution.n_iter) == (jp.Status.STOPPED, 0)
        assert jp.factor_error(start, solution.pmf) < 1e-15

    def test_a_real_interrupt_in_the_middle_of_a_sweep(self):
        truth = jp.random_pmf(jp.Domain.of_sizes([8] * 8), 6, 0)
        marginals = truth.marginals(3)
        fit(marginals, 6, random_state=0, max_iter=1)
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        solution = fit(marginals, 6, random_state=0, tol=0, max_iter=10**6)
        assert solution.status is jp.Status.STOPPED
        assert feasible(solution.pmf)

    def test_nothing_is_printed_and_the_end_is_logged(self, truth, capfd, caplog):
        with caplog.at_level(logging.INFO, logger="jointpmf"):
            fit(truth.marginals(3), 3, max_iter=3, random_state=0)
        assert capfd.readouterr() == ("", "")
        assert "after 3 iterations" in caplog.text


class Judge:
    """A validation function that notes every model it is shown."""

    def __init__(self, cost):
        self.cost, self.seen = cost, []

    def __call__(self, pmf):
        self.seen.append(pmf)
        return self.cost(len(self.seen) - 1, pmf)


@pytest.mark.parametrize("method", METHODS)
class TestValidation:
    @pytest.fixture
    def noisy(self, truth):
        """Return triples of few rows, which can be fitted too well."""
        rows = truth.sample(150, random_state=0, backend="codes")
        return jp.MarginalSet.from_table(rows, 3, domain=truth.domain)

    def fit(self, marginals, method, validation, **options):
        options = {"search": RANDOM, "random_state": 0, "tol": 0, "max_iter": 400} | options
        return jp.fit_marginals(marginals, 8, method=method, validation=validation, **options)

    def test_the_model_that_predicts_other_rows_best_is_returned(self, noisy, truth, method):
        judge = Judge(lambda _, pmf: jp.tensor_error(truth, pmf))
        shown = []
        solution = self.fit(noisy, method, judge, callback=lambda *line: shown.append(line))
        costs = [jp.tensor_error(truth, pmf) for pmf in judge.seen]
        best = int(np.argmin(costs))
        assert 0 < best < len(costs) - 1
        assert solution.validation == costs[best] == jp.tensor_error(truth, solution.pmf)
        assert [step.validation for step in solution.history] == costs
        assert [step.validation for step, _ in shown] == costs[1:]
        for seen, (_, pmf) in zip(judge.seen[1:], shown, strict=True):
            np.testing.assert_array_equal(seen.weights, pmf.weights)
        assert costs[best] < costs[-1]

    def test_it_ends_when_patience_is_at_its_end(self, noisy, method):
        judge = Judge(lambda k, _: abs(k - 3))
        solution = self.fit(noisy, method, judge)
        assert solution.status is jp.Status.VALIDATED
        assert (solution.n_iter, len(judge.seen)) == (3 + 50, 4 + 50)
        assert solution.validation == 0
        for a, b in zip(solution.pmf.factors, judge.seen[3].factors, strict=True):
            np.testing.assert_array_equal(a, b)
        tables = [np.asarray(marginal.table) for marginal in noisy]
        fitted = [solution.pmf.marginal(marginal.names).table() for marginal in noisy]
        squares = [((a - b) ** 2).sum() for a, b in zip(tables, fitted, strict=True)]
        assert solution.objective == pytest.approx(sum(squares) / 2, rel=1e-9)

    def test_it_does_not_change_the_path(self, noisy, method):
        options = {"max_iter": 15, "search": RANDOM}
        judged = self.fit(noisy, method, lambda pmf: 0.0, **options)
        by = {"method": method, "loss": "squares"}
        free = jp.fit_marginals(noisy, 8, random_state=0, tol=0, **by, **options)
        ours, theirs = ([step.objective for step in s.history] for s in (judged, free))
        assert ours[: len(theirs)] == theirs[: len(ours)]
        assert judged.validation == 0
        assert free.validation is None

    def test_a_cost_that_is_no_number_is_never_the_least(self, noisy, method):
        judge = Judge(lambda k, _: float("nan") if k % 2 == 0 else 10 - k)
        solution = self.fit(noisy, method, judge, max_iter=6)
        assert solution.validation == 5
        np.testing.assert_array_equal(solution.pmf.weights, judge.seen[5].weights)

    def test_it_must_be_rows_or_callable(self, noisy, method):
        with pytest.raises(jp.JointPMFError, match=r"a table of rows or callable, not 0\.2"):
            self.fit(noisy, method, 0.2)
