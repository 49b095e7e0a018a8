"""Moves from one optimum towards another: a little noise, or components that are put elsewhere.

What EM ends at is often no more than the nearest optimum. From a point near it, in which a
component has another place or nothing is zero, it often ends at a better one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jointpmf.point import Point
from jointpmf.solvers.starts.random import mixed, point_at_rows, random_point, settled

if TYPE_CHECKING:
    from jointpmf.rows.table import TableRows

_LITTLE, _MUCH = 0.2, 0.5
"""Part of a random point in a jittered one."""

_LIFT = 0.02
"""Part of the marginals in components that stay where they are, so that nothing is zero."""


def moved(point: Point, rows: TableRows, k: int, generator: np.random.Generator) -> Point:
    """Return the k-th move from a point: noise and another place for a component, in turns."""
    rank = len(point.weights)
    if k % 4 == 1 and rank > 2:
        return _split(point, rows, generator)
    if k % 4 in (1, 3) and rank > 1:
        return _replaced(point, rows, generator)
    return _jittered(point, rows, _LITTLE if k % 4 == 0 else _MUCH, generator)


def crossed(point: Point, other: Point, rows: TableRows) -> Point:
    """Return the components of two points, merged where that loses least."""
    weights = np.concatenate([point.weights, other.weights]) / 2
    both = Point(weights, np.hstack([point.factors, other.factors]))
    return settled(rows, mixed(both, rows.marginal, _LIFT), len(point.weights))


def _jittered(point: Point, rows: TableRows, part: float, generator: np.random.Generator) -> Point:
    """Return a point with a part of a random one in every column."""
    noise = random_point(rows.domain, len(point.weights), generator).factors
    return Point(point.weights, (1 - part) * point.factors + part * noise)


def _replaced(point: Point, rows: TableRows, generator: np.random.Generator) -> Point:
    """Return a point one of whose components has moved to a row of the data."""
    rank = len(point.weights)
    f = int(generator.integers(rank))
    factors = mixed(point, rows.marginal, _LIFT).factors
    factors[:, f] = point_at_rows(rows, 1, generator).factors[:, 0]
    weights = point.weights.copy()
    weights[f] = 1 / rank
    return Point(weights / weights.sum(), factors)


def _split(point: Point, rows: TableRows, generator: np.random.Generator) -> Point:
    """Return a point in which two components have become one, and a third has become two."""
    f, g, h = generator.choice(len(point.weights), 3, replace=False)
    weights, factors = point.weights.copy(), mixed(point, rows.marginal, _LIFT).factors
    both = weights[[f, g]] + np.finfo(float).tiny
    factors[:, f] = factors[:, [f, g]] @ both / both.sum()
    noise = random_point(rows.domain, 1, generator).factors[:, 0]
    factors[:, g] = (1 - _MUCH) * factors[:, h] + _MUCH * noise
    weights[f] += weights[g]
    weights[[g, h]] = weights[h] / 2
    return Point(weights / weights.sum(), factors)
