"""AO-ADMM as one would write it first: one einsum per marginal and mode, numpy around it.

The solvers are compared with it, in time by the benchmarks and in value by the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

import jointpmf as jp

Arrays = tuple[np.ndarray, np.ndarray]


def factor_block(
    marginals: jp.MarginalSet,
    weights: np.ndarray,
    factors: Sequence[np.ndarray],
    scales: np.ndarray,
    n: int,
) -> Arrays:
    """Return gram and cross (size, rank) of one factor: one einsum per marginal."""
    rank = len(weights)
    gram, cross = np.zeros((rank, rank)), np.zeros(factors[n].shape)
    for subset, marginal, scale in zip(marginals.subsets, marginals, scales, strict=True):
        if n not in subset:
            continue
        operands: list[Any] = [np.asarray(marginal.table), [m + 1 for m in subset]]
        product_of_grams = np.ones((rank, rank))
        for m in subset:
            if m != n:
                operands += [factors[m], [m + 1, 0]]
                product_of_grams *= factors[m].T @ factors[m]
        gram += scale * product_of_grams
        cross += scale * _einsum_or_broadcast(operands, [n + 1, 0], factors[n].shape)
    return gram * np.outer(weights, weights), cross * weights


def _einsum_or_broadcast(
    operands: list[Any], output: list[int], shape: tuple[int, ...]
) -> np.ndarray:
    """Return the contraction; an order-one marginal is the same for all components."""
    if len(operands) == 2:
        return np.broadcast_to(operands[0][:, None], shape)
    return np.einsum(*operands, output)


def weight_block(
    marginals: jp.MarginalSet,
    weights: np.ndarray,
    factors: Sequence[np.ndarray],
    scales: np.ndarray,
) -> Arrays:
    """Return gram and cross (rank,) of the weights."""
    rank = len(weights)
    gram, cross = np.zeros((rank, rank)), np.zeros(rank)
    for subset, marginal, scale in zip(marginals.subsets, marginals, scales, strict=True):
        operands: list[Any] = [np.asarray(marginal.table), [m + 1 for m in subset]]
        product_of_grams = np.ones((rank, rank))
        for m in subset:
            operands += [factors[m], [m + 1, 0]]
            product_of_grams *= factors[m].T @ factors[m]
        gram += scale * product_of_grams
        cross += scale * np.einsum(*operands, [0])
    return gram, cross


def project_columns(matrix: np.ndarray) -> np.ndarray:
    """Return the nearest matrix whose columns are on the simplex, by sorting."""
    ordered = -np.sort(-matrix, axis=0)
    excess = (np.cumsum(ordered, axis=0) - 1) / np.arange(1, len(matrix) + 1)[:, None]
    last = (ordered > excess).sum(axis=0) - 1
    return np.maximum(matrix - excess[last, np.arange(matrix.shape[1])], 0)


def project_rows(matrix: np.ndarray) -> np.ndarray:
    """Return the nearest matrix whose rows are on the simplex."""
    return project_columns(matrix.T).T


def admm(
    gram: np.ndarray,
    cross: np.ndarray,
    value: np.ndarray,
    dual: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    max_iter: int,
    tol: float,
) -> Arrays:
    """Return value and dual (size, rank) of one block."""
    rho = np.trace(gram) / len(gram)
    cholesky = cho_factor(gram + rho * np.eye(len(gram)))
    for _ in range(max_iter):
        free = cho_solve(cholesky, (cross + rho * (value + dual)).T).T
        previous, value = value, project(free - dual)
        dual = dual + value - free
        scale = np.linalg.norm(value)
        gaps = np.linalg.norm(value - free) / scale, np.linalg.norm(value - previous) / scale
        if max(gaps) < tol:
            break
    return value, dual


class ReferenceSweep:
    """One sweep over all blocks, with the duals that it keeps for the next."""

    def __init__(self, marginals: jp.MarginalSet, rank: int, max_iter: int, tol: float) -> None:
        self.marginals, self.max_iter, self.tol = marginals, max_iter, tol
        self.scales = np.ones(len(marginals))
        self.factor_duals = [np.zeros((size, rank)) for size in marginals.domain.sizes]
        self.weight_dual = np.zeros((1, rank))

    def __call__(
        self, weights: np.ndarray, factors: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the weights and factors after one sweep."""
        factors = [np.array(factor) for factor in factors]
        budget = self.max_iter, self.tol
        for n in range(len(factors)):
            gram, cross = factor_block(self.marginals, weights, factors, self.scales, n)
            factors[n], self.factor_duals[n] = admm(
                gram, cross, factors[n], self.factor_duals[n], project_columns, *budget
            )
        gram, cross = weight_block(self.marginals, weights, factors, self.scales)
        row, self.weight_dual = admm(
            gram, cross[None], weights[None], self.weight_dual, project_rows, *budget
        )
        return row[0], factors
