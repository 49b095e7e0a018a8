"""The best optimum: climbs from several starts, moves, when it is enough, and what may go wrong."""

import logging
import re
from dataclasses import replace

import numpy as np
import pytest

import jointpmf as jp
from jointpmf import threads
from jointpmf.fit import optimum, starts
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.settings import Effort
from jointpmf.rows.expectation import Expectation
from jointpmf.rows.source import Table
from jointpmf.solvers.loop import Loop
from jointpmf.solvers.starts.random import mixed
from support.feasibility import feasible
from support.small_fits import (
    DOMAIN,
    FEW,
    ROWS,
    TRUTH,
    assert_same_bits,
    cost,
    failing,
    fit,
    note_outcomes,
    separated_pmf,
)

KINDS = ("point_of_merged_rows", "point_at_rows", "random_point")

ANY = {"effort": Effort(), "max_iter": 2000}
"""The search that is the default."""


def trap(n_variables=12, rank=6, n_rows=1500):
    """Return rows of a model whose components are so clear that EM seldom leaves a bad start."""
    domain = jp.Domain.of_sizes([4] * n_variables)
    truth = separated_pmf(domain, np.full(rank, 1 / rank), seed=3)
    return domain, truth, truth.sample(n_rows, random_state=1, backend="codes")


class TestFound:
    def test_no_random_start_finds_a_better_one(self):
        domain, truth, rows = trap()
        found = fit(rows, 6, domain=domain, **ANY)
        alone = [
            fit(rows, 6, domain=domain, start="random", random_state=k, max_iter=2000).objective
            for k in range(12)
        ]
        assert found.objective <= min(alone) * (1 + 1e-6)
        assert max(alone) > min(alone) * (1 + 1e-4)  # which is not easy
        assert found.objective <= -truth.log_probability(jp.Codes(domain, rows)).mean()
        assert found.is_replicated

    @pytest.mark.parametrize("seed", range(4))
    def test_seeds_agree(self, seed):
        domain, _, rows = trap(rank=4)
        found = [fit(rows, 4, domain=domain, random_state=k, **ANY) for k in (seed, seed + 10)]
        assert found[0].objective == pytest.approx(found[1].objective, rel=1e-6)

    def test_the_fit_is_what_it_says(self):
        solution = fit(**ANY)
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))
        assert feasible(solution.pmf)
        assert solution.n_starts == len(solution.restarts) >= solution.n_agreed >= 2
        assert min(r.objective for r in solution.restarts) >= solution.objective - 1e-12
        assert solution.replication == f"found by {solution.n_agreed} of {solution.n_starts} starts"
        assert [step.iteration for step in solution.history] == list(range(solution.n_iter + 1))
        assert (np.diff([step.objective for step in solution.history]) <= 1e-12).all()

    def test_the_largest_component_is_the_first(self):
        assert (np.diff(fit(**ANY).pmf.weights) <= 0).all()

    def test_smoothing_is_part_of_what_is_searched(self):
        solution = fit(smoothing=0.5, **ANY)
        expected = cost(solution.pmf, ROWS, smoothing=0.5)
        assert solution.objective == pytest.approx(expected)

    def test_one_and_two_threads_give_the_same_bits(self):
        found = []
        for count in (1, 2):
            with threads.limited_to(count):
                found.append(fit(**ANY).pmf)
        assert_same_bits(*found)

    def test_weights_are_rows_that_repeat(self):
        times = np.arange(len(ROWS)) % 3
        weighted = fit(ROWS, sample_weight=times, **ANY)
        repeated = fit(np.repeat(ROWS, times, axis=0), **ANY)
        assert_same_bits(weighted.pmf, repeated.pmf)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("seed", range(31))
    def test_a_table_of_two_rows_is_fitted(self, seed):
        domain = jp.Domain.of_sizes([1, 3, 1, 3, 3])
        rows = [[0, 2, 0, 2, 0], [0, 0, 0, 2, 1]]
        solution = jp.fit_rows(rows, 2, domain=domain, random_state=seed)
        assert solution.objective == pytest.approx(np.log(2), abs=1e-6)
        assert feasible(solution.pmf)

    def test_one_component_needs_one_start_and_no_warning(self, caplog):
        solution = fit(rank=1, **ANY)
        assert (solution.n_starts, solution.is_replicated) == (1, True)
        assert solution.replication == ""
        assert not caplog.records


class TestEnough:
    def test_the_search_ends_when_the_best_was_found_again(self):
        easy = jp.random_pmf(DOMAIN, 2, 5).sample(500, random_state=0, backend="codes")
        assert fit(easy, 2, **ANY).n_starts == 3

    def test_the_number_of_starts_may_be_said(self):
        solution = fit(n_starts=5, **ANY)
        assert solution.n_starts == len(solution.restarts) == 5

    def test_the_work_is_limited(self):
        domain, _, rows = trap()
        few = [fit(rows, 6, domain=domain, effort=Effort(fits=fits)) for fits in (1.0, 34.0)]
        assert few[0].n_starts == 2 < few[1].n_starts

    def test_an_optimum_that_was_found_once_is_a_warning(self, caplog):
        noise = np.random.default_rng(0).integers(0, 4, (300, 8))  # has many optima
        few = Effort(most_starts=2, patience=0)
        solution = fit(noise, 8, domain=jp.Domain.of_sizes([4] * 8), effort=few)
        assert not solution.is_replicated
        assert solution.replication == "found by only one of 2 starts"
        assert "the best optimum of rank 8 was found by only one of 2 starts" in caplog.text
        assert "n_starts" in caplog.text

    def test_one_start_that_was_asked_for_is_no_warning(self, caplog):
        assert fit(n_starts=1).n_starts == 1
        assert not caplog.records

    def test_an_optimum_that_was_found_again_is_no_warning(self, caplog):
        assert fit(**ANY).is_replicated
        assert not caplog.records

    def test_what_is_said_while_it_goes_on(self):
        stages = []
        fit(callback=lambda step, _: stages.append(step.stage), **ANY)
        said = list(dict.fromkeys(stages))
        assert said[0] == "start 1 of at most 12"
        assert said[1].startswith("start 2 of at most 12, best ")
        assert said[1].endswith(", found once")
        assert any(stage.endswith(("found twice", "found 3 times")) for stage in said)


class TestSample:
    """A table so large that starts are tried on a sample of its rows."""

    SMALL = replace(FEW, work=1e5, sample_work=1e6, rows_per_component=20, most_sampled=3)

    def test_all_rows_are_fitted_from_what_is_found_there(self):
        solution = fit(effort=self.SMALL, max_iter=2000)
        assert 60 <= solution.start.n_rows < len(ROWS) / 3  # 60 distinct rows
        assert solution.n_starts == 3
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))
        assert solution.objective == pytest.approx(fit(**ANY).objective, rel=1e-3)

    def test_starts_are_compared_by_all_rows(self):
        """So an optimum counts as found again only if it is one of all rows."""
        domain, _, rows = trap(rank=4, n_rows=3000)
        few = replace(self.SMALL, rows_per_component=40)
        solution = fit(rows, 4, domain=domain, effort=few, max_iter=2000)
        best = fit(rows, 4, domain=domain, **ANY).objective
        objectives = [restart.objective for restart in solution.restarts]
        assert min(objectives) >= best * (1 - 1e-6)
        near = [objective for objective in objectives if objective < min(objectives) * (1 + 1e-6)]
        assert solution.n_agreed == len(near)

    def test_every_start_has_a_sample_of_its_own(self, monkeypatch):
        parts, part = [], optimum._Climbs._part

        def noting(self):
            parts.append(part(self))
            return parts[-1]

        monkeypatch.setattr(optimum._Climbs, "_part", noting)
        fit(effort=self.SMALL)
        cells = {part.rows.cells.tobytes() for part in parts}
        assert len(cells) == len(parts) == 3

    def test_ctrl_c_returns_a_fit_to_all_rows(self, monkeypatch):
        monkeypatch.setattr(optimum, "moved", failing(optimum.moved, [], {1}, KeyboardInterrupt))
        solution = fit(effort=self.SMALL)
        assert solution.status is jp.Status.STOPPED
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("others", [2, jp.MISSING], ids=["level", "variable"])
    @pytest.mark.parametrize("options", [{}, {"max_iter": 0}, {"smoothing": 0.1}])
    def test_a_level_or_variable_that_they_do_not_see_is_possible(self, others, options):
        rows = TRUTH.sample(400, random_state=0, backend="codes")
        rows[:, 0] = others
        rows[0, 0] = 3
        few = replace(self.SMALL, rows_per_component=3)
        for seed in range(6):
            solution = fit(rows, random_state=seed, **{"max_iter": 20, "effort": few} | options)
            assert np.isfinite(solution.objective)
            assert np.isfinite(solution.pmf.log_probability(rows)).all()


class TestManyRows:
    """A table of so many rows that the search may cost no more than some passes over them."""

    DOMAIN = jp.Domain.of_sizes([4] * 8)
    MANY = Effort(many_rows=5000, passes=20, sample_rows=2000, step_work=0)

    @pytest.fixture
    def rows(self):
        truth = separated_pmf(self.DOMAIN, np.full(4, 0.25), seed=3)
        rows = truth.sample(40_000, random_state=1, backend="codes")
        rows[np.random.default_rng(0).random(rows.shape) < 0.2] = jp.MISSING
        return rows

    def many(self, rows, **options):
        return fit(rows, 4, domain=self.DOMAIN, **{"effort": self.MANY, "max_iter": 500} | options)

    def test_the_optimum_is_that_of_a_search_on_all_rows(self, rows):
        few, whole = self.many(rows), self.many(rows, effort=Effort())
        assert few.objective == pytest.approx(whole.objective, rel=1e-6)
        assert few.objective == pytest.approx(cost(few.pmf, rows))
        assert few.start.n_rows < len(rows) / 4
        assert few.is_replicated

    @pytest.mark.parametrize("passes", [8, 20])
    def test_the_search_costs_no_more_than_some_passes(self, rows, passes, monkeypatch):
        n_cells = []
        counts = Expectation.counts

        def noting(self, stack):
            n_cells.append((len(self.rows), self.rank))
            return counts(self, stack)

        monkeypatch.setattr(Expectation, "counts", noting)
        found = self.many(rows, effort=replace(self.MANY, passes=passes))
        n_kept = max(n for n, _ in n_cells)
        searched = sum(n * rank for n, rank in n_cells if n < n_kept)
        assert 0 < searched <= passes * n_kept * 4
        assert len([n for n, _ in n_cells if n == n_kept]) <= 2 * found.n_iter + 1 + 3

    @pytest.mark.parametrize(
        "place",
        ["optimum._Climbs.chosen", "optimum._Climbs._go_on_with_all_rows", "likelihood.lifted"],
    )
    def test_someone_stops_between_fits(self, rows, place, monkeypatch):
        """What was found by then is returned, not a start."""

        def stops(*_):
            raise KeyboardInterrupt

        whole = self.many(rows)
        monkeypatch.setattr(f"jointpmf.fit.{place}", stops)
        found = self.many(rows)
        assert found.status is jp.Status.STOPPED
        assert cost(found.pmf, rows) == pytest.approx(whole.objective, rel=0.01)

    def test_seeds_and_threads(self, rows):
        found = []
        for count in (1, 2):
            with threads.limited_to(count):
                found.append(self.many(rows).pmf)
        assert_same_bits(*found)
        assert self.many(rows, random_state=7).objective == pytest.approx(
            self.many(rows).objective, rel=1e-6
        )

    def test_optima_that_a_sample_cannot_tell_apart_are_compared_by_all_rows(self, rows):
        table = Table.of_codes(jp.Codes(self.DOMAIN, rows))
        em = EMFit(4, Loop(50, 1e-8), effort=self.MANY)
        climbs = optimum._Climbs(em, table, np.random.default_rng(0), 0.0, table)
        climbs._climb(0)
        (end,) = climbs.ends
        shaken = mixed(end.point, table.marginal, 0.05)
        climbs.ends.append(end._replace(point=shaken, objective=end.objective - 1e-4))
        assert climbs.best.point is shaken
        assert climbs.chosen() is end

    @pytest.mark.parametrize("call", [1, 4])
    def test_ctrl_c_returns_the_best_of_the_sample(self, rows, monkeypatch, call):
        monkeypatch.setattr(optimum, "moved", failing(optimum.moved, [], {call}, KeyboardInterrupt))
        ended = note_outcomes(monkeypatch)
        solution = self.many(rows)
        assert solution.status is jp.Status.STOPPED
        assert np.isfinite(solution.pmf.log_probability(rows)).all()
        assert len(ended) >= call

    def test_ctrl_c_while_all_rows_are_fitted_returns_how_far_they_came(self, rows):
        solution = self.many(rows, callback=lambda step, _: step.iteration >= 2)
        assert (solution.status, solution.n_iter) == (jp.Status.STOPPED, 2)
        assert solution.objective == pytest.approx(cost(solution.pmf, rows))

    def test_starts_that_were_asked_for_are_made_on_all_rows(self, rows):
        solution = self.many(rows, n_starts=1)
        assert (solution.n_starts, solution.start.n_rows) == (1, None)


class TestTrouble:
    @pytest.mark.parametrize(("kind", "call"), [(KINDS[0], 1), (KINDS[1], 1), (KINDS[2], 1)])
    def test_ctrl_c_returns_the_best_so_far(self, monkeypatch, kind, call):
        wrapped = failing(getattr(starts, kind), [], {call}, KeyboardInterrupt)
        monkeypatch.setattr(starts, kind, wrapped)
        ended = note_outcomes(monkeypatch)
        solution = fit(ROWS)
        assert solution.status is jp.Status.STOPPED
        assert solution.objective == pytest.approx(min(o.objective for o in ended), abs=1e-12)
        assert np.isfinite(solution.pmf.log_probability(ROWS)).all()

    def test_ctrl_c_while_a_move_is_made_keeps_the_climb(self, monkeypatch):
        monkeypatch.setattr(optimum, "moved", failing(optimum.moved, [], {1}, KeyboardInterrupt))
        ended = note_outcomes(monkeypatch)
        solution = fit(ROWS)
        assert solution.status is jp.Status.STOPPED
        assert solution.objective == min(o.objective for o in ended)

    @pytest.mark.parametrize("n_iter", [1, 20, 60, 150])
    def test_a_callback_stops_all_of_it(self, n_iter):
        seen = []

        def callback(step, pmf):
            seen.append(step)
            return len(seen) == n_iter

        solution = fit(callback=callback, **ANY)
        assert solution.status is jp.Status.STOPPED
        assert len(seen) == n_iter
        assert solution.objective == pytest.approx(min(step.objective for step in seen), abs=0.5)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("error", [jp.JointPMFError, np.linalg.LinAlgError, OverflowError])
    def test_a_start_that_fails_is_said_and_not_fatal(self, monkeypatch, caplog, kind, error):
        monkeypatch.setattr(starts, kind, failing(getattr(starts, kind), [], {1}, error))
        solution = fit(max_iter=20, effort=replace(FEW, most_starts=3))
        failed = [restart for restart in solution.restarts if restart.error]
        assert [restart.error for restart in failed] == ["call 1 failed"]
        assert "call 1 failed" in caplog.text
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))

    def test_all_that_fail_raise(self, monkeypatch):
        for kind in KINDS:
            monkeypatch.setattr(starts, kind, failing(None, [], range(99)))
        with pytest.raises(jp.JointPMFError, match="failed"):
            fit()

    def test_without_iterations_the_best_start_is_returned(self, caplog):
        caplog.set_level(logging.ERROR, logger="jointpmf")
        solution = fit(max_iter=0)
        assert (solution.n_iter, solution.status) == (0, jp.Status.MAX_ITER)
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))


def test_it_is_said_which_start_is_made_before_it_is(caplog):
    caplog.set_level("INFO", "jointpmf")
    fit(n_starts=2)
    said = [record.getMessage() for record in caplog.records if record.module == "optimum"]
    assert said[0].startswith("start 1 of 2: ")
    assert said[1] == "start 1 of 2: random"
    assert any(re.match(r"start 2 of 2, best \d+\.\d+, found once: random", one) for one in said)
