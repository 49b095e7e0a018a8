"""The same rows, each counting for more or for less at random: what a replicate of a fit sees.

Rows that were drawn together, as the people of one household, get one weight together; so the
replicates differ as other samples of the same design would (docs/math.md, eq. 68).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.domain import is_missing
from jointpmf.errors import JointPMFError, shown
from jointpmf.rows.distinct import Kinds, kinds_of_rows
from jointpmf.rows.parts import PartedRows, Parts, Reweighted, S, Task
from jointpmf.rows.source import Source, Table
from jointpmf.rows.table import Rows

Draw = Callable[[int], Source]
"""Gives the rows as replicate number k sees them."""


@dataclass(frozen=True)
class Design:
    """Which rows were drawn together, within which strata.

    Attributes
    ----------
    cluster : array of shape (rows,) or None
        The number of each row's cluster; None if each row was drawn by itself, in one stratum.
    stratum : array of shape (clusters,)
        The number of each cluster's stratum; clusters are numbered stratum by stratum.
    """

    cluster: np.ndarray | None
    stratum: np.ndarray

    @classmethod
    def of(cls, groups: Any, strata: Any, n_rows: int) -> Design:
        """Return the design that labels of the rows tell; a group is one within its stratum."""
        if groups is None and strata is None:
            if n_rows < 2:
                raise JointPMFError("one row cannot be resampled: there is nothing to vary")
            return cls(None, np.zeros(n_rows, np.int64))
        stratum = np.zeros(n_rows, np.int64)
        kinds: np.ndarray = np.zeros(1)
        if strata is not None:
            kinds, stratum = _labels(strata, "strata", n_rows)
        group = np.arange(n_rows) if groups is None else _labels(groups, "groups", n_rows)[1]
        pairs, cluster = np.unique(stratum * (group.max() + 1) + group, return_inverse=True)
        of_cluster = pairs // (group.max() + 1)
        alone = np.flatnonzero(np.bincount(of_cluster) == 1)
        if len(alone):
            where = "" if strata is None else f"stratum {shown(kinds[alone[0]].item())}: "
            raise JointPMFError(
                f"{where}there is one cluster, so that nothing tells how clusters differ; "
                + ("give more groups" if strata is None else "merge it with another stratum")
            )
        return cls(cluster, of_cluster)

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many clusters each stratum has."""
        return np.bincount(self.stratum)

    def factors(self, how: str, generator: np.random.Generator) -> np.ndarray:
        """Return what multiplies the weight of each row: one on average in every stratum."""
        drawn = self._counts(generator) if how == "multinomial" else self._shares(generator)
        return drawn if self.cluster is None else drawn[self.cluster]

    def _shares(self, generator: np.random.Generator) -> np.ndarray:
        """Return Dirichlet shares whose variance is that of a mean of so many clusters (eq. 68)."""
        sizes = self.sizes
        drawn = generator.standard_gamma(((sizes - 2) / sizes)[self.stratum])
        pairs = np.flatnonzero(sizes == 2)  # of two, one counts for both
        first = np.searchsorted(self.stratum, pairs)
        drawn[first + generator.integers(2, size=len(pairs))] = 1.0
        return drawn * (sizes / np.bincount(self.stratum, drawn))[self.stratum]

    def _counts(self, generator: np.random.Generator) -> np.ndarray:
        """Return how often each of a stratum's clusters is among one fewer draws than it has."""
        sizes = self.sizes
        first = np.cumsum(sizes) - sizes
        where = np.repeat(np.arange(len(sizes)), sizes - 1)
        drawn = first[where] + generator.integers(sizes[where])
        counts = np.bincount(drawn, minlength=len(self.stratum))
        return counts * (sizes / (sizes - 1))[self.stratum]


def _labels(labels: Any, what: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, and which of them each row has."""
    try:
        found = np.asarray(labels)
        kinds, codes = np.unique(found, return_inverse=True)
    except (TypeError, ValueError, ArithmeticError):  # of Decimals that cannot be compared too
        raise JointPMFError(f"{what} must be one label per row, all numbers or all text") from None
    if found.shape != (n_rows,):
        raise JointPMFError(
            f"{what} must be one label for each of {n_rows} rows, not {shown(labels)}"
        )
    lacking = [k for k, label in enumerate(found.tolist()) if is_missing(label)]
    if lacking:
        raise JointPMFError(f"{what} of row {lacking[0]} is missing")
    return kinds, codes


def resampled(source: Source, how: str, groups: Any, strata: Any, seed: int) -> Draw:
    """Return what gives the rows with other weights, for each replicate; wherever they are."""
    if isinstance(source, Table):
        design = Design.of(groups, strata, source.codes.n_rows)
        return _TableDraws(source, design, how, seed).drawn
    if groups is not None or strata is not None:
        raise JointPMFError("groups and strata need rows in memory")
    assert isinstance(source, PartedRows)
    parts, are_counts = source.parts, not source.is_weighted
    return lambda k: PartedRows(_ReweightedParts(parts, how, seed, k, are_counts))


@dataclass(frozen=True)
class _TableDraws:
    """A table in memory whose distinct rows were found once."""

    table: Table
    design: Design
    how: str
    seed: int

    @cached_property
    def _kinds(self) -> Kinds | None:
        """The distinct rows, and which row is which; None if all rows are kept."""
        if not isinstance(self.table.rows, Rows):
            return None
        return kinds_of_rows(self.table.codes, self.table.weights)

    @cached_property
    def _codes(self) -> Codes:
        kinds = self._kinds
        return self.table.codes if kinds is None else Codes(self.table.domain, kinds.columns.T)

    def drawn(self, k: int) -> Table:
        """Return the table as the k-th replicate sees it."""
        factors = self.design.factors(self.how, np.random.default_rng((self.seed, k)))
        own, rows, kinds = self.table.weights, self.table.rows, self._kinds
        weights = factors if own is None else own * factors
        if kinds is None:
            weights = np.where(rows.weights == 0, 0.0, weights)
        else:
            weights = np.bincount(kinds.inverse, weights[kinds.used], minlength=len(rows))
        return Table(self._codes, weights, replace(rows, weights=weights))


class _ReweightedParts:
    """A table in parts as one replicate sees it; the rows stay where they are."""

    def __init__(self, parts: Parts, *seen_as: Any) -> None:
        self.domain = parts.domain
        self._parts, self._seen_as = parts, seen_as

    def total(self, task: Task[S]) -> S:
        """Return the sum of a task's results over all parts."""
        return self._parts.total(Reweighted(task, *self._seen_as))
