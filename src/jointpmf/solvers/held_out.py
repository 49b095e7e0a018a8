"""Rows and cells that a fit does not see, and that say when it should stop."""

from __future__ import annotations

import numpy as np

from jointpmf.encoding import Codes
from jointpmf.solvers.objective import Point
from jointpmf.solvers.rows import Expectation, Rows

PATIENCE = 10
"""Iterations without improvement after which a fit ends."""

IMPOSSIBLE_LOG = -1e6
"""What a row of probability zero counts as, so that iterates with some can be compared."""


class HeldOut:
    """Whole rows, or single cells given the rest of their rows, as a validation part.

    Parameters
    ----------
    rows : Rows
        The held-out rows; for cells, each cell's row with that cell as the only held-out one.
    rank : int
        Of the models that will be compared.
    given : Rows, optional
        For cells: the same rows without the held-out cell.
    patience : int
        Iterations without improvement after which a fit ends.
    """

    def __init__(
        self, rows: Rows, rank: int, given: Rows | None = None, patience: int = PATIENCE
    ) -> None:
        self.patience = patience
        self._rows = Expectation(rows, rank)
        self._given = None if given is None else Expectation(given, rank)

    def cost(self, point: Point) -> float:
        """Return minus the mean log-probability of what was held out."""
        whole = self._log_likelihood(self._rows, point, IMPOSSIBLE_LOG)
        if self._given is not None:
            whole -= self._log_likelihood(self._given, point, 0.0)
        return -whole / self._rows.rows.total

    @staticmethod
    def _log_likelihood(expectation: Expectation, point: Point, impossible: float) -> float:
        logs = expectation.log_likelihoods(expectation.stack(point))
        logs[np.isneginf(logs)] = impossible
        return float(np.multiply(expectation.rows.weights, logs).sum())


def held_out_cells(
    codes: Codes, hidden: np.ndarray, weights: np.ndarray | None
) -> tuple[Rows, Rows]:
    """Return, for every hidden cell, its row with it and without it; both without other hidden."""
    visible = np.where(hidden, -1, codes.array)
    row, variable = np.nonzero(hidden & (codes.array >= 0))
    without = visible[row]
    with_cell = without.copy()
    with_cell[np.arange(len(row)), variable] = codes.array[row, variable]
    row_weights = None if weights is None else weights[row]
    return (
        Rows.of_codes(Codes(codes.domain, with_cell), row_weights),
        Rows.of_codes(Codes(codes.domain, without), row_weights),
    )
