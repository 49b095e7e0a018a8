"""Choosing the rank: how well each does on what was held out, or by an information criterion."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.data.codes import checked_weights
from jointpmf.data.encode import encode
from jointpmf.domain import Domain
from jointpmf.errors import (
    JointPMFError,
    float_of,
    items_of,
    one_of,
    seeded_generator,
    shown,
    text_of_count,
    whole_number,
    whole_rank,
)
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.progress import in_stage, progress_bar, watched_loop
from jointpmf.fit.settings import Likelihood, Search, checked_objective, checked_search
from jointpmf.fit.solution import FittedTo
from jointpmf.fit.validation import cells_of, drawn_rows, is_fraction, splitter
from jointpmf.judge.curve import RankCurve, RankScore
from jointpmf.judge.elbow import separation
from jointpmf.judge.summary import CRITERIA, information_criteria
from jointpmf.point import Point
from jointpmf.rows.source import Table, check_table
from jointpmf.rows.table import Rows, TableRows, log_likelihoods, mean_log_likelihood
from jointpmf.solvers.jacobian import n_free_parameters
from jointpmf.solvers.loop import Status, Validation
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.fit.solution import Callback, Solution
    from jointpmf.pmf import JointPMF

logger = logging.getLogger("jointpmf")

_HELD_OUT_SMOOTHING = 0.01
"""Smoothing of fits that are judged by held-out rows: without any, one level that only those have
would make them impossible."""


def choose_rank(
    table: Any,
    ranks: Iterable[int],
    criterion: str = "validation",
    *,
    n_folds: int = 5,
    validation: Any = None,
    objective: Likelihood | None = None,
    search: Search | None = None,
    sample_weight: Any = None,
    max_iter: int | None = None,
    tol: float | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    verbose: bool = False,
    domain: Domain | None = None,
    bins: Any = None,
    levels: Any = None,
    missing_code: Any = None,
) -> RankCurve:
    """Return how well each rank does, and which is best.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, or Codes
        One row per sample, cells may be missing.
    ranks : iterable of int
        What to try, upwards.
    criterion : {"validation", "bic", "aic", "abic", "caic"}
        How well a model does on what was held out, by cross-validation or on what is given; or an
        information criterion, from one fit to all rows.
    n_folds : int
        Parts of the rows that are held out in turn.
    validation : float, table, array of bool, HiddenCells or callable, optional
        What to score by instead of folds, as in `fit_rows`.
    objective : Likelihood, optional
        How to fit; by default there is a little smoothing for validation, and none else.
    search : Search, optional
        From how many starts the fits to all rows begin, and what they may cost, as in `fit_rows`.
    sample_weight : array of shape (rows,), optional
        What each row counts for; criteria take their sum for the number of rows.
    max_iter, tol, random_state, callback, verbose
        As in `fit_rows`.
    domain, bins, levels, missing_code
        How the table is read, see `encode`.

    Returns
    -------
    RankCurve
        With the fit of each rank to all rows; after Ctrl-C, with what was done until then.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([6] * 6), rank=2, random_state=0)
    >>> rows = truth.sample(2000, random_state=0, backend="codes")
    >>> curve = jp.choose_rank(rows, [1, 2, 3], criterion="bic", random_state=0)
    >>> curve.rank, curve[2].pmf.rank
    (2, 2)
    """
    one_of(criterion, ("validation", *CRITERIA), "criterion")
    asked = _checked_ranks(ranks)
    is_held_out = criterion == "validation"
    if not is_held_out and validation is not None:
        raise JointPMFError("what to validate on belongs to criterion='validation'")
    settings = _checked_settings(objective)
    codes = encode(table, domain, bins=bins, levels=levels, missing_code=missing_code)
    weights = checked_weights(sample_weight, codes.n_rows)
    check_table(codes, weights)
    generator = seeded_generator(random_state)
    with (
        one_blas_thread,
        watched_loop(max_iter, tol, callback, False, codes.domain, (2000, 1e-10)) as loop,
    ):
        asked_search = checked_search(search)
        fit = EMFit(
            1,
            loop,
            settings.smoothing or 0.0,
            settings.towards or "uniform",
            n_starts=asked_search.n_starts,
        )
        whole = Table.of_codes(codes, weights)
        fits = _Fits(fit, whole, settings, generator)
        folds: list[_Fold] = []
        if is_held_out:
            n_folds = whole_number(n_folds, "n_folds", 2)
            drawn = deepcopy(generator)  # what fits of all rows draw from stays as it is
            folds = list(_folds(whole, validation, n_folds, settings.smoothing != 0, drawn))
        results, solutions = _results(fits, folds, asked, verbose)
    scores = tuple(_score(criterion, codes.domain, same) for same in results)
    if is_held_out and not any(math.isfinite(s.score) for s in scores):
        raise JointPMFError(
            "under every rank some held-out row is impossible; smoothing above 0 avoids that"
        )
    held_out = np.array([[r.held_out for r in same] for same in results])
    scores = _with_components(scores, solutions, whole)
    return RankCurve(criterion, scores, held_out, tuple(solutions))


def _with_components(
    scores: tuple[RankScore, ...], solutions: Sequence[Solution], whole: Table
) -> tuple[RankScore, ...]:
    """Return scores that say how large and how clear the components of their models are."""
    described = [
        score._replace(
            smallest=float(found.pmf.weights.min()),
            relative_entropy=separation(found.pmf, whole.rows),
        )
        for score, found in zip(scores, solutions, strict=False)
    ]
    return (*described, *scores[len(described) :])


def _checked_settings(objective: Any) -> Likelihood:
    settings = checked_objective(objective)
    if settings.target:
        raise JointPMFError("ranks are compared by a Likelihood without a target")
    return settings


def _checked_ranks(ranks: Any) -> list[int]:
    what = "ranks must be a list of whole numbers"
    asked = sorted({whole_rank(rank) for rank in items_of(ranks, what)})
    if not asked:
        raise JointPMFError(f"{what}, not {shown(ranks)}")
    return asked


class _Fold(NamedTuple):
    """What is fitted, and rows to score, or what else judges the fit."""

    fitted: Table
    held_out: TableRows | None = None
    judge: Validation | None = None


def _folds(
    whole: Table, validation: Any, n_folds: int, is_smoothed: bool, generator: np.random.Generator
) -> Iterator[_Fold]:
    """Yield what is fitted and what is held out, in turn."""
    n_rows = whole.codes.n_rows
    if validation is None:
        if n_folds > n_rows:
            raise JointPMFError(f"{n_rows} rows cannot be cut into {text_of_count(n_folds)} folds")
        part = generator.permutation(n_rows) % n_folds
        for k in range(n_folds):
            yield _Fold(whole.taken(part != k), _scored(whole.taken(part == k).rows))
    elif is_fraction(validation):
        is_held_out = drawn_rows(n_rows, float_of(validation), generator)
        yield _Fold(whole.taken(~is_held_out), _scored(whole.taken(is_held_out).rows))
    elif callable(validation) or cells_of(validation, whole.codes) is not None:
        fitted, judge = splitter(whole, validation, is_smoothed)(generator)
        yield _Fold(fitted, judge=judge)
    else:
        yield _Fold(whole, _scored(Rows.of_codes(encode(validation, whole.domain))))


def _scored(rows: TableRows) -> TableRows:
    if not len(rows):
        raise JointPMFError("no held-out row has an observed cell and a weight")
    return rows


@dataclass(frozen=True)
class _Fits:
    """How one rank is fitted: to all rows as `fit_rows` does, and to the rows of a fold."""

    fit: EMFit
    whole: Table
    settings: Likelihood
    generator: np.random.Generator

    def of_all_rows(self, rank: int) -> Solution:
        """Return the fit that `fit_rows` returns for the same rank and seed."""
        fit = replace(self.fit, rank=rank, loop=in_stage(self.fit.loop, f"rank {rank}"))
        found = _unstopped(fit.run(self.whole, deepcopy(self.generator)))
        source = FittedTo("rows", n_rows=self.whole.codes.n_rows)
        return replace(found, source=source, settings=self.settings)

    def of_fold(self, rank: int, fold: _Fold, k: int) -> _Result:
        """Return how well a fit to some of the rows does on what was held out."""
        begin = time.perf_counter()
        smoothing = self.fit.smoothing
        if self.settings.smoothing is None:
            smoothing = _HELD_OUT_SMOOTHING
        loop = in_stage(self.fit.loop, f"rank {rank}, fold {k + 1}")
        fit = replace(self.fit, rank=rank, loop=loop, smoothing=smoothing, n_starts=1)
        found = _unstopped(fit.run(fold.fitted, deepcopy(self.generator)))
        return _result(found.pmf, fold, time.perf_counter() - begin)


def _unstopped(found: Solution) -> Solution:
    """Return a fit, unless someone stopped it."""
    if found.status is Status.STOPPED:
        raise KeyboardInterrupt
    return found


def _results(
    fits: _Fits, folds: list[_Fold], ranks: list[int], verbose: bool
) -> tuple[list[list[_Result]], list[Solution]]:
    """Return the results of every rank, on every fold if there are any, and its fit to all rows.

    After Ctrl-C they are those of the ranks that are done.
    """
    done: list[list[_Result]] = []
    solutions: list[Solution] = []
    with progress_bar("choosing the rank", (len(folds) + 1) * len(ranks), verbose) as advance:

        def noted(rank: int, found: Any) -> Any:
            advance(f"rank {rank}")
            return found

        try:
            for rank in ranks if folds else ():
                parts = enumerate(folds)
                done.append([noted(rank, fits.of_fold(rank, fold, k)) for k, fold in parts])
            for rank in ranks:
                begin = time.perf_counter()
                found = noted(rank, fits.of_all_rows(rank))
                if not folds:
                    seconds = time.perf_counter() - begin
                    done.append([_result(found.pmf, _Fold(fits.whole), seconds)])
                solutions.append(found)
        except KeyboardInterrupt:
            if not done:
                raise
            ends = "the curve ends there"
            if len(done) == len(ranks):
                ends = "from there on the curve has no models"
            logger.warning("stopped at rank %d; %s", rank, ends)
    return done, solutions


class _Result(NamedTuple):
    rank: int
    log_likelihood: float
    n_rows: float
    held_out: float
    held_out_error: float
    n_held_out: float
    seconds: float


def _result(pmf: JointPMF, fold: _Fold, seconds: float) -> _Result:
    rows, point = fold.fitted.rows, Point.of_pmf(pmf)
    fitted = mean_log_likelihood(rows, point) * rows.total
    if fold.judge is not None:
        cost = fold.judge.cost(point)
        return _Result(pmf.rank, fitted, rows.total, -cost, math.nan, 1.0, seconds)
    if fold.held_out is None:
        return _Result(pmf.rank, fitted, rows.total, math.nan, math.nan, 0.0, seconds)
    logs, weights = log_likelihoods(fold.held_out, point), fold.held_out.weights
    total = fold.held_out.total
    n_impossible = float(weights[np.isneginf(logs)].sum())
    if n_impossible:
        logger.warning(
            "%g held-out rows have probability zero at rank %d; smoothing avoids that",
            n_impossible,
            pmf.rank,
        )
        return _Result(pmf.rank, fitted, rows.total, -math.inf, math.nan, total, seconds)
    mean = float(np.multiply(weights, logs).sum()) / total
    variance = float(np.multiply(weights, (logs - mean) ** 2).sum()) / total
    error = math.sqrt(variance / total)
    return _Result(pmf.rank, fitted, rows.total, mean, error, total, seconds)


def _score(criterion: str, domain: Domain, results: Sequence[_Result]) -> RankScore:
    rank = results[0].rank
    n_parameters = n_free_parameters(domain, rank)
    fitted = sum(r.log_likelihood for r in results) / sum(r.n_rows for r in results)
    seconds = sum(r.seconds for r in results)
    if criterion != "validation":
        of = information_criteria(results[0].log_likelihood, n_parameters, results[0].n_rows)
        return RankScore(rank, of[criterion], math.nan, fitted, n_parameters, seconds)
    held_out = np.array([r.held_out for r in results])
    mean = float(np.average(held_out, weights=[r.n_held_out for r in results]))
    if len(results) == 1:
        error = results[0].held_out_error
    elif np.isfinite(held_out).all():
        error = float(held_out.std(ddof=1)) / math.sqrt(len(results))
    else:
        error = math.nan
    return RankScore(rank, mean, error, fitted, n_parameters, seconds)
