"""From the answers of replicates to a standard error and an interval."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from jointpmf.errors import checked_level as checked_level


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
    tail = float(ndtri((1 - level) / 2))
    n_replicates = len(deviations)
    below = (deviations < 0).sum(axis=0) + (deviations == 0).sum(axis=0) / 2
    shift = 2 * ndtri(np.clip(below, 0.5, n_replicates - 0.5) / n_replicates)
    ordered = np.sort(deviations, axis=0)
    low = estimate + _quantile(ordered, ndtr(shift + tail))
    high = estimate + _quantile(ordered, ndtr(shift - tail))
    if are_probabilities:
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    return {"estimate": estimate, "se": deviations.std(axis=0, ddof=1), "low": low, "high": high}


def _quantile(ordered: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return a quantile of each column, whose own part it is; k of n is at k/(n + 1)."""
    last = len(ordered) - 1
    place = np.clip(parts * (len(ordered) + 1) - 1, 0, last)
    before = np.floor(place).astype(np.int64)
    which = np.arange(ordered.shape[1])
    near, next_ = ordered[before, which], ordered[np.minimum(before + 1, last), which]
    return near + (place - before) * (next_ - near)
