"""Where maximum likelihood begins: a start that was asked for, or points of several kinds.

Without a validation part the search in `optimum.py` begins at such points. With one, each gets a
few iterations, and the one that does best on what is held out goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.fit.search import Trials
from jointpmf.fit.solution import Solution, Start
from jointpmf.point import Point
from jointpmf.rows.source import Source, Table
from jointpmf.rows.table import mean_log_likelihood
from jointpmf.solvers.starts.random import (
    LIFT,
    can_merge,
    mixed,
    point_at_rows,
    point_of_merged_rows,
    random_point,
)

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.pmf import JointPMF
    from jointpmf.solvers.loop import Outcome, Validation

logger = logging.getLogger("jointpmf")


class Begin(NamedTuple):
    """Where a fit begins, and why there."""

    point: Point
    start: Start
    stopped: bool = False
    """Whether someone stopped the search for it; then this is the best so far."""
    table: Table | None = None
    """The sample of the rows on which it was found, if it was."""
    searched: Solution | None = None
    """The fit to that sample, which knows how often it was found."""
    outcome: Outcome | None = None
    """How far steps over all rows had come when someone stopped them."""


def begin_at(pmf: JointPMF, source: Source) -> Begin:
    """Return a start at a given model."""
    return Begin(possible(Point.of_pmf(pmf), source), Start("given", "a JointPMF"))


def begin_in_memory(
    fit: EMFit, table: Table, generator: np.random.Generator, held_out: Validation | None
) -> Begin:
    """Return where a fit to a table in memory begins."""
    rows, rank = table.rows, fit.rank
    if not isinstance(fit.start, str):
        return begin_at(fit.start, table)
    if fit.start == "auto":
        return _best_start(fit, table, generator, held_out)
    if fit.start == "random":
        point = random_point(rows.domain, rank, generator)
    else:
        point = point_at_rows(rows, rank, generator)
    return Begin(point, Start(fit.start, "as asked"))


def possible(point: Point, source: Source) -> Point:
    """Return a start under which all rows can happen."""
    if isinstance(source, Table):
        is_possible = np.isfinite(mean_log_likelihood(source.rows, point))
    else:
        expectation = source.expectation(len(point.weights))
        is_possible = np.isfinite(expectation.counts(expectation.stack(point))[1])
    if is_possible:
        return point
    logger.info("the start gives rows probability zero; a part of the marginals is mixed in")
    return lifted(point, source)


def lifted(point: Point, source: Source) -> Point:
    """Return what was found on a sample as a start under which all rows can happen."""
    return mixed(point, source.marginal, LIFT)


def _best_start(
    fit: EMFit, table: Table, generator: np.random.Generator, held_out: Validation | None
) -> Begin:
    """Return the start that does best on what is held out, after a few iterations of each."""
    loop = replace(fit.loop, callback=None, max_iter=min(fit.effort.n_steps, fit.loop.max_iter))
    short = replace(fit, loop=loop)

    def fitted(kind: str, make: Callable[[], Point]) -> Solution:
        return short.from_point(table, make(), Start(kind), held_out)

    kinds = dict(both for k in range(2) for both in fresh_points(table, fit.rank, k, generator))
    trials: Trials[str] = Trials()
    try:
        trials.run((kind, partial(fitted, kind, make)) for kind, make in kinds.items())
    except KeyboardInterrupt:
        return Begin(point_at_rows(table.rows, fit.rank, generator), Start("rows"), stopped=True)
    best = trials.best
    assert best.start is not None
    return Begin(possible(Point.of_pmf(best.pmf), table), best.start, trials.is_stopped)


def fresh_points(
    table: Table, rank: int, k: int, generator: np.random.Generator
) -> Iterator[tuple[str, Callable[[], Point]]]:
    """Yield two points at which the k-th search may begin, each as its kind and what makes it."""
    rows = table.rows

    at_rows = ("rows", partial(point_at_rows, rows, rank, generator))
    if rank == 1:
        yield at_rows
        return
    merged = at_rows
    if can_merge(rows.domain, rank):
        merged = ("merged rows", partial(point_of_merged_rows, rows, rank, generator))
    random = ("random", partial(random_point, rows.domain, rank, generator))
    yield merged if k % 2 == 0 else at_rows
    yield random
