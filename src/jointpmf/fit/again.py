"""The same fit again, from where it ended, to data that differ as another sample would.

A fit that had converged converges again. One that was stopped by what was held out gets as many
plain steps as it had: what the data change in so many steps is what they change in the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.members import ended, joined, loop_again, some_members
from jointpmf.fit.settings import Likelihood
from jointpmf.fit.starts import lifted
from jointpmf.fit.traits import traits_again
from jointpmf.point import Point
from jointpmf.solvers.loop import Loop

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution
    from jointpmf.pmf import JointPMF
    from jointpmf.rows.source import Source

_SETTLED_TOL = 1e-4
"""Nats of all rows together whose improvement ends a replicate: a standard error is half a nat."""


@dataclass(frozen=True)
class RowsAgain:
    """A fit to rows, to be done again on rows that count otherwise."""

    solution: Solution

    def fitted(self, source: Source) -> Point:
        """Return where the fit ends on these rows."""
        settings = self.solution.settings
        assert isinstance(settings, Likelihood)
        if self.solution.trait_models:
            return joined(traits_again(source, self.solution, settings), self.solution.pmf)
        some = some_members(self.solution)
        points = [self._by_likelihood(source, pmf, settings) for pmf in some]
        return joined(points, self.solution.pmf)

    def _by_likelihood(self, source: Source, pmf: JointPMF, settings: Likelihood) -> Point:
        fit = _em_fit(pmf.rank, settings, loop_again(_SETTLED_TOL / source.total))
        start = Point.of_pmf(pmf)
        if self.solution.validation is None:
            return ended(fit.outcome(source, lifted(start, source), fit.loop))
        solver = fit.solver(source, accelerated=False)
        state = solver.start(start)
        for _ in range(self.solution.n_iter):
            state = solver.plain_step(state)
        return state.point


def _em_fit(rank: int, settings: Likelihood, loop: Loop) -> EMFit:
    towards = settings.towards or "uniform"
    return EMFit(rank, loop, settings.smoothing or 0.0, towards)


def cost_again(solution: Solution, source: Source) -> float | None:
    """Return the objective of a fit by likelihood on rows, or None where it is of part of them."""
    settings, pmf = solution.settings, solution.pmf
    is_of_part = solution.validation is not None or bool(solution.trait_models)
    if not isinstance(settings, Likelihood) or is_of_part:
        return None
    if solution.source is None or solution.source.n_sampled is not None:
        return None
    if solution.n_averaged > 1:
        settings = Likelihood(0.0)
    fit = _em_fit(pmf.rank, settings, Loop(0, 0.0))
    return fit.outcome(source, Point.of_pmf(pmf), fit.loop).objective
