"""Levels in their order: scales that are given."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from support.tables import codes_of, frame, levels_of

AGREEMENT = ["Strongly disagree", "Disagree", "Agree", "Strongly agree"]


def messages(caplog, level):
    return [r.getMessage() for r in caplog.records if r.levelno == level]


OWN = {
    "ordered categories": frame(pd.Categorical(["5-17", "30+"], ["30+", "5-17"], ordered=True)),
    "categories that are not sorted": frame(
        pd.Categorical(["good", "fair"], ["good", "poor", "fair"])
    ),
    "Enum": pl.DataFrame({"x0": ["5-17", "30+"]}, {"x0": pl.Enum(["30+", "5-17"])}),
    "ordered dictionary": pa.table(
        {"x0": pa.DictionaryArray.from_arrays([1, 0], ["30+", "5-17"], ordered=True)}
    ),
}


class TestOrderOfTheType:
    @pytest.mark.parametrize("table", OWN.values(), ids=OWN)
    def test_an_order_of_the_type_is_left_alone(self, table):
        assert levels_of(jp.encode(table))[0] in ("30+", "good")

    def test_categories_that_pandas_has_merely_sorted_are_sorted_as_bands(self):
        table = frame(pd.Series(["5-17", "30+", "18-29"]).astype("category"))
        assert levels_of(jp.encode(table)) == ["5-17", "18-29", "30+"]


BAD = {
    "misses a level": (AGREEMENT[2:], r"misses the level 'Disagree' of column 'a'"),
    "misses a number": ({"n": [1, 3]}, r"misses the level 2 of column 'n'"),
    "no column": ({"other": ["x", "y"]}, "levels name 'other', which is no column"),
    "text": ("a<b", "levels must be a list of levels in their order"),
    "empty": ([], "levels must be a list"),
    "one level": (["Agree"], r"must be a list of at least two levels"),
    "a level twice": (["x", "y", "x"], "has a level twice"),
    "a list in it": ({"a": [["x"], ["y"]]}, "has a level twice"),
    "numbers without a name": ([1, 2], "is not of text: say which column"),
}


CONTRADICTING = {
    "pandas": frame(pd.Categorical(["b", "a"], ["a", "b"], ordered=True)),
    "Enum": pl.DataFrame({"x0": ["b", "a"]}, {"x0": pl.Enum(["a", "b"])}),
    "PyArrow": pa.table({"x0": pa.DictionaryArray.from_arrays([1, 0], ["a", "b"], ordered=True)}),
}


class TestGiven:
    TABLE = pl.DataFrame(
        {"a": ["Agree", "Disagree"], "b": ["Strongly agree", None], "c": ["x", "y"], "n": [1, 2]}
    )

    def test_one_scale_for_all_columns_that_share_it(self):
        domain = jp.encode(self.TABLE, levels=AGREEMENT).domain
        assert domain["a"].levels == domain["b"].levels == tuple(AGREEMENT)
        assert domain["c"].levels == ("x", "y")
        assert domain["n"].levels == (1, 2)

    def test_several_scales(self):
        domain = jp.encode(self.TABLE, levels=[AGREEMENT, ("y", "x")]).domain
        assert domain["a"].levels == tuple(AGREEMENT)
        assert domain["c"].levels == ("y", "x")

    def test_of_scales_that_share_levels_the_one_that_has_all(self):
        levels = [["bad", "good"], ["bad", "fair", "good"]]
        assert levels_of(jp.encode([["fair"], ["bad"]], levels=levels)) == levels[1]
        assert levels_of(jp.encode([["good"], ["bad"]], levels=levels)) == levels[0]

    @pytest.mark.parametrize("scale", [[2, 3, 1], ["2", "3", "1"]], ids=["numbers", "texts"])
    def test_numbers_by_name(self, scale):
        variable = jp.encode(self.TABLE, levels={"n": scale}).domain["n"]
        assert variable.levels == (2, 3, 1)
        assert variable.values == (2, 3, 1)

    def test_a_given_scale_comes_before_the_order_of_bands(self):
        levels = ["65+", "18-29"]
        assert levels_of(jp.encode([["18-29"], ["65+"]], levels=levels)) == levels

    def test_categories_that_are_only_listed_are_put_in_order(self):
        cells = pd.Categorical(["b", None, "a"], ["a", "b"])
        codes = jp.encode(frame(cells), levels=["b", "never", "a"])
        assert levels_of(codes) == ["b", "never", "a"]
        assert codes_of(codes) == [0, jp.MISSING, 2]

    @pytest.mark.parametrize("dtype", ["pandas", "Enum"])
    def test_an_order_of_the_type_may_be_part_of_the_scale(self, dtype):
        order = ["b", "a"]
        table = frame(pd.Categorical(["b", "a"], order, ordered=True))
        if dtype == "Enum":
            table = pl.DataFrame({"x0": ["b", "a"]}, {"x0": pl.Enum(order)})
        assert levels_of(jp.encode(table, levels=["b", "c", "a"])) == ["b", "c", "a"]

    def test_it_is_remembered_in_the_model_file(self, tmp_path):
        pmf = jp.fit_rows(self.TABLE, 1, levels=AGREEMENT).pmf
        pmf.save(tmp_path / "m.safetensors")
        again = jp.load(tmp_path / "m.safetensors")
        assert again.domain["b"].levels == tuple(AGREEMENT)
        assert again.domain == pmf.domain

    def test_a_scale_of_no_column_is_a_warning(self, caplog):
        jp.encode(self.TABLE, levels=["hot", "cold"])
        assert messages(caplog, logging.WARNING) == [
            "no column has a level of the scale 'hot < cold'"
        ]

    @pytest.mark.parametrize(("levels", "says"), BAD.values(), ids=BAD)
    def test_a_bad_scale_is_named(self, levels, says):
        with pytest.raises(jp.JointPMFError, match=says):
            jp.encode(self.TABLE, levels=levels)

    @pytest.mark.parametrize("table", CONTRADICTING.values(), ids=CONTRADICTING)
    def test_a_scale_that_contradicts_the_type_is_refused(self, table):
        with pytest.raises(jp.JointPMFError, match=r"'b < a' contradicts .* column 'x0', 'a < b'"):
            jp.encode(table, levels=["b", "a"])

    def test_scales_belong_to_learning(self):
        codes = jp.encode(self.TABLE)
        for table, domain in ((self.TABLE, codes.domain), (codes, None)):
            with pytest.raises(jp.JointPMFError, match="levels belong to the learning of a domain"):
                jp.encode(table, domain, levels=AGREEMENT)

    def test_bins_have_an_order_of_their_own(self):
        with pytest.raises(jp.JointPMFError, match="'n' has both bins and levels"):
            jp.encode(self.TABLE, bins={"n": 2}, levels={"n": [1, 2]})

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.text("abc <=|", min_size=1), min_size=2, max_size=6, unique=True),
        st.data(),
    )
    def test_codes_are_positions_in_the_scale(self, scale, data):
        cells = data.draw(st.lists(st.sampled_from(scale), min_size=1, max_size=9))
        codes = jp.encode([[cell] for cell in cells], levels=scale)
        assert levels_of(codes) == scale
        assert codes_of(codes) == [scale.index(cell) for cell in cells]


class TestNearlyUnique:
    def said(self, caplog, cells, **options):
        jp.encode(pl.DataFrame({"id": cells}), **options)
        return messages(caplog, logging.WARNING)

    def test_a_column_of_nearly_unique_text_is_named(self, caplog):
        (said,) = self.said(caplog, [f"person {k // 1.5:.0f}" for k in range(60)])
        assert said.startswith("column 'id' holds 40 different texts in 60 rows")

    @pytest.mark.parametrize(
        "cells",
        [
            [f"p{k}" for k in range(49)],
            [f"p{k // 2}" for k in range(100)],
            list(range(60)),
            [f"{k}-{k + 1}" for k in range(0, 120, 2)],
        ],
        ids=["few rows", "each twice", "numbers", "bands"],
    )
    def test_others_are_not(self, caplog, cells):
        assert not self.said(caplog, cells)

    def test_holes_do_not_count(self, caplog):
        assert not self.said(caplog, [f"p{k}" for k in range(40)] + [None] * 60)


CALLS = {
    "fit_rows": lambda **how: jp.fit_rows(TestWhereTablesAreRead.TABLE, 1, **how).pmf,
    "choose_rank": lambda **how: (
        jp.choose_rank(TestWhereTablesAreRead.TABLE, [1], "bic", **how)[1].pmf
    ),
}


class TestWhereTablesAreRead:
    TABLE = pd.DataFrame({"a": ["hi", "lo"] * 20, "n": [-1, 1] * 20})

    @pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
    def test_levels_and_missing_code_are_taken(self, call):
        domain = call(levels=["lo", "mid", "hi"], missing_code=-1).domain
        assert domain["a"].levels == ("lo", "mid", "hi")
        assert domain["n"].levels == (1,)

    def test_by_a_test_too(self):
        found = jp.bootstrap_test(self.TABLE, 1, n_bootstrap=1, levels=["lo", "hi"], max_iter=2)
        assert found.rank == 1

    def test_an_unknown_keyword_is_what_python_says(self):
        for function in (jp.fit_rows, jp.choose_rank, jp.bootstrap_test):
            message = rf"{function.__name__}\(\) got an unexpected keyword argument 'labels'"
            with pytest.raises(TypeError, match=message):
                function(self.TABLE, [1] if function is jp.choose_rank else 1, labels=["lo", "hi"])

    @pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson"])
    def test_in_files(self, tmp_path, ending):
        path, table = tmp_path / f"t.{ending}", pl.from_pandas(self.TABLE)
        getattr(table, f"write_{ending}")(path)
        pmf = jp.fit_rows(path, 1, levels=["lo", "mid", "hi"], missing_code=-1).pmf
        assert pmf.domain["a"].levels == ("lo", "mid", "hi")
        assert pmf.domain["n"].levels == (1,)
        assert jp.fit_rows(path, 1, missing_code="lo").pmf.domain["a"].levels == ("hi",)
        with pytest.raises(jp.JointPMFError, match="misses the level 'lo' of column 'a'"):
            jp.fit_rows(path, 1, levels=["mid", "hi"])
        with pytest.raises(jp.JointPMFError, match="levels name 'b', which is no column"):
            jp.fit_rows(path, 1, levels={"b": ["mid", "hi"]})
        with pytest.raises(jp.JointPMFError, match=r"missing_code is 'lo', .* level of .*'a'"):
            jp.fit_rows(path, 1, missing_code="lo", domain=pmf.domain)
        with pytest.raises(jp.JointPMFError, match="levels belong to the learning"):
            jp.fit_rows(path, 1, levels=["mid", "hi"], domain=pmf.domain)

    def test_in_batches(self):
        batches = [self.TABLE[:3], self.TABLE[3:]]
        domain = jp.fit_rows(batches, 1, levels=["lo", "mid", "hi"], missing_code=-1).pmf.domain
        assert domain["a"].levels == ("lo", "mid", "hi")
        assert domain["n"].levels == (1,)

    def test_by_dask(self):
        dd = pytest.importorskip("dask.dataframe")
        table = dd.from_pandas(self.TABLE, npartitions=2)
        pmf = jp.fit_rows(table, 1, levels=["lo", "mid", "hi"]).pmf
        assert pmf.domain["a"].levels == ("lo", "mid", "hi")
        with pytest.raises(jp.JointPMFError, match="missing_code does not apply to a Dask table"):
            jp.fit_rows(table, 1, missing_code=-1)
        with pytest.raises(jp.JointPMFError, match="missing_values does not apply to a Dask table"):
            jp.PMFEstimator(1, missing_values=-1).fit(table)

    @pytest.mark.parametrize("missing_code", [[1], True, b"x"])
    def test_what_cannot_mean_missing(self, missing_code):
        with pytest.raises(jp.JointPMFError, match="missing_code must be a number or a text"):
            jp.encode(self.TABLE, missing_code=missing_code)

    @pytest.mark.parametrize("missing_code", [-1, "lo", np.int8(1)])
    def test_a_level_of_the_domain_cannot_mean_missing(self, missing_code):
        domain = jp.encode(self.TABLE).domain
        name = "a" if missing_code == "lo" else "n"
        with pytest.raises(jp.JointPMFError, match=f"is a level of variable '{name}'"):
            jp.encode(self.TABLE, domain, missing_code=missing_code)

    def test_a_column_that_nothing_is_known_of_is_logged(self, caplog):
        domain = jp.encode(self.TABLE).domain
        strange = self.TABLE.assign(n=self.TABLE["n"].astype(str))
        codes = jp.encode(strange, domain, unknown="missing")
        assert (codes.array[:, 1] == jp.MISSING).all()
        assert messages(caplog, logging.WARNING) == [
            "no cell of column 'n' is a level that is known: its levels are numbers, the column "
            "holds text"
        ]
