"""The model without choosing anything: what it finds, what it repeats, what it writes down."""

import re
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.fit import rank_by_rows
from jointpmf.fit.settings import Kinds
from support.feasibility import feasible
from support.small_fits import fit_rows

N_TRIED = 6
"""Fits by which a rank is judged, of tables as small as these."""

TRUTH = jp.random_pmf(jp.Domain.of_sizes([4] * 5), rank=3, random_state=0)
ROWS = TRUTH.sample(300, random_state=0, backend="codes")


def with_noise(n_rows, seed):
    """Return rows whose last column is whether the first two differ, mostly; the rest is noise."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(2, size=(n_rows, 2))
    differ = (bits[:, 0] ^ bits[:, 1]) ^ (generator.random(n_rows) < 0.1)
    return np.column_stack([bits, generator.integers(4, size=(n_rows, 6)), differ])


def fit(table=ROWS, **options):
    return fit_rows(table, **{"random_state": 0} | options)


@cache
def default_fit():
    """Return the fit without any option."""
    return fit()


def fit_shortly(table=ROWS, **options):
    """Return a fit of few ranks and iterations, which is enough for bits to be the same or not."""
    return fit(table, **{"kinds": Kinds(ranks=(1, 2)), "n_average": 3, "max_iter": 30} | options)


def bits_of(solution):
    return [array.tolist() for array in (solution.pmf.weights, *solution.pmf.factors)]


def log_loss(pmf, rows, target):
    n = pmf.domain.index(target)
    return -np.log(pmf.predict_proba(rows, target)[np.arange(len(rows)), rows[:, n]]).mean()


class TestTarget:
    def test_what_is_to_be_predicted_is_predicted_better_than_when_ignored(self):
        train, test = with_noise(250, 1), with_noise(1000, 2)
        ignored, aimed = (fit(train, target=target).pmf for target in (None, "x8"))
        assert log_loss(aimed, test, "x8") < log_loss(ignored, test, "x8") - 0.05

    def test_rows_without_target_are_used(self):
        train, test = with_noise(250, 1), with_noise(1000, 2)
        hidden = np.random.default_rng(0).random(250) < 0.3
        train = train.astype(float)
        train[hidden, 8] = np.nan
        solution = fit(train, target="x8")
        assert solution.status is jp.Status.VALIDATED
        assert log_loss(solution.pmf, test, "x8") < 0.66  # of a coin: 0.69
        some, without = (fit_shortly(rows, target="x8") for rows in (train, train[~hidden]))
        assert bits_of(without) != bits_of(some)

    def test_a_target_observed_in_few_rows_keeps_its_levels(self):
        rows = ROWS[:60].copy()
        rows[:, 2] = jp.MISSING
        rows[::10, 2] = 3
        codes = jp.Codes(TRUTH.domain, rows)
        pmf = fit(codes, target="x2").pmf
        assert pmf.marginal(["x2"]).table()[3] > 0.9

    def test_a_target_that_is_never_observed_is_refused(self):
        rows = ROWS[:60].copy()
        rows[:, 2] = jp.MISSING
        with pytest.raises(jp.JointPMFError, match="'x2' has no observed cell"):
            fit(jp.Codes(TRUTH.domain, rows), target="x2")

    def test_a_target_that_is_no_column_is_refused(self):
        with pytest.raises(jp.JointPMFError, match="there is no variable 'vote'"):
            fit(target="vote")


class TestFit:
    def test_it_fits_new_rows_better_than_independence_and_than_its_own_parts(self):
        fresh = TRUTH.sample(2000, random_state=1, backend="codes")
        score = {
            "auto": default_fit().pmf.log_probability(fresh).mean(),
            "one": fit(rank=1, smoothing=0.1).pmf.log_probability(fresh).mean(),
            "many": fit(rank=13, smoothing=0.1).pmf.log_probability(fresh).mean(),
        }
        assert score["auto"] > max(score["one"], score["many"])

    def test_columns_of_independent_noise_stay_nearly_independent(self):
        rows = np.random.default_rng(0).integers(3, size=(400, 4))
        even = jp.JointPMF(jp.Domain.of_sizes([3] * 4), [1.0], [np.full((3, 1), 1 / 3)] * 4)
        auto, many = fit(rows), jp.fit_rows(rows, 8)
        assert (
            jp.kl_divergence(even, auto.pmf).value < 0.03 < jp.kl_divergence(even, many.pmf).value
        )

    @pytest.mark.parametrize("target", [None, "x4"])
    def test_the_same_seed_gives_the_same_bits(self, target):
        first, second, other = (fit_shortly(target=target, random_state=k) for k in (0, 0, 1))
        assert bits_of(first) == bits_of(second) != bits_of(other)
        assert first.restarts == second.restarts

    @pytest.mark.parametrize("target", [None, "x4"])
    def test_whole_weights_are_repeated_rows_to_the_bit(self, target):
        weights = np.random.default_rng(1).integers(0, 4, size=300)
        kept = jp.Codes(TRUTH.domain, ROWS)
        repeated = jp.Codes(TRUTH.domain, np.repeat(ROWS, weights, axis=0))
        weighted = fit_shortly(kept, target=target, sample_weight=weights)
        plain = fit_shortly(repeated, target=target)
        assert bits_of(weighted) == bits_of(plain)
        assert weighted.objective == plain.objective

    def test_the_order_of_rows_does_not_matter(self):
        codes = jp.Codes(TRUTH.domain, ROWS)
        turned = jp.Codes(TRUTH.domain, ROWS[::-1])
        assert bits_of(fit_shortly(codes)) == bits_of(fit_shortly(turned))

    def test_the_objective_is_the_mean_log_likelihood_of_all_rows(self):
        solution = default_fit()
        assert -solution.objective == pytest.approx(solution.pmf.log_probability(ROWS).mean())

    @pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
    def test_tables_are_read_like_arrays(self, make):
        table = make({f"x{n}": ROWS[:, n] for n in range(5)})
        assert bits_of(fit_shortly(table)) == bits_of(fit_shortly())

    def test_bins_and_a_domain_say_how_to_read_the_table(self):
        table = pl.DataFrame({"age": np.linspace(0, 1, 150), "vote": ROWS[:150, 0]})
        assert fit_shortly(table, bins=3).pmf.domain.sizes == (3, 4)
        domain = jp.Domain([jp.Variable("vote", (0, 1, 2, 3, 9))])
        assert fit_shortly(table, domain=domain).pmf.domain == domain

    def test_more_smoothing_draws_towards_the_marginals(self):
        smooth = fit(smoothing=1e6).pmf
        independent = jp.fit_rows(ROWS, 1).pmf
        np.testing.assert_allclose(smooth.table(), independent.table(), atol=2e-3)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"smoothing": -1}, "smoothing must be a number of at least 0, not -1"),
            ({"smoothing": "x"}, "smoothing must be a number of at least 0, not 'x'"),
            ({"random_state": "x"}, "random_state must be"),
            ({"sample_weight": np.zeros(300)}, "all sample weights are zero"),
            ({"sample_weight": np.ones(2)}, "2 sample weights for 300 rows"),
        ],
        ids=["negative", "text", "seed", "zero", "short"],
    )
    def test_bad_options_give_a_sentence(self, options, sentence):
        with pytest.raises(jp.JointPMFError, match=sentence):
            fit(**options)


class TestFewRows:
    @pytest.mark.parametrize("n_rows", [1, 2, 9])
    @pytest.mark.parametrize("target", [None, "x4"])
    def test_below_ten_the_variables_are_taken_for_independent(self, n_rows, target):
        solution = fit(ROWS[:n_rows], target=target)
        assert solution.pmf.rank == 1
        for n, variable in enumerate(solution.pmf.domain):
            shares = [np.mean(ROWS[:n_rows, n] == level) for level in variable.levels]
            np.testing.assert_allclose(
                solution.pmf.marginal([variable.name]).table(), shares, atol=1e-4
            )

    def test_from_ten_on_a_part_is_held_out(self):
        assert fit(ROWS[:10]).status is jp.Status.VALIDATED

    def test_ten_times_the_same_row_is_certain(self):
        pmf = fit(np.tile(ROWS[:1], (10, 1))).pmf
        assert pmf.probability(ROWS[:1]).tolist() == pytest.approx([1.0])

    def test_nothing_but_holes_is_refused(self):
        with pytest.raises(jp.JointPMFError, match="no observed cell"):
            fit(np.full((20, 5), jp.MISSING), domain=TRUTH.domain)


@cache
def recorded():
    """Return a solution, the fits that were averaged in it, and the others by their kind."""
    searches, averaged = [], rank_by_rows._RankSearch.averaged

    def seen(search):
        searches.append(search)
        return averaged(search)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_by_rows._RankSearch, "averaged", seen)
        solution = fit()
    (search,) = searches
    groups = {kind: search.trials.of(kind) for kind in search.trials.kinds}
    return solution, groups.pop(search.chosen), groups


def cost_of(fits):
    return np.mean([fit.validation for fit in fits])


def rank_of(restart):
    return int(re.match(r"rank (\d+):", restart.start)[1])


class TestRecord:
    def test_the_fits_that_were_averaged_are_of_one_rank(self):
        solution, best, others = recorded()
        (rank,) = {fit.pmf.rank for fit in best}
        assert len(best) > N_TRIED
        assert f"of rank {rank}," in str(solution.start)
        assert solution.pmf.rank == len(best) * rank
        assert all({fit.pmf.rank for fit in fits} == {kind.rank} for kind, fits in others.items())
        assert len(solution.restarts) == len(best) + sum(map(len, others.values()))

    def test_all_ranks_are_judged_by_as_many_fits(self):
        _, _, others = recorded()
        assert {len(fits) for fits in others.values()} == {N_TRIED}

    def test_rank_one_and_larger_ranks_than_the_best_were_tried(self):
        _, best, others = recorded()
        tried = {kind.rank for kind in others}
        assert min(tried | {best[0].pmf.rank}) == 1
        assert max(tried) > best[0].pmf.rank

    def test_nothing_that_was_tried_predicts_the_held_out_parts_much_better(self):
        solution, best, others = recorded()
        assert solution.validation == pytest.approx(cost_of(best[:N_TRIED]))
        losses = [cost_of(fits) - cost_of(best[: len(fits)]) for fits in others.values()]
        assert min(losses) > -0.01
        assert max(losses) > 0.05

    def test_every_fit_has_its_objective_and_its_status(self):
        for one in recorded()[0].restarts:
            assert np.isfinite(one.objective)
            assert isinstance(one.status, jp.Status)
            assert one.error == ""


class TestProgress:
    def test_it_names_the_ranks_on_stderr_and_nothing_on_stdout(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
        fit(ROWS[:50], verbose=True)
        shown = capsys.readouterr()
        assert "fitting: rank " in shown.err
        assert shown.out == ""

    def test_it_is_silent_by_default_and_changes_no_bit(self, capsys):
        quiet = fit(ROWS[:50])
        assert capsys.readouterr() == ("", "")
        assert bits_of(quiet) == bits_of(fit(ROWS[:50], verbose=True))

    def test_the_callback_sees_every_fit_and_changes_no_bit(self):
        seen = []
        watched = fit(ROWS[:50], callback=lambda step, pmf: seen.append((step.stage, pmf.rank)))
        assert bits_of(watched) == bits_of(fit(ROWS[:50]))
        assert {stage for stage, _ in seen} >= {"rank 1", "rank 2", "rank 4"}
        assert all(stage == f"rank {rank}" for stage, rank in seen)


class TestStopping:
    @pytest.mark.parametrize("how", [True, KeyboardInterrupt])
    @pytest.mark.parametrize("n_steps", [1, 60, 300])
    def test_it_returns_the_average_of_what_there_is(self, how, n_steps):
        seen = []

        def callback(step, pmf):
            seen.append(pmf.rank)
            if len(seen) == n_steps:
                if how is True:
                    return True
                raise how
            return None

        solution = fit(callback=callback)
        assert len(seen) == n_steps
        assert solution.status is jp.Status.STOPPED
        assert solution.restarts[-1].status is jp.Status.STOPPED
        assert feasible(solution.pmf)
        assert np.isfinite([solution.objective, solution.validation]).all()

    def test_an_interrupt_between_two_fits(self, monkeypatch):
        """As the next part is being held out."""
        draws, thinned = [], rank_by_rows._RankSearch._thinned

        def interrupted(self, generator):
            draws.append(1)
            if len(draws) == 4:
                raise KeyboardInterrupt
            return thinned(self, generator)

        monkeypatch.setattr(rank_by_rows._RankSearch, "_thinned", interrupted)
        solution = fit()
        assert solution.status is jp.Status.STOPPED
        assert 1 <= solution.n_averaged <= 3 <= len(solution.restarts)


class TestSettings:
    def test_ranks_that_are_tried(self):
        solution = fit(kinds=Kinds(ranks=(3, 5)))
        assert {rank_of(restart) for restart in solution.restarts} == {3, 5}

    def test_how_many_are_averaged(self):
        solution = fit(n_average=12)
        assert solution.n_averaged == 12
        assert solution.pmf.rank % 12 == 0

    @pytest.mark.parametrize("rank", ["automatic", "Auto", None, 1.5])
    def test_a_rank_that_is_none_is_refused(self, rank):
        with pytest.raises(jp.JointPMFError, match="the rank must be a whole number"):
            fit(rank=rank)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"start": TRUTH}, "a start that is a model needs a rank"),
            ({"n_starts": 2}, "n_starts needs a rank"),
            ({"rank": 2, "target": "x0"}, "a target needs rank='auto'"),
        ],
    )
    def test_what_contradicts_itself_is_refused(self, options, sentence):
        with pytest.raises(jp.JointPMFError, match=sentence):
            fit(**options)


OTHER_ROWS = TRUTH.sample(100, random_state=5, backend="codes")
OTHER_CODES = jp.Codes(TRUTH.domain, OTHER_ROWS)


class TestValidation:
    """What chooses the rank can be said, in every form."""

    @pytest.mark.parametrize(
        ("validation", "badness"),
        [
            (OTHER_ROWS, lambda pmf: -pmf.log_probability(OTHER_CODES).mean()),
            (lambda pmf: abs(pmf.rank - 2), lambda pmf: abs(pmf.rank - 2)),
        ],
        ids=["table", "function"],
    )
    def test_fits_are_judged_by_it(self, validation, badness):
        costs = []
        options = {"validation": validation, "kinds": Kinds(ranks=(1, 2, 4))}
        solution = fit(callback=lambda step, pmf: costs.append(badness(pmf)), **options)
        assert solution.status is jp.Status.VALIDATED
        assert {rank_of(restart) for restart in solution.restarts} == {1, 2, 4}
        best = min(restart.validation for restart in solution.restarts)
        assert best == pytest.approx(min(costs), rel=1e-12)

    def test_a_fraction(self):
        solution = fit(validation=0.3)
        assert solution.status is jp.Status.VALIDATED
        fresh = TRUTH.sample(2000, random_state=1, backend="codes")
        independent = fit(rank=1, smoothing=0.1).pmf.log_probability(fresh).mean()
        assert solution.pmf.log_probability(fresh).mean() > independent
        assert bits_of(solution) != bits_of(default_fit())


def test_weights_of_any_size_can_be_thinned():
    for scale in (1e-3, 1e30):
        solution = fit(sample_weight=np.full(len(ROWS), scale), kinds=Kinds(ranks=(1, 2)))
        assert np.isfinite(solution.objective)
        assert solution.status is jp.Status.VALIDATED
