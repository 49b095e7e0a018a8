"""Ratings to test with, and tables of any kind as plain rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import jointpmf as jp
from jointpmf.data.ratings import Ratings
from support import oracle

BACKENDS = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.Table}

SCALE = (0.5, 1.0, 2.5, 4.0)


def native(columns, backend):
    return pa.table(columns) if backend == "pyarrow" else BACKENDS[backend](columns)


def rows_of(table):
    """Return a table of any kind as a list of rows, None where a cell is missing."""
    if isinstance(table, pa.Table):
        table = pl.DataFrame(table.to_pydict(), strict=False)
    if isinstance(table, pl.DataFrame):
        return table.rows()
    cells = table.astype(object).where(table.notna(), None)
    return list(cells.itertuples(index=False, name=None))


def long_table(triples, backend="polars"):
    columns = zip(*triples, strict=True)
    return native(dict(zip(("user", "item", "rating"), map(list, columns), strict=True)), backend)


def domain_of(names, levels=(1, 2, 3)):
    return jp.Domain([jp.Variable(name, levels) for name in names])


def some_ratings(n_users=40, n_items=5, holes=0.4, seed=0):
    domain = domain_of([f"item {n}" for n in range(n_items)], SCALE)
    rows = oracle.random_table(np.random.default_rng(seed), domain, n_users, holes)
    return Ratings(np.arange(n_users) * 3, jp.Codes(domain, rows))
