"""What a fit will cost before it is begun: passes, memory, work, and seconds on this machine.

The time of a pass is not guessed from the machine's name: a small table of the same width goes
through the same compiled loops, for about half a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jointpmf.counting import count_tables
from jointpmf.domain import Domain
from jointpmf.encoding import Codes, code_dtype
from jointpmf.errors import JointPMFError, one_of, whole_number
from jointpmf.fit_plan import START_WORK
from jointpmf.marginals import MarginalSet, names_of_order
from jointpmf.solvers.aoadmm import AOADMM
from jointpmf.solvers.em import EM
from jointpmf.solvers.implicit import FEW_COUNTED, ImplicitLeastSquares
from jointpmf.solvers.objective import CoupledLeastSquares, Point
from jointpmf.solvers.rows import MOST_LISTED, ColumnRows, Rows, cell_dtype
from jointpmf.solvers.starts import N_COMPLETED, random_point
from jointpmf.subsets import is_better_implicit, n_table_cells
from jointpmf.threads import one_blas_thread

PROBE_SECONDS = 0.25
"""How long each of two things is tried on the machine."""

PROBE_WORK, PROBE_ROWS = 2**23, 2**13
"""Cells times components of the table that it is tried with, and its rows at least: all threads
must have something to do."""

PROBE_VARIABLES = 24
"""Variables of which all tables are counted, where it is tried with tables."""

EM_PASSES = 2
"""Passes of an EM iteration: one at the next model, one at the extrapolated."""

SWEEP_PASSES = 2
"""Passes of an implicit sweep: one for the sums by level, one to bring the rows up to date."""


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
    seconds_per_pass, seconds : float
        Of one pass, and of the whole fit with its start, on this machine.

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
    seconds: float

    def __str__(self) -> str:
        """Return the plan as a few lines."""
        return "\n".join(
            [
                self.what,
                f"  way      {self.how}",
                f"  passes   {self.passes} for {self.n_iter} iterations",
                f"  memory   {_bytes(self.memory)}, of which codes {_bytes(self.code_bytes)}",
                f"  work     {self.flops_per_pass:.1e} flops a pass",
                f"  time     {_time(self.seconds_per_pass)} a pass, {_time(self.seconds)} in all "
                "on this machine",
            ]
        )


def plan(
    n_rows: int,
    n_variables: int,
    levels: int,
    rank: int,
    method: str = "likelihood",
    order: int = 3,
    n_iter: int = 100,
) -> Plan:
    """Return what a fit to complete rows will cost on this machine.

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
    def domain(self) -> Domain:
        return Domain.of_sizes([self.levels] * self.n_variables)

    @property
    def code_bytes(self) -> float:
        return float(self.n_cells * np.dtype(code_dtype(self.levels)).itemsize)

    @property
    def width(self) -> int:
        """Components, padded to whole vectors."""
        return -(-self.rank // 4) * 4

    def __str__(self) -> str:
        return (
            f"{self.n_rows} rows of {self.n_variables} variables with {self.levels} levels, "
            f"rank {self.rank}"
        )

    def probe(self, n_variables: int | None = None) -> tuple[Codes, int]:
        """Return a small table of the same width, and how many rows it has."""
        n_variables = n_variables or self.n_variables
        n_rows = min(max(PROBE_WORK // (n_variables * self.rank), PROBE_ROWS), self.n_rows)
        generator = np.random.default_rng(0)
        shape = (n_variables, n_rows)
        columns = generator.integers(0, self.levels, shape, dtype=code_dtype(self.levels))
        return Codes(Domain.of_sizes([self.levels] * n_variables), columns.T), n_rows

    def planned(
        self,
        how: str,
        n_iter: int,
        passes: int,
        memory: float,
        flops: float,
        one: float,
        all_: float,
    ) -> Plan:
        return Plan(str(self), how, n_iter, passes, memory, self.code_bytes, flops, one, all_)


def _likelihood(table: _Table, n_iter: int) -> Plan:
    codes, n_rows = table.probe()
    cell_bytes = table.n_cells * np.dtype(cell_dtype(table.domain)).itemsize
    is_listed = cell_bytes <= MOST_LISTED
    rows = (Rows if is_listed else ColumnRows).of_codes(codes)
    expectation = EM(rows, table.rank).expectation
    stack = expectation.stack(_somewhere(codes.domain, table.rank))
    per_row = _seconds(lambda: expectation.counts(stack)) / n_rows
    one = per_row * table.n_rows
    work = table.n_cells * table.rank
    start = min(one * 100 * 4, START_WORK * one / work)
    memory = table.code_bytes + is_listed * (cell_bytes + 16.0 * table.n_rows)
    memory += 16.0 * table.n_rows + 40 * 8.0 * table.n_variables * table.levels * table.width
    passes = EM_PASSES * n_iter
    return table.planned(
        "maximum likelihood by EM", n_iter, passes, memory, 3.0 * table.n_cells * table.width,
        one, start + passes * one,
    )  # fmt: skip


def _implicit(table: _Table, order: int, n_iter: int) -> Plan:
    codes, n_rows = table.probe()
    problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), table.rank, order)
    point = _somewhere(codes.domain, table.rank)
    solver = AOADMM(problem)
    state = solver.start(point)
    blocks = _seconds(lambda: [None for _ in problem.sweep(point)])
    sweep = _seconds(lambda: solver.step(state))
    per_block = max(sweep - blocks, 0.0)  # ADMM does not depend on the rows
    one = blocks / n_rows * table.n_rows / SWEEP_PASSES
    memory = table.code_bytes + 8.0 * table.n_rows * (order * table.width + 2)
    start = 2 * N_COMPLETED * one + 1e-9 * FEW_COUNTED
    flops = 2.0 * (order + 1) * table.n_cells * table.width
    passes = SWEEP_PASSES * n_iter
    return table.planned(
        f"marginals of order {order}, implicitly from the rows", n_iter, passes, memory, flops,
        one, start + passes * one + n_iter * per_block,
    )  # fmt: skip


def _counted(table: _Table, order: int, n_iter: int) -> Plan:
    n_variables = min(table.n_variables, max(PROBE_VARIABLES // (order - 1), order))
    codes, n_rows = table.probe(n_variables)
    subsets = [tuple(codes.domain.index(name) for name in names)
               for names in names_of_order(codes.domain, order)]  # fmt: skip
    per_count = _seconds(lambda: count_tables(codes, subsets, None)) / (n_rows * len(subsets))
    problem = CoupledLeastSquares(MarginalSet.from_table(codes, order), table.rank, "counts")
    solver = AOADMM(problem)
    state = solver.start(_somewhere(codes.domain, table.rank))
    tried = n_table_cells(codes.domain.sizes, order)
    n_cells = n_table_cells((table.levels,) * table.n_variables, order)
    one = _seconds(lambda: solver.step(state)) / tried * n_cells
    n_subsets = n_table_cells((1,) * table.n_variables, order)
    counting = per_count * n_subsets * table.n_rows
    return table.planned(
        f"{n_subsets:.0f} marginals of order {order}, counted in one pass over the rows", n_iter,
        n_iter, table.code_bytes + 24.0 * n_cells, 4.0 * n_cells * table.width, one,
        counting + 10 * one + n_iter * one,
    )  # fmt: skip


def _somewhere(domain: Domain, rank: int) -> Point:
    return random_point(domain, rank, np.random.default_rng(0))


def _seconds(run: Callable[[], object]) -> float:
    """Return the least time that something takes, of as many runs as half a second allows."""
    run()  # compiled by now
    times: list[float] = []
    while not times or (sum(times) < PROBE_SECONDS and len(times) < 20):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


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
