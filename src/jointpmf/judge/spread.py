"""How far apart the answers are of models that fit as well: the smallest and the largest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.errors import JointPMFError, repeats, seeded_generator
from jointpmf.fit.members import members_of
from jointpmf.fit.progress import progress_bar
from jointpmf.judge.smooth_query import question_of
from jointpmf.judge.valley import RowValley, TableValley
from jointpmf.judge.walk import Place, Walker
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.rows.source import Table
from jointpmf.solvers.em import EM
from jointpmf.solvers.jacobian import positive_rank, whole_tangent
from jointpmf.solvers.loop import Loop, iterate
from jointpmf.solvers.starts.random import mixed, random_point

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution
    from jointpmf.judge.smooth_query import Question
    from jointpmf.judge.valley import Valley
    from jointpmf.marginals.measurement import Measurement

_INTERIOR = (0.1, 0.01, 1e-3, 1e-5, 0.0)
"""Parts of the marginals in a start, the first that leads back to the valley: a walk does not
return from zeros, which fits have many of."""

_FRESH = 4
"""One start in so many is a new fit, where the answer is the average of many fits."""

_NEUTRAL, _FRESH_STEPS, _FRESH_TOL = 0.3, 100, 1e-7
"""Of a new fit: the part of the marginals in its random start, its iterations at most, and the
improvement in nats that ends it."""

_SAME_ANSWER, _SAME_PART = 1e-5, 1e-4
"""Answers that differ by no more, or by no larger part, are the same: tables are met to 1e-6, and
an answer may be the sum of several cells."""

_SAME_CELL = 1e-6
"""How far a cell of a table may be from that of the fit. Smaller, steps are shorter."""

_MAX_PARAMETERS, _MAX_SIZE = 4000, 20_000_000
"""Models of more parameters, or parameters times cells of all tables, are refused: each step would
take seconds."""


@dataclass(frozen=True)
class Spread:
    """The smallest and the largest answer of models of one rank that fit as well.

    It unpacks as `low, high`; its text is a sentence.

    Attributes
    ----------
    estimate : float
        The answer of the fitted model.
    low, high : float
        The smallest and the largest answer that was found.
    lowest, highest : JointPMF
        The models that give them.
    is_unique : bool
        Whether there is only one model, so that low and high are the estimate.
    reason : str
        Why the answers differ, or why not.
    """

    estimate: float
    low: float
    high: float
    lowest: JointPMF
    highest: JointPMF
    is_unique: bool
    reason: str

    def __iter__(self) -> Iterator[float]:
        """Yield low and high."""
        return iter((self.low, self.high))

    def __str__(self) -> str:
        """Say between what the answer is, and why."""
        if self.is_unique:
            return f"{self.estimate:.4g}: {self.reason}"
        zero = _SAME_PART * max(abs(self.low), abs(self.high))  # ends at zero are only approached
        low, high = (end if abs(end) > zero else 0.0 for end in self)
        return f"{self.estimate:.4g}, between {low:.4g} and {high:.4g}: {self.reason}"


class Effort(NamedTuple):
    """How long to look for the ends."""

    n_starts: int = 8
    """Models from which walks begin."""
    n_steps: int = 150
    """Steps of a walk, at most."""


def spread_of_solution(
    solution: Solution,
    query: Any,
    given: Mapping[str, Any] | None,
    n_starts: int,
    random_state: Any,
    verbose: bool,
) -> Spread:
    """Return how far apart the answers are of models that fit the tables as well as a solution."""
    question = question_of(query, given, solution.pmf.domain)
    question.value(Point.of_pmf(solution.pmf))  # raises now if there is no answer
    effort = Effort(repeats(n_starts, "n_starts"))
    if solution.is_unique:
        return unique(solution.pmf, question, "tables")
    starts, source = _starts_of(solution)
    if not starts.is_small:
        raise JointPMFError(
            f"the spread of a model of rank {starts.rank} over {len(solution.pmf.domain)} "
            f"variables from {starts.valley.n_shown} {source} would take too long"
        )
    if source == "rows" and is_seen(starts.valley, solution.pmf):
        return unique(solution.pmf, question, source)
    with progress_bar("walking", 2 * effort.n_starts, verbose) as advance:
        found = starts.found(effort, seeded_generator(random_state))
        return spread_from(solution.pmf, found, question, effort.n_steps, advance)


def _starts_of(solution: Solution) -> tuple[Starts, str]:
    """Return where walks begin among models that fit as well, and what they fit."""
    pmf, known = solution.pmf, solution.marginals
    if known is not None:
        impossible = bool(known.impossible)
        members = members_of(pmf, solution.n_averaged)
        return starts_of_tables(pmf, members, known.measurements, impossible), "cells"
    if solution.reopen is None:
        raise JointPMFError("a spread needs the tables or the rows of the fit, which are gone")
    with solution.reopen() as source:
        if not isinstance(source, Table):
            raise JointPMFError("the spread of a fit to rows needs them in memory")
        members = members_of(pmf, solution.n_averaged)
        return Starts(pmf, members, RowValley(source, Point.of_pmf(pmf))), "rows"


def is_seen(valley: Valley, pmf: JointPMF) -> bool:
    """Tell whether every direction from a model changes how it fits."""
    point = Point.of_pmf(pmf)
    tangent, jacobian = whole_tangent(pmf.domain, point), valley.jacobian(point)
    reduced = tangent.reduce_matrix(jacobian.T @ jacobian)
    return positive_rank(reduced) == len(reduced)


def unique(pmf: JointPMF, question: Question, source: str) -> Spread:
    """Return the answer of the only model."""
    answer = question.value(Point.of_pmf(pmf))
    reason = f"the {source} determine the model of this rank"
    return Spread(answer, answer, answer, pmf, pmf, True, reason)


class Start(NamedTuple):
    """A model from which to walk, and the valley that it is in."""

    walker: Walker
    values: np.ndarray


def spread_from(
    pmf: JointPMF, starts: Sequence[Start], question: Question, n_steps: int, advance: Any = None
) -> Spread:
    """Return the smallest and the largest answer that walks from models find."""
    estimate = question.value(Point.of_pmf(pmf))
    ends = []
    for sign in (-1, 1):
        best, best_pmf = estimate, pmf
        for start in starts:
            found = start.walker.walked(start.values, question, sign, n_steps)
            if sign * (found.answer - best) > 0:
                best, best_pmf = found.answer, _pmf_of(start, found, pmf)
            if advance is not None:
                advance("smallest" if sign < 0 else "largest")
        ends.append((best, best_pmf))
    (low, lowest), (high, highest) = ends
    return Spread(estimate, low, high, lowest, highest, False, _reason(low, high, len(starts)))


def _pmf_of(start: Start, place: Place, pmf: JointPMF) -> JointPMF:
    return JointPMF.at(start.walker.point_at(place.values), pmf.domain)


def _reason(low: float, high: float, n_starts: int) -> str:
    if math.isclose(low, high, rel_tol=_SAME_PART, abs_tol=_SAME_ANSWER):
        return "models of this rank that fit as well give the same answer"
    return f"models of this rank fit as well that give other answers ({n_starts} starts)"


@dataclass(frozen=True)
class Starts:
    """Where walks begin: the fits that were averaged, and new ones.

    Attributes
    ----------
    pmf : JointPMF
        What the answer is of.
    members : sequence of JointPMF
        The fits that it is the average of.
    valley : Valley
        The models that fit as well as `pmf`.
    keeps_zeros : bool
        Whether zeros stay zeros, because some combinations are impossible.
    """

    pmf: JointPMF
    members: Sequence[JointPMF]
    valley: Valley
    keeps_zeros: bool = False

    def found(self, effort: Effort, generator: np.random.Generator) -> list[Start]:
        """Return models that fit as well, each in its valley."""
        valley = self.valley
        members = [Point.of_pmf(member) for member in self.members]
        allowed = max(valley.misfit(valley.gaps(member)) for member in members)
        n_old = max(effort.n_starts - effort.n_starts // _FRESH, 1)
        which = np.unique(np.linspace(0, len(members) - 1, n_old).round().astype(int))
        points = [members[k] for k in which]
        if not self.keeps_zeros:
            points += self._fresh(effort.n_starts - len(points), generator)
        starts = (self._start(point, allowed) for point in points)
        return [start for start in starts if start is not None]

    @property
    def rank(self) -> int:
        """Number of components of one fit."""
        return self.members[0].rank

    @property
    def size(self) -> int:
        """How many numbers a Jacobian has."""
        return self.valley.n_shown * self._n_parameters

    @property
    def is_small(self) -> bool:
        """Whether a step takes less than seconds."""
        return self._n_parameters <= _MAX_PARAMETERS and self.size <= _MAX_SIZE

    @property
    def _n_parameters(self) -> int:
        return self.rank * (1 + sum(self.pmf.domain.sizes))

    def _fresh(self, count: int, generator: np.random.Generator) -> list[Point]:
        """Return new fits, from random starts."""
        if count < 1:
            return []
        found, observed = [], self.valley.observed
        for _ in range(count):
            point = random_point(self.pmf.domain, self.rank, generator)
            point = mixed(point, observed.marginal, _NEUTRAL)
            solver = EM(observed, self.rank)
            found.append(iterate(solver, point, Loop(_FRESH_STEPS, _FRESH_TOL)).point)
        return found

    def _start(self, point: Point, allowed: float) -> Start | None:
        """Return a start in the valley of the model, or else in the fit's own if that is as good.

        Where the rank is small, no single fit predicts what their average does; `allowed` is how
        far the fits that were averaged are from it.
        """
        valley = self.valley
        start = self._within(valley, point)
        if start is not None or valley.misfit(valley.gaps(point)) > allowed:
            return start
        return self._within(valley.through(point), point)

    def _within(self, valley: Valley, point: Point) -> Start | None:
        """Return a start without zeros in a valley, if there is one near a model."""
        walker = Walker(valley, self.rank)
        values, inside = point.vector, self._inside()
        for part in _INTERIOR:
            towards = inside * (values > 0) if self.keeps_zeros else inside
            found = walker.returned(walker.mixed(values, towards, part))
            if found is not None:
                return Start(walker, found)
        return None

    def _inside(self) -> np.ndarray:
        """Return the model in which all variables are independent."""
        marginals = [self.pmf.marginal([name]).table() for name in self.pmf.domain.names]
        columns = np.repeat(np.concatenate(marginals)[:, None], self.rank, axis=1)
        return Point(np.full(self.rank, 1 / self.rank), columns).vector


def starts_of_tables(
    pmf: JointPMF, members: Sequence[JointPMF], tables: Sequence[Measurement], keeps_zeros: bool
) -> Starts:
    """Return where walks begin among the models that predict the same tables.

    Which cells there are matters, not what is in them.
    """
    valley = TableValley(pmf.domain, tables, Point.of_pmf(pmf), _SAME_CELL)
    return Starts(pmf, members, valley, keeps_zeros)
