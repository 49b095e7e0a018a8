"""The posteriors of rows: their columns in a frame, and how large components are by them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import entr

from jointpmf.components import component_titles, component_variable
from jointpmf.data.decode import table_of
from jointpmf.domain import MISSING
from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jointpmf.data.codes import Codes
    from jointpmf.pmf import JointPMF

_ASSIGNED = "most likely"
"""The column of a row's most likely component, beside those of the posteriors."""


def posterior_names(pmf: JointPMF, *beside: str) -> list[str]:
    """Return the columns of posteriors: one for each component, and that of the most likely.

    `beside` are columns that stand beside them, whose names no component may have.

    Examples
    --------
    >>> import jointpmf as jp
    >>> posterior_names(jp.random_pmf(jp.Domain.of_sizes([2, 2]), rank=2))
    ['component 0', 'component 1', 'most likely']
    """
    titles = component_titles(pmf.rank, pmf.component_names)
    for name in (_ASSIGNED, *beside):
        if name in titles:
            raise JointPMFError(
                f"a component is called {name!r}, and so is a column beside those of components; "
                "give it another name with reordered(names=…)"
            )
    return [*titles, _ASSIGNED]


def posterior_frame(
    pmf: JointPMF,
    posterior: np.ndarray,
    components: np.ndarray,
    backend: str,
    beside: Mapping[str, np.ndarray] | None = None,
) -> Any:
    """Return the posteriors of rows and their most likely components, beside other columns.

    The most likely component of a row is null where it is MISSING.
    """
    first = beside or {}
    *titles, assigned = posterior_names(pmf, *first)
    columns = dict(zip(titles, posterior.T, strict=True))
    return table_of({**first, **columns, assigned: (_levels(pmf), components)}, backend)


def most_likely(codes: Codes, posterior: np.ndarray) -> np.ndarray:
    """Return the most likely component of each row, MISSING for one without any observed cell."""
    is_seen = (codes.array != MISSING).any(axis=1)
    return np.where(is_seen, posterior.argmax(axis=1), MISSING)


def _levels(pmf: JointPMF) -> Sequence[Any]:
    return component_variable(pmf.rank, pmf.component_names).levels


class ComponentTally:
    """How large and how clear components are by the posteriors of rows, added up over parts.

    Shares are NaN as long as no row counts.

    Examples
    --------
    >>> import jointpmf as jp
    >>> tally = ComponentTally(jp.random_pmf(jp.Domain.of_sizes([2]), rank=2))
    >>> tally.add(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([3.0, 1.0]))
    >>> tally.by_posterior.tolist(), tally.by_component.tolist(), tally.relative_entropy
    ([0.875, 0.125], [1.0, 0.0], 0.75)
    """

    def __init__(self, pmf: JointPMF) -> None:
        self.pmf, self.total = pmf, 0.0
        self._posterior, self._assigned = np.zeros(pmf.rank), np.zeros(pmf.rank)
        self._entropy = 0.0

    def add(self, posterior: np.ndarray, weights: np.ndarray) -> None:
        """Count more rows, each by its weight."""
        self.total += float(weights.sum())
        self._posterior += weights @ posterior
        likely = posterior.argmax(axis=1)
        self._assigned += np.bincount(likely, weights, minlength=self.pmf.rank)
        self._entropy += float(weights @ entr(posterior).sum(axis=1))

    @property
    def by_posterior(self) -> np.ndarray:
        """The share of each component: the mean of the rows' posteriors."""
        return self._posterior / (self.total or math.nan)

    @property
    def by_component(self) -> np.ndarray:
        """The share of the rows whose most likely component each is."""
        return self._assigned / (self.total or math.nan)

    @property
    def relative_entropy(self) -> float:
        """How clear they are: 1 − (mean entropy of the rows' components) / log rank (eq. 24)."""
        rank = self.pmf.rank
        return 1.0 if rank == 1 else 1.0 - self._entropy / (self.total * math.log(rank))

    def sizes(self) -> list[dict[str, Any]]:
        """Return how large each component is: in the model, and in the rows."""
        shares = {
            "weight": self.pmf.weights,
            "by_posterior": self.by_posterior,
            "by_component": self.by_component,
        }
        return [
            {"component": level} | {name: float(of[f]) for name, of in shares.items()}
            for f, level in enumerate(_levels(self.pmf))
        ]
