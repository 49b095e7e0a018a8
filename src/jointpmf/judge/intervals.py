"""From the answers of replicates to a standard error and an interval."""

from __future__ import annotations

import numpy as np

from jointpmf.errors import checked_level as checked_level


def interval_columns(
    estimate: np.ndarray, deviations: np.ndarray, level: float
) -> dict[str, np.ndarray]:
    """Return estimates with their standard errors, and between what the truth is (eq. 70).

    Parameters
    ----------
    estimate : array of shape (numbers,)
        The answers.
    deviations : array of shape (replicates, numbers)
        How far the answers of the replicates are from theirs.
    level : float
        How often the intervals hold the truth.
    """
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = estimate + np.quantile(deviations, tails, axis=0, method="weibull")
    return {"estimate": estimate, "se": deviations.std(axis=0, ddof=1), "low": low, "high": high}
