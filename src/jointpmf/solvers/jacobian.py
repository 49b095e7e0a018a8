"""Do marginals see all parameters of a model: the rank of their Jacobian, without the Jacobian.

JᵀJ over the feasible directions has the same rank (docs/math.md, eq. 14).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.linalg.lapack import dpstrf

from jointpmf.point import Point
from jointpmf.solvers.curvature import Tangent
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.solvers.curvature import Curvature

Subset = tuple[int, ...]

_MAX_PARAMETERS = 4000
"""Models of more parameters are not decided by the Jacobian: it would take minutes."""

_MAX_FORMED = 50_000_000
"""Numbers of the largest part of a Jacobian that is formed to decide a model."""

_NULL = 1e-11
"""Pivots below this, JᵀJ scaled to a unit diagonal, are zero."""

_N_POINTS = 2
"""Random models at which the generic rank of the Jacobian is sought."""


class Curved(Protocol):
    """Tables of any kind, by the JᵀJ of their cells."""

    domain: Domain

    n_formed: int
    """Rows of J that are formed at once."""

    def matrix(self, point: Point) -> np.ndarray:
        """Return JᵀJ at a point."""


def n_free_parameters(domain: Domain, rank: int) -> int:
    """Return the number of free parameters of a model: weights and columns sum to one.

    Examples
    --------
    >>> from jointpmf import Domain
    >>> n_free_parameters(Domain.of_sizes([2, 2, 3]), rank=2)
    9
    """
    return rank - 1 + rank * sum(size - 1 for size in domain.sizes)


def is_determined(curvature: Curvature, rank: int, generator: np.random.Generator) -> bool | None:
    """Tell whether the marginals see all parameters of a model; None if it is too large to tell."""
    domain = curvature.domain
    found = jacobian_rank(curvature, rank, None, generator)
    n_parameters = n_free_parameters(domain, rank)
    return are_all_seen(found, n_parameters, count_equations(domain, curvature.subsets))


def is_surely_open(domain: Domain, subsets: Collection[Subset], rank: int) -> bool:
    """Tell whether whole tables cannot determine a model, without its Jacobian.

    Pairs never do (docs/math.md, What can be known), nor do fewer numbers than it has parameters.
    """
    is_pairs = rank > 1 and max(map(len, subsets)) < 3
    return is_pairs or n_free_parameters(domain, rank) > count_equations(domain, subsets)


def jacobian_rank(
    curvature: Curved, rank: int, point: Point | None, generator: np.random.Generator
) -> int | None:
    """Return the rank of the Jacobian at a model, or the highest at random models of a rank."""
    n_parameters = rank * (1 + sum(curvature.domain.sizes))
    if n_parameters > _MAX_PARAMETERS or n_parameters * curvature.n_formed > _MAX_FORMED:
        return None
    if point is not None:
        return _rank_at(curvature, point)
    models = (spread_model(curvature.domain, rank, generator) for _ in range(_N_POINTS))
    return max(_rank_at(curvature, model) for model in models)


def are_all_seen(found: int | None, n_parameters: int, n_equations: int) -> bool | None:
    """Tell whether a rank is that of all parameters; None if it is not known."""
    if n_parameters > n_equations:
        return False
    return None if found is None else found == n_parameters


def count_equations(domain: Domain, subsets: Iterable[Subset]) -> int:
    """Return how many independent numbers the tables hold: interactions of all their variables."""
    below = {part for s in subsets for k in range(1, len(s) + 1) for part in combinations(s, k)}
    return sum(math.prod(domain.sizes[n] - 1 for n in part) for part in below)


def spread_model(domain: Domain, rank: int, generator: np.random.Generator) -> Point:
    """Return a random model with clearly different columns, where rank shows best."""
    columns = [generator.dirichlet(np.full(size, 0.7), rank).T for size in domain.sizes]
    return Point(np.full(rank, 1 / rank), np.concatenate(columns))


def _rank_at(curvature: Curved, point: Point) -> int:
    return positive_rank(_reduced(curvature, point))


def positive_rank(reduced: np.ndarray) -> int:
    """Return the rank of a positive semidefinite matrix, by its pivoted Cholesky factor."""
    scale = np.sqrt(np.maximum(np.diag(reduced), 0.0))  # rounding may leave less than nothing
    seen = scale > 0
    if not seen.any():
        return 0
    alike = reduced[np.ix_(seen, seen)] / np.outer(scale[seen], scale[seen])
    with one_blas_thread:
        return int(dpstrf(alike, tol=_NULL)[2])


def condition_number(curvature: Curved, point: Point) -> float:
    """Return the ratio of J's extreme singular values over the feasible directions."""
    with one_blas_thread:
        values = np.linalg.eigvalsh(_reduced(curvature, point))
    visible = len(values) and values[0] > _NULL * values[-1]
    return math.sqrt(values[-1] / values[0]) if visible else math.inf


def _reduced(curvature: Curved, point: Point) -> np.ndarray:
    """Return JᵀJ over all feasible directions at a point."""
    return whole_tangent(curvature.domain, point).reduce_matrix(curvature.matrix(point))


def whole_tangent(domain: Domain, point: Point) -> Tangent:
    """Return all feasible directions at a point."""
    nothing_fixed = np.zeros(len(point.weights) + point.factors.size, bool)
    return Tangent.at(point, domain.offsets, nothing_fixed)
