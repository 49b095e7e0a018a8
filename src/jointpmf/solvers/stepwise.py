"""EM that sees each row once: a running mean of what rows expect, and the model that it gives.

The mean forgets, because what rows expected of an early model counts for less; the model that is
returned comes from a mean over the means, which is steadier (docs/math.md, eqs. 32 and 33).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.rows.expectation import Stacks
from jointpmf.rows.table import ColumnRows, TableRows, marginal_of_counts
from jointpmf.solvers.em import feasible_stack
from jointpmf.solvers.loop import Outcome, Status, Step
from jointpmf.threads import row_blocks

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.point import Point

_FORGETTING = 0.6
"""A step counts for its part of all rows to this power, which is more than its part."""

_EXPECTED_SHARE = 0.01
"""Part of what was seen so far that every component expects of each level: an EM step never leaves
zero."""


class Stepwise:
    """A model that learns from rows as they come.

    Parameters
    ----------
    rank : int
        Number of components.
    rows : Rows or ColumnRows
        The first rows.
    point : Point
        A model of them.
    pseudo_counts : callable, optional
        What smoothing adds to the expected counts, as a function of the domain and its marginals.
    """

    def __init__(
        self,
        rank: int,
        rows: TableRows,
        point: Point,
        pseudo_counts: Callable[[Domain, np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.domain, self.rank = rows.domain, rank
        self.weight, self.seen = rows.total, rows.counts
        self.history: list[Step] = []
        self._pseudo_counts = pseudo_counts
        self._begin = time.perf_counter()
        self._stacks = Stacks(self.domain, rank)
        self._stack = self._stacks.stack(point)
        counts, self._log_likelihood = rows.expectation(rank).counts(self._stack)
        self._mean = self._lifted(counts / self.weight)
        self._mean_of_means = self._mean

    def add(self, rows: TableRows) -> Step | None:
        """Take more rows into account, in one step; return its line of history, if there is one."""
        if not rows.total > 0:
            return None
        self.weight += rows.total
        self.seen = self.seen + rows.counts
        counts, log_likelihood = self._expected(rows)
        part = rows.total / self.weight
        step = part**_FORGETTING
        self._mean = (1 - step) * self._mean + step * counts / rows.total
        step = 2 * part / (1 + part)
        self._mean_of_means = (1 - step) * self._mean_of_means + step * self._mean
        self._log_likelihood += log_likelihood
        seconds = time.perf_counter() - self._begin
        line = Step(len(self.history) + 1, -log_likelihood / rows.total, seconds, 0.0, 0.0)
        self.history.append(line)
        return line

    def _expected(self, rows: TableRows) -> tuple[np.ndarray, float]:
        """Return what rows expect of the model; if one of them cannot happen, it is made to."""
        expectation = rows.expectation(self.rank)
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
        return (1 - _EXPECTED_SHARE) * mean + _EXPECTED_SHARE * everything

    def _stack_of(self, mean: np.ndarray) -> np.ndarray:
        """Return the model that a mean of expected counts gives."""
        counts = self.weight * mean
        if self._pseudo_counts is not None:
            marginal = marginal_of_counts(self.seen, self.domain)
            counts[:-1, : self.rank] += self._pseudo_counts(self.domain, marginal)
        return feasible_stack(counts, self._stack, self.domain.offsets)

    def point(self) -> Point:
        """Return the model so far."""
        return self._stacks.point(self._stack_of(self._mean_of_means))

    def outcome(self, status: Status = Status.ONE_PASS) -> Outcome:
        """Return the model so far; its objective is that of rows when they were new to it."""
        objective = -self._log_likelihood / self.weight
        return Outcome(self.point(), status, objective, list(self.history))


def steps_of(codes: Codes, weights: np.ndarray | None, size: int) -> Iterator[ColumnRows]:
    """Yield the rows of a table, at most `size` at a time."""
    for begin, end in row_blocks(codes.n_rows, size):
        some = Codes(codes.domain, codes.array[begin:end])
        yield ColumnRows.of_codes(some, None if weights is None else weights[begin:end])
