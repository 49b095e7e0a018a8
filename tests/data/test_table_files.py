"""Tables on disk, read piece by piece: the same rows whatever the pieces; folders of files."""

import contextlib
import gzip
import json
import os
import shutil
import tempfile
import threading

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.data import file_codes
from jointpmf.data.file_codes import _Coder, coded_batches, codes_in
from jointpmf.data.learned_codes import LearnedCodes
from jointpmf.data.table_files import open_table
from jointpmf.data.table_output import table_output

TABLE = pl.DataFrame(
    {
        "text": ["a", "b", None, 'say "no"', "two\nlines", "a,b", "é"] * 12,
        "number": [1, 2, 3, None, 2, 1, 1] * 12,
        "real": [0.5, None, 1.5, 2.5, 0.5, 0.5, 1.5] * 12,
        "truth": [True, None, False, True, True, False, True] * 12,
    }
)


def written(table, path):
    with table_output(str(path)) as write:
        write(table[:50])
        write(table[50:])


WRITERS = {
    "t.csv": pl.DataFrame.write_csv,
    "t.tsv": lambda table, path: table.write_csv(path, separator="\t"),
    "t.csv.gz": lambda table, path: path.write_bytes(gzip.compress(table.write_csv().encode())),
    "t.csv.zst": lambda table, path: table.write_csv(path, compression="zstd"),
    "t.ndjson": pl.DataFrame.write_ndjson,
    "t.ndjson.gz": lambda table, path: path.write_bytes(
        gzip.compress(table.write_ndjson().encode())
    ),
    "t.parquet": lambda table, path: table.write_parquet(path, row_group_size=33),
    "t.arrow": pl.DataFrame.write_ipc,
    "t.feather": pl.DataFrame.write_ipc_stream,
    "t.xlsx": written,
}


def all_codes(table, domain):
    return jp.Codes(domain, np.concatenate([codes.array for codes, _ in codes_in(table, domain)]))


TINY = {"batch_cells": 4 * 11, "batch_bytes": 100}


def read(path, columns=None, **sizes):
    with open_table(str(path), **sizes) as table:
        return list(table.batches(columns))


class TestPieces:
    @pytest.mark.parametrize("name", WRITERS)
    def test_pieces_are_the_whole(self, tmp_path, name):
        WRITERS[name](TABLE, tmp_path / name)
        (whole,) = read(tmp_path / name)
        pieces = read(tmp_path / name, **TINY)
        assert len(pieces) > 5
        assert pl.concat(pieces).equals(whole)
        some = read(tmp_path / name, ["truth", "text"], **TINY)
        assert pl.concat(some).equals(whole.select("truth", "text"))

    @pytest.mark.parametrize("name", WRITERS)
    def test_codes_are_those_of_the_table(self, tmp_path, name):
        WRITERS[name](TABLE, tmp_path / name)
        with open_table(str(tmp_path / name), **TINY) as table:
            domain = LearnedCodes(table, table.columns, {}).domain
            codes = all_codes(table, domain)
            beside = np.concatenate([codes.array for _, codes in coded_batches(table, domain)])
        assert domain == jp.encode(TABLE).domain
        assert np.array_equal(codes.array, jp.encode(TABLE).array)
        assert np.array_equal(codes.array, beside)

    def test_types_that_only_late_lines_need(self, tmp_path):
        lines = [{"a": k % 3} for k in range(60)] + [{"a": 2.5, "b": "late"}]
        (tmp_path / "t.ndjson").write_text("\n".join(map(json.dumps, lines)))
        pieces = read(tmp_path / "t.ndjson", **TINY)
        assert len(pieces) > 2
        assert {piece.schema["a"] for piece in pieces} == {pl.Float64}
        assert pl.concat(pieces)["b"].drop_nulls().to_list() == ["late"]

    @pytest.mark.parametrize("end", ["\n", "\r\n", ""])
    def test_lines_may_end_as_they_like(self, tmp_path, end):
        rows = [f"{k % 3},{k % 2}" for k in range(100)]
        separator = end or "\n"
        path = tmp_path / "t.csv"
        path.write_bytes((separator.join(["a,b", *rows]) + end).encode())
        assert pl.concat(read(path, **TINY)).rows() == [
            (str(k % 3), str(k % 2)) for k in range(100)
        ]

    def test_a_line_longer_than_a_piece_is_one_line(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("a,b\n" + "".join(f'"{"x" * 150}\n{k % 2}",1\n' for k in range(9)))
        assert pl.concat(read(path, **TINY))["a"].to_list() == [
            f"{'x' * 150}\n{k % 2}" for k in range(9)
        ]

    def test_a_name_may_have_several_lines(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text('"a\nb",c\n' + "1,2\n" * 100)
        pieces = read(path, **TINY)
        assert {tuple(piece.columns) for piece in pieces} == {("a\nb", "c")}
        assert sum(map(len, pieces)) == 100

    def test_the_codes_of_a_bad_cell_name_its_row(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("a\n" + "1\n2\n" * 50 + "9\n")
        domain = jp.Domain([jp.Variable("a", (1, 2))])
        with (
            open_table(str(path), **TINY) as table,
            pytest.raises(jp.JointPMFError, match="'9' in row 100"),
        ):
            list(codes_in(table, domain))

    def test_a_packed_file_that_was_cut_off(self, tmp_path):
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)[:-30])
        with pytest.raises(jp.JointPMFError, match=r"cannot read .*t\.csv\.gz"):
            read(path)

    def test_levels_are_matched_once(self, monkeypatch):
        asked = []
        variable = jp.Variable("a", (1, 2, 3))
        level_for = file_codes.level_for
        monkeypatch.setattr(
            file_codes, "level_for", lambda cell, own: asked.append(cell) or level_for(cell, own)
        )
        coder = _Coder(variable)
        assert coder.codes(pl.Series("a", ["1", None, "3"]), 0).tolist() == [0, -1, 2]
        assert coder.codes(pl.Series("a", ["3", "2", "1"]), 3).tolist() == [2, 1, 0]
        assert sorted(asked) == ["1", "2", "3"]
        assert coder.codes(pl.Series("a", [], pl.String), 3).tolist() == []

    def test_nan_is_missing(self, tmp_path):
        pl.DataFrame({"a": [1.5, float("nan"), 2.5, None]}).write_parquet(tmp_path / "t.parquet")
        with open_table(str(tmp_path / "t.parquet")) as table:
            codes = all_codes(table, LearnedCodes(table, ["a"], {}).domain)
        assert codes.array[:, 0].tolist() == [0, -1, 1, -1]


class TestBins:
    def bins(self, path, bins, **options):
        with open_table(str(path), **TINY) as table:
            return LearnedCodes(table, ["age"], {"age": bins}, **options).domain["age"]

    @pytest.fixture
    def path(self, tmp_path):
        ages = np.random.default_rng(0).normal(40, 15, 3000).round(2)
        pl.DataFrame({"age": ages}).write_csv(tmp_path / "t.csv")
        return tmp_path / "t.csv"

    def test_few_numbers_are_all_used(self, path):
        found = self.bins(path, 5)
        wanted = jp.encode(pl.read_csv(path), bins={"age": 5}).domain["age"]
        assert found.edges == pytest.approx(wanted.edges)
        assert found.values == pytest.approx(wanted.values)

    def test_of_many_an_even_part(self, path):
        found = self.bins(path, 5, max_binned=400)
        every = pl.read_csv(path).gather_every(8)
        assert 200 < len(every) <= 400
        assert found == jp.encode(every, bins={"age": 5}).domain["age"]


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path):
        TABLE[:100].write_parquet(tmp_path / "b.parquet")
        TABLE[100:150].write_parquet(tmp_path / "a.parquet")
        TABLE[150:].select(reversed(TABLE.columns)).write_parquet(tmp_path / "c.PARQUET")
        return tmp_path

    def test_a_folder_is_its_files_in_the_order_of_their_names(self, folder):
        whole = pl.concat([TABLE[100:150], TABLE[:100], TABLE[150:]])
        assert pl.concat(read(folder, **TINY)).equals(whole)
        assert pl.concat(read(folder, ["real"], **TINY)).equals(whole.select("real"))

    def test_hidden_and_other_files_are_left_out(self, folder):
        (folder / ".a.parquet.crc").write_bytes(b"junk")
        (folder / ".hidden.parquet").write_bytes(b"junk")
        (folder / "_temporary.parquet").write_bytes(b"junk")
        (folder / "_SUCCESS").write_bytes(b"")
        (folder / "notes.txt").write_text("junk")
        assert sum(map(len, read(folder))) == len(TABLE)

    def test_types_may_be_wider_in_some_files(self, folder):
        wide = TABLE.with_columns(pl.col("number").cast(pl.Int16), pl.lit(None).alias("text"))
        wide.write_parquet(folder / "d.parquet")
        TABLE.with_columns(pl.lit(None).alias("text")).write_parquet(folder / "0.parquet")
        with open_table(str(folder)) as table:
            assert table.schema == TABLE.schema
            assert LearnedCodes(table, table.columns, {}).domain == jp.encode(TABLE).domain
            assert all_codes(table, jp.encode(TABLE).domain).n_rows == 3 * len(TABLE)

    @pytest.mark.parametrize(
        ("table", "says"),
        [
            (TABLE.drop("real"), r"d\.parquet has no column 'real', unlike .*a\.parquet before it"),
            (TABLE.with_row_index("id"), r"d\.parquet has a column 'id', unlike .*a\.parquet"),
            (
                TABLE.with_columns(pl.col("number").cast(pl.String)),
                r"column 'number' of .*d\.parquet is of type String, but of Int64",
            ),
        ],
    )
    def test_files_that_differ_are_named(self, folder, table, says):
        table.write_parquet(folder / "d.parquet")
        with pytest.raises(jp.JointPMFError, match=says):
            read(folder)

    def test_a_file_that_is_no_parquet_is_named(self, folder):
        (folder / "d.parquet").write_bytes(b"PAR1 but not really")
        with pytest.raises(jp.JointPMFError, match=r"cannot read .*d\.parquet"):
            read(folder)

    def test_an_empty_folder(self, tmp_path):
        with pytest.raises(jp.JointPMFError, match=r"holds no file \*\.parquet"):
            read(tmp_path)

    def test_files_without_rows(self, tmp_path):
        TABLE[:0].write_parquet(tmp_path / "a.parquet")
        with open_table(str(tmp_path)) as table, pytest.raises(jp.JointPMFError, match="no rows"):
            LearnedCodes(table, table.columns, {})
        TABLE.write_parquet(tmp_path / "b.parquet")
        assert sum(map(len, read(tmp_path))) == len(TABLE)


QUOTED = 'say "no", or ""'


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "csv.zst"])
def test_a_quote_in_a_name_is_a_quote(ending, tmp_path):
    table = pl.DataFrame({QUOTED: ["a", "b"], '"': ["1", "2"]})
    written(table, tmp_path / f"t.{ending}")
    with open_table(str(tmp_path / f"t.{ending}")) as file:
        assert pl.concat(file.batches([QUOTED, '"'])).equals(table)
        learned = LearnedCodes(file, file.columns, {})
        assert learned.domain.names == (QUOTED, '"')
        assert file.lines().row(0) == tuple(table.columns)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_told(encoding, tmp_path):
    (tmp_path / "t.csv").write_bytes("a,b\nx,y\n".encode(encoding))
    with open_table(str(tmp_path / "t.csv")) as file:
        for read in (lambda: file.columns, file.lines):
            with pytest.raises(jp.JointPMFError, match=r"t\.csv is no text in UTF-8, perhaps in"):
                read()


@pytest.mark.parametrize("ending", ["parquet", "csv", "ndjson"])
def test_a_number_that_means_missing_is_found_in_text_too(ending, tmp_path):
    written(pl.DataFrame({"a": ["-9", "x", "-9.0", "y"] * 20}), tmp_path / f"t.{ending}")
    pmf = jp.fit_rows(str(tmp_path / f"t.{ending}"), 1, missing_code=-9).pmf
    assert pmf.domain["a"].levels == ("x", "y")


class TestPipes:
    def test_one_that_would_fill_the_disk_is_told(self, tmp_path, monkeypatch):
        free = shutil.disk_usage(tmp_path)._replace(free=2**18)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
        os.mkfifo(tmp_path / "t.csv")
        writer = threading.Thread(target=pour, args=(tmp_path / "t.csv", 2**20))
        writer.start()
        with (
            pytest.raises(jp.JointPMFError, match="larger than half of what is free in the temp"),
            open_table(str(tmp_path / "t.csv")),
        ):
            pass
        writer.join()

    @pytest.mark.parametrize("ending", ["csv", "xlsx"])
    def test_a_temporary_folder_that_is_missing_is_told(self, ending, tmp_path, monkeypatch):
        path = tmp_path / f"t.{ending}"
        written(TABLE, path)
        if ending == "csv":
            path = tmp_path / "pipe"
            os.mkfifo(path)
            threading.Thread(target=pour, args=(path, 1)).start()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        with (
            pytest.raises(
                jp.JointPMFError, match=r"cannot keep a copy of .* in the temporary fold"
            ),
            open_table(str(path)),
        ):
            pass

    @pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet", "arrow", "xlsx", "csv.zst"])
    def test_a_table_is_written_to_one_directly(self, ending, tmp_path):
        os.mkfifo(tmp_path / f"pipe.{ending}")
        found = []
        reader = threading.Thread(
            target=lambda: found.append((tmp_path / f"pipe.{ending}").read_bytes())
        )
        reader.start()
        written(TABLE, tmp_path / f"pipe.{ending}")
        reader.join()
        written(TABLE, tmp_path / f"file.{ending}")
        (tmp_path / f"piped.{ending}").write_bytes(found[0])
        rows = []
        for name in ("piped", "file"):
            with open_table(str(tmp_path / f"{name}.{ending}")) as file:
                rows.append([row for batch in file.batches() for row in batch.rows()])
        assert rows[0] == rows[1]


def pour(path, n_bytes):
    """Write to a pipe, until nobody reads it any more."""
    with contextlib.suppress(BrokenPipeError), open(path, "wb") as file:
        for _ in range(n_bytes):
            file.write(b"a,b\n")
