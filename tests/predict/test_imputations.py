"""Several completed tables: from which models they are drawn, and Rubin's rules by hand."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import jointpmf as jp
from jointpmf.predict.imputations import Imputations
from support import oracle

DOMAIN = jp.Domain.of_sizes([2, 3])
PMF = jp.random_pmf(DOMAIN, 2, random_state=0)
HOLES = pl.DataFrame({"x0": [0, None, 1, None] * 50, "x1": [None, 2, 1, None] * 50})


def one_level(code):
    """Return a model that knows one row only."""
    factors = [np.eye(2)[:, [code % 2]], np.eye(3)[:, [code]]]
    return jp.JointPMF(DOMAIN, [1.0], factors)


LEVELS = SimpleNamespace(pmfs=[one_level(code) for code in range(3)])
"""Replicates of which each fills holes of x1 with its own level."""


@cache
def sure():
    rows = PMF.sample(300, random_state=0, backend="codes").astype(int)
    rows[::3, 1] = jp.MISSING
    return jp.fit_rows(jp.Codes(DOMAIN, rows), rank=2, random_state=0).uncertainty(
        n=6, random_state=0
    )


class TestDraws:
    @pytest.mark.parametrize("n_draws", [1, 2, 3])
    def test_every_draw_has_a_replicate_of_its_own(self, n_draws):
        for seed in range(5):
            drawn = jp.impute(LEVELS, [[0, None]] * 4, n_draws=n_draws, random_state=seed)
            levels = [{row[1] for row in table.tolist()} for table in drawn]
            assert all(len(each) == 1 for each in levels)
            assert len(set.union(*levels)) == n_draws

    def test_which_replicates_is_left_to_chance(self):
        first = {
            jp.impute(LEVELS, [[0, None]], n_draws=1, random_state=seed)[0][0, 1]
            for seed in range(30)
        }
        assert first == {0, 1, 2}

    @pytest.mark.parametrize("model", [PMF, "sure"])
    def test_the_same_seed_gives_the_same_tables_and_draws_differ(self, model):
        model = sure() if model == "sure" else model
        first, again, other = (
            jp.impute(model, HOLES, n_draws=3, random_state=seed) for seed in (1, 1, 2)
        )
        assert all(a.equals(b) for a, b in zip(first, again, strict=True))
        assert not any(a.equals(b) for a, b in zip(first, other, strict=True))
        assert not first[0].equals(first[1])

    def test_cells_are_drawn_from_the_distribution_of_their_row(self):
        drawn = jp.impute(PMF, HOLES, n_draws=200, random_state=0)
        cells = np.concatenate([table["x1"].to_numpy()[0::4] for table in drawn])
        expected = oracle.row_prediction(PMF, np.array([0, jp.MISSING]), 1)
        found = np.bincount(cells, minlength=3) / len(cells)
        assert np.abs(found - expected).max() < 4 * np.sqrt(0.25 / len(cells))

    @pytest.mark.parametrize(
        "table", [HOLES, HOLES.to_pandas(), HOLES.to_arrow()], ids=["polars", "pandas", "pyarrow"]
    )
    def test_tables_are_of_the_kind_that_came_in(self, table):
        drawn = jp.impute(sure(), table, n_draws=2, random_state=0)
        assert isinstance(drawn, Imputations)
        assert [type(each) for each in drawn] == [type(table)] * 2
        assert len(drawn[:1]) == 1
        complete = pl.DataFrame(pa.table(drawn[1]) if isinstance(table, pa.Table) else drawn[1])
        assert complete.null_count().sum_horizontal().item() == 0
        known = HOLES["x1"].is_not_null()
        assert (complete["x1"].filter(known) == HOLES["x1"].filter(known)).all()

    def test_it_says_from_what_the_tables_were_drawn(self):
        assert "from a model each" in repr(jp.impute(sure(), HOLES, n_draws=2))
        assert "from one model" in repr(jp.impute(PMF, HOLES, n_draws=2))

    def test_missing_codes_are_holes_of_every_draw(self):
        drawn = jp.impute(LEVELS, [[0, 9]], n_draws=3, missing_code=9, random_state=0)
        assert sorted(table[0, 1] for table in drawn) == [0, 1, 2]


def by_hand(values, variances, level, df):
    """Return Rubin's rules, written out one number after the other."""
    m = len(values)
    mean, within = sum(values) / m, sum(variances) / m
    between = sum((v - mean) ** 2 for v in values) / (m - 1)
    total = within + (1 + 1 / m) * between
    r = (1 + 1 / m) * between / within
    nu = (m - 1) * (1 + 1 / r) ** 2
    if df is not None:
        lam = (1 + 1 / m) * between / total
        observed = (df + 1) / (df + 3) * df * (1 - lam)
        nu = nu * observed / (nu + observed)
    half = stats.t.ppf((1 + level) / 2, nu) * total**0.5
    fmi = (r + 2 / (nu + 3)) / (r + 1)
    return mean, total**0.5, mean - half, mean + half, nu, fmi


TABLES = Imputations(tuple(np.random.default_rng(0).normal(size=(4, 30, 2))), True)


def mean_of(table):
    return table[:, 0].mean(), table[:, 0].var(ddof=1) / len(table)


class TestRubin:
    @pytest.mark.parametrize("df", [None, 29, 3.5])
    @pytest.mark.parametrize("level", [0.9, 0.99])
    def test_it_is_what_the_rules_give_by_hand(self, level, df):
        pairs = [mean_of(table) for table in TABLES]
        expected = by_hand(*zip(*pairs, strict=True), level, df)
        assert TABLES.pooled(mean_of, level, df=df).row(0) == pytest.approx(expected)

    def test_several_quantities_are_pooled_each_by_itself(self):
        def both(table):
            return table.mean(axis=0), table.var(axis=0) / 30

        frame = TABLES.pooled(both)
        assert frame.columns == ["index", "estimate", "se", "low", "high", "df", "fmi"]
        for q in range(2):
            pairs = [(table[:, q].mean(), table[:, q].var() / 30) for table in TABLES]
            expected = by_hand(*zip(*pairs, strict=True), 0.9, None)
            assert frame.row(q) == pytest.approx((q, *expected))

    @pytest.mark.parametrize("kind", [dict, pd.Series])
    def test_names_become_labels(self, kind):
        def named(table):
            value, variance = mean_of(table)
            return kind({"mean": value, "twice": 2 * value}), kind(
                {"mean": variance, "twice": 4 * variance}
            )

        frame = TABLES.pooled(named, backend="pandas")
        assert list(frame["quantity"]) == ["mean", "twice"]
        assert frame["se"][1] == pytest.approx(2 * frame["se"][0])

    def test_tables_that_agree_add_nothing(self):
        same = Imputations((np.arange(10.0)[:, None],) * 3, True)
        assert same.pooled(mean_of).row(0)[1] == pytest.approx(mean_of(same[0])[1] ** 0.5)
        assert same.pooled(mean_of)["df"][0] == np.inf
        assert same.pooled(mean_of)["fmi"][0] == 0
        expected = by_hand([1.0] * 2 + [1 + 1e-9], [1.0] * 3, 0.9, 9)
        assert same.pooled(lambda _: (1.0, 1.0), df=9).row(0) == pytest.approx(expected)

    def test_a_number_without_any_error_is_itself(self):
        row = TABLES.pooled(lambda _: (5, 0)).row(0)
        assert row[:4] == (5, 0, 5, 5)
        assert not np.isnan(row).any()

    def test_all_of_the_error_may_come_from_the_holes(self):
        drawn = iter([1.0, 2.0, 3.0, 4.0])
        row = TABLES.pooled(lambda _: (next(drawn), 0.0)).row(0)
        assert row[1] == pytest.approx(np.sqrt(1.25 * 5 / 3))
        assert row[4] == pytest.approx(3)
        assert row[5] == pytest.approx(1)

    def test_a_model_per_draw_widens_the_interval(self):
        def share(table):
            cells = table["x1"].to_numpy() == 2
            return cells.mean(), cells.var() / len(cells)

        rows = pl.DataFrame({"x0": [0] * 400, "x1": [None] * 300 + [0, 2] * 50})
        own, one = (
            jp.impute(model, rows, n_draws=6, random_state=0).pooled(share)["se"][0]
            for model in (sure(), sure().pmf)
        )
        assert own > 1.2 * one


def refused(call, message):
    with pytest.raises(jp.JointPMFError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_draws", [0, -1, 2.5, True, "5"])
def test_a_number_of_draws_that_is_none_is_refused(n_draws):
    refused(lambda: jp.impute(PMF, HOLES, n_draws=n_draws), "n_draws must be a whole number")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jp.impute(LEVELS, HOLES, n_draws=4), "3 replicates for 4 draws"),
        (lambda: jp.impute(LEVELS, HOLES), "n_draws must say how many"),
        (lambda: jp.impute(PMF, HOLES, "mode", n_draws=2), "'sample', not 'mode'"),
        (lambda: jp.impute(PMF, HOLES, {"x0": "mode"}, n_draws=2), "'sample', not {'x0'"),
        (lambda: jp.impute(3, HOLES, n_draws=2), "JointPMF or an Uncertainty, not 3"),
        (lambda: jp.impute(3, HOLES), "JointPMF or an Uncertainty, not 3"),
        (lambda: jp.impute(PMF, HOLES, n_draws=1).pooled(mean_of), "n_draws=2 or more"),
        (lambda: TABLES.pooled(3), "function of a table, not 3"),
        (lambda: TABLES.pooled(lambda t: t.nothing), "failed for draw 0: AttributeError"),
        (lambda: TABLES.pooled(lambda t: 3.0), "pair.*not 3.0 as for draw 0"),
        (lambda: TABLES.pooled(lambda t: ([1, 2], [1])), r"draw 0.*\(2,\).*\(1,\)"),
        (lambda: TABLES.pooled(lambda t: ("a", 1)), "draw 0 gave 'a'"),
        (lambda: TABLES.pooled(lambda t: (t, t)), "draw 0 gave array"),
        (lambda: TABLES.pooled(lambda t: ({"a": 1}, {"b": 1})), "draw 0.*other names"),
        (lambda: TABLES.pooled(lambda t: ({"a": 1}, [1])), "draw 0.*other names"),
        (lambda: TABLES.pooled(mean_of, 95), "level must be between 0 and 1"),
        (lambda: TABLES.pooled(mean_of, df=0), "df must be a positive number, not 0"),
        (lambda: TABLES.pooled(mean_of, backend="excel"), "backend must be"),
    ],
)
def test_what_cannot_be_pooled_is_refused(call, message):
    refused(call, message)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ((np.nan, 1), "draw 2 is NaN or infinite"),
        ((1, np.inf), "draw 2 is NaN or infinite"),
        ((1, -2), "draw 2 is negative, -2"),
        (([1, 2], [1, 1]), "other quantities for draw 2"),
        (({"a": 1}, {"a": 1}), "other quantities for draw 2"),
    ],
)
def test_the_draw_whose_estimate_is_wrong_is_named(found, message):
    def estimate(table):
        return found if table is TABLES[2] else (1, 1)

    refused(lambda: TABLES.pooled(estimate), message)
