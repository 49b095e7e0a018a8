"""Sparse tables, row by row, against dense joint factors."""

from __future__ import annotations

from jointpmf.compiled.jit import compiled
from jointpmf.compiled.loops import add_sparse_row


@compiled
def add_sparse_product(ptr, columns, values, scale, right, out, first, lanes):
    """Add scale · (sparse @ right) to `out`, for len(lanes) columns from `first` on."""
    for row in range(len(ptr) - 1):
        if ptr[row] < ptr[row + 1]:
            add_sparse_row(
                out, row, right, first, columns, values, scale, ptr[row], ptr[row + 1], lanes
            )


@compiled
def sparse_cost(ptr, columns, values, scale, left, right):
    """Return Σ over stored cells of (x − x̂)² − x̂², with x̂ = left[row] · right[column]."""
    total = 0.0
    for row in range(len(ptr) - 1):
        for entry in range(ptr[row], ptr[row + 1]):
            fitted = 0.0
            for f in range(left.shape[1]):
                fitted += left[row, f] * right[columns[entry], f]
            value = scale * values[entry]
            total += value * (value - 2.0 * fitted)
    return total
