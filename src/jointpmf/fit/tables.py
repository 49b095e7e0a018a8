"""Maximum likelihood from tables of any kind: one fit where they decide, else an average of many.

Fits from different starts tell whether the tables decide: if several meet the tables equally well
and yet are different models, their average meets them too and is nearer to maximum entropy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trials, concluded
from jointpmf.fit.settings import Likelihood
from jointpmf.fit.solution import Solution, Start
from jointpmf.fit.table_points import INTERIOR, avoiding, cost_of, disagreement_of, from_point
from jointpmf.fit.table_rank import RankSearch
from jointpmf.mixing import average
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.solvers.curvature import Curvature
from jointpmf.solvers.efficient import can_step, efficient_step
from jointpmf.solvers.jacobian import (
    is_determined,
    is_surely_open,
    jacobian_rank,
    n_free_parameters,
)
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Status
from jointpmf.solvers.starts.algebraic import algebraic_start
from jointpmf.solvers.starts.random import mixed, random_point
from jointpmf.solvers.table_cells import TableCells
from jointpmf.solvers.table_jacobian import TableCurvature
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.marginals.exclusions import Exclusions
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.marginals.measurement import Measurement

logger = logging.getLogger("jointpmf")

_MOST_AVERAGED, _FEWEST_AVERAGED, _WORK = 32, 8, 2.5e8
"""Fits that are averaged where tables do not decide: as many, or fewer where cells of tables times
components times fits would be more than the last number, but not fewer than the second."""

_SETTLING = 4
"""Starts from which a model is sought that two of them find, before fits are averaged."""

_SAME_MODEL, _SAME_PART = 1e-4, 0.5
"""Nats from their average up to which fits are the same model, and as part of what sampling leaves
uncertain: half a nat for each parameter, over all rows."""

_NOISY = 0.02
"""Nats of a row by which a fit is expected to miss the truth, beyond which fits are averaged even
if the tables determine the model: an average is then nearer to it than the best fit."""

_EQUAL, _LEAST_CELL_TOL, _MOST = 3.0, 1e-6, 1e-3
"""Nats of a table by which fits differ that are as good as each other, where one model is sought;
and what that is per row of a table, at least and at most."""

_NEUTRAL = 0.3
"""Part of the marginals in a random start. Larger, fits that tables leave open are nearer to
independence in what no table shows, and to each other."""

_SETTLED_PART, _STEADY, _EXACT_TOL = 0.1, 0.002, 1e-8
"""Improvements that end a fit: nats of all tables together where one model is sought, nats of each
cell where fits are averaged, and nats per row of a table that has no noise."""

_OPEN_SMOOTHING, _SMOOTHING = 0.03, 0.1
"""Pseudo-counts, if none were asked for: where tables leave the model open, and where not."""

_N_STEPS = 2
"""Efficient steps: the first leads as far as EM would have gone, the last has the least error."""


@dataclass(frozen=True)
class CellFit:
    """How tables are fitted by likelihood: everything but the tables.

    Attributes
    ----------
    fit : EMFit
        One fit: its rank, start and loop.
    n_average : int or None
        How many fits are averaged, if that was asked for.
    tol, smoothing : float or None
        What was asked for.
    """

    fit: EMFit
    n_average: int | None = None
    tol: float | None = None
    smoothing: float | None = None

    def run(
        self, marginals: MarginalSet, rank: int | None, generator: np.random.Generator
    ) -> Solution:
        """Return the fit of a rank, or of the one that would predict other people's tables best."""
        cells = TableCells(marginals.domain, marginals.measurements)
        is_decided = cache(partial(decided, marginals))
        if rank is None:
            tried: list[Solution] = []
            try:
                search = RankSearch(self, marginals, cells, generator, tried)
                rank = search.best(lambda rank: is_decided(rank) is not False)
            except KeyboardInterrupt:
                if not tried:
                    raise
                best = min(tried, key=lambda solution: solution.objective)
                return replace(best.stopped(), marginals=marginals)
            logger.info("rank %d is expected to predict such tables of other people best", rank)
        own = replace(self, fit=replace(self.fit, rank=rank))
        found = own._of_rank(marginals, cells, generator, is_decided(rank))
        return replace(found, marginals=marginals)

    def _of_rank(
        self,
        marginals: MarginalSet,
        cells: TableCells,
        generator: np.random.Generator,
        is_decided: bool | None,
    ) -> Solution:
        """Return the model that two starts find, or else an average."""
        if is_decided is False:
            logger.warning(
                "rank %d is not identifiable from these marginals, so that several fits are "
                "averaged; jointpmf.identifiability says more",
                self.fit.rank,
            )
        is_one = is_decided is not False and self._expected_miss(marginals) < _NOISY
        if self.n_average is None and (is_one or isinstance(self.fit.start, JointPMF)):
            found = self._settling(marginals, cells)._one_model(marginals, cells, generator)
            if found is not None:
                return found
        found = self.averaging(marginals, cells)._average(marginals, cells, generator)
        return _left_open(found) if is_decided is False else found

    def _one_model(
        self, marginals: MarginalSet, cells: TableCells, generator: np.random.Generator
    ) -> Solution | None:
        """Return the model that two starts find, or None if they find different ones."""
        equal = float(np.clip(_EQUAL * len(cells.n_shown) / cells.total, _LEAST_CELL_TOL, _MOST))
        starts = self.starts(cells, marginals.exclusions, generator, marginals)
        trials: Trials[str] = Trials()
        count = 1 if isinstance(self.fit.start, JointPMF) else _SETTLING
        trials.run(
            self.candidates(cells, starts, count),
            lambda so_far: len(list(so_far.near_best(equal))) > 1,
        )
        best, far = trials.best, max(_SAME_MODEL, _SAME_PART * self._expected_miss(marginals))
        others = (other for other in trials.solutions if other is not best)
        agreed = [best, *(o for o in others if disagreement_of([best.pmf, o.pmf]) < far)]
        if len(agreed) > 1 or isinstance(self.fit.start, JointPMF) or trials.is_stopped:
            return concluded(partial(self._settled, trials, agreed, marginals, cells))
        return None

    def _average(
        self, marginals: MarginalSet, cells: TableCells, generator: np.random.Generator
    ) -> Solution:
        """Return the average of fits that are as good as the best, but for the tables' noise."""
        tolerance = cells.n_cells / (2 * cells.total) if marginals.is_counted else _LEAST_CELL_TOL
        wanted = self.n_average or self._n_averaged(cells)
        starts = self.starts(cells, marginals.exclusions, generator)
        trials: Trials[str] = Trials()
        trials.run(
            self.candidates(cells, starts, wanted + _SETTLING),
            lambda so_far: len(list(so_far.near_best(tolerance))) >= wanted,
        )
        return concluded(partial(self._averaged, trials, cells, tolerance))

    def _expected_miss(self, marginals: MarginalSet) -> float:
        """Return how far sampling leaves a fit from the truth: half a nat for each parameter."""
        n_rows = max((m.n_rows for m in marginals if m.n_rows is not None), default=np.inf)
        return n_free_parameters(marginals.domain, self.fit.rank) / (2 * n_rows)

    def _settling(self, marginals: MarginalSet, cells: TableCells) -> CellFit:
        """Return how one model is sought: to the end."""
        if not marginals.is_counted:
            return self._with(_EXACT_TOL, 0.0)
        return self._with(_SETTLED_PART / cells.total, _SMOOTHING)

    def averaging(self, marginals: MarginalSet, cells: TableCells) -> CellFit:
        """Return how models are found to be averaged: not beyond the noise of the tables."""
        if not marginals.is_counted:
            return self._with(_EXACT_TOL, 0.0)
        return self._with(_STEADY * cells.n_cells / cells.total, _OPEN_SMOOTHING)

    def _with(self, tol: float, smoothing: float) -> CellFit:
        """Return the fit with a tolerance and smoothing, or with those that were asked for."""
        loop = replace(self.fit.loop, tol=tol if self.tol is None else self.tol)
        smoothing = smoothing if self.smoothing is None else self.smoothing
        return replace(self, fit=replace(self.fit, loop=loop, smoothing=smoothing))

    def _n_averaged(self, cells: TableCells) -> int:
        work = (len(cells.known.cells) + cells.n_cells) * self.fit.rank
        return int(np.clip(_WORK / work, _FEWEST_AVERAGED, _MOST_AVERAGED))

    def starts(
        self,
        cells: TableCells,
        exclusions: Exclusions,
        generator: np.random.Generator,
        plain: MarginalSet | None = None,
    ) -> Iterator[tuple[Point, Start]]:
        """Yield the start that was given, the closed form of plain tables, and random ones."""
        rank, given = self.fit.rank, self.fit.start
        if isinstance(given, JointPMF):
            point = mixed(Point.of_pmf(given), cells.marginal, INTERIOR)
            yield avoiding(point, cells, exclusions, generator), Start("given", "a JointPMF")
        elif plain is not None and plain.is_plain and given != "random" and rank > 1:
            problem = CoupledLeastSquares(plain, rank, "counts" if plain.is_counted else None)
            with one_blas_thread:
                found = algebraic_start(plain, problem, generator)
            if found.point is not None:
                point = mixed(found.point, cells.marginal, INTERIOR)
                yield point, Start("algebraic", found.reason)
        while True:
            point = mixed(random_point(cells.domain, rank, generator), cells.marginal, _NEUTRAL)
            yield avoiding(point, cells, exclusions, generator), Start("random")

    def candidates(
        self, cells: TableCells, starts: Iterator[tuple[Point, Start]], count: int
    ) -> Iterator[tuple[str, Callable[[], Solution]]]:
        """Yield fits from starts, drawn one at a time."""
        for k, (point, start) in zip(range(count), starts, strict=False):
            loop = in_stage(self.fit.loop, f"start {k + 1} of at most {count}")
            fit = replace(self.fit, loop=loop)
            yield f"start {k + 1}", partial(from_point, fit, cells, point, start)

    def _settled(
        self,
        trials: Trials[str],
        agreed: Sequence[Solution],
        marginals: MarginalSet,
        cells: TableCells,
    ) -> Solution:
        """Return the best fit, which another start has found too, after the efficient step."""
        found = self._told(trials.best, trials, len(agreed))
        if trials.is_stopped:
            return found.stopped()
        if len(agreed) > 1:
            disagreement = disagreement_of([solution.pmf for solution in agreed])
            found = replace(found, is_unique=True, disagreement=disagreement)
            if found.status is Status.CONVERGED and _can_step(marginals, self.fit.rank):
                ahead = self._stepped(found.pmf, marginals.measurements, cells)
                pmf = JointPMF.at(ahead, marginals.domain)
                found = replace(found, pmf=pmf, objective=cost_of(cells, pmf))
        return found

    def _stepped(self, pmf: JointPMF, tables: Sequence[Measurement], cells: TableCells) -> Point:
        """Return where the step leads that knows which tables share people (eq. 51)."""
        prior = self.fit.prior(cells)
        return efficient_step(cells.domain, tables, Point.of_pmf(pmf), prior, _N_STEPS)

    def again(
        self,
        like: MarginalSet,
        tables: Sequence[Measurement],
        cells: TableCells,
        point: Point,
        is_stepped: bool,
    ) -> Point:
        """Return the fit from a point to tables like those of a set, which have the cells."""
        own = self._settling(like, cells) if is_stepped else self.averaging(like, cells)
        found = from_point(own.fit, cells, point, Start("given"))
        if found.status is Status.STOPPED:
            raise KeyboardInterrupt
        if is_stepped and _can_step(like, self.fit.rank):
            return own._stepped(found.pmf, tables, cells)
        return Point.of_pmf(found.pmf)

    def _averaged(self, trials: Trials[str], cells: TableCells, tolerance: float) -> Solution:
        """Return the average of the fits that are as good as the best."""
        near = [trial.solution for trial in trials.near_best(tolerance)]
        best = self._told(trials.best, trials, len(near))
        if len(near) == 1:
            return best.stopped() if trials.is_stopped else best
        pmfs = [solution.pmf for solution in near]
        disagreement = disagreement_of(pmfs)
        is_unique = disagreement < _SAME_MODEL
        is_valley = not is_unique and best.status is Status.CONVERGED
        pmf = average(pmfs)
        found = replace(
            best,
            pmf=pmf,
            objective=cost_of(cells, pmf),
            n_averaged=len(near),
            status=Status.NOT_UNIQUE if is_valley else best.status,
            is_unique=is_unique,
            disagreement=disagreement,
        )
        return found.stopped() if trials.is_stopped else found

    def _told(self, best: Solution, trials: Trials[str], n_agreed: int) -> Solution:
        settings = Likelihood(self.fit.smoothing, self.fit.towards)
        return replace(trials.told(best, n_agreed), settings=settings)


def _left_open(found: Solution) -> Solution:
    """Return a fit to tables that leave the model open, however near its starts ended."""
    status = Status.NOT_UNIQUE if found.status is Status.CONVERGED else found.status
    return replace(found, is_unique=False, status=status)


def decided(marginals: MarginalSet, rank: int) -> bool | None:
    """Tell whether tables determine a model of a rank; None if that is not known."""
    domain, generator = marginals.domain, np.random.default_rng(0)
    if marginals.is_plain:
        subsets = sorted(set(marginals.subsets))
        if is_surely_open(domain, subsets, rank):
            return False
        return is_determined(Curvature(domain, subsets, np.ones(len(subsets))), rank, generator)
    found = jacobian_rank(TableCurvature(domain, marginals.measurements), rank, None, generator)
    return None if found is None else found == n_free_parameters(domain, rank)


def _can_step(marginals: MarginalSet, rank: int) -> bool:
    """Tell whether the efficient step applies: to counts without noise, where all is possible."""
    is_plain_count = marginals.is_counted and all(m.noise is None for m in marginals)
    if marginals.impossible or not is_plain_count:
        return False
    return can_step(marginals.domain, marginals.measurements, rank)
