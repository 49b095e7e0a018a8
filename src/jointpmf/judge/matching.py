"""Which component of one model is which of another, and where that cannot be said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

if TYPE_CHECKING:
    from jointpmf.pmf import JointPMF


def matched(
    pmf: JointPMF, weights: np.ndarray, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return replicates with their components in a model's order, and of which that is clear.

    Components belong together whose profiles are alike, by assignment. It is clear where each is
    the nearest of its partner, both ways (docs/math.md, eq. 69).

    Parameters
    ----------
    pmf : JointPMF
        The model whose order it is.
    weights, factors : arrays of shape (replicates, rank) and (replicates, levels, rank)
        The replicates.
    """
    own = np.sqrt(np.concatenate(pmf.factors))
    alike = np.einsum("lf,klg->kfg", own, np.sqrt(factors), optimize=True)
    orders = np.array([linear_sum_assignment(-each)[1] for each in alike])
    which = np.arange(len(weights))[:, None]
    is_nearest = (alike.argmax(axis=2) == orders).all(axis=1)
    back = alike.argmax(axis=1)[which, orders]
    is_clear = is_nearest & (back == np.arange(pmf.rank)).all(axis=1)
    weights = np.take_along_axis(weights, orders, axis=1)
    factors = np.take_along_axis(factors, orders[:, None, :], axis=2)
    return weights, factors, is_clear
