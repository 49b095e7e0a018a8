"""Simplices: the nearest point on one, and ADMM on a block whose solution lies on them."""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.blas import add_product, gemm_address
from jointpmf.compiled.jit import compiled, inner


@inner
def _project_simplex(x, begin, end, step):
    """Replace x[begin:end:step] by the nearest that is non-negative and sums to one.

    The same is subtracted from all that stay above zero. Taking it from too many at first tells
    which of them do not, and so on until none falls out any more.
    """
    shift, kept = -np.inf, end + 1
    while True:
        count, total = 0, -1.0
        for i in range(begin, end, step):
            if not x[i] <= shift:  # what is no number is not lost
                count += 1
                total += x[i]
        shift = total / count
        if count >= kept:
            break
        kept = count
    total = 0.0
    for i in range(begin, end, step):
        x[i] = 0.0 if x[i] <= shift else x[i] - shift
        total += x[i]
    for i in range(begin, end, step):  # what rounding left of the sum
        x[i] /= total


@compiled
def _project_columns(x, rank, offsets):
    """Project each column of each variable's rows; x has all rows one after the other."""
    for n in range(len(offsets) - 1):
        for f in range(rank):
            _project_simplex(x, offsets[n] * rank + f, offsets[n + 1] * rank, rank)


def project_simplex(x: np.ndarray) -> None:
    """Replace x by the nearest point that is non-negative and sums to one."""
    _project_columns(x, 1, np.array([0, len(x)]))


def project_point(weights: np.ndarray, factors: np.ndarray, offsets: np.ndarray) -> None:
    """Replace the weights and all columns of all factors by the nearest feasible ones."""
    project_simplex(weights)
    _project_columns(factors.reshape(-1), len(weights), offsets)


@inner
def _invert(matrix):
    """Replace a positive definite matrix, well-conditioned, by its inverse.

    It is made −inverse one variable after the other, in its lower triangle. Another row below it
    is memory for the variable's own row.
    """
    rank = matrix.shape[1]
    for k in range(rank):
        scale = 1.0 / matrix[k, k]
        for j in range(rank):
            matrix[rank, j] = matrix[k, j] if j < k else matrix[j, k]
        for i in range(rank):
            part = scale * matrix[rank, i]
            for j in range(i + 1):
                matrix[i, j] -= part * matrix[rank, j]
        for j in range(k):
            matrix[k, j] = scale * matrix[rank, j]
        for j in range(k + 1, rank):
            matrix[j, k] = scale * matrix[rank, j]
        matrix[k, k] = -scale
    for i in range(rank):
        for j in range(i + 1):
            matrix[i, j] = matrix[j, i] = -matrix[i, j]


@compiled
def _solve_block(gemm, gram, cross, value, dual, simplex, max_iter, tol, inverse, room):
    """See `solve_block`. Values are in one piece, row after row; every `simplex` of them is one."""
    rank, count = len(gram), len(value)
    target, free, initial = 0, 1, 2  # rows of `room`
    rho = 0.0
    for f in range(rank):
        rho += gram[f, f] / rank
    if rho <= 0.0:  # no weight on any component: every feasible value is optimal
        max_iter = 0
    for f in range(rank):
        for g in range(rank):
            inverse[f, g] = gram[f, g] + (rho if f == g else 0.0)
    _invert(inverse)  # rho ~ trace makes it well-conditioned
    for k in range(count):
        room[initial, k] = value[k]
    primal_gap = dual_gap = 0.0
    norm = 1.0
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        for k in range(count):
            room[target, k] = cross[k] + rho * (value[k] + dual[k])
            room[free, k] = 0.0
        size = count // rank
        add_product(
            gemm, 1.0, (rank, rank, size), (inverse, 0, rank, False),
            (room, target * count, size, False), (room, free * count, size),
        )  # fmt: skip
        for k in range(count):
            room[target, k] = value[k]
            value[k] = room[free, k] - dual[k]
        for begin in range(0, count, simplex):
            # as a literal, the step would make for one more compilation
            _project_simplex(value, begin, begin + simplex, np.int64(1))
        primal = change = norm = 0.0
        for k in range(count):
            gap, move = value[k] - room[free, k], value[k] - room[target, k]
            dual[k] += gap
            primal += gap * gap
            change += move * move
            norm += value[k] * value[k]
        primal_gap, dual_gap = np.sqrt(primal / norm), np.sqrt(change / norm)
        if primal_gap < tol and dual_gap < tol:
            break
    moved = 0.0
    for k in range(count):
        moved += (value[k] - room[initial, k]) ** 2
    return n_iter, primal_gap, dual_gap, np.sqrt(moved / norm)


def solve_block(
    gram: np.ndarray,
    cross: np.ndarray,
    value: np.ndarray,
    dual: np.ndarray,
    per_row: bool,
    max_iter: int,
    tol: float,
) -> tuple[int, float, float, float]:
    """Run ADMM (eq. 8) on one block in place; return (iterations, primal gap, dual gap, moved).

    `cross`, `value` and `dual` have shape (rank, size). With `per_row` each row is a simplex (a
    factor, transposed); otherwise the only column is one (the weights). `moved` is how far the
    value went in all, relative to its norm.
    """
    room = np.empty((3, value.size))
    return _solve_block(
        gemm_address(), gram, cross.reshape(-1), value.reshape(-1), dual.reshape(-1),
        value.shape[1] if per_row else len(value), max_iter, tol,
        np.empty((len(gram) + 1, len(gram))), room,
    )  # fmt: skip
