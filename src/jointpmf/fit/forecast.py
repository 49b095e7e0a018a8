"""What a fit will cost before it is begun: passes, memory, work, and seconds on this machine.

The time is not guessed from the machine's name: the steps that the fit would make are made on a
smaller table like the one asked about, for about half a second, and counted by the rules of the
fit itself. Its rows are drawn from a random model of the rank, so that they repeat as rows do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice, pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpstrf

from jointpmf.compiled.cells import cell_dtype
from jointpmf.compiled.jit import LANES
from jointpmf.data.codes import Codes, code_dtype
from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, one_of, whole_number
from jointpmf.fit.coupled import FEW_SWEEPS, MANY_PARAMETERS, MANY_SWEEPS
from jointpmf.fit.plan import CANDIDATE_STEPS, MAX_CANDIDATES, affordable_starts
from jointpmf.fit.subsets import MOST_TABLES, N_RANDOM, is_better_implicit
from jointpmf.judge.identifiability import MAX_PARAMETERS, N_POINTS
from jointpmf.marginals.counting import count_tables
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.marginals.orders import n_table_cells
from jointpmf.marginals.tables import TableLimits
from jointpmf.pmf import JointPMF, random_pmf
from jointpmf.point import Point
from jointpmf.rows.table import CHUNK_BYTES, MAX_CHUNKS, MOST_LISTED, ColumnRows, Rows
from jointpmf.solvers.aoadmm import AOADMM
from jointpmf.solvers.curvature import Curvature
from jointpmf.solvers.em import EM
from jointpmf.solvers.implicit import (
    AT_ONCE,
    CELLS_AT_ONCE,
    FEWEST_KEPT,
    MOST_KEPT,
    ImplicitLeastSquares,
    bytes_of_sums,
    group_bounds,
    n_counted_subsets,
)
from jointpmf.solvers.jacobian import is_determined
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Status, iterate
from jointpmf.solvers.newton import LARGEST_FACTORISED, MAX_CG, Newton
from jointpmf.solvers.starts.algebraic import MAX_STACK, algebraic_start
from jointpmf.solvers.starts.candidates import MAX_COUNTED, MAX_STACKED, N_COMPLETED, SURPLUS
from jointpmf.solvers.starts.closed_form import point_in_closed_form
from jointpmf.solvers.starts.of_rows import can_merge, point_at_rows, point_of_merged_rows
from jointpmf.solvers.starts.random import random_point
from jointpmf.solvers.symmetric import CHUNK_WORK, SymmetricSums
from jointpmf.threads import n_threads, one_blas_thread

PROBE_SECONDS = 0.03
"""How long each of some ten things is tried on the machine, unless one run takes longer."""

PROBE_WORK, PROBE_ROWS, MOST_PROBED = 2**22, 2**12, 2**16
"""Cells times components of the table that EM is tried with; its rows at least, so that all
threads have something to do, and at most."""

PROBE_VARIABLES, PROBE_SUBSETS, PROBE_PARAMETERS, PROBE_CELLS = 1000, 300, 600, 2**20
"""Variables of the widest table that is tried; subsets, parameters and cells of tables where these
decide how long a step takes."""

COUNTED_VARIABLES = 40
"""Variables among which subsets are counted: those that differ in one variable share work."""

TOL = 1e-10
"""When a fit has converged, unless asked otherwise."""

EM_PASSES = 2
"""Passes of an EM iteration: one at the next model, one at the extrapolated."""

N_KINDS = 3
"""Kinds of starts that take turns; every first is made of merged rows."""

SWEEP_PASSES = 2
"""Passes of an implicit sweep: one for the sums by level, one to bring the rows up to date."""

N_AGREEING = 2
"""Runs after which a fit to counted marginals mostly ends: two agree on the best."""

N_SETTLING, N_SOLVED = 8, 2
"""Second-order steps that are tried at most, after a first which is unlike the others; and linear
systems that a step solves on average, as levels are emptied and steps are damped more."""

FIXED_BYTES, TABLE_BYTES, SUBSET_BYTES, N_SQUARES = 3e5, 1000.0, 130.0, 3
"""Memory of any fit; of a counted table besides its cells, and of a subset that is listed; and
copies of JᵀJ that are held at once."""

CONSIDERABLE = 0.1
"""Part of the time from which on that before the first iteration is told."""


@dataclass(frozen=True)
class Plan:
    """What a fit will cost; its text is for people.

    Attributes
    ----------
    what, how : str
        The table and the model; the way that the library would choose.
    n_iter, passes : int
        Iterations that were asked about, and the passes over the table that they take.
    memory : float
        Bytes that the fit holds at most, the codes included.
    code_bytes : float
        Bytes of the codes alone.
    flops_per_pass : float
        Additions and multiplications of a pass.
    seconds_per_pass, start_seconds, seconds : float
        Of one pass, of all that comes before the first iteration, and of the whole fit, on this
        machine.

    Examples
    --------
    >>> import jointpmf as jp
    >>> print(str(jp.plan(1000, 5, 3, rank=2)).splitlines()[0])
    1000 rows of 5 variables with 3 levels, rank 2
    """

    what: str
    how: str
    n_iter: int
    passes: int
    memory: float
    code_bytes: float
    flops_per_pass: float
    seconds_per_pass: float
    start_seconds: float
    seconds: float

    def __str__(self) -> str:
        """Return the plan as a few lines."""
        lines = [
            self.what,
            f"  way      {self.how}",
            f"  passes   {self.passes} for {self.n_iter} iterations",
            f"  memory   {_bytes(self.memory)}, of which codes {_bytes(self.code_bytes)}",
            f"  work     {self.flops_per_pass:.1e} flops a pass",
            f"  time     {_time(self.seconds_per_pass)} a pass, {_time(self.seconds)} in all "
            "on this machine",
        ]
        if self.start_seconds > CONSIDERABLE * self.seconds:
            lines.append(f"           {_time(self.start_seconds)} of it before the first iteration")
        return "\n".join(lines)


def plan(
    n_rows: int,
    n_variables: int,
    levels: int,
    rank: int,
    method: str = "likelihood",
    order: int = 3,
    n_iter: int = 100,
) -> Plan:
    """Return what a fit to complete rows will cost on this machine, tried for about half a second.

    How soon starts converge is that of rows drawn from a model of the rank, unless so many
    iterations are expected that none can.

    Parameters
    ----------
    n_rows, n_variables, levels : int
        The size of the table: rows, variables, and levels of each of them.
    rank : int
        Number of components.
    method : {"likelihood", "marginals"}
        As in `fit_rows`.
    order : int
        Of the marginals, for that method.
    n_iter : int
        Iterations that the fit is expected to take.

    Examples
    --------
    >>> import jointpmf as jp
    >>> found = jp.plan(10**6, 50, 5, 10)
    >>> found.passes, found.code_bytes
    (200, 50000000.0)
    """
    n_rows = whole_number(n_rows, "n_rows", 1)
    n_variables = whole_number(n_variables, "n_variables", 1)
    levels = whole_number(levels, "levels", 1)
    rank = whole_number(rank, "the rank", 1)
    n_iter = whole_number(n_iter, "n_iter", 0)
    one_of(method, ("likelihood", "marginals"), "method")
    table = _Table(n_rows, n_variables, levels, rank)
    with one_blas_thread:
        if method == "likelihood":
            return _likelihood(table, n_iter)
        order = whole_number(order, "the order", 2)
        if order > n_variables:
            raise JointPMFError(f"the order {order} is larger than the {n_variables} variables")
        if is_better_implicit((levels,) * n_variables, n_rows, 1, rank, order):
            return _implicit(table, order, n_iter)
        return _counted(table, order, n_iter)


@dataclass(frozen=True)
class _Table:
    n_rows: int
    n_variables: int
    levels: int
    rank: int

    @property
    def n_cells(self) -> int:
        return self.n_rows * self.n_variables

    @property
    def code_bytes(self) -> float:
        return float(self.n_cells * np.dtype(code_dtype(self.levels)).itemsize)

    @property
    def listed_bytes(self) -> float:
        """Memory of the list of a row's cells, whose type depends on the number of levels."""
        cell = np.dtype(cell_dtype(self.n_variables * self.levels))
        return float(cell.itemsize * self.n_variables)

    @property
    def n_parameters(self) -> int:
        return self.rank * (1 + self.n_variables * self.levels)

    @property
    def n_free(self) -> int:
        """Feasible directions: every column, and the weights, sum to one."""
        return max(self.rank * (1 + self.n_variables * (self.levels - 1)) - 1, 1)

    @property
    def width(self) -> int:
        """Components, padded to whole vectors."""
        return -(-self.rank // LANES) * LANES

    @property
    def model_bytes(self) -> float:
        return 8.0 * self.n_variables * self.levels * self.width

    def __str__(self) -> str:
        return (
            f"{self.n_rows} rows of {self.n_variables} variables with {self.levels} levels, "
            f"rank {self.rank}"
        )

    def n_subsets(self, order: int) -> int:
        return math.comb(self.n_variables, order)

    def n_table_cells(self, order: int) -> float:
        return n_table_cells((self.levels,) * self.n_variables, order)

    def cells_held(self, order: int) -> int:
        """Return the cells of a table that are in memory: of a large one, those that were seen."""
        n_cells = int(self.levels**order)
        return n_cells if n_cells < TableLimits.smallest_sparse else min(n_cells, self.n_rows)

    def narrow(self, order: int) -> _Table:
        """Return a table of so few variables that all of its subsets are quickly looked at."""
        count = min(order, self.n_variables)
        while count < self.n_variables:
            wider = replace(self, n_variables=count + 1)
            if (
                wider.n_subsets(order) > PROBE_SUBSETS
                or wider.n_parameters > PROBE_PARAMETERS
                or wider.n_table_cells(order) > PROBE_CELLS
            ):
                break
            count += 1
        return replace(self, n_variables=count)

    def is_unique(self, order: int) -> bool:
        """Tell whether all marginals of an order determine a model, which is expected of triples.

        Pairs never do: the components can be mixed.
        """
        n_equations = sum(n_table_cells((self.levels - 1,) * self.n_variables, k)
                          for k in range(1, order + 1))  # fmt: skip
        return self.n_free <= n_equations and (order > 2 or self.rank == 1)


class _Probe:
    """A random model of a table's kind, and rows drawn from it."""

    def __init__(self, table: _Table, n_rows: int, n_variables: int) -> None:
        self.table, self.n_rows = table, min(n_rows, table.n_rows)
        domain = Domain.of_sizes([table.levels] * n_variables)
        self.model: JointPMF = random_pmf(domain, table.rank, 0)
        self.codes = Codes(domain, self.model.sample(self.n_rows, random_state=0, backend="codes"))
        self.wider = table.n_variables / n_variables
        self.larger = self.wider * table.n_rows / self.n_rows

    def head(self, n_rows: int) -> Codes:
        return Codes(self.codes.domain, self.codes.array[:n_rows])

    @cached_property
    def n_distinct(self) -> int:
        """How many distinct rows the table is expected to have.

        That is the sum over all possible rows of the chance to be seen, and thereby the mean over
        rows that were drawn of that chance divided by their probability.
        """
        if self.wider > 1:
            return self.table.n_rows
        p = np.maximum(self.model.probability(self.codes), 1e-300)
        chances = -np.expm1(self.table.n_rows * np.log1p(-np.minimum(p, 1 - 1e-16)))
        return max(min(round(float(np.mean(chances / p))), self.table.n_rows), 1)

    def for_all_rows(self, run: Callable[[Codes], object]) -> float:
        """Return the time of something for all rows of the table, part of which is for none."""
        few = max(self.n_rows // 4, 1)
        small, large = (_seconds(lambda c=c: run(c)) for c in (self.head(few), self.codes))  # type: ignore[misc]
        per_row = max(large - small, 0.0) / max(self.n_rows - few, 1)
        return large + per_row * (self.table.n_rows - self.n_rows)


def _likelihood(table: _Table, n_iter: int) -> Plan:
    rank, generator = table.rank, np.random.default_rng(0)
    probe = _probe_of_rows(table)
    n_distinct = probe.n_distinct
    is_listed = table.n_rows * table.listed_bytes <= MOST_LISTED or 2 * n_distinct <= table.n_rows
    made: Callable[[Codes], Rows | ColumnRows]
    made = Rows.of_codes if is_listed else ColumnRows.as_they_are
    finding = _seconds(lambda: made(probe.codes).marginal) * probe.larger
    rows = made(probe.codes)

    count, n_tried = affordable_starts(n_distinct, n_distinct * table.n_variables, rank)
    are_all_tried = count == MAX_CANDIDATES
    point = point_at_rows(rows, rank, generator) if are_all_tried else Point.of_pmf(probe.model)
    step, n_steps = _em_steps(rows, rank, point)
    if n_iter >= CANDIDATE_STEPS:
        n_steps = CANDIDATE_STEPS  # no start can have converged
    elif n_steps < CANDIDATE_STEPS and not are_all_tried:
        count = 1  # the first start agrees with the closed form
    merging = 0.0
    if rank > 1 and can_merge(rows.domain, rank):
        merging = _seconds(lambda: point_of_merged_rows(rows, rank, generator))
    closed_form = _closed_form_seconds(table) if rank > 1 else None
    n_runs = count if closed_form is None else count + 1
    ending = _seconds(lambda: point.to_pmf(rows.domain)) * probe.wider
    per_row = probe.wider / len(rows)
    trying = n_runs * (n_steps + 1 / EM_PASSES) * step + -(-count // N_KINDS) * merging
    start = finding + (closed_form or 0.0) + trying * per_row * n_tried + (n_runs + 1) * ending
    iteration = step * per_row * n_distinct

    return Plan(
        str(table), "maximum likelihood by EM", n_iter, EM_PASSES * n_iter,
        _likelihood_bytes(table, n_distinct, n_tried, is_listed), table.code_bytes,
        3.0 * n_distinct * table.n_variables * table.width, iteration / EM_PASSES, start,
        start + (n_iter + 1 / EM_PASSES) * iteration + ending,
    )  # fmt: skip


def _probe_of_rows(table: _Table) -> _Probe:
    """Return rows of which every thread has some, of as many variables as is then affordable."""
    n_rows = min(max(PROBE_WORK // (table.n_variables * table.rank), PROBE_ROWS), MOST_PROBED)
    widest = max(PROBE_WORK // (min(n_rows, table.n_rows) * table.rank), 3)
    return _Probe(table, n_rows, min(table.n_variables, widest, PROBE_VARIABLES))


def _em_steps(rows: Rows | ColumnRows, rank: int, point: Point) -> tuple[float, int]:
    """Return the time of an EM step, and how many of them a start is given."""
    em = EM(rows, rank)
    state = em.start(point)
    step = _seconds(lambda: em.step(state))
    n_steps = min(int(4 * PROBE_SECONDS / step), CANDIDATE_STEPS)
    run = iterate(em, point, max_iter=n_steps, tol=TOL)
    if run.n_iter:
        step = (run.history[-1].seconds - run.history[0].seconds) / run.n_iter
    return step, run.n_iter if run.status is Status.CONVERGED else CANDIDATE_STEPS


def _likelihood_bytes(table: _Table, n_distinct: int, n_tried: int, is_listed: bool) -> float:
    model = SURPLUS * table.model_bytes
    fixed = min(MAX_CHUNKS * model, CHUNK_BYTES) + 10 * model
    cells = n_distinct * table.listed_bytes * is_listed
    counting = 16.0 * n_tried * table.n_variables  # the start asks how often each level occurs
    sorting = 66.0 * table.n_rows * is_listed
    listing = min(FIXED_BYTES, 4e4 + table.n_rows * table.listed_bytes)
    most = max(sorting, cells + counting + 40.0 * n_distinct)
    return listing + table.code_bytes + fixed + most


def _implicit(table: _Table, order: int, n_iter: int) -> Plan:
    rank = table.rank
    narrow = table.narrow(order)
    probe = _Probe(table, PROBE_ROWS, narrow.n_variables)
    problem = ImplicitLeastSquares(ColumnRows.as_they_are(probe.codes), rank, order)
    n_counted = _n_counted(table, order)
    start = n_counted * _counting_seconds(table, order)

    wide = _wide_probe(table, order)
    passes, own = _row_passes(wide, order), _row_passes(probe, order)
    sweeps = AOADMM(problem)
    state = sweeps.start(_somewhere(problem.domain, rank))
    admm = max(_seconds(lambda: sweeps.step(state)) - own.sweep, 0.0)
    sweep = wide.larger * passes.sweep + probe.wider * admm
    newton, point = Newton(problem), Point.of_pmf(probe.model)
    solving = max(_newton_seconds(newton, point) - own.gradient, 0.0)
    curvature, vector = newton.curvature_at(point), np.ones(narrow.n_parameters)
    solving += N_SOLVED * MAX_CG * (probe.wider - 1) * _seconds(lambda: curvature.times(vector))
    gradient = wide.larger * passes.gradient

    closed_form = _closed_form_seconds(table, MAX_COUNTED)
    if closed_form is not None:
        start += N_COMPLETED * (closed_form + 2 * gradient)
    if table.n_subsets(order) <= MOST_TABLES:
        start += _uniqueness_seconds(table, order)
    n_runs = N_RANDOM if closed_form is None else 1
    n_sweeps = min(n_iter, _n_sweeps(table))
    iterating = n_runs * (n_sweeps * sweep + (n_iter - n_sweeps) * (gradient + solving))
    return Plan(
        str(table), f"marginals of order {order}, implicitly from the rows", n_iter,
        SWEEP_PASSES * n_iter * n_runs, _implicit_bytes(table, order, n_counted), table.code_bytes,
        2.0 * (order + 1) * table.n_cells * table.width, wide.larger * passes.sweep / SWEEP_PASSES,
        start, start + iterating,
    )  # fmt: skip


def _n_counted(table: _Table, order: int) -> int:
    """Return how many subsets are counted for the norm."""
    n_subsets = table.n_subsets(order)
    count = n_counted_subsets(n_subsets, table.n_rows)
    if count == n_subsets:
        return count
    return min(count, max(MOST_KEPT // table.cells_held(order), FEWEST_KEPT))


def _counting_seconds(table: _Table, order: int) -> float:
    """Return the time that one of many subsets takes to be counted over all rows."""
    probe = _Probe(table, PROBE_ROWS, min(table.n_variables, COUNTED_VARIABLES))
    everything = combinations(range(len(probe.codes.domain)), order)
    subsets = list(islice(everything, PROBE_SUBSETS))

    def counted(codes: Codes) -> object:
        return count_tables(codes, subsets, np.ones(codes.n_rows))

    return probe.for_all_rows(counted) / len(subsets)


def _implicit_bytes(table: _Table, order: int, n_counted: int) -> float:
    n_held, per_cell = n_counted, 20.0 + 4 * order
    if n_counted == table.n_subsets(order):
        at_once = max(CELLS_AT_ONCE // (table.levels + 1) ** order, 1)
        n_held, per_cell = min(n_counted, AT_ONCE, at_once), 16.0
    tables = n_held * (per_cell * table.cells_held(order) + TABLE_BYTES)
    rows = table.n_rows * (24.0 + bytes_of_sums(table.rank, order, has_holes=False))
    sums = min(MAX_CHUNKS * order * table.model_bytes, CHUNK_BYTES)
    most = max(tables, _uniqueness_bytes(table, order))
    return FIXED_BYTES + table.code_bytes + rows + sums + most


def _wide_probe(table: _Table, order: int) -> _Probe:
    """Return rows of which every thread has some, as a pass over all subsets shares them out."""
    work = 2 * n_threads() * CHUNK_WORK // (order * table.width)
    n_rows = min(max(work // table.n_variables, PROBE_ROWS), MOST_PROBED)
    widest = max(work // n_rows, order)
    return _Probe(table, n_rows, min(table.n_variables, widest, PROBE_VARIABLES))


class _Passes(NamedTuple):
    """Seconds that the rows take of a sweep, and of a gradient."""

    sweep: float
    gradient: float


def _row_passes(probe: _Probe, order: int) -> _Passes:
    codes, rank = probe.codes, probe.table.rank
    n_all, offsets = len(codes.domain), codes.domain.offsets
    sums = SymmetricSums(codes.columns, offsets, np.ones(codes.n_rows), rank, order)
    factors = _somewhere(codes.domain, rank).factors
    sums.load(factors)

    def sweep() -> None:
        for begin, end in pairwise(group_bounds(n_all, order)):
            sums.without(begin, end)
            sums.exchange(begin, end, factors)

    def gradient() -> None:
        sums.load(factors)
        sums.without(0, n_all)

    return _Passes(_seconds(sweep), _seconds(gradient))


def _counted(table: _Table, order: int, n_iter: int) -> Plan:
    rank, generator = table.rank, np.random.default_rng(0)
    narrow = table.narrow(order)
    probe = _Probe(table, MOST_PROBED // 4, narrow.n_variables)
    n_subsets, n_cells = table.n_subsets(order), table.n_table_cells(order)
    more_subsets = n_subsets / narrow.n_subsets(order)
    more_cells = n_cells / narrow.n_table_cells(order)

    counting = probe.for_all_rows(lambda codes: MarginalSet.from_table(codes, order))
    marginals = MarginalSet.from_table(probe.codes, order)
    stacking = _seconds(lambda: CoupledLeastSquares(marginals, rank, "counts"))
    problem = CoupledLeastSquares(marginals, rank, "counts")
    closed_form = _seconds(lambda: algebraic_start(marginals, problem, generator))
    start = more_subsets * (counting + stacking) + probe.wider * closed_form
    start += _uniqueness_seconds(table, order)

    sweeps = AOADMM(problem)
    state = sweeps.start(_somewhere(problem.domain, rank))
    sweep = more_cells * _seconds(lambda: sweeps.step(state))
    newton = _second_order_seconds(table, narrow, problem, Point.of_pmf(probe.model), more_cells)
    n_runs = N_AGREEING if table.is_unique(order) else 1
    n_sweeps = min(n_iter, _n_sweeps(table))
    iterating = n_runs * (n_sweeps * sweep + (n_iter - n_sweeps) * newton)
    starts = f", from {n_runs} starts" if n_runs > 1 else ""
    return Plan(
        str(table), f"{n_subsets} marginals of order {order}, counted in one pass over the rows"
        f"{starts}", n_iter, n_runs * n_iter, _counted_bytes(table, order), table.code_bytes,
        4.0 * n_cells * table.width, sweep, start, start + iterating,
    )  # fmt: skip


def _counted_bytes(table: _Table, order: int) -> float:
    tables = table.n_subsets(order) * (24.0 * table.cells_held(order) + TABLE_BYTES)
    products = 16.0 * table.n_table_cells(order - order // 2) * table.width
    return FIXED_BYTES + table.code_bytes + tables + products + _uniqueness_bytes(table, order)


def _n_sweeps(table: _Table) -> int:
    """Return after how many sweeps second order takes over."""
    return MANY_SWEEPS if table.n_parameters > MANY_PARAMETERS else FEW_SWEEPS


def _newton_seconds(newton: Newton, point: Point) -> float:
    """Return the median time of second-order steps near the model, as the damping settles."""
    state = newton.step(newton.start(point))
    times: list[float] = []
    while len(times) < 2 or (sum(times) < 4 * PROBE_SECONDS and len(times) < N_SETTLING):
        begin = time.perf_counter()
        state = newton.step(state)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def _second_order_seconds(
    table: _Table, narrow: _Table, problem: CoupledLeastSquares, point: Point, more_cells: float
) -> float:
    """Return the time of a second-order step on tables, from its parts on fewer of them."""
    newton, more = Newton(problem), table.n_parameters / narrow.n_parameters
    gradient = _seconds(lambda: problem.gradient(point))
    if table.n_parameters > LARGEST_FACTORISED:
        curvature = newton.curvature_at(point)
        vector = np.ones(narrow.n_parameters)
        product = _seconds(lambda: curvature.times(vector))
        return more_cells * gradient + N_SOLVED * MAX_CG * more**2 * product
    factorising = N_SOLVED * _factorising_seconds(dpotrf, narrow.n_free)
    rest = max(_newton_seconds(newton, point) - gradient - factorising, 0.0)
    return more_cells * gradient + more**2 * rest + more**3 * factorising


def _uniqueness_seconds(table: _Table, order: int) -> float:
    """Return the time that it takes to tell whether the model is unique."""
    if table.n_parameters > MAX_PARAMETERS:
        return 0.0
    narrow = table.narrow(order)
    domain = Domain.of_sizes([table.levels] * narrow.n_variables)
    point, generator = _somewhere(domain, table.rank), np.random.default_rng(0)
    subsets = list(combinations(range(narrow.n_variables), order))
    curvature = Curvature(domain, subsets, np.ones(len(subsets)))
    whole = _seconds(lambda: is_determined(curvature, table.rank, generator))
    forming = N_POINTS * _seconds(lambda: curvature.at(point).matrix())
    factorising = N_POINTS * _factorising_seconds(dpstrf, narrow.n_free)
    rest = max(whole - forming - factorising, 0.0)
    more = table.n_parameters / narrow.n_parameters
    more_subsets = table.n_subsets(order) / len(subsets)
    return more**2 * forming + more**3 * factorising + more_subsets * rest


def _factorising_seconds(factorise: Callable[[np.ndarray], object], size: int) -> float:
    """Return the time to factorise a matrix of that size."""
    tried = min(size, PROBE_PARAMETERS)
    matrix = np.eye(tried) + 0.5
    return _seconds(lambda: factorise(matrix)) * (size / tried) ** 3


def _uniqueness_bytes(table: _Table, order: int) -> float:
    """Return the memory of JᵀJ over the feasible directions, which a second-order step has too."""
    if table.n_parameters > MAX_PARAMETERS or table.n_subsets(order) > MOST_TABLES:
        return 0.0
    return 8.0 * N_SQUARES * table.n_free**2 + SUBSET_BYTES * table.n_subsets(order)


def _closed_form_seconds(table: _Table, most: float = math.inf) -> float | None:
    """Return the time of a closed-form start, or None where it does not apply.

    It counts the triples across three groups of variables, over at most so many rows times triples.
    """
    free = table.levels - 1
    size = min(table.n_variables // 3, -(-MAX_STACK * table.rank // max(free, 1)))
    is_possible = 1 + size * free >= table.rank and (size * table.levels) ** 3 <= MAX_STACKED
    if not size or not is_possible:
        return None
    tried = min(size, round(PROBE_SUBSETS ** (1 / 3)))
    rank = min(table.rank, 1 + tried * free)
    n_rows = int(min(table.n_rows, max(most / size**3, 1)))
    probe = _Probe(replace(table, rank=rank, n_rows=n_rows), 4 * PROBE_ROWS, 3 * tried)
    generator = np.random.default_rng(0)
    one = probe.for_all_rows(lambda codes: point_in_closed_form(codes, None, rank, generator))
    return one * (size / tried) ** 3


def _somewhere(domain: Domain, rank: int) -> Point:
    return random_point(domain, rank, np.random.default_rng(0))


def _seconds(run: Callable[[], object]) -> float:
    """Return the median time that something takes, of some runs after a first."""
    run()  # compiled by now
    times = [_once(run)]
    while sum(times) < PROBE_SECONDS and len(times) < 20:
        times.append(_once(run))
    return float(np.median(times))


def _once(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s"
    if seconds < 7200:
        return f"{seconds / 60:.2g} min"
    return f"{seconds / 3600:.3g} h"
