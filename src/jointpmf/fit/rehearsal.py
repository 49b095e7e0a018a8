"""Fits that are begun on a small table, to see what they take: seconds, memory, starts."""

from __future__ import annotations

import logging
import math
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.domain import Domain
from jointpmf.fit.coupled import CoupledFit, Problem
from jointpmf.fit.settings import Effort
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.pmf import random_pmf
from jointpmf.point import Point
from jointpmf.rows.source import Table
from jointpmf.rows.table import ColumnRows
from jointpmf.solvers import em
from jointpmf.solvers.implicit import ImplicitLeastSquares, Limits
from jointpmf.solvers.jacobian import can_be_decided
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Loop, Solver, State
from jointpmf.solvers.methods import SweepsThenNewton, solver_of

logger = logging.getLogger("jointpmf")

_RATIO = 8
"""How many times as large as the smaller one the larger table is that is tried."""

_SEARCH_WORK, _SEARCH_SUBSETS = 2**19, 2000
"""Cells times components, and subsets of the variables, for which a start is found."""


class Cost(NamedTuple):
    """Seconds before a start is looked for, of early and of late iterations; rows they pass."""

    begin: float
    early: float
    late: float
    kept: float
    n_early: float = 0


class Found(NamedTuple):
    """What finding a start takes, and from how many of them a fit is run."""

    seconds: float
    memory: float
    n_runs: int = 1


def random_rows(n_variables: int, levels: int, rank: int, n_rows: int) -> Codes:
    """Return rows of a random model, which repeat as rows do."""
    model = random_pmf(Domain.of_sizes([levels] * n_variables), rank, 0)
    return Codes(model.domain, model.sample(n_rows, random_state=0, backend="codes"))


def timed_and_traced(run: Callable[[], Any]) -> tuple[Any, float, int]:
    """Return what a call returns, its seconds, and the most memory that a second call held."""
    begun = time.perf_counter()
    found = run()
    seconds, was_tracing = time.perf_counter() - begun, tracemalloc.is_tracing()
    tracemalloc.start()  # which takes time, so that calls are not timed while it is on
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    run()
    peak = tracemalloc.get_traced_memory()[1] - before
    if not was_tracing:
        tracemalloc.stop()
    return found, seconds, peak


def extended(measure: Callable[[Codes], Any], codes: Codes, n_rows: float) -> list[float]:
    """Return what is measured on some rows, and on a part of them, for another number of rows."""
    part = Codes(codes.domain, codes.array[: max(codes.n_rows // _RATIO, 1)])
    small, large = (np.array(measure(some), float) for some in (part, codes))
    growth = (large - small) / max(codes.n_rows - part.n_rows, 1)
    growth = np.clip(growth, 0.0, large / codes.n_rows)
    return (large + growth * (n_rows - codes.n_rows)).tolist()


class LikelihoodTrial:
    """Maximum likelihood by EM."""

    def begin(self, rank: int, codes: Codes) -> Cost:
        """Read a table, and iterate EM on it."""
        begun = time.perf_counter()
        table = Table.of_codes(codes)
        begin = time.perf_counter() - begun
        solver = em.EM(table, rank)
        point = Point.of_pmf(random_pmf(codes.domain, rank, 0))
        seconds, _ = _steps(solver, solver.start(point))
        return Cost(begin, seconds, seconds, table.n_rows)

    def search(self, rank: int, codes: Codes, kept: float) -> Found:
        """Return what finding a start for `kept` distinct rows takes, by searches on few rows."""
        from jointpmf.fit.likelihood import EMFit

        n_variables, real = len(codes.domain), Effort()
        few = Effort(work=0.0, rows_per_component=2**40)  # few starts, on all rows
        count = max(_SEARCH_WORK // (n_variables * rank), 100 * rank)
        loop = Loop(few.n_steps, 1e-10, lambda step, point: True)
        n_tried = few.fewest_starts + 1

        def one_start(some: Codes) -> tuple[float, float]:
            nonlocal n_tried
            fit = EMFit(rank, loop, effort=few)
            found, _, memory = timed_and_traced(
                lambda: fit.run(Table.of_codes(some), np.random.default_rng(0))
            )
            n_tried = found.n_starts
            return found.history[0].seconds / n_tried, memory

        n_starts, n_rows = real.n_starts_and_rows(int(kept), int(kept) * n_variables, rank)
        n_starts += rank > 1  # the closed form
        seconds, memory = extended(one_start, Codes(codes.domain, codes.array[:count]), n_rows)
        if n_tried <= few.fewest_starts and n_starts <= real.most_starts:
            n_starts = n_tried  # two kinds agreed
        return Found(n_starts * seconds, memory)


@dataclass(frozen=True)
class CoupledTrial:
    """A coupled fit to marginals of an order; `n_rows` is what the whole table has."""

    order: int
    is_implicit: bool
    n_rows: int

    def begin(self, rank: int, codes: Codes) -> Cost:
        """Count a table, or read it, and iterate both methods on it."""
        begun = time.perf_counter()
        problem, _, more = self._problem(rank, codes)
        begin = time.perf_counter() - begun
        solver = solver_of("auto", problem)
        assert isinstance(solver, SweepsThenNewton)
        point = Point.of_pmf(random_pmf(codes.domain, rank, 0))
        sweep, state = _steps(solver.aoadmm, solver.aoadmm.start(point))
        step, _ = _steps(solver.newton, solver.newton.start(state.point))
        return Cost(more * begin, sweep, step, codes.n_rows, solver.n_sweeps)

    def search(self, rank: int, codes: Codes, kept: float) -> Found:
        """Return what finding a start takes, and telling whether the model is unique.

        Of many variables some are tried: the time grows with the number of marginals.
        """
        width, more = len(codes.domain), 1.0
        if can_be_decided(codes.domain, rank):
            while math.comb(width, self.order) > _SEARCH_SUBSETS:
                width -= 1
            more = math.comb(len(codes.domain), self.order) / math.comb(width, self.order)
        some = random_rows(width, codes.domain.sizes[0], rank, codes.n_rows)
        problem, marginals, _ = self._problem(rank, some)
        fit, level = CoupledFit(Loop(0, 1e-10)), logger.level
        logger.setLevel(logging.ERROR)  # a warning about this small table would mislead
        try:
            found, seconds, memory = timed_and_traced(
                lambda: fit.run(problem, marginals, np.random.default_rng(0))
            )
        finally:
            logger.setLevel(level)
        n_runs = min(found.n_starts, 2)  # mostly the first two agree
        return Found(more * seconds, more * memory, n_runs)

    def _problem(self, rank: int, codes: Codes) -> tuple[Problem, MarginalSet | None, float]:
        """Return the problem, and how many times as many subsets of the whole table are counted."""
        table = Table.of_codes(codes)
        if not self.is_implicit:
            marginals = MarginalSet.from_table(table.codes, self.order)
            return CoupledLeastSquares(marginals, rank, "counts"), marginals, 1.0
        n_subsets, limits = math.comb(len(codes.domain), self.order), Limits()
        n_counted = limits.n_counted(n_subsets, self.n_rows)
        if n_counted < n_subsets or n_subsets > _SEARCH_SUBSETS:
            limits = Limits(most_counted=0)  # only some are counted
        problem = ImplicitLeastSquares(ColumnRows.of_codes(table.codes), rank, self.order, limits)
        return problem, None, n_counted / limits.n_counted(n_subsets, codes.n_rows)


def _steps(solver: Solver, state: State) -> tuple[float, State]:
    """Return the median time of a few iterations, and where they lead."""
    times: list[float] = []
    while len(times) < 2 or (sum(times) < 0.05 and len(times) < 20):
        begun = time.perf_counter()
        state = solver.step(state)
        times.append(time.perf_counter() - begun)
    return float(np.median(times)), state
