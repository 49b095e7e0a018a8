"""Rows against components: posteriors and log-likelihoods, and the E-step's sums of them.

A model is a `stack`: the factors of all variables, one row per level, with the weights as the last
row; columns are padded with zeros to whole vectors. A row of a table is the list of its observed
cells, each the position of a level in the stack. Queries and EM go through one loop, `e_step`,
which reads the stack as `Panels`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jointpmf.compiled.jit import compiled, inner
from jointpmf.compiled.loops import add_row, multiply_long_row, multiply_row
from jointpmf.compiled.panels import aligned_zeros, padded_width

_SAFE_DIGITS = 250.0
"""Decimal digits that a product may lose: doubles have 308, and weights of rows need some."""

_LEAST_TOTAL = 2.0**-600
"""Probability of a row, beside the largest of each of its cells, from which on its products are
right as they are: what underflowed is 2⁴⁰⁰ times smaller. Others are multiplied again, exactly."""

_LIFT = 100
"""Power of two that takes the smallest doubles to where they have all their digits."""

_PIECE = 16
"""Cells of a row that are multiplied before it is the next row's turn: their levels stay near the
processor. Any number gives the same bits."""

_LEVELS_AT_ONCE = 64
"""Levels, at least, that rows are added to before others are: their sums stay near the processor.
Panels of many more levels are taken in fifths."""

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


class Panels(NamedTuple):
    """A stack in the form that `e_step` reads: columns that one pass over a row serves together."""

    columns: np.ndarray
    """Of shape (panels, rows of the stack, columns of a panel)."""
    powers: np.ndarray
    """Powers of two that each row of the stack is to be multiplied by; the largest of a row is in
    (1/2, 1] without them, so that products hardly underflow."""
    n_safe: int
    """Cells that can be multiplied without underflow whatever they are. If zero, the largest of a
    row is in (1/2, 1] times two to the power of `_LIFT`."""


def stack_of(weights: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return a model as a stack; `factors` has a row for each level of each variable."""
    stack = aligned_zeros(len(factors) + 1, padded_width(len(weights)))
    stack[:-1, : len(weights)] = factors
    stack[-1, : len(weights)] = weights
    return stack


def panels_of(stack: np.ndarray, wide: int) -> Panels:
    """Return a stack as panels of `wide` columns."""
    columns = empty_panels(stack.shape, wide)
    powers = np.empty(len(stack), np.int64)
    n_safe = safe_cells(set_panels(stack, 0, columns, powers))
    if n_safe == 0:
        set_panels(stack, _LIFT, columns, powers)
    return Panels(columns, powers, n_safe)


def empty_panels(shape: tuple[int, int], wide: int) -> np.ndarray:
    """Return panels of zeros, of `wide` columns each, for a stack of some shape."""
    return aligned_zeros(shape[0] * shape[1] // wide, wide).reshape(-1, shape[0], wide)


def as_panels(stack: np.ndarray, wide: int) -> np.ndarray:
    """Return a copy of a stack, or of some of its rows, in the form of panels."""
    return stack.reshape(len(stack), -1, wide).swapaxes(0, 1).copy(order="C")


def stack_of_panels(columns: np.ndarray) -> np.ndarray:
    """Return what has the form of panels as a stack; the same memory if there is one panel."""
    return columns.swapaxes(0, 1).reshape(columns.shape[1], -1)


def safe_cells(least: float) -> int:
    """Return how many cells of a row can be multiplied without underflow, if they are no less."""
    return max(int(_SAFE_DIGITS / max(-math.log10(least), 1e-3)) - 1, 0)


@compiled
def set_panels(stack, lift, panels, powers):
    """Set panels to a stack, and `powers` to the powers of two that its rows lack.

    Return the smallest positive number in the panels, at most one.
    """
    wide, least = panels.shape[2], 1.0
    for i in range(len(stack)):
        top = 0.0
        for f in range(stack.shape[1]):
            top = max(top, stack[i, f])
        part, power = math.frexp(top)
        powers[i] = max(power - (part == 0.5), -1000) - lift
        scale = math.ldexp(1.0, -powers[i])
        for p in range(len(panels)):
            for f in range(wide):
                number = stack[i, p * wide + f] * scale
                panels[p, i, f] = number
                if 0.0 < number < least:
                    least = number
    return least


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
    cells, ptr, row_weights, columns, powers, n_safe, posterior, counts, logs, lanes, block=0
):
    """Set logs[k] to the log-probability of row k, whose cells are ptr[k]:ptr[k + 1].

    The model is that of `Panels`. posterior[k] becomes P(component | row k), or zero if the row
    cannot happen; without rows it is left out. To `counts`, which has the form of the columns, is
    added how often each level is expected with each component, rows being counted by weight;
    without panels that is left out.

    Components are taken a panel at a time, whose columns stay near the processor while many rows
    are multiplied. Where there are many, one that has next to nothing of a row is not visited
    again for it.
    """
    n_panels, wide = len(columns), len(lanes)
    block = max(min(block if block > 0 else _rows_of_block(columns), len(logs)), 1)
    products, behind = np.empty((n_panels, block, wide)), np.empty((n_panels, block), np.int64)
    shares, totals = np.empty((n_panels, block)), np.empty(block)
    starts = np.empty(block + 1, np.int64)
    for begin in range(0, len(logs), block):
        size = min(block, len(logs) - begin)
        own, weights = ptr[begin : begin + size + 1], row_weights[begin : begin + size]
        found = logs[begin : begin + size]
        _explain(
            products, shares, behind, totals, found, columns, powers, n_safe, cells, own, lanes
        )
        if len(posterior) > 0:
            for p in range(n_panels):
                out = posterior[begin : begin + size, p * wide : (p + 1) * wide]
                _normalise(products[p], behind[p], totals, out)
        for p in range(len(counts)):
            of_panel = counts[p], products[p], shares[p], behind[p]
            _add(*of_panel, totals, _least_part(columns), weights, cells, own, starts, lanes)


@compiled
def predict_step(cells, ptr, columns, powers, n_safe, answers, predicted, logs, lanes):
    """Set predicted[k] to what components say of a target, by their part of row k; see `e_step`.

    `answers` has the form of the columns, with a row for each level of the target. Of a row that
    cannot happen, zeros are predicted.
    """
    n_panels, wide = len(columns), len(lanes)
    block = max(min(_rows_of_block(columns), len(logs)), 1)
    products, behind = np.empty((n_panels, block, wide)), np.empty((n_panels, block), np.int64)
    shares, totals = np.empty((n_panels, block)), np.empty(block)
    levels, product = np.arange(predicted.shape[1]).astype(np.uint32), np.empty((1, wide))
    least = _least_part(columns)
    for begin in range(0, len(logs), block):
        size = min(block, len(logs) - begin)
        own, found = ptr[begin : begin + size + 1], logs[begin : begin + size]
        _explain(
            products, shares, behind, totals, found, columns, powers, n_safe, cells, own, lanes
        )
        for p in range(n_panels):
            for k in range(size):
                if p == 0:
                    predicted[begin + k] = 0.0
                if shares[p, k] > least * totals[k]:
                    scale = _POWERS[behind[p, k]] / totals[k]
                    for i in range(len(levels)):
                        said: float = multiply_row(
                            product, 0, products[p], k, answers[p], 0, levels, i, i + 1, lanes
                        )
                        predicted[begin + k, i] += scale * said


@inner
def _explain(products, shares, behind, totals, logs, columns, powers, n_safe, cells, ptr, lanes):
    """Set what the components make of some rows: products, and sums of them.

    The products of row k in panel p sum to shares[p, k]; they are to be multiplied by two to the
    power of −behind[p, k], and then all panels sum to totals[k].
    """
    n_panels, prior = len(columns), columns.shape[1] - 1
    exponents = np.empty((1, len(lanes)), np.int64)
    for p in range(n_panels):
        _multiply(products[p], shares[p], columns[p], cells, ptr, lanes)
    for k in range(len(logs)):
        power = powers[prior]
        for c in range(ptr[k], ptr[k + 1]):
            power += powers[cells[c]]
        totals[k] = 0.0
        for p in range(n_panels):
            totals[k] += shares[p, k]
            behind[p, k] = 0
        if totals[k] < _LEAST_TOTAL or n_safe == 0:
            for p in range(n_panels):
                multiply_long_row(
                    products[p, k : k + 1], exponents, 0, columns[p], prior, 0,
                    cells, ptr[k], ptr[k + 1], max(n_safe, 1), lanes,
                )  # fmt: skip
                shares[p, k], behind[p, k] = _align(products[p, k], exponents[0])
            totals[k], more = _align(shares[:, k], behind[:, k])
            power += more
        logs[k] = np.log(totals[k]) + _LN2 * power


@inner
def _least_part(columns):
    """Return the part of a row's probability up to which a panel is left out."""
    return _NEGLIGIBLE if len(columns) * columns.shape[2] >= _MANY else 0.0


@inner
def _rows_of_block(columns):
    """Return how many rows make up for it that a panel must come near the processor."""
    if len(columns) == 1:
        return _BLOCK_ROWS
    most = _BLOCK_NUMBERS // (len(columns) * columns.shape[2])
    return max(min(columns.shape[1], most), _BLOCK_ROWS)


@inner
def _multiply(products, shares, columns, cells, ptr, lanes):
    """Set the products of rows in one panel, and shares[k] to their sum."""
    prior, longest = len(columns) - 1, 0
    for k in range(len(ptr) - 1):
        start, stop = ptr[k], ptr[k + 1]
        longest = max(longest, stop - start)
        stop = min(stop, start + _PIECE)
        shares[k] = multiply_row(products, k, columns, prior, columns, 0, cells, start, stop, lanes)
    for done in range(_PIECE, longest, _PIECE):
        for k in range(len(ptr) - 1):
            start, stop = ptr[k] + done, ptr[k + 1]
            if start < stop and shares[k] > 0.0:
                stop = min(stop, start + _PIECE)
                shares[k] = multiply_row(
                    products, k, products, k, columns, 0, cells, start, stop, lanes
                )


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
def _add(sums, products, shares, behind, totals, least, row_weights, cells, ptr, starts, lanes):
    """Add the posterior of a panel, times the weights of rows, to the rows of their cells.

    Rows of which it has no more than the part `least` are left out. Levels are taken some at a
    time, whose sums stay near the processor; whichever rows there are, each level is among the
    same ones, and adds up its rows in order.
    """
    prior = len(sums) - 1
    for k in range(len(ptr) - 1):
        starts[k] = ptr[k]
    end = 0
    while end < prior:
        target, end = prior if end == 0 else -1, end + max(_LEVELS_AT_ONCE, prior // 5)
        for k in range(len(ptr) - 1):
            start, stop = starts[k], starts[k]
            while stop < ptr[k + 1] and cells[stop] < end:
                stop += 1
            starts[k] = stop
            if shares[k] > least * totals[k]:
                scale = row_weights[k] / totals[k] * _POWERS[behind[k]]
                add_row(sums, target, products, k, scale, 0, cells, start, stop, lanes)


@inner
def _normalise(products, behind, totals, posterior):
    """Set posterior[k] to a panel of products[k] / totals[k], without columns that are padding."""
    for k in range(len(posterior)):
        scale = _POWERS[behind[k]]
        total = totals[k] if totals[k] > 0.0 else 1.0
        for f in range(posterior.shape[1]):
            posterior[k, f] = products[k, f] * scale / total
