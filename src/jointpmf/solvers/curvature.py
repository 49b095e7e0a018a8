"""JᵀJ of the coupled model, from Gram matrices: no Jacobian is formed, no table is needed.

Parameters are in one vector, the weights first and then the factors, one row of the stacked
factors after the other. Every simplex (the weights, and each column of each factor) has its own
sum, so a feasible direction moves mass between its levels; `Tangent` spans those directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.compiled import grams as kernels

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.point import Point


class Curvature:
    """The Gauss–Newton matrix of the coupled objective for given subsets and their weights."""

    n_formed = 0

    def __init__(
        self, domain: Domain, subsets: Sequence[tuple[int, ...]], weights: np.ndarray
    ) -> None:
        self.domain = domain
        self.subsets = list(subsets)
        self._weights = np.ascontiguousarray(weights, dtype=float)
        self._subsets = np.array([n for subset in subsets for n in subset], np.int64)
        lengths = [len(subset) for subset in subsets]
        self._ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def at(self, point: Point) -> CurvatureAtPoint:
        """Return JᵀJ at a point, formed only if it is asked for."""
        n_all, rank = len(self.domain), len(point.weights)
        grams = factor_grams(point.factors, self.domain.offsets)
        sums = np.zeros((n_all + 1, n_all + 1, rank, rank))
        kernels.add_pair_grams(
            grams.reshape(n_all, -1), self._subsets, self._ptr, self._weights,
            np.empty(rank**2), sums.reshape(n_all + 1, n_all + 1, -1),
        )  # fmt: skip
        pairs, (i, j) = sums[:-1, :-1], np.triu_indices(n_all, 1)
        pairs[j, i] = pairs[i, j]
        return CurvatureAtPoint(point, self.domain.offsets, pairs, sums[-1, -1])

    def matrix(self, point: Point) -> np.ndarray:
        """Return JᵀJ at a point, eq. 14."""
        return self.at(point).matrix()


@dataclass(frozen=True)
class CurvatureAtPoint:
    """JᵀJ at one point, as the Gram products of every two variables and of all (eq. 15)."""

    point: Point
    offsets: np.ndarray
    pairs: np.ndarray
    whole: np.ndarray

    def matrix(self) -> np.ndarray:
        """Return JᵀJ over the weights and then the rows of the factors, eq. 14."""
        weights, factors = self.point.weights, self.point.factors
        rank, n_levels = len(weights), len(factors)
        matrix = np.zeros((rank + factors.size, rank + factors.size))
        matrix[:rank, :rank] = self.whole
        of_factors = matrix[rank:, rank:].reshape(n_levels, rank, n_levels, rank)
        with_weights = matrix[rank:, :rank].reshape(n_levels, rank, rank)
        sizes, squares = np.diff(self.offsets), np.outer(weights, weights)
        for pairs, own, (begin, end) in zip(
            self.pairs, self.others, pairwise(self.offsets), strict=True
        ):
            mine, levels = factors[begin:end], np.arange(begin, end)
            others = np.repeat(squares * pairs, sizes, axis=0) * factors[:, :, None]
            np.multiply(
                mine[:, None, None, :], others.transpose(1, 0, 2), out=of_factors[begin:end]
            )
            of_factors[begin:end, :, begin:end] = 0.0
            of_factors[levels, :, levels] = squares * own
            with_weights[begin:end] = mine[:, None, :] * (weights[:, None] * own)
        matrix[:rank, rank:] = matrix[rank:, :rank].T
        return matrix

    def times(self, vector: np.ndarray) -> np.ndarray:
        """Return JᵀJ times a vector, without forming JᵀJ."""
        point, own = self.point, self.others
        rank = len(point.weights)
        weights, change = vector[:rank], vector[rank:].reshape(-1, rank)
        cross_grams = np.empty_like(own)
        kernels.set_cross_grams(point.factors, change, self.offsets, cross_grams)
        moved = np.einsum("ijfg,jfg->ifg", self.pairs, cross_grams) - own * cross_grams
        whole = np.einsum("nfg,ngf->gf", own, cross_grams)
        factors = np.empty_like(point.factors)
        kernels.set_factor_product(
            point.weights, point.factors, weights, change, self.offsets, own, moved, factors
        )
        return np.concatenate([self.whole @ weights + whole @ point.weights, factors.ravel()])

    @cached_property
    def others(self) -> np.ndarray:
        """The Gram products of each variable's subsets, without it."""
        return np.ascontiguousarray(np.einsum("nnfg->nfg", self.pairs))

    def own_blocks(self) -> OwnBlocks:
        """Return its blocks on the diagonal."""
        return OwnBlocks(self.point.weights, self.whole, self.others, self.offsets)

    def trace(self) -> float:
        """Return the trace of JᵀJ."""
        return self.own_blocks().trace()


def factor_grams(factors: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the Gram matrix of each variable's factor."""
    return np.array([factors[a:b].T @ factors[a:b] for a, b in pairwise(offsets)])


@dataclass(frozen=True)
class Tangent:
    """Feasible directions: coordinate k moves mass from parameter pivots[k] to moved[k]."""

    moved: np.ndarray
    pivots: np.ndarray
    n_parameters: int

    @classmethod
    def at(cls, point: Point, offsets: np.ndarray, fixed: np.ndarray) -> Tangent:
        """Return the directions at a point along which no fixed parameter moves.

        The pivot of each simplex is its largest entry, which is never fixed.
        """
        pivots = pivot_of_each_parameter(point, offsets)
        moved = np.flatnonzero(~fixed & (pivots != np.arange(len(pivots))))
        return cls(moved, pivots[moved], len(pivots))

    def reduce_vector(self, vector: np.ndarray) -> np.ndarray:
        """Return the tangent coordinates of a gradient."""
        return vector[self.moved] - vector[self.pivots]

    def reduce_matrix(self, matrix: np.ndarray) -> np.ndarray:
        """Return a quadratic form in tangent coordinates."""
        rows = matrix[self.moved] - matrix[self.pivots]
        return rows[:, self.moved] - rows[:, self.pivots]

    def expand(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the change of all parameters."""
        change = np.zeros(self.n_parameters)
        change[self.moved] = coordinates
        np.subtract.at(change, self.pivots, coordinates)
        return change


class OwnBlocks:
    """The blocks of JᵀJ on its diagonal: the weights, and the rows of each variable's factor.

    Parameters
    ----------
    weights, whole, others : array
        The model's weights, JᵀJ over the weights, and over a row of each variable's factor but for
        the weights.
    offsets : array
        The first level of each variable, and the number of all levels.
    """

    def __init__(
        self, weights: np.ndarray, whole: np.ndarray, others: np.ndarray, offsets: np.ndarray
    ) -> None:
        self._whole, self._blocks = whole, others * np.outer(weights, weights)
        self._offsets = offsets

    def trace(self) -> float:
        """Return the trace of JᵀJ."""
        traces = np.trace(self._blocks, axis1=1, axis2=2)
        return float(np.trace(self._whole) + traces @ np.diff(self._offsets))

    def near_inverse(
        self, tangent: Tangent, free: np.ndarray, shift: float
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return what multiplies free tangent coordinates by nearly the inverse of JᵀJ + shift.

        That is the inverse of the blocks, between two projections on the feasible directions.
        """
        rank, sizes = len(self._whole), np.diff(self._offsets)
        moved = tangent.moved[free]
        moves = np.zeros(tangent.n_parameters)
        moves[moved] = moves[tangent.pivots[free]] = 1.0
        inverses = np.repeat(_inverses(self._blocks, shift), sizes, axis=0)
        first = _inverses(self._whole[None], shift)[0]

        def sums(vector: np.ndarray) -> np.ndarray:
            rows = np.add.reduceat(vector[rank:].reshape(-1, rank), self._offsets[:-1], axis=0)
            return np.concatenate(
                [np.full(rank, vector[:rank].sum()), np.repeat(rows, sizes, axis=0).ravel()]
            )

        counts = np.maximum(sums(moves), 1.0)

        def projected(vector: np.ndarray) -> np.ndarray:
            inside = vector * moves
            return inside - moves * (sums(inside) / counts)

        def times(coordinates: np.ndarray) -> np.ndarray:
            whole = np.zeros(tangent.n_parameters)
            whole[moved] = coordinates
            whole = projected(whole)
            rows = np.einsum("if,ifg->ig", whole[rank:].reshape(-1, rank), inverses)
            return projected(np.concatenate([first @ whole[:rank], rows.ravel()]))[moved]

        return times


def _inverses(blocks: np.ndarray, shift: float) -> np.ndarray:
    """Return the inverses of positive semidefinite matrices, each made definite."""
    rank = blocks.shape[-1]
    least = shift + 1e-12 * np.trace(blocks, axis1=1, axis2=2)
    return np.linalg.inv(blocks + least[:, None, None] * np.eye(rank))


def pivot_of_each_parameter(point: Point, offsets: np.ndarray) -> np.ndarray:
    """Return, for every parameter, the largest entry of its simplex."""
    rank = len(point.weights)
    pivots = np.empty(rank + point.factors.size, np.int64)
    pivots[:rank] = point.weights.argmax()
    rows = pivots[rank:].reshape(point.factors.shape)
    for begin, end in pairwise(offsets):
        largest = begin + point.factors[begin:end].argmax(axis=0)
        rows[begin:end] = rank + largest * rank + np.arange(rank)
    return pivots
