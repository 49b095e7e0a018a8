"""How much each of several models should count in their average, by what tables say of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.solvers.table_cells import CellProbabilities

if TYPE_CHECKING:
    from jointpmf.solvers.table_cells import TableCells

_MOST_STEPS, _STILL = 2000, 1e-5
"""EM steps, at most, and the change of all shares that ends them. From equal shares they lead most
of the way to the best ones, which few cells do not know well."""


class Witness(NamedTuple):
    """Tables, and what models make of them."""

    cells: TableCells
    models: Sequence[CellProbabilities]
    """How likely each model holds the cells."""
    flattery: np.ndarray
    """By how many nats per row each model looks better here than it is."""
    weight: float = 1.0
    """What a row of these tables counts for."""


def best_shares(witnesses: Sequence[Witness]) -> np.ndarray:
    """Return the shares of models by which their average predicts tables best, by EM (eq. 82)."""
    together = [(one.weight, one.cells, _side_by_side(one)) for one in witnesses]
    n_models = len(witnesses[0].models)
    shares = np.full(n_models, 1 / n_models)
    for _ in range(_MOST_STEPS):
        counts = np.zeros(n_models)
        for weight, cells, models in together:
            counts += weight * expected_shares(cells, models, shares)
        before, shares = shares, counts / counts.sum()
        if np.abs(shares - before).max() < _STILL:
            break
    return shares


def expected_shares(cells: TableCells, models: CellProbabilities, shares: np.ndarray) -> np.ndarray:
    """Return how many rows of tables are expected to be of each model, whose columns these are."""

    def added(own: np.ndarray, weights: np.ndarray) -> np.ndarray:
        whole = own @ shares
        ratios = np.divide(weights, whole, out=np.zeros_like(whole), where=whole > 0)
        return shares * (ratios @ own)

    base, n_shown = models.bases @ shares, cells.n_shown
    counts = added(models.known, cells.known.weights)
    if len(cells.noisy.weights):
        expected, _ = cells.expected_noisy(models.noisy @ shares, base)
        counts += added(models.noisy, expected)
        n_shown = n_shown + np.bincount(cells.noisy.slices, expected, minlength=len(n_shown))
    if cells.has_parts:
        expected = cells.expected_hidden(models.hidden @ shares, base, n_shown)
        counts += added(models.hidden, expected)
        totals = n_shown + np.bincount(cells.hidden.slices, expected, minlength=len(n_shown))
        counts += shares * (totals / base).sum() - added(models.bases, totals)
    return counts


def _side_by_side(witness: Witness) -> CellProbabilities:
    """Return what models make of tables as one, without what flatters them."""
    scales = np.exp(witness.flattery.min() - witness.flattery)
    parts = zip(*witness.models, strict=True)
    return CellProbabilities(*(scales * np.column_stack(part) for part in parts))
