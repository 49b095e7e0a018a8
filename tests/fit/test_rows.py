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
from jointpmf.fit import automatic
from jointpmf.fit import plan as fit_plan
from jointpmf.fit import rows as likelihood
from support import oracle
from support.feasibility import feasible

VARIANTS = {
    "auto": {},
    "rows": {"start": "rows"},
    "random": {"start": "random"},
    "smoothed": {"smoothing": 0.5},
    "smoothed towards the marginals": {"smoothing": 2.0, "towards": "marginal", "start": "rows"},
}

DOMAIN = jp.Domain.of_sizes([4, 2, 5, 3, 4])


def separated_pmf(domain, weights, seed):
    """Return a model whose components are easy to tell apart."""
    generator = np.random.default_rng(seed)
    columns = [generator.dirichlet(np.full(size, 0.3), len(weights)).T for size in domain.sizes]
    return jp.JointPMF(domain, weights, columns)


def with_holes(rows, part, seed=1):
    holes = np.random.default_rng(seed).random(rows.shape) < part
    return np.where(holes, jp.MISSING, rows)


TRUTH = separated_pmf(DOMAIN, [0.5, 0.3, 0.2], seed=0)
ROWS = with_holes(TRUTH.sample(400, random_state=0, backend="codes"), 0.3)


def fit(rows=ROWS, rank=3, **options):
    options = {"random_state": 0, "domain": DOMAIN, "max_iter": 200} | options
    return jp.fit_rows(rows, rank, **options)


def assert_same_bits(first, second):
    np.testing.assert_array_equal(first.weights, second.weights)
    for a, b in zip(first.factors, second.factors, strict=True):
        np.testing.assert_array_equal(a, b)


def observed(rows):
    return rows[(rows >= 0).any(axis=1)]


def pseudo_counts(rows, smoothing, towards="uniform"):
    """Return what smoothing adds to each level, by the definition (docs/math.md, eq. 21)."""
    added = []
    for n, size in enumerate(DOMAIN.sizes):
        share = np.full(size, 1 / size)
        if towards == "marginal":
            counts = oracle.count_table(rows, [n], DOMAIN.sizes)
            share = 0.999 * counts / counts.sum() + 0.001 * share
        added.append(smoothing * size * share)
    return added


def cost(pmf, rows, **smoothing):
    """Return minus the mean log-likelihood with the prior, by brute force."""
    rows = observed(rows)
    added = pseudo_counts(rows, **smoothing) if smoothing else None
    return oracle.em_objective(pmf.weights, pmf.factors, rows, np.ones(len(rows)), added)


def textbook_step(pmf, rows, **smoothing):
    """Return weights and factors after one EM step, row by row."""
    rows = observed(rows)
    added = pseudo_counts(rows, **smoothing) if smoothing else None
    return oracle.em_step(pmf.weights, pmf.factors, rows, np.ones(len(rows)), added)


def prior_of(variant):
    return {k: v for k, v in VARIANTS[variant].items() if k in ("smoothing", "towards")}


@pytest.fixture
def few_starts(monkeypatch):
    """Try one start of each kind, where many would only take their time."""
    monkeypatch.setattr(fit_plan, "MAX_CANDIDATES", 4)


@pytest.mark.usefixtures("few_starts")
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
    return [score[:-1] for score in curve.scores]


@pytest.mark.usefixtures("few_starts")
@pytest.mark.parametrize(
    "ask",
    [
        lambda: jp.fit_rows(WIDE_ROWS, 20, random_state=0, max_iter=20),
        lambda: jp.fit_rows(WIDE_ROWS, 20, random_state=0, max_iter=20, n_average=2),
        lambda: jp.choose_rank(WIDE_ROWS, [19, 20], n_folds=2, random_state=0, max_iter=5),
        lambda: jp.fit_auto(WIDE_ROWS, random_state=0),
    ],
    ids=["auto start", "average", "rank", "automatic"],
)
def test_the_threads_of_blas_change_no_bit(monkeypatch, ask):
    monkeypatch.setattr(automatic, "RANKS", (20,))  # its stack has more than 10,000 entries
    found = []
    for count in (1, 2):
        with threadpool_limits(count):
            found.append(ask())
    if isinstance(found[0], jp.RankCurve):
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
        assert fit(rows).objective <= best + 1e-6

    def test_a_rank_of_one_is_the_marginals(self):
        weights = np.random.default_rng(0).random(len(ROWS))
        solution = fit(rank=1, sample_weight=weights)
        assert solution.status is jp.Status.CONVERGED
        for n, factor in enumerate(solution.pmf.factors):
            counts = oracle.count_table(ROWS, [n], DOMAIN.sizes, weights)
            np.testing.assert_allclose(factor[:, 0], counts / counts.sum(), rtol=1e-13)

    def test_a_planted_model_is_recovered_from_incomplete_rows(self):
        rows = with_holes(TRUTH.sample(20_000, random_state=1, backend="codes"), 0.3)
        solution = fit(rows)
        assert -solution.objective >= TRUTH.log_probability(observed(rows)).mean()
        assert jp.tensor_error(TRUTH, solution.pmf) < 0.05

    @pytest.mark.usefixtures("few_starts")
    def test_a_scale_of_all_weights_does_not_matter(self):
        tables = [fit(sample_weight=np.full(len(ROWS), w)).pmf.table() for w in (1, 1e-8, 3e7)]
        np.testing.assert_allclose(tables[1], tables[0], atol=1e-6)
        np.testing.assert_allclose(tables[2], tables[0], atol=1e-6)

    @pytest.mark.usefixtures("few_starts")
    def test_more_than_a_thousand_variables_do_not_underflow(self):
        generator = np.random.default_rng(0)
        planted = np.arange(100) % 2
        columns = np.array([[0.6, 0.4], [0.4, 0.6]])
        rows = (generator.random((100, 1200)) < columns[1][planted][:, None]).astype(int)
        solution = jp.fit_rows(rows, 2, random_state=0, max_iter=50)
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


@pytest.mark.usefixtures("few_starts")
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


class TestMarginalsMethod:
    def test_it_is_fit_marginals_on_the_counted_marginals(self):
        weights = np.random.default_rng(0).random(len(ROWS))
        options = {"max_iter": 50, "tol": 1e-9, "random_state": 3}
        marginals = jp.MarginalSet.from_table(ROWS, 2, weights, domain=DOMAIN)
        expected = jp.fit_marginals(marginals, 3, weighting="counts", **options)
        found = fit(method="marginals", order=2, sample_weight=weights, **options)
        assert_same_bits(found.pmf, expected.pmf)
        assert found.objective == expected.objective

    def test_the_default_is_triples(self):
        assert {len(m.names) for m in fit(method="marginals", max_iter=3).marginals} == {3}

    def test_the_start_and_the_callback_are_passed_on(self):
        seen = []
        start = jp.random_pmf(DOMAIN, 3, 0)
        options = {"start": start, "max_iter": 2, "tol": 0}
        fit(method="marginals", callback=lambda step, _: seen.append(step.iteration), **options)
        assert seen == [1, 2]
        assert jp.factor_error(start, fit(method="marginals", start=start, max_iter=0).pmf) < 1e-15


@pytest.mark.usefixtures("few_starts")
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


@pytest.mark.usefixtures("few_starts")
class TestStarts:
    @pytest.mark.parametrize(
        ("start", "said"),
        [("auto", ": the best of "), ("rows", "rows: as asked"), ("random", "random: as asked")],
    )
    def test_it_is_said_where_the_fit_began(self, start, said):
        assert said in fit(start=start, max_iter=1).start

    def test_an_optimum_stays(self):
        found = fit(tol=1e-13, max_iter=5000)
        again = fit(start=found.pmf)
        assert again.start == "given: a JointPMF"
        assert again.n_iter <= 3
        np.testing.assert_allclose(again.pmf.table(), found.pmf.table(), atol=1e-7)

    def test_a_start_that_excludes_rows_is_said_and_mended(self, caplog):
        generator = np.random.default_rng(0)
        corners = [np.eye(size)[:, generator.integers(size, size=3)] for size in DOMAIN.sizes]
        with caplog.at_level(logging.INFO, logger="jointpmf"):
            solution = fit(start=jp.JointPMF(DOMAIN, [0.2, 0.3, 0.5], corners))
        assert "distinct rows probability zero" in caplog.text
        assert np.isfinite([step.objective for step in solution.history]).all()
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))

    def test_a_start_that_explains_all_rows_is_taken_as_it_is(self, caplog):
        fit(start=jp.random_pmf(DOMAIN, 3, 0), max_iter=1)
        assert not caplog.records


def failing(function, calls, which, error=jp.JointPMFError):
    """Return the function, made to fail at some of its calls."""

    def wrapped(*args):
        calls.append(args)
        if len(calls) in which:
            raise error(f"call {len(calls)} failed")
        return function(*args)

    return wrapped


@pytest.mark.usefixtures("few_starts")
class TestSeveralFits:
    def test_the_best_is_returned_and_all_are_recorded(self):
        solution = fit(start="random", n_init=5, max_iter=20)
        objectives = [restart.objective for restart in solution.restarts]
        assert len(set(objectives)) == 5
        assert solution.objective == min(objectives)
        assert {restart.start for restart in solution.restarts} == {"random: as asked"}
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))

    def test_one_fit_records_no_restarts(self):
        assert fit(max_iter=1).restarts == ()

    def test_a_failing_start_is_recorded_and_not_fatal(self, monkeypatch, caplog):
        wrapped = failing(fit_plan.point_at_rows, [], {2})
        monkeypatch.setattr(fit_plan, "point_at_rows", wrapped)
        solution = fit(start="rows", n_init=3, max_iter=5)
        failed = solution.restarts[1]
        assert (failed.status, failed.error) == (None, "call 2 failed")
        assert "start number 2 failed: call 2 failed" in caplog.text
        others = [solution.restarts[0].objective, solution.restarts[2].objective]
        assert solution.objective == min(others) < failed.objective

    @pytest.mark.parametrize("n_init", [1, 3])
    def test_starts_that_all_fail_raise(self, monkeypatch, n_init):
        wrapped = failing(fit_plan.point_at_rows, [], {1, 2, 3})
        monkeypatch.setattr(fit_plan, "point_at_rows", wrapped)
        with pytest.raises(jp.JointPMFError, match=f"call {n_init} failed"):
            fit(start="rows", n_init=n_init)

    def test_the_status_is_that_of_the_returned_fit(self):
        optimum = fit(tol=1e-13, max_iter=5000).pmf
        independent = fit(rank=1).pmf
        saddle = jp.average([independent] * 3)
        converged, unfinished = jp.Status.CONVERGED, jp.Status.MAX_ITER
        for start, expected in (optimum, converged), (saddle, unfinished):
            solution = fit(start=start, n_init=2, max_iter=3)
            assert [r.status for r in solution.restarts] == [converged, unfinished]
            assert solution.status is expected

    def test_stopping_one_fit_stops_them_all(self):
        solution = fit(n_init=4, start="random", callback=lambda step, _: step.iteration == 2)
        assert solution.status is jp.Status.STOPPED
        assert len(solution.restarts) == 1

    def test_stopping_a_later_fit_ends_the_search_and_the_best_keeps_its_status(self):
        seen = []

        def callback(step, _):
            seen.append(step.iteration)
            return seen.count(1) == 2

        optimum = fit(tol=1e-13, max_iter=5000).pmf
        solution = fit(start=optimum, n_init=3, max_iter=3, callback=callback)
        assert [r.status for r in solution.restarts] == [jp.Status.CONVERGED, jp.Status.STOPPED]
        assert solution.objective == solution.restarts[0].objective
        assert solution.status is jp.Status.CONVERGED


@pytest.mark.usefixtures("few_starts")
class TestCandidates:
    """What goes wrong while one of the default starts is being made."""

    KINDS = ("point_in_closed_form", "point_of_merged_rows", "point_at_rows", "random_point")

    @pytest.mark.parametrize("validation", [None, 0.2])
    @pytest.mark.parametrize(("kind", "call"), [(KINDS[0], 1), (KINDS[1], 1), (KINDS[1], 2)])
    def test_ctrl_c_returns_the_best_so_far(self, monkeypatch, kind, call, validation):
        wrapped = failing(getattr(fit_plan, kind), [], {call}, KeyboardInterrupt)
        monkeypatch.setattr(fit_plan, kind, wrapped)
        ended = note_solutions(monkeypatch)
        solution = fit(ROWS, validation=validation)
        assert (solution.status, solution.n_iter) == (jp.Status.STOPPED, 0)
        best = min(fit_plan.badness(s) for s in ended)
        assert fit_plan.badness(solution) == pytest.approx(best, abs=1e-6)
        assert np.isfinite(solution.pmf.log_probability(ROWS)).all()

    def test_ctrl_c_ends_several_fits(self, monkeypatch):
        wrapped = failing(fit_plan.point_of_merged_rows, [], {2}, KeyboardInterrupt)
        monkeypatch.setattr(fit_plan, "point_of_merged_rows", wrapped)
        solution = fit(n_init=3)
        assert [restart.status for restart in solution.restarts] == [jp.Status.STOPPED]

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("error", [jp.JointPMFError, np.linalg.LinAlgError, OverflowError])
    def test_one_that_fails_is_said_and_not_fatal(self, monkeypatch, caplog, kind, error):
        monkeypatch.setattr(fit_plan, kind, failing(getattr(fit_plan, kind), [], {1}, error))
        solution = fit(max_iter=20)
        assert "call 1 failed" in caplog.text
        assert solution.start.endswith("the best of 4 starts")
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))

    def test_all_that_fail_raise(self, monkeypatch):
        for kind in self.KINDS:
            monkeypatch.setattr(fit_plan, kind, failing(None, [], range(99)))
        with pytest.raises(jp.JointPMFError, match="failed"):
            fit()

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("seed", range(31))
    def test_a_table_of_two_rows_is_fitted(self, seed):
        domain = jp.Domain.of_sizes([1, 3, 1, 3, 3])
        rows = [[0, 2, 0, 2, 0], [0, 0, 0, 2, 1]]
        solution = jp.fit_rows(rows, 2, domain=domain, random_state=seed)
        assert solution.objective == pytest.approx(np.log(2), abs=1e-6)
        assert feasible(solution.pmf)


class TestSampledStarts:
    """Candidates that see a few of the rows only, as those of a large table do."""

    @pytest.fixture
    def samples(self, monkeypatch):
        """Note the rows that candidates are tried with: a few, and never the first."""
        noted = []

        def few(self, rows, generator):
            first = np.flatnonzero(rows.cells[rows.ptr[:-1]] == 3)
            assert len(first) == 1
            others = np.setdiff1d(np.arange(len(rows)), first)
            noted.append(rows.taken(np.sort(generator.permutation(others)[:20])))
            return fit_plan.MIN_CANDIDATES, noted[-1]

        monkeypatch.setattr(fit_plan.FitPlan, "_affordable", few)
        return noted

    def test_they_are_a_part_of_the_rows_if_work_is_scarce(self, monkeypatch):
        monkeypatch.setattr(fit_plan, "START_WORK", 1e6)
        monkeypatch.setattr(fit_plan, "MIN_ROWS_PER_COMPONENT", 10)
        sizes, loop = [], fit_plan.iterate

        def noted(em, *args, **options):
            sizes.append(len(em.expectation.rows))
            return loop(em, *args, **options)

        monkeypatch.setattr(fit_plan, "iterate", noted)
        solution = fit(max_iter=20)
        *tried, last = sizes
        assert (len(tried) > 1, set(tried), last > 200) == (True, {30}, True)
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS))

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("others", [2, jp.MISSING], ids=["level", "variable"])
    @pytest.mark.parametrize(
        "options", [{}, {"max_iter": 0}, {"smoothing": 0.1}, {"smoothing": 0.1, "validation": ROWS}]
    )
    def test_a_level_or_variable_that_they_do_not_see_is_possible(self, samples, others, options):
        rows = TRUTH.sample(400, random_state=0, backend="codes")
        rows[:, 0] = others
        rows[0, 0] = 3
        for seed in range(3):
            solution = fit(rows, random_state=seed, **({"max_iter": 20} | options))
            assert np.isfinite(solution.objective)
            assert np.isfinite(solution.pmf.log_probability(rows)).all()
        assert [rows.counts[3] for rows in samples] == [0] * 3


@pytest.fixture
def averaged(monkeypatch):
    """Note the members of every average."""
    members = []

    def spy(pmfs):
        members.extend(pmfs)
        return jp.average(pmfs)

    monkeypatch.setattr(likelihood, "average", spy)
    return members


@pytest.mark.usefixtures("few_starts")
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
        assert solution.start == "the average of 3 fits"
        assert len(solution.restarts) == 3

    def test_the_same_seed_gives_the_same_bits(self):
        first, second = (fit(n_average=2, max_iter=5, validation=0.2).pmf for _ in range(2))
        assert_same_bits(first, second)

    def test_members_that_did_not_finish_are_said(self):
        assert fit(n_average=2, max_iter=3, tol=0).status is jp.Status.MAX_ITER
        assert fit(n_average=2, max_iter=2000, tol=1e-4).status is jp.Status.CONVERGED

    def test_each_member_is_the_best_of_several_fits(self, monkeypatch):
        ended = note_solutions(monkeypatch)
        solution = fit(n_init=3, n_average=2, max_iter=10)
        assert len(ended) == 6
        best = [min(s.objective for s in part) for part in (ended[:3], ended[3:])]
        assert [restart.objective for restart in solution.restarts] == best

    def test_the_validation_is_the_mean_of_the_members(self, monkeypatch):
        ended = note_solutions(monkeypatch)
        solution = fit(n_init=2, n_average=3, max_iter=10, validation=0.2, smoothing=0.1)
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


@pytest.mark.usefixtures("few_starts")
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


def note_solutions(monkeypatch):
    """Return a list that every run of the loop adds its solution to."""
    ended, loop = [], fit_plan.iterate

    def noted(*args, **options):
        ended.append(loop(*args, **options))
        return ended[-1]

    monkeypatch.setattr(fit_plan, "iterate", noted)
    return ended


OTHER_ROWS = with_holes(TRUTH.sample(200, random_state=9, backend="codes"), 0.3)
OVERFIT = {"rank": 12, "start": "rows", "max_iter": 500, "tol": 0}


@pytest.mark.usefixtures("few_starts")
class TestValidation:
    def test_the_model_that_fits_other_rows_best_is_returned(self):
        solution = fit(validation=OTHER_ROWS, **OVERFIT)
        held_out = [step.validation for step in solution.history]
        assert solution.status is jp.Status.VALIDATED
        assert int(np.argmin(held_out)) == solution.n_iter - 10
        assert solution.validation == min(held_out)
        assert solution.validation == pytest.approx(cost(solution.pmf, OTHER_ROWS), rel=1e-12)
        assert solution.objective == pytest.approx(cost(solution.pmf, ROWS), rel=1e-12)

    def test_it_predicts_better_than_the_likeliest_model(self):
        stopped = fit(validation=OTHER_ROWS, **OVERFIT)
        new = TRUTH.sample(2000, random_state=10, backend="codes")
        logs = [s.pmf.log_probability(new) for s in (stopped, fit(smoothing=1e-6, **OVERFIT))]
        assert logs[0].mean() > logs[1].mean() + 0.05

    def test_validation_rows_of_every_kind(self):
        table = jp.Codes(DOMAIN, OTHER_ROWS)
        polars = TRUTH.sample(50, random_state=1)
        for given in table, polars, polars.to_pandas():
            assert fit(validation=given, max_iter=3).validation is not None

    def test_the_best_of_several_fits_is_the_best_on_other_rows(self, monkeypatch):
        ended = note_solutions(monkeypatch)
        solution = fit(validation=OTHER_ROWS, n_init=6, **OVERFIT)
        held_out, fitted = ([getattr(s, of) for s in ended] for of in ("validation", "objective"))
        assert len(ended) == 6
        assert np.argmin(held_out) != np.argmin(fitted)
        assert solution.validation == min(held_out)
        assert [restart.validation for restart in solution.restarts] == held_out

    def test_the_best_start_is_the_best_on_other_rows(self, monkeypatch):
        ended = note_solutions(monkeypatch)
        fit(validation=OTHER_ROWS, rank=6, max_iter=50)
        *candidates, final = ended
        held_out, fitted = (
            [getattr(s, of) for s in candidates] for of in ("validation", "objective")
        )
        assert len(candidates) == 4
        assert np.argmin(held_out) != np.argmin(fitted)
        assert final.history[0].validation == pytest.approx(min(held_out), abs=1e-6)

    def test_rows_that_cannot_happen_do_not_spoil_the_comparison(self):
        wider = jp.Domain.of_sizes([5, 2, 5, 3, 4])
        impossible = np.vstack([OTHER_ROWS, [[4, 0, 0, 0, 0]]])
        paths = []
        for given in OTHER_ROWS, impossible:
            options = {"domain": wider, "start": "rows", "max_iter": 10}
            solution = fit(validation=given, **options)
            paths.append(np.diff([step.validation for step in solution.history]))
        np.testing.assert_array_equal(paths[1], paths[0])  # they are not scored


class Spy:
    """Note what a class was called with, and call it."""

    def __init__(self, monkeypatch, name):
        self.calls, self.cls = [], getattr(fit_plan, name)
        monkeypatch.setattr(fit_plan, name, self)

    def __call__(self, *args):
        self.calls.append(args)
        return self.cls(*args)


@pytest.mark.usefixtures("few_starts")
class TestValidationFraction:
    # no two rows are alike
    UNIQUE = np.array([[(k >> b) & 1 for b in range(8)] for k in range(200)])

    def rows_of(self, calls):
        return [
            {tuple(rows.cells_of(np.array([m]))[1]) for m in range(len(rows))} for rows in calls
        ]

    def test_the_rows_are_parted(self, monkeypatch):
        held_out, fitted = Spy(monkeypatch, "HeldOut"), Spy(monkeypatch, "EM")
        fit(self.UNIQUE, 2, domain=None, validation=0.25, start="rows", max_iter=2)
        (other,), (seen,) = (self.rows_of(c[0] for c in s.calls) for s in (held_out, fitted))
        assert (len(other), len(seen), len(other & seen)) == (50, 150, 0)

    def test_what_is_held_out_is_scored(self, monkeypatch):
        held_out = Spy(monkeypatch, "HeldOut")
        solution = fit(self.UNIQUE, 2, domain=None, validation=0.25, max_iter=5)
        cells = [held_out.calls[0][0].cells_of(np.array([m]))[1] for m in range(50)]
        rows = np.array(cells) - 2 * np.arange(8)
        expected = -solution.pmf.log_probability(rows).mean()
        assert solution.validation == pytest.approx(expected, rel=1e-12)

    def test_members_of_an_average_have_splits_of_their_own(self, monkeypatch):
        held_out, fitted = Spy(monkeypatch, "HeldOut"), Spy(monkeypatch, "EM")
        fit(self.UNIQUE, 2, domain=None, validation=0.25, n_average=3, max_iter=2)
        others, seen = (self.rows_of(c[0] for c in s.calls) for s in (held_out, fitted))
        assert [(len(a), len(b), len(a & b)) for a, b in zip(others, seen, strict=True)] == [
            (50, 150, 0)
        ] * 3
        assert len(set(map(frozenset, others))) == 3

    def test_a_column_observed_only_once_is_fine(self):
        rows = ROWS.copy()
        rows[:, 0] = jp.MISSING
        rows[5, 0] = 2
        for seed in range(4):
            solution = fit(rows, validation=0.4, random_state=seed, smoothing=0.01, max_iter=5)
            assert np.isfinite([solution.objective, solution.validation]).all()

    def test_fits_from_several_starts_share_a_split(self, monkeypatch):
        held_out = Spy(monkeypatch, "HeldOut")
        solution = fit(self.UNIQUE, 2, domain=None, validation=0.25, n_init=3, max_iter=2)
        assert len(solution.restarts) == 3
        assert len(held_out.calls) == 1


@pytest.mark.usefixtures("few_starts")
class TestValidationCells:
    HIDDEN = np.random.default_rng(3).random(ROWS.shape) < 0.2

    def test_a_hidden_cell_is_predicted_from_the_rest_of_its_row(self):
        solution = fit(validation=self.HIDDEN, max_iter=10)
        visible = np.where(self.HIDDEN, jp.MISSING, ROWS)
        logs = [
            np.log(solution.pmf.predict_proba(visible[[m]], f"x{n}")[0, ROWS[m, n]])
            for m, n in zip(*np.nonzero(self.HIDDEN & (ROWS >= 0)), strict=True)
        ]
        assert len(logs) > 100
        assert solution.validation == pytest.approx(-np.mean(logs), rel=1e-10)
        assert solution.objective == pytest.approx(cost(solution.pmf, visible), rel=1e-12)

    def test_which_cells_are_hidden_can_be_a_table_or_a_list(self):
        options = {"start": "rows", "max_iter": 5, "tol": 0}
        expected = fit(validation=self.HIDDEN, **options)
        names = list(DOMAIN.names)
        for given in (
            self.HIDDEN.tolist(),
            pd.DataFrame(self.HIDDEN, columns=names),
            pl.DataFrame(self.HIDDEN, schema=names),
        ):
            found = fit(validation=given, **options)
            assert found.validation == expected.validation
            assert_same_bits(found.pmf, expected.pmf)

    def test_hidden_cells_count_by_the_weight_of_their_rows(self):
        weights = np.where(np.arange(len(ROWS)) < 100, 2.0, 1.0)
        weighted = fit(validation=self.HIDDEN, sample_weight=weights, max_iter=10)
        twice = [np.vstack([part, part[:100]]) for part in (ROWS, self.HIDDEN)]
        double = fit(twice[0], validation=twice[1], max_iter=10)
        assert weighted.validation == pytest.approx(double.validation, rel=1e-12)
        assert_same_bits(weighted.pmf, double.pmf)

    def test_hidden_cells_have_no_influence_on_what_is_fitted(self):
        paths = []
        for rows in ROWS, np.where(self.HIDDEN & (ROWS >= 0), 0, ROWS):
            seen = []
            options = {"start": "rows", "max_iter": 5, "tol": 0}
            fit(rows, validation=self.HIDDEN, callback=lambda _, p, s=seen: s.append(p), **options)
            paths.append(seen)
        assert len(paths[0]) == 5
        for first, second in zip(*paths, strict=True):
            assert_same_bits(first, second)

    def test_rows_whose_cells_are_all_hidden_are_predicted_by_the_marginal(self):
        hidden = np.zeros(ROWS.shape, bool)
        hidden[:20, 0] = True
        rows = ROWS.copy()
        rows[:20] = jp.MISSING
        rows[:20, 0] = 1
        solution = fit(rows, validation=hidden, max_iter=5)
        expected = -np.log(solution.pmf.marginal(["x0"]).table()[1])
        assert solution.validation == pytest.approx(expected, rel=1e-12)


def test_an_interrupt_ends_an_average_of_fits_from_several_starts():
    begun = []

    def interrupt(step, _):
        if step.iteration == 1:
            begun.append(step)
        if len(begun) == 2:
            raise KeyboardInterrupt

    best = fit(tol=1e-13, max_iter=5000).pmf
    fit(start=best, n_init=3, n_average=4, max_iter=3, callback=interrupt)
    assert len(begun) == 2


def test_a_level_that_only_the_validation_part_has_does_not_choose_the_model():
    domain = jp.Domain.of_sizes([4, 2, 5, 3, 4, 3])
    rows = jp.random_pmf(domain, 3, 0).sample(1500, random_state=0, backend="codes")
    rows[:, 0] = np.where(rows[:, 0] == 3, 2, rows[:, 0])
    rows[7, 0] = 3
    for seed in range(4):
        options = {"domain": domain, "random_state": seed}
        fitted = jp.fit_rows(rows, 3, validation=0.2, **options)
        assert fitted.objective < jp.fit_rows(rows, 1, **options).objective + 0.02


def test_a_table_of_truth_values_can_have_rows_to_validate_on():
    rows = np.random.default_rng(0).random((60, 3)) < 0.5
    with_rows = jp.fit_rows(rows, 2, validation=rows[:20], random_state=0)
    assert with_rows.status in (jp.Status.VALIDATED, jp.Status.CONVERGED)
    objects = np.zeros((60, 3), object)
    objects[:] = False
    objects[0, 0] = True
    as_objects, as_bools = (
        jp.fit_rows(rows, 2, validation=mask, random_state=0).validation
        for mask in (objects, objects.astype(bool))
    )
    assert as_objects == as_bools


def error_of_cells(pmf, rows, hidden, weights=None):
    """Return the root of the mean squared error of hidden cells, by asking the model."""
    visible = np.where(hidden, jp.MISSING, rows)
    squares, shares = [], []
    for n, name in enumerate(pmf.domain.names):
        at = np.flatnonzero(hidden[:, n] & (rows[:, n] >= 0))
        values = np.array(pmf.domain[name].values)
        codes = jp.Codes(pmf.domain, visible[at])
        squares.extend((pmf.expectation(codes, name) - values[rows[at, n]]) ** 2)
        shares.extend(np.ones(len(at)) if weights is None else weights[at])
    return np.sqrt(np.average(squares, weights=shares))


BY_ERROR = {"rank": 8, "start": "rows", "max_iter": 60, "tol": 0, "scoring": "error"}


@pytest.mark.usefixtures("few_starts")
class TestScoring:
    HIDDEN = np.random.default_rng(3).random(ROWS.shape) < 0.2

    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_model_with_the_least_error_is_returned(self, weighted):
        weights = np.random.default_rng(0).integers(0, 4, len(ROWS)) if weighted else None
        seen = []
        options = BY_ERROR | {"callback": lambda _, pmf: seen.append(pmf)}
        solution = fit(validation=self.HIDDEN, sample_weight=weights, **options)
        held_out = [step.validation for step in solution.history]
        best = int(np.argmin(held_out))
        assert 0 < best < len(held_out) - 1
        assert solution.validation == held_out[best]
        assert_same_bits(solution.pmf, seen[best - 1])
        errors = [error_of_cells(pmf, ROWS, self.HIDDEN, weights) for pmf in seen]
        np.testing.assert_allclose(held_out[1:], errors, rtol=1e-12)

    def test_the_likelihood_would_choose_another(self):
        found = [
            fit(validation=self.HIDDEN, **BY_ERROR | {"scoring": scoring})
            for scoring in ("error", "likelihood")
        ]
        errors = [error_of_cells(s.pmf, ROWS, self.HIDDEN) for s in found]
        assert errors[0] < errors[1]

    def test_a_row_of_weight_two_is_a_row_twice(self):
        weights = np.where(np.arange(len(ROWS)) < 100, 2.0, 1.0)
        weighted = fit(validation=self.HIDDEN, sample_weight=weights, **BY_ERROR)
        twice = [np.vstack([part, part[:100]]) for part in (ROWS, self.HIDDEN)]
        double = fit(twice[0], validation=twice[1], **BY_ERROR)
        assert weighted.validation == pytest.approx(double.validation, rel=1e-12)
        assert_same_bits(weighted.pmf, double.pmf)

    @pytest.mark.parametrize("scoring", ["likelihood", "error"])
    def test_hidden_cells_of_weight_zero_alone_are_refused(self, scoring):
        hidden, weights = np.zeros(ROWS.shape, bool), np.ones(len(ROWS))
        hidden[:9, 0], weights[:9] = True, 0
        options = BY_ERROR | {"scoring": scoring}
        with pytest.raises(jp.JointPMFError, match="no cell of the validation part"):
            fit(validation=hidden, sample_weight=weights, **options)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"scoring": "rmse"}, "scoring must be 'likelihood' or 'error', not 'rmse'"),
            ({"scoring": None}, "scoring must be 'likelihood' or 'error', not None"),
            ({"validation": None}, "scoring='error' needs cells to hide"),
            ({"validation": 0.2}, "scoring='error' needs cells to hide"),
            ({"validation": OTHER_ROWS}, "scoring='error' needs cells to hide"),
            ({"validation": HIDDEN[1:]}, r"shape \(399, 5\) do not fit a table of \(400, 5\)"),
            ({"validation": HIDDEN & (ROWS < 0)}, "no cell of the validation part is observed"),
            ({"validation": np.zeros(ROWS.shape, bool)}, "no cell of the validation part"),
            ({"validation": np.ones(ROWS.shape, bool)}, "has no observed cell"),
        ],
        ids=["word", "none", "nothing", "fraction", "rows", "shape", "holes", "no cell", "all"],
    )
    def test_bad_options_give_a_sentence(self, options, sentence):
        options = BY_ERROR | {"validation": self.HIDDEN} | options
        with pytest.raises(jp.JointPMFError, match=sentence):
            fit(**options)

    def test_levels_without_values_have_no_error(self):
        table = pl.DataFrame({"a": ["x", "y"] * 20, "b": ["p", "q"] * 20})
        hidden = np.eye(40, 2, dtype=bool)
        with pytest.raises(jp.JointPMFError, match="is observed and has a value"):
            jp.fit_rows(table, 2, validation=hidden, scoring="error")
        assert jp.fit_rows(table, 2, validation=hidden, random_state=0).validation is not None


# one taste decides all answers; nobody has given the answer 2 to the first question
SCALE = jp.Domain.of_sizes([5] * 4)
TASTE = np.random.default_rng(0).standard_normal((300, 1))
ANSWERS = np.digitize(
    TASTE + 0.5 * np.random.default_rng(1).standard_normal((300, 4)), [-1.2, -0.4, 0.4, 1.2]
)
ANSWERS[:, 0] = np.where(ANSWERS[:, 0] == 2, 1, ANSWERS[:, 0])

SPREAD = {"domain": SCALE, "start": "rows", "max_iter": 30, "random_state": 0}
ALONG = {"domain": SCALE, "start": "factors", "max_iter": 200, "random_state": 0}


class TestBandwidth:
    def test_a_level_never_seen_between_seen_ones_may_happen(self):
        plain, spread = (jp.fit_rows(ANSWERS, 3, bandwidth=h, **SPREAD).pmf for h in (0, 0.7))
        assert not plain.factors[0][2].any()
        assert spread.factors[0][2].min() > 0
        assert spread.marginal(["x0"]).table()[2] < 0.01
        assert feasible(spread)

    @pytest.mark.parametrize("start", ["rows", "factors", "random", "auto"])
    def test_neighbours_are_alike_within_a_component(self, start, few_starts):
        """A component that is sure of one level is not so sure of it once counts spread."""
        options = SPREAD | {"start": start}
        tops = []
        for h in (0, 1.0):
            solution = jp.fit_rows(ANSWERS, 20, bandwidth=h, **options)
            assert np.isfinite(solution.objective)
            tops.append(np.concatenate(solution.pmf.factors[1:]).max())
        assert tops[0] > 0.98 > tops[1]

    def test_without_order_it_changes_no_bit(self):
        words = jp.Domain([jp.Variable(v.name, tuple("abcde")) for v in SCALE])
        codes, others = (jp.Codes(words, rows) for rows in (ANSWERS, ANSWERS[:50]))
        # with a validation part the fit without bandwidth is not extrapolated either
        options = {"start": "rows", "max_iter": 10, "random_state": 0, "validation": others}
        plain, spread = (jp.fit_rows(codes, 3, bandwidth=h, **options).pmf for h in (0, 0.7))
        assert_same_bits(plain, spread)

    @pytest.mark.parametrize("bandwidth", [-0.1, float("nan"), float("inf"), "wide", None, True])
    def test_a_bandwidth_that_is_none_is_refused(self, bandwidth):
        with pytest.raises(jp.JointPMFError, match="bandwidth must be a number of at least 0"):
            jp.fit_rows(ANSWERS, 3, bandwidth=bandwidth, **SPREAD)

    def test_it_belongs_to_the_likelihood(self):
        with pytest.raises(jp.JointPMFError, match="belong to method='likelihood'"):
            jp.fit_rows(ANSWERS, 3, bandwidth=0.5, method="marginals", domain=SCALE)

    def test_new_rows_are_likelier_after_a_fit_to_few(self):
        """As many components as such rows can bear, and more."""
        fitted, fresh = ANSWERS[:60], ANSWERS[60:]
        logs = [
            jp.fit_rows(fitted, 20, bandwidth=h, smoothing=0.01, **SPREAD)
            .pmf.log_probability(fresh)
            .mean()
            for h in (0, 0.5)
        ]
        assert logs[1] > logs[0] + 0.5


class TestStartAlongFactors:
    def test_it_is_said_and_feasible_and_repeated(self):
        first, second, other = (
            jp.fit_rows(ANSWERS, 4, **ALONG | {"random_state": seed}) for seed in (0, 0, 1)
        )
        assert first.start == "factors: as asked"
        assert feasible(first.pmf)
        assert_same_bits(first.pmf, second.pmf)
        assert not np.array_equal(first.pmf.weights, other.pmf.weights)

    def test_it_begins_better_than_rows_and_ends_as_well(self):
        begins, ends = [], []
        for start in ("factors", "rows"):
            history = jp.fit_rows(ANSWERS, 4, **ALONG | {"start": start}).history
            begins.append(history[0].objective)
            ends.append(history[-1].objective)
        assert begins[0] < begins[1] - 0.1
        assert ends[0] < ends[1] + 0.05

    def test_weights_count(self):
        times = np.arange(len(ANSWERS)) % 3
        weighted = jp.fit_rows(ANSWERS, 4, sample_weight=times, **ALONG)
        repeated = jp.fit_rows(np.repeat(ANSWERS, times, axis=0), 4, **ALONG)
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
            jp.fit_rows([["a", "b"], ["b", "a"]], 2, start="factors")

    def test_an_answer_far_from_all_others_may_happen(self):
        """Somebody's income is two hundred times that of the others."""
        taste = np.random.default_rng(0).standard_normal((500, 1))
        rows = np.digitize(np.tile(taste, 3), np.linspace(-1.5, 1.5, 8))
        rows[0] = 9
        levels = (*range(9), 200)
        domain = jp.Domain([jp.Variable(f"x{n}", levels) for n in range(3)])
        options = ALONG | {"domain": None, "max_iter": 20}
        solution = jp.fit_rows(jp.Codes(domain, rows), 4, **options)
        assert np.isfinite([step.objective for step in solution.history]).all()
