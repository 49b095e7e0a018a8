"""Rows that are opened: files and batches, kept in memory or on disk."""

import logging

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.opening import kept, opened_files
from jointpmf.fit.settings import Effort
from jointpmf.rows.reading import Batches, Files
from jointpmf.rows.source import Table
from jointpmf.rows.spool import SpooledRows
from jointpmf.solvers.loop import Loop

TRUTH = jp.JointPMF(jp.Domain.of_sizes([2] * 5), [0.4, 0.6], [[[0.9, 0.2], [0.1, 0.8]]] * 5)
"""Two components that are clearly apart, so that there is one optimum."""


def rows(n_rows=600):
    """Return rows of which every tenth cell is missing."""
    codes = TRUTH.sample(n_rows, random_state=1, backend="codes").astype(np.int64)
    codes[np.random.default_rng(2).random(codes.shape) < 0.1] = jp.MISSING
    return jp.Codes(TRUTH.domain, codes)


def batches(size=100):
    codes = rows()
    return Batches(
        [jp.Codes(codes.domain, codes.array[k : k + size]) for k in range(0, codes.n_rows, size)],
        codes.domain,
    )


@pytest.fixture
def path(tmp_path):
    table = pl.DataFrame({"age": range(20, 60), "vote": ["yes", "no"] * 20})
    table.write_csv(tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


class TestKept:
    def test_in_memory_while_there_is_room(self):
        asked = []

        def can_hold(n_rows):
            asked.append(n_rows)
            return True

        with kept(batches(), can_hold) as source:
            assert isinstance(source, Table)
            np.testing.assert_array_equal(source.codes.array, rows().array)
        assert asked == [100, 200, 300, 400, 500, 600]

    def test_on_disk_from_when_there_is_none(self, caplog):
        caplog.set_level(logging.INFO, "jointpmf")
        with kept(batches(), lambda n_rows: n_rows <= 350, block_bytes=2000) as source:
            assert isinstance(source, SpooledRows)
            assert source.total == 600
            assert source.spool.n_parts > 1
            np.testing.assert_array_equal(source.counts, Table.of_codes(rows()).counts)
        assert "the codes of 600 rows are on disk" in caplog.text

    def test_an_interrupt_leaves_no_file(self):
        with pytest.raises(KeyboardInterrupt), kept(batches(), None) as source:
            raise KeyboardInterrupt
        assert source.spool._file.closed

    def test_a_fit_to_rows_on_disk_ends_where_one_in_memory_does(self):
        """It begins at the model of a sample, and sees all rows once in steps."""
        effort = Effort(sample_rows=100, step_rows=64)
        fit = EMFit(2, Loop(2000, 1e-12), smoothing=0.5, effort=effort)
        with kept(batches(), None, block_bytes=1000) as source:
            found = fit.run(source, np.random.default_rng(0))
        assert found.start.in_steps
        assert 50 < found.start.n_rows < 200
        beside = fit.run(Table.of_codes(rows()), np.random.default_rng(0))
        assert beside.start.n_rows is None
        assert found.objective == pytest.approx(beside.objective, abs=1e-8)


class TestFiles:
    def test_bins_may_be_given_by_the_names_of_the_columns(self, path):
        def halves(names):
            assert names == ["age", "vote"]
            return {"age": 2}

        with opened_files(Files(path), None, halves) as reading:
            assert reading.domain["age"].size == 2

    def test_only_some_columns(self, path):
        with opened_files(Files(path, drop=["age"]), None, None) as reading:
            assert reading.domain.names == ("vote",)
        with (
            pytest.raises(jp.JointPMFError, match="there is no column 'size'"),
            opened_files(Files(path, only=["size"]), None, None),
        ):
            pass

    def test_a_reading_can_be_fitted(self, path):
        with opened_files(Files(path), None, {"age": 2}) as reading:
            found = jp.fit_rows(reading, 1, random_state=0)
        beside = jp.fit_rows(path, 1, bins={"age": 2}, random_state=0)
        np.testing.assert_array_equal(found.pmf.factors[0], beside.pmf.factors[0])
        assert found.source.n_rows == 40

    def test_zstandard_cannot_be_read_within_a_limit(self, tmp_path):
        packed = tmp_path / "rows.csv.zst"
        pl.DataFrame({"a": [0, 1]}).write_csv(packed, compression="zstd")
        with (
            pytest.raises(jp.JointPMFError, match="packed by zstandard"),
            opened_files(Files(packed, memory="3GB"), None, None),
        ):
            pass
