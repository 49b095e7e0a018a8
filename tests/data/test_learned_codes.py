"""Levels and codes in one reading of a file, beside two: levels first, then codes."""

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.data.code_file import CodeFile
from jointpmf.data.file_codes import codes_in
from jointpmf.data.learned_codes import LearnedCodes
from jointpmf.data.table_files import TableFile, open_table

TINY = {"batch_cells": 4 * 50, "batch_bytes": 2000}


def table(n_rows=1000):
    """Return columns whose levels come one after the other, so that their codes grow."""
    generator = np.random.default_rng(0)
    rows = np.arange(n_rows)
    late = [f"t{k}" for k in rows // 5]
    return pl.DataFrame(
        {
            "late": late,
            "vote": [[None, "yes", "no"][k] for k in generator.integers(0, 3, n_rows)],
            "age": generator.integers(18, 90, n_rows),
            "size": [2, 1] * (n_rows // 2),
            "w": generator.integers(0, 3, n_rows) + 0.5,
        }
    )


@pytest.fixture(params=["csv", "parquet", "ndjson"])
def path(request, tmp_path):
    path = tmp_path / f"t.{request.param}"
    getattr(table(), f"write_{request.param}")(path)
    return str(path)


NAMES = ["late", "vote", "age", "size"]


def joined(batches):
    codes, weights = zip(*batches, strict=True)
    return np.concatenate([one.array for one in codes]), np.concatenate(weights)


def test_the_codes_are_those_of_a_second_reading(path):
    with open_table(path, **TINY) as file:
        found = LearnedCodes(file, NAMES, {"age": 4}, weights="w")
        array, weights = joined(found.batches())
        beside = joined(codes_in(file, found.domain, "w"))
    np.testing.assert_array_equal(array, beside[0])
    np.testing.assert_array_equal(weights, table()["w"])
    whole = jp.encode(table().select(NAMES), bins={"age": 4}, max_levels=300)
    assert found.domain == whole.domain
    np.testing.assert_array_equal(array, whole.array)


def test_the_file_is_read_once(path, monkeypatch):
    readings = []
    batches = TableFile.batches
    monkeypatch.setattr(
        TableFile, "batches", lambda self, *given: readings.append(1) or batches(self, *given)
    )
    found = jp.fit_rows(jp.Files(path, only=["vote", "size"]), 1, random_state=0)
    assert readings == [1]
    assert found.source.n_rows == 1000


def test_rows_can_be_asked_for_again(path):
    with open_table(path, **TINY) as file:
        found = LearnedCodes(file, NAMES[:2], {}, weights="w")
        np.testing.assert_array_equal(joined(found.batches())[0], joined(found.batches())[0])


def test_what_means_missing_is_missing(path):
    with open_table(path, **TINY) as file:
        found = LearnedCodes(file, ["vote", "size"], {}, missing_code=2, weights="w")
        array, _ = joined(found.batches())
    assert found.domain["size"].levels == (1,)
    assert array[:4, 1].tolist() == [-1, 0, -1, 0]


def test_a_number_outside_of_edges_that_were_placed_without_it(tmp_path):
    pl.DataFrame({"age": [1, 2] * 500 + [1, 5] + [1] * 2000}).write_csv(tmp_path / "t.csv")
    with open_table(str(tmp_path / "t.csv"), **TINY) as file:
        found = LearnedCodes(file, ["age"], {"age": [0, 1.5, 3]}, max_binned=400)
        assert found.domain["age"].size == 2
    with pytest.raises(jp.JointPMFError, match="holds 5 in row 1001, outside of its bins from 0"):
        list(found.batches())


def test_arrays_in_a_file_on_disk():
    kept = CodeFile(most_in_memory=10)
    parts = [[np.arange(k, dtype=np.int8), np.arange(k) / 2] for k in (3, 20, 1)]
    for part in parts:
        kept.write(part)
    for found, part in zip(kept.read(), parts, strict=True):
        for array, wanted in zip(found, part, strict=True):
            np.testing.assert_array_equal(array, wanted)
            assert array.dtype == wanted.dtype


def test_a_temporary_folder_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with pytest.raises(jp.JointPMFError, match="cannot keep codes in the temporary folder"):
        CodeFile(most_in_memory=1).write([np.arange(10)])
