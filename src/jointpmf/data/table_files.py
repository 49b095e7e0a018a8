"""Tables on disk: read in batches, however large, and written whole or not at all.

CSV, TSV, NDJSON (plain, gzip or zstandard), Parquet, and folders of Parquet. A file is read twice:
once for the levels of its columns, once for the codes, so that only small integers are ever in
memory all at once. Cells of CSV files are text until all of a column is known, so that no type is
guessed too early. Files are read piece by piece here, because a scan by Polars reads far ahead.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, Protocol

import numpy as np
import polars as pl

from jointpmf.data.encoding import MAX_NUMERIC_LEVELS, Codes, Unknown, encode
from jointpmf.domain import (
    MISSING,
    Domain,
    Variable,
    check_distinct,
    listing_of_texts,
    matching_level,
    number_in,
    text_of,
)
from jointpmf.errors import JointPMFError, shown
from jointpmf.marginals.marginal_set import ROUNDING, Marginal, MarginalSet
from jointpmf.model_file import atomic_output, reason_of

BATCH_CELLS, BATCH_BYTES, HEAD_BYTES = 2**21, 2**21, 2**16
"""Cells of a Parquet file, and bytes of a text file, that are in memory at a time; and bytes by
which it is told what a file is."""

MAX_BINNED = 2**22
"""Numbers by which a column is cut into bins; of more of them, every second one, and so on."""

UNKNOWN = -2
"""The code of a cell that no level was found for yet."""

MAX_LEVELS = 100_000
"""A column with more levels is not discrete."""

MISSING_TEXTS = ("NA", "NaN", "nan", "null")
"""Cells of CSV files that are missing, besides empty ones."""

KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

NO_CHARACTER = "\x1f"
"""A separator that no table has, to read whole lines."""

MEASURES = ("count", "probability")
"""What the last column of a long table may be."""


@dataclass(frozen=True)
class TableFile:
    """A table on disk, of which only a part is in memory at any time."""

    path: str
    name: str
    """What the user calls it; not the path where it was read from a pipe."""
    missing: tuple[str, ...] = MISSING_TEXTS

    @cached_property
    def kind(self) -> str:
        """One of csv, tsv, parquet, ndjson: by the file's name, else by what it begins with."""
        return _kind_of(self.name)[0] or self._kind_inside()

    @property
    def is_text(self) -> bool:
        """Whether its cells have no types, only text."""
        return self.kind in ("csv", "tsv")

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns; none of them twice."""
        with _reading(self.name):
            if self.is_text:
                header = pl.read_csv(self._head, has_header=False, n_rows=1, **self._csv_options())
                names = ["" if name is None else name for name in header.row(0)]
            else:
                names = self.schema.names()
        check_distinct(names, self.name)
        return names

    @cached_property
    def schema(self) -> pl.Schema:
        """The types of the columns, where the file has types."""
        with _reading(self.name):
            if self.kind == "parquet":
                return pl.scan_parquet(self.path, glob=False).collect_schema()
            if self.is_read_ahead:
                return self._lines(self.path).collect_schema()
            empty = [self._lines(piece).collect_schema().to_frame() for piece in self._pieces()]
            return pl.concat(empty or [pl.DataFrame()], how="diagonal_relaxed").schema

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the rows, some at a time, of these columns or of all."""
        kept = list(self.columns if columns is None else columns)
        with _reading(self.name):
            if self.kind == "parquet":
                yield from self._slices(pl.scan_parquet(self.path, glob=False).select(kept))
            elif self.is_read_ahead:
                rows = max(BATCH_CELLS // len(self.columns), 1)
                frame = self._lines(self.path).select(kept)
                yield from frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)
            else:
                schema = None if self.is_text else self.schema
                for piece in self._pieces():
                    yield self._lines(piece, schema).select(kept).collect()

    def _slices(self, frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        n_rows = int(frame.select(pl.len()).collect().item())
        size = max(BATCH_CELLS // max(len(frame.collect_schema()), 1), 1)
        for begin in range(0, n_rows, size):
            yield frame.slice(begin, size).collect()

    def _lines(self, source: Any, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return lines of text as a table; without a schema those of NDJSON give it themselves."""
        if self.kind == "ndjson":
            return pl.scan_ndjson(source, schema=schema, infer_schema_length=None)
        options = self._csv_options() | {"null_values": list(self.missing)}
        return pl.scan_csv(source, glob=False, **options)

    @property
    def is_read_ahead(self) -> bool:
        """Whether only Polars can unpack it (zstandard), which then reads far ahead."""
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
            header, more = _header(lines), lines.read(HEAD_BYTES)
            return header + (more[: _end_of_lines(more, b"")] or more)

    def _pieces(self) -> Iterator[io.BytesIO]:
        """Yield some whole lines at a time, in CSV files each time below the header."""
        with self._opened() as lines:
            header = _header(lines) if self.is_text else b""
            rest, is_first = b"", True
            while piece := lines.read(BATCH_BYTES):
                rest += piece
                end = _end_of_lines(rest, b'"' if self.is_text else b"")
                if end:
                    yield io.BytesIO(header + rest[:end])
                    rest, is_first = rest[end:], False
            if rest or is_first:
                yield io.BytesIO(header + rest)

    def _csv_options(self) -> dict[str, Any]:
        return {"separator": self._separator, "infer_schema": False}

    @cached_property
    def _separator(self) -> str:
        if self.kind == "tsv":
            return "\t"
        line = self._first_line
        return next((mark for mark in (",", ";", "\t") if mark in line), ",")

    @cached_property
    def _first_line(self) -> str:
        with _reading(self.name):
            lines = pl.read_csv(
                self._head,
                has_header=False,
                n_rows=1,
                separator=NO_CHARACTER,
                quote_char=None,
                infer_schema=False,
            )
            return str(lines.item(0, 0) or "")

    def _kind_inside(self) -> str:
        with _reading(self.name):
            if self._begins_with(b"PAR1"):
                return "parquet"
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
    while end and quote and text.count(quote, 0, end) % 2:
        end = text.rfind(b"\n", 0, end - 1) + 1
    return end


@dataclass(frozen=True)
class TableFolder(TableFile):
    """Parquet files of the same columns in a folder: one table, in the order of their names."""

    files: tuple[TableFile, ...] = ()

    @classmethod
    def at(cls, path: str) -> TableFolder:
        """Return the table in a folder; names that begin with a dot or an underscore are hidden."""
        with _reading(path):
            names = sorted(name for name in os.listdir(path) if name[0] not in "._")
        paths = [os.path.join(path, name) for name in names if name.lower().endswith(".parquet")]
        if not paths:
            raise JointPMFError(f"cannot read {path}: the folder holds no file *.parquet")
        return cls(path, path, files=tuple(TableFile(file, file) for file in paths))

    @cached_property
    def kind(self) -> str:
        """What all of its files are."""
        return "parquet"

    @property
    def is_read_ahead(self) -> bool:
        """Whether it is packed as a whole."""
        return False

    @cached_property
    def schema(self) -> pl.Schema:
        """The types of the columns, wide enough for all files."""
        first, *others = self.files
        types = dict(first.schema)
        for file in others:
            if odd := sorted({*types} ^ {*file.schema}):
                has = "a" if odd[0] in file.schema else "no"
                raise JointPMFError(
                    f"{file.name} has {has} column {odd[0]!r}, unlike {first.name} before it"
                )
            for name, dtype in file.schema.items():
                types[name] = _common_type(types[name], dtype, f"column {name!r} of {file.name}")
        return pl.Schema(types)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the rows of all files, some at a time, of these columns or of all."""
        for file in self.files:
            for batch in file.batches(self.columns if columns is None else columns):
                yield batch.cast({name: self.schema[name] for name in batch.columns})


def _common_type(first: Any, second: Any, where: str) -> Any:
    """Return a type that holds the cells of two columns of numbers, or of two that are alike."""
    if first == second or second == pl.Null:
        return first
    if first == pl.Null:
        return second
    if first.is_numeric() and second.is_numeric():
        both = [pl.DataFrame(schema={"": dtype}) for dtype in (first, second)]
        return pl.concat(both, how="vertical_relaxed").schema[""]
    raise JointPMFError(f"{where} is of type {second}, but of {first} in the files before it")


def _kind_of(name: str) -> tuple[str | None, str]:
    """Return a file's kind and compression by its name; None where that does not tell."""
    stem, last = os.path.splitext(name.lower())
    compression = COMPRESSIONS.get(last, "uncompressed")
    kind = KINDS.get(os.path.splitext(stem)[1] if last in COMPRESSIONS else last)
    return kind, compression


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read into a sentence."""
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
def open_table(path: str, missing: Iterable[str] = ()) -> Iterator[TableFile]:
    """Give the table at a path, or on stdin for `-`; what comes from a pipe is kept on disk.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pl.DataFrame({"a": [1, 2], "b": ["x", None]}).write_csv(f"{folder}/t.csv")
    ...     with open_table(f"{folder}/t.csv") as table:
    ...         table.columns, [batch.shape for batch in table.batches()]
    (['a', 'b'], [(2, 2)])
    """
    texts = (*MISSING_TEXTS, *missing)
    if path == "-":
        with _spooled(sys.stdin.buffer) as spooled:
            yield TableFile(spooled, "the input", texts)
        return
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        raise JointPMFError(f"cannot read {path}: {reason_of(error)}") from None
    if stat.S_ISDIR(mode):
        yield TableFolder.at(path)
        return
    if stat.S_ISREG(mode):
        yield TableFile(path, path, texts)
        return
    with _reading(path), open(path, "rb") as pipe, _spooled(pipe) as spooled:
        yield TableFile(spooled, path, texts)


@contextmanager
def _spooled(source: BinaryIO) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(prefix="jointpmf-") as file:
        shutil.copyfileobj(source, file)
        file.flush()
        yield file.name


def learned_domain(
    table: TableFile, names: Sequence[str], bins: Mapping[str, int | Sequence[float]]
) -> Domain:
    """Return the domain of some columns, after one pass over the rows (two where some are binned).

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pl.DataFrame({"a": [1, 2], "b": ["x", None]}).write_csv(f"{folder}/t.csv")
    ...     with open_table(f"{folder}/t.csv") as table:
    ...         [variable.levels for variable in learned_domain(table, ["a", "b"], {})]
    [(1, 2), ('x',)]
    """
    plain = [name for name in names if name not in bins]
    variables = {name: _binned(table, name, bins[name]) for name in names if name in bins}
    for name, found in _distinct_cells(table, plain).items():
        variables[name] = found.variable(table.is_text)
    return Domain([variables[name] for name in names])


def _binned(table: TableFile, name: str, bins: int | Sequence[float]) -> Variable:
    kept, stride = pl.DataFrame(schema={name: pl.Null}), 1
    n_rows = 0
    for batch in table.batches([name]):
        numbers = _as_numbers(batch[name])
        if not numbers.dtype.is_numeric():
            raise JointPMFError(f"column {name!r} cannot be binned: it does not hold numbers only")
        some = numbers.gather_every(stride, -n_rows % stride).to_frame()
        kept = pl.concat([kept, some], how="vertical_relaxed")
        n_rows += len(batch)
        if len(kept) > MAX_BINNED:
            kept, stride = kept.gather_every(2), 2 * stride
    if not n_rows:
        raise JointPMFError(f"{table.name} has no rows")
    return encode(kept, bins={name: bins}).domain[name]


@dataclass
class _Distinct:
    """The different cells of a column, as far as it has been read."""

    cells: pl.Series
    n_observed: int = 0

    def add(self, column: pl.Series) -> None:
        """Take more of the column into account."""
        self.n_observed += len(column) - column.null_count()
        self.cells = pl.concat([self.cells, column.unique()]).unique().drop_nulls()
        if len(self.cells) > MAX_LEVELS:
            raise self._too_many()

    def variable(self, is_text: bool) -> Variable:
        """Return the variable that the whole column is."""
        if not len(self.cells):
            raise JointPMFError(
                f"column {self.cells.name!r} has no observed cell; leave it out with --drop"
            )
        cells = _typed(self.cells) if is_text else self.cells
        limit = MAX_NUMERIC_LEVELS
        if len(cells) > limit and (cells.dtype.is_numeric() or 2 * len(cells) > self.n_observed):
            raise self._too_many()
        return encode(cells.to_frame()).domain[cells.name]

    def _too_many(self) -> JointPMFError:
        name, number = self.cells.name, len(self.cells)
        if _typed(self.cells).dtype.is_numeric():
            return JointPMFError(
                f"column {name!r} has more than {MAX_NUMERIC_LEVELS} different numbers: cut it "
                f'with --bins "{name}=8", or leave it out with --drop "{name}"'
            )
        return JointPMFError(
            f"column {name!r} has {number} different texts, too many to learn from: leave it out "
            f'with --drop "{name}"'
        )


def _distinct_cells(table: TableFile, names: Sequence[str]) -> dict[str, _Distinct]:
    found: dict[str, _Distinct] = {}
    n_rows = 0
    for batch in table.batches(names) if names else ():
        n_rows += len(batch)
        for column in batch:
            found.setdefault(column.name, _Distinct(column.clear())).add(column)
    if names and not n_rows:
        raise JointPMFError(f"{table.name} has no rows")
    return found


def _typed(cells: pl.Series) -> pl.Series:
    """Return distinct texts as whole numbers, numbers or truth values, if all of them are that."""
    if cells.dtype != pl.String:
        return cells
    texts = cells.to_list()
    if {text.lower() for text in texts} <= {"true", "false"}:
        return pl.Series(cells.name, [text.lower() == "true" for text in texts]).unique()
    numbers = [number_in(text) for text in texts]
    if any(number is None or not np.isfinite(number) for number in numbers):
        return cells
    whole = all(isinstance(number, int) for number in numbers)
    if whole and any(str(n) != text.strip() for n, text in zip(numbers, texts, strict=True)):
        return cells  # 00501 is no number but a code
    return pl.Series(cells.name, numbers, None if whole else pl.Float64).unique()


class Batched(Protocol):
    """A table that is read some rows at a time."""

    def batches(self) -> Iterator[pl.DataFrame]:
        """Yield the rows, some at a time."""


def coded_batches(
    table: Batched, domain: Domain, unknown: Unknown = "error"
) -> Iterator[tuple[pl.DataFrame, Codes]]:
    """Yield the rows, some at a time: all columns with the domain's levels, and their codes.

    Cells are matched with levels by their text where their types differ.

    Examples
    --------
    >>> domain = Domain([Variable("a", (1, 2))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pl.DataFrame({"a": ["2", "1"]}).write_csv(f"{folder}/t.csv")
    ...     with open_table(f"{folder}/t.csv") as table:
    ...         [codes.array.tolist() for _, codes in coded_batches(table, domain)]
    [[[1], [0]]]
    """
    n_rows = 0
    for batch in table.batches():
        columns = [
            _as_levels(batch[variable.name], variable, unknown, n_rows)
            for variable in domain
            if variable.name in batch.columns
        ]
        frame = batch.with_columns(columns)
        yield frame, encode(frame, domain, unknown=unknown)
        n_rows += len(batch)


def codes_in(table: TableFile, domain: Domain) -> Iterator[Codes]:
    """Yield the codes of the rows, some at a time; there is at least one row.

    Examples
    --------
    >>> domain = Domain([Variable("a", (1, 2))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pl.DataFrame({"a": [2, 1, None]}).write_parquet(f"{folder}/t.parquet")
    ...     with open_table(f"{folder}/t.parquet") as table:
    ...         [codes.array[:, 0].tolist() for codes in codes_in(table, domain)]
    [[1, 0, -1]]
    """
    coders = [_Coder(variable) for variable in domain]
    n_rows = 0
    for batch in table.batches(domain.names):
        columns = [coder.codes(batch[coder.variable.name], n_rows) for coder in coders]
        n_rows += len(batch)
        yield Codes(domain, np.array(columns).T)
    if not n_rows:
        raise JointPMFError(f"{table.name} has no rows")


class _Coder:
    """What gives the cells of a column their codes, and remembers those that it has met."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self._cells: pl.Series | None = None
        self._codes: list[int] = []

    def codes(self, column: pl.Series, first_row: int) -> np.ndarray:
        """Return the codes of a column's cells; the row of the first is for messages."""
        if self.variable.edges is not None:
            levels = _as_levels(column, self.variable, "error", first_row)
            return encode(levels.to_frame(), Domain([self.variable])).columns[0]
        if column.dtype.is_float():
            column = column.fill_nan(None)
        codes = self._known_codes(column)
        if codes.min(initial=0) == UNKNOWN:
            self._learn(column, first_row)
            codes = self._known_codes(column)
        return codes

    def _known_codes(self, column: pl.Series) -> np.ndarray:
        if self._cells is None:
            return np.where(column.is_null(), MISSING, UNKNOWN)
        codes = pl.Series(self._codes, dtype=pl.Int32)
        found = column.replace_strict(self._cells, codes, default=UNKNOWN, return_dtype=pl.Int32)
        return found.set(column.is_null(), MISSING).to_numpy()

    def _learn(self, column: pl.Series, first_row: int) -> None:
        """Find the codes of cells that were not met before."""
        cells = column.unique().drop_nulls()
        if self._cells is not None:
            cells = cells.filter(~cells.is_in(self._cells.implode()))
        for k, cell in enumerate(cells.to_list()):
            level = _level_for(cell, self.variable)
            if level is None:
                _refuse(column, column == cells[k : k + 1], self.variable, first_row)
            self._codes.append(self.variable.code(level))
        self._cells = cells if self._cells is None else self._cells.append(cells)


def _as_levels(
    column: pl.Series, variable: Variable, unknown: Unknown, first_row: int
) -> pl.Series:
    """Return a column's cells as the variable's own levels, or as numbers where it has bins."""
    if variable.edges is not None:
        numbers = _as_numbers(column)
        if numbers.dtype.is_numeric():
            outside = (numbers < variable.edges[0]) | (numbers > variable.edges[-1])
            if unknown == "error":
                _refuse(column, outside, variable, first_row)
            return numbers.set(outside.fill_null(False), None)
    cells = column.unique().drop_nulls()
    levels = [_level_for(cell, variable) for cell in cells.to_list()]
    if None in levels and unknown == "error":
        strange = cells.filter(pl.Series([level is None for level in levels]))
        _refuse(column, column.is_in(strange.implode()), variable, first_row)
    if levels == cells.to_list() and {*map(type, levels)} == {*map(type, cells.to_list())}:
        return column
    try:
        new = pl.Series(levels, dtype=_dtype_of(variable))
    except (TypeError, pl.exceptions.PolarsError):  # levels of several types: leave it to encode
        return column
    return column.replace_strict(cells, new, default=None, return_dtype=new.dtype)


def _dtype_of(variable: Variable) -> Any:
    return pl.Series(list(variable.levels)).dtype


def _level_for(cell: Any, variable: Variable) -> Any:
    if cell in variable:
        return variable.levels[variable.code(cell)]
    return matching_level(variable, text_of(cell).strip())


def _refuse(column: pl.Series, where: pl.Series, variable: Variable, first_row: int) -> None:
    if where.any():
        row = int(where.arg_true()[0])
        raise JointPMFError(
            f"column {column.name!r} holds {shown(column[row])} in row {first_row + row}, which is "
            f"none of its levels {listing_of_texts(variable.levels)}"
        )


def _as_numbers(column: pl.Series) -> pl.Series:
    """Return texts as numbers if all of them are; a column without any cell is of any type."""
    if column.dtype not in (pl.String, pl.Null):
        return column
    texts = column.cast(pl.String).str.strip_chars()
    for dtype in (pl.Int64, pl.Float64):
        numbers = texts.cast(dtype, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
    return column


def read_marginals(paths: Sequence[str], missing: Iterable[str] = ()) -> MarginalSet:
    """Return the marginals in long tables: a column per variable, and a count or probability.

    Levels are the union of all tables': numbers in their order, texts in that of their appearance.
    Cells that a table does not list are zero.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = {"sex": ["f", "m"], "vote": ["no", "yes"], "count": [3, 1]}
    ...     _ = pl.DataFrame(rows).write_csv(f"{folder}/t.csv")
    ...     read_marginals([f"{folder}/t.csv"])[0].table.tolist()
    [[0.75, 0.0], [0.0, 0.25]]
    """
    tables = [_long_table(path, tuple(missing)) for path in paths]
    texts: dict[str, list[str]] = {}
    for table in tables:
        for column in table.get_columns()[:-1]:
            texts[column.name] = [*texts.get(column.name, []), *column]
    domain = Domain([_listed_variable(name, cells) for name, cells in texts.items()])
    marginals = [_marginal(path, table, domain) for path, table in zip(paths, tables, strict=True)]
    return MarginalSet(domain, marginals)


def _long_table(path: str, missing: tuple[str, ...]) -> pl.DataFrame:
    with open_table(path, missing) as file:
        measure = file.columns[-1]
        if measure not in MEASURES or len(file.columns) < 2:
            raise JointPMFError(
                f"{file.name} must have a column per variable and a last column "
                f"'count' or 'probability', not {shown(measure)}"
            )
        batches = [batch.cast(pl.String) for batch in file.batches()]
    table = pl.concat(batches) if batches else pl.DataFrame()
    if not len(table):
        raise JointPMFError(f"{path} has no rows")
    for column in table:
        if column.null_count():
            row = int(column.is_null().arg_true()[0])
            raise JointPMFError(f"{path} has no {column.name!r} in row {row}")
    numbers = _as_numbers(table[measure])
    if not numbers.dtype.is_numeric():
        raise JointPMFError(f"the column {measure!r} of {path} does not hold numbers only")
    return table.with_columns(numbers)


def _listed_variable(name: str, texts: list[str]) -> Variable:
    cells = _typed(pl.Series(name, texts).unique(maintain_order=True))
    return Variable(name, cells.to_list() if cells.dtype == pl.String else sorted(cells.to_list()))


def _marginal(path: str, long: pl.DataFrame, domain: Domain) -> Marginal:
    names, measure = long.columns[:-1], long.columns[-1]
    place = tuple(_positions(long[name], domain[name]) for name in names)
    numbers = long[measure].to_numpy()
    table = np.zeros([domain[name].size for name in names])
    if len(set(zip(*map(np.ndarray.tolist, place), strict=True))) < len(numbers):
        raise JointPMFError(f"{path} lists a cell twice")
    table[place] = numbers
    total = float(table.sum())
    if measure == "probability" and total > 0 and abs(total - 1) > ROUNDING:
        raise JointPMFError(f"the probabilities in {path} sum to {total:g}, not to one")
    if measure == "probability" or not total > 0:
        return Marginal(names, table)
    return Marginal(names, table / total, n_obs=total)


def _positions(column: pl.Series, variable: Variable) -> np.ndarray:
    code_of = {text: variable.code(_level_for(text, variable)) for text in column.unique()}
    return np.array([code_of[text] for text in column], np.int64)


def check_output(path: str) -> None:
    """Raise unless the name of a file tells what kind of table to write.

    Examples
    --------
    >>> check_output("out.xlsx")
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: out.xlsx must end in .csv, .tsv, .parquet, .ndjson or .gz, .zst
    """
    kind, compression = _kind_of(path)
    is_stream = path == "-" or (os.path.exists(path) and not os.path.isfile(path))
    if (kind is None and not is_stream) or (kind == "parquet" and compression != "uncompressed"):
        raise JointPMFError(f"{path} must end in .csv, .tsv, .parquet, .ndjson or .gz, .zst")


@contextmanager
def table_output(path: str, as_json: bool = False) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Give what writes batches of rows to a file, or to stdout for `-`, as the name says.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with table_output(f"{folder}/t.tsv") as write:
    ...         write(pl.DataFrame({"a": [1]}))
    ...         write(pl.DataFrame({"a": [2]}))
    ...     pl.read_csv(f"{folder}/t.tsv")["a"].to_list()
    [1, 2]
    """
    check_output(path)
    kind, compression = _kind_of(path)
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
    if kind == "parquet":
        batches: list[pl.DataFrame] = []
        yield batches.append
        pl.concat(batches, how="vertical_relaxed").write_parquet(file)
    elif kind == "ndjson":
        yield lambda batch: batch.write_ndjson(file, compression=compression)
    else:
        yield _CsvWriter(file, "\t" if kind == "tsv" else ",", compression).write


@dataclass
class _CsvWriter:
    """Batches below each other: compressed ones too may simply follow one another."""

    file: BinaryIO
    separator: str
    compression: Any
    needs_header: bool = True

    def write(self, batch: pl.DataFrame) -> None:
        """Write more rows."""
        batch.write_csv(
            self.file,
            separator=self.separator,
            compression=self.compression,
            include_header=self.needs_header,
        )
        self.needs_header = False
