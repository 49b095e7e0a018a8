"""From marginals to a joint PMF: check what was asked, choose the start and the method, run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, at_least_zero, one_of, seeded_generator, whole_number
from jointpmf.fit.checkpoint import Checkpoint
from jointpmf.judge.identifiability import is_determined
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.output import PathLike
from jointpmf.pmf import JointPMF
from jointpmf.solvers.aoadmm import AOADMM
from jointpmf.solvers.auto import SweepsThenNewton
from jointpmf.solvers.curvature import Curvature
from jointpmf.solvers.implicit import ImplicitLeastSquares
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Callback, Solution, Solver, Status, iterate
from jointpmf.solvers.newton import Newton
from jointpmf.solvers.point import Point
from jointpmf.solvers.starts.algebraic import EXACT, algebraic_start
from jointpmf.solvers.starts.candidates import checked_start, random_point
from jointpmf.threads import one_blas_thread

logger = logging.getLogger("jointpmf")

FEW_SWEEPS, MANY_SWEEPS, MANY_PARAMETERS = 20, 100, 1000
"""Sweeps of AO-ADMM before second order takes over: more for models of more parameters than that,
for which a second-order step costs as much as many sweeps."""

MAX_STARTS, MIN_STARTS, START_WORK = 20, 3, 2000
"""Starts that are tried until one fits exactly or two agree on the lowest objective: so many at
most, fewer for large models, whose steps take long (this many parameters in all)."""

VALLEY_TOL = 1e-6
"""Relative improvement that ends a fit to marginals that do not determine the model: the objective
is then a flat valley, in which one point is as good as another."""

AGREEMENT = 1e-6
"""Relative difference up to which two fits have found the same objective."""

COUPLED_STARTS = ("auto", "algebraic", "random")
"""Where a fit to marginals may begin, besides at a model."""

PATIENCE = 50
"""Iterations after which a fit ends that has not improved on what validates it."""

INTERIOR = 0.2
"""Part of the uniform distribution in a closed-form start that is not exact: under noise its
projection has zeros, which are hard to leave again."""


def fit_marginals(
    marginals: MarginalSet,
    rank: int,
    *,
    method: str = "auto",
    start: str | JointPMF = "auto",
    weighting: Any = None,
    max_iter: int = 1500,
    tol: float = 1e-10,
    validation: Callable[[JointPMF], float] | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    checkpoint: PathLike | Checkpoint | None = None,
    checkpoint_every: int = 10,
) -> Solution:
    """Return the low-rank joint PMF that fits all marginals best, in least squares.

    Parameters
    ----------
    marginals : MarginalSet
        What is known: tables of any subsets of the variables.
    rank : int
        Number of components.
    method : {"auto", "aoadmm", "newton"}
        The paper's alternating optimisation with ADMM; Levenberg–Marquardt; or, by default, a few
        sweeps of the first and then the second, with restarts where the start is not certain.
    start : {"auto", "algebraic", "random"} or JointPMF
        Where to begin: in closed form from triples where they allow it, at random, or as given.
    weighting : None, "counts" or array
        Weight of each marginal: all equal, by the rows it was counted over, or as given.
    max_iter, tol : int, float
        Budget of iterations, and the relative improvement below which the fit has converged.
    validation : callable, optional
        Called as `validation(pmf)` after every iteration: how badly a model does on data that the
        marginals do not hold. The model with the least of it is returned, from one start.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits.
    callback : callable, optional
        Called as `callback(step, pmf)` after every iteration; returning True stops.
    checkpoint : path, optional
        A folder in which the fit leaves how far it has come, every `checkpoint_every` iterations
        and at most once a second. The same call goes on from there, after a kill too, to the same
        bits. The folder stays until you delete it.
    checkpoint_every : int
        Iterations between two writes.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4, 4, 4, 4]), rank=3, random_state=0)
    >>> solution = jp.fit_marginals(truth.marginals(order=3), rank=3, random_state=0)
    >>> bool(jp.factor_error(truth, solution.pmf) < 1e-10)
    True
    """
    if not isinstance(marginals, MarginalSet):
        raise JointPMFError(f"marginals must be a MarginalSet, not {type(marginals).__name__}")
    rank = whole_number(rank, "the rank", 1)
    max_iter = whole_number(max_iter, "max_iter", 0)
    tol = at_least_zero(tol, "tol")
    one_of(method, ("auto", "aoadmm", "newton"), "method")
    for name, function in (("callback", callback), ("validation", validation)):
        if function is not None and not callable(function):
            raise JointPMFError(f"the {name} must be callable, not {function!r}")
    generator = seeded_generator(random_state)
    problem = CoupledLeastSquares(marginals, rank, weighting)
    options: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "callback": callback}
    if isinstance(checkpoint, Checkpoint):
        options["checkpoint"] = checkpoint
    elif checkpoint is not None:
        identity = {
            "function": "fit_marginals",
            "marginals": marginals,
            "rank": rank,
            "method": method,
            "start": start,
            "weighting": problem.marginal_weights,
            "max_iter": max_iter,
            "tol": tol,
            "validation": validation is not None,
        }
        saved = Checkpoint(checkpoint, checkpoint_every, identity, random_state)
        options["checkpoint"], generator = saved, saved.generator
    try:
        first = _start(marginals, problem, start, generator)
        unique = first.is_exact or is_unique(_curvature(problem), rank, generator)
    except KeyboardInterrupt:
        point = random_point(marginals.domain, rank, generator)
        return replace(stopped_at(_solver(method, problem), point), marginals=marginals)
    if method == "auto" and unique is False:
        options["tol"] = max(tol, VALLEY_TOL)
    held_out = None if validation is None else _Judged(validation, problem.domain)
    solution = iterate(_solver(method, problem), first.point, validation=held_out, **options)
    solution = replace(solution, start=f"{first.name}: {first.reason}", marginals=marginals)
    is_certain = first.is_certain or validation is not None
    if method == "auto" and unique is not False and not is_certain:
        solution = _agreed_best(problem, solution, generator, options)
    if solution.status is Status.CONVERGED and unique is False:
        solution = replace(solution, status=Status.NOT_UNIQUE)
    with one_blas_thread:
        cost = problem.cost(Point.of_pmf(solution.pmf))  # from residuals, whatever the method's own
    return replace(solution, is_unique=unique, objective=cost)


@dataclass
class _Judged:
    """A function of the model as a validation part."""

    function: Callable[[JointPMF], float]
    domain: Domain
    patience: int = PATIENCE

    def cost(self, point: Point) -> float:
        """Return how badly a model does."""
        cost = float(self.function(point.to_pmf(self.domain)))
        return np.inf if np.isnan(cost) else cost


def _solver(method: str, problem: CoupledLeastSquares) -> Solver:
    if method == "aoadmm":
        return AOADMM(problem)
    if method == "newton":
        return Newton(problem)
    return default_solver(problem)


def default_solver(problem: CoupledLeastSquares | ImplicitLeastSquares) -> Solver:
    """Return the solver of the default method."""
    is_large = _n_parameters(problem) > MANY_PARAMETERS
    return SweepsThenNewton(problem, MANY_SWEEPS if is_large else FEW_SWEEPS)


def _n_parameters(problem: CoupledLeastSquares | ImplicitLeastSquares) -> int:
    return problem.rank * (1 + sum(problem.domain.sizes))


def _agreed_best(
    problem: CoupledLeastSquares,
    first: Solution,
    generator: np.random.Generator,
    options: dict[str, Any],
) -> Solution:
    """Return the best fit, after random starts until one is exact or two agree on the best."""
    found = [first]
    best = first
    n_starts = min(max(START_WORK // _n_parameters(problem), MIN_STARTS), MAX_STARTS)
    while len(found) < n_starts and not _is_certain(found, problem):
        point = random_point(problem.domain, problem.rank, generator)
        other = iterate(default_solver(problem), point, **options)
        reason = f"random: start number {len(found) + 1}, better than the first ({first.start})"
        found.append(replace(other, start=reason, marginals=first.marginals))
        best = min(found, key=lambda solution: solution.objective)
    stopped = found[-1].status is Status.STOPPED
    return replace(best, status=Status.STOPPED) if stopped else best


def _is_certain(found: list[Solution], problem: CoupledLeastSquares) -> bool:
    lowest = min(solution.objective for solution in found)
    agreeing = [s for s in found if s.objective <= (1 + AGREEMENT) * lowest]
    stopped = found[-1].status is Status.STOPPED
    return stopped or lowest <= EXACT * problem.norm or len(agreeing) > 1


def _curvature(problem: CoupledLeastSquares) -> Curvature:
    return Curvature(problem.domain, problem.subsets, problem.marginal_weights)


def is_unique(curvature: Curvature, rank: int, generator: np.random.Generator) -> bool | None:
    """Tell whether the marginals determine a model of this rank, and warn if they do not."""
    determined = is_determined(curvature, rank, generator)
    if determined is False:
        logger.warning(
            "rank %d is not identifiable from these marginals; jointpmf.identifiability says more",
            rank,
        )
    return determined


class _Start(NamedTuple):
    point: Point
    name: str
    reason: str
    is_exact: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether no other start need be tried."""
        return self.is_exact or self.name == "given"


def stopped_at(solver: Solver, point: Point) -> Solution:
    """Return a fit that was interrupted before it had a better start than this one."""
    here = iterate(solver, point, max_iter=0, tol=0.0)
    return replace(here, status=Status.STOPPED, start="random: interrupted before it began")


def _start(
    marginals: MarginalSet,
    problem: CoupledLeastSquares,
    start: str | JointPMF,
    generator: np.random.Generator,
) -> _Start:
    """Return where to begin, and why there."""
    start = checked_start(start, COUPLED_STARTS, marginals.domain, problem.rank, "marginals'")
    if isinstance(start, JointPMF):
        return _Start(Point.of_pmf(start), "given", "a JointPMF")
    reason = "as asked"
    if start != "random":
        with one_blas_thread:
            found = algebraic_start(marginals, problem, generator)
        if found.point is not None:
            exact = found.is_exact
            point = found.point if exact else mixed_with_uniform(found.point, marginals.domain)
            return _Start(point, "algebraic", found.reason, exact)
        reason = f"the closed form does not apply, because {found.reason}"
        logger.info("random start: %s", reason)
    return _Start(random_point(marginals.domain, problem.rank, generator), "random", reason)


def mixed_with_uniform(point: Point, domain: Domain) -> Point:
    """Return a point with a part of the uniform distribution in every column."""
    sizes = np.repeat(domain.sizes, domain.sizes)[:, None]
    rank = len(point.weights)
    return Point(
        (1 - INTERIOR) * point.weights + INTERIOR / rank,
        (1 - INTERIOR) * point.factors + INTERIOR / sizes,
    )
