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
from jointpmf.fit.checkpoint import Arrays, Checkpoint, SavedRun
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.output import PathLike
from jointpmf.pmf import JointPMF
from jointpmf.show.html import Html, element, facts, fragment, number_text
from jointpmf.solvers.point import Point
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
    resolution: float
    """An objective below this is not told apart from zero: the tolerance is then a part of this."""

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
    source : str
        Of a coupled fit to rows: whether its marginals were counted or never formed.
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
    source: str = ""
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

    def report(
        self, path: PathLike, table: Any = None, curve: Any = None, sample_weight: Any = None
    ) -> None:
        """Write one HTML page on the fit that a colleague can read; any browser opens it.

        What was fitted, the holes of the data, whether the fit converged and is unique, the worst
        fitted marginals, the components in words, and what to watch out for.

        Parameters
        ----------
        path : path
            Where to.
        table : pandas, Polars or PyArrow table, array, or Codes, optional
            The rows that were fitted; without them, what needs them is left out.
        curve : RankCurve, optional
            What `choose_rank` returned.
        sample_weight : array of shape (rows,), optional
            What each row of the table counts for, as in the fit.

        Examples
        --------
        >>> import os
        >>> import tempfile
        >>> import jointpmf as jp
        >>> rows = [["rain", "wet"], ["sun", "dry"], ["sun", None], ["rain", "wet"]]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     jp.fit_rows(rows, rank=2, random_state=0).report(f"{folder}/fit.html", rows)
        ...     os.listdir(folder)
        ['fit.html']
        """
        # The one door that leads down the house: a report is asked of a fit, but needs most of what
        # is built on fits, and only once it is asked for.
        from jointpmf.show.report.page import write_report

        write_report(path, self, table, curve, sample_weight)

    def __str__(self) -> str:
        """Say how the fit ended."""
        seconds = self.history[-1].seconds if self.history else 0.0
        return (
            f"{self.status.value} Objective {self.objective:.6g} after {self.n_iter} iterations "
            f"in {seconds:.3g} s; {self.pmf!r}"
        )

    def _repr_html_(self) -> str:
        """Return how the fit ended, and the model."""
        known = [
            ("objective", number_text(self.objective, 6)),
            ("iterations", f"{self.n_iter:,}"),
            ("seconds", number_text(self.history[-1].seconds, 3) if self.history else ""),
            ("start", self.start),
            ("validation", "" if self.validation is None else number_text(self.validation, 6)),
            ("source", self.source),
        ]
        return fragment(
            element("p", element("b", self.status.value)),
            facts((topic, fact) for topic, fact in known if fact),
            Html(self.pmf._repr_html_()),
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
    checkpoint: Checkpoint | None = None,
) -> Solution:
    """Run a solver from a feasible point until it converges, is stopped or has used its budget.

    It has converged when two steps in a row lower the objective by less than `tol` (of it, or as
    an amount, as the solver says; of a second-order method, the second one squares what is left),
    when no step lowers it at all, or when it is zero to rounding. With a validation part the model
    that fits it best is returned, and the fit ends when that stops improving. Seconds count from
    `begin`, or from the call. With a checkpoint the run goes on from where it was left.
    """
    run = _Run(solver, point, tol, validation, time.perf_counter() if begin is None else begin)
    saved: SavedRun | None = None
    with one_blas_thread:
        try:
            # a run without iterations is not counted: a search for a start that is stopped adds one
            if checkpoint is not None and max_iter:
                saved = checkpoint.next_run(_mark_of(point, max_iter))
                run.keeps_memory = True
            if saved is not None and saved.found is not None:
                run.recall(saved.found)
            else:
                run.start(point)
            while (status := run.ending(max_iter)) is None:
                line = run.advance()
                if callback is not None and callback(line, run.pmf()):
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
    best = run.reached.best
    solution = Solution(
        best.state.point.to_pmf(solver.domain),
        status,
        best.state.objective,
        run.history,
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
        self,
        solver: Solver,
        point: Point,
        tol: float,
        validation: Validation | None,
        begin: float,
    ) -> None:
        self.solver, self.tol, self.validation, self.begin = solver, tol, validation, begin
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
        objective = max(before.state.objective, self.solver.resolution)
        unit = objective if self.solver.relative else 1.0
        is_small = state.may_stop and abs(gain) < self.tol * unit
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
        self.reached = _Reached(iteration, state, best, n_small, memory)
        return line

    def pmf(self) -> JointPMF:
        """Return the model that was reached last."""
        return self.reached.state.point.to_pmf(self.solver.domain)

    def ending(self, max_iter: int) -> Status | None:
        """Return how the run has ended, or None if it goes on."""
        iteration, state, best, n_small, _ = self.reached
        if n_small == 2 or state.stalled or state.objective <= self.solver.floor:
            return Status.CONVERGED
        if self.validation and iteration - best.iteration >= self.validation.patience:
            return Status.VALIDATED
        return Status.MAX_ITER if iteration >= max_iter else None

    def arrays(self) -> Arrays:
        """Return all that going on needs."""
        iteration, state, best, n_small, memory = self.reached
        lines = self.history[: iteration + 1]
        arrays = {
            "history": np.array([line if self.validation else line[:-1] for line in lines]),
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
        self.history = [Step(int(line[0]), *line[1:]) for line in arrays["history"].tolist()]
        self.begin = time.perf_counter() - self.history[-1].seconds
        memory = {
            name.removeprefix("memory."): array
            for name, array in arrays.items()
            if name.startswith("memory.")
        }
        bare = _state_of_arrays(arrays, self.history[-1].objective, bool(arrays["stalled"]))
        state = self.solver.recalled(bare, memory)
        at_best = self.history[int(arrays["best_iteration"])]
        best = state
        if "best.weights" in arrays:
            best = _state_of_arrays(arrays, at_best.objective, prefix="best.")
        self.reached = _Reached(
            self.history[-1].iteration,
            state,
            _Best(best, at_best.validation, at_best.iteration),
            int(arrays["n_small"]),
            memory,
        )


def _arrays_of_state(state: State, prefix: str = "") -> Arrays:
    arrays = {f"{prefix}weights": state.point.weights, f"{prefix}factors": state.point.factors}
    return arrays if state.kkt is None else arrays | {f"{prefix}kkt": np.array(state.kkt)}


def _state_of_arrays(
    arrays: Arrays, objective: float, stalled: bool = False, prefix: str = ""
) -> State:
    point = Point(arrays[f"{prefix}weights"], arrays[f"{prefix}factors"])
    kkt = arrays.get(f"{prefix}kkt")
    return State(point, objective, stalled=stalled, kkt=None if kkt is None else float(kkt))


def _mark_of(point: Point, max_iter: int) -> np.ndarray:
    """Return numbers by which the run from a point is known again, a few instead of all."""
    mixture = np.cos(np.arange(len(point.weights)))
    return np.concatenate([[max_iter, point.weights @ mixture], point.factors @ mixture])
