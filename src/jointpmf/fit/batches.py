"""Fits to tables that come in batches: counted, or seen once, or kept in a file and seen again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jointpmf.compiled.cells import n_observed
from jointpmf.data.encoding import Codes, LevelUnion, check_is_domain, encode
from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, at_least_zero, one_of, shown, whole_number
from jointpmf.fit.plan import FitData, FitPlan, check_table
from jointpmf.fit.rows import LIKELIHOOD_STARTS, loop_options
from jointpmf.fit.subsets import check_countable, fit_counted
from jointpmf.marginals.marginal_set import MarginalCounts, names_of_order
from jointpmf.pmf import JointPMF, seeded_generator
from jointpmf.rows.parts import (
    PartedRows,
    check_levels,
    fit_from,
    fit_parted_rows,
    fit_to_sample,
    sample_size,
)
from jointpmf.rows.spool import Spool
from jointpmf.rows.table import ColumnRows
from jointpmf.solvers.loop import Callback, Solution, Status
from jointpmf.solvers.starts.candidates import checked_start, mixed
from jointpmf.solvers.stepwise import STEP_ROWS, Stepwise
from jointpmf.threads import one_blas_thread

logger = logging.getLogger("jointpmf")

MIXED_BLOCKS = 4
"""Blocks of a spool that are mixed before steps are made of them: neighbours are often alike."""

STEPS_LIFT = 1e-4
"""Part of the marginals in a start that steps over all rows have found: nothing may be zero."""


def fit_batches(
    batches: Any,
    rank: int,
    *,
    method: str = "likelihood",
    order: int = 3,
    domain: Domain | None = None,
    start: str | JointPMF = "auto",
    smoothing: float = 0.0,
    towards: str = "uniform",
    max_iter: int = 2000,
    tol: float = 1e-10,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Solution:
    """Return the joint PMF of a table that comes in batches and need not fit in memory.

    Parameters
    ----------
    batches : iterable of tables, or a callable that returns one
        Each is anything that `encode` takes, of any number of rows; a column that a batch lacks is
        missing there. A list, or a callable that returns a fresh iterator each time, can be read
        again: then the levels are learned in a first reading, and after the last reading the codes,
        a byte or few per cell, are in a temporary file that EM reads as often as it needs. An
        iterator can be read once: then every row is used once, so let rows come in random order.
    rank : int
        Number of components.
    method : {"likelihood", "marginals"}
        Maximum likelihood, or a least-squares fit to counted marginals, each weighted by the rows
        that it was counted over; only the counts are held in memory.
    order : int
        Of the marginals, for that method.
    domain : Domain, optional
        What can happen; an iterator needs it.
    start : {"auto", "rows", "factors", "random"} or JointPMF
        As in `fit_rows`, found on a sample of the rows, or on the first rows of an iterator. With
        the method "marginals" as in `fit_marginals`.
    smoothing, towards
        As in `fit_rows`.
    max_iter, tol : int, float
        As in `fit_rows`, of the passes over all rows; an iterator has only one.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits, whatever the number of threads and however the rows are
        split into batches.
    callback : callable, optional
        Called as `callback(step, pmf)` after every iteration, or every step of a fit in one pass;
        returning True stops.

    Returns
    -------
    Solution
        As of `fit_rows`. After one pass its status is ONE_PASS, and its objective is minus the mean
        log-likelihood of rows under the model as it was when they came.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4] * 6), rank=2, random_state=0)
    >>> batches = [truth.sample(500, random_state=seed) for seed in range(4)]
    >>> jp.fit_batches(batches, rank=2, random_state=0).status.name
    'CONVERGED'
    >>> stream = (truth.sample(20_000, random_state=seed) for seed in range(4))
    >>> jp.fit_batches(stream, rank=2, domain=truth.domain, random_state=0).status.name
    'ONE_PASS'
    """
    rank = whole_number(rank, "the rank", 1)
    one_of(method, ("likelihood", "marginals"), "method")
    towards = one_of(towards, ("uniform", "marginal"), "towards")
    smoothing = at_least_zero(smoothing, "smoothing")
    options = loop_options(max_iter, tol, callback)
    source = _Batches(batches)
    domain = source.learned_domain() if domain is None else domain
    check_is_domain(domain)
    if method == "marginals":
        if smoothing:
            raise JointPMFError("smoothing belongs to method='likelihood'")
        check_countable(domain, order)
        counts = MarginalCounts(domain, names_of_order(domain, order))
        for codes in source.codes(domain):
            counts.add(codes)
        return fit_counted(
            counts.to_marginals(), rank, start=start, random_state=random_state, **options
        )
    begin = checked_start(start, LIKELIHOOD_STARTS, domain, rank, "table's")
    plan = FitPlan(rank, begin, smoothing, towards, options)
    generator = seeded_generator(random_state)
    with one_blas_thread:
        if source.is_read_once:
            return _fit_in_one_pass(_Stream(domain, source.codes(domain)), plan, generator)
        with Spool(domain) as spool:
            for codes in source.codes(domain):
                spool.add(codes)
            return fit_spool(spool, plan, generator)


class _Batches:
    """Tables that come one after the other, once or as often as one likes."""

    def __init__(self, batches: Any) -> None:
        is_table = isinstance(batches, (str, bytes, Mapping, np.ndarray, Codes))
        if is_table or hasattr(batches, "columns") or hasattr(batches, "codes"):
            raise JointPMFError(
                f"batches must be an iterable of tables, such as [table], not the "
                f"{type(batches).__name__} itself"
            )
        if not callable(batches) and not isinstance(batches, Iterable):
            raise JointPMFError(f"batches must be an iterable of tables, not {shown(batches)}")
        self._batches: Iterable[Any] | Callable[[], Iterable[Any]] = batches
        self.is_read_once = isinstance(batches, Iterator)
        self._n_rows: int | None = None

    def _tables(self) -> Iterator[Any]:
        tables = self._batches() if callable(self._batches) else self._batches
        if not isinstance(tables, Iterable):
            raise JointPMFError(
                f"the callable must return an iterable of tables, not {shown(tables)}"
            )
        return iter(tables)

    def learned_domain(self) -> Domain:
        """Return the domain of all batches, which are then read a second time."""
        if self.is_read_once:
            raise JointPMFError(
                "batches that can be read only once, such as a generator, need a domain: pass "
                "domain=, or a list of tables, or a function that returns a new generator"
            )
        union, n_rows = LevelUnion(), 0
        for k, table in enumerate(self._tables()):
            try:
                n_rows += union.add(table)
            except JointPMFError as error:
                raise JointPMFError(f"batch {k}: {error}") from None
        self._n_rows = n_rows
        return union.domain()

    def codes(self, domain: Domain) -> Iterator[Codes]:
        """Yield the codes of each batch."""
        n_rows = 0
        for k, table in enumerate(self._tables()):
            try:
                codes = encode(table, domain)
            except JointPMFError as error:
                raise JointPMFError(f"batch {k}: {error}") from None
            n_rows += codes.n_rows
            yield codes
        if not n_rows and not self._n_rows:
            raise JointPMFError("the batches are empty: there is nothing to fit")
        if self._n_rows not in (None, n_rows):
            raise JointPMFError(
                f"the batches had {self._n_rows} rows when they were read first and {n_rows} when "
                "they were read again; a callable must return a new iterator each time"
            )


class _Stream:
    """Rows of codes that come once, taken as many at a time as one likes."""

    def __init__(self, domain: Domain, batches: Iterator[Codes]) -> None:
        self.domain = domain
        self._batches = batches
        self._waiting: list[np.ndarray] = []

    def take(self, n_rows: int) -> Codes:
        """Return the next rows: so many, or fewer at the end."""
        while sum(map(len, self._waiting)) < n_rows:
            codes = next(self._batches, None)
            if codes is None:
                break
            says_something = n_observed(codes.columns) > 0
            whole = says_something.all()
            self._waiting.append(codes.array if whole else codes.array[says_something])
        first, *others = self._waiting or [np.empty((0, len(self.domain)))]
        rows = np.concatenate([first, *others]) if others else first  # a large one is not copied
        self._waiting = [rows[n_rows:]] if len(rows) > n_rows else []
        return Codes(self.domain, rows[:n_rows])


def _fit_in_one_pass(stream: _Stream, plan: FitPlan, generator: np.random.Generator) -> Solution:
    """Return the model of rows that come once: a fit to the first of them, and steps from it."""
    size = sample_size(stream.domain)
    first = stream.take(size + 1)
    if first.n_rows <= size:
        check_table(first, None)
        return plan.run(FitData.of_codes(first, None), generator)
    data = FitData.of_codes(first, None)
    found = fit_to_sample(data, plan, generator)
    if found.status is Status.STOPPED:
        return found
    steps = Stepwise(plan, data.rows, found.pmf, found.start)
    try:
        while (codes := stream.take(STEP_ROWS)).n_rows:
            if steps.add(ColumnRows.of_codes(codes)):
                return steps.solution(Status.STOPPED)
    except KeyboardInterrupt:
        return steps.solution(Status.STOPPED)
    check_levels(stream.domain, steps.seen)
    return steps.solution()


def fit_spool(spool: Spool, plan: FitPlan, generator: np.random.Generator) -> Solution:
    """Return the maximum-likelihood fit to rows in a file: of a sample, in steps, then by EM.

    The steps are one pass over all rows, after which few passes of EM are left to do.
    """
    begin = time.perf_counter()
    spool.finish()
    rows = PartedRows(spool)
    size = sample_size(spool.domain)
    is_given = isinstance(plan.start, JointPMF)
    if is_given or not plan.options["max_iter"] or rows.levels.n_rows <= size:
        return fit_parted_rows(rows, plan, generator)
    check_levels(rows.domain, rows.levels.counts)
    sample, weights = rows.sample(size, int(generator.integers(2**31)))
    data = FitData.of_codes(sample, weights)
    found = fit_to_sample(data, plan, generator)
    if found.status is Status.STOPPED:
        return found
    logger.info("a model of %d rows of a sample was found", sample.n_rows)
    quiet = replace(plan, options=plan.options | {"callback": None})
    steps = Stepwise(quiet, data.rows, found.pmf, found.start)
    try:
        for some in _mixed_steps(spool, generator):
            steps.add(some)
    except KeyboardInterrupt:
        return steps.solution(Status.STOPPED)
    logger.info("all rows were seen once, in %d steps", len(steps.history))
    point = mixed(steps.point(), rows.marginal, STEPS_LIFT)
    return fit_from(rows, plan, point, f"{found.start}, then in steps", begin)


def _mixed_steps(spool: Spool, generator: np.random.Generator) -> Iterator[ColumnRows]:
    """Yield rows for steps, each from several blocks of a file that may be sorted."""
    order = generator.permutation(spool.n_parts)
    for begin in range(0, len(order), MIXED_BLOCKS):
        parts = [part.rows for part in spool.parts(order[begin : begin + MIXED_BLOCKS].tolist())]
        columns = np.concatenate([part.columns for part in parts], axis=1)
        weights = np.concatenate([part.weights for part in parts])
        n_steps = -(-len(weights) // STEP_ROWS)
        for k in range(n_steps):
            some = np.ascontiguousarray(columns[:, k::n_steps])
            yield ColumnRows(spool.domain, some, weights[k::n_steps].copy())
