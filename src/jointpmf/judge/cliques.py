"""Which variables must be looked at together: tables → a graph → cliques → a tree of them.

Distributions of the cliques of a chordal graph that agree wherever two of them meet in a tree are
those of one joint (docs/math.md, eq. 61), so that nothing larger than a clique is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

Group = frozenset[int]
"""Variables that belong together, by their positions."""


class Meeting(NamedTuple):
    """Two cliques that are neighbours in the tree, and the variables that both have."""

    first: int
    second: int
    common: Group


def connected_to(seed: Group, groups: Sequence[Group]) -> Group:
    """Return all variables that groups connect with those of the seed, which are among them.

    Examples
    --------
    >>> groups = [frozenset({0, 1}), frozenset({3, 4}), frozenset({1, 2})]
    >>> sorted(connected_to(frozenset({2}), groups))
    [0, 1, 2]
    """
    reached, n_before = set(seed), -1
    while n_before < len(reached):
        n_before = len(reached)
        for group in groups:
            if group & reached:
                reached |= group
    return frozenset(reached)


def cliques_of(groups: Iterable[Group], sizes: Sequence[int]) -> list[Group]:
    """Return the largest cliques of a chordal graph in which each group is connected.

    Variables are eliminated one after the other: first those that need the fewest new edges, and
    of these the one whose clique has the fewest cells.

    Examples
    --------
    >>> ring = [frozenset({n, (n + 1) % 4}) for n in range(4)]
    >>> [sorted(clique) for clique in cliques_of(ring, [2, 2, 2, 2])]
    [[0, 1, 3], [1, 2, 3]]
    """
    near: dict[int, set[int]] = {}
    for group in groups:
        for n in group:
            near.setdefault(n, set()).update(group - {n})
    found: list[Group] = []
    while near:
        n = _next(near, sizes)
        others = near.pop(n)
        for m in others:
            near[m] |= others
            near[m] -= {n, m}
        clique = frozenset(others | {n})
        if not any(clique <= larger for larger in found):
            found.append(clique)
    return found


def _next(near: dict[int, set[int]], sizes: Sequence[int]) -> int:
    """Return the variable to eliminate next."""
    best, least = -1, (math.inf, math.inf)
    for n in sorted(near):
        n_new = sum(b not in near[a] for a, b in combinations(near[n], 2))
        cost = n_new, math.prod(sizes[m] for m in near[n]) * sizes[n]
        if cost < least:
            best, least = n, cost
        if n_new == 0:  # nothing is lost by taking it now
            break
    return best


def tree_of(cliques: Sequence[Group]) -> list[Meeting]:
    """Return a tree of cliques in which those that share a variable are connected through it.

    It is a spanning tree with the most variables in common. Cliques without any stay apart.

    Examples
    --------
    >>> [tuple(m.common) for m in tree_of([frozenset({0, 1}), frozenset({1, 2})])]
    [(1,)]
    """
    best = {k: (len(cliques[0] & cliques[k]), 0) for k in range(1, len(cliques))}
    found = []
    while best:
        k = max(best, key=lambda one: best[one][0])
        n_common, parent = best.pop(k)
        if n_common:
            found.append(Meeting(parent, k, cliques[parent] & cliques[k]))
        for other, (most, _) in best.items():
            if len(cliques[k] & cliques[other]) > most:
                best[other] = len(cliques[k] & cliques[other]), k
    return found


def count_cells(cliques: Iterable[Group], sizes: Sequence[int]) -> int:
    """Return how many cells all cliques have together."""
    return sum(math.prod(sizes[n] for n in clique) for clique in cliques)
