"""Times are read to the microsecond; finer ones are refused, so that levels never merge."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointpmf as jp
from jointpmf.data.encode import levels_and_codes
from jointpmf.data.table_output import table_output

FINE = np.array(["2020-01-01", "2020-01-01T00:00:00.000000001", "NaT"], "M8[ns]")
WHOLE = np.array(["2020-01-01", "2020-01-01T00:00:00.000001", "NaT"], "M8[ns]")
START = dt.datetime(2020, 1, 1)
TOO_FINE = "holds times finer than a microsecond: round them to microseconds"

TABLES = {
    "array": lambda times: times.reshape(-1, 1),
    "list": lambda times: [[time] for time in times],
    "pandas": lambda times: pd.DataFrame({"x0": times}),
    "objects": lambda times: pd.DataFrame({"x0": pd.Series(times, dtype=object)}),
    "categories": lambda times: pd.DataFrame({"x0": pd.Categorical(times)}),
    "Timestamps": lambda times: [[cell] for cell in pd.Series(times)],
    "polars": lambda times: pl.DataFrame({"x0": times}),
    "pyarrow": lambda times: pa.table({"x0": times}),
}
KINDS = pytest.mark.parametrize("start", [None, FINE[0]], ids=["M8", "m8"])


def times_from(times, start):
    """Return times as they are, or as durations since a start."""
    return times if start is None else times - start


@KINDS
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_finer_times_are_refused_in_every_table(table, start):
    with pytest.raises(jp.JointPMFError, match=f"^column 'x0' {TOO_FINE}$"):
        jp.encode(table(times_from(FINE, start)))


@KINDS
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_whole_microseconds_in_nanoseconds_are_levels(table, start):
    codes = jp.encode(table(times_from(WHOLE, start)))
    second = dt.timedelta(microseconds=1)
    levels = (START, START + second) if start is None else (dt.timedelta(0), second)
    assert codes.domain["x0"].levels == levels
    assert codes.array[:, 0].tolist() == [0, 1, jp.MISSING]


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"a": pl.Series(FINE).dt.replace_time_zone("UTC")}),
        pd.DataFrame({"a": pd.Series(FINE).dt.tz_localize("UTC")}),
        pd.DataFrame({"a": pd.Series([pd.Timestamp(1, tz="UTC")], dtype=object)}),
        pl.DataFrame({"a": pl.Series([1], dtype=pl.Int64).cast(pl.Time)}),
    ],
    ids=["Polars with a zone", "pandas with a zone", "Timestamps with a zone", "times of day"],
)
def test_finer_times_of_other_types_are_refused(table):
    with pytest.raises(jp.JointPMFError, match=f"^column 'a' {TOO_FINE}$"):
        jp.encode(table)


def test_units_below_nanoseconds_are_refused():
    with pytest.raises(jp.JointPMFError, match=f"^column 'x0' {TOO_FINE}$"):
        jp.encode(np.array([[1]], "M8[ps]"))


def test_columns_that_are_binned_are_checked_too():
    with pytest.raises(jp.JointPMFError, match=TOO_FINE):
        jp.encode(pd.DataFrame({"a": FINE}), bins={"a": 2})


def test_ids_are_checked_too():
    with pytest.raises(jp.JointPMFError, match=f"^column 'id' {TOO_FINE}$"):
        levels_and_codes(pl.DataFrame({"id": FINE}), ["id"])


def test_a_variable_has_no_such_level():
    with pytest.raises(jp.JointPMFError, match=f"^variable 'a' {TOO_FINE}$"):
        jp.Variable("a", list(FINE[:2]))


def test_any_spelling_of_whole_microseconds_is_evidence():
    pmf = jp.fit_rows(pd.DataFrame({"x0": WHOLE[[0, 1]], "x1": ["a", "b"]}), 2, random_state=0).pmf
    for spelling in (WHOLE[1], pd.Series(WHOLE)[1], START + dt.timedelta(microseconds=1)):
        given = pmf.condition({"x0": spelling}).marginal(["x1"])
        assert given.table().argmax() == 1
    with pytest.raises(jp.JointPMFError, match="'x0' has no level"):
        pmf.condition({"x0": FINE[1]})


def test_a_finer_time_falls_in_no_bin():
    domain = jp.encode(pd.DataFrame({"a": WHOLE[[0, 1]]}), bins={"a": 1}).domain
    with pytest.raises(jp.JointPMFError, match="times finer than a microsecond"):
        domain["a"].code(FINE[1])


def test_arrays_of_whole_days_stay_so():
    pmf = jp.JointPMF(
        jp.Domain([jp.Variable("x0", [dt.date(2020, 1, 1)])]), [1.0], [np.ones((1, 1))]
    )
    for unit in ("D", "us", "ns"):
        filled = jp.impute(pmf, np.array([["NaT"], ["2020-01-01"]], f"M8[{unit}]"))
        assert filled.dtype == f"M8[{unit}]"
        assert filled[0] == filled[1]


@KINDS
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_files_with_finer_times_are_refused(ending, start, tmp_path):
    path = str(tmp_path / f"rows.{ending}")
    with table_output(path) as write:
        write(pl.DataFrame({"x0": times_from(FINE, start), "x1": ["a", "b", "a"]}))
    with pytest.raises(jp.JointPMFError, match=f"column 'x0' {TOO_FINE}"):
        jp.fit_rows(path, 1)
    domain = jp.encode(pl.DataFrame({"x0": times_from(WHOLE, start), "x1": ["a", "b", "a"]})).domain
    with pytest.raises(jp.JointPMFError, match=f"column 'x0' {TOO_FINE}"):
        jp.fit_rows(path, 1, domain=domain)


def test_texts_that_are_finer_stay_texts(tmp_path):
    (tmp_path / "t.csv").write_text(
        "a\n" + "2020-01-01 00:00:00.000000001\n2020-01-01 00:00:00\n" * 2
    )
    levels = jp.fit_rows(str(tmp_path / "t.csv"), 1).pmf.domain["a"].levels
    assert levels == ("2020-01-01 00:00:00", "2020-01-01 00:00:00.000000001")


def test_texts_with_zeros_below_a_microsecond_are_times(tmp_path):
    (tmp_path / "t.csv").write_text("a\n" + "2020-01-01 00:00:00.000001000\n" * 2)
    levels = jp.fit_rows(str(tmp_path / "t.csv"), 1).pmf.domain["a"].levels
    assert levels == (START + dt.timedelta(microseconds=1),)
