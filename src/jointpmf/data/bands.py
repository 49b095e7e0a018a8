"""Bands of numbers, such as "18-29" and "65+": text levels that sort by their numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence


def sorted_bands(levels: Sequence[str]) -> list[str] | None:
    """Return bands of numbers sorted by their numbers; None if the levels are not bands.

    Non-answers such as "don't know" follow the bands. Case and spaces do not matter.

    Examples
    --------
    >>> sorted_bands(["$1000 to 2999", "$25000 or more", "Don't know", "Lt $1000"])
    ['Lt $1000', '$1000 to 2999', '$25000 or more', "Don't know"]
    >>> sorted_bands(["no", "yes"])
    """
    bands, others = {}, []
    for level in levels:
        text = _plain(level)
        if (band := _band(text)) is not None:
            bands[level] = band
        elif text in _NO_ANSWERS:
            others.append(level)
        else:
            return None
    are_apart = len(set(bands.values())) == len(bands) > 1
    # plain numbers alone may be codes, which have no order
    if not are_apart or all(low == high for low, high in bands.values()):
        return None
    return [*sorted(bands, key=bands.__getitem__), *sorted(others)]


def _plain(text: str) -> str:
    """Return a text without what does not matter: case, spaces, quotes, a point at the end."""
    text = re.sub(r"[’`´]", "'", text.casefold())
    return " ".join(text.replace("_", " ").strip('"“”(). ').split())


def _band(text: str) -> tuple[float, float] | None:
    """Return where a band such as "18-29", "under 18", "65+" or "lt $1000" begins and ends."""
    for pattern, ends in _BANDS:
        if match := pattern.fullmatch(text):
            low, high = (_number(match[end]) if end else None for end in ends)
            low, high = -math.inf if low is None else low, math.inf if high is None else high
            return (low, high) if low <= high else None
    return None


def _number(text: str) -> float:
    digits = text.replace(",", "").replace(" ", "")
    times = {"k": 1e3, "m": 1e6}.get(digits[-1], 1.0)
    return float(digits.rstrip("km")) * times


_N = r"[$€£]? ?(\d{1,3}(?:[ ,]\d{3})+(?:\.\d+)?[km]?|\d+(?:\.\d+)?[km]?) ?[%€£$]?"
_UNIT = (
    r"(?: ?(?:years?|yrs?|y|yo|hours?|hrs?|h|minutes?|min|days?|weeks?|months?|times|people|"
    r"persons?|children|employees|kg|cm|km))?(?: old| of age| per (?:day|week|month|year))?"
)
_BANDS = [
    (re.compile(pattern), ends)
    for pattern, ends in [
        (rf"(?:age |aged )?{_N}{_UNIT} ?(?:-|–|—|to|\.\.|until)+ ?{_N}{_UNIT}", (1, 2)),
        (rf"(?:lt|less than|under|below|fewer than|up to|at most|<=?|≤) ?{_N}{_UNIT}", (0, 1)),
        (rf"{_N}{_UNIT} (?:or|and) (?:less|fewer|under|below|younger)", (0, 1)),
        (rf"(?:gt|more than|over|above|at least|from|>=?|≥) ?{_N}{_UNIT}", (1, 0)),
        (
            rf"{_N}{_UNIT} ?(?:\+|plus|(?:or|and) (?:more|over|older|above|up|greater)){_UNIT}",
            (1, 0),
        ),
        (rf"{_N}{_UNIT}", (1, 1)),
    ]
]
"""How bands are written, and which number is the low and the high end; 0 is none."""

_NO_ANSWERS = """no answer|no response|not answered|don't know|dont know|do not know|dk|dk/na|
refused|refuse|refuse to answer|declined|prefer not to say|prefer not to answer|rather not say|n/a|
na|iap|not applicable|inapplicable|not available|not asked|not stated|not sure|unsure|unknown|
missing|skipped|can't say|cannot say|can't choose""".replace("\n", "").split("|")
"""Answers that are not bands; they follow the bands."""
