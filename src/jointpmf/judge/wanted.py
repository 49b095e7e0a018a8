"""Which tables to ask for: those that would see most of what the known ones leave open.

A direction in which a model can change without changing any known table is open. What a further
table sees of the open directions is a rank (docs/math.md, eq. 63).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.point import Point
from jointpmf.solvers.curvature import Curvature
from jointpmf.solvers.jacobian import positive_rank, whole_tangent
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.judge.known import KnownTables

Subset = tuple[int, ...]

_MOST_SUGGESTED = 5
"""Tables that are asked for."""

_MAX_SUGGESTED_PARAMETERS = 1500
"""Parameters of the largest model whose open directions are looked for: it takes a second."""

_MOST_CANDIDATES = 2000
"""Tables among which those to ask for are sought."""

_MOST_WORK = 3e7
"""Parameters times open directions times candidates: more of them would take more than a second."""

_UNSEEN_PART = 1e-11
"""The part of the trace of a table's JᵀJ below which it does not see a direction."""


@dataclass(frozen=True)
class WantedTables:
    """Tables to ask for, in this order, and how many of the open directions they would see.

    Attributes
    ----------
    tables : tuple of tuples of names
        The tables. Each sees most of what those before it leave open.
    n_open : int
        In how many directions the model can change without changing a known table.
    n_seen : int
        In how many of these it would change the tables to ask for.
    """

    tables: tuple[tuple[str, ...], ...] = ()
    n_open: int = 0
    n_seen: int = 0


def wanted_tables(known: KnownTables, point: Point) -> WantedTables:
    """Return which tables would see most of what the known ones leave open at a model.

    Examples
    --------
    >>> import jointpmf as jp
    >>> from jointpmf.judge.known import known_tables
    >>> generator = np.random.default_rng(0)
    >>> pairs = known_tables((jp.Domain.of_sizes([3, 2, 3]), 2), None, generator)
    >>> from jointpmf.solvers.jacobian import spread_model
    >>> wanted_tables(pairs, spread_model(pairs.domain, 2, generator)).tables
    (('x0', 'x1', 'x2'),)
    """
    if point.factors.size + len(point.weights) > _MAX_SUGGESTED_PARAMETERS:
        return WantedTables()
    with one_blas_thread:
        directions = _open_directions(known, point)
        n_open = len(directions)
        most = _most_gains(known, min(int(_MOST_WORK / max(directions.size, 1)), _MOST_CANDIDATES))
        tables: list[tuple[str, ...]] = []
        while len(directions) and len(tables) < _MOST_SUGGESTED:
            best = _best(known.domain, point, directions, most)
            if best is None:
                break
            tables.append(tuple(known.domain.names[n] for n in best))
            directions = _unseen(_forms(known.domain, point, directions, best), directions)
    return WantedTables(tuple(tables), n_open, n_open - len(directions))


def _open_directions(known: KnownTables, point: Point) -> np.ndarray:
    """Return an orthonormal basis of all changes that no known table sees, one in each row."""
    tangent = whole_tangent(known.domain, point)
    reduced = tangent.reduce_matrix(known.curvature.matrix(point))
    n_open = len(reduced) - positive_rank(reduced)
    scale = np.sqrt(np.maximum(np.diag(reduced), 0.0))
    scale[scale == 0] = 1.0
    _, vectors = np.linalg.eigh(reduced / np.outer(scale, scale))
    found = [tangent.expand(vectors[:, k] / scale) for k in range(n_open)]
    basis = np.linalg.qr(np.reshape(found, (n_open, tangent.n_parameters)).T)[0]
    return np.ascontiguousarray(basis.T)


def _best(
    domain: Domain, point: Point, directions: np.ndarray, most: dict[Subset, int]
) -> Subset | None:
    """Return the table that sees most directions, the smallest of them; None if none sees any.

    `most` is how many each can see at most, in the order of their sizes. It becomes what each sees:
    of fewer directions a table never sees more, so that most tables need not be looked at again.
    """
    for subset in most:
        most[subset] = min(most[subset], len(directions))
    place = {subset: k for k, subset in enumerate(most)}
    best, n_best, k_best = None, 0, len(most)
    for subset in sorted(most, key=lambda one: -most[one]):
        if most[subset] > n_best or (most[subset] == n_best > 0 and place[subset] < k_best):
            most[subset] = n_seen = _rank(_forms(domain, point, directions, subset))
            if n_seen and (n_seen, -place[subset]) > (n_best, -k_best):
                best, n_best, k_best = subset, n_seen, place[subset]
    return best


def _forms(domain: Domain, point: Point, directions: np.ndarray, subset: Subset) -> np.ndarray:
    """Return what a table sees of directions: its JᵀJ over them, as a part of its trace.

    It sees the weights and its own variables only, and of these JᵀJ is small.
    """
    names, rank = domain.names, len(point.weights)
    part = domain.project([names[n] for n in subset])
    levels = np.concatenate([np.arange(*domain.offsets[n : n + 2]) for n in subset])
    own = Point(point.weights, point.factors[levels])
    matrix = Curvature(part, [tuple(range(len(subset)))], np.ones(1)).matrix(own)
    rows = np.concatenate([[0], 1 + levels])[:, None] * rank + np.arange(rank)
    seen = directions[:, rows.ravel()]
    return seen @ matrix @ seen.T / np.trace(matrix)


def _rank(form: np.ndarray) -> int:
    return int((np.linalg.eigvalsh(form) > _UNSEEN_PART).sum())


def _unseen(form: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the directions that a table does not see."""
    values, vectors = np.linalg.eigh(form)
    return np.ascontiguousarray(vectors[:, values <= _UNSEEN_PART].T @ directions)


def _most_gains(known: KnownTables, most: int) -> dict[Subset, int]:
    """Return how many independent numbers each table would add, those of fewest cells first."""
    domain = known.domain
    wholes = [frozenset(subset) for subset in known.subsets]

    @cache
    def is_known(part: Subset) -> bool:
        return any(whole.issuperset(part) for whole in wholes)

    def added(subset: Subset) -> int:
        parts = (part for k in range(1, len(subset) + 1) for part in combinations(subset, k))
        return sum(math.prod(domain.sizes[n] - 1 for n in u) for u in parts if not is_known(u))

    found = {subset: added(subset) for subset in _candidates(known, max(most, 1))}
    return {subset: gain for subset, gain in found.items() if gain}


def _candidates(known: KnownTables, most: int) -> list[Subset]:
    """Return tables of at most one variable more than the known ones, of the fewest cells first.

    From single variables they go up to three: pairs alone determine no model but that of rank one.
    If there are too many, larger tables are of the variables with most levels only.
    """
    domain = known.domain
    found: list[Subset] = []
    for order in range(2, min(max(known.highest_order + 1, 3), len(domain)) + 1):
        found += combinations(_largest_variables(domain, order, most - len(found)), order)
    return sorted(found, key=lambda subset: math.prod(domain.sizes[n] for n in subset))


def _largest_variables(domain: Domain, order: int, most: int) -> list[int]:
    """Return the variables with most levels, of which there are at most so many tables."""
    n_used = len(domain)
    while n_used > order and math.comb(n_used, order) > most:
        n_used -= 1
    by_size = sorted(range(len(domain)), key=lambda n: -domain.sizes[n])
    return sorted(by_size[:n_used])
