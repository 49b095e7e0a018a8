"""All that a report says of a fit, before it is laid out on a page."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jointpmf.judge.identifiability import identifiability
from jointpmf.show.report.cautions import cautions
from jointpmf.show.report.comparison import comparison
from jointpmf.show.report.subject import Subject
from jointpmf.show.report.tally import Tally
from jointpmf.show.text import whole_in
from jointpmf.solvers.jacobian import n_free_parameters
from jointpmf.solvers.loop import Status

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution
    from jointpmf.judge.curve import RankCurve
    from jointpmf.judge.goodness import Goodness
    from jointpmf.judge.identifiability import Identifiability
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.show.report.cautions import Caution
    from jointpmf.show.report.comparison import Budget, Comparison

_MOST_PARAMETERS = 1500
"""Numbers of the largest model whose uniqueness is judged; larger ones take too long."""

_MOST_TABLES = 20_000
"""Marginals from which uniqueness is judged; more take too long."""


@dataclass(frozen=True)
class Findings:
    """All that a report says."""

    subject: Subject
    tally: Tally | None
    curve: RankCurve | None
    curve_note: str
    identified: Identifiability | None
    comparison: Comparison | None
    goodness: Goodness | None = None
    uncertainty: Uncertainty | None = None

    @cached_property
    def cautions(self) -> list[Caution]:
        """What to be wary of."""
        return list(cautions(self))

    @property
    def warnings(self) -> list[str]:
        """What to be wary of, as sentences."""
        return list(map(str, self.cautions))

    @property
    def n_fitted(self) -> float | None:
        """The total weight of the rows that were fitted, if known; else of those of the table.

        A row without any observed cell tells a fit nothing and is not counted.
        """
        known = self.subject.n_rows
        if self.tally is None or (known and known != self.tally.n_rows):
            return known
        return self.tally.weight

    @property
    def is_most_likely(self) -> bool:
        """Whether the model was fitted to the rows of the table by maximum likelihood."""
        subject, tally = self.subject, self.tally
        is_of_table = tally is not None and subject.n_rows in (None, tally.n_rows)
        return subject.is_by_rows and subject.status is not Status.VALIDATED and is_of_table

    @property
    def n_parameters(self) -> int:
        """Free numbers of the model; of an average, those of one of its fits."""
        pmf, n_averaged = self.subject.pmf, self.subject.n_averaged
        return n_free_parameters(pmf.domain, math.ceil(pmf.rank / n_averaged))

    @property
    def is_unique(self) -> bool | None:
        """Whether what was fitted determines the model; None where that is not known."""
        if self.subject.n_averaged > 1:
            return None
        if self.identified is not None and self.identified.identifiable is not None:
            return self.identified.identifiable
        if self.subject.status is Status.NOT_UNIQUE:
            return False
        return self.subject.is_unique


def findings_of(
    subject: Subject,
    tally: Tally | None = None,
    curve: RankCurve | None = None,
    curve_note: str = "",
    budget: Budget | None = None,
) -> Findings:
    """Return what is to be said of a fit, of the table it was fitted to, and of other ranks.

    `curve_note` is a sentence on how the curve was found.
    """
    compared = comparison(subject, tally, budget)
    found = Findings(subject, tally, curve, curve_note, identified(subject), compared)
    if tally is None or subject.n_averaged > 1 or not found.is_most_likely:
        return found
    return replace(found, goodness=tally.goodness())


def findings_in_memory(
    solution: Solution,
    table: Any,
    curve: RankCurve | None,
    sample_weight: Any,
    uncertainty: Uncertainty | None = None,
) -> Findings:
    """Return what is to be said of a fit and of a table in memory, if there is one."""
    tally = None
    if table is not None:
        counts_pairs = solution.marginals is None
        tally = Tally.of_table(solution.pmf, table, sample_weight, counts_pairs=counts_pairs)
    found = findings_of(Subject.of_solution(solution), tally, curve)
    return replace(found, uncertainty=uncertainty)


def identified(subject: Subject) -> Identifiability | None:
    """Return whether what was fitted determines the model; None where that is not known.

    Whole rows are judged by their marginals of three variables, although they hold more.
    """
    pmf, domain = subject.pmf, subject.pmf.domain
    if pmf.rank * (1 + sum(domain.sizes)) > _MOST_PARAMETERS or not len(domain):
        return None
    if subject.n_averaged > 1:  # its rank is the sum of the fits' ranks
        return None
    if subject.marginals is not None:
        small = len(subject.marginals) <= _MOST_TABLES
        return identifiability(subject.marginals, pmf.rank) if small else None
    order = subject.about.get("order", "3" if subject.is_by_rows else "")
    if not (given := whole_in(order)):
        return None
    known = min(given, len(domain))
    if math.comb(len(domain), known) > _MOST_TABLES:
        return None
    return identifiability(domain, pmf.rank, order=known)
