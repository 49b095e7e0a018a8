"""From marginals to a joint PMF: check what was asked, and find the rank if it was not given."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jointpmf.errors import JointPMFError, at_least_zero, one_of
from jointpmf.fit.checkpoint import generator_and_runs
from jointpmf.fit.coupled import CoupledFit, TableFit
from jointpmf.fit.progress import watched_loop
from jointpmf.fit.settings import Checkpoint, Search, checked_rank, checked_search
from jointpmf.fit.solution import Callback, FittedTo, Solution
from jointpmf.fit.stopping import BestSoFar, stoppable
from jointpmf.fit.validation import judge_of_marginals, plain_validation
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.pmf import JointPMF
from jointpmf.solvers.jacobian import is_surely_open
from jointpmf.solvers.least_squares import marginal_weights

if TYPE_CHECKING:
    import os

    from jointpmf.solvers.loop import Loop

logger = logging.getLogger("jointpmf")


def fit_marginals(
    marginals: MarginalSet,
    rank: int | str = "auto",
    *,
    loss: str = "auto",
    smoothing: float | None = None,
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
    """Return the low-rank joint PMF that fits all marginals best.

    Parameters
    ----------
    marginals : MarginalSet
        What is known: tables of any subsets of the variables.
    rank : int or "auto"
        Number of components; by default the one that is expected to predict such tables of other
        people best, or by squares the one from which on more components hardly help.
    loss : {"auto", "squares", "likelihood", "gaussian"}
        Least squares on the cells, as in the paper, which is exact for exact probabilities; the
        likelihood of their counts, which takes tables of any kind; or that of counts with known
        noise. By default gaussian where a table has noise, squares for probabilities of all levels
        that may determine the model (pairs never do), likelihood for all else. By likelihood, the
        answer is the average of several fits where the tables do not determine the model.
    smoothing : float, optional
        By likelihood: pseudo-counts per level and component, on average. By default 0.1 for counts
        that determine the model, 0.03 for fits that are averaged.
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
        (1e-10). By likelihood 2000, and an improvement in nats per row of a table that is small
        beside the noise of the tables.
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
    one_of(loss, ("auto", "squares", "likelihood", "gaussian"), "loss")
    search = checked_search(search)
    if loss == "auto":
        is_for_squares = method != "auto" or weighting is not None or validation is not None
        is_one = isinstance(search.start, JointPMF)
        loss = _usual_loss(marginals, is_for_squares, is_one, given_rank or 2)
    by_squares = loss == "squares"
    if by_squares:
        marginals = _whole_tables(marginals)
    smoothing = None if smoothing is None else at_least_zero(smoothing, "smoothing")
    _check_loss(marginals, loss, method, search, smoothing, weighting, validation)
    search.check_start(("auto", "algebraic", "random"), marginals.domain, given_rank, "marginals'")
    judge = judge_of_marginals(validation, marginals.domain)
    table_weights = marginal_weights(marginals, weighting) if by_squares else None

    def identity(loop: Loop) -> dict[str, Any]:
        return {
            "fit": "marginals",
            "loss": loss,
            "smoothing": smoothing,
            "marginals": marginals,
            "rank": given_rank,
            "method": method,
            "search": search,
            "weighting": table_weights,
            "max_iter": loop.max_iter,
            "tol": loop.tol if by_squares else tol,
            "validation": validation is not None and plain_validation(validation, marginals.domain),
        }

    defaults = (1500, 1e-10) if by_squares else (2000, 0.0)
    limits = (max_iter, tol, callback, verbose, marginals.domain, defaults)

    def fit(best: BestSoFar) -> Solution:
        with watched_loop(*limits, best) as loop:
            generator, runs = generator_and_runs(checkpoint, partial(identity, loop), random_state)
            loop = replace(loop, runs=runs)
            if by_squares:
                coupled = CoupledFit(loop, method, search.start)
                found = TableFit(coupled, weighting, judge).run(marginals, given_rank, generator)
            else:
                from jointpmf.fit.likelihood import EMFit
                from jointpmf.fit.tables import CellFit

                fit_once = EMFit(given_rank or 1, loop, towards="marginal", start=search.start)
                cell_fit = CellFit(fit_once, search.n_average, tol, smoothing)
                found = cell_fit.run(marginals, given_rank, generator)
            return best.concluded(found)

    told = weighting
    if table_weights is not None and weighting is not None and not isinstance(weighting, str):
        told = tuple(table_weights.tolist())
    source = FittedTo("marginals", n_marginals=len(marginals), loss=loss, weighting=told)
    return replace(stoppable(fit), source=source, marginals=marginals)


def _usual_loss(marginals: MarginalSet, is_for_squares: bool, is_one: bool, rank: int) -> str:
    """Return the loss that suits the tables, or the one that what else was asked for belongs to.

    Squares are exact where tables are and determine the joint; elsewhere they find any of many.
    """
    if any(marginal.noise is not None for marginal in marginals):
        return "gaussian"
    if not marginals.is_plain or (marginals.is_counted and not is_for_squares):
        return "likelihood"
    has_joint = any(marginal.order == len(marginals.domain) for marginal in marginals)
    if is_for_squares or is_one or has_joint:
        return "squares"
    is_open = is_surely_open(marginals.domain, marginals.subsets, rank)
    return "likelihood" if is_open else "squares"


def _whole_tables(marginals: MarginalSet) -> MarginalSet:
    """Return the tables that squares can be taken of; say which are left out."""
    left_out = [marginal for marginal in marginals if not marginal.is_of_everyone]
    if marginals.impossible or not left_out:
        marginals.check_plain("loss='squares'")
        return marginals
    whole = [marginal for marginal in marginals if marginal.is_of_everyone]
    seen = {name for marginal in whole for name in marginal.names}
    if not seen.issuperset(marginals.domain.names):
        marginals.check_plain("loss='squares'")
    logger.warning(
        "loss='squares' uses the %d whole tables of all levels, and not %s",
        len(whole),
        ", ".join(map(repr, left_out)),
    )
    return MarginalSet(marginals.domain, whole)


def _check_loss(
    marginals: MarginalSet,
    loss: str,
    method: str,
    search: Search,
    smoothing: float | None,
    weighting: Any,
    validation: Any,
) -> None:
    """Refuse what does not go together."""
    by_squares = loss == "squares"
    if by_squares and smoothing:
        raise JointPMFError("smoothing belongs to loss='likelihood'")
    if loss == "gaussian" and all(marginal.noise is None for marginal in marginals):
        raise JointPMFError("loss='gaussian' needs tables with noise=")
    if search.n_starts not in (None, 1):
        raise JointPMFError("n_starts belongs to fits to rows")
    if by_squares and search.n_average is not None:
        raise JointPMFError("n_average belongs to fits by likelihood, not to loss='squares'")
    if not by_squares and method != "auto":
        raise JointPMFError(f"method={method!r} is for loss='squares'")
    if not by_squares and weighting is not None:
        raise JointPMFError(
            "by likelihood every table counts for its n_obs: weighting is for squares"
        )
    if not by_squares and validation is not None:
        raise JointPMFError("validation is for loss='squares'")
