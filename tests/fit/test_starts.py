"""Where maximum likelihood begins if that is asked for, or if something is held out."""

import logging

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit import starts
from jointpmf.fit.search import badness
from support.small_fits import (
    DOMAIN,
    ROWS,
    cost,
    failing,
    fit,
    note_outcomes,
)


class TestStarts:
    @pytest.mark.parametrize(
        ("start", "said"),
        [("rows", "rows: as asked"), ("random", "random: as asked")],
    )
    def test_it_is_said_where_the_fit_began(self, start, said):
        assert said in str(fit(start=start, max_iter=1).start)

    def test_an_optimum_stays(self):
        found = fit(tol=1e-13, max_iter=5000)
        again = fit(start=found.pmf)
        assert again.start.kind == "given"
        assert again.n_iter <= 3
        np.testing.assert_allclose(again.pmf.table(), found.pmf.table(), atol=1e-7)

    def test_a_start_that_excludes_rows_is_said_and_mended(self, caplog):
        generator = np.random.default_rng(0)
        corners = [np.eye(size)[:, generator.integers(size, size=3)] for size in DOMAIN.sizes]
        with caplog.at_level(logging.INFO, logger="jointpmf"):
            solution = fit(start=jp.JointPMF(DOMAIN, [0.2, 0.3, 0.5], corners))
        assert "the start gives rows probability zero" in caplog.text
        assert np.isfinite([step.objective for step in solution.history]).all()
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))

    def test_a_start_that_explains_all_rows_is_taken_as_it_is(self, caplog):
        fit(start=jp.random_pmf(DOMAIN, 3, 0), max_iter=1)
        assert not caplog.records


class TestHeldOut:
    """With a validation part every kind of start gets a few iterations, and the best goes on."""

    KINDS = ("point_of_merged_rows", "point_at_rows", "random_point")

    @pytest.mark.parametrize("kind", KINDS)
    def test_ctrl_c_returns_the_best_so_far(self, monkeypatch, kind):
        wrapped = failing(getattr(starts, kind), [], {1}, KeyboardInterrupt)
        monkeypatch.setattr(starts, kind, wrapped)
        ended = note_outcomes(monkeypatch)
        solution = fit(ROWS, validation=0.2)
        assert (solution.status, solution.n_iter) == (jp.Status.STOPPED, 0)
        assert badness(solution) == pytest.approx(min(badness(s) for s in ended), abs=1e-6)
        assert np.isfinite(solution.pmf.log_probability(ROWS)).all()

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("error", [jp.JointPMFError, np.linalg.LinAlgError, OverflowError])
    def test_one_that_fails_is_said_and_not_fatal(self, monkeypatch, caplog, kind, error):
        monkeypatch.setattr(starts, kind, failing(getattr(starts, kind), [], {1}, error))
        solution = fit(max_iter=20, validation=0.2)
        assert "call 1 failed" in caplog.text
        assert np.isfinite(solution.objective)

    def test_all_that_fail_raise(self, monkeypatch):
        for kind in self.KINDS:
            monkeypatch.setattr(starts, kind, failing(None, [], range(99)))
        with pytest.raises(jp.JointPMFError, match="failed"):
            fit(validation=0.2)
