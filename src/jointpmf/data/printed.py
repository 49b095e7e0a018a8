"""Numbers as offices print them: 1,234, 12.5%, <6, and the marks of cells that were not published.

A table may write decimals with a comma; that is found from its cells, where one of them has no
other reading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from jointpmf.domain import is_missing
from jointpmf.errors import JointPMFError, shown

_MARKS = frozenset(["", *"*-–—.:#xXFfcCsS", "**", "..", "...", "…", "n/a", "N/A", "NA", "na"])
"""What stands in a cell that was not published."""

_SPACES = re.compile(r"[\s\u00a0\u2009\u202f'’]+")
"""What may separate thousands, besides a comma or a point."""

_GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?")
_GROUPED_BY_POINTS = re.compile(r"\d{1,3}(\.\d{3})+(,\d*)?")
_ONLY_DECIMAL_COMMA = re.compile(r"\d+,(\d{1,2}|\d{4,})|\d{4,},\d+|\d{1,3}(\.\d{3})+,\d*|0,\d+")
"""A comma that cannot separate thousands."""


class Printed(NamedTuple):
    """Cells as numbers.

    Attributes
    ----------
    values : array
        NaN where a cell was not published.
    below : array
        What such a cell is known to be less than; infinite where that is not known.
    at_most : array
        What it is known to be at most.
    is_percent : bool
        Whether they are percentages.
    """

    values: np.ndarray
    below: np.ndarray
    at_most: np.ndarray
    is_percent: bool


def printed_numbers(
    cells: Sequence[Any], place: Callable[[int], str], missing: Iterable[str] = ()
) -> Printed:
    """Return cells as numbers.

    Parameters
    ----------
    cells : sequence
        Numbers, texts, or missing.
    place : callable
        What to call the cell at a position, for messages.
    missing : iterable of str
        More texts that mean that a cell was not published.

    Examples
    --------
    >>> found = printed_numbers(["1,234", "12 000", "*", "<6"], lambda k: f"cell {k}")
    >>> found.values.tolist(), found.below.tolist()
    ([1234.0, 12000.0, nan, nan], [inf, inf, inf, 6.0])
    >>> printed_numbers(["12,5 %", "87,5 %"], lambda k: f"cell {k}").values.tolist()
    [12.5, 87.5]
    """
    if (plain := _plain_numbers(cells)) is not None and not missing:
        nothing = np.full(len(cells), math.inf)
        return Printed(plain, nothing, nothing, False)
    marks = _MARKS | set(missing)
    texts = [_text(cell) for cell in cells]
    has_comma = any(_ONLY_DECIMAL_COMMA.fullmatch(_bare(text)) for text in texts if text)
    values, below, at_most = np.full((3, len(texts)), math.inf)
    percent = np.zeros(len(texts), bool)
    for k, text in enumerate(texts):
        percent[k] = text.endswith("%")
        bare = _bare(text)
        limit = re.match(r"<=|≤|<", bare)
        values[k] = math.nan
        if text in marks or (limit is None and bare in marks):
            continue
        number = _number(bare[limit.end() :] if limit else bare, has_comma)
        if number is None:
            raise JointPMFError(
                f"{place(k)} holds {shown(cells[k])}, which is neither one of the numbers that "
                "tables have nor a mark such as * or .. of a cell that was not published"
            )
        target = values if limit is None else below if limit[0] == "<" else at_most
        target[k] = number
    odd = np.flatnonzero(~percent & (values != 0) & ~np.isnan(values))
    if percent.any() and len(odd):
        raise JointPMFError(
            f"{place(int(odd[0]))} holds {shown(cells[int(odd[0])])}, but other cells of the table "
            "are percentages"
        )
    return Printed(values, below, at_most, bool(percent.any()))


def _plain_numbers(cells: Sequence[Any]) -> np.ndarray | None:
    """Return cells that are all written as plain digits, quickly; None if they are not."""
    if not all(isinstance(cell, str) and cell.isdecimal() for cell in cells):
        return None
    return np.array(list(map(float, cells)))


def _text(cell: Any) -> str:
    if isinstance(cell, (Real, Decimal)) and not isinstance(cell, bool):
        return "" if is_missing(cell) else repr(float(cell))
    return "" if is_missing(cell) else str(cell).strip()


def _bare(text: str) -> str:
    """Return a text without its percent sign and without spaces between digits."""
    return _SPACES.sub("", text.removesuffix("%").strip()).replace("−", "-")


def _number(text: str, has_comma: bool) -> float | None:
    sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text)
    grouped = _GROUPED_BY_POINTS if has_comma else _GROUPED
    separator, point = (".", ",") if has_comma else (",", ".")
    if grouped.fullmatch(digits):
        digits = digits.replace(separator, "")
    try:
        number = sign * float(digits.replace(point, "."))
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in digits else None
