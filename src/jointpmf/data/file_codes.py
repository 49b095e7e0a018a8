"""The codes of a table file's rows, by levels that are known, some rows at a time.

Cells are matched with levels by their text where their types differ.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl

from jointpmf.data.codes import Codes
from jointpmf.data.columns import columns_of
from jointpmf.data.encode import doubts_of, encode
from jointpmf.data.numbered_texts import cleaned_batches, numbered_texts
from jointpmf.data.own_codes import recoded
from jointpmf.data.texts import as_numbers, cells_of, level_for
from jointpmf.data.weight_column import WeightColumn
from jointpmf.domain import MISSING, Domain, listing_of_texts
from jointpmf.errors import JointPMFError, shown
from jointpmf.times import seconds_of

if TYPE_CHECKING:
    from jointpmf.data.encode import Unknown
    from jointpmf.data.numbered_texts import NumberedTexts
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
    uncut = [variable.name for variable in domain if variable.edges is None]
    texts = numbered_texts(table, uncut, missing_code)
    coders = [
        _TextCoder(one, texts[one.name]) if one.name in texts else _Coder(one) for one in domain
    ]
    column = None if weights is None else WeightColumn(weights, table.columns, domain)
    n_rows = 0
    others = [] if column is None else [column.name]
    for batch in cleaned_batches(table, domain.names, missing_code, texts, others):
        columns = [coder.codes(batch[coder.variable.name], n_rows) for coder in coders]
        codes = Codes.of_columns(domain, len(batch), columns)
        n_rows += len(batch)
        yield codes, None if column is None else column.weights(batch)
    if not n_rows:
        raise JointPMFError(f"{table.name} has no rows")
    if column is not None:
        column.finish()


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


class _TextCoder:
    """Gives the texts of a column, which have numbers, their codes."""

    _UNKNOWN = MISSING - 1

    def __init__(self, variable: Variable, numbered: NumberedTexts) -> None:
        self.variable = variable
        self._numbered = numbered
        self._code_of: dict[str | None, int] = {None: MISSING}

    def codes(self, numbers: pl.Series, first_row: int) -> np.ndarray:
        """Return the codes of a column's cells; messages count rows from `first_row`."""
        own = self._numbered.codes(numbers)
        texts = self._numbered.texts
        codes = recoded(own, [self._code(text) for text in texts])
        if codes.min(initial=MISSING) == self._UNKNOWN:
            row = int(np.argmax(codes == self._UNKNOWN))
            raise _is_no_level(self.variable, texts[own[row]], first_row + row)
        return codes

    def _code(self, text: str | None) -> int:
        if text not in self._code_of:
            level = level_for(text, self.variable)
            self._code_of[text] = self._UNKNOWN if level is None else self.variable.code(level)
        return self._code_of[text]


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
    found = cells_of(cells)
    levels = [level_for(cell, variable) for cell in found]
    if None in levels and unknown == "error":
        strange = cells.filter(pl.Series([level is None for level in levels]))
        _refuse(column, column.is_in(strange.implode()), variable, first_row)
    if levels == found and {*map(type, levels)} == {*map(type, found)}:
        return column
    try:
        new = _as_series(levels, variable)
    except (TypeError, pl.exceptions.PolarsError):  # levels of several types: leave it to encode
        return column
    return column.replace_strict(cells, new, default=None, return_dtype=new.dtype)


def _measured(column: pl.Series, variable: Variable) -> pl.Series | None:
    """Return what of a column is compared with edges: its numbers, or times in seconds."""
    if variable.time is None:
        return column if column.dtype.is_numeric() else None
    if not column.dtype.is_temporal():
        return None
    cells = cells_of(column)
    seconds = [None if cell is None else seconds_of(cell, variable.time) for cell in cells]
    return pl.Series(seconds, dtype=pl.Float64)


def _as_series(levels: list[Any], variable: Variable) -> pl.Series:
    return pl.Series(levels, dtype=pl.Series(list(variable.levels)).dtype)


def _refuse(column: pl.Series, where: pl.Series, variable: Variable, first_row: int) -> None:
    if where.any():
        row = int(where.arg_true()[0])
        raise _is_no_level(variable, column[row], first_row + row)


def _is_no_level(variable: Variable, cell: Any, row: int) -> JointPMFError:
    return JointPMFError(
        f"column {variable.name!r} holds {shown(cell)} in row {row}, which is "
        f"none of its levels {listing_of_texts(variable.levels)}"
    )
