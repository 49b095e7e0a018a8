"""The E-step of components that lie at points: sums of scores, whatever the number of levels.

Of a variable only its scores move with the point, so the log-likelihood of rows at all points is
one product of matrices, and so are the sums that the M-step needs (docs/math.md, eq. 74). Rows are
taken in fixed chunks with sums of their own: the bits do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from jointpmf.domain import MISSING
from jointpmf.threads import run_all

if TYPE_CHECKING:
    from jointpmf.rows.table import AnyRows, TableRows
    from jointpmf.traits import Scores, TraitModel

_NUMBERS_AT_ONCE = 2**20
"""Rows times points that are worked on at once: as much as a cache holds."""

_MOST_KEPT = 2**30
"""Bytes of likelihoods that are kept while the weights of points are found."""

_MOST_DESIGN = 2**28
"""Bytes of the scores of all rows that are kept from pass to pass."""

_N_ROW_CHUNKS = 8
"""Parts of the rows that have sums of their own."""


class Sums(NamedTuple):
    """What the rows expect at each point."""

    scores: np.ndarray
    """The sum of each score over the rows, by how likely each row is at the point."""
    totals: np.ndarray
    """How many rows observe each variable at the point."""
    weights: np.ndarray
    """How many rows are at the point."""
    log_likelihood: float


class Columns(Protocol):
    """Columns that are the exponentials of scores times tilts: a TraitModel, or free ones."""

    @property
    def tilts(self) -> np.ndarray:
        """How much of each score there is at each point."""

    @property
    def log_totals(self) -> np.ndarray:
        """What the exponentials of each variable sum to at each point, as logs."""

    @property
    def intercepts(self) -> np.ndarray:
        """What each level has at all points."""


class Summing(Protocol):
    """What a fit of traits needs of what was observed, wherever that is."""

    counts: np.ndarray
    """How often each level of each variable was seen."""

    def sums(self, model: TraitModel, weights: np.ndarray) -> Sums:
        """Return what was observed in sums over the points of a model."""

    def at_points(self, model: TraitModel, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return how many rows are expected at each point, and Σ log-likelihood."""


class RowSums:
    """Sums over rows in memory, by products of matrices in single precision.

    Parameters
    ----------
    rows : Rows or ColumnRows
        What was observed.
    scores : Scores
        What moves of each variable.
    """

    def __init__(self, rows: TableRows, scores: Scores) -> None:
        self.counts = rows.counts
        self._columns, self._weights, self._scores = rows.columns, rows.weights, scores
        self._holes = np.flatnonzero((self._columns == MISSING).any(axis=1))
        n_rows = len(self._weights)
        self._bounds = np.linspace(0, n_rows, min(_N_ROW_CHUNKS, n_rows) + 1).astype(int)
        # what is looked up by a code; the last row is that of a missing cell
        self._tables = [np.vstack([own, 0 * own[:1]]).astype(np.float32) for own in scores.all]
        self._kept: _Likelihoods | None = None
        width = scores.offsets[-1] + len(self._holes)
        self._designs: dict[tuple[int, int], np.ndarray] = {}
        self._n_points = 0  # of the pass that they are kept from
        self._keeps_designs = 4 * n_rows * width <= _MOST_DESIGN

    def sums(self, model: Columns, weights: np.ndarray) -> Sums:
        """Return the sums over all rows."""
        slopes, base = self._slopes(model, weights)
        n_chunks = len(self._bounds) - 1
        totals = np.zeros((n_chunks, *slopes.shape))
        at_points, logs = np.zeros((n_chunks, len(base))), np.zeros(n_chunks)

        def chunk(k: int) -> None:
            begin, end = self._bounds[k : k + 2]
            logs[k] = self._add(begin, end, slopes, base, totals[k], at_points[k])

        run_all([partial(chunk, k) for k in range(n_chunks)], self._numbers(len(base)))
        whole_totals, at_all = totals.sum(axis=0), at_points.sum(axis=0)
        n_scores = len(model.tilts)
        observed = self._observed(whole_totals[n_scores:], at_all)
        log_likelihood = float(logs.sum() + self.counts @ model.intercepts)
        return Sums(whole_totals[:n_scores], observed, at_all, log_likelihood)

    def at_points(self, model: TraitModel, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return how many rows are expected at each point, and Σ log-likelihood.

        Likelihoods at the points of one model are kept, where that does not take too much memory.
        """
        if 4 * len(self._weights) * len(weights) > _MOST_KEPT:
            sums = self.sums(model, weights)
            return sums.weights, sums.log_likelihood
        if self._kept is None or self._kept.model is not model:
            self._kept = self._likelihoods(model)
        found, logs = self._kept.at_points(weights, self._weights, self._bounds)
        return found, logs + float(self.counts @ model.intercepts)

    def log_likelihood(self, model: Columns, weights: np.ndarray) -> float:
        """Return Σ log-likelihood of all rows."""
        slopes, base = self._slopes(model, weights)
        logs = np.empty(len(self._weights))

        def chunk(k: int) -> None:
            for rows in _blocks(self._bounds[k], self._bounds[k + 1], len(base)):
                parts, tops = likelihoods(self._design(rows), slopes, base)
                logs[rows] = tops + np.log(parts.sum(axis=1))

        run_all([partial(chunk, k) for k in range(len(self._bounds) - 1)], self._numbers(len(base)))
        return float(self._weights @ logs + self.counts @ model.intercepts)

    def _likelihoods(self, model: TraitModel) -> _Likelihoods:
        n_points = model.tilts.shape[1]
        slopes, base = self._slopes(model, np.ones(n_points))
        found = np.empty((len(self._weights), n_points), np.float32)
        tops = np.empty(len(self._weights))

        def chunk(k: int) -> None:
            for rows in _blocks(self._bounds[k], self._bounds[k + 1], n_points):
                found[rows], tops[rows] = likelihoods(self._design(rows), slopes, base)

        run_all([partial(chunk, k) for k in range(len(self._bounds) - 1)], self._numbers(n_points))
        return _Likelihoods(model, found, tops)

    def _numbers(self, n_points: int) -> float:
        """Return how many numbers of rows and points a chunk goes through.

        Products of matrices take about 64 multiplications in the time of one exponential.
        """
        width = self._scores.offsets[-1] + len(self._holes)
        return len(self._weights) * n_points * (1 + width / 64) / max(len(self._bounds) - 1, 1)

    def _slopes(self, model: Columns, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what the scores and holes of a row are multiplied by, and what is added."""
        if len(weights) != self._n_points:  # other blocks of rows
            self._designs, self._n_points = {}, len(weights)
        log_totals = model.log_totals
        whole = np.ones(len(log_totals), bool)
        whole[self._holes] = False
        slopes = np.vstack([model.tilts, -log_totals[self._holes]]).astype(np.float32)
        with np.errstate(divide="ignore"):
            base = np.log(weights) - log_totals[whole].sum(axis=0)
        return slopes, base.astype(np.float32)

    def _observed(self, of_holes: np.ndarray, at_points: np.ndarray) -> np.ndarray:
        totals = np.repeat(at_points[None], len(self._columns), axis=0)
        totals[self._holes] = of_holes
        return totals

    def _add(
        self,
        begin: int,
        end: int,
        slopes: np.ndarray,
        base: np.ndarray,
        totals: np.ndarray,
        at_points: np.ndarray,
    ) -> float:
        """Add the sums over some rows: of scores and holes, and of rows; return that of logs."""
        log_likelihood = 0.0
        for rows in _blocks(begin, end, len(base)):
            design, weights = self._design(rows), self._weights[rows]
            posterior, tops = likelihoods(design, slopes, base)
            totals_of_rows = posterior.sum(axis=1)
            log_likelihood += float(weights @ (tops + np.log(totals_of_rows)).astype(np.float64))
            posterior /= totals_of_rows[:, None]
            posterior *= weights.astype(np.float32)[:, None]
            totals += design.T @ posterior
            at_points += posterior.sum(axis=0)
        return log_likelihood

    def _design(self, rows: slice) -> np.ndarray:
        """Return the scores of some rows, and which of the variables with holes they observe."""
        place = rows.start, rows.stop
        design = self._designs.get(place)
        if design is None:
            design = self._new_design(rows)
            if self._keeps_designs:
                self._designs[place] = design
        return design

    def _new_design(self, rows: slice) -> np.ndarray:
        offsets, columns = self._scores.offsets, self._columns[:, rows]
        design = np.empty((columns.shape[1], offsets[-1] + len(self._holes)), np.float32)
        for n, table in enumerate(self._tables):
            design[:, offsets[n] : offsets[n + 1]] = table[columns[n]]
        design[:, offsets[-1] :] = (columns[self._holes] != MISSING).T
        return design


class _Likelihoods(NamedTuple):
    """How likely every row is at every point, as a part of where it is most likely."""

    model: TraitModel
    parts: np.ndarray
    tops: np.ndarray

    def at_points(
        self, weights: np.ndarray, of_rows: np.ndarray, bounds: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return how many rows are expected at each point, and Σ log-likelihood."""
        single = weights.astype(np.float32)
        found, logs = np.empty((len(bounds) - 1, len(weights))), np.empty(len(bounds) - 1)

        def chunk(k: int) -> None:
            rows = slice(*bounds[k : k + 2])
            totals = self.parts[rows] @ single
            found[k] = (of_rows[rows] / totals).astype(np.float32) @ self.parts[rows]
            logs[k] = of_rows[rows] @ (self.tops[rows] + np.log(totals))

        run_all(
            [partial(chunk, k) for k in range(len(found))], self.parts.size / max(len(found), 1)
        )
        return found.sum(axis=0) * weights, float(logs.sum())


def _blocks(begin: int, end: int, n_points: int) -> Iterator[slice]:
    """Yield rows begin:end, as many at a time as a cache holds."""
    size = max(_NUMBERS_AT_ONCE // n_points, 1)
    return (slice(first, min(first + size, end)) for first in range(begin, end, size))


def likelihoods(
    design: np.ndarray, slopes: np.ndarray, base: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how likely rows are at each point, as parts of the most, and the log of the most."""
    logs = design @ slopes
    logs += base
    tops = logs.max(axis=1)
    logs -= tops[:, None]
    return np.exp(logs, out=logs), tops


class LevelSums:
    """Sums over what has an E-step of its own: rows elsewhere, and the cells of tables.

    Parameters
    ----------
    rows : what has the E-step
        What was observed.
    scores : Scores
        What moves of each variable.
    rank : int
        Number of points.
    """

    def __init__(self, rows: AnyRows, scores: Scores, rank: int) -> None:
        self._expectation, self._scores = rows.expectation(rank), scores
        self.counts = np.empty(0)

    def sums(self, model: TraitModel, weights: np.ndarray) -> Sums:
        """Return the sums over all that was observed."""
        expectation, scores = self._expectation, self._scores
        stack = expectation.stack(model.point(weights))
        counts, log_likelihood = expectation.counts(stack)
        counts = counts[:, : expectation.rank]
        offsets = scores.domain.offsets
        levels = [counts[a:b] for a, b in pairwise(offsets)]
        sums = [own.T @ part for own, part in zip(scores.all, levels, strict=True)]
        totals = np.stack([part.sum(axis=0) for part in levels])
        self.counts = counts[:-1].sum(axis=1)
        return Sums(np.vstack(sums), totals, counts[-1], log_likelihood)

    def at_points(self, model: TraitModel, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return how many rows are expected at each point, and Σ log-likelihood."""
        sums = self.sums(model, weights)
        return sums.weights, sums.log_likelihood
