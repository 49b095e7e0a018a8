"""The same fit again, from where it ended, to data that differ as another sample would.

A fit that had converged converges again. One that was stopped by what was held out gets as many
plain steps as it had: what the data change in so many steps is what they change in the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.errors import JointPMFError
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.settings import Coupled, Likelihood
from jointpmf.fit.starts import lifted
from jointpmf.fit.subsets import coupled_problem
from jointpmf.fit.table_points import normalised
from jointpmf.fit.tables import CellFit
from jointpmf.marginals.marginal import Marginal
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.mixing import average
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.rows.source import Source
from jointpmf.solvers import em
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Loop, iterate
from jointpmf.solvers.methods import solver_of
from jointpmf.solvers.starts.random import mixed
from jointpmf.solvers.table_cells import TableCells

if TYPE_CHECKING:
    from jointpmf.fit.coupled import Problem
    from jointpmf.fit.solution import Solution
    from jointpmf.marginals.measurement import Measurement

_MAX_ITER = 2000
"""Iterations of one replicate, at most."""

_SETTLED = 1e-4
"""Nats of all rows together whose improvement ends a replicate: a standard error is half a nat."""

_SQUARES_TOL = 1e-6
"""The part of a least-squares objective whose improvement ends a replicate."""

_MOST_MEMBERS = 4
"""How many of the fits that a model is the average of are done again."""

_LIFT = 0.01
"""Part of the marginals in the start of a replicate: from zeros no EM step returns."""


def members_of(solution: Solution) -> list[JointPMF]:
    """Return the fits that a model is the average of, or the model itself.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmfs = [jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, random_state=k) for k in (0, 1)]
    >>> whole = jp.average(pmfs)
    >>> found = jp.Solution(whole, jp.Status.CONVERGED, 0.0, [], n_averaged=2)
    >>> [bool(np.allclose(a.table(), b.table())) for a, b in zip(members_of(found), pmfs)]
    [True, True]
    """
    pmf, count = solution.pmf, solution.n_averaged
    parts = np.split(pmf.weights, count) if pmf.rank % count == 0 else []
    are_equal = bool(parts) and np.allclose([part.sum() for part in parts], 1 / count)
    if count == 1 or not are_equal:  # a blend of unequal parts is one model
        return [pmf]
    factors = zip(*(np.split(factor, count, axis=1) for factor in pmf.factors), strict=True)
    return [
        JointPMF(pmf.domain, part / part.sum(), own)
        for part, own in zip(parts, factors, strict=True)
    ]


def _some_members(solution: Solution) -> list[JointPMF]:
    """Return few of the fits that a model averages: data change the others as much."""
    members = members_of(solution)
    return members[:: -(-len(members) // _MOST_MEMBERS)]


def joined(points: Sequence[Point], pmf: JointPMF) -> Point:
    """Return the average of the members of a model as one point."""
    if len(points) == 1:
        return points[0]
    return Point.of_pmf(average([JointPMF.at(point, pmf.domain) for point in points]))


@dataclass(frozen=True)
class RowsAgain:
    """A fit to rows, to be done again on rows that count otherwise."""

    solution: Solution

    def fitted(self, source: Source) -> Point:
        """Return where the fit ends on these rows."""
        settings = self.solution.settings
        if isinstance(settings, Coupled):
            return self._by_squares(source, settings)
        assert isinstance(settings, Likelihood)
        some = _some_members(self.solution)
        points = [self._by_likelihood(source, pmf, settings) for pmf in some]
        return joined(points, self.solution.pmf)

    def _by_likelihood(self, source: Source, pmf: JointPMF, settings: Likelihood) -> Point:
        fit = _em_fit(pmf.rank, settings, Loop(_MAX_ITER, _SETTLED / source.total))
        start = Point.of_pmf(pmf)
        if self.solution.validation is None:
            return fit.outcome(source, lifted(start, source), fit.loop).point
        solver = em.EM(source, pmf.rank, fit.prior(source), accelerated=False)
        state = solver.start(start)
        for _ in range(self.solution.n_iter):
            state = solver.plain_step(state)
        return state.point

    def _by_squares(self, source: Source, settings: Coupled) -> Point:
        problem = coupled_problem(source, self.solution.pmf.rank, settings)
        return _least_squares(problem, self.solution.pmf)


def _em_fit(rank: int, settings: Likelihood, loop: Loop) -> EMFit:
    towards = settings.towards or "uniform"
    return EMFit(rank, loop, settings.smoothing or 0.0, towards, settings.bandwidth)


def cost_again(solution: Solution, source: Source) -> float | None:
    """Return the objective of a fit by likelihood on rows, or None where it is of part of them."""
    settings, pmf = solution.settings, solution.pmf
    is_of_part = solution.validation is not None
    if not isinstance(settings, Likelihood) or is_of_part or settings.bandwidth:
        return None
    if solution.source is None or solution.source.n_sampled is not None:
        return None
    if solution.n_averaged > 1:
        settings = Likelihood(0.0)
    fit = _em_fit(pmf.rank, settings, Loop(0, 0.0))
    return fit.outcome(source, Point.of_pmf(pmf), fit.loop).objective


def _least_squares(problem: Problem, pmf: JointPMF) -> Point:
    return iterate(
        solver_of("auto", problem), Point.of_pmf(pmf), Loop(_MAX_ITER, _SQUARES_TOL)
    ).point


@dataclass(frozen=True)
class TablesAgain:
    """A fit to tables, to be done again on tables of the same kind."""

    solution: Solution

    def __post_init__(self) -> None:
        if self.solution.source is None or self.solution.marginals is None:
            raise JointPMFError("the solution does not say to which tables it was fitted")

    def fitted(self, tables: Sequence[Measurement]) -> Point:
        """Return where the fit ends on these tables."""
        found, pmf = self.solution, self.solution.pmf
        assert found.source is not None
        if found.source.loss == "squares":
            marginals = _plain_set(tables, found.marginals)
            problem = CoupledLeastSquares(marginals, pmf.rank, found.source.weighting)
            return _least_squares(problem, pmf)
        cells = TableCells(pmf.domain, tables)
        points = [self._by_likelihood(tables, cells, each) for each in _some_members(found)]
        return joined(points, pmf)

    def _by_likelihood(
        self, tables: Sequence[Measurement], cells: TableCells, pmf: JointPMF
    ) -> Point:
        marginals = self.solution.marginals
        assert marginals is not None
        point = mixed(Point.of_pmf(pmf), cells.marginal, _LIFT)
        if marginals.impossible:  # what is impossible stays so
            allowed = np.concatenate(pmf.factors) > 0
            point = normalised(Point(point.weights, point.factors * allowed), pmf.domain)
        is_stepped = self.solution.n_averaged == 1 and bool(self.solution.is_unique)
        settings = self.solution.settings
        assert isinstance(settings, Likelihood)
        fit = EMFit(pmf.rank, Loop(_MAX_ITER, 0.0), towards=settings.towards or "marginal")
        own = CellFit(fit, smoothing=settings.smoothing)
        return own.again(marginals, tables, cells, point, is_stepped)


def _plain_set(tables: Sequence[Measurement], like: MarginalSet | None) -> MarginalSet:
    """Return whole tables of all levels as marginals, without asking whether they agree."""
    assert like is not None
    pairs = zip(tables, like, strict=True)
    marginals = [Marginal(m.names, t.counts, float(t.counts.sum())) for t, m in pairs]
    return MarginalSet._exact(like.domain, marginals)
