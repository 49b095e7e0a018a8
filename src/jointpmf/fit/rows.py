"""From rows to a joint PMF: check what was asked, fit once or several times, average."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from jointpmf.data.binning import Bins
from jointpmf.data.codes import checked_weights
from jointpmf.data.encode import encode
from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, at_least_zero, one_of, seeded_generator, whole_number
from jointpmf.fit.checkpoint import Checkpoint, CheckpointError
from jointpmf.fit.plan import (
    FitData,
    FitPlan,
    Recoverable,
    Splitter,
    badness,
    check_table,
    plain_validation,
    splitter,
)
from jointpmf.fit.subsets import fit_counted, fit_subsets
from jointpmf.output import PathLike
from jointpmf.pmf import JointPMF, average
from jointpmf.rows.distributed import distributed_rows, engine_of
from jointpmf.rows.parts import fit_parted_rows
from jointpmf.rows.table import TableRows, mean_log_likelihood
from jointpmf.solvers.loop import Callback, Restart, Solution, Status
from jointpmf.solvers.starts.candidates import checked_start
from jointpmf.threads import one_blas_thread

logger = logging.getLogger("jointpmf")

LIKELIHOOD_STARTS = ("auto", "rows", "factors", "random")
"""Where maximum likelihood may begin, besides at a model."""


def fit_rows(
    table: Any,
    rank: int,
    *,
    method: str = "likelihood",
    order: int = 3,
    start: str | JointPMF = "auto",
    smoothing: float = 0.0,
    towards: str = "uniform",
    bandwidth: float = 0.0,
    max_iter: int = 2000,
    tol: float = 1e-10,
    n_init: int = 1,
    n_average: int = 1,
    validation: Any = None,
    scoring: str = "likelihood",
    sample_weight: Any = None,
    random_state: Any = None,
    callback: Callback | None = None,
    domain: Domain | None = None,
    bins: Bins | None = None,
    checkpoint: PathLike | None = None,
    checkpoint_every: int = 10,
) -> Solution:
    """Return the joint PMF under which an incomplete table is most likely.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, Codes, Dask or Spark DataFrame
        One row per sample. Missing cells are summed out; rows without any observed cell are
        ignored. The rows of Dask and Spark stay with their workers (docs/scale.md).
    rank : int
        Number of components.
    method : {"likelihood", "marginals"}
        Maximum likelihood, by EM over the observed cells; or a least-squares fit to all marginals
        of some `order`, weighted by the rows that observe them: counted, see `fit_marginals`, or
        never formed where a pass over the rows costs less; `Solution.source` says which.
    order : int
        Of the marginals, for that method.
    start : {"auto", "rows", "factors", "random"} or JointPMF
        Where to begin: by default the best of several, among them the closed form on counted
        triples and merged rows; components at single rows of the data; components along the
        factors of a factor model of the values, for ordered variables; random columns; or a model.
    smoothing : float
        Pseudo-counts per level and component, on average (a Dirichlet prior). With 0 a level that
        was never seen has probability zero.
    towards : {"uniform", "marginal"}
        Where smoothing pulls the columns: all levels alike, or as each variable is distributed.
    bandwidth : float
        How far expected counts spread to neighbouring levels, in levels, for variables with
        increasing values: neighbours are then alike within a component. Try 0.5; 0 is off.
    max_iter, tol : int, float
        Budget of iterations, and the change of the mean log-likelihood, in nats per row, below
        which the fit has converged.
    n_init : int
        How often to fit, each time from another start; the best is returned and all are recorded.
    n_average : int
        How many fits to average into one model, of rank `n_average * rank`. With the default start
        each begins at other rows; with a fraction as `validation` each holds out other rows.
    validation : float, table or array of bool, optional
        What to stop by: a fraction of the rows, which is then not fitted; other rows; or which
        cells of the table to hide and to predict from the rest of their rows. The model that fits
        it best is returned. Truth values in the shape of the table are cells to hide, anything
        else is rows. Without smoothing, levels that were not fitted are not scored.
    scoring : {"likelihood", "error"}
        What is best for hidden cells: the log-probability of their levels, or the root of the mean
        squared difference between their values and the expected ones.
    sample_weight : array of shape (rows,), optional
        What each row counts for.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits, whatever the number of threads.
    callback : callable, optional
        Called as `callback(step, pmf)` after every iteration; returning True stops.
    domain, bins
        How the table is read, see `encode`.
    checkpoint : path, optional
        A folder in which the fit leaves how far it has come, every `checkpoint_every` iterations
        and at most once a second. The same call goes on from there, after a kill too, to the same
        bits. The folder stays until you delete it.
    checkpoint_every : int
        Iterations between two writes.

    Returns
    -------
    Solution
        Its objective is minus the mean log-likelihood per row: of the rows that were fitted, with
        smoothing; for an average, of all rows, without.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4] * 6), rank=2, random_state=0)
    >>> rows = truth.sample(1000, random_state=0, backend="codes")
    >>> solution = jp.fit_rows(rows, rank=2, random_state=0)
    >>> bool(-solution.objective > truth.log_probability(rows).mean())
    True
    """
    rank = whole_number(rank, "the rank", 1)
    n_init = whole_number(n_init, "n_init", 1)
    n_average = whole_number(n_average, "n_average", 1)
    one_of(method, ("likelihood", "marginals"), "method")
    towards = one_of(towards, ("uniform", "marginal"), "towards")
    one_of(scoring, ("likelihood", "error"), "scoring")
    smoothing = at_least_zero(smoothing, "smoothing")
    bandwidth = at_least_zero(bandwidth, "bandwidth")
    if method == "marginals":
        belongs = (smoothing, bandwidth, validation is not None, n_init > 1, n_average > 1)
        if any(belongs) or scoring != "likelihood":
            raise JointPMFError(
                "smoothing, bandwidth, validation, scoring, n_init and n_average belong to "
                "method='likelihood'"
            )
    if engine := engine_of(table):
        asked = {
            "bandwidth": bandwidth > 0,
            "n_init": n_init > 1,
            "n_average": n_average > 1,
            "validation": validation is not None,
            "scoring": scoring != "likelihood",
            "sample_weight": sample_weight is not None,
            "bins": bins is not None,
        }
        for name, is_asked in asked.items():
            if is_asked:
                raise JointPMFError(f"{name} does not apply to a {engine} table: leave it out")
        options = loop_options(max_iter, tol, callback)
        plan = FitPlan(rank, start, smoothing, towards, options)
        kept = (checkpoint, checkpoint_every)
        return _fit_on_workers(table, domain, method, order, plan, random_state, kept)
    codes = encode(table, domain, bins=bins)
    weights = checked_weights(sample_weight, codes.n_rows)
    check_table(codes, weights)
    if method == "marginals":
        options = loop_options(max_iter, tol, callback)
        options |= {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
        return fit_subsets(
            codes, weights, rank, order, start=start, random_state=random_state, **options
        )
    options = loop_options(max_iter, tol, callback)
    begin = checked_start(start, LIKELIHOOD_STARTS, codes.domain, rank, "table's")
    generator = seeded_generator(random_state)
    if checkpoint is not None:
        identity = {
            "function": "fit_rows",
            "table": codes,
            "sample_weight": weights,
            "rank": rank,
            "start": begin,
            "smoothing": smoothing,
            "towards": towards,
            "bandwidth": bandwidth,
            "max_iter": options["max_iter"],
            "tol": options["tol"],
            "n_init": n_init,
            "n_average": n_average,
            "validation": plain_validation(validation, codes.domain),
            "scoring": scoring,
        }
        saved = Checkpoint(checkpoint, checkpoint_every, identity, random_state)
        options["checkpoint"], generator = saved, saved.generator
    plan = FitPlan(rank, begin, smoothing, towards, options, bandwidth)
    with one_blas_thread:
        whole = FitData.of_codes(codes, weights)
        split = splitter(whole, validation, plan, scoring)
        _log_what_is_odd(whole.rows, rank)
        if n_average > 1:
            return _average_of(plan, split, n_average, n_init, generator, whole.rows)
        return _best_of(plan, split(generator), n_init, generator)


def _fit_on_workers(
    frame: Any,
    domain: Domain | None,
    method: str,
    order: int,
    plan: FitPlan,
    random_state: Any,
    kept: tuple[PathLike | None, int],
) -> Solution:
    """Return the fit to a Dask or Spark DataFrame, whose rows stay where they are.

    `kept` is the folder of a checkpoint, and how often it is written.
    """
    folder, every = kept
    with distributed_rows(frame, domain) as rows:
        if method == "marginals":
            return fit_counted(
                rows.marginals(order),
                plan.rank,
                start=plan.start,
                random_state=random_state,
                checkpoint=folder,
                checkpoint_every=every,
                **plan.options,
            )
        start = checked_start(plan.start, LIKELIHOOD_STARTS, rows.domain, plan.rank, "table's")
        plan = replace(plan, start=start)
        if rows.levels.n_empty:
            logger.info("%d rows have no observed cell and are ignored", rows.levels.n_empty)
        generator = seeded_generator(random_state)
        if folder is not None:
            identity = {
                "function": "fit_rows on workers",
                "table": rows.digest,
                "rank": plan.rank,
                "start": plan.start,
                "smoothing": plan.smoothing,
                "towards": plan.towards,
                "max_iter": plan.options["max_iter"],
                "tol": plan.options["tol"],
            }
            saved = Checkpoint(folder, every, identity, random_state)
            plan = replace(plan, options=plan.options | {"checkpoint": saved})
            generator = saved.generator
        with one_blas_thread:
            return fit_parted_rows(rows, plan, generator)


def _best_of(plan: FitPlan, data: FitData, n_init: int, generator: np.random.Generator) -> Solution:
    """Return the best of several fits; one that fails is recorded, unless all of them do."""
    found: list[Solution] = []
    restarts: list[Restart] = []
    error: Exception | None = None
    for k in range(n_init):
        own = generator if n_init == 1 else _child(generator)
        try:
            found.append(_without_given_start(plan, k).run(data, own))
        except CheckpointError:
            raise
        except Recoverable as failure:
            logger.warning("start number %d failed: %s", k + 1, failure)
            restarts.append(Restart(f"number {k + 1}", np.inf, None, error=str(failure)))
            error = failure
            continue
        restarts.append(_record(found[-1]))
        if found[-1].status is Status.STOPPED:
            break
    if not found:
        raise error or JointPMFError("no fit was made")
    return replace(min(found, key=badness), restarts=tuple(restarts) if n_init > 1 else ())


def _average_of(
    plan: FitPlan,
    split: Splitter,
    n_average: int,
    n_init: int,
    generator: np.random.Generator,
    rows: TableRows,
) -> Solution:
    """Return the average of several fits, each from a start and with a split of its own."""
    if plan.start == "auto":
        plan = replace(plan, start="rows")
    found: list[Solution] = []
    for k in range(n_average):
        own = _child(generator)
        found.append(_best_of(_without_given_start(plan, k), split(own), n_init, own))
        if Status.STOPPED in {found[-1].status, *(r.status for r in found[-1].restarts)}:
            break
    pmf = average([solution.pmf for solution in found])
    unfinished = [s.status for s in found if s.status in (Status.STOPPED, Status.MAX_ITER)]
    held_out = [s.validation for s in found if s.validation is not None]
    return replace(
        min(found, key=badness),
        pmf=pmf,
        objective=-mean_log_likelihood(rows, pmf),
        status=unfinished[-1] if unfinished else found[-1].status,
        start=f"the average of {len(found)} fits",
        validation=float(np.mean(held_out)) if held_out else None,
        restarts=tuple(map(_record, found)),
    )


def _without_given_start(plan: FitPlan, k: int) -> FitPlan:
    """Return the plan of the k-th fit: a start that was given is only for the first."""
    return replace(plan, start="rows") if k and isinstance(plan.start, JointPMF) else plan


def _record(solution: Solution) -> Restart:
    return Restart(solution.start, solution.objective, solution.status, solution.validation)


def _child(generator: np.random.Generator) -> np.random.Generator:
    return np.random.default_rng(generator.integers(2**63))


def _log_what_is_odd(rows: TableRows, rank: int) -> None:
    if rows.n_empty:
        logger.info("%d rows have no observed cell and are ignored", rows.n_empty)
    if rank > len(rows):
        logger.warning(
            "the rank %d is larger than the number of distinct rows, %d", rank, len(rows)
        )


def loop_options(max_iter: Any, tol: Any, callback: Any = None) -> dict[str, Any]:
    """Return the options of the loop, checked."""
    if callback is not None and not callable(callback):
        raise JointPMFError(f"the callback must be callable, not {callback!r}")
    return {
        "max_iter": whole_number(max_iter, "max_iter", 0),
        "tol": at_least_zero(tol, "tol"),
        "callback": callback,
    }
