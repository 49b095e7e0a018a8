"""Several fits of one kind: the best of them, or their average."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit import repeated, starts
from support import oracle
from support.small_fits import ROWS, assert_same_bits, cost, failing, fit, note_outcomes


class TestSeveralFits:
    def test_the_best_is_returned_and_all_are_recorded(self):
        solution = fit(start="random", n_starts=5, max_iter=20)
        objectives = [restart.objective for restart in solution.restarts]
        assert len(set(objectives)) == 5
        assert solution.objective == min(objectives)
        assert {restart.start for restart in solution.restarts} == {"random: as asked"}
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))

    def test_one_fit_records_no_restarts(self):
        assert fit(start="random", max_iter=1).restarts == ()

    def test_a_failing_start_is_recorded_and_not_fatal(self, monkeypatch, caplog):
        wrapped = failing(starts.point_at_rows, [], {2})
        monkeypatch.setattr(starts, "point_at_rows", wrapped)
        solution = fit(start="rows", n_starts=3, max_iter=5)
        failed = solution.restarts[1]
        assert (failed.status, failed.error) == (None, "call 2 failed")
        assert "the fit from number 2 failed: call 2 failed" in caplog.text
        others = [solution.restarts[0].objective, solution.restarts[2].objective]
        assert solution.objective == min(others) < failed.objective

    @pytest.mark.parametrize("n_starts", [1, 3])
    def test_starts_that_all_fail_raise(self, monkeypatch, n_starts):
        wrapped = failing(starts.point_at_rows, [], {1, 2, 3})
        monkeypatch.setattr(starts, "point_at_rows", wrapped)
        with pytest.raises(jp.JointPMFError, match=f"call {n_starts} failed"):
            fit(start="rows", n_starts=n_starts)

    def test_the_status_is_that_of_the_returned_fit(self):
        optimum = fit(tol=1e-13, max_iter=5000).pmf
        independent = fit(rank=1).pmf
        saddle = jp.average([independent] * 3)
        converged, unfinished = jp.Status.CONVERGED, jp.Status.MAX_ITER
        for start, expected in (optimum, converged), (saddle, unfinished):
            solution = fit(start=start, n_starts=2, max_iter=3)
            assert [r.status for r in solution.restarts] == [converged, unfinished]
            assert solution.status is expected

    def test_stopping_one_fit_stops_them_all(self):
        solution = fit(n_starts=4, start="random", callback=lambda step, _: step.iteration == 2)
        assert solution.status is jp.Status.STOPPED
        assert len(solution.restarts) == 1

    def test_stopping_a_later_fit_ends_the_search_and_the_best_keeps_its_status(self):
        seen = []

        def callback(step, _):
            seen.append(step.iteration)
            return seen.count(1) == 2

        optimum = fit(tol=1e-13, max_iter=5000).pmf
        solution = fit(start=optimum, n_starts=3, max_iter=3, callback=callback)
        assert [r.status for r in solution.restarts] == [jp.Status.CONVERGED, jp.Status.STOPPED]
        assert solution.objective == solution.restarts[0].objective
        assert solution.status is jp.Status.CONVERGED


@pytest.fixture
def averaged(monkeypatch):
    """Note the members of every average."""
    members = []

    def spy(pmfs):
        members.extend(pmfs)
        return jp.average(pmfs)

    monkeypatch.setattr(repeated, "average", spy)
    return members


class TestAverage:
    def test_the_table_is_the_average_of_the_members(self, averaged):
        solution = fit(n_average=3, max_iter=10)
        assert solution.pmf.rank == 9
        assert [pmf.rank for pmf in averaged] == [3, 3, 3]
        expected = np.mean([oracle.joint(pmf) for pmf in averaged], axis=0)
        np.testing.assert_allclose(solution.pmf.table(), expected, atol=1e-15)
        assert np.abs(averaged[0].table() - averaged[1].table()).max() > 1e-4

    def test_the_objective_is_that_of_the_average(self):
        solution = fit(n_average=3, max_iter=10)
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS), rel=1e-12)
        assert solution.n_averaged == 3
        assert len(solution.restarts) == 3

    def test_the_same_seed_gives_the_same_bits(self):
        first, second = (fit(n_average=2, max_iter=5, validation=0.2).pmf for _ in range(2))
        assert_same_bits(first, second)

    def test_members_that_did_not_finish_are_said(self):
        assert fit(n_average=2, max_iter=3, tol=0).status is jp.Status.MAX_ITER
        assert fit(n_average=2, max_iter=2000, tol=1e-4).status is jp.Status.CONVERGED

    def test_each_member_is_the_best_of_several_fits(self, monkeypatch):
        ended = note_outcomes(monkeypatch)
        solution = fit(n_starts=3, n_average=2, max_iter=10)
        assert len(ended) == 6
        best = [min(s.objective for s in part) for part in (ended[:3], ended[3:])]
        assert [restart.objective for restart in solution.restarts] == best

    def test_the_validation_is_the_mean_of_the_members(self, monkeypatch):
        ended = note_outcomes(monkeypatch)
        solution = fit(n_starts=2, n_average=3, max_iter=10, validation=0.2, smoothing=0.1)
        best = [min(s.validation for s in ended[k : k + 2]) for k in (0, 2, 4)]
        assert [restart.validation for restart in solution.restarts] == best
        assert solution.validation == pytest.approx(np.mean(best), rel=1e-14)

    def test_without_a_validation_part_there_is_no_validation(self):
        solution = fit(n_average=2, max_iter=2)
        assert solution.validation is None
        assert [restart.validation for restart in solution.restarts] == [None] * 2

    def test_stopping_averages_what_there_is(self):
        seen = []

        def callback(step, _):
            seen.append(step.iteration)
            return seen.count(1) == 2

        solution = fit(n_average=4, max_iter=5, tol=0, callback=callback)
        assert solution.status is jp.Status.STOPPED
        assert solution.pmf.rank == 6


def test_an_interrupt_ends_an_average_of_fits_from_several_starts():
    begun = []

    def interrupt(step, _):
        if step.iteration == 1:
            begun.append(step)
        if len(begun) == 2:
            raise KeyboardInterrupt

    best = fit(tol=1e-13, max_iter=5000).pmf
    fit(start=best, n_starts=3, n_average=4, max_iter=3, callback=interrupt)
    assert len(begun) == 2
