"""How one maximum-likelihood fit is done: what it sees, where it begins, when it ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING, Domain
from jointpmf.errors import JointPMFError, listing
from jointpmf.fit.checkpoint import CheckpointError
from jointpmf.pmf import JointPMF
from jointpmf.rows.table import AnyRows, Rows, TableRows, log_likelihoods, rows_of_codes
from jointpmf.solvers.em import EM
from jointpmf.solvers.held_out import PATIENCE, HeldOut, HeldOutCells
from jointpmf.solvers.loop import Solution, Status, Validation, iterate
from jointpmf.solvers.ordinal import FactorModel, neighbour_kernel, point_along_factors
from jointpmf.solvers.point import Point
from jointpmf.solvers.starts.candidates import (
    INTERIOR,
    can_merge,
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

LIFT = 0.01
"""Part of the marginals that a start gets if it says that some row cannot happen: from zero no EM
step returns."""

UNSEEN = 1e-3
"""Part of the uniform distribution in the marginals that smoothing pulls to: also what was never
seen may happen."""

Recoverable = (JointPMFError, ArithmeticError, np.linalg.LinAlgError)
"""What may go wrong in one start of several without ending the fit."""


@dataclass(frozen=True)
class FitData:
    """What one fit sees, and what is held out of it."""

    codes: Codes
    weights: np.ndarray | None
    rows: TableRows
    held_out: Validation | None = None
    factor_models: dict[int, FactorModel] = field(default_factory=dict)

    @classmethod
    def of_codes(
        cls, codes: Codes, weights: np.ndarray | None, held_out: Validation | None = None
    ) -> FitData:
        """Return the data of a table."""
        return cls(codes, weights, rows_of_codes(codes, weights), held_out)


@dataclass(frozen=True)
class FitPlan:
    """How to fit: everything that was asked, except the data.

    `options` are those of the loop: max_iter, tol, callback, checkpoint.
    """

    rank: int
    start: str | JointPMF
    smoothing: float
    towards: str
    options: dict[str, Any]
    bandwidth: float = 0.0
    """How far counts spread to neighbouring levels of ordered variables, in levels."""

    def run(self, data: FitData, generator: np.random.Generator) -> Solution:
        """Return the fit from one start."""
        begin = time.perf_counter()
        if isinstance(self.start, JointPMF):
            point, name = self._possible(Point.of_pmf(self.start), data.rows), "given: a JointPMF"
        elif self.start == "random":
            point = random_point(data.rows.domain, self.rank, generator)
            name = "random: as asked"
        elif self.start == "rows":
            point = point_at_rows(data.rows, self.rank, generator)
            name = "rows: as asked"
        elif self.start == "factors":
            point = point_along_factors(data.rows, self.rank, generator, data.factor_models)
            point = self._possible(point, data.rows)
            name = "factors: as asked"
        else:
            best, name, is_stopped = self._best_candidate(data, generator)
            point = self._possible(Point.of_pmf(best.pmf), data.rows)
            if is_stopped:
                here = self._iterate(data, point, **(self.options | {"max_iter": 0}))
                return replace(here, start=name, status=Status.STOPPED)
        solution = self._iterate(data, point, **self.options, begin=begin)
        return replace(solution, start=name)

    def _iterate(self, data: FitData, point: Point, **options: Any) -> Solution:
        # with a validation part the path matters and not only its end: no extrapolation
        kernel = neighbour_kernel(data.rows, self.bandwidth) if self.bandwidth else None
        em = EM(data.rows, self.rank, self.prior(data.rows), data.held_out is None, kernel)
        return iterate(em, point, validation=data.held_out, **options)

    def prior(self, rows: AnyRows) -> np.ndarray | None:
        """Return the pseudo-counts of each level, or None without smoothing."""
        return self.pseudo_counts(rows.domain, rows.marginal) if self.smoothing else None

    def pseudo_counts(self, domain: Domain, marginal: np.ndarray) -> np.ndarray:
        """Return what smoothing adds to the expected counts of each level (eq. 21)."""
        sizes = np.repeat(domain.sizes, domain.sizes)
        if self.towards == "uniform":
            return np.full((len(sizes), 1), self.smoothing)
        marginal = (1 - UNSEEN) * marginal + UNSEEN / sizes
        return (self.smoothing * sizes * marginal)[:, None]

    def _possible(self, point: Point, rows: TableRows) -> Point:
        """Return a start under which all rows can happen."""
        n_impossible = np.isneginf(log_likelihoods(rows, point.to_pmf(rows.domain))).sum()
        if n_impossible:
            logger.info(
                "the start gives %d distinct rows probability zero; a part of the marginals is "
                "mixed in",
                n_impossible,
            )
            point = mixed(point, rows.marginal, LIFT)
        return point

    def _best_candidate(
        self, data: FitData, generator: np.random.Generator
    ) -> tuple[Solution, str, bool]:
        """Return the best of several starts, what it was, and whether the search was stopped."""
        n_candidates, sample = self._affordable(data.rows, generator)
        tried = data if sample is None else replace(data, rows=sample)
        options = self.options | {"callback": None}
        options["max_iter"] = min(CANDIDATE_STEPS, options["max_iter"])
        found: list[tuple[Solution, str]] = []
        error: Exception | None = None
        try:
            for name, make in self._candidates(tried, n_candidates, generator):
                try:
                    point = make()
                    if point is not None:
                        found.append((self._iterate(tried, point, **options), name))
                except CheckpointError:
                    raise
                except Recoverable as failure:
                    logger.warning("the start %r failed: %s", name, failure)
                    error = failure
                if found and found[-1][0].status is Status.STOPPED:
                    break
                if n_candidates < MAX_CANDIDATES and _two_agree(found):
                    break
            is_stopped = bool(found) and found[-1][0].status is Status.STOPPED
        except KeyboardInterrupt:
            is_stopped = True
            if not found:
                point = point_at_rows(data.rows, self.rank, generator)
                found = [(self._iterate(tried, point, **(options | {"max_iter": 0})), "rows")]
        if not found:
            raise error or JointPMFError("no start could be found")
        least = min(badness(solution) for solution, _ in found)
        best, name = next(pair for pair in found if badness(pair[0]) <= least + AGREEMENT)
        return best, f"{name}: the best of {len(found)} starts", is_stopped

    def _affordable(
        self, rows: TableRows, generator: np.random.Generator
    ) -> tuple[int, Rows | None]:
        """Return how many starts to try, and on which rows if all would take too long."""
        count, n_rows = affordable_starts(len(rows), rows.n_cells, self.rank)
        if n_rows == len(rows):
            return count, None
        return count, rows.taken(np.sort(generator.permutation(len(rows))[:n_rows]))

    def _candidates(
        self, data: FitData, count: int, generator: np.random.Generator
    ) -> Iterator[tuple[str, Callable[[], Point | None]]]:
        """Yield starts of different kinds, the surest first, each as what makes it."""
        rows, rank = data.rows, self.rank

        def closed_form() -> Point | None:
            found = point_in_closed_form(data.codes, data.weights, rank, generator)
            return None if found is None else mixed(found, rows.marginal, INTERIOR)

        kinds: list[tuple[str, Callable[[], Point]]] = [
            ("merged rows", partial(point_of_merged_rows, rows, rank, generator)),
            ("rows", partial(point_at_rows, rows, rank, generator)),
            ("random", partial(random_point, rows.domain, rank, generator)),
        ]
        if rank == 1 or not can_merge(rows.domain, rank):
            kinds = kinds[1:]
        if rank > 1:
            yield "closed form", closed_form
        for k in range(count):
            yield kinds[k % len(kinds)]


def affordable_starts(n_rows: int, n_cells: int, rank: int) -> tuple[int, int]:
    """Return how many starts to try, and on how many of the rows."""
    if rank == 1:
        return 1, n_rows  # there is one optimum
    passes = 2 * CANDIDATE_STEPS
    work = n_cells * rank + STEP_WORK
    count = int(START_WORK / (passes * work))
    if count >= MIN_CANDIDATES:
        return min(count, MAX_CANDIDATES), n_rows
    part = START_WORK / (passes * work * MIN_CANDIDATES)
    least = MIN_ROWS_PER_COMPONENT * rank
    return MIN_CANDIDATES, min(max(int(part * n_rows), least), n_rows)


def _two_agree(found: list[tuple[Solution, str]]) -> bool:
    """Tell whether starts of two kinds have found the same best: where many are too expensive."""
    least = min((badness(solution) for solution, _ in found), default=0.0)
    kinds = {name for solution, name in found if badness(solution) <= least + AGREEMENT}
    return len(kinds) > 1


def badness(solution: Solution) -> float:
    """Return what tells the better of two fits: validation if there is one, else the objective."""
    return solution.objective if solution.validation is None else solution.validation


Splitter = Callable[[np.random.Generator], FitData]
"""Gives what is fitted and what is held out, for fractions another part each time."""


def splitter(
    whole: FitData, validation: Any, plan: FitPlan, scoring: str = "likelihood"
) -> Splitter:
    """Return what splits all data into what is fitted and what is held out."""
    hidden = None if validation is None else _mask(validation)
    if hidden is not None and not _are_rows(hidden, whole.codes):
        hiding = hiding_cells(whole.codes, whole.weights, hidden, plan, scoring)
        return lambda generator: hiding
    if scoring == "error":
        raise JointPMFError("scoring='error' needs cells to hide as validation, an array of bool")
    if isinstance(validation, Real) and not isinstance(validation, bool):
        return _fraction_splitter(whole.codes, whole.weights, float(validation), plan)
    data = whole
    if validation is not None:
        data = _holding_out(whole, encode(validation, whole.codes.domain), None, plan)
    return lambda generator: data


def plain_validation(validation: Any, domain: Domain) -> Any:
    """Return what is held out as a number, as truth values or as codes."""
    if validation is None or isinstance(validation, Real):
        return validation
    hidden = _mask(validation)
    return encode(validation, domain) if hidden is None else hidden


def _mask(validation: Any) -> np.ndarray | None:
    """Return a rectangle of truth values as an array, and anything else as None."""
    if isinstance(validation, Codes):
        return None
    try:
        array = np.asarray(validation.to_numpy() if hasattr(validation, "to_numpy") else validation)
    except ValueError:
        return None
    if array.dtype == object and all(isinstance(cell, (bool, np.bool_)) for cell in array.flat):
        array = array.astype(bool)
    return array if array.dtype == bool and array.ndim == 2 else None


def _are_rows(truth_values: np.ndarray, codes: Codes) -> bool:
    """Tell whether truth values are rows of a table of such, and not cells of it to hide."""
    levels = {type(level) for variable in codes.domain for level in variable.levels}
    return truth_values.shape != codes.array.shape and levels == {bool}


def _fraction_splitter(
    codes: Codes, weights: np.ndarray | None, fraction: float, plan: FitPlan
) -> Splitter:
    n_held_out = round(fraction * codes.n_rows) if 0 < fraction < 1 else 0
    if not 0 < n_held_out < codes.n_rows:
        raise JointPMFError(
            f"validation must be a fraction that leaves rows on both sides, not {fraction:g}"
        )

    def split(generator: np.random.Generator) -> FitData:
        is_held_out = np.zeros(codes.n_rows, bool)
        is_held_out[generator.permutation(codes.n_rows)[:n_held_out]] = True
        fitted = FitData.of_codes(*some_rows(codes, weights, ~is_held_out))
        return _holding_out(fitted, *some_rows(codes, weights, is_held_out), plan)

    return split


def _holding_out(data: FitData, codes: Codes, weights: np.ndarray | None, plan: FitPlan) -> FitData:
    """Return what is fitted with other rows held out of it."""
    scored = np.flatnonzero(~_unknown(codes, data.rows, plan).any(axis=1))
    rows = Rows.of_codes(*some_rows(codes, weights, scored))
    if not len(rows):
        raise JointPMFError("no row of the validation part has an observed cell and a weight")
    return replace(data, held_out=HeldOut(rows, plan.rank))


def _unknown(codes: Codes, fitted: TableRows, plan: FitPlan) -> np.ndarray:
    """Return which cells hold a level that was not fitted, which is impossible unless smoothed.

    Such rows cost the same under every iterate but the first, which they must not decide for.
    """
    if plan.smoothing:
        return np.zeros(codes.array.shape, bool)
    counts = np.append(fitted.counts, 1.0)
    cells = codes.domain.offsets[:-1] + codes.array
    unknown = counts[np.where(codes.array == MISSING, len(counts) - 1, cells)] == 0
    if unknown.any():
        row, n = np.argwhere(unknown)[0].tolist()
        logger.warning(
            "%d validation cells hold a level that was not fitted, such as that of %r in row %d; "
            "without smoothing they are not scored",
            unknown.sum(),
            codes.domain.names[n],
            row,
        )
    return unknown


def some_rows(
    codes: Codes, weights: np.ndarray | None, which: np.ndarray
) -> tuple[Codes, np.ndarray | None]:
    """Return some rows of a table, and their weights."""
    part = Codes(codes.domain, codes.array[which])
    return part, None if weights is None else weights[which]


def hiding_cells(
    codes: Codes,
    weights: np.ndarray | None,
    hidden: np.ndarray,
    plan: FitPlan,
    scoring: str = "likelihood",
    patience: int = PATIENCE,
) -> FitData:
    """Return what is fitted with cells of it hidden, and those cells as what is held out."""
    if hidden.shape != codes.array.shape:
        raise JointPMFError(
            f"validation cells of shape {hidden.shape} do not fit a table of {codes.array.shape}"
        )
    visible = Codes(codes.domain, np.where(hidden, MISSING, codes.array))
    check_table(visible, weights)
    data = FitData.of_codes(visible, weights)
    known = Codes(codes.domain, np.where(_unknown(codes, data.rows, plan), MISSING, codes.array))
    cells = HeldOutCells(known, hidden, weights, scoring, patience)
    if not len(cells):
        what = "observed" if scoring == "likelihood" else "observed and has a value"
        raise JointPMFError(f"no cell of the validation part is {what}")
    return replace(data, held_out=cells)


def check_table(codes: Codes, weights: np.ndarray | None) -> None:
    """Raise unless every column has an observed cell in a row that counts."""
    if not codes.n_rows or not len(codes.domain):
        raise JointPMFError("the table is empty: there is nothing to fit")
    counts = np.ones(codes.n_rows, bool) if weights is None else weights > 0
    if not counts.any():
        raise JointPMFError("all sample weights are zero")
    seen = [bool(((column >= 0) & counts).any()) for column in codes.columns]
    if not all(seen):
        unseen = [n for n, is_seen in zip(codes.domain.names, seen, strict=True) if not is_seen]
        raise JointPMFError(f"column {listing(unseen)} has no observed cell")
