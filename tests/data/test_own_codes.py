"""Codes of any library's columns and of numbers, beside a dictionary of the cells one by one."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointpmf as jp
from jointpmf.data.own_codes import OwnCodes, codes_of_numbers, codes_of_pandas, recoded

N_ROWS = 70_000
"""More than a block, so that levels come late."""


def texts(n_levels, missing=0.1, seed=0):
    """Return cells of text, of which the last level comes last, and only once."""
    generator = np.random.default_rng(seed)
    cells = [f"t{k}" for k in generator.integers(0, n_levels - 1, N_ROWS)]
    for row in np.flatnonzero(generator.random(N_ROWS) < missing):
        cells[row] = None
    return [*cells, f"t{n_levels - 1}"]


def one_by_one(cells):
    """Return sorted levels and the codes of cells."""
    levels = sorted({cell for cell in cells if cell is not None})
    code_of = {level: code for code, level in enumerate(levels)} | {None: jp.MISSING}
    return levels, [code_of[cell] for cell in cells]


def of_two_dictionaries(cells):
    half = len(cells) // 2
    parts = [pa.array(cells[:half]), pa.array(cells[half:][::-1])]
    parts = [part.dictionary_encode() for part in parts]
    turned = parts[1].take(pa.array(range(len(parts[1]) - 1, -1, -1)))
    return pa.table({"x": pa.chunked_array([parts[0], turned])})


def of_small_indices(cells):
    column = pa.array(cells).dictionary_encode()
    n_levels = len(column.dictionary)
    index = pa.uint8() if n_levels < 256 else pa.uint16() if n_levels < 2**16 else pa.uint32()
    small = pa.DictionaryArray.from_arrays(column.indices.cast(index), column.dictionary)
    return pa.table({"x": small})


LIBRARIES = {
    "pandas": lambda cells: pd.DataFrame({"x": cells}),
    "pandas objects": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "polars": lambda cells: pl.DataFrame({"x": cells}),
    "polars categorical": lambda cells: pl.DataFrame({"x": cells}).cast(pl.Categorical),
    "pyarrow": lambda cells: pa.table({"x": cells}),
    "pyarrow dictionaries": of_two_dictionaries,
    "pyarrow unsigned": of_small_indices,
}


@pytest.mark.parametrize("n_levels", [2, 128, 300, 40_000])
@pytest.mark.parametrize("library", LIBRARIES)
def test_text_of_any_library(library, n_levels):
    cells = texts(n_levels)
    levels, codes = one_by_one(cells)
    found = jp.encode(LIBRARIES[library](cells))
    assert list(found.domain["x"].levels) == levels
    assert found.array[:, 0].tolist() == codes


WITH_NUL = ["a\0", None, "", "a", "\0", "a\0b", "a\0", ""]


@pytest.mark.parametrize("library", LIBRARIES)
def test_text_goes_on_after_a_nul(library):
    levels, codes = one_by_one(WITH_NUL)
    found = jp.encode(LIBRARIES[library](WITH_NUL))
    assert list(found.domain["x"].levels) == levels
    assert found.array[:, 0].tolist() == codes


class Cut(pd.Series):
    """A column as pandas before 3.1 has it: its texts are read up to their first NUL."""

    def factorize(self):
        cells = [one.partition("\0")[0] if isinstance(one, str) else None for one in self]
        return pd.factorize(np.array(cells, object))


@pytest.mark.parametrize("cells", [WITH_NUL, ["b", None, "a", "b"], [None], []])
@pytest.mark.parametrize("dtype", [object, pd.StringDtype("python")])
def test_pandas_may_read_text_up_to_a_nul(cells, dtype):
    own = codes_of_pandas(Cut(cells, dtype=dtype))
    code_of = {None: jp.MISSING}
    assert own.codes.tolist() == [code_of.setdefault(cell, len(code_of) - 1) for cell in cells]
    assert len(own.first_rows) == len(code_of) - 1


@pytest.mark.parametrize("n_levels", [3, 127, 128, 254, 255, 256, 300])
@pytest.mark.parametrize("is_observed", [True, False])
def test_categories_keep_their_order_and_those_that_no_cell_has(n_levels, is_observed):
    order = [f"t{k}" for k in np.random.default_rng(1).permutation(n_levels)]
    cells = [None, *order] if is_observed else [order[1], None, order[-1]]
    codes = [jp.MISSING if cell is None else order.index(cell) for cell in cells]
    frames = [
        pl.DataFrame({"x": cells}, schema={"x": pl.Enum(order)}),
        pd.DataFrame({"x": pd.Categorical(cells, order, ordered=True)}),
    ]
    for frame in frames:
        found = jp.encode(frame)
        assert list(found.domain["x"].levels) == order
        assert found.array[:, 0].tolist() == codes


def test_categories_that_columns_share():
    cells = {name: texts(5, seed=seed) for seed, name in enumerate("abc")}
    cells["b"] = [None if cell == "t2" else cell for cell in cells["b"]]
    frame = pl.DataFrame(cells).cast(pl.Categorical)
    found = jp.encode(frame)
    for name, own in cells.items():
        assert found.array[:, found.domain.index(name)].tolist() == one_by_one(own)[1]


def test_a_dictionary_may_hold_a_missing_cell():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["b", None, "a"]))
    found = jp.encode(pa.table({"x": column}))
    assert found.domain["x"].levels == ("a", "b")
    assert found.array[:, 0].tolist() == [1, -1, 0, -1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_first_row_of_an_unknown_level_is_named(library):
    domain = jp.Domain([jp.Variable("x", ("a", "b"))])
    table = LIBRARIES[library](["b", None, "z", "a", "y", "z"])
    with pytest.raises(jp.JointPMFError, match="column 'x' holds 'z' in row 2"):
        jp.encode(table, domain)
    assert jp.encode(table, domain, unknown="missing").array[:, 0].tolist() == [
        1,
        -1,
        -1,
        0,
        -1,
        -1,
    ]


TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint64, float]


def ends_of(dtype):
    return np.iinfo(dtype) if dtype is not float else np.iinfo(np.int32)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        (dtype, size)
        for dtype in TYPES
        for size in (3, 127, 128, 256, 40_000)
        if size <= int(ends_of(dtype).max) - int(ends_of(dtype).min) + 1
    ],
)
def test_numbers_from_the_lowest_of_their_type(dtype, size):
    ends = ends_of(dtype)
    above = np.random.default_rng(0).integers(0, size, 100_000)
    above[:2] = 0, size - 1
    cells = np.array([int(ends.min) + int(k) for k in above], dtype)
    low, own = codes_of_numbers(cells)
    assert low == ends.min
    assert own.codes.tolist() == above.tolist()
    found = jp.encode(cells[:, None], max_levels=size)
    assert list(found.domain["x0"].levels) == sorted(set(cells.tolist()))
    np.testing.assert_array_equal(np.array(found.domain["x0"].levels)[found.array[:, 0]], cells)


@pytest.mark.parametrize("cells", [[0.5, 1.5, 0.5, 2.5], [0.0, 1.0, -1.0, 0.0]])
def test_floats_that_are_whole_numbers_apart(cells):
    low, own = codes_of_numbers(np.array(cells))
    assert [low + code for code in own.codes.tolist()] == cells


@pytest.mark.parametrize(
    "cells", [[0.0, 0.25, 1.0], [0.0, np.inf], [-np.inf, np.inf], [0, 10**6], [1e300, 0.0], []]
)
def test_other_numbers_have_no_such_codes(cells):
    assert codes_of_numbers(np.array(cells)) is None


def test_first_rows_beside_a_search():
    codes = np.random.default_rng(0).integers(-1, 50, N_ROWS)
    codes[-1] = 50
    found = OwnCodes(codes, 52).first_rows.tolist()
    assert found == [*(codes.tolist().index(k) for k in range(51)), -1]


@pytest.mark.parametrize("size", [3, 127, 128, 300])
@pytest.mark.parametrize("highest", [2, 126, 127, 500])
def test_a_lookup_beside_a_list(size, highest):
    generator = np.random.default_rng(0)
    codes = OwnCodes(generator.integers(-1, size, N_ROWS), size).codes
    new = generator.integers(-1, highest + 1, size)
    assert recoded(codes, new).tolist() == [-1 if k < 0 else new[k] for k in codes.tolist()]


@pytest.mark.parametrize("n_spellings", [127, 128, 255, 256, 257, 400])
def test_more_spellings_than_bytes(n_spellings):
    """Early batches have codes of a byte; later ones may bring many spellings of few levels."""
    codes = np.array([0, -1, 100, 126, 127], np.int8)
    new = [k % 90 for k in range(n_spellings)]
    expected = [new[k] if 0 <= k < n_spellings else -1 for k in codes.tolist()]
    assert recoded(codes, new).tolist() == expected
