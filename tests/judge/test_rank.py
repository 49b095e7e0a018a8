"""The curve of ranks and the bootstrap test, recomputed from the fits behind them."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.likelihood import EMFit
from jointpmf.judge.bootstrap import BootstrapTest
from jointpmf.judge.curve import RankCurve, RankScore
from jointpmf.judge.summary import CRITERIA, criterion_name, information_criteria
from jointpmf.solvers.jacobian import n_free_parameters
from support.small_fits import assert_same_bits

DOMAIN = jp.Domain.of_sizes([4, 3, 5, 3, 4, 4])


def separated_pmf(rank, seed=0):
    """Return a model whose components are easy to tell apart."""
    generator = np.random.default_rng(seed)
    columns = [generator.dirichlet(np.full(size, 0.4), rank).T for size in DOMAIN.sizes]
    return jp.JointPMF(DOMAIN, np.full(rank, 1 / rank), columns)


def sampled(rank, n_rows, missing=0.2):
    rows = separated_pmf(rank).sample(n_rows, random_state=0, backend="codes")
    holes = np.random.default_rng(1).random(rows.shape) < missing
    return jp.Codes(DOMAIN, np.where(holes, jp.MISSING, rows))


ROWS = sampled(3, 300)
SHORT = {"random_state": 0, "max_iter": 5}
SMALL = SHORT | {"objective": jp.Likelihood(smoothing=0.1)}

# no two rows are alike, and every fold has seen every level
UNIQUE = np.array([[(k >> b) & 1 for b in range(7)] for k in range(100)])


def note_fits(monkeypatch):
    """Return a list that gets the rows, the weights and the solution of every fit."""
    noted, run = [], EMFit.run

    def spy(self, source, generator):
        solution = run(self, source, generator)
        noted.append((source.codes.array, source.weights, solution))
        return solution

    monkeypatch.setattr(EMFit, "run", spy)
    return noted


@pytest.fixture
def fits(monkeypatch):
    """The rows, the weights and the solution of every fit."""
    return note_fits(monkeypatch)


@cache
def curve_of_rows(criterion):
    """Return the curve of ROWS up to a rank that is too large, and the fits behind it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        noted = note_fits(monkeypatch)
        curve = jp.choose_rank(ROWS, range(1, 5), criterion, random_state=0, max_iter=30)
    return curve, noted


@cache
def curve_of_unique(criterion):
    return jp.choose_rank(UNIQUE, [1, 2], criterion, n_folds=2, **SMALL)


def interrupt_at_rank(monkeypatch, rank, n_rows=None):
    """Press Ctrl-C when the first fit of a rank, or of a rank to so many rows, begins."""
    run = EMFit.run

    def spy(self, source, generator):
        if self.rank == rank and n_rows in (None, source.codes.n_rows):
            raise KeyboardInterrupt
        return run(self, source, generator)

    monkeypatch.setattr(EMFit, "run", spy)


def fits_of_folds(fits, n_rows=100):
    """Return the fits to a part of the rows, without those to all of them."""
    return [fit for fit in fits if len(fit[0]) < n_rows]


def best_of_each_rank(fits):
    best = {}
    for _, _, solution in fits:
        rank = solution.pmf.rank
        if rank not in best or solution.objective < best[rank].objective:
            best[rank] = solution
    return {rank: solution.pmf for rank, solution in best.items()}


def without_seconds(curve):
    return [score._replace(seconds=0.0) for score in curve.scores]


def without_models(curve):
    """Return what the scores say of the folds, whatever models the curve has."""
    unknown = {"smallest": None, "relative_entropy": None}
    return [score._replace(**unknown) for score in without_seconds(curve)]


class TestCriteria:
    @pytest.mark.parametrize("criterion", CRITERIA)
    def test_scores_are_those_of_the_best_fits_to_all_rows(self, criterion):
        curve, fits = curve_of_rows(criterion)
        for rank, pmf in best_of_each_rank(fits).items():
            logs = pmf.log_probability(ROWS)[(ROWS.array >= 0).any(axis=1)]
            score = curve.scores[rank - 1]
            n_parameters = rank - 1 + rank * sum(size - 1 for size in DOMAIN.sizes)
            expected = information_criteria(logs.sum(), n_parameters, len(logs))[criterion]
            assert (score.rank, score.n_parameters) == (rank, n_parameters)
            assert score.score == pytest.approx(expected, rel=1e-12)
            assert score.log_likelihood == pytest.approx(logs.mean(), rel=1e-12)
            assert math.isnan(score.standard_error)

    @pytest.mark.parametrize("criterion", CRITERIA)
    def test_the_smallest_is_best(self, criterion):
        curve, _ = curve_of_rows(criterion)
        scores = [score.score for score in curve.scores]
        assert curve.rank == curve.simplest_rank == 1 + int(np.argmin(scores))

    def test_a_row_twice_is_a_row_of_weight_two(self):
        weights = np.where(np.arange(300) < 100, 2.0, 1.0)
        double = jp.Codes(DOMAIN, np.vstack([ROWS.array, ROWS.array[:100]]))
        options = {"criterion": "bic", "random_state": 0, "max_iter": 30}
        curves = [
            jp.choose_rank(ROWS, [1, 2], sample_weight=weights, **options),
            jp.choose_rank(double, [1, 2], **options),
        ]
        scores = [[score.score for score in curve.scores] for curve in curves]
        np.testing.assert_allclose(scores[0], scores[1], rtol=1e-12)

    def test_a_larger_rank_fits_the_rows_better(self):
        curve, _ = curve_of_rows("bic")
        assert (np.diff([score.log_likelihood for score in curve.scores]) > 0).all()


class TestFolds:
    def test_every_row_is_held_out_once(self, fits):
        jp.choose_rank(UNIQUE, [1], n_folds=4, random_state=0)
        everything = set(map(tuple, UNIQUE.tolist()))
        folds = fits_of_folds(fits)
        held_out = [everything - set(map(tuple, array.tolist())) for array, _, _ in folds]
        assert [len(part) for part in held_out] == [25] * 4
        assert set().union(*held_out) == everything

    def test_scores_are_means_over_folds_of_what_was_not_fitted(self, fits):
        weights = 0.5 + np.arange(100) / 100
        curve = jp.choose_rank(
            UNIQUE, [1], n_folds=4, sample_weight=weights, random_state=0, max_iter=5
        )
        expected, fitted, held_out = [], [], []
        for array, fold_weights, solution in fits_of_folds(fits):
            seen = (UNIQUE[:, None] == array).all(axis=2).any(axis=1)
            np.testing.assert_array_equal(weights[seen], fold_weights)
            logs = solution.pmf.log_probability(UNIQUE)
            expected.append(np.average(logs[~seen], weights=weights[~seen]))
            fitted.append(weights[seen] @ logs[seen])
            held_out.append(weights[~seen].sum())
        score = curve.scores[0]
        np.testing.assert_allclose(curve.fold_scores, [expected], rtol=1e-12)
        mean = np.average(expected, weights=held_out)
        assert abs(mean - np.mean(expected)) > 1e-6
        assert score.score == pytest.approx(mean, rel=1e-12)
        deviation = math.sqrt(sum((x - np.mean(expected)) ** 2 for x in expected) / 3)
        assert score.standard_error == pytest.approx(deviation / math.sqrt(4), rel=1e-9)
        assert score.log_likelihood == pytest.approx(sum(fitted) / (3 * weights.sum()), rel=1e-12)

    def test_every_rank_is_scored_on_the_same_folds(self, fits):
        curve = jp.choose_rank(UNIQUE, [1, 2], n_folds=3, **SMALL)
        assert curve.fold_scores.shape == (2, 3)
        parts = {tuple(map(tuple, array.tolist())) for array, _, _ in fits_of_folds(fits)}
        assert len(parts) == 3

    def test_the_largest_is_best(self):
        curve = jp.choose_rank(ROWS, [1, 2, 3], n_folds=2, **SMALL)
        scores = [score.score for score in curve.scores]
        assert curve.rank == 1 + int(np.argmax(scores))

    def test_a_held_out_row_that_cannot_happen_is_said_and_smoothing_avoids_it(self, caplog):
        once = np.vstack([UNIQUE, [2] * 7])
        with pytest.raises(jp.JointPMFError, match=r"under every rank .*impossible; smoothing"):
            jp.choose_rank(
                once, [1, 2], n_folds=2, objective=jp.Likelihood(0), random_state=0, max_iter=5
            )
        assert "1 held-out rows have probability zero at rank 1" in caplog.text
        for options in SHORT, SMALL:  # there is a little smoothing by default
            smoothed = jp.choose_rank(once, [1, 2], n_folds=2, **options)
            assert np.isfinite([score.score for score in smoothed.scores]).all()

    def test_a_column_observed_only_once_is_fine(self):
        table = ROWS.array.copy()
        table[:, 0] = jp.MISSING
        table[5, 0] = 2
        curve = jp.choose_rank(jp.Codes(DOMAIN, table), [1, 2], n_folds=3, **SHORT)
        assert np.isfinite(curve.fold_scores).all()

    def test_by_default_the_smoothing_is_a_hundredth_for_folds_and_none_for_criteria(self):
        for criterion, smoothing in ("validation", 0.01), ("bic", 0.0):
            found, said = (
                jp.choose_rank(UNIQUE, [1, 2], criterion, n_folds=2, **SHORT, **given)
                for given in ({}, {"objective": jp.Likelihood(smoothing)})
            )
            assert [s.score for s in found.scores] == [s.score for s in said.scores]
            assert found[2].settings.smoothing is None


class TestGivenRows:
    def test_they_are_scored_and_the_error_is_over_rows(self, fits):
        held_out = separated_pmf(3).sample(80, random_state=7)
        curve = jp.choose_rank(ROWS, [1, 2], validation=held_out, **SMALL)
        judged = fits[:2]  # those after them have no smoothing
        for rank, pmf in best_of_each_rank(judged).items():
            logs = pmf.log_probability(held_out)
            score = curve.scores[rank - 1]
            assert score.score == pytest.approx(logs.mean(), rel=1e-12)
            assert score.standard_error == pytest.approx(logs.std() / math.sqrt(80), rel=1e-9)
        assert all(len(array) == 300 for array, _, _ in fits)

    def test_a_rank_under_which_one_of_them_is_impossible_is_not_chosen(self):
        agreeing = [[0] * 9, [1] * 9] * 20
        curve = jp.choose_rank(
            agreeing,
            [1, 2],
            validation=[[0] * 8 + [1], [0] * 9],
            objective=jp.Likelihood(0),
            random_state=0,
        )
        assert curve.scores[1].score == -np.inf
        assert math.isnan(curve.scores[1].standard_error)
        assert curve.rank == curve.simplest_rank == 1

    def test_rows_without_an_observed_cell_do_not_count(self):
        held_out = separated_pmf(3).sample(80, random_state=7, backend="codes")
        holes = np.vstack([held_out, np.full((20, 6), jp.MISSING)])
        curves = [
            jp.choose_rank(ROWS, [1], validation=jp.Codes(DOMAIN, part), **SMALL)
            for part in (held_out, holes)
        ]
        assert without_seconds(curves[0]) == without_seconds(curves[1])


class TestOtherValidation:
    """A fraction of the rows, cells of the table, and a function."""

    def test_a_fraction_of_the_rows_is_held_out_once(self, fits):
        curve = jp.choose_rank(UNIQUE, [1, 2], validation=0.25, **SMALL)
        folds = fits_of_folds(fits)
        assert {len(array) for array, _, _ in folds} == {75}
        assert len({array.tobytes() for array, _, _ in folds}) == 1
        seen = (UNIQUE[:, None] == folds[0][0]).all(axis=2).any(axis=1)
        for rank, pmf in best_of_each_rank(folds).items():
            logs = pmf.log_probability(UNIQUE[~seen])
            score = curve.scores[rank - 1]
            assert score.score == pytest.approx(logs.mean(), rel=1e-12)
            assert score.standard_error == pytest.approx(logs.std() / 5, rel=1e-9)

    @pytest.mark.parametrize("kind", ["mask", "cells", "fraction"])
    def test_hidden_cells_are_predicted_from_the_rest_of_their_rows(self, fits, kind):
        mask = np.random.default_rng(0).random(ROWS.array.shape) < 0.2
        validation = {
            "mask": mask,
            "cells": jp.HiddenCells(mask),
            "fraction": jp.HiddenCells(0.25),
        }[kind]
        curve = jp.choose_rank(ROWS, [1, 2], validation=validation, **SMALL)
        visible = next(array for array, _, _ in fits if (array != ROWS.array).any())
        hidden = (visible == jp.MISSING) & (ROWS.array != jp.MISSING)
        if kind == "fraction":
            assert hidden.sum() == pytest.approx(0.25 * (ROWS.array != jp.MISSING).sum(), abs=1)
        else:
            np.testing.assert_array_equal(hidden, mask & (ROWS.array != jp.MISSING))
        apart = [fit for fit in fits if (fit[0] != ROWS.array).any()]
        for rank, pmf in best_of_each_rank(apart).items():
            logs = []
            for n, name in enumerate(DOMAIN.names):
                rows = np.flatnonzero(hidden[:, n])
                proba = pmf.predict_proba(jp.Codes(DOMAIN, visible), name)
                logs += np.log(proba[rows, ROWS.array[rows, n]]).tolist()
            assert curve.scores[rank - 1].score == pytest.approx(np.mean(logs), rel=1e-9)
            assert math.isnan(curve.scores[rank - 1].standard_error)
        assert curve.simplest_rank == curve.rank

    def test_a_function_says_how_badly_a_model_does(self, fits):
        truth = separated_pmf(3)
        curve = jp.choose_rank(
            ROWS, [1, 2, 3], validation=lambda pmf: jp.tensor_error(truth, pmf), **SMALL
        )
        judged = fits[:3]  # those after them have no smoothing
        for rank, pmf in best_of_each_rank(judged).items():
            expected = -jp.tensor_error(truth, pmf)
            assert curve.scores[rank - 1].score == pytest.approx(expected, rel=1e-9)
        assert all(len(array) == 300 for array, _, _ in fits)
        assert curve.rank == 3

    @pytest.mark.parametrize("validation", [0.2, UNIQUE[:5], lambda pmf: 0.0])
    def test_it_belongs_to_the_criterion_of_that_name(self, validation):
        with pytest.raises(jp.JointPMFError, match="belongs to criterion='validation'"):
            jp.choose_rank(UNIQUE, [1], "bic", validation=validation)

    @pytest.mark.parametrize("fraction", [0, 1, 1.5, 0.001])
    def test_a_fraction_must_leave_rows_on_both_sides(self, fraction):
        with pytest.raises(jp.JointPMFError, match="a fraction that leaves rows on both sides"):
            jp.choose_rank(UNIQUE, [1], validation=fraction)


class TestModels:
    """A curve keeps the fit of each rank to all rows."""

    @pytest.mark.parametrize("criterion", ["validation", "bic"])
    def test_they_are_the_best_fits_to_all_rows(self, fits, criterion):
        curve = jp.choose_rank(UNIQUE, [1, 2, 4], criterion, n_folds=2, **SMALL)
        whole = [fit for fit in fits if len(fit[0]) == 100]
        for rank, pmf in best_of_each_rank(whole).items():
            assert curve[rank].pmf is pmf
            assert curve[rank].pmf.rank == rank
        assert [solution.pmf.rank for solution in curve.solutions] == [1, 2, 4]

    @pytest.mark.parametrize("rank", [3, 0, "2"])
    def test_another_rank_is_refused(self, rank):
        curve = curve_of_unique("bic")
        with pytest.raises(jp.JointPMFError, match=f"^the curve has no model of rank {rank!r}$"):
            curve[rank]

    def test_a_larger_one_fits_no_worse(self):
        curve = jp.choose_rank(ROWS, [1, 2, 3], n_folds=2, random_state=0, max_iter=30)
        objectives = [curve[rank].objective for rank in (1, 2, 3)]
        assert objectives == sorted(objectives, reverse=True)

    def test_after_an_interrupt_among_them_the_curve_is_whole(self, monkeypatch, caplog):
        whole = curve_of_unique("validation")
        interrupt_at_rank(monkeypatch, 2, n_rows=100)
        curve = jp.choose_rank(UNIQUE, [1, 2], n_folds=2, **SMALL)
        assert without_models(curve) == without_models(whole)
        assert curve.scores[0].smallest == whole.scores[0].smallest
        assert math.isnan(curve.scores[1].smallest)
        np.testing.assert_array_equal(curve[1].pmf.weights, whole[1].pmf.weights)
        with pytest.raises(jp.JointPMFError, match="no model of rank 2"):
            curve[2]
        assert "stopped at rank 2; from there on the curve has no models" in caplog.text


class TestCallback:
    def test_it_sees_which_fit_it_is_and_can_stop(self):
        stages = []

        def callback(step, pmf):
            stages.append(step.stage)
            assert step.stage.startswith(f"rank {pmf.rank}")
            return step.stage.startswith("rank 2, fold 2")

        curve = jp.choose_rank(UNIQUE, [1, 2, 3], n_folds=2, callback=callback, **SMALL)
        assert list(dict.fromkeys(stage.partition(", start")[0] for stage in stages)) == [
            "rank 1, fold 1",
            "rank 1, fold 2",
            "rank 2, fold 1",
            "rank 2, fold 2",
        ]
        assert [score.rank for score in curve.scores] == [1]


class TestChoice:
    @pytest.mark.parametrize("criterion", ["validation", *CRITERIA])
    def test_a_planted_rank_is_chosen(self, criterion):
        curve = jp.choose_rank(
            sampled(3, 600), [1, 2, 3, 4], criterion, n_folds=2, random_state=0, tol=1e-4
        )
        assert curve.rank == 3

    @pytest.mark.parametrize("criterion", ["validation", "bic"])
    def test_the_same_seed_gives_the_same_bits(self, criterion):
        options = SMALL | {"n_folds": 2}
        first = curve_of_unique(criterion)
        second = jp.choose_rank(UNIQUE, [1, 2], criterion, **options)
        other = jp.choose_rank(UNIQUE, [1, 2], criterion, **(options | {"random_state": 1}))
        assert repr(without_seconds(first)) == repr(without_seconds(second))
        assert repr(without_seconds(first)) != repr(without_seconds(other))

    def test_ranks_are_sorted_and_tried_once(self):
        curve = jp.choose_rank(UNIQUE, iter([8, 1, 8]), "bic", **SMALL)
        assert [score.rank for score in curve.scores] == [1, 8]

    def test_tables_are_read_as_everywhere(self):
        table = jp.random_pmf(jp.Domain.of_sizes([2, 3, 2]), 2, 0).sample(60, random_state=0)
        curves = [
            jp.choose_rank(given, [1, 2], "aic", domain=jp.Domain.of_sizes([2, 3, 2]), **SMALL)
            for given in (table, table.to_pandas(), table.to_numpy())
        ]
        assert len({repr(without_seconds(curve)) for curve in curves}) == 1

    @pytest.mark.parametrize("criterion", ["bic", "validation"])
    def test_after_an_interrupt_the_curve_has_the_ranks_done(self, monkeypatch, criterion):
        whole = curve_of_unique(criterion)
        interrupt_at_rank(monkeypatch, 3)
        curve = jp.choose_rank(UNIQUE, [1, 2, 3, 4], criterion, n_folds=2, **SMALL)
        assert repr(without_models(curve)) == repr(without_models(whole))
        np.testing.assert_array_equal(curve.fold_scores, whole.fold_scores)

    @pytest.mark.parametrize("criterion", ["bic", "validation"])
    def test_an_interrupt_before_any_rank_is_done_ends_the_search(self, monkeypatch, criterion):
        interrupt_at_rank(monkeypatch, 1)
        with pytest.raises(KeyboardInterrupt):
            jp.choose_rank(UNIQUE, [1, 2], criterion, **SMALL)

    def test_a_fit_that_was_stopped_has_no_score(self, monkeypatch):
        run = EMFit.run

        def stopped(self, source, generator):
            solution = run(self, source, generator)
            return replace(solution, status=jp.Status.STOPPED) if self.rank == 2 else solution

        monkeypatch.setattr(EMFit, "run", stopped)
        curve = jp.choose_rank(UNIQUE, [1, 2, 3], "bic", **SMALL)
        assert [score.rank for score in curve.scores] == [1]

    @pytest.mark.parametrize("criterion", ["bic", "validation"])
    def test_the_model_of_a_rank_is_the_one_that_fit_rows_returns(self, criterion):
        curve = jp.choose_rank(ROWS, [1, 3], criterion, n_folds=2, random_state=5)
        for rank in (1, 3):
            solution = jp.fit_rows(ROWS, rank, random_state=5)
            assert_same_bits(curve[rank].pmf, solution.pmf)
            assert curve[rank].objective == solution.objective
            assert curve[rank].source == solution.source
            assert curve[rank].n_agreed == solution.n_agreed

    def test_a_generator_gives_what_it_gives_fit_rows(self):
        curve = jp.choose_rank(ROWS, [2, 3], "bic", random_state=np.random.default_rng(3))
        solution = jp.fit_rows(ROWS, 3, random_state=np.random.default_rng(3))
        assert_same_bits(curve[3].pmf, solution.pmf)

    def test_a_rank_that_was_found_by_one_start_only_is_said(self):
        curve = jp.choose_rank(ROWS, [1, 2], "bic", random_state=0)
        once, often = (replace(curve[2], n_starts=6, n_agreed=count) for count in (1, 2))
        assert replace(curve, solutions=(curve[1], once)).not_replicated == [2]
        assert replace(curve, solutions=(curve[1], often)).not_replicated == []
        said = "Found by only one start, so that there may be a better optimum: rank 2."
        assert said in str(replace(curve, solutions=(curve[1], once)))
        assert said not in str(replace(curve, solutions=(curve[1], often)))


def curve_of(*scores, criterion="validation"):
    lines = [
        RankScore(k + 1, score, error, -3.0, 7, 0.5) for k, (score, error) in enumerate(scores)
    ]
    return RankCurve(criterion, tuple(lines), np.zeros((len(lines), 2)))


class TestCurve:
    @pytest.mark.parametrize(
        ("error", "simplest"), [(0.05, 3), (0.15, 2), (0.1, 3), (5.0, 1), (math.nan, 3)]
    )
    def test_the_simplest_rank_is_within_one_error_of_the_best(self, error, simplest):
        curve = curve_of((-2.5, 9.0), (-1.125, 9.0), (-1.0, error), (-1.2, 9.0))
        assert (curve.rank, curve.simplest_rank) == (3, simplest)

    def test_equal_scores_choose_the_smaller_rank(self):
        assert curve_of((-2.0, 0.1), (-1.0, 0.1), (-1.0, 0.1)).rank == 2
        assert (
            curve_of((9.0, math.nan), (7.0, math.nan), (7.0, math.nan), criterion="bic").rank == 2
        )

    def test_it_prints_as_a_table_with_an_arrow_at_the_choice(self):
        heading, *lines = str(curve_of((-2.5, 0.25), (-1.0, 0.125), (-1.5, 0.5))).splitlines()
        assert heading.split()[:2] == ["rank", "held-out"]
        assert [line.split()[:3] for line in lines] == [
            ["1", "-2.5000", "0.2500"],
            ["2", "-1.0000", "0.1250"],
            ["3", "-1.5000", "0.5000"],
        ]
        assert [line.endswith("←") for line in lines] == [False, True, False]
        assert len({len(line.removesuffix(" ←")) for line in [heading, *lines]}) == 1

    @pytest.mark.parametrize("criterion", CRITERIA)
    def test_a_criterion_is_named_in_the_table_and_has_no_error(self, criterion):
        curve = curve_of((5.0, math.nan), (6.0, math.nan), criterion=criterion)
        heading, *lines = str(curve).splitlines()
        assert heading.split()[:2] == ["rank", criterion_name(criterion)]
        assert [line.split()[:2] for line in lines] == [["1", "5.0000"], ["2", "6.0000"]]
        assert [line.endswith("←") for line in lines] == [True, False]
        assert "nan" not in str(curve)

    def test_gains_are_per_component_and_the_elbow_is_farthest_from_the_chord(self):
        heights = {1: -9.0, 2: -5.0, 4: -3.0, 8: -2.5}
        scores = [RankScore(r, -h, math.nan, h, 7, 0.5) for r, h in heights.items()]
        curve = RankCurve("bic", tuple(scores), np.zeros((4, 0)))
        assert curve.gains[1:] == [4.0, 1.0, 0.125]
        above = [h + 9 - (r - 1) / 7 * 6.5 for r, h in heights.items()]
        assert curve.elbow == list(heights)[int(np.argmax(above))] == 4
        assert "\nThe fitted log-likelihood bends at rank 4 (elbow).\n" in str(curve)
        assert curve.to_frame()["gain"].to_list()[1:] == curve.gains[1:]

    @pytest.mark.parametrize("heights", [[-3.0], [-3.0, -2.0], [-3.0, -2.0, -1.0], [-3.0] * 4])
    def test_a_curve_without_a_bend_has_no_elbow(self, heights):
        scores = [RankScore(k + 1, -h, math.nan, h, 7, 0.5) for k, h in enumerate(heights)]
        curve = RankCurve("bic", tuple(scores), np.zeros((len(scores), 0)))
        assert curve.elbow is None
        assert "(elbow)" not in str(curve)

    def test_it_says_if_the_last_rank_is_the_best(self):
        worse, better = (5.0, math.nan), (4.0, math.nan)
        said = str(curve_of(worse, better, criterion="abic")).splitlines()[-1]
        assert said.startswith("The aBIC still improves at rank 2, the last one tried: try larger")
        assert said.endswith("go by the elbow, the gain and the smallest component.")
        said = str(curve_of((-2.0, 0.1), (-1.0, 0.1))).splitlines()[-1]
        assert said.endswith("still improves at rank 2, the last one tried: try larger ones.")
        for curve in (
            curve_of(better, worse, criterion="bic"),
            curve_of(better, criterion="bic"),
            curve_of((-math.inf, 0.1), (-math.inf, 0.1)),
        ):
            assert "still improves" not in str(curve)

    @pytest.mark.parametrize("criterion", ["validation", "bic"])
    def test_it_says_how_small_and_how_clear_the_components_are(self, criterion):
        curve = curve_of_unique(criterion)
        for score in curve.scores:
            pmf = curve[score.rank].pmf
            assert score.smallest == pmf.weights.min()
            found = jp.summary(pmf, jp.encode(UNIQUE, pmf.domain)).relative_entropy
            assert score.relative_entropy == pytest.approx(found)
        assert f"{100 * curve.scores[1].smallest:.1f} %" in str(curve)
        assert "nan" not in str(curve)


class TestProgress:
    def test_nothing_is_printed_without_a_bar(self, capfd):
        jp.choose_rank(UNIQUE, [1], "bic", **SMALL)
        jp.bootstrap_test(UNIQUE, 1, n_bootstrap=1, **SHORT)
        assert capfd.readouterr() == ("", "")

    def test_a_bar_shows_what_is_done_and_changes_no_bit(self, monkeypatch, capfd):
        for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
            monkeypatch.setenv(name, value)  # as if the screen were a terminal
        curves, tests, screens = [], [], []
        for verbose in False, True:
            options = SHORT | {"verbose": verbose}
            curves.append(jp.choose_rank(UNIQUE, [1, 2], n_folds=2, **options))
            tests.append(jp.bootstrap_test(UNIQUE, 1, n_bootstrap=2, **options))
            screens.append(capfd.readouterr())
        assert screens[0] == ("", "")
        assert "choosing the rank: rank 2" in screens[1].err
        assert "simulating: table 2" in screens[1].err
        assert without_seconds(curves[0]) == without_seconds(curves[1])
        assert str(tests[0]) == str(tests[1])


class TestBootstrap:
    def test_a_rank_too_small_is_refuted(self):
        found = jp.bootstrap_test(sampled(2, 400), 1, n_bootstrap=19, random_state=0, tol=1e-4)
        assert found.p_value == 0.05
        assert str(found).endswith("rank 1 is not enough.")

    def test_the_right_rank_is_not_refuted(self):
        found = jp.bootstrap_test(sampled(2, 400), 2, n_bootstrap=19, random_state=0, tol=1e-4)
        assert found.p_value > 0.1
        assert str(found).endswith("rank 2 may be enough.")

    def test_the_p_value_counts_the_tables_that_gain_as_much(self):
        found = jp.bootstrap_test(UNIQUE, 2, n_bootstrap=9, **SHORT)
        above = (found.replicates >= found.statistic).sum()
        assert found.replicates.shape == (9,)
        assert found.p_value == (1 + above) / 10

    def test_the_statistic_is_twice_the_gain_in_log_likelihood(self):
        rows = sampled(2, 400)
        small, large = (jp.fit_rows(rows, rank, random_state=1).pmf for rank in (1, 2))
        expected = 2 * (large.log_probability(rows) - small.log_probability(rows)).sum()
        found = jp.bootstrap_test(rows, 1, n_bootstrap=1, random_state=0, tol=1e-10)
        assert found.statistic == pytest.approx(expected, rel=1e-6)

    def test_simulated_tables_miss_the_same_cells_and_come_from_the_smaller_fit(self, fits):
        jp.bootstrap_test(ROWS, 1, n_bootstrap=20, random_state=0, tol=1e-3)
        tables = {array.tobytes(): array for array, _, _ in fits}
        del tables[ROWS.array.tobytes()]
        assert len(tables) == 20
        for array in tables.values():
            np.testing.assert_array_equal(array == jp.MISSING, ROWS.array == jp.MISSING)
        drawn = np.concatenate(list(tables.values()))
        for n, factor in enumerate(fits[0][2].pmf.factors):
            seen = drawn[:, n][drawn[:, n] >= 0]
            frequencies = np.bincount(seen, minlength=len(factor)) / len(seen)
            np.testing.assert_allclose(frequencies, factor[:, 0], atol=0.03)

    def test_the_same_seed_gives_the_same_bits(self):
        first, second, other = (
            jp.bootstrap_test(UNIQUE, 1, n_bootstrap=3, random_state=seed, tol=1e-6)
            for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(first.replicates, second.replicates)
        assert (first.statistic, first.p_value) == (second.statistic, second.p_value)
        assert not np.array_equal(first.replicates, other.replicates)

    def test_it_prints_as_a_sentence(self):
        found = BootstrapTest(2, 12.34567, 0.25, np.zeros(19))
        assert str(found) == (
            "Rank 2 against 3: likelihood ratio 12.346, p = 0.25 from 19 simulated tables; "
            "rank 2 may be enough."
        )

    def test_too_few_tables_refute_nothing_and_say_so(self):
        found = jp.bootstrap_test(sampled(2, 400), 1, n_bootstrap=18, **SHORT)
        assert found.p_value == 1 / 19
        assert str(found).endswith("rank 1 cannot be refuted with so few tables.")

    def test_weights_of_one_change_no_bit(self):
        options = {"n_bootstrap": 3, "random_state": 0, "tol": 1e-6}
        plain = jp.bootstrap_test(ROWS, 1, **options)
        weighted = jp.bootstrap_test(ROWS, 1, sample_weight=np.ones(ROWS.n_rows), **options)
        assert weighted.statistic == plain.statistic
        np.testing.assert_array_equal(weighted.replicates, plain.replicates)

    def test_the_statistic_of_weights_is_that_of_repeated_rows(self):
        rows, weights = sampled(2, 200), np.random.default_rng(0).integers(0, 4, 200)
        repeated = jp.Codes(DOMAIN, rows.array.repeat(weights, axis=0))
        options = {"n_bootstrap": 1, "random_state": 0, "tol": 1e-10}
        one = jp.bootstrap_test(rows, 1, sample_weight=weights, **options)
        other = jp.bootstrap_test(repeated, 1, **options)
        assert one.statistic == pytest.approx(other.statistic, rel=1e-6)

    def test_simulated_tables_have_the_weights_of_the_rows(self, fits):
        weights = np.random.default_rng(0).uniform(0.5, 2.0, ROWS.n_rows)
        jp.bootstrap_test(ROWS, 1, sample_weight=weights, n_bootstrap=2, **SHORT)
        assert len({array.tobytes() for array, _, _ in fits}) == 3
        for _, given, _ in fits:
            np.testing.assert_array_equal(given, weights)

    def test_after_an_interrupt_the_p_value_is_that_of_the_tables_done(self, monkeypatch, caplog):
        whole = jp.bootstrap_test(UNIQUE, 1, n_bootstrap=3, **SHORT)
        run, tables = EMFit.run, set()

        def stopped(self, source, generator):
            tables.add(source.codes.array.tobytes())
            if len(tables) == 4:  # the real one and two simulated ones are done
                raise KeyboardInterrupt
            return run(self, source, generator)

        monkeypatch.setattr(EMFit, "run", stopped)
        found = jp.bootstrap_test(UNIQUE, 1, n_bootstrap=3, **SHORT)
        np.testing.assert_array_equal(found.replicates, whole.replicates[:2])
        assert found.p_value == (1 + (found.replicates >= found.statistic).sum()) / 3
        assert "stopped after 2 of 3 simulated tables" in caplog.text

    def test_an_interrupt_before_any_table_is_done_ends_the_test(self, monkeypatch):
        run, tables = EMFit.run, set()

        def stopped(self, source, generator):
            tables.add(source.codes.array.tobytes())
            if len(tables) == 2:
                raise KeyboardInterrupt
            return run(self, source, generator)

        monkeypatch.setattr(EMFit, "run", stopped)
        with pytest.raises(KeyboardInterrupt):
            jp.bootstrap_test(UNIQUE, 1, n_bootstrap=3, **SHORT)

    @pytest.mark.parametrize(
        ("weights", "said"),
        [
            ([1.0], "1 sample weights for 100 rows"),
            ([-1.0] + [1.0] * 99, "sample weight of row 0 is -1"),
            (["x"] * 100, "are not numbers"),
            (np.zeros(100), "all sample weights are zero"),
        ],
    )
    def test_bad_weights_are_said(self, weights, said):
        with pytest.raises(jp.JointPMFError, match=said):
            jp.bootstrap_test(UNIQUE, 1, sample_weight=weights, n_bootstrap=1)

    @pytest.mark.parametrize("option", ["objective", "n_starts", "validation"])
    def test_there_are_no_other_options(self, option):
        with pytest.raises(TypeError, match=option):
            jp.bootstrap_test(UNIQUE, 1, **{option: 1})


def test_free_parameters_are_weights_and_columns_that_sum_to_one():
    assert n_free_parameters(jp.Domain.of_sizes([2, 5, 1]), 3) == 2 + 3 * (1 + 4 + 0)
