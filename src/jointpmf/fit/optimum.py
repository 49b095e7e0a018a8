"""The best optimum of a likelihood: climbs from several starts, until it was found again.

A climb begins at points of different kinds, goes on from the better one by moves that often lead
to a better optimum, and ends when several moves in a row did not. Climbs do not know of each other
until they end; so if several end at the same optimum, few others are left to find. Then each is
crossed with earlier ones, which may find a better optimum but is no evidence for it. Fits that fall
behind are given up; the best is then fitted to the end. In a large table every climb has a sample
of the rows of its own, and goes on from there with all rows before it is compared with others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trials, log_how_often_found
from jointpmf.fit.solution import Solution, Start
from jointpmf.fit.starts import fresh_points, lifted
from jointpmf.point import Point
from jointpmf.rows.source import Table
from jointpmf.solvers.loop import Loop, Outcome, Status, one_history
from jointpmf.solvers.starts.moves import crossed, moved, passes_of_move
from jointpmf.solvers.starts.random import point_at_rows
from jointpmf.threads import interrupts

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit

_SEARCH_TOL = 1e-8
"""How far the fits of a search are taken, in nats per row: enough to tell optima apart."""

_GAIN = 1e-7
"""A move has led to another optimum if it lowers the objective by this part of it."""

_MOST_CROSSED = 4
"""Earlier climbs that the end of a climb is crossed with, the best ones."""

_LEAST_PASSES = 50
"""A fit is taken to cost at least this many passes over the rows: where components are so clear
that fits end at once, they end at poor optima, and more starts are needed."""

_LOOSE = 0.02
"""How far later starts on samples are taken with all rows, as a part of what optima may differ by
and be the same."""


def best_optimum(
    fit: EMFit, table: Table, generator: np.random.Generator, begun: float
) -> Solution:
    """Return the best fit to a table that a search finds, and how often it was found."""
    climbs = _Climbs(fit, table, generator, begun)
    trials: Trials[str] = climbs.trials
    try:
        trials.run(climbs.candidates(), climbs.is_enough)
    except KeyboardInterrupt:  # before there was a fit
        here = replace(fit, loop=replace(fit.loop, max_iter=0))
        point = point_at_rows(table.rows, fit.rank, generator)
        return here.from_point(table, point, Start("rows"), begun=begun).stopped()
    told = trials.told(_finished(climbs), max(climbs.n_agreed, 1))
    if not trials.is_stopped and fit.n_starts != 1:
        log_how_often_found(told)
    return told


@dataclass
class _Climbs:
    """Climbs from one start after the other, and what they have cost so far."""

    fit: EMFit
    table: Table
    generator: np.random.Generator
    begun: float
    trials: Trials[str] = field(default_factory=Trials)
    ends: list[Outcome] = field(default_factory=list)
    """Where each climb ended, over all rows."""
    crossings: list[Outcome] = field(default_factory=list)
    """Where climbs that were crossed with others ended, if ahead of both."""
    n_passes: int = 0
    """Passes over the rows that are searched, of all fits."""
    passes_of_fits: list[int] = field(default_factory=list)
    """Passes of the fits that began afresh and were not given up."""
    _best: Outcome | None = None
    """The best of the climb that is going on."""
    _kind: str = ""
    """The kind of point that this climb began at."""

    @property
    def n_most(self) -> int:
        """How many climbs there are at most."""
        if self.fit.rank == 1:
            return 1  # there is one optimum
        effort = self.fit.effort
        is_sampled = self.n_searched < len(self.table.rows)
        return self.fit.n_starts or (effort.most_sampled if is_sampled else effort.most_starts)

    @cached_property
    def n_searched(self) -> int:
        """How many rows are searched."""
        rows = self.table.rows
        return self.fit.effort.n_rows_searched(len(rows), rows.n_cells, self.fit.rank)

    def candidates(self) -> Iterator[tuple[str, Callable[[], Solution]]]:
        """Yield climbs, each as what does it."""
        for k in range(self.n_most):
            yield f"start {k + 1}", partial(self._climb, k)

    @property
    def best(self) -> Outcome:
        """The best of all climbs, and of what came of crossing them."""
        return min([*self.ends, *self.crossings], key=lambda end: end.objective)

    @property
    def n_agreed(self) -> int:
        """How many climbs ended at the best optimum by themselves."""
        best = self.best.objective
        return sum(end.objective <= best + self._tolerance for end in self.ends)

    @property
    def _tolerance(self) -> float:
        return self.fit.effort.agreement * abs(self.best.objective)

    def is_enough(self, trials: Trials[str]) -> bool:
        """Tell whether the best optimum was found often enough, or the budget is used up."""
        if self.fit.n_starts is not None or len(self.ends) < 2:
            return False
        gaps = np.diff(sorted(end.objective for end in self.ends)) > self._tolerance
        is_evidence = self.fit.effort.is_evidence(len(self.ends), 1 + int(gaps.sum()))
        return self._is_used_up or (is_evidence and self.n_agreed > 1)

    @property
    def _is_used_up(self) -> bool:
        if self.fit.n_starts is not None or not self.passes_of_fits:
            return False
        mean = sum(self.passes_of_fits) / len(self.passes_of_fits)
        return self.n_passes > self.fit.effort.fits * max(mean, _LEAST_PASSES)

    def _climb(self, k: int) -> Solution:
        """Return the best that one start and moves from there lead to."""
        self._best, self._kind = None, ""
        loop, table = self._loop(k), self._part()
        try:
            with interrupts():
                self._improve(k, table, loop)
        except KeyboardInterrupt:
            if self._best is None:
                raise
            self._best = self._best._replace(status=Status.STOPPED)
        if table is not self.table:
            self._go_on_with_all_rows(loop)
        own = self._summit
        if table is self.table:
            self._cross(loop)
        self.ends.append(own)
        if self._summit is not own and _is_ahead(self._summit, self.best):
            self.crossings.append(self._summit)
        n_rows = None if table is self.table else table.rows.total
        if self._is_stopped:  # perhaps since it ended
            own = own._replace(status=Status.STOPPED)
        return Solution.of(own, self.table.domain, Start(self._kind, n_rows=n_rows))

    def _part(self) -> Table:
        """Return the rows that a climb searches: all, or a sample if all would take too long."""
        n_all = len(self.table.rows)
        if self.n_searched == n_all:
            return self.table
        some = np.sort(self.generator.permutation(n_all)[: self.n_searched])
        # the closed form counts triples over all rows, in one pass: a sample would be too noisy
        return replace(self.table, rows=self.table.rows.taken(some))

    def _go_on_with_all_rows(self, loop: Loop) -> None:
        """Fit all rows from what was found on a sample, as long as that is not behind the best."""
        point = lifted(self._summit.point, self.table)
        if self._is_stopped:
            loop = replace(loop, max_iter=0)
        if self.ends:
            rival = min(end.objective for end in self.ends)
            tol = _LOOSE * self.fit.effort.agreement * abs(rival)  # enough to see whether it agrees
            loop = replace(loop, rival=rival, tol=max(loop.tol, tol))
        found = self.fit.outcome(self.table, point, loop, begun=self.begun)
        self._best = found._replace(status=Status.STOPPED) if self._is_stopped else found

    def _improve(self, k: int, table: Table, loop: Loop) -> None:
        """Begin afresh, and make moves until several are in vain."""
        rows, effort = table.rows, self.fit.effort
        for kind, make in fresh_points(table, self.fit.rank, k, self.generator):
            if not self._is_stopped and (point := make()) is not None:
                self._try(table, point, loop, kind)
        n_moves = n_vain = 0
        n_most = effort.patience if self.fit.rank > 1 else 0
        while n_vain < n_most and not self._is_stopped and not (self.ends and self._is_used_up):
            before = self._summit
            self.n_passes += passes_of_move(n_moves)
            self._try(table, moved(before.point, rows, n_moves, self.generator), loop)
            n_vain = 0 if _is_ahead(self._summit, before) else n_vain + 1
            n_moves += 1

    def _cross(self, loop: Loop) -> None:
        """Cross the end of a climb with those of the best climbs before it."""
        try:
            with interrupts():
                for end in sorted(self.ends, key=lambda end: end.objective)[:_MOST_CROSSED]:
                    best = self._summit
                    is_same = not (_is_ahead(end, best) or _is_ahead(best, end))
                    if not (is_same or self._is_stopped or self._is_used_up):
                        point = crossed(best.point, end.point, self.table.rows)
                        self._try(self.table, point, loop)
        except KeyboardInterrupt:
            self._best = self._summit._replace(status=Status.STOPPED)

    def _try(self, table: Table, point: Point, loop: Loop, kind: str = "") -> None:
        """Fit from a point, and keep it if it is the best of this climb."""
        best = self._best
        if best is not None:
            loop = replace(loop, rival=best.objective)
        found = self.fit.outcome(table, point, loop, begun=self.begun)
        self.n_passes += _passes(found)
        if best is None or found.objective < best.objective:
            self._best = found
            if kind:
                self._kind = kind
                self.passes_of_fits.append(_passes(found))
        elif found.status is Status.STOPPED:
            self._best = best._replace(status=Status.STOPPED)

    @property
    def _summit(self) -> Outcome:
        assert self._best is not None  # some kinds of points can always be made
        return self._best

    @property
    def _is_stopped(self) -> bool:
        return self._best is not None and self._best.status is Status.STOPPED

    def _loop(self, k: int) -> Loop:
        """Return how long the fits of a climb run, and what is said of them."""
        loop = self.fit.loop
        stage = f"start {k + 1} of {'' if self.fit.n_starts else 'at most '}{self.n_most}"
        if self.ends:
            count = max(self.n_agreed, 1)
            often = {1: "once", 2: "twice"}.get(count, f"{count} times")
            stage += f", best {self.best.objective:.4f}, found {often}"
        return in_stage(replace(loop, tol=max(loop.tol, _SEARCH_TOL)), stage)


def _passes(outcome: Outcome) -> int:
    return 2 * outcome.n_iter + 1


def _is_ahead(one: Outcome, other: Outcome) -> bool:
    return one.objective < other.objective - _GAIN * abs(other.objective)


def _finished(climbs: _Climbs) -> Solution:
    """Return the best of all climbs, fitted to the end and with the history of both runs."""
    fit, table, best = climbs.fit, climbs.table, climbs.best
    start, n_left = climbs.trials.best.start, fit.loop.max_iter - best.n_iter
    assert start is not None
    if climbs.trials.is_stopped:
        return Solution.of(best, table.domain, start).stopped()
    if n_left <= 0:
        return Solution.of(best, table.domain, start)
    own = replace(fit, loop=replace(fit.loop, max_iter=n_left))
    found = own.from_point(table, best.point, start, begun=climbs.begun)
    return replace(found, history=one_history([best.history, found.history]))
