"""Models that fit as well as one: they predict the same tables, or rows (docs/math.md, eq. 65).

A valley knows what the data show of a model, how far another model is from that, and how what they
show changes with the parameters. Parameters are in one vector, as in `Curvature`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.judge.row_information import gradients_of_rows
from jointpmf.pmf import JointPMF
from jointpmf.solvers.table_cells import TableCells
from jointpmf.solvers.table_jacobian import SliceAtPoint, factors_of, slices_of

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.marginals.measurement import Measurement
    from jointpmf.point import Point
    from jointpmf.rows.source import Table
    from jointpmf.rows.table import AnyRows, TableRows

_SAME_ROW = 1e-6
"""How far the probabilities of rows may be from those of the fit: the root of the mean square of
the relative difference, so that the mean log-likelihood differs by no more nats than that."""


class Valley(Protocol):
    """The models that fit as well as one of them."""

    domain: Domain

    tolerance: float
    """Up to which misfit a model belongs to the valley."""

    @property
    def n_shown(self) -> int:
        """How many numbers the data show of a model."""

    @property
    def observed(self) -> AnyRows:
        """What new models are fitted to."""

    def gaps(self, point: Point) -> np.ndarray:
        """Return how far what the data show is from what they show of the fit."""

    def misfit(self, gaps: np.ndarray) -> float:
        """Return how far that is as one number."""

    def jacobian(self, point: Point) -> np.ndarray:
        """Return how each gap changes with each parameter."""

    def through(self, point: Point) -> Valley:
        """Return the models that fit as well as another one."""


class TableValley:
    """The models that predict the same tables as one of them.

    What the tables say is not needed: only which cells they show, of whom.

    Parameters
    ----------
    domain : Domain
        All variables.
    tables : sequence of Measurement
        What is known.
    point : Point
        The fit.
    tolerance : float
        How far a cell, as a part of its slice, may be from that of the fit.
    """

    def __init__(
        self, domain: Domain, tables: Sequence[Measurement], point: Point, tolerance: float
    ) -> None:
        self.domain, self.tables, self.tolerance = domain, tables, tolerance
        self._slices = slices_of(tables)
        self._shown = self._predicted(point)
        self._point = point

    @property
    def n_shown(self) -> int:
        """How many cells were published."""
        return len(self._shown)

    @property
    def observed(self) -> TableCells:
        """The tables as the fit has them."""
        factors = factors_of(self._point, self.domain.offsets)
        return TableCells(
            self.domain, [_as_predicted(one, self._point.weights, factors) for one in self.tables]
        )

    def gaps(self, point: Point) -> np.ndarray:
        """Return how far all published cells are from those of the fit."""
        return self._predicted(point) - self._shown

    def misfit(self, gaps: np.ndarray) -> float:
        """Return how far the worst cell is from that of the fit."""
        return float(np.abs(gaps).max())

    def jacobian(self, point: Point) -> np.ndarray:
        """Return the derivatives of all published cells (eq. 46)."""
        rank, offsets = len(point.weights), self.domain.offsets
        out, begin = np.zeros((len(self._shown), rank + point.factors.size)), 0
        for each in self._slices:
            found = SliceAtPoint(each, point, offsets).centred(each.derivatives(point, offsets))
            out[begin : begin + len(found), each.columns(rank, offsets)] = found
            begin += len(found)
        return out

    def through(self, point: Point) -> TableValley:
        """Return the models that predict the same tables as another one."""
        return TableValley(self.domain, self.tables, point, self.tolerance)

    def _predicted(self, point: Point) -> np.ndarray:
        offsets = self.domain.offsets
        return np.concatenate(
            [SliceAtPoint(each, point, offsets).published for each in self._slices]
        )


def _as_predicted(
    table: Measurement, weights: np.ndarray, factors: Sequence[np.ndarray]
) -> Measurement:
    """Return a table as a model has it; what was not published stays so."""
    cells = table.predicted(weights, factors)
    n_obs = None if table.n_obs is None else np.where(np.isnan(table.n_obs), np.nan, 1.0)
    cells = np.where(np.isnan(table.counts), np.nan, cells)
    return replace(table, counts=cells, n_obs=n_obs, least=0.0, most=np.inf, noise=None)


class RowValley:
    """The models that give every row of a table the same probability as one of them.

    The likelihood is a strictly concave function of these probabilities, so that other models that
    are as likely are not expected.
    """

    tolerance = _SAME_ROW

    def __init__(self, table: Table, point: Point) -> None:
        self.domain, self._table = table.domain, table
        codes = table.codes.array
        weights = np.ones(len(codes)) if table.weights is None else table.weights
        rows, which = np.unique(codes, axis=0, return_inverse=True)
        totals = np.bincount(which.ravel(), weights, minlength=len(rows))
        seen = (totals > 0) & (rows >= 0).any(axis=1)
        self._rows, self._roots = rows[seen], np.sqrt(totals[seen] / totals[seen].sum())
        self._codes = Codes(self.domain, self._rows)
        self._shown = JointPMF.at(point, self.domain).probability(self._codes)

    @property
    def n_shown(self) -> int:
        """How many different rows there are."""
        return len(self._rows)

    @property
    def observed(self) -> TableRows:
        """The rows."""
        return self._table.rows

    def gaps(self, point: Point) -> np.ndarray:
        """Return by which part the probability of each row differs, times the root of its share."""
        found = JointPMF.at(point, self.domain).probability(self._codes)
        return self._roots * (found / self._shown - 1)

    def misfit(self, gaps: np.ndarray) -> float:
        """Return the root of the mean square of the relative differences."""
        return float(np.linalg.norm(gaps))

    def jacobian(self, point: Point) -> np.ndarray:
        """Return the derivatives of the gaps; JᵀJ is the information in a row."""
        pmf = JointPMF.at(point, self.domain)
        everything = tuple(range(len(self.domain)))
        slopes = gradients_of_rows(pmf, self._rows, [everything])
        return slopes * (self._roots / self._shown)[:, None]

    def through(self, point: Point) -> RowValley:
        """Return the models that fit the rows as well as another one."""
        return RowValley(self._table, point)
