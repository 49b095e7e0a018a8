"""Choosing the rank: held-out likelihood, information criteria, and a bootstrap test."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from jointpmf.data.encoding import Bins, Codes, encode, table_of
from jointpmf.domain import MISSING, Domain
from jointpmf.errors import JointPMFError, at_least_zero, one_of, shown, whole_number
from jointpmf.fit.plan import FitData, FitPlan, badness, check_table, some_rows
from jointpmf.fit.progress import progress_bar
from jointpmf.fit.rows import loop_options
from jointpmf.judge.summary import CRITERIA, information_criteria, n_free_parameters
from jointpmf.marginals.marginal_set import checked_weights
from jointpmf.pmf import JointPMF, seeded_generator
from jointpmf.rows.table import Rows, log_likelihoods, mean_log_likelihood
from jointpmf.show.html import (
    Chart,
    Html,
    element,
    fragment,
    html_table,
    joined,
    number_text,
    round_ticks,
)
from jointpmf.solvers.loop import Solution, Status
from jointpmf.solvers.starts.candidates import enlarged_point, point_of_merged_rows
from jointpmf.threads import one_blas_thread

logger = logging.getLogger("jointpmf")

N_ENLARGED, FEW_CELLS = 3, 10**6
"""Fits begun at the model of the rank before, where cells times components are fewer than that;
else one, and it is not compared with a fit from the default start."""

HELD_OUT_SMOOTHING = 0.01
"""Smoothing of fits that are judged by held-out rows: without any, one level that only those have
would make them impossible."""

FEWEST_TABLES = 19
"""Simulated tables with which a p-value can be as small as 0.05."""

BOOTSTRAP_TOL = 1e-8
"""How far simulated tables are fitted: a likelihood ratio need not have ten digits."""


class RankScore(NamedTuple):
    """One rank of a curve.

    `score` is the mean held-out log-likelihood per row (the larger the better) or an information
    criterion (the smaller the better); `standard_error` that of the mean over folds, or over
    validation rows, and NaN for a criterion.
    """

    rank: int
    score: float
    standard_error: float
    log_likelihood: float
    n_parameters: int
    seconds: float


@dataclass(frozen=True)
class RankCurve:
    """How well each rank does; `print` shows it as a table.

    Attributes
    ----------
    criterion : str
        What the scores are.
    scores : tuple of RankScore
        One for each rank, in increasing order; their `log_likelihood` is that of the fitted rows,
        per row.
    rank : int
        The rank with the best score.
    simplest_rank : int
        The smallest rank whose score is within one standard error of the best.
    fold_scores : array of shape (ranks, folds)
        The held-out log-likelihoods of each fold, for comparisons in pairs.
    """

    criterion: str
    scores: tuple[RankScore, ...]
    fold_scores: np.ndarray = field(repr=False)

    @property
    def _best(self) -> RankScore:
        if self.criterion == "validation":
            return max(self.scores, key=lambda score: score.score)
        return min(self.scores, key=lambda score: score.score)

    @property
    def has_best(self) -> bool:
        """Whether a rank has a score by which it can be the best."""
        return any(math.isfinite(score.score) for score in self.scores)

    @property
    def rank(self) -> int:
        """The rank with the best score."""
        return self._best.rank

    @property
    def simplest_rank(self) -> int:
        """The smallest rank within one standard error of the best."""
        best = self._best
        if math.isnan(best.standard_error):
            return best.rank
        return min(s.rank for s in self.scores if s.score >= best.score - best.standard_error)

    def to_frame(self, backend: str = "polars") -> Any:
        """Return the scores as a frame, "polars", "pandas" or "pyarrow": one row per rank.

        Examples
        --------
        >>> scores = (RankScore(1, -2.5, 0.1, -2.4, 5, 0.1),)
        >>> RankCurve("validation", scores, np.zeros((1, 1))).to_frame()["score"].to_list()
        [-2.5]
        """
        columns = zip(*self.scores, strict=True)
        return table_of(dict(zip(RankScore._fields, map(list, columns), strict=True)), backend)

    def __str__(self) -> str:
        """Return the curve as a table, the chosen rank marked."""
        has_errors = self.criterion == "validation"
        score_name = "held-out" if has_errors else self.criterion.upper()
        lines = [
            f"{'rank':>6} {score_name:>12}{' ± error' if has_errors else ''}"
            f" {'fitted':>12} {'parameters':>11}"
        ]
        for s in self.scores:
            error = f" {s.standard_error:7.4f}" if has_errors else ""
            mark = " ←" if s.rank == self.rank else ""
            lines.append(
                f"{s.rank:>6} {s.score:>12.4f}{error} {s.log_likelihood:>12.4f} "
                f"{s.n_parameters:>11}{mark}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the chosen rank, the curve as a chart, and as a table."""
        best = f"Best rank: {self.rank}" if self.has_best else "No rank has a finite score."
        return fragment(element("p", element("b", best)), curve_html(self))


def curve_html(curve: RankCurve) -> Html:
    """Return a curve as a chart and a table, the best rank marked in both.

    Examples
    --------
    >>> scores = (RankScore(1, -2.5, 0.1, -2.4, 5, 0.1), RankScore(2, -2.0, 0.1, -1.9, 11, 0.2))
    >>> "best" in curve_html(RankCurve("validation", scores, np.zeros((2, 1))))
    True
    """
    is_held_out = curve.criterion == "validation"
    name = "log-likelihood per held-out row" if is_held_out else curve.criterion.upper()
    headings = [
        "rank",
        "held-out" if is_held_out else name,
        "± error",
        "fitted",
        "parameters",
    ]
    best = curve.rank if curve.has_best else None
    rows = [
        [
            _marked(s.rank) if s.rank == best else s.rank,
            _digits(s.score),
            _digits(s.standard_error),
            _digits(s.log_likelihood),
            f"{s.n_parameters:,}",
        ]
        for s in curve.scores
    ]
    if not is_held_out:
        headings, rows = _without(headings, 2), [_without(row, 2) for row in rows]
    finite = [s for s in curve.scores if math.isfinite(s.score)]
    parts = [html_table(headings, rows, numbers=range(len(headings)))]
    if len(finite) > 1:
        better = "higher" if is_held_out else "lower"
        parts.insert(
            0, element("div", _curve_chart(finite, curve.rank, f"{name}, {better} is better"))
        )
    return joined(parts)


def _marked(rank: int) -> Html:
    """Return the best rank as its row begins, so that a narrow screen shows the mark too."""
    return joined([element("span", "best", class_="choice"), f" {rank}"])


def _without(cells: list[Any], position: int) -> list[Any]:
    return cells[:position] + cells[position + 1 :]


def _digits(number: float) -> str:
    return f"{number:.4f}".replace("-", "−") if math.isfinite(number) else number_text(number)


def _curve_chart(scores: Sequence[RankScore], best: int, name: str) -> Html:
    heights = [s.score for s in scores]
    errors = [0.0 if math.isnan(s.standard_error) else s.standard_error for s in scores]
    low = min(score - error for score, error in zip(heights, errors, strict=True))
    high = max(score + error for score, error in zip(heights, errors, strict=True))
    ranks = [s.rank for s in scores]
    ticks = [t for t in round_ticks(min(ranks), max(ranks), 8) if t.is_integer()]
    chart = Chart(
        text=f"{name}, by rank: from {heights[0]:.4g} at rank {ranks[0]} to {heights[-1]:.4g} at "
        f"rank {ranks[-1]}; the best is rank {best}.",
        points=[(float(s.rank), s.score) for s in scores],
        x_name="rank",
        y_name=name,
        x_ticks=[(tick, f"{tick:.0f}") for tick in ticks],
        y_ticks=[(tick, number_text(tick, 6)) for tick in round_ticks(low, high)],
        errors=errors,
        marked=ranks.index(best),
        has_dots=True,
    )
    return chart.svg()


def choose_rank(
    table: Any,
    ranks: Iterable[int],
    criterion: str = "validation",
    *,
    n_folds: int = 5,
    validation: Any = None,
    smoothing: float | None = None,
    towards: str = "uniform",
    max_iter: int = 2000,
    tol: float = 1e-10,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: bool = False,
    domain: Domain | None = None,
    bins: Bins | None = None,
) -> RankCurve:
    """Return how well each rank does, and which is best.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, or Codes
        One row per sample, cells may be missing.
    ranks : iterable of int
        What to try, upwards: a fit can begin at the one of the rank before, with components added.
    criterion : {"validation", "bic", "aic", "abic", "caic"}
        Mean log-likelihood of held-out rows, by cross-validation or on given rows; or an
        information criterion, from one fit to all rows.
    n_folds : int
        Parts of the rows that are held out in turn.
    validation : table, optional
        Rows to score by instead of folds.
    smoothing, towards, max_iter, tol
        As in `fit_rows`; by default there is a little smoothing for validation, and none else.
    sample_weight : array of shape (rows,), optional
        What each row counts for; criteria take their sum for the number of rows.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits.
    progress : bool
        Whether to show a progress bar.
    domain, bins
        How the table is read, see `encode`.

    Returns
    -------
    RankCurve
        After Ctrl-C, of the ranks that were done.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([6] * 6), rank=2, random_state=0)
    >>> rows = truth.sample(2000, random_state=0, backend="codes")
    >>> jp.choose_rank(rows, [1, 2, 3], criterion="bic", random_state=0).rank
    2
    """
    one_of(criterion, ("validation", *CRITERIA), "criterion")
    asked = _checked_ranks(ranks)
    if criterion != "validation" and validation is not None:
        raise JointPMFError("rows to validate on belong to criterion='validation'")
    if smoothing is None:
        smoothing = HELD_OUT_SMOOTHING if criterion == "validation" else 0.0
    plan = FitPlan(
        1,
        "auto",
        at_least_zero(smoothing, "smoothing"),
        one_of(towards, ("uniform", "marginal"), "towards"),
        loop_options(max_iter, tol),
    )
    codes = encode(table, domain, bins=bins)
    weights = checked_weights(sample_weight, codes.n_rows)
    check_table(codes, weights)
    generator = seeded_generator(random_state)
    with one_blas_thread:
        if criterion != "validation":
            folds = [_Fold(FitData.of_codes(codes, weights), None)]
        elif validation is not None:
            rows = _checked_held_out(encode(validation, codes.domain), None)
            folds = [_Fold(FitData.of_codes(codes, weights), rows)]
        else:
            n_folds = whole_number(n_folds, "n_folds", 2)
            folds = list(_folds(codes, weights, n_folds, generator))
        results = _results(folds, asked, plan, generator, progress)
    scores = tuple(_score(criterion, codes.domain, same) for same in results)
    if criterion == "validation" and not any(math.isfinite(s.score) for s in scores):
        raise JointPMFError(
            "under every rank some held-out row is impossible; smoothing above 0 avoids that"
        )
    return RankCurve(criterion, scores, np.array([[r.held_out for r in same] for same in results]))


def _checked_ranks(ranks: Any) -> list[int]:
    try:
        given = [] if isinstance(ranks, str) else list(ranks)
    except TypeError:
        given = []
    asked = sorted({whole_number(rank, "a rank", 1) for rank in given})
    if not asked:
        raise JointPMFError(f"ranks must be a list of whole numbers, not {shown(ranks)}")
    return asked


class _Fold(NamedTuple):
    """What is fitted, and rows to score."""

    data: FitData
    held_out: Rows | None


class _Result(NamedTuple):
    rank: int
    log_likelihood: float
    n_rows: float
    held_out: float
    held_out_error: float
    n_held_out: float
    seconds: float


def _folds(
    codes: Codes, weights: np.ndarray | None, n_folds: int, generator: np.random.Generator
) -> Iterator[_Fold]:
    if n_folds > codes.n_rows:
        raise JointPMFError(f"{codes.n_rows} rows cannot be cut into {n_folds} folds")
    part = generator.permutation(codes.n_rows) % n_folds
    for k in range(n_folds):
        fitted = FitData.of_codes(*some_rows(codes, weights, part != k))
        yield _Fold(fitted, _checked_held_out(*some_rows(codes, weights, part == k)))


def _checked_held_out(codes: Codes, weights: np.ndarray | None) -> Rows:
    rows = Rows.of_codes(codes, weights)
    if not len(rows):
        raise JointPMFError("no held-out row has an observed cell and a weight")
    return rows


def _results(
    folds: list[_Fold],
    ranks: list[int],
    plan: FitPlan,
    generator: np.random.Generator,
    progress: bool,
) -> list[list[_Result]]:
    """Return the results of every rank on every fold; after Ctrl-C of the ranks that are done."""
    done: list[list[_Result]] = []
    smaller: list[JointPMF | None] = [None] * len(folds)
    with progress_bar("choosing the rank", len(folds) * len(ranks), progress) as advance:
        for rank in ranks:
            results = []
            for k, fold in enumerate(folds):
                begin = time.perf_counter()
                try:
                    found = _fit(replace(plan, rank=rank), fold.data, smaller[k], generator)
                except KeyboardInterrupt:
                    if not done:
                        raise
                    logger.warning("stopped before rank %d; the curve ends there", rank)
                    return done
                smaller[k] = found
                results.append(_result(found, fold, time.perf_counter() - begin))
                advance(f"rank {rank}")
            done.append(results)
    return done


def _fit(
    plan: FitPlan, data: FitData, smaller: JointPMF | None, generator: np.random.Generator
) -> JointPMF:
    """Return the best of a fit from the default start and some that begin at a smaller model.

    Where a fit takes long it is only one, from the smaller model.
    """
    is_small = data.rows.n_cells * plan.rank < FEW_CELLS
    plans = [plan] if is_small or smaller is None else []
    if smaller is not None:
        starts = [
            enlarged_point(smaller, data.rows, plan.rank, generator)
            for _ in range(N_ENLARGED if is_small else 1)
        ]
        plans += [replace(plan, start=start.to_pmf(data.rows.domain)) for start in starts]
    return min((_unstopped(p.run(data, generator)) for p in plans), key=badness).pmf


def _unstopped(solution: Solution) -> Solution:
    """Return a fit that ended by itself: an interrupted one ends the search."""
    if solution.status is Status.STOPPED:
        raise KeyboardInterrupt
    return solution


def _result(pmf: JointPMF, fold: _Fold, seconds: float) -> _Result:
    rows = fold.data.rows
    fitted = mean_log_likelihood(rows, pmf) * rows.total
    if fold.held_out is None:
        return _Result(pmf.rank, fitted, rows.total, math.nan, math.nan, 0.0, seconds)
    logs, weights = log_likelihoods(fold.held_out, pmf), fold.held_out.weights
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


@dataclass(frozen=True)
class BootstrapTest:
    """A likelihood-ratio test of one rank against the next, calibrated by simulation.

    Attributes
    ----------
    rank : int
        The rank under test; the alternative has one component more.
    statistic : float
        Twice the gain in log-likelihood by the further component.
    p_value : float
        How often data simulated from the smaller model gain as much.
    replicates : array
        The statistic of each simulated table.
    """

    rank: int
    statistic: float
    p_value: float
    replicates: np.ndarray = field(repr=False)

    def __str__(self) -> str:
        """Say what the test found."""
        verdict = "is not enough" if self.p_value <= 0.05 else "may be enough"
        if len(self.replicates) < FEWEST_TABLES:
            verdict = "cannot be refuted with so few tables"
        return (
            f"Rank {self.rank} against {self.rank + 1}: likelihood ratio {self.statistic:.3f}, "
            f"p = {self.p_value:.3g} from {len(self.replicates)} simulated tables; "
            f"rank {self.rank} {verdict}."
        )

    def _repr_html_(self) -> str:
        """Return what the test found."""
        return fragment(element("p", str(self)))


def bootstrap_test(
    table: Any,
    rank: int,
    *,
    n_bootstrap: int = 99,
    max_iter: int = 2000,
    tol: float = BOOTSTRAP_TOL,
    random_state: Any = None,
    progress: bool = False,
    domain: Domain | None = None,
    bins: Bins | None = None,
) -> BootstrapTest:
    """Test whether a rank is enough: the parametric bootstrap of the likelihood ratio.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, or Codes
        One row per sample, cells may be missing; simulated tables miss the same cells.
    rank : int
        The rank under test, against one component more.
    n_bootstrap : int
        How many tables are simulated from the fit of the smaller rank.
    max_iter, tol, random_state, progress, domain, bins
        As in `choose_rank`.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4] * 5), rank=2, random_state=0)
    >>> rows = truth.sample(1000, random_state=0, backend="codes")
    >>> jp.bootstrap_test(rows, rank=1, n_bootstrap=19, random_state=0).p_value
    0.05
    """
    rank = whole_number(rank, "the rank", 1)
    n_bootstrap = whole_number(n_bootstrap, "n_bootstrap", 1)
    plan = FitPlan(rank, "auto", 0.0, "uniform", loop_options(max_iter, tol))
    codes = encode(table, domain, bins=bins)
    check_table(codes, None)
    generator = seeded_generator(random_state)
    replicates = []
    with one_blas_thread, progress_bar("simulating", n_bootstrap, progress) as advance:
        data = FitData.of_codes(codes, None)
        small = _unstopped(plan.run(data, generator)).pmf
        statistic = _likelihood_ratio(data, small, plan, generator)
        for k in range(n_bootstrap):
            drawn = small.sample(codes.n_rows, random_state=generator, backend="codes")
            drawn = np.where(codes.array == MISSING, MISSING, drawn)
            simulated = FitData.of_codes(Codes(codes.domain, drawn), None)
            replicates.append(_likelihood_ratio(simulated, small, plan, generator))
            advance(f"table {k + 1}")
    n_above = sum(replicate >= statistic for replicate in replicates)
    return BootstrapTest(rank, statistic, (1 + n_above) / (1 + n_bootstrap), np.array(replicates))


def _likelihood_ratio(
    data: FitData, start: JointPMF, plan: FitPlan, generator: np.random.Generator
) -> float:
    """Return twice the gain by one component more.

    The real table and the simulated ones are fitted alike: the smaller model from the one that was
    fitted first, which the simulated tables came from, and from merged rows; the larger one from
    the smaller one with components added.
    """
    merged = point_of_merged_rows(data.rows, plan.rank, generator).to_pmf(data.rows.domain)
    fits = [_unstopped(replace(plan, start=s).run(data, generator)) for s in (start, merged)]
    small = min(fits, key=badness)
    larger = replace(plan, rank=plan.rank + 1)
    fits = []
    for _ in range(N_ENLARGED):
        point = enlarged_point(small.pmf, data.rows, larger.rank, generator)
        fits.append(replace(larger, start=point.to_pmf(data.rows.domain)).run(data, generator))
    large = min(map(_unstopped, fits), key=badness)
    return 2 * (small.objective - large.objective) * data.rows.total
