"""The closed form on triples that are counted over rows, across some groups of the variables."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.compiled.simplex import project_point
from jointpmf.data.codes import Codes
from jointpmf.marginals.counting import count_tables
from jointpmf.solvers.starts.algebraic import Groups, grown, point_of_groups, room_of

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.point import Point
    from jointpmf.solvers.implicit import ImplicitLeastSquares

_N_COMPLETED, _MAX_COUNTED = 3, 2 * 10**8
"""Closed forms that are tried over all subsets, and rows times triples that each of them counts."""

_MOST_CELLS = 2**23
"""Cells of the largest tensor of stacked triples that the closed form is asked for."""


def _sampled_groups(domain: Domain, rank: int, generator: np.random.Generator) -> Groups | None:
    """Return three groups of variables with room for the rank, or None if there are none."""
    if len(domain) < 3:
        return None
    seeds = [[int(n)] for n in generator.permutation(len(domain))[:3]]
    first, second, third = grown(domain, _Everything(), seeds, rank, generator)
    groups = (tuple(first), tuple(second), tuple(third))
    rooms = [room_of(domain, group) for group in groups]
    n_cells = np.prod([sum(domain.sizes[n] for n in group) for group in groups], dtype=float)
    is_possible = min(rooms[:2]) >= rank and rooms[2] >= 2 and n_cells <= _MOST_CELLS
    return groups if is_possible else None


def point_of_all_subsets(
    problem: ImplicitLeastSquares, generator: np.random.Generator
) -> Point | None:
    """Return the best of some closed forms, each completed by one pass over the rows.

    The triples across some of the variables give their factors; given these, the factor of every
    other variable solves its own linear equations, over all subsets with known variables.
    """
    found = [_completed_closed_form(problem, generator) for _ in range(_N_COMPLETED)]
    points = [point for point in found if point is not None]
    return min(points, key=problem.relative_cost, default=None)


def _completed_closed_form(
    problem: ImplicitLeastSquares, generator: np.random.Generator
) -> Point | None:
    domain, rank, rows = problem.domain, problem.rank, problem.rows
    groups = _sampled_groups(domain, rank, generator)
    if groups is None:
        return None
    step = max(len(rows) * math.prod(map(len, groups)) // _MAX_COUNTED, 1)
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
