"""One column as a table of any kind, and what was made of it."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

TABLES = {
    "pandas": lambda cells: pd.DataFrame({"x0": cells}),
    "pandas objects": lambda cells: pd.DataFrame({"x0": pd.Series(cells, dtype=object)}),
    "polars": lambda cells: pl.DataFrame({"x0": cells}),
    "lazy": lambda cells: pl.LazyFrame({"x0": cells}),
    "pyarrow": lambda cells: pa.table({"x0": cells}),
    "array": lambda cells: np.array([[cell] for cell in cells], dtype=object),
    "list": lambda cells: [[cell] for cell in cells],
}

CELLS = {
    "str": ["b", None, "a", "b"],
    "bool": [True, None, False, True],
    "int": [30, None, 7, 30],
    "float": [2.5, None, -0.5, 2.5],
    "date": [dt.date(2024, 2, 1), None, dt.date(2023, 12, 31), dt.date(2024, 2, 1)],
    "datetime": [
        dt.datetime(2024, 2, 1),
        None,
        dt.datetime(2023, 12, 31, 5),
        dt.datetime(2024, 2, 1),
    ],
}

BACKENDS = ("pandas", "polars", "pyarrow")

any_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)

any_cells = pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)

any_backend = pytest.mark.parametrize("backend", BACKENDS)


def levels_of(codes, name="x0"):
    return list(codes.domain[name].levels)


def codes_of(codes, name="x0"):
    return codes.array[:, codes.domain.index(name)].tolist()


def frame(series):
    return pd.DataFrame({"x0": series})


def cells_of(table, name):
    """Return a column of any data frame as Python objects, None where it is missing."""
    if isinstance(table, pa.Table):
        return table[name].to_pylist()
    if isinstance(table, pd.DataFrame):
        return [None if pd.isna(cell) else cell for cell in table[name].tolist()]
    return table[name].to_list()
