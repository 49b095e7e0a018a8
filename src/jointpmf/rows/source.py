"""What a fit needs of rows, wherever they are, and a table in memory that offers it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.errors import JointPMFError, listing
from jointpmf.rows.table import ExpectedCounts, TableRows, drawn_by_weight, rows_of_codes

if TYPE_CHECKING:
    from jointpmf.domain import Domain


class Source(Protocol):
    """Rows with weights that stay where they are, and sums over them."""

    @property
    def domain(self) -> Domain:
        """What can happen."""

    @property
    def n_rows(self) -> int:
        """How many rows are kept; those that repeat may be kept once."""

    @property
    def n_empty(self) -> int:
        """How many rows had no observed cell; they say nothing."""

    @property
    def total(self) -> float:
        """The weight of all rows."""

    @property
    def counts(self) -> np.ndarray:
        """How often each level of each variable was seen."""

    @property
    def marginal(self) -> np.ndarray:
        """The probability of each level of each variable."""

    @property
    def digest(self) -> str:
        """What a checkpoint knows these rows by."""

    def expectation(self, rank: int) -> ExpectedCounts:
        """Return the E-step for models of a rank."""

    def sample(self, size: int, seed: int) -> tuple[Codes, np.ndarray]:
        """Return about `size` rows, or all if there are no more, and how often each was drawn."""


@dataclass(frozen=True)
class Table:
    """A table in memory, as a source."""

    codes: Codes
    weights: np.ndarray | None = field(repr=False)
    rows: TableRows = field(repr=False)

    @classmethod
    def of_codes(cls, codes: Codes, weights: np.ndarray | None = None) -> Table:
        """Return a table as a source."""
        return cls(codes, weights, rows_of_codes(codes, weights))

    @property
    def domain(self) -> Domain:
        """What can happen."""
        return self.codes.domain

    @property
    def n_rows(self) -> int:
        """How many distinct rows there are."""
        return len(self.rows)

    @property
    def n_empty(self) -> int:
        """How many rows had no observed cell."""
        return self.rows.n_empty

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return self.rows.total

    @property
    def counts(self) -> np.ndarray:
        """How often each level of each variable was seen."""
        return self.rows.counts

    @property
    def marginal(self) -> np.ndarray:
        """The probability of each level of each variable."""
        return self.rows.marginal

    @cached_property
    def digest(self) -> str:
        """What a checkpoint knows the table by."""
        return digest_of(*parts_of_domain(self.domain), self.codes.columns)

    def expectation(self, rank: int) -> ExpectedCounts:
        """Return the E-step for models of a rank."""
        return self.rows.expectation(rank)

    def sample(self, size: int, seed: int) -> tuple[Codes, np.ndarray]:
        """Return about `size` rows, or all if there are no more, and how often each was drawn."""
        rows, generator = self.rows, np.random.default_rng(seed)
        if len(rows) > size:
            drawn, weights = drawn_by_weight(rows.weights, size / rows.total, generator)
        else:
            drawn = np.flatnonzero(rows.weights)
            weights = rows.weights[drawn]
        some = rows.taken(drawn)
        return Codes(self.domain, some.columns.T), weights

    def taken(self, which: np.ndarray) -> Table:
        """Return some of the rows, by a mask or by their positions."""
        part = Codes(self.domain, self.codes.array[which])
        return Table.of_codes(part, None if self.weights is None else self.weights[which])


def check_table(codes: Codes, weights: np.ndarray | None) -> None:
    """Raise unless every column has an observed cell in a row that counts."""
    if not codes.n_rows or not len(codes.domain):
        raise JointPMFError("the table is empty: there is nothing to fit")
    counts = np.ones(codes.n_rows, bool) if weights is None else weights > 0
    if not counts.any():
        raise JointPMFError("all sample weights are zero")
    seen = [bool(((column >= 0) & counts).any()) for column in codes.columns]
    if not all(seen):
        unseen = [n for n, is_seen in zip(codes.domain.names, seen, strict=True) if not is_seen]
        raise JointPMFError(f"column {listing(unseen)} has no observed cell")


def check_levels(domain: Domain, counts: np.ndarray) -> None:
    """Raise unless every column has an observed cell in a row that counts."""
    if not counts.any():
        raise JointPMFError("no row has an observed cell and a weight")
    seen = np.add.reduceat(counts, domain.offsets[:-1]) > 0
    if not seen.all():
        raise JointPMFError(f"column {domain.names[int(seen.argmin())]!r} has no observed cell")


def digest_of(*parts: Any) -> str:
    """Return the SHA-256 of arrays and of anything else whose `repr` says all about it."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape};".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(f"{part!r};".encode())
    return f"sha256:{digest.hexdigest()}"


def is_digest(value: Any) -> bool:
    """Tell whether a value is what `digest_of` returns."""
    return isinstance(value, str) and value.startswith("sha256:")


def parts_of_domain(domain: Domain) -> list[Any]:
    """Return what of a domain a fit depends on: how its levels are called does not matter."""
    return [domain.names, domain.sizes, [variable.values for variable in domain]]
