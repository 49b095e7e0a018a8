"""What published tables can tell, before any fit: where they disagree, and what they leave open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.errors import JointPMFError
from jointpmf.judge.bands import band_disagreements
from jointpmf.judge.identifiability import identifiability, is_quick
from jointpmf.marginals.marginal_set import Disagreement, MarginalSet

if TYPE_CHECKING:
    from jointpmf.marginals.marginal import Marginal

Names = tuple[str, ...]

_MOST_SHOWN = 6
"""Lines of one kind that a report shows to people."""

_MOST_ASKED = 3
"""Tables of three variables that are asked for."""


@dataclass(frozen=True)
class TableSummary:
    """One table: its variables, its cells, and how many people it stands for, if it says so."""

    names: Names
    shape: tuple[int, ...]
    n_obs: float | None
    n_hidden: int
    is_plain: bool

    def __str__(self) -> str:
        """Name the variables, and say how large the table is."""
        size = "×".join(map(str, self.shape))
        people = "" if self.n_obs is None else f", {self.n_obs:,.0f} people"
        hidden = f", {_number(self.n_hidden, 'cell')} hidden" if self.n_hidden else ""
        return f"{', '.join(self.names)}: {size} cells{people}{hidden}"


@dataclass(frozen=True)
class Reordered:
    """A variable whose shares two tables give alike, but in another order."""

    variable: str
    first: Names
    second: Names

    def __str__(self) -> str:
        """Say which table may have its axis permuted, and what to do."""
        return (
            f"{', '.join(self.second)} gives {self.variable!r} the shares that "
            f"{', '.join(self.first)} gives it, in another order: its axis may be permuted; say "
            "with levels what its entries are"
        )


@dataclass(frozen=True)
class TablesReport:
    """What tables agree on and what they leave open; its text is for people.

    Attributes
    ----------
    tables : tuple of TableSummary
        The tables.
    disagreements : tuple of Disagreement
        Where two of them contradict each other, worst first.
    reordered : tuple of Reordered
        Axes that look permuted.
    totals : tuple of (names, number)
        How many people each table stands for, where that is not the same for all.
    groups : tuple of tuples of names
        Variables that tables connect; nothing is known of how groups depend on each other.
    unseen_pairs : tuple of pairs of names
        Variables that no table has together.
    largest_rank : int or None
        The largest rank of a model that the tables determine; None where it was not sought.
    is_largest : bool
        Whether larger ranks were found not to be determined (otherwise they were not tried).
    wanted : tuple of tuples of names
        Tables to ask for.
    """

    tables: tuple[TableSummary, ...]
    disagreements: tuple[Disagreement, ...]
    reordered: tuple[Reordered, ...]
    totals: tuple[tuple[Names, float], ...]
    groups: tuple[Names, ...]
    unseen_pairs: tuple[tuple[str, str], ...]
    largest_rank: int | None
    is_largest: bool
    wanted: tuple[Names, ...]

    def __str__(self) -> str:
        """Say what disagrees, what is not determined, and what to ask for."""
        n_variables = sum(map(len, self.groups))
        chapters = [
            (
                f"{_number(len(self.tables), 'table')} of {_number(n_variables, 'variable')}",
                self.tables,
            ),
            ("What disagrees", self._conflicts() or ["nothing"]),
            ("What is not determined", self._open() or ["nothing that was looked for"]),
            ("What to ask for", self._wishes() or ["nothing more is needed"]),
        ]
        return "\n".join(f"{title}:\n{_lines(lines)}" for title, lines in chapters)

    def _conflicts(self) -> list[str]:
        found = [str(one) for one in self.reordered]
        for one in self.disagreements:
            is_absent = 0 in (one.first_probability, one.second_probability)
            hint = "; if a table has bands instead of that level, say so with levels"
            found.append(f"{one}{hint if is_absent else ''}")
        if self.totals:
            counted = [f"{', '.join(names)} {total:,.6g}" for names, total in self.totals]
            found.append(f"how many people were counted: {'; '.join(counted)}")
        return found

    def _open(self) -> list[str]:
        found = []
        if len(self.groups) > 1:
            listed = "; ".join(", ".join(group) for group in self.groups)
            found.append(f"how these groups of variables depend on each other: {listed}")
        if self.unseen_pairs:
            listed = "; ".join(f"{a}, {b}" for a, b in self.unseen_pairs[:_MOST_SHOWN])
            rest = len(self.unseen_pairs) - _MOST_SHOWN
            more = f" and {rest} more" if rest > 0 else ""
            found.append(f"pairs that no table shows together: {listed}{more}")
        if self.largest_rank is not None:
            found.append(self._rank_sentence(self.largest_rank))
        return found

    def _rank_sentence(self, rank: int) -> str:
        if not self.is_largest:
            return f"whether models of a rank above {rank} are determined was not tried"
        which = f"models of a rank above {rank}" if rank else "models of any rank"
        return f"{which}: many fit the tables equally well, and the answer is their average"

    def _wishes(self) -> list[str]:
        found = []
        for names in self.wanted:
            joins = [group for group in self.groups if set(group) & set(names)]
            why = ""
            if len(joins) > 1:
                why = f", which connects {' with '.join(', '.join(group) for group in joins)}"
            found.append(f"a table of {' by '.join(names)}{why}")
        return found


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _lines(lines: Sequence[object]) -> str:
    rest = len(lines) - _MOST_SHOWN
    more = [f"and {rest} more"] if rest > 0 else []
    return "\n".join(f"  {line}" for line in [*lines[:_MOST_SHOWN], *more])


def check_tables(marginals: MarginalSet) -> TablesReport:
    """Return what tables disagree on, what they leave open, and which ones would help.

    Examples
    --------
    >>> import jointpmf as jp
    >>> domain = jp.Domain.of_sizes([2, 2, 2, 2], ["age", "sex", "vote", "job"])
    >>> pairs = [("age", "sex"), ("vote", "job")]
    >>> tables = [jp.Marginal(pair, [[3, 2], [1, 4]]) for pair in pairs]
    >>> report = check_tables(jp.MarginalSet(domain, tables))
    >>> report.groups, report.wanted
    ((('age', 'sex'), ('vote', 'job')), (('age', 'vote'),))
    """
    if not isinstance(marginals, MarginalSet):
        raise JointPMFError(f"marginals must be a MarginalSet, not {type(marginals).__name__}")
    about = [tuple(dict.fromkeys([*m.names, *m.where])) for m in marginals]
    disagreements = marginals.disagreements()
    conflicts = sorted([*disagreements, *band_disagreements(marginals)], key=lambda one: -one.by)
    groups = _groups(marginals.domain.names, about)
    unseen = _unseen_pairs(marginals.domain.names, about)
    largest, is_largest = _largest_rank(marginals)
    return TablesReport(
        tuple(map(_summary, marginals)),
        tuple(conflicts),
        tuple(_reordered(marginals, disagreements)),
        _totals(marginals),
        groups,
        unseen,
        largest,
        is_largest,
        _wanted(marginals, about, groups, unseen, largest),
    )


def _summary(marginal: Marginal) -> TableSummary:
    is_plain = marginal.is_of_everyone
    hidden = 0 if is_plain else int(np.isnan(np.asarray(marginal.table)).sum())
    shape = tuple(marginal.table.shape)
    return TableSummary(tuple(marginal.names), shape, marginal.n_rows, hidden, is_plain)


def _totals(marginals: MarginalSet) -> tuple[tuple[Names, float], ...]:
    """Return how many people each table of everyone stands for, if these numbers differ."""
    everyone = [m for m in marginals if m.n_rows is not None and not m.where and not m.given]
    found = [(tuple(m.names), float(m.n_rows or 0)) for m in everyone]
    differ = any(not math.isclose(a[1], b[1], rel_tol=1e-6) for a, b in pairwise(found))
    return tuple(found) if differ else ()


def _reordered(marginals: MarginalSet, disagreements: Sequence[Disagreement]) -> list[Reordered]:
    """Return the variables on which two tables would agree if one of them were reordered."""
    by_names = {tuple(m.names): m for m in marginals}
    found = []
    for one in disagreements:
        if len(one.variables) > 1:
            continue
        first, second = (
            _shares(by_names[names], one.variables[0]) for names in (one.first, one.second)
        )
        if np.abs(np.sort(first) - np.sort(second)).max() < one.by / 10:
            found.append(Reordered(one.variables[0], one.first, one.second))
    return found


def _shares(marginal: Marginal, name: str) -> np.ndarray:
    others = tuple(k for k, own in enumerate(marginal.names) if own != name)
    return np.asarray(marginal.table).sum(axis=others)


def _groups(names: Sequence[str], about: Sequence[Names]) -> tuple[Names, ...]:
    """Return the variables that tables connect, the largest group first."""
    group = {name: {name} for name in names}
    for table in about:
        joined = set().union(*(group[name] for name in table))
        for name in joined:
            group[name] = joined
    found = dict.fromkeys(tuple(n for n in names if n in group[name]) for name in names)
    return tuple(sorted(found, key=len, reverse=True))


def _unseen_pairs(names: Sequence[str], about: Sequence[Names]) -> tuple[tuple[str, str], ...]:
    seen = {frozenset(pair) for table in about for pair in combinations(table, 2)}
    return tuple(pair for pair in combinations(names, 2) if frozenset(pair) not in seen)


def _largest_rank(marginals: MarginalSet) -> tuple[int | None, bool]:
    """Return the largest rank that tables determine.

    It is not sought where a table shows all variables: that is the joint itself.
    """
    is_whole = any(m.is_of_everyone and m.order == len(marginals.domain) for m in marginals)
    if is_whole or not is_quick(marginals.domain, 2):
        return None, False
    report = identifiability(marginals, 2)
    return report.largest_rank, report.is_largest


def _wanted(
    marginals: MarginalSet,
    about: Sequence[Names],
    groups: Sequence[Names],
    unseen: Sequence[tuple[str, str]],
    largest: int | None,
) -> tuple[Names, ...]:
    """Return tables that would help: first those that connect groups, else some of three."""
    domain = marginals.domain
    uses = {name: sum(name in table for table in about) for name in domain.names}
    if len(groups) > 1:
        centres = [max(group, key=lambda n: (uses[n], -domain[n].size)) for group in groups]
        return tuple((centres[0], other) for other in centres[1:])
    if len(domain) < 3 or (not unseen and (largest is None or largest > 1)):
        return ()
    left = {frozenset(pair) for pair in unseen}
    seen = {frozenset(pair) for pair in combinations(domain.names, 2)} - left
    known = {frozenset(table) for table in about}
    triples = [
        triple
        for triple in combinations(domain.names, 3)
        if not any(set(triple) <= table for table in known)
    ]
    wanted: list[Names] = []
    while triples and len(wanted) < _MOST_ASKED and (left or not wanted):
        best = max(triples, key=lambda triple: _gain(triple, left, seen))
        left -= {frozenset(pair) for pair in combinations(best, 2)}
        triples.remove(best)
        wanted.append(best)
    return tuple(wanted)


def _gain(triple: Names, left: set[frozenset[str]], seen: set[frozenset[str]]) -> tuple[int, int]:
    """Return how many pairs a table would show for the first time, and how many it shares."""
    pairs = [frozenset(pair) for pair in combinations(triple, 2)]
    return sum(pair in left for pair in pairs), sum(pair in seen for pair in pairs)
