"""Rows against components: the E-step, compiled and shared over threads.

A row is the list of its observed cells, each the position of a level among all levels of all
variables. Rows are taken in fixed chunks that have sums of their own, so that the bits depend
neither on the number of threads nor on the size of a block (docs/math.md, eq. 20).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np

from jointpmf.compiled.cells import cell_dtype, listed_cells, n_observed, row_keys, set_codes
from jointpmf.compiled.counting import add_level_counts
from jointpmf.compiled.panels import aligned_zeros, lanes_of, padded_width, panel_width
from jointpmf.compiled.posteriors import e_step, safe_cells, stack_of
from jointpmf.data.codes import Codes, code_dtype
from jointpmf.domain import MISSING, Domain
from jointpmf.point import Point
from jointpmf.threads import run_all

CHUNK_ROWS, MAX_CHUNKS, CHUNK_BYTES = 1024, 32, 2**26
"""Rows of a chunk at least, how many chunks there are at most, and the memory of their sums."""

_NEGLIGIBLE = 1e-20
"""Rows with less than this part of all weight change nothing, and are left out."""

MOST_LISTED = 2**28
"""Bytes of the longest list of cells that is made of a whole table; longer ones stay columns."""

PROBE_ROWS = 2**16
"""Rows that tell whether rows repeat often enough to be worth finding."""


ListedRows = tuple[slice, np.ndarray, np.ndarray]
"""Which rows, their cells one after the other, and where the cells of each row begin and end."""


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

    @property
    @abstractmethod
    def counts(self) -> np.ndarray:
        """How often each level of each variable was seen."""

    @abstractmethod
    def listed(self, begin: int, end: int) -> Iterator[ListedRows]:
        """Yield rows begin:end in blocks."""

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
    """

    domain: Domain
    cells: np.ndarray
    ptr: np.ndarray
    weights: np.ndarray
    n_empty: int = 0

    @classmethod
    def of_codes(cls, codes: Codes, sample_weight: np.ndarray | None = None) -> Rows:
        """Return the distinct rows of a table in an order that does not depend on its own."""
        columns, weights, n_empty = kinds_of_rows(codes, sample_weight)[:3]
        return cls.of_columns(codes.domain, columns, weights, n_empty)

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
        weights = np.repeat(self.weights, np.diff(self.ptr))
        return np.bincount(self.cells, weights, minlength=int(self.domain.offsets[-1]))

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

    def listed(self, begin: int, end: int) -> Iterator[ListedRows]:
        """Yield rows begin:end, all in one block."""
        yield slice(begin, end), self.cells, self.ptr[begin : end + 1]

    def cells_of(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the observed cells of some rows, and for each the position of its row in those."""
        lengths = np.diff(self.ptr)[which]
        owner = np.repeat(np.arange(len(which)), lengths)
        first = np.cumsum(lengths) - lengths
        return owner, self.cells[(self.ptr[which] - first)[owner] + np.arange(len(owner))]

    def emphasised(self, n: int, times: int) -> Rows:
        """Return rows in which the observed cells of one variable count several times."""
        first, end = self.domain.offsets[n : n + 2]
        repeats = np.where((self.cells >= first) & (self.cells < end), times, 1)
        places = np.concatenate([[0], np.cumsum(repeats)])
        cells = np.repeat(self.cells, repeats)
        return Rows(self.domain, cells, places[self.ptr], self.weights, self.n_empty)

    def taken(self, which: np.ndarray) -> Rows:
        """Return some of the rows."""
        ptr = np.concatenate([[0], np.cumsum(np.diff(self.ptr)[which])])
        return Rows(self.domain, self.cells_of(which)[1], ptr, self.weights[which])


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
        if _often_repeat(codes):
            return cls(codes.domain, *kinds_of_rows(codes, sample_weight)[:3])
        return cls.as_they_are(codes, sample_weight)

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

    def listed(self, begin: int, end: int) -> Iterator[ListedRows]:
        """Yield rows begin:end in blocks, each of which overwrites the last."""
        return listed_cells(self.columns, self.domain.offsets, begin, end)

    def cells_of(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the observed cells of some rows, and for each the position of its row in those."""
        return self.taken(which).cells_of(np.arange(len(which)))

    def taken(self, which: np.ndarray) -> Rows:
        """Return some of the rows, with their cells listed."""
        return Rows.of_columns(self.domain, self.columns[:, which], self.weights[which])


TableRows = Rows | ColumnRows
"""The rows of a table in memory."""


def rows_of_codes(codes: Codes, sample_weight: np.ndarray | None = None) -> TableRows:
    """Return the rows of a table in whichever form is fast and does not take too much memory."""
    size = codes.array.size * np.dtype(cell_dtype(codes.domain.offsets[-1])).itemsize
    if size <= MOST_LISTED or _often_repeat(codes):
        return Rows.of_codes(codes, sample_weight)
    return ColumnRows.as_they_are(codes, sample_weight)


def _often_repeat(codes: Codes) -> bool:
    """Tell whether at least half of the rows repeat others, by looking at some."""
    step = max(codes.n_rows // PROBE_ROWS, 1)
    firsts, _ = _distinct(codes.columns[:, ::step], codes.domain.sizes)
    return 2 * len(firsts) <= -(-codes.n_rows // step)


def distinct_codes(codes: Codes, sample_weight: np.ndarray | None) -> tuple[Codes, np.ndarray]:
    """Return the distinct rows of a table, in an order of their own, and their weights."""
    found = kinds_of_rows(codes, sample_weight)
    return Codes(codes.domain, found.columns.T), found.weights


class Kinds(NamedTuple):
    """The distinct rows of a table, and which row is which of them."""

    columns: np.ndarray
    """Their codes, one column per variable."""
    weights: np.ndarray
    """What the rows of each kind count for together."""
    n_empty: int
    """How many rows had no observed cell."""
    used: np.ndarray
    """The positions of the rows that count."""
    inverse: np.ndarray
    """The kind of each of those."""


def kinds_of_rows(codes: Codes, sample_weight: np.ndarray | None) -> Kinds:
    """Return the distinct rows of a table, in an order that does not depend on its own."""
    weights = np.ones(codes.n_rows) if sample_weight is None else sample_weight
    observed = n_observed(codes.columns) > 0
    used = np.flatnonzero(observed & (weights > _NEGLIGIBLE * weights.sum()))
    columns = codes.columns if len(used) == codes.n_rows else codes.columns[:, used]
    firsts, inverse = _distinct(columns, codes.domain.sizes)
    sums = np.bincount(inverse, weights=weights[used], minlength=len(firsts))
    n_empty = int(codes.n_rows - observed.sum())
    return Kinds(columns[:, firsts], sums, n_empty, used, inverse)


def _distinct(columns: np.ndarray, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each kind, and the kind of each row."""
    room = math.prod(size + 1 for size in sizes)
    if room < 2**64:  # the row as one number
        radix = np.cumprod([1, *(size + 1 for size in sizes[:-1])], dtype=np.uint64)
    else:  # as a hash of it
        radix = _hash_radix(len(sizes))
    keys = row_keys(columns, radix)
    _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if room >= 2**64 and any((column[firsts][inverse] != column).any() for column in columns):
        _, firsts, inverse = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    return firsts, inverse


def _hash_radix(n_variables: int) -> np.ndarray:
    odd = 2 * np.random.default_rng(0).integers(2**63, size=n_variables) + 1
    return odd.astype(np.uint64)


def row_hashes(columns: np.ndarray) -> np.ndarray:
    """Return a hash of each row whose sums tell tables apart.

    Sums of plain keys would not: they follow from how often each level was seen.
    """
    keys = row_keys(columns, _hash_radix(len(columns)))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # as SplitMix64
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return keys ^ (keys >> np.uint64(31))


class Stacks:
    """Models of one rank as `stacks`, in the form that the E-step reads.

    A stack has the factors of all variables, one row per level, and the weights as the last row;
    columns are padded with zeros to whole vectors.
    """

    def __init__(self, domain: Domain, rank: int) -> None:
        self.rank = rank
        self.width = padded_width(rank)
        self.n_levels = int(domain.offsets[-1])

    def empty_stack(self) -> np.ndarray:
        """Return a stack of zeros."""
        return aligned_zeros(self.n_levels + 1, self.width)

    def stack(self, point: Point) -> np.ndarray:
        """Return a point as a stack."""
        return stack_of(point.weights, point.factors)

    def point(self, stack: np.ndarray) -> Point:
        """Return the point that a stack is."""
        return Point(stack[-1, : self.rank], stack[:-1, : self.rank])


class Expectation(Stacks):
    """The E-step of some rows for models of one rank, with its working memory."""

    def __init__(self, rows: _Weighted, rank: int, chunk_bytes: int = CHUNK_BYTES) -> None:
        super().__init__(rows.domain, rank)
        self.rows = rows
        self._lanes = lanes_of(panel_width(rank))
        size = 8 * (self.n_levels + 1) * self.width
        n_chunks = min(len(rows) // CHUNK_ROWS, MAX_CHUNKS, chunk_bytes // size)
        self._bounds = np.linspace(0, len(rows), max(n_chunks, 1) + 1).astype(np.int64)
        self._logs = np.empty(len(rows))

    @cached_property
    def _counts(self) -> list[np.ndarray]:
        """The sums of each chunk; who asks for log-likelihoods only needs none."""
        return [self.empty_stack() for _ in self._bounds[1:]]

    def counts(self, stack: np.ndarray) -> tuple[np.ndarray, float]:
        """Return how often each level is expected with each component, and Σ log-likelihood."""
        self._run(stack, self._counts)
        counts = self._counts[0].copy()
        for chunk in self._counts[1:]:
            counts += chunk
        return counts, self._log_likelihood()

    def log_likelihoods(self, stack: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of each distinct row."""
        self._run(stack, [np.empty((0, self.width))] * (len(self._bounds) - 1))
        return self._logs.copy()

    def _log_likelihood(self) -> float:
        weights = self.rows.weights
        counted = np.zeros(len(weights))  # a row that counts for nothing may be impossible
        return float(np.multiply(weights, self._logs, out=counted, where=weights > 0).sum())

    def _run(self, stack: np.ndarray, counts: list[np.ndarray]) -> None:
        n_safe, unused = safe_cells(stack), np.empty((0, 0))

        def chunk(k: int) -> None:
            counts[k][:] = 0
            for rows, cells, ptr in self.rows.listed(self._bounds[k], self._bounds[k + 1]):
                weights, logs = self.rows.weights[rows], self._logs[rows]
                e_step(cells, ptr, weights, stack, n_safe, unused, counts[k], logs, self._lanes)

        run_all([partial(chunk, k) for k in range(len(counts))])


def log_likelihoods(rows: TableRows, point: Point) -> np.ndarray:
    """Return the log-likelihood of each distinct row under a model."""
    expectation = Expectation(rows, len(point.weights))
    return expectation.log_likelihoods(expectation.stack(point))


def mean_log_likelihood(rows: TableRows, point: Point) -> float:
    """Return the mean log-likelihood of the rows, by weight, under a model."""
    return float(np.multiply(rows.weights, log_likelihoods(rows, point)).sum()) / rows.total
