"""What a fit returns if someone stops it: the best that any of its runs has reached.

Runs and searches catch Ctrl-C where they can say most about what they have. This catches it
everywhere else: between two runs, while distinct rows are found, or while files are closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jointpmf.fit.solution import Solution
from jointpmf.solvers.loop import Outcome
from jointpmf.threads import interrupts

if TYPE_CHECKING:
    from jointpmf.domain import Domain


class BestSoFar:
    """The best of all runs of a fit, or the solution that the fit has come to."""

    def __init__(self) -> None:
        self._run: tuple[tuple[bool, float], Outcome, Domain] | None = None
        self._solution: Solution | None = None

    def note(self, outcome: Outcome, domain: Domain, is_preliminary: bool) -> None:
        """Keep what a run has reached, if it is the best; a model of a sample gives way to any."""
        cost = outcome.objective if outcome.validation is None else outcome.validation
        rating = (is_preliminary, cost)
        if self._run is None or rating < self._run[0]:
            self._run = rating, outcome, domain

    def concluded(self, solution: Solution) -> Solution:
        """Return a solution, and keep it: it is what the runs were for."""
        self._solution = solution
        return solution

    def solution(self) -> Solution | None:
        """Return what there is, if there is anything."""
        if self._solution is None and self._run is not None:
            _, outcome, domain = self._run
            return Solution.of(outcome, domain)
        return self._solution


def stoppable(fit: Callable[[BestSoFar], Solution]) -> Solution:
    """Return a fit, or the best that it has found when someone stops it.

    Examples
    --------
    >>> def interrupted(best):
    ...     raise KeyboardInterrupt
    >>> try:
    ...     stoppable(interrupted)
    ... except KeyboardInterrupt:
    ...     "there was nothing yet"
    'there was nothing yet'
    """
    best = BestSoFar()
    try:
        with interrupts():
            return fit(best)
    except KeyboardInterrupt:
        found = best.solution()
        if found is None:
            raise
        return found.stopped()
