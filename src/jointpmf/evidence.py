"""What is known about some variables, or in rows, and how it changes the weights and factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.compiled.cells import listed_cells
from jointpmf.compiled.panels import lanes_of, panel_width
from jointpmf.compiled.posteriors import (
    Rooms,
    as_panels,
    e_step,
    panels_of,
    posterior_step,
    predict_step,
    room_for_answers,
    rows_at_once,
    stack_of,
)
from jointpmf.components import COMPONENT, of_own_variable
from jointpmf.errors import JointPMFError
from jointpmf.probabilities import normalised
from jointpmf.threads import row_blocks, run_all

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes
    from jointpmf.domain import Domain, Variable


def likelihood_of(variable: Variable, given: Any) -> np.ndarray:
    """Return evidence about a variable, of any kind, as a likelihood of each level.

    Examples
    --------
    >>> from jointpmf import Variable
    >>> vote = Variable("vote", ("no", "yes", "perhaps"))
    >>> likelihood_of(vote, "yes").tolist(), likelihood_of(vote, {"no", "yes"}).tolist()
    ([0.0, 1.0, 0.0], [1.0, 1.0, 0.0])
    """
    if isinstance(given, np.ndarray):
        return _checked_likelihood(variable, given)
    if hasattr(given, "to_numpy") and hasattr(given, "__len__"):  # no time of pandas
        raise JointPMFError(f"give the likelihood of {variable.name!r} as a numpy array")
    likelihood = np.zeros(variable.size)
    several = isinstance(given, (set, frozenset, list, tuple)) and given not in variable
    for level in given if several else [given]:
        likelihood[variable.code(level)] = 1.0
    return likelihood


def _checked_likelihood(variable: Variable, given: np.ndarray) -> np.ndarray:
    if given.shape != (variable.size,) or given.dtype.kind not in "fiub":
        raise JointPMFError(
            f"the likelihood of {variable.name!r} must be {variable.size} numbers, "
            f"not of shape {given.shape}"
        )
    likelihood = given.astype(float)
    if not np.isfinite(likelihood).all() or (likelihood < 0).any():
        raise JointPMFError(f"the likelihood of {variable.name!r} must be finite and at least 0")
    return likelihood / (likelihood.max() or 1.0)  # the scale is arbitrary; this one keeps digits


def posterior(
    domain: Domain, weights: np.ndarray, factors: Sequence[np.ndarray], evidence: Any
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the weights and factors given the evidence, still over all variables (eq. 3).

    Examples
    --------
    >>> from jointpmf import Domain
    >>> same = [np.eye(2), np.array([[0.5, 1.0], [0.5, 0.0]])]
    >>> posterior(Domain.of_sizes([2, 2]), np.array([0.5, 0.5]), same, {"x1": 1})[0].tolist()
    [1.0, 0.0]
    """
    if not isinstance(evidence, Mapping):
        raise JointPMFError('the evidence must be a mapping, such as {"name": level}')
    log_weights, factors = _logs(weights), list(factors)
    for name, given in evidence.items():
        n = domain.index(name)
        joint = _likelihood(domain.variables[n], given, factors[n])[:, None] * factors[n]
        total = joint.sum(axis=0)
        log_weights = log_weights + _logs(total)
        # a component that the evidence excludes has weight zero; its column stays as it was
        factors[n] = np.where(total > 0, joint / np.where(total > 0, total, 1), factors[n])
    top = log_weights.max()
    if top == -np.inf:
        raise JointPMFError(f"the evidence {dict(evidence)!r} has probability zero")
    return normalised(np.exp(log_weights - top)), factors


def _likelihood(variable: Variable, given: Any, factor: np.ndarray) -> np.ndarray:
    """Return `likelihood_of`; its error says so where a variable takes the component's name."""
    try:
        return likelihood_of(variable, given)
    except JointPMFError as error:
        is_component = np.array_equal(factor, np.eye(factor.shape[1]))
        if variable.name != COMPONENT or is_component:
            raise
        raise of_own_variable(error) from None


def _logs(array: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(array)


def posterior_of_rows(
    codes: Codes, weights: np.ndarray, factors: np.ndarray, target: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return P(component | row without the target) and the log-probability of that (eq. 4).

    `factors` has a row for each level of each variable. The log of a row that cannot happen is −∞,
    and its posterior is the weights.
    """
    posteriors = _Posteriors(codes, weights, factors, target)
    posterior, logs = np.empty((codes.n_rows, len(weights))), np.empty(codes.n_rows)

    def block(begin: int, end: int) -> None:
        posteriors.set_rows(begin, end, posterior[begin:end], logs[begin:end])

    run_all([partial(block, *ends) for ends in posteriors.blocks()])
    return posterior, logs


def logs_of_rows(codes: Codes, weights: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the log-probability of each row's observed cells, −∞ if it cannot happen."""
    posteriors, logs = _Posteriors(codes, weights, factors, None), np.empty(codes.n_rows)

    def block(begin: int, end: int) -> None:
        posteriors.set_logs(begin, end, logs[begin:end])

    run_all([partial(block, *ends) for ends in posteriors.blocks()])
    return logs


def prediction_of_rows(
    codes: Codes, weights: np.ndarray, factors: np.ndarray, target: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return P(target | row without the target) and the log-probability of that row.

    A row that cannot happen gets the target's marginal.
    """
    posteriors = _Posteriors(codes, weights, factors, target)
    predicted = np.empty((codes.n_rows, codes.domain.sizes[target]))
    logs = np.empty(codes.n_rows)

    def block(begin: int, end: int) -> None:
        posteriors.set_predictions(begin, end, predicted[begin:end], logs[begin:end])

    run_all([partial(block, *ends) for ends in posteriors.blocks()])
    return predicted, logs


class _Posteriors:
    """The posteriors of rows, some at a time; a target's own cell is never used."""

    def __init__(
        self, codes: Codes, weights: np.ndarray, factors: np.ndarray, target: int | None
    ) -> None:
        stack, offsets = stack_of(weights, factors), codes.domain.offsets
        self._codes, self._weights = codes, weights
        self._lanes = lanes_of(panel_width(len(weights), codes.array.size))
        if target is not None:
            own = slice(*offsets[target : target + 2])
            self._marginal = factors[own] @ weights
            self._answers = as_panels(stack[own], len(self._lanes))
            stack[own, : len(weights)] = 1.0  # its cells say nothing
        self._panels, self._rooms = panels_of(stack, len(self._lanes)), Rooms()

    def blocks(self) -> list[tuple[int, int]]:
        """Return the ends of rows that are answered at a time: fewer where each takes longer."""
        return row_blocks(self._codes.n_rows, rows_at_once(len(self._weights)))

    def set_logs(self, begin: int, end: int, logs: np.ndarray) -> None:
        """Set the log-probabilities of rows begin:end."""
        room, no_counts = self._rooms.of(self._panels.columns), np.empty((0, 0, 0))
        for own, cells, ptr in self._listed(begin, end):
            e_step(cells, ptr, np.empty(0), *self._panels, room, no_counts, logs[own], self._lanes)

    def set_rows(self, begin: int, end: int, posterior: np.ndarray, logs: np.ndarray) -> None:
        """Set the posteriors and the log-probabilities of rows begin:end."""
        room = self._rooms.of(self._panels.columns)
        for own, cells, ptr in self._listed(begin, end):
            posterior_step(cells, ptr, *self._panels, room, posterior[own], logs[own], self._lanes)
        posterior[logs == -np.inf] = self._weights

    def set_predictions(
        self, begin: int, end: int, predicted: np.ndarray, logs: np.ndarray
    ) -> None:
        """Set what rows begin:end say of the target, and their log-probabilities."""
        room = self._rooms.of(self._panels.columns)
        said = room_for_answers(room, self._answers)
        for own, cells, ptr in self._listed(begin, end):
            predict_step(
                cells, ptr, *self._panels, room, self._answers, said,
                predicted[own], logs[own], self._lanes,
            )  # fmt: skip
        predicted[logs == -np.inf] = self._marginal

    def _listed(self, begin: int, end: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield rows begin:end in parts, counted from `begin` on."""
        columns, offsets = self._codes.columns, self._codes.domain.offsets
        for rows, cells, ptr in listed_cells(columns, offsets, begin, end):
            yield slice(rows.start - begin, rows.stop - begin), cells, ptr
