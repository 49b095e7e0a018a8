"""The second-order finish: Levenberg–Marquardt on the simplices, with an active set.

Each step solves (JᵀJ + damping) d = −gradient over the directions that keep every sum and every
level that is zero and wants to stay there, projects the new point on the simplices, and is taken
only if the objective falls. The damping follows how well the quadratic model predicted the fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from jointpmf.compiled.simplex import project_point
from jointpmf.point import Point
from jointpmf.solvers.curvature import Tangent, pivot_of_each_parameter
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.loop import Arrays, State

_CG_PRECISION, _MAX_CG = 1e-3, 300
"""Part of its first size at which the residual of conjugate gradients, in the norm of what they
are preconditioned by, is small enough; and their steps at most."""

_FIRST_DAMPING, _LEAST_DAMPING, _MAX_TRIES = 1e-3, 1e-15, 12
"""Damping of the first step and at least, as a part of the mean of JᵀJ's diagonal; and how often
it is raised before a step counts as stalled."""

_LEAST_PART = 0.1
"""A weight loses at most the rest in one step: at zero its component would be lost for good."""

_MAX_EMPTYING = 6
"""Rounds in which levels that a step would make negative are emptied before it is taken."""


@dataclass(frozen=True, kw_only=True)
class NewtonState(State):
    """A state with what the next step needs: the gradient, and how much to damp."""

    gradient: np.ndarray
    damping: float = _FIRST_DAMPING


class Newton:
    """Levenberg–Marquardt as a solver for the loop.

    JᵀJ is formed and factorised for at most `largest_factorised` parameters; beyond, each step is
    solved by conjugate gradients.
    """

    relative = True

    def __init__(self, problem: CoupledLeastSquares, largest_factorised: int = 4000) -> None:
        self.problem, self.domain = problem, problem.domain
        n_parameters = problem.rank * (1 + sum(self.domain.sizes))
        self.is_factorising = n_parameters <= largest_factorised
        self.floor = problem.floor

    def start(self, point: Point) -> NewtonState:
        """Return the state at a feasible point."""
        cost, gradient = self.problem.gradient(point)
        return NewtonState(point, cost, gradient=gradient, kkt=self._kkt(point, gradient))

    def step(self, state: State) -> NewtonState:
        """Return a state with a lower objective, or a stalled one if no step lowers it."""
        assert isinstance(state, NewtonState)
        model = _Quadratic(self, state)
        damping, growth = state.damping, 2.0
        for _ in range(_MAX_TRIES):
            change = model.minimiser(damping)
            point = moved(state.point, change, self.domain.offsets)
            cost, gradient = self.problem.gradient(point)
            gain = state.objective - cost
            if gain > 0:
                agreement = gain / max(model.predicted_gain(change), gain / 1.5)
                damping *= max(1 / 10, 1 - (2 * agreement - 1) ** 3)
                return NewtonState(
                    point,
                    cost,
                    gradient=gradient,
                    damping=max(damping, _LEAST_DAMPING),
                    kkt=self._kkt(point, gradient),
                )
            damping, growth = damping * growth, 2 * growth
        return replace(state, stalled=True)

    def memory(self, state: State) -> Arrays:
        """Return the gradient, and how much to damp."""
        assert isinstance(state, NewtonState)
        return {"gradient": state.gradient, "damping": np.array(state.damping)}

    def recalled(self, state: State, memory: Arrays) -> NewtonState:
        """Return the state that had this point and this memory."""
        return NewtonState(
            state.point,
            state.objective,
            stalled=state.stalled,
            kkt=state.kkt,
            gradient=memory["gradient"],
            damping=float(memory["damping"]),
        )

    def _kkt(self, point: Point, gradient: np.ndarray) -> float:
        """Return how far a projected gradient step moves the point: zero at a KKT point."""
        step = moved(point, -gradient / self.problem.norm, self.domain.offsets)
        return float(
            max(
                np.abs(step.weights - point.weights).max(),
                np.abs(step.factors - point.factors).max(),
            )
        )


class _Quadratic:
    """The quadratic model of the objective around a state, over its feasible directions."""

    def __init__(self, newton: Newton, state: NewtonState) -> None:
        point, gradient = state.point, state.gradient
        offsets = newton.domain.offsets
        values = point.vector
        pivots = pivot_of_each_parameter(point, offsets)
        fixed = (values <= 0) & (gradient > gradient[pivots])
        self.full_gradient = gradient
        self.tangent = Tangent.at(point, offsets, fixed)
        self.gradient = self.tangent.reduce_vector(gradient)
        self.values = values[self.tangent.moved]
        is_weight = self.tangent.moved < len(point.weights)
        self.floors = np.where(is_weight, _LEAST_PART * self.values, 0.0)
        curvature = newton.problem.curvature.at(point)
        self.times, self.own = curvature.times, curvature.own_blocks()
        self.matrix: np.ndarray | None = None
        if newton.is_factorising:
            self.matrix = self.tangent.reduce_matrix(curvature.matrix())
        size = max(len(self.gradient), 1)
        trace = self.own.trace() if self.matrix is None else np.trace(self.matrix)
        self.scale = float(trace) / size

    def minimiser(self, damping: float) -> np.ndarray:
        """Return the change of all parameters that minimises the damped model.

        Levels that it would make negative go to zero instead, and the others are solved for again:
        a projection alone would share their mass out regardless of the curvature.
        """
        change = np.zeros(len(self.gradient))
        emptied = np.zeros(len(change), bool)
        for _ in range(_MAX_EMPTYING):
            change[~emptied] = self._solve(damping * self.scale, change, ~emptied)
            negative = ~emptied & (self.values + change < self.floors)
            if not negative.any():
                break
            emptied |= negative
            change[emptied] = (self.floors - self.values)[emptied]
        return self.tangent.expand(change)

    def _solve(self, shift: float, change: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return the free coordinates that minimise the model while the others stay."""
        if not free.any():
            return np.zeros(0)
        fixed = np.where(free, 0.0, change)
        if self.matrix is None:
            return self._by_conjugate_gradients(shift, fixed, free)
        right = -self.gradient - self.matrix @ fixed
        shifted = self.matrix.copy() if free.all() else self.matrix[np.ix_(free, free)]
        shifted[np.diag_indices_from(shifted)] += shift
        factor, failed = dpotrf(shifted, overwrite_a=True)
        return np.zeros(len(factor)) if failed else dpotrs(factor, right[free])[0]

    def _by_conjugate_gradients(
        self, shift: float, fixed: np.ndarray, free: np.ndarray
    ) -> np.ndarray:
        def times(coordinates: np.ndarray) -> np.ndarray:
            return self.tangent.reduce_vector(self.times(self.tangent.expand(coordinates)))

        def shifted(coordinates: np.ndarray) -> np.ndarray:
            whole = np.zeros(len(free))
            whole[free] = coordinates
            return times(whole)[free] + shift * coordinates

        right = -self.gradient - times(fixed)
        near_inverse = self.own.near_inverse(self.tangent, free, shift)
        return conjugate_gradients(shifted, near_inverse, right[free])

    def predicted_gain(self, change: np.ndarray) -> float:
        """Return by how much the undamped model falls along a change."""
        if self.matrix is None:
            square = change @ self.times(change)
        else:
            coordinates = change[self.tangent.moved]
            square = coordinates @ self.matrix @ coordinates
        return float(-self.full_gradient @ change - 0.5 * square)


def conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray],
    near_inverse: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
) -> np.ndarray:
    """Return about the x with times(x) = right, for a positive definite matrix."""
    found, residual = np.zeros_like(right), right.copy()
    direction = near = near_inverse(residual)
    size = first_size = float(residual @ near)
    for _ in range(_MAX_CG):
        if not size > _CG_PRECISION**2 * first_size:
            break
        product = times(direction)
        length = size / float(direction @ product)
        found += length * direction
        residual -= length * product
        near = near_inverse(residual)
        last_size, size = size, float(residual @ near)
        direction = near + size / last_size * direction
    return found


def moved(point: Point, change: np.ndarray, offsets: np.ndarray) -> Point:
    """Return the nearest feasible point to point + change."""
    rank = len(point.weights)
    weights = point.weights + change[:rank]
    factors = point.factors + change[rank:].reshape(point.factors.shape)
    project_point(weights, factors, offsets)
    return Point(weights, factors)
