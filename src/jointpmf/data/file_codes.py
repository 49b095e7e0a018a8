"""The levels of a table file, and the codes of its rows, some rows at a time.

Cells are matched with levels by their text where their types differ.
"""

from __future__ import annotations

import logging
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl

from jointpmf.data.binning import bin_codes, check_inside
from jointpmf.data.codes import Codes
from jointpmf.data.columns import columns_of
from jointpmf.data.encode import doubts_of, encode
from jointpmf.data.levels import LevelCollector, LevelRules, scales_of
from jointpmf.data.own_codes import recoded
from jointpmf.data.texts import as_numbers, level_for, typed_texts
from jointpmf.data.weight_column import WeightColumn
from jointpmf.domain import Domain, is_missing, listing_of_texts, text_of
from jointpmf.errors import JointPMFError, shown
from jointpmf.output import keeping_codes
from jointpmf.threads import results_of
from jointpmf.times import seconds_of

if TYPE_CHECKING:
    from jointpmf.data.binning import Cut
    from jointpmf.data.encode import Unknown
    from jointpmf.data.given_scales import Levels
    from jointpmf.data.table_files import TableFile
    from jointpmf.domain import Variable

logger = logging.getLogger("jointpmf")


class Batched(Protocol):
    """A table that is read some rows at a time."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    def batches(self) -> Iterator[pl.DataFrame]:
        """Yield the rows, some at a time."""


def coded_batches(
    table: Batched, domain: Domain, unknown: Unknown = "error"
) -> Iterator[tuple[pl.DataFrame, Codes]]:
    """Yield the rows, some at a time: all columns with the domain's levels, and their codes.

    At the end it is logged which columns had cells, but none that is known.
    """
    n_rows, matches = 0, _Matches()
    for batch in table.batches():
        known = [variable for variable in domain if variable.name in batch.columns]
        columns = [_as_levels(batch[one.name], one, unknown, n_rows) for one in known]
        for variable, column in zip(known, columns, strict=True):
            matches.add(variable, batch[variable.name], column)
        frame = batch.with_columns(columns)
        yield frame, encode(frame, domain, unknown=unknown)
        n_rows += len(batch)
    matches.warn()


def weighted_batches(
    table: Batched, domain: Domain, unknown: Unknown, weights: str | None
) -> Iterator[tuple[pl.DataFrame, Codes, np.ndarray | None]]:
    """Yield what `coded_batches` does, and what each row counts for by the column `weights`."""
    column = None if weights is None else WeightColumn(weights, table.columns, domain)
    for frame, codes in coded_batches(table, domain, unknown):
        yield frame, codes, None if column is None else column.weights(frame)
    if column is not None:
        column.finish()


class _Matches:
    """Which columns of a file have cells, but none that is known."""

    def __init__(self) -> None:
        self._strange: dict[str, tuple[Variable, list[Any], int]] = {}
        self._matched: set[str] = set()

    def add(self, variable: Variable, cells: pl.Series, levels: pl.Series) -> None:
        """Add a column's cells and the levels that were found for them."""
        if levels.null_count() < len(levels):
            self._matched.add(variable.name)
        elif observed := cells.drop_nulls().to_list():
            _, some, count = self._strange.get(variable.name, (variable, [], 0))
            both = list(dict.fromkeys([*some, *observed[:8]]))
            self._strange[variable.name] = (variable, both, count + len(observed))

    def warn(self) -> None:
        """Log which columns had no cell that is known."""
        for name, strange in self._strange.items():
            for doubt in [] if name in self._matched else doubts_of(*strange):
                logger.warning(doubt)


def codes_in(
    table: TableFile, domain: Domain, weights: str | None = None, missing_code: Any = None
) -> Iterator[tuple[Codes, np.ndarray | None]]:
    """Yield the codes of the rows, some at a time, and what each row counts for.

    That is in the column `weights`; without one it is None. There is at least one row.
    """
    coders = [_Coder(variable) for variable in domain]
    column = None if weights is None else WeightColumn(weights, table.columns, domain)
    n_rows = 0
    others = [] if column is None else [column.name]
    texts = [variable.name for variable in domain if variable.edges is None]
    for batch in _batches(table, domain.names, missing_code, texts, others):
        columns = [partial(coder.codes, batch[coder.variable.name], n_rows) for coder in coders]
        codes = Codes.of_columns(domain, len(batch), results_of(columns))
        n_rows += len(batch)
        yield codes, None if column is None else column.weights(batch)
    if not n_rows:
        raise JointPMFError(f"{table.name} has no rows")
    if column is not None:
        column.finish()


def _batches(
    table: TableFile,
    names: Sequence[str],
    missing_code: Any,
    categories: Sequence[str],
    others: Sequence[str] = (),
) -> Iterator[pl.DataFrame]:
    """Yield some columns, some rows at a time, without the cells that mean missing; and others."""
    for batch in table.batches([*names, *others], categories):
        if missing_code is None or is_missing(missing_code):
            yield batch
        else:
            yield batch.with_columns(_without_code(batch[name], missing_code) for name in names)


def _without_code(column: pl.Series, missing_code: Any) -> pl.Series:
    """Return a column without the cells that mean missing, by their text where they are text."""
    is_text = column.dtype in (pl.String, pl.Categorical, pl.Enum)
    if not is_text and (isinstance(missing_code, str) or not column.dtype.is_numeric()):
        return column
    texts = column.cast(pl.String).str.strip_chars() if is_text else column
    is_code = texts == (text_of(missing_code) if is_text else missing_code)
    if is_text and not isinstance(missing_code, str):  # numbers of a text file, however written
        is_code |= texts.cast(pl.Float64, strict=False) == missing_code
    return column.set(is_code.fill_null(False), None)


class _Coder:
    """Gives the cells of a column their codes, and remembers the cells it has met."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self._code_of: dict[Any, int] = {}

    def codes(self, cells: pl.Series, first_row: int) -> np.ndarray:
        """Return the codes of a column's cells; messages count rows from `first_row`."""
        if self.variable.edges is not None:
            levels = _as_levels(cells, self.variable, "error", first_row)
            return encode(levels.to_frame(), Domain([self.variable])).columns[0]
        column = columns_of(cells.to_frame(), None, None)[1][cells.name]()
        for cell in column.distinct:
            if cell not in self._code_of:
                level = level_for(cell, self.variable)
                if level is None:
                    row = first_row + column.first_row(cell)
                    raise _is_no_level(self.variable, cell, row)
                self._code_of[cell] = self.variable.code(level)
        return column.codes(self._code_of)


def _as_levels(
    column: pl.Series, variable: Variable, unknown: Unknown, first_row: int
) -> pl.Series:
    """Return a column's cells as the variable's own levels, or as numbers where it has bins."""
    if variable.edges is not None:
        numbers = as_numbers(column)
        if (measured := _measured(numbers, variable)) is not None:
            outside = (measured < variable.edges[0]) | (measured > variable.edges[-1])
            if unknown == "error":
                _refuse(column, outside, variable, first_row)
            return numbers.set(outside.fill_null(False), None)
    cells = column.unique().drop_nulls()
    levels = [level_for(cell, variable) for cell in cells.to_list()]
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


def _measured(column: pl.Series, variable: Variable) -> pl.Series | None:
    """Return what of a column is compared with edges: its numbers, or times in seconds."""
    if variable.time is None:
        return column if column.dtype.is_numeric() else None
    if not column.dtype.is_temporal():
        return None
    seconds = [None if cell is None else seconds_of(cell, variable.time) for cell in column]
    return pl.Series(seconds, dtype=pl.Float64)


def _dtype_of(variable: Variable) -> Any:
    return pl.Series(list(variable.levels)).dtype


def _refuse(column: pl.Series, where: pl.Series, variable: Variable, first_row: int) -> None:
    if where.any():
        row = int(where.arg_true()[0])
        raise _is_no_level(variable, column[row], first_row + row)


def _is_no_level(variable: Variable, cell: Any, row: int) -> JointPMFError:
    return JointPMFError(
        f"column {variable.name!r} holds {shown(cell)} in row {row}, which is "
        f"none of its levels {listing_of_texts(variable.levels)}"
    )


class LearnedCodes:
    """The rows of a file whose levels were not known: what was found in one reading.

    While it is read, levels are numbered as they come; at the end their order is known, and each
    code is looked up once more. Until then the codes are in a temporary file, small ones in memory.

    Parameters
    ----------
    table : TableFile
        What to read.
    names : sequence of str
        The columns that are variables.
    weights : str, optional
        The column that says what each row counts for.
    bins, levels, missing_code
        How columns are read, as in `encode`.
    max_binned : int
        Numbers by which a column is cut: of more of them, evenly spaced ones.
    """

    def __init__(
        self,
        table: TableFile,
        names: Sequence[str],
        bins: Mapping[str, Cut],
        levels: Levels | None = None,
        missing_code: Any = None,
        weights: str | None = None,
        max_binned: int = 2**22,
    ) -> None:
        scales = scales_of(levels)
        scales.check_names(names)
        collector = LevelCollector(_rules(table, bins, missing_code, max_binned))
        column = None if weights is None else WeightColumn(weights, table.columns, names)
        others = [] if column is None else [column.name]
        self._file = _CodeFile()
        texts = [name for name in names if name not in bins]
        for batch in _batches(table, names, missing_code, texts, others):
            cut = batch.with_columns(as_numbers(batch[name]) for name in names if name in bins)
            found = collector.add_coded(cut, names) if len(batch) else []
            self._file.write([*found, *([] if column is None else [column.weights(batch)])])
        self.domain = collector.domain(scales)
        if column is not None:
            column.finish()
        self._new = [self._new_codes(one, collector.first_levels(one.name)) for one in self.domain]

    @staticmethod
    def _new_codes(variable: Variable, cells: Sequence[Any]) -> list[int]:
        """Return the codes of cells, which were numbered as they came."""
        levels = [level_for(cell, variable) for cell in cells]
        if None in levels:
            cell = cells[levels.index(None)]
            raise JointPMFError(
                f"column {variable.name!r} holds {shown(cell)}, which is none of its levels "
                f"{listing_of_texts(variable.levels)}"
            )
        return [variable.code(level) for level in levels]

    def batches(self) -> Iterator[tuple[Codes, np.ndarray | None]]:
        """Yield the codes of the rows, some at a time, and what each row counts for."""
        n_rows, n = 0, len(self.domain)
        for columns in self._file.read():
            pairs = zip(self.domain, columns[:n], self._new, strict=True)
            coded = results_of([partial(_final_codes, *pair, n_rows) for pair in pairs])
            codes = Codes.of_columns(self.domain, len(columns[0]), coded)
            n_rows += codes.n_rows
            yield codes, columns[n] if len(columns) > n else None


def _final_codes(
    variable: Variable, found: np.ndarray, new: Sequence[int], first_row: int
) -> np.ndarray:
    if variable.edges is None:
        return recoded(found, new)
    missing, edges, time = np.isnan(found), variable.edges, variable.time
    check_inside(variable.name, found[~missing], missing, edges, time, first_row)
    return bin_codes(found, edges)


class _CodeFile:
    """Arrays in a temporary file, those of each batch one after the other."""

    def __init__(self, most_in_memory: int = 2**24) -> None:
        self._file = tempfile.SpooledTemporaryFile(most_in_memory, prefix="jointpmf-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._kinds: list[list[tuple[np.dtype[Any], int]]] = []

    def write(self, arrays: Sequence[np.ndarray]) -> None:
        """Add the arrays of a batch."""
        if arrays and len(arrays[0]):
            self._kinds.append([(array.dtype, len(array)) for array in arrays])
            with keeping_codes():
                for array in arrays:
                    self._file.write(np.ascontiguousarray(array).data)

    def read(self) -> Iterator[list[np.ndarray]]:
        """Yield the arrays of each batch."""
        place = 0
        for kinds in self._kinds:
            self._file.seek(place)
            sizes = [dtype.itemsize * length for dtype, length in kinds]
            yield [
                np.frombuffer(self._file.read(size), dtype)
                for (dtype, _), size in zip(kinds, sizes, strict=True)
            ]
            place += sum(sizes)


def _rules(
    table: TableFile, bins: Mapping[str, Cut], missing_code: Any, max_binned: int
) -> LevelRules:
    return LevelRules(
        max_levels=100_000,
        may_be_unique=False,
        typed=typed_texts if table.is_text else None,
        missing_code=missing_code,
        bins=bins,
        max_binned=max_binned,
        too_many_numbers=(
            "column {name!r} has more than {max_numbers} different {what}: cut it "
            'with bins (--bins "{name}=8"), or leave it out with drop (--drop "{name}")'
        ),
        too_many_levels=(
            "column {name!r} has {count} different texts, too many to learn from: "
            'leave it out with drop (--drop "{name}")'
        ),
        no_cell="column {name!r} has no observed cell; leave it out with drop (--drop)",
        empty=f"{table.name} has no rows",
    )
