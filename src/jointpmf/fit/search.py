"""The one search: candidates are fitted in turn, scored, and a rule says when it is enough.

Starts, repeated fits, ranks, kinds of fits and folds are all searched with it. What comes next may
depend on what was found: candidates are drawn one at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from jointpmf.errors import CheckpointError, JointPMFError
from jointpmf.fit.solution import Restart, Solution
from jointpmf.solvers.loop import Status
from jointpmf.threads import interrupts

logger = logging.getLogger("jointpmf")

K = TypeVar("K")

_RECOVERABLE = (JointPMFError, ArithmeticError, np.linalg.LinAlgError)
"""What may go wrong in one of several fits without ending the search."""


class Trial(NamedTuple):
    """A fit of one kind."""

    kind: Any
    solution: Solution


def badness(solution: Solution) -> float:
    """Return the score of a fit: its validation part if there is one, else its objective."""
    return solution.objective if solution.validation is None else solution.validation


def concluded(conclusion: Callable[[], Solution]) -> Solution:
    """Return what a search comes to; after Ctrl-C it is made again, so that nothing is lost."""
    try:
        with interrupts():
            return conclusion()
    except KeyboardInterrupt:
        return conclusion().stopped()


def log_how_often_found(solution: Solution) -> None:
    """Log how many starts found the best optimum: a warning, with what to do, if only one did."""
    if solution.is_replicated:
        logger.info("the best optimum was %s", solution.replication or "the only one")
    else:
        logger.warning(
            "the best optimum of rank %d was found by only one of %d starts, so there may be a "
            "better one: try more starts (n_starts), another seed or a smaller rank",
            solution.pmf.rank,
            solution.n_starts,
        )


class Trials(Generic[K]):
    """What was tried so far, in order.

    Parameters
    ----------
    is_tolerant : bool
        Whether a fit that fails is recorded and the search goes on.
    """

    def __init__(self, is_tolerant: bool = True) -> None:
        self.is_tolerant = is_tolerant
        self.found: list[Trial] = []
        self.restarts: list[Restart] = []
        self.is_stopped = False
        self._error: Exception | None = None

    def run(
        self,
        candidates: Iterable[tuple[K, Callable[[], Solution]]],
        is_enough: Callable[[Trials[K]], bool] | None = None,
    ) -> Trials[K]:
        """Fit candidates in turn, until it is enough, or someone stops.

        A candidate that fails is recorded. The search raises if all of them failed.
        """
        try:
            with interrupts():
                for kind, fit in candidates:
                    self._try(kind, fit)
                    is_done = bool(self.found) and is_enough is not None and is_enough(self)
                    if self.is_stopped or is_done:
                        break
        except KeyboardInterrupt:
            if not self.found:
                raise
            self.is_stopped = True
        if not self.found:
            raise self._error or JointPMFError("no start could be found")
        return self

    def _try(self, kind: K, fit: Callable[[], Solution]) -> None:
        try:
            solution = fit()
        except CheckpointError:
            raise
        except _RECOVERABLE as failure:
            if not self.is_tolerant:
                raise
            logger.warning("the fit from %s failed: %s", kind, failure)
            self.restarts.append(Restart(str(kind), np.inf, None, error=str(failure)))
            self._error = failure
            return
        self.found.append(Trial(kind, solution))
        self.restarts.append(solution.as_restart())
        self.is_stopped = solution.status is Status.STOPPED

    @property
    def solutions(self) -> list[Solution]:
        """All fits, in order."""
        return [trial.solution for trial in self.found]

    @property
    def best(self) -> Solution:
        """The best fit."""
        return min(self.solutions, key=badness)

    def of(self, kind: K) -> list[Solution]:
        """Return the fits of one kind, in order."""
        return [trial.solution for trial in self.found if trial.kind == kind]

    @property
    def kinds(self) -> list[K]:
        """The kinds that were tried, in order."""
        return list(dict.fromkeys(trial.kind for trial in self.found))

    def told(self, solution: Solution, n_agreed: int) -> Solution:
        """Return a fit with the record of this search, and how many starts found the same."""
        restarts = tuple(self.restarts)
        return replace(solution, restarts=restarts, n_starts=len(restarts), n_agreed=n_agreed)

    def near_best(self, tolerance: float, relative: bool = False) -> Iterator[Trial]:
        """Yield the fits whose score is the best but for a tolerance, which may be a part of it."""
        scores = [badness(solution) for solution in self.solutions]
        least = min(scores)
        most = least + tolerance * (abs(least) if relative else 1.0)
        pairs = zip(self.found, scores, strict=True)
        return (trial for trial, score in pairs if score <= most)
