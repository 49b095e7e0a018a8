"""Codes back to the user's own cells, in every library; holes filled."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.data.codes import Codes
from jointpmf.data.decode import decode, filled
from jointpmf.data.encode import encode
from support.tables import (
    BACKENDS,
    TABLES,
    any_backend,
    any_cells,
    any_table,
    cells_of,
    codes_of,
)


@any_backend
@pytest.mark.parametrize("high", [2**53 + 1, 2**63 + 1, 2**64 - 1])
@pytest.mark.parametrize("code", [0, jp.MISSING])
def test_very_large_whole_numbers_are_decoded_exactly(backend, high, code):
    codes = Codes(jp.Domain([jp.Variable("x0", (high - 1, high))]), [[1], [code]])
    decoded = decode(codes, backend)
    assert cells_of(decoded, "x0") == [high, None if code == jp.MISSING else high - 1]
    assert codes_of(encode(decoded, codes.domain)) == [1, code]


@any_backend
@pytest.mark.parametrize("levels", [(1, 2.5), (2.5, 1)])
@pytest.mark.parametrize("second", [1, jp.MISSING])
def test_levels_of_whole_and_other_numbers_are_decoded_as_floats(backend, levels, second):
    codes = Codes(jp.Domain([jp.Variable("x0", levels)]), [[0], [second]])
    decoded = decode(codes, backend)
    assert cells_of(decoded, "x0") == [levels[0], None if second == jp.MISSING else levels[1]]
    assert codes_of(encode(decoded, codes.domain)) == [0, second]


@any_backend
@pytest.mark.parametrize(
    "levels", [("a", 1), (True, 2), (dt.date(2024, 2, 1), dt.datetime(2024, 2, 1, 5))]
)
def test_levels_of_different_types_are_decoded_where_a_column_can_hold_them(backend, levels):
    codes = Codes(jp.Domain([jp.Variable("x0", levels)]), [[0], [1], [-1]])
    if backend == "pandas":
        assert cells_of(decode(codes, backend), "x0") == [*levels, None]
    else:
        with pytest.raises(jp.JointPMFError, match=f"{backend} column .*'x0'"):
            decode(codes, backend)


@any_backend
@any_cells
def test_decoding_brings_back_the_users_cells_in_every_backend(backend, cells):
    codes = encode(TABLES["polars"](cells))
    decoded = decode(codes, backend)
    assert cells_of(decoded, "x0") == cells
    assert codes_of(encode(decoded, codes.domain)) == codes_of(codes)


@pytest.mark.parametrize("backend", [*BACKENDS, "codes"])
def test_decoding_keeps_rows_and_columns_in_order(backend):
    codes = Codes(jp.Domain.of_sizes([3, 2], names=["b", "a"]), [[2, 0], [0, 1], [1, -1]])
    decoded = decode(codes, backend)
    assert encode(decoded, codes.domain).array.tolist() == codes.array.tolist()
    if backend == "pandas":
        assert decoded.index.tolist() == [0, 1, 2]


LABELS = st.sampled_from(
    [
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4),
        st.integers(-(2**53), 2**53),
        st.booleans(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.dates(),
    ]
)


@st.composite
def tables_with_holes(draw):
    n_rows = draw(st.integers(1, 12))
    cells = LABELS.flatmap(lambda one: st.lists(st.none() | one, min_size=n_rows, max_size=n_rows))
    columns = draw(
        st.lists(cells.filter(lambda column: column.count(None) < n_rows), min_size=1, max_size=4)
    )
    return {f"c{n}": column for n, column in enumerate(columns)}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(tables_with_holes(), st.sampled_from([pd.DataFrame, pl.DataFrame, pa.table]), st.data())
def test_encoding_and_decoding_return_the_same_table(columns, backend_table, data):
    decoded = decode(encode(backend_table(columns)), data.draw(st.sampled_from(BACKENDS)))
    assert {name: cells_of(decoded, name) for name in columns} == columns


def test_a_list_may_hold_what_cannot_be_compared():
    rows = [[Decimal("sNaN"), 1], [Decimal(2), 3]]
    assert filled(rows, {"x0": np.array([Decimal(7)] * 2)}).tolist() == [[7, 1], [2, 3]]


LONG = dt.timedelta(days=200_000_000, microseconds=1)


@pytest.mark.parametrize("levels", [(LONG,), (LONG, dt.timedelta.max), (-LONG, LONG)])
@pytest.mark.parametrize("is_missing", [False, True])
def test_no_digit_of_a_long_duration_is_lost(levels, is_missing):
    domain = jp.Domain([jp.Variable("a", levels)])
    codes = jp.Codes(domain, np.array([[0], [-1 if is_missing else 0]]))
    drawn = decode(codes, "pandas")
    assert drawn["a"].tolist()[0] == levels[0]
    assert jp.encode(drawn, domain).array.tolist() == codes.array.tolist()
    with pytest.raises(jp.JointPMFError, match="a polars column cannot hold the levels of"):
        decode(codes, "polars")


TOO_LONG = [("1e-99", "1"), ("1e-38", "1"), ("1e-18", "1e20"), ("1", "1e38"), ("1", "1e300")]


@pytest.mark.parametrize("levels", TOO_LONG)
def test_no_decimal_of_more_digits_than_polars_has_becomes_missing(levels):
    domain = jp.Domain([jp.Variable("a", tuple(map(Decimal, levels)))])
    codes = jp.Codes(domain, np.array([[0], [1]]))
    assert decode(codes, "pandas")["a"].tolist() == list(domain["a"].levels)
    with pytest.raises(jp.JointPMFError, match="a polars column cannot hold the levels of"):
        decode(codes, "polars")


@pytest.mark.parametrize("levels", [("1e-37", "1"), ("0.01", "123.4"), ("1", "1e37")])
def test_decimals_that_polars_can_hold_are_whole(levels):
    domain = jp.Domain([jp.Variable("a", tuple(map(Decimal, levels)))])
    codes = jp.Codes(domain, np.array([[0], [1]]))
    assert decode(codes, "polars")["a"].to_list() == list(domain["a"].levels)


@pytest.mark.parametrize("cells", [[1, 2], ["a", "b"], [0.5, 1.5], [True, False]])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_a_column_that_holds_nothing_can_be_filled(library, cells):
    done = filled(library({"a": [None, None], "b": cells}), {"a": np.array(cells)})
    assert cells_of(done, "a") == cells


@pytest.mark.parametrize(
    ("table", "cell"),
    [
        (pl.DataFrame({"a": pl.Series([None, 1], dtype=pl.Decimal(38, 2))}), Decimal("1e-30")),
        (pl.DataFrame({"a": pl.Series([None, 1], dtype=pl.Decimal(38, 2))}), Decimal("1e-50")),
        (pa.table({"a": pa.array([None, 1], pa.decimal128(10, 2))}), Decimal("1e-30")),
        (pl.DataFrame({"a": pl.Series([None, "x"], dtype=pl.Enum(["x"]))}), "y"),
        (pa.table({"a": [None, 1]}), "y"),
    ],
)
def test_a_column_that_cannot_hold_a_cell_is_named(table, cell):
    values = np.array([cell, cell], object)
    with pytest.raises(jp.JointPMFError, match="column 'a' cannot hold what it would be filled"):
        filled(table, {"a": values})


@pytest.mark.parametrize("levels", [((1, 2), (3, 4)), (Fraction(1, 3), Fraction(1, 2))])
def test_levels_of_any_type_survive_being_drawn(levels):
    pmf = jp.JointPMF(jp.Domain([jp.Variable("a", levels)]), [1.0], [np.full((2, 1), 0.5)])
    codes = pmf.sample(9, random_state=0, backend="codes")
    for backend in ("polars", "pandas"):
        drawn = pmf.sample(9, random_state=0, backend=backend)
        assert cells_of(drawn, "a") == [levels[code] for code in codes[:, 0]]
        assert jp.encode(drawn, pmf.domain).array.tolist() == codes.tolist()
    with pytest.raises(jp.JointPMFError, match="a pyarrow column cannot hold the levels of"):
        pmf.sample(9, backend="pyarrow")


class TestFilled:
    @pytest.mark.parametrize(
        "rows", [[[1, "x"], [2, "y"]], [[True, 3], [False, 4]], [[2**53 + 1, 0.5], [1, 0.5]]]
    )
    def test_a_list_keeps_its_types(self, rows):
        kept = filled(rows, {}).tolist()
        assert kept == rows
        assert [[*map(type, row)] for row in kept] == [[*map(type, row)] for row in rows]

    @any_table
    @any_cells
    def test_missing_cells_are_replaced_and_the_others_stay(self, table, cells):
        values = np.empty(4, object)
        values[:] = [cells[0]] * 4
        before = table(cells)
        out = filled(before, {"x0": values})
        found = out[:, 0].tolist() if isinstance(out, np.ndarray) else cells_of(out, "x0")
        assert found == [cells[0], cells[0], cells[2], cells[0]]
        assert codes_of(encode(before)) == codes_of(encode(table(cells)))

    @any_backend
    def test_what_is_not_named_or_not_missing_is_the_same(self, backend):
        make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[backend]
        table = make({"x0": [1, 2], "x1": ["a", None]})
        assert filled(table, {}).equals(table)
        assert filled(table, {"x0": np.array([7, 8])}).equals(table)
        assert filled(table, {"other": np.array([7, 8])}).equals(table)

    @pytest.mark.parametrize("table", [pl.DataFrame, pa.table])
    def test_whole_columns_become_floats_only_for_fractions(self, table):
        source = table({"x0": [1, None]})
        whole = filled(source, {"x0": np.array([0.0, 3.0])})
        assert whole.schema == source.schema
        assert cells_of(whole, "x0") == [1, 3]
        assert cells_of(filled(source, {"x0": np.array([0.0, 2.5])}), "x0") == [1, 2.5]

    def test_an_array_is_filled_where_it_is_nan_or_the_code(self):
        array = np.array([[0, -1], [5, 2]])
        sevens = np.array([7, 8])
        assert filled(array, {"x1": sevens}, missing_code=-1).tolist() == [[0, 7], [5, 2]]
        assert filled(array, {"x0": sevens}, missing_code=5).tolist() == [[0, -1], [8, 2]]
        assert filled(array, {"x1": sevens}).tolist() == array.tolist()
        domain = jp.Domain.of_sizes([6, 3], names=["a", "b"])
        assert filled(array, {"b": sevens}, domain).tolist() == [[0, 7], [5, 2]]
        assert array.tolist() == [[0, -1], [5, 2]]

    def test_an_array_takes_the_type_that_holds_both(self):
        array = np.array([[0, -1], [5, 2]])
        fractions = filled(array, {"x1": np.array([7.5, 0])}, missing_code=-1)
        assert fractions.tolist() == [[0, 7.5], [5, 2]]
        assert filled(array, {"x1": np.array([7, 0])}, missing_code=-1).dtype == array.dtype
        assert filled(np.array([[np.nan]], np.float32), {"x0": np.array([1.0])}).tolist() == [[1.0]]

    def test_pandas_keeps_its_index(self):
        table = pd.DataFrame({"x0": ["a", None]}, index=["same", "same"])
        out = filled(table, {"x0": np.array(["b", "c"], object)})
        assert out["x0"].tolist() == ["a", "c"]
        assert out.index.tolist() == ["same", "same"]
        assert table["x0"].isna().tolist() == [False, True]
