"""Rows and cells that a fit does not see, and that say when it should stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.domain import MISSING
from jointpmf.evidence import posterior_of_rows
from jointpmf.rows.expectation import Expectation
from jointpmf.rows.table import Rows
from jointpmf.solvers.trait_sums import RowSums
from jointpmf.threads import row_blocks, run_all
from jointpmf.traits import FreeColumns, Scores

if TYPE_CHECKING:
    from jointpmf.point import Point

_GEMM_RANK = 256
"""Components from which on rows are scored by products of matrices."""

_IMPOSSIBLE_LOG = -1e6
"""What a row of probability zero counts as, so that iterates with some can be compared."""


class HeldOut:
    """Whole rows, or single cells given the rest of their rows, as a validation part.

    Parameters
    ----------
    rows : Rows
        The held-out rows; for cells, each cell's row with that cell as the only held-out one.
    given : Rows, optional
        For cells: the same rows without the held-out cell.
    patience, min_gain : int, float
        A fit ends when this many iterations have gained no more than this, in nats per row or cell.
    """

    def __init__(
        self, rows: Rows, given: Rows | None = None, patience: int = 10, min_gain: float = 0.0
    ) -> None:
        self.patience, self.min_gain = patience, min_gain
        self._total = rows.total
        self._rows, self._impossible = rows, np.full(len(rows), _IMPOSSIBLE_LOG)
        if given is not None:
            # what is given is taken off again: one pass over rows of which some count negatively
            self._rows = rows.followed_by(replace(given, weights=-given.weights))
            self._impossible = np.append(self._impossible, np.zeros(len(given)))
        self._expectations: dict[int, Expectation] = {}
        """The E-steps of ranks that were asked for: fits of a few ranks are judged many times."""

    @cached_property
    def _sums(self) -> RowSums:
        return RowSums(self._rows, Scores.unordered(self._rows.domain))

    def cost(self, point: Point) -> float:
        """Return minus the mean log-probability of what was held out."""
        if len(point.weights) >= _GEMM_RANK and point.factors.min() > 0:
            # products of matrices, in single precision: the mean of many rows has enough digits
            columns = FreeColumns(Scores.unordered(self._rows.domain), point.factors)
            return -self._sums.log_likelihood(columns, point.weights) / self._total
        expectation = self._expectations.get(rank := len(point.weights))
        if expectation is None:
            expectation = self._expectations[rank] = self._rows.expectation(rank)
        logs = expectation.log_likelihoods(expectation.stack(point))
        counted = self._rows.weights * np.where(np.isinf(logs), self._impossible, logs)
        return -float(counted.sum()) / self._total


class HeldOutCells:
    """Hidden cells, each predicted from what is visible of its row, as a validation part.

    A cell is judged by the log-probability of its level, or by the squared difference between its
    value and the expected one. Predictions of several models can be combined, see `Answers`.

    Parameters
    ----------
    codes : Codes
        The table, with the cells that are hidden from the fit.
    hidden : array of bool
        Which cells those are; the missing ones among them are left out.
    weights : array, optional
        What each row counts for.
    scoring : {"likelihood", "error"}
        How a prediction is judged; by error only variables with values are.
    patience : int
        Iterations without improvement after which a fit ends.
    """

    min_gain = 0.0

    def __init__(
        self,
        codes: Codes,
        hidden: np.ndarray,
        weights: np.ndarray | None = None,
        scoring: str = "likelihood",
        patience: int = 10,
    ) -> None:
        self.patience, self.scoring = patience, scoring
        domain = codes.domain
        scored = hidden & (codes.array != MISSING)
        if weights is not None:
            scored &= weights[:, None] > 0
        if scoring == "error":
            scored &= np.array([variable.values is not None for variable in domain])
        row, variable = np.nonzero(scored)
        used, position = np.unique(row, return_inverse=True)
        visible = np.where(hidden[used], MISSING, codes.array[used])
        self._visible = Codes(domain, visible)
        self._row, self._variable = position, variable
        self._level = codes.array[row, variable]
        self._weights = np.ones(len(row)) if weights is None else weights[row]

    def __len__(self) -> int:
        """Return how many cells are predicted."""
        return len(self._row)

    @property
    def total(self) -> float:
        """What the predicted cells count for."""
        return float(self._weights.sum())

    @cached_property
    def _values(self) -> np.ndarray:
        """The value of every level, zero where it has none."""
        return np.concatenate([v.values or np.zeros(v.size) for v in self._visible.domain])

    @cached_property
    def _truth(self) -> np.ndarray:
        """The value of every hidden cell."""
        return self._values[self._visible.domain.offsets[self._variable] + self._level]

    def cost(self, point: Point) -> float:
        """Return minus the mean log-probability, or the root of the mean squared error."""
        return self.cost_of(self.answers(point))

    def cost_of(self, answers: Answers, shares: np.ndarray | None = None) -> float:
        """Return what the answers of a model cost, or of several that are averaged."""
        combined = answers.combined(shares)
        if self.scoring == "error":
            return float(np.sqrt(self._mean((combined - self._truth) ** 2)))
        with np.errstate(divide="ignore"):
            return -self._mean(np.maximum(np.log(combined), _IMPOSSIBLE_LOG))

    def _mean(self, losses: np.ndarray) -> float:
        return float((self._weights * losses).sum() / self._weights.sum())

    def answers(self, point: Point, at_once: int = 2**21) -> Answers:
        """Return what a model says about every hidden cell, and how likely it finds the rest.

        At most `at_once` hidden cells times components are held at a time.
        """
        offsets = self._visible.domain.offsets
        if self.scoring == "error":
            answers = np.add.reduceat(self._values[:, None] * point.factors, offsets[:-1])
            which = self._variable
        else:
            answers, which = point.factors, offsets[self._variable] + self._level
        said, log_given = np.empty(len(self)), np.empty(len(self))

        def block(begin: int, end: int) -> None:
            rows = Codes(self._visible.domain, self._visible.array[begin:end])
            posterior, logs = posterior_of_rows(rows, point.weights, point.factors)
            cells = slice(*np.searchsorted(self._row, (begin, end)))
            own = self._row[cells] - begin
            said[cells] = np.einsum("cf,cf->c", posterior[own], answers[which[cells]])
            log_given[cells] = logs[own]

        per_row = -(-len(self) // max(self._visible.n_rows, 1))
        size = max(at_once // (len(point.weights) * max(per_row, 1)), 1)
        run_all([partial(block, *ends) for ends in row_blocks(self._visible.n_rows, size)])
        return Answers(log_given[None], said[None])


class Answers(NamedTuple):
    """What models say about hidden cells, one row per model."""

    log_given: np.ndarray
    """Log-probability of what is visible of the cell's row."""
    said: np.ndarray
    """The probability of the cell's level, or its expected value."""

    def combined(self, shares: np.ndarray | None = None) -> np.ndarray:
        """Return what the average of the models says: each counts by how likely it found the row.

        That is the answer of the one model that `jointpmf.average` makes of them, with these
        shares, or all alike.
        """
        own = np.ones(len(self.said)) if shares is None else shares
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = self.log_given + np.log(own)[:, None]
            top = logs.max(axis=0)
            weights = np.where(np.isneginf(top), own[:, None], np.exp(logs - top))
        return (weights * self.said).sum(axis=0) / weights.sum(axis=0)

    @classmethod
    def of_all(cls, answers: Sequence[Answers]) -> Answers:
        """Return the answers of several models together."""
        return cls(
            np.concatenate([a.log_given for a in answers]),
            np.concatenate([a.said for a in answers]),
        )
