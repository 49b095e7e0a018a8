"""The nearest point that is non-negative and sums to one."""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.jit import compiled


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
