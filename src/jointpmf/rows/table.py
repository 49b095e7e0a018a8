"""Rows against components: the E-step, compiled and shared over threads.

A row is the list of its observed cells, each the position of a level among all levels of all
variables. Rows are taken in fixed chunks that have sums of their own, so that the bits depend
neither on the number of threads nor on the size of a block (docs/math.md, eq. 20).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from jointpmf.compiled.aligned import aligned_zeros
from jointpmf.compiled.loops import compiled
from jointpmf.compiled.vectors import (
    LANES,
    MAX_LANES,
    add_row,
    multiply_long_row,
    multiply_row,
)
from jointpmf.data.codes import Codes, code_dtype
from jointpmf.domain import MISSING, Domain
from jointpmf.point import Point
from jointpmf.threads import row_blocks, run_all

BLOCK_ROWS = 64
"""Rows whose posteriors are held at once; any number gives the same bits."""

CHUNK_ROWS, MAX_CHUNKS, CHUNK_BYTES = 1024, 32, 2**26
"""Rows of a chunk at least, how many chunks there are at most, and the memory of their sums."""

SMALLEST = 1e-30
"""Smaller probabilities of a level are zero: so few can be told apart in a product."""

SAFE = 250.0
"""Decimal digits that a product may lose: doubles have 308, and weights of rows need some."""

NEGLIGIBLE = 1e-20
"""Rows with less than this part of all weight change nothing, and are left out."""

LN2 = np.log(2.0)

POWERS = np.append(2.0 ** -np.arange(1000), 0.0)
"""Powers of two by which one component may lie behind another; further behind is zero."""

IMPOSSIBLE = -(2**62)


MOST_LISTED = 2**28
"""Bytes of the longest list of cells that is made of a whole table; longer ones stay columns."""

LISTED_AT_ONCE = 2**17
"""Cells of such columns that are listed at a time, so that they stay near the processor."""

PROBE_ROWS = 2**16
"""Rows that tell whether rows repeat often enough to be worth finding."""


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

    def __len__(self) -> int:
        """Return the number of rows that are kept."""
        return len(self.weights)

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


@dataclass(frozen=True)
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
        columns, weights, n_empty = _distinct_columns(codes, sample_weight)
        return cls.of_columns(codes.domain, columns, weights, n_empty)

    @classmethod
    def of_columns(
        cls, domain: Domain, columns: np.ndarray, weights: np.ndarray, n_empty: int = 0
    ) -> Rows:
        """Return rows as they are, from columns of codes."""
        n_variables, n_rows = columns.shape
        ptr = np.zeros(n_rows + 1, np.int64)
        np.cumsum(n_observed(columns), out=ptr[1:])
        cells = np.empty(ptr[-1], cell_dtype(domain.offsets[-1]))
        step = max(LISTED_AT_ONCE // max(n_variables, 1), 1)
        room, own = np.empty(step * n_variables, cells.dtype), np.empty(step + 1, np.int64)
        for begin, end in row_blocks(n_rows, step):
            list_cells(columns, domain.offsets, begin, end, own, room)
            cells[ptr[begin] : ptr[end]] = room[: own[end - begin]]
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

    def expectation(self, rank: int) -> Expectation:
        """Return the E-step for models of a rank."""
        return Expectation(self, rank)

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


@dataclass(frozen=True)
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
            return cls(codes.domain, *_distinct_columns(codes, sample_weight))
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

    def expectation(self, rank: int) -> Expectation:
        """Return the E-step for models of a rank."""
        return Expectation(self, rank)

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


def cell_dtype(n_levels: int) -> type[np.unsignedinteger]:
    """Return the type of positions among all levels of all variables."""
    return np.uint16 if n_levels < 2**16 else np.uint32


def _often_repeat(codes: Codes) -> bool:
    """Tell whether at least half of the rows repeat others, by looking at some."""
    step = max(codes.n_rows // PROBE_ROWS, 1)
    firsts, _ = _distinct(codes.columns[:, ::step], codes.domain.sizes)
    return 2 * len(firsts) <= -(-codes.n_rows // step)


def distinct_codes(codes: Codes, sample_weight: np.ndarray | None) -> tuple[Codes, np.ndarray]:
    """Return the distinct rows of a table, in an order of their own, and their weights."""
    columns, weights, _ = _distinct_columns(codes, sample_weight)
    return Codes(codes.domain, columns.T), weights


def _distinct_columns(
    codes: Codes, sample_weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the columns of the distinct rows, their weights, and how many rows were empty."""
    weights = np.ones(codes.n_rows) if sample_weight is None else sample_weight
    observed = n_observed(codes.columns) > 0
    used = np.flatnonzero(observed & (weights > NEGLIGIBLE * weights.sum()))
    columns = codes.columns if len(used) == codes.n_rows else codes.columns[:, used]
    firsts, inverse = _distinct(columns, codes.domain.sizes)
    sums = np.bincount(inverse, weights=weights[used], minlength=len(firsts))
    return columns[:, firsts], sums, int(codes.n_rows - observed.sum())


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
        self.lanes = (0,) * panel_width(rank)
        self.width = -(-rank // len(self.lanes)) * len(self.lanes)
        self.n_levels = int(domain.offsets[-1])

    def empty_stack(self) -> np.ndarray:
        """Return a stack of zeros."""
        return aligned_zeros(self.n_levels + 1, self.width)

    def stack(self, point: Point) -> np.ndarray:
        """Return a point as a stack."""
        stack = self.empty_stack()
        stack[:-1, : self.rank] = point.factors
        stack[-1, : self.rank] = point.weights
        return stack

    def point(self, stack: np.ndarray) -> Point:
        """Return the point that a stack is."""
        return Point(stack[-1, : self.rank], stack[:-1, : self.rank])


class Expectation(Stacks):
    """The E-step of some rows for models of one rank, with its working memory."""

    def __init__(self, rows: TableRows, rank: int) -> None:
        super().__init__(rows.domain, rank)
        self.rows = rows
        size = 8 * (self.n_levels + 1) * self.width
        n_chunks = min(len(rows) // CHUNK_ROWS, MAX_CHUNKS, CHUNK_BYTES // size)
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
        return float(np.multiply(self.rows.weights, self._logs).sum())

    def _run(self, stack: np.ndarray, counts: list[np.ndarray]) -> None:
        digits = -math.log10(stack[stack > 0].min())
        n_safe = max(int(SAFE / max(digits, 1e-3)) - 1, 0)

        def chunk(k: int) -> None:
            counts[k][:] = 0
            begin, end = self._bounds[k], self._bounds[k + 1]
            arguments = (n_safe, begin, end, BLOCK_ROWS, counts[k], self._logs, self.lanes)
            if isinstance(self.rows, Rows):
                cells, ptr = self.rows.cells, self.rows.ptr
                add_expected_counts(cells, ptr, self.rows.weights, stack, *arguments)
            else:
                room = np.empty(LISTED_AT_ONCE, cell_dtype(self.n_levels))
                offsets, columns = self.rows.domain.offsets, self.rows.columns
                add_expected_counts_of_columns(
                    columns, offsets, room, self.rows.weights, stack, *arguments
                )

        run_all([partial(chunk, k) for k in range(len(counts))])


def log_likelihoods(rows: TableRows, point: Point) -> np.ndarray:
    """Return the log-likelihood of each distinct row under a model."""
    expectation = Expectation(rows, len(point.weights))
    return expectation.log_likelihoods(expectation.stack(point))


def mean_log_likelihood(rows: TableRows, point: Point) -> float:
    """Return the mean log-likelihood of the rows, by weight, under a model."""
    return float(np.multiply(rows.weights, log_likelihoods(rows, point)).sum()) / rows.total


def panel_width(count: int) -> int:
    """Return how many numbers one pass over a row serves: least padding, then most.

    Examples
    --------
    >>> panel_width(36)
    12
    """
    widths = range(LANES, MAX_LANES + 1, LANES)
    return min(widths, key=lambda width: (-(-count // width) * width, -width))


@compiled
def row_keys(columns, radix):
    """Return Σ over variables of (code + 1) · radix, modulo 2**64, for each row."""
    keys = np.zeros(columns.shape[1], np.uint64)
    for n in range(len(columns)):
        for row in range(columns.shape[1]):
            keys[row] += np.uint64(columns[n, row] + 1) * radix[n]
    return keys


@compiled
def n_observed(columns):
    """Return how many cells of each row are observed."""
    counts = np.zeros(columns.shape[1], np.int32)
    for n in range(len(columns)):
        for row in range(len(counts)):
            counts[row] += columns[n, row] >= 0
    return counts


@compiled
def add_level_counts(column, weights, counts):
    """Add the weight of each row to the count of its level."""
    for row in range(len(column)):
        if column[row] >= 0:
            counts[column[row]] += weights[row]


@compiled
def list_cells(columns, offsets, begin, end, ptr, cells):
    """Set cells[ptr[k]:ptr[k + 1]] to the observed cells of row begin + k, and ptr with it.

    Cells are positions in the stack. Columns are read along their length, as they lie in memory.
    """
    size = end - begin
    n_variables = len(columns)
    room = np.empty(size, np.int64)
    for k in range(size):
        room[k] = k * n_variables
    for n in range(n_variables):
        column = columns[n, begin:end]
        first = offsets[n]
        for k in range(size):
            cells[room[k]] = first + column[k]
            room[k] += column[k] >= 0
    ptr[0] = 0
    for k in range(size):
        count = room[k] - k * n_variables
        if ptr[k] < k * n_variables:
            for c in range(count):
                cells[ptr[k] + c] = cells[k * n_variables + c]
        ptr[k + 1] = ptr[k] + count


@compiled
def set_codes(cells, ptr, offsets, columns):
    """Set columns[n, row] to the code of each observed cell; those of a row are in order."""
    for row in range(len(ptr) - 1):
        n = 0
        for cell in cells[ptr[row] : ptr[row + 1]]:
            while offsets[n + 1] <= cell:
                n += 1
            columns[n, row] = cell - offsets[n]


@compiled
def add_expected_counts(
    cells, ptr, row_weights, factors, n_safe, begin, end, block, counts, logs, lanes
):
    """Add to `counts` what rows begin:end expect, and set logs[row] to their log-likelihoods.

    `n_safe` is how many cells can be multiplied without underflow. Without `counts` (no rows) only
    the log-likelihoods are computed.
    """
    width = len(lanes)
    rank = factors.shape[1]
    prior = len(factors) - 1
    posterior = np.empty((block, rank))
    exponents = np.empty((block, rank), np.int64)
    scales = np.empty(block)
    for first_row in range(begin, end, block):
        size = min(block, end - first_row)
        for k in range(size):
            row = first_row + k
            start, stop = ptr[row], ptr[row + 1]
            if stop - start <= n_safe:
                total = 0.0
                for first in range(0, rank, width):
                    total += multiply_row(
                        posterior, k, factors, prior, first, cells, start, stop, lanes
                    )
                power = 0
            else:
                for first in range(0, rank, width):
                    multiply_long_row(
                        posterior,
                        exponents,
                        k,
                        factors,
                        prior,
                        first,
                        cells,
                        start,
                        stop,
                        max(n_safe, 1),
                        lanes,
                    )
                total, power = _align(posterior, exponents, k)
            logs[row] = power
            scales[k] = total
        for k in range(size):
            logs[first_row + k] = np.log(scales[k]) + LN2 * logs[first_row + k]
        if len(counts) == 0:
            continue
        for k in range(size):
            row = first_row + k
            scale = row_weights[row] / scales[k] if scales[k] > 0.0 else 0.0
            for first in range(0, rank, width):
                add_row(
                    counts, prior, posterior, k, scale, first, cells, ptr[row], ptr[row + 1], lanes
                )


@compiled
def add_expected_counts_of_columns(
    columns, offsets, room, row_weights, factors, n_safe, begin, end, block, counts, logs, lanes
):
    """Do as `add_expected_counts`, from columns of codes; `room` is where cells are listed."""
    step = max(min(len(room) // max(len(columns), 1), end - begin) // block, 1) * block
    cells = room if len(room) >= step * len(columns) else np.empty(step * len(columns), room.dtype)
    ptr = np.empty(step + 1, np.int64)
    for first in range(begin, end, step):
        last = min(first + step, end)
        list_cells(columns, offsets, first, last, ptr, cells)
        add_expected_counts(
            cells,
            ptr,
            row_weights[first:last],
            factors,
            n_safe,
            0,
            last - first,
            block,
            counts,
            logs[first:last],
            lanes,
        )


@compiled
def _align(posterior, exponents, k):
    """Give all of posterior[k] its largest exponent; return the sum and that exponent."""
    rank = posterior.shape[1]
    top = IMPOSSIBLE
    for f in range(rank):
        if posterior[k, f] > 0.0 and exponents[k, f] > top:
            top = exponents[k, f]
    total = 0.0
    for f in range(rank):
        behind = min(top - exponents[k, f], len(POWERS) - 1) if posterior[k, f] > 0.0 else 0
        posterior[k, f] *= POWERS[behind]
        total += posterior[k, f]
    return total, top
