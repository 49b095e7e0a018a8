"""Models that fit as well as one: they predict the same tables, or rows (docs/math.md, eq. 65).

A valley knows what the data show of a model, how far another model is from that, and how what they
show changes with the parameters. Parameters are in one vector, as in `Curvature`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.judge.row_information import gradients_of_rows
from jointpmf.pmf import JointPMF
from jointpmf.solvers.table_jacobian import Slice, SliceAtPoint, slices_of

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.marginals.measurement import Measurement
    from jointpmf.point import Point
    from jointpmf.rows.source import Table

_SAME_ROW = 1e-6
"""How far the probabilities of rows may be from those of the fit: the root of the mean square of
the relative difference, so that the mean log-likelihood differs by no more nats than that."""


class Valley(Protocol):
    """The models that fit as well as one of them."""

    domain: Domain

    tolerance: float
    """Up to which misfit a model belongs to the valley."""

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
    """

    def __init__(
        self, domain: Domain, slices: Sequence[Slice], point: Point, tolerance: float
    ) -> None:
        self.domain, self.slices, self.tolerance = domain, slices, tolerance
        self._shown = self._predicted(point)

    @classmethod
    def of(
        cls, domain: Domain, tables: Sequence[Measurement], point: Point, tolerance: float
    ) -> TableValley:
        """Return the models that predict the same tables as the one at a point.

        `tolerance` is how far a cell, as a part of its slice, may be from that of the fit.
        """
        return cls(domain, slices_of(tables), point, tolerance)

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
        for each in self.slices:
            found = SliceAtPoint(each, point, offsets).centred(each.derivatives(point, offsets))
            out[begin : begin + len(found), each.columns(rank, offsets)] = found
            begin += len(found)
        return out

    def through(self, point: Point) -> TableValley:
        """Return the models that predict the same tables as another one."""
        return TableValley(self.domain, self.slices, point, self.tolerance)

    def _predicted(self, point: Point) -> np.ndarray:
        offsets = self.domain.offsets
        return np.concatenate(
            [SliceAtPoint(each, point, offsets).published for each in self.slices]
        )


class RowValley:
    """The models that give every row of a table the same probability as one of them.

    The likelihood is a strictly concave function of these probabilities, so that other models that
    are as likely are not expected.
    """

    tolerance = _SAME_ROW

    def __init__(self, domain: Domain, rows: np.ndarray, shares: np.ndarray, point: Point) -> None:
        self.domain, self.rows, self.shares = domain, rows, shares
        self._codes = Codes(domain, rows)
        self._shown = JointPMF.at(point, domain).probability(self._codes)

    @classmethod
    def of(cls, table: Table, point: Point) -> RowValley:
        """Return the models that fit the rows of a table as well as the one at a point."""
        codes = table.codes.array
        weights = np.ones(len(codes)) if table.weights is None else table.weights
        rows, which = np.unique(codes, axis=0, return_inverse=True)
        shares = np.bincount(which.ravel(), weights, minlength=len(rows))
        seen = (shares > 0) & (rows >= 0).any(axis=1)
        return cls(table.domain, rows[seen], shares[seen] / shares[seen].sum(), point)

    def gaps(self, point: Point) -> np.ndarray:
        """Return by which part the probability of each row differs, times the root of its share."""
        found = JointPMF.at(point, self.domain).probability(self._codes)
        return np.sqrt(self.shares) * (found / self._shown - 1)

    def misfit(self, gaps: np.ndarray) -> float:
        """Return the root of the mean square of the relative differences."""
        return float(np.linalg.norm(gaps))

    def jacobian(self, point: Point) -> np.ndarray:
        """Return the derivatives of the gaps; JᵀJ is the information in a row."""
        pmf = JointPMF.at(point, self.domain)
        everything = tuple(range(len(self.domain)))
        slopes = gradients_of_rows(pmf, self.rows, [everything])
        return slopes * (np.sqrt(self.shares) / self._shown)[:, None]

    def through(self, point: Point) -> RowValley:
        """Return the models that fit the rows as well as another one."""
        return RowValley(self.domain, self.rows, self.shares, point)
