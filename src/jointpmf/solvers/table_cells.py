"""The likelihood of tables: a cell is as many rows as it counts, which observe only its levels.

A cell may cover several levels of a variable, and a table may be about part of the population; its
rows then observe sets of levels. EM for incomplete rows is the fit of any mix of such tables
(docs/math.md, eqs. 35 to 38).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import xlogy

from jointpmf.compiled.cells import cell_dtype
from jointpmf.compiled.panels import aligned_zeros
from jointpmf.domain import Domain
from jointpmf.marginals.measurement import Measurement
from jointpmf.point import Point
from jointpmf.rows.expectation import Expectation, Stacks
from jointpmf.rows.table import Rows

_N_HALVINGS = 100
"""Bisections that find how many rows the cells of a slice that are not known stand for."""

_LEAST_MEAN = 1e-9
"""Rows that a cell with noise is expected to count, at least: from zero no EM step returns."""

_MARGINAL_STEPS = 30
"""EM steps of one component, after which the marginals of tables with sets are near enough."""


class _Cells(NamedTuple):
    """Cells of tables as rows of positions in the stack, -1 where all levels are covered."""

    places: np.ndarray
    weights: np.ndarray
    slices: np.ndarray
    noise: np.ndarray
    least: np.ndarray
    most: np.ndarray


class _Stacked:
    """Where levels, and sums over sets of levels, are in the stack that the E-step reads."""

    def __init__(self, domain: Domain) -> None:
        self.offsets = domain.offsets
        self.n_levels = int(domain.offsets[-1])
        self._sums: dict[tuple[int, bytes], int] = {}
        self._shares: list[np.ndarray] = []
        self._begins: list[int] = []

    def place(self, n: int, share: np.ndarray) -> int:
        """Return where the sum over a variable's levels is, each counted by its share."""
        if (share == 1).all():
            return -1
        if share.sum() == 1 and (share == 1).any():
            return int(self.offsets[n] + share.argmax())
        share = np.ascontiguousarray(share, float)
        key = (n, share.tobytes())
        if key not in self._sums:
            self._sums[key] = self.n_levels + len(self._sums)
            self._shares.append(share)
            self._begins.append(int(self.offsets[n]))
        return self._sums[key]

    @property
    def sums(self) -> csr_array:
        """What a stack of levels is multiplied by to give the sums."""
        none = np.empty(0)
        ends = np.cumsum([0, *map(len, self._shares)])
        begins = np.repeat(np.array(self._begins, int) - ends[:-1], np.diff(ends))
        columns = begins + np.arange(ends[-1])
        data = np.concatenate([none, *self._shares])
        return csr_array((data, columns, ends), shape=(len(self._shares), self.n_levels))


class TableCells:
    """Tables as what EM can be run on: their cells, each a row that is counted many times.

    Parameters
    ----------
    domain : Domain
        All variables.
    tables : sequence of Measurement
        What is known.
    """

    def __init__(self, domain: Domain, tables: Sequence[Measurement]) -> None:
        self.domain = domain
        stacked, parts, wholes, n_slices = _Stacked(domain), [], [], 0
        width = max(len(table.positions) + len(table.where) for table in tables)
        for table in tables:
            cells, bases = _cells_of(table, stacked, n_slices, width)
            parts.append(cells)
            wholes.append(bases)
            n_slices += len(bases)
        self._cells = _Cells(*map(np.concatenate, zip(*parts, strict=True)))
        self.bases = np.concatenate(wholes)
        self.sums = stacked.sums
        self.stacked_domain = Domain.of_sizes([stacked.n_levels + self.sums.shape[0]])
        self.reach = _reach(self.bases, self.sums, domain)
        self._count(tables)

    def counted(self, tables: Sequence[Measurement]) -> TableCells:
        """Return the cells of tables that differ from these in their counts only."""
        other = copy.copy(self)
        other.__dict__.pop("marginal", None)
        other._cells = self._cells._replace(
            weights=np.concatenate([table.counts.ravel() for table in tables])
        )
        other._count(tables)
        return other

    def _count(self, tables: Sequence[Measurement]) -> None:
        """Tell cells apart by what is known of them."""
        cells, n_slices = self._cells, len(self.bases)
        is_noisy, is_known = cells.noise > 0, ~np.isnan(cells.weights)
        known = _taken(cells, ~is_noisy & (cells.weights > 0))
        # what is suppressed among noise says nothing
        self.hidden = _taken(cells, ~is_known & ~is_noisy)
        self.noisy = _taken(cells, is_noisy & is_known)
        self.known = _rows(self.stacked_domain, known.places, known.weights)
        self.has_parts = bool(len(self.hidden.weights) or (self.bases >= 0).any())
        self.has_limits = bool((self.hidden.least > 0).any() or np.isfinite(self.hidden.most).any())
        self.n_obs = np.concatenate([_n_obs_of(table) for table in tables])
        self.n_shown = np.bincount(known.slices, known.weights, minlength=n_slices)
        self.is_noisy = np.bincount(self.noisy.slices, minlength=n_slices) > 0
        self.total = float(known.weights.sum() + self.n_obs[self.is_noisy].sum())
        self.n_cells = len(known.weights) + len(self.noisy.weights)

    def expected_noisy(self, probability: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, float]:
        """Return what cells with noise are expected to have counted, and their log-likelihood.

        The model expects a count of mean and variance μ, to which noise was added (eq. 40).
        """
        slices, variances = self.noisy.slices, self.noisy.noise**2
        mean = np.maximum(self.n_obs[slices] * probability / base[slices], _LEAST_MEAN)
        variance, gap = mean + variances, self.noisy.weights - mean
        expected = np.maximum(mean + mean / variance * gap, 0.0)
        return expected, -0.5 * float((gap**2 / variance + np.log(variance / variances)).sum())

    def expected_hidden(
        self, probability: np.ndarray, base: np.ndarray, n_shown: np.ndarray
    ) -> np.ndarray:
        """Return how many rows each cell stands for that was not published (eq. 38).

        As many as the model expects, within the cell's limits; where the size of the slice is
        known, they are what the published cells leave.
        """
        slices, n_slices = self.hidden.slices, len(base)
        is_known = ~np.isnan(self.n_obs)
        expected = np.bincount(slices, probability, minlength=n_slices)
        left = np.where(is_known, self.n_obs, 0.0) - n_shown
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(is_known, left / expected, n_shown / (base - expected))
        if not self.has_limits:
            return np.nan_to_num(scale[slices] * probability)
        low, high = np.full(n_slices, 1e-12), np.full(n_slices, 1e30)

        def clipped(scale: np.ndarray) -> np.ndarray:
            return np.clip(scale[slices] * probability, self.hidden.least, self.hidden.most)

        for _ in range(_N_HALVINGS):
            middle = np.sqrt(low * high)
            found = np.bincount(slices, clipped(middle), minlength=n_slices)
            is_low = np.where(is_known, found < left, found > middle * base - n_shown)
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        return clipped(np.sqrt(low * high))

    def expectation(self, rank: int, panel: int | None = None) -> CellExpectation:
        """Return the E-step for models of a rank; `panel` as of `Expectation`."""
        return CellExpectation(self, rank, panel)

    @cached_property
    def marginal(self) -> np.ndarray:
        """The probability of each level of each variable if all were independent."""
        from jointpmf.solvers.em import feasible_stack

        expectation, sizes = self.expectation(1), np.asarray(self.domain.sizes)
        stack = expectation.stack(Point(np.ones(1), 1.0 / np.repeat(sizes, sizes)[:, None]))
        is_indirect = self.has_parts or self.sums.shape[0] or self.is_noisy.any()
        for _ in range(_MARGINAL_STEPS if is_indirect else 1):
            stack = feasible_stack(expectation.counts(stack)[0], stack, self.domain.offsets)
        return stack[:-1, 0].copy()


class CellExpectation(Stacks):
    """The E-step of the cells of tables for models of one rank."""

    def __init__(self, cells: TableCells, rank: int, panel: int | None = None) -> None:
        super().__init__(cells.domain, rank)
        self.cells = cells
        self._known = Expectation(cells.known, rank, panel=panel)
        domain = cells.stacked_domain
        self._hidden, self._noisy = (
            Expectation(_rows(domain, some.places, some.weights), rank, panel=panel)
            for some in (cells.hidden, cells.noisy)
        )
        bases = _rows(domain, cells.bases, np.zeros(len(cells.bases)))
        self._bases = Expectation(bases, rank, panel=panel)

    def counts(self, stack: np.ndarray) -> tuple[np.ndarray, float]:
        """Return how often each level is expected with each component, and Σ log-likelihood."""
        cells, whole = self.cells, self._whole(stack)
        counts, log_likelihood = self._known.counts(whole)
        base = np.ones(len(cells.n_shown))
        if cells.has_parts:
            base = np.exp(self._bases.log_likelihoods(whole))
        n_shown = cells.n_shown
        if len(cells.noisy.weights):
            probability = np.exp(self._noisy.log_likelihoods(whole))
            expected, own = cells.expected_noisy(probability, base)
            self._noisy.rows.weights[:] = expected
            counts += self._noisy.counts(whole)[0]
            log_likelihood += own
            n_shown = n_shown + np.bincount(cells.noisy.slices, expected, minlength=len(n_shown))
        if cells.has_parts:
            log_likelihood += self._add_parts(whole, counts, base, n_shown)
        return self._folded(counts, whole), log_likelihood

    def _whole(self, stack: np.ndarray) -> np.ndarray:
        """Return a stack in which sums over sets of levels follow the levels."""
        sums = self.cells.sums
        if not sums.shape[0]:
            return stack
        whole = aligned_zeros(len(stack) + sums.shape[0], stack.shape[1])
        whole[: self.n_levels], whole[-1] = stack[:-1], stack[-1]
        whole[self.n_levels : -1] = sums @ stack[:-1]
        return whole

    def _add_parts(
        self, whole: np.ndarray, counts: np.ndarray, base: np.ndarray, n_shown: np.ndarray
    ) -> float:
        """Add what slices say that do not cover everyone, or are not known in all cells.

        Returns what that adds to the log-likelihood.
        """
        cells = self.cells
        log_hidden = self._hidden.log_likelihoods(whole)
        expected = cells.expected_hidden(np.exp(log_hidden), base, n_shown)
        totals = n_shown + np.bincount(cells.hidden.slices, expected, minlength=len(n_shown))
        self._hidden.rows.weights[:] = expected
        self._bases.rows.weights[:] = -totals
        for part in (self._hidden, self._bases):
            if len(part.rows):
                counts += part.counts(whole)[0]
        self._add_outside(totals / base, whole, counts)
        own = xlogy(expected, np.exp(log_hidden)) - xlogy(expected, expected)
        added = xlogy(totals, totals / base) - xlogy(n_shown, n_shown)
        return float(own.sum() + added[~cells.is_noisy].sum())

    def _add_outside(self, sizes: np.ndarray, whole: np.ndarray, counts: np.ndarray) -> None:
        """Add the people that slices leave out, if everyone were `sizes` (eq. 37)."""
        reach = self.cells.reach.T @ sizes
        counts[: self.n_levels] += reach[:, None] * whole[: self.n_levels] * whole[-1]
        counts[-1] += sizes.sum() * whole[-1]

    def _folded(self, counts: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Return counts of levels: those of a set go to its levels in proportion to these."""
        if not self.cells.sums.shape[0]:
            return counts
        out = aligned_zeros(self.n_levels + 1, counts.shape[1])
        out[:-1], out[-1] = counts[: self.n_levels], counts[-1]
        of_sets, sums = counts[self.n_levels : -1], whole[self.n_levels : -1]
        ratio = np.divide(of_sets, sums, out=np.zeros_like(sums), where=sums > 0)
        out[:-1] += (self.cells.sums.T @ ratio) * whole[: self.n_levels]
        return out


def _cells_of(
    table: Measurement, stacked: _Stacked, first_slice: int, width: int
) -> tuple[_Cells, np.ndarray]:
    """Return the cells of a table, and of each of its slices what all its cells lie in."""
    places = [
        np.array([stacked.place(n, entry) for entry in sets])
        for n, sets in zip(table.positions, table.sets, strict=True)
    ]
    where = [stacked.place(n, mask) for n, mask in table.where]
    shape = tuple(table.counts.shape[k] for k in table.given)
    slices = np.arange(int(np.prod(shape))).reshape(shape) + first_slice
    index = np.indices(table.counts.shape).reshape(len(places), -1)
    count = index.shape[1]
    own = [own[i] for own, i in zip(places, index, strict=True)]
    noise = 0.0 if table.noise is None else table.noise
    limits = (
        np.broadcast_to(each, table.counts.shape) for each in (noise, table.least, table.most)
    )
    cells = _Cells(
        _columns([*own, *where], count, width),
        table.counts.ravel(),
        np.broadcast_to(slices[tuple(index[k] for k in table.given)], count),
        *(each.ravel().astype(float) for each in limits),
    )
    covered = []
    for k in table.others:
        shares = table.sets[k].sum(axis=0)
        covered.append(stacked.place(table.positions[k], shares / shares.max()))
    given = np.indices(shape).reshape(len(shape), slices.size)
    own = [places[k][i] for k, i in zip(table.given, given, strict=True)]
    return cells, _columns([*own, *covered, *where], slices.size, width)


def _columns(places: Sequence[np.ndarray | int], n_rows: int, width: int) -> np.ndarray:
    """Return columns of places side by side, one place for all rows or one for each."""
    columns = np.full((n_rows, width), -1)
    for k, place in enumerate(places):
        columns[:, k] = place
    return columns


def _taken(cells: _Cells, which: np.ndarray) -> _Cells:
    return _Cells(*(each[which] for each in cells))


def _rows(domain: Domain, places: np.ndarray, weights: np.ndarray) -> Rows:
    """Return cells as rows, without the places that cover all levels."""
    is_place = places >= 0
    ptr = np.zeros(len(is_place) + 1, np.int64)
    np.cumsum(is_place.sum(axis=1), out=ptr[1:])
    listed = places[is_place].astype(cell_dtype(domain.offsets[-1]))
    return Rows(domain, listed, ptr, weights.astype(float), may_repeat=True)


def _n_obs_of(table: Measurement) -> np.ndarray:
    """Return how many rows each slice stands for, NaN where that is not known."""
    shape = tuple(table.counts.shape[k] for k in table.given)
    n_obs = np.nan if table.n_obs is None else table.n_obs
    return np.broadcast_to(n_obs, shape).astype(float).ravel()


def _reach(places: np.ndarray, sums: csr_array, domain: Domain) -> csr_array:
    """Return which levels belong to the variables that each slice is about."""
    n_levels = int(domain.offsets[-1])
    first = np.concatenate([np.arange(n_levels), sums.indices[sums.indptr[:-1]]])
    row, column = np.nonzero(places >= 0)
    variable = np.searchsorted(domain.offsets, first[places[row, column]], side="right") - 1
    about = csr_array((np.ones(len(row)), (row, variable)), shape=(len(places), len(domain)))
    about.data[:] = 1.0  # a variable may be in it twice
    sizes = np.asarray(domain.sizes)
    levels = csr_array(
        (np.ones(n_levels), (np.repeat(np.arange(len(domain)), sizes), np.arange(n_levels)))
    )
    return csr_array(about @ levels)
