"""Rows against components: posteriors and log-likelihoods, and the E-step's sums of them.

A model is a `stack`: the factors of all variables, one row per level, with the weights as the last
row; columns are padded with zeros to whole vectors. A row of a table is the list of its observed
cells, each the position of a level in the stack. EM and queries go through `_explain`, which
reads the stack as `Panels`; what each of them makes of the products is a step of its own.
"""

from __future__ import annotations

import math
from threading import get_ident
from typing import NamedTuple

import numpy as np

from jointpmf.compiled.jit import LANES, compiled, inner
from jointpmf.compiled.loops import (
    add_dots,
    add_row,
    add_rows,
    fetch_row,
    multiply_long_row,
    multiply_row,
)
from jointpmf.compiled.panels import aligned_zeros, padded_width

_SAFE_DIGITS = 250.0
"""Decimal digits that a product may lose: doubles have 308, and weights of rows need some."""

_LEAST_TOTAL = 2.0**-600
"""Probability of a row, beside the largest of each of its cells, from which on its products are
right as they are: what underflowed is 2⁴⁰⁰ times smaller. Others are multiplied again, exactly."""

_RAISED = 100
"""Power of two that takes the smallest doubles to where they have all their digits."""

_BLOCK_ROWS, _BLOCK_NUMBERS = 64, 2**22
"""Rows whose posteriors are held at once; of several panels more rows, but no more numbers than
these. Any number gives the same bits."""

_MANY_COMPONENTS = 256
"""Components from which on a row's part in a panel is left out where it is negligible, and rows are
sorted by level; fewer cost little, and stay exact."""

_SORTED_ROWS = 256
"""Rows that are sorted at a time: while they are added up, they stay near the processor, and their
positions are small numbers. Any number up to 2¹⁶ gives the same bits."""

_NEGLIGIBLE_PART = 2.0**-50
"""Part of a row's probability, in one panel, that is left out. All of a thousand such parts are a
part of 1e-12."""

_LN2 = np.log(2.0)

_POWERS_OF_TWO = np.append(2.0 ** -np.arange(1000), 0.0)
"""Powers of two by which one component may lie behind another; further behind counts as zero."""

_BITS_OF_ONE, _FRACTION = np.float64(1.0).view(np.int64), np.int64(2**52 - 1)
"""One as a whole number; and the bits of a double that are not its exponent."""

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
    row is in (1/2, 1] times two to the power of `_RAISED`, or less where all of the row is tiny."""


class Room(NamedTuple):
    """What is held of the rows of a block. It is made by numpy, which asks for large pages."""

    products: np.ndarray
    """Of shape (panels, rows, columns of a panel)."""
    shares: np.ndarray
    """Their sums, of shape (panels, rows)."""
    behind: np.ndarray
    """Powers of two by which a panel of products is to be divided, of the same shape."""
    totals: np.ndarray
    """The sums of all panels of a row, so divided."""
    exponents: np.ndarray
    """Powers of two that were set aside of one row's products in a panel, of shape (1, columns)."""
    sums: np.ndarray
    """The sum of one row's products in each panel."""
    aside: np.ndarray
    """The power of two that was set aside of each of these sums."""


def room_for(columns: np.ndarray, block: int = 0) -> Room:
    """Return room for blocks of rows, by default of as many as are fastest.

    Of several panels, rows must make up for it that each comes near the processor.
    """
    n_panels, n_levels, wide = columns.shape
    if block == 0:
        most = min(n_levels, _BLOCK_NUMBERS // (n_panels * wide)) if n_panels > 1 else 0
        block = max(most, _BLOCK_ROWS)
    shape = n_panels, block
    return Room(
        np.empty((*shape, wide)), np.empty(shape), np.empty(shape, np.int64), np.empty(block),
        np.empty((1, wide), np.int64), np.empty(n_panels), np.empty(n_panels, np.int64),
    )  # fmt: skip


def room_for_answers(room: Room, answers: np.ndarray) -> np.ndarray:
    """Return memory for what rows say of a target: of many levels, of fewer rows at a time."""
    width = answers.shape[1] * LANES
    return np.empty((max(min(len(room.totals), _BLOCK_NUMBERS // width), 1), width))


class Rooms:
    """Room for blocks, kept for each thread that asks: what is new at each call slows it down."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, tuple[int, ...]], Room] = {}

    def of(self, columns: np.ndarray) -> Room:
        """Return the calling thread's room for blocks of rows."""
        key = get_ident(), columns.shape
        if key not in self._made:
            self._made[key] = room_for(columns)
        return self._made[key]


def are_many(rank: int) -> bool:
    """Tell whether EM of so many components goes through `e_step_of_many`."""
    return rank >= _MANY_COMPONENTS


def rows_at_once(rank: int) -> int:
    """Return how many rows a thread may explain at a time, each by so many components."""
    return max(_BLOCK_NUMBERS // rank, 1)


def stack_of(weights: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return a model as a stack; `factors` has a row for each level of each variable."""
    stack = aligned_zeros(len(factors) + 1, padded_width(len(weights)))
    stack[:-1, : len(weights)] = factors
    stack[-1, : len(weights)] = weights
    return stack


def panels_of(stack: np.ndarray, wide: int, made: Panels | None = None) -> Panels:
    """Return a stack as panels of `wide` columns, in the memory of those made before, if any."""
    columns = empty_panels(stack.shape, wide) if made is None else made.columns
    powers = np.empty(len(stack), np.int64) if made is None else made.powers
    bits = stack.view(np.int64)
    n_safe = safe_cells(set_panels(stack, bits, 0, columns, powers))
    if n_safe == 0:
        set_panels(stack, bits, _RAISED, columns, powers)
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
def set_panels(stack, bits, lift, panels, powers):
    """Set panels to a stack, and `powers` to the powers of two that its rows lack.

    `bits` is the stack as whole numbers, which have the order of the doubles, so that many are
    compared at once. Return the smallest positive number in the panels, at most one.
    """
    wide, least = panels.shape[2], 1.0
    for i in range(len(stack)):
        top, low = np.int64(0), _BITS_OF_ONE
        for f in range(stack.shape[1]):
            number = bits[i, f]
            top = max(top, number)
            low = min(low, number if number > 0 else _BITS_OF_ONE)
        power = (top >> 52) - 1022 - ((top & _FRACTION) == 0)
        powers[i] = max(power - lift, -1000)  # a larger scale would be infinite
        is_normal = low > _FRACTION
        digits = (low & _FRACTION) + (_FRACTION + 1 if is_normal else 0)
        exponent = (low >> 52 if is_normal else 1) - 1075
        least = min(least, math.ldexp(float(digits), exponent - powers[i]))
        scale = math.ldexp(1.0, -powers[i])
        for p in range(len(panels)):
            for f in range(wide):
                panels[p, i, f] = stack[i, p * wide + f] * scale
    return least


@compiled
def set_feasible(values, otherwise, offsets, smallest, totals, out):
    """Set `out` to a stack whose weights, and whose columns of each variable, sum to one.

    Rows offsets[n]:offsets[n + 1] of `values` are divided by their sums, and the last row by its
    own; where a sum is zero they become what is in `otherwise`, and parts below `smallest` become
    zero. `totals` is memory for a row.
    """
    last, width = len(out) - 1, out.shape[1]
    for n in range(len(offsets)):
        is_factor = n + 1 < len(offsets)
        begin, end = (offsets[n], offsets[n + 1]) if is_factor else (last, last + 1)
        for f in range(width):
            totals[f] = 0.0
        for i in range(begin, end):
            for f in range(width):
                totals[f if is_factor else 0] += values[i, f]
        for i in range(begin, end):
            for f in range(width):
                total = totals[f if is_factor else 0]
                part = values[i, f] / total if total > 0 else otherwise[i, f]
                out[i, f] = part if part >= smallest else 0.0


@compiled
def e_step(cells, ptr, row_weights, columns, powers, n_safe, room, counts, logs, lanes):
    """Set logs[k] to the log-probability of row k, whose cells are ptr[k]:ptr[k + 1].

    The model is that of `Panels`. To `counts`, which has the form of the columns, is added how
    often each level is expected with each component, rows being counted by weight; without panels
    that is left out.

    Components are taken a panel at a time, whose columns stay near the processor while many rows
    are multiplied.
    """
    products, shares, behind, totals = room[:4]
    block = _even(len(logs), len(totals))
    for begin in range(0, len(logs), block):
        end = min(begin + block, len(logs))
        _explain(room, logs, columns, powers, n_safe, cells, ptr, begin, end, lanes)
        for p in range(len(counts)):
            _weigh(
                products[p], products[p], shares[p], behind[p], totals, 0.0, row_weights[begin:],
                end - begin, lanes,
            )  # fmt: skip
            _add(counts[p], products[p], shares[p], cells, ptr, begin, end, lanes)


@compiled
def e_step_of_many(cells, ptr, row_weights, columns, powers, n_safe, room, counts, logs, lanes):
    """Do as `e_step` does, for panels so many that sorting rows is worth it.

    Rows are sorted by level, which then adds up its own in registers: the same sums in the same
    order. A panel that has next to nothing of a row is left out for it.
    """
    products, shares, behind, totals = room[:4]
    n_sums, block = columns.shape[1], _even(len(logs), len(totals))
    parts = np.empty((_SORTED_ROWS, len(lanes)))
    for begin in range(0, len(logs), block):
        end = min(begin + block, len(logs))
        _explain(room, logs, columns, powers, n_safe, cells, ptr, begin, end, lanes)
        rows, starts = _rows_by_level(cells, ptr, begin, end, n_sums)
        for p in range(len(columns)):
            for group in range((end - begin + _SORTED_ROWS - 1) // _SORTED_ROWS):
                at, own = group * _SORTED_ROWS, group * n_sums
                first, last = begin + at, min(begin + at + _SORTED_ROWS, end)
                n_left = _weigh(
                    parts, products[p, at:], shares[p, at:], behind[p, at:], totals[at:],
                    _NEGLIGIBLE_PART, row_weights[first:], last - first, lanes,
                )  # fmt: skip
                if 2 * n_left < last - first:
                    _add(counts[p], parts, shares[p, at:], cells, ptr, first, last, lanes)
                else:
                    for i in range(n_sums):
                        start, stop = starts[own + i], starts[own + i + 1]
                        add_rows(counts[p], i, parts, rows, start, stop, lanes)


@compiled
def posterior_step(cells, ptr, columns, powers, n_safe, room, posterior, logs, lanes):
    """Set posterior[k] to P(component | row k), or zero if the row cannot happen; see `e_step`."""
    products, _, behind, totals = room[:4]
    wide, block = len(lanes), _even(len(logs), len(totals))
    for begin in range(0, len(logs), block):
        end = min(begin + block, len(logs))
        _explain(room, logs, columns, powers, n_safe, cells, ptr, begin, end, lanes)
        for p in range(len(columns)):
            first = p * wide
            last = min(first + wide, posterior.shape[1])  # without padding
            for k in range(end - begin):
                scale = _POWERS_OF_TWO[behind[p, k]]
                total = totals[k] if totals[k] > 0.0 else 1.0
                for f in range(last - first):
                    posterior[begin + k, first + f] = products[p, k, f] * scale / total


@compiled
def predict_step(cells, ptr, columns, powers, n_safe, room, answers, said, predicted, logs, lanes):
    """Set predicted[k] to what components say of a target, by their part of row k; see `e_step`.

    `answers` has the form of the columns, with a row for each level of the target, and `said` is
    memory for what some rows say. Of a row that cannot happen, zeros are predicted.
    """
    products, shares, behind, totals = room[:4]
    n_panels, block = len(columns), _even(len(logs), len(said))
    least = _NEGLIGIBLE_PART if n_panels * len(lanes) >= _MANY_COMPONENTS else 0.0
    for begin in range(0, len(logs), block):
        end = min(begin + block, len(logs))
        _explain(room, logs, columns, powers, n_safe, cells, ptr, begin, end, lanes)
        said[:] = 0.0
        for p in range(n_panels):
            for k in range(end - begin):
                if shares[p, k] > least * totals[k]:
                    scale = _POWERS_OF_TWO[behind[p, k]] / totals[k]
                    add_dots(said, k, products[p], scale, answers[p], lanes)
        for k in range(end - begin):
            for i in range(answers.shape[1]):
                total = 0.0
                for f in range(i * LANES, (i + 1) * LANES):
                    total += said[k, f]
                predicted[begin + k, i] = total


@inner
def _explain(room, logs, columns, powers, n_safe, cells, ptr, begin, end, lanes):
    """Set what the components make of rows begin:end: products, sums of them, and their logs."""
    products, shares, behind, totals, exponents, sums, aside = room
    n_panels, prior = len(columns), columns.shape[1] - 1
    for p in range(n_panels):
        _multiply(products[p], shares[p], columns, p, cells, ptr, begin, end, lanes)
        for k in range(end - begin):
            totals[k] = shares[p, k] + (totals[k] if p > 0 else 0.0)
            behind[p, k] = 0
    for k in range(end - begin):
        power, start, stop = powers[prior], ptr[begin + k], ptr[begin + k + 1]
        for c in range(start, stop):
            power += powers[cells[c]]
        if totals[k] < _LEAST_TOTAL or n_safe == 0:
            for p in range(n_panels):
                multiply_long_row(
                    products[p, k : k + 1], exponents, 0, columns[p], prior, 0,
                    cells, start, stop, max(n_safe, 1), lanes,
                )  # fmt: skip
                sums[p], aside[p] = _align(products[p, k], exponents[0])
            totals[k], more = _align(sums, aside)
            for p in range(n_panels):
                shares[p, k], behind[p, k] = sums[p], aside[p]
            power += more
        logs[begin + k] = np.log(totals[k]) + _LN2 * power


@inner
def _even(n_rows, most):
    """Return how many rows a block has if none has more than `most`, and all are about alike."""
    n_blocks = max((n_rows + most - 1) // most, 1)
    return max((n_rows + n_blocks - 1) // n_blocks, 1)


@inner
def _multiply(products, shares, columns, p, cells, ptr, begin, end, lanes):
    """Set the products of rows in panel p, and shares[k] to their sum.

    Meanwhile the next panel comes near the processor, some of it with each row.
    """
    prior = columns.shape[1] - 1
    n_ahead = columns.shape[1] if p + 1 < len(columns) else 0
    each = (n_ahead + end - begin - 1) // (end - begin)
    for k in range(end - begin):
        for i in range(k * each, min((k + 1) * each, n_ahead)):
            fetch_row(columns[p + 1], i, lanes)
        start, stop = ptr[begin + k], ptr[begin + k + 1]
        shares[k] = multiply_row(products, k, columns[p], prior, 0, cells, start, stop, lanes)


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
        behind = min(top - exponents[f], len(_POWERS_OF_TWO) - 1) if products[f] > 0.0 else 0
        products[f] *= _POWERS_OF_TWO[behind]
        exponents[f] = behind
        total += products[f]
    return total, top


@inner
def _weigh(parts, products, shares, behind, totals, least, row_weights, n_rows, lanes):
    """Set parts to the posteriors of rows times their weights; return how many rows are left.

    Rows of which a panel has no more than the part `least` are left out: their shares become zero.
    """
    n_left = 0
    for k in range(n_rows):
        if shares[k] > least * totals[k]:
            scale = row_weights[k] / totals[k] * _POWERS_OF_TWO[behind[k]]
            n_left += 1
        else:
            scale, shares[k] = 0.0, 0.0
        for f in range(len(lanes)):
            parts[k, f] = products[k, f] * scale
    return n_left


@inner
def _add(sums, products, shares, cells, ptr, begin, end, lanes):
    """Add the products of each row that has a share to the rows of its cells, and to the last."""
    for k in range(end - begin):
        if shares[k] > 0.0:
            start, stop = ptr[begin + k], ptr[begin + k + 1]
            add_row(sums, len(sums) - 1, products, k, 1.0, 0, cells, start, stop, lanes)


@inner
def _rows_by_level(cells, ptr, begin, end, n_sums):
    """Return rows begin:end in order of their cells, and where those of each level begin.

    Some rows are sorted at a time, so each level begins as often. Rows are counted from the first
    of these on, and the last of `n_sums` has every row.
    """
    n_rows = end - begin
    starts = np.zeros((n_rows + _SORTED_ROWS - 1) // _SORTED_ROWS * n_sums + 2, np.int64)
    for k in range(n_rows):
        own = k // _SORTED_ROWS * n_sums
        for c in range(ptr[begin + k], ptr[begin + k + 1]):
            starts[own + cells[c] + 2] += 1
        starts[own + n_sums + 1] += 1
    for j in range(2, len(starts)):
        starts[j] += starts[j - 1]
    rows = np.empty(starts[-1], np.uint16)
    for k in range(n_rows):
        own = k // _SORTED_ROWS * n_sums + 1
        for c in range(ptr[begin + k], ptr[begin + k + 1]):
            rows[starts[own + cells[c]]] = k % _SORTED_ROWS
            starts[own + cells[c]] += 1
        rows[starts[own + n_sums - 1]] = k % _SORTED_ROWS
        starts[own + n_sums - 1] += 1
    return rows, starts
