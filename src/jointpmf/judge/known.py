"""What is known of a model: which tables, of what, and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError
from jointpmf.marginals.counting import names_of_order, positions_of
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.solvers.curvature import Curvature
from jointpmf.solvers.jacobian import Curved, count_equations
from jointpmf.solvers.table_jacobian import TableCurvature
from jointpmf.solvers.table_noise import count_independent

Subset = tuple[int, ...]


@dataclass(frozen=True)
class KnownTables:
    """What is known: whole tables by their subsets, others as they are."""

    domain: Domain
    subsets: list[Subset]
    curvature: Curved
    n_equations: int
    in_words: str
    highest_order: int


def known_tables(
    known: MarginalSet | Domain | tuple[Domain, int | Sequence[Sequence[str]]],
    order: int | None,
    generator: np.random.Generator,
) -> KnownTables:
    """Return what tables see: by their subsets if all are whole, else as they are."""
    if isinstance(known, MarginalSet) and not known.is_plain:
        pairs = zip(known.subsets, known, strict=True)
        whole = sorted({subset for subset, marginal in pairs if marginal.is_of_everyone})
        found = TableCurvature(known.domain, known.measurements)
        return KnownTables(
            known.domain,
            whole,
            found,
            count_independent(known.domain, found.slices, generator),
            _kinds_in_words(known),
            max(map(len, known.subsets)),
        )
    domain, subsets = known_subsets(known, order)
    return KnownTables(
        domain,
        subsets,
        Curvature(domain, subsets, np.ones(len(subsets))),
        count_equations(domain, subsets),
        _in_words(domain, subsets),
        max(map(len, subsets)),
    )


def known_subsets(
    known: MarginalSet | Domain | tuple[Domain, int | Sequence[Sequence[str]]], order: int | None
) -> tuple[Domain, list[Subset]]:
    """Return the domain of what is known, and the subsets of its variables that are."""
    if isinstance(known, MarginalSet):
        return known.domain, sorted(set(known.subsets))
    if isinstance(known, tuple) and len(known) == 2:
        known, listed = known
        if not isinstance(listed, int):
            return known, sorted(set(positions_of(known, listed)))
        order = listed
    if not isinstance(known, Domain) or order is None:
        raise JointPMFError("say what is known: a MarginalSet, or a Domain and an order")
    return known, positions_of(known, names_of_order(known, order))


def _kinds_in_words(known: MarginalSet) -> str:
    """Return how many tables of which orders there are, and what some of them are of."""
    orders = [len(subset) for subset in known.subsets]
    counts = [f"{orders.count(n)} {_name_of(n, orders.count(n))}" for n in sorted(set(orders))]
    holes = [bool(np.isnan(np.asarray(m.table)).any()) for m in known if not m.is_of_everyone]
    kinds = {
        "in bands": sum(bool(m.levels) for m in known),
        "within part of the population": sum(bool(m.where) for m in known),
        "as percentages within levels": sum(bool(m.given) for m in known),
        "with cells that were not published": sum(holes),
    }
    words = [f"{count} {kind}" for kind, count in kinds.items() if count]
    if words and len(known) > 1:
        first, *rest = words
        number, _, kind = first.partition(" ")
        words = [f"{number} of them {kind}", *rest]
    elif words:
        words = [word.partition(" ")[2] for word in words]
    tables = " and ".join(counts)
    about = f", {', '.join(words)}," if words else ""
    return f"{tables}{about} of {len(known.domain)} variables"


def _name_of(order: int, count: int) -> str:
    name = {1: "single", 2: "pair", 3: "triple", 4: "quadruple"}.get(order, f"{order}-tuple")
    return name if count == 1 else f"{name}s"


def _in_words(domain: Domain, subsets: Sequence[Subset]) -> str:
    orders = sorted({len(s) for s in subsets})
    words = " and ".join(_name_of(order, 2) for order in orders)
    everything = sum(math.comb(len(domain), order) for order in orders)
    count = f"all {words}" if len(subsets) == everything else f"{len(subsets)} {words}"
    return f"{count} of {len(domain)} variables"
