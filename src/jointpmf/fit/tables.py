"""Maximum likelihood from tables of any kind: one fit where they decide, else an average of many.

Fits from different starts tell whether the tables decide: if several meet the tables equally well
and yet are different models, their average meets them too and is nearer to maximum entropy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trials, concluded
from jointpmf.fit.settings import Likelihood
from jointpmf.fit.solution import Solution, Start
from jointpmf.mixing import average
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.solvers import em
from jointpmf.solvers.loop import Status, iterate
from jointpmf.solvers.starts.random import mixed, random_point
from jointpmf.solvers.table_cells import TableCells

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.marginals.measurement import Measurement

logger = logging.getLogger("jointpmf")

_N_AVERAGED = 16
"""Fits that are averaged where tables do not decide."""

_MOST_STARTS = 24
"""Starts that are tried at most."""

_SAME = 1e-4
"""Nats from their average up to which fits are the same model."""

_SPREAD_ROWS = 500
"""Rows of each fit by which it is told how far it is from the average."""

_INTERIOR = 0.2
"""Part of the marginals in a start that was given: from its zeros no EM step returns."""

_NOISE, _LEAST, _MOST = 3.0, 1e-6, 1e-3
"""Nats by which fits to one row differ that are as good as each other, if it were a whole table;
and what that is per row of a table, at least and at most."""

_RANKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Ranks that are tried where none is given."""

_PATIENCE, _MIN_GAIN = 2, 1e-5
"""Ranks in a row that are not better, by this many nats, after which no larger one is tried."""

_N_TRIED, _N_SIMULATED, _SIMULATED_ROWS = 2, 2, 20_000
"""To choose the rank: starts of each, how often tables are simulated, and of how many people."""


@dataclass(frozen=True)
class CellFit:
    """How tables are fitted by likelihood: everything but the tables."""

    fit: EMFit
    n_average: int | None = None

    def run(
        self, marginals: MarginalSet, rank: int | None, generator: np.random.Generator
    ) -> Solution:
        """Return the fit of a rank, or of the one that would predict other people's tables best."""
        cells = TableCells(marginals.domain, marginals.measurements)
        if rank is None:
            rank = self._best_rank(marginals, generator)
            logger.info("rank %d is expected to predict such tables of other people best", rank)
        own = replace(self, fit=replace(self.fit, rank=rank))
        settings = Likelihood(self.fit.smoothing, self.fit.towards)
        return replace(own._of_rank(cells, generator), marginals=marginals, settings=settings)

    def _of_rank(self, cells: TableCells, generator: np.random.Generator) -> Solution:
        near = cells.total / max(len(cells.n_shown), 1)
        tolerance = float(np.clip(_NOISE / near, _LEAST, _MOST))
        wanted = self.n_average or _N_AVERAGED
        trials: Trials[str] = Trials()
        trials.run(
            self._candidates(cells, max(wanted, _MOST_STARTS), generator),
            lambda so_far: self._is_enough(so_far, tolerance, wanted),
        )
        return concluded(partial(self._finished, trials, cells, tolerance))

    def _is_enough(self, trials: Trials[str], tolerance: float, wanted: int) -> bool:
        near = [trial.solution.pmf for trial in trials.near_best(tolerance)]
        if self.n_average is None and len(near) == 2 and spread_of(near) < _SAME:
            return True
        return len(near) >= wanted

    def _candidates(
        self, cells: TableCells, count: int, generator: np.random.Generator
    ) -> Iterator[tuple[str, Callable[[], Solution]]]:
        """Yield fits from the start that was given, if one was, and from random ones."""
        for k in range(count):
            loop = in_stage(self.fit.loop, f"start {k + 1} of at most {count}")
            point, start = random_point(cells.domain, self.fit.rank, generator), Start("random")
            if not k and isinstance(self.fit.start, JointPMF):
                given = Point.of_pmf(self.fit.start)
                point = mixed(given, cells.marginal, _INTERIOR)
                start = Start("given", "a JointPMF")
            yield (
                f"start {k + 1}",
                partial(self._from_point, replace(self.fit, loop=loop), cells, point, start),
            )

    @staticmethod
    def _from_point(fit: EMFit, cells: TableCells, point: Point, start: Start) -> Solution:
        solver = em.EM(cells, fit.rank, fit.prior(cells))
        return Solution.of(iterate(solver, point, fit.loop), cells.domain, start)

    def _finished(self, trials: Trials[str], cells: TableCells, tolerance: float) -> Solution:
        """Return the fit that was found again, or the average of those that are as good."""
        near = [trial.solution for trial in trials.near_best(tolerance)]
        pmfs, best = [solution.pmf for solution in near], trials.best
        spread = spread_of(pmfs) if len(near) > 1 else None
        is_unique = None if spread is None else spread < _SAME
        found = replace(
            best,
            is_unique=is_unique,
            spread=spread,
            restarts=tuple(trials.restarts),
            n_starts=len(trials.restarts),
            n_agreed=len(near),
        )
        if len(near) > 1 and (self.n_average or not is_unique):
            pmf = average(pmfs)
            is_valley = not is_unique and best.status is Status.CONVERGED
            status = Status.NOT_UNIQUE if is_valley else best.status
            found = replace(
                found, pmf=pmf, objective=cost_of(cells, pmf), n_averaged=len(near), status=status
            )
        return found.stopped() if trials.is_stopped else found

    def _best_rank(self, marginals: MarginalSet, generator: np.random.Generator) -> int:
        """Return the rank whose fit would predict such tables of other people best."""
        tables = marginals.measurements
        cells = TableCells(marginals.domain, tables)
        n_rows = max((m.n_rows for m in marginals if m.n_rows is not None), default=np.inf)
        best, best_cost = 1, np.inf
        for rank in _RANKS:
            own = replace(self, fit=replace(self.fit, rank=rank))
            trials: Trials[str] = Trials()
            trials.run(own._candidates(cells, _N_TRIED if rank > 1 else 1, generator))
            cost = trials.best.objective
            if np.isfinite(n_rows):
                cost += own._optimism(tables, trials.best.pmf, n_rows, generator)
            if cost < best_cost - _MIN_GAIN:
                best, best_cost = rank, cost
            if trials.is_stopped or _RANKS.index(rank) - _RANKS.index(best) >= _PATIENCE:
                break
        return best

    def _optimism(
        self,
        tables: Sequence[Measurement],
        pmf: JointPMF,
        n_rows: float,
        generator: np.random.Generator,
    ) -> float:
        """Return how much better a fit looks on its own tables than on those of other people.

        Tables of people drawn from the model are fitted: a fit gains on them as much over the model
        as it loses to it elsewhere (eq. 39). Tables that share people share their noise, so counts
        that are held out of one table are not new to a fit that saw the others.
        """
        count = min(round(n_rows), _SIMULATED_ROWS)
        start, gains = replace(self, fit=replace(self.fit, start=pmf)), []
        for _ in range(_N_SIMULATED):
            codes = pmf.sample(count, random_state=generator, backend="codes")
            cells = TableCells(pmf.domain, [table.counted(codes) for table in tables])
            (_, fit), *_ = start._candidates(cells, 1, generator)
            gains.append(cost_of(cells, pmf) - cost_of(cells, fit().pmf))
        return 2 * float(np.mean(gains)) * count / n_rows


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
