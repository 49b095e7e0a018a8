"""Replicates in few bytes: two for each number.

What matters is how far the replicates are apart, so that each number has a grid of its own, from
its smallest to its largest. The grid is even in the logarithm, since a probability given evidence
is a ratio of small numbers, of which each must keep its digits: a number that varies threefold is
moved by at most 1e-5 of itself, and one that varies as much as can be by 6e-4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jointpmf.judge.uncertainty import Uncertainty

_STEPS = 2**16 - 2
"""Of a grid; the place before its first is that of zero."""

_SMALLEST = 1e-30
"""What is smaller, but not zero, is raised to this: it is never seen in a sample."""


def packed(sure: Uncertainty) -> bytes:
    """Return the numbers of the reference, then the ends of the grids, then places on them."""
    reference = sure.reference
    around = np.concatenate([reference.weights, *map(np.ravel, reference.factors)])
    flat = sure.factors.reshape(len(sure), -1)
    numbers = np.concatenate([sure.weights, flat], axis=1)
    logs = np.log(np.maximum(numbers, _SMALLEST))
    high = logs.max(axis=0)
    low = np.where(numbers > 0, logs, high).min(axis=0)
    width = np.where(high > low, high - low, 1.0)
    places = np.where(numbers > 0, 1 + np.rint((logs - low) / width * _STEPS), 0)
    ends = np.concatenate([around, low, high])
    return ends.astype("<f8").tobytes() + places.astype("<u2").tobytes()
