"""Starts at random points and at random rows of the data: single ones, or more that are merged.

The surest of them begins with more components than asked, at rows of the data, and after some
steps merges those that lose least by it: every component of the truth has had a row near it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jointpmf.point import Point
from jointpmf.solvers import em

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.rows.table import TableRows

_SURPLUS, _SURPLUS_STEPS = 2, 5
"""How many times the rank merging begins with, and the EM steps before it."""

_ROW_PART = 0.5
"""Probability that a component which begins at a row gives to that row's own levels."""

_MAX_MERGED = 10**8
"""Work of the most components that are merged: their pairs times the levels."""

LIFT = 0.01
"""Part of the marginals that is mixed into a start or a refit: an EM step never leaves zero."""


def point_at_rows(rows: TableRows, rank: int, generator: np.random.Generator) -> Point:
    """Return components that lean towards one row of the data each, chosen by weight."""
    domain = rows.domain
    chosen = generator.choice(len(rows), rank, len(rows) < rank, rows.weights / rows.total)
    component, cells = rows.cells_of(chosen)
    variable = np.repeat(np.arange(len(domain)), domain.sizes)
    is_seen = np.zeros((len(domain), rank), bool)
    is_seen[variable[cells], component] = True
    factors = np.where(is_seen[variable], 1 - _ROW_PART, 1.0) * rows.marginal[:, None]
    factors[cells, component] += _ROW_PART
    return Point(np.full(rank, 1 / rank), factors)


def point_of_merged_rows(rows: TableRows, rank: int, generator: np.random.Generator) -> Point:
    """Return a point that began with a surplus of components, merged where that loses least."""
    return settled(rows, point_at_rows(rows, _SURPLUS * rank, generator), rank)


def passes_of_start(kind: str) -> int:
    """Return how many passes over the rows, at the rank asked for, making a point takes, about."""
    return _SURPLUS * (2 * _SURPLUS_STEPS + 2) if kind == "merged rows" else 0


def can_merge(domain: Domain, rank: int) -> bool:
    """Tell whether merging down to a rank is affordable."""
    return (_SURPLUS * rank) ** 2 * int(domain.offsets[-1]) <= _MAX_MERGED


def enlarged_point(
    point: Point, rows: TableRows, rank: int, generator: np.random.Generator
) -> Point:
    """Return a point of larger rank than another, to which components at rows were added."""
    added = point_at_rows(rows, rank, generator)
    weights = np.concatenate([point.weights, added.weights]) / 2
    factors = np.hstack([point.factors, added.factors])
    return settled(rows, Point(weights, factors), rank)


def settled(rows: TableRows, point: Point, rank: int) -> Point:
    """Return what some EM steps and then mergers leave of too many components."""
    solver = em.EM(rows, len(point.weights))
    state = solver.start(point)
    for _ in range(_SURPLUS_STEPS):
        state = solver.step(state)
    counts = solver.expected_counts(state)
    return mixed(merged(counts, rows.domain.offsets, rank), rows.marginal, LIFT)


def merged(counts: np.ndarray, offsets: np.ndarray, rank: int) -> Point:
    """Return the point left when components are merged, two at a time, down to a rank.

    What a merger loses of the expected log-likelihood is a difference of entropies (docs/math.md,
    eq. 23); `counts` has a row per level, and the components' own as the last.
    """
    table = np.array(counts.T, order="C")
    fits = _fit_of(table, offsets)
    losses = np.full((len(table), len(table)), np.inf)
    for f in range(len(table) - 1):
        losses[f, f + 1 :] = fits[f] + fits[f + 1 :] - _fit_of(table[f] + table[f + 1 :], offsets)
    alive = np.ones(len(table), bool)
    while alive.sum() > rank:
        f, g = divmod(int(losses.argmin()), len(losses))
        table[f] += table[g]
        alive[g] = False
        losses[g], losses[:, g] = np.inf, np.inf
        fits[f] = _fit_of(table[f], offsets)
        others = np.flatnonzero(alive & (np.arange(len(alive)) != f))
        loss = fits[f] + fits[others] - _fit_of(table[f] + table[others], offsets)
        losses[np.minimum(others, f), np.maximum(others, f)] = loss
    kept = table[alive].T
    totals = np.repeat(np.add.reduceat(kept[:-1], offsets[:-1]), np.diff(offsets), axis=0)
    uniform = 1 / np.repeat(np.diff(offsets), np.diff(offsets))[:, None]
    with np.errstate(invalid="ignore"):
        factors = np.where(totals > 0, kept[:-1] / totals, uniform)
    return Point(kept[-1] / kept[-1].sum(), factors)


def _fit_of(counts: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return Σ over levels of count · log(count / count of its variable), per component."""
    levels = counts[..., :-1]
    totals = np.add.reduceat(levels, offsets[:-1], axis=-1)
    return _sum_x_log_x(levels) - _sum_x_log_x(totals)


def _sum_x_log_x(x: np.ndarray) -> np.ndarray:
    return (x * np.log(np.maximum(x, 1e-300))).sum(axis=-1)


def random_point(domain: Domain, rank: int, generator: np.random.Generator) -> Point:
    """Return equal weights and columns drawn uniformly from the simplex."""
    columns = [generator.dirichlet(np.ones(size), rank).T for size in domain.sizes]
    return Point(np.full(rank, 1 / rank), np.concatenate(columns))


def mixed(point: Point, marginal: np.ndarray, part: float) -> Point:
    """Return a point with a part of the marginals in every column."""
    return Point(point.weights, (1 - part) * point.factors + part * marginal[:, None])


def mixed_with_uniform(point: Point, domain: Domain, part: float) -> Point:
    """Return a point with a part of the uniform distribution in the weights and every column."""
    sizes = np.repeat(domain.sizes, domain.sizes)[:, None]
    rank = len(point.weights)
    return Point(
        (1 - part) * point.weights + part / rank, (1 - part) * point.factors + part / sizes
    )
