"""Simplices: the nearest point on one, and ADMM on a block whose solution lies on them."""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.jit import compiled, once


@compiled
def project_simplex(x, scratch):
    """Replace x by the nearest point that is non-negative and sums to one."""
    size = len(x)
    total = 0.0
    least = x[0]
    for i in range(size):
        total += x[i]
        least = min(least, x[i])
    shift = (total - 1.0) / size
    if least < shift:  # some level ends at zero: find which, by sorting
        shift = _simplex_shift(x, shift, scratch)
    total = 0.0
    for i in range(size):
        x[i] = max(x[i] - shift, 0.0)
        total += x[i]
    for i in range(size):  # what rounding left of the sum
        x[i] /= total


@once
def _simplex_shift(x, least_shift, scratch):
    """Return what to subtract; levels not above `least_shift`, a lower bound of it, end at zero."""
    kept = 0
    for value in x:
        if value > least_shift:
            scratch[kept] = value
            kept += 1
    _sort_descending(scratch, kept)
    total = scratch[0] - 1.0
    shift = total
    for i in range(1, kept):
        if scratch[i] * i <= total:
            break
        total += scratch[i]
        shift = total / (i + 1)
    return shift


@once
def _sort_descending(values, count):
    """Sort the first `count` values by Shell's method, which for a few is plain insertion."""
    gap = 1
    while gap < count // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] < value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@compiled
def project_point(weights, factors, offsets):
    """Replace the weights and all columns of all factors by the nearest feasible ones."""
    scratch = np.empty(max(len(weights), len(factors)))
    project_simplex(weights, scratch)
    column = np.empty(len(factors))
    for n in range(len(offsets) - 1):
        begin, size = offsets[n], offsets[n + 1] - offsets[n]
        for f in range(len(weights)):
            for i in range(size):
                column[i] = factors[begin + i, f]
            project_simplex(column[:size], scratch)
            for i in range(size):
                factors[begin + i, f] = column[i]


@once
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
