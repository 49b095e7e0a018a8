"""What tables allow the cells of a joint to be: the least and the most of each, in some unit.

An exact table allows one number. Rounding, noise and, if asked for, sampling allow a range
(docs/math.md, eqs. 61 and 64). What a slice is a part of is its unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.solvers.table_jacobian import Slice

if TYPE_CHECKING:
    from jointpmf.judge.cliques import Group
    from jointpmf.marginals.marginal import Marginal
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.marginals.measurement import Measurement

_NOISE_DEVIATIONS = 4.0
"""Standard deviations that a cell with noise may be off, where nobody says how many."""

_SAME_ANSWER = 1e-9
"""How far exact tables may be apart where they show the same: their numbers have so many digits."""


class Unit(Enum):
    """What the cells of a slice are parts of."""

    EVERYONE = auto()
    SLICE = auto()
    """Those in the cells that the slice was divided by."""
    UNKNOWN = auto()
    """A sum of rounded or noisy cells, of which the true sum is not known."""


@dataclass(frozen=True, eq=False)
class Limits:
    """The cells of one slice of a table, and what each may be.

    Attributes
    ----------
    variables : tuple of int
        Variables of the axes, increasing.
    sets : tuple of arrays of float
        For each axis, which levels its entries cover.
    low, high : array
        The least and the most that each cell may be, in the unit; in the order of the axes.
    is_base : array of bool
        Which cells are the unit, if that is the slice itself.
    unit : Unit
        What cells are parts of.
    """

    variables: tuple[int, ...]
    sets: tuple[np.ndarray, ...]
    low: np.ndarray
    high: np.ndarray
    is_base: np.ndarray
    unit: Unit

    @property
    def group(self) -> Group:
        """The variables, in no order."""
        return frozenset(self.variables)

    @property
    def is_exact(self) -> bool:
        """Whether it is a table of everyone and of all levels, with one number for each cell."""
        is_plain = all(len(s) == s.shape[1] and (s == np.eye(len(s))).all() for s in self.sets)
        return self.unit is Unit.EVERYONE and is_plain and bool((self.low == self.high).all())

    def summed_onto(self, group: Group) -> Limits:
        """Return an exact table of some of its variables."""
        kept = [k for k, n in enumerate(self.variables) if n in group]
        table = self.low.reshape([len(s) for s in self.sets])
        cells = table.sum(axis=tuple(set(range(table.ndim)) - set(kept))).ravel()
        return replace(
            self,
            variables=tuple(self.variables[k] for k in kept),
            sets=tuple(self.sets[k] for k in kept),
            low=cells,
            high=cells,
            is_base=np.ones(cells.size, bool),
        )


def limits_of(marginals: MarginalSet, within: float | None) -> list[Limits]:
    """Return what all tables of a set allow, slice by slice.

    `within` is how many standard deviations of noise and sampling a cell may be off. None is four
    for noise, and none for sampling: tables then are of everyone.
    """
    return [
        _limits_of(marginal, table, which, within)
        for marginal, table in zip(marginals, marginals.measurements, strict=True)
        for which in np.ndindex(tuple(table.counts.shape[k] for k in sorted(table.given)))
    ]


def _limits_of(
    marginal: Marginal, table: Measurement, which: tuple[int, ...], within: float | None
) -> Limits:
    """Return what one slice of a table allows."""
    found = Slice(table, which)
    n_rows = math.inf if marginal.n_obs is None else float(np.asarray(marginal.n_obs)[which])
    low, high = _cell_limits(marginal, table, which, within, n_rows)
    least, most = marginal.bounds if math.isfinite(n_rows) else (0.0, math.inf)
    is_hidden = ~found.is_known
    low[is_hidden] = _score(least / n_rows, 0.0, within, n_rows)[0]
    high[is_hidden] = _score(most / n_rows, 0.0, within, n_rows)[1] if most < n_rows else math.inf
    order = np.argsort(found.variables)
    shape = [len(sets) for sets in found.sets]
    low, high, is_base = (
        array.reshape(shape).transpose(order).ravel()
        for array in (np.maximum(low, 0.0), high, found.is_base)
    )
    return Limits(
        tuple(found.variables[k] for k in order),
        tuple(found.sets[k] for k in order),
        low,
        high,
        is_base,
        _unit_of(marginal, found),
    )


def _cell_limits(
    marginal: Marginal,
    table: Measurement,
    which: tuple[int, ...],
    within: float | None,
    n_rows: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the most of each published cell of a slice, as parts of it."""
    entry = dict(zip(sorted(table.given), which, strict=True))
    place = tuple(entry.get(k, slice(None)) for k in range(marginal.order))
    parts = np.asarray(marginal.table, float)[place].ravel()
    if not (marginal.rounding or marginal.noise is not None or np.isnan(parts).any()):
        parts = parts / parts.sum()  # percentages need not sum to 100
    noise = 0.0 if marginal.noise is None else marginal.noise[place].ravel()
    unit = marginal.total if marginal.unit is None else float(marginal.unit[which])
    low, high = _score(parts, noise, within, n_rows)
    return low - marginal.rounding / 2 / unit, high + marginal.rounding / 2 / unit


def _score(
    part: np.ndarray | float, noise: np.ndarray | float, within: float | None, n_rows: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest probability that a part of `n_rows` allows (eq. 64)."""
    errors = _NOISE_DEVIATIONS if within is None else within
    a = 0.0 if within is None else within**2 / n_rows
    b = (errors * np.asarray(noise)) ** 2
    part = np.asarray(part, float)
    half = np.sqrt(np.maximum(a * part * (1 - part) + a**2 / 4 + (1 + a) * b, 0.0))
    return (part + a / 2 - half) / (1 + a), (part + a / 2 + half) / (1 + a)


def _unit_of(marginal: Marginal, found: Slice) -> Unit:
    if marginal.of_sums and (marginal.rounding or marginal.noise is not None):
        return Unit.UNKNOWN
    is_everyone = found.is_base.all() and all((s.sum(axis=0) == 1).all() for s in found.sets)
    return Unit.EVERYONE if is_everyone else Unit.SLICE


class Conflict(NamedTuple):
    """Two exact tables that give a combination of levels different probabilities."""

    variables: tuple[int, ...]
    levels: tuple[int, ...]
    first: Limits
    second: Limits
    probabilities: tuple[float, float]

    @property
    def by(self) -> float:
        """How far apart the two probabilities are."""
        return abs(self.probabilities[0] - self.probabilities[1])


def conflicts_of(tables: Iterable[Limits]) -> list[Conflict]:
    """Return where exact tables contradict each other on variables that both have, worst first."""
    first_with: dict[Group, tuple[Limits, np.ndarray]] = {}
    found = []
    for table in tables:
        for group in _subsets(table) if table.is_exact else ():
            cells = table.summed_onto(group).low
            holder, expected = first_with.setdefault(group, (table, cells))
            off = np.abs(cells - expected).round(12)  # so that rounding does not say which is worst
            if off.max() > _SAME_ANSWER:
                cell = int(off.argmax())
                variables = tuple(sorted(group))
                shape = [table.sets[table.variables.index(n)].shape[1] for n in variables]
                levels = tuple(int(i) for i in np.unravel_index(cell, shape))
                both = float(expected[cell]), float(cells[cell])
                found.append(Conflict(variables, levels, holder, table, both))
    return sorted(found, key=lambda one: (-round(one.by, 12), len(one.variables)))


def _subsets(table: Limits) -> Iterator[Group]:
    """Yield all groups of a table's variables, small ones first."""
    for order in range(1, len(table.variables) + 1):
        for group in combinations(table.variables, order):
            yield frozenset(group)


def independent_cells(tables: Iterable[Limits]) -> list[np.ndarray]:
    """Return which cells of each table do not follow from those of the tables before it.

    Exact tables that agree say the same where they have variables in common. Of the cells that have
    their last level in all variables but some, only one table needs those.
    """
    seen: set[Group] = {frozenset()}
    found = []
    for table in tables:
        is_new = np.ones(table.low.size, bool)
        if table.is_exact:
            shape = [len(sets) for sets in table.sets]
            index = np.indices(shape).reshape(len(shape), -1)
            is_last = index == np.array(shape)[:, None] - 1
            is_new[is_last.all(axis=0)] = False
            for group in _subsets(table):
                is_outside = np.array([n not in group for n in table.variables])[:, None]
                if group in seen:
                    is_new[(is_last == is_outside).all(axis=0)] = False
                seen.add(group)
        found.append(is_new)
    return found


def without_needless(tables: Iterable[Limits], needed: Group) -> list[Limits]:
    """Return tables that allow the same of the needed variables, and have fewer variables.

    A variable that one exact table has alone is summed out, and an exact table that another one
    contains is left out, as long as there are any.
    """
    exact: list[Limits] = []
    rest: list[Limits] = []
    for table in tables:
        (exact if table.is_exact else rest).append(table)
    kept = needed.union(*(table.group for table in rest))
    n_before = math.inf
    while (n_axes := sum(len(table.variables) for table in exact)) < n_before:
        n_before = n_axes
        exact = _without_contained(_without_lonely(exact, kept))
    return exact + rest


def _without_lonely(exact: list[Limits], kept: Group) -> list[Limits]:
    """Sum out the variables that only one table has."""
    uses: dict[int, int] = {}
    for table in exact:
        for n in table.variables:
            uses[n] = uses.get(n, 0) + 1
    found = []
    for table in exact:
        shared = frozenset(n for n in table.variables if n in kept or uses[n] > 1)
        if shared:
            found.append(table if shared == table.group else table.summed_onto(shared))
    return found


def _without_contained(exact: list[Limits]) -> list[Limits]:
    """Leave out tables that another one contains, where both say the same."""
    found: list[Limits] = []
    for table in sorted(exact, key=lambda one: -len(one.variables)):
        if not any(_contains(larger, table) for larger in found):
            found.append(table)
    return found


def _contains(larger: Limits, table: Limits) -> bool:
    if not table.group <= larger.group:
        return False
    return bool(np.abs(larger.summed_onto(table.group).low - table.low).max() <= _SAME_ANSWER)
