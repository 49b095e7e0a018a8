"""Rows against components: posteriors and log-likelihoods, and the E-step's sums of them.

A model is a `stack`: the factors of all variables, one row per level, with the weights as the last
row; columns are padded with zeros to whole vectors. A row of a table is the list of its observed
cells, each the position of a level in the stack. Queries and EM go through one loop, `e_step`.
"""

from __future__ import annotations

import math

import numpy as np

from jointpmf.compiled.jit import compiled, inner
from jointpmf.compiled.loops import add_row, multiply_long_row, multiply_row
from jointpmf.compiled.panels import aligned_zeros, padded_width

_SAFE_DIGITS = 250.0
"""Decimal digits that a product may lose: doubles have 308, and weights of rows need some."""

_BLOCK_ROWS = 64
"""Rows whose posteriors are held at once; any number gives the same bits."""

_LN2 = np.log(2.0)

_POWERS = np.append(2.0 ** -np.arange(1000), 0.0)
"""Powers of two by which one component may lie behind another; further behind counts as zero."""

_IMPOSSIBLE = -(2**62)
"""The exponent of a row that no component explains."""


def stack_of(weights: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return a model as a stack; `factors` has a row for each level of each variable."""
    stack = aligned_zeros(len(factors) + 1, padded_width(len(weights)))
    stack[:-1, : len(weights)] = factors
    stack[-1, : len(weights)] = weights
    return stack


def safe_cells(stack: np.ndarray) -> int:
    """Return how many cells of a row can be multiplied without underflow."""
    digits = -math.log10(stack.min(where=stack > 0, initial=1.0))
    return max(int(_SAFE_DIGITS / max(digits, 1e-3)) - 1, 0)


def lift_subnormals(stack: np.ndarray) -> int:
    """Make a stack without subnormal numbers, which have few digits; return the power of two.

    All of it is multiplied by two to that power, which is zero unless there are any.
    """
    power = 100 if ((stack > 0) & (stack < np.finfo(float).tiny)).any() else 0
    if power:
        np.ldexp(stack, power, out=stack)
    return power


@compiled
def set_parts(values, totals, otherwise, offsets, smallest, out):
    """Set rows offsets[n]:offsets[n + 1] of `out` to parts of totals[n], for every n.

    Where a total is zero they become what is in `otherwise`; parts below `smallest` become zero.
    """
    for n in range(len(totals)):
        for i in range(offsets[n], offsets[n + 1]):
            for f in range(out.shape[1]):
                total = totals[n, f]
                part = values[i, f] / total if total > 0 else otherwise[i, f]
                out[i, f] = part if part >= smallest else 0.0


@compiled
def e_step(
    cells, ptr, row_weights, stack, n_safe, posterior, counts, logs, lanes, block=_BLOCK_ROWS
):
    """Set logs[k] to the log-probability of row k, whose cells are ptr[k]:ptr[k + 1].

    posterior[k] becomes P(component | row k), or zero if the row cannot happen; without rows it is
    left out. To `counts` is added how often each level is expected with each component, rows being
    counted by weight; without rows that is left out. At most `n_safe` cells can be multiplied
    without underflow; longer rows set powers of two aside.
    """
    width, prior = stack.shape[1], len(stack) - 1
    products, totals = np.empty((block, width)), np.empty(block)
    exponents = np.empty((block, width), np.int64)
    for begin in range(0, len(logs), block):
        size = min(block, len(logs) - begin)
        for k in range(size):
            start, stop = ptr[begin + k], ptr[begin + k + 1]
            total, power = 0.0, 0
            if stop - start <= n_safe:
                for first in range(0, width, len(lanes)):
                    total += multiply_row(
                        products, k, stack, prior, first, cells, start, stop, lanes
                    )
            else:
                step = max(n_safe, 1)
                for first in range(0, width, len(lanes)):
                    multiply_long_row(
                        products, exponents, k, stack, prior, first, cells, start, stop, step, lanes
                    )
                total, power = _align(products[k], exponents[k])
            totals[k] = total
            logs[begin + k] = power
        for k in range(size):
            logs[begin + k] = np.log(totals[k]) + _LN2 * logs[begin + k]
        if len(posterior) > 0:
            _normalise(products, totals, posterior[begin : begin + size])
        if len(counts) > 0:
            for k in range(size):
                start, stop = ptr[begin + k], ptr[begin + k + 1]
                scale = row_weights[begin + k] / totals[k] if totals[k] > 0.0 else 0.0
                for first in range(0, width, len(lanes)):
                    add_row(counts, prior, products, k, scale, first, cells, start, stop, lanes)


@inner
def _align(products, exponents):
    """Give all products the largest exponent; return their sum and that exponent."""
    top = _IMPOSSIBLE
    for f in range(len(products)):
        if products[f] > 0.0 and exponents[f] > top:
            top = exponents[f]
    total = 0.0
    for f in range(len(products)):
        behind = min(top - exponents[f], len(_POWERS) - 1) if products[f] > 0.0 else 0
        products[f] *= _POWERS[behind]
        total += products[f]
    return total, top


@inner
def _normalise(products, totals, posterior):
    """Set posterior[k] to products[k] / totals[k], without the columns that are padding."""
    for k in range(len(posterior)):
        total = totals[k] if totals[k] > 0.0 else 1.0
        for f in range(posterior.shape[1]):
            posterior[k, f] = products[k, f] / total


@compiled
def mix_rows(posterior, factor, begin, end, out):
    """Set out[row] to the factor's columns mixed by the row's posterior, row by row."""
    for row in range(begin, end):
        for i in range(len(factor)):
            total = 0.0
            for f in range(factor.shape[1]):
                total += posterior[row, f] * factor[i, f]
            out[row, i] = total
