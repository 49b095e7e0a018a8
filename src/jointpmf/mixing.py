"""Several models as one: their average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jointpmf.data.codes import checked_weights
from jointpmf.errors import JointPMFError, items_of
from jointpmf.pmf import JointPMF


def average(pmfs: Sequence[JointPMF], weights: Any = None) -> JointPMF:
    """Return the average of several distributions, as one model whose rank is the sum of theirs.

    Parameters
    ----------
    pmfs : sequence of JointPMF
        Over the same domain.
    weights : array, optional
        How much each of them counts; equal by default.

    Examples
    --------
    >>> from jointpmf import Domain, random_pmf
    >>> pmfs = [random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=seed) for seed in (0, 1)]
    >>> mean = average(pmfs)
    >>> mean.rank, bool(np.allclose(mean.table(), (pmfs[0].table() + pmfs[1].table()) / 2))
    (4, True)
    """
    pmfs = items_of(pmfs, "average needs one JointPMF or more")
    if not pmfs or not all(isinstance(pmf, JointPMF) for pmf in pmfs):
        raise JointPMFError("average needs one JointPMF or more")
    if any(pmf.domain != pmfs[0].domain for pmf in pmfs):
        raise JointPMFError("the distributions to average are not over the same domain")
    shares = checked_weights(weights, len(pmfs), "weight of model", most=np.inf)
    shares = np.ones(len(pmfs)) if shares is None else shares
    if not shares.any():
        raise JointPMFError("the weights of all models are zero")
    shares = shares / shares.max()  # so that their sum does not overflow
    parts = [share * pmf.weights for share, pmf in zip(shares / shares.sum(), pmfs, strict=True)]
    models = [model for pmf in pmfs for model in pmf.trait_models]
    order = _traits_first(pmfs)
    factors = [np.hstack(same)[:, order] for same in zip(*(p.factors for p in pmfs), strict=True)]
    weights = np.concatenate(parts)[order]
    return JointPMF(pmfs[0].domain, weights, factors, trait_models=models)


def _traits_first(pmfs: Sequence[JointPMF]) -> np.ndarray:
    """Return the components of all models, side by side, in the order that traits come first."""
    is_free = []
    for pmf in pmfs:
        n_points = sum(len(model.space.points) for model in pmf.trait_models)
        is_free.append(np.arange(pmf.rank) >= n_points)
    return np.argsort(np.concatenate(is_free), kind="stable")
