"""Maximum likelihood from incomplete rows: EM, accelerated by SQUAREM and never going back.

An EM step at a model gives the model's log-likelihood and the next model (docs/math.md, eq. 20).
From two steps the third point is extrapolated (eq. 22) and taken if it is better than the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.compiled.panels import aligned_zeros
from jointpmf.compiled.posteriors import set_feasible
from jointpmf.solvers.loop import Arrays, State

if TYPE_CHECKING:
    from jointpmf.point import Point
    from jointpmf.rows.table import AnyRows

_SMALLEST = 1e-30
"""Smaller probabilities become zero. Were it smaller, products of fewer cells would be safe from
underflow, and iterations slower."""

FIRST_STRIDE, STRIDE_GROWTH = 4.0, 4.0
"""Longest extrapolation at first, and what a success at that length multiplies it by."""

KEPT = 0.1
"""An extrapolated probability keeps at least this part of what the last step gave: from zero no
EM step returns."""


@dataclass(frozen=True, kw_only=True)
class EMState(State):
    """A model, its objective, and where an EM step leads from it."""

    stack: np.ndarray
    next_stack: np.ndarray


class EM:
    """Expectation maximisation over observed cells, as a solver for the loop.

    Parameters
    ----------
    rows : Rows, or what else has their E-step
        What was observed.
    rank : int
        Number of components.
    pseudo_counts : array of shape (levels, 1), optional
        Dirichlet smoothing: what is added to the expected counts of every level (eq. 21).
    accelerated : bool
        Whether to extrapolate; without it every iteration is one EM step.
    n_plain : int
        How many steps there are before the first extrapolation.
    """

    relative = False
    floor = 0.0

    def __init__(
        self,
        rows: AnyRows,
        rank: int,
        pseudo_counts: np.ndarray | None = None,
        accelerated: bool = True,
        n_plain: int = 0,
    ) -> None:
        self.domain = rows.domain
        self.expectation = rows.expectation(rank)
        self._total = rows.total
        self.accelerated = accelerated
        self._prior = pseudo_counts
        self._n_plain = n_plain
        self._stride, self._n_steps = FIRST_STRIDE, 0

    def start(self, point: Point) -> EMState:
        """Return the state at a feasible point."""
        self._stride, self._n_steps = FIRST_STRIDE, 0
        return self._at(self.expectation.stack(point))

    def step(self, state: State) -> EMState:
        """Return the state after one EM step, and an extrapolation if that is better."""
        assert isinstance(state, EMState)
        plain = self.plain_step(state)
        self._n_steps += 1
        if not self.accelerated or self._n_steps <= self._n_plain:
            return plain
        first = state.next_stack - state.stack
        bend = plain.next_stack - state.next_stack - first
        size = float(np.vdot(bend, bend))
        wished = math.sqrt(float(np.vdot(first, first)) / size) if size > 0 else 1.0
        stride = min(wished, self._stride)
        if not stride > 1:
            return plain
        ahead = state.stack + 2 * stride * first + stride**2 * bend
        ahead = np.maximum(ahead, KEPT * plain.next_stack)
        ahead = feasible_stack(ahead, plain.next_stack, self.domain.offsets)
        jumped = self._at(ahead)
        if jumped.objective <= plain.objective:
            if wished >= self._stride:
                self._stride *= STRIDE_GROWTH
            return jumped
        self._stride = max(stride / STRIDE_GROWTH, FIRST_STRIDE)
        return plain

    def memory(self, state: State) -> Arrays:
        """Return where an EM step leads, the longest extrapolation, and the number of steps."""
        assert isinstance(state, EMState)
        next_stack = state.next_stack[:, : self.expectation.rank]
        stride, n_steps = np.array(self._stride), np.array(self._n_steps)
        return {"next": next_stack, "stride": stride, "n_steps": n_steps}

    def recalled(self, state: State, memory: Arrays) -> EMState:
        """Return the state, and go on from it, that had this point and this memory."""
        self._stride, self._n_steps = float(memory["stride"]), int(memory["n_steps"])
        stack, next_stack = self.expectation.stack(state.point), self.expectation.empty_stack()
        next_stack[:, : self.expectation.rank] = memory["next"]
        point = self.expectation.point(stack)
        return EMState(point, state.objective, stack=stack, next_stack=next_stack)

    def plain_step(self, state: EMState) -> EMState:
        """Return the state after one EM step."""
        return self._at(state.next_stack)

    def expected_counts(self, state: EMState) -> np.ndarray:
        """Return how often each level is expected with each component; their own are last."""
        return self.expectation.counts(state.stack)[0][:, : self.expectation.rank]

    def _at(self, stack: np.ndarray) -> EMState:
        counts, log_likelihood = self.expectation.counts(stack)
        if self._prior is not None:
            rank = self.expectation.rank
            counts[:-1, :rank] += self._prior
            logs = np.log(np.maximum(stack[:-1, :rank], _SMALLEST))
            log_likelihood += float((self._prior * logs).sum())
        return EMState(
            self.expectation.point(stack),
            -log_likelihood / self._total,
            stack=stack,
            next_stack=feasible_stack(counts, stack, self.domain.offsets),
        )


def feasible_stack(stack: np.ndarray, otherwise: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return columns and weights that sum to one; where they are all zero, those otherwise."""
    out = aligned_zeros(*stack.shape)
    set_feasible(stack, otherwise, offsets, _SMALLEST, np.empty(stack.shape[1]), out)
    return out
