"""Spreadsheets: what is written is what is read, and no cell is a formula."""

import datetime
import sys
import zipfile

import polars as pl
import pytest

import jointpmf as jp
from jointpmf.data import sheets
from jointpmf.data.sheets import read_sheet, sheet_output
from jointpmf.data.table_files import open_table
from jointpmf.data.table_output import table_output

TABLE = pl.DataFrame(
    {
        "whole": [1, -2, None],
        "large": [2**60, 2**53, 1],
        "real": [1.5, 1e300, None],
        "truth": [True, None, False],
        "day": [datetime.date(2020, 1, 31), None, None],
        "text": ['a<b>&"c"', "\x1b[2J_x0041_\nline", " =1+1 "],
        "names; of, two": ["x", "y", "z"],
    }
)


def written(path, *tables):
    with table_output(str(path)) as write:
        for table in tables:
            write(table)
    return str(path)


def test_every_cell_comes_back_as_its_text(tmp_path):
    with open_table(written(tmp_path / "t.xlsx", TABLE, TABLE[:1])) as table:
        assert table.columns == TABLE.columns
        (found,) = table.batches()
    assert found["whole"].to_list() == ["1", "-2", None, "1"]
    assert found["large"].to_list()[:2] == [str(2**60), str(2**53)]
    assert found["real"].cast(pl.Float64).to_list()[:3] == [1.5, 1e300, None]
    assert found["truth"].to_list()[:3] == ["true", None, "false"]
    assert found["day"].to_list()[:2] == ["2020-01-31", None]
    assert found["text"].to_list()[:3] == TABLE["text"].to_list()


def test_no_cell_is_a_formula(tmp_path):
    with zipfile.ZipFile(written(tmp_path / "t.xlsx", TABLE)) as archive:
        assert archive.testzip() is None
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")


def test_a_model_is_fitted_to_a_sheet_as_to_the_table(tmp_path):
    rows = pl.DataFrame({"a": ["x", "y", "x", None], "b": [1, 2, 3, 1]})
    found = jp.fit_rows(written(tmp_path / "t.xlsx", rows), rank=1, random_state=0)
    assert found.pmf.domain == jp.encode(rows).domain
    assert found.objective == jp.fit_rows(rows, rank=1, random_state=0).objective


def test_what_does_not_fit_in_a_sheet_is_refused_and_not_half_written(tmp_path, monkeypatch):
    monkeypatch.setattr(sheets, "_MOST_ROWS", 4)
    written(tmp_path / "t.xlsx", TABLE)
    with pytest.raises(jp.JointPMFError, match="a sheet holds 3 rows of 16,384 columns"):
        written(tmp_path / "more.xlsx", TABLE, TABLE)
    assert [path.name for path in tmp_path.iterdir()] == ["t.xlsx"]


def test_a_sheet_without_rows_is_empty(tmp_path):
    with (tmp_path / "t.xlsx").open("wb") as file, sheet_output(file):
        pass
    assert read_sheet(str(tmp_path / "t.xlsx")).is_empty()
    with pytest.raises(jp.JointPMFError, match=r"t\.xlsx is empty"):
        jp.fit_rows(str(tmp_path / "t.xlsx"), rank=1)


def test_rows_without_any_cell_stay(tmp_path):
    path = str(tmp_path / "holes.xlsx")
    table = {"a": [None, "x", None, "y"], "b": [None, "1", None, "2"]}
    with table_output(path) as write:
        write(pl.DataFrame(table))
    with open_table(path) as found:
        assert pl.concat(found.batches()).to_dict(as_series=False) == table


def test_column_names_may_differ_by_case_only(tmp_path):
    with open_table(written(tmp_path / "t.xlsx", pl.DataFrame({"a": [1], "A": [1 / 4]}))) as table:
        assert table.columns == ["a", "A"]
        (found,) = table.batches()
    assert found.rows() == [("1", "0.25")]


def test_a_text_that_is_too_long_for_a_cell_is_refused(tmp_path):
    with pytest.raises(jp.JointPMFError, match="a cell of a sheet holds 32,767 characters"):
        written(tmp_path / "t.xlsx", pl.DataFrame({"a": ["x" * 32_768]}))
    assert not list(tmp_path.iterdir())


def test_without_the_writer_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(jp.JointPMFError, match=r"pip install 'jointpmf\[excel\]'"):
        written(tmp_path / "t.xlsx", TABLE)
