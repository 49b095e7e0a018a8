"""The loops of `loops.py` in plain numba: what they compute, line by line.

They are used where those of `vectors.py` cannot compile, and tests compare the two.
"""

from __future__ import annotations

from math import frexp

from jointpmf.compiled.jit import LANES, inner


def fetch_row(rows, row, lanes):
    """See `loops.fetch_row`: there is nothing to compute."""


def multiply_row(out, row, factors, prior, first, cells, begin, end, lanes):
    """See `loops.multiply_row`."""
    last = first + len(lanes)
    products = out[row, first:last]
    products[:] = factors[prior, first:last]
    for c in range(begin, end):
        numbers = factors[cells[c], first:last]
        for f in range(len(products)):
            products[f] *= numbers[f]
    total = 0.0
    for f in range(len(products)):
        total += products[f]
    return total


def multiply_long_row(out, exponents, row, factors, prior, first, cells, begin, end, step, lanes):
    """See `loops.multiply_long_row`."""
    last = first + len(lanes)
    products, powers = out[row, first:last], exponents[row, first:last]
    products[:] = factors[prior, first:last]
    powers[:] = 0
    _set_powers_aside(products, powers)
    for start in range(begin, end, step):
        for c in range(start, min(start + step, end)):
            numbers = factors[cells[c], first:last]
            for f in range(len(products)):
                products[f] *= numbers[f]
        _set_powers_aside(products, powers)


@inner
def _set_powers_aside(products, powers):
    """Leave products in [1, 2), or zero, and add the powers of two to those set aside before."""
    for f in range(len(products)):
        part, power = frexp(products[f])
        products[f] = 2.0 * part
        powers[f] += power - 1


def add_row(out, prior, rows, row, scale, first, cells, begin, end, lanes):
    """See `loops.add_row`."""
    last = first + len(lanes)
    added = rows[row, first:last]
    for c in range(begin - 1, end):  # the prior first
        target = prior if c < begin else cells[c]
        if target >= 0:
            sums = out[target, first:last]
            for f in range(len(sums)):
                sums[f] += scale * added[f]


def add_rows(out, row, rows, listed, begin, end, lanes):
    """See `loops.add_rows`."""
    sums = out[row]
    for c in range(begin, end):
        added = rows[listed[c]]
        for f in range(len(lanes)):
            sums[f] += added[f]


def add_dots(out, row, left, scale, right, lanes):
    """See `loops.add_dots`."""
    sums = out[row]
    for i in range(len(right)):
        for f in range(len(lanes)):
            sums[i * LANES + f % LANES] += scale * left[row, f] * right[i, f]


def add_sparse_row(out, row, right, first, columns, values, scale, begin, end, lanes):
    """See `loops.add_sparse_row`."""
    last = first + len(lanes)
    sums = out[row, first:last]
    for entry in range(begin, end):
        value, numbers = scale * values[entry], right[columns[entry], first:last]
        for f in range(len(sums)):
            sums[f] += value * numbers[f]
