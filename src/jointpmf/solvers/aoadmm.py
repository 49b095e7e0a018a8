"""The seed's algorithm: a sweep over the factors and the weights, each block by ADMM."""

from __future__ import annotations

import numpy as np

from jointpmf.solvers.admm import BlockResult, solve_block
from jointpmf.solvers.loop import State
from jointpmf.solvers.objective import Block, CoupledLeastSquares, Point

INNER_ITER = 20
INNER_TOL = 1e-8

CANCELLATION = 1e-7
"""Below this part of ‖X‖² the cheap form of the objective has lost its digits to cancellation."""


class AOADMM:
    """Alternating optimisation with ADMM, as a solver for the loop.

    The dual of each block is kept from sweep to sweep; nothing else is.
    """

    def __init__(self, objective: CoupledLeastSquares) -> None:
        self.objective = objective
        self.domain = objective.domain
        self.floor = 1e-30 * objective.norm
        rank = objective.rank
        self.weight_dual = np.zeros((rank, 1))
        self.factor_duals = np.zeros((int(self.domain.offsets[-1]) * rank))

    def start(self, point: Point) -> State:
        """Return the state at a feasible point."""
        return State(point, self.objective.cost(point))

    def step(self, state: State) -> State:
        """Return the state after one sweep over all blocks."""
        point = state.point.copy()
        gaps = []
        for block in self.objective.sweep(point):
            gaps.append(self._update(block, point))
        primal_gap = max(result.primal_gap for result in gaps)
        dual_gap = max(result.dual_gap for result in gaps)
        return State(point, self._objective_after(block, point), primal_gap, dual_gap)

    def _update(self, block: Block, point: Point) -> BlockResult:
        dual = self._dual(block)
        value = point.weights[:, None] if block.rows is None else point.factors[block.rows].T
        value = np.ascontiguousarray(value)
        result = solve_block(
            block.gram,
            block.cross,
            value,
            dual,
            per_row=block.rows is not None,
            max_iter=INNER_ITER,
            tol=INNER_TOL,
        )
        if block.rows is None:
            point.weights[:] = value[:, 0]
        else:
            point.factors[block.rows] = value.T
        return result

    def _dual(self, block: Block) -> np.ndarray:
        if block.rows is None:
            return self.weight_dual
        rank = self.objective.rank
        return self.factor_duals[block.rows.start * rank : block.rows.stop * rank].reshape(rank, -1)

    def _objective_after(self, weights_block: Block, point: Point) -> float:
        """Return the objective at the end of a sweep, from the last block unless that cancels."""
        weights = point.weights
        fitted = weights @ (0.5 * weights_block.gram @ weights - weights_block.cross[:, 0])
        cheap = 0.5 * self.objective.norm + float(fitted)
        if cheap > CANCELLATION * self.objective.norm:
            return cheap
        return self.objective.cost(point)
