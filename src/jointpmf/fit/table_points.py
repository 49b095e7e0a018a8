"""One fit to tables from a point, and what is measured of such fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.compiled.panels import panel_width
from jointpmf.data.codes import Codes
from jointpmf.errors import JointPMFError
from jointpmf.fit.solution import Solution, Start
from jointpmf.point import Point, columns_of_one
from jointpmf.solvers import em
from jointpmf.solvers.loop import Status, iterate

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.marginals.exclusions import Exclusions
    from jointpmf.pmf import JointPMF
    from jointpmf.solvers.table_cells import TableCells

INTERIOR = 0.2
"""Part of the marginals in a model from which tables are fitted: no EM step returns from zeros."""

_ROWS_OF_EACH = 500
"""Rows of each fit by which it is told how far it is from the average."""

_MOST_DRAWS = 100
"""How often the levels of components are drawn that avoid what is impossible."""


def from_point(fit: EMFit, cells: TableCells, point: Point, start: Start) -> Solution:
    """Return the fit from a point; smoothing leaves its zeros alone."""
    prior = fit.prior(cells)
    if prior is not None and (point.factors == 0).any():
        prior = prior * (point.factors > 0)
    solver = em.EM(cells, fit.rank, prior)
    return Solution.of(iterate(solver, point, fit.loop), cells.domain, start)


def avoiding(
    point: Point, cells: TableCells, exclusions: Exclusions, generator: np.random.Generator
) -> Point:
    """Return a point whose components avoid what is impossible, and allow what was counted."""
    if not exclusions:
        return point
    rank = len(point.weights)
    expectation = cells.expectation(rank)
    for _ in range(_MOST_DRAWS):
        allowed = exclusions.drawn(rank, cells.marginal, generator)
        if allowed is not None:
            found = normalised(Point(point.weights, point.factors * allowed), cells.domain)
            if np.isfinite(expectation.counts(expectation.stack(found))[1]):
                return found
    raise JointPMFError(
        f"rank {rank} is too small for {len(exclusions.cells)} impossible combinations, or they "
        "contradict each other or the tables"
    )


def normalised(point: Point, domain: Domain) -> Point:
    """Return a point whose columns sum to one."""
    return Point(point.weights, columns_of_one(point.factors, domain))


def disagreement_of(pmfs: Sequence[JointPMF]) -> float:
    """Return how far models are from their average: the mean KL divergence, in nats, on drawn rows.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> round(disagreement_of([pmf, pmf]), 12)
    0.0
    """
    drawn = [pmf.sample(_ROWS_OF_EACH, random_state=0, backend="codes") for pmf in pmfs]
    rows = Codes(pmfs[0].domain, np.concatenate(drawn))
    # the average has the mean of their probabilities; as a model it would be of a rank whose
    # loops may not be compiled yet
    logs = np.reshape([pmf.log_probability(rows) for pmf in pmfs], (len(pmfs), len(pmfs), -1))
    means = np.logaddexp.reduce(logs) - np.log(len(pmfs))
    total = sum(float((logs[k, k] - mean).mean()) for k, mean in enumerate(means))
    return max(total / len(pmfs), 0.0)


def cost_of(cells: TableCells, pmf: JointPMF) -> float:
    """Return minus the mean log-likelihood of a row of the tables."""
    expectation = cells.expectation(pmf.rank, panel_width(1))  # once: not worth its own loop
    return -expectation.counts(expectation.stack(Point.of_pmf(pmf)))[1] / cells.total


def optimism_of(
    pmf: JointPMF, drawn: Sequence[TableCells], again: Callable[[TableCells], Solution]
) -> float:
    """Return twice what a fit gains over a model on tables of other people, on average."""
    gains = []
    for cells in drawn:
        found = again(cells)
        check_not_stopped(found)
        gains.append(cost_of(cells, pmf) - cost_of(cells, found.pmf))
    return 2 * float(np.mean(gains)) if gains else 0.0


def check_not_stopped(*solutions: Solution) -> None:
    """Raise KeyboardInterrupt if someone stopped one of some fits."""
    if any(solution.status is Status.STOPPED for solution in solutions):
        raise KeyboardInterrupt
