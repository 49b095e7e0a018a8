"""Traits fitted to tables of any kind: the objective beside brute force, and its climb."""

from dataclasses import replace

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.solvers.loop import Loop, iterate
from jointpmf.solvers.starts.traits import flat_model
from jointpmf.solvers.table_cells import TableCells
from jointpmf.solvers.table_traits import TraitSecants
from jointpmf.solvers.trait_sums import LevelSums
from jointpmf.solvers.traits import Ridge, TraitEM
from jointpmf.threads import limited_to
from jointpmf.traits import Scores, Space
from support.small_tables import DOMAIN, KINDS, PAIRS, cells_of

RIDGE = Ridge(0.5, 1.0, 0.1)


def solver_of(cells, method=TraitSecants, seed=0):
    generator = np.random.default_rng(seed)
    scores = Scores.of(DOMAIN, cells.marginal)
    flat = flat_model(scores, Space.drawn(16, 2, 3, generator=generator), 500 * cells.marginal)
    begin = replace(flat, coefficients=0.3 * generator.normal(size=flat.coefficients.shape))
    return method(LevelSums(cells, scores, 16), begin, RIDGE, cells.total), begin


def run(cells, n_steps, method=TraitSecants, **options):
    solver, begin = solver_of(cells, method, **options)
    return iterate(solver, begin.point(), Loop(n_steps, 0.0))


def test_the_objective_is_that_of_brute_force():
    cells = cells_of()
    solver, begin = solver_of(cells)
    state = solver.start(begin.point())
    pmf = jp.JointPMF.at(begin.point(), DOMAIN)
    total = (RIDGE.on(begin) * begin.coefficients**2).sum() / 2
    joint = pmf.table()
    for marginal in PAIRS:
        axes = tuple(DOMAIN.index(name) for name in marginal.names)
        others = tuple(n for n in range(len(DOMAIN)) if n not in axes)
        total -= (marginal.table * marginal.n_rows * np.log(joint.sum(axis=others))).sum()
    assert state.objective == pytest.approx(total / cells.total, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKindOfTable:
    def test_the_pull_is_the_slope_of_the_objective(self, kind):
        solver, begin = solver_of(cells_of(kind))
        pull = solver.start(begin.point()).pull
        first, n_features = 0, begin.coefficients.shape[1]
        for n in range(len(DOMAIN)):  # intercepts and coefficients, variable by variable
            levels, scores = begin.places(n)
            for array, own in ((begin.intercepts, levels), (begin.coefficients, scores)):
                for place in np.ndindex(array[own].shape):
                    objectives = []
                    for step in (1e-5, -1e-5):
                        moved = array.copy()
                        moved[own][place] += step
                        name = "intercepts" if array is begin.intercepts else "coefficients"
                        point = replace(begin, **{name: moved}).point()
                        objectives.append(solver.start(point).objective)
                    slope = (objectives[1] - objectives[0]) / 2e-5
                    # what noise hides is expected as if its variance did not depend on the model
                    assert pull[first] == pytest.approx(
                        slope, abs=0.01 if kind == "noise" else 1e-7
                    )
                    first += 1
        assert first == len(pull) == begin.intercepts.size + len(begin.coefficients) * n_features

    def test_no_step_lowers_the_penalised_likelihood(self, kind):
        outcome = run(cells_of(kind), 40)
        objectives = np.array([line.objective for line in outcome.history])
        assert (np.diff(objectives) <= 0).all()
        assert objectives[-1] < objectives[0] - 1e-3

    def test_no_step_of_plain_em_does_either(self, kind):
        outcome = run(cells_of(kind), 20, TraitEM)
        objectives = np.array([line.objective for line in outcome.history])
        assert (np.diff(objectives) <= 1e-12).all()


def test_it_arrives_long_before_plain_em():
    cells = cells_of()
    near, far = run(cells, 60).objective, run(cells, 400, TraitEM).objective
    assert near <= far + 1e-9


def test_at_the_end_nothing_pulls():
    solver, begin = solver_of(cells_of())
    outcome = iterate(solver, begin.point(), Loop(2000, 1e-14))
    assert np.abs(solver.start(outcome.point).pull).max() < 1e-5


@pytest.mark.usefixtures("small_tasks_shared")
def test_any_number_of_threads_gives_the_same_bits():
    found = []
    for n_threads in (1, 2):
        with limited_to(n_threads):
            found.append(run(cells_of("bands"), 10).point.factors)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("n_before", [0, 7, 25])
def test_what_was_remembered_goes_on_as_before(n_before):
    cells = cells_of("hidden")
    solver, begin = solver_of(cells)
    state = solver.start(begin.point())
    for _ in range(n_before):
        state = solver.step(state)
    other = solver_of(cells)[0]
    recalled = other.recalled(state, {k: v.copy() for k, v in solver.memory(state).items()})
    for _ in range(5):
        state, recalled = solver.step(state), other.step(recalled)
        np.testing.assert_array_equal(state.point.factors, recalled.point.factors)


def test_many_levels_move_one_by_one():
    domain = jp.Domain.of_sizes([30, 2])
    counts = np.random.default_rng(0).integers(1, 50, (30, 2))
    tables = jp.MarginalSet(domain, [jp.Marginal(("x0", "x1"), counts)]).measurements
    cells = TableCells(domain, tables)
    generator = np.random.default_rng(0)
    space = Space.drawn(16, 2, 30, generator=generator)
    flat = flat_model(Scores.unordered(domain), space, cells.marginal)
    begin = replace(flat, coefficients=0.1 * generator.normal(size=flat.coefficients.shape))
    outcome = iterate(TraitSecants.on_tables(cells, begin, RIDGE), begin.point(), Loop(60, 0.0))
    objectives = np.array([line.objective for line in outcome.history])
    assert (np.diff(objectives) <= 0).all()
    plain = TraitEM(LevelSums(cells, begin.scores, 16), begin, RIDGE, cells.total)
    assert outcome.objective <= iterate(plain, begin.point(), Loop(60, 0.0)).objective + 1e-9
