"""Entropy, mutual information and divergence of joint PMFs, and how far a fit is from the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import entr

from jointpmf.data.codes import Codes
from jointpmf.domain import name_list
from jointpmf.errors import JointPMFError, instance_of, whole_number
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.pmf import JointPMF

_MAX_CELLS = 2**22
"""Joint tables of at most this many cells are summed exactly; larger ones are sampled."""


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
    max_cells: int = _MAX_CELLS,
) -> Estimate:
    """Return the entropy of some or all variables, in nats: exact if their table is small.

    Parameters
    ----------
    pmf : JointPMF
        The distribution.
    names : iterable of str, optional
        Which variables; all by default.
    n_samples, random_state
        For tables of more cells than `max_cells`: how many rows are drawn, and the seed.
    max_cells : int
        Cells of the largest table that is summed exactly, by default four million.

    Examples
    --------
    >>> from jointpmf import Domain, JointPMF
    >>> fair = JointPMF(Domain.of_sizes([2, 2]), [1.0], [[[0.5], [0.5]], [[0.5], [0.5]]])
    >>> round(entropy(fair).value, 6)
    1.386294
    """
    _check_model(pmf)
    max_cells = whole_number(max_cells, "max_cells", 0)
    part = pmf if names is None else pmf.marginal(names)
    if math.prod(part.domain.sizes) <= max_cells:
        return Estimate(_exact_entropy(part), 0.0)
    rows = _sampled_rows(part, n_samples, random_state)
    return _mean(-part.log_probability(rows))


@overload
def mutual_information(pmf: JointPMF) -> np.ndarray: ...


@overload
def mutual_information(pmf: JointPMF, first: Iterable[str], second: Iterable[str]) -> float: ...


def mutual_information(
    pmf: JointPMF, first: Iterable[str] | None = None, second: Iterable[str] | None = None
) -> float | np.ndarray:
    """Return the mutual information of two small groups of variables, or of every pair, in nats.

    Parameters
    ----------
    pmf : JointPMF
        The distribution.
    first, second : iterables of str, optional
        The names of two groups. Without them, every two variables are compared.

    Returns
    -------
    float, or array of shape (variables, variables)
        Exact. The array is symmetric, and its diagonal has the entropies.

    Examples
    --------
    >>> from jointpmf import Domain, JointPMF
    >>> same = JointPMF(Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2), np.eye(2)])
    >>> round(mutual_information(same, ["x0"], ["x1"]), 6)
    0.693147
    >>> mutual_information(same).round(6).tolist()
    [[0.693147, 0.693147], [0.693147, 0.693147]]
    """
    _check_model(pmf)
    if first is None and second is None:
        return _of_every_pair(pmf)
    if first is None or second is None:
        raise JointPMFError("name two groups of variables, or none to compare every two variables")
    first, second = ([x] if isinstance(x, str) else name_list(x) for x in (first, second))
    joint = pmf.marginal(first + second)
    if math.prod(joint.domain.sizes) > _MAX_CELLS:
        raise JointPMFError(
            f"the joint table of {first + second} is too large to be summed exactly"
        )
    total = _exact_entropy(joint)
    return _exact_entropy(pmf.marginal(first)) + _exact_entropy(pmf.marginal(second)) - total


def _of_every_pair(pmf: JointPMF) -> np.ndarray:
    """Return the mutual information of every pair, and on the diagonal the entropies."""
    entropies = np.array([entr(factor @ pmf.weights).sum() for factor in pmf.factors])
    information = entropies[:, None] + entropies - entropies_of_pairs(pmf)
    below = np.tril_indices(len(entropies), -1)
    information[below] = information.T[below]
    np.fill_diagonal(information, entropies)
    return np.maximum(information, 0.0)  # rounding can make it negative


def entropies_of_pairs(pmf: JointPMF, at_once: int = 2**20) -> np.ndarray:
    """Return the entropies of all pairs, above the diagonal.

    At most `at_once` cells of the tables of pairs are in memory at a time, if a row has no more.
    """
    starts, n_variables = pmf.domain.offsets[:-1], len(pmf.domain)
    levels = np.concatenate([np.zeros((0, pmf.rank)), *pmf.factors])
    variable_of = np.repeat(np.arange(n_variables), pmf.domain.sizes)
    entropies = np.zeros((n_variables, n_variables))
    height = max(at_once // max(len(levels), 1), 1)
    with one_blas_thread:
        for begin in range(0, len(levels), height):
            block = slice(begin, begin + height)
            first = variable_of[begin]  # pairs with variables before it were summed before
            rest = levels[starts[first] :]
            terms = entr((levels[block] * pmf.weights) @ rest.T)
            sums = np.add.reduceat(terms, starts[first:] - starts[first], axis=1)
            np.add.at(entropies[:, first:], variable_of[block], sums)
    return entropies


def component_information(pmf: JointPMF) -> np.ndarray:
    """Return the mutual information of each variable and the component, in nats.

    A variable's mutual information with another variable is never larger.

    Examples
    --------
    >>> from jointpmf import Domain, JointPMF
    >>> half = JointPMF(Domain.of_sizes([2, 1]), [0.5, 0.5], [np.eye(2), [[1, 1]]])
    >>> component_information(half).round(6).tolist()
    [0.693147, 0.0]
    """
    told = [
        entr(factor @ pmf.weights).sum() - entr(factor).sum(axis=0) @ pmf.weights
        for factor in pmf.factors
    ]
    return np.maximum(np.array(told), 0.0)


def kl_divergence(
    true: JointPMF,
    pmf: JointPMF,
    *,
    n_samples: int = 100_000,
    random_state: Any = None,
    max_cells: int = _MAX_CELLS,
) -> Estimate:
    """Return KL(true ‖ pmf) in nats: exact if the joint table is small, else from rows of `true`.

    A table is small if it has at most `max_cells` cells.

    Examples
    --------
    >>> from jointpmf import Domain, random_pmf
    >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> kl_divergence(pmf, pmf).value
    0.0
    """
    _check_same_domain(true, pmf)
    max_cells = whole_number(max_cells, "max_cells", 0)
    if math.prod(true.domain.sizes) <= max_cells:
        p, q = true.table(), pmf.table()
        with np.errstate(divide="ignore"):
            terms = p[p > 0] * (np.log(p[p > 0]) - np.log(q[p > 0]))
        return Estimate(float(terms.sum()), 0.0)
    rows = _sampled_rows(true, n_samples, random_state)
    return _mean(true.log_probability(rows) - pmf.log_probability(rows))


def factor_error(true: JointPMF, pmf: JointPMF) -> float:
    """Return the mean relative error of the factors, best permuted: the paper's measure.

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
    a = [true.weights[None], *true.factors]
    scales = [np.einsum("if,if->f", factor, factor).max() for factor in a]
    if true.rank != pmf.rank:
        b = [pmf.weights[None], *pmf.factors]
        square = _inner(a, a, scales) - 2 * _inner(a, b, scales) + _inner(b, b, scales)
    else:
        order = best_permutation(true, pmf)
        b = [pmf.weights[None, order], *(factor[:, order] for factor in pmf.factors)]
        square = _telescoped_square(a, b, scales)
    return float(np.sqrt(max(square, 0.0) / _inner(a, a, scales)))


def best_permutation(true: JointPMF, pmf: JointPMF) -> np.ndarray:
    """Return which component of `pmf` stands for each component of `true`."""
    if true.rank != pmf.rank:
        raise JointPMFError(f"factors of ranks {true.rank} and {pmf.rank} cannot be compared")
    cost = np.zeros((true.rank, true.rank)) + sum(
        ((a[:, :, None] - b[:, None, :]) ** 2).sum(axis=0) / np.vdot(a, a)
        for a, b in zip(true.factors, pmf.factors, strict=True)
    )
    return linear_sum_assignment(cost)[1]


def _telescoped_square(a: list[np.ndarray], b: list[np.ndarray], scales: list[float]) -> float:
    """Return ‖[[a]] − [[b]]‖², the difference being the sum over k of a − b in place k (eq. 12).

    Term k has b before its place and a after it. The inner product of terms k <= m is, place by
    place: b with b before k, then once a − b with b, then a with b, once a with a − b, and a with
    a after m. Every place is divided by its scale, so that the products do not underflow.
    """
    d = [left - right for left, right in zip(a, b, strict=True)]
    after = [np.ones((a[0].shape[1],) * 2)]
    for k in reversed(range(len(a))):
        after.insert(0, after[0] * (a[k].T @ a[k]) / scales[k])
    before, total = np.ones_like(after[0]), 0.0
    for k in range(len(a)):
        total += float((before * (d[k].T @ d[k]) * after[k + 1]).sum()) / scales[k]
        between = before * (d[k].T @ b[k]) / scales[k]
        for m in range(k + 1, len(a)):
            total += 2 * float((between * (a[m].T @ d[m]) * after[m + 1]).sum()) / scales[m]
            between = between * (a[m].T @ b[m]) / scales[m]
        before = before * (b[k].T @ b[k]) / scales[k]
    return total


def _inner(a: list[np.ndarray], b: list[np.ndarray], scales: list[float]) -> float:
    grams = np.ones((a[0].shape[1], b[0].shape[1]))
    for left, right, scale in zip(a, b, scales, strict=True):
        grams = grams * (left.T @ right) / scale
    return float(grams.sum())


def _exact_entropy(pmf: JointPMF) -> float:
    table = pmf.table()
    cells = table[table > 0]
    return float(-(cells * np.log(cells)).sum())


def _sampled_rows(pmf: JointPMF, n_samples: int, random_state: Any) -> Codes:
    n_samples = whole_number(n_samples, "n_samples", 2)
    return Codes(pmf.domain, pmf.sample(n_samples, random_state=random_state, backend="codes"))


def _mean(samples: np.ndarray) -> Estimate:
    mean = float(samples.mean())
    if math.isinf(mean):
        return Estimate(mean, 0.0)
    return Estimate(mean, float(samples.std(ddof=1) / math.sqrt(len(samples))))


def _check_model(pmf: Any) -> None:
    from jointpmf.pmf import JointPMF  # later, because pages need this file and not that one

    instance_of(pmf, JointPMF, "the model")


def _check_same_domain(first: JointPMF, second: JointPMF) -> None:
    for pmf in (first, second):
        _check_model(pmf)
    if first.domain != second.domain:
        raise JointPMFError("the two distributions are not over the same domain")
