"""Entropy, mutual information and divergence of joint PMFs, and how far a fit is from the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from jointpmf.encoding import Codes
from jointpmf.errors import JointPMFError
from jointpmf.pmf import JointPMF

MAX_EXACT_CELLS = 2**22
"""Joint tables of up to so many cells are summed exactly; larger ones are sampled."""


class Estimate(NamedTuple):
    """A number and its standard error, which is zero where the number is exact."""

    value: float
    standard_error: float


def entropy(
    pmf: JointPMF,
    names: Iterable[str] | None = None,
    *,
    n_samples: int = 100_000,
    random_state: Any = None,
) -> Estimate:
    """Return the entropy of some or all variables, in nats: exact if their table is small.

    Parameters
    ----------
    pmf : JointPMF
        The distribution.
    names : iterable of str, optional
        Which variables; all by default.
    n_samples, random_state
        For tables of more than four million cells: how many rows are drawn, and the seed.

    Examples
    --------
    >>> from jointpmf import Domain, JointPMF
    >>> fair = JointPMF(Domain.of_sizes([2, 2]), [1.0], [[[0.5], [0.5]], [[0.5], [0.5]]])
    >>> round(entropy(fair).value, 6)
    1.386294
    """
    part = pmf if names is None else pmf.marginal(names)
    if math.prod(part.domain.sizes) <= MAX_EXACT_CELLS:
        return Estimate(_exact_entropy(part), 0.0)
    rows = part.sample(n_samples, random_state=random_state, backend="codes")
    return _mean(-_log_probability_of_codes(part, rows))


def mutual_information(pmf: JointPMF, first: Iterable[str], second: Iterable[str]) -> float:
    """Return how much two small groups of variables tell about each other, in nats, exactly.

    Examples
    --------
    >>> from jointpmf import Domain, JointPMF
    >>> same = JointPMF(Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2), np.eye(2)])
    >>> round(mutual_information(same, ["x0"], ["x1"]), 6)
    0.693147
    """
    first, second = list(first), list(second)
    joint = pmf.marginal(first + second)
    if math.prod(joint.domain.sizes) > MAX_EXACT_CELLS:
        raise JointPMFError(
            f"the joint table of {first + second} is too large to be summed exactly"
        )
    total = _exact_entropy(joint)
    return _exact_entropy(pmf.marginal(first)) + _exact_entropy(pmf.marginal(second)) - total


def kl_divergence(
    true: JointPMF, pmf: JointPMF, *, n_samples: int = 100_000, random_state: Any = None
) -> Estimate:
    """Return KL(true ‖ pmf) in nats: exact if the joint table is small, else from rows of `true`.

    Examples
    --------
    >>> from jointpmf import Domain, random_pmf
    >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> kl_divergence(pmf, pmf).value
    0.0
    """
    _check_same_domain(true, pmf)
    if math.prod(true.domain.sizes) <= MAX_EXACT_CELLS:
        p, q = true.table(), pmf.table()
        with np.errstate(divide="ignore"):
            terms = p[p > 0] * np.log(p[p > 0] / q[p > 0])
        return Estimate(float(terms.sum()), 0.0)
    rows = true.sample(n_samples, random_state=random_state, backend="codes")
    return _mean(_log_probability_of_codes(true, rows) - _log_probability_of_codes(pmf, rows))


def factor_error(true: JointPMF, pmf: JointPMF) -> float:
    """Return the mean relative error of the factors, best permuted: the seed's measure.

    Examples
    --------
    >>> from jointpmf import Domain, random_pmf
    >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> factor_error(pmf, pmf)
    0.0
    """
    _check_same_domain(true, pmf)
    order = best_permutation(true, pmf)
    errors = [
        np.linalg.norm(a - b[:, order]) / np.linalg.norm(a)
        for a, b in zip(true.factors, pmf.factors, strict=True)
    ]
    return float(np.mean(errors))


def tensor_error(true: JointPMF, pmf: JointPMF) -> float:
    """Return ‖X − X̂‖ / ‖X‖ over all joint probabilities, without forming them (eq. 12).

    With equal ranks the difference is a sum of small terms, one per factor, so that the error is
    accurate also where it is far below the square root of rounding.

    Examples
    --------
    >>> from jointpmf import Domain, random_pmf
    >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> tensor_error(pmf, pmf)
    0.0
    """
    _check_same_domain(true, pmf)
    terms = _difference(true, pmf)
    square = sum(_inner(a, b) for a, b in product(terms, terms))
    whole = [true.weights, *true.factors]
    return float(np.sqrt(max(square, 0.0) / _inner(whole, whole)))


def best_permutation(true: JointPMF, pmf: JointPMF) -> np.ndarray:
    """Return which component of `pmf` stands for each component of `true`."""
    if true.rank != pmf.rank:
        raise JointPMFError(f"factors of ranks {true.rank} and {pmf.rank} cannot be compared")
    cost = sum(
        ((a[:, :, None] - b[:, None, :]) ** 2).sum(axis=0) / np.vdot(a, a)
        for a, b in zip(true.factors, pmf.factors, strict=True)
    )
    return linear_sum_assignment(cost)[1]


def _difference(true: JointPMF, pmf: JointPMF) -> list[list[np.ndarray]]:
    """Return the difference of two PMFs as a sum of low-rank terms (weights, factor, factor, …)."""
    a = [true.weights, *true.factors]
    if true.rank != pmf.rank:
        return [a, [-pmf.weights, *pmf.factors]]
    order = best_permutation(true, pmf)
    b = [pmf.weights[order], *(factor[:, order] for factor in pmf.factors)]
    return [[*b[:k], a[k] - b[k], *a[k + 1 :]] for k in range(len(a))]


def _inner(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    grams = np.outer(a[0], b[0])
    for left, right in zip(a[1:], b[1:], strict=True):
        grams = grams * (left.T @ right)
    return float(grams.sum())


def _exact_entropy(pmf: JointPMF) -> float:
    table = pmf.table()
    cells = table[table > 0]
    return float(-(cells * np.log(cells)).sum())


def _log_probability_of_codes(pmf: JointPMF, array: np.ndarray) -> np.ndarray:
    return pmf.log_probability(Codes(pmf.domain, array))


def _mean(samples: np.ndarray) -> Estimate:
    error = samples.std(ddof=1) / math.sqrt(len(samples)) if len(samples) > 1 else math.inf
    return Estimate(float(samples.mean()), float(error))


def _check_same_domain(first: JointPMF, second: JointPMF) -> None:
    if first.domain != second.domain:
        raise JointPMFError("the two distributions are not over the same domain")
