"""Tables on disk, read in batches, however large they are.

CSV, TSV, NDJSON (plain, gzip or zstandard), Parquet, Arrow IPC, spreadsheets, and folders of
Parquet. Cells of CSV files and of spreadsheets are text here, so that no type is guessed before all
of a column is known. Files are read piece by
piece, because a scan by Polars reads far ahead.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, BinaryIO, TextIO

import polars as pl

from jointpmf.data.sheets import is_sheet, read_sheet
from jointpmf.domain import check_distinct
from jointpmf.errors import JointPMFError
from jointpmf.output import PathLike, checked_path, keeping_codes, reason_of
from jointpmf.threads import made_ahead

_HEAD_BYTES = 2**16
"""Bytes from the beginning of a file, by which its kind and its columns are found."""

_MISSING_TEXTS = ("NA", "NaN", "nan", "null")
"""Cells of CSV files that are missing, besides empty ones."""

_KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

Categories = Mapping[str, pl.Categorical]
"""Columns of text, and the categories that their texts are numbered by."""

_NONE: Categories = MappingProxyType({})

_NO_CHARACTER = "\x1f"
"""A separator that no table has, to read whole lines."""


@dataclass(frozen=True)
class TableFile:
    """A table on disk, of which only a part is in memory at any time."""

    path: str
    name: str
    """What the user calls it, which is not the path if it came from a pipe."""
    missing: tuple[str, ...] = _MISSING_TEXTS
    batch_cells: int = 2**21
    """Cells of a batch that Polars reads itself: of Parquet and zstandard files."""
    batch_bytes: int = 2**22
    """Bytes of a batch of any other text file."""

    @cached_property
    def kind(self) -> str:
        """One of csv, tsv, sheet, parquet, arrow, ndjson: by the name, or by the first bytes."""
        return kind_of(self.name)[0] or self._kind_inside()

    @property
    def is_text(self) -> bool:
        """Whether its cells have no types, only text."""
        return self.kind in ("csv", "tsv", "sheet")

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns; none of them twice."""
        with _reading(self.name):
            names = self._names_in_text if self.is_text else self.schema.names()
        check_distinct(names, self.name)
        return names

    @cached_property
    def _names_in_text(self) -> list[str]:
        header = pl.read_csv(self._head, has_header=False, n_rows=1, **self._csv_options())
        names = ["" if name is None else name for name in header.row(0)]
        if any("\0" in name for name in names):
            raise JointPMFError(f"{self.name} is no text in UTF-8, perhaps in UTF-16")
        return names

    @cached_property
    def schema(self) -> pl.Schema:
        """The types of the columns, where the file has types."""
        with _reading(self.name):
            if self.kind in ("parquet", "arrow"):
                return self._scan().collect_schema()
            if self.is_read_ahead:
                return self._lines(self.path).collect_schema()
            empty = [self._lines(piece).collect_schema().to_frame() for piece in self._pieces()]
            return pl.concat(empty or [pl.DataFrame()], how="diagonal_relaxed").schema

    def batches(
        self, columns: Sequence[str] | None = None, categories: Categories = _NONE
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows, some at a time, of these columns or all.

        Instead of the texts of some columns there are their numbers by `categories`, the largest
        of all, 2**32 − 1, where one is missing. Texts of a text file that mean missing have numbers
        of their own, if there are no other columns.
        """
        kept = list(self.columns if columns is None else columns)
        with _reading(self.name):
            if self.kind in ("parquet", "arrow"):
                yield from self._slices(_numbered(self._scan().select(kept), categories))
            elif self.is_read_ahead:
                rows = max(self.batch_cells // len(self.columns), 1)
                frame = _numbered(self._lines(self.path).select(kept), categories)
                yield from frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)
            else:
                schema = None if self.is_text else self.schema

                def parsed(piece: io.BytesIO) -> pl.DataFrame:
                    frame = self._lines(piece, schema, kept, categories)
                    return _numbered(frame.select(kept), categories).collect()

                yield from made_ahead(parsed, self._pieces())

    def lines(self) -> pl.DataFrame:
        """Return all cells of a text file, those of its header too, as text."""
        with _reading(self.name):
            source: Any = self.path
            _ = self._names_in_text  # which raises if it is no text
            if not self.is_read_ahead:
                with self._opened() as file:
                    source = file.read()
            options = self._csv_options() | {"null_values": list(self.missing)}
            return pl.read_csv(source, has_header=False, **options)

    def _scan(self) -> pl.LazyFrame:
        if self.kind == "parquet":
            return pl.scan_parquet(self.path, glob=False)
        if self._begins_with(b"ARROW1"):
            return pl.scan_ipc(self.path, glob=False)
        return pl.read_ipc_stream(self.path).lazy()  # the form of a pipe, which has no index

    def _slices(self, frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        n_rows = int(frame.select(pl.len()).collect().item())
        size = max(self.batch_cells // max(len(frame.collect_schema()), 1), 1)
        begins = range(0, max(n_rows, 1), size)  # without rows there is an empty batch
        yield from made_ahead(lambda begin: frame.slice(begin, size).collect(), begins)

    def _lines(
        self,
        source: Any,
        schema: pl.Schema | None = None,
        columns: Sequence[str] = (),
        categories: Categories = _NONE,
    ) -> pl.LazyFrame:
        """Return lines of text as a table; without a schema those of NDJSON give it themselves.

        The parser itself makes categories, which is faster than a cast of its texts.
        """
        if self.kind == "ndjson":
            return pl.scan_ndjson(source, schema=schema, infer_schema_length=None)
        options = self._csv_options() | {"schema_overrides": dict(categories)}
        if not columns or {*columns} - {*categories}:  # to compare each cell with them takes time
            options["null_values"] = list(self.missing)
        # Polars itself leaves quotes inside of a name as they are written, two for one
        return pl.scan_csv(source, glob=False, with_column_names=lambda _: self.columns, **options)

    @property
    def is_read_ahead(self) -> bool:
        """Whether it is packed so that only Polars can read it (zstandard), far ahead."""
        with _reading(self.name):
            return self._begins_with(b"\x28\xb5\x2f\xfd")

    def _begins_with(self, mark: bytes) -> bool:
        with open(self.path, "rb") as file:
            return file.read(len(mark)) == mark

    def _opened(self) -> Any:
        """Return the file, unpacked."""
        return (gzip.open if self._begins_with(b"\x1f\x8b") else open)(self.path, "rb")

    @cached_property
    def _head(self) -> Any:
        """The first lines, or a file that begins with them."""
        if self.is_read_ahead:
            return self.path
        with self._opened() as lines:
            header, more = _header(lines), lines.read(_HEAD_BYTES)
            return header + (more[: _end_of_lines(more, b"")] or more)

    def _pieces(self) -> Iterator[io.BytesIO]:
        """Yield some whole lines at a time, in CSV files each time below the header."""
        with self._opened() as lines:
            header = _header(lines) if self.is_text else b""
            rest, is_first = b"", True
            while piece := lines.read(self.batch_bytes):
                rest += piece
                end = _end_of_lines(rest, b'"' if self.is_text else b"")
                if end:
                    yield io.BytesIO(b"".join((header, memoryview(rest)[:end])))
                    rest, is_first = rest[end:], False
            if rest or is_first:
                yield io.BytesIO(header + rest)

    def _csv_options(self) -> dict[str, Any]:
        return {"separator": self._separator, "infer_schema": False}

    @cached_property
    def _separator(self) -> str:
        if self.kind == "tsv":
            return "\t"
        if self.kind == "sheet":
            return ","
        line = self._first_line
        return next((mark for mark in (",", ";", "\t") if mark in line), ",")

    @cached_property
    def _first_line(self) -> str:
        with _reading(self.name):
            lines = pl.read_csv(
                self._head,
                has_header=False,
                n_rows=1,
                separator=_NO_CHARACTER,
                quote_char=None,
                infer_schema=False,
            )
            return str(lines.item(0, 0) or "")

    def _kind_inside(self) -> str:
        with _reading(self.name):
            if self._begins_with(b"PAR1"):
                return "parquet"
            if self._begins_with(b"ARROW1") or self._begins_with(b"\xff\xff\xff\xff"):
                return "arrow"
            if self._begins_with(b"PK\x03\x04"):
                raise JointPMFError(
                    f"{self.name} looks like a spreadsheet: give it a name that ends in .xlsx"
                )
        line = self._first_line.lstrip()
        if line.startswith("["):
            raise JointPMFError(
                f"{self.name} begins like a JSON list; write one object per line (NDJSON)"
            )
        if line.startswith("{"):
            return "ndjson"
        return "tsv" if "\t" in line and "," not in line else "csv"


def _header(lines: Any) -> bytes:
    """Return the first line; a name between quotes may go over several."""
    header = lines.readline()
    while header.count(b'"') % 2 and (line := lines.readline()):
        header += line
    return header if header.endswith(b"\n") or not header else header + b"\n"


def _end_of_lines(text: bytes, quote: bytes) -> int:
    """Return where the last whole line of a text ends; between quotes no line ends."""
    end = text.rfind(b"\n") + 1
    has_quotes = bool(quote) and quote in text  # far faster than to count none
    while end and has_quotes and text.count(quote, 0, end) % 2:
        end = text.rfind(b"\n", 0, end - 1) + 1
    return end


@dataclass(frozen=True)
class TableFolder(TableFile):
    """Several files of the same columns as one table: those of a folder, or some that are named."""

    files: tuple[TableFile, ...] = ()

    @classmethod
    def at(cls, path: str, **sizes: int) -> TableFolder:
        """Return the table in a folder; names that begin with a dot or an underscore are hidden."""
        with _reading(path):
            names = sorted(name for name in os.listdir(path) if name[0] not in "._")
        paths = [os.path.join(path, name) for name in names if name.lower().endswith(".parquet")]
        if not paths:
            raise JointPMFError(f"cannot read {path}: the folder holds no file *.parquet")
        return cls(
            path,
            path,
            files=tuple(TableFile(file, file, _MISSING_TEXTS, **sizes) for file in paths),
        )

    @cached_property
    def kind(self) -> str:
        """What all of its files are."""
        first, *others = self.files
        for file in others:
            if file.is_text != first.is_text:
                raise JointPMFError(f"{file.name} is {file.kind}, but {first.name} is {first.kind}")
        return first.kind

    @property
    def is_read_ahead(self) -> bool:
        """Whether one of them is packed as a whole."""
        return any(file.is_read_ahead for file in self.files)

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns, which all files have."""
        first, *others = self.files
        for file in others:
            if odd := sorted({*first.columns} ^ {*file.columns}):
                has = "a" if odd[0] in file.columns else "no"
                raise JointPMFError(
                    f"{file.name} has {has} column {odd[0]!r}, unlike {first.name} before it"
                )
        return first.columns

    @cached_property
    def schema(self) -> pl.Schema:
        """The types of the columns, wide enough for all files."""
        first, *others = self.files
        types = {name: first.schema[name] for name in self.columns}
        for file in others:
            for name, dtype in file.schema.items():
                types[name] = _common_type(types[name], dtype, f"column {name!r} of {file.name}")
        return pl.Schema(types)

    def batches(
        self, columns: Sequence[str] | None = None, categories: Categories = _NONE
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows of all files, some at a time, as those of one file."""
        kept = self.columns if columns is None else columns
        typed = [] if self.is_text else [name for name in kept if name not in categories]
        types = pl.Schema({name: self.schema[name] for name in typed})
        for file in self.files:
            for batch in file.batches(kept, categories):
                yield batch.cast(types) if types else batch


def _numbered(frame: pl.LazyFrame, categories: Categories) -> pl.LazyFrame:
    """Return a table with numbers instead of the texts of some columns."""
    return frame.with_columns(
        pl.col(name).cast(dtype).to_physical().fill_null(2**32 - 1)
        for name, dtype in categories.items()
    )


def _common_type(first: Any, second: Any, where: str) -> Any:
    """Return a type for the cells of both columns: of numbers, or of equal types."""
    if first == second or second == pl.Null:
        return first
    if first == pl.Null:
        return second
    if first.is_numeric() and second.is_numeric():
        both = [pl.DataFrame(schema={"": dtype}) for dtype in (first, second)]
        return pl.concat(both, how="vertical_relaxed").schema[""]
    raise JointPMFError(f"{where} is of type {second}, but of {first} in the files before it")


def kind_of(name: str) -> tuple[str | None, str]:
    """Return a file's kind, or None if its name does not say it, and its compression."""
    if is_sheet(name):
        return "sheet", "uncompressed"
    stem, last = os.path.splitext(name.lower())
    compression = _COMPRESSIONS.get(last, "uncompressed")
    kind = _KINDS.get(os.path.splitext(stem)[1] if last in _COMPRESSIONS else last)
    return kind, compression


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turn an error while a file is read into one sentence."""
    try:
        yield
    except pl.exceptions.NoDataError:
        raise JointPMFError(f"{name} is empty") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise JointPMFError(f"cannot read {name}: {_why(str(error))}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise JointPMFError(f"cannot read {name}: {reason_of(error)}") from None


def _why(message: str) -> str:
    if "more fields" in message:
        return "a line has more cells than the header"
    if "utf-8" in message.lower() or "utf8" in message.lower():
        return "it is neither text in UTF-8 nor Parquet"
    return (message.strip().splitlines() or ["unknown error"])[0].rstrip(".")


@contextmanager
def open_table(path: str, missing: Iterable[str] = (), **sizes: int) -> Iterator[TableFile]:
    """Give the table at a path, or on stdin for `-`; a pipe is copied to disk first.

    `missing` are more texts that mean missing; `sizes` are those of a batch, as in `TableFile`.
    """
    texts = (*_MISSING_TEXTS, *missing)
    if path == "-":
        _check_ends(_behind(sys.stdin), "the input")
        with _spooled(sys.stdin.buffer, "the input") as spooled:
            yield TableFile(spooled, "the input", texts, **sizes)
        return
    try:
        found = os.stat(path)
        mode = found.st_mode
    except (OSError, ValueError) as error:
        raise JointPMFError(f"cannot read {path}: {reason_of(error)}") from None
    if stat.S_ISDIR(mode):
        yield TableFolder.at(path, **sizes)
        return
    if stat.S_ISREG(mode) and is_sheet(path):
        cells = io.BytesIO(read_sheet(path).write_csv(include_header=False).encode())
        with _spooled(cells, path) as csv:
            yield TableFile(csv, path, texts, **sizes)
        return
    if stat.S_ISREG(mode):
        yield TableFile(path, path, texts, **sizes)
        return
    _check_ends(found, path)
    with _reading(path), open(path, "rb") as pipe, _spooled(pipe, path) as spooled:
        yield TableFile(spooled, path, texts, **sizes)


@contextmanager
def open_tables(
    paths: PathLike | Sequence[PathLike], missing: Iterable[str] = ()
) -> Iterator[TableFile]:
    """Give the table at a path, or several of them as one table."""
    given: list[Any] = list(paths) if isinstance(paths, (list, tuple)) else [paths]
    if not given:
        raise JointPMFError("there is no table file in an empty list")
    several = [checked_path(path, "a table file") for path in given]
    with ExitStack() as stack:
        tables = [stack.enter_context(open_table(path, missing)) for path in several]
        name = f"{tables[0].name} and {len(tables) - 1} more"
        one = TableFolder(name, name, tables[0].missing, files=tuple(tables))
        yield tables[0] if len(tables) == 1 else one


def _behind(stream: TextIO) -> os.stat_result | None:
    """Return what a stream reads from, if that is known to the system and no terminal."""
    try:
        return None if stream.isatty() else os.fstat(stream.fileno())
    except (OSError, ValueError):
        return None


def _check_ends(found: os.stat_result | None, name: str) -> None:
    """Raise if something is a device, such as /dev/zero, whose bytes have no end."""
    if found is None or not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
        return
    if found.st_rdev != os.stat(os.devnull).st_rdev:
        raise JointPMFError(f"cannot read {name}: it is a device, not a file")


@contextmanager
def _spooled(source: BinaryIO, name: str) -> Iterator[str]:
    with ExitStack() as stack:
        with keeping_codes(f"a copy of {name}"):
            file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="jointpmf-"))
            _copy(source, file, name)
        yield file.name


def _copy(source: BinaryIO, file: Any, name: str) -> None:
    """Copy a pipe to a file, but not one that fills the disk: it may have no end."""
    folder = os.path.dirname(file.name)
    room = shutil.disk_usage(folder).free // 2
    while piece := source.read(_HEAD_BYTES):
        room -= len(piece)
        if room < 0:
            raise JointPMFError(
                f"cannot read {name}: it is larger than half of what is free in the temporary "
                f"folder {folder}; set TMPDIR to another, or write it to a file"
            )
        file.write(piece)
    file.flush()
