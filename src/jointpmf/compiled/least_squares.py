"""Tables times the joint factors of their heads and tails, and the cost of what is left.

A *group* is a few variables whose joint cells are rows of a buffer; the last variable runs fastest.
"""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.jit import compiled, inner, once
from jointpmf.compiled.loops import add_sparse_row

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


@once
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


@inner
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


@once
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


@once
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


@inner
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


@inner
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
def add_sparse_product(ptr, columns, values, scale, right, out, first, lanes):
    """Add scale · (sparse @ right) to `out`, for len(lanes) columns from `first` on."""
    for row in range(len(ptr) - 1):
        if ptr[row] < ptr[row + 1]:
            add_sparse_row(
                out, row, right, first, columns, values, scale, ptr[row], ptr[row + 1], lanes
            )


@compiled
def sparse_cost(ptr, columns, values, scale, left, right):
    """Return Σ over stored cells of (x − x̂)² − x̂², with x̂ = left[row] · right[column]."""
    total = 0.0
    for row in range(len(ptr) - 1):
        for entry in range(ptr[row], ptr[row + 1]):
            fitted = 0.0
            for f in range(left.shape[1]):
                fitted += left[row, f] * right[columns[entry], f]
            value = scale * values[entry]
            total += value * (value - 2.0 * fitted)
    return total
