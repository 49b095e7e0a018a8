"""The rows of a table in memory: lists of their observed cells, or columns of codes.

A cell is the position of a level among all levels of all variables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from jointpmf.compiled.cells import cell_dtype, listed_cells, n_observed, set_codes
from jointpmf.compiled.counting import add_cell_counts, add_level_counts
from jointpmf.data.codes import Codes, code_dtype
from jointpmf.domain import MISSING, Domain
from jointpmf.point import Point
from jointpmf.rows.combinations import Combinations
from jointpmf.rows.distinct import Kinds, kinds_if_few, kinds_of_rows
from jointpmf.rows.expectation import Expectation, ListedRows, weighted_sum

MOST_LISTED = 2**28
"""Bytes of the longest list of cells that is made of a whole table; longer ones stay columns."""

MANY_ROWS = 2**16
"""Of no more rows than this the distinct ones are always found."""

MOST_KINDS, MOST_KINDS_OF_COLUMNS = 0.85, 0.5
"""Distinct rows of a large table, as a part of all, up to which they are worth finding: where their
cells are then listed, and where they stay columns, or are too many to be listed."""


class ExpectedCounts(Protocol):
    """The E-step of some rows for models of one rank, wherever the rows are."""

    rank: int

    def empty_stack(self) -> np.ndarray:
        """Return a stack of zeros."""

    def stack(self, point: Point) -> np.ndarray:
        """Return a point as a stack."""

    def point(self, stack: np.ndarray) -> Point:
        """Return the point that a stack is."""

    def counts(self, stack: np.ndarray) -> tuple[np.ndarray, float]:
        """Return how often each level is expected with each component, and Σ log-likelihood."""


class AnyRows(Protocol):
    """What EM needs of the rows of a table, wherever they are."""

    @property
    def domain(self) -> Domain:
        """What can happen."""

    @property
    def total(self) -> float:
        """The weight of all rows."""

    @property
    def marginal(self) -> np.ndarray:
        """The probability of each level of each variable."""

    def expectation(self, rank: int) -> ExpectedCounts:
        """Return the E-step for models of a rank."""


def marginal_of_counts(counts: np.ndarray, domain: Domain) -> np.ndarray:
    """Return the probability of each level of each variable, uniform where nothing was seen."""
    totals = np.repeat(np.add.reduceat(counts, domain.offsets[:-1]), domain.sizes)
    uniform = 1.0 / np.repeat(domain.sizes, domain.sizes)
    return np.divide(counts, totals, out=uniform, where=totals > 0)


class _Weighted(ABC):
    """What rows with weights have in common, whichever way their cells are kept."""

    domain: Domain
    weights: np.ndarray
    may_repeat = False

    @property
    @abstractmethod
    def counts(self) -> np.ndarray:
        """How often each level of each variable was seen."""

    @abstractmethod
    def listed(
        self, begin: int, end: int, combinations: Combinations | None = None
    ) -> Iterator[ListedRows]:
        """Yield rows begin:end in blocks: their cells, or their combinations of cells."""

    @cached_property
    def combinations(self) -> Combinations | None:
        """How the E-step takes variables together, if there are rows enough for that."""
        if self.may_repeat:
            return None
        found = Combinations(self.domain)
        return found if found.are_worth(len(self)) else None

    def __len__(self) -> int:
        """Return the number of rows that are kept."""
        return len(self.weights)

    def expectation(self, rank: int) -> Expectation:
        """Return the E-step for models of a rank."""
        return Expectation(self, rank)

    @cached_property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum())

    @cached_property
    def marginal(self) -> np.ndarray:
        """The probability of each level of each variable, over the rows that observe it.

        A variable that no row observes, as may be in a sample of rows, is uniform.
        """
        return marginal_of_counts(self.counts, self.domain)


@dataclass(frozen=True, repr=False)
class Rows(_Weighted):
    """The distinct rows of a table: their observed cells, and how often each was seen.

    Attributes
    ----------
    cells, ptr : arrays
        Row m has the cells ptr[m]:ptr[m + 1], positions in the stacked levels of all variables.
    weights, total : array, float
        How often, or with which weight, each row was seen; and the sum of that.
    n_empty : int
        Rows of the table that had no observed cell; they say nothing and are left out.
    may_repeat : bool
        Whether a row may have several cells of one variable, so that it is no row of codes.
    """

    domain: Domain
    cells: np.ndarray
    ptr: np.ndarray
    weights: np.ndarray
    n_empty: int = 0
    may_repeat: bool = False

    @classmethod
    def of_codes(cls, codes: Codes, sample_weight: np.ndarray | None = None) -> Rows:
        """Return the distinct rows of a table in an order that does not depend on its own."""
        return cls.of_kinds(codes.domain, kinds_of_rows(codes, sample_weight))

    @classmethod
    def of_kinds(cls, domain: Domain, kinds: Kinds) -> Rows:
        """Return the distinct rows that were found in a table."""
        return cls.of_columns(domain, kinds.columns, kinds.weights, kinds.n_empty)

    @classmethod
    def of_columns(
        cls, domain: Domain, columns: np.ndarray, weights: np.ndarray, n_empty: int = 0
    ) -> Rows:
        """Return rows as they are, from columns of codes."""
        n_rows = columns.shape[1]
        ptr = np.zeros(n_rows + 1, np.int64)
        np.cumsum(n_observed(columns), out=ptr[1:])
        cells = np.empty(ptr[-1], cell_dtype(domain.offsets[-1]))
        for rows, listed, own in listed_cells(columns, domain.offsets, 0, n_rows):
            cells[ptr[rows.start] : ptr[rows.stop]] = listed[: own[-1]]
        return cls(domain, cells, ptr, weights, n_empty)

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each level of each variable was seen."""
        counts = np.zeros(int(self.domain.offsets[-1]))
        add_cell_counts(self.cells, self.ptr, self.weights, counts)
        return counts

    @property
    def n_cells(self) -> int:
        """Number of observed cells."""
        return len(self.cells)

    @property
    def columns(self) -> np.ndarray:
        """The same rows as columns of codes, as those of `ColumnRows`."""
        shape = (len(self.domain), len(self))
        columns = np.full(shape, MISSING, code_dtype(max(self.domain.sizes, default=1)))
        set_codes(self.cells, self.ptr, self.domain.offsets, columns)
        return columns

    @cached_property
    def _combined(self) -> np.ndarray:
        """The combinations of all rows; they are asked for again and again."""
        assert self.combinations is not None
        return self.combinations.of_columns(self.columns)

    def listed(
        self, begin: int, end: int, combinations: Combinations | None = None
    ) -> Iterator[ListedRows]:
        """Yield rows begin:end: their cells in one block, or their combinations in several."""
        if combinations is not None:
            yield from combinations.in_parts(self._combined, begin, end)
        else:
            yield slice(begin, end), self.cells, self.ptr[begin : end + 1]

    def cells_of(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the observed cells of some rows, and for each the position of its row in those."""
        lengths = np.diff(self.ptr)[which]
        owner = np.repeat(np.arange(len(which)), lengths)
        first = np.cumsum(lengths) - lengths
        return owner, self.cells[(self.ptr[which] - first)[owner] + np.arange(len(owner))]

    def followed_by(self, others: Rows) -> Rows:
        """Return these rows and then others, also where they are the same."""
        cells = np.concatenate([self.cells, others.cells])
        ptr = np.concatenate([self.ptr, self.ptr[-1] + others.ptr[1:]])
        weights = np.concatenate([self.weights, others.weights])
        may_repeat = self.may_repeat or others.may_repeat
        return Rows(self.domain, cells, ptr, weights, self.n_empty + others.n_empty, may_repeat)

    def emphasised(self, n: int, times: int) -> Rows:
        """Return rows in which the observed cells of one variable count several times."""
        first, end = self.domain.offsets[n : n + 2]
        repeats = np.where((self.cells >= first) & (self.cells < end), times, 1)
        places = np.concatenate([[0], np.cumsum(repeats)])
        cells = np.repeat(self.cells, repeats)
        return Rows(self.domain, cells, places[self.ptr], self.weights, self.n_empty, times > 1)

    def taken(self, which: np.ndarray) -> Rows:
        """Return some of the rows."""
        ptr = np.concatenate([[0], np.cumsum(np.diff(self.ptr)[which])])
        cells = self.cells_of(which)[1]
        return Rows(self.domain, cells, ptr, self.weights[which], 0, self.may_repeat)


@dataclass(frozen=True, repr=False)
class ColumnRows(_Weighted):
    """Rows that stay columns of codes, as small as they came; cells are listed when needed.

    Attributes
    ----------
    columns : array of shape (variables, rows)
        Codes, −1 where a cell was not observed.
    weights, n_empty
        As those of `Rows`; here rows may repeat, and empty ones have a weight of zero.
    """

    domain: Domain
    columns: np.ndarray
    weights: np.ndarray
    n_empty: int = 0

    @classmethod
    def of_codes(cls, codes: Codes, sample_weight: np.ndarray | None = None) -> ColumnRows:
        """Return the rows of a table: the distinct ones where that is much less, else all."""
        kinds = kinds_if_few(codes, sample_weight, MOST_KINDS_OF_COLUMNS)
        if kinds is None:
            return cls.as_they_are(codes, sample_weight)
        return cls(codes.domain, kinds.columns, kinds.weights, kinds.n_empty)

    @classmethod
    def as_they_are(cls, codes: Codes, sample_weight: np.ndarray | None = None) -> ColumnRows:
        """Return all rows of a table, whose codes are not copied."""
        weights = np.ones(codes.n_rows) if sample_weight is None else sample_weight
        empty = np.flatnonzero(n_observed(codes.columns) == 0)
        if len(empty):
            weights = weights.copy()
            weights[empty] = 0.0
        return cls(codes.domain, codes.columns, weights, len(empty))

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each level of each variable was seen."""
        counts = np.zeros(int(self.domain.offsets[-1]))
        for n, first in enumerate(self.domain.offsets[:-1]):
            add_level_counts(self.columns[n], self.weights, counts[first:])
        return counts

    @property
    def n_cells(self) -> int:
        """Number of cells, observed or not."""
        return self.columns.size

    def listed(
        self, begin: int, end: int, combinations: Combinations | None = None
    ) -> Iterator[ListedRows]:
        """Yield rows begin:end in blocks, each of which overwrites the last."""
        if combinations is not None:
            return combinations.listed(self.columns, begin, end)
        return listed_cells(self.columns, self.domain.offsets, begin, end)

    def cells_of(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the observed cells of some rows, and for each the position of its row in those."""
        return self.taken(which).cells_of(np.arange(len(which)))

    def emphasised(self, n: int, times: int) -> Rows:
        """Return rows in which the observed cells of one variable count several times."""
        return self.taken(np.arange(len(self))).emphasised(n, times)

    def taken(self, which: np.ndarray) -> Rows:
        """Return some of the rows, with their cells listed."""
        columns = np.take(self.columns, which, axis=1)
        return Rows.of_columns(self.domain, columns, self.weights[which])


TableRows = Rows | ColumnRows
"""The rows of a table in memory."""


def rows_of_codes(codes: Codes, sample_weight: np.ndarray | None = None) -> TableRows:
    """Return the rows of a table in whichever form is fast and does not take too much memory."""
    size = codes.array.size * np.dtype(cell_dtype(codes.domain.offsets[-1])).itemsize
    are_many = codes.n_rows > MANY_ROWS and Combinations(codes.domain).are_worth(codes.n_rows)
    most = MOST_KINDS_OF_COLUMNS if size > MOST_LISTED else MOST_KINDS if are_many else 1.0
    kinds = kinds_if_few(codes, sample_weight, most)
    if kinds is None:
        return ColumnRows.as_they_are(codes, sample_weight)
    return Rows.of_kinds(codes.domain, kinds)


def drawn_by_weight(
    weights: np.ndarray, rate: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, each drawn `rate` times its weight on average, and how often each was drawn.

    One is drawn at random from every 1 / rate of the weight, so that neighbours share alike.
    """
    ends = np.cumsum(weights) * rate
    points = np.arange(np.ceil(ends[-1]) if len(ends) else 0.0)
    points += generator.random(len(points))
    found = np.searchsorted(ends, points[points < ends[-1:].sum()], side="right")
    starts = np.flatnonzero(np.diff(found, prepend=-1))
    return found[starts], np.diff(starts, append=len(found)).astype(np.float64)


def log_likelihoods(rows: TableRows, point: Point) -> np.ndarray:
    """Return the log-likelihood of each distinct row under a model."""
    expectation = Expectation(rows, len(point.weights))
    return expectation.log_likelihoods(expectation.stack(point))


def mean_log_likelihood(rows: TableRows, point: Point) -> float:
    """Return the mean log-likelihood of the rows, by weight, under a model."""
    return weighted_sum(rows.weights, log_likelihoods(rows, point)) / rows.total
