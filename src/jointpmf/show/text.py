"""Numbers, counts and names as plain text: no markup, so that a terminal can use it too."""

from __future__ import annotations

import math
from typing import Any


def unicode_text(text: str) -> str:
    """Return text that can be written: what stands for any bytes, or half a character, is `?`."""
    return text.encode(errors="replace").decode()


def shortened(text: str, width: int = 80) -> str:
    """Return the beginning of a text that is too long.

    Examples
    --------
    >>> shortened("a very long name", width=7)
    'a very…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def percent(share: float) -> str:
    """Return a probability for people: more digits where it is small.

    Examples
    --------
    >>> percent(0.5), percent(0.00012)
    ('50.0 %', '0.012 %')
    """
    return f"{100 * share:.1f} %" if share >= 0.001 or share == 0 else f"{100 * share:.2g} %"


def range_text(low: float, high: float) -> str:
    """Return between what two probabilities something is, within those that there are.

    Examples
    --------
    >>> range_text(0.1234, 0.2), range_text(-0.001, 0.0004), range_text(0.0, 1e-9)
    ('12.3–20.0 %', '0.0000–0.0400 %', '<0.001 %')
    """
    begin, end = (100 * min(max(one, 0.0), 1.0) for one in (low, high))
    digits = 1 if end >= 0.1 else 4
    return "<0.001 %" if end < 1e-3 else f"{begin:.{digits}f}–{end:.{digits}f} %"


def count_text(count: float, what: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count_text(1, "row"), count_text(2000, "variable or pair")
    ('1 row', '2,000 variables or pairs')
    """
    things = what if count == 1 else "s or ".join(what.split(" or ")) + "s"
    return f"{number_text(count)} {things}"


def number_text(number: Any, digits: int = 4) -> str:
    """Return a number for people, also one that is not finite.

    Examples
    --------
    >>> number_text(12345), number_text(0.123456), number_text(float("inf")), number_text(None)
    ('12,345', '0.1235', '∞', '–')
    """
    if number is None or math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if float(number).is_integer() and abs(number) < 1e15:
        return f"{number:,.0f}".replace("-", "−")
    return f"{number:.{digits}g}".replace("-", "−")


def amount_text(number: float) -> str:
    """Return a number with two decimals, or a very large one by its power of ten.

    Examples
    --------
    >>> amount_text(-21311.536), amount_text(2.678e10), amount_text(float("inf"))
    ('−21,311.54', '2.678e+10', '∞')
    """
    if not math.isfinite(number):
        return number_text(number)
    return (f"{number:,.2f}" if abs(number) < 1e9 else f"{number:.4g}").replace("-", "−")


def whole_in(text: str) -> int | None:
    """Return the whole number that a text is, such as one of a model file, or None.

    Examples
    --------
    >>> whole_in("944"), whole_in("9" * 5000), whole_in("many")
    (944, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= 15 else None  # no fit writes longer
