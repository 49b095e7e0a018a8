"""The E-step of components that lie at points: sums of scores, whatever the number of levels.

Of a variable only its scores move with the point, so the log-likelihood of rows at all points is
one product of matrices, and so are the sums that the M-step needs (docs/math.md, eq. 74). Rows are
taken in fixed chunks with sums of their own: the bits do not depend on the number of threads.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from jointpmf.domain import MISSING
from jointpmf.threads import run_all

if TYPE_CHECKING:
    from jointpmf.rows.table import AnyRows, TableRows
    from jointpmf.traits import Scores, TraitModel

_BLOCK = 2**20
"""Rows times points that are worked on at once: as much as a cache holds."""

_N_CHUNKS = 8
"""Parts of the rows that have sums of their own."""


class Sums(NamedTuple):
    """What the rows expect at each point."""

    scores: np.ndarray
    """The sum of each score over the rows, by how likely each row is at the point."""
    totals: np.ndarray
    """How many rows observe each variable at the point; one line if all rows observe all."""
    weights: np.ndarray
    """How many rows are at the point."""
    log_likelihood: float

    def total_of(self, n: int) -> np.ndarray:
        """Return how many rows observe a variable at each point."""
        return self.totals[n] if len(self.totals) > 1 else self.totals[0]


class Summing(Protocol):
    """What a fit of traits needs of what was observed, wherever that is."""

    counts: np.ndarray
    """How often each level of each variable was seen."""

    def sums(self, model: TraitModel, weights: np.ndarray) -> Sums:
        """Return what was observed in sums over the points of a model."""


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
        self._bounds = np.linspace(0, n_rows, min(_N_CHUNKS, n_rows) + 1).astype(int)
        # what is looked up by a code; the last row is that of a missing cell
        self._tables = [np.vstack([own, 0 * own[:1]]).astype(np.float32) for own in scores.all]

    def sums(self, model: TraitModel, weights: np.ndarray) -> Sums:
        """Return the sums over all rows."""
        log_totals = model.log_totals
        whole = np.ones(len(log_totals), bool)
        whole[self._holes] = False
        slopes = np.vstack([model.tilts, -log_totals[self._holes]]).astype(np.float32)
        with np.errstate(divide="ignore"):
            base = (np.log(weights) - log_totals[whole].sum(axis=0)).astype(np.float32)
        n_chunks = len(self._bounds) - 1
        totals = np.zeros((n_chunks, *slopes.shape))
        at_points, logs = np.zeros((n_chunks, len(base))), np.zeros(n_chunks)

        def chunk(k: int) -> None:
            begin, end = self._bounds[k : k + 2]
            logs[k] = self._add(begin, end, slopes, base, totals[k], at_points[k])

        run_all([partial(chunk, k) for k in range(n_chunks)])
        whole_totals, at_all = totals.sum(axis=0), at_points.sum(axis=0)
        n_scores = len(model.tilts)
        observed = self._observed(whole_totals[n_scores:], at_all)
        log_likelihood = float(logs.sum() + self.counts @ model.intercepts)
        return Sums(whole_totals[:n_scores], observed, at_all, log_likelihood)

    def _observed(self, of_holes: np.ndarray, at_points: np.ndarray) -> np.ndarray:
        if not len(self._holes):
            return at_points[None]
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
        log_likelihood, size = 0.0, max(_BLOCK // len(base), 1)
        for first in range(begin, end, size):
            rows = slice(first, min(first + size, end))
            design, weights = self._design(rows), self._weights[rows]
            posterior, logs = posteriors(design, slopes, base)
            log_likelihood += float(weights @ logs)
            posterior *= weights.astype(np.float32)[:, None]
            totals += design.T @ posterior
            at_points += posterior.sum(axis=0)
        return log_likelihood

    def _design(self, rows: slice) -> np.ndarray:
        """Return the scores of some rows, and which of the variables with holes they observe."""
        offsets, columns = self._scores.offsets, self._columns[:, rows]
        design = np.empty((columns.shape[1], offsets[-1] + len(self._holes)), np.float32)
        for n, table in enumerate(self._tables):
            design[:, offsets[n] : offsets[n + 1]] = table[columns[n]]
        design[:, offsets[-1] :] = (columns[self._holes] != MISSING).T
        return design


def posteriors(
    design: np.ndarray, slopes: np.ndarray, base: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return P(point | row), and the log of what the row's likelihoods sum to."""
    logs = design @ slopes
    logs += base
    top = logs.max(axis=1)
    logs -= top[:, None]
    np.exp(logs, out=logs)
    totals = logs.sum(axis=1)
    logs /= totals[:, None]
    return logs, (top + np.log(totals)).astype(np.float64)


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
