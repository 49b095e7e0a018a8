"""The methods of coupled least squares; by default a few sweeps, then second order.

Sweeps are cheap and rarely go astray; second order is quick at the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.solvers.aoadmm import AOADMM
from jointpmf.solvers.newton import Newton, NewtonState

if TYPE_CHECKING:
    from jointpmf.point import Point
    from jointpmf.solvers.least_squares import CoupledLeastSquares
    from jointpmf.solvers.loop import Arrays, Solver, State

_FEW_SWEEPS, _MANY_SWEEPS, _MANY_PARAMETERS = 20, 100, 1000
"""Sweeps before second order takes over: the second number for models of more parameters than the
third, for which a second-order step costs as much as many sweeps."""

_LEAST_GAIN = 0.01
"""Part of the objective that a sweep must save to be followed by another, where a second-order step
costs no more than a few sweeps."""


def solver_of(method: str, problem: CoupledLeastSquares) -> Solver:
    """Return the solver of a method: "auto", "aoadmm" or "newton"."""
    if method == "aoadmm":
        return AOADMM(problem)
    if method == "newton":
        return Newton(problem)
    return SweepsThenNewton(problem)


class SweepsThenNewton:
    """AO-ADMM for the first iterations and Levenberg–Marquardt from there on."""

    relative = True

    def __init__(self, problem: CoupledLeastSquares) -> None:
        self.problem = problem
        self.domain = problem.domain
        n_parameters = problem.rank * (1 + sum(problem.domain.sizes))
        self.n_sweeps = _MANY_SWEEPS if n_parameters > _MANY_PARAMETERS else _FEW_SWEEPS
        self.newton = Newton(problem)
        self.aoadmm = AOADMM(problem)
        self.floor = problem.floor

    def start(self, point: Point) -> State:
        """Return the state at a feasible point."""
        self._sweeps_left = self.n_sweeps
        return self.aoadmm.start(point)

    def step(self, state: State) -> State:
        """Return the state after a sweep or a second-order step."""
        if self._sweeps_left:
            swept = self.aoadmm.step(state)
            is_slow = state.objective - swept.objective < _LEAST_GAIN * state.objective
            is_enough = is_slow and not self.newton.is_factorising
            self._sweeps_left = 0 if is_enough else self._sweeps_left - 1
            return replace(swept, may_stop=False)
        if not isinstance(state, NewtonState):
            state = self.newton.start(state.point)
        return self.newton.step(state)

    def memory(self, state: State) -> Arrays:
        """Return how many sweeps are left, and the memory of the method that goes on."""
        solver = self.newton if isinstance(state, NewtonState) else self.aoadmm
        return {"sweeps_left": np.array(self._sweeps_left), **solver.memory(state)}

    def recalled(self, state: State, memory: Arrays) -> State:
        """Return the state, and go on from it, that had this point and this memory."""
        self._sweeps_left = int(memory["sweeps_left"])
        solver = self.newton if "gradient" in memory else self.aoadmm
        return solver.recalled(state, memory)
