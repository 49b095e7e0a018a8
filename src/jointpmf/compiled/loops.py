"""The compiled inner loops over rows and simplices, and nothing else: no names, no choices.

Conventions: `factors` lists all levels of all variables, one row per level, with `offsets[n]`
the first row of variable n. All kernels release the GIL and are deterministic. The solvers' own
loops are in `solvers/kernels.py`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@compiled
def count_blocks(columns, prefix, radix, lasts, last_sizes, starts, weights, counts):
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
def flat_cells(columns, subset, sizes):
    """Return each row's cell in the subset's table, or −1 where a cell of it is missing."""
    cells = np.zeros(columns.shape[1], np.int64)
    for k in range(len(subset)):
        column = columns[subset[k]]
        for row in range(len(cells)):
            if cells[row] >= 0:
                code = column[row]
                cells[row] = cells[row] * sizes[k] + code if code >= 0 else -1
    return cells


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


@compiled
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


@compiled
def add_log_likelihoods(columns, log_factors, offsets, chosen, begin, end, out):
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
def normalise_logs(logs, begin, end, totals):
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
def mix_rows(posterior, factor, begin, end, out):
    """Set out[row] to the factor's columns mixed by the row's posterior, row by row."""
    for row in range(begin, end):
        for i in range(len(factor)):
            total = 0.0
            for f in range(factor.shape[1]):
                total += posterior[row, f] * factor[i, f]
            out[row, i] = total


@compiled
def draw_levels(cumulative, components, uniforms, out):
    """Set out[row] to the first level whose cumulative probability exceeds the row's uniform."""
    for row in range(len(out)):
        level = 0
        while uniforms[row] >= cumulative[components[row], level]:
            level += 1
        out[row] = level
