"""Moves from one optimum towards another: other weights of rows, noise, components put elsewhere.

What EM ends at is often no more than the nearest optimum. From a point near it, in which a
component has another place or nothing is zero, it often ends at a better one. Which moves are good
was measured on tables where single starts seldom find the best optimum: these five, in turns, found
it most often for their cost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.point import Point
from jointpmf.solvers.em import EM
from jointpmf.solvers.starts.random import (
    enlarged_point,
    mixed,
    point_at_rows,
    random_point,
)

if TYPE_CHECKING:
    from jointpmf.rows.table import TableRows

_NOISE = 0.5
"""Part of a random point in a jittered one, and in a component that is split off another."""

_SHAKEN_STEPS = 8
"""EM steps on rows whose weights are drawn anew."""

_KEPT_LIFT = 0.02
"""Part of the marginals in components that stay where they are, so that nothing is zero."""


def moved(point: Point, rows: TableRows, k: int, generator: np.random.Generator) -> Point:
    """Return the k-th move from a point: all components are disturbed, or some, in turns."""
    move = _KINDS_OF_MOVES[k % len(_KINDS_OF_MOVES)]
    if move is _split and len(point.weights) < 3:
        move = _replaced
    return move(point, rows, generator)


def passes_of_move(k: int) -> int:
    """Return how many passes over the rows the k-th move takes itself, about."""
    is_by_steps = _KINDS_OF_MOVES[k % len(_KINDS_OF_MOVES)] in (_shaken, _enlarged)
    return 2 * _SHAKEN_STEPS + 1 if is_by_steps else 0


def _shaken(point: Point, rows: TableRows, generator: np.random.Generator) -> Point:
    """Return where some EM steps lead if rows count for more or less than they do."""
    weights = rows.weights * generator.standard_exponential(len(rows))
    solver = EM(replace(rows, weights=weights), len(point.weights))
    state = solver.start(mixed(point, rows.marginal, _KEPT_LIFT))
    for _ in range(_SHAKEN_STEPS):
        state = solver.step(state)
    return mixed(state.point, rows.marginal, _KEPT_LIFT)


def _jittered(point: Point, rows: TableRows, generator: np.random.Generator) -> Point:
    """Return a point with a part of a random one in every column."""
    noise = random_point(rows.domain, len(point.weights), generator).factors
    return Point(point.weights, (1 - _NOISE) * point.factors + _NOISE * noise)


def _replaced(point: Point, rows: TableRows, generator: np.random.Generator) -> Point:
    """Return a point one of whose components has moved to a row of the data."""
    rank = len(point.weights)
    f = int(generator.integers(rank))
    factors = mixed(point, rows.marginal, _KEPT_LIFT).factors
    factors[:, f] = point_at_rows(rows, 1, generator).factors[:, 0]
    weights = point.weights.copy()
    weights[f] = 1 / rank
    return Point(weights / weights.sum(), factors)


def _enlarged(point: Point, rows: TableRows, generator: np.random.Generator) -> Point:
    """Return a point to which components at rows were added, and the cheapest mergers made."""
    lifted = mixed(point, rows.marginal, _KEPT_LIFT)
    return enlarged_point(lifted, rows, len(point.weights), generator)


def _split(point: Point, rows: TableRows, generator: np.random.Generator) -> Point:
    """Return a point in which two components have become one, and a third has become two."""
    f, g, h = generator.choice(len(point.weights), 3, replace=False)
    weights, factors = point.weights.copy(), mixed(point, rows.marginal, _KEPT_LIFT).factors
    both = weights[[f, g]] + np.finfo(float).tiny
    factors[:, f] = factors[:, [f, g]] @ both / both.sum()
    noise = random_point(rows.domain, 1, generator).factors[:, 0]
    factors[:, g] = (1 - _NOISE) * factors[:, h] + _NOISE * noise
    weights[f] += weights[g]
    weights[[g, h]] = weights[h] / 2
    return Point(weights / weights.sum(), factors)


_KINDS_OF_MOVES = (_shaken, _split, _jittered, _replaced, _enlarged)
"""In the order in which they are made."""
