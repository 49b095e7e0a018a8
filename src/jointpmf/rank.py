"""Choosing the rank: held-out likelihood, information criteria, and a bootstrap test."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jointpmf.domain import MISSING, Domain
from jointpmf.encoding import Bins, Codes, encode
from jointpmf.errors import JointPMFError, shown, whole_number
from jointpmf.latent import CRITERIA, information_criteria, n_free_parameters
from jointpmf.likelihood import fit_rows
from jointpmf.marginals import checked_weights
from jointpmf.pmf import JointPMF, seeded_generator
from jointpmf.progress import progress_bar
from jointpmf.solvers.loop import Solution, Status
from jointpmf.solvers.rows import Rows, log_likelihoods
from jointpmf.solvers.starts import enlarged_point

logger = logging.getLogger("jointpmf")

MANY_STARTS, FEW_CELLS = 5, 10**6
"""Fits at each rank where cells times components are fewer than that; else one."""

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


def choose_rank(
    table: Any,
    ranks: Iterable[int],
    criterion: str = "validation",
    *,
    n_folds: int = 5,
    validation: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: bool = False,
    domain: Domain | None = None,
    bins: Bins | None = None,
    **fit_options: Any,
) -> RankCurve:
    """Return how well each rank does, and which is best.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, or Codes
        One row per sample, cells may be missing.
    ranks : iterable of int
        What to try. Each fit begins at the one of the next smaller rank, with components added.
    criterion : {"validation", "bic", "aic", "abic", "caic"}
        Mean log-likelihood of held-out rows, by cross-validation or on given rows; or an
        information criterion, from one fit to all rows.
    n_folds : int
        Parts of the rows that are held out in turn.
    validation : table, optional
        Rows to score by instead of folds.
    sample_weight : array of shape (rows,), optional
        What each row counts for.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits.
    progress : bool
        Whether to show a progress bar.
    domain, bins
        How the table is read, see `encode`.
    **fit_options
        For `fit_rows`: smoothing, towards, max_iter, tol.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([6] * 6), rank=2, random_state=0)
    >>> rows = truth.sample(2000, random_state=0, backend="codes")
    >>> jp.choose_rank(rows, [1, 2, 3], criterion="bic", random_state=0).rank
    2
    """
    if criterion not in ("validation", *CRITERIA):
        raise JointPMFError(
            f"criterion must be 'validation', {', '.join(map(repr, CRITERIA))}, "
            f"not {shown(criterion)}"
        )
    asked = sorted({whole_number(rank, "a rank", 1) for rank in ranks})
    if not asked:
        raise JointPMFError("there is no rank to choose from")
    codes = encode(table, domain, bins=bins)
    weights = checked_weights(sample_weight, codes.n_rows)
    generator = seeded_generator(random_state)
    if criterion != "validation":
        if validation is not None:
            raise JointPMFError("rows to validate on belong to criterion='validation'")
        folds = [_Fold(codes, weights, None, None)]
    elif validation is not None:
        folds = [_Fold(codes, weights, encode(validation, codes.domain), None)]
    else:
        folds = list(_folds(codes, weights, whole_number(n_folds, "n_folds", 2), generator))
    results: list[list[_Result]] = []
    with progress_bar("choosing the rank", len(folds) * len(asked), progress) as advance:
        for fold in folds:
            results.append([])
            for result in _along_ranks(fold, asked, generator, fit_options):
                results[-1].append(result)
                advance(f"rank {result.rank}")
    of_rank = list(zip(*results, strict=True))
    scores = tuple(_score(criterion, codes.domain, same) for same in of_rank)
    return RankCurve(criterion, scores, np.array([[r.held_out for r in same] for same in of_rank]))


class _Fold(NamedTuple):
    """Rows to fit, and rows to score."""

    codes: Codes
    weights: np.ndarray | None
    held_out: Codes | None
    held_out_weights: np.ndarray | None


class _Result(NamedTuple):
    rank: int
    log_likelihood: float
    n_rows: float
    held_out: float
    held_out_error: float
    seconds: float


def _folds(
    codes: Codes, weights: np.ndarray | None, n_folds: int, generator: np.random.Generator
) -> Iterator[_Fold]:
    if n_folds > codes.n_rows:
        raise JointPMFError(f"{codes.n_rows} rows cannot be cut into {n_folds} folds")
    part = generator.permutation(codes.n_rows) % n_folds
    for k in range(n_folds):
        fitted, held_out = part != k, part == k
        yield _Fold(
            Codes(codes.domain, codes.array[fitted]),
            None if weights is None else weights[fitted],
            Codes(codes.domain, codes.array[held_out]),
            None if weights is None else weights[held_out],
        )


def _along_ranks(
    fold: _Fold, ranks: list[int], generator: np.random.Generator, options: dict[str, Any]
) -> Iterator[_Result]:
    """Yield the fit of each rank, begun at the one before with components added."""
    rows = Rows.of_codes(fold.codes, fold.weights)
    found: Solution | None = None
    for rank in ranks:
        begin = time.perf_counter()
        options = options | {"sample_weight": fold.weights, "random_state": generator}
        if found is None:
            found = _unstopped(fit_rows(fold.codes, rank, **options))
        else:
            found = _enlarged_fit(found.pmf, fold.codes, rows, rank, options)
        yield _Result(
            rank,
            float(rows.weights @ log_likelihoods(rows, found.pmf)),
            rows.total,
            *_held_out_score(found.pmf, fold),
            time.perf_counter() - begin,
        )


def _enlarged_fit(
    smaller: JointPMF, codes: Codes, rows: Rows, rank: int, options: dict[str, Any]
) -> Solution:
    """Return the best fit of a few that begin at a smaller model with components added."""
    n_starts = MANY_STARTS if len(rows.cells) * rank < FEW_CELLS else 1
    found = []
    for _ in range(n_starts):
        start = enlarged_point(smaller, rows, rank, options["random_state"])
        fit = fit_rows(codes, rank, start=start.to_pmf(rows.domain), **options)
        found.append(_unstopped(fit))
    return min(found, key=lambda solution: solution.objective)


def _unstopped(solution: Solution) -> Solution:
    """Return a fit that ended by itself: an interrupted one ends the whole search."""
    if solution.status is Status.STOPPED:
        raise KeyboardInterrupt
    return solution


def _held_out_score(pmf: JointPMF, fold: _Fold) -> tuple[float, float]:
    """Return the mean held-out log-likelihood and its standard error over the rows."""
    if fold.held_out is None:
        return math.nan, math.nan
    rows = Rows.of_codes(fold.held_out, fold.held_out_weights)
    if not len(rows):
        raise JointPMFError("no held-out row has an observed cell")
    logs = log_likelihoods(rows, pmf)
    n_impossible = rows.weights[np.isneginf(logs)].sum()
    if n_impossible:
        logger.warning(
            "%g held-out rows have probability zero at rank %d; smoothing avoids that",
            n_impossible,
            pmf.rank,
        )
        return -math.inf, math.nan
    mean = float(rows.weights @ logs) / rows.total
    variance = float(rows.weights @ (logs - mean) ** 2) / rows.total
    return mean, math.sqrt(variance / rows.total)


def _score(criterion: str, domain: Domain, results: Sequence[_Result]) -> RankScore:
    rank = results[0].rank
    n_parameters = n_free_parameters(domain, rank)
    fitted = sum(r.log_likelihood for r in results) / sum(r.n_rows for r in results)
    seconds = sum(r.seconds for r in results)
    if criterion != "validation":
        of = information_criteria(results[0].log_likelihood, n_parameters, results[0].n_rows)
        return RankScore(rank, of[criterion], math.nan, fitted, n_parameters, seconds)
    held_out = np.array([r.held_out for r in results])
    if len(results) == 1:
        error = results[0].held_out_error
    elif np.isfinite(held_out).all():
        error = float(held_out.std(ddof=1)) / math.sqrt(len(results))
    else:
        error = math.nan
    return RankScore(rank, float(held_out.mean()), error, fitted, n_parameters, seconds)


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
        return (
            f"Rank {self.rank} against {self.rank + 1}: likelihood ratio {self.statistic:.3f}, "
            f"p = {self.p_value:.3g} from {len(self.replicates)} simulated tables; "
            f"rank {self.rank} {verdict}."
        )


def bootstrap_test(
    table: Any,
    rank: int,
    *,
    n_bootstrap: int = 99,
    random_state: Any = None,
    progress: bool = False,
    domain: Domain | None = None,
    bins: Bins | None = None,
    **fit_options: Any,
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
    random_state, progress, domain, bins, **fit_options
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
    codes = encode(table, domain, bins=bins)
    generator = seeded_generator(random_state)
    options = {"tol": BOOTSTRAP_TOL} | fit_options | {"random_state": generator}
    small = _unstopped(fit_rows(codes, rank, **options)).pmf
    statistic = _likelihood_ratio(codes, small, options)
    replicates = []
    with progress_bar("simulating", n_bootstrap, progress) as advance:
        for k in range(n_bootstrap):
            drawn = small.sample(codes.n_rows, random_state=generator, backend="codes")
            drawn = np.where(codes.array == MISSING, MISSING, drawn)
            simulated = Codes(codes.domain, drawn)
            replicates.append(_likelihood_ratio(simulated, small, options))
            advance(f"table {k + 1}")
    n_above = sum(replicate >= statistic for replicate in replicates)
    return BootstrapTest(rank, statistic, (1 + n_above) / (1 + n_bootstrap), np.array(replicates))


def _likelihood_ratio(codes: Codes, start: JointPMF, options: dict[str, Any]) -> float:
    """Return twice the gain by one component more, both fits begun at a model of the smaller rank.

    Simulated tables begin at the model that they came from, and the real one at its own fit.
    """
    rows = Rows.of_codes(codes)
    small = _unstopped(fit_rows(codes, start.rank, start=start, **options)).pmf
    large = _enlarged_fit(small, codes, rows, start.rank + 1, options).pmf
    gains = log_likelihoods(rows, large) - log_likelihoods(rows, small)
    return 2 * float(rows.weights @ gains)
