"""What is typed on a command line → the library's objects: bins, sizes, ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jointpmf.domain import name_and_rest, number_in
from jointpmf.errors import JointPMFError, shown


def bins_of(texts: Sequence[str], names: Sequence[str]) -> dict[str, int | list[float]]:
    """Return bins from texts such as `age=8` (how many) or `age=0,18,65,120` (edges).

    Examples
    --------
    >>> bins_of(["age=8", "income=0,1e4,inf"], ["age", "income"])
    {'age': 8, 'income': [0, 10000.0, inf]}
    """
    bins: dict[str, int | list[float]] = {}
    for text in texts:
        name, rest = name_and_rest(text, names, "name=8 or name=edge,edge,…")
        if name in bins:
            raise JointPMFError(f"the bins of {name!r} are given twice")
        numbers = [number_in(part) for part in rest.split(",")]
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
