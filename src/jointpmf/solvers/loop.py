"""The only iteration loop: budget, history, callback, and the sentence that says how it ended.

A solver supplies `start(point)` and `step(state)`; each step returns a new state whose point is
feasible, so the loop can stop after any of them, also when the user interrupts.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from jointpmf.domain import Domain
from jointpmf.marginals import MarginalSet
from jointpmf.pmf import JointPMF
from jointpmf.solvers.objective import Point
from jointpmf.threads import one_blas_thread

logger = logging.getLogger("jointpmf")


class Status(Enum):
    """How a fit ended; the value is the sentence for the user."""

    CONVERGED = "The objective stopped improving."
    NOT_UNIQUE = "The objective stopped improving, but other models of this rank fit as well."
    MAX_ITER = "The budget of iterations was used up before the objective stopped improving."
    STOPPED = "The fit was stopped before it converged; this is the best model so far."
    VALIDATED = "The validation part stopped improving; this is the model that fits it best."
    ONE_PASS = "Every row was seen once; the model would fit them better after more passes."


class Step(NamedTuple):
    """One line of a fit's history."""

    iteration: int
    objective: float
    seconds: float
    primal_gap: float
    dual_gap: float
    validation: float | None = None
    """The objective of the validation part, where there is one."""


@dataclass(frozen=True)
class State:
    """What a step returns: a feasible point, its objective, and how well the blocks were solved."""

    point: Point
    objective: float
    primal_gap: float = 0.0
    dual_gap: float = 0.0
    may_stop: bool = True
    """A small improvement here means convergence, not that another stage is yet to come."""
    stalled: bool = False
    """No step lowers the objective any more."""
    kkt: float | None = None
    """How far a projected gradient step moves the point, where the solver knows."""


class Solver(Protocol):
    """What the loop needs of a method.

    A solver may keep working memory from step to step (a dual, a damping), so one solver serves
    one run; what a step returns is a new point, never the old one changed.
    """

    domain: Domain
    floor: float
    """An objective below this is zero to rounding."""
    relative: bool
    """Whether the tolerance is a part of the objective, or an amount of it."""

    def start(self, point: Point) -> State:
        """Return the state at a feasible point."""

    def step(self, state: State) -> State:
        """Return a new state, at best with a lower objective."""


class Validation(Protocol):
    """Data that the solver does not see, and that says when to stop."""

    patience: int
    """Iterations without improvement after which the fit ends."""

    def cost(self, point: Point) -> float:
        """Return the objective of the validation part."""


class Restart(NamedTuple):
    """One of several starts of a fit: how it ended, or why it failed."""

    start: str
    objective: float
    status: Status | None
    validation: float | None = None
    error: str = ""


Callback = Callable[[Step, JointPMF], Any]
"""Called after every iteration with its line of history and the model; returning True stops."""


@dataclass(frozen=True)
class Solution:
    """A fitted model and how it was found.

    Attributes
    ----------
    pmf : JointPMF
        The best model that was found.
    status : Status
        How the fit ended; `status.value` is a sentence.
    objective : float
        What was minimised, at `pmf`.
    history : list of Step
        One line per iteration; the first is the start.
    start : str
        Which start was used, and why.
    kkt : float or None
        How far a projected gradient step would move the model: zero at a stationary point.
    is_unique : bool or None
        Whether the marginals determine a model of this rank; None if it is too large to tell.
    validation : float or None
        The objective of the validation part at `pmf`, which is the lowest of all iterations.
    restarts : tuple of Restart
        All starts of a fit that had several, the failed ones too.
    """

    pmf: JointPMF
    status: Status
    objective: float
    history: list[Step]
    start: str = ""
    kkt: float | None = None
    is_unique: bool | None = None
    validation: float | None = None
    restarts: tuple[Restart, ...] = ()
    marginals: MarginalSet | None = field(default=None, repr=False)

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return self.history[-1].iteration if self.history else 0

    @cached_property
    def residuals(self) -> list[tuple[tuple[str, ...], float]]:
        """How far each marginal is from the model's, as a Euclidean norm, worst first.

        Marginals that contradict each other end up here: the fit is their compromise.
        """
        norms = []
        for marginal in self.marginals or ():
            fitted = self.pmf.marginal(marginal.names).table()
            norms.append(
                (tuple(marginal.names), float(np.linalg.norm(np.asarray(marginal.table) - fitted)))
            )
        return sorted(norms, key=lambda item: -item[1])

    def __str__(self) -> str:
        """Say how the fit ended."""
        seconds = self.history[-1].seconds if self.history else 0.0
        return (
            f"{self.status.value} Objective {self.objective:.6g} after {self.n_iter} iterations "
            f"in {seconds:.3g} s; {self.pmf!r}"
        )


def iterate(
    solver: Solver,
    point: Point,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    validation: Validation | None = None,
    begin: float | None = None,
) -> Solution:
    """Run a solver from a feasible point until it converges, is stopped or has used its budget.

    It has converged when two steps in a row lower the objective by less than `tol` (of it, or as
    an amount, as the solver says; of a second-order method, the second one squares what is left),
    when no step lowers it at all, or when it is zero to rounding. With a validation part the model
    that fits it best is returned, and the fit ends when that stops improving. Seconds count from
    `begin`, or from the call.
    """
    begin = time.perf_counter() if begin is None else begin
    status = Status.MAX_ITER
    best = _Best(State(point, math.inf))
    history: list[Step] = []
    n_small = 0
    with one_blas_thread:
        try:
            state = solver.start(point)
            held_out = validation.cost(state.point) if validation else None
            best = _Best(state, held_out)
            seconds = time.perf_counter() - begin
            history.append(Step(0, state.objective, seconds, 0.0, 0.0, held_out))
            if state.objective <= solver.floor:
                status, max_iter = Status.CONVERGED, 0
            for iteration in range(1, max_iter + 1):
                before, state = state, solver.step(state)
                held_out = validation.cost(state.point) if validation else None
                best = best.or_better(state, held_out, iteration)
                seconds = time.perf_counter() - begin
                line = Step(
                    iteration,
                    state.objective,
                    seconds,
                    state.primal_gap,
                    state.dual_gap,
                    held_out,
                )
                history.append(line)
                if callback is not None and callback(line, state.point.to_pmf(solver.domain)):
                    status = Status.STOPPED
                    break
                gain = before.objective - state.objective
                unit = before.objective if solver.relative else 1.0
                is_small = state.may_stop and abs(gain) < tol * unit
                n_small = n_small + 1 if is_small else 0
                if n_small == 2 or state.stalled or state.objective <= solver.floor:
                    status = Status.CONVERGED
                    break
                if validation and iteration - best.iteration >= validation.patience:
                    status = Status.VALIDATED
                    break
        except KeyboardInterrupt:
            status = Status.STOPPED
    pmf = best.state.point.to_pmf(solver.domain)
    solution = Solution(
        pmf,
        status,
        best.state.objective,
        history,
        kkt=best.state.kkt,
        validation=best.held_out,
    )
    logger.info("%s", solution)
    return solution


class _Best(NamedTuple):
    """The best state so far: by the validation part if there is one, else by the objective."""

    state: State
    held_out: float | None = None
    iteration: int = 0

    def or_better(self, state: State, held_out: float | None, iteration: int) -> _Best:
        if self.held_out is None or held_out is None:
            is_better = state.objective <= self.state.objective
        else:
            is_better = held_out < self.held_out
        return _Best(state, held_out, iteration) if is_better else self
