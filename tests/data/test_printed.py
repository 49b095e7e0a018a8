"""Numbers as offices print them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointpmf.data.printed import printed_numbers
from jointpmf.errors import JointPMFError


def read(*cells, missing=()):
    return printed_numbers(cells, lambda k: f"cell {k}", missing)


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        (3, 3),
        (2.5, 2.5),
        ("7", 7),
        (" 12 ", 12),
        ("1,234", 1234),
        ("1,234,567.8", 1234567.8),
        ("1 234", 1234),
        ("1\u00a0234", 1234),
        ("1\u202f234 567", 1234567),
        ("1'234", 1234),
        ("12,5", 12.5),
        ("1.234,5", 1234.5),
        ("0,5", 0.5),
        ("-3", -3),
        ("−3.5", -3.5),
        ("1e3", 1000),
    ],
)
def test_a_number(cell, number):
    assert read(cell).values.tolist() == [number]


def test_one_decimal_comma_decides_for_the_whole_table():
    assert read("1,234", "12,5").values.tolist() == [1.234, 12.5]
    assert read("1.234", "12,5").values.tolist() == [1234, 12.5]
    assert read("1,234", "12.5").values.tolist() == [1234, 12.5]


@pytest.mark.parametrize("mark", ["", None, math.nan, "*", "..", "x", "F", "c", "-", "–", " : "])
def test_a_mark_of_what_was_not_published(mark):
    found = read(mark, 5)
    assert math.isnan(found.values[0])
    assert found.below[0] == found.at_most[0] == math.inf


def test_another_mark():
    assert math.isnan(read("zip", 5, missing=["zip"]).values[0])


@pytest.mark.parametrize(
    ("cell", "below", "at_most"),
    [("<6", 6, math.inf), ("< 1,000", 1000, math.inf), ("≤5", math.inf, 5)],
)
def test_a_limit(cell, below, at_most):
    found = read(cell)
    assert math.isnan(found.values[0])
    assert (found.below[0], found.at_most[0]) == (below, at_most)


def test_percentages():
    found = read("12.5%", "3 %", "0", "*", "<5%")
    assert found.is_percent
    assert found.values[:3].tolist() == [12.5, 3, 0]
    assert found.below[4] == 5
    assert not read("1", "2").is_percent


@pytest.mark.parametrize("cell", ["many", "1,23,4", "<", "1_000", "1-4", True, "inf", "1,234*"])
def test_what_is_no_number(cell):
    with pytest.raises(JointPMFError, match=r"cell 1 holds .* neither one of the numbers"):
        read("1", cell)


@given(st.integers(0, 10**12), st.sampled_from([",", " ", "\u202f", "'"]))
def test_thousands_may_be_separated(number, mark):
    assert read(f"{number:,}".replace(",", mark)).values.tolist() == [number]
