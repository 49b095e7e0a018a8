"""The members of an average, from which replicates begin; and least squares from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.errors import JointPMFError
from jointpmf.mixing import average
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.solvers.loop import Loop, Outcome, Status, iterate
from jointpmf.solvers.methods import solver_of
from jointpmf.traits import parts_of

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution
    from jointpmf.solvers.least_squares import CoupledLeastSquares

_MAX_ITER = 2000
"""Iterations of one replicate, at most."""

_SQUARES_TOL = 1e-6
"""The part of a least-squares objective whose improvement ends a replicate."""

_MOST_MEMBERS = 4
"""How many of the fits that a model is the average of are refitted."""


def members_of(pmf: JointPMF, n_averaged: int) -> list[JointPMF]:
    """Return the free fits that a model is the average of, or the model itself.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmfs = [jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, random_state=k) for k in (0, 1)]
    >>> whole = jp.average(pmfs)
    >>> [bool(np.allclose(a.table(), b.table())) for a, b in zip(members_of(whole, 2), pmfs)]
    [True, True]
    """
    first = max((part.stop for part in parts_of(pmf.trait_models)), default=0)
    count, n_free = n_averaged - len(pmf.trait_models), pmf.rank - first
    if n_averaged == 1 or count < 1 or n_free < count or n_free % count:
        return [pmf]
    ends = np.linspace(first, pmf.rank, count + 1).astype(int)
    shares = [pmf.weights[own].sum() for own in map(slice, ends, ends[1:])]
    if not np.allclose(shares, shares[0]):  # an average of unequal parts is one model
        return [pmf]
    return [part_of(pmf, own) for own in map(slice, ends, ends[1:])]


def all_members(pmf: JointPMF, n_averaged: int) -> list[JointPMF]:
    """Return every fit that a model is the average of: those with traits first, then free fits.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmfs = [jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, random_state=k) for k in (0, 1)]
    >>> [member.rank for member in all_members(jp.average(pmfs), 2)]
    [2, 2]
    """
    parts = parts_of(pmf.trait_models)
    members = [part_of(pmf, own) for own in parts]
    if not parts or parts[-1].stop < pmf.rank:
        members += members_of(pmf, n_averaged)
    if len(members) != n_averaged:
        raise JointPMFError(
            f"the {n_averaged} members of this average cannot be told apart: members without "
            "traits must have the same rank and weight"
        )
    return members


def part_of(pmf: JointPMF, which: slice) -> JointPMF:
    """Return the distribution of those who belong to some components."""
    weights = pmf.weights[which]
    factors = [factor[:, which] for factor in pmf.factors]
    return JointPMF(pmf.domain, weights / weights.sum(), factors)


def some_members(solution: Solution) -> list[JointPMF]:
    """Return few of the fits that a model averages: data change the others as much."""
    members = members_of(solution.pmf, solution.n_averaged)
    return members[:: -(-len(members) // _MOST_MEMBERS)]


def joined(points: Sequence[Point], pmf: JointPMF) -> Point:
    """Return the average of the members of a model as one point."""
    if len(points) == 1:
        return points[0]
    return Point.of_pmf(average([JointPMF.at(point, pmf.domain) for point in points]))


def squares_again(problem: CoupledLeastSquares, pmf: JointPMF) -> Point:
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
