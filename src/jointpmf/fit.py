"""From marginals to a joint PMF: check what was asked, choose the start and the method, run."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, whole_number
from jointpmf.marginals import MarginalSet
from jointpmf.pmf import JointPMF
from jointpmf.solvers.aoadmm import AOADMM
from jointpmf.solvers.loop import Callback, Solution, iterate
from jointpmf.solvers.objective import CoupledLeastSquares, Point


def fit_marginals(
    marginals: MarginalSet,
    rank: int,
    *,
    method: str = "auto",
    start: str | JointPMF = "auto",
    weighting: Any = None,
    max_iter: int = 1500,
    tol: float = 1e-7,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Solution:
    """Return the low-rank joint PMF that fits all marginals best, in least squares.

    Parameters
    ----------
    marginals : MarginalSet
        What is known: tables of any subsets of the variables.
    rank : int
        Number of components.
    method : {"auto", "aoadmm"}
        The seed's alternating optimisation with ADMM.
    start : {"auto", "random"} or JointPMF
        Where to begin.
    weighting : None, "counts" or array
        Weight of each marginal: all equal, by the rows it was counted over, or as given.
    max_iter, tol : int, float
        Budget of iterations, and the relative improvement below which the fit has converged.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits.
    callback : callable, optional
        Called as `callback(step, pmf)` after every iteration; returning True stops.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4, 4, 4, 4]), rank=2, random_state=0)
    >>> solution = jp.fit_marginals(truth.marginals(order=3), rank=2, random_state=0)
    >>> bool(jp.tensor_error(truth, solution.pmf) < 1e-3)
    True
    """
    if not isinstance(marginals, MarginalSet):
        raise JointPMFError(f"marginals must be a MarginalSet, not {type(marginals).__name__}")
    rank = whole_number(rank, "the rank", 1)
    max_iter = whole_number(max_iter, "max_iter", 0)
    if not isinstance(tol, Real) or not tol >= 0:
        raise JointPMFError(f"tol must be at least 0, not {tol!r}")
    if method not in ("auto", "aoadmm"):
        raise JointPMFError(f"method must be 'auto' or 'aoadmm', not {method!r}")
    point = _starting_point(marginals, rank, start, random_state)
    solver = AOADMM(CoupledLeastSquares(marginals, rank, weighting))
    return iterate(solver, point, max_iter=max_iter, tol=tol, callback=callback)


def _starting_point(
    marginals: MarginalSet, rank: int, start: str | JointPMF, random_state: Any
) -> Point:
    if isinstance(start, JointPMF):
        if start.domain != marginals.domain or start.rank != rank:
            raise JointPMFError(
                f"the start {start!r} is not of rank {rank} over the marginals' domain"
            )
        return Point.of_pmf(start)
    if not isinstance(start, str) or start not in ("auto", "random"):
        raise JointPMFError(f"start must be 'auto', 'random' or a JointPMF, not {start!r}")
    return _random_point(marginals.domain, rank, random_state)


def _random_point(domain: Domain, rank: int, random_state: Any) -> Point:
    """Return equal weights and columns drawn uniformly from the simplex."""
    generator = np.random.default_rng(random_state)
    columns = [generator.dirichlet(np.ones(size), rank).T for size in domain.sizes]
    return Point(np.full(rank, 1 / rank), np.concatenate(columns))
