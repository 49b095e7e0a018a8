"""EM against the textbook, one row after the other; extrapolation against plain steps."""

from itertools import pairwise

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
from jointpmf.solvers.loop import Loop, iterate
from jointpmf.solvers.starts.random import point_at_rows
from support import oracle
from support.feasibility import is_feasible

PRIORS = ["none", "uniform", "marginal"]


class Problem:
    """A random table with holes and weights, a prior, and a random model to begin at."""

    def __init__(self, seed, n_variables=4, rank=3, n_rows=40, holes=0.3, prior="none"):
        generator = np.random.default_rng(seed)
        self.domain = oracle.random_domain(generator, n_variables)
        self.table = oracle.random_table(generator, self.domain, n_rows, holes)
        self.table[0] = 0  # every variable is observed somewhere
        self.weights = generator.random(n_rows) + 0.1
        self.rows = Rows.of_codes(Codes(self.domain, self.table), self.weights)
        is_seen = (self.table >= 0).any(axis=1)  # the others say nothing
        self.data = self.table[is_seen], self.weights[is_seen]
        self.rank = rank
        self.start = Point.of_pmf(jp.random_pmf(self.domain, rank, generator))
        self.pseudo_counts = None
        if prior == "uniform":
            self.pseudo_counts = [np.full(size, 0.7) for size in self.domain.sizes]
        if prior == "marginal":
            self.pseudo_counts = [0.7 * s * generator.dirichlet(np.ones(s)) for s in self.sizes]

    @property
    def sizes(self):
        return self.domain.sizes

    def em(self, accelerated):
        prior = self.pseudo_counts
        stacked = None if prior is None else np.concatenate(prior)[:, None]
        return EM(self.rows, self.rank, stacked, accelerated)

    def split(self, point):
        return point.weights, np.split(point.factors, self.domain.offsets[1:-1])

    def objective(self, point):
        return oracle.em_objective(*self.split(point), *self.data, self.pseudo_counts)

    def step(self, weights, factors):
        return oracle.em_step(weights, factors, *self.data, self.pseudo_counts)


def assert_near(point, weights, factors, **tolerance):
    np.testing.assert_allclose(point.weights, weights, **tolerance)
    np.testing.assert_allclose(point.factors, np.concatenate(factors), **tolerance)


def states_of(em, start, n_steps):
    """Return the state at the start and after every step."""
    states = [em.start(start)]
    for _ in range(n_steps):
        states.append(em.step(states[-1]))
    return states


class TestPlainSteps:
    @pytest.mark.parametrize("prior", PRIORS)
    @pytest.mark.parametrize("holes", [0.0, 0.3, 0.8])
    @pytest.mark.parametrize("rank", [1, 3, 5])
    def test_they_are_those_of_the_textbook(self, rank, holes, prior):
        problem = Problem(rank, rank=rank, holes=holes, prior=prior)
        weights, factors = problem.split(problem.start)
        for state in states_of(problem.em(accelerated=False), problem.start, 3):
            assert_near(state.point, weights, factors, rtol=1e-10, atol=1e-14)
            assert state.objective == pytest.approx(problem.objective(state.point), rel=1e-12)
            weights, factors = problem.step(weights, factors)

    def test_a_row_of_weight_two_is_a_row_twice(self):
        problem = Problem(0)
        doubled = np.vstack([problem.table, problem.table[:7]])
        weights = np.where(np.arange(len(problem.table)) < 7, 2.0, 1.0)
        ends = [
            states_of(EM(rows, 3, accelerated=False), problem.start, 3)[-1]
            for rows in (
                Rows.of_codes(Codes(problem.domain, doubled)),
                Rows.of_codes(Codes(problem.domain, problem.table), weights),
            )
        ]
        np.testing.assert_allclose(ends[0].point.factors, ends[1].point.factors, rtol=1e-12)
        assert ends[0].objective == pytest.approx(ends[1].objective, rel=1e-13)

    def test_rank_one_is_there_after_one_step(self):
        problem = Problem(0, rank=1)
        state = states_of(problem.em(accelerated=False), problem.start, 1)[-1]
        np.testing.assert_allclose(state.point.factors[:, 0], problem.rows.marginal, rtol=1e-12)

    def test_expected_counts_are_those_at_the_state(self):
        problem = Problem(3, prior="uniform")
        em = problem.em(accelerated=True)
        state = states_of(em, problem.start, 2)[-1]
        levels, components = oracle.expected_counts(*problem.split(state.point), *problem.data)
        expected = np.vstack([*levels, components])
        np.testing.assert_allclose(em.expected_counts(state), expected, rtol=1e-10, atol=1e-13)

    def test_an_impossible_row_makes_the_objective_infinite(self):
        domain = jp.Domain.of_sizes([2, 2])
        rows = Rows.of_codes(Codes(domain, np.array([[0, 0], [0, 1]])))
        em = EM(rows, 2)
        state = em.start(Point(np.full(2, 0.5), np.vstack([np.eye(2), np.eye(2)])))
        assert state.objective == np.inf
        np.testing.assert_allclose(em.step(state).point.weights, [1, 0])


class TestColumnsWithoutCounts:
    def test_of_a_component_that_explains_no_row(self):
        domain = jp.Domain.of_sizes([2, 3])
        rows = Rows.of_codes(Codes(domain, np.array([[0, 0], [0, 1], [0, 2]])))
        lost = np.array([0.0, 1.0, 0.2, 0.3, 0.5])
        start = Point(np.array([0.5, 0.5]), np.column_stack([[0.5, 0.5, 0.1, 0.2, 0.7], lost]))
        for accelerated in (False, True):
            for state in states_of(EM(rows, 2, accelerated=accelerated), start, 3)[1:]:
                np.testing.assert_array_equal(state.point.factors[:, 1], lost)
                np.testing.assert_array_equal(state.point.weights, [1, 0])

    def test_of_a_variable_that_no_row_of_the_component_observes(self):
        """Component 1 explains the rows of level 1, and those do not observe the last variable."""
        domain = jp.Domain.of_sizes([2, 3])
        rows = Rows.of_codes(Codes(domain, np.array([[0, 0], [0, 2], [1, -1], [1, -1]])))
        kept = np.array([0.2, 0.3, 0.5])
        last = np.column_stack([[0.6, 0.2, 0.2], kept])
        start = Point(np.full(2, 0.5), np.vstack([np.eye(2), last]))
        for accelerated in (False, True):
            state = states_of(EM(rows, 2, accelerated=accelerated), start, 2)[-1]
            np.testing.assert_allclose(state.point.factors[2:, 1], kept, rtol=1e-14)
            np.testing.assert_allclose(state.point.factors[2:, 0], [0.5, 0, 0.5], atol=1e-14)

    def test_smoothing_fills_them(self):
        domain = jp.Domain.of_sizes([2, 3])
        rows = Rows.of_codes(Codes(domain, np.array([[0, 0], [0, 2], [1, -1]])))
        start = Point(
            np.full(2, 0.5), np.vstack([[[0.9, 0.1], [0.1, 0.9]], np.full((3, 2), 1 / 3)])
        )
        prior = np.array([[0.1], [0.1], [0.1], [0.3], [0.6]])
        state = states_of(EM(rows, 2, prior), start, 1)[-1]
        assert state.point.factors.min() > 0
        assert state.point.factors[3, 1] > 0.1


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.3, 0.8]),
    st.sampled_from(PRIORS),
    st.booleans(),
)
def test_the_objective_never_rises(seed, n_variables, rank, n_rows, holes, prior, accelerated):
    problem = Problem(seed, n_variables, rank, n_rows, holes, prior)
    states = states_of(problem.em(accelerated), problem.start, 25)
    objective = np.array([state.objective for state in states])
    assert (np.diff(objective) <= 1e-13 * (1 + np.abs(objective[1:]))).all()
    assert states[-1].objective == pytest.approx(problem.objective(states[-1].point), rel=1e-9)
    for state in states:
        assert is_feasible(problem.domain, state.point.weights, state.point.factors)


class TestAcceleration:
    @pytest.fixture
    def problem(self):
        """Rows of a model whose components overlap, so that plain EM is slow."""
        truth = jp.random_pmf(jp.Domain.of_sizes([3] * 6), 2, random_state=0)
        table = truth.sample(2000, random_state=0, backend="codes")
        rows = Rows.of_codes(Codes(truth.domain, table))
        return rows, Point.of_pmf(truth)

    def run(self, problem, accelerated):
        """Return the solution and how many passes over the data it took."""
        rows, start = problem
        em = EM(rows, 2, accelerated=accelerated)
        passes = []
        counts = em.expectation.counts
        em.expectation.counts = lambda stack: (passes.append(1), counts(stack))[1]
        return iterate(em, start, Loop(max_iter=100_000, tol=1e-13)), len(passes)

    def test_the_same_optimum_is_reached_in_fewer_passes(self, problem):
        (plain, n_plain), (fast, n_fast) = (self.run(problem, choice) for choice in (False, True))
        assert plain.status is fast.status is jp.Status.CONVERGED
        assert fast.objective == pytest.approx(plain.objective, abs=1e-10)
        models = [jp.JointPMF.at(end.point, problem[0].domain) for end in (plain, fast)]
        assert jp.tensor_error(*models) < 1e-4
        assert n_fast < n_plain / 3

    def test_an_iteration_is_two_passes_at_most(self, problem):
        solution, n_passes = self.run(problem, True)
        assert n_passes <= 1 + 2 * solution.n_iter

    def test_a_step_is_never_worse_than_a_plain_one(self, problem):
        rows, start = problem
        plain, fast = EM(rows, 2, accelerated=False), EM(rows, 2)
        state = fast.start(start)
        better = 0
        for _ in range(20):
            expected = plain.step(state).objective
            state = fast.step(state)
            assert state.objective <= expected
            better += state.objective < expected - 1e-9
        assert better > 0

    def test_the_first_steps_can_be_plain(self, problem):
        rows, start = problem
        late, plain = EM(rows, 2, n_plain=4), EM(rows, 2, accelerated=False)
        mine, theirs = (states_of(em, start, 8) for em in (late, plain))
        same = [one.objective == other.objective for one, other in zip(mine, theirs, strict=True)]
        assert same[:5] == [True] * 5
        assert mine[-1].objective < theirs[-1].objective

    def test_a_run_that_goes_on_knows_how_many_steps_were_plain(self, problem):
        rows, start = problem
        em, other = EM(rows, 2, n_plain=4), EM(rows, 2, n_plain=4)
        *_, state = states_of(em, start, 3)
        recalled = other.recalled(state, em.memory(state))
        for _ in range(3):
            state, recalled = em.step(state), other.step(recalled)
            assert recalled.objective == state.objective

    def test_an_extrapolation_leaves_no_level_at_zero(self, problem):
        """From zero no EM step returns; only what is too small to tell may end there."""
        rows, _ = problem
        em = EM(rows, 6)
        states = states_of(em, point_at_rows(rows, 6, np.random.default_rng(0)), 40)
        for before, after in pairwise(states):
            assert (after.stack[before.stack > 1e-10] > 0).all()

    def test_a_start_forgets_the_run_before(self, problem):
        rows, start = problem
        em = EM(rows, 2)
        first = [state.objective for state in states_of(em, start, 30)]
        assert [state.objective for state in states_of(em, start, 30)] == first

    def test_the_same_bits_for_any_number_of_threads(self, problem):
        rows, start = problem
        ends = []
        for count in (1, 2):
            with threads.limited_to(count):
                ends.append(states_of(EM(rows, 2), start, 10)[-1].point)
        np.testing.assert_array_equal(ends[0].factors, ends[1].factors)
        np.testing.assert_array_equal(ends[0].weights, ends[1].weights)

    def test_a_step_changes_no_state_before_it(self, problem):
        rows, start = problem
        em = EM(rows, 2)
        state = em.start(start)
        before = state.point.copy(), state.next_stack.copy()
        em.step(em.step(state))
        np.testing.assert_array_equal(state.point.factors, before[0].factors)
        np.testing.assert_array_equal(state.next_stack, before[1])


class TestStationaryPoints:
    @pytest.mark.parametrize("accelerated", [False, True])
    def test_a_model_of_all_cells_by_their_probabilities_stays(self, accelerated):
        truth = jp.random_pmf(jp.Domain.of_sizes([3, 2, 4, 3]), 3, random_state=0)
        cells = oracle.all_cells(truth.domain)
        rows = Rows.of_codes(Codes(truth.domain, cells), oracle.joint(truth).ravel())
        em = EM(rows, 3, accelerated=accelerated)
        states = states_of(em, Point.of_pmf(truth), 20)
        assert_near(states[-1].point, truth.weights, truth.factors, atol=1e-10)
        assert states[0].objective == pytest.approx(oracle.entropy(oracle.joint(truth)))
        assert states[-1].objective == pytest.approx(states[0].objective, rel=1e-13)

    def test_another_model_does_not(self):
        truth, other = (jp.random_pmf(jp.Domain.of_sizes([3, 2, 4]), 2, seed) for seed in (0, 1))
        cells = oracle.all_cells(truth.domain)
        rows = Rows.of_codes(Codes(truth.domain, cells), oracle.joint(truth).ravel())
        states = states_of(EM(rows, 2, accelerated=False), Point.of_pmf(other), 1)
        assert np.abs(states[1].point.factors - states[0].point.factors).max() > 1e-3

    def test_zeros_stay(self):
        problem = Problem(0, rank=2)
        factors = problem.start.factors.copy()
        first = slice(*problem.domain.offsets[:2])
        factors[first, 0] = np.eye(problem.sizes[0])[0]
        for accelerated in (False, True):
            em = problem.em(accelerated)
            for state in states_of(em, Point(problem.start.weights, factors), 5):
                assert not state.point.factors[first, 0][1:].any()

    def test_probabilities_too_small_to_tell_become_zero(self):
        domain = jp.Domain.of_sizes([2])
        rows = Rows.of_codes(Codes(domain, np.array([[0], [1]])), np.array([1.0, 1e-15]))
        start = Point(np.array([1 - 1e-17, 1e-17]), np.array([[0.5, 1.0], [0.5, 0.0]]))
        states = states_of(EM(rows, 2, accelerated=False), start, 3)
        for state in states:
            positive = state.point.factors[state.point.factors > 0]
            assert positive.min() >= 1e-30
        tiny = Point(np.array([0.5, 0.5]), np.array([[1.0, 1.0], [1e-17, 1e-33]]))
        after = states_of(EM(rows, 2, accelerated=False), tiny, 1)[-1]
        assert after.point.factors[1, 1] == 0
