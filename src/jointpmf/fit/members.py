"""Where a replicate begins: at the members of an average; and least squares from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.mixing import average
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.solvers.loop import Loop, Outcome, Status, iterate
from jointpmf.solvers.methods import solver_of

if TYPE_CHECKING:
    from jointpmf.fit.coupled import Problem
    from jointpmf.fit.solution import Solution

_MAX_ITER = 2000
"""Iterations of one replicate, at most."""

_SQUARES_TOL = 1e-6
"""The part of a least-squares objective whose improvement ends a replicate."""

_MOST_MEMBERS = 4
"""How many of the fits that a model is the average of are done again."""


def members_of(pmf: JointPMF, n_averaged: int) -> list[JointPMF]:
    """Return the fits that a model is the average of, or the model itself.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmfs = [jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, random_state=k) for k in (0, 1)]
    >>> whole = jp.average(pmfs)
    >>> [bool(np.allclose(a.table(), b.table())) for a, b in zip(members_of(whole, 2), pmfs)]
    [True, True]
    """
    parts = np.split(pmf.weights, n_averaged) if pmf.rank % n_averaged == 0 else []
    are_equal = bool(parts) and np.allclose([part.sum() for part in parts], 1 / n_averaged)
    if n_averaged == 1 or not are_equal:  # a blend of unequal parts is one model
        return [pmf]
    factors = zip(*(np.split(factor, n_averaged, axis=1) for factor in pmf.factors), strict=True)
    return [
        JointPMF(pmf.domain, part / part.sum(), own)
        for part, own in zip(parts, factors, strict=True)
    ]


def some_members(solution: Solution) -> list[JointPMF]:
    """Return few of the fits that a model averages: data change the others as much."""
    members = members_of(solution.pmf, solution.n_averaged)
    return members[:: -(-len(members) // _MOST_MEMBERS)]


def joined(points: Sequence[Point], pmf: JointPMF) -> Point:
    """Return the average of the members of a model as one point."""
    if len(points) == 1:
        return points[0]
    return Point.of_pmf(average([JointPMF.at(point, pmf.domain) for point in points]))


def squares_again(problem: Problem, pmf: JointPMF) -> Point:
    """Return where least squares end that begin at a model."""
    solver = solver_of("auto", problem)
    return ended(iterate(solver, Point.of_pmf(pmf), loop_again(_SQUARES_TOL)))


def loop_again(tol: float) -> Loop:
    """Return how long a replicate may take."""
    return Loop(_MAX_ITER, tol)


def ended(outcome: Outcome) -> Point:
    """Return where a replicate ended; one that someone stopped is none."""
    if outcome.status is Status.STOPPED:
        raise KeyboardInterrupt
    return outcome.point
