"""Random points, and points drawn away from the border, where steps get stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jointpmf.point import Point

if TYPE_CHECKING:
    from jointpmf.domain import Domain


def random_point(domain: Domain, rank: int, generator: np.random.Generator) -> Point:
    """Return equal weights and columns drawn uniformly from the simplex."""
    columns = [generator.dirichlet(np.ones(size), rank).T for size in domain.sizes]
    return Point(np.full(rank, 1 / rank), np.concatenate(columns))


def mixed(point: Point, marginal: np.ndarray, part: float) -> Point:
    """Return a point with a part of the marginals in every column."""
    return Point(point.weights, (1 - part) * point.factors + part * marginal[:, None])


def mixed_with_uniform(point: Point, domain: Domain, part: float) -> Point:
    """Return a point with a part of the uniform distribution in the weights and every column."""
    sizes = np.repeat(domain.sizes, domain.sizes)[:, None]
    rank = len(point.weights)
    return Point(
        (1 - part) * point.weights + part / rank, (1 - part) * point.factors + part / sizes
    )
