"""How wide a loop is, which of its two forms is used, and memory that fits its vectors."""

from __future__ import annotations

import logging
import math
import os
from ctypes import addressof, c_char
from functools import cache

import numpy as np

from jointpmf.compiled.jit import LANES, LINE, compiled
from jointpmf.compiled.loops import (
    add_dots,
    add_row,
    add_rows,
    add_sparse_row,
    fetch_row,
    multiply_long_row,
    multiply_row,
)

logger = logging.getLogger("jointpmf")

MAX_LANES = 32
"""Columns that one pass over a row serves: as many as the registers hold."""

_LONG, _LONG_PANEL = 256, 16
"""Numbers of a row from which on it is padded to whole panels, an eighth at most; and how wide
those of the E-step are: of wider ones fewer levels stay near the processor."""

_FEW_NUMBERS = 2**16
"""Numbers that a pass multiplies, cells times components, up to which it takes a vector at a time:
to compile a loop of another width takes longer than all that it could save."""

Lanes = tuple[int, ...]


def lanes_of(width: int, plain: bool | None = None) -> Lanes:
    """Return what tells a loop to work on `width` numbers at once.

    Its length and the type of its entries are part of a loop's signature, so each width and each
    form is compiled and kept on its own. By default the plain form is used only where the other
    cannot compile, or where the environment has JOINTPMF_PLAIN=1.
    """
    return ((False,) if (plain_is_needed() if plain is None else plain) else (0,)) * width


def padded_width(count: int) -> int:
    """Return how many numbers a row of `count` takes: whole vectors, or panels if it is long.

    Examples
    --------
    >>> padded_width(10)
    12
    """
    whole = LANES if count < _LONG else MAX_LANES
    return -(-count // whole) * whole


def panel_width(count: int, n_cells: float = math.inf) -> int:
    """Return how many numbers one pass over a row serves: least padding, then most.

    Of few cells it is one vector, so that their passes share one loop whatever the count.

    Examples
    --------
    >>> panel_width(36), panel_width(36, n_cells=1000)
    (12, 4)
    """
    if count * n_cells <= _FEW_NUMBERS:
        return LANES
    if count >= _LONG:
        return _LONG_PANEL
    widths = range(LANES, MAX_LANES + 1, LANES)
    return min(widths, key=lambda width: (-(-count // width) * width, -width))


def panels(width: int) -> list[tuple[int, Lanes]]:
    """Return the first column and the lanes of each pass that a padded width needs."""
    return [
        (first, lanes_of(min(MAX_LANES, width - first))) for first in range(0, width, MAX_LANES)
    ]


def aligned_zeros(rows: int, width: int) -> np.ndarray:
    """Return zeros whose rows begin on vector boundaries."""
    memory = np.zeros(rows * width + LINE)
    address = addressof(c_char.from_buffer(memory.data))  # `memory.ctypes` takes longer to say it
    start = (-address // memory.itemsize) % LINE
    return memory[start : start + rows * width].reshape(rows, width)


@cache
def plain_is_needed() -> bool:
    """Tell whether the loops of `vectors` cannot be used; found out once in a process."""
    if os.environ.get("JOINTPMF_PLAIN") == "1":
        return True
    out, table, cells = np.ones((1, 2 * LANES)), np.ones((2, LANES)), np.zeros(1, np.uint16)
    try:
        _try_all(out, out.astype(np.int64), table, cells, lanes_of(LANES, plain=False))
    except Exception as error:
        logger.warning(
            "the loops in vector registers do not compile, plain ones are used: %s", error
        )
        return True
    return False


@compiled
def _try_all(out, exponents, table, cells, lanes):
    """Run each loop that has two forms once."""
    multiply_row(out, 0, table, 1, 0, cells, 0, 1, lanes)
    multiply_long_row(out, exponents, 0, table, 1, 0, cells, 0, 1, 1, lanes)
    add_row(out, -1, table, 1, 1.0, 0, cells, 0, 1, lanes)
    add_rows(out, 0, table, cells, 0, 1, lanes)
    add_dots(out, 0, table, 1.0, table, lanes)
    fetch_row(table, 0, lanes)
    add_sparse_row(out, 0, table, 0, cells, table[0], 1.0, 0, 1, lanes)
