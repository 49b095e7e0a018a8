"""Cells that are text: the numbers, booleans or levels that they stand for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from jointpmf.domain import matching_level, number_in, text_of

if TYPE_CHECKING:
    from jointpmf.domain import Variable


def typed_texts(texts: list[str]) -> list[Any]:
    """Return texts as booleans, whole numbers or numbers, if all of them are that.

    Examples
    --------
    >>> typed_texts(["2", "10"]), typed_texts(["2", "0.5"]), typed_texts(["00501", "2"])
    ([2, 10], [2.0, 0.5], ['00501', '2'])
    """
    if {text.lower() for text in texts} <= {"true", "false"}:
        return list(dict.fromkeys(text.lower() == "true" for text in texts))
    numbers = [number_in(text) for text in texts]
    if any(number is None for number in numbers):
        return texts
    if all(isinstance(number, int) for number in numbers):
        are_codes = any(str(n) != text.strip() for n, text in zip(numbers, texts, strict=True))
        return texts if are_codes else list(dict.fromkeys(numbers))  # 00501 is no number but a code
    floats = [float(text) for text in texts]
    return list(dict.fromkeys(floats)) if all(map(math.isfinite, floats)) else texts


def as_numbers(column: pl.Series) -> pl.Series:
    """Return a column of texts as numbers, if all of them are, or if it has no cell at all."""
    if column.dtype not in (pl.String, pl.Null):
        return column
    texts = column.cast(pl.String).str.strip_chars()
    for dtype in (pl.Int64, pl.Float64):
        numbers = texts.cast(dtype, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
    return column


def level_for(cell: Any, variable: Variable) -> Any:
    """Return the level that a cell is, by itself or by its text; None if there is none."""
    if cell in variable:
        return variable.levels[variable.code(cell)]
    return matching_level(variable, text_of(cell).strip())
