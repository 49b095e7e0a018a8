"""Memory as vector loops like it."""

from __future__ import annotations

import numpy as np


def aligned_zeros(rows: int, width: int) -> np.ndarray:
    """Return zeros whose rows begin on vector boundaries."""
    line = 8  # doubles in a cache line
    memory = np.zeros(rows * width + line)
    start = (-memory.ctypes.data // memory.itemsize) % line
    return memory[start : start + rows * width].reshape(rows, width)
