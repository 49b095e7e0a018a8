"""The one exception that bad input raises, and the checks that every layer makes."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class JointPMFError(ValueError):
    """Bad input, said in one sentence that names the variable, the level or the row.

    Examples
    --------
    >>> import jointpmf as jp
    >>> jp.Domain.of_sizes([2, 3]).index("colour")
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: there is no variable 'colour'; the variables are 'x0', 'x1'
    """


class CheckpointError(JointPMFError):
    """A checkpoint that cannot be read or written, for which no other start can make up."""


def listing(items: Iterable[object], limit: int = 8) -> str:
    """Return items as a readable list, cut after `limit` of them."""
    items = list(items)
    rest = len(items) - limit
    return ", ".join(map(shown, items[:limit])) + (f" and {rest} more" if rest > 0 else "")


def shown(item: object, width: int = 80) -> str:
    """Return how an object looks, on one line of at most `width` characters.

    Examples
    --------
    >>> shown("a" * 100, width=12)
    "'aaaaaaaaaa…"
    """
    line = " ".join(part.strip() for part in repr(item).splitlines())
    return line if len(line) <= width else line[: width - 1] + "…"


def whole_number(number: Any, what: str, least: int) -> int:
    """Return a whole number of any integer type, or raise naming what it should have been."""
    try:
        whole = operator.index(number)
    except TypeError:
        whole = least - 1
    if isinstance(number, bool) or whole < least:
        raise JointPMFError(
            f"{what} must be a whole number of at least {least}, not {shown(number)}"
        )
    return whole


def one_of(given: Any, allowed: tuple[str, ...], what: str) -> str:
    """Return a word that is one of those allowed, or raise naming what it should have been."""
    if not isinstance(given, str) or given not in allowed:
        words = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        raise JointPMFError(f"{what} must be {words}, not {shown(given)}")
    return given


def at_least_zero(number: Any, what: str) -> float:
    """Return a number that is not negative, or raise naming what it should have been."""
    is_number = isinstance(number, Real) and not isinstance(number, bool)
    value = float(number) if is_number else -1.0
    if not 0 <= value < math.inf:
        raise JointPMFError(f"{what} must be a number of at least 0, not {shown(number)}")
    return value


def fraction(number: Any, what: str) -> float:
    """Return a number from 0 to 1, or raise naming what it should have been."""
    is_number = isinstance(number, Real) and not isinstance(number, bool)
    if not is_number or not 0 <= float(number) <= 1:
        raise JointPMFError(f"{what} must be a number from 0 to 1, not {shown(number)}")
    return float(number)


def checked_level(level: Any) -> float:
    """Return how often intervals hold the truth, between 0 and 1, both excluded.

    Examples
    --------
    >>> checked_level(0.9)
    0.9
    """
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise JointPMFError(f"the level must be between 0 and 1, such as 0.9, not {shown(level)}")
    return float(level)


def rectangle(rows: Any, what: str, dtype: Any = None) -> np.ndarray:
    """Return rows as an array, or raise if they do not all have the same length."""
    import numpy as np  # later, so that help is quick

    try:
        array = np.asarray(rows, dtype)
        ragged = array.ndim == 1 and any(
            isinstance(row, (list, tuple, np.ndarray)) for row in array
        )
    except ValueError:
        ragged = True
    if ragged:
        raise JointPMFError(f"the rows of the {what} do not all have the same length")
    return array


def seeded_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that a seed, a generator or None stands for."""
    import numpy as np  # later, so that help is quick

    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise JointPMFError(
            f"random_state must be a whole number or a numpy Generator, not {random_state!r}"
        ) from None
