"""The solvers' compiled inner loops: contractions of tables, one ADMM block, JᵀJ.

A *group* is a few variables whose joint cells are rows of a buffer, the last variable running
fastest; otherwise the conventions are those of `jointpmf/kernels.py`.
"""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.loops import compiled, project_simplex

# Groups are passed as a plain tuple (variables, ptr, starts), which numba dispatches fastest:
# group g has the variables variables[ptr[g]:ptr[g + 1]], and the rows starts[g]:starts[g + 1] of
# every buffer with a row per joint cell.


@compiled
def khatri_rao(factors, offsets, groups, chosen, out):
    """Write the joint rows of the chosen groups: out[cell, f] = the product of their factors."""
    variables, ptr, starts = groups
    for c in range(len(chosen)):
        g = chosen[c]
        joint = out[starts[g] : starts[g + 1]]
        joint[0, :] = 1.0
        cells = 1
        for k in range(ptr[g], ptr[g + 1]):
            n = variables[k]
            factor = factors[offsets[n] : offsets[n + 1]]
            # from the last cell down, so that a cell is read before it is overwritten
            for cell in range(cells - 1, -1, -1):
                for i in range(len(factor) - 1, -1, -1):
                    _multiply_rows(joint[cell], factor[i], joint[cell * len(factor) + i])
            cells *= len(factor)


@compiled
def _multiply_rows(left, right, out):
    for f in range(len(out)):
        out[f] = left[f] * right[f]


@compiled
def factor_cross(
    head_sums, heads, heads_with, tail_sums, tails, tails_with, factors, offsets, n, weights
):
    """Return, of shape (rank, size), what all groups with variable n say of it, eq. 7."""
    total = np.zeros((offsets[n + 1] - offsets[n], factors.shape[1]))
    _contract_groups(head_sums, heads, heads_with, factors, offsets, n, total)
    _contract_groups(tail_sums, tails, tails_with, factors, offsets, n, total)
    cross = np.empty((len(weights), len(total)))
    for f in range(len(weights)):
        for i in range(len(total)):
            cross[f, i] = total[i, f] * weights[f]
    return cross


@compiled
def _contract_groups(sums, groups, chosen, factors, offsets, n, out):
    """Add to `out` the chosen groups' sums with all variables but n summed out."""
    variables, ptr, starts = groups
    for c in range(len(chosen)):
        g = chosen[c]
        cells = sums[starts[g] : starts[g + 1]]
        members = variables[ptr[g] : ptr[g + 1]]
        if len(members) == 1:
            for i in range(len(out)):
                for f in range(out.shape[1]):
                    out[i, f] += cells[i, f]
        elif len(members) == 2:
            _contract_pair(cells, factors, offsets, members, n, out)
        else:
            _contract_many(cells, factors, offsets, members, n, out)


@compiled
def _contract_pair(cells, factors, offsets, members, n, out):
    first, second = members
    other = second if n == first else first
    factor = factors[offsets[other] : offsets[other + 1]]
    n_columns = offsets[second + 1] - offsets[second]
    for i in range(offsets[first + 1] - offsets[first]):
        for j in range(n_columns):
            cell = i * n_columns + j
            if n == first:
                for f in range(out.shape[1]):
                    out[i, f] += cells[cell, f] * factor[j, f]
            else:
                for f in range(out.shape[1]):
                    out[j, f] += cells[cell, f] * factor[i, f]


@compiled
def _contract_many(cells, factors, offsets, members, n, out):
    product = np.empty(out.shape[1])
    for cell in range(len(cells)):
        rest = cell
        level = 0
        for f in range(len(product)):
            product[f] = cells[cell, f]
        for k in range(len(members) - 1, -1, -1):
            m = members[k]
            size = offsets[m + 1] - offsets[m]
            i = rest % size
            rest //= size
            if m == n:
                level = i
            else:
                for f in range(len(product)):
                    product[f] *= factors[offsets[m] + i, f]
        for f in range(len(product)):
            out[level, f] += product[f]


@compiled
def factor_grams(factors, offsets, first, last, out):
    """Set out[n] to the Gram matrix of the columns of variable n, for first <= n < last."""
    rank = out.shape[1]
    for n in range(first, last):
        out[n, :, :] = 0.0
        for row in range(offsets[n], offsets[n + 1]):
            for f in range(rank):
                left = factors[row, f]
                for g in range(rank):
                    out[n, f, g] += left * factors[row, g]


@compiled
def subset_gram(grams, subsets, ptr, subset_weights, chosen, skip, weights):
    """Return the sum over the chosen subsets of the product of their Gram matrices, eq. 6.

    Variable `skip` is left out of the products; rows and columns are scaled by `weights`.
    """
    rank = grams.shape[1]
    product = np.empty((rank, rank))
    gram = np.zeros((rank, rank))
    for c in range(len(chosen)):
        s = chosen[c]
        product[:, :] = subset_weights[s]
        for k in range(ptr[s], ptr[s + 1]):
            if subsets[k] != skip:
                _multiply_onto(grams[subsets[k]], product)
        for f in range(rank):
            for g in range(rank):
                gram[f, g] += product[f, g]
    for f in range(rank):
        for g in range(rank):
            gram[f, g] *= weights[f] * weights[g]
    return gram


@compiled
def _multiply_onto(matrix, out):
    for f in range(out.shape[0]):
        for g in range(out.shape[1]):
            out[f, g] *= matrix[f, g]


@compiled
def weight_cross(tail_sums, tail_joint, rank):
    """Return, of shape (rank, 1), the tables against all factors."""
    cross = np.zeros((rank, 1))
    for cell in range(len(tail_sums)):
        for f in range(rank):
            cross[f, 0] += tail_sums[cell, f] * tail_joint[cell, f]
    return cross


# A stack is the tuple (cells, starts, first, last, run_tails, weight_starts, weights): run r has
# neighbouring heads and one tail, run_tails[r]. Its matrix begins at cells[starts[r]] and has the
# head rows first[r]:last[r], whose weights begin at weights[weight_starts[r]].


@compiled
def _table_of_run(stack, r, tails):
    """Return run r as (matrix, its head rows' weights, first head row, first and last tail row)."""
    cells, starts, first, last, run_tails, weight_starts, weights = stack
    tail_starts = tails[2]
    begin, end = tail_starts[run_tails[r]], tail_starts[run_tails[r] + 1]
    height = last[r] - first[r]
    matrix = cells[starts[r] : starts[r + 1]].reshape((height, end - begin))
    return matrix, weights[weight_starts[r] : weight_starts[r + 1]], first[r], begin, end


@compiled
def stack_times(stack, tails, tail_joint, out):
    """Add to the head rows of `out` every table times the joint factors of its tail."""
    for r in range(len(stack[4])):
        matrix, weights, first, begin, end = _table_of_run(stack, r, tails)
        product = np.dot(matrix, tail_joint[begin:end])
        for row in range(len(product)):
            for f in range(product.shape[1]):
                out[first + row, f] += weights[row] * product[row, f]


@compiled
def stack_transposed_times(stack, run, end_run, tails, head_joint, out):
    """Add to the tail rows of `out` the tables of these runs times their heads' factors."""
    for r in range(run, end_run):
        matrix, weights, first, begin, _ = _table_of_run(stack, r, tails)
        right = np.empty((len(weights), head_joint.shape[1]))
        for row in range(len(weights)):
            for f in range(right.shape[1]):
                right[row, f] = weights[row] * head_joint[first + row, f]
        product = np.dot(matrix.T, right)
        for cell in range(len(product)):
            for f in range(product.shape[1]):
                out[begin + cell, f] += product[cell, f]


@compiled
def _weighted_heads(head_joint, first, n_rows, component_weights):
    left = np.zeros((n_rows, head_joint.shape[1]))
    for row in range(n_rows):
        for f in range(len(component_weights)):
            left[row, f] = head_joint[first + row, f] * component_weights[f]
    return left


@compiled
def stack_cost(stack, tails, head_joint, tail_joint, component_weights):
    """Return Σ weight · (table − model)² over all cells."""
    total = 0.0
    for r in range(len(stack[4])):
        matrix, weights, first, begin, end = _table_of_run(stack, r, tails)
        left = _weighted_heads(head_joint, first, len(weights), component_weights)
        fitted = np.dot(left, tail_joint[begin:end].T)
        for row in range(len(weights)):
            square = 0.0
            for column in range(matrix.shape[1]):
                residual = matrix[row, column] - fitted[row, column]
                square += residual * residual
            total += weights[row] * square
    return total


@compiled
def stack_residuals(stack, tails, head_joint, tail_joint, component_weights, head_out, tail_out):
    """Add residual tables times tails to `head_out` and times heads to `tail_out`.

    Return Σ weight · residual², the same as `stack_cost`.
    """
    rank = len(component_weights)
    total = 0.0
    for r in range(len(stack[4])):
        matrix, weights, first, begin, end = _table_of_run(stack, r, tails)
        left = _weighted_heads(head_joint, first, len(weights), component_weights)
        right = tail_joint[begin:end]
        residual = np.dot(left, right.T)
        for row in range(len(weights)):
            for column in range(matrix.shape[1]):
                difference = matrix[row, column] - residual[row, column]
                total += weights[row] * difference * difference
                residual[row, column] = weights[row] * difference
        for_heads = np.dot(residual, right)
        for_tails = np.dot(residual.T, head_joint[first : first + len(weights)])
        for row in range(len(weights)):
            for f in range(rank):
                head_out[first + row, f] += for_heads[row, f]
        for cell in range(end - begin):
            for f in range(rank):
                tail_out[begin + cell, f] += for_tails[cell, f]
    return total


@compiled
def pair_grams(grams, subsets, ptr, subset_weights):
    """Return the Gram products of every two variables, (n, n, rank, rank), and of all, eq. 15.

    Those of i and j are summed over the subsets with both, and leave out both.
    """
    n_all, rank = grams.shape[0], grams.shape[1]
    pairs = np.zeros((n_all, n_all, rank, rank))
    whole = np.zeros((rank, rank))
    product = np.empty((rank, rank))
    for s in range(len(ptr) - 1):
        for a in range(ptr[s], ptr[s + 1] + 1):
            for b in range(a, ptr[s + 1] + 1):
                # a pair, one variable (a == b), or, past the end, none
                if b == ptr[s + 1] and a != b:
                    continue
                product[:, :] = subset_weights[s]
                for k in range(ptr[s], ptr[s + 1]):
                    if k not in (a, b):
                        _multiply_onto(grams[subsets[k]], product)
                if a == ptr[s + 1]:
                    _add_onto(product, whole)
                else:
                    _add_onto(product, pairs[subsets[a], subsets[b]])
                    if a != b:
                        _add_onto(product, pairs[subsets[b], subsets[a]])
    return pairs, whole


@compiled
def _add_onto(matrix, out):
    for f in range(out.shape[0]):
        for g in range(out.shape[1]):
            out[f, g] += matrix[f, g]


@compiled
def gauss_newton_matrix(weights, factors, offsets, pairs, whole):
    """Return JᵀJ over the weights and then the rows of the factors, eq. 14."""
    rank = len(weights)
    size = rank + factors.size
    matrix = np.zeros((size, size))
    for f in range(rank):
        for g in range(rank):
            matrix[f, g] = whole[f, g]
    for i in range(len(offsets) - 1):
        for p in range(offsets[i], offsets[i + 1]):
            for f in range(rank):
                row = rank + p * rank + f
                for g in range(rank):
                    mixed = weights[f] * factors[p, g] * pairs[i, i, f, g]
                    matrix[row, g] = mixed
                    matrix[g, row] = mixed
                    matrix[row, rank + p * rank + g] = weights[f] * weights[g] * pairs[i, i, f, g]
                for j in range(len(offsets) - 1):
                    if i != j:
                        for q in range(offsets[j], offsets[j + 1]):
                            scale = weights[f] * factors[q, f]
                            for g in range(rank):
                                matrix[row, rank + q * rank + g] = (
                                    scale * weights[g] * factors[p, g] * pairs[i, j, f, g]
                                )
    return matrix


@compiled
def reduce_to_tangent(matrix, moved, pivots):
    """Return ZᵀMZ, where column k of Z moves mass from parameter pivots[k] to moved[k]."""
    size = len(moved)
    reduced = np.empty((size, size))
    for a in range(size):
        row, pivot = moved[a], pivots[a]
        for b in range(size):
            reduced[a, b] = (
                matrix[row, moved[b]]
                - matrix[pivot, moved[b]]
                - matrix[row, pivots[b]]
                + matrix[pivot, pivots[b]]
            )
    return reduced


@compiled
def gauss_newton_product(weights, factors, offsets, pairs, whole, vector):
    """Return JᵀJ times a vector without forming JᵀJ."""
    rank = len(weights)
    out = np.zeros(len(vector))
    change = vector[rank:].reshape(factors.shape)
    result = out[rank:].reshape(factors.shape)
    for f in range(rank):
        for g in range(rank):
            out[f] += whole[f, g] * vector[g]
    n_all = len(offsets) - 1
    overlap = np.zeros((n_all, rank, rank))  # factorᵀ change
    for j in range(n_all):
        for q in range(offsets[j], offsets[j + 1]):
            for f in range(rank):
                for g in range(rank):
                    overlap[j, f, g] += factors[q, f] * change[q, g]
    for i in range(n_all):
        inner = np.zeros((rank, rank))
        for f in range(rank):
            for g in range(rank):
                inner[f, g] = weights[f] * pairs[i, i, f, g] * vector[g]
                out[g] += weights[f] * pairs[i, i, f, g] * overlap[i, g, f]
        for j in range(n_all):
            if j != i:
                for f in range(rank):
                    for g in range(rank):
                        inner[f, g] += (
                            weights[f] * weights[g] * pairs[i, j, f, g] * overlap[j, f, g]
                        )
        for p in range(offsets[i], offsets[i + 1]):
            for f in range(rank):
                for g in range(rank):
                    own = weights[f] * weights[g] * pairs[i, i, f, g] * change[p, g]
                    result[p, f] += factors[p, g] * inner[f, g] + own
    return out


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
    """Run ADMM on one block in place; return (iterations, primal gap, dual gap, moved).

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


@compiled
def cross_grams(left, right, offsets):
    """Return leftᵀ right of every variable's rows, (n, rank, rank)."""
    rank = left.shape[1]
    out = np.zeros((len(offsets) - 1, rank, rank))
    for n in range(len(out)):
        for i in range(offsets[n], offsets[n + 1]):
            for f in range(rank):
                for g in range(rank):
                    out[n, f, g] += left[i, f] * right[i, g]
    return out


@compiled
def implicit_product(weights, factors, weight_change, factor_change, offsets, others, moved):
    """Return the factors' part of JᵀJ times a change, from sums over all subsets (eq. 31)."""
    rank = len(weights)
    out = np.zeros_like(factors)
    for n in range(len(offsets) - 1):
        for i in range(offsets[n], offsets[n + 1]):
            for f in range(rank):
                total = 0.0
                for g in range(rank):
                    change = weight_change[g] * factors[i, g] + weights[g] * factor_change[i, g]
                    total += change * others[n, f, g] + weights[g] * factors[i, g] * moved[n, f, g]
                out[i, f] = weights[f] * total
    return out
