"""Least squares on marginals that were counted over rows: the method of the paper."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit import coupled

TRUTH = jp.random_pmf(jp.Domain.of_sizes([4] * 5), 2, random_state=1)
ROWS = TRUTH.sample(50_000, random_state=0, backend="codes")
HOLES = np.where(np.random.default_rng(1).random(ROWS.shape) < 0.2, jp.MISSING, ROWS)
OTHER_ROWS = TRUTH.sample(500, random_state=7, backend="codes")


def counted(rows=HOLES, order=3):
    return jp.MarginalSet.from_table(rows, order=order, domain=TRUTH.domain)


def fit(marginals, rank=2, **options):
    options = {"loss": "squares", "random_state": 0} | options
    return jp.fit_marginals(marginals, rank, **options)


def misfit(pmf):
    return -float(pmf.log_probability(OTHER_ROWS).mean())


class TestPlantedModel:
    @pytest.mark.parametrize("method", ["auto", "aoadmm"])
    @pytest.mark.parametrize("weighting", [None, "counts"])
    def test_triples_of_rows_with_missing_cells_recover_it(self, method, weighting):
        solution = fit(counted(), method=method, weighting=weighting)
        assert jp.factor_error(TRUTH, solution.pmf) < 0.05
        assert solution.source.loss == "squares"
        assert solution.is_unique

    def test_aoadmm_from_a_random_start_recovers_it(self):
        start = jp.Search(start="random")
        solution = fit(counted(), method="aoadmm", search=start, tol=1e-9)
        assert jp.factor_error(TRUTH, solution.pmf) < 0.05

    def test_more_rows_come_closer(self):
        few, many = (jp.factor_error(TRUTH, fit(counted(rows)).pmf) for rows in (ROWS[:2000], ROWS))
        assert many < few / 2

    def test_the_rank_is_found(self):
        assert fit(counted(), "auto").pmf.rank == 2


class TestWeighting:
    """By default all marginals count alike; on request, by the rows that observe them."""

    def test_the_default_is_equal_weights(self):
        default, equal = (fit(counted(), weighting=w) for w in (None, np.ones(10)))
        assert default.objective == equal.objective
        np.testing.assert_array_equal(default.pmf.weights, equal.pmf.weights)

    def test_counts_are_the_share_of_the_rows(self):
        marginals = counted()
        n_rows = np.array([marginal.n_obs for marginal in marginals])
        by_counts = fit(marginals, weighting="counts")
        as_given = fit(marginals, weighting=n_rows)  # scaled so that the largest is one
        assert jp.factor_error(by_counts.pmf, as_given.pmf) < 1e-6
        assert jp.factor_error(by_counts.pmf, fit(marginals).pmf) > 1e-5


@pytest.mark.parametrize("validation", [OTHER_ROWS, misfit], ids=["rows", "function"])
@pytest.mark.parametrize("rank", [2, "auto"])
def test_a_validation_stops_a_fit(validation, rank):
    solution = fit(counted(ROWS[:500]), rank, validation=validation, max_iter=30)
    assert solution.validation == min(step.validation for step in solution.history)
    again = fit(counted(ROWS[:500]), rank, validation=validation, max_iter=30)
    assert again.validation == solution.validation


def test_an_interrupt_before_there_is_a_start_gives_a_model(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(coupled, "algebraic_start", interrupted)
    solution = fit(counted())
    assert solution.status is jp.Status.STOPPED
    assert str(solution.start) == "random: interrupted before it began"
    assert solution.pmf.weights.sum() == pytest.approx(1, abs=1e-12)
