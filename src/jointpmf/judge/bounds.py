"""How far apart can answers be that all agree with some tables: exact bounds, without any model.

Over all joint distributions that meet the tables, the smallest and the largest probability or
expected value is found by linear programming (docs/math.md, eqs. 61 and 62).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.errors import JointPMFError, at_least_zero, listing, whole_number
from jointpmf.judge.bands import band_disagreements
from jointpmf.judge.cliques import Group, cliques_of, connected_to, count_cells, tree_of
from jointpmf.judge.linear_query import Question, Weights
from jointpmf.judge.program import Program
from jointpmf.judge.table_limits import (
    Conflict,
    Limits,
    conflicts_of,
    independent_cells,
    limits_of,
    without_needless,
)
from jointpmf.marginals.marginal_set import Disagreement, MarginalSet

if TYPE_CHECKING:
    from jointpmf.domain import Domain

_NOTHING = 1e-9
"""Probabilities below this are zero to a linear program."""


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest answer that agrees with tables; unpacks as `low, high`.

    Attributes
    ----------
    low, high : float
        The bounds. Both are reached, or come as close as one likes to being reached.
    what : str
        What they are bounds of.
    n_cells : int
        How many cells the linear program had; the joint often has many more.
    within : float or None
        How many standard deviations cells may be off, if that was said.
    """

    low: float
    high: float
    what: str
    n_cells: int
    within: float | None = None

    @property
    def width(self) -> float:
        """How much the tables leave open."""
        return self.high - self.low

    def __iter__(self) -> Iterator[float]:
        """Give the lower bound, and then the upper one."""
        return iter((self.low, self.high))

    def __str__(self) -> str:
        """Say what is between which bounds."""
        where = "in every joint distribution that meets the tables"
        if self.within is not None:
            where += f" within {self.within:g} standard deviations"
        if self.width <= _NOTHING * max(abs(self.high), 1.0):
            return f"{self.what} is {self.high:.4g} {where}."
        return f"{self.what} is between {self.low:.4g} and {self.high:.4g} {where}."


def bounds(
    marginals: MarginalSet,
    query: Mapping[str, Any] | str,
    given: Mapping[str, Any] | None = None,
    *,
    within: float | None = None,
    max_cells: int = 20_000,
) -> Bounds:
    """Return the smallest and the largest answer over all joint distributions that meet tables.

    No model and no rank is assumed. What the tables determine has bounds that are equal.

    Parameters
    ----------
    marginals : MarginalSet
        The tables, of any kind. Tables that neither share a variable with the query, nor are
        connected with it through others, do not matter.
    query : mapping of names to levels, or str
        For bounds of a probability, what happens: a level of a variable, or several. For bounds of
        an expected value, the name of a variable whose levels have values.
    given : mapping of names to levels, optional
        The evidence, for bounds of a conditional probability or expected value.
    within : float, optional
        How many standard deviations of noise and of sampling each cell may be off. By default,
        tables without noise are met exactly, as if they had counted everyone, and cells with noise
        within four standard deviations. Rounded cells may always be off by half of their rounding.
    max_cells : int
        Cells of the largest linear program that is tried, by default as many as take about a
        minute if tables have three variables, and seconds if they have two. If it would be larger,
        only a query that one exact table has all variables of is answered, from that table.

    Examples
    --------
    >>> import jointpmf as jp
    >>> domain = jp.Domain.of_sizes([2, 2, 2], ["rain", "wind", "cold"])
    >>> first = jp.Marginal(("rain", "wind"), [[0.5, 0.1], [0.1, 0.3]])
    >>> second = jp.Marginal(("wind", "cold"), [[0.4, 0.2], [0.1, 0.3]])
    >>> tables = jp.MarginalSet(domain, [first, second])
    >>> low, high = bounds(tables, {"rain": 1, "cold": 1})
    >>> round(low, 6), round(high, 6)
    (0.2, 0.4)
    >>> print(bounds(tables, "cold", {"rain": 1}))
    E(cold | rain = 1) is between 0.5 and 1 in every joint distribution that meets the tables.
    """
    if not isinstance(marginals, MarginalSet):
        raise JointPMFError(f"marginals must be a MarginalSet, not {type(marginals).__name__}")
    if within is not None:
        at_least_zero(within, "within")
    max_cells = whole_number(max_cells, "max_cells", 1)
    impossible = tuple(
        {n: mask.astype(float) for n, mask in cell.items()} for cell in marginals.exclusions.cells
    )
    question = Question.of(marginals.domain, query, given, impossible)
    plan = _plan(marginals, question, within, max_cells)
    plan.check_size(max_cells)
    found = plan.extremes()
    if found is None:
        raise _no_joint(marginals, plan.reached, within)
    low, high = (min(max(end, question.least), question.most) for end in found)
    return Bounds(min(low, high), high, question.what, plan.n_cells, within)


def _plan(
    marginals: MarginalSet, question: Question, within: float | None, max_cells: int
) -> _Plan:
    """Return how to answer a question from tables, with as few cells as is known how."""
    tables = limits_of(marginals, within)
    groups = [table.group for table in tables]
    reached = connected_to(frozenset(question.asked), [*groups, *question.groups[1:]])
    tables = [table for table in tables if table.group & reached]
    if found := conflicts_of(tables):
        raise _no_joint(marginals, reached, within, _disagreement(marginals.domain, found[0]))
    asked = replace(
        question, forbidden=tuple(each for each in question.forbidden if reached & set(each))
    )
    tables = without_needless(tables, frozenset().union(*asked.groups))
    plans = [_Plan(marginals.domain, each, tables, reached) for each in (asked, asked.in_steps())]
    best = min(plans, key=lambda one: one.n_cells)
    if best.n_cells > max_cells:
        for table in tables:
            if table.is_exact and table.group >= set(asked.asked):
                return _Plan(marginals.domain, replace(asked, forbidden=()), [table], reached)
    return best


@dataclass(frozen=True)
class _Plan:
    """Which variables to look at together to answer a question from tables."""

    domain: Domain
    question: Question
    tables: Sequence[Limits]

    reached: Group

    @cached_property
    def kinds(self) -> list[np.ndarray]:
        """For each variable, one level of each kind: those of a kind are told apart by nothing."""
        asked = self.question
        rows: list[list[np.ndarray]] = [[np.zeros(size)] for size in asked.sizes]
        for table in self.tables:
            for n, sets in zip(table.variables, table.sets, strict=True):
                rows[n] += list(sets)
        for weights in (asked.asked, asked.given or {}, *asked.forbidden):
            for n, row in weights.items():
                rows[n].append(row)
        return [np.unique(np.array(each), axis=1, return_index=True)[1] for each in rows]

    @cached_property
    def sizes(self) -> list[int]:
        """How many kinds of levels each variable has."""
        return [len(each) for each in self.kinds]

    @cached_property
    def cliques(self) -> list[Group]:
        """The groups of variables whose joint distributions are unknowns."""
        groups = [*self.question.groups, *(table.group for table in self.tables)]
        return cliques_of(groups, self.sizes)

    @cached_property
    def n_cells(self) -> int:
        """How many unknowns there are."""
        return count_cells(self.cliques, self.sizes)

    def check_size(self, max_cells: int) -> None:
        """Refuse a question that needs too large a program."""
        if self.n_cells <= max_cells:
            return
        largest = max(self.cliques, key=lambda one: count_cells([one], self.sizes))
        names = [self.domain.names[n] for n in sorted(largest) if n < len(self.domain)]
        raise JointPMFError(
            f"the bounds of {self.question.what} need a linear program of {self.n_cells:,} cells, "
            f"more than max_cells={max_cells:,}: the tables connect {listing(names)}, which have "
            f"{count_cells([largest], self.sizes):,} combinations; bounds from fewer tables, or "
            "from tables in bands, hold as well, but may be wider"
        )

    def extremes(self) -> tuple[float, float] | None:
        """Return the smallest and the largest answer; None if no joint meets the tables."""
        program = self._program()
        asked, given = self._of_kinds(self.question.asked), self.question.given
        if given is None:
            return program.extremes(asked)
        given = self._of_kinds(given)
        of_given = program.largest(given)
        if of_given is not None and of_given <= _NOTHING:
            raise JointPMFError(
                f"what is given in {self.question.what} has probability zero in every joint "
                "distribution that meets the tables"
            )
        return None if of_given is None else program.extremes(asked, given)

    def _program(self) -> Program:
        program = Program(self.cliques, tree_of(self.cliques), self.sizes)
        for table, is_new in zip(self.tables, independent_cells(self.tables), strict=True):
            own = dict(zip(table.variables, table.sets, strict=True))
            program.limit(table, list(self._of_kinds(own).values()), is_new)
        for combination in self.question.forbidden:
            program.forbid(self._of_kinds(combination))
        return program

    def _of_kinds(self, weights: Weights) -> dict[int, np.ndarray]:
        """Return numbers for the kinds of levels, of numbers for all levels."""
        return {n: row[..., self.kinds[n]] for n, row in weights.items()}


def _disagreement(domain: Domain, found: Conflict) -> Disagreement:
    """Return where two tables disagree, in the words of a domain."""
    return Disagreement(
        tuple(domain.names[n] for n in found.variables),
        tuple(
            domain.variables[n].levels[i]
            for n, i in zip(found.variables, found.levels, strict=True)
        ),
        tuple(domain.names[n] for n in found.first.variables),
        tuple(domain.names[n] for n in found.second.variables),
        *found.probabilities,
    )


def _no_joint(
    marginals: MarginalSet,
    reached: Group,
    within: float | None,
    worst: Disagreement | None = None,
) -> JointPMFError:
    """Return what to say of tables that no joint distribution meets."""
    names = {marginals.domain.names[n] for n in reached}
    involved = [m for m in marginals if names & {*m.names, *m.where}]
    listed = [*marginals.disagreements(), *band_disagreements(marginals)]
    listed = [one for one in listed if names & set(one.variables)]
    worst = worst or next(iter(listed), None)
    tables = listing((", ".join(m.names) for m in involved), limit=4)
    why = f"the tables of {tables} together" if worst is None else f"the tables: {worst}"
    hint = "say with rounding or noise how far a table may be off"
    if within is None and any(m.n_obs is not None for m in involved):
        hint += (
            "; if tables were counted over different rows, within=3 lets each cell be off by three "
            "standard deviations of sampling"
        )
    return JointPMFError(f"no joint distribution meets {why}; {hint}")
