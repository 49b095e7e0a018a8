"""Maximum likelihood from tables of any kind: one fit where they decide, else an average of many.

Fits from different starts tell whether the tables decide: if several meet the tables equally well
and yet are different models, their average meets them too and is nearer to maximum entropy.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.errors import JointPMFError
from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trials, concluded
from jointpmf.fit.settings import Likelihood
from jointpmf.fit.solution import Solution, Start
from jointpmf.mixing import average
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.solvers import em
from jointpmf.solvers.curvature import Curvature
from jointpmf.solvers.efficient import can_step, efficient_step
from jointpmf.solvers.jacobian import is_determined, jacobian_rank
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Status, iterate
from jointpmf.solvers.starts.algebraic import algebraic_start
from jointpmf.solvers.starts.random import mixed, random_point
from jointpmf.solvers.table_cells import TableCells
from jointpmf.solvers.table_jacobian import TableCurvature
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.marginals.exclusions import Exclusions
    from jointpmf.marginals.marginal_set import MarginalSet

logger = logging.getLogger("jointpmf")

_MOST_AVERAGED, _FEWEST_AVERAGED, _WORK = 32, 8, 2.5e8
"""Fits that are averaged where tables do not decide: as many, or fewer where cells of tables times
components times fits would be more than the last number, but not fewer than the second."""

_SETTLING = 4
"""Starts from which a model is sought that two of them find, before fits are averaged."""

_SAME, _SAME_PART = 1e-4, 0.5
"""Nats from their average up to which fits are the same model, and as part of what sampling leaves
uncertain: half a nat for each parameter, over all rows."""

_NOISY = 0.03
"""Nats of a row by which a fit is expected to miss the truth, beyond which fits are averaged even
if the tables determine the model: an average is then nearer to it than the best fit."""

_EQUAL, _LEAST, _MOST = 3.0, 1e-6, 1e-3
"""Nats of a table by which fits differ that are as good as each other, where one model is sought;
and what that is per row of a table, at least and at most."""

_SPREAD_ROWS = 500
"""Rows of each fit by which it is told how far it is from the average."""

_INTERIOR = 0.2
"""Part of the marginals in a start that was given: from its zeros no EM step returns."""

_NEUTRAL = 0.3
"""Part of the marginals in a random start. Larger, fits that tables leave open are nearer to
independence in what no table shows, and to each other."""

_SETTLED, _STEADY, _EXACT_TOL = 0.1, 0.002, 1e-8
"""Improvements that end a fit: nats of all tables together where one model is sought, nats of each
cell where fits are averaged, and nats per row of a table that has no noise."""

_OPEN_SMOOTHING, _SMOOTHING = 0.03, 0.1
"""Pseudo-counts, if none were asked for: where tables leave the model open, and where not."""

_N_STEPS = 2
"""Efficient steps: the first leads as far as EM would have gone, the last has the least error."""

_RANKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Ranks that are tried where none is given."""

_PATIENCE, _FLAT = 2, 0.2
"""Ranks in a row that are not better, after which no larger one is tried; and the part of the
optimism by which a rank may be worse and is still as good."""

_N_TRIED, _N_DRAWN, _DRAWN_RANK, _N_INDEPENDENT = 2, 2, 32, 6
"""To choose the rank: starts of each, how often tables are drawn, the rank of the model that they
are drawn from, and how often they are drawn from independent variables if rank 1 seems best."""

_CLEAR = 1.2
"""How many times the most that two components gain by chance they must gain, to show dependence."""

_MOST_DRAWS = 100
"""How often the levels of components are drawn that avoid what is impossible."""


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
        if rank is None:
            tried: list[Solution] = []
            try:
                rank = self._best_rank(marginals, cells, generator, tried)
            except KeyboardInterrupt:
                if not tried:
                    raise
                best = min(tried, key=lambda solution: solution.objective)
                return replace(best.stopped(), marginals=marginals)
            logger.info("rank %d is expected to predict such tables of other people best", rank)
        own = replace(self, fit=replace(self.fit, rank=rank))
        found = own._of_rank(marginals, cells, generator)
        return replace(found, marginals=marginals)

    def _of_rank(
        self, marginals: MarginalSet, cells: TableCells, generator: np.random.Generator
    ) -> Solution:
        """Return the model that two starts find, or else an average."""
        is_decided = decided(marginals, self.fit.rank)
        if is_decided is False:
            logger.warning(
                "rank %d is not identifiable from these marginals, so that several fits are "
                "averaged; jointpmf.identifiability says more",
                self.fit.rank,
            )
        elif self.n_average is None and self._expected_miss(marginals) < _NOISY:
            found = self._settling(marginals, cells)._one_model(marginals, cells, generator)
            if found is not None:
                return found
        return self._averaging(marginals, cells)._average(marginals, cells, generator)

    def _one_model(
        self, marginals: MarginalSet, cells: TableCells, generator: np.random.Generator
    ) -> Solution | None:
        """Return the model that two starts find, or None if they find different ones."""
        equal = float(np.clip(_EQUAL * len(cells.n_shown) / cells.total, _LEAST, _MOST))
        starts = self._starts(cells, marginals.exclusions, generator, marginals)
        trials: Trials[str] = Trials()
        trials.run(
            self._candidates(cells, starts, _SETTLING),
            lambda so_far: len(list(so_far.near_best(equal))) > 1,
        )
        best, far = trials.best, max(_SAME, _SAME_PART * self._expected_miss(marginals))
        others = (other for other in trials.solutions if other is not best)
        agreed = [best, *(o for o in others if spread_of([best.pmf, o.pmf]) < far)]
        if len(agreed) > 1 or isinstance(self.fit.start, JointPMF) or trials.is_stopped:
            return concluded(partial(self._settled, trials, agreed, marginals, cells))
        return None

    def _average(
        self, marginals: MarginalSet, cells: TableCells, generator: np.random.Generator
    ) -> Solution:
        """Return the average of fits that are as good as the best, but for the tables' noise."""
        tolerance = cells.n_cells / (2 * cells.total) if marginals.is_counted else _LEAST
        wanted = self.n_average or self._n_averaged(cells)
        starts = self._starts(cells, marginals.exclusions, generator)
        trials: Trials[str] = Trials()
        trials.run(
            self._candidates(cells, starts, wanted + _SETTLING),
            lambda so_far: len(list(so_far.near_best(tolerance))) >= wanted,
        )
        return concluded(partial(self._averaged, trials, cells, tolerance))

    def _expected_miss(self, marginals: MarginalSet) -> float:
        """Return how far sampling leaves a fit from the truth: half a nat for each parameter."""
        n_rows = max((m.n_rows for m in marginals if m.n_rows is not None), default=np.inf)
        n_parameters = self.fit.rank * (1 + sum(size - 1 for size in marginals.domain.sizes)) - 1
        return n_parameters / (2 * n_rows)

    def _settling(self, marginals: MarginalSet, cells: TableCells) -> CellFit:
        """Return how one model is sought: to the end."""
        if not marginals.is_counted:
            return self._with(_EXACT_TOL, 0.0)
        return self._with(_SETTLED / cells.total, _SMOOTHING)

    def _averaging(self, marginals: MarginalSet, cells: TableCells) -> CellFit:
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

    def _starts(
        self,
        cells: TableCells,
        exclusions: Exclusions,
        generator: np.random.Generator,
        plain: MarginalSet | None = None,
    ) -> Iterator[tuple[Point, Start]]:
        """Yield the start that was given, the closed form of plain tables, and random ones."""
        rank, given = self.fit.rank, self.fit.start
        if isinstance(given, JointPMF):
            point = mixed(Point.of_pmf(given), cells.marginal, _INTERIOR)
            yield _avoiding(point, cells, exclusions, generator), Start("given", "a JointPMF")
        elif plain is not None and plain.is_plain and given != "random" and rank > 1:
            problem = CoupledLeastSquares(plain, rank, "counts" if plain.is_counted else None)
            with one_blas_thread:
                found = algebraic_start(plain, problem, generator)
            if found.point is not None:
                point = mixed(found.point, cells.marginal, _INTERIOR)
                yield point, Start("algebraic", found.reason)
        while True:
            point = mixed(random_point(cells.domain, rank, generator), cells.marginal, _NEUTRAL)
            yield _avoiding(point, cells, exclusions, generator), Start("random")

    def _candidates(
        self, cells: TableCells, starts: Iterator[tuple[Point, Start]], count: int
    ) -> Iterator[tuple[str, Callable[[], Solution]]]:
        """Yield fits from starts, drawn one at a time."""
        for k, (point, start) in zip(range(count), starts, strict=False):
            loop = in_stage(self.fit.loop, f"start {k + 1} of at most {count}")
            fit = replace(self.fit, loop=loop)
            yield f"start {k + 1}", partial(_from_point, fit, cells, point, start)

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
            spread = spread_of([solution.pmf for solution in agreed])
            found = replace(found, is_unique=True, spread=spread)
            if found.status is Status.CONVERGED and _can_step(marginals, self.fit.rank):
                pmf = self._stepped(found.pmf, marginals, cells)
                found = replace(found, pmf=pmf, objective=cost_of(cells, pmf))
        return found

    def _stepped(self, pmf: JointPMF, marginals: MarginalSet, cells: TableCells) -> JointPMF:
        """Return the model after the step that knows which tables share people (eq. 51)."""
        point = Point.of_pmf(pmf)
        prior = self.fit.prior(cells)
        ahead = efficient_step(marginals.domain, marginals.measurements, point, prior, _N_STEPS)
        factors = np.split(ahead.factors, marginals.domain.offsets[1:-1])
        return JointPMF(marginals.domain, ahead.weights, factors)

    def _averaged(self, trials: Trials[str], cells: TableCells, tolerance: float) -> Solution:
        """Return the average of the fits that are as good as the best."""
        near = [trial.solution for trial in trials.near_best(tolerance)]
        best = self._told(trials.best, trials, len(near))
        if len(near) == 1:
            return best.stopped() if trials.is_stopped else best
        pmfs = [solution.pmf for solution in near]
        spread = spread_of(pmfs)
        is_unique = spread < _SAME
        is_valley = not is_unique and best.status is Status.CONVERGED
        pmf = average(pmfs)
        found = replace(
            best,
            pmf=pmf,
            objective=cost_of(cells, pmf),
            n_averaged=len(near),
            status=Status.NOT_UNIQUE if is_valley else best.status,
            is_unique=is_unique,
            spread=spread,
        )
        return found.stopped() if trials.is_stopped else found

    def _told(self, best: Solution, trials: Trials[str], n_agreed: int) -> Solution:
        return replace(
            best,
            restarts=tuple(trials.restarts),
            n_starts=len(trials.restarts),
            n_agreed=n_agreed,
            settings=Likelihood(self.fit.smoothing, self.fit.towards),
        )

    def _best_rank(
        self,
        marginals: MarginalSet,
        cells: TableCells,
        generator: np.random.Generator,
        tried: list[Solution],
    ) -> int:
        """Return the rank whose fit would predict such tables of other people best.

        Where tables of this kind do not decide it, the largest of those that are as good, whose
        averages are nearest to maximum entropy. Fits are added to `tried`, also if someone stops,
        which raises KeyboardInterrupt.
        """
        drawn: list[TableCells] = []
        if marginals.is_counted:
            tried.append(self._large(marginals, cells, generator))
            _check_not_stopped(tried[-1])
            drawn = _drawn(tried[-1].pmf, marginals, cells, generator)
        costs, optimisms = [], []
        for rank in (rank for rank in _RANKS if rank <= _largest_rank(cells.domain)):
            own = replace(self, fit=replace(self.fit, rank=rank))._averaging(marginals, cells)
            starts = own._starts(cells, marginals.exclusions, generator)
            trials: Trials[str] = Trials()
            try:
                trials.run(own._candidates(cells, starts, _N_TRIED if rank > 1 else 1))
            except JointPMFError:
                costs.append(np.inf)  # too small for what is impossible
                optimisms.append(0.0)
                continue
            tried.append(trials.best)
            _check_not_stopped(*trials.solutions)
            costs.append(trials.best.objective)
            optimisms.append(own._optimism(trials.best.pmf, drawn))
            scores = np.add(costs, optimisms)
            if len(scores) - 1 - int(scores.argmin()) >= _PATIENCE:
                break
        if scores[0] == scores.min() and self._shows_dependence(marginals, cells, costs, generator):
            scores[0] = np.inf
        best = int(scores.argmin())
        near = np.flatnonzero(scores <= scores[best] + max(_FLAT * optimisms[best], 1e-9))
        return _RANKS[best if decided(marginals, _RANKS[best]) is not False else near[-1]]

    def _shows_dependence(
        self,
        marginals: MarginalSet,
        cells: TableCells,
        costs: Sequence[float],
        generator: np.random.Generator,
    ) -> bool:
        """Tell whether two components gain more than they would if all were independent."""
        if len(costs) < 2 or not marginals.is_counted:
            return False
        one, two = (
            replace(self, fit=replace(self.fit, rank=rank))._averaging(marginals, cells)
            for rank in _RANKS[:2]
        )
        independent = Point(np.ones(1), cells.marginal[:, None])
        model = _from_point(one.fit, cells, independent, Start("given")).pmf
        gains = []
        for drawn in _drawn(model, marginals, cells, generator, _N_INDEPENDENT):
            found = [
                _from_point(
                    own.fit, drawn, *next(own._starts(drawn, marginals.exclusions, generator))
                )
                for own in (one, two)
            ]
            _check_not_stopped(*found)
            gains.append(found[0].objective - found[1].objective)
        return costs[0] - costs[1] > _CLEAR * max(gains)

    def _large(
        self, marginals: MarginalSet, cells: TableCells, generator: np.random.Generator
    ) -> Solution:
        """Return one fit of a large rank, from which people can be drawn."""
        rank = min(_DRAWN_RANK, _largest_rank(cells.domain))
        fit = replace(self.fit, rank=rank, start="random")
        own = replace(self, fit=fit)._averaging(marginals, cells)
        point, start = next(own._starts(cells, marginals.exclusions, generator))
        return _from_point(own.fit, cells, point, start)

    def _optimism(self, pmf: JointPMF, drawn: Sequence[TableCells]) -> float:
        """Return how much better a fit looks on its own tables than on those of other people.

        Such tables are fitted from here: the fit gains on them as much over the model as it loses
        to it elsewhere (eq. 39). Tables that share people share their noise, so counts that are
        held out of one table are not new to a fit that saw the others.
        """
        gains, point = [], Point.of_pmf(pmf)
        for cells in drawn:
            lifted = mixed(point, cells.marginal, _INTERIOR)
            lifted.factors *= point.factors > 0  # what is impossible stays so
            found = _from_point(self.fit, cells, _normalised(lifted, pmf.domain), Start("given"))
            _check_not_stopped(found)
            gains.append(cost_of(cells, pmf) - cost_of(cells, found.pmf))
        return 2 * float(np.mean(gains)) if gains else 0.0


def _largest_rank(domain: Domain) -> int:
    """Return the rank that any joint of a domain has, at most; two are always tried."""
    return max(math.prod(domain.sizes) // max(domain.sizes), 2)


def _check_not_stopped(*solutions: Solution) -> None:
    """Raise KeyboardInterrupt if someone stopped one of some fits."""
    if any(solution.status is Status.STOPPED for solution in solutions):
        raise KeyboardInterrupt


def _drawn(
    pmf: JointPMF,
    marginals: MarginalSet,
    cells: TableCells,
    generator: np.random.Generator,
    times: int = _N_DRAWN,
) -> list[TableCells]:
    """Return such tables of other people, drawn from a model some times."""
    tables, found = marginals.measurements, []
    count = round(max(float(np.nansum(table.n_counted)) for table in tables))
    for _ in range(times):
        codes = pmf.sample(count, random_state=generator, backend="codes")
        found.append(cells.counted([table.counted(codes, generator) for table in tables]))
    return found


def _from_point(fit: EMFit, cells: TableCells, point: Point, start: Start) -> Solution:
    """Return the fit from a point; smoothing leaves its zeros alone."""
    prior = fit.prior(cells)
    if prior is not None and (point.factors == 0).any():
        prior = prior * (point.factors > 0)
    solver = em.EM(cells, fit.rank, prior)
    return Solution.of(iterate(solver, point, fit.loop), cells.domain, start)


def _avoiding(
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
            found = _normalised(Point(point.weights, point.factors * allowed), cells.domain)
            if np.isfinite(expectation.counts(expectation.stack(found))[1]):
                return found
    raise JointPMFError(
        f"rank {rank} is too small for {len(exclusions.cells)} impossible combinations, or they "
        "contradict each other or the tables"
    )


def _normalised(point: Point, domain: Domain) -> Point:
    """Return a point whose columns sum to one."""
    sums = np.add.reduceat(point.factors, domain.offsets[:-1], axis=0)
    return Point(point.weights, point.factors / np.repeat(sums, domain.sizes, axis=0))


def decided(marginals: MarginalSet, rank: int) -> bool | None:
    """Tell whether tables determine a model of a rank; None if that is not known."""
    domain, generator = marginals.domain, np.random.default_rng(0)
    if marginals.is_plain:
        subsets = sorted(set(marginals.subsets))
        return is_determined(Curvature(domain, subsets, np.ones(len(subsets))), rank, generator)
    found = jacobian_rank(TableCurvature(domain, marginals.measurements), rank, None, generator)
    n_parameters = rank * (1 + sum(size - 1 for size in domain.sizes)) - 1
    return None if found is None else found == n_parameters


def _can_step(marginals: MarginalSet, rank: int) -> bool:
    """Tell whether the efficient step applies: to counts without noise, where all is possible."""
    is_plain_count = marginals.is_counted and all(m.noise is None for m in marginals)
    if marginals.impossible or not is_plain_count:
        return False
    return can_step(marginals.domain, marginals.measurements, rank)


def spread_of(pmfs: Sequence[JointPMF]) -> float:
    """Return how far models are from their average: the mean KL divergence, in nats, on drawn rows.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> spread_of([pmf, pmf])
    0.0
    """
    mean, total = average(pmfs), 0.0
    for pmf in pmfs:
        rows = Codes(pmf.domain, pmf.sample(_SPREAD_ROWS, random_state=0, backend="codes"))
        total += float((pmf.log_probability(rows) - mean.log_probability(rows)).mean())
    return max(total / len(pmfs), 0.0)


def cost_of(cells: TableCells, pmf: JointPMF) -> float:
    """Return minus the mean log-likelihood of a row of the tables."""
    expectation = cells.expectation(pmf.rank)
    return -expectation.counts(expectation.stack(Point.of_pmf(pmf)))[1] / cells.total
