"""What a joint PMF says of rows: their probabilities, their components, what their holes may be."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.components import component_variable, means_component
from jointpmf.errors import JointPMFError
from jointpmf.evidence import logs_of_rows, posterior_of_rows, prediction_of_rows

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes
    from jointpmf.domain import Domain

logger = logging.getLogger("jointpmf")


class RowQueries(ABC):
    """The part of `JointPMF` that answers for rows; it needs no more than these four."""

    domain: Domain
    weights: np.ndarray
    factors: Sequence[np.ndarray]
    component_names: tuple[str, ...] | None

    def log_probability(self, rows: Any) -> np.ndarray:
        """Return the log-probability of each row's observed cells; missing cells are summed out.

        Examples
        --------
        >>> from jointpmf import Domain, random_pmf
        >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
        >>> pmf.log_probability(np.array([[-1, -1]])).round(12).tolist()
        [0.0]
        """
        logs = logs_of_rows(self._codes(rows), self.weights, self._stacked())
        impossible = np.flatnonzero(logs == -np.inf)
        if len(impossible):
            logger.warning(
                "%d rows have probability zero, row %d first", len(impossible), impossible[0]
            )
        return logs

    def probability(self, rows: Any) -> np.ndarray:
        """Return the probability of each row's observed cells; missing cells are summed out.

        Examples
        --------
        >>> from jointpmf import Domain, JointPMF
        >>> coins = JointPMF(Domain.of_sizes([2, 2]), [1.0], [[[0.5], [0.5]], [[0.5], [0.5]]])
        >>> coins.probability([[0, 1], [0, None]]).round(12).tolist()
        [0.25, 0.5]
        """
        return np.exp(self.log_probability(rows))

    def responsibilities(self, rows: Any) -> np.ndarray:
        """Return, of shape (rows, rank), P(component | the row's observed cells).

        A row of probability zero gets the weights, and a warning is logged.

        Examples
        --------
        >>> from jointpmf import Domain, JointPMF
        >>> sure = JointPMF(Domain.of_sizes([2, 2]), [0.3, 0.7], [np.eye(2), np.eye(2)])
        >>> sure.responsibilities([[1, None], [None, None]]).tolist()
        [[0.0, 1.0], [0.3, 0.7]]
        """
        posterior, logs = self._posterior(self._codes(rows))
        _warn_of_impossible(logs)
        return posterior

    def predict_proba(self, rows: Any, target: str) -> np.ndarray:
        """Return, of shape (rows, size), P(target | the row's other observed cells).

        The target's own cell is never used. A row whose other cells have probability zero gets
        the target's marginal, and a warning is logged. The target may be "component", as in
        `JointPMF.marginal`; the answer is that of `responsibilities`.

        Examples
        --------
        >>> from jointpmf import Domain, random_pmf
        >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
        >>> pmf.predict_proba(np.array([[1, -1]]), "x1").sum(axis=1).round(12).tolist()
        [1.0]
        """
        if means_component(target, self.domain):
            return self.responsibilities(rows)
        n = self.domain.index(target)
        predicted, logs = prediction_of_rows(self._codes(rows), self.weights, self._stacked(), n)
        _warn_of_impossible(logs)
        return predicted

    def expectation(self, rows: Any, target: str) -> np.ndarray:
        """Return the expected value of the target given each row's other observed cells.

        Examples
        --------
        >>> from jointpmf import Domain, JointPMF
        >>> sure = JointPMF(Domain.of_sizes([2, 2]), [0.3, 0.7], [np.eye(2), np.eye(2)])
        >>> sure.expectation([[1, None], [None, None]], "x1").round(12).tolist()
        [1.0, 0.7]
        """
        values = self.domain[target].values
        if values is None:
            raise JointPMFError(f"the levels of {target!r} have no numeric values to average")
        return (self.predict_proba(rows, target) * np.array(values)).sum(axis=1)

    def mode(self, rows: Any, target: str) -> np.ndarray:
        """Return the most likely level of the target given each row's other observed cells.

        Examples
        --------
        >>> from jointpmf import Domain, JointPMF
        >>> sure = JointPMF(Domain.of_sizes([2, 2]), [0.3, 0.7], [np.eye(2), np.eye(2)])
        >>> sure.mode([[0, None], [None, None]], "x1").tolist()
        [0, 1]
        """
        if means_component(target, self.domain):
            variable = component_variable(len(self.weights), self.component_names)
        else:
            variable = self.domain[target]
        levels = np.empty(variable.size, object)
        levels[:] = variable.levels
        chosen = levels[self.predict_proba(rows, target).argmax(axis=1)]
        kinds = {type(level) for level in levels}
        return chosen.astype(kinds.pop()) if kinds in ({int}, {float}, {bool}, {str}) else chosen

    @abstractmethod
    def _codes(self, rows: Any) -> Codes:
        """Return rows of any kind as codes of the domain."""

    def _posterior(self, codes: Codes) -> tuple[np.ndarray, np.ndarray]:
        return posterior_of_rows(codes, self.weights, self._stacked())

    def _stacked(self) -> np.ndarray:
        return np.concatenate([np.zeros((0, len(self.weights))), *self.factors])


def _warn_of_impossible(logs: np.ndarray) -> None:
    impossible = np.flatnonzero(logs == -np.inf)
    if len(impossible):
        logger.warning(
            "%d rows have probability zero, row %d first; they are answered without evidence",
            len(impossible),
            impossible[0],
        )
