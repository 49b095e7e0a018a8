"""What a fit is judged by and does not see: rows, cells, or a function."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.fit import validation
from jointpmf.solvers import em
from support.small_fits import (
    DOMAIN,
    OTHER_ROWS,
    ROWS,
    TRUTH,
    assert_same_bits,
    cost,
    fit,
    note_outcomes,
)

OVERFIT = {"rank": 12, "start": "rows", "max_iter": 500, "tol": 0}


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
        ended = note_outcomes(monkeypatch)
        solution = fit(validation=OTHER_ROWS, n_starts=6, **OVERFIT)
        held_out, fitted = ([getattr(s, of) for s in ended] for of in ("validation", "objective"))
        assert len(ended) == 6
        assert np.argmin(held_out) != np.argmin(fitted)
        assert solution.validation == min(held_out)
        assert [restart.validation for restart in solution.restarts] == held_out

    def test_the_best_start_is_the_best_on_other_rows(self, monkeypatch):
        ended = note_outcomes(monkeypatch)
        fit(validation=OTHER_ROWS, rank=6, max_iter=50)
        *candidates, final = ended
        held_out, fitted = (
            [getattr(s, of) for s in candidates] for of in ("validation", "objective")
        )
        assert len(candidates) == 3
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

    def __init__(self, monkeypatch, module, name):
        self.calls, self.cls = [], getattr(module, name)
        monkeypatch.setattr(module, name, self)

    def __call__(self, *args, **options):
        self.calls.append(args)
        return self.cls(*args, **options)


class TestValidationFraction:
    # no two rows are alike
    UNIQUE = np.array([[(k >> b) & 1 for b in range(8)] for k in range(200)])

    def rows_of(self, calls):
        return [
            {tuple(rows.cells_of(np.array([m]))[1]) for m in range(len(rows))}
            for rows in (getattr(call, "rows", call) for call in calls)
        ]

    def test_the_rows_are_parted(self, monkeypatch):
        held_out, fitted = (
            Spy(monkeypatch, validation, "HeldOut"),
            Spy(monkeypatch, em, "EM"),
        )
        fit(self.UNIQUE, 2, domain=None, validation=0.25, start="rows", max_iter=2)
        (other,), (seen,) = (self.rows_of(c[0] for c in s.calls) for s in (held_out, fitted))
        assert (len(other), len(seen), len(other & seen)) == (50, 150, 0)

    def test_what_is_held_out_is_scored(self, monkeypatch):
        held_out = Spy(monkeypatch, validation, "HeldOut")
        solution = fit(self.UNIQUE, 2, domain=None, validation=0.25, max_iter=5)
        cells = [held_out.calls[0][0].cells_of(np.array([m]))[1] for m in range(50)]
        rows = np.array(cells) - 2 * np.arange(8)
        expected = -solution.pmf.log_probability(rows).mean()
        assert solution.validation == pytest.approx(expected, rel=1e-12)

    def test_members_of_an_average_have_splits_of_their_own(self, monkeypatch):
        held_out, fitted = (
            Spy(monkeypatch, validation, "HeldOut"),
            Spy(monkeypatch, em, "EM"),
        )
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
        held_out = Spy(monkeypatch, validation, "HeldOut")
        solution = fit(self.UNIQUE, 2, domain=None, validation=0.25, n_starts=3, max_iter=2)
        assert len(solution.restarts) == 3
        assert len(held_out.calls) == 1


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


def test_a_level_that_only_the_validation_part_has_does_not_choose_the_model():
    domain = jp.Domain.of_sizes([4, 2, 5, 3, 4, 3])
    rows = jp.random_pmf(domain, 3, 0).sample(1500, random_state=0, backend="codes")
    rows[:, 0] = np.where(rows[:, 0] == 3, 2, rows[:, 0])
    rows[7, 0] = 3
    for seed in range(4):
        options = {"domain": domain, "random_state": seed}
        fitted = jp.fit_rows(rows, 3, validation=0.2, **options)
        assert fitted.objective < jp.fit_rows(rows, 1, **options).objective + 0.02


def test_a_table_of_booleans_can_have_rows_to_validate_on():
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
        assert_same_bits(solution.pmf, seen[best - 1].reordered())
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
            ({"validation": None}, "validation cells must be a fraction, or booleans"),
            ({"validation": 2.0}, "cells on both sides, not 2"),
            ({"validation": OTHER_ROWS}, "validation cells must be a fraction, or booleans"),
            ({"validation": HIDDEN[1:]}, r"cells of shape \(399, 5\) must .* shape \(400, 5\)"),
            ({"validation": HIDDEN & (ROWS < 0)}, "no cell of the validation part is observed"),
            ({"validation": np.zeros(ROWS.shape, bool)}, "no cell of the validation part"),
            ({"validation": np.ones(ROWS.shape, bool)}, "has no observed cell"),
        ],
        ids=["word", "nothing", "fraction", "rows", "shape", "holes", "no cell", "all"],
    )
    def test_bad_options_give_a_sentence(self, options, sentence):
        options = BY_ERROR | {"validation": self.HIDDEN} | options
        with pytest.raises(jp.JointPMFError, match=sentence):
            fit(**options)

    def test_levels_without_values_have_no_error(self):
        table = pl.DataFrame({"a": ["x", "y"] * 20, "b": ["p", "q"] * 20})
        hidden = np.eye(40, 2, dtype=bool)
        with pytest.raises(jp.JointPMFError, match="is observed and has a value"):
            jp.fit_rows(table, 2, validation=jp.HiddenCells(hidden, scoring="error"))
        assert jp.fit_rows(table, 2, validation=hidden, random_state=0).validation is not None
