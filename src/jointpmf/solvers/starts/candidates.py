"""Where EM begins: the closed form on counted triples, merged or single rows, or at random.

The surest of them begins with more components than asked, at rows of the data, and after some
steps merges those that lose least by it: every component of the truth has had a row near it.
"""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np

from jointpmf.compiled.simplex import project_point
from jointpmf.data.encoding import Codes
from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, shown
from jointpmf.marginals.counting import count_tables
from jointpmf.pmf import JointPMF
from jointpmf.rows.table import TableRows
from jointpmf.solvers.em import EM
from jointpmf.solvers.implicit import ImplicitLeastSquares
from jointpmf.solvers.point import Point
from jointpmf.solvers.starts.algebraic import Groups, grown, point_of_groups, room_of
from jointpmf.threads import one_blas_thread

SURPLUS, SURPLUS_STEPS = 2, 5
"""How many times the rank merging begins with, and the EM steps before it."""

ROW_PART = 0.5
"""Probability that a component which begins at a row gives to that row's own levels."""

INTERIOR, MERGED_INTERIOR = 0.2, 0.01
"""Part of the marginals in a closed-form start, whose zeros are noise, and in a merged one."""

MAX_MERGED = 10**8
"""Work of the most components that are merged: their pairs times the levels."""

N_COMPLETED, MAX_COUNTED = 3, 2 * 10**8
"""Closed forms that are tried over all subsets, and rows times triples that each of them counts."""

MAX_STACKED = 2**23
"""Cells of the largest tensor of stacked triples that the closed form is asked for."""


def random_point(domain: Domain, rank: int, generator: np.random.Generator) -> Point:
    """Return equal weights and columns drawn uniformly from the simplex."""
    columns = [generator.dirichlet(np.ones(size), rank).T for size in domain.sizes]
    return Point(np.full(rank, 1 / rank), np.concatenate(columns))


def checked_start(
    start: Any, kinds: tuple[str, ...], domain: Domain, rank: int, whose: str
) -> str | JointPMF:
    """Return a start that is one of some kinds, or a model of that rank over that domain."""
    if isinstance(start, JointPMF):
        if start.domain != domain or start.rank != rank:
            raise JointPMFError(
                f"the start {start!r} is not of rank {rank} over the {whose} domain"
            )
        return start
    if not isinstance(start, str) or start not in kinds:
        listed = ", ".join(map(repr, kinds))
        raise JointPMFError(f"start must be {listed} or a JointPMF, not {shown(start)}")
    return start


def mixed(point: Point, marginal: np.ndarray, part: float) -> Point:
    """Return a point with a part of the marginals in every column."""
    return Point(point.weights, (1 - part) * point.factors + part * marginal[:, None])


def point_at_rows(rows: TableRows, rank: int, generator: np.random.Generator) -> Point:
    """Return components that lean towards one row of the data each, chosen by weight."""
    domain = rows.domain
    chosen = generator.choice(len(rows), rank, len(rows) < rank, rows.weights / rows.total)
    component, cells = rows.cells_of(chosen)
    variable = np.repeat(np.arange(len(domain)), domain.sizes)
    is_seen = np.zeros((len(domain), rank), bool)
    is_seen[variable[cells], component] = True
    factors = np.where(is_seen[variable], 1 - ROW_PART, 1.0) * rows.marginal[:, None]
    factors[cells, component] += ROW_PART
    return Point(np.full(rank, 1 / rank), factors)


def point_of_merged_rows(rows: TableRows, rank: int, generator: np.random.Generator) -> Point:
    """Return a point that began with a surplus of components, merged where that loses least."""
    return _settled(rows, point_at_rows(rows, SURPLUS * rank, generator), rank)


def can_merge(domain: Domain, rank: int) -> bool:
    """Tell whether merging down to a rank is affordable."""
    return (SURPLUS * rank) ** 2 * int(domain.offsets[-1]) <= MAX_MERGED


def enlarged_point(
    pmf: JointPMF, rows: TableRows, rank: int, generator: np.random.Generator
) -> Point:
    """Return a point of larger rank than a model, to which components at rows were added."""
    added = point_at_rows(rows, rank, generator)
    weights = np.concatenate([pmf.weights, added.weights]) / 2
    factors = np.hstack([np.concatenate(pmf.factors), added.factors])
    return _settled(rows, Point(weights, factors), rank)


def _settled(rows: TableRows, point: Point, rank: int) -> Point:
    """Return what some EM steps and then mergers make of too many components."""
    em = EM(rows, len(point.weights))
    state = em.start(point)
    for _ in range(SURPLUS_STEPS):
        state = em.step(state)
    counts = em.expected_counts(state)
    return mixed(merged(counts, rows.domain.offsets, rank), rows.marginal, MERGED_INTERIOR)


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


def point_in_closed_form(
    codes: Codes, weights: np.ndarray | None, rank: int, generator: np.random.Generator
) -> Point | None:
    """Return the closed form of the triples across one grouping of the variables, if it has one."""
    groups = _sampled_groups(codes.domain, rank, generator)
    if groups is None:
        return None
    triples = CountedTriples(codes, weights, groups)
    with one_blas_thread:
        return point_of_groups(codes.domain, triples, groups, rank, generator)


def _sampled_groups(domain: Domain, rank: int, generator: np.random.Generator) -> Groups | None:
    """Return three groups of variables with room for the rank, or None if there are none."""
    if len(domain) < 3:
        return None
    seeds = [[int(n)] for n in generator.permutation(len(domain))[:3]]
    first, second, third = grown(domain, _Everything(), seeds, rank, generator)
    groups = (tuple(first), tuple(second), tuple(third))
    rooms = [room_of(domain, group) for group in groups]
    n_cells = np.prod([sum(domain.sizes[n] for n in group) for group in groups], dtype=float)
    is_possible = min(rooms[:2]) >= rank and rooms[2] >= 2 and n_cells <= MAX_STACKED
    return groups if is_possible else None


def point_of_all_subsets(
    problem: ImplicitLeastSquares, generator: np.random.Generator
) -> Point | None:
    """Return the best of some closed forms, each completed by one pass over the rows.

    The triples across some of the variables give their factors; given these, the factor of every
    other variable solves its own linear equations, over all subsets with known variables.
    """
    found = [_completed_closed_form(problem, generator) for _ in range(N_COMPLETED)]
    points = [point for point in found if point is not None]
    return min(points, key=problem.relative_cost, default=None)


def _completed_closed_form(
    problem: ImplicitLeastSquares, generator: np.random.Generator
) -> Point | None:
    domain, rank, rows = problem.domain, problem.rank, problem.rows
    groups = _sampled_groups(domain, rank, generator)
    if groups is None:
        return None
    step = max(len(rows) * math.prod(map(len, groups)) // MAX_COUNTED, 1)
    codes = Codes(domain, rows.columns[:, ::step].T)
    triples = CountedTriples(codes, rows.weights[::step], groups)
    point = point_of_groups(domain, triples, groups, rank, generator)
    if point is None:
        return None
    known = {n for group in groups for n in group}
    for n, (begin, end) in enumerate(pairwise(domain.offsets)):
        if n not in known:
            point.factors[begin:end] = 0.0  # says nothing in a product over subsets
    for n, block in enumerate(problem.blocks(point)):
        if n not in known:
            point.factors[block.rows] = np.linalg.lstsq(block.gram, block.cross)[0].T
    project_point(point.weights, point.factors, domain.offsets)
    return point


class CountedTriples:
    """The triples across three groups of variables, each over the rows that observe it."""

    def __init__(self, codes: Codes, weights: np.ndarray | None, groups: Groups) -> None:
        triples = [tuple(sorted(triple)) for triple in product(*groups)]
        self._counts = dict(zip(triples, count_tables(codes, triples, weights), strict=True))

    def holding(self, n: int) -> list[frozenset[int]]:
        """Return no triple: variables outside of the groups are left to the first EM step."""
        return []

    def table(self, triple: tuple[int, int, int]) -> np.ndarray:
        """Return the probabilities of three variables, axes in the order asked."""
        key = tuple(sorted(triple))
        counts = np.asarray(self._counts[key], np.float64)
        probabilities = counts / (counts.sum() or 1.0)
        return probabilities.transpose([key.index(n) for n in triple])


class _Everything:
    """The set of all triples: any can be counted."""

    def __contains__(self, triple: object) -> bool:
        return True
