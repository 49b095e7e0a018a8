"""Where a solver is: all that it knows of a model, as two arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointpmf.domain import Domain
from jointpmf.pmf import JointPMF


@dataclass
class Point:
    """Where a solver is: weights (rank,) and the factors of all variables, one row per level."""

    weights: np.ndarray
    factors: np.ndarray

    @classmethod
    def of_pmf(cls, pmf: JointPMF) -> Point:
        """Return the point at which a joint PMF lies."""
        return cls(pmf.weights.copy(), np.concatenate(pmf.factors))

    def to_pmf(self, domain: Domain) -> JointPMF:
        """Return the joint PMF of this point."""
        return JointPMF(domain, self.weights, np.split(self.factors, domain.offsets[1:-1]))

    def copy(self) -> Point:
        """Return a point that can be changed on its own."""
        return Point(self.weights.copy(), self.factors.copy())
