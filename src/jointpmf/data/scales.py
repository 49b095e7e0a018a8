"""Well-known scales, by which the levels of columns of text are put in order.

Agreement, frequency, months and the like are lists of words at the end of this file; bands of
numbers, such as "18-29" and "65+", are recognised by how they are written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def in_known_order(levels: Sequence[Any]) -> tuple[list[str], str] | None:
    """Return texts in the order of a well-known scale, and its name; None if they are of none.

    Non-answers such as "don't know" go to the end. Case and spaces do not matter.

    Examples
    --------
    >>> in_known_order(["Agree", "Disagree", "No answer", "Strongly agree"])
    (['Disagree', 'Agree', 'Strongly agree', 'No answer'], 'agreement')
    >>> in_known_order(["$1000 to 2999", "$25000 or more", "Lt $1000"])
    (['Lt $1000', '$1000 to 2999', '$25000 or more'], 'bands of numbers')
    >>> in_known_order(["no", "yes"])
    """
    if not all(isinstance(level, str) for level in levels):
        return None
    plain = {level: _plain(level) for level in levels}
    for name, place_of in _KNOWN.items():
        if found := _ordered(plain, place_of.get):
            return found, name
    found = _ordered(plain, _band)
    are_bands = found and any(low < high for low, high in filter(None, map(_band, plain.values())))
    return (found, "bands of numbers") if found and are_bands else None


def _ordered(plain: Mapping[str, str], place_of: Callable[[str], Any]) -> list[str] | None:
    """Return levels by their places; None if not all but non-answers have one of their own."""
    placed, others = {}, []
    for level, text in plain.items():
        place = place_of(text)
        if place is not None:
            placed[level] = place
        elif text in _NO_ANSWERS:
            others.append(level)
        else:
            return None
    are_apart = len(set(placed.values())) == len(placed)
    if not are_apart or len(placed) < 2:
        return None
    return [*sorted(placed, key=placed.__getitem__), *sorted(others)]


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
"""Answers that are on no scale; they go to its end."""

_NEITHER = (
    "neutral|neither|undecided|no opinion|mixed|indifferent|neither {0} nor {1}|neither {1} nor {0}"
)
_GRADES = [
    "completely {}|totally {}|fully {}|entirely {}|extremely {}|{} completely|{} totally",
    "strongly {}|very {}|highly {}|definitely {}|{} strongly",
    "{}",
    "mostly {}|moderately {}|fairly {}|quite {}|generally {}|rather {}|{} moderately",
    "somewhat {}|slightly {}|a little {}|a bit {}|tend to {}|{} somewhat|{} slightly|{} a little",
]
"""How strongly one can be for or against something, the strongest first."""

_OPPOSITES = {
    "agreement": "disagree<agree",
    "satisfaction": "dissatisfied<satisfied",
    "satisfaction (unsatisfied)": "unsatisfied<satisfied",
    "likelihood": "unlikely<likely",
    "importance": "unimportant<important",
    "approval": "disapprove<approve",
    "support": "oppose<support",
    "favor": "oppose<favor",
    "favour": "oppose<favour",
    "happiness": "unhappy<happy",
    "tone": "negative<positive",
}

_DEGREES = """not at all {}|not {} at all|not {}|un{}<not very {}|not too {}|slightly {}|a little
{}|hardly {}<somewhat {}|moderately {}|neutral|fairly {}<{}|quite {}|pretty {}<very {}<extremely {}|
completely {}"""
_ADJECTIVES = """important|satisfied|likely|happy|interested|concerned|worried|confident|
comfortable|difficult|easy|useful|helpful|familiar|safe|healthy|religious|serious"""

_WORDS = {
    "frequency": """never<almost never|hardly ever|very rarely<rarely|seldom<occasionally|once in a
    while<sometimes<often|frequently|fairly often<very often|usually|most of the time|mostly<almost
    always|nearly always<always|all the time""",
    "repetition": """never<less than once a year<yearly|annually|once a year|every year<several
    times a year|a few times a year<monthly|once a month|every month<several times a month|a few
    times a month|2-3 times a month<weekly|once a week|every week<several times a week|a few times
    a week|more than once a week<daily|once a day|every day<several times a day|more than once a
    day""",
    "quality": """very poor|very bad|terrible|awful<poor|bad<below average<fair|acceptable<average|
    ok|okay|satisfactory<above average<good<very good<excellent|outstanding""",
    "amounts": """none|nothing|none at all|not at all<hardly any|very little|almost none|only a
    little<a little|little|few|a few|slightly<some|somewhat|moderately|a moderate amount|several<
    quite a bit|quite a lot|a fair amount<much|many|a lot|lots<very much|a great deal|extremely<all|
    everything|completely""",
    "height": """very low|lowest<low|lower<medium low<medium|moderate|middle|average|normal|mid<
    medium high<high|higher<very high|highest""",
    "size": """extra small|very small|tiny<small<medium|middle|mid|average<large|big<extra large|
    very large|huge""",
    "months": """january|jan<february|feb<march|mar<april|apr<may<june|jun<july|jul<august|aug<
    september|sep|sept<october|oct<november|nov<december|dec""",
    "weekdays": """monday|mon<tuesday|tue|tues<wednesday|wed<thursday|thu|thur|thurs<friday|fri<
    saturday|sat<sunday|sun""",
}


def _between(low: str, high: str) -> str:
    against = [grade.replace("{}", low) for grade in _GRADES]
    return "<".join(
        [*against, _NEITHER.format(low, high), *(g.replace("{}", high) for g in _GRADES[::-1])]
    )


def _places(words: str) -> dict[str, int]:
    """Return the place of every word on a scale: `a|b<c` are two places."""
    places = enumerate(" ".join(words.split()).split("<"))
    return {word.strip(): place for place, same in places for word in same.split("|")}


_KNOWN = {
    name: _places(words)
    for name, words in {
        **{name: _between(*words.split("<")) for name, words in _OPPOSITES.items()},
        **{
            f"how {one.strip()}": _DEGREES.replace("{}", one.strip())
            for one in _ADJECTIVES.split("|")
        },
        **_WORDS,
    }.items()
}
"""Of each scale the place of every word that is on it."""
