"""The levels of a table are the same, however its rows are divided."""

import datetime
from functools import reduce

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointpmf as jp
from jointpmf.data.levels import LevelCollector, LevelRules
from jointpmf.data.texts import typed_texts

WHEN = datetime.date(2020, 1, 31)
LIKE = {
    "texts": [pl.DataFrame({"a": ["b", None]}), pl.DataFrame({"a": ["a"]})],
    "whole numbers": [pl.DataFrame({"a": [3, 1]}), pl.DataFrame({"a": [2, None]})],
    "truths": [pl.DataFrame({"a": [True]}), pl.DataFrame({"a": [False, None]})],
    "dates": [pl.DataFrame({"a": [WHEN]}), pl.DataFrame({"a": [WHEN - datetime.timedelta(3)]})],
    "no cell at first": [pl.DataFrame({"a": [None, None]}), pl.DataFrame({"a": [2, 1]})],
    "Enums": [pl.DataFrame({"a": pl.Series(["z"], dtype=pl.Enum(["z", "b", "a"]))})] * 2,
    "categories": [pd.DataFrame({"a": pd.Categorical(["z", "a"], ["z", "y", "a"])})] * 2,
    "other categories": [
        pd.DataFrame({"a": pd.Categorical(["z", "a"], ["z", "y", "a"])}),
        pd.DataFrame({"a": pd.Categorical(["b"], ["b", "a"])}),
    ],
    "whole floats": [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [3.0, None]})],
    "numbers": [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [2.5, 2.0]})],
    "times": [pd.DataFrame({"a": pd.to_datetime(["2020-01-02", None])})] * 2,
    "arrow": [pa.table({"a": ["y", "x"]}), pa.table({"a": ["z"]})],
    "arrays": [np.array([[4, 1], [2, -1]]), np.array([[3, 7]])],
    "float arrays": [np.array([[4, 1.5], [2, np.nan]]), np.array([[-1.0, 7.0]])],
    "text arrays": [np.array([["b", "x"]]), np.array([["a", "x"]])],
    "lists": [[["b", 1], [None, 2]], [["a", None]]],
}


def together(tables):
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    if isinstance(tables[0], list):
        return [row for table in tables for row in table]
    if isinstance(tables[0], pl.DataFrame):
        return pl.concat(tables, how="vertical_relaxed")
    return pa.concat_tables(tables) if isinstance(tables[0], pa.Table) else pd.concat(tables)


def collected(tables, **rules):
    """Return the collector of all tables, added one after the other."""
    collector = LevelCollector(LevelRules(**rules))
    assert sum(map(collector.add, tables)) == sum(map(len, tables))
    return collector


def assert_same(domain, wanted):
    """Compare two domains, and also the types of their levels."""
    assert domain == wanted
    types = [[type(level) for level in variable.levels] for variable in domain]
    assert types == [[type(level) for level in variable.levels] for variable in wanted]


class TestDivided:
    @pytest.mark.parametrize("tables", LIKE.values(), ids=LIKE)
    def test_levels_are_those_of_all_batches_together(self, tables):
        assert_same(collected(tables).domain(), jp.encode(together(tables)).domain)

    @pytest.mark.parametrize("tables", LIKE.values(), ids=LIKE)
    def test_and_of_merged_collectors(self, tables):
        parts = [collected([table]) for table in tables]
        merged = reduce(LevelCollector.merged, parts)
        assert_same(merged.domain(), jp.encode(together(tables)).domain)

    def test_merging_leaves_both_as_they_were(self):
        first, second = (collected([np.array([[cell]])]) for cell in "ab")
        assert first.merged(second).domain().sizes == (2,)
        assert first.domain().sizes == second.domain().sizes == (1,)

    def test_a_float_makes_floats_of_whole_numbers_that_are_equal_to_it(self):
        tables = [pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [2.0]})]
        assert repr(collected(tables).domain()["a"].levels) == "(1.0, 2.0)"

    def test_some_columns_only(self):
        collector = LevelCollector()
        collector.add(pl.DataFrame({"a": [1], "b": [[1]], "c": ["x"]}), ["c", "a"])
        assert collector.domain().names == ("c", "a")

    def test_a_code_means_missing_in_all_tables(self):
        tables = [np.array([[-1], [3]]), np.array([[-2]])]
        assert collected(tables).domain()["x0"].levels == (-2, -1, 3)
        assert collected(tables, missing_code=-1).domain()["x0"].levels == (-2, 3)

    def test_no_table_at_all(self):
        with pytest.raises(jp.JointPMFError, match="there is nothing to learn the levels from"):
            LevelCollector().domain()


class TestRules:
    def test_too_many_numbers_end_the_reading(self):
        with pytest.raises(jp.JointPMFError, match="'a' has 4 distinct numbers, more than 3"):
            collected([pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [3, 4]})], max_numbers=3)

    def test_categories_that_are_numbers_may_be_many(self):
        table = pd.DataFrame({"a": pd.Categorical([1, 2, 3, 4])})
        assert collected([table, table], max_numbers=3).domain().sizes == (4,)

    def test_too_many_levels_of_any_kind(self):
        tables = [pl.DataFrame({"a": ["x", "y"]}), pl.DataFrame({"a": ["z"]})]
        with pytest.raises(jp.JointPMFError, match="'a' has 3 levels, too many"):
            collected(tables, max_levels=2)

    @pytest.mark.parametrize(("repeats", "is_refused"), [(1, True), (2, False)])
    def test_levels_that_seldom_repeat_are_like_ids(self, repeats, is_refused):
        table = pl.DataFrame({"a": ["x", "y", "z"] * repeats})
        collector = collected([table], max_numbers=2, may_be_unique=False)
        if is_refused:
            with pytest.raises(jp.JointPMFError, match="'a' has 3 levels, too many"):
                collector.domain()
        else:
            assert collector.domain().sizes == (3,)

    @pytest.mark.parametrize(
        ("texts", "levels"),
        [
            (["2", "10", "1"], (1, 2, 10)),
            (["2", "0.5"], (0.5, 2.0)),
            (["True", "false"], (False, True)),
            (["00501", "2"], ("00501", "2")),
            (["2", "inf"], ("2", "inf")),
            (["2", "two"], ("2", "two")),
            (["2", "9" * 400], (2, int("9" * 400))),
        ],
    )
    def test_texts_are_typed_when_all_are_known(self, texts, levels):
        halves = [pl.DataFrame({"a": texts[:1]}), pl.DataFrame({"a": texts[1:]})]
        if max(map(len, texts)) > 300:
            with pytest.raises(jp.JointPMFError, match="values of variable 'a' are not numbers"):
                collected(halves, typed=typed_texts).domain()
        else:
            found = collected(halves, typed=typed_texts).domain()["a"].levels
            assert repr(found) == repr(levels)


class TestBins:
    NUMBERS = np.random.default_rng(0).normal(40, 15, 1000).round(1)

    def halves(self):
        return [pl.DataFrame({"a": part}) for part in np.split(self.NUMBERS, [333])]

    def test_bins_are_those_of_the_whole_column(self):
        wanted = jp.encode(self.NUMBERS[:, None], bins={"x0": 5}).domain["x0"]
        for found in (
            collected(self.halves(), bins={"a": 5}).domain()["a"],
            reduce(
                LevelCollector.merged, [collected([half], bins={"a": 5}) for half in self.halves()]
            ).domain()["a"],
        ):
            assert (found.edges, found.values) == (wanted.edges, wanted.values)

    def test_of_many_numbers_evenly_spaced_ones_are_kept(self):
        rules = {"bins": {"a": 5}, "max_binned": 300}
        wanted = jp.encode(self.NUMBERS[::4, None], bins={"x0": 5}).domain["x0"]
        found = collected(self.halves(), **rules).domain()["a"]
        assert (found.edges, found.values) == (wanted.edges, wanted.values)
        thinned, other = collected(self.halves(), **rules), collected(self.halves()[:1], **rules)
        assert other.merged(thinned).domain()["a"].size == 5
        assert thinned.merged(other).domain()["a"].size == 5

    def test_what_cannot_be_cut(self):
        with pytest.raises(jp.JointPMFError, match="'a' cannot be binned: it does not hold num"):
            collected([pl.DataFrame({"a": ["x"]})], bins={"a": 5})
        with pytest.raises(jp.JointPMFError, match="'a' has no observed cell"):
            collected([pl.DataFrame({"a": [None]})], bins={"a": 5}).domain()
