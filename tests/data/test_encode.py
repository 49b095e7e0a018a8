"""Any table to codes: levels, orders, missing cells, bins, and what is refused."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointpmf as jp
from jointpmf.data.codes import Codes
from jointpmf.data.decode import decode
from jointpmf.data.encode import encode
from support.tables import (
    CELLS,
    TABLES,
    any_backend,
    any_cells,
    any_table,
    codes_of,
    frame,
    levels_of,
)


@any_table
@any_cells
def test_any_column_of_any_table_becomes_sorted_levels_and_missing(table, cells):
    codes = encode(table(cells))
    assert levels_of(codes) == [cells[2], cells[0]]
    assert codes_of(codes) == [1, jp.MISSING, 0, 1]


@any_table
@pytest.mark.parametrize(
    ("kind", "values"),
    [("int", (7, 30)), ("float", (-0.5, 2.5)), ("bool", (0, 1)), ("str", None), ("date", None)],
)
def test_numbers_keep_their_values_and_nothing_else_has_any(table, kind, values):
    assert encode(table(CELLS[kind])).domain["x0"].values == values


@pytest.mark.parametrize(
    "array",
    [
        np.array([[3], [1], [3]]),
        np.array([[3], [1], [3]], np.uint8),
        np.array([[3], [1], [3]], np.uint64),
        np.array([[2.5], [0.5], [2.5]]),
        np.array([[2.5], [0.5], [2.5]], np.float32),
        np.array([[True], [False], [True]]),
        np.array([["b"], ["a"], ["b"]]),
        np.array([["2024-02-01"], ["2023-12-31"], ["2024-02-01"]], "M8[D]"),
        np.array([["2024-02-01"], ["2023-12-31"], ["2024-02-01"]], "M8[us]"),
    ],
    ids=lambda array: array.dtype.str,
)
def test_an_array_of_any_type_becomes_sorted_python_levels(array):
    codes = encode(array)
    assert levels_of(codes) == sorted(set(array[:, 0].tolist()))
    assert codes_of(codes) == [1, 0, 1]


def test_nanoseconds_in_an_array_are_times_and_not_numbers():
    codes = encode(np.array([["2024-02-01"], ["2023-12-31"]], "M8[ns]"))
    assert levels_of(codes) == [dt.datetime(2023, 12, 31), dt.datetime(2024, 2, 1)]
    assert codes.domain["x0"].values is None


def test_many_small_integers_of_a_narrow_type_keep_their_order():
    column = np.tile(np.arange(-100, 101, 4, dtype=np.int8), 5)
    codes = encode(pl.DataFrame({"x0": column}))
    assert levels_of(codes) == list(range(-100, 101, 4))
    assert codes_of(codes) == list(range(51)) * 5


def test_a_list_of_rows_keeps_the_types_of_its_columns():
    codes = encode([["yes", 1, True, 2.5], ["no", 2, False, 1], [math.nan, None, None, None]])
    levels = [list(variable.levels) for variable in codes.domain]
    assert levels == [["no", "yes"], [1, 2], [False, True], [1.0, 2.5]]
    assert [{type(level) for level in column} for column in levels] == [
        {str},
        {int},
        {bool},
        {float},
    ]
    assert codes.array.tolist() == [[1, 0, 1, 1], [0, 1, 0, 0], [-1] * 4]


@pytest.mark.parametrize(
    ("rows", "levels", "codes"),
    [
        ([["yes", 1], ["no", 2]], [("no", "yes"), (1, 2)], [[1, 0], [0, 1]]),
        ([["yes"], [math.nan]], [("yes",)], [[0], [-1]]),
        (((True, 3), (True, 4)), [(True,), (3, 4)], [[0, 0], [0, 1]]),
        ([[1, 0.5]], [(1,), (0.5,)], [[0, 0]]),
    ],
    ids=["text and numbers", "text and NaN", "truth and numbers", "whole and other numbers"],
)
def test_a_list_of_rows_is_not_turned_into_one_type(rows, levels, codes):
    encoded = encode(rows)
    assert [repr(variable.levels) for variable in encoded.domain] == list(map(repr, levels))
    assert encoded.array.tolist() == codes


@pytest.mark.parametrize("kind", [tuple, np.array], ids=["tuples", "arrays"])
def test_rows_in_a_list_may_be_of_any_kind(kind):
    assert levels_of(encode([kind([3, 1]), kind([2, -1])])) == [2, 3]


def test_numpy_times_in_a_list_are_times():
    codes = encode([[np.datetime64("2024-02-01", "ns")], [np.datetime64("NaT")]])
    assert levels_of(codes) == [dt.datetime(2024, 2, 1)]
    assert codes_of(codes) == [0, jp.MISSING]


LARGE = [2**63 + 7, 5, 2**64 - 1]

LARGE_TABLES = {
    "array": np.array(LARGE, np.uint64)[:, None],
    "close together": np.array([2**63 + 7, 2**63 + 6, 2**63 + 8], np.uint64)[:, None],
    "list": [[cell] for cell in LARGE],
    "beyond 64 bits": [[2**80], [5], [2**81]],
    "beyond 64 bits in Polars": pl.DataFrame({"x0": [2**80, 5, 2**81]}),
    "polars": pl.DataFrame({"x0": pl.Series(LARGE, dtype=pl.UInt64)}),
    "pandas": frame(pd.Series(LARGE, dtype="uint64")),
    "pandas objects": frame(pd.Series(LARGE, dtype=object)),
    "pyarrow": pa.table({"x0": pa.array(LARGE, pa.uint64())}),
}


@pytest.mark.parametrize("table", LARGE_TABLES.values(), ids=LARGE_TABLES)
def test_very_large_whole_numbers_are_levels_like_any_other(table):
    codes = encode(table)
    assert codes_of(codes) == [1, 0, 2]
    assert {type(level) for level in levels_of(codes)} == {int}
    assert codes_of(encode(table, codes.domain)) == [1, 0, 2]


@any_table
def test_whole_numbers_that_no_float_tells_apart_stay_different_levels(table):
    cells = [2**53 + 1, None, 2**53]
    if table is TABLES["pandas"]:
        cells = pd.array(cells, dtype="Int64")
    codes = encode(table(cells))
    assert levels_of(codes) == [2**53, 2**53 + 1]
    assert {type(level) for level in levels_of(codes)} == {int}
    assert codes_of(codes) == [1, jp.MISSING, 0]


@pytest.mark.parametrize("dtype", [int, float, object, "U1"])
def test_masked_cells_of_an_array_are_missing(dtype):
    array = np.ma.masked_array(np.array([[3, 1], [5, 2]]).astype(dtype), [[0, 1], [1, 0]])
    codes = encode(array)
    assert [len(variable.levels) for variable in codes.domain] == [1, 1]
    assert codes.array.tolist() == [[0, -1], [-1, 0]]


def test_masked_cells_are_missing_beside_the_code():
    array = np.ma.masked_array([[3], [-1], [-5]], [[0], [0], [1]])
    assert codes_of(encode(array, missing_code=-1)) == [0, jp.MISSING, jp.MISSING]
    assert codes_of(encode(array)) == [1, 0, jp.MISSING]


OWN_ORDER = {
    "pandas categorical": frame(pd.Categorical(["b", None, "a"], categories=["z", "b", "a"])),
    "pandas ordered": frame(pd.Categorical(["b", None, "a"], ["z", "b", "a"], ordered=True)),
    "polars enum": pl.DataFrame({"x0": ["b", None, "a"]}, {"x0": pl.Enum(["z", "b", "a"])}),
    "pyarrow ordered dictionary": pa.table(
        {"x0": pa.DictionaryArray.from_arrays([1, None, 2], ["z", "b", "a"], ordered=True)}
    ),
}


@pytest.mark.parametrize("table", OWN_ORDER.values(), ids=OWN_ORDER)
def test_a_type_with_an_order_keeps_it_and_its_unobserved_levels(table):
    codes = encode(table)
    assert levels_of(codes) == ["z", "b", "a"]
    assert codes_of(codes) == [1, jp.MISSING, 2]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("categories", [[9, 3, 1], [9.5, 3.0, 1.0]], ids=["int", "float"])
def test_numeric_categories_keep_their_order_and_their_values(categories, ordered):
    cells = [categories[1], None, categories[2]]
    codes = encode(frame(pd.Categorical(cells, categories, ordered=ordered)))
    assert levels_of(codes) == categories
    assert codes.domain["x0"].values == tuple(categories)
    assert codes_of(codes) == [1, jp.MISSING, 2]


def test_categories_that_are_times_are_the_standard_librarys_own():
    codes = encode(frame(pd.Categorical(pd.to_datetime(["2024-02-01", None, "2023-12-31"]))))
    assert [type(level) for level in levels_of(codes)] == [dt.datetime] * 2
    assert codes_of(codes) == [1, jp.MISSING, 0]


WITHOUT_ORDER = {
    "polars categorical": pl.DataFrame({"x0": ["b", None, "a"]}, {"x0": pl.Categorical}),
    "pyarrow dictionary": pa.table({"x0": pa.array(["b", None, "a"]).dictionary_encode()}),
    "pyarrow chunks": pa.concat_tables(
        pa.table({"x0": pa.array(cells).dictionary_encode()}) for cells in (["b", None], ["a"])
    ),
    "pandas string": frame(pd.array(["b", None, "a"], dtype="string")),
}


@pytest.mark.parametrize("table", WITHOUT_ORDER.values(), ids=WITHOUT_ORDER)
def test_a_type_without_an_order_is_sorted(table):
    codes = encode(table)
    assert levels_of(codes) == ["a", "b"]
    assert codes_of(codes) == [1, jp.MISSING, 0]


NULLABLE = {"Int64": [3, None, 1], "Float64": [2.5, None, 0.5], "boolean": [True, None, False]}


@pytest.mark.parametrize(("dtype", "cells"), NULLABLE.items(), ids=NULLABLE)
def test_nullable_pandas_types_keep_their_levels(dtype, cells):
    codes = encode(frame(pd.array(cells, dtype=dtype)))
    assert levels_of(codes) == [cells[2], cells[0]]
    assert {type(level) for level in levels_of(codes)} == {type(cells[0])}
    assert codes_of(codes) == [1, jp.MISSING, 0]


SPELLINGS = {
    "None, NaN, NA and NaT in an array": np.array([["a"], [None], [math.nan], [pd.NA], [pd.NaT]]),
    "None, NaN, NA and NaT in pandas": frame(
        pd.Series(["a", None, math.nan, pd.NA, pd.NaT], dtype=object)
    ),
    "NaT in pandas": frame(pd.to_datetime(["2024-02-01", None, pd.NaT])),
    "NA in pandas": frame(pd.array([5, pd.NA, None], dtype="Int64")),
    "null and NaN in Polars": pl.DataFrame({"x0": [-1.0, None, math.nan]}),
    "null and NaN in PyArrow": pa.table({"x0": [-1.0, None, math.nan]}),
    "NaT in an array": np.array([["2024-02-01"], ["NaT"]], "M8[D]"),
}


@pytest.mark.parametrize("table", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_of_missing_is_missing(table):
    codes = encode(table)
    assert len(levels_of(codes)) == 1
    assert codes_of(codes) == [0] + [jp.MISSING] * (codes.n_rows - 1)


@any_table
def test_minus_one_is_a_level_in_any_table(table):
    codes = encode(table([-1, 1, None]))
    assert levels_of(codes) == [-1, 1]
    assert codes_of(codes) == [0, 1, jp.MISSING]


IN_ARRAYS = {
    "not a level": (jp.Variable("x0", (0, 1)), [jp.MISSING, 1]),
    "not a level of text": (jp.Variable("x0", ("no", 1)), [jp.MISSING, 1]),
    "a level": (jp.Variable("x0", (-1, 1)), [0, 1]),
    "in a bin": (jp.Variable("x0", ("low", "high"), edges=(-5, 0, 5)), [0, 1]),
    "outside of all bins": (jp.Variable("x0", ("low", "high"), edges=(0, 1, 5)), [jp.MISSING, 1]),
}


@pytest.mark.parametrize(("variable", "codes"), IN_ARRAYS.values(), ids=IN_ARRAYS)
@pytest.mark.parametrize("kind", [np.int8, np.float64, object])
def test_minus_one_means_missing_in_an_array_where_the_domain_does_not_have_it(
    variable, codes, kind
):
    assert codes_of(encode(np.array([[-1], [1]], kind), jp.Domain([variable]))) == codes


@any_table
def test_a_continuous_column_is_named_and_must_be_binned(table):
    numbers = [k / 7 for k in range(101)]
    with pytest.raises(jp.JointPMFError, match=r"'x0' has 101 distinct numbers.*bin it"):
        encode(table(numbers))
    assert encode(table(numbers[:100])).domain.sizes == (100,)
    assert encode(table(numbers), max_levels=101).domain.sizes == (101,)


def test_fewer_levels_can_be_asked_of_numbers_but_not_of_text():
    with pytest.raises(jp.JointPMFError, match="'x0' has 3 distinct numbers, more than 2"):
        encode(np.arange(3)[:, None], max_levels=2)
    assert encode(np.array([["a"], ["b"], ["c"]]), max_levels=2).domain.sizes == (3,)


@any_table
def test_bins_by_count_hold_equal_shares_and_the_mean_of_what_fell_in_them(table):
    numbers = [0.5, 8.0, 1.5, 4.0, 3.0, 90.0, 5.0, 10.0]
    codes = encode(table(numbers), bins={"x0": 4})
    assert codes_of(codes) == [0, 2, 0, 1, 1, 3, 2, 3]
    assert codes.domain["x0"].values == (1.0, 3.5, 6.5, 50.0)


@any_table
def test_bins_by_edges_hold_their_lower_edge_and_the_mean_of_what_fell_in_them(table):
    codes = encode(table([0.0, None, 10.0, 11.0, 18.0, 40.0]), bins={"x0": [0, 10, 20, 30, 40]})
    assert codes_of(codes) == [0, jp.MISSING, 1, 1, 1, 3]
    assert codes.domain["x0"].edges == (0, 10, 20, 30, 40)
    assert codes.domain["x0"].values == (0.0, 13.0, 25.0, 40.0)


def test_bins_by_count_of_many_ties_are_fewer_and_none_is_empty():
    codes = encode(np.array([[0.0]] * 9 + [[1.0]]), bins={"x0": 5})
    assert sorted(set(codes_of(codes))) == list(range(codes.domain["x0"].size))


@pytest.mark.parametrize(
    ("numbers", "codes"),
    [
        ([0] * 8 + [3, 7], [0] * 8 + [1, 1]),
        ([1, 1, 1, 1, 2], [0, 0, 0, 0, 1]),
        ([0, 1], [0, 1]),
        ([0, 0, 0, 0, 0, 5, 6, 7, 8, 9], [0] * 5 + [1, 1, 2, 2, 2]),
        ([4, 4, 4], [0, 0, 0]),
    ],
    ids=["zero-inflated", "one larger", "two", "half zeros", "one number"],
)
def test_bins_by_count_never_join_all_of_several_numbers(numbers, codes):
    assert codes_of(encode(np.array(numbers, float)[:, None], bins={"x0": 4})) == codes


@any_backend
def test_learned_bins_take_new_numbers_and_their_own_labels(backend):
    learned = encode(np.linspace(0, 1, 300)[:, None], bins={"x0": 3})
    new = encode(pl.DataFrame({"x0": [-50.0, 0.5, None, 50.0]}), learned.domain)
    assert codes_of(new) == [0, 1, jp.MISSING, 2]
    assert codes_of(encode(decode(new, backend), learned.domain)) == codes_of(new)


def test_a_number_outside_of_the_bins_is_named_with_its_row():
    with pytest.raises(jp.JointPMFError, match=r"'x0' holds 7 in row 2, .*from 0 to 5"):
        encode(pl.DataFrame({"x0": [None, 1.0, 7.0]}), bins={"x0": [0, 2, 5]})
    domain = encode(pl.DataFrame({"x0": [1.0]}), bins={"x0": [0, 2, 5]}).domain
    with pytest.raises(jp.JointPMFError, match="'x0' holds -3 in row 1"):
        encode(pl.DataFrame({"x0": [None, -3.0]}), domain)
    assert codes_of(encode(pl.DataFrame({"x0": [1, -3]}), domain, unknown="missing")) == [0, -1]


@any_table
@any_cells
def test_a_given_domain_encodes_new_data_and_names_an_unknown_level(table, cells):
    domain = jp.Domain([jp.Variable("x0", (cells[0], "other"))])
    assert codes_of(encode(table([None, cells[0]]), domain)) == [jp.MISSING, 0]
    with pytest.raises(jp.JointPMFError, match=r"'x0' holds .* in row 2.*'other'"):
        encode(table([cells[0], None, cells[2]]), domain)
    codes = encode(table([cells[0], None, cells[2]]), domain, unknown="missing")
    assert codes_of(codes) == [0, jp.MISSING, jp.MISSING]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_an_unknown_level_after_a_pandas_na_is_named(dtype):
    domain = jp.Domain([jp.Variable("x0", ("no", "yes"))])
    with pytest.raises(jp.JointPMFError, match=r"'x0' holds .* in row 1"):
        encode(frame(pd.array([pd.NA, 1], dtype=dtype)), domain)


@any_backend
def test_absent_columns_are_missing_and_extra_columns_are_left_out(backend):
    table = pl.DataFrame({"extra": [5, 6], "b": [1, 0]})
    table = {"polars": table, "pandas": table.to_pandas(), "pyarrow": table.to_arrow()}[backend]
    codes = encode(table, jp.Domain.of_sizes([2, 2, 2], names=["a", "b", "c"]))
    assert codes.array.tolist() == [[-1, 1, -1], [-1, 0, -1]]


EMPTY = {
    "polars": pl.DataFrame({"a": [0], "b": ["x"], "c": [0.5]})[:0],
    "pandas": pd.DataFrame({"a": [0], "b": ["x"], "c": [0.5]})[:0],
    "pandas of objects": pd.DataFrame({"a": [], "b": [], "c": []}, dtype=object),
    "pyarrow": pa.table({"a": [0], "b": ["x"], "c": [0.5]})[:0],
    "array": np.zeros((0, 3)),
    "array of integers": np.zeros((0, 3), int),
    "array of objects": np.zeros((0, 3), object),
    "list": [],
}


@pytest.mark.parametrize("table", EMPTY.values(), ids=EMPTY)
def test_an_empty_table_has_codes_of_no_row(table):
    binned = jp.Variable("c", ("low", "high"), edges=(0, 1, 2))
    domain = jp.Domain([jp.Variable("a", (0, 1)), jp.Variable("b", ("x",)), binned])
    assert encode(table, domain).array.shape == (0, 3)


def test_a_table_without_columns_keeps_its_rows():
    codes = encode(pd.DataFrame(index=range(3)), jp.Domain.of_sizes([2, 2]))
    assert codes.array.tolist() == [[-1, -1]] * 3


@pytest.mark.parametrize(
    "table", [np.zeros((3, 0)), [[], [], []], pl.DataFrame({"a": [1, 2, 3]})], ids=type
)
def test_a_domain_of_no_variables_keeps_the_rows(table):
    assert encode(table, jp.Domain([])).array.shape == (3, 0)


def test_a_table_with_none_of_the_variables_is_refused():
    with pytest.raises(jp.JointPMFError, match=r"none of the variables 'a'.*columns are 'b'"):
        encode(pl.DataFrame({"b": [1]}), jp.Domain.of_sizes([2], names=["a"]))


def test_codes_are_projected_on_a_part_of_their_domain():
    codes = Codes(jp.Domain.of_sizes([2, 3, 4]), [[1, 2, 3], [0, -1, 1]])
    part = encode(codes, codes.domain.project(["x2", "x0"]))
    assert part.array.tolist() == [[3, 1], [1, 0]]
    with pytest.raises(jp.JointPMFError, match=r"another domain.*'x2'"):
        encode(codes, jp.Domain.of_sizes([2, 3, 5]))


def test_variables_that_codes_do_not_have_are_missing_as_in_a_table():
    codes = Codes(jp.Domain.of_sizes([2, 3]), [[1, 2], [0, -1]])
    wider = jp.Domain.of_sizes([5, 3, 2], names=["other", "x1", "x0"])
    assert encode(codes, wider).array.tolist() == [[-1, 2, 1], [-1, -1, 0]]


class TestMissingCode:
    ARRAY = np.array([[0, 9], [1, -1], [9, 2]])

    def test_minus_one_is_missing_if_it_is_said(self):
        assert encode(self.ARRAY, missing_code=-1).array.tolist() == [[0, 1], [1, -1], [2, 0]]

    @pytest.mark.parametrize("missing_code", [None, math.nan, pd.NA])
    def test_else_every_number_is_a_level(self, missing_code):
        codes = encode(self.ARRAY, missing_code=missing_code)
        assert levels_of(codes, "x1") == [-1, 2, 9]
        assert codes.array.tolist() == [[0, 2], [1, 0], [2, 1]]

    @pytest.mark.parametrize("kind", [np.int16, np.float64, object])
    def test_another_number_can_mean_missing(self, kind):
        array = np.abs(self.ARRAY).astype(kind)
        for rows in (array, array.tolist()):
            codes = encode(rows, missing_code=9)
            assert levels_of(codes) == [0, 1]
            assert codes.array.tolist() == [[0, -1], [1, 0], [-1, 1]]

    @pytest.mark.parametrize("missing_code", [None, -1])
    def test_holes_are_missing_whatever_the_code(self, missing_code):
        codes = encode(np.array([[1.5], [np.nan], [2.5]]), missing_code=missing_code)
        assert codes_of(codes) == [0, jp.MISSING, 1]

    @any_table
    @pytest.mark.parametrize(
        ("cells", "missing_code"), [([-1, 2, None, 7], 7), ([0.5, 1.5, None, -9.0], -9)]
    )
    def test_a_number_can_mean_missing_in_any_table(self, table, cells, missing_code):
        codes = encode(table(cells), missing_code=missing_code)
        assert levels_of(codes) == cells[:2]
        assert codes_of(codes) == [0, 1, jp.MISSING, jp.MISSING]

    @any_table
    def test_a_text_can_mean_missing_in_any_table(self, table):
        codes = encode(table(["a", "?", None, "b"]), missing_code="?")
        assert levels_of(codes) == ["a", "b"]
        assert codes_of(codes) == [0, jp.MISSING, jp.MISSING, 1]

    @pytest.mark.parametrize(
        "table",
        [
            frame(pd.Categorical(["b", "?", "a"], categories=["?", "b", "a"])),
            pl.DataFrame({"x0": ["b", "?", "a"]}, {"x0": pl.Enum(["?", "b", "a"])}),
        ],
        ids=["pandas", "polars"],
    )
    def test_a_category_can_mean_missing(self, table):
        codes = encode(table, missing_code="?")
        assert levels_of(codes) == ["b", "a"]
        assert codes_of(codes) == [0, jp.MISSING, 1]

    def test_a_number_among_categories_can_mean_missing(self):
        codes = encode(frame(pd.Categorical([3, 9, 1], categories=[9, 3, 1])), missing_code=9)
        assert levels_of(codes) == [3, 1]
        assert codes_of(codes) == [0, jp.MISSING, 1]

    @pytest.mark.parametrize("missing_code", [99, 99.0, np.int8(99)])
    @pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_a_column_of_text_may_hold_the_number_as_in_a_file(
        self, library, missing_code, tmp_path
    ):
        cells = ["a", "99", " 99.0", "9_9", "b"]
        codes = encode(library({"x0": cells}), missing_code=missing_code)
        assert levels_of(codes) == ["9_9", "a", "b"]
        assert codes_of(codes) == [1, jp.MISSING, jp.MISSING, 0, 2]
        (tmp_path / "t.csv").write_text("\n".join(["x0", *cells, ""]))
        file = jp.fit_rows(tmp_path / "t.csv", 1, missing_code=missing_code, random_state=0)
        assert file.pmf.domain == codes.domain

    def test_a_category_may_be_the_text_of_the_number(self):
        table = pl.DataFrame({"x0": ["b", "9"]}, {"x0": pl.Enum(["9", "b"])})
        assert levels_of(encode(table, missing_code=9)) == ["b"]
        assert levels_of(encode(table, missing_code=8)) == ["9", "b"]

    def test_text_in_an_array_is_not_the_number_that_it_names(self):
        assert codes_of(encode(np.array([["-1"], ["a"]]), missing_code=-1)) == [0, 1]
        assert codes_of(encode([["-1"], ["a"]], missing_code=-1)) == [0, 1]

    @any_table
    def test_a_boolean_is_no_number(self, table):
        assert codes_of(encode(table([True, False, True]), missing_code=1)) == [1, 0, 1]

    def test_beside_other_negative_numbers_it_is_still_the_code(self):
        codes = encode(np.array([[-1], [-2], [0]]), missing_code=-1)
        assert levels_of(codes) == [-2, 0]

    def test_in_objects_numbers_are_narrowed_without_the_code(self):
        codes = encode(np.array([[1], ["?"], [2]], object), missing_code="?")
        assert codes.domain["x0"].values == (1, 2)

    def test_nan_says_that_minus_one_is_no_code_in_a_known_domain_either(self):
        domain = jp.Domain.of_sizes([2])
        array = np.array([[-1], [1], [0]])
        assert codes_of(encode(array, domain)) == [jp.MISSING, 1, 0]
        with pytest.raises(jp.JointPMFError, match="'x0' holds -1 in row 0"):
            encode(array, domain, missing_code=math.nan)


class TestOneNumberOfBins:
    TABLE = pl.DataFrame(
        {
            "many": np.arange(40) / 4,
            "few": np.arange(40) % 4,
            "text": [f"t{k:02}" for k in range(40)],
        }
    )

    def test_only_columns_of_too_many_numbers_are_cut(self):
        domain = encode(self.TABLE, bins=5, max_levels=10).domain
        assert domain.sizes == (5, 4, 40)
        assert domain["many"].edges is not None
        assert domain["few"].edges is None
        assert domain["text"].edges is None

    def test_they_are_cut_as_if_they_were_named(self):
        one = encode(self.TABLE, bins=5, max_levels=10)
        named = encode(self.TABLE, bins={"many": 5}, max_levels=10)
        assert one.domain == named.domain
        assert (one.array == named.array).all()

    @pytest.mark.parametrize(("max_levels", "size"), [(39, 3), (40, 40)])
    def test_too_many_is_more_than_max_levels(self, max_levels, size):
        assert encode(self.TABLE, bins=3, max_levels=max_levels).domain.sizes[0] == size

    @pytest.mark.parametrize("bins", [0, -3, 2.5, True, "five", [3]])
    def test_a_bad_number_gives_a_sentence(self, bins):
        with pytest.raises(jp.JointPMFError, match="bins must be a number, or map a column's name"):
            encode(self.TABLE, bins=bins)

    def test_a_known_domain_has_its_bins_already(self):
        codes = encode(self.TABLE, bins=5, max_levels=10)
        with pytest.raises(jp.JointPMFError, match="bins belong to the learning of a domain"):
            encode(self.TABLE, codes.domain, bins=5)
