"""Odd tables through all that takes rows: a sentence, or a feasible model."""

import contextlib
import tempfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

import jointpmf as jp
from support.feasibility import feasible

CELLS = [
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.floats(width=32),
    st.text(max_size=4),
    st.sampled_from(["", " ", "NA", "nan", "1", "1.0", "01", "<1", "=1", "a,b", '"', "\n", "\0"]),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.decimals(),
    st.fractions(),
    st.binary(max_size=3),
    st.tuples(st.integers(0, 1)),
    st.sampled_from([None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]),
]
"""What may be in a column: one kind, or some."""

KINDS = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "pyarrow": pa.table,
    "array": lambda columns: np.array(list(columns.values()), dtype=object).T,
    "records": lambda columns: list(map(list, zip(*columns.values(), strict=True))),
}


def columns(data):
    """Return columns of odd names and cells."""
    n_rows, n_columns = data.draw(st.integers(0, 8)), data.draw(st.integers(1, 4))
    names = st.one_of(st.sampled_from(["a", "b", "count", "a.b", "x'y"]), st.text(max_size=3))
    found = {}
    for name in data.draw(st.lists(names, min_size=n_columns, max_size=n_columns, unique=True)):
        kinds = data.draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=2))
        cells = st.one_of(*kinds, *([st.none()] if data.draw(st.booleans()) else []))
        repeated = data.draw(st.lists(cells, min_size=1, max_size=3))
        which = st.lists(st.sampled_from(range(len(repeated))), min_size=n_rows, max_size=n_rows)
        found[name] = [repeated[k] for k in data.draw(which)]
    return found


def attack(data):
    """Make a table of some library, and do with it all that can be done."""
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    cells = columns(data)
    try:
        table = KINDS[kind](cells)
    except BaseException:  # the library that it is of has no such table, and may panic
        return
    with contextlib.suppress(jp.JointPMFError):
        jp.encode(table)
    with contextlib.suppress(jp.JointPMFError):
        _use(table, data.draw(st.integers(1, 3)))


def _use(table, rank):
    search = jp.Search(n_starts=1, start="rows")
    pmf = jp.fit_rows(table, rank, search=search, max_iter=2, random_state=0).pmf
    assert feasible(pmf)
    scores = np.asarray(pmf.log_probability(table))
    assert not np.isnan(scores).any()
    for use in (
        lambda: jp.impute(pmf, table),
        lambda: pmf.sample(3, random_state=0),
        lambda: pmf.responsibilities(table),
        lambda: _saved(pmf),
    ):
        with contextlib.suppress(jp.JointPMFError):
            use()


def _saved(pmf):
    with tempfile.TemporaryDirectory() as folder:
        pmf.save(f"{folder}/m.safetensors")
        assert jp.load(f"{folder}/m.safetensors").domain == pmf.domain
