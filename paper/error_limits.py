"""How small the error of a fit can be: from rows, from tables, and what least squares will have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.errors import (
    JointPMFError,
    float_of,
    instance_of,
    shown,
    true_or_false,
    whole_number,
)
from jointpmf.judge.known import known_subsets
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.marginals.measurement import Measurement
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.solvers.curvature import Curvature
from jointpmf.solvers.jacobian import positive_rank, whole_tangent
from jointpmf.solvers.table_jacobian import SliceAtPoint, TableCurvature
from jointpmf.solvers.table_noise import Projection, TableNoise
from jointpmf.threads import one_blas_thread
from paper.row_information import RowInformation, information_of_rows, observed_parts

if TYPE_CHECKING:
    from jointpmf.domain import Domain

Subset = tuple[int, ...]

_MAX_FORMED = 20_000_000
"""Numbers in the Jacobian of the largest tables whose limit is computed."""

_MAX_BLOCKS, _SAME = 8, 1e-3
"""Blocks of combinations of cells that the limit of tables is computed from, at most; and the part
of itself by which it still changes when it has been found."""


@dataclass(frozen=True)
class ErrorLimits:
    """The smallest errors that are possible, and those that least squares will have.

    Errors of the factors and of the joint (`tensor`) are relative. `kl` is how many nats the true
    log-probability of a row is above the estimate's in the mean, KL(truth, fit).

    Attributes
    ----------
    factor_bound, tensor_bound, kl_bound : float
        The Cramér–Rao bounds: no unbiased estimate from all of the data has less.
    factor_limit, tensor_limit, kl_limit : float or None
        The same from the tables alone; None where there are too many cells to tell.
    factor_predicted, tensor_predicted, kl_predicted : float
        Those of least squares on the tables; NaN where there are too many cells to tell. They are
        infinite, like the limits, where the tables do not determine the model. Under white noise
        no `kl` is given.
    """

    factor_bound: float
    tensor_bound: float
    factor_predicted: float
    tensor_predicted: float
    factor_limit: float | None = None
    tensor_limit: float | None = None
    kl_bound: float | None = None
    kl_limit: float | None = None
    kl_predicted: float | None = None

    def of_tables_alone(self) -> ErrorLimits:
        """Return the same where there is nothing to know but the tables."""
        limits = [self.factor_limit, self.tensor_limit, self.kl_limit]
        factor, tensor, kl = (math.nan if limit is None else limit for limit in limits)
        return replace(self, factor_bound=factor, tensor_bound=tensor, kl_bound=kl)

    def __str__(self) -> str:
        """Return a table of all errors."""
        kinds = {
            "at best, from all data": "bound",
            "at best, from the tables": "limit",
            "least squares": "predicted",
        }
        lines = [f"{'error':26}{'factors':>10}{'joint':>10}{'KL, nats':>10}"]
        for what, kind in kinds.items():
            errors = [getattr(self, f"{name}_{kind}") for name in ("factor", "tensor", "kl")]
            cells = "".join(f"{'–' if e is None else f'{e:.3g}':>10}" for e in errors)
            lines.append(f"{what:26}{cells}")
        return "\n".join(lines)


def error_limits(
    pmf: JointPMF,
    known: MarginalSet | int,
    *,
    sigma: float | None = None,
    n_rows: float | None = None,
    missing: Any = 0.0,
    same_people: bool = True,
    n_samples: int = 100_000,
    random_state: object = 0,
) -> ErrorLimits:
    """Return how well a model can be learned under known noise, to first order in the noise.

    Parameters
    ----------
    pmf : JointPMF
        The true model.
    known : MarginalSet or int
        Which marginals are seen, of any kind; or the order of all of them.
    sigma : float, optional
        White noise of this standard deviation on every cell of the joint, marginals summed from it.
    n_rows : int, optional
        Instead: the number of rows over which the marginals are counted. Without either, each
        marginal is counted over its own `n_obs`.
    missing : float or sequence of float
        The part of the cells of the rows, or of each variable's, that is missing at random. A
        marginal is counted over the rows that observe all of it.
    same_people : bool
        Whether marginals are counted over the same rows. Otherwise each has people of its own, and
        the tables are all of the data.
    n_samples, random_state
        Rows over which expectations are taken where the joint has too many cells.

    Examples
    --------
    >>> import jointpmf as jp
    >>> from paper.error_limits import error_limits
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([5] * 4), rank=2, random_state=0)
    >>> limits = error_limits(truth, 3, n_rows=10_000)
    >>> limits.factor_bound <= limits.factor_limit <= limits.factor_predicted
    True
    """
    instance_of(pmf, JointPMF, "the model")
    same_people = true_or_false(same_people, "same_people")
    n_samples = whole_number(n_samples, "n_samples", 2)
    given = known if isinstance(known, MarginalSet) else (pmf.domain, known)
    domain, subsets = known_subsets(given, None)
    if domain != pmf.domain:
        raise JointPMFError("the marginals are not over the same domain as the model")
    is_counted = isinstance(known, MarginalSet) and all(m.n_rows is not None for m in known)
    if (sigma is None) == (n_rows is None) and (sigma is not None or not is_counted):
        raise JointPMFError("say either sigma, noise on every cell, or n_rows, rows counted")
    sigma = None if sigma is None else _positive(sigma, "sigma")
    n_rows = None if n_rows is None else _positive(n_rows, "n_rows")
    observed = observed_parts(missing, domain)
    if isinstance(known, MarginalSet) and not (known.is_plain and (sigma or n_rows)):
        if sigma is not None:
            known.check_plain("sigma")
        tables, is_plain = known.measurements, False
    else:
        tables, is_plain = _whole_tables(domain, subsets), True
    with one_blas_thread:
        limits = _Limits(pmf, tables)
        if sigma is not None:
            return limits.of_white_noise(sigma, subsets)
        whole = subsets if is_plain and same_people and (observed == 1).all() else None
        rows = information_of_rows(pmf, observed, whole, limits.tangent, n_samples, random_state)
        return limits.of_counts(rows, n_rows, observed, same_people)


def _positive(number: Any, what: str) -> float:
    """Return a number above zero whose square does not overflow."""
    value = float_of(number)
    if not 1e-100 <= value <= 1e100:
        raise JointPMFError(f"{what} must be a positive number, not {shown(number)}")
    return value


class _Limits:
    """A model, and tables that see it."""

    def __init__(self, pmf: JointPMF, tables: Sequence[Measurement]) -> None:
        self._pmf, self._domain, self._point = pmf, pmf.domain, Point.of_pmf(pmf)
        self.tangent = whole_tangent(pmf.domain, self._point)
        self._tables = TableCurvature(pmf.domain, tables)
        self._is_small = 0 < self._tables.n_cells * self.tangent.n_parameters <= _MAX_FORMED
        whole = Curvature(self._domain, [tuple(range(len(self._domain)))], np.ones(1))
        self._joint = self.tangent.reduce_matrix(whole.matrix(self._point))

    def of_white_noise(self, sigma: float, subsets: Sequence[Subset]) -> ErrorLimits:
        """Return the limits under white noise on the joint (eq. 19)."""
        domain, sizes = self._domain, np.asarray(self._domain.sizes)
        shared = self.tangent.reduce_matrix(_shared_noise(domain, subsets, self._point))
        even = Point(np.ones(1), 1.0 / np.repeat(sizes, sizes)[:, None])
        n_rows = 1 / (sigma**2 * math.prod(domain.sizes))
        return self._limits(
            _inverse(self._joint / sigma**2),
            self._by_squares(sigma**2 * shared, subsets),
            self._noise(even, np.ones(len(domain)), n_rows),
        )

    def of_counts(
        self,
        rows: RowInformation,
        n_rows: float | None,
        observed: np.ndarray,
        same_people: bool,
    ) -> ErrorLimits:
        """Return the limits of tables that were counted over rows."""
        noise = self._noise(self._point, observed if same_people else None, n_rows)
        total = n_rows or self._n_rows(observed)
        if rows.pull is not None:
            squares = self._by_squares(rows.pull / total, rows.subsets)
        elif noise is not None:
            squares = self._by_squares(self._jacobian.T @ noise.times(self._jacobian))
        else:
            squares = np.full_like(rows.complete, np.nan)
        found = self._limits(_inverse(rows.incomplete * total), squares, noise, rows.complete)
        return found if same_people else found.of_tables_alone()

    def _n_rows(self, observed: np.ndarray) -> float:
        """Return of how many rows the tables are at least a part."""
        found = []
        for each in self._tables.slices:
            base = SliceAtPoint(each, self._point, self._domain.offsets).base
            found.append(each.n_obs / (base * np.prod(observed[list(each.variables)])))
        return float(max(found))

    def _noise(
        self, point: Point, observed: np.ndarray | None, n_rows: float | None
    ) -> TableNoise | None:
        if not self._is_small:
            return None
        return TableNoise(self._domain, self._tables.slices, point, observed, n_rows)

    @cached_property
    def _jacobian(self) -> np.ndarray:
        return self._tables.jacobian(self._point, self.tangent)

    def _by_squares(
        self, noise: np.ndarray, subsets: Sequence[Subset] | None = None
    ) -> np.ndarray | None:
        """Return the covariance of least squares, for that of its gradient."""
        if subsets is None:
            curvature = self._jacobian.T @ self._jacobian
        else:
            of_tables = Curvature(self._domain, subsets, np.ones(len(subsets)))
            curvature = self.tangent.reduce_matrix(of_tables.matrix(self._point))
        inverse = _inverse(curvature)
        return None if inverse is None else inverse @ noise @ inverse

    def _limit(self, noise: TableNoise, metric: np.ndarray) -> np.ndarray | None:
        """Return the least covariance that is possible from the tables (eq. 49)."""
        projection, before = Projection(noise, self._jacobian), math.inf
        for _ in range(_MAX_BLOCKS):
            if not projection.add_block():
                break
            inverse = _inverse(projection.information)
            error = math.inf if inverse is None else float(np.vdot(metric, inverse))
            if error > before * (1 - _SAME):
                break
            before = error
        return _inverse(projection.information)

    def _limits(
        self,
        bound: np.ndarray | None,
        squares: np.ndarray | None,
        noise: TableNoise | None,
        complete: np.ndarray | None = None,
    ) -> ErrorLimits:
        metric = self._joint if complete is None else complete
        limit = None if noise is None else self._limit(noise, metric)
        of_limit = (None, None) if noise is None else self._relative(limit)
        kl = [None if complete is None else _kl(complete, each) for each in (bound, limit, squares)]
        if noise is None:
            kl[1] = None
        return ErrorLimits(*self._relative(bound), *self._relative(squares), *of_limit, *kl)

    def _relative(self, covariance: np.ndarray | None) -> tuple[float, float]:
        """Return the expected relative errors of the factors and of the joint for a covariance."""
        if covariance is None:
            return math.inf, math.inf
        pmf, tangent = self._pmf, self.tangent
        rank, offsets = pmf.rank, pmf.domain.offsets
        expand = np.zeros((tangent.n_parameters, len(tangent.moved)))
        expand[tangent.moved, np.arange(len(tangent.moved))] = 1.0
        np.subtract.at(expand, (tangent.pivots, np.arange(len(tangent.moved))), 1.0)
        variance = np.einsum("ij,jk,ik->i", expand, covariance, expand, optimize=True)[rank:]
        factor = [
            math.sqrt(variance[begin * rank : end * rank].sum()) / np.linalg.norm(pmf.factors[n])
            for n, (begin, end) in enumerate(pairwise(offsets))
        ]
        tensor = float(np.vdot(self._joint, covariance))
        whole = pmf.weights @ math.prod(a.T @ a for a in pmf.factors) @ pmf.weights
        return float(np.mean(factor)), math.sqrt(max(tensor, 0.0) / whole)


def _kl(complete: np.ndarray, covariance: np.ndarray | None) -> float:
    """Return the expected divergence from the truth, to first order (eq. 50)."""
    return math.inf if covariance is None else float(np.vdot(complete, covariance)) / 2


def _whole_tables(domain: Domain, subsets: Sequence[Subset]) -> list[Measurement]:
    """Return tables of some variables, unless they are too large; what is in them is not asked."""
    shapes = [[domain.sizes[n] for n in subset] for subset in subsets]
    if sum(map(math.prod, shapes)) > _MAX_FORMED:
        return []
    return [
        Measurement(subset, tuple(np.eye(n, dtype=bool) for n in shape), np.zeros(shape))
        for subset, shape in zip(subsets, shapes, strict=True)
    ]


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
