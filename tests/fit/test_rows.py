"""Maximum likelihood from rows: the contract of every solver, and the optimum by brute force."""

import logging
import signal
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

import jointpmf as jp
from jointpmf import threads
from jointpmf.fit.settings import Effort, Kinds
from jointpmf.judge.curve import RankCurve
from support import oracle
from support.feasibility import feasible
from support.small_fits import (
    DOMAIN,
    ROWS,
    TRUTH,
    assert_same_bits,
    cost,
    fit,
    fit_rows,
    observed,
    pseudo_counts,
    with_holes,
)

VARIANTS = {
    "auto": {},
    "rows": {"start": "rows"},
    "random": {"start": "random"},
    "smoothed": {"smoothing": 0.5},
    "smoothed towards the marginals": {"smoothing": 2.0, "towards": "marginal", "start": "rows"},
}


def textbook_step(pmf, rows, **smoothing):
    """Return weights and factors after one EM step, row by row."""
    rows = observed(rows)
    added = pseudo_counts(rows, **smoothing) if smoothing else None
    return oracle.em_step(pmf.weights, pmf.factors, rows, np.ones(len(rows)), added)


def prior_of(variant):
    return {k: v for k, v in VARIANTS[variant].items() if k in ("smoothing", "towards")}


@pytest.mark.parametrize("variant", VARIANTS)
class TestContract:
    def test_the_result_is_feasible(self, variant):
        assert feasible(fit(**VARIANTS[variant]).pmf)

    def test_the_objective_does_not_rise(self, variant):
        objective = np.array([step.objective for step in fit(**VARIANTS[variant]).history])
        assert len(objective) > 2
        assert (np.diff(objective) <= 1e-12 * objective[0]).all()

    def test_the_reported_objective_is_that_of_the_model(self, variant):
        solution = fit(**VARIANTS[variant])
        expected = cost(solution.pmf, ROWS, **prior_of(variant))
        assert solution.objective == pytest.approx(expected, rel=1e-12)
        assert solution.objective == solution.history[-1].objective

    def test_an_optimum_is_a_fixed_point_of_the_textbook_step(self, variant):
        pmf = fit(**VARIANTS[variant], tol=1e-14, max_iter=5000).pmf
        weights, factors = textbook_step(pmf, ROWS, **prior_of(variant))
        np.testing.assert_allclose(pmf.weights, weights, atol=1e-5)
        for a, b in zip(pmf.factors, factors, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)

    def test_the_same_seed_gives_the_same_bits(self, variant):
        first, second = (fit(**VARIANTS[variant]).pmf for _ in range(2))
        assert_same_bits(first, second)

    def test_another_seed_begins_elsewhere(self, variant):
        first, second = (
            fit(**VARIANTS[variant], random_state=seed, max_iter=1).pmf for seed in (0, 1)
        )
        assert not np.array_equal(first.weights, second.weights)

    def test_other_names_and_levels_change_nothing(self, variant):
        renamed = jp.Domain(
            [jp.Variable(f"v {v.name}", [f"level {x}" for x in v.levels]) for v in DOMAIN]
        )
        other = fit(jp.Codes(renamed, ROWS), domain=None, **VARIANTS[variant])
        assert_same_bits(other.pmf, fit(**VARIANTS[variant]).pmf)
        assert other.pmf.domain == renamed

    def test_a_row_twice_is_a_row_of_weight_two(self, variant):
        weights = np.where(np.arange(len(ROWS)) < 100, 2.0, 1.0)
        double = fit(np.vstack([ROWS, ROWS[:100]]), **VARIANTS[variant])
        weighted = fit(sample_weight=weights, **VARIANTS[variant])
        assert_same_bits(double.pmf, weighted.pmf)

    def test_the_order_of_rows_does_not_matter(self, variant):
        shuffled = np.random.default_rng(5).permutation(ROWS)
        assert_same_bits(fit(shuffled, **VARIANTS[variant]).pmf, fit(**VARIANTS[variant]).pmf)

    def test_a_row_of_weight_zero_is_no_row(self, variant):
        weights = (np.arange(len(ROWS)) < 300).astype(float)
        weighted = fit(sample_weight=weights, **VARIANTS[variant])
        assert_same_bits(weighted.pmf, fit(ROWS[:300], **VARIANTS[variant]).pmf)

    def test_one_and_two_threads_give_the_same_bits(self, variant):
        truth = jp.random_pmf(jp.Domain.of_sizes([6] * 8), 4, 0)
        rows = truth.sample(6000, random_state=0, backend="codes")
        found = []
        for count in (1, 2):
            with threads.limited_to(count):
                options = VARIANTS[variant] | {"domain": None, "max_iter": 10}
                found.append(fit(with_holes(rows, 0.3), 4, **options).pmf)
        assert_same_bits(*found)


WIDE = jp.Domain.of_sizes([10] * 60)
WIDE_ROWS = jp.Codes(WIDE, jp.random_pmf(WIDE, 20, 0).sample(300, random_state=0, backend="codes"))


def curve_numbers(curve):
    return [score._replace(seconds=0.0) for score in curve.scores]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: fit(WIDE_ROWS, 20, domain=None, max_iter=20),
        lambda: fit(WIDE_ROWS, 20, domain=None, max_iter=20, n_average=2),
        lambda: jp.choose_rank(
            WIDE_ROWS,
            [19, 20],
            validation=WIDE_ROWS,
            search=jp.Search(n_starts=2),
            random_state=0,
            max_iter=2,
        ),
        lambda: fit_rows(  # its stack has more than 10,000 entries
            WIDE_ROWS, kinds=Kinds(ranks=(20,)), random_state=0
        ),
    ],
    ids=["auto start", "average", "rank", "automatic"],
)
def test_the_threads_of_blas_change_no_bit(ask):
    found = []
    for count in (1, 2):
        with threadpool_limits(count):
            found.append(ask())
    if isinstance(found[0], RankCurve):
        np.testing.assert_array_equal(found[0].fold_scores, found[1].fold_scores)
        assert curve_numbers(found[0]) == curve_numbers(found[1])
    else:
        assert found[0].objective == found[1].objective
        assert_same_bits(found[0].pmf, found[1].pmf)


@pytest.mark.parametrize("variant", ["random", "smoothed", "smoothed towards the marginals"])
def test_a_step_is_the_textbook_step(variant):
    seen = []
    start = jp.random_pmf(DOMAIN, 3, 2)
    options = VARIANTS[variant] | {"start": start, "max_iter": 1}
    # a fit with a validation part is EM without extrapolation
    fit(validation=ROWS[:5], callback=lambda _, pmf: seen.append(pmf), **options)
    weights, factors = textbook_step(start, ROWS, **prior_of(variant))
    np.testing.assert_allclose(seen[0].weights, weights, atol=1e-13)
    for a, b in zip(seen[0].factors, factors, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)


# seven pathologists look at 118 slides: Agresti, Categorical Data Analysis, 2002, Table 13.1;
# the optima are those that the R package poLCA documents
CARCINOMA = {
    "0000000": 34, "0000100": 2, "0100000": 6, "0100001": 1, "0100100": 4, "0100101": 5,
    "1000000": 2, "1010101": 1, "1100000": 2, "1100001": 1, "1100100": 2, "1100101": 7,
    "1100111": 1, "1101001": 1, "1101101": 2, "1101111": 3, "1110101": 13, "1110111": 5,
    "1111101": 10, "1111111": 16,
}  # fmt: skip


class TestOptimum:
    @pytest.mark.parametrize(
        ("rank", "published"), [(1, -524.4648), (2, -317.2568), (3, -293.705), (4, -289.2858)]
    )
    def test_published_optima_are_reproduced(self, rank, published):
        rows = np.array([[int(cell) for cell in pattern] for pattern in CARCINOMA])
        counts = list(CARCINOMA.values())
        solution = jp.fit_rows(rows, rank, sample_weight=counts, random_state=0)
        assert -solution.objective * sum(counts) == pytest.approx(published, abs=6e-5)

    def test_the_default_is_as_good_as_the_best_of_fifty_random_starts(self):
        rows = ROWS[:60]
        best = min(fit(rows, start="random", random_state=k).objective for k in range(50))
        assert fit(rows, effort=Effort()).objective <= best + 1e-6

    def test_a_rank_of_one_is_the_marginals(self):
        weights = np.random.default_rng(0).random(len(ROWS))
        solution = fit(rank=1, sample_weight=weights)
        assert solution.status is jp.Status.CONVERGED
        for n, factor in enumerate(solution.pmf.factors):
            counts = oracle.count_table(ROWS, [n], DOMAIN.sizes, weights)
            np.testing.assert_allclose(factor[:, 0], counts / counts.sum(), rtol=1e-13)

    def test_a_planted_model_is_recovered_from_incomplete_rows(self):
        rows = with_holes(TRUTH.sample(20_000, random_state=1, backend="codes"), 0.3)
        solution = fit(rows, effort=Effort())
        assert -solution.objective >= TRUTH.log_probability(observed(rows)).mean()
        assert jp.tensor_error(TRUTH, solution.pmf) < 0.05

    def test_a_scale_of_all_weights_does_not_matter(self):
        tables = [fit(sample_weight=np.full(len(ROWS), w)).pmf.table() for w in (1, 1e-8, 3e7)]
        np.testing.assert_allclose(tables[1], tables[0], atol=1e-6)
        np.testing.assert_allclose(tables[2], tables[0], atol=1e-6)

    def test_more_than_a_thousand_variables_do_not_underflow(self):
        generator = np.random.default_rng(0)
        planted = np.arange(100) % 2
        columns = np.array([[0.6, 0.4], [0.4, 0.6]])
        rows = (generator.random((100, 1200)) < columns[1][planted][:, None]).astype(int)
        solution = fit(rows, 2, domain=None, max_iter=50)
        logs = solution.pmf.log_probability(rows)
        assert logs.max() < np.log(5e-324)
        assert solution.objective == pytest.approx(-logs.mean(), rel=1e-12)
        found = solution.pmf.responsibilities(rows).argmax(axis=1)
        assert (found == planted).mean() in (0, 1)

    def test_variables_of_one_level_and_one_variable_alone(self):
        one_level = jp.fit_rows([[0, 1], [0, 0], [None, 1]], 2, random_state=0).pmf
        np.testing.assert_allclose(one_level.table(), [[1 / 3, 2 / 3]])
        alone = jp.fit_rows([["a"], ["b"], ["b"], ["b"]], 2, random_state=0).pmf
        np.testing.assert_allclose(alone.table(), [0.25, 0.75])


class TestInputs:
    def test_every_kind_of_table_gives_the_same_model(self):
        names = list(DOMAIN.names)
        pandas = pd.DataFrame(np.where(ROWS < 0, np.nan, ROWS), columns=names)
        polars = pl.DataFrame(
            {name: [None if c < 0 else int(c) for c in ROWS[:, n]] for n, name in enumerate(names)}
        )
        tables = [pandas, polars, polars.to_arrow(), ROWS.tolist(), jp.Codes(DOMAIN, ROWS)]
        assert isinstance(tables[2], pa.Table)
        for table in tables:
            assert_same_bits(fit(table, max_iter=20).pmf, fit(max_iter=20).pmf)

    def test_levels_are_read_from_the_table_and_numbers_are_binned(self):
        table = pl.DataFrame({"age": [20.5, 31.0, 44.0, 58.5], "vote": ["no", "yes", None, "no"]})
        pmf = jp.fit_rows(table, 1, bins={"age": [0, 40, 100]}).pmf
        assert pmf.domain["vote"].levels == ("no", "yes")
        np.testing.assert_allclose(pmf.factors[0][:, 0], [0.5, 0.5])
        np.testing.assert_allclose(pmf.factors[1][:, 0], [2 / 3, 1 / 3])


class TestLoop:
    def test_the_budget_is_kept_and_said(self):
        solution = fit(max_iter=7, tol=0)
        assert solution.status is jp.Status.MAX_ITER
        assert [step.iteration for step in solution.history] == list(range(8))

    def test_convergence_is_said(self):
        solution = fit(tol=1e-4, start="random")
        assert solution.status is jp.Status.CONVERGED
        last = [step.objective for step in solution.history[-3:]]
        assert max(-np.diff(last)) < 1e-4

    @pytest.mark.parametrize("start", ["auto", "rows", "random"])
    def test_no_iterations_return_a_start_that_can_explain_the_rows(self, start):
        solution = fit(start=start, max_iter=0)
        assert (solution.n_iter, solution.status) == (0, jp.Status.MAX_ITER)
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))

    def test_no_iterations_return_a_given_start(self):
        start = jp.random_pmf(DOMAIN, 3, 5)
        assert_same_bits(fit(start=start, max_iter=0).pmf, start)

    @pytest.mark.parametrize("start", ["auto", "random"])
    def test_the_callback_sees_every_model_and_can_stop(self, start):
        seen = []

        def callback(step, pmf):
            seen.append((step.iteration, feasible(pmf), cost(pmf, ROWS) - step.objective))
            return step.iteration == 4

        solution = fit(start=start, callback=callback, tol=0)
        assert [line[:2] for line in seen] == [(k, True) for k in range(1, 5)]
        assert np.abs([line[2] for line in seen]).max() < 1e-12
        assert solution.status is jp.Status.STOPPED
        assert solution.n_iter == 4

    def test_ctrl_c_returns_the_best_model_so_far(self):
        def interrupt(step, _):
            if step.iteration == 5:
                raise KeyboardInterrupt

        solution = fit(callback=interrupt, start="random", tol=0)
        assert (solution.status, solution.n_iter) == (jp.Status.STOPPED, 5)
        assert solution.objective == solution.history[-1].objective

    def test_a_real_interrupt_in_the_middle_of_a_pass(self):
        truth = jp.random_pmf(jp.Domain.of_sizes([6] * 8), 5, 0)
        rows = truth.sample(5000, random_state=0, backend="codes")
        options = {"start": truth, "domain": None}
        fit(rows, 5, max_iter=1, **options)
        timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
        timer.start()
        solution = fit(rows, 5, tol=0, max_iter=50_000, **options)
        assert solution.status is jp.Status.STOPPED
        assert solution.n_iter > 0
        assert feasible(solution.pmf)
        assert solution.objective == pytest.approx(-solution.pmf.log_probability(rows).mean())

    def test_nothing_is_printed_and_the_end_is_logged(self, capfd, caplog):
        with caplog.at_level(logging.INFO, logger="jointpmf"):
            fit(max_iter=3, tol=0)
        assert capfd.readouterr() == ("", "")
        assert "after 3 iterations" in caplog.text


class TestSmoothing:
    WIDER = jp.Domain.of_sizes([5, 2, 5, 3, 4])  # nobody has seen level 4 of x0

    def test_a_level_never_seen_has_probability_zero_and_nothing_is_nan(self):
        pmf = fit(domain=self.WIDER).pmf
        np.testing.assert_array_equal(pmf.factors[0][4], 0)
        assert feasible(pmf)
        assert pmf.log_probability([[4, None, None, None, None]]) == -np.inf

    @pytest.mark.parametrize("towards", ["uniform", "marginal"])
    @pytest.mark.parametrize("start", ["auto", "rows", "random"])
    def test_a_level_never_seen_may_happen_with_smoothing(self, towards, start):
        solution = fit(domain=self.WIDER, smoothing=0.1, towards=towards, start=start)
        assert solution.pmf.factors[0][4].min() > 0
        assert np.isfinite(solution.objective)
        assert feasible(solution.pmf)

    @pytest.mark.parametrize("towards", ["uniform", "marginal"])
    def test_columns_are_pulled_where_it_says(self, towards):
        pmf = fit(smoothing=1e7, towards=towards).pmf
        expected = pseudo_counts(ROWS, 1.0, towards)
        for factor, added in zip(pmf.factors, expected, strict=True):
            np.testing.assert_allclose(factor, np.tile(added[:, None], 3) / added.sum(), atol=1e-4)

    def test_more_smoothing_fits_the_rows_less(self):
        fits = [-fit(smoothing=s).pmf.log_probability(ROWS).mean() for s in (0, 0.1, 1, 10)]
        assert np.all(np.diff(fits) > 0)
