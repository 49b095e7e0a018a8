"""Values of every kind, for arguments that expect something else."""

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

HALF = "half \ud800"
"""Text that no file and no Arrow column can hold: half of a character."""


class Plain:
    """An object of which nothing is known."""

    def __repr__(self):
        return "<plain>"


def objects_of_polars(cells):
    return pl.DataFrame({"a": pl.Series(cells, dtype=pl.Object), "b": [0] * len(cells)})


ODD = {
    "None": lambda: None,
    "False": lambda: False,
    "True": lambda: True,
    "zero": lambda: 0,
    "one": lambda: 1,
    "minus one": lambda: -1,
    "2**63": lambda: 2**63,
    "10**30": lambda: 10**30,
    "-10**30": lambda: -(10**30),
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,
    "half": lambda: 0.5,
    "-0.5": lambda: -0.5,
    "NaN": lambda: np.nan,
    "inf": lambda: np.inf,
    "5e-324": lambda: 5e-324,
    "1e308": lambda: 1e308,
    "numpy NaN": lambda: np.float32("nan"),
    "complex": lambda: 1j,
    "Decimal sNaN": lambda: Decimal("sNaN"),
    "Decimal NaN": lambda: Decimal("NaN"),
    "Decimal 1e999999": lambda: Decimal("1e999999"),
    "Decimal 1e-999999": lambda: Decimal("1e-999999"),
    "Fraction": lambda: Fraction(1, 3),
    "Fraction of digits": lambda: Fraction(10**400, 3),
    "text": lambda: "text",
    "empty text": lambda: "",
    "half of a character": lambda: HALF,
    "null character": lambda: "a\0b",
    "long text": lambda: "long" * 2000,
    "bytes": lambda: b"bytes",
    "path": lambda: Path("nowhere"),
    "object": Plain,
    "class": lambda: int,
    "function": lambda: lambda *_: None,
    "ellipsis": lambda: ...,
    "slice": lambda: slice(None),
    "set": lambda: {1, 2},
    "generator": lambda: (n for n in (1, 2)),
    "range": lambda: range(2),
    "dict": lambda: {"a": 1},
    "dict of dicts": lambda: {"a": {"b": 1}},
    "dict of odd keys": lambda: {None: 1, 2: b""},
    "dict of None": lambda: {"a": None},
    "dict of object": lambda: {"a": Plain()},
    "dict of arrays": lambda: {"a": np.array([1j, 2])},
    "dict of sNaN": lambda: {"a": Decimal("sNaN")},
    "dict of long": lambda: {"a": 10**400},
    "empty dict": dict,
    "empty list": list,
    "list of None": lambda: [None, None],
    "list of lists": lambda: [[], []],
    "ragged": lambda: [[1, 2], [3]],
    "nested": lambda: [[[[1]]]],
    "list of names": lambda: ["a", "b"],
    "list of a name": lambda: ["a"],
    "names twice": lambda: ["a", "a"],
    "list of bytes": lambda: [b"a", b"b"],
    "list of halves": lambda: [HALF, HALF],
    "list of objects": lambda: [Plain(), Plain()],
    "list of long": lambda: [10**400, 1],
    "list of 2**63": lambda: [2**64, 1, -(2**64)],
    "list of sNaN": lambda: [Decimal("sNaN"), 1, 1],
    "list of Decimals": lambda: [Decimal("1e99999"), Decimal("1e-99999"), 1],
    "list of fractions": lambda: [Fraction(1, 3), 1],
    "list of tiny": lambda: [5e-324, 5e-324, 5e-324],
    "list of huge": lambda: [1e308, 1e308, 1e308],
    "list of complex": lambda: [1j, 1],
    "list of sets": lambda: [{1}, {2}],
    "list of dicts": lambda: [{"a": 1}, {"b": 2}],
    "list of mixed": lambda: ["a", 1, None, b"", 1j],
    "rows of odd cells": lambda: [[HALF, 10**400], [None, Decimal("sNaN")]],
    "rows of objects": lambda: [[Plain(), Plain()], [Plain(), Plain()]],
    "itself": lambda: of_itself(),
    "0-d array": lambda: np.array(1),
    "0-d object": lambda: np.array(None),
    "empty array": lambda: np.empty((0, 2)),
    "complex array": lambda: np.array([[1j, 0]]),
    "bool array": lambda: np.array([True, False]),
    "array of objects": lambda: np.array([[None, Plain()]]),
    "array of text": lambda: np.array(["a", "b"]),
    "array of bytes": lambda: np.array([b"a", b"b"]),
    "array of records": lambda: np.zeros(2, dtype=[("a", int), ("b", float)]),
    "array of times": lambda: np.array(["NaT", "2020-01-01"], dtype="datetime64[ns]"),
    "many axes": lambda: np.zeros((1,) * 20),
    "masked array": lambda: np.ma.masked_array([1, 2], [True, False]),
    "NaT": lambda: np.datetime64("NaT"),
    "pandas NA": lambda: pd.NA,
    "pandas NaT": lambda: pd.NaT,
    "date": lambda: datetime.date(2020, 1, 31),
    "duration": lambda: datetime.timedelta(days=1),
    "pandas series": lambda: pd.Series(["a", None]),
    "pandas frame": lambda: pd.DataFrame({"a": [Plain(), 1], "b": [None, 2**70]}),
    "Polars series": lambda: pl.Series([1, 2]),
    "Polars objects": lambda: objects_of_polars([Plain(), Plain()]),
    "Polars objects of long": lambda: objects_of_polars([10**400, None]),
    "Polars expression": lambda: pl.col("a"),
    "Arrow array": lambda: pa.array([1, None]),
    "Arrow of structs": lambda: pa.table({"a": [{"x": 1}], "b": [[1]]}),
}
"""What a value is, and how to make it: some can be used only once."""


def of_itself():
    """Return a list that is its own only item."""
    items = []
    items.append(items)
    return items
