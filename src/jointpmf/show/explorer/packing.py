"""Replicates in few bytes: two for each number.

What matters is how far the replicates are apart, so that each number has a grid of its own, from
its smallest to its largest. The grid is even in the square root: small probabilities, by which a
product over much evidence is large or small, keep more of their digits. A number is moved by at
most 2e-5 of its largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jointpmf.judge.uncertainty import Uncertainty

_STEPS = 2**16 - 1


def packed(sure: Uncertainty) -> bytes:
    """Return the numbers of the reference, then the ends of the grids, then places on them."""
    reference = sure.reference
    around = np.concatenate([reference.weights, *map(np.ravel, reference.factors)])
    flat = sure.factors.reshape(len(sure), -1)
    roots = np.sqrt(np.concatenate([sure.weights, flat], axis=1))
    low, high = roots.min(axis=0), roots.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    places = np.rint((roots - low) / width * _STEPS)
    ends = np.concatenate([around, low, high])
    return ends.astype("<f8").tobytes() + places.astype("<u2").tobytes()
