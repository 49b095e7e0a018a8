"""The distribution of a weighted sum of squares of independent normal variables."""

from __future__ import annotations

import math

import numpy as np

_TAIL = 1e-7
"""What the part of the inversion that is left out may add to a probability."""

_MOST_TERMS = 2**20
"""Terms of the sum at most; sums of one or two squares would need more, and lose digits."""


def survival(weights: np.ndarray, value: float) -> float:
    """Return P(Σ w Z² > value) for independent standard normal Z; weights may be negative.

    The characteristic function is inverted by the trapezoidal rule of Davies (docs/math.md,
    eq. 57), whose steps are so short that the distribution has no mass beyond its period.

    Examples
    --------
    >>> round(survival(np.ones(4), 9.4877), 4)  # χ² with four degrees of freedom
    0.05
    """
    weights = weights[np.abs(weights) > 1e-12 * np.abs(weights).max(initial=0.0)]
    if not len(weights):
        return float(value < 0)
    scale = np.abs(weights).max()
    weights, value = weights / scale, value / scale
    sd = math.sqrt(2 * float(weights @ weights))
    step = 2 * math.pi / (abs(value - weights.sum()) + 10 * sd + 60)
    n_terms = min(math.ceil(_end(weights) / step), _MOST_TERMS)
    size = max(2**22 // len(weights), 1)
    total = sum(
        _terms(weights, value, step, np.arange(begin, min(begin + size, n_terms)) + 0.5)
        for begin in range(0, n_terms, size)
    )
    return min(max(0.5 + total / math.pi, 0.0), 1.0)


def _terms(weights: np.ndarray, value: float, step: float, k: np.ndarray) -> float:
    """Return some terms of the sum."""
    at = 2 * step * k[:, None] * weights
    size = np.exp(-np.log1p(at**2).sum(axis=1) / 4)
    angle = np.arctan(at).sum(axis=1) / 2 - step * k * value
    return float((np.sin(angle) * size / k).sum())


def _end(weights: np.ndarray) -> float:
    """Return where the characteristic function is so small that the rest does not matter."""
    end = 1.0
    while end < 2**60:
        square = (2 * end * weights) ** 2
        falls = (square / (1 + square)).sum() / 2  # as this power of the place
        if math.exp(-np.log1p(square).sum() / 4) < _TAIL * falls * math.pi:
            break
        end *= 2
    return end
