"""The best optimum of a likelihood: climbs from several starts, until it was found again.

A climb begins at points of different kinds, goes on from the better one by moves that often lead
to a better optimum, and ends when several moves in a row did not. Climbs are independent, so
repeated hits on one optimum suggest that few better ones remain. Fits that fall behind are given
up; the best is then fitted to the end. In a large table every climb has a sample of the rows of its
own, and goes on from there with all rows before it is compared with others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trials, log_how_often_found
from jointpmf.fit.solution import Solution, Start
from jointpmf.fit.starts import fresh_points, lifted, possible
from jointpmf.point import Point
from jointpmf.rows.source import Source, Table
from jointpmf.rows.table import drawn_by_weight
from jointpmf.solvers.loop import Loop, Outcome, Status, one_history
from jointpmf.solvers.starts.moves import moved, passes_of_move
from jointpmf.solvers.starts.random import passes_of_start, point_at_rows
from jointpmf.threads import interrupts

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit

logger = logging.getLogger("jointpmf")

_SEARCH_TOL = 1e-8
"""How far the fits of a search are taken, in nats per row: enough to tell optima apart."""

_GAIN = 1e-7
"""A move has led to another optimum if it lowers the objective by this part of it."""

_LEAST_PASSES = 50
"""A fit is taken to cost at least this many passes over the rows: where components are so clear
that fits end at once, they end at poor optima, and more starts are needed."""

_LOOSE = 0.02
"""How far later starts on samples are taken with all rows, as a part of what optima may differ by
and be the same."""

_CLIMBING, _COMPARING = 0.65, 0.9
"""What of its cost a limited search may have spent when a climb ends, and when its end was fitted
to the rows that ends are compared by; the rest is for comparing them by all rows."""

_ENDED_NOISE, _GAINED_NOISE, _SAME_NOISE = 1e-4, 1e-2, 1e-2
"""Parts of a sample's own noise: iterations that gain less end a fit of a limited search, moves
that gain less were in vain, and ends that differ by less are the same optimum."""

_MOST_RIVALS = 3
"""Optima of a sample that are compared by all rows."""


def best_optimum(
    fit: EMFit,
    table: Table,
    generator: np.random.Generator,
    begun: float,
    whole: Source | None = None,
) -> Solution:
    """Return the best fit to a table that a search finds, and how often it was found.

    If the table is a sample of a whole one, the search may cost what a few passes over that cost,
    which also tells which of several optima of the sample is the best.
    """
    climbs = _Climbs(fit, table, generator, begun, whole)
    trials: Trials[str] = climbs.trials
    try:
        trials.run(climbs.candidates(), climbs.is_enough)
    except KeyboardInterrupt:  # before a climb had ended
        return _as_far_as_it_came(climbs)
    best = _chosen(climbs)
    told = trials.told(_finished(climbs, best), max(climbs.n_found(best), 1))
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
    whole: Source | None = None
    """What the table is a sample of, if it is."""
    trials: Trials[str] = field(default_factory=Trials)
    ends: list[Outcome] = field(default_factory=list)
    """Where each climb ended, over all rows."""
    n_passes: int = 0
    """Passes over the rows that are searched, of all fits."""
    work: float = 0.0
    """What they, and those of the rows that ends are compared by, have cost."""
    passes_of_fits: list[int] = field(default_factory=list)
    """Passes of the fits that began afresh and were not given up."""
    _best: Outcome | None = None
    """The best of the climb that is going on."""
    kind: str = ""
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
        return self.fit.effort.n_rows_searched(
            len(rows), rows.n_cells, self.fit.rank, self.most_work
        )

    @cached_property
    def most_work(self) -> float | None:
        """What the search may cost, if the table is a sample of many rows."""
        if self.whole is None or self.fit.n_starts is not None:
            return None
        n_rows, n_variables = self.whole.n_rows, len(self.whole.domain)
        return self.fit.effort.work_of_passes(n_rows, n_rows * n_variables, self.fit.rank)

    def candidates(self) -> Iterator[tuple[str, Callable[[], Solution]]]:
        """Yield climbs, each as what does it."""
        for k in range(self.n_most):
            yield f"start {k + 1}", partial(self._climb, k)

    @property
    def best(self) -> Outcome:
        """The best of all climbs."""
        return min(self.ends, key=lambda end: end.objective)

    def n_found(self, optimum: Outcome) -> int:
        """Return how many climbs ended at an optimum by themselves."""
        gaps = (abs(end.objective - optimum.objective) for end in self.ends)
        return sum(gap <= self._tolerance for gap in gaps)

    def begun_at(self, optimum: Outcome) -> Start:
        """Return where the climb began that ended at an optimum, or the best one did."""
        same = (one for one in self.trials.solutions if one.objective == optimum.objective)
        start = next(same, self.trials.best).start
        assert start is not None
        return start

    @property
    def furthest(self) -> Point | None:
        """The best point there is while the first climb has not ended."""
        return None if self._best is None else self._best.point

    @property
    def _tolerance(self) -> float:
        same = self.fit.effort.agreement * abs(self.best.objective)
        return max(same, _SAME_NOISE * self._noise(self.table))

    def _noise(self, table: Table) -> float:
        """Return how far a fit to a sample is from the best of many rows, in nats, about."""
        if self.most_work is None:
            return 0.0
        sizes = self.table.domain.sizes
        n_parameters = self.fit.rank * (sum(sizes) - len(sizes) + 1)
        return n_parameters / (2 * table.total)

    def is_enough(self, trials: Trials[str]) -> bool:
        """Tell whether the best optimum was found often enough, or the budget is used up."""
        if self.most_work is not None and self._is_used_up:
            return True
        if self.fit.n_starts is not None or len(self.ends) < 2:
            return False
        gaps = np.diff(sorted(end.objective for end in self.ends)) > self._tolerance
        is_evidence = self.fit.effort.is_evidence(len(self.ends), 1 + int(gaps.sum()))
        return self._is_used_up or (is_evidence and self.n_found(self.best) > 1)

    @property
    def _is_used_up(self) -> bool:
        if self.fit.n_starts is not None or not self.passes_of_fits:
            return False
        if self.most_work is not None:
            return self.work >= _CLIMBING * self.most_work
        mean = sum(self.passes_of_fits) / len(self.passes_of_fits)
        return self.n_passes > self.fit.effort.fits * max(mean, _LEAST_PASSES)

    def _climb(self, k: int) -> Solution:
        """Return the best that one start and moves from there lead to."""
        self._best, self.kind = None, ""
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
        self.ends.append(own)
        n_rows = None if table is self.table else table.rows.total
        if self._is_stopped:  # perhaps since it ended
            own = own._replace(status=Status.STOPPED)
        return Solution.of(own, self.table.domain, Start(self.kind, n_rows=n_rows))

    def _part(self) -> Table:
        """Return the rows that a climb searches: all, or a sample if all would take too long."""
        n_all = len(self.table.rows)
        if self.n_searched == n_all:
            return self.table
        rows = self.table.rows
        rate = self.n_searched / rows.total
        drawn, counts = drawn_by_weight(rows.weights, rate, self.generator)
        return replace(self.table, rows=replace(rows.taken(drawn), weights=counts))

    def _go_on_with_all_rows(self, loop: Loop) -> None:
        """Fit all rows from what was found on a sample, as long as that is not behind the best."""
        point = lifted(self._summit.point, self.table)
        if self._is_stopped:
            loop = replace(loop, max_iter=0)
        if self.ends:
            rival = min(end.objective for end in self.ends)
            tol = _LOOSE * self.fit.effort.agreement * abs(rival)  # enough to see whether it agrees
            loop = replace(loop, rival=rival, tol=max(loop.tol, tol))
        found = self._outcome(self.table, point, loop, _COMPARING)
        self._best = found._replace(status=Status.STOPPED) if self._is_stopped else found

    def _improve(self, k: int, table: Table, loop: Loop) -> None:
        """Begin afresh, and make moves until several are in vain."""
        rows, effort = table.rows, self.fit.effort
        for kind, make in fresh_points(table, self.fit.rank, k, self.generator):
            if not self._is_stopped:
                logger.info("%s: %s", self._stage(k), kind)
                self._pay(table, passes_of_start(kind))
                self._try(table, make(), loop, kind)
        n_moves = n_vain = 0
        n_most = effort.patience if self.fit.rank > 1 else 0
        is_limited = self.most_work is not None
        while n_vain < n_most and not self._is_stopped:
            if self._is_used_up and (self.ends or is_limited):
                break
            before = self._summit
            self.n_passes += passes_of_move(n_moves)
            self._pay(table, passes_of_move(n_moves))
            self._try(table, moved(before.point, rows, n_moves, self.generator), loop)
            gained = _GAINED_NOISE * self._noise(table)
            n_vain = 0 if _is_ahead(self._summit, before, gained) else n_vain + 1
            n_moves += 1

    def _try(self, table: Table, point: Point, loop: Loop, kind: str = "") -> None:
        """Fit from a point, and keep it if it is the best of this climb."""
        best = self._best
        if best is not None:
            loop = replace(loop, rival=best.objective)
        found = self._outcome(table, point, loop, _CLIMBING)
        self.n_passes += _passes(found)
        if best is None or found.objective < best.objective:
            self._best = found
            if kind:
                self.kind = kind
                self.passes_of_fits.append(_passes(found))
        elif found.status is Status.STOPPED:
            self._best = best._replace(status=Status.STOPPED)

    def _outcome(self, table: Table, point: Point, loop: Loop, share: float) -> Outcome:
        """Return where a run ends that may use up a share of what the search may cost."""
        is_preliminary = loop.is_preliminary or table is not self.table
        loop = replace(loop, is_preliminary=is_preliminary)
        if self.most_work is not None:
            left = share * self.most_work - self.work
            most = max(int(left / (2 * self._cost(table))), 1)
            tol = max(loop.tol, _ENDED_NOISE * self._noise(table))
            loop = replace(loop, max_iter=min(loop.max_iter, most), tol=tol)
        found = self.fit.outcome(table, point, loop, begun=self.begun)
        self._pay(table, _passes(found))
        return found

    def _cost(self, table: Table) -> float:
        """Return what a pass over some rows costs, in cells times components."""
        return table.rows.n_cells * self.fit.rank + self.fit.effort.step_work

    def _pay(self, table: Table, n_passes: int) -> None:
        self.work += n_passes * self._cost(table)

    def chosen(self) -> Outcome:
        """Return the best of all climbs; by the whole table, where a sample cannot tell."""
        best = self.best
        if self.most_work is None or self.whole is None or self.trials.is_stopped:
            return best
        rivals = [best]
        for end in sorted(self.ends, key=lambda end: end.objective):
            is_other = end.objective > rivals[-1].objective + self._tolerance
            if is_other and end.objective < best.objective + self._noise(self.table):
                rivals.append(end)
        return best if len(rivals) == 1 else min(rivals[:_MOST_RIVALS], key=self._by_whole)

    def _by_whole(self, end: Outcome) -> float:
        """Return the objective of all rows, of which the table is a sample."""
        assert self.whole is not None
        expectation = self.whole.expectation(self.fit.rank)
        stack = expectation.stack(lifted(end.point, self.whole))
        return -expectation.counts(stack)[1]

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
        return in_stage(replace(loop, tol=max(loop.tol, _SEARCH_TOL)), self._stage(k))

    def _stage(self, k: int) -> str:
        """Return which start it is, and what those before it have found."""
        stage = f"start {k + 1} of {'' if self.fit.n_starts else 'at most '}{self.n_most}"
        if self.ends:
            count = max(self.n_found(self.best), 1)
            often = {1: "once", 2: "twice"}.get(count, f"{count} times")
            stage += f", best {self.best.objective:.4f}, found {often}"
        return stage


def _passes(outcome: Outcome) -> int:
    return 2 * outcome.n_iter + 1


def _is_ahead(one: Outcome, other: Outcome, least: float = 0.0) -> bool:
    return one.objective < other.objective - max(_GAIN * abs(other.objective), least)


def _as_far_as_it_came(climbs: _Climbs) -> Solution:
    """Return the best that was found before any climb had ended, or else a start."""
    fit, table, point = climbs.fit, climbs.table, climbs.furthest
    if point is None:
        point = point_at_rows(table.rows, fit.rank, climbs.generator)
    here = replace(fit, loop=replace(fit.loop, max_iter=0))
    start = Start(climbs.kind or "rows")
    return here.from_point(table, possible(point, table), start, begun=climbs.begun).stopped()


def _chosen(climbs: _Climbs) -> Outcome:
    """Return the best of all climbs, by all rows unless someone stops meanwhile."""
    try:
        with interrupts():
            return climbs.chosen()
    except KeyboardInterrupt:
        climbs.trials.is_stopped = True
        return climbs.best


def _finished(climbs: _Climbs, best: Outcome) -> Solution:
    """Return the best of all climbs, fitted to the end and with the history of both runs."""
    fit, table = climbs.fit, climbs.table
    start, n_left = climbs.begun_at(best), fit.loop.max_iter - best.n_iter
    if climbs.trials.is_stopped:
        return Solution.of(best, table.domain, start).stopped()
    if n_left <= 0 or climbs.most_work is not None:  # what is left to do all rows do better
        return Solution.of(best, table.domain, start)
    own = replace(fit, loop=replace(fit.loop, max_iter=n_left))
    found = own.from_point(table, best.point, start, begun=climbs.begun)
    return replace(found, history=one_history([best.history, found.history]))
