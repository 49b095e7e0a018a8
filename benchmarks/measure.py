"""How things are timed here: the best of several runs, everything in one process."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table


def seconds(function: Callable[[], object], repeats: int = 7) -> float:
    """Return the shortest time of several runs; the first, which may compile, does not count."""
    function()
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begin)
    return best


def peak_bytes(function: Callable[[], object]) -> int:
    """Return the most memory that a call held beyond what was there before."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def gemm_flops() -> float:
    """Return the floating-point operations per second of a large square product, all cores."""
    a = np.random.default_rng(0).random((2048, 2048))
    return 2 * 2048**3 / seconds(lambda: a @ a)


def page_table(head: Sequence[str], rows: Sequence[str]) -> list[str]:
    """Return the lines of a page's table: names on the left, numbers on the right."""
    return ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1), *rows]


Line = tuple[str, str, str, str]
"""What, measured, the machine's or the reference's own figure, bound."""

printed: list[tuple[str, list[Line]]] = []
"""The titles and lines that this process has printed."""


def print_lines(title: str, lines: list[Line]) -> None:
    """Print lines as a table."""
    printed.append((title, lines))
    table = Table("what", "measured", "beside it", "asked", title=title, title_justify="left")
    for line in lines:
        table.add_row(*line)
    Console(width=140).print(table)
