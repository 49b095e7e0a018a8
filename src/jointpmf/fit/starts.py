"""Where maximum likelihood begins: the best of several kinds of starts, or one that was asked for.

In memory, starts of different kinds get a few iterations each and the best goes on. Where the rows
are elsewhere, a model of a sample is found in that way first; if the rows can be read in blocks,
one pass of small steps follows.
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
from jointpmf.rows.table import log_likelihoods
from jointpmf.solvers.ordinal import point_along_factors
from jointpmf.solvers.starts.closed_form import point_in_closed_form
from jointpmf.solvers.starts.random import (
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

_INTERIOR = 0.2
"""Part of the marginals in a closed-form start, whose zeros are noise."""

_LIFT = 0.01
"""Part of the marginals that is mixed into a start under which some row cannot happen: an EM step
never leaves zero."""


class Begin(NamedTuple):
    """Where a fit begins, and why there."""

    point: Point
    start: Start
    stopped: bool = False
    """Whether someone stopped the search for it; then this is the best so far."""
    table: Table | None = None
    """The sample of the rows on which it was found, if it was."""
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
    elif fit.start == "rows":
        point = point_at_rows(rows, rank, generator)
    else:
        point = possible(point_along_factors(rows, rank, generator, table.caches), table)
    return Begin(point, Start(fit.start, "as asked"))


def possible(point: Point, source: Source) -> Point:
    """Return a start under which all rows can happen."""
    if isinstance(source, Table):
        is_possible = not np.isneginf(log_likelihoods(source.rows, point)).any()
    else:
        expectation = source.expectation(len(point.weights))
        is_possible = np.isfinite(expectation.counts(expectation.stack(point))[1])
    if is_possible:
        return point
    logger.info("the start gives rows probability zero; a part of the marginals is mixed in")
    return mixed(point, source.marginal, _LIFT)


def _best_start(
    fit: EMFit, table: Table, generator: np.random.Generator, held_out: Validation | None
) -> Begin:
    """Return the best of several starts, after a few iterations of each."""
    effort = fit.effort
    n_all = len(table.rows)
    count, n_rows = effort.n_starts_and_rows(n_all, table.rows.n_cells, fit.rank)
    tried = table
    if n_rows < n_all:
        some = np.sort(generator.permutation(n_all)[:n_rows])
        tried = replace(table, rows=table.rows.taken(some))
    loop = replace(fit.loop, callback=None, max_iter=min(effort.n_steps, fit.loop.max_iter))
    short = replace(fit, loop=loop)

    def fitted(kind: str, make: Callable[[], Point | None]) -> Solution | None:
        point = make()
        return None if point is None else short.from_point(tried, point, Start(kind), held_out)

    def two_kinds_agree(trials: Trials[str]) -> bool:
        return len({trial.kind for trial in trials.near_best(effort.agreement)}) > 1

    candidates = (
        (kind, partial(fitted, kind, make))
        for kind, make in _candidates(tried, fit.rank, count, generator)
    )
    is_enough = two_kinds_agree if count < effort.most_starts else None
    trials: Trials[str] = Trials()
    try:
        trials.run(candidates, is_enough)
    except KeyboardInterrupt:
        return Begin(point_at_rows(table.rows, fit.rank, generator), Start("rows"), stopped=True)
    near = list(trials.near_best(effort.agreement))
    first = near[0]
    start = Start(first.kind, n_tried=len(trials.found), n_agreed=len(near))
    point = possible(Point.of_pmf(first.solution.pmf), table)
    return Begin(point, start, trials.is_stopped)


def _candidates(
    table: Table, rank: int, count: int, generator: np.random.Generator
) -> Iterator[tuple[str, Callable[[], Point | None]]]:
    """Yield starts of different kinds, the surest first, each as what makes it."""
    rows = table.rows

    def closed_form() -> Point | None:
        found = point_in_closed_form(table.codes, table.weights, rank, generator)
        return None if found is None else mixed(found, rows.marginal, _INTERIOR)

    kinds: list[tuple[str, Callable[[], Point | None]]] = [
        ("merged rows", partial(point_of_merged_rows, rows, rank, generator)),
        ("rows", partial(point_at_rows, rows, rank, generator)),
        ("random", partial(random_point, rows.domain, rank, generator)),
    ]
    if rank == 1 or not can_merge(rows.domain, rank):
        kinds = kinds[1:]
    if rank > 1:
        yield "closed form", closed_form
    for k in range(count):
        yield kinds[k % len(kinds)]
