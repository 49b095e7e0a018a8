"""Tables that are not in memory at once: rows in parts, and sums over the parts.

Everything a fit asks of rows is a sum: counts of levels, the expected counts of an EM step, rows
drawn at random. So whoever holds the parts (a file, Dask, Spark) only has to
run a *task* on each of them and to merge what comes out; a task is small, and so is its result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.rows.distinct import row_hashes
from jointpmf.rows.expectation import Stacks
from jointpmf.rows.source import Table, digest_of
from jointpmf.rows.table import (
    ColumnRows,
    TableRows,
    drawn_by_weight,
    marginal_of_counts,
    rows_of_codes,
)

if TYPE_CHECKING:
    from jointpmf.domain import Domain


@dataclass(frozen=True)
class Part:
    """Some rows of a table, and which part of it they are."""

    index: int
    rows: TableRows

    @classmethod
    def of_codes(cls, index: int, codes: Codes, weights: np.ndarray | None = None) -> Part:
        """Return a part of a table."""
        return cls(index, ColumnRows.of_codes(codes, weights))

    @classmethod
    def to_keep(cls, index: int, codes: Codes) -> Part:
        """Return a part that will be asked many times, so that some work is worth doing first."""
        return cls(index, rows_of_codes(codes))

    @property
    def codes(self) -> Codes:
        """Its rows as a table, in which those that were seen several times are once."""
        return Codes(self.rows.domain, self.rows.columns.T)

    def __sizeof__(self) -> int:
        arrays = [array for array in vars(self.rows).values() if isinstance(array, np.ndarray)]
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays)


class Sum(Protocol):
    """What a task returns, of a size that does not grow with the rows."""

    def merged(self, other: Self) -> Self:
        """Return the sum over the parts of both."""


S = TypeVar("S", bound=Sum)
S_co = TypeVar("S_co", bound=Sum, covariant=True)


class Task(Protocol[S_co]):
    """What is done with each part; a small object that can travel."""

    def __call__(self, part: Part) -> S_co:
        """Return this part's share."""


class Parts(Protocol):
    """A table in parts, and who works on them."""

    domain: Domain

    def total(self, task: Task[S]) -> S:
        """Return the sum of a task's results over all parts, always in the same order."""


class _Added:
    """Sums that merge field by field."""

    def merged(self, other: Self) -> Self:
        """Return the sums of both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return type(self)(*(own + more for own, more in pairs))


@dataclass(frozen=True)
class LevelCounts(_Added):
    """How often each level was seen, how many rows there are, and what they weigh."""

    counts: np.ndarray
    n_rows: int
    weight: float
    n_empty: int


@dataclass(frozen=True)
class CountLevels:
    """The task of counting levels."""

    def __call__(self, part: Part) -> LevelCounts:
        """Return the counts of a part."""
        rows = part.rows
        return LevelCounts(rows.counts, len(rows), rows.total, rows.n_empty)


@dataclass(frozen=True)
class RowHash(_Added):
    """A number that tells tables apart, modulo 2⁶⁴, whatever the order of their rows."""

    value: int


@dataclass(frozen=True)
class HashRows:
    """The task of hashing all rows."""

    def __call__(self, part: Part) -> RowHash:
        """Return the hash of a part, in which a row that was seen twice counts twice."""
        weights = part.rows.weights
        marks = weights.view(np.uint64).copy()  # of weights that are no counts, all bits
        is_count = (weights < 2**53) & (weights % 1 == 0)
        marks[is_count] = weights[is_count].astype(np.uint64)
        return RowHash(int((row_hashes(part.rows.columns) * marks).sum()))


def fingerprint_of(table: Table) -> int:
    """Return a number that tells tables in memory apart, whatever the order of their rows."""
    return HashRows()(Part(0, table.rows)).value % 2**64


@dataclass(frozen=True)
class Expected(_Added):
    """What an EM step needs to know of rows: expected counts, and the log-likelihood."""

    counts: np.ndarray
    log_likelihood: float


@dataclass(frozen=True)
class Expect:
    """The task of an E-step at one model."""

    stack: np.ndarray
    rank: int

    def __call__(self, part: Part) -> Expected:
        """Return the expected counts of a part."""
        return Expected(*part.rows.expectation(self.rank).counts(self.stack))


@dataclass(frozen=True)
class Sample:
    """Some rows, and how often each was drawn."""

    columns: np.ndarray
    weights: np.ndarray

    def merged(self, other: Sample) -> Sample:
        """Return the rows of both."""
        return Sample(
            np.concatenate([self.columns, other.columns], axis=1),
            np.concatenate([self.weights, other.weights]),
        )


@dataclass(frozen=True)
class DrawSample:
    """The task of drawing rows, each `rate` times its weight on average; or all of them."""

    rate: float | None
    seed: int

    def __call__(self, part: Part) -> Sample:
        """Return what is drawn of a part."""
        weights = part.rows.weights
        if self.rate is None:
            drawn = np.flatnonzero(weights)
            return Sample(np.take(part.rows.columns, drawn, axis=1), weights[drawn])
        generator = np.random.default_rng((self.seed, part.index))
        drawn, counts = drawn_by_weight(weights, self.rate, generator)
        return Sample(np.take(part.rows.columns, drawn, axis=1), counts)


@dataclass(frozen=True)
class Reweighted:
    """The task of doing another one with the rows of a part as one replicate sees them."""

    task: Any
    how: str
    seed: int
    replicate: int
    are_counts: bool = True
    """Whether a weight is how many rows were put together; else each row is one, of any weight."""

    def __call__(self, part: Part) -> Any:
        """Return what the task gives."""
        # a counter and no state: whoever has the part draws the same, and again after a failure
        bits = np.random.Philox(key=self.seed, counter=[0, 0, self.replicate, part.index])
        generator, weights = np.random.Generator(bits), part.rows.weights
        counts = weights if self.are_counts else np.ones(len(weights))
        if self.how == "multinomial":
            drawn = generator.poisson(counts).astype(float)
        else:
            drawn = generator.standard_gamma(counts)
        new = drawn if self.are_counts else weights * drawn
        return self.task(Part(part.index, replace(part.rows, weights=new)))


class PartedRows:
    """Rows in parts, as a source."""

    is_weighted = False
    """Whether rows have weights of their own, which are not how often each was seen."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.domain = parts.domain

    @cached_property
    def levels(self) -> LevelCounts:
        """How often each level was seen, and the size of it all."""
        return self.parts.total(CountLevels())

    @property
    def n_rows(self) -> int:
        """How many rows are kept; those that repeat within a part may be kept once."""
        return self.levels.n_rows

    @property
    def n_empty(self) -> int:
        """How many rows had no observed cell."""
        return self.levels.n_empty

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return self.levels.weight

    @property
    def counts(self) -> np.ndarray:
        """How often each level of each variable was seen."""
        return self.levels.counts

    @cached_property
    def marginal(self) -> np.ndarray:
        """The probability of each level of each variable."""
        return marginal_of_counts(self.levels.counts, self.domain)

    @property
    def digest(self) -> str:
        """What a checkpoint knows the table by: its size, its levels and a hash of its rows."""
        levels = self.levels
        sizes = (self.domain.names, self.domain.sizes, levels.n_rows, levels.n_empty, levels.weight)
        return digest_of(*sizes, levels.counts, self.parts.total(HashRows()).value % 2**64)

    def expectation(self, rank: int) -> PartedExpectation:
        """Return the E-step for models of a rank."""
        return PartedExpectation(self.parts, rank)

    def sample(self, size: int, seed: int) -> tuple[Codes, np.ndarray]:
        """Return about `size` rows, or all if there are no more, and how often each was drawn."""
        rate = size / self.total if self.levels.n_rows > size else None
        drawn = self.parts.total(DrawSample(rate, seed))
        return Codes(self.domain, drawn.columns.T), drawn.weights


class PartedExpectation(Stacks):
    """The E-step over rows in parts: one pass, only sums come back."""

    def __init__(self, parts: Parts, rank: int) -> None:
        super().__init__(parts.domain, rank)
        self._parts = parts

    def counts(self, stack: np.ndarray) -> tuple[np.ndarray, float]:
        """Return how often each level is expected with each component, and Σ log-likelihood."""
        found = self._parts.total(Expect(stack, self.rank))
        return found.counts, found.log_likelihood
