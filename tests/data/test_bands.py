"""Bands of numbers are sorted by their numbers."""

import logging
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.data.bands import sorted_bands
from support.tables import any_table, codes_of, levels_of

BANDS = {
    "ages": ["under 18", "18-29", "30-44", "45 to 64", "65+"],
    "incomes": ["Lt $1000", "$1000 to 2999", "$10000 - 14999", "$25000 or more"],
    "thousands": ["< 5k", "5k-10k", "10k – 1.5m", "≥ 1.5m"],
    "commas": ["less than 1,000", "1,000 to 9,999", "10,000 and over"],
    "counts": ["0", "1-2", "3-10", "more than 10"],
    "bins of this library": ["<30", "30..44", ">=45"],
    "case and spaces": ["  UNDER 18", "18  -  29", "30 Or More "],
}

OTHERS = {
    "no bands": ["no", "yes"],
    "words that have an order": ["never", "often", "always"],
    "one of them is none": ["18-29", "30+", "green"],
    "numbers": ["10", "9", "8"],
    "codes": ["00501", "00502"],
    "months of years": ["2020-01", "2020-02", "2019-12"],
    "two that are equal": ["18-29", "18 to 29", "30+"],
    "one only": ["18-29", "don't know"],
    "no answers only": ["don't know", "refused"],
    "downwards": ["9-1", "1-2"],
}


@pytest.mark.parametrize("bands", BANDS.values(), ids=BANDS)
def test_bands_are_put_in_order(bands):
    assert sorted_bands(sorted(bands)) == bands


@pytest.mark.parametrize("levels", OTHERS.values(), ids=OTHERS)
def test_other_texts_are_not_bands(levels):
    assert sorted_bands(levels) is None


def test_non_answers_follow_the_bands():
    levels = ["$20000 - 24999", "Don't know", "Lt $1000", "No answer", "Not applicable"]
    assert sorted_bands(levels) == [levels[2], levels[0], "Don't know", *levels[3:]]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=3, max_size=12, unique=True))
def test_bands_are_sorted_by_their_numbers(cuts):
    cuts = sorted(cuts)
    bands = [f"under {cuts[0]}", *(f"{a}-{b - 1}" for a, b in pairwise(cuts)), f"{cuts[-1]}+"]
    assert sorted_bands(sorted(bands)) == bands


@any_table
def test_in_any_table_and_logged(table, caplog):
    with caplog.at_level(logging.INFO, logger="jointpmf"):
        codes = jp.encode(table(["30+", None, "5-17", "18-29"]))
    assert levels_of(codes) == ["5-17", "18-29", "30+"]
    assert codes_of(codes) == [2, jp.MISSING, 0, 1]
    assert caplog.messages == [
        "the levels of column 'x0' are sorted as bands of numbers: 5-17, 18-29, 30+"
    ]


def test_bands_that_are_sorted_already_are_not_logged(caplog):
    with caplog.at_level(logging.INFO, logger="jointpmf"):
        jp.encode([["18-29"], ["30+"]])
    assert not caplog.records


def test_in_all_batches_together():
    batches = [pl.DataFrame({"a": ["18-29"]}), pl.DataFrame({"a": ["5-17", "30+"]})]
    assert jp.fit_rows(batches, 1).pmf.domain["a"].levels == ("5-17", "18-29", "30+")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_in_files(tmp_path, ending):
    table = pl.DataFrame({"a": ["Disagree", "Agree"] * 5, "b": ["9-10", "10+"] * 5})
    path = tmp_path / f"t.{ending}"
    table.write_csv(path) if ending == "csv" else table.write_parquet(path)
    domain = jp.fit_rows(path, 1).pmf.domain
    assert domain["a"].levels == ("Agree", "Disagree")
    assert domain["b"].levels == ("9-10", "10+")
    assert domain == jp.encode(table).domain
