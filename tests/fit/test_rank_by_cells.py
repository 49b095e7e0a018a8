"""Hidden cells predicted by an average of fits: what it finds, what it repeats, what it refuses."""

import logging
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from threadpoolctl import threadpool_limits

import jointpmf as jp
from jointpmf import threads
from jointpmf.data.ratings import Ratings
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.settings import Kinds
from jointpmf.solvers.held_out import HeldOutCells
from jointpmf.traits import columns_of
from support.feasibility import feasible
from support.small_fits import fit_rows

NAMES = ("Alien", "Brazil", "Casino", "Dune", "Eraserhead")
FILMS = jp.Domain([jp.Variable(name, (1, 2, 3, 4, 5)) for name in NAMES])


def answers(n_rows, n_variables=5, seed=0, noise=0.6):
    """Return answers on a scale of five that two tastes decide."""
    generator = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).standard_normal((2, n_variables))
    loadings[0] += 1
    values = generator.standard_normal((n_rows, 2)) @ loadings
    values += noise * generator.standard_normal(values.shape)
    return np.digitize(values, [-1.5, -0.5, 0.5, 1.5])


ROWS = answers(100)
HIDDEN = np.random.default_rng(7).random(ROWS.shape) < 0.15
CODES = jp.Codes(FILMS, ROWS)


FEW = Kinds(row_ranks=(4, 8), cell_points=(64, 128), step_points=64)
"""Few and small kinds, where all of them would only take their time."""

N_TRIED = 2
"""Fits whose average a kind is judged by."""


def fit(table=CODES, validation=0.1, scoring="error", n_average=3, kinds=FEW, **options):
    return fit_rows(
        table,
        validation=jp.HiddenCells(validation, scoring),
        n_average=n_average,
        kinds=kinds,
        **{"random_state": 0, "max_iter": 20} | options,
    )


@cache
def default_fit():
    """Return the fit without any option."""
    return fit()


@cache
def masked_fit(scoring):
    """Return the fit to cells that are hidden by a mask; the scorings choose different ridges."""
    return fit(validation=HIDDEN, scoring=scoring, random_state=1)


def bits_of(solution):
    return [array.tolist() for array in (solution.pmf.weights, *solution.pmf.factors)]


def losses_of(pmf, codes, hidden):
    """Return the log-probability, the squared error and the row of every hidden cell."""
    visible = jp.Codes(codes.domain, np.where(hidden, jp.MISSING, codes.array))
    found = []
    for n, variable in enumerate(codes.domain):
        rows = np.flatnonzero(hidden[:, n] & (codes.array[:, n] >= 0))
        level = codes.array[rows, n]
        chances = pmf.predict_proba(visible, variable.name)[rows]
        values = np.array(variable.values if variable.values else np.zeros(variable.size))
        errors = (chances @ values - values[level]) ** 2
        found.append(np.column_stack([np.log(chances[np.arange(len(rows)), level]), errors, rows]))
    return np.concatenate(found).T


def error_of(pmf, codes, hidden):
    return np.sqrt(losses_of(pmf, codes, hidden)[1].mean())


class TestPrediction:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("scoring", ["error", "likelihood"])
    def test_the_validation_is_that_of_the_model(self, scoring, weighted):
        weights = np.random.default_rng(1).integers(0, 3, len(ROWS)) if weighted else None
        solution = fit(validation=HIDDEN, scoring=scoring, sample_weight=weights)
        logs, errors, rows = losses_of(solution.pmf, CODES, HIDDEN)
        shares = None if weights is None else weights[rows.astype(int)]
        mean = np.average(errors if scoring == "error" else -logs, weights=shares)
        expected = np.sqrt(mean) if scoring == "error" else mean
        assert solution.validation == pytest.approx(expected, rel=1e-9)
        assert solution.status is jp.Status.VALIDATED
        assert feasible(solution.pmf)

    def test_the_objective_is_that_of_what_is_visible(self):
        solution = masked_fit("error")
        visible = jp.Codes(FILMS, np.where(HIDDEN, jp.MISSING, ROWS))
        seen = (visible.array >= 0).any(axis=1)
        expected = -solution.pmf.log_probability(visible)[seen].mean()
        assert solution.objective == pytest.approx(expected, rel=1e-12)

    def test_likelihood_is_the_default_unless_all_variables_have_one_scale(self):
        error, likelihood = (bits_of(masked_fit(scoring)) for scoring in ("error", "likelihood"))
        assert bits_of(masked_fit(None)) == likelihood != error
        ratings = Ratings(np.arange(len(ROWS)), CODES)
        options = {"table": ratings, "validation": HIDDEN, "random_state": 1}
        bits = [bits_of(fit(scoring=s, **options)) for s in (None, "error", "likelihood")]
        assert bits[0] == bits[1] != bits[2]

    @pytest.mark.parametrize("scoring", ["error", "likelihood"])
    def test_cells_it_has_never_seen_are_predicted_better_than_by_marginals(self, scoring):
        whole = jp.Codes(FILMS, answers(300))
        tested = np.random.default_rng(3).random(whole.array.shape) < 0.2
        known = jp.Codes(FILMS, np.where(tested, jp.MISSING, whole.array))
        found = fit(known, scoring=scoring, kinds=Kinds(), max_iter=None, random_state=1).pmf
        smoothed = jp.Likelihood(smoothing=0.1)
        independent = jp.fit_rows(known, 1, objective=smoothed, random_state=0).pmf
        ours, theirs = (
            losses_of(pmf, whole, tested)[:2].mean(axis=1) for pmf in (found, independent)
        )
        assert np.sqrt(ours[1]) < 0.75 * np.sqrt(theirs[1])
        assert -ours[0] < -theirs[0] - 0.25

    def test_hidden_cells_have_no_influence_but_by_what_they_choose(self):
        """With one rank and no iterations they choose nothing."""
        kinds = replace(FEW, row_ranks=(4,), cell_traits=None)
        other = jp.Codes(FILMS, np.where(HIDDEN, 0, ROWS))
        options = {"validation": HIDDEN, "kinds": kinds, "max_iter": 0}
        first, second = (fit(codes, **options) for codes in (CODES, other))
        assert bits_of(first) == bits_of(second)
        assert first.validation != second.validation


class TestRecord:
    def test_all_fits_are_recorded(self):
        solution = default_fit()
        starts = [restart.start for restart in solution.restarts]
        assert starts[:4] == ["rows, rank 4"] * 2 + ["rows, rank 8"] * 2
        assert starts[4] == "5 traits, ridge 3, 64 points"
        for restart in solution.restarts:
            assert np.isfinite([restart.objective, restart.validation]).all()
            assert restart.status in (jp.Status.VALIDATED, jp.Status.CONVERGED, jp.Status.MAX_ITER)

    @pytest.mark.parametrize("n_average", [1, 2, 5])
    def test_as_many_fits_of_the_best_kind_are_averaged_as_asked(self, n_average):
        free = replace(FEW, row_ranks=(4,), cell_traits=None)
        solution = fit(n_average=n_average, kinds=free)
        assert (solution.n_averaged, solution.pmf.rank) == (n_average, 4 * n_average)
        traits = fit(validation=HIDDEN, n_average=n_average)
        assert traits.start.kind == "traits"
        assert traits.n_averaged == len(traits.trait_models) == n_average
        assert traits.pmf.rank == n_average * len(traits.trait_models[0].space.points)

    def test_the_model_is_that_of_its_traits(self):
        solution = fit(validation=HIDDEN, n_average=1)
        (model,) = solution.trait_models
        for n, factor in enumerate(solution.pmf.factors):
            np.testing.assert_allclose(factor, columns_of(model.log_odds(n))[0], rtol=1e-12)

    def test_without_order_there_are_no_traits(self):
        words = jp.Domain([jp.Variable(v.name, tuple("abcde")) for v in FILMS])
        kinds = {restart.start for restart in fit(jp.Codes(words, ROWS), scoring=None).restarts}
        assert kinds == {"rows, rank 4", "rows, rank 8"}

    def test_the_history_is_that_of_a_fit(self):
        history = default_fit().history
        assert [step.iteration for step in history] == list(range(len(history)))
        assert len(history) > 1


class TestSearch:
    RANKS = (1, 2, 4, 8, 16, 32, 64, 96)

    def test_ranks_grow_until_they_do_not_help(self, monkeypatch):
        found, run = {}, EMFit.run

        def noted(fit, *given):
            solution = run(fit, *given)
            found.setdefault(fit.rank, []).append(solution.pmf)
            return solution

        monkeypatch.setattr(EMFit, "run", noted)
        kinds = replace(FEW, row_ranks=self.RANKS, cell_traits=None)
        solution = fit(validation=HIDDEN, kinds=kinds)
        assert 1 < len(found) < len(self.RANKS)
        assert tuple(found) == self.RANKS[: len(found)]
        costs = [
            error_of(jp.average(pmfs[:N_TRIED]), CODES, HIDDEN) for rank, pmfs in found.items()
        ]
        best = int(np.argmin(costs))
        assert best == len(costs) - 1 - 2  # two ranks did not help
        assert str(solution.start) == f"rows: 3 fits from rows, rank {self.RANKS[best]}"
        expected = jp.average(found[self.RANKS[best]])
        assert bits_of(solution)[0] == expected.weights.tolist()

    def test_traits_are_taken_where_they_predict_better(self):
        solution = fit(validation=HIDDEN)
        free = fit(validation=HIDDEN, kinds=replace(FEW, cell_traits=None))
        assert solution.start.kind == "traits"
        assert solution.validation < free.validation

    def test_free_components_are_taken_where_they_predict_better(self):
        """Three kinds of rows, of which no direction in a space tells anything."""
        generator = np.random.default_rng(0)
        which = generator.integers(6, size=600)
        patterns = np.random.default_rng(5).integers(5, size=(6, 5))
        noise = generator.random((600, 5)) < 0.05
        rows = np.where(noise, generator.integers(5, size=(600, 5)), patterns[which])
        solution = fit(jp.Codes(FILMS, rows), scoring="likelihood")
        assert solution.start.kind == "rows"


class TestInterrupt:
    @pytest.mark.parametrize("call", [1, 4, 30])
    def test_ctrl_c_returns_what_there_is(self, monkeypatch, call):
        calls, cost = [], HeldOutCells.cost

        def interrupted(self, point):
            calls.append(1)
            if len(calls) == call:
                raise KeyboardInterrupt
            return cost(self, point)

        monkeypatch.setattr(HeldOutCells, "cost", interrupted)
        solution = fit()
        assert solution.restarts[-1].status is jp.Status.STOPPED
        assert solution.status is jp.Status.STOPPED
        assert feasible(solution.pmf)
        assert np.isfinite(solution.validation)

    def test_ctrl_c_among_the_traits_returns_what_there_is(self):
        def interrupt(step, pmf):
            if "traits" in step.stage and step.iteration == 3:
                raise KeyboardInterrupt

        solution = fit(validation=HIDDEN, callback=interrupt)
        assert solution.restarts[-1].start == "5 traits, ridge 3, 64 points"
        assert solution.status is solution.restarts[-1].status is jp.Status.STOPPED
        assert feasible(solution.pmf)
        assert np.isfinite(solution.validation)


class TestBits:
    def test_the_same_seed_gives_the_same_bits(self):
        first, second, other = default_fit(), fit(random_state=0), fit(random_state=1)
        assert bits_of(first) == bits_of(second) != bits_of(other)
        assert first.restarts == second.restarts
        assert first.validation == second.validation

    def test_a_generator_is_used_up(self):
        generator = np.random.default_rng(0)
        first, second = (fit(random_state=generator) for _ in range(2))
        assert bits_of(first) == bits_of(default_fit()) != bits_of(second)

    def test_one_and_two_threads_give_the_same_bits(self):
        rows = answers(2600, n_variables=7)
        found = []
        for count in (1, 2):
            with threads.limited_to(count), threadpool_limits(count):
                found.append(fit(rows, n_average=1, max_iter=3))
        assert bits_of(found[0]) == bits_of(found[1])
        assert found[0].validation == found[1].validation

    def test_a_row_of_weight_two_is_a_row_twice_and_of_weight_zero_none(self):
        times = np.arange(len(ROWS)) % 3
        weighted = fit(validation=HIDDEN, sample_weight=times)
        repeated = fit(
            jp.Codes(FILMS, np.repeat(ROWS, times, axis=0)),
            validation=np.repeat(HIDDEN, times, axis=0),
        )
        assert weighted.start == repeated.start
        assert weighted.validation == pytest.approx(repeated.validation, rel=1e-9)
        assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)


class TestTables:
    @pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
    def test_tables_are_read_like_codes(self, make):
        table = make({name: ROWS[:, n] + 1 for n, name in enumerate(NAMES)})
        assert bits_of(fit(table)) == bits_of(default_fit())

    def test_which_cells_are_hidden_can_be_a_table_or_a_list(self):
        expected = bits_of(masked_fit("error"))
        for given in (
            HIDDEN.tolist(),
            pd.DataFrame(HIDDEN, columns=NAMES),
            pl.DataFrame(HIDDEN, schema=NAMES),
        ):
            assert bits_of(fit(validation=given, random_state=1)) == expected

    def test_a_pandas_table_of_text_is_scored_by_likelihood(self):
        table = pd.DataFrame({"a": list("xyzxy") * 20, "b": list("ppqqp") * 20, "c": ["u"] * 100})
        table.loc[3, "a"] = None
        solution = fit(table, scoring=None)
        assert solution.pmf.domain["a"].levels == ("x", "y", "z")
        assert solution.validation < np.log(2)
        rows = pd.DataFrame({"a": ["z"], "b": [None], "c": ["u"]})
        assert solution.pmf.predict_proba(rows, "b")[0, 1] > 0.8

    def test_text_beside_numbers_can_be_scored_by_error(self):
        table = pl.DataFrame({"a": list("xyzxy") * 20, "b": [1, 2, 3, 1, 2] * 20})
        solution = fit(table, scoring="error")
        assert solution.validation < np.std([1, 2, 3, 1, 2])
        assert any("traits" in restart.start for restart in solution.restarts)

    def test_bins_and_a_domain_say_how_to_read_the_table(self):
        table = pl.DataFrame({"age": np.linspace(0, 1, 150), "vote": answers(150)[:, 0]})
        assert fit(table, bins=3).pmf.domain.sizes == (3, 5)
        domain = jp.Domain([jp.Variable("vote", (0, 1, 2, 3, 4, 9))])
        solution = fit(table, domain=domain)
        assert solution.pmf.domain == domain
        assert solution.pmf.marginal(["vote"]).table()[5] > 0

    @pytest.mark.parametrize("seed", range(4))
    def test_a_column_observed_only_once_or_twice_is_fine(self, seed):
        """Which cells are hidden is left to chance: it must not depend on luck."""
        rows = ROWS.copy()
        rows[:, 0] = jp.MISSING
        rows[5, 0] = 2
        rows[2:, 1] = jp.MISSING
        solution = fit(jp.Codes(FILMS, rows), validation=0.5, random_state=seed)
        assert np.isfinite([solution.objective, solution.validation]).all()


class TestSmall:
    def test_one_variable_is_its_marginal(self):
        solution = fit(ROWS[:, :1], scoring="likelihood")
        shares = np.bincount(ROWS[:, 0], minlength=5) / len(ROWS)
        np.testing.assert_allclose(solution.pmf.table(), shares, atol=0.1)

    def test_two_rows(self):
        solution = fit(ROWS[:2])
        assert np.isfinite([solution.objective, solution.validation]).all()
        assert feasible(solution.pmf)

    def test_two_rows_of_one_variable(self):
        assert fit([[1], [1]], validation=0.5).pmf.probability([[1]]) == pytest.approx([1.0])

    @pytest.mark.parametrize("scoring", ["error", "likelihood"])
    def test_cells_that_are_all_equal_are_certain(self, scoring):
        solution = fit(np.full((20, 3), 7), scoring=scoring)
        assert solution.validation == pytest.approx(0, abs=1e-12)
        assert solution.pmf.probability([[7, 7, 7]]) == pytest.approx([1.0])

    def test_columns_that_are_constant_beside_others(self):
        rows = ROWS.copy()
        rows[:, 2] = 3
        pmf = fit(jp.Codes(FILMS, rows)).pmf
        assert pmf.marginal(["Casino"]).table()[3] > 0.99


class TestRatings:
    UNRATED = np.where(np.arange(5) == 2, jp.MISSING, ROWS)

    def ratings(self, array):
        return Ratings([f"user {m}" for m in range(len(array))], jp.Codes(FILMS, array))

    def test_they_are_fitted_like_their_codes(self):
        assert bits_of(fit(self.ratings(ROWS))) == bits_of(default_fit())

    def test_an_item_never_rated_is_named_and_predicted_as_all_are(self, caplog):
        array = self.UNRATED.copy()
        hidden = HIDDEN & (array >= 0)
        with caplog.at_level(logging.WARNING, logger="jointpmf"):
            solution = fit(self.ratings(array), validation=hidden)
        (record,) = caplog.records
        assert "'Casino'" in record.getMessage()
        visible = np.where(hidden, jp.MISSING, array)
        expected = np.bincount(visible[visible >= 0], minlength=5) / (visible >= 0).sum()
        found = solution.pmf.predict_proba(jp.Codes(FILMS, array), "Casino")
        np.testing.assert_allclose(found, np.tile(expected, (len(array), 1)), rtol=1e-10)
        without = np.delete(array, 2, axis=1)
        films = FILMS.project([name for name in NAMES if name != "Casino"])
        alone = fit(jp.Codes(films, without), validation=np.delete(hidden, 2, axis=1))
        assert solution.validation == alone.validation
        assert feasible(solution.pmf)

    def test_the_model_has_the_items_in_their_order(self):
        """Arrays are read by position: another order would mix up the items."""
        assert fit(self.ratings(self.UNRATED)).pmf.domain == FILMS

    def test_nothing_is_said_where_all_items_are_rated(self, caplog):
        fit(self.ratings(ROWS))
        assert not caplog.records

    def test_a_mask_that_hides_all_ratings_of_an_item(self, caplog):
        hidden = HIDDEN.copy()
        hidden[:, 1] = True
        with caplog.at_level(logging.WARNING, logger="jointpmf"):
            solution = fit(self.ratings(ROWS), validation=hidden)
        assert "'Brazil'" in caplog.text
        visible = ROWS[~hidden]
        expected = np.bincount(visible, minlength=5) / len(visible)
        np.testing.assert_allclose(solution.pmf.marginal(["Brazil"]).table(), expected)

    def test_a_fraction_may_hide_all_ratings_of_an_item(self):
        array = ROWS.copy()
        array[1:, 1] = jp.MISSING
        for seed in range(4):
            pmf = fit(self.ratings(array), validation=0.5, random_state=seed).pmf
            assert set(pmf.domain.names) == set(NAMES)

    def test_a_user_without_ratings_is_predicted_by_the_marginal(self):
        array = ROWS.copy()
        array[4] = jp.MISSING
        pmf = fit(self.ratings(array)).pmf
        nothing = jp.Codes(FILMS, array[[4]])
        for name in NAMES:
            expected = pmf.marginal([name]).table()
            np.testing.assert_allclose(pmf.predict_proba(nothing, name)[0], expected)

    def test_an_item_rated_only_in_rows_that_do_not_count(self, caplog):
        array, weights = self.UNRATED.copy(), np.ones(len(ROWS))
        array[0, 2], weights[0] = 4, 0
        hidden = HIDDEN & (array >= 0)
        hidden[0] = False
        fit(self.ratings(array), sample_weight=weights, validation=hidden)
        assert "'Casino'" in caplog.text

    def test_no_rating_left_is_refused(self):
        with pytest.raises(jp.JointPMFError, match="no item has a rating"):
            fit(self.ratings(ROWS), validation=np.ones(ROWS.shape, bool))


FRACTION = "cells on both sides, not "
MASK = r"validation cells .*must be a fraction, or booleans in the table's shape \(100, 5\)"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"validation": 0}, FRACTION + "0"),
        ({"validation": 1}, FRACTION + "1"),
        ({"validation": 2}, FRACTION + "2"),
        ({"validation": -0.1}, FRACTION + "-0.1"),
        ({"validation": 1e-9}, FRACTION + "1e-09"),
        ({"validation": float("nan")}, FRACTION + "nan"),
        ({"validation": True}, MASK),
        ({"validation": None}, MASK),
        ({"validation": "a tenth"}, MASK),
        ({"validation": HIDDEN.astype(int)}, MASK),
        ({"validation": HIDDEN[1:]}, MASK),
        ({"validation": [[True], [True, False]]}, MASK),
        ({"validation": np.zeros(ROWS.shape, bool)}, "no cell of the validation part is observed"),
        ({"validation": np.ones(ROWS.shape, bool)}, "column .*'Dune'.* has no observed cell"),
        ({"n_average": 0}, "n_average must be a whole number of at least 1, not 0"),
        ({"n_average": 2.5}, "n_average must be a whole number of at least 1, not 2.5"),
        ({"scoring": "rmse"}, "scoring must be 'likelihood' or 'error', not 'rmse'"),
        ({"random_state": "x"}, "random_state must be"),
        ({"sample_weight": np.zeros(len(ROWS))}, "all sample weights are zero"),
        ({"sample_weight": np.ones(2)}, "2 sample weights for 100 rows"),
        ({"sample_weight": (~HIDDEN.any(axis=1)).astype(float), "validation": HIDDEN}, "no cell"),
        ({"table": np.zeros((0, 3), int)}, "the table is empty"),
        ({"table": ROWS[:2, :1]}, FRACTION),
        ({"table": [["a", "b"], ["b", "b"], ["a", "a"]] * 9, "scoring": "error"}, "has a value"),
    ],
    ids=lambda given: None if isinstance(given, str) else " ".join(given),
)
def test_bad_options_give_a_sentence(options, sentence):
    with pytest.raises(jp.JointPMFError, match=sentence):
        fit(**options)


class TestProgress:
    def test_it_names_the_kinds_on_stderr_and_nothing_on_stdout(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
        monkeypatch.setenv("COLUMNS", "200")
        fit(verbose=True)
        shown = capsys.readouterr()
        assert "fitting: 5 traits, 64 points, iteration " in shown.err
        assert shown.out == ""

    def test_it_is_silent_by_default_and_changes_no_bit(self, capsys):
        quiet = fit()
        assert capsys.readouterr() == ("", "")
        assert bits_of(quiet) == bits_of(fit(verbose=True))

    def test_the_callback_sees_every_kind_and_stops(self):
        stages = []

        def callback(step, pmf):
            stages.append(step.stage)
            return "traits" in step.stage

        solution = fit(callback=callback)
        assert stages[0] == "rows, rank 4"
        assert stages[-1] == "5 traits, 64 points"
        assert solution.status is jp.Status.STOPPED
        assert feasible(solution.pmf)


def test_a_mask_hides_cells_without_more_words():
    given, named = (
        fit_rows(CODES, validation=cells, kinds=FEW, max_iter=5, random_state=0)
        for cells in (HIDDEN, jp.HiddenCells(HIDDEN))
    )
    assert bits_of(given) == bits_of(named)
    assert given.validation == named.validation
