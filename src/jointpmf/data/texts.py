"""Cells and their texts: the numbers, booleans, dates or levels that a text stands for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import polars as pl

from jointpmf.domain import MISSING, holding_times, matching_level, number_in, text_of
from jointpmf.times import TooFineError, time_in

if TYPE_CHECKING:
    from jointpmf.domain import Variable


def typed_texts(texts: list[str]) -> list[Any]:
    """Return texts as booleans, whole numbers, numbers, dates or datetimes, if all are that.

    Examples
    --------
    >>> typed_texts(["2", "10"]), typed_texts(["2", "0.5"]), typed_texts(["00501", "2"])
    ([2, 10], [2.0, 0.5], ['00501', '2'])
    >>> typed_texts(["2020-01-31"])
    [datetime.date(2020, 1, 31)]
    """
    if {text.lower() for text in texts} <= {"true", "false"}:
        return list(dict.fromkeys(text.lower() == "true" for text in texts))
    numbers = [number_in(text) for text in texts]
    if any(number is None for number in numbers):
        return list(dict.fromkeys(_times_in(texts) or texts))
    if all(isinstance(number, int) for number in numbers):
        are_codes = any(str(n) != text.strip() for n, text in zip(numbers, texts, strict=True))
        return texts if are_codes else list(dict.fromkeys(numbers))  # 00501 is no number but a code
    floats = [float(text) for text in texts]
    return list(dict.fromkeys(floats)) if all(map(math.isfinite, floats)) else texts


def _times_in(texts: list[str]) -> list[Any] | None:
    """Return texts such as 2020-01-31 as dates, or with a time of day as datetimes, if all are."""
    for kind, form in _WRITTEN.items():
        if all(form.fullmatch(text.strip()) for text in texts):
            times = [time_in(text.strip(), kind) for text in texts]
            return None if None in times else times
    return None


_DAY = r"\d{4}-\d{2}-\d{2}"
_WRITTEN = {
    "date": re.compile(_DAY),
    "datetime": re.compile(_DAY + r"[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?"),
}
"""How dates and datetimes are written in text files."""


def as_numbers(column: pl.Series) -> pl.Series:
    """Return a column of texts as numbers, dates or datetimes, if all are, or if it has no cell."""
    if column.dtype not in (pl.String, pl.Null):
        return column
    texts = column.cast(pl.String).str.strip_chars()
    for dtype in (pl.Int64, pl.Float64):
        numbers = texts.cast(dtype, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
    cells = texts.drop_nulls().unique()
    times = _times_in(cells.to_list())
    return column if times is None else texts.replace_strict(cells, pl.Series(times), default=None)


def level_for(cell: Any, variable: Variable) -> Any:
    """Return the level that a cell is, by itself or by its text; None if there is none."""
    if cell in variable:
        return variable.levels[variable.code(cell)]
    return matching_level(variable, text_of(cell).strip())


def codes_of_cells(cells: Iterable[Any], variable: Variable) -> list[int]:
    """Return the codes of cells, by themselves or by their texts; None is missing.

    Examples
    --------
    >>> from jointpmf import Variable
    >>> codes_of_cells(["7", None, 5], Variable("a", (5, 7)))
    [1, -1, 0]
    """
    pairs = [(cell, None if cell is None else level_for(cell, variable)) for cell in cells]
    return [
        MISSING if cell is None else variable.code(cell if level is None else level)
        for cell, level in pairs
    ]


def cells_of(column: pl.Series) -> list[Any]:
    """Return cells as objects of Python, None for missing; raise for times finer than those.

    Examples
    --------
    >>> cells_of(pl.Series([None, 1000], dtype=pl.Duration("ns")))
    [None, datetime.timedelta(microseconds=1)]
    """
    if column.dtype in (pl.Datetime("ns"), pl.Duration("ns"), pl.Time):
        with holding_times(f"column {column.name!r}"):
            if (column.to_physical() % 1000 != 0).any():
                raise TooFineError
    return column.to_list()


def with_typed_durations(batch: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose durations are texts, as one would type them.

    Examples
    --------
    >>> batch = pl.DataFrame({"d": pl.Series([5], dtype=pl.Duration("us"))})
    >>> with_typed_durations(batch).rows()
    [('0:00:00.000005',)]
    """
    durations = [column for column in batch if column.dtype == pl.Duration]
    return batch.with_columns(
        pl.Series(
            column.name,
            [None if cell is None else text_of(cell) for cell in cells_of(column)],
            dtype=pl.String,
        )
        for column in durations
    )
