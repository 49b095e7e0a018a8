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

_BLOCK_ROWS, _BLOCK_NUMBERS = 64, 2**21
"""Rows whose posteriors are held at once; of several panels more rows, but no more numbers than
these. Any number gives the same bits."""

_NEGLIGIBLE = 2.0**-50
"""Part of a row's probability that is left out, of a panel or a component. All of a thousand such
parts are a part of 1e-12."""

_MANY = 256
"""Components from which on such parts are left out; fewer cost little, and stay exact."""

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
def e_step(cells, ptr, row_weights, stack, n_safe, posterior, counts, logs, lanes, block=0):
    """Set logs[k] to the log-probability of row k, whose cells are ptr[k]:ptr[k + 1].

    posterior[k] becomes P(component | row k), or zero if the row cannot happen; without rows it is
    left out. To `counts` is added how often each level is expected with each component, rows being
    counted by weight; without rows that is left out. At most `n_safe` cells can be multiplied
    without underflow; longer rows set powers of two aside.

    Components are taken a panel at a time, whose columns stay near the processor while many rows
    are multiplied. Where there are many, one that has next to nothing of a row is not
    visited again for it.
    """
    wide = len(lanes)
    columns, sums = _panels_of(stack, wide), _panels_of(counts, wide)
    block = max(min(block if block > 0 else _rows_of_block(columns), len(logs)), 1)
    products = np.empty((len(columns), block, wide))
    exponents, behind = np.empty((block, wide), np.int64), np.empty((len(columns), block), np.int64)
    shares, totals = np.empty((len(columns), block)), np.empty(block)
    for begin in range(0, len(logs), block):
        size = min(block, len(logs) - begin)
        own, weights = ptr[begin : begin + size + 1], row_weights[begin : begin + size]
        for p in range(len(columns)):
            _multiply(
                products[p], exponents, shares[p], behind[p], columns[p], cells, own, n_safe, lanes
            )
        for k in range(size):
            totals[k], power = _align(shares[:, k], behind[:, k])
            logs[begin + k] = np.log(totals[k]) + _LN2 * power
        if len(posterior) > 0:
            for p in range(len(columns)):
                out = posterior[begin : begin + size, p * wide : (p + 1) * wide]
                _normalise(products[p], behind[p], totals, out)
        if len(counts) > 0:
            least = _NEGLIGIBLE if stack.shape[1] >= _MANY else 0.0
            for p in range(len(sums)):
                of_panel = sums[p], products[p], shares[p], behind[p]
                _add(*of_panel, totals, least, weights, cells, own, lanes)
    if len(sums) > 1:
        _put_back(sums, counts)


@inner
def _rows_of_block(panels):
    """Return how many rows make up for it that a panel must come near the processor."""
    if len(panels) == 1:
        return _BLOCK_ROWS
    most = _BLOCK_NUMBERS // (len(panels) * panels.shape[2])
    return max(min(panels.shape[1], most), _BLOCK_ROWS)


@inner
def _panels_of(stack, wide):
    """Return a stack as panels of some columns, each in one piece; a copy if there are several."""
    if stack.shape[1] == wide:
        return stack.reshape((1, len(stack), wide))
    panels = np.empty((stack.shape[1] // wide, len(stack), wide))
    for p in range(len(panels)):  # element by element: slices would take seconds to compile
        for i in range(len(stack)):
            for f in range(wide):
                panels[p, i, f] = stack[i, p * wide + f]
    return panels


@inner
def _put_back(panels, stack):
    """Set a stack to its panels."""
    wide = panels.shape[2]
    for p in range(len(panels)):
        for i in range(len(stack)):
            for f in range(wide):
                stack[i, p * wide + f] = panels[p, i, f]


@inner
def _multiply(products, exponents, shares, powers, stack, cells, ptr, n_safe, lanes):
    """Set the products of rows in one panel, shares[k] to their sum.

    Those of row k are to be multiplied by two to the power powers[k].
    """
    prior, step = len(stack) - 1, max(n_safe, 1)
    for k in range(len(ptr) - 1):
        start, stop = ptr[k], ptr[k + 1]
        powers[k] = 0
        if stop - start <= n_safe:
            shares[k] = multiply_row(products, k, stack, prior, 0, cells, start, stop, lanes)
        else:
            multiply_long_row(
                products, exponents, k, stack, prior, 0, cells, start, stop, step, lanes
            )
            shares[k], powers[k] = _align(products[k], exponents[k])


@inner
def _align(products, exponents):
    """Give all products the largest exponent; return their sum and that exponent.

    In place of the exponents it leaves how far each was behind.
    """
    top = _IMPOSSIBLE
    for f in range(len(products)):
        if products[f] > 0.0 and exponents[f] > top:
            top = exponents[f]
    total = 0.0
    for f in range(len(products)):
        behind = min(top - exponents[f], len(_POWERS) - 1) if products[f] > 0.0 else 0
        products[f] *= _POWERS[behind]
        exponents[f] = behind
        total += products[f]
    return total, top


@inner
def _add(sums, products, shares, behind, totals, least, row_weights, cells, ptr, lanes):
    """Add the posterior of a panel, times the weights of rows, to the rows of their cells.

    Rows of which it has no more than the part `least` are left out.
    """
    prior = len(sums) - 1
    for k in range(len(ptr) - 1):
        if shares[k] > least * totals[k]:
            scale = row_weights[k] / totals[k] * _POWERS[behind[k]]
            add_row(sums, prior, products, k, scale, 0, cells, ptr[k], ptr[k + 1], lanes)


@inner
def _normalise(products, behind, totals, posterior):
    """Set posterior[k] to a panel of products[k] / totals[k], without columns that are padding."""
    for k in range(len(posterior)):
        scale = _POWERS[behind[k]]
        total = totals[k] if totals[k] > 0.0 else 1.0
        for f in range(posterior.shape[1]):
            posterior[k, f] = products[k, f] * scale / total


@compiled
def mix_rows(posterior, columns, begin, end, out):
    """Set out[row] to what the row's posterior makes of one row of levels per component.

    Of many components, those that have next to nothing of a row are left out.
    """
    least = _NEGLIGIBLE if len(columns) >= _MANY else 0.0
    for row in range(begin, end):
        for i in range(columns.shape[1]):
            out[row, i] = 0.0
        for f in range(len(columns)):
            if posterior[row, f] > least:
                for i in range(columns.shape[1]):
                    out[row, i] += posterior[row, f] * columns[f, i]
