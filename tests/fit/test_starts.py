"""Where maximum likelihood begins if that is asked for, or if something is held out."""

import logging

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import jointpmf as jp
from jointpmf import threads
from jointpmf.fit import starts
from jointpmf.fit.search import badness
from support.feasibility import feasible
from support.small_fits import (
    DOMAIN,
    ROWS,
    assert_same_bits,
    cost,
    failing,
    fit,
    note_outcomes,
    with_holes,
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

    KINDS = ("point_in_closed_form", "point_of_merged_rows", "point_at_rows", "random_point")

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


# one taste decides all answers; nobody has given the answer 2 to the first question
SCALE = jp.Domain.of_sizes([5] * 4)
TASTE = np.random.default_rng(0).standard_normal((300, 1))
ANSWERS = np.digitize(
    TASTE + 0.5 * np.random.default_rng(1).standard_normal((300, 4)), [-1.2, -0.4, 0.4, 1.2]
)
ANSWERS[:, 0] = np.where(ANSWERS[:, 0] == 2, 1, ANSWERS[:, 0])

ALONG = {"domain": SCALE, "start": "factors", "max_iter": 200, "random_state": 0}


class TestStartAlongFactors:
    def test_it_is_said_and_feasible_and_repeated(self):
        first, second, other = (
            fit(ANSWERS, 4, **ALONG | {"random_state": seed}) for seed in (0, 0, 1)
        )
        assert str(first.start) == "factors: as asked"
        assert feasible(first.pmf)
        assert_same_bits(first.pmf, second.pmf)
        assert not np.array_equal(first.pmf.weights, other.pmf.weights)

    def test_it_begins_better_than_rows_and_ends_as_well(self):
        begins, ends = [], []
        for start in ("factors", "rows"):
            history = fit(ANSWERS, 4, **ALONG | {"start": start}).history
            begins.append(history[0].objective)
            ends.append(history[-1].objective)
        assert begins[0] < begins[1] - 0.1
        assert ends[0] < ends[1] + 0.05

    def test_weights_count(self):
        times = np.arange(len(ANSWERS)) % 3
        weighted = fit(ANSWERS, 4, sample_weight=times, **ALONG)
        repeated = fit(np.repeat(ANSWERS, times, axis=0), 4, **ALONG)
        assert_same_bits(weighted.pmf, repeated.pmf)

    def test_one_and_two_threads_give_the_same_bits(self):
        rows = jp.random_pmf(jp.Domain.of_sizes([6] * 8), 4, 0)
        rows = with_holes(rows.sample(4000, random_state=0, backend="codes"), 0.3)
        found = []
        for count in (1, 2):
            with threads.limited_to(count), threadpool_limits(count):
                options = {"bandwidth": 0.5, "start": "factors", "domain": None, "max_iter": 5}
                found.append(fit(rows, 16, **options).pmf)
        assert_same_bits(*found)

    def test_without_an_ordered_variable_it_is_refused(self):
        with pytest.raises(jp.JointPMFError, match="needs variables with increasing values"):
            fit([["a", "b"], ["b", "a"]], 2, start="factors", domain=None)

    def test_an_answer_far_from_all_others_may_happen(self):
        """Somebody's income is two hundred times that of the others."""
        taste = np.random.default_rng(0).standard_normal((500, 1))
        rows = np.digitize(np.tile(taste, 3), np.linspace(-1.5, 1.5, 8))
        rows[0] = 9
        levels = (*range(9), 200)
        domain = jp.Domain([jp.Variable(f"x{n}", levels) for n in range(3)])
        options = ALONG | {"domain": None, "max_iter": 20}
        solution = fit(jp.Codes(domain, rows), 4, **options)
        assert np.isfinite([step.objective for step in solution.history]).all()
