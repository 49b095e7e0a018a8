"""Maximum likelihood on any source of rows: find where to begin, then iterate EM from there."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.fit.optimum import best_optimum
from jointpmf.fit.settings import Effort
from jointpmf.fit.solution import Solution
from jointpmf.fit.starts import Begin, begin_at, begin_in_memory, lifted
from jointpmf.fit.traits import TraitFit
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.rows.source import Source, Table, check_levels, check_table
from jointpmf.rows.spool import SpooledRows
from jointpmf.rows.table import AnyRows, ColumnRows, TableRows
from jointpmf.solvers import em
from jointpmf.solvers.loop import Loop, Outcome, Status, Validation, iterate
from jointpmf.solvers.starts.random import mixed
from jointpmf.solvers.stepwise import Stepwise
from jointpmf.threads import interrupts

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.fit.settings import Traits
    from jointpmf.fit.solution import Start
    from jointpmf.rows.reading import Stream

logger = logging.getLogger("jointpmf")

_UNSEEN_LEVEL = 1e-3
"""Part of the uniform distribution in the marginals that smoothing pulls to, so that a level that
was never seen has a probability too."""

_STEPS_LIFT = 1e-4
"""Part of the marginals in a start that has seen all rows in steps, so that nothing is zero."""


@dataclass(frozen=True)
class EMFit:
    """How one maximum-likelihood fit is done: everything but the rows."""

    rank: int
    loop: Loop
    smoothing: float = 0.0
    towards: str = "uniform"
    start: str | JointPMF = "auto"
    effort: Effort = field(default_factory=Effort)
    n_starts: int | None = None
    traits: Traits | None = None
    n_plain: int | None = None
    """Where something is held out: EM steps before the first extrapolation; None if there is none,
    because the path matters and not only its end."""

    def run(
        self, source: Source, generator: np.random.Generator, held_out: Validation | None = None
    ) -> Solution:
        """Return the fit to rows, wherever they are; a validation part needs them in memory."""
        begun = time.perf_counter()
        if self.traits is not None:
            return TraitFit(self.rank, self.traits, self.loop).run(source, generator, held_out)
        if not isinstance(source, Table):
            check_levels(source.domain, source.counts)
            begin = self._begin_on_sample(source, generator)
        elif self.start != "auto" or held_out is not None:
            begin = begin_in_memory(self, source, generator, held_out)
        elif self.n_starts is None and source.n_rows > self.effort.many_rows and self.rank > 1:
            begin = self._begin_on_sample(source, generator)
        else:
            return _by_size(best_optimum(self, source, generator, begun))
        if begin.outcome is not None:
            found = Solution.of(begin.outcome, source.domain, begin.start)
            return _as_often_found(found, begin.searched)
        found = self._from_begin(source, begin, held_out, begun)
        found = _as_often_found(found, begin.searched)
        return found if isinstance(self.start, JointPMF) else _by_size(found)

    def _from_begin(
        self, source: Source, begin: Begin, held_out: Validation | None, begun: float
    ) -> Solution:
        try:
            if not begin.stopped:
                return self.from_point(source, begin.point, begin.start, held_out, begun)
        except KeyboardInterrupt:  # between two loops
            pass
        here = replace(self, loop=replace(self.loop, max_iter=0))
        where = begin.table or source
        return here.from_point(where, begin.point, begin.start, held_out, begun).stopped()

    def from_point(
        self,
        source: Source,
        point: Point,
        start: Start,
        held_out: Validation | None = None,
        begun: float | None = None,
    ) -> Solution:
        """Return the fit that begins at a point; seconds count from `begun`."""
        outcome = self.outcome(source, point, self.loop, held_out, begun)
        return Solution.of(outcome, source.domain, start)

    def outcome(
        self,
        source: Source,
        point: Point,
        loop: Loop,
        held_out: Validation | None = None,
        begun: float | None = None,
    ) -> Outcome:
        """Return where a run from a point ends."""
        n_plain = 0 if held_out is None else self.n_plain
        solver = self.solver(source, n_plain is not None, n_plain or 0)
        return iterate(solver, point, loop, validation=held_out, begin=begun)

    def solver(self, source: Source, accelerated: bool, n_plain: int = 0) -> em.EM:
        """Return EM over the rows of a source."""
        return em.EM(source, self.rank, self.prior(source), accelerated, n_plain)

    def prior(self, source: AnyRows) -> np.ndarray | None:
        """Return the pseudo-counts of each level, or None without smoothing."""
        return self.pseudo_counts(source.domain, source.marginal) if self.smoothing else None

    def pseudo_counts(self, domain: Domain, marginal: np.ndarray) -> np.ndarray:
        """Return what smoothing adds to the expected counts of each level (eq. 21)."""
        sizes = np.repeat(domain.sizes, domain.sizes)
        if self.towards == "uniform":
            return np.full((len(sizes), 1), self.smoothing)
        marginal = (1 - _UNSEEN_LEVEL) * marginal + _UNSEEN_LEVEL / sizes
        return (self.smoothing * sizes * marginal)[:, None]

    def _begin_on_sample(self, source: Source, generator: np.random.Generator) -> Begin:
        """Return where a fit to many rows, or to rows elsewhere, begins: at a sample's model."""
        if not isinstance(self.start, str):
            return begin_at(self.start, source)
        size = self.effort.sample_size(len(source.domain), source.n_rows)
        sample = Table.of_codes(*source.sample(size, int(generator.integers(2**31))))
        found = self._fit_to_sample(sample, generator, source)
        if found.stopped:
            return found
        if isinstance(source, SpooledRows) and source.n_rows > size and self.loop.max_iter:
            return self._begin_after_steps(source, sample, found, generator)
        try:
            return found._replace(point=lifted(found.point, source))
        except KeyboardInterrupt:  # while all rows were counted
            return found._replace(stopped=True)

    def _fit_to_sample(
        self, sample: Table, generator: np.random.Generator, whole: Source | None = None
    ) -> Begin:
        """Return the model of some rows, at which a fit to all of them may begin."""
        loop = replace(self.loop, max_iter=self.effort.sample_iter, callback=None)
        fit = replace(self, loop=replace(loop, is_preliminary=True))
        if self.start == "auto":
            found = best_optimum(fit, sample, generator, time.perf_counter(), whole)
        else:
            found = fit.run(sample, generator)
        assert found.start is not None
        start = replace(found.start, n_rows=found.start.n_rows or sample.total)
        is_stopped = found.status is Status.STOPPED
        return Begin(Point.of_pmf(found.pmf), start, is_stopped, sample, found)

    def _begin_after_steps(
        self, source: SpooledRows, sample: Table, found: Begin, generator: np.random.Generator
    ) -> Begin:
        """Return where one pass of steps over all rows leads from the model of a sample.

        After it few passes of EM are left to do.
        """
        logger.info("a model of %d rows of a sample was found", sample.codes.n_rows)
        steps = self.stepwise(sample.rows, found.point)
        try:
            with interrupts():
                for some in source.mixed_steps(generator, self.effort.step_rows):
                    steps.add(some)
                point = mixed(steps.point(), source.marginal, _STEPS_LIFT)
        except KeyboardInterrupt:
            outcome = steps.outcome(Status.STOPPED)
            start = replace(found.start, in_steps=True)
            return found._replace(point=outcome.point, start=start, stopped=True, outcome=outcome)
        logger.info("all rows were seen once, in %d steps", len(steps.history))
        return Begin(point, replace(found.start, in_steps=True), searched=found.searched)

    def stepwise(self, rows: TableRows, point: Point) -> Stepwise:
        """Return what goes on from a model of the first rows, step by step."""
        return Stepwise(self.rank, rows, point, self.pseudo_counts if self.smoothing else None)

    def run_once(self, stream: Stream, generator: np.random.Generator) -> Solution:
        """Return the model of rows that come once: a fit to the first of them, and steps from it.

        Its objective is that of the rows when they were new to it.
        """
        size = self.effort.sample_size(len(stream.domain))
        first = stream.take(size + 1)
        if first.n_rows <= size:
            check_table(first, None)
            return self.run(Table.of_codes(first), generator)
        sample = Table.of_codes(first)
        found = self._fit_to_sample(sample, generator)
        steps = self.stepwise(sample.rows, found.point)
        status = Status.STOPPED if found.stopped else Status.ONE_PASS
        try:
            with interrupts():
                while not found.stopped and (codes := stream.take(self.effort.step_rows)).n_rows:
                    line = steps.add(ColumnRows.of_codes(codes))
                    callback = self.loop.callback
                    if line is not None and callback is not None and callback(line, steps.point()):
                        status = Status.STOPPED
                        break
        except KeyboardInterrupt:
            status = Status.STOPPED
        if status is Status.ONE_PASS:
            check_levels(stream.domain, steps.seen)
        solution = Solution.of(steps.outcome(status), stream.domain, found.start)
        return _as_often_found(solution, found.searched)


def _by_size(solution: Solution) -> Solution:
    """Return a fit with its components in the order of their weights, the largest first."""
    return replace(solution, pmf=solution.pmf.reordered())


def _as_often_found(solution: Solution, searched: Solution | None) -> Solution:
    """Return a fit that began at the model of a sample, with how often that model was found."""
    if searched is None:
        return solution
    n_starts, n_agreed = searched.n_starts, searched.n_agreed
    return replace(solution, restarts=searched.restarts, n_starts=n_starts, n_agreed=n_agreed)
