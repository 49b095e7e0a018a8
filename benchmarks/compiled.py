"""Each loop in vector registers against its plain twin, one thread, and against matrix products.

The limit is the multiply-adds per second of one thread in a matrix product, which reuses what it
loads many times; loops that load a row of numbers for each cell cannot reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import print_lines, seconds
from jointpmf.compiled import loops
from jointpmf.compiled.jit import compiled
from jointpmf.compiled.panels import aligned_zeros, lanes_of
from jointpmf.threads import one_blas_thread

N_ROWS, N_CELLS, N_LEVELS = 4096, 10, 100
Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays, tuple[int, ...]], None]


def main() -> None:
    """Measure and print."""
    square = np.random.default_rng(0).random((256, 256))
    with one_blas_thread:
        limit = square.size * len(square) / seconds(lambda: square @ square, 200)
    runs: dict[str, Run] = {
        "multiply_row": multiply_rows,
        "multiply_long_row": multiply_long_rows,
        "add_row": add_rows,
        "add_sparse_row": add_sparse_rows,
    }
    for width in (4, 12, 32):
        arrays = job(width)
        lines = []
        for name, run in runs.items():
            vector, plain = (seconds(calls(run, arrays, width, p), 100) for p in (False, True))
            done = N_ROWS * N_CELLS * width / vector
            lines.append(
                (
                    name,
                    f"{1e9 * vector / N_ROWS:.0f} ns a row, {done / limit:.0%} of the limit",
                    f"plain {1e9 * plain / N_ROWS:.0f} ns: {plain / vector:.1f}× as long",
                    "at least 1×",
                )
            )
        title = f"Rows of {N_CELLS} cells, {width} numbers wide; limit {limit / 1e9:.1f}e9 a second"
        print_lines(title, lines)


def calls(run: Run, arrays: Arrays, width: int, plain: bool) -> Callable[[], None]:
    """Return what runs a loop over all rows, in one of its forms."""
    lanes = lanes_of(width, plain)
    return lambda: run(arrays, lanes)


def job(width: int) -> Arrays:
    """Return rows of random cells, and tables of random numbers that keep sums in range."""
    generator = np.random.default_rng(0)
    table = aligned_zeros(N_LEVELS + 1, width)
    table[:] = 0.5 + generator.random(table.shape)
    products = aligned_zeros(N_ROWS, width)
    cells = np.array([generator.permutation(N_LEVELS)[:N_CELLS] for _ in range(N_ROWS)], np.uint16)
    return {
        "table": table,
        "products": products,
        "exponents": np.zeros(products.shape, np.int64),
        "sums": np.zeros_like(table),
        "cells": cells.ravel(),
        "values": generator.random(cells.size),
        "ptr": np.arange(N_ROWS + 1) * N_CELLS,
    }


def multiply_rows(a: Arrays, lanes: Any) -> None:
    """Multiply the table's rows at each row's cells."""
    _multiply(a["products"], a["table"], a["cells"], a["ptr"], lanes)


def multiply_long_rows(a: Arrays, lanes: Any) -> None:
    """Do the same with powers of two set aside after every seven cells, as for 1e-30."""
    _multiply_long(a["products"], a["exponents"], a["table"], a["cells"], a["ptr"], 7, lanes)


def add_rows(a: Arrays, lanes: Any) -> None:
    """Add each row's products to the sums of its cells."""
    _add(a["sums"], a["products"], a["cells"], a["ptr"], lanes)


def add_sparse_rows(a: Arrays, lanes: Any) -> None:
    """Multiply a sparse matrix of the rows' cells with the table."""
    _add_sparse(a["products"], a["table"], a["cells"], a["values"], a["ptr"], lanes)


@compiled
def _multiply(out, table, cells, ptr, lanes):
    last = len(table) - 1
    for k in range(len(ptr) - 1):
        loops.multiply_row(out, k, table, last, 0, cells, ptr[k], ptr[k + 1], lanes)


@compiled
def _multiply_long(out, exponents, table, cells, ptr, step, lanes):
    last = len(table) - 1
    for k in range(len(ptr) - 1):
        loops.multiply_long_row(
            out, exponents, k, table, last, 0, cells, ptr[k], ptr[k + 1], step, lanes
        )


@compiled
def _add(sums, rows, cells, ptr, lanes):
    for k in range(len(ptr) - 1):
        loops.add_row(sums, -1, rows, k, 1e-9, 0, cells, ptr[k], ptr[k + 1], lanes)


@compiled
def _add_sparse(out, right, columns, values, ptr, lanes):
    for k in range(len(ptr) - 1):
        loops.add_sparse_row(out, k, right, 0, columns, values, 1e-9, ptr[k], ptr[k + 1], lanes)


if __name__ == "__main__":
    main()
