"""Rows as numbers, and those numbers in order: a stable sort by one digit after the other."""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.jit import compiled

_ROWS_AT_ONCE = 4096
"""Rows whose numbers are made at a time, so that they stay near the processor."""


@compiled
def set_row_keys(columns, radix, begin, end, keys):
    """Set keys[row] to Σ over variables of (code + 1) · radix, modulo 2**64, for rows begin:end."""
    for first in range(begin, end, _ROWS_AT_ONCE):
        last = min(first + _ROWS_AT_ONCE, end)
        for row in range(first, last):
            keys[row] = 0
        for n in range(len(columns)):
            factor = radix[n]
            for row in range(first, last):
                keys[row] += np.uint64(columns[n, row] + 1) * factor


@compiled
def probed(keys, shift):
    """Return those keys that a multiplication scatters to the first places, whatever they are."""
    found = np.empty(len(keys), np.uint64)
    count = 0
    for k in range(len(keys)):
        found[count] = keys[k]
        count += (keys[k] * np.uint64(0x9E3779B97F4A7C15)) >> shift == 0
    return found[:count].copy()


@compiled
def count_digits(keys, begin, end, shift, counts):
    """Count how often each digit occurs in keys begin:end; there are len(counts) of them."""
    mask = np.uint64(len(counts) - 1)
    for k in range(begin, end):
        counts[(keys[k] >> shift) & mask] += 1


@compiled
def place_digits(keys, places, begin, end, shift, next_, keys_out, places_out):
    """Put keys begin:end, and what belongs to them, where `next_` says for each digit."""
    mask = np.uint64(len(next_) - 1)
    for k in range(begin, end):
        digit = (keys[k] >> shift) & mask
        keys_out[next_[digit]] = keys[k]
        places_out[next_[digit]] = places[k]
        next_[digit] += 1


def starts_of_runs(keys: np.ndarray) -> np.ndarray:
    """Return where each run of equal keys begins, and the end of the last."""
    is_start = np.ones(len(keys) + 1, bool)
    np.not_equal(keys[1:], keys[:-1], out=is_start[1:-1])
    return np.flatnonzero(is_start)


@compiled
def are_runs_equal(column, places, starts):
    """Tell whether the rows of each run have one code each."""
    for run in range(len(starts) - 1):
        code = column[places[starts[run]]]
        for k in range(starts[run] + 1, starts[run + 1]):
            if column[places[k]] != code:
                return False
    return True
