"""What tables of any kind see of a model: the derivatives of their cells by its parameters.

A cell is published as a part of its slice, so its derivative is that of a ratio (docs/math.md,
eqs. 45 and 46). Parameters are in one vector, as in `Curvature`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.marginals.measurement import Measurement
    from jointpmf.point import Point
    from jointpmf.solvers.curvature import Tangent


class Slice:
    """One slice of a table, as axes of sets of levels.

    Parameters
    ----------
    table : Measurement
        The table.
    which : tuple of int
        The entry of each given axis, in the order of the axes.

    Attributes
    ----------
    variables, sets : tuple of int, list of arrays of float
        The variable of each axis, and which of its levels each entry covers. What the slice is
        about at all are axes of one entry.
    index : list of arrays of int
        The entry of each cell, for every axis.
    counts : array
        What was counted in each cell, NaN where that was not published.
    is_known, is_base : array of bool
        Which cells were published, and which ones are all that is known of the slice.
    n_obs : float
        How many rows the slice stands for.
    """

    def __init__(self, table: Measurement, which: tuple[int, ...] = ()) -> None:
        entry = dict(zip(sorted(table.given), which, strict=True))
        masks = [mask[None, :] for _, mask in table.where]
        own = [s[[entry[k]]] if k in entry else s for k, s in enumerate(table.sets)]
        self.variables = (*table.positions, *(n for n, _ in table.where))
        self.sets = [sets.astype(float) for sets in (*own, *masks)]
        self.is_plain = [
            len(s) == s.shape[1] and bool((s == np.eye(len(s))).all()) for s in self.sets
        ]
        self.index = list(np.indices(tuple(map(len, self.sets))).reshape(len(self.sets), -1))
        self.counts = table.counts[
            tuple(entry.get(k, slice(None)) for k in range(table.counts.ndim))
        ].ravel()
        self.is_known = ~np.isnan(self.counts)
        n_obs = np.nan if table.n_obs is None else float(np.asarray(table.n_obs)[which])
        is_whole = table.n_obs is None or not np.isnan(n_obs)
        self.is_base = self.is_known | is_whole
        self.n_obs = float(np.nansum(self.counts)) if np.isnan(n_obs) else n_obs

    @property
    def n_free(self) -> int:
        """How many of the published cells do not follow from the others."""
        return int(self.is_known.sum()) - bool((self.is_known == self.is_base).all())

    def covered(self, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return, for each axis, what each component gives the entry of each cell."""
        return [
            (sets @ factors[n])[entries]
            for n, sets, entries in zip(self.variables, self.sets, self.index, strict=True)
        ]

    def derivatives(self, point: Point, offsets: np.ndarray) -> np.ndarray:
        """Return the derivatives of all cells, before they are divided by their sum.

        By the weights and then by the factors of the axes' variables, as in `columns`.
        """
        covered = self.covered(factors_of(point, offsets))
        parts = [_product(covered)]
        for k, sets in enumerate(self.sets):
            rest = point.weights * _product(
                [np.ones_like(parts[0]), *covered[:k], *covered[k + 1 :]]
            )
            by_level = sets[self.index[k]][:, :, None] * rest[:, None]
            parts.append(by_level.reshape(len(rest), -1))
        return np.hstack(parts)

    def columns(self, rank: int, offsets: np.ndarray) -> np.ndarray:
        """Return which parameters the derivatives are by."""
        begins = [rank * (1 + np.arange(offsets[n], offsets[n + 1])) for n in self.variables]
        levels = np.concatenate(begins)[:, None] + np.arange(rank)
        return np.concatenate([np.arange(rank), levels.ravel()])


class SliceAtPoint:
    """A slice as a model has it: its cells, and how to differentiate what was published."""

    def __init__(self, found: Slice, point: Point, offsets: np.ndarray) -> None:
        self.slice = found
        self.cells = _product(found.covered(factors_of(point, offsets))) @ point.weights
        self.base = float(self.cells @ found.is_base)
        self._divisor = self.base or 1.0
        self._parts = self.cells / self._divisor
        self.published = self._parts[found.is_known]

    def centred(self, cells: np.ndarray) -> np.ndarray:
        """Return how what was published moves if the cells move, along the first axis (eq. 46)."""
        moved = cells - np.outer(self._parts, self.slice.is_base @ cells)
        return moved[self.slice.is_known] / self._divisor

    def centred_back(self, published: np.ndarray) -> np.ndarray:
        """Return the transpose of `centred` times numbers about the published cells."""
        cells = np.zeros((len(self.cells), published.shape[1]))
        cells[self.slice.is_known] = published
        cells -= np.outer(self.slice.is_base, self.published @ published)
        return cells / self._divisor


class TableCurvature:
    """JᵀJ of tables of any kind; J is formed for one slice at a time."""

    def __init__(self, domain: Domain, tables: Sequence[Measurement]) -> None:
        self.domain = domain
        self.slices = slices_of(tables)
        self.n_cells = sum(len(each.counts) for each in self.slices)
        self.n_formed = max((len(each.counts) for each in self.slices), default=0)

    def matrix(self, point: Point) -> np.ndarray:
        """Return JᵀJ at a point."""
        rank, offsets = len(point.weights), self.domain.offsets
        out = np.zeros((rank * (1 + int(offsets[-1])),) * 2)
        for each in self.slices:
            columns, found = each.columns(rank, offsets), self._jacobian(each, point)
            out[np.ix_(columns, columns)] += found.T @ found
        return out

    def jacobian(self, point: Point, tangent: Tangent) -> np.ndarray:
        """Return the derivatives of all published cells along feasible directions."""
        rank, offsets = len(point.weights), self.domain.offsets
        rows = []
        for each in self.slices:
            found = self._jacobian(each, point)
            whole = np.zeros((len(found), tangent.n_parameters))
            whole[:, each.columns(rank, offsets)] = found
            rows.append(whole[:, tangent.moved] - whole[:, tangent.pivots])
        return np.concatenate(rows)

    def _jacobian(self, each: Slice, point: Point) -> np.ndarray:
        offsets = self.domain.offsets
        return SliceAtPoint(each, point, offsets).centred(each.derivatives(point, offsets))


def slices_of(tables: Sequence[Measurement]) -> list[Slice]:
    """Return all slices of tables, in the order of their given axes."""
    return [
        Slice(table, which)
        for table in tables
        for which in np.ndindex(tuple(table.counts.shape[k] for k in sorted(table.given)))
    ]


def factors_of(point: Point, offsets: np.ndarray) -> list[np.ndarray]:
    """Return the factor of each variable."""
    return [point.factors[begin:end] for begin, end in pairwise(offsets)]


def _product(parts: Sequence[np.ndarray]) -> np.ndarray:
    return reduce(np.multiply, parts)
