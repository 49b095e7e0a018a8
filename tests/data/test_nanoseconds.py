"""Times that differ by a nanosecond are different levels, wherever they come from and go to."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointpmf as jp
from jointpmf.data.decode import decode
from jointpmf.data.encode import levels_and_codes
from jointpmf.data.file_codes import coded_batches
from jointpmf.data.table_files import open_table
from jointpmf.data.table_output import table_output
from support.tables import any_backend

MOMENTS = np.array(["2020-01-01", "2020-01-01T00:00:00.000000001", "2021-01-01"], "M8[ns]")
KINDS = pytest.mark.parametrize("times", [MOMENTS, MOMENTS - MOMENTS[0]], ids=["M8", "m8"])
HOLED = [1, -1, 0, 2]


def domain_of(times):
    return jp.Domain([jp.Variable("x0", list(times)), jp.Variable("x1", ("a", "b", "c"))])


def model_of(times):
    return jp.JointPMF(domain_of(times), [0.5, 0.2, 0.3], [np.eye(3), np.eye(3)])


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


@KINDS
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_they_are_levels_of_every_table(table, times):
    codes = jp.encode(table(times[[2, 1, 0, 1]]))
    assert codes.domain["x0"].levels == tuple(times)
    assert codes.array[:, 0].tolist() == [2, 1, 0, 1]
    assert codes.domain["x0"].values is None


@KINDS
def test_they_are_ids_too(times):
    ((levels, codes),) = levels_and_codes(pl.DataFrame({"id": times[[2, 1, 0]]}), ["id"])
    assert levels == list(times)
    assert codes.tolist() == [2, 1, 0]


@KINDS
@any_backend
def test_a_model_gives_them_back(backend, times):
    pmf = model_of(times)
    drawn = pmf.sample(20, random_state=0, backend=backend)
    codes = pmf.sample(20, random_state=0, backend="codes")
    assert jp.encode(drawn, pmf.domain).array.tolist() == codes.tolist()
    assert len({*codes[:, 0].tolist()}) == 3


@KINDS
@any_backend
def test_holes_are_filled_with_them(backend, times):
    pmf = model_of(times)
    codes = np.array([HOLED, [1, 1, 0, 2]]).T
    filled = jp.impute(pmf, decode(jp.Codes(pmf.domain, codes), backend))
    assert jp.encode(filled, pmf.domain).array[:, 0].tolist() == [1, 1, 0, 2]


@KINDS
def test_a_column_of_coarser_times_takes_them_in(times):
    coarse = times[[0, 2, 0]].astype(f"{times.dtype.kind}8[us]")
    coarse[0] = "NaT"
    for table in (pl.DataFrame({"x0": coarse}), pa.table({"x0": coarse})):
        table = pl.from_arrow(table) if isinstance(table, pa.Table) else table
        filled = jp.impute(model_of(times), table.with_columns(pl.Series("x1", ["b", "c", "a"])))
        assert filled["x0"].to_numpy().tolist() == times[[1, 2, 0]].tolist()


@KINDS
def test_arrays_of_times_stay_arrays_of_times(times):
    array = times[[1, 0, 2]].reshape(1, 3).repeat(2, axis=0)
    array[0] = "NaT"
    domain = jp.Domain([jp.Variable(name, list(times)) for name in "abc"])
    pmf = jp.JointPMF(domain, [1.0], [np.array([[0.2], [0.5], [0.3]])] * 3)
    filled = jp.impute(pmf, array, "mode")
    assert filled.dtype == array.dtype
    assert filled[0].tolist() == times[[1, 1, 1]].tolist()
    assert filled[1].tolist() == array[1].tolist()


def test_arrays_of_whole_days_stay_so():
    pmf = jp.JointPMF(
        jp.Domain([jp.Variable("x0", [dt.date(2020, 1, 1)])]), [1.0], [np.ones((1, 1))]
    )
    for unit in ("D", "us", "ns"):
        filled = jp.impute(pmf, np.array([["NaT"], ["2020-01-01"]], f"M8[{unit}]"))
        assert filled.dtype == f"M8[{unit}]"
        assert filled[0] == filled[1]


@KINDS
def test_a_model_file_keeps_them(times, tmp_path):
    model_of(times).save(tmp_path / "model.safetensors")
    assert jp.load(tmp_path / "model.safetensors").domain == domain_of(times)


@KINDS
@pytest.mark.parametrize("ending", ["csv", "tsv", "ndjson", "parquet", "arrow", "xlsx"])
def test_files_keep_them(ending, times, tmp_path):
    path = str(tmp_path / f"rows.{ending}")
    domain = domain_of(times)
    codes = np.array([HOLED, [1, 1, 0, 2]]).T
    with table_output(path) as write:
        write(decode(jp.Codes(domain, codes)))
    with open_table(path) as table:
        found = [batch.array.tolist() for _, batch in coded_batches(table, domain)]
    assert found == [codes.tolist()]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_fit_learns_them_from_a_file(ending, tmp_path):
    path = str(tmp_path / f"rows.{ending}")
    with table_output(path) as write:
        write(pl.DataFrame({"x0": MOMENTS.repeat(4), "x1": ["a", "b"] * 6}))
    assert jp.fit_rows(path, 1).pmf.domain["x0"].levels == tuple(MOMENTS)


@KINDS
def test_any_spelling_is_evidence(times):
    pmf = model_of(times)
    for spelling in (times[1], pd.Series(times)[1], [times[1]]):
        given = pmf.condition({"x0": spelling}).marginal(["x1"])
        assert given.table().tolist() == [0, 1, 0]
    whole = dt.datetime(2020, 1, 1) if times.dtype.kind == "M" else dt.timedelta(0)
    assert pmf.condition({"x0": whole}).marginal(["x1"]).table().tolist() == [1, 0, 0]


WITH_ZONE = "'a' holds times with nanoseconds and a time zone: write them in UTC, without a zone"
CLOCK = pl.Series([1], dtype=pl.Int64).cast(pl.Time)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (pl.DataFrame({"a": pl.Series(MOMENTS).dt.replace_time_zone("UTC")}), WITH_ZONE),
        (pd.DataFrame({"a": pd.Series(MOMENTS).dt.tz_localize("UTC")}), WITH_ZONE),
        (pd.DataFrame({"a": pd.Series([pd.Timestamp(1, tz="UTC")], dtype=object)}), WITH_ZONE),
        (pl.DataFrame({"a": CLOCK}), "'a' holds times of day with nanoseconds"),
        (np.array([[1]], "M8[ps]"), "'x0' holds times finer than a nanosecond"),
    ],
)
def test_what_cannot_be_a_level_is_named(table, says):
    with pytest.raises(jp.JointPMFError, match=f"^column {says}"):
        jp.encode(table)


def test_a_variable_does_not_reach_farther_than_they_do():
    with pytest.raises(jp.JointPMFError, match="'a' holds times with nanoseconds beside one"):
        jp.Variable("a", [MOMENTS[1], dt.datetime(1500, 1, 1)])


def test_texts_that_are_finer_stay_texts(tmp_path):
    (tmp_path / "t.csv").write_text(
        "a\n" + "2020-01-01 00:00:00.0000000001\n2020-01-01 00:00:00\n" * 2
    )
    levels = jp.fit_rows(str(tmp_path / "t.csv"), 1).pmf.domain["a"].levels
    assert levels == ("2020-01-01 00:00:00", "2020-01-01 00:00:00.0000000001")
