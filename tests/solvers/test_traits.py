"""EM over the coefficients of traits: sums, regressions and steps, beside brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.point import Point
from jointpmf.rows.source import Table
from jointpmf.rows.table import log_likelihoods
from jointpmf.solvers.logistic import BinaryRegressions, Regression
from jointpmf.solvers.starts.traits import along_directions, correlations_of_rows, flat_model
from jointpmf.solvers.trait_sums import LevelSums, RowSums
from jointpmf.solvers.traits import PulledEM, RedrawnEM, Ridge, TraitEM, WeightEM
from jointpmf.threads import limited_to
from jointpmf.traits import FreeColumns, Scores, Space
from support import oracle

DOMAIN = jp.Domain(
    [
        jp.Variable("stars", (1, 2, 3, 4, 5)),
        jp.Variable("colour", ("red", "green", "blue")),
        jp.Variable("seen", ("no", "yes")),
        jp.Variable("planet", ("earth",)),
        jp.Variable("owned", ("no", "yes")),
    ]
)

RIDGE = Ridge()


def planted_rows(n_rows=400, holes=0.2, seed=0):
    """Return rows in which everything moves with one trait, some cells of which are missing."""
    generator = np.random.default_rng(seed)
    trait = generator.normal(size=n_rows)
    columns = []
    for variable in DOMAIN:
        pull = np.outer(trait, np.linspace(-1, 1, variable.size))
        odds = np.exp(pull + generator.normal(size=variable.size))
        ranks = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
        columns.append((ranks < generator.random((n_rows, 1))).sum(axis=1))
    array = np.minimum(np.column_stack(columns), np.array(DOMAIN.sizes) - 1)
    array[generator.random(array.shape) < holes] = -1
    return array


def table_of(array, weights=None, domain=DOMAIN):
    return Table.of_codes(jp.Codes(domain, array), weights)


def begin(table, n_points=16, n_traits=2, n_waves=3, seed=0):
    scores = Scores.of(table.domain, table.marginal)
    space = Space.drawn(n_points, n_traits, n_waves, generator=np.random.default_rng(seed))
    flat = flat_model(scores, space, table.counts)
    return along_directions(
        flat, correlations_of_rows(table.rows.columns, table.rows.weights, scores)
    )


def solver_of(table, model=None, ridge=RIDGE):
    model = begin(table) if model is None else model
    return TraitEM(RowSums(table.rows, model.scores), model, ridge, table.total), model


class TestSums:
    @pytest.mark.parametrize("holes", [0.0, 0.3])
    def test_they_are_those_of_brute_force(self, holes):
        array, weights = planted_rows(60, holes), np.linspace(0.5, 2, 60)
        table = table_of(array, weights)
        model = begin(table)
        own = np.random.default_rng(0).dirichlet(np.ones(16))
        levels, components = oracle.expected_counts(
            own, np.split(model.factors, DOMAIN.offsets[1:-1]), array, weights
        )
        kept = (array >= 0).any(axis=1)
        found = RowSums(table.rows, model.scores).sums(model, own)
        expected = np.vstack(
            [scores.T @ counts for scores, counts in zip(model.scores.all, levels, strict=True)]
        )
        assert np.allclose(found.scores, expected, atol=1e-4)
        assert np.allclose(found.weights, components - own * weights[~kept].sum(), atol=1e-4)
        for n, counts in enumerate(levels):
            total = counts.sum(axis=0)
            assert np.allclose(found.totals[n], total, atol=1e-4)
        logs = log_likelihoods(table.rows, Point(own, model.factors))
        assert np.isclose(found.log_likelihood, table.rows.weights @ logs, rtol=1e-6)

    def test_sums_of_levels_are_the_same(self):
        table = table_of(planted_rows())
        model = begin(table)
        own = np.full(16, 1 / 16)
        by_scores = RowSums(table.rows, model.scores).sums(model, own)
        observed = LevelSums(table, model.scores, 16)
        by_levels = observed.sums(model, own)
        assert np.allclose(by_scores.scores, by_levels.scores, atol=1e-3)
        assert np.allclose(by_scores.totals, by_levels.totals, atol=1e-3)
        assert np.allclose(by_scores.weights, by_levels.weights, atol=1e-3)
        assert np.isclose(by_scores.log_likelihood, by_levels.log_likelihood, rtol=1e-6)
        assert np.allclose(observed.counts, table.counts)

    def test_rows_at_points_are_those_of_the_sums(self):
        table = table_of(planted_rows())
        model = begin(table)
        own = np.random.default_rng(0).dirichlet(np.ones(16))
        observed = RowSums(table.rows, model.scores)
        sums = observed.sums(model, own)
        for kind in (observed, LevelSums(table, model.scores, 16)):
            found, log_likelihood = kind.at_points(model, own)
            assert np.allclose(found, sums.weights, atol=1e-3)
            assert np.isclose(log_likelihood, sums.log_likelihood, rtol=1e-6)

    @pytest.mark.usefixtures("small_tasks_shared")
    def test_the_bits_do_not_depend_on_threads(self):
        table = table_of(planted_rows())

        def stepped(n_threads):
            with limited_to(n_threads):
                solver, model = solver_of(table)
                return solver.step(solver.start(model.point())).point.factors

        assert (stepped(1) == stepped(3)).all()


def regression(n, table, ridge=RIDGE):
    """Return the regression of a variable at the first model, and that model."""
    model = begin(table)
    sums = RowSums(table.rows, model.scores).sums(model, np.full(16, 1 / 16))
    levels = slice(*DOMAIN.offsets[n : n + 2])
    scores = slice(*model.scores.offsets[n : n + 2])
    found = Regression(
        model.scores.all[n],
        model.features,
        sums.scores[scores],
        sums.totals[n],
        table.counts[levels],
        ridge.on(model)[scores],
        ridge.intercepts,
        model.intercepts[levels] + 0.1,
    )
    return found, model.intercepts[levels], model.coefficients[scores]


def gradient_by_differences(function, vector, step=1e-5):
    found = np.empty(len(vector))
    for i in range(len(vector)):
        ahead, back = vector.copy(), vector.copy()
        ahead[i] += step
        back[i] -= step
        found[i] = (function(ahead) - function(back)) / (2 * step)
    return found


@pytest.mark.parametrize("n", [0, 1, 2])
class TestRegression:
    def vector_form(self, n):
        own, intercepts, coefficients = regression(n, table_of(planted_rows()))
        size, shape = len(intercepts), coefficients.shape

        def parts(vector):
            return vector[:size], vector[size:].reshape(shape)

        return own, parts, np.concatenate([intercepts, coefficients.ravel()])

    def test_the_gradient_is_that_of_the_objective(self, n):
        own, parts, vector = self.vector_form(n)
        columns = own._at(*parts(vector))[0]
        found = np.concatenate([part.ravel() for part in own.pulls(columns, *parts(vector))])
        expected = gradient_by_differences(lambda v: own._at(*parts(v))[1], vector)
        assert np.allclose(found, expected, atol=1e-3)

    def test_the_direction_solves_with_the_whole_curvature(self, n):
        own, parts, vector = self.vector_form(n)

        def gradient(v):
            columns = own._at(*parts(v))[0]
            return np.concatenate([part.ravel() for part in own.pulls(columns, *parts(v))])

        curvature = -np.column_stack(
            [
                gradient_by_differences(lambda v, i=i: gradient(v)[i], vector)
                for i in range(len(vector))
            ]
        )
        columns = own._at(*parts(vector))[0]
        ahead = own._newton(columns, *own.pulls(columns, *parts(vector)))
        found = np.concatenate([part.ravel() for part in ahead])
        assert np.allclose(curvature @ found, gradient(vector), rtol=1e-3, atol=1e-2)

    def test_a_step_does_not_lower_the_objective(self, n):
        own, intercepts, coefficients = regression(n, table_of(planted_rows()))
        there = own.stepped(intercepts, coefficients)
        assert own._at(*there)[1] > own._at(intercepts, coefficients)[1]


def test_levels_that_move_by_themselves_move_up():
    own, intercepts, coefficients = regression(1, table_of(planted_rows()))
    columns, before = own._at(intercepts, coefficients)
    ahead = own._by_level(columns, *own.pulls(columns, intercepts, coefficients))
    assert own._at(intercepts + ahead[0], coefficients + ahead[1])[1] > before


@pytest.mark.parametrize("n", [0, 1])
def test_many_coefficients_move_up_too(n, monkeypatch):
    """Those of an ordered variable together: its scores are shared by all levels."""
    monkeypatch.setattr("jointpmf.solvers.logistic._MOST_COUPLED", 3)
    own, intercepts, coefficients = regression(n, table_of(planted_rows()))
    there = own.stepped(intercepts, coefficients)
    assert own._at(*there)[1] > own._at(intercepts, coefficients)[1]


def test_binary_variables_move_together_as_by_themselves():
    table = table_of(planted_rows())
    own, intercepts, coefficients = regression(2, table)
    odds = intercepts[1] - intercepts[0]
    many = BinaryRegressions(
        np.hstack([np.ones((16, 1)), own.features]),
        own.sums + own.totals / 2,
        own.totals[None],
        np.array([own.anchor / 2, *own.ridges[0]]),
        own.anchors[1:] - own.anchors[:1],
    )
    found = many.stepped(np.array([[odds, *coefficients[0]]]))[0]
    # intercepts that begin where they are pulled to, but for a constant
    single = own.stepped(intercepts, coefficients)
    assert np.isclose(found[0], single[0][1] - single[0][0], atol=1e-6)
    assert np.allclose(found[1:], single[1][0], atol=1e-6)


class TestSteps:
    @settings(deadline=None, max_examples=15)
    @given(seed=st.integers(0, 10**6), holes=st.sampled_from([0.0, 0.4]))
    def test_the_objective_never_rises(self, seed, holes):
        generator = np.random.default_rng(seed)
        domain = oracle.random_domain(generator, 4)
        array = oracle.random_table(generator, domain, 30, holes)
        array[0] = 0
        table = table_of(array, domain=domain)
        solver, model = solver_of(table, begin(table, seed=seed))
        state = solver.start(model.point())
        for _ in range(5):
            after = solver.step(state)
            assert after.objective <= state.objective + 1e-6
            state = after

    def test_the_objective_is_the_likelihood_less_the_ridge(self):
        table = table_of(planted_rows())
        ridge = Ridge(0.5, 2.0, 0.3)
        solver, model = solver_of(table, ridge=ridge)
        state = solver.step(solver.start(model.point()))
        logs = log_likelihoods(table.rows, state.point)
        squared = state.model.coefficients**2
        squared[1] *= ridge.widths  # of the stars
        coordinates, waves = np.split(squared, [2], axis=1)
        drift = state.model.intercepts - model.intercepts
        penalty = 0.5 * coordinates.sum() + 2 * waves.sum() + 0.3 * (drift**2).sum()
        expected = (penalty / 2 - table.rows.weights @ logs) / table.total
        assert np.isclose(state.objective, expected, rtol=1e-6)

    def test_weights_are_found_by_rows_alone(self):
        table = table_of(planted_rows())
        model = begin(table)
        solver = WeightEM(RowSums(table.rows, model.scores), model, table.total)
        state = solver.start(model.point())
        for _ in range(400):
            state = solver.step(state)
        assert (state.point.factors == model.factors).all()
        # at the best weights no point would gain from more of it
        likelihoods = np.exp(
            np.stack([oracle_logs(table, model.factors[:, [k]]) for k in range(16)], axis=1)
        )
        shares = likelihoods / (likelihoods @ state.point.weights)[:, None]
        gains = table.rows.weights @ shares / table.total
        assert gains.max() < 1.02

    def test_a_level_that_a_trait_predicts_perfectly_stays_finite(self):
        domain = jp.Domain.of_sizes([2] * 4)
        table = table_of(np.repeat([[0] * 4, [1] * 4], 200, axis=0), domain=domain)
        solver, model = solver_of(table)
        state = solver.start(model.point())
        for _ in range(30):
            state = solver.step(state)
        assert np.isfinite(state.model.coefficients).all()
        assert np.abs(state.model.coefficients).max() < 100
        assert state.objective < 1.1

    def test_rows_that_are_all_alike(self):
        table = table_of(np.tile([2, 1, 1, 0, 0], (50, 1)))
        solver, model = solver_of(table)
        state = solver.step(solver.start(model.point()))
        assert np.isfinite(state.objective)
        assert state.objective < 0.5

    def test_a_state_is_recalled_from_its_point(self):
        solver, model = solver_of(table_of(planted_rows()))
        state = solver.step(solver.start(model.point()))
        again = solver.recalled(state, solver.memory(state))
        assert (solver.step(again).point.factors == solver.step(state).point.factors).all()


def oracle_logs(table, factors):
    return log_likelihoods(table.rows, Point(np.ones(1), factors))


class TestRedrawn:
    def em(self, table, first, seed=7):
        return RedrawnEM(RowSums(table.rows, first.scores), first, RIDGE, table.total, seed)

    def states(self, em, first, n_steps):
        states = [em.start(first.point())]
        for _ in range(n_steps):
            states.append(em.step(states[-1]))
        return states

    def test_the_points_of_every_step_are_others(self):
        table = table_of(planted_rows())
        first = begin(table)
        states = self.states(self.em(table, first), first, 4)
        spaces = [state.model.space for state in states]
        assert len({space.points.tobytes() for space in spaces}) == len(spaces)
        assert all(np.array_equal(space.phases, first.space.phases) for space in spaces)

    def test_a_step_moves_as_one_with_fixed_points_would(self):
        table = table_of(planted_rows())
        first = begin(table)
        redrawn = self.states(self.em(table, first), first, 1)[-1].model
        fixed = TraitEM(RowSums(table.rows, first.scores), first, RIDGE, table.total)
        expected = fixed.step(fixed.start(first.point())).model
        np.testing.assert_array_equal(redrawn.coefficients, expected.coefficients)

    @pytest.mark.parametrize("n_steps", [0, 3])
    def test_a_state_is_recalled_and_goes_on_to_the_same_bits(self, n_steps):
        table = table_of(planted_rows())
        first = begin(table)
        em = self.em(table, first)
        state = self.states(em, first, n_steps)[-1]
        memory = em.memory(state)
        other = self.em(table, first)
        recalled = other.recalled(state, memory)
        assert recalled.objective == state.objective
        np.testing.assert_array_equal(
            other.step(recalled).point.factors, em.step(state).point.factors
        )


class TestStart:
    def test_traits_begin_along_what_varies_together(self):
        table = table_of(planted_rows(2000, 0.0))
        model = begin(table, n_traits=1, n_waves=0)
        stars, seen = model.coefficients[0, 0], model.coefficients[5, 0]
        assert np.sign(stars) == np.sign(seen)
        assert min(abs(stars), abs(seen)) > 0.2

    def test_without_coefficients_variables_are_as_distributed(self):
        table = table_of(planted_rows())
        model = begin(table)
        flat = replace(model, coefficients=0 * model.coefficients)
        assert np.allclose(flat.factors[:, 0], table.marginal, atol=0.01)


class TestFreeColumns:
    def point(self):
        pmf = jp.random_pmf(DOMAIN, 7, random_state=0)
        return Point.of_pmf(pmf)

    def test_rows_are_as_likely_as_without_scores(self):
        table, point = table_of(planted_rows()), self.point()
        columns = FreeColumns(Scores.unordered(DOMAIN), point.factors)
        found = RowSums(table.rows, columns.scores).log_likelihood(columns, point.weights)
        expected = table.rows.weights @ log_likelihoods(table.rows, point)
        assert np.isclose(found, expected, rtol=1e-6)

    def test_a_pulled_step_is_an_em_step_with_these_pseudo_counts(self):
        array, point = planted_rows(80), self.point()
        table = table_of(array)
        state = PulledEM(table.rows, point, 3.0).start(point)
        seen = array[(array >= 0).any(axis=1)]
        factors = np.split(point.factors, DOMAIN.offsets[1:-1])
        counts, components = oracle.expected_counts(
            point.weights, factors, seen, np.ones(len(seen))
        )
        expected = [own + 3 * factor for own, factor in zip(counts, factors, strict=True)]
        columns = np.vstack([own / own.sum(axis=0) for own in expected])
        assert np.allclose(state.ahead.factors, columns, atol=1e-5)
        assert np.allclose(state.ahead.weights, components / components.sum(), atol=1e-5)

    def test_pulled_steps_never_lower_the_objective(self):
        table, point = table_of(planted_rows()), self.point()
        solver = PulledEM(table.rows, point, 3.0)
        state = solver.start(point)
        for _ in range(10):
            after = solver.step(state)
            assert after.objective <= state.objective + 1e-6
            state = after
