"""The loops of `loops.py` in plain numba: what they compute, line by line.

They are used where those of `vectors.py` cannot compile, and tests compare the two.
"""

from __future__ import annotations

from math import frexp


def multiply_row(out, row, factors, prior, first, cells, begin, end, lanes):
    """See `loops.multiply_row`."""
    last = first + len(lanes)
    for f in range(first, last):
        out[row, f] = factors[prior, f]
    for c in range(begin, end):
        for f in range(first, last):
            out[row, f] *= factors[cells[c], f]
    total = 0.0
    for f in range(first, last):
        total += out[row, f]
    return total


def multiply_long_row(out, exponents, row, factors, prior, first, cells, begin, end, step, lanes):
    """See `loops.multiply_long_row`."""
    for f in range(first, first + len(lanes)):
        product, power = frexp(factors[prior, f])
        for start in range(begin, end, step):
            for c in range(start, min(start + step, end)):
                product *= factors[cells[c], f]
            product, more = frexp(product)
            power += more
        out[row, f] = 2.0 * product  # in [1, 2), as the other form has it
        exponents[row, f] = power - 1


def add_row(out, prior, rows, row, scale, first, cells, begin, end, lanes):
    """See `loops.add_row`."""
    last = first + len(lanes)
    if prior >= 0:
        for f in range(first, last):
            out[prior, f] += scale * rows[row, f]
    for c in range(begin, end):
        for f in range(first, last):
            out[cells[c], f] += scale * rows[row, f]


def symmetric_row(out, row, factors, first, cells, begin, end, lanes, orders):
    """See `loops.symmetric_row`."""
    width, order = factors.shape[1], len(orders)
    last = first + len(lanes)
    for j in range(order):
        for f in range(first, last):
            out[row, j * width + f] = 0.0
    for c in range(begin, end):
        for j in range(order - 1, 0, -1):
            for f in range(first, last):
                out[row, j * width + f] += factors[cells[c], f] * out[row, (j - 1) * width + f]
        for f in range(first, last):
            out[row, f] += factors[cells[c], f]


def exchange_row(out, row, old, change, first, cells, begin, end, lanes, orders):
    """See `loops.exchange_row`."""
    width, order = old.shape[1], len(orders)
    for c in range(begin, end):
        for f in range(first, first + len(lanes)):
            without = 1.0
            for j in range(order):  # `without` is e_j of all the other cells
                own = out[row, j * width + f]
                out[row, j * width + f] += change[cells[c], f] * without
                without = own - old[cells[c], f] * without


def add_sparse_row(out, row, right, first, columns, values, scale, begin, end, lanes):
    """See `loops.add_sparse_row`."""
    for f in range(first, first + len(lanes)):
        total = 0.0
        for entry in range(begin, end):
            total += values[entry] * right[columns[entry], f]
        out[row, f] += scale * total
