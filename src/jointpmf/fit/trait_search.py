"""Which space of traits predicts best what is held out: one setting is changed at a time.

The space is chosen with few points, where fits are quick. Then there are more points, as long as
that helps, and the space is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from jointpmf.domain import Domain
from jointpmf.fit.settings import Traits
from jointpmf.traits import has_width

Moves = tuple[tuple[str, tuple[float, ...]], ...]

_MOVES: Moves = (
    ("count", (2.0, 0.5)),
    ("ridge", (1 / 3, 3.0)),
    ("waves", (2.0, 0.0)),
    ("pace", (1.5, 1 / 1.5)),
    ("widths", (0.1, 10.0)),
    ("count", (1.5, 0.75)),
)
"""What is changed in turn, and the factors by which: the second if the first does not help."""

_AFTER_MORE_POINTS: Moves = (("count", (1.5,)), ("ridge", (1 / 3, 3.0)))
"""What is changed again where more points have helped: they can show more traits."""

_MOST_TRAITS, _MOST_WAVES = 16, 96


class TraitKind(NamedTuple):
    """What a fit of traits is like."""

    rank: int
    traits: Traits
    is_final: bool = False
    """Whether it runs until what is held out says stop, not only until kinds can be compared."""

    def __str__(self) -> str:
        return f"{self.traits.count} traits, {self.rank} points"


Climb = Generator[Any, None, TraitKind]
Tried = Callable[[TraitKind], Iterator[Any]]
Cost = Callable[[TraitKind], float]


class TraitClimb:
    """The search for the best kind of traits; it yields what is to be fitted.

    Parameters
    ----------
    domain : Domain
        What can happen.
    tried : callable
        Yields the fits of a kind that are yet to be made.
    cost : callable
        What fits of a kind cost on what they have not seen.
    min_gain : float
        What a change must save.
    """

    def __init__(self, domain: Domain, tried: Tried, cost: Cost, min_gain: float) -> None:
        self._most_traits = min(len(domain), _MOST_TRAITS)
        self._has_order = any(map(has_width, domain))
        self._tried, self._cost, self._min_gain = tried, cost, min_gain

    def candidates(self, first: TraitKind, points: tuple[int, ...]) -> Climb:
        """Yield fits of a first kind and of those that help; return the best kind."""
        best = first
        for field, factors in _MOVES:
            best = yield from self.along(best, field, factors)
        for rank in points:
            more = best._replace(rank=rank)
            yield from self._tried(more)
            if not self._is_better(more, best):
                break
            best = more
        if best.rank > first.rank:
            for field, factors in _AFTER_MORE_POINTS:
                best = yield from self.along(best, field, factors)
        best = best._replace(is_final=True)
        yield from self._tried(best)
        return best

    def along(self, best: TraitKind, field: str, factors: tuple[float, ...]) -> Climb:
        """Yield fits in which one setting changes by a factor, again while that helps."""
        for factor in factors:
            begun = best
            while (other := self._changed(best, field, factor)) is not None:
                yield from self._tried(other)
                if not self._is_better(other, best):
                    break
                best = other
            if best is not begun:
                break
        return best

    def _changed(self, kind: TraitKind, field: str, factor: float) -> TraitKind | None:
        """Return a kind of which one setting is changed, or None where it has reached its end."""
        if field == "widths" and not self._has_order:
            return None
        before = getattr(kind.traits, field)
        after = before * factor
        if isinstance(before, int):
            most = {"count": self._most_traits, "waves": _MOST_WAVES}[field]
            after = min(round(after), most)
            if after == before or (field == "count" and after < 1):
                return None
        return kind._replace(traits=replace(kind.traits, **{field: after}))

    def _is_better(self, one: TraitKind, other: TraitKind) -> bool:
        return self._cost(one) < self._cost(other) - self._min_gain
