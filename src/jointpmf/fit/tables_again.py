"""The same fit to tables again, from where it ended, to tables of another sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.errors import JointPMFError
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.members import joined, loop_again, some_members, squares_again
from jointpmf.fit.settings import Likelihood
from jointpmf.fit.table_points import normalised
from jointpmf.marginals.marginal import Marginal
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.point import Point
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.starts.random import LIFT, mixed
from jointpmf.solvers.table_cells import TableCells

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution
    from jointpmf.marginals.measurement import Measurement
    from jointpmf.pmf import JointPMF


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
            return squares_again(problem, pmf)
        cells = TableCells(pmf.domain, tables)
        points = [self._by_likelihood(tables, cells, member) for member in some_members(found)]
        return joined(points, pmf)

    def _by_likelihood(
        self, tables: Sequence[Measurement], cells: TableCells, pmf: JointPMF
    ) -> Point:
        marginals = self.solution.marginals
        assert marginals is not None
        point = mixed(Point.of_pmf(pmf), cells.marginal, LIFT)
        if marginals.impossible:  # what is impossible stays so
            allowed = np.concatenate(pmf.factors) > 0
            point = normalised(Point(point.weights, point.factors * allowed), pmf.domain)
        is_stepped = self.solution.n_averaged == 1 and bool(self.solution.is_unique)
        from jointpmf.fit.tables import CellFit

        settings = self.solution.settings
        assert isinstance(settings, Likelihood)
        fit = EMFit(pmf.rank, loop_again(0.0), towards=settings.towards or "marginal")
        own = CellFit(fit, smoothing=settings.smoothing)
        return own.again(marginals, tables, cells, point, is_stepped)


def _plain_set(tables: Sequence[Measurement], like: MarginalSet | None) -> MarginalSet:
    """Return whole tables of all levels as marginals, without asking whether they agree."""
    assert like is not None
    pairs = zip(tables, like, strict=True)
    marginals = [Marginal(m.names, t.counts, float(t.counts.sum())) for t, m in pairs]
    return MarginalSet._exact(like.domain, marginals)
