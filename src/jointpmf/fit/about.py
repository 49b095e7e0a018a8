"""What a model file says of a fit, as texts by topic; and which tables a model was learned from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.fit.solution import Solution
    from jointpmf.marginals.marginal_set import MarginalSet


def about_of(solution: Solution) -> dict[str, str]:
    """Return what a model file says of a fit; topics that do not apply are left out.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 2, 2]), rank=1, random_state=0)
    >>> about = about_of(jp.fit_marginals(truth.marginals(order=2), rank=1, random_state=0))
    >>> about["tables"], about["order"], about["loss"]
    ('3', '2', 'squares')
    """
    from jointpmf import __version__

    source = solution.source
    kind = "" if source is None else source.kind
    is_sampled = source is not None and source.n_sampled
    several = solution.n_starts > 1
    about = {
        "method": "likelihood" if kind == "rows" else kind or None,
        "rows": None if source is None else source.n_rows,
        "tables": None if source is None else source.n_marginals,
        **_tables(solution.marginals),
        "loss": _loss(solution),
        "source": source if is_sampled else None,
        "rank": solution.pmf.rank,
        "start": solution.start,
        "starts": solution.n_starts if several else None,
        "agreed": solution.n_agreed if several else None,
        "averaged": solution.n_averaged if solution.n_averaged > 1 else None,
        "status": solution.status.value,
        "objective": f"{solution.objective:.10g}",
        "iterations": solution.n_iter,
        "library": f"jointpmf {__version__}",
    }
    return {topic: str(text) for topic, text in about.items() if text is not None}


def _tables(marginals: MarginalSet | None) -> dict[str, object]:
    """Return which variables tables are about: their order, if they are all of one, or a list."""
    if marginals is None:
        return {}
    subsets = list(dict.fromkeys(tuple(dict.fromkeys([*m.names, *m.where])) for m in marginals))
    orders = {len(subset) for subset in subsets}
    n_partial = sum(not marginal.is_of_everyone for marginal in marginals)
    order = min(orders)
    is_all = len(orders) == 1 and len(subsets) == math.comb(len(marginals.domain), order)
    return {
        "order": order if is_all else None,
        "subsets": None if is_all else json.dumps(subsets, ensure_ascii=False),
        "partial": n_partial or None,
    }


def _loss(solution: Solution) -> str | None:
    if solution.source is not None and solution.source.loss is not None:
        return solution.source.loss
    if solution.settings is None:
        return None
    return "likelihood"


class LearnedFrom(NamedTuple):
    """Which tables a model was learned from, as far as its file says."""

    subsets: list[list[str]] | int | None
    """The variables of each table, or of how many variables all of them are; None if not said."""
    n_partial: int
    """How many of them are of bands, of part of the population, in percent or have holes."""
    n_averaged: int
    """How many fits the model is the average of."""

    @classmethod
    def of(cls, about: Mapping[str, str], domain: Domain) -> LearnedFrom:
        """Return what the texts about a model say.

        Examples
        --------
        >>> from jointpmf import Domain
        >>> LearnedFrom.of({"subsets": '[["x0", "x1"]]'}, Domain.of_sizes([2, 2, 2])).subsets
        [['x0', 'x1']]
        """
        try:
            subsets = json.loads(about.get("subsets") or about.get("order") or "null")
            for subset in subsets if isinstance(subsets, list) else []:
                domain.indices(subset)
            return cls(subsets, int(about.get("partial", "0")), int(about.get("averaged", "1")))
        except (JointPMFError, ValueError, TypeError):
            raise JointPMFError(
                "which tables the model was learned from cannot be read in its file"
            ) from None

    def notes(self, order: int | None) -> list[str]:
        """Return what to know of an answer about these tables, or about all of an asked order."""
        notes = []
        if order is None and self.subsets is None:
            notes.append(
                "The file does not say from which tables the model was learned, so this is about "
                "all triples."
            )
        if order is None and self.n_partial:
            notes.append(
                f"{self.n_partial} of the tables have bands, hidden cells or percentages, or are "
                "about part of the population; they are taken here for whole tables, so that "
                "fewer parameters may be seen than is said."
            )
        if self.n_averaged > 1:
            notes.append(f"The model is the average of {self.n_averaged} fits of one rank.")
        return notes
