"""The observed cells of a column as an array, in numpy's type for them where that loses nothing."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from jointpmf.times import are_numeric, kind_of_times, narrowed_times, plain_time


def narrowed(cells: np.ndarray) -> np.ndarray:
    """Return observed cells in numpy's type for them where it has one that loses nothing."""
    if cells.dtype == object and len(cells):
        cells = _narrowed_objects(cells)
    return narrowed_times(cells) if cells.dtype.kind in "mM" else cells


def _narrowed_objects(cells: np.ndarray) -> np.ndarray:
    kinds = set(map(type, cells))
    if kind_of_times(kinds) is not None:
        levels = np.empty(len(cells), object)
        levels[:] = list(map(plain_time, cells))
        return levels
    whole = are_numeric(kinds, Integral)
    real = (np.float64,) if are_numeric(kinds, Real) else ()
    for dtype in (np.int64, np.uint64) if whole else real:
        try:
            numbers = np.array(list(map(int, cells)) if whole else cells, dtype)
        except OverflowError:
            continue
        if (numbers == cells).all():
            return numbers
    return cells


def are_numbers(cells: np.ndarray) -> bool:
    """Tell whether all cells are numbers."""
    if cells.dtype == object:
        return are_numeric(set(map(type, cells)))
    return cells.dtype.kind in "iuf"


def names_number(level: Any, missing_code: Any) -> bool:
    """Tell whether a level is the text of the number that means missing, as in a text file.

    Examples
    --------
    >>> names_number(" 99.0", 99), names_number("99", "99"), names_number(99, 99)
    (True, False, False)
    >>> names_number("9007199254740993", 9007199254740992)
    False
    """
    if not isinstance(level, str) or isinstance(missing_code, str) or "_" in level:
        return False
    for number in (int, float):  # not every whole number is a float
        try:
            return bool(number(level) == missing_code)
        except ValueError:
            continue
    return level.strip() == str(missing_code)
