"""From the answers of replicates to a standard error and an interval."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

_MOST_SHIFT = 0.5
"""How far a bias moves an interval at most, in standard errors. Beyond, as where a probability is
zero and its replicates are not, so much is left of one tail that intervals would be too short."""


def interval_columns(
    estimate: np.ndarray, deviations: np.ndarray, level: float, are_probabilities: bool = False
) -> dict[str, np.ndarray]:
    """Return estimates with their standard errors and bias-corrected intervals (eq. 70).

    Parameters
    ----------
    estimate : array of shape (numbers,)
        The answers.
    deviations : array of shape (replicates, numbers)
        How far the answers of the replicates are from theirs.
    level : float
        How often the intervals hold the truth.
    are_probabilities : bool
        Whether intervals end at 0 and 1.
    """
    twice_below = 2 * (deviations < 0).sum(axis=0) + (deviations == 0).sum(axis=0)
    parts = interval_parts(len(deviations), level)[twice_below]
    ordered = np.sort(deviations, axis=0)
    low, high = (estimate + _quantile(ordered, part) for part in parts.T)
    low, high = np.minimum(low, estimate), np.maximum(high, estimate)  # of few replicates
    if are_probabilities:
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    return {"estimate": estimate, "se": deviations.std(axis=0, ddof=1), "low": low, "high": high}


def interval_parts(n_replicates: int, level: float) -> np.ndarray:
    """Return which quantiles end an interval, by how many replicates are below (eq. 70).

    Row k is for k/2 replicates below the estimate; those that are equal to it count half.

    Examples
    --------
    >>> interval_parts(10, 0.9)[10].round(6).tolist()
    [0.05, 0.95]
    """
    tail = float(ndtri((1 - level) / 2))
    below = np.arange(2 * n_replicates + 1) / 2
    shift = np.clip(2 * ndtri(below / n_replicates), -_MOST_SHIFT, _MOST_SHIFT)
    return np.column_stack([ndtr(shift + tail), ndtr(shift - tail)])


def _quantile(ordered: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return a quantile of each column, whose own part it is; k of n is at k/(n + 1)."""
    last = len(ordered) - 1
    place = np.clip(parts * (len(ordered) + 1) - 1, 0, last)
    before = np.floor(place).astype(np.int64)
    which = np.arange(ordered.shape[1])
    near, next_ = ordered[before, which], ordered[np.minimum(before + 1, last), which]
    return near + (place - before) * (next_ - near)
