"""Coupled least squares on marginals: where to begin, the method, restarts, and the rank."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trials, concluded
from jointpmf.fit.solution import Solution, Start
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.solvers.jacobian import is_determined
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Loop, Solver, Status, Validation, iterate
from jointpmf.solvers.methods import solver_of
from jointpmf.solvers.starts.algebraic import algebraic_start, fits_exactly
from jointpmf.solvers.starts.random import mixed_with_uniform, random_point
from jointpmf.threads import interrupts, one_blas_thread

if TYPE_CHECKING:
    import numpy as np

    from jointpmf.marginals.marginal_set import MarginalSet

logger = logging.getLogger("jointpmf")

_MAX_STARTS, _MIN_STARTS, _START_WORK = 20, 3, 2000
"""Starts that are tried until one fits exactly or two agree on the lowest objective: at most the
first number, and fewer for large models, whose parameters times starts stay below the last."""

_VALLEY_TOL = 1e-6
"""Relative improvement that ends a fit to marginals that do not determine the model: the objective
is then a flat valley, in which one point is as good as another."""

_AGREEMENT = 1e-6
"""Relative difference up to which two fits have found the same objective."""

_UNIFORM_PART = 0.2
"""Part of the uniform distribution in a closed-form start that is not exact: under noise its
projection has zeros, which are hard to leave again."""

_MAX_TRIED_RANK = 20
"""Ranks up to which marginals are tried."""

_ELBOW = 0.8
"""Part of the objective below which one more component must bring it."""

_EXACT_OBJECTIVE = 1e-20
"""An objective that no further component need lower."""


class _First(NamedTuple):
    """Where to begin, and whether other starts need be tried."""

    point: Point
    start: Start
    is_certain: bool = False
    is_exact: bool = False
    is_unique: bool | None = None
    """Whether the marginals determine a model of the rank, if that is known."""
    n_starts: int = 1
    """From how many starts to fit, at most."""


@dataclass(frozen=True)
class CoupledFit:
    """How one coupled fit is done: everything but the problem."""

    loop: Loop
    method: str = "auto"
    start: str | JointPMF = "auto"

    def run(
        self,
        problem: CoupledLeastSquares,
        marginals: MarginalSet,
        generator: np.random.Generator,
        held_out: Validation | None = None,
    ) -> Solution:
        """Return the best fit; `marginals` are those of the problem."""
        try:
            with interrupts():
                first = self._begin(problem, marginals, generator)
        except KeyboardInterrupt:
            return self._stopped_at(random_point(problem.domain, problem.rank, generator), problem)
        loop, unique = self.loop, first.is_unique
        if unique is False:
            logger.warning(
                "rank %d is not identifiable from these marginals; jointpmf.identifiability says "
                "more",
                problem.rank,
            )
            if self.method == "auto":
                loop = replace(loop, tol=max(loop.tol, _VALLEY_TOL))
        count = 1 if held_out is not None else first.n_starts

        def fit(point: Point, start: Start) -> Solution:
            outcome = iterate(self._solver(problem), point, loop, validation=held_out)
            return Solution.of(outcome, problem.domain, start)

        trials: Trials[Start] = Trials()
        trials.run(_candidates(fit, first, count, problem, generator), partial(_agree, problem))
        return concluded(partial(_finished, trials, problem, unique))

    def _solver(self, problem: CoupledLeastSquares) -> Solver:
        return solver_of(self.method, problem)

    def _stopped_at(self, point: Point, problem: CoupledLeastSquares) -> Solution:
        """Return a fit that was interrupted before it had a better start than this one."""
        here = iterate(self._solver(problem), point, Loop(max_iter=0, tol=0.0))
        start = Start("random", "interrupted before it began")
        return Solution.of(here, problem.domain, start).stopped()

    def _begin(
        self, problem: CoupledLeastSquares, marginals: MarginalSet, generator: np.random.Generator
    ) -> _First:
        """Return where to begin, from how many starts, and whether there is one optimum to find."""
        first = self._first(problem, marginals, generator)
        unique = first.is_exact or is_determined(problem.curvature, problem.rank, generator)
        is_alone = first.is_certain or self.method != "auto" or unique is False
        return first._replace(is_unique=unique, n_starts=1 if is_alone else _n_starts(problem))

    def _first(
        self, problem: CoupledLeastSquares, marginals: MarginalSet, generator: np.random.Generator
    ) -> _First:
        """Return where to begin, and why there."""
        if not isinstance(self.start, str):
            return _First(Point.of_pmf(self.start), Start("given", "a JointPMF"), is_certain=True)
        reason = "as asked"
        if self.start != "random":
            first, reason = _closed_form(problem, marginals, generator)
            if first is not None:
                return first
            logger.info("random start: %s", reason)
        point = random_point(problem.domain, problem.rank, generator)
        return _First(point, Start("random", reason))


def _closed_form(
    problem: CoupledLeastSquares, marginals: MarginalSet, generator: np.random.Generator
) -> tuple[_First | None, str]:
    """Return the start in closed form, or None and why there is none."""
    with one_blas_thread:
        found = algebraic_start(marginals, problem, generator)
    if found.point is None:
        return None, f"the closed form does not apply, because {found.reason}"
    start = Start("algebraic", found.reason)
    if found.is_exact:
        return _First(found.point, start, True, True), ""
    return _First(mixed_with_uniform(found.point, problem.domain, _UNIFORM_PART), start), ""


def _candidates(
    fit: Callable[[Point, Start], Solution],
    first: _First,
    count: int,
    problem: CoupledLeastSquares,
    generator: np.random.Generator,
) -> Iterator[tuple[Start, Callable[[], Solution]]]:
    """Yield the first start, then random ones."""
    yield first.start, partial(fit, first.point, first.start)
    for k in range(2, count + 1):
        start = Start("random", f"start number {k}, better than the first ({first.start})")
        yield start, partial(fit, random_point(problem.domain, problem.rank, generator), start)


def _n_starts(problem: CoupledLeastSquares) -> int:
    n_parameters = problem.rank * (1 + sum(problem.domain.sizes))
    return min(max(_START_WORK // n_parameters, _MIN_STARTS), _MAX_STARTS)


def _agree(problem: CoupledLeastSquares, trials: Trials[Start]) -> bool:
    """Tell whether a fit is exact, or two fits have the lowest objective."""
    lowest = min(solution.objective for solution in trials.solutions)
    return (
        fits_exactly(problem, lowest) or len(list(trials.near_best(_AGREEMENT, relative=True))) > 1
    )


def _finished(trials: Trials[Start], problem: CoupledLeastSquares, unique: bool | None) -> Solution:
    """Return the best fit, with all that is known about it."""
    best = trials.best
    status = Status.STOPPED if trials.is_stopped else best.status
    if status is Status.CONVERGED and unique is False:
        status = Status.NOT_UNIQUE
    with one_blas_thread:
        cost = problem.cost(Point.of_pmf(best.pmf))  # from residuals, whatever the method's own
    return replace(
        best,
        status=status,
        objective=cost,
        is_unique=unique,
        restarts=tuple(trials.restarts) if len(trials.restarts) > 1 else (),
        n_starts=len(trials.restarts),
        n_agreed=len(list(trials.near_best(_AGREEMENT, relative=True))),
    )


@dataclass(frozen=True)
class TableFit:
    """How marginals are fitted: the coupled fit, their weights, and what judges it."""

    fit: CoupledFit
    weighting: Any
    judge: Validation | None = None

    def run(
        self, marginals: MarginalSet, rank: int | None, generator: np.random.Generator
    ) -> Solution:
        """Return the fit of a rank, or of the rank from which on more components hardly help."""
        if rank is not None:
            return self._of_rank(marginals, generator, rank)
        trials: Trials[int] = Trials(is_tolerant=False)
        trials.run(self._ranks(marginals, generator), _is_past_the_elbow)
        *before, last = trials.solutions
        if before and (trials.is_stopped or last.objective > _ELBOW * before[-1].objective):
            last = before[-1]
        return last.stopped() if trials.is_stopped else last

    def _of_rank(
        self, marginals: MarginalSet, generator: np.random.Generator, rank: int
    ) -> Solution:
        problem = CoupledLeastSquares(marginals, rank, self.weighting)
        return self.fit.run(problem, marginals, generator, self.judge)

    def _ranks(
        self, marginals: MarginalSet, generator: np.random.Generator
    ) -> Iterator[tuple[int, Callable[[], Solution]]]:
        for rank in range(1, _MAX_TRIED_RANK + 1):
            loop = in_stage(self.fit.loop, f"rank {rank}")
            own = replace(self, fit=replace(self.fit, loop=loop))
            yield rank, partial(own._of_rank, marginals, generator, rank)


def _is_past_the_elbow(trials: Trials[int]) -> bool:
    """Tell whether the last rank hardly helped, or none need help any more."""
    *before, last = trials.solutions
    is_worse = bool(before) and last.objective > _ELBOW * before[-1].objective
    return is_worse or last.objective <= _EXACT_OBJECTIVE
