"""EM that sees each row once: a running mean of what rows expect, and the model that it gives.

The mean forgets, because what rows expected of an early model counts for less; the model that is
returned comes from a mean over the means, which is steadier (docs/math.md, eqs. 32 and 33).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.fit.plan import LIFT, FitPlan
from jointpmf.pmf import JointPMF
from jointpmf.rows.table import ColumnRows, Stacks, TableRows, marginal_of_counts
from jointpmf.solvers.em import feasible_stack
from jointpmf.solvers.loop import Solution, Status, Step
from jointpmf.solvers.point import Point
from jointpmf.threads import row_blocks

STEP_ROWS = 2**14
"""Rows of one step, at most."""

FORGETTING = 0.6
"""A step counts for this power of its part of all rows: more than its part."""


class Stepwise:
    """A model that learns from rows as they come.

    Parameters
    ----------
    plan : FitPlan
        Its rank, its smoothing, and whom to tell of every step.
    rows : Rows or ColumnRows
        The first rows.
    pmf : JointPMF
        A model of them.
    start : str
        How that was found.
    """

    def __init__(self, plan: FitPlan, rows: TableRows, pmf: JointPMF, start: str = "") -> None:
        self.domain, self.plan, self.start = rows.domain, plan, start
        self.weight, self.seen = rows.total, rows.counts
        self.history: list[Step] = []
        self._begin = time.perf_counter()
        self._stacks = Stacks(self.domain, plan.rank)
        self._stack = self._stacks.stack(Point.of_pmf(pmf))
        counts, self._log_likelihood = rows.expectation(plan.rank).counts(self._stack)
        self._mean = self._lifted(counts / self.weight)
        self._mean_of_means = self._mean

    def add(self, rows: TableRows) -> bool:
        """Take more rows into account, in one step; return whether someone wants to stop."""
        if not rows.total > 0:
            return False
        self.weight += rows.total
        self.seen = self.seen + rows.counts
        counts, log_likelihood = self._expected(rows)
        part = rows.total / self.weight
        step = part**FORGETTING
        self._mean = (1 - step) * self._mean + step * counts / rows.total
        step = 2 * part / (1 + part)
        self._mean_of_means = (1 - step) * self._mean_of_means + step * self._mean
        self._log_likelihood += log_likelihood
        seconds = time.perf_counter() - self._begin
        line = Step(len(self.history) + 1, -log_likelihood / rows.total, seconds, 0.0, 0.0)
        self.history.append(line)
        callback = self.plan.options["callback"]
        return callback is not None and bool(callback(line, self.pmf()))

    def _expected(self, rows: TableRows) -> tuple[np.ndarray, float]:
        """Return what rows expect of the model; if one of them cannot happen, it is made to."""
        expectation = rows.expectation(self.plan.rank)
        self._stack = self._stack_of(self._mean)
        counts, log_likelihood = expectation.counts(self._stack)
        if np.isfinite(log_likelihood):
            return counts, log_likelihood
        self._mean = self._lifted(self._mean)
        self._stack = self._stack_of(self._mean)
        return expectation.counts(self._stack)

    def _lifted(self, mean: np.ndarray) -> np.ndarray:
        """Return a mean in which each component expects a little of all that was seen."""
        everything = np.append(self.seen / self.weight, 1.0)[:, None] * mean[-1]
        return (1 - LIFT) * mean + LIFT * everything

    def _stack_of(self, mean: np.ndarray) -> np.ndarray:
        """Return the model that a mean of expected counts gives."""
        counts = self.weight * mean
        if self.plan.smoothing:
            marginal = marginal_of_counts(self.seen, self.domain)
            counts[:-1, : self.plan.rank] += self.plan.pseudo_counts(self.domain, marginal)
        return feasible_stack(counts, self._stack, self.domain.offsets)

    def point(self) -> Point:
        """Return the model so far."""
        return self._stacks.point(self._stack_of(self._mean_of_means))

    def pmf(self) -> JointPMF:
        """Return the model so far, over the domain."""
        return self.point().to_pmf(self.domain)

    def solution(self, status: Status = Status.ONE_PASS) -> Solution:
        """Return the model so far; its objective is that of rows when they were new to it."""
        objective = -self._log_likelihood / self.weight
        return Solution(self.pmf(), status, objective, list(self.history), start=self.start)


def steps_of(codes: Codes, weights: np.ndarray | None = None) -> Iterator[ColumnRows]:
    """Yield the rows of a table, at most so many at a time as one step takes."""
    for begin, end in row_blocks(codes.n_rows, STEP_ROWS):
        some = Codes(codes.domain, codes.array[begin:end])
        yield ColumnRows.of_codes(some, None if weights is None else weights[begin:end])
