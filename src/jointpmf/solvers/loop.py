"""The only iteration loop: budget, history, callback, and the sentence that says how it ended.

A solver supplies `start(point)` and `step(state)`; each step returns a new state whose point is
feasible, so the loop can stop after any of them, also when the user interrupts.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from jointpmf.errors import CheckpointError
from jointpmf.point import Point
from jointpmf.threads import interrupts, one_blas_thread

if TYPE_CHECKING:
    from jointpmf.domain import Domain

logger = logging.getLogger("jointpmf")

Arrays = dict[str, np.ndarray]
"""What a run needs to go on later, by name."""


_FIRST_LOOK, _LOOK_EVERY = 8, 4
"""Iterations after which a run is first compared with its rival, and between two looks."""

_HOPE = 3.0
"""How many times the gain of the last half of its iterations a run is expected to gain yet, at
most. Larger numbers give up fewer runs that would have won, and cost more."""


class Status(Enum):
    """How a fit ended; the value is the sentence for the user."""

    CONVERGED = "The objective stopped improving."
    NOT_UNIQUE = "The objective stopped improving, but other models of this rank fit as well."
    MAX_ITER = "The budget of iterations was used up before the objective stopped improving."
    STOPPED = "The fit was stopped before it converged; this is the best model so far."
    VALIDATED = "The validation part stopped improving; this is the model that fits it best."
    BEHIND = "Another fit was ahead, so this one was given up."
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
    stage: str = ""
    """Which of several fits this is a line of, in words; empty if there is only one."""


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

    def memory(self, state: State) -> Arrays:
        """Return what the next step needs besides the state's point, in arrays that stay so."""

    def recalled(self, state: State, memory: Arrays) -> State:
        """Return the state, and go on from it, that had this point and this memory."""


class Validation(Protocol):
    """Data that the solver does not see, and that says when to stop."""

    patience: int
    """Iterations without improvement after which the fit ends."""
    min_gain: float
    """What so many iterations must improve it by, or the fit ends."""

    def cost(self, point: Point) -> float:
        """Return the objective of the validation part."""


class SavedRun(Protocol):
    """One run as a checkpoint keeps it."""

    found: Arrays | None
    """What the run had reached when it was last written, if it was."""

    def is_due(self, iteration: int) -> bool:
        """Tell whether to write after an iteration."""

    def write(self, iteration: int, arrays: Arrays) -> None:
        """Write what was reached after an iteration."""

    def end(self, iteration: int, arrays: Arrays, is_stopped: bool) -> None:
        """Keep what was reached at the end."""


class Runs(Protocol):
    """Where the runs of a fit are saved, in the order in which they begin."""

    def next_run(self, start: np.ndarray) -> SavedRun:
        """Return what is kept of the run that begins."""


class Best(Protocol):
    """What keeps the best that the runs of a fit have reached, for when someone stops it."""

    def note(self, outcome: Outcome, domain: Domain, is_preliminary: bool) -> None:
        """Keep what a run has reached, if it is the best."""


@dataclass(frozen=True)
class Loop:
    """How long a run may take, who watches it, and where it is saved."""

    max_iter: int
    """Budget of iterations."""
    tol: float
    """The improvement below which a run has converged."""
    callback: Callable[[Step, Point], Any] | None = None
    """Called after every iteration; returning True stops."""
    runs: Runs | None = None
    rival: float | None = None
    """An objective to beat: a run that does not promise to is given up."""
    best: Best | None = None
    """What is told of every iteration; None if the run is of other data than the fit."""
    is_preliminary: bool = False
    """Whether the run is on a sample of what is fitted, to find where to begin."""

    @property
    def elsewhere(self) -> Loop:
        """The loop of a run on other data, whose model is none of what is fitted."""
        return replace(self, best=None)


class Outcome(NamedTuple):
    """Where a run ended, and how."""

    point: Point
    status: Status
    objective: float
    history: list[Step]
    kkt: float | None = None
    validation: float | None = None

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return self.history[-1].iteration if self.history else 0

    def __str__(self) -> str:
        """Say how the run ended."""
        return sentence_of_end(self.status, self.objective, self.history)


def sentence_of_end(status: Status, objective: float, history: Sequence[Step]) -> str:
    """Return how a run ended: its status, what it reached, and how long that took."""
    n_iter, seconds = (history[-1].iteration, history[-1].seconds) if history else (0, 0.0)
    return f"{status.value} Objective {objective:.6g} after {n_iter} iterations in {seconds:.3g} s"


def one_history(histories: Sequence[list[Step]]) -> list[Step]:
    """Return the lines of runs each of which began where the one before had ended."""
    first, *others = histories
    lines = list(first)
    for history in others:
        n = lines[-1].iteration
        lines += [step._replace(iteration=step.iteration + n) for step in history[1:]]
    return lines


def iterate(
    solver: Solver,
    point: Point,
    loop: Loop,
    *,
    validation: Validation | None = None,
    begin: float | None = None,
) -> Outcome:
    """Run a solver from a feasible point until it converges, is stopped or has used its budget.

    It has converged when two steps in a row lower the objective by less than the tolerance (a part
    of the objective or an amount, as the solver says), when no step lowers it at all, or when it is
    zero to rounding. With a validation part the run ends when that stops improving, and the point
    that validates best is returned. Seconds count from `begin`, or from the call. A run that was
    saved goes on from where it was left.
    """
    begin = time.perf_counter() if begin is None else begin
    run = _Run(solver, point, loop, validation, begin)
    saved: SavedRun | None = None
    try:
        with one_blas_thread, interrupts():
            # a run without iterations is not counted: a search for a start that is stopped adds one
            if loop.runs is not None and loop.max_iter:
                saved = loop.runs.next_run(_mark_of(point, loop.max_iter))
                run.keeps_memory = True
            if saved is not None and saved.found is not None:
                try:
                    run.recall(saved.found)
                except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                    raise CheckpointError(f"a run cannot be gone on with: {error}") from None
            else:
                run.start(point)
            while (status := run.ending()) is None:
                line = run.advance()
                if loop.callback is not None and loop.callback(line, run.reached.state.point):
                    status = Status.STOPPED
                    break
                if saved is not None and saved.is_due(line.iteration):
                    saved.write(line.iteration, run.arrays())
            if saved is not None:
                saved.end(run.reached.iteration, run.arrays(), status is Status.STOPPED)
    except KeyboardInterrupt:
        status = Status.STOPPED
        if saved is not None and run.reached.memory is not None:
            saved.end(run.reached.iteration, run.arrays(), is_stopped=True)
    outcome = run.outcome(status)
    logger.info("%s", outcome)
    return outcome


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


class _Reached(NamedTuple):
    """How far a run has come: replaced as a whole, so that an interrupt leaves nothing half."""

    iteration: int
    state: State
    best: _Best
    n_small: int = 0
    memory: Arrays | None = None
    """What the solver needs to go on, if that is kept."""


class _Run:
    """A solver on its way: what it has reached, which can be written down and recalled."""

    def __init__(
        self, solver: Solver, point: Point, loop: Loop, validation: Validation | None, begin: float
    ) -> None:
        self.solver, self.loop, self.validation, self.begin = solver, loop, validation, begin
        self.history: list[Step] = []
        nowhere = State(point, math.inf)
        self.reached = _Reached(0, nowhere, _Best(nowhere))
        self.keeps_memory = False

    def start(self, point: Point) -> None:
        """Reach the start."""
        self._reach(0, self.solver.start(point))

    def advance(self) -> Step:
        """Reach the next iteration."""
        before = self.reached
        state = self.solver.step(before.state)
        gain = before.state.objective - state.objective
        unit = before.state.objective if self.solver.relative else 1.0
        is_small = state.may_stop and abs(gain) < self.loop.tol * unit
        return self._reach(before.iteration + 1, state, before.n_small + 1 if is_small else 0)

    def _reach(self, iteration: int, state: State, n_small: int = 0) -> Step:
        held_out = self.validation.cost(state.point) if self.validation else None
        best = _Best(state, held_out)
        if iteration:
            best = self.reached.best.or_better(state, held_out, iteration)
        seconds = time.perf_counter() - self.begin
        line = Step(iteration, state.objective, seconds, state.primal_gap, state.dual_gap, held_out)
        memory = self.solver.memory(state) if self.keeps_memory else None
        self.history.append(line)
        self._set(_Reached(iteration, state, best, n_small, memory))
        return line

    def _set(self, reached: _Reached) -> None:
        self.reached = reached
        if self.loop.best is not None:
            outcome = self.outcome(Status.STOPPED)
            self.loop.best.note(outcome, self.solver.domain, self.loop.is_preliminary)

    def outcome(self, status: Status) -> Outcome:
        """Return the best state as where the run ends."""
        state, held_out, _ = self.reached.best
        return Outcome(state.point, status, state.objective, self.history, state.kkt, held_out)

    def ending(self) -> Status | None:
        """Return how the run has ended, or None if it goes on."""
        iteration, state, _, n_small, _ = self.reached
        if n_small == 2 or state.stalled or state.objective <= self.solver.floor:
            return Status.CONVERGED
        if self.validation and self._has_stopped_helping(self.validation):
            return Status.VALIDATED
        if self.loop.rival is not None and self._is_behind(self.loop.rival):
            return Status.BEHIND
        return Status.MAX_ITER if iteration >= self.loop.max_iter else None

    def _has_stopped_helping(self, validation: Validation) -> bool:
        """Tell whether the last iterations have gained too little on the validation part."""
        n_before = self.reached.iteration - validation.patience + 1
        if n_before < 1:
            return False
        costs = [line.validation for line in self.history if line.validation is not None]
        return not min(costs) < min(costs[:n_before]) - validation.min_gain

    def _is_behind(self, rival: float) -> bool:
        """Tell whether a rival stays ahead even if this run gains several times what it has lately.

        That is looked at now and then, after the first iterations.
        """
        n = self.reached.iteration
        if n < _FIRST_LOOK or n % _LOOK_EVERY:
            return False
        objective = self.reached.state.objective
        gained = self.history[n // 2].objective - objective
        return objective - _HOPE * gained > rival

    def arrays(self) -> Arrays:
        """Return all that going on needs."""
        iteration, state, best, n_small, memory = self.reached
        lines = self.history[: iteration + 1]
        arrays = {
            "history": np.array([line[: 6 if self.validation else 5] for line in lines]),
            "best_iteration": np.array(best.iteration),
            "n_small": np.array(n_small),
            "stalled": np.array(int(state.stalled)),
            **_arrays_of_state(state),
        }
        if best.state is not state:
            arrays |= _arrays_of_state(best.state, "best.")
        return arrays | {f"memory.{name}": array for name, array in (memory or {}).items()}

    def recall(self, arrays: Arrays) -> None:
        """Reach what was written down."""
        _check_recallable(arrays, self.reached.state.point)
        self.history = [Step(int(line[0]), *line[1:]) for line in arrays["history"].tolist()]
        self.begin = time.perf_counter() - self.history[-1].seconds
        memory = _named(arrays, "memory.")
        bare = _state_of_arrays(arrays, self.history[-1].objective, bool(arrays["stalled"]))
        state = self.solver.recalled(bare, memory)
        at_best = self.history[int(arrays["best_iteration"])]
        best = state
        if "best.weights" in arrays:
            best = _state_of_arrays(arrays, at_best.objective, prefix="best.")
        at = _Best(best, at_best.validation, at_best.iteration)
        n_small = int(arrays["n_small"])
        self._set(_Reached(self.history[-1].iteration, state, at, n_small, memory))


def _arrays_of_state(state: State, prefix: str = "") -> Arrays:
    point = state.point
    arrays = {f"{prefix}weights": point.weights, f"{prefix}factors": point.factors}
    arrays |= {f"{prefix}made.{name}": array for name, array in (point.made_of or {}).items()}
    return arrays if state.kkt is None else arrays | {f"{prefix}kkt": np.array(state.kkt)}


def _state_of_arrays(
    arrays: Arrays, objective: float, stalled: bool = False, prefix: str = ""
) -> State:
    made_of = _named(arrays, f"{prefix}made.") or None
    point = Point(arrays[f"{prefix}weights"], arrays[f"{prefix}factors"], made_of)
    kkt = arrays.get(f"{prefix}kkt")
    return State(point, objective, stalled=stalled, kkt=None if kkt is None else float(kkt))


def _check_recallable(arrays: Arrays, start: Point) -> None:
    """Raise unless arrays have the shapes of a run that began at a point."""
    history = arrays["history"]
    if history.ndim != 2 or not np.array_equal(history[:, 0], np.arange(len(history))):
        raise ValueError("its history is not one of iterations")
    for name, array in (("weights", start.weights), ("factors", start.factors)):
        for prefix in ("", "best."):
            if arrays.get(f"{prefix}{name}", array).shape != array.shape:
                raise ValueError(f"its {name} have another shape")


def _named(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names begin like this, by the rest of their names."""
    return {n.removeprefix(prefix): array for n, array in arrays.items() if n.startswith(prefix)}


def _mark_of(point: Point, max_iter: int) -> np.ndarray:
    """Return numbers by which the run from a point is known again, a few instead of all."""
    mixture = np.cos(np.arange(len(point.weights)))
    return np.concatenate([[max_iter, point.weights @ mixture], point.factors @ mixture])
