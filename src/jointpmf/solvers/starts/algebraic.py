"""The closed-form start: joint eigenvectors of stacked triples, exact on exact marginals.

Three groups of variables are chosen of which all triples across are known. Stacked, those triples
are one third-order tensor whose factors are the stacked factors of the groups (docs/math.md, eq.
17). If two of the stacks have full column rank, its slices share eigenvectors, which give
one stack; the rest follows by least squares. Several groupings are tried, and the one that fits
all marginals best is kept.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, product
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from jointpmf.compiled.simplex import project_point
from jointpmf.point import Point

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.solvers.least_squares import CoupledLeastSquares

Groups = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

_N_GROUPINGS = 6
"""Groupings that are tried; under noise the best of a few is clearly better than the first."""

_EXACT = 1e-20
"""A point that leaves less than this part of ‖X‖² is exact, and no other grouping is tried."""

_SINGULAR = 1e-11
"""Reciprocal condition below which a matrix is taken for singular."""

_ABSURD = 1e12
"""A solution with a number beyond this, or with none, is noise and not probabilities."""

_N_MIXES = 3
"""Random combinations of the slices whose eigenvectors are tried as a start."""

_MAX_EQUATIONS = 30
"""Triples that the factor of a variable outside of the groups is solved from."""

_ROOM = 4
"""A stack grows until it has room for this many times the rank: more variables cost time, and do
not make the point more accurate."""


class TripleTables(Protocol):
    """What the closed form needs of the tables of three variables."""

    def holding(self, n: int) -> list[frozenset[int]]:
        """Return the triples that have a variable."""

    def table(self, triple: tuple[int, int, int]) -> np.ndarray:
        """Return the table of three variables, axes in the order asked."""


@dataclass(frozen=True)
class Triples:
    """All tables of three variables that a set of marginals contains."""

    marginals: MarginalSet

    @cached_property
    def _holder(self) -> dict[frozenset[int], int]:
        holders: dict[frozenset[int], int] = {}
        by_order = sorted(range(len(self.marginals)), key=lambda m: self.marginals[m].order)
        for m in by_order:
            for triple in combinations(self.marginals.subsets[m], 3):
                holders.setdefault(frozenset(triple), m)
        return holders

    def __contains__(self, triple: object) -> bool:
        return isinstance(triple, tuple) and frozenset(triple) in self._holder

    def __iter__(self) -> Iterator[frozenset[int]]:
        return iter(self._holder)

    @cached_property
    def _by_variable(self) -> dict[int, list[frozenset[int]]]:
        holding: dict[int, list[frozenset[int]]] = {}
        for triple in self._holder:
            for n in triple:
                holding.setdefault(n, []).append(triple)
        return holding

    def holding(self, n: int) -> list[frozenset[int]]:
        """Return the triples that have a variable."""
        return self._by_variable.get(n, [])

    def table(self, triple: tuple[int, int, int]) -> np.ndarray:
        """Return the table of three variables, axes in the order asked."""
        m = self._holder[frozenset(triple)]
        subset = self.marginals.subsets[m]
        table = np.asarray(self.marginals[m].table)
        rest = tuple(k for k, n in enumerate(subset) if n not in triple)
        kept = [n for n in subset if n in triple]
        return table.sum(axis=rest).transpose([kept.index(n) for n in triple])


class AlgebraicStart(NamedTuple):
    """The best closed-form point, or None and why there is none."""

    point: Point | None
    reason: str
    is_exact: bool = False
    """The point reproduces all marginals, and thereby is the only model of its rank."""


def fits_exactly(problem: CoupledLeastSquares, cost: float) -> bool:
    """Tell whether a cost is zero to rounding: the model fits all marginals exactly."""
    return cost <= _EXACT * problem.norm


def algebraic_start(
    marginals: MarginalSet,
    problem: CoupledLeastSquares,
    generator: np.random.Generator,
    room: int = _ROOM,
) -> AlgebraicStart:
    """Return the closed-form point that fits all marginals best, of several groupings."""
    triples = Triples(marginals)
    if not list(triples):
        return AlgebraicStart(None, "no three variables are known together")
    best: Point | None = None
    best_cost, n_tried = np.inf, 0
    domain = marginals.domain
    for groups in groupings(domain, triples, problem.rank, generator, room):
        n_tried += 1
        point = point_of_groups(domain, triples, groups, problem.rank, generator)
        cost = np.inf if point is None else problem.cost(point)
        if cost < best_cost:
            best, best_cost = point, cost
        if fits_exactly(problem, best_cost):
            break
    if n_tried == 0:
        return AlgebraicStart(None, "no two stacks of the known triples can have the asked rank")
    if best is None:
        return AlgebraicStart(None, "the slices of the stacked triples share no eigenvectors")
    is_exact = fits_exactly(problem, best_cost)
    return AlgebraicStart(best, f"the best of {n_tried} groupings of triples", is_exact)


def groupings(
    domain: Domain, triples: Triples, rank: int, generator: np.random.Generator, room: int = _ROOM
) -> Iterator[Groups]:
    """Yield different groupings, the first two groups of which have room for the rank."""
    known = [tuple(sorted(triple)) for triple in triples]
    seen = set()
    for _ in range(4 * _N_GROUPINGS):
        seed = generator.permutation(known[generator.integers(len(known))])
        groups = grown(domain, triples, [[int(n)] for n in seed], rank, generator, room)
        key = (frozenset(map(frozenset, groups[:2])), frozenset(groups[2]))
        rooms = [room_of(domain, group) for group in groups]
        if min(rooms[:2]) < rank or rooms[2] < 2 or key in seen:
            continue
        seen.add(key)
        yield (tuple(groups[0]), tuple(groups[1]), tuple(groups[2]))
        if len(seen) == _N_GROUPINGS:
            return


def room_of(domain: Domain, group: Sequence[int]) -> int:
    """Return the largest rank of a stack: its blocks' columns all have the same sum."""
    return 1 + sum(domain.sizes[n] - 1 for n in group)


def grown(
    domain: Domain,
    triples: Container[tuple[int, int, int]],
    groups: list[list[int]],
    rank: int,
    generator: np.random.Generator,
    room: int = _ROOM,
) -> list[list[int]]:
    """Return groups to which variables were added as long as all triples across are known."""
    taken = {n for group in groups for n in group}
    for n in generator.permutation(len(domain)).tolist():
        rooms = [room_of(domain, group) for group in groups]
        if min(rooms) >= room * rank:
            break
        # the first two groups must reach the rank; after that, whichever has least room
        wish = sorted(range(3), key=lambda g: (rooms[g] >= rank or g == 2, rooms[g]))
        for g in wish:
            if n in taken or rooms[g] >= room * rank:
                continue
            others = [group for h, group in enumerate(groups) if h != g]
            if all((n, a, b) in triples for a, b in product(*others)):
                groups[g].append(n)
                taken.add(n)
    return groups


def point_of_groups(
    domain: Domain, triples: TripleTables, groups: Groups, rank: int, generator: np.random.Generator
) -> Point | None:
    """Return the feasible point that one grouping gives, or None if its slices do not agree."""
    sizes, offsets = domain.sizes, domain.offsets
    stacks = decompose(_stacked(triples, groups), rank, generator)
    if stacks is None:
        return None
    weights = np.ones(rank)
    factors = np.zeros((int(offsets[-1]), rank))
    for group, stack in zip(groups, stacks, strict=True):
        weights = weights * stack.sum(axis=0) / len(group)
        blocks = np.split(stack, np.cumsum([sizes[n] for n in group])[:-1])
        for n, block in zip(group, blocks, strict=True):
            total = block.sum(axis=0)
            factors[offsets[n] : offsets[n + 1]] = block / np.where(total == 0, 1, total)
    if not (np.abs(weights).max() < _ABSURD and np.abs(factors).max() < _ABSURD):
        return None
    project_point(weights, factors, offsets)
    point = Point(weights, factors)
    _solve_remaining(domain, triples, {n for group in groups for n in group}, point)
    return point


def _stacked(triples: TripleTables, groups: Groups) -> np.ndarray:
    """Return the tensor of all triples across the groups."""
    return np.concatenate(
        [
            np.concatenate(
                [
                    np.concatenate([triples.table((i, j, k)) for k in groups[2]], axis=2)
                    for j in groups[1]
                ],
                axis=1,
            )
            for i in groups[0]
        ],
        axis=0,
    )


def decompose(
    tensor: np.ndarray, rank: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the three factors of a tensor whose first two have full column rank, or None."""
    size1, size2, size3 = tensor.shape
    basis1 = _leading_vectors(tensor.reshape(size1, -1), rank)
    basis2 = _leading_vectors(tensor.transpose(1, 0, 2).reshape(size2, -1), rank)
    slices = np.einsum("ap,abk,bq->kpq", basis1, tensor, basis2, optimize=True)
    mean = slices.mean(axis=0)
    if np.linalg.cond(mean) > 1 / _SINGULAR:
        return None
    vectors = joint_eigenvectors(
        np.linalg.solve(mean.T, slices.transpose(0, 2, 1)).transpose(0, 2, 1), generator
    )
    if vectors is None:
        return None
    first = basis1 @ vectors
    sums = first.sum(axis=0)
    if not sums.all():
        return None
    first = first / sums
    rest = np.linalg.lstsq(first, tensor.reshape(size1, -1))[0].reshape(rank, size2, size3)
    left, values, right = np.linalg.svd(rest, full_matrices=False)
    second, third = left[:, :, 0].T, (right[:, 0] * values[:, :1]).T
    sign = np.sign(second.sum(axis=0))
    return first, second * sign, third * sign


def _leading_vectors(matrix: np.ndarray, rank: int) -> np.ndarray:
    """Return the leading left singular vectors; of a wide matrix only a triangle is decomposed."""
    triangle = np.asarray(np.linalg.qr(matrix.T, mode="r"))
    return np.linalg.svd(triangle.T, full_matrices=False)[0][:, :rank]


def joint_eigenvectors(
    matrices: np.ndarray, generator: np.random.Generator, max_iter: int = 100
) -> np.ndarray | None:
    """Return the vectors that diagonalise all matrices best, eq. 18, or None if they are not real.

    A random combination of the matrices gives a start. Then, as long as it helps, all off-diagonal
    entries of all matrices are made small together, to first order.
    """
    vectors = _eigenvectors_of_a_mix(matrices, generator)
    if vectors is None:
        return None
    previous = np.inf
    for _ in range(max_iter):
        rotated = np.linalg.solve(vectors, matrices @ vectors)
        diagonals = np.einsum("kii->ki", rotated)
        gaps = diagonals[:, :, None] - diagonals[:, None, :]
        squares = np.einsum("kij,kij->ij", gaps, gaps)
        np.fill_diagonal(squares, 1.0)
        change = -np.einsum("kij,kij->ij", rotated, gaps) / np.maximum(squares, 1e-300)
        np.fill_diagonal(change, 0.0)
        size = np.abs(change).max()
        if not np.isfinite(size) or size >= previous:
            break
        previous = size
        vectors = vectors + vectors @ (change / max(1.0, 2 * size))
        vectors = vectors / np.linalg.norm(vectors, axis=0)
    return vectors


def _eigenvectors_of_a_mix(
    matrices: np.ndarray, generator: np.random.Generator
) -> np.ndarray | None:
    """Return eigenvectors of the random combination with the best conditioned real ones."""
    best, best_condition = None, 1 / _SINGULAR
    for _ in range(_N_MIXES):
        mix = np.tensordot(generator.normal(size=len(matrices)), matrices, 1)
        values, vectors = np.linalg.eig(mix)
        vectors = vectors.real if np.isrealobj(values) else _real_pairs(values, vectors)
        condition = np.linalg.cond(vectors)
        if condition < best_condition:
            best, best_condition = vectors, condition
    return best


def _real_pairs(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return a real basis: real and imaginary part where noise made two eigenvalues complex."""
    return np.where(values.imag < 0, vectors.imag, vectors.real)


def _solve_remaining(domain: Domain, triples: TripleTables, known: set[int], point: Point) -> None:
    """Fill in the factors of the other variables, by least squares against the known ones."""
    offsets = domain.offsets
    waiting = [n for n in range(len(domain)) if n not in known]
    while waiting:
        equations = {n: _known_pairs(triples, n, known) for n in waiting}
        solvable = [n for n in waiting if equations[n]]
        for n in solvable or waiting:  # with nothing to solve from, what is left stays uniform
            rows = slice(int(offsets[n]), int(offsets[n + 1]))
            point.factors[rows] = (
                _least_squares(triples, n, equations[n], point, offsets)
                if equations[n]
                else 1 / (rows.stop - rows.start)
            )
        known.update(solvable or waiting)
        waiting = [n for n in waiting if n not in known]
    project_point(point.weights, point.factors, offsets)


def _known_pairs(triples: TripleTables, n: int, known: set[int]) -> list[frozenset[int]]:
    """Return pairs of known variables, as many as it takes, whose triple with n is known."""
    pairs = (triple - {n} for triple in triples.holding(n))
    return list(islice((pair for pair in pairs if pair <= known), _MAX_EQUATIONS))


def _least_squares(
    triples: TripleTables, n: int, pairs: list[frozenset[int]], point: Point, offsets: np.ndarray
) -> np.ndarray:
    joints, tables = [], []
    for i, j in map(sorted, pairs):
        a, b = (point.factors[offsets[m] : offsets[m + 1]] for m in (i, j))
        joints.append((a[:, None] * b).reshape(-1, len(point.weights)) * point.weights)
        table = triples.table((i, j, n))
        tables.append(table.reshape(-1, table.shape[2]))
    return np.linalg.lstsq(np.concatenate(joints), np.concatenate(tables))[0].T
