"""From rows to a joint PMF: check what was asked, find where to begin, run EM, average."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from jointpmf.domain import MISSING, Domain
from jointpmf.encoding import Bins, Codes, encode
from jointpmf.errors import JointPMFError, listing, shown, whole_number
from jointpmf.fit import fit_marginals
from jointpmf.marginals import MarginalSet, checked_weights
from jointpmf.pmf import JointPMF, average, seeded_generator
from jointpmf.solvers.em import EM
from jointpmf.solvers.held_out import HeldOut, held_out_cells
from jointpmf.solvers.loop import Callback, Restart, Solution, Status, iterate
from jointpmf.solvers.objective import Point
from jointpmf.solvers.rows import Rows, log_likelihoods
from jointpmf.solvers.starts import (
    INTERIOR,
    mixed,
    point_at_rows,
    point_in_closed_form,
    point_of_merged_rows,
    random_point,
)

logger = logging.getLogger("jointpmf")

START_WORK, STEP_WORK = 6e9, 2e5
"""Work for finding where to begin, in cells times components, and what any step costs at least."""

MAX_CANDIDATES, MIN_CANDIDATES, CANDIDATE_STEPS = 32, 3, 50
"""Starts that are tried, and the iterations each of them gets."""

AGREEMENT = 1e-7
"""Starts that differ by less, in nats per row, are as good as each other: the surest is taken."""

MIN_ROWS_PER_COMPONENT = 100
"""Rows that are tried with are a sample of the data, unless that would have fewer than this."""

GIVEN_INTERIOR = 0.01
"""Part of the marginals that a given start gets if it says that some row cannot happen."""

Recoverable = (JointPMFError, ArithmeticError, np.linalg.LinAlgError)
"""What may go wrong in one start of several without ending the fit."""


def fit_rows(
    table: Any,
    rank: int,
    *,
    method: str = "likelihood",
    order: int = 3,
    start: str | JointPMF = "auto",
    smoothing: float = 0.0,
    towards: str = "uniform",
    max_iter: int = 2000,
    tol: float = 1e-10,
    n_init: int = 1,
    n_average: int = 1,
    validation: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    callback: Callback | None = None,
    domain: Domain | None = None,
    bins: Bins | None = None,
) -> Solution:
    """Return the joint PMF under which an incomplete table is most likely.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, or Codes
        One row per sample. Missing cells are summed out; rows without any observed cell are
        ignored.
    rank : int
        Number of components.
    method : {"likelihood", "marginals"}
        Maximum likelihood, by EM over the observed cells; or a least-squares fit to the marginals
        of some `order` that are counted from the rows, see `fit_marginals`.
    order : int
        Of the marginals, for that method.
    start : {"auto", "rows", "random"} or JointPMF
        Where to begin: by default the best of several, among them the closed form on counted
        triples and merged rows; components at single rows of the data; random columns; or a model.
    smoothing : float
        Pseudo-counts per level and component, on average (a Dirichlet prior). With 0 a level that
        was never seen has probability zero.
    towards : {"uniform", "marginal"}
        Where smoothing pulls the columns: all levels alike, or as each variable is distributed.
    max_iter, tol : int, float
        Budget of iterations, and the change of the mean log-likelihood, in nats per row, below
        which the fit has converged.
    n_init : int
        How often to fit, each time from another start; the best is returned and all are recorded.
    n_average : int
        How many fits to average into one model, of rank `n_average * rank`. Each begins at other
        rows, and with a fraction as `validation` holds out other rows.
    validation : float, table or array of bool, optional
        What to stop by: a fraction of the rows, which is then not fitted; other rows; or which
        cells of the table to hide and to predict from the rest of their rows. The model that fits
        it best is returned.
    sample_weight : array of shape (rows,), optional
        What each row counts for.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits, whatever the number of threads.
    callback : callable, optional
        Called as `callback(step, pmf)` after every iteration; returning True stops.
    domain, bins
        How the table is read, see `encode`.

    Returns
    -------
    Solution
        Its objective is minus the mean log-likelihood per row, smoothing included.

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
    if method not in ("likelihood", "marginals"):
        raise JointPMFError(f"method must be 'likelihood' or 'marginals', not {shown(method)}")
    codes = encode(table, domain, bins=bins)
    weights = checked_weights(sample_weight, codes.n_rows)
    if method == "marginals":
        if smoothing or validation is not None or n_init > 1 or n_average > 1:
            raise JointPMFError(
                "smoothing, validation, n_init and n_average belong to method='likelihood'"
            )
        return fit_marginals(
            MarginalSet.from_table(codes, order, weights),
            rank,
            start=start,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            callback=callback,
        )
    fit = FitPlan(
        rank,
        _checked_start(start, codes.domain, rank),
        _checked_smoothing(smoothing),
        _checked_towards(towards),
        {
            "max_iter": whole_number(max_iter, "max_iter", 0),
            "tol": _at_least_zero(tol, "tol"),
            "callback": _checked_callback(callback),
        },
    )
    check_table(codes, weights)
    split = _splitter(codes, weights, validation, rank)
    generator = seeded_generator(random_state)
    if n_average > 1:
        return _average_of(fit, split, n_average, generator, Rows.of_codes(codes, weights))
    return _best_of(fit, split(generator), n_init, generator)


def _best_of(fit: FitPlan, data: FitData, n_init: int, generator: np.random.Generator) -> Solution:
    """Return the best of several fits; one that fails is recorded, unless all of them do."""
    found: list[Solution] = []
    restarts: list[Restart] = []
    error: Exception | None = None
    for k in range(n_init):
        own = generator if n_init == 1 else _child(generator)
        try:
            solution = fit.run(data, own, is_first=k == 0)
        except Recoverable as failure:
            logger.warning("start number %d failed: %s", k + 1, failure)
            restarts.append(Restart(f"number {k + 1}", np.inf, None, str(failure)))
            error = failure
            continue
        found.append(solution)
        restarts.append(Restart(solution.start, solution.objective, solution.status))
        if solution.status is Status.STOPPED:
            break
    if not found:
        assert error is not None
        raise error
    stopped = found[-1].status is Status.STOPPED
    best = replace(min(found, key=_badness), restarts=tuple(restarts) if n_init > 1 else ())
    return replace(best, status=Status.STOPPED) if stopped else best


def _average_of(
    fit: FitPlan, split: _Splitter, n_average: int, generator: np.random.Generator, rows: Rows
) -> Solution:
    """Return the average of several fits, each from a start and with a split of its own."""
    if fit.start == "auto":
        fit = replace(fit, start="rows")
    found: list[Solution] = []
    for k in range(n_average):
        own = _child(generator)
        found.append(fit.run(split(own), own, is_first=k == 0))
        if found[-1].status is Status.STOPPED:
            break
    pmf = average([solution.pmf for solution in found])
    log_likelihood = float(rows.weights @ log_likelihoods(rows, pmf))
    best = min(found, key=_badness)
    unfinished = [s.status for s in found if s.status in (Status.STOPPED, Status.MAX_ITER)]
    return replace(
        best,
        pmf=pmf,
        objective=-log_likelihood / rows.total,
        status=unfinished[-1] if unfinished else best.status,
        start=f"the average of {len(found)} fits",
        validation=None,
        restarts=tuple(Restart(s.start, s.objective, s.status) for s in found),
    )


def _child(generator: np.random.Generator) -> np.random.Generator:
    return np.random.default_rng(generator.integers(2**63))


def _badness(solution: Solution) -> float:
    return solution.objective if solution.validation is None else solution.validation


@dataclass(frozen=True)
class FitData:
    """What one fit sees, and what is held out of it."""

    codes: Codes
    weights: np.ndarray | None
    rows: Rows
    held_out: HeldOut | None = None


_Splitter = Callable[[np.random.Generator], FitData]


@dataclass(frozen=True)
class FitPlan:
    """How to fit: everything that was asked, except the data."""

    rank: int
    start: str | JointPMF
    smoothing: float
    towards: str
    options: dict[str, Any]

    def run(self, data: FitData, generator: np.random.Generator, is_first: bool) -> Solution:
        """Return the fit from one start; a start that was given is only for the first."""
        start = "auto" if isinstance(self.start, JointPMF) and not is_first else self.start
        if isinstance(start, JointPMF):
            point, name = self._given(start, data.rows), "given: a JointPMF"
        elif start == "random":
            point = random_point(data.rows.domain, self.rank, generator)
            name = "random: as asked"
        elif start == "rows":
            point = point_at_rows(data.rows, self.rank, generator)
            name = "rows: as asked"
        else:
            best, name = self._best_candidate(data, generator)
            if best.status is Status.STOPPED:
                return replace(best, start=name)
            point = Point.of_pmf(best.pmf)
        solution = self._iterate(data, point, **self.options)
        return replace(solution, start=name)

    def _iterate(self, data: FitData, point: Point, **options: Any) -> Solution:
        # with a validation part the path matters and not only its end: no extrapolation
        em = EM(data.rows, self.rank, self._prior(data.rows), data.held_out is None)
        return iterate(em, point, validation=data.held_out, **options)

    def _prior(self, rows: Rows) -> np.ndarray | None:
        if not self.smoothing:
            return None
        if self.towards == "uniform":
            return np.full((len(rows.counts), 1), self.smoothing)
        sizes = np.repeat(rows.domain.sizes, rows.domain.sizes)
        totals = np.repeat(
            np.add.reduceat(rows.counts, rows.domain.offsets[:-1]), rows.domain.sizes
        )
        marginal = (rows.counts + 1) / (totals + sizes)  # also what was never seen may happen
        return (self.smoothing * sizes * marginal)[:, None]

    def _given(self, start: JointPMF, rows: Rows) -> Point:
        point = Point.of_pmf(start)
        n_impossible = np.isneginf(log_likelihoods(rows, start)).sum()
        if n_impossible:
            logger.warning(
                "the start gives %d distinct rows probability zero; %.0f %% of the marginals are "
                "mixed in",
                n_impossible,
                100 * GIVEN_INTERIOR,
            )
            point = mixed(point, rows.marginal, GIVEN_INTERIOR)
        return point

    def _best_candidate(
        self, data: FitData, generator: np.random.Generator
    ) -> tuple[Solution, str]:
        """Return the best of several starts after some iterations, and what it was."""
        n_candidates, sample = self._affordable(data.rows, generator)
        tried = data if sample is None else replace(data, rows=sample)
        found: list[tuple[Solution, str]] = []
        options = self.options | {"max_iter": CANDIDATE_STEPS, "callback": None}
        options["max_iter"] = min(CANDIDATE_STEPS, self.options["max_iter"])
        for name, point in self._candidates(tried, n_candidates, generator):
            found.append((self._iterate(tried, point, **options), name))
            if found[-1][0].status is Status.STOPPED:
                break
        least = min(_badness(solution) for solution, _ in found)
        best, name = next(pair for pair in found if _badness(pair[0]) <= least + AGREEMENT)
        if found[-1][0].status is Status.STOPPED:
            best = replace(best, status=Status.STOPPED)
        return best, f"{name}: the best of {len(found)} starts"

    def _affordable(self, rows: Rows, generator: np.random.Generator) -> tuple[int, Rows | None]:
        """Return how many starts to try, and on which rows if all would take too long."""
        if self.rank == 1:
            return 1, None  # there is one optimum
        passes = 2 * CANDIDATE_STEPS
        work = len(rows.cells) * self.rank + STEP_WORK
        n_candidates = int(START_WORK / (passes * work))
        if n_candidates >= MIN_CANDIDATES:
            return min(n_candidates, MAX_CANDIDATES), None
        part = START_WORK / (passes * work * MIN_CANDIDATES)
        n_rows = max(int(part * len(rows)), MIN_ROWS_PER_COMPONENT * self.rank)
        if n_rows >= len(rows):
            return MIN_CANDIDATES, None
        return MIN_CANDIDATES, rows.taken(np.sort(generator.permutation(len(rows))[:n_rows]))

    def _candidates(
        self, data: FitData, count: int, generator: np.random.Generator
    ) -> Iterator[tuple[str, Point]]:
        """Yield starts of different kinds, the surest first."""
        if self.rank > 1:
            found = point_in_closed_form(data.codes, data.weights, self.rank, generator)
            if found is not None:
                yield "closed form", mixed(found, data.rows.marginal, INTERIOR)
                count -= 1
        kinds = [
            ("merged rows", point_of_merged_rows),
            ("rows", point_at_rows),
            ("random", lambda rows, rank, generator: random_point(rows.domain, rank, generator)),
        ]
        for k in range(count):
            name, point_of = kinds[k % len(kinds)]
            yield name, point_of(data.rows, self.rank, generator)


def _splitter(codes: Codes, weights: np.ndarray | None, validation: Any, rank: int) -> _Splitter:
    """Return what splits the data into what is fitted and what is held out."""
    if validation is None:
        everything = FitData(codes, weights, _checked_rows(codes, weights, rank))
        return lambda generator: everything
    if isinstance(validation, Real) and not isinstance(validation, bool):
        return _fraction_splitter(codes, weights, float(validation), rank)
    if isinstance(validation, np.ndarray) and validation.dtype == bool:
        return _cell_splitter(codes, weights, validation, rank)
    rows = Rows.of_codes(encode(validation, codes.domain))
    if not len(rows):
        raise JointPMFError("no row of the validation part has an observed cell")
    data = FitData(codes, weights, _checked_rows(codes, weights, rank), HeldOut(rows, rank))
    return lambda generator: data


def _fraction_splitter(
    codes: Codes, weights: np.ndarray | None, fraction: float, rank: int
) -> _Splitter:
    n_held_out = round(fraction * codes.n_rows)
    if not 0 < fraction < 1 or not 0 < n_held_out < codes.n_rows:
        raise JointPMFError(
            f"validation must be a fraction that leaves rows on both sides, not {fraction:g}"
        )

    def split(generator: np.random.Generator) -> FitData:
        held_out = np.zeros(codes.n_rows, bool)
        held_out[generator.permutation(codes.n_rows)[:n_held_out]] = True
        fitted, other = (_some_rows(codes, weights, part) for part in (~held_out, held_out))
        rows = Rows.of_codes(*other)
        if not len(rows):
            raise JointPMFError("no row of the validation part has an observed cell")
        return FitData(*fitted, _checked_rows(*fitted, rank), HeldOut(rows, rank))

    return split


def _some_rows(
    codes: Codes, weights: np.ndarray | None, which: np.ndarray
) -> tuple[Codes, np.ndarray | None]:
    part = Codes(codes.domain, codes.array[which])
    return part, None if weights is None else weights[which]


def _cell_splitter(
    codes: Codes, weights: np.ndarray | None, hidden: np.ndarray, rank: int
) -> _Splitter:
    if hidden.shape != codes.array.shape:
        raise JointPMFError(
            f"validation cells of shape {hidden.shape} do not fit a table of {codes.array.shape}"
        )
    rows, given = held_out_cells(codes, hidden, weights)
    if not len(rows):
        raise JointPMFError("no cell of the validation part is observed")
    visible = Codes(codes.domain, np.where(hidden, MISSING, codes.array))
    fitted = _checked_rows(visible, weights, rank)
    data = FitData(visible, weights, fitted, HeldOut(rows, rank, given))
    return lambda generator: data


def _checked_rows(codes: Codes, weights: np.ndarray | None, rank: int) -> Rows:
    """Return the distinct rows that are fitted, after checking that they say something."""
    check_table(codes, weights)
    rows = Rows.of_codes(codes, weights)
    if rows.n_empty:
        logger.info("%d rows have no observed cell and are ignored", rows.n_empty)
    if rank > len(rows):
        logger.warning(
            "the rank %d is larger than the number of distinct rows, %d", rank, len(rows)
        )
    return rows


def check_table(codes: Codes, weights: np.ndarray | None) -> None:
    """Raise unless every column has an observed cell in a row that counts."""
    if not codes.n_rows or not len(codes.domain):
        raise JointPMFError("the table is empty: there is nothing to fit")
    counted = codes.columns if weights is None else codes.columns[:, weights > 0]
    if not counted.shape[1]:
        raise JointPMFError("all sample weights are zero")
    seen = [bool((column >= 0).any()) for column in counted]
    if not all(seen):
        unseen = [
            name for name, is_seen in zip(codes.domain.names, seen, strict=True) if not is_seen
        ]
        raise JointPMFError(f"column {listing(unseen)} has no observed cell")


def _checked_start(start: Any, domain: Domain, rank: int) -> str | JointPMF:
    if isinstance(start, JointPMF):
        if start.domain != domain or start.rank != rank:
            raise JointPMFError(
                f"the start {start!r} is not of rank {rank} over the table's domain"
            )
        return start
    if not isinstance(start, str) or start not in ("auto", "rows", "random"):
        raise JointPMFError(
            f"start must be 'auto', 'rows', 'random' or a JointPMF, not {shown(start)}"
        )
    return start


def _checked_smoothing(smoothing: Any) -> float:
    return _at_least_zero(smoothing, "smoothing")


def _checked_towards(towards: Any) -> str:
    if towards not in ("uniform", "marginal"):
        raise JointPMFError(f"towards must be 'uniform' or 'marginal', not {shown(towards)}")
    return towards


def _checked_callback(callback: Any) -> Callback | None:
    if callback is not None and not callable(callback):
        raise JointPMFError(f"the callback must be callable, not {callback!r}")
    return callback


def _at_least_zero(number: Any, what: str) -> float:
    value = float(number) if isinstance(number, Real) else -1.0
    if not 0 <= value < np.inf:
        raise JointPMFError(f"{what} must be a number of at least 0, not {shown(number)}")
    return value
