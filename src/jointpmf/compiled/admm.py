"""ADMM on one block: a least-squares problem whose solution lies on simplices."""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.jit import compiled
from jointpmf.compiled.simplex import project_simplex


@compiled
def inverse_of_shifted(gram, rho):
    """Return (gram + rho·I)⁻¹ by its Cholesky factor; rho ~ trace makes it well-conditioned."""
    rank = len(gram)
    lower = np.zeros((rank, rank))
    for i in range(rank):
        for j in range(i + 1):
            total = gram[i, j] + (rho if i == j else 0.0)
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(total) if i == j else total / lower[j, j]
    half = np.zeros((rank, rank))  # lower⁻¹
    for i in range(rank):
        half[i, i] = 1.0
        for k in range(i):
            for j in range(k + 1):
                half[i, j] -= lower[i, k] * half[k, j]
        for j in range(i + 1):
            half[i, j] /= lower[i, i]
    inverse = np.zeros((rank, rank))
    for k in range(rank):
        for i in range(k + 1):
            for j in range(k + 1):
                inverse[i, j] += half[k, i] * half[k, j]
    return inverse


@compiled
def solve_block(gram, cross, value, dual, per_row, max_iter, tol):
    """Run ADMM (eq. 8) on one block in place; return (iterations, primal gap, dual gap, moved).

    `cross`, `value` and `dual` have shape (rank, size). With `per_row` each row is a simplex (a
    factor, transposed); otherwise the only column is one (the weights). `moved` is how far the
    value went in all, relative to its norm.
    """
    rank, size = value.shape
    rho = 0.0
    for f in range(rank):
        rho += gram[f, f] / rank
    if rho <= 0.0:  # no weight on any component: every feasible value is optimal
        return 0, 0.0, 0.0, 0.0
    initial = value.copy()
    solve = inverse_of_shifted(gram, rho)
    target = np.empty((rank, size))
    free = np.empty((rank, size))
    previous = np.empty((rank, size))
    scratch = np.empty(max(rank, size))
    primal_gap = dual_gap = 0.0
    norm = 1.0
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        for f in range(rank):
            for i in range(size):
                target[f, i] = cross[f, i] + rho * (value[f, i] + dual[f, i])
        np.dot(solve, target, free)
        for f in range(rank):
            for i in range(size):
                previous[f, i] = value[f, i]
                value[f, i] = free[f, i] - dual[f, i]
        if per_row:
            for f in range(rank):
                project_simplex(value[f], scratch)
        else:
            project_simplex(value.reshape(-1), scratch)
        primal = change = norm = 0.0
        for f in range(rank):
            for i in range(size):
                gap = value[f, i] - free[f, i]
                dual[f, i] += gap
                primal += gap * gap
                move = value[f, i] - previous[f, i]
                change += move * move
                norm += value[f, i] * value[f, i]
        primal_gap = np.sqrt(primal / norm)
        dual_gap = np.sqrt(change / norm)
        if max(primal_gap, dual_gap) < tol:
            break
    moved = 0.0
    for f in range(rank):
        for i in range(size):
            moved += (value[f, i] - initial[f, i]) ** 2
    return n_iter, primal_gap, dual_gap, np.sqrt(moved / norm)
