"""What is asked of all joints that meet tables: a probability or an expected value, given evidence.

It is a sum of cells over another one, each cell by numbers for its levels (docs/math.md, eq. 62).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.domain import text_of
from jointpmf.errors import JointPMFError, listing, shown
from jointpmf.marginals.measurement import sets_of

if TYPE_CHECKING:
    from jointpmf.domain import Domain, Variable
    from jointpmf.judge.cliques import Group

Weights = Mapping[int, np.ndarray]
"""For some variables, a number for each level; cells are summed by the product of these."""


@dataclass(frozen=True)
class Question:
    """A sum of cells, over another one if there is evidence.

    Attributes
    ----------
    what : str
        The question in words.
    asked, given : Weights, Weights or None
        By what cells are summed; both together, and the evidence alone.
    about : int or None
        The variable whose expected value is asked for.
    least, most : float
        What no answer is beyond.
    sizes : tuple of int
        How many levels each variable has; behind those of the domain there may be others.
    forbidden : tuple of Weights
        Combinations of sets of levels that do not happen.
    """

    what: str
    asked: Weights
    given: Weights | None
    about: int | None
    least: float
    most: float
    sizes: tuple[int, ...]
    forbidden: tuple[Weights, ...] = ()

    @classmethod
    def of(
        cls, domain: Domain, query: Any, given: Any, impossible: tuple[Weights, ...] = ()
    ) -> Question:
        """Return what was asked, checked."""
        evidence = {} if given is None else _masks(domain, given, "given")
        about = domain.index(query) if isinstance(query, str) else None
        if about is None:
            asked, least, most = _masks(domain, query, "the query"), 0.0, 1.0
            words = f"P({events_in_words(query)}"
        else:
            values = _values(domain.variables[about])
            asked, least, most = {about: values}, float(values.min()), float(values.max())
            words = f"E({query}"
        if not asked:
            raise JointPMFError("the query is empty: say which levels of which variables")
        if both := sorted(set(asked) & set(evidence)):
            raise JointPMFError(
                f"{listing(domain.names[n] for n in both)} is in the query and in given: "
                "name it in one of them"
            )
        what = f"{words} | {events_in_words(given)})" if evidence else f"{words})"
        weights = {**evidence, **asked}
        forbidden = tuple(impossible)
        return cls(what, weights, evidence or None, about, least, most, domain.sizes, forbidden)

    @property
    def groups(self) -> list[Group]:
        """The variables that must be looked at together to answer it."""
        return [frozenset(each) for each in (self.asked, *self.forbidden)]

    def in_steps(self) -> Question:
        """Return the same question, about fewer variables at a time.

        A variable of two levels tells whether the first events have all happened. It depends only
        on the one before it and on the next event.
        """
        steps = _Steps(len(self.sizes))
        given = None if self.given is None else steps.after(self.given)
        rest = {n: row for n, row in self.asked.items() if n not in (self.given or {})}
        asked = {**(given or {}), **rest} if self.about is not None else steps.after(rest)
        return replace(
            self,
            asked=asked,
            given=given,
            sizes=(*self.sizes, *[2] * steps.n_steps),
            forbidden=(*self.forbidden, *steps.forbidden),
        )


class _Steps:
    """Variables of two levels: whether all events so far have happened."""

    def __init__(self, n_variables: int) -> None:
        self._first = n_variables
        self.n_steps = 0
        self.forbidden: list[Weights] = []

    def after(self, events: Weights) -> Weights:
        """Return the event that these events and all before have happened."""
        no, yes = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        for n, mask in sorted(events.items()):
            step = self._first + self.n_steps
            all_happen: dict[int, np.ndarray] = {n: mask}
            self.forbidden.append({n: 1.0 - mask, step: yes})
            if self.n_steps:
                self.forbidden.append({step - 1: no, step: yes})
                all_happen[step - 1] = yes
            self.forbidden.append({**all_happen, step: no})
            self.n_steps += 1
        return {self._first + self.n_steps - 1: yes}


def events_in_words(events: Mapping[str, Any]) -> str:
    """Return events as one would write them.

    Examples
    --------
    >>> events_in_words({"age": ["18-29", "60+"], "sex": "f"})
    'age = 18-29 or 60+, sex = f'
    """
    parts = []
    for name, levels in events.items():
        is_several = isinstance(levels, (set, frozenset, list, tuple))
        words = sorted(map(text_of, levels)) if is_several else [text_of(levels)]
        parts.append(f"{name} = {' or '.join(words)}")
    return ", ".join(parts)


def _masks(domain: Domain, events: Any, what: str) -> dict[int, np.ndarray]:
    """Return which levels of which variables are meant."""
    if not isinstance(events, Mapping):
        raise JointPMFError(f"{what} must be a mapping of names to levels, not {shown(events)}")
    return {
        domain.index(name): sets_of(domain[name], [levels])[0].astype(float)
        for name, levels in events.items()
    }


def _values(variable: Variable) -> np.ndarray:
    if variable.values is None:
        raise JointPMFError(
            f"the levels of {variable.name!r} have no values, of which an expected one could be"
        )
    return np.array(variable.values, float)
