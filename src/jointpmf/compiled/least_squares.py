"""Tables times the joint factors of their heads and tails, and the cost of what is left.

A *group* is a few variables whose joint cells are rows of a buffer; the last variable runs fastest.
"""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.blas import add_product
from jointpmf.compiled.jit import compiled, inner
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
        start, cells = starts[g], 1
        for f in range(out.shape[1]):
            out[start, f] = 1.0
        for k in range(ptr[g], ptr[g + 1]):
            first = offsets[variables[k]]
            size = offsets[variables[k] + 1] - first
            # from the last cell down, so that a cell is read before it is overwritten
            for cell in range(cells - 1, -1, -1):
                for i in range(size - 1, -1, -1):
                    for f in range(out.shape[1]):
                        joint = out[start + cell, f] * factors[first + i, f]
                        out[start + cell * size + i, f] = joint
            cells *= size


@compiled
def factor_cross(
    head_sums,
    heads,
    head_groups,
    tail_sums,
    tails,
    tail_groups,
    factors,
    offsets,
    n,
    total,
    weights,
    out,
):
    """Set out[f, i] to what all groups with variable n say of its level i, eq. 7.

    What groups of three and more say, `contract_many` has added to `total`, of shape (i, f).
    """
    _contract(head_sums, heads, head_groups, factors, offsets, n, total)
    _contract(tail_sums, tails, tail_groups, factors, offsets, n, total)
    for f in range(len(weights)):
        for i in range(len(total)):
            out[f, i] = weights[f] * total[i, f]


@inner
def _contract(sums, groups, chosen, factors, offsets, n, out):
    """Add to `out` the sums of the chosen groups of one or two, with all but n summed out."""
    variables, ptr, starts = groups
    for c in range(len(chosen)):
        g = chosen[c]
        length, other = ptr[g + 1] - ptr[g], variables[ptr[g]]
        if length > 2:
            continue
        own_step, other_step = 1, len(out)  # cells between neighbouring levels
        if length == 2 and n == other:
            other, other_step = variables[ptr[g] + 1], 1
            own_step = offsets[other + 1] - offsets[other]
        for i in range(len(out)):
            cell = starts[g] + i * own_step
            if length == 1:
                for f in range(out.shape[1]):
                    out[i, f] += sums[cell, f]
                continue
            for row in range(offsets[other], offsets[other + 1]):
                for f in range(out.shape[1]):
                    out[i, f] += sums[cell, f] * factors[row, f]
                cell += other_step


@compiled
def contract_many(sums, groups, chosen, factors, offsets, n, out):
    """Add to `out` the sums of the chosen groups of three or more, with all but n summed out."""
    variables, ptr, starts = groups
    product = np.empty(out.shape[1])
    for c in range(len(chosen)):
        g = chosen[c]
        if ptr[g + 1] - ptr[g] < 3:
            continue
        for cell in range(starts[g], starts[g + 1]):
            rest, level = cell - starts[g], 0
            for f in range(len(product)):
                product[f] = sums[cell, f]
            for k in range(ptr[g + 1] - 1, ptr[g] - 1, -1):
                m = variables[k]
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


# A stack is the tuple (cells, starts, first, last, run_tails, weight_starts, weights): run r has
# neighbouring heads and one tail, run_tails[r]. Its matrix begins at cells[starts[r]] and has the
# head rows first[r]:last[r], whose weights begin at weights[weight_starts[r]]. The cells are
# already multiplied by the weights of their rows.


@compiled
def stack_times(gemm, stack, begin, end, tails, joint, out, is_transposed):
    """Add to `out` the tables of some runs times the joint factors of their tails.

    That is for the head rows. If `is_transposed`, it is for the tail rows, times those of heads.
    """
    cells, starts, first, last, run_tails, _, _ = stack
    tail_starts, width = tails[2], out.shape[1]
    for r in range(begin, end):
        tail = tail_starts[run_tails[r]]
        height, length = last[r] - first[r], tail_starts[run_tails[r] + 1] - tail
        head, tail = first[r] * width, tail * width
        shape, source, target = (height, length, width), tail, head
        if is_transposed:
            shape, source, target = (length, height, width), head, tail
        add_product(
            gemm, 1.0, shape, (cells, starts[r], length, is_transposed),
            (joint, source, width, False), (out, target, width),
        )  # fmt: skip


@compiled
def stack_residuals(
    gemm, stack, tails, head_joint, tail_joint, component_weights, room, head_out, tail_out
):
    """Return Σ weight · residual² over all cells of all tables.

    Unless they have no rows, residual tables times tails are added to `head_out`, and times heads
    to `tail_out`. `room` has memory for the rows and for the cells of the largest run.
    """
    cells, starts, first, last, run_tails, weight_starts, weights = stack
    left, residual = room
    tail_starts, width, rank = tails[2], head_joint.shape[1], len(component_weights)
    total = 0.0
    for r in range(len(run_tails)):
        head, tail, weight = first[r], tail_starts[run_tails[r]], weight_starts[r]
        height, length = last[r] - head, tail_starts[run_tails[r] + 1] - tail
        for row in range(height):
            for f in range(rank):
                scale = weights[weight + row] * component_weights[f]
                left[row * rank + f] = head_joint[head + row, f] * scale
        for k in range(height * length):
            residual[k] = cells[starts[r] + k]
        rows, columns = (residual, 0, length, False), (residual, 0, length, True)
        head_matrix, tail_matrix = head * width, tail * width
        add_product(
            gemm, -1.0, (height, rank, length), (left, 0, rank, False),
            (tail_joint, tail_matrix, width, True), (residual, 0, length),
        )  # fmt: skip
        for row in range(height):
            square = 0.0
            for column in range(length):
                square += residual[row * length + column] ** 2
            total += square / weights[weight + row]
        if len(head_out) > 0:
            add_product(
                gemm, 1.0, (height, length, width), rows,
                (tail_joint, tail_matrix, width, False), (head_out, head_matrix, width),
            )  # fmt: skip
            add_product(
                gemm, 1.0, (length, height, width), columns,
                (head_joint, head_matrix, width, False), (tail_out, tail_matrix, width),
            )  # fmt: skip
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
