"""The compiled inner loops, and nothing else: no names, no validation, no choices.

Conventions: `factors` lists all levels of all variables, one row per level, with `offsets[n]`
the first row of variable n; a *group* is a few variables whose joint cells are rows of a buffer,
the last variable running fastest. All kernels release the GIL and are deterministic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})

LANES = 4
"""Doubles in one vector register of the machines we know; ranks are padded to a multiple."""

MAX_LANES = 32
"""Columns that one pass over a sparse table serves: as many as the registers hold."""


# --- counting ------------------------------------------------------------------------------------


@compiled
def count_blocks(columns, prefix, radix, lasts, last_sizes, starts, weights, counts):  # type: ignore[no-untyped-def]
    """Add to `counts` the tables of the subsets prefix + (last,), for every last.

    Code −1 becomes slot 0 of a table that is one larger in every direction, so that nothing
    branches on missing cells; the caller drops those slots. `weights` is empty for ones.
    """
    n_rows = columns.shape[1]
    block = 8192
    index = np.empty(block, np.int64)
    for begin in range(0, n_rows, block):
        size = min(block, n_rows - begin)
        index[:size] = 0
        for p in range(len(prefix)):
            column = columns[prefix[p]]
            for row in range(size):
                index[row] = index[row] * radix[p] + column[begin + row] + 1
        for k in range(len(lasts)):
            column = columns[lasts[k]]
            radix_k = last_sizes[k] + 1
            start = starts[k] + 1
            if len(weights):
                for row in range(size):
                    cell = start + index[row] * radix_k + column[begin + row]
                    counts[cell] += weights[begin + row]
            else:
                for row in range(size):
                    counts[start + index[row] * radix_k + column[begin + row]] += 1


@compiled
def flat_cells(columns, subset, sizes):  # type: ignore[no-untyped-def]
    """Return each row's cell in the subset's table, or −1 where a cell of it is missing."""
    cells = np.zeros(columns.shape[1], np.int64)
    for k in range(len(subset)):
        column = columns[subset[k]]
        for row in range(len(cells)):
            if cells[row] >= 0:
                code = column[row]
                cells[row] = cells[row] * sizes[k] + code if code >= 0 else -1
    return cells


# --- groups of variables -------------------------------------------------------------------------


@compiled
def khatri_rao(factors, offsets, sizes, groups, ptr, starts, chosen, out):  # type: ignore[no-untyped-def]
    """Write the joint rows of the chosen groups: out[cell, f] = the product of their factors."""
    rank = factors.shape[1]
    for c in range(len(chosen)):
        g = chosen[c]
        row = starts[g]
        for f in range(rank):
            out[row, f] = 1.0
        cells = 1
        for k in range(ptr[g], ptr[g + 1]):
            n = groups[k]
            # from the last cell down, so that a cell is read before it is overwritten
            for cell in range(cells - 1, -1, -1):
                for i in range(sizes[n] - 1, -1, -1):
                    for f in range(rank):
                        out[row + cell * sizes[n] + i, f] = (
                            out[row + cell, f] * factors[offsets[n] + i, f]
                        )
            cells *= sizes[n]


@compiled
def contract_groups(partial, factors, offsets, sizes, groups, ptr, starts, chosen, n, out):  # type: ignore[no-untyped-def]
    """Add to `out` what the chosen groups say of variable n, their other variables summed out."""
    rank = partial.shape[1]
    product = np.empty(rank)
    for c in range(len(chosen)):
        g = chosen[c]
        cells = starts[g + 1] - starts[g]
        if ptr[g + 1] - ptr[g] == 1:
            for i in range(cells):
                for f in range(rank):
                    out[i, f] += partial[starts[g] + i, f]
            continue
        for cell in range(cells):
            rest = cell
            level = 0
            product[:] = partial[starts[g] + cell]
            for k in range(ptr[g + 1] - 1, ptr[g] - 1, -1):
                m = groups[k]
                i = rest % sizes[m]
                rest //= sizes[m]
                if m == n:
                    level = i
                else:
                    for f in range(rank):
                        product[f] *= factors[offsets[m] + i, f]
            for f in range(rank):
                out[level, f] += product[f]


@compiled
def factor_grams(factors, offsets, chosen, out):  # type: ignore[no-untyped-def]
    """Set out[n] to the Gram matrix of the columns of each chosen variable's factor."""
    rank = out.shape[1]
    for c in range(len(chosen)):
        n = chosen[c]
        out[n, :, :] = 0.0
        for row in range(offsets[n], offsets[n + 1]):
            for f in range(rank):
                left = factors[row, f]
                for g in range(rank):
                    out[n, f, g] += left * factors[row, g]


@compiled
def gram_of_subsets(grams, subsets, ptr, weights, chosen, skip, out):  # type: ignore[no-untyped-def]
    """Set `out` to the sum over the chosen subsets of the product of their Gram matrices."""
    rank = grams.shape[1]
    product = np.empty((rank, rank))
    out[:, :] = 0.0
    for c in range(len(chosen)):
        s = chosen[c]
        product[:, :] = weights[s]
        for k in range(ptr[s], ptr[s + 1]):
            if subsets[k] != skip:
                product *= grams[subsets[k]]
        out += product


# --- one simplex-constrained block ---------------------------------------------------------------


@compiled
def project_simplex(x, scratch):  # type: ignore[no-untyped-def]
    """Replace x by the nearest point that is non-negative and sums to one."""
    size = len(x)
    total = 0.0
    least = x[0]
    for i in range(size):
        total += x[i]
        least = min(least, x[i])
    shift = (total - 1.0) / size
    if least < shift:  # some level ends at zero: find which, by sorting
        shift = _simplex_shift(x, scratch)
    total = 0.0
    for i in range(size):
        x[i] = max(x[i] - shift, 0.0)
        total += x[i]
    for i in range(size):  # what rounding left of the sum
        x[i] /= total


@compiled
def _simplex_shift(x, scratch):  # type: ignore[no-untyped-def]
    size = len(x)
    if size > 48:
        scratch[:size] = np.sort(x)[::-1]
    else:
        for i in range(size):
            value = x[i]
            j = i
            while j > 0 and scratch[j - 1] < value:
                scratch[j] = scratch[j - 1]
                j -= 1
            scratch[j] = value
    total = scratch[0] - 1.0
    shift = total
    for i in range(1, size):
        if scratch[i] * i <= total:
            break
        total += scratch[i]
        shift = total / (i + 1)
    return shift


@compiled
def inverse_of_shifted(gram, rho):  # type: ignore[no-untyped-def]
    """Return (gram + rho·I)⁻¹ through its Cholesky factor; it is well-conditioned for rho ~ trace."""
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
def solve_block(gram, cross, value, dual, per_row, max_iter, tol):  # type: ignore[no-untyped-def]
    """Run ADMM on one block in place; return (iterations, primal gap, dual gap).

    `cross`, `value` and `dual` have shape (rank, size). With `per_row` each row is a simplex (a
    factor, transposed); otherwise the only column is one (the weights).
    """
    rank, size = value.shape
    rho = 0.0
    for f in range(rank):
        rho += gram[f, f] / rank
    if rho <= 0.0:  # no weight on any component: every feasible value is optimal
        return 0, 0.0, 0.0
    solve = inverse_of_shifted(gram, rho)
    target = np.empty((rank, size))
    free = np.empty((rank, size))
    previous = np.empty((rank, size))
    scratch = np.empty(max(rank, size))
    primal_gap = dual_gap = 0.0
    for iteration in range(1, max_iter + 1):
        for f in range(rank):
            for i in range(size):
                target[f, i] = cross[f, i] + rho * (value[f, i] + dual[f, i])
        for f in range(rank):
            for i in range(size):
                free[f, i] = 0.0
            for g in range(rank):
                step = solve[f, g]
                for i in range(size):
                    free[f, i] += step * target[g, i]
            for i in range(size):
                previous[f, i] = value[f, i]
                value[f, i] = free[f, i] - dual[f, i]
        if per_row:
            for f in range(rank):
                project_simplex(value[f], scratch)
        else:
            project_simplex(value[:, 0], scratch)
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
    return iteration, primal_gap, dual_gap


# --- rows of sparse tables, in vector registers --------------------------------------------------
# A compiler that must fear that two arrays overlap spends more on checking than on adding.
# These two loops say outright what to keep in registers; `lanes` is a tuple whose length, a part
# of its type, is the number of columns, so that each width is its own compiled loop.

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_INT32 = ir.IntType(32)


def _vectors_at(builder: Any, pointer: Any, lanes: int) -> list[Any]:
    base = builder.bitcast(pointer, _VECTOR.as_pointer())
    return [builder.gep(base, [ir.Constant(_INT32, i)]) for i in range(lanes // LANES)]


def _load(builder: Any, pointer: Any) -> Any:
    vector = builder.load(pointer)
    vector.align = 8
    return vector


def _store(builder: Any, vector: Any, pointer: Any) -> None:
    builder.store(vector, pointer).align = 8


def _broadcast(builder: Any, scalar: Any) -> Any:
    empty = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(_INT32, 0))
    zeros = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, empty, zeros)


def _multiply_add(builder: Any, sum_: Any, left: Any, right: Any) -> Any:
    product = builder.fmul(left, right, flags=("contract",))
    return builder.fadd(sum_, product, flags=("contract",))


class _Rows:
    """A two-dimensional array argument, as pointers to its rows."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any, first: Any) -> None:
        struct = context.make_array(array_type)(context, builder, array)
        self.builder = builder
        self.stride = cgutils.unpack_tuple(builder, struct.shape)[1]
        self.base = builder.gep(struct.data, [first])

    def vectors(self, row: Any, lanes: int) -> list[Any]:
        start = self.builder.mul(row, self.stride)
        return _vectors_at(self.builder, self.builder.gep(self.base, [start]), lanes)


def _row_intrinsic(scatter: bool) -> Any:
    @intrinsic
    def over_row(_, fixed, row, moving, first, columns, values, scale, begin, end, lanes):  # type: ignore[no-untyped-def]
        width = lanes.count
        signature = types.void(
            fixed, types.intp, moving, types.intp, columns, values, types.float64,
            types.intp, types.intp, lanes,
        )  # fmt: skip

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            fixed, row, moving, first, columns, values, scale, begin, end, _ = args
            kinds = signature.args
            own = _Rows(context, builder, kinds[0], fixed, first).vectors(row, width)
            others = _Rows(context, builder, kinds[2], moving, first)
            column_at = context.make_array(kinds[4])(context, builder, columns).data
            value_at = context.make_array(kinds[5])(context, builder, values).data
            held = [_load(builder, pointer) for pointer in own]
            if scatter:
                factor = _broadcast(builder, scale)
                held = [builder.fmul(vector, factor) for vector in held]
            else:
                sums = [
                    cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES))
                    for _ in held
                ]
            step = ir.Constant(begin.type, 1)
            with cgutils.for_range_slice(builder, begin, end, step) as (entry, _):
                column = builder.zext(builder.load(builder.gep(column_at, [entry])), begin.type)
                value = _broadcast(builder, builder.load(builder.gep(value_at, [entry])))
                for k, pointer in enumerate(others.vectors(column, width)):
                    other = _load(builder, pointer)
                    if scatter:
                        _store(builder, _multiply_add(builder, other, value, held[k]), pointer)
                    else:
                        total = _multiply_add(builder, builder.load(sums[k]), value, other)
                        builder.store(total, sums[k])
            if not scatter:
                factor = _broadcast(builder, scale)
                for k, pointer in enumerate(own):
                    total = _multiply_add(builder, held[k], factor, builder.load(sums[k]))
                    _store(builder, total, pointer)
            return context.get_dummy_value()

        return signature, codegen

    return over_row


_gather_row = _row_intrinsic(scatter=False)
_scatter_row = _row_intrinsic(scatter=True)


@compiled
def sparse_times(ptr, columns, values, scale, right, out, first, lanes):  # type: ignore[no-untyped-def]
    """Add scale · (sparse @ right) to `out`, for len(lanes) columns from `first` on."""
    for row in range(len(ptr) - 1):
        if ptr[row] < ptr[row + 1]:
            _gather_row(
                out, row, right, first, columns, values, scale, ptr[row], ptr[row + 1], lanes
            )


@compiled
def sparse_transposed_times(ptr, columns, values, scale, right, out, first, lanes):  # type: ignore[no-untyped-def]
    """Add scale · (sparseᵀ @ right) to `out`, for len(lanes) columns from `first` on."""
    for row in range(len(ptr) - 1):
        if ptr[row] < ptr[row + 1]:
            _scatter_row(
                right, row, out, first, columns, values, scale, ptr[row], ptr[row + 1], lanes
            )


@compiled
def sparse_cost(ptr, columns, values, left, right):  # type: ignore[no-untyped-def]
    """Return Σ over stored cells of (x − x̂)² − x̂², with x̂ = left[row] · right[column]."""
    total = 0.0
    for row in range(len(ptr) - 1):
        for entry in range(ptr[row], ptr[row + 1]):
            fitted = 0.0
            for f in range(left.shape[1]):
                fitted += left[row, f] * right[columns[entry], f]
            total += values[entry] * (values[entry] - 2.0 * fitted)
    return total


# --- rows of a table against a model -------------------------------------------------------------


@compiled
def add_log_likelihoods(columns, log_factors, offsets, chosen, begin, end, out):  # type: ignore[no-untyped-def]
    """Add to out[row, f] the log-probability of the row's observed cells given component f."""
    rank = out.shape[1]
    for row in range(begin, end):
        for k in range(len(chosen)):
            code = columns[chosen[k], row]
            if code >= 0:
                at = offsets[chosen[k]] + code
                for f in range(rank):
                    out[row, f] += log_factors[at, f]


@compiled
def normalise_logs(logs, begin, end, totals):  # type: ignore[no-untyped-def]
    """Replace each row of logs by its softmax; `totals` gets the log of what it summed to."""
    rank = logs.shape[1]
    for row in range(begin, end):
        top = logs[row, 0]
        for f in range(1, rank):
            top = max(top, logs[row, f])
        if top == -np.inf:
            totals[row] = -np.inf
            continue
        total = 0.0
        for f in range(rank):
            logs[row, f] = np.exp(logs[row, f] - top)
            total += logs[row, f]
        totals[row] = top + np.log(total)
        for f in range(rank):
            logs[row, f] /= total


@compiled
def draw_levels(cumulative, components, uniforms, out):  # type: ignore[no-untyped-def]
    """Set out[row] to the first level whose cumulative probability exceeds the row's uniform."""
    for row in range(len(out)):
        level = 0
        while uniforms[row] >= cumulative[components[row], level]:
            level += 1
        out[row] = level
