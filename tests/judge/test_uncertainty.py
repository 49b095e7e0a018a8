"""How sure: replicates of every kind of fit, and what they answer."""

import math
import pickle

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.data.decode import decode
from jointpmf.fit.again import RowsAgain
from jointpmf.fit.settings import Effort, Kinds
from jointpmf.judge.answers import Answer
from jointpmf.judge.intervals import interval_columns
from jointpmf.judge.matching import matched
from jointpmf.judge.uncertainty import Uncertainty
from jointpmf.threads import limited_to
from support.planted import planted
from support.small_fits import fit_rows, tuned

N_ROWS = 500
TRUTH = planted([3, 2, 4, 3], 2, seed=1, concentration=0.5)
ROWS = np.array(TRUTH.sample(N_ROWS, random_state=0, backend="codes"))
HOLES = np.where(np.random.default_rng(1).random(ROWS.shape) < 0.2, -1, ROWS)
CODES = jp.Codes(TRUTH.domain, HOLES)


@pytest.fixture(scope="module")
def solution():
    return jp.fit_rows(CODES, rank=2, random_state=0)


@pytest.fixture(scope="module")
def sure(solution):
    return solution.uncertainty(200, random_state=0)


def textbook(p, n=N_ROWS):
    """Return the standard error of a share."""
    return np.sqrt(p * (1 - p) / n)


class TestRows:
    @pytest.mark.parametrize("resample", ["bayesian", "multinomial"])
    def test_shares_of_complete_rows_have_the_textbook_error(self, resample):
        found = jp.fit_rows(jp.Codes(TRUTH.domain, ROWS), rank=1)
        sure = found.uncertainty(200, random_state=0, resample=resample)
        frame = sure.marginal(["x2"])
        assert np.allclose(frame["se"], textbook(frame["estimate"].to_numpy()), rtol=0.15)

    def test_holes_make_it_less_sure(self, sure):
        frame = sure.marginal(["x2"])
        estimate = frame["estimate"].to_numpy()
        assert (frame["se"].to_numpy() > textbook(estimate)).all()
        assert (frame["se"].to_numpy() < 1.3 * textbook(estimate, 0.8 * N_ROWS)).all()

    @pytest.mark.usefixtures("small_tasks_shared")
    def test_the_same_seed_gives_the_same_bits_for_any_threads(self, solution, sure):
        for n_threads in (1, 2):
            with limited_to(n_threads):
                other = solution.uncertainty(50, random_state=0)
            assert np.array_equal(sure.factors[:50], other.factors)
        other = solution.uncertainty(2, random_state=1)
        assert not np.array_equal(sure.factors[:2], other.factors)

    def test_replicates_are_optima_of_what_they_saw(self, solution):
        """The fit of a row-weighted table from afresh is where a replicate ends."""
        sure = solution.uncertainty(2, random_state=5)
        seed = int(np.random.default_rng(5).integers(2**63))
        weights = np.random.default_rng((seed, 0)).standard_gamma((N_ROWS - 2) / N_ROWS, N_ROWS)
        weights *= N_ROWS / weights.sum()
        other = jp.fit_rows(CODES, rank=2, sample_weight=weights, random_state=3)
        assert jp.factor_error(sure.pmfs[0], other.pmf) < 0.01

    def test_clusters_make_it_less_sure(self):
        twins = jp.Codes(TRUTH.domain, np.repeat(ROWS[:100], 5, axis=0))
        found = jp.fit_rows(twins, rank=1)
        naive = found.uncertainty(200, random_state=0).marginal(["x0"])
        honest = found.uncertainty(200, random_state=0, groups=np.repeat(np.arange(100), 5))
        ratio = honest.marginal(["x0"])["se"] / naive["se"]
        assert np.allclose(ratio, math.sqrt(5), rtol=0.25)

    def test_strata_make_it_surer(self):
        found = jp.fit_rows(jp.Codes(TRUTH.domain, ROWS), rank=1)
        frame = found.uncertainty(50, random_state=0, strata=ROWS[:, 0]).marginal(["x0"])
        assert np.allclose(frame["se"], 0, atol=1e-9)

    def test_weights_are_kept(self):
        weights = np.random.default_rng(0).random(N_ROWS)
        found = jp.fit_rows(jp.Codes(TRUTH.domain, ROWS), rank=1, sample_weight=weights)
        frame = found.uncertainty(200, random_state=0).marginal(["x0"])
        one = ROWS[:, 0][:, None] == np.arange(3)
        residual = weights[:, None] * (one - frame["estimate"].to_numpy())
        wanted = np.sqrt((residual**2).sum(axis=0)) / weights.sum()
        assert np.allclose(frame["se"], wanted, rtol=0.15)

    @pytest.mark.parametrize("search", [{"n_average": 3}, {"n_average": 9}])
    def test_averages(self, search):
        found = jp.fit_rows(CODES, rank=2, search=jp.Search(**search), random_state=0)
        sure = found.uncertainty(40, random_state=0)
        frame = sure.marginal(["x0"])
        assert np.allclose(frame["se"], textbook(frame["estimate"].to_numpy()), rtol=0.5)
        assert not sure.is_clear.any()
        with pytest.raises(jp.JointPMFError, match="average of several fits"):
            sure.profiles()

    def test_fits_that_were_stopped_by_what_was_held_out(self):
        found = jp.fit_rows(CODES, random_state=0)
        sure = found.uncertainty(40, random_state=0)
        estimate = sure.marginal(["x0"])
        assert np.allclose(estimate["se"], textbook(estimate["estimate"].to_numpy()), rtol=0.5)
        # steps go on from where they were stopped, in all replicates alike
        assert (estimate["low"] < estimate["estimate"]).all()
        assert (estimate["estimate"] < estimate["high"]).all()

    def test_ratings(self):
        users, items = np.nonzero(HOLES[:80] >= 0)
        frame = pl.DataFrame({"u": users, "i": items, "r": HOLES[:80][users, items].clip(0, 1) + 1})
        ratings = jp.pivot_ratings(frame, "u", "i", "r")
        kinds = Kinds(row_ranks=(2,), cell_points=(8,), step_points=8)
        found = fit_rows(ratings, kinds=kinds, n_average=2, random_state=0)
        sure = found.uncertainty(10, random_state=0)
        assert (sure.expectation([[None] * 4], found.pmf.domain.names[0])["se"] > 0).all()


class TestElsewhere:
    def test_rows_on_disk(self):
        parts = [jp.Codes(TRUTH.domain, part) for part in np.array_split(HOLES, 3)]
        with tuned(Effort(block_bytes=2000)):
            found = jp.fit_rows(parts, 1, domain=TRUTH.domain)
            frame = found.uncertainty(100, random_state=0).marginal(["x0"])
        n_seen = (HOLES[:, 0] >= 0).sum()
        wanted = textbook(frame["estimate"].to_numpy(), n_seen)
        assert np.allclose(frame["se"], wanted, rtol=0.3)
        with pytest.raises(jp.JointPMFError, match="groups and strata need rows in memory"):
            found.uncertainty(3, groups=np.arange(N_ROWS))

    def test_files_are_read_again(self, tmp_path):
        path = tmp_path / "rows.csv"
        decode(CODES).write_csv(path)
        frame = jp.fit_rows(path, 1).uncertainty(20, random_state=0).marginal(["x0"])
        assert (frame["se"] > 0).all()

    def test_a_file_that_has_changed_is_refused(self, tmp_path):
        path = tmp_path / "rows.csv"
        pl.DataFrame({"a": [0, 1, 1, 0], "b": [0, 1, 1, 1]}).write_csv(path)
        found = jp.fit_rows(path, 1)
        pl.DataFrame({"a": [0, 1, 1, 0], "b": [0, 1, 0, 0]}).write_csv(path)
        with pytest.raises(jp.JointPMFError, match="not those of the fit: the model's objective"):
            found.uncertainty(3)

    def test_rows_that_came_once_are_given_again(self):
        parts = (jp.Codes(TRUTH.domain, part) for part in np.array_split(HOLES, 3))
        found = jp.fit_rows(parts, 2, domain=TRUTH.domain, random_state=0)
        with pytest.raises(jp.JointPMFError, match="give them as data="):
            found.uncertainty(3)
        assert len(found.uncertainty(3, data=CODES)) == 3

    def test_a_pickle_does_not_carry_the_rows(self, solution):
        copy = pickle.loads(pickle.dumps(solution))
        with pytest.raises(jp.JointPMFError, match="give them as data="):
            copy.uncertainty(3)
        assert len(copy.uncertainty(3, data=CODES)) == 3

    def test_fits_of_choose_rank(self):
        curve = jp.choose_rank(CODES, [1, 2], random_state=0)
        assert len(curve.solutions[1].uncertainty(3, data=CODES)) == 3


class TestTables:
    def test_counts_of_one_table(self):
        table = np.bincount(ROWS[:, 0], minlength=3).astype(float)
        domain = TRUTH.domain.project(["x0"])
        found = jp.fit_marginals(jp.MarginalSet(domain, [jp.Marginal(("x0",), table)]), rank=1)
        for resample in ("counts", "model"):
            frame = found.uncertainty(200, random_state=0, resample=resample).marginal(["x0"])
            assert np.allclose(frame["se"], textbook(frame["estimate"].to_numpy()), rtol=0.15)

    @pytest.mark.parametrize("loss", ["squares", "likelihood"])
    def test_tables_of_the_same_people_err_together(self, loss):
        """All pairs repeat what each variable is, so independent errors would cancel."""
        pairs = jp.MarginalSet.from_table(jp.Codes(TRUTH.domain, ROWS), order=2)
        found = jp.fit_marginals(pairs, rank=1, loss=loss, random_state=0)
        sure = found.uncertainty(100, random_state=0)
        assert sure.resampling == "model"
        estimate = sure.marginal(["x0"])["estimate"].to_numpy()
        assert np.allclose(sure.marginal(["x0"])["se"], textbook(estimate), rtol=0.25)
        alone = found.uncertainty(100, random_state=0, resample="counts").marginal(["x0"])
        assert np.allclose(alone["se"], textbook(estimate) / math.sqrt(3), rtol=0.25)

    def test_tables_of_other_people_err_apart(self):
        parts = np.array_split(np.array(TRUTH.sample(6000, random_state=3, backend="codes")), 6)
        tables = [_pair(part, pair) for part, pair in zip(parts, PAIRS, strict=True)]
        found = jp.fit_marginals(jp.MarginalSet(TRUTH.domain, tables), rank=1, random_state=0)
        frame = found.uncertainty(100, random_state=0).marginal(["x0"])
        assert np.allclose(frame["se"], textbook(frame["estimate"].to_numpy(), 3000), rtol=0.3)

    def test_noise_alone_makes_it_unsure(self):
        domain = jp.Domain.of_sizes([2])
        noisy = jp.Marginal(("x0",), [0.4, 0.6], noise=0.05)
        found = jp.fit_marginals(jp.MarginalSet(domain, [noisy]), rank=1)
        frame = found.uncertainty(200, random_state=0).marginal(["x0"])
        assert np.allclose(frame["se"], 0.05 / math.sqrt(2), rtol=0.2)

    def test_a_census_of_millions(self):
        """More people than are drawn: their noise is scaled."""
        domain = jp.Domain.of_sizes([2])
        table = jp.Marginal(("x0",), [4e6, 6e6])
        found = jp.fit_marginals(jp.MarginalSet(domain, [table]), rank=1)
        frame = found.uncertainty(200, random_state=0, resample="model").marginal(["x0"])
        assert np.allclose(frame["se"], textbook(0.4, 1e7), rtol=0.2)

    def test_suppressed_cells_and_percentages(self):
        domain = jp.Domain.of_sizes([2, 3])
        share = jp.Marginal(
            ("x0", "x1"), [[20, 30, 50], [60, 30, 10]], given=["x0"], n_obs=[80, 120]
        )
        hidden = jp.Marginal(("x1",), [88, 60, np.nan], n_obs=200, bounds=(0, 60))
        found = jp.fit_marginals(jp.MarginalSet(domain, [share, hidden]), rank=2, random_state=0)
        for resample in ("counts", "model"):
            sure = found.uncertainty(12, random_state=0, resample=resample)
            frame = sure.marginal(["x1"], given={"x0": 0})
            p = frame["estimate"].to_numpy()
            assert np.allclose(frame["se"], textbook(p, 80), rtol=0.6)

    def test_exact_tables_have_no_sampling_error(self):
        found = jp.fit_marginals(TRUTH.marginals(order=2), rank=1, random_state=0)
        with pytest.raises(jp.JointPMFError, match="no sampling error"):
            found.uncertainty(3)

    def test_an_average_where_tables_leave_the_model_open(self):
        pairs = jp.MarginalSet.from_table(jp.Codes(TRUTH.domain, ROWS), order=2)
        found = jp.fit_marginals(pairs, rank=3, random_state=0)
        assert found.n_averaged > 4
        sure = found.uncertainty(20, random_state=0)
        estimate = sure.marginal(["x0"])["estimate"].to_numpy()
        assert np.allclose(sure.marginal(["x0"])["se"], textbook(estimate), rtol=0.5)


PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def _pair(rows, pair):
    sizes = [TRUTH.domain.sizes[n] for n in pair]
    place = np.ravel_multi_index([rows[:, n] for n in pair], sizes)
    counts = np.bincount(place, minlength=math.prod(sizes)).reshape(sizes)
    return jp.Marginal(tuple(f"x{n}" for n in pair), counts.astype(float))


class TestAnswers:
    def test_any_function(self, sure):
        frame = sure.interval(lambda pmf: pmf.weights.max())
        assert frame.columns == ["estimate", "se", "low", "high"]
        values = np.array([pmf.weights.max() for pmf in sure.pmfs])
        assert frame["se"][0] == pytest.approx(values.std(ddof=1), rel=1e-6)

    def test_arrays_have_indices(self, sure):
        frame = sure.interval(lambda pmf: pmf.marginal(["x0", "x1"]).table())
        assert frame["index_0"].to_list() == [0, 0, 1, 1, 2, 2]
        assert sure.interval(lambda pmf: pmf.weights)["index"].to_list() == [0, 1]

    def test_models_have_levels_and_mappings_have_names(self, sure):
        frame = sure.interval(lambda pmf: pmf.marginal(["x1", "x0"]))
        assert frame.columns[:2] == ["x1", "x0"]
        frame = sure.interval(lambda pmf: {"a": 1.0, "b": pmf.weights[0]}, backend="pandas")
        assert list(frame["quantity"]) == ["a", "b"]
        assert frame["se"][0] == 0

    def test_wider_levels_hold_narrower_ones(self, sure):
        wide, narrow = sure.marginal(["x0"], level=0.99), sure.marginal(["x0"], level=0.5)
        assert (wide["low"] < narrow["low"]).all()
        assert (wide["high"] > narrow["high"]).all()

    def test_conditionals_are_those_of_the_model(self, solution, sure):
        frame = sure.marginal(["x2"], given={"x0": 1})
        wanted = solution.pmf.condition({"x0": 1}).marginal(["x2"]).table()
        assert np.allclose(frame["estimate"], wanted)

    def test_rows_are_answered_in_turn(self, solution, sure):
        rows = pl.DataFrame({"x0": [0, 2], "x1": [None, 1]})
        frame = sure.predict_proba(rows, "x2")
        assert frame["row"].to_list() == [0] * 4 + [1] * 4
        assert np.allclose(frame["estimate"], solution.pmf.predict_proba(rows, "x2").ravel())
        expected = sure.expectation(rows, "x2")
        assert np.allclose(expected["estimate"], solution.pmf.expectation(rows, "x2"))

    def test_modes_say_how_many_replicates_agree(self, solution, sure):
        rows = pl.DataFrame({"x0": [0, 2]})
        frame = sure.mode(rows, "x2")
        assert frame["estimate"].to_list() == solution.pmf.mode(rows, "x2").tolist()
        best = np.array([pmf.mode(rows, "x2") for pmf in sure.pmfs])
        assert np.allclose(frame["share"], (best == frame["estimate"].to_numpy()).mean(axis=0))

    def test_mutual_information(self, sure, solution):
        frame = sure.mutual_information("x0", "x2")
        assert frame["estimate"][0] == jp.mutual_information(solution.pmf, "x0", "x2")

    def test_intervals_by_hand(self):
        """Without bias these are the quantiles; with it they move twice as far."""
        deviations = np.arange(-49.5, 50)[:, None]
        found = interval_columns(np.array([1.0]), deviations, 0.9)
        wanted = 1 + np.quantile(deviations, [0.05, 0.95], method="weibull")
        assert [found["low"][0], found["high"][0]] == pytest.approx(wanted)
        moved = interval_columns(np.array([1.0]), deviations + 10, 0.9)
        assert moved["low"][0] < found["low"][0] + 10

    def test_the_estimate_is_never_outside(self):
        found = interval_columns(np.array([1.0]), np.array([[0.2], [0.3], [0.4]]), 0.5)
        assert found["low"][0] == 1.0

    def test_answers_of_all_kinds(self):
        assert Answer.of(3).values.tolist() == [3.0]
        with pytest.raises(jp.JointPMFError, match="one number"):
            Answer.of({"a": [1, 2]})


class TestComponents:
    def test_components_are_matched(self, solution, sure):
        """However the components of a replicate are ordered."""
        order = np.array([1, 0])
        weights, factors, is_clear = matched(
            solution.pmf, sure.weights[:, order], sure.factors[:, :, order]
        )
        assert np.array_equal(weights, sure.weights)
        assert np.array_equal(factors, sure.factors)
        assert is_clear.all()

    def test_sizes_and_profiles(self, solution, sure):
        assert np.allclose(sure.sizes()["estimate"], solution.pmf.weights)
        frame = sure.profiles(["x2", "x0"])
        wanted = np.concatenate([solution.pmf.factors[n].ravel() for n in (2, 0)])
        assert np.allclose(frame["estimate"], wanted)
        assert frame["variable"].to_list() == ["x2"] * 8 + ["x0"] * 6
        assert frame["component"].to_list() == ["0", "1"] * 7

    def test_it_is_said_where_components_cannot_be_matched(self, caplog):
        rows = jp.Codes(TRUTH.domain, ROWS[:60])
        sure = jp.fit_rows(rows, rank=6, random_state=0).uncertainty(30, random_state=0)
        assert 0 < sure.is_clear.mean() < 0.9
        sure.sizes()
        assert "not clear which component is which" in caplog.text


class TestBadInput:
    @pytest.mark.parametrize("n", [1, 0, -3, 2.5, "many"])
    def test_too_few_replicates(self, solution, n):
        with pytest.raises(jp.JointPMFError, match=r"^n "):
            solution.uncertainty(n)

    @pytest.mark.parametrize("level", [0, 1, -0.5, 90, "0.9", True, math.nan])
    def test_levels_outside_of_zero_and_one(self, sure, level):
        with pytest.raises(jp.JointPMFError, match="the level must be between 0 and 1"):
            sure.marginal(["x0"], level=level)

    def test_queries_that_fail_say_for_which_replicate(self, sure):
        third = sure.pmfs[3]

        def only(bad):
            return lambda pmf: bad(pmf) if pmf is third else 1.0

        with pytest.raises(jp.JointPMFError, match="failed for replicate 3: it returned NaN or"):
            sure.interval(only(lambda pmf: math.nan))
        with pytest.raises(jp.JointPMFError, match="replicate 3: ZeroDivisionError"):
            sure.interval(only(lambda pmf: 1 / 0))
        with pytest.raises(jp.JointPMFError, match="another shape for replicate 3"):
            sure.interval(only(lambda pmf: [1.0, 2.0]))
        with pytest.raises(jp.JointPMFError, match="failed for the model: it returned 'yes'"):
            sure.interval(lambda pmf: "yes")
        with pytest.raises(jp.JointPMFError, match="it returned None"):
            sure.interval(lambda pmf: None)
        with pytest.raises(jp.JointPMFError, match="must be a function of a JointPMF"):
            sure.interval("x0")

    def test_other_data(self, solution):
        with pytest.raises(jp.JointPMFError, match="there are 499, and it was to 500"):
            solution.uncertainty(3, data=jp.Codes(TRUTH.domain, HOLES[1:]))
        with pytest.raises(jp.JointPMFError, match="some cells or weights differ"):
            solution.uncertainty(3, data=jp.Codes(TRUTH.domain, ROWS))
        assert len(solution.uncertainty(3, data=jp.Codes(TRUTH.domain, HOLES[::-1]))) == 3
        other = jp.fit_rows(jp.Codes(TRUTH.domain, ROWS[:100]), random_state=0)
        with pytest.raises(jp.JointPMFError, match="some cells or weights differ"):
            other.uncertainty(3, data=jp.Codes(TRUTH.domain, ROWS[100:200]))
        tables = jp.fit_marginals(TRUTH.marginals(order=2), rank=1, random_state=0)
        with pytest.raises(jp.JointPMFError, match="this one is to tables"):
            tables.uncertainty(3, data=CODES)
        with pytest.raises(jp.JointPMFError, match="goes with data"):
            solution.uncertainty(3, sample_weight=np.ones(N_ROWS))

    def test_ways_that_do_not_apply(self, solution):
        with pytest.raises(jp.JointPMFError, match="resample"):
            solution.uncertainty(3, resample="jackknife")
        with pytest.raises(jp.JointPMFError, match="resample of a fit to rows"):
            solution.uncertainty(3, resample="counts")
        tables = jp.fit_marginals(TRUTH.marginals(order=2), rank=1, random_state=0)
        with pytest.raises(jp.JointPMFError, match="are for fits to rows"):
            tables.uncertainty(3, groups=[1, 2])

    def test_a_variable_called_like_a_column(self):
        domain = jp.Domain.of_sizes([2], names=["low"])
        found = jp.fit_rows(jp.Codes(domain, [[0], [1], [1]]), 1)
        sure = found.uncertainty(3)
        with pytest.raises(jp.JointPMFError, match="a variable is called 'low'"):
            sure.marginal(["low"])
        with pytest.raises(jp.JointPMFError, match="a variable is called 'low'"):
            sure.predict_proba([[None]], "low")


@pytest.mark.parametrize("n_done", [1, 5])
def test_an_interrupt_keeps_what_was_done(solution, monkeypatch, caplog, n_done):
    calls, real = [], RowsAgain.fitted

    def fitted(self, source):
        calls.append(1)
        if len(calls) == n_done + 1:
            raise KeyboardInterrupt
        return real(self, source)

    monkeypatch.setattr(RowsAgain, "fitted", fitted)
    with limited_to(1):
        if n_done < 2:
            with pytest.raises(KeyboardInterrupt):
                solution.uncertainty(50, random_state=0)
        else:
            assert len(solution.uncertainty(50, random_state=0)) == n_done
            assert "stopped after 5 of 50 replicates" in caplog.text


def test_it_says_what_it_is(sure):
    assert repr(sure).startswith("Uncertainty(200 replicates (bayesian) of JointPMF")
    assert isinstance(sure, Uncertainty)
    assert len(sure) == 200
