"""Dates, times of day and durations as numbers of seconds, so that they can be cut like numbers.

Dates and datetimes count from 1970, in UTC if they have no time zone; times of day from midnight.
Levels are Python's own times, which hold microseconds; finer ones are refused.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from jointpmf.errors import JointPMFError

_SECOND = dt.timedelta(seconds=1)
_BEGIN = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TYPES: dict[str, tuple[type, ...]] = {
    "datetime": (dt.datetime, np.datetime64),  # before date, of which it is a kind
    "date": (dt.date,),
    "time": (dt.time,),
    "duration": (dt.timedelta, np.timedelta64),
}
_FINE_UNITS = ("ns", "ps", "fs", "as")
"""Units of numpy that Python's own times do not have."""

_FINE_TEXT = re.compile(r"[.,]\d{6}0*[1-9]")
"""The digits of a time down to one below a microsecond; Python would drop that."""


class TooFineError(JointPMFError):
    """Times that cannot be levels, because Python's own times are not as fine."""

    def __init__(self) -> None:
        super().__init__("times finer than a microsecond: round them to microseconds")


def kind_of_times(types: Iterable[type]) -> str | None:
    """Return which kind of time all of these types are: a key of the table above, or None.

    Examples
    --------
    >>> kind_of_times([dt.date]), kind_of_times([dt.date, str]), kind_of_times([])
    ('date', None, None)
    """
    kinds = {_kind_of(one) for one in types}
    return kinds.pop() if len(kinds) == 1 else None


def are_numeric(kinds: Iterable[type], number: Any = (Real, Decimal)) -> bool:
    """Tell whether all types are of numbers; booleans and durations are none here.

    Examples
    --------
    >>> are_numeric([int, Decimal]), are_numeric([int, bool])
    (True, False)
    """
    return all(issubclass(kind, number) and kind not in (bool, np.timedelta64) for kind in kinds)


def is_kind_of_time(kind: object) -> bool:
    """Tell whether a word names a kind of time."""
    return kind in _TYPES


def _kind_of(one: type) -> str | None:
    return next((kind for kind, time in _TYPES.items() if issubclass(one, time)), None)


def are_comparable(kind: str | None, other: str | None) -> bool:
    """Tell whether seconds of two kinds count from the same moment; None is that of numbers.

    Examples
    --------
    >>> are_comparable("date", "datetime"), are_comparable("date", "time")
    (True, False)
    """
    return kind == other or {kind, other} == {"date", "datetime"}


def plain_time(level: Any) -> Any:
    """Return a time of numpy or pandas as Python's own; raise if it is finer than a microsecond.

    Examples
    --------
    >>> plain_time(np.datetime64("2020-01-31T12:30", "ns")), plain_time("noon")
    (datetime.datetime(2020, 1, 31, 12, 30), 'noon')
    """
    if hasattr(level, "to_pydatetime"):  # of pandas
        if not level.nanosecond:
            return level.to_pydatetime()
        level = level.to_datetime64()  # finer, or NaT
    if hasattr(level, "to_pytimedelta"):
        level = level.to_timedelta64()
    if not isinstance(level, (np.datetime64, np.timedelta64)) or np.isnat(level):
        return level
    return narrowed_times(np.array([level])).item()


def narrowed_times(cells: np.ndarray) -> np.ndarray:
    """Return numpy's times in a unit that Python's own have; raise if they need a finer one.

    Examples
    --------
    >>> narrowed_times(np.array([1000], "m8[ns]")).dtype.name
    'timedelta64[us]'
    """
    if np.datetime_data(cells.dtype)[0] not in _FINE_UNITS:
        return cells
    narrowed = cells.astype(f"{cells.dtype.kind}8[us]")
    if (narrowed.astype(cells.dtype).view(np.int64) != cells.view(np.int64)).any():  # NaT too
        raise TooFineError
    return narrowed


def seconds_of(time: Any, kind: str) -> float | None:
    """Return a time as a number of seconds; None if it is none that is comparable to a kind.

    Examples
    --------
    >>> seconds_of(dt.date(1970, 1, 2), "date"), seconds_of(dt.time(1, 30), "time")
    (86400.0, 5400.0)
    >>> seconds_of(dt.time(1, 30), "date"), seconds_of("noon", "time")
    (None, None)
    """
    if not are_comparable(_kind_of(type(time)), kind):
        return None
    if isinstance(time, dt.datetime):
        return ((time if time.tzinfo else time.replace(tzinfo=dt.UTC)) - _BEGIN) / _SECOND
    if isinstance(time, dt.date):
        return (time - _BEGIN.date()) / _SECOND
    if isinstance(time, dt.time):
        hours = dt.timedelta(hours=time.hour, minutes=time.minute, seconds=time.second)
        return (hours + dt.timedelta(microseconds=time.microsecond)) / _SECOND
    return float(time / _SECOND)


def seconds_of_array(cells: np.ndarray, kind: str) -> np.ndarray:
    """Return times of one kind, numpy's or Python's, as seconds; none of them is missing.

    Examples
    --------
    >>> seconds_of_array(np.array(["1970-01-02"], "M8[D]"), "date").tolist()
    [86400.0]
    """
    if cells.dtype.kind in "mM":
        return cells.astype(f"{cells.dtype.kind}8[us]").astype(np.int64) / 1e6
    return np.array([seconds_of(cell, kind) for cell in cells], float)


def time_of(seconds: float, kind: str) -> Any:
    """Return the time that a number of seconds is; a date is the nearest one.

    Examples
    --------
    >>> time_of(86400.0, "date"), time_of(5400.0, "time")
    (datetime.date(1970, 1, 2), datetime.time(1, 30))
    """
    duration = dt.timedelta(seconds=seconds)
    if kind == "duration":
        return duration
    if kind == "date":
        return _BEGIN.date() + dt.timedelta(days=round(duration / dt.timedelta(days=1)))
    time = (_BEGIN + duration).replace(tzinfo=None)
    return time.time() if kind == "time" else time


def time_in(text: str, kind: str) -> Any:
    """Return the time that a text is, as ISO 8601 writes it; a duration is a number of seconds.

    A text finer than a microsecond is no time.

    Examples
    --------
    >>> time_in("2020-01-31", "date"), time_in("soon", "date")
    (datetime.date(2020, 1, 31), None)
    """
    if kind == "duration":
        with suppress(ValueError, OverflowError):
            return dt.timedelta(seconds=float(text))
    kinds: dict[str, tuple[Any, ...]] = {
        "date": (dt.date, dt.datetime),
        "datetime": (dt.datetime,),
        "time": (dt.time,),
    }
    if _FINE_TEXT.search(text):
        return None
    for one in kinds.get(kind, ()):
        with suppress(ValueError):
            return one.fromisoformat(text)
    return None


def texts_of_times(seconds: Iterable[float], kind: str) -> list[str]:
    """Return numbers of seconds as texts: without the time of day, if it is midnight in all.

    Examples
    --------
    >>> texts_of_times([86400.0, np.inf], "datetime"), texts_of_times([5400.0], "time")
    (['1970-01-02', 'inf'], ['01:30:00'])
    """
    seconds = list(seconds)
    whole_days = all(one % 86400 == 0 for one in seconds if np.isfinite(one))
    kind = "date" if kind == "datetime" and whole_days else kind
    return [_text_of(time_of(one, kind)) if np.isfinite(one) else f"{one:g}" for one in seconds]


def _text_of(time: Any) -> str:
    return time.isoformat(" ") if isinstance(time, dt.datetime) else str(time)
