"""Where a solver is: all that it knows of a model, as two arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.pmf import JointPMF


@dataclass
class Point:
    """Weights (rank,) and the factors of all variables under each other, one row per level."""

    weights: np.ndarray
    factors: np.ndarray
    made_of: dict[str, np.ndarray] | None = None
    """What the factors were computed from, by name, where they are a function of something."""

    def __post_init__(self) -> None:
        """Have rows of levels one after the other, so that each loop is compiled once."""
        self.factors = np.ascontiguousarray(self.factors)

    @classmethod
    def of_pmf(cls, pmf: JointPMF) -> Point:
        """Return the point at which a joint PMF lies."""
        return cls(pmf.weights.copy(), np.concatenate(pmf.factors))

    @classmethod
    def of_vector(cls, vector: np.ndarray, rank: int) -> Point:
        """Return the point whose parameters are one vector: the weights, then the factors."""
        return cls(vector[:rank], vector[rank:].reshape(-1, rank))

    @property
    def vector(self) -> np.ndarray:
        """All parameters as one vector: the weights, then the factors row by row."""
        return np.concatenate([self.weights, self.factors.ravel()])

    def copy(self) -> Point:
        """Return a point that can be changed on its own."""
        return Point(self.weights.copy(), self.factors.copy())


def on_simplices(vector: np.ndarray, domain: Domain, rank: int) -> Point:
    """Return the point of parameters whose sums are made one."""
    point = Point.of_vector(vector, rank)
    return Point(point.weights / point.weights.sum(), columns_of_one(point.factors, domain))


def columns_of_one(factors: np.ndarray, domain: Domain) -> np.ndarray:
    """Return the factors of all variables with columns that sum to one."""
    totals = np.add.reduceat(factors, domain.offsets[:-1], axis=0)
    return factors / np.repeat(totals, domain.sizes, axis=0)
