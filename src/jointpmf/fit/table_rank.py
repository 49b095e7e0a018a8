"""The rank of tables: the one whose fit would predict such tables of other people best."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.errors import JointPMFError
from jointpmf.fit.search import Trials
from jointpmf.fit.solution import Solution, Start
from jointpmf.fit.table_points import (
    INTERIOR,
    check_not_stopped,
    from_point,
    normalised,
    optimism_of,
)
from jointpmf.point import Point
from jointpmf.solvers.starts.random import mixed

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.fit.tables import CellFit
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.pmf import JointPMF
    from jointpmf.solvers.table_cells import TableCells

_RANK_LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Ranks that are tried where none is given."""

PATIENCE, _LITTLE_GAIN = 2, 0.2
"""Ranks in a row that are not better, after which no larger one is tried; and the part of the
optimism by which a rank may be worse and is still as good."""

_N_RANK_STARTS, _N_DRAWN, _DRAWN_RANK, _N_INDEPENDENT = 2, 2, 32, 6
"""To choose the rank: starts of each, how often tables are drawn, the rank of the model that they
are drawn from, and how often they are drawn from independent variables if rank 1 seems best."""

_CLEAR = 1.2
"""How many times the most that two components gain by chance they must gain, to show dependence;
one nat of all tables together at least."""


@dataclass(frozen=True)
class RankSearch:
    """A search for the rank of some tables; `tried` has what was fitted, also if it is stopped."""

    cell_fit: CellFit
    marginals: MarginalSet
    cells: TableCells
    generator: np.random.Generator
    tried: list[Solution]

    def best(self, is_decided: Callable[[int], bool]) -> int:
        """Return the rank whose fit would predict such tables of other people best.

        Where tables of this kind do not decide it, the largest of those that are as good, whose
        averages are nearest to maximum entropy. If someone stops, KeyboardInterrupt is raised.
        """
        drawn: list[TableCells] = []
        if self.marginals.is_counted:
            self.tried.append(self._large())
            check_not_stopped(self.tried[-1])
            drawn = self.drawn(self.tried[-1].pmf, _N_DRAWN)
        costs, optimisms = [], []
        for rank in (rank for rank in _RANK_LADDER if rank <= _largest_rank(self.cells.domain)):
            found = self._of_rank(rank)
            costs.append(np.inf if found is None else found.objective)
            optimisms.append(0.0 if found is None else self.optimism(rank, found.pmf, drawn))
            scores = np.add(costs, optimisms)
            if found is not None and len(scores) - 1 - int(scores.argmin()) >= PATIENCE:
                break
        if not np.isfinite(scores).any():
            raise JointPMFError("the impossible combinations contradict each other or the tables")
        flat = max(_LITTLE_GAIN * optimisms[int(scores.argmin())], 1e-9)
        if scores[0] <= scores.min() + flat:
            if not self._shows_dependence(costs):
                return 1
            scores[0] = np.inf
        best = int(scores.argmin())
        near = np.flatnonzero(scores <= scores[best] + flat)
        return _RANK_LADDER[best if is_decided(_RANK_LADDER[best]) else near[-1]]

    def _with_rank(self, rank: int) -> CellFit:
        own = replace(self.cell_fit, fit=replace(self.cell_fit.fit, rank=rank))
        return own.averaging(self.marginals, self.cells)

    def _of_rank(self, rank: int) -> Solution | None:
        """Return the better of few fits, or None if what is impossible needs a larger rank."""
        own, trials = self._with_rank(rank), Trials[str]()
        starts = own.starts(self.cells, self.marginals.exclusions, self.generator)
        try:
            trials.run(own.candidates(self.cells, starts, _N_RANK_STARTS if rank > 1 else 1))
        except JointPMFError:
            return None
        self.tried.append(trials.best)
        check_not_stopped(*trials.solutions)
        return trials.best

    def one_fit(self, rank: int, cells: TableCells) -> Solution:
        """Return the fit from one random start."""
        own = self._with_rank(rank)
        loop = own.fit.loop if cells is self.cells else own.fit.loop.elsewhere
        own = replace(own, fit=replace(own.fit, start="random", loop=loop))
        point, start = next(own.starts(cells, self.marginals.exclusions, self.generator))
        return from_point(own.fit, cells, point, start)

    def _large(self) -> Solution:
        """Return one fit of a large rank, from which people can be drawn."""
        return self.one_fit(min(_DRAWN_RANK, _largest_rank(self.cells.domain)), self.cells)

    def _shows_dependence(self, costs: Sequence[float]) -> bool:
        """Tell whether two components gain more than they would if all were independent."""
        if len(costs) < 2 or not self.marginals.is_counted:
            return False
        independent = Point(np.ones(1), self.cells.marginal[:, None])
        model = from_point(self._with_rank(1).fit, self.cells, independent, Start("given")).pmf
        gains = []
        for drawn in self.drawn(model, _N_INDEPENDENT):
            found = [self.one_fit(rank, drawn) for rank in (1, 2)]
            check_not_stopped(*found)
            gains.append(found[0].objective - found[1].objective)
        return costs[0] - costs[1] > max(_CLEAR * max(gains), 1 / self.cells.total)

    def drawn(self, pmf: JointPMF, times: int) -> list[TableCells]:
        """Return such tables of other people, drawn from a model some times."""
        tables, found = self.marginals.measurements, []
        count = round(max(float(np.nansum(table.n_counted)) for table in tables))
        for _ in range(times):
            codes = pmf.sample(count, random_state=self.generator, backend="codes")
            counted = [table.counted(codes, self.generator) for table in tables]
            found.append(self.cells.counted(counted))
        return found

    def optimism(self, rank: int, pmf: JointPMF, drawn: Sequence[TableCells]) -> float:
        """Return how much better a fit looks on its own tables than on those of other people.

        Such tables are fitted from here: the fit gains on them as much over the model as it loses
        to it elsewhere (eq. 39). Tables that share people share their noise, so counts that are
        held out of one table are not new to a fit that saw the others.
        """
        point, fit = Point.of_pmf(pmf), self._with_rank(rank).fit
        fit = replace(fit, loop=fit.loop.elsewhere)

        def again(cells: TableCells) -> Solution:
            lifted = mixed(point, cells.marginal, INTERIOR)
            lifted.factors *= point.factors > 0  # what is impossible stays so
            return from_point(fit, cells, normalised(lifted, pmf.domain), Start("given"))

        return optimism_of(pmf, drawn, again)


def _largest_rank(domain: Domain) -> int:
    """Return the rank that any joint of a domain has, at most; two are always tried."""
    return max(math.prod(domain.sizes) // max(domain.sizes), 2)
