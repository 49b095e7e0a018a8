"""Items that nobody rated: no model can be fitted to them, so they are added to one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.data.ratings import Ratings
from jointpmf.domain import MISSING, Domain
from jointpmf.errors import JointPMFError, instance_of, listing
from jointpmf.fit.search import concluded
from jointpmf.fit.validation import hidden_cells
from jointpmf.pmf import JointPMF
from jointpmf.rows.source import Table

if TYPE_CHECKING:
    from jointpmf.fit.settings import HiddenCells
    from jointpmf.fit.solution import Solution

logger = logging.getLogger("jointpmf")


def fit_rated_items(
    table: Table,
    ratings: Ratings | None,
    cells: HiddenCells,
    fit: Callable[[Table, HiddenCells], Solution],
    generator: np.random.Generator,
) -> Solution:
    """Return a fit by hidden cells; of Ratings, to the items that have visible ratings.

    The other items are then predicted as all ratings together are distributed.
    """
    hidden = hidden_cells(table.codes, cells.cells, generator)
    if ratings is None:
        return fit(table, replace(cells, cells=hidden))
    visible = ratings.without(hidden)
    seen = visible.codes.array != MISSING
    known = (seen if table.weights is None else seen[table.weights > 0]).any(axis=0)
    if not known.any():
        raise JointPMFError("no item has a rating that can be fitted")
    names = [name for name, kept in zip(table.domain.names, known, strict=True) if kept]
    part = Codes(table.domain.project(names), table.codes.array[:, known])
    rated = table if known.all() else Table.of_codes(part, table.weights)
    solution = fit(rated, replace(cells, cells=hidden[:, known]))

    def of_all_items() -> Solution:
        pmf = with_unrated_items(solution.pmf, visible)
        return replace(solution, pmf=pmf.marginal(ratings.items))

    return concluded(of_all_items)


def with_unrated_items(pmf: JointPMF, ratings: Ratings) -> JointPMF:
    """Return a model that has all items of ratings; see `JointPMF.with_unrated_items`."""
    instance_of(ratings, Ratings, "ratings")
    lacking = [variable for variable in ratings.codes.domain if variable.name not in pmf.domain]
    if not lacking:
        return pmf
    if not ratings.n_ratings:
        raise JointPMFError("there is no rating to tell how items are rated")
    logger.warning(
        "the model does not know %s, predicted as all ratings are distributed",
        listing(variable.name for variable in lacking),
    )
    known = ratings.codes.array[ratings.known]
    shares = np.bincount(known, minlength=len(ratings.scale)) / len(known)
    factor = np.tile(shares[:, None], pmf.rank)
    domain = Domain((*pmf.domain, *lacking))
    return JointPMF(
        domain, pmf.weights, [*pmf.factors, *[factor] * len(lacking)], pmf.component_names
    )
