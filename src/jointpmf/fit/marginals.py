"""From marginals to a joint PMF: check what was asked, and find the rank if it was not given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jointpmf.errors import JointPMFError, one_of, shown, whole_number
from jointpmf.fit.checkpoint import generator_and_runs
from jointpmf.fit.coupled import CoupledFit
from jointpmf.fit.progress import in_stage, watched_loop
from jointpmf.fit.search import Trials
from jointpmf.fit.settings import Checkpoint, Coupled, Search, checked_search
from jointpmf.fit.solution import Callback, FittedTo, Solution
from jointpmf.fit.validation import Judge, judge_of_marginals
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.solvers.least_squares import CoupledLeastSquares, marginal_weights

if TYPE_CHECKING:
    import os

    import numpy as np

_MAX_RANK = 20
"""Ranks up to which marginals are tried."""

_ELBOW = 0.8
"""Part of the objective below which one more component must bring it."""

_EXACT = 1e-20
"""An objective that no further component need lower."""


def fit_marginals(
    marginals: MarginalSet,
    rank: int | str = "auto",
    *,
    method: str = "auto",
    search: Search | None = None,
    weighting: Any = None,
    validation: Any = None,
    max_iter: int | None = None,
    tol: float | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    verbose: bool = False,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
) -> Solution:
    """Return the low-rank joint PMF that fits all marginals best, in least squares.

    Parameters
    ----------
    marginals : MarginalSet
        What is known: tables of any subsets of the variables.
    rank : int or "auto"
        Number of components; by default the one from which on more components hardly help.
    method : {"auto", "aoadmm", "newton"}
        The paper's alternating optimisation with ADMM; Levenberg–Marquardt; or, by default, a few
        sweeps of the first and then the second, with restarts where the start is not certain.
    search : Search, optional
        Where to begin: `Search(start=...)` with "auto" (in closed form from triples where they
        allow it), "algebraic", "random" or a JointPMF.
    weighting : None, "counts" or array
        Weight of each marginal: all equal, by the rows it was counted over, or as given.
    validation : table or callable, optional
        What to stop by: rows that the marginals were not counted over, or a function that is called
        as `validation(pmf)` and returns how badly a model does. The best model is returned, from
        one start.
    max_iter, tol : int, float, optional
        Budget of iterations (1500), and the relative improvement below which the fit has converged
        (1e-10).
    random_state : int or numpy Generator, optional
        The same seed gives the same bits.
    callback : callable, optional
        Called as `callback(step, pmf)` after every iteration; returning True stops.
    verbose : bool
        Whether to show a progress bar.
    checkpoint : path or Checkpoint, optional
        A folder in which the fit leaves how far it has come; the same call goes on from there.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4, 4, 4, 4]), rank=3, random_state=0)
    >>> solution = jp.fit_marginals(truth.marginals(order=3), random_state=0)
    >>> solution.pmf.rank, bool(jp.factor_error(truth, solution.pmf) < 1e-10)
    (3, True)
    """
    if not isinstance(marginals, MarginalSet):
        raise JointPMFError(f"marginals must be a MarginalSet, not {type(marginals).__name__}")
    given_rank = checked_rank(rank)
    one_of(method, ("auto", "aoadmm", "newton"), "method")
    search = checked_search(search)
    if not search.is_default:
        raise JointPMFError("n_starts and n_average belong to fits to rows")
    judge = judge_of_marginals(validation, marginals.domain)
    weights = marginal_weights(marginals, weighting)
    with watched_loop(max_iter, tol, callback, verbose, marginals.domain, (1500, 1e-10)) as loop:
        identity = {
            "objective": "marginals",
            "marginals": marginals,
            "rank": given_rank,
            "method": method,
            "search": search,
            "weighting": weights,
            "max_iter": loop.max_iter,
            "tol": loop.tol,
            "validation": validation is not None,
        }
        generator, runs = generator_and_runs(checkpoint, identity, random_state)
        fit = CoupledFit(replace(loop, runs=runs), method, search.start)
        solution = TableFit(fit, weighting, judge).run(marginals, given_rank, generator)
    return replace(solution, source=FittedTo("marginals", n_marginals=len(marginals)))


def checked_rank(rank: Any) -> int | None:
    """Return a rank that is a number, or None for "auto"."""
    if isinstance(rank, str):
        if rank != "auto":
            raise JointPMFError(f"the rank must be a whole number or 'auto', not {shown(rank)}")
        return None
    return whole_number(rank, "the rank", 1)


@dataclass(frozen=True)
class TableFit:
    """How marginals are fitted: the coupled fit, their weights, and what judges it."""

    fit: CoupledFit
    weighting: Any
    judge: Judge | None = None

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
        held_out = None if self.judge is None else self.judge(rank)
        found = self.fit.run(problem, marginals, generator, held_out)
        return replace(found, settings=Coupled(max(map(len, marginals.subsets))))

    def _ranks(
        self, marginals: MarginalSet, generator: np.random.Generator
    ) -> Iterator[tuple[int, Callable[[], Solution]]]:
        for rank in range(1, _MAX_RANK + 1):
            loop = in_stage(self.fit.loop, f"rank {rank}")
            own = replace(self, fit=replace(self.fit, loop=loop))
            yield rank, partial(own._of_rank, marginals, generator, rank)


def _is_past_the_elbow(trials: Trials[int]) -> bool:
    """Tell whether the last rank hardly helped, or none need help any more."""
    *before, last = trials.solutions
    is_worse = bool(before) and last.objective > _ELBOW * before[-1].objective
    return is_worse or last.objective <= _EXACT
