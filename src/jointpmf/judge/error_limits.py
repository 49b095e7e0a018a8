"""How small the error of a fit can be: the Cramér–Rao bound, and what least squares will have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.errors import JointPMFError
from jointpmf.judge.known import known_subsets
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.point import Point
from jointpmf.solvers.curvature import Curvature, Tangent
from jointpmf.solvers.jacobian import positive_rank, whole_tangent
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.pmf import JointPMF

Subset = tuple[int, ...]


@dataclass(frozen=True)
class ErrorLimits:
    """The smallest relative errors that are possible, and those that least squares will have.

    `factor_bound` and `tensor_bound` are the Cramér–Rao bounds, from all of the data;
    `factor_predicted` and `tensor_predicted` are for least squares on the marginals, infinite
    where those do not determine the model.
    """

    factor_bound: float
    tensor_bound: float
    factor_predicted: float
    tensor_predicted: float


def error_limits(
    pmf: JointPMF,
    known: MarginalSet | int,
    *,
    sigma: float | None = None,
    n_rows: int | None = None,
    n_samples: int = 100_000,
    random_state: object = 0,
) -> ErrorLimits:
    """Return how well a model can be learned under known noise, to first order in the noise.

    Parameters
    ----------
    pmf : JointPMF
        The true model.
    known : MarginalSet or int
        Which marginals least squares sees, or their order.
    sigma : float, optional
        White noise of this standard deviation on every cell of the joint, marginals summed from it.
    n_rows : int, optional
        Instead: the number of complete rows over which the marginals are counted.
    n_samples, random_state
        Rows over which expectations are taken where the joint has too many cells.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([5] * 4), rank=2, random_state=0)
    >>> limits = jp.error_limits(truth, 3, n_rows=10_000)
    >>> limits.factor_bound <= limits.factor_predicted
    True
    """
    if (sigma is None) == (n_rows is None):
        raise JointPMFError("say either sigma, noise on every cell, or n_rows, rows counted")
    if not all(number is None or number > 0 for number in (sigma, n_rows)):
        raise JointPMFError("sigma and n_rows must be positive")
    given = known if isinstance(known, MarginalSet) else (pmf.domain, known)
    if isinstance(known, MarginalSet):
        known.check_plain("error_limits")
    domain, subsets = known_subsets(given, None)
    if domain != pmf.domain:
        raise JointPMFError("the marginals are not over the same domain as the model")
    point = Point.of_pmf(pmf)
    tangent = whole_tangent(domain, point)
    curvature = Curvature(domain, subsets, np.ones(len(subsets)))
    marginal = tangent.reduce_matrix(curvature.matrix(point))
    everything = Curvature(domain, [tuple(range(len(domain)))], np.ones(1)).matrix(point)
    with one_blas_thread:
        if sigma is not None:
            information = tangent.reduce_matrix(everything) / sigma**2
            noise = sigma**2 * tangent.reduce_matrix(_shared_noise(domain, subsets, point))
        else:
            rows, weights = _expectation_rows(pmf, n_samples, random_state)
            information, noise = _of_rows(pmf, rows, weights, subsets, tangent)
            total = float(n_rows or 1)
            information, noise = information * total, noise / total
        bound = _inverse(information)
        inverse = _inverse(marginal)
        predicted = None if inverse is None else inverse @ noise @ inverse
    return ErrorLimits(
        *_relative_errors(pmf, bound, tangent, everything),
        *_relative_errors(pmf, predicted, tangent, everything),
    )


def _inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse of a positive matrix, or None if some direction is not seen at all."""
    return np.linalg.inv(matrix) if positive_rank(matrix) == len(matrix) else None


def _shared_noise(domain: Domain, subsets: Sequence[Subset], point: Point) -> np.ndarray:
    """Return Jᵀ(covariance)J: tables have the noise of the cells that they share (eq. 19)."""
    shared: dict[Subset, float] = {}
    for s, t in product(subsets, repeat=2):
        both = tuple(sorted(set(s) & set(t)))
        outside = math.prod(domain.sizes[n] for n in range(len(domain)) if n not in {*s, *t})
        if both:
            shared[both] = shared.get(both, 0.0) + outside
    return Curvature(domain, list(shared), np.array(list(shared.values()))).matrix(point)


def _expectation_rows(
    pmf: JointPMF, n_samples: int, random_state: object
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and their weights that stand for the distribution: all cells, or a sample."""
    if math.prod(pmf.domain.sizes) <= n_samples:
        cells = np.indices(pmf.domain.sizes).reshape(len(pmf.domain), -1).T
        return cells, pmf.table().ravel()
    rows = pmf.sample(n_samples, random_state=random_state, backend="codes")
    return rows, np.full(n_samples, 1 / n_samples)


def _of_rows(
    pmf: JointPMF,
    rows: np.ndarray,
    weights: np.ndarray,
    subsets: Sequence[Subset],
    tangent: Tangent,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the information in one row, and the covariance of what it adds to the gradient."""
    information = np.zeros((len(tangent.moved),) * 2)
    second = np.zeros_like(information)
    first = np.zeros(len(tangent.moved))
    seen = weights > 0
    rows, weights = rows[seen], weights[seen]
    for begin in range(0, len(rows), 4096):
        part, weight = rows[begin : begin + 4096], weights[begin : begin + 4096]
        score = _reduce_rows(tangent, _scores(pmf, part))
        information += (score * weight[:, None]).T @ score
        pull = _reduce_rows(tangent, _pulls(pmf, part, subsets))
        second += (pull * weight[:, None]).T @ pull
        first += weight @ pull
    return information, second - np.outer(first, first)


def _reduce_rows(tangent: Tangent, rows: np.ndarray) -> np.ndarray:
    return rows[:, tangent.moved] - rows[:, tangent.pivots]


def _scores(pmf: JointPMF, rows: np.ndarray) -> np.ndarray:
    """Return the gradient of each row's log-probability in all parameters."""
    pulls = _pulls(pmf, rows, [tuple(range(len(pmf.domain)))])
    return pulls / pmf.probability(Codes(pmf.domain, rows))[:, None]


def _pulls(pmf: JointPMF, rows: np.ndarray, subsets: Sequence[Subset]) -> np.ndarray:
    """Return, for each row, the gradient of the sum of its cells in all marginal tables."""
    rank, offsets = pmf.rank, pmf.domain.offsets
    factors = [pmf.factors[n][rows[:, n]] for n in range(len(pmf.domain))]
    out = np.zeros((len(rows), rank + int(offsets[-1]) * rank))
    at = np.arange(len(rows))[:, None]
    for subset in subsets:
        out[:, :rank] += math.prod(factors[n] for n in subset)
        for n in subset:
            rest = pmf.weights * math.prod([np.ones(rank)] + [factors[m] for m in subset if m != n])
            columns = rank + (offsets[n] + rows[:, n])[:, None] * rank + np.arange(rank)
            out[at, columns] += rest
    return out


def _relative_errors(
    pmf: JointPMF, covariance: np.ndarray | None, tangent: Tangent, everything: np.ndarray
) -> tuple[float, float]:
    """Return the expected relative errors of the factors and of the joint for a covariance."""
    if covariance is None:
        return math.inf, math.inf
    rank, offsets = pmf.rank, pmf.domain.offsets
    expand = np.zeros((tangent.n_parameters, len(tangent.moved)))
    expand[tangent.moved, np.arange(len(tangent.moved))] = 1.0
    np.subtract.at(expand, (tangent.pivots, np.arange(len(tangent.moved))), 1.0)
    variance = np.einsum("ij,jk,ik->i", expand, covariance, expand, optimize=True)[rank:]
    factor = [
        math.sqrt(variance[begin * rank : end * rank].sum()) / np.linalg.norm(pmf.factors[n])
        for n, (begin, end) in enumerate(pairwise(offsets))
    ]
    tensor = float(np.vdot(tangent.reduce_matrix(everything), covariance))
    whole = pmf.weights @ math.prod(a.T @ a for a in pmf.factors) @ pmf.weights
    return float(np.mean(factor)), math.sqrt(max(tensor, 0.0) / whole)
