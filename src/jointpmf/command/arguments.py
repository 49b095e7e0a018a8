"""What is typed on a command line → the library's objects: bins, levels, sizes, ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jointpmf.data.given_scales import Scales
from jointpmf.domain import name_and_rest, number_in
from jointpmf.errors import JointPMFError, shown
from jointpmf.times import time_in


def bins_of(texts: Sequence[str], names: Sequence[str]) -> dict[str, int | list[float | str]]:
    """Return bins from texts such as `age=8` (how many) or `age=0,18,65,120` (edges).

    Examples
    --------
    >>> bins_of(["age=8", "income=0,1e4,inf"], ["age", "income"])
    {'age': 8, 'income': [0, 10000.0, inf]}
    """
    bins: dict[str, int | list[float | str]] = {}
    for text in texts:
        name, rest = name_and_rest(text, names, "name=8 or name=edge,edge,…")
        if name in bins:
            raise JointPMFError(f"the bins of {name!r} are given twice")
        numbers = [_edge_in(part) for part in rest.split(",")]
        count = numbers[0]
        if len(numbers) == 1 and isinstance(count, int):
            bins[name] = count
        elif len(numbers) > 1 and None not in numbers:
            bins[name] = [number for number in numbers if number is not None]
        else:
            raise JointPMFError(
                f"the bins of {name!r} must be a whole number or edges such as 0,18,65, "
                f"not {shown(rest)}"
            )
    return bins


def _edge_in(text: str) -> float | str | None:
    """Return the number that a text is, or the text itself if it is a date or a time."""
    number, text = number_in(text), text.strip()
    is_time = any(time_in(text, kind) is not None for kind in ("datetime", "time"))
    return text if number is None and is_time else number


def levels_of(texts: Sequence[str], names: Sequence[str]) -> Scales:
    """Return scales from texts such as `low<high`, or `dose=low<high` for one column.

    Examples
    --------
    >>> levels_of(["dose=1<5", "low<some<high"], ["dose", "noise"]).of_any
    (('low', 'some', 'high'),)
    """
    of_any, by_name = [], {}
    for text in texts:
        scale, name = text, None
        if any(text[:k].strip() in names for k, mark in enumerate(text) if mark == "="):
            name, scale = name_and_rest(text, names, "name=a<b<c")
        levels = [part.strip() for part in scale.split("<")]
        if len(levels) < 2 or "" in levels:
            raise JointPMFError(f"write levels in their order as a<b<c, not {shown(text)}")
        if name is None:
            of_any.append(levels)
        elif name in by_name:
            raise JointPMFError(f"the levels of {name!r} are given twice")
        else:
            by_name[name] = levels
    given = Scales.of(of_any or None)
    return Scales(given.of_any, Scales.of(by_name).by_name)


def sizes_of(text: str) -> list[int]:
    """Return sizes from a text such as `10,10,10`.

    Examples
    --------
    >>> sizes_of("10, 4,4")
    [10, 4, 4]
    """
    sizes: list[int] = []
    for part in text.split(","):
        size = number_in(part.strip())
        if not isinstance(size, int) or size < 1:
            raise JointPMFError(f"sizes must be whole numbers such as 10,10,10, not {shown(text)}")
        sizes.append(size)
    return sizes


def rank_of(text: str) -> int | str:
    """Return the rank that was asked for: a number, or "auto".

    Examples
    --------
    >>> rank_of("auto"), rank_of("5")
    ('auto', 5)
    """
    if text == "auto":
        return text
    rank = number_in(text)
    if not isinstance(rank, int) or rank < 1:
        raise JointPMFError(
            f"the rank must be auto or a whole number of at least 1, not {shown(text)}; several, "
            "such as 1-8, need --criterion"
        )
    return rank


def ranks_of(text: str) -> list[int]:
    """Return ranks from a text such as `1-6` or `2,4,8-10`.

    Examples
    --------
    >>> ranks_of("1-3"), ranks_of("2, 4,8-9")
    ([1, 2, 3], [2, 4, 8, 9])
    """
    ranks: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last:
            raise JointPMFError(f"ranks are whole numbers such as 1-6 or 2,4,8, not {shown(text)}")
        ranks.update(range(first, last + 1))
    return sorted(ranks)
