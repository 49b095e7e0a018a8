"""The coupled objective over all subsets of k variables, from rows: no marginal is ever formed.

Marginals are weighted by the rows that observe them, so that what the tables say together is a sum
over rows, and what the model says is a sum over the patterns of missing cells (docs/math.md, eqs.
28 to 30). Both are sums of elementary symmetric polynomials: one pass over the rows serves all
subsets, whatever their order. The norm of the tables is a constant, which is counted where that is
affordable and otherwise estimated from some of the subsets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.compiled.cells import n_observed
from jointpmf.compiled.symmetric import padded
from jointpmf.data.codes import Codes
from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError
from jointpmf.marginals.counting import count_tables
from jointpmf.marginals.tables import SparseTable, Table, TableLimits
from jointpmf.rows.distinct import distinct_codes
from jointpmf.rows.table import ColumnRows
from jointpmf.solvers.curvature import OwnBlocks, factor_changes, product_of
from jointpmf.solvers.least_squares import Block
from jointpmf.solvers.patterns import PatternCurvature, Patterns, PatternSums
from jointpmf.solvers.symmetric import SymmetricSums

if TYPE_CHECKING:
    from jointpmf.point import Point

Subset = tuple[int, ...]

_AT_ONCE, _CELLS_AT_ONCE = 2000, 2**22
"""Subsets that are counted at a time, and their cells."""

_ESTIMATED = 1e-4
"""Part of an estimated norm below which objectives are not told apart."""


@dataclass(frozen=True)
class Limits:
    """What is computed exactly, and what from some of the subsets or patterns.

    Attributes
    ----------
    refresh : int
        Sweeps after which all sums are computed afresh, because rounding adds up; with 1 a sweep
        depends on its point alone.
    min_groups : int
        Groups of variables that a sweep visits one after the other, at least: within a group,
        blocks do not see each other's new values. With as many groups as the order no step goes too
        far (eq. 30).
    most_curved : int
        Patterns of missing cells from which JᵀJ is made at most: it need not be exact.
    most_counted, few_counted : int
        Rows times subsets up to which all subsets are counted for the norm, and how many are
        counted where there are more.
    fewest_subsets, most_subsets : int
        How many subsets these are at least and at most.
    fewest_kept, most_kept : int
        How many of these subsets are kept at least, and their cells at most.
    """

    refresh: int = 10
    min_groups: int = 4
    most_curved: int = 64
    most_counted: int = 2 * 10**9
    few_counted: int = 3 * 10**8
    fewest_subsets: int = 200
    most_subsets: int = 4000
    fewest_kept: int = 20
    most_kept: int = 2 * 10**6

    def n_counted(self, n_subsets: int, n_rows: int) -> int:
        """Return how many subsets are counted for the norm: all where that is affordable.

        Examples
        --------
        >>> Limits().n_counted(100, n_rows=1000), Limits().n_counted(10**9, n_rows=10**6)
        (100, 300)
        """
        if n_subsets * n_rows <= self.most_counted:
            return n_subsets
        return min(max(self.few_counted // n_rows, self.fewest_subsets), self.most_subsets)


class ImplicitLeastSquares:
    """The coupled objective over all subsets of an order, seen by a solver as that of tables is.

    Parameters
    ----------
    rows : ColumnRows
        What was observed.
    rank, order : int
        Number of components, and of variables in a subset.
    limits : Limits, optional
        What is computed exactly.
    """

    def __init__(
        self, rows: ColumnRows, rank: int, order: int, limits: Limits | None = None
    ) -> None:
        self.limits = limits = limits or Limits()
        self.rows, self.domain, self.rank, self.order = rows, rows.domain, rank, order
        n_all = len(self.domain)
        if not 2 <= order <= n_all:
            raise JointPMFError(f"the order must be from 2 to {n_all}, not {order}")
        self._sums = SymmetricSums(rows.columns, self.domain.offsets, rows.weights, rank, order)
        self._triangle = np.triu_indices(rank)
        patterns = Patterns.of_rows(rows)
        self.n_patterns = len(patterns.weights)
        self._grams = PatternSums(patterns, len(self._triangle[0]), order)
        self._curved = patterns.some(limits.most_curved)
        self.n_subsets = math.comb(n_all, order)
        self._unit = _mean_count(rows, order)
        if not self._unit > 0:
            raise JointPMFError(f"no row has {order} observed cells")
        self._groups = _group_bounds(n_all, max(order, limits.min_groups))
        self._factors: np.ndarray | None = None
        self._age = 0
        is_counted = limits.n_counted(self.n_subsets, len(rows)) == self.n_subsets
        self._some = None if is_counted else _SomeSubsets.of_rows(rows, order, self._unit, limits)
        self.norm = (
            _counted_norm(rows, order) / self._unit if self._some is None else self._some.norm
        )

    floor = -math.inf
    """Real rows are never fitted exactly, and what an estimated norm leaves may be negative."""

    @property
    def resolution(self) -> float:
        """The objective below which improvements are not told apart."""
        return 0.0 if self._some is None else _ESTIMATED * self.norm

    def sweep(self, point: Point) -> Iterator[Block]:
        """Yield the block of each variable in turn, then that of the weights.

        Whoever iterates may write the block's new value into `point` before asking for the next:
        every block is seen with the newest values of all other groups.
        """
        self._load(point)
        self._age += 1
        for begin, end in zip(self._groups[:-1], self._groups[1:], strict=True):
            self._factors = None  # until the group is done: a sweep may be abandoned
            yield from self._blocks(begin, end, point.weights)
            self._sums.exchange(begin, end, point.factors)
            self._grams.exchange(begin, end, self._packed_grams(point))
        gram, cross = self._whole()
        self._factors = point.factors.copy()
        yield Block(None, gram, cross[:, None])

    def blocks(self, point: Point) -> list[Block]:
        """Return the blocks of all variables at one point."""
        self._load(point)
        return list(self._blocks(0, len(self.domain), point.weights))

    def _load(self, point: Point) -> None:
        """Bring all sums up to date, unless they are already."""
        is_current = self._factors is not None and np.array_equal(self._factors, point.factors)
        if is_current and self._age < self.limits.refresh:
            return
        self._factors = None  # until all is done: it may be interrupted
        self._sums.load(point.factors)
        self._grams.load(self._packed_grams(point))
        self._factors, self._age = point.factors.copy(), 0

    def _packed_grams(self, point: Point) -> np.ndarray:
        return self.factor_grams(point)[:, *self._triangle]

    def factor_grams(self, point: Point) -> np.ndarray:
        """Return the Gram matrix of each factor."""
        return factor_changes(point, point.factors, self.domain.offsets)

    def _blocks(self, begin: int, end: int, weights: np.ndarray) -> Iterator[Block]:
        offsets = self.domain.offsets
        crosses = self._sums.without(begin, end) * (weights / self._unit)
        grams = self._square(self._grams.without(begin, end) / self._unit)
        grams *= np.outer(weights, weights)
        first = int(offsets[begin])
        for n in range(begin, end):
            rows = slice(int(offsets[n]), int(offsets[n + 1]))
            cross = crosses[rows.start - first : rows.stop - first].T
            yield Block(rows, grams[n - begin], np.ascontiguousarray(cross))

    def _square(self, packed: np.ndarray) -> np.ndarray:
        """Return symmetric matrices from their upper triangles."""
        out = np.empty((*packed.shape[:-1], self.rank, self.rank))
        out[..., self._triangle[0], self._triangle[1]] = packed
        out[..., self._triangle[1], self._triangle[0]] = packed
        return out

    def _whole(self) -> tuple[np.ndarray, np.ndarray]:
        """Return gram and cross of the weights."""
        return self._square(self._grams.whole() / self._unit), self._sums.whole() / self._unit

    def relative_cost(self, point: Point) -> float:
        """Return the objective less its constant part, half the norm."""
        self._load(point)
        gram, cross = self._whole()
        return float(point.weights @ (0.5 * gram @ point.weights - cross))

    def cost(self, point: Point) -> float:
        """Return the objective; where the norm is estimated, that at this point from residuals."""
        known = self.relative_cost(point)
        if self._some is not None:
            self.norm = 2 * (self._some.cost(point, self.factor_grams(point)) - known)
        return 0.5 * self.norm + known

    def gradient(self, point: Point) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient, weights first."""
        self._load(point)
        gram, cross = self._whole()
        cost = 0.5 * self.norm + float(point.weights @ (0.5 * gram @ point.weights - cross))
        parts = [gram @ point.weights - cross]
        for block in self._blocks(0, len(self.domain), point.weights):
            parts.append((point.factors[block.rows] @ block.gram - block.cross.T).ravel())
        return cost, np.concatenate(parts)

    def curvature_at(self, point: Point) -> ImplicitCurvature:
        """Return JᵀJ at a point, as what multiplies by it; over some patterns if there are many."""
        sums = PatternCurvature(self._curved, self.factor_grams(point), self.order)
        return ImplicitCurvature(point, self.domain.offsets, sums, self._unit)


@dataclass(frozen=True)
class ImplicitCurvature:
    """JᵀJ of the objective over all subsets, at one point (eq. 31)."""

    point: Point
    offsets: np.ndarray
    sums: PatternCurvature
    unit: float

    @cached_property
    def others(self) -> np.ndarray:
        """e_{k−1} of the Gram matrices of all variables but one, for each."""
        return self.sums.others / self.unit

    @cached_property
    def whole(self) -> np.ndarray:
        """e_k of the Gram matrices of all variables."""
        return self.sums.whole / self.unit

    def times(self, vector: np.ndarray) -> np.ndarray:
        """Return JᵀJ times a vector, without forming JᵀJ."""
        point, offsets = self.point, self.offsets
        changes = factor_changes(point, vector[len(point.weights) :], offsets)
        moved, whole = self.sums.moved(changes / self.unit)
        return product_of(point, vector, offsets, (self.whole, self.others), (whole, moved))

    def own_blocks(self) -> OwnBlocks:
        """Return its blocks on the diagonal."""
        return OwnBlocks(self.point.weights, self.whole, self.others, self.offsets)


@dataclass(frozen=True)
class _SomeSubsets:
    """Some of the subsets, counted, from which the objective over all is estimated."""

    offsets: np.ndarray
    tables: list[_Seen]
    weights: np.ndarray

    @classmethod
    def of_rows(cls, rows: ColumnRows, order: int, unit: float, limits: Limits) -> _SomeSubsets:
        """Return subsets drawn at random, each with its share of the weight of all."""
        n_all = len(rows.domain)
        generator = np.random.default_rng(0)
        count = limits.n_counted(math.comb(n_all, order), len(rows))
        drawn = (generator.choice(n_all, order, replace=False) for _ in range(count))
        subsets = dict.fromkeys(tuple(sorted(subset.tolist())) for subset in drawn)
        tables: list[_Seen] = []
        n_kept = 0
        for table in _seen(rows, iter(subsets)):
            is_full = n_kept + len(table.counts) > limits.most_kept
            if is_full and len(tables) >= limits.fewest_kept:
                break
            tables.append(table)
            n_kept += len(table.counts)
        totals = np.array([table.counts.sum() for table in tables])
        weights = totals / unit * math.comb(n_all, order) / len(tables)
        return cls(rows.domain.offsets, tables, weights)

    @property
    def norm(self) -> float:
        """Weighted sum of the squared norms of the tables."""
        return float(self.weights @ [table.shares @ table.shares for table in self.tables])

    def cost(self, point: Point, grams: np.ndarray) -> float:
        """Return the objective, from cells that were seen and the Gram matrices of the factors."""
        squares = []
        for table in self.tables:
            fitted = np.ones((len(table.counts), len(point.weights)))
            gram = np.outer(point.weights, point.weights)
            for n, levels in zip(table.subset, table.levels, strict=True):
                fitted *= point.factors[self.offsets[n] + levels]
                gram *= grams[n]
            shares = table.shares
            squares.append(shares @ shares - 2 * shares @ (fitted @ point.weights) + gram.sum())
        return 0.5 * float(self.weights @ squares)


@dataclass(frozen=True)
class _Seen:
    """The cells of a subset's table that were seen: their levels, and what they count."""

    subset: Subset
    counts: np.ndarray
    levels_of: Callable[[], Sequence[np.ndarray]]

    @classmethod
    def of_table(cls, subset: Subset, table: Table) -> _Seen:
        """Return the cells of a table."""
        if isinstance(table, SparseTable):
            return cls(subset, table.values.astype(float), lambda: _levels(table.cells, table))
        cells = np.flatnonzero(table)
        return cls(subset, table.ravel()[cells].astype(float), lambda: _levels(cells, table))

    @classmethod
    def of_rows(cls, subset: Subset, rows: ColumnRows) -> _Seen:
        """Return the cells of a table that would be too large, as the distinct rows there are."""
        columns = rows.columns[list(subset)]
        whole = np.flatnonzero((columns >= 0).all(axis=0) & (rows.weights > 0))
        domain = Domain([rows.domain.variables[n] for n in subset])
        codes, weights = distinct_codes(Codes(domain, columns[:, whole].T), rows.weights[whole])
        return cls(subset, weights, lambda: list(codes.columns))

    @cached_property
    def levels(self) -> Sequence[np.ndarray]:
        """The level of each variable of the subset, for every cell."""
        return self.levels_of()

    @cached_property
    def shares(self) -> np.ndarray:
        """The probabilities of the cells."""
        return self.counts / (self.counts.sum() or 1.0)


def _levels(cells: np.ndarray, table: Table) -> Sequence[np.ndarray]:
    return [levels.astype(np.int32) for levels in np.unravel_index(cells, table.shape)]


def _seen(rows: ColumnRows, subsets: Iterator[Subset]) -> Iterator[_Seen]:
    """Yield the tables of subsets, of which only some are in memory at a time."""
    codes = Codes(rows.domain, rows.columns.T)
    for batch, n_cells in _batches(subsets, rows.domain.sizes):
        if n_cells > TableLimits.max_scratch:  # of one table
            yield _Seen.of_rows(batch[0], rows)
            continue
        for subset, table in zip(batch, count_tables(codes, batch, rows.weights), strict=True):
            yield _Seen.of_table(subset, table)


def _batches(subsets: Iterator[Subset], sizes: Sequence[int]) -> Iterator[tuple[list[Subset], int]]:
    """Yield subsets, as many at a time as can be counted in little memory, and their cells."""
    batch: list[Subset] = []
    n_cells = 0
    for subset in subsets:
        n_more = math.prod(sizes[n] + 1 for n in subset)  # one for what is missing
        if batch and (len(batch) == _AT_ONCE or n_cells + n_more > _CELLS_AT_ONCE):
            yield batch, n_cells
            batch, n_cells = [], 0
        batch.append(subset)
        n_cells += n_more
    if batch:
        yield batch, n_cells


def _group_bounds(n_all: int, n_groups: int) -> list[int]:
    """Return where the groups of variables begin that a sweep visits in turn, and where all end.

    Examples
    --------
    >>> _group_bounds(10, n_groups=4)
    [0, 2, 5, 7, 10]
    """
    return np.linspace(0, n_all, min(n_groups, n_all) + 1).astype(int).tolist()


def bytes_of_sums(rank: int, order: int, has_holes: bool) -> int:
    """Return what is kept of each row: e_1 … e_k, and power sums of its own pattern at worst.

    Examples
    --------
    >>> bytes_of_sums(rank=10, order=3, has_holes=False)
    288
    """
    n_numbers = order * padded(rank, order)
    if has_holes:
        n_numbers += (order - 2) * rank * (rank + 1) // 2
    return 8 * n_numbers


def _mean_count(rows: ColumnRows, order: int) -> float:
    """Return the mean over all subsets of the weight of the rows that observe them."""
    n_all = len(rows.columns)
    ways = np.array([math.comb(n, order) for n in range(n_all + 1)], float)
    by_length = np.bincount(n_observed(rows.columns), rows.weights, minlength=n_all + 1)
    return float(ways @ by_length) / math.comb(n_all, order)


def _counted_norm(rows: ColumnRows, order: int) -> float:
    """Return Σ over all subsets of the squared norm of their counts, divided by their sum."""
    subsets = combinations(range(len(rows.domain)), order)
    return sum(float(table.counts @ table.shares) for table in _seen(rows, subsets))
