"""Tables written to disk in batches: CSV, TSV, NDJSON, Parquet, Arrow IPC and spreadsheets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import polars as pl

from jointpmf.data.sheets import check_sheet_writer, sheet_output
from jointpmf.data.table_files import kind_of
from jointpmf.data.texts import with_typed_durations
from jointpmf.errors import JointPMFError
from jointpmf.output import atomic_output


def check_output(path: str) -> None:
    """Raise if the name of a file does not say what kind of table to write.

    Examples
    --------
    >>> check_output("o.x")
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: o.x must end in .csv .tsv .ndjson .gz .zst .parquet .arrow .xlsx
    """
    kind, compression = kind_of(path)
    is_stream = path == "-" or (os.path.exists(path) and not os.path.isfile(path))
    is_packed = kind in ("parquet", "arrow") and compression != "uncompressed"
    is_other_sheet = kind == "sheet" and not path.lower().endswith(".xlsx")
    if (kind is None and not is_stream) or is_packed or is_other_sheet:
        ends = ".csv .tsv .ndjson .gz .zst .parquet .arrow .xlsx"
        raise JointPMFError(f"{path} must end in {ends}")
    if kind == "sheet":
        check_sheet_writer()


@contextmanager
def table_output(path: str, as_json: bool = False) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Give a function that writes batches of rows to a file, or to stdout for `-`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with table_output(f"{folder}/t.tsv") as write:
    ...         write(pl.DataFrame({"a": [1]}))
    ...         write(pl.DataFrame({"a": [2]}))
    ...     pl.read_csv(f"{folder}/t.tsv")["a"].to_list()
    [1, 2]
    """
    check_output(path)
    kind, compression = kind_of(path)
    kind = kind or ("ndjson" if as_json else "csv")
    if path == "-":
        sys.stdout.flush()
        with _batch_writer(sys.stdout.buffer, kind, compression) as write:
            yield write
        return
    with atomic_output(path) as file, _batch_writer(file, kind, compression) as write:
        yield write


@contextmanager
def _batch_writer(
    file: BinaryIO, kind: str, compression: Any
) -> Iterator[Callable[[pl.DataFrame], None]]:
    if kind in ("parquet", "arrow"):
        batches: list[pl.DataFrame] = []
        yield batches.append
        table = pl.concat(batches, how="vertical_relaxed")
        (table.write_parquet if kind == "parquet" else table.write_ipc)(file)
    elif kind == "sheet":
        with sheet_output(file) as write:
            yield write
    elif kind == "ndjson":
        yield lambda batch: with_typed_durations(batch).write_ndjson(file, compression=compression)
    else:
        yield _CsvWriter(file, "\t" if kind == "tsv" else ",", compression).write


@dataclass
class _CsvWriter:
    """Writes batches below each other; compressed ones may simply follow one another."""

    file: BinaryIO
    separator: str
    compression: Any
    needs_header: bool = True

    def write(self, batch: pl.DataFrame) -> None:
        """Write more rows."""
        with_typed_durations(batch).write_csv(
            self.file,
            separator=self.separator,
            compression=self.compression,
            include_header=self.needs_header,
        )
        self.needs_header = False
