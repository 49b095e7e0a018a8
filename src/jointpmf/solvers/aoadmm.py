"""The paper's algorithm: a sweep over the factors and the weights, each block by ADMM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.compiled.simplex import solve_block
from jointpmf.solvers.least_squares import CANCELLATION, Block, CoupledLeastSquares
from jointpmf.solvers.loop import Arrays, State

if TYPE_CHECKING:
    from jointpmf.point import Point


class _Solved(NamedTuple):
    """How far one block was solved."""

    n_iter: int
    primal_gap: float
    dual_gap: float
    moved: float
    """How far the block went in all, relative to its norm."""


@dataclass(frozen=True)
class Inner:
    """How long one visit to a block lasts."""

    max_iter: int = 200
    """Steps of ADMM that it may take."""
    precision: float = 0.01
    """A block is solved to this part of how far its last visit moved it: more would be in vain
    while the other blocks still move, and less would hold the sweeps up."""
    least_tol: float = 1e-12
    """The smallest tolerance."""


class AOADMM:
    """Alternating optimisation with ADMM, as a solver for the loop.

    From sweep to sweep each block keeps its dual, and how far it moved.
    """

    relative = True

    def __init__(self, problem: CoupledLeastSquares, inner: Inner | None = None) -> None:
        self.problem, self.inner = problem, inner or Inner()
        self.domain = problem.domain
        self.floor = problem.floor
        sizes = [*self.domain.sizes, 1]  # the weights are the last block
        self._duals = [np.zeros((problem.rank, size)) for size in sizes]
        self._moved = np.ones(len(sizes))

    def start(self, point: Point) -> State:
        """Return the state at a feasible point."""
        return State(point, self.problem.cost(point))

    def step(self, state: State) -> State:
        """Return the state after one sweep over all blocks."""
        point = state.point.copy()
        results = []
        for b, block in enumerate(self.problem.sweep(point)):
            results.append(self._solve(b, block, point))
        primal_gap = max(result.primal_gap for result in results)
        dual_gap = max(result.dual_gap for result in results)
        return State(point, self._objective_after(block, point), primal_gap, dual_gap)

    def memory(self, state: State) -> Arrays:
        """Return the dual of each block, and how far it moved."""
        duals = np.concatenate(self._duals, axis=1)
        return {"duals": duals, "moved": self._moved.copy()}

    def recalled(self, state: State, memory: Arrays) -> State:
        """Return the state, and go on from it with this memory."""
        ends = np.cumsum([dual.shape[1] for dual in self._duals])
        for dual, part in zip(self._duals, np.split(memory["duals"], ends[:-1], 1), strict=True):
            dual[:] = part
        self._moved[:] = memory["moved"]
        return state

    def _solve(self, b: int, block: Block, point: Point) -> _Solved:
        is_factor = block.rows is not None
        value = point.factors[block.rows].T if is_factor else point.weights[:, None]
        value = np.array(value, order="C")
        tol = max(self.inner.precision * self._moved[b], self.inner.least_tol)
        result = _Solved(
            *solve_block(
                block.gram, block.cross, value, self._duals[b], is_factor, self.inner.max_iter, tol
            )
        )
        self._moved[b] = result.moved
        if is_factor:
            point.factors[block.rows] = value.T
        else:
            point.weights[:] = value[:, 0]
        return result

    def _objective_after(self, weights_block: Block, point: Point) -> float:
        """Return the objective at the end of a sweep, from the last block unless that cancels."""
        weights = point.weights
        fitted = weights @ (0.5 * weights_block.gram @ weights - weights_block.cross[:, 0])
        cheap = 0.5 * self.problem.norm + float(fitted)
        if cheap > CANCELLATION * self.problem.norm:
            return cheap
        return self.problem.cost(point)
