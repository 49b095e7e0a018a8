"""What can be known: is the model unique, and how small can its error be.

Local identifiability is the rank of the Jacobian of the marginals over the feasible directions,
which JᵀJ has too and no Jacobian is needed for (docs/math.md, eq. 14). The same matrices give the
Cramér–Rao bound for known noise, and the error that least squares on the marginals will have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, instance_of, seeded_generator, whole_rank
from jointpmf.judge.known import KnownTables, known_tables
from jointpmf.judge.wanted import WantedTables, wanted_tables
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.solvers.jacobian import (
    Curved,
    are_all_seen,
    condition_number,
    jacobian_rank,
    n_free_parameters,
    spread_model,
)

if TYPE_CHECKING:
    from jointpmf.marginals.marginal_set import MarginalSet

Subset = tuple[int, ...]

_MAX_SEARCHED = 1500
"""Parameters of the largest model that the search for the largest rank looks at."""


@dataclass(frozen=True)
class Identifiability:
    """Whether marginals determine a model of some rank; its text is advice.

    Attributes
    ----------
    rank : int
        The rank that was asked about.
    identifiable : bool or None
        Whether the marginals determine the model locally; None where it was too large to tell.
    n_parameters, jacobian_rank : int, int or None
        How many free parameters the model has, and in how many directions the marginals see them.
    n_equations : int
        How many independent numbers the marginals hold.
    largest_rank, is_largest : int, bool
        The largest rank that was found identifiable, and whether larger ones were found not to be
        (otherwise they were too large to try).
    counting_bound : int
        No larger rank can be: it would have more parameters than there are equations.
    paper_condition : bool
        Whether the paper's sufficient condition for uniqueness holds, with the stack's rank
        where the paper has a product.
    condition : float or None
        At a fitted model: by how much the least visible direction is magnified.
    known : str
        What the marginals are, in words.
    wanted : WantedTables
        Tables that would determine most of what is open.
    tables_to_ask : tuple of tuples of names
        The variables of these tables, the best one first.
    """

    rank: int
    identifiable: bool | None
    n_parameters: int
    jacobian_rank: int | None
    n_equations: int
    largest_rank: int
    is_largest: bool
    counting_bound: int
    paper_condition: bool
    condition: float | None
    known: str
    highest_order: int
    open_at: InitVar[tuple[KnownTables, Point] | None] = None

    def __post_init__(self, open_at: tuple[KnownTables, Point] | None) -> None:
        object.__setattr__(self, "_open_at", open_at)

    @cached_property
    def wanted(self) -> WantedTables:
        """Tables that would determine most of what is open; sought when they are first asked for.

        There are none if the model is identifiable, or too large to tell.
        """
        open_at: tuple[KnownTables, Point] | None = vars(self)["_open_at"]
        if open_at is None or self.identifiable is not False or self.jacobian_rank is None:
            return WantedTables()
        return wanted_tables(*open_at)

    @property
    def tables_to_ask(self) -> tuple[tuple[str, ...], ...]:
        """The variables of up to five tables that would help most, the best one first."""
        return self.wanted.tables

    def __str__(self) -> str:
        """Say whether the model is unique, and what to do if it is not."""
        parts = [self._verdict(), *self._wishes(), self._limits()]
        if self.paper_condition:
            parts.append("The paper's sufficient condition for uniqueness holds.")
        if self.condition is not None:
            parts.append(
                f"At the fitted model the condition number is {self.condition:.2g}: an error in "
                "the marginals can appear in the factors that many times larger."
            )
        return " ".join(parts)

    def _repr_html_(self) -> str:
        """Return the advice, and below it the numbers that it rests on."""
        from jointpmf.show.notebook import identifiability_html

        return identifiability_html(self)

    def _verdict(self) -> str:
        what = f"From {self.known}, rank {self.rank}"
        if self.identifiable is None:
            return f"{what} has too many parameters to decide by the Jacobian."
        if self.identifiable:
            return (
                f"{what} is locally identifiable: all {self.n_parameters} parameters are seen; "
                "only the order of the components is free."
            )
        seen = min(self.n_equations, self.n_parameters)
        missing = self.n_parameters - (seen if self.jacobian_rank is None else self.jacobian_rank)
        return (
            f"{what} is not identifiable: of {self.n_parameters} parameters {missing} "
            "can change without changing any of these tables, so that very different models "
            f"fit equally well; {self._remedy()}."
        )

    def _remedy(self) -> str:
        if self.largest_rank == 0 and self.is_largest:
            return "add tables that tell all levels of every variable apart"
        lower = f"lower the rank to {self.largest_rank}" if self.largest_rank else "lower the rank"
        names = {1: "pairs, better triples", 2: "triples", 3: "quadruples"}
        return f"add {names.get(self.highest_order, 'larger marginals')} or {lower}"

    def _wishes(self) -> list[str]:
        """Name the tables to ask for, in one sentence if there are any."""
        wanted = self.wanted
        if not wanted.tables:
            return []
        tables = "; ".join(" by ".join(names) for names in wanted.tables)
        if wanted.n_seen == wanted.n_open:
            which = "all of these parameters"
        else:
            which = f"{wanted.n_seen} of these {wanted.n_open} parameters"
        is_one = len(wanted.tables) == 1
        what = "a table" if is_one else "tables"
        return [
            f"Ask for {what} of {tables}: {'it' if is_one else 'they'} would determine {which}."
        ]

    def _limits(self) -> str:
        found = f"The largest identifiable rank is {self.largest_rank}"
        if self.largest_rank == 0 and self.is_largest:
            found = "No rank is identifiable"
        if not self.is_largest:
            found = f"Ranks up to {self.largest_rank} were found identifiable, larger not tried"
        return (
            f"{found}; counting equations ({self.n_equations}) allows at most "
            f"{self.counting_bound}."
        )


def identifiability(
    known: MarginalSet | Domain | tuple[Domain, int | Sequence[Sequence[str]]],
    rank: int,
    *,
    order: int | None = None,
    pmf: JointPMF | None = None,
    random_state: object = 0,
) -> Identifiability:
    """Return whether marginals determine a joint PMF of some rank.

    Parameters
    ----------
    known : MarginalSet, Domain, (Domain, order) or (Domain, names of each marginal)
        Which marginals are known, of any kind; what they are of matters, not what is in them.
    rank : int
        Number of components.
    order : int, optional
        With a Domain: all subsets of this many variables are known.
    pmf : JointPMF, optional
        A fitted model; the Jacobian is then taken there, and its condition number is reported.
    random_state : int or numpy Generator
        For the random models at which the generic rank is sought.

    Examples
    --------
    >>> import jointpmf as jp
    >>> report = jp.identifiability(jp.Domain.of_sizes([4] * 5), rank=3, order=2)
    >>> report.identifiable
    False
    >>> jp.identifiability(jp.Domain.of_sizes([4] * 5), rank=3, order=3).identifiable
    True
    """
    generator = seeded_generator(random_state)
    tables = known_tables(known, order, generator)
    domain = tables.domain
    rank = whole_rank(rank, sum(domain.sizes))
    if pmf is not None:
        instance_of(pmf, JointPMF, "the model")
    if pmf is not None and (pmf.domain != domain or pmf.rank != rank):
        raise JointPMFError(f"the model {pmf!r} is not of rank {rank} over these variables")
    point = None if pmf is None else Point.of_pmf(pmf)
    curvature, n_equations = tables.curvature, tables.n_equations
    per_component = 1 + sum(size - 1 for size in domain.sizes)
    n_parameters = n_free_parameters(domain, rank)
    counting_bound = (n_equations + 1) // per_component
    found = jacobian_rank(curvature, rank, point, generator)
    identifiable = are_all_seen(found, n_parameters, n_equations)
    largest, is_largest = _largest_rank(curvature, counting_bound, per_component, generator)
    return Identifiability(
        rank,
        identifiable,
        n_parameters,
        found,
        n_equations,
        max(largest, rank if identifiable else 0),
        is_largest,
        counting_bound,
        _paper_condition(domain, tables.subsets, rank),
        None if point is None else condition_number(curvature, point),
        tables.in_words,
        tables.highest_order,
        (tables, spread_model(domain, rank, generator) if point is None else point),
    )


def is_quick(domain: Domain, rank: int) -> bool:
    """Tell whether a model is small enough for the search for the largest rank to take a second."""
    return rank * (1 + sum(domain.sizes)) <= _MAX_SEARCHED


def _largest_rank(
    curvature: Curved, counting_bound: int, per_component: int, generator: np.random.Generator
) -> tuple[int, bool]:
    """Return the largest identifiable rank, by bisection, and whether it is sure to be."""
    largest = max(1, _MAX_SEARCHED // (1 + sum(curvature.domain.sizes)))
    low, high = 0, min(counting_bound, largest)
    is_largest = counting_bound <= largest
    while low < high:
        middle = (low + high + 1) // 2
        if jacobian_rank(curvature, middle, None, generator) == middle * per_component - 1:
            low = middle
        else:
            high, is_largest = middle - 1, True
    return low, is_largest


def _paper_condition(domain: Domain, subsets: Sequence[Subset], rank: int) -> bool:
    """Tell whether two variables and a stack of others, all triples known, force uniqueness."""
    triples = {frozenset(t) for s in subsets for t in combinations(s, 3)}
    for i, j in combinations(range(len(domain)), 2):
        small, large = sorted((domain.sizes[i], domain.sizes[j]))
        others = [n for n in range(len(domain)) if frozenset((i, j, n)) in triples]
        stack = 1 + sum(domain.sizes[n] - 1 for n in others)
        if small >= 3 and (small - 1) * (large - 1) >= rank and others and stack >= rank:
            return True
    return False
