"""What a report needs of a table, added up over its parts, which need not be in memory at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.codes import Codes, checked_weights
from jointpmf.data.encode import encode
from jointpmf.errors import JointPMFError
from jointpmf.evidence import posterior_of_rows
from jointpmf.judge.posteriors import ComponentTally
from jointpmf.marginals.counts import MarginalCounts
from jointpmf.rows.weighted import DistinctRows
from jointpmf.show.report.comparison import compared_pairs

if TYPE_CHECKING:
    from jointpmf.judge.goodness import Goodness
    from jointpmf.pmf import JointPMF


class Tally:
    """What a report needs of a table, added up over its parts.

    Parameters
    ----------
    pmf : JointPMF
        The model that the rows are compared with.
    subsets : sequence of sequences of str
        The marginals to count, for the comparison with the model's.
    max_numbers : int
        Numbers that are in memory at a time for the responsibilities of rows.
    most_cells : int
        Cells of distinct rows that are kept with how often they occur. In a table of more, whole
        rows are not compared with the model.
    """

    def __init__(
        self,
        pmf: JointPMF,
        subsets: Sequence[Sequence[str]] = (),
        max_numbers: int = 2**22,
        most_cells: int = 2**22,
    ) -> None:
        self.pmf, self.max_numbers, self.distinct = pmf, max_numbers, DistinctRows(most_cells)
        self._factors = np.concatenate([np.zeros((0, pmf.rank)), *pmf.factors])
        self.counts = MarginalCounts(pmf.domain, subsets)
        self.levels = [np.zeros(size) for size in pmf.domain.sizes]
        """How often each level was observed, weighted by row."""
        self.n_cells = np.zeros(len(pmf.domain), np.int64)
        """How many cells of each variable are observed."""
        self.n_rows = self.n_empty = self.n_impossible = 0
        self.n_unknown = 0
        """Cells whose level the model does not know, which count as missing."""
        self.is_weighted = False
        self.weight = 0.0
        """Total weight of the rows with an observed cell."""
        self.first_impossible: int | None = None
        self.log_likelihood = 0.0
        """Of the possible rows with an observed cell."""
        self.components = ComponentTally(pmf)
        """How large and how clear the components are, by those rows."""

    @classmethod
    def of_table(
        cls, pmf: JointPMF, table: Any, sample_weight: Any = None, *, counts_pairs: bool
    ) -> Tally:
        """Return the tally of a whole table, with or without its marginals of two variables."""
        codes = encode(table, pmf.domain)
        if not codes.n_rows:
            raise JointPMFError("the table has no rows to report on")
        tally = cls(pmf, compared_pairs(pmf.domain) if counts_pairs else ())
        tally.add(codes, sample_weight)
        if tally.is_weighted and not np.any(sample_weight):
            raise JointPMFError("the sample weights of all rows are 0")
        return tally

    def add(self, codes: Codes, sample_weight: Any = None) -> None:
        """Count more rows."""
        weights = checked_weights(sample_weight, codes.n_rows)
        self.is_weighted = self.is_weighted or weights is not None
        if self.counts.subsets:
            self.counts.add(codes, weights)
        for n, size in enumerate(codes.domain.sizes):
            column = codes.columns[n]
            is_observed = column >= 0
            counted = None if weights is None else weights[is_observed]
            self.levels[n] += np.bincount(column[is_observed], counted, minlength=size)
            self.n_cells[n] += is_observed.sum()
        self.distinct.add(codes, weights)
        if weights is None:
            weights = np.ones(codes.n_rows)
        size = max(self.max_numbers // max(self.pmf.rank, len(self.pmf.domain)), 1)
        for begin in range(0, codes.n_rows, size):
            part = slice(begin, begin + size)
            self._add_rows(Codes(codes.domain, codes.array[part]), weights[part])

    def goodness(self) -> Goodness | None:
        """Return how well whole rows fit the model; None if there are too many to compare."""
        from jointpmf.judge.goodness import goodness_of_fit

        rows = self.distinct.whole()
        return None if rows is None else goodness_of_fit(self.pmf, *rows, has_pairs=False)

    def _add_rows(self, codes: Codes, weights: np.ndarray) -> None:
        posterior, logs = posterior_of_rows(codes, self.pmf.weights, self._factors)
        is_possible = (logs > -np.inf) | (weights == 0)  # rows of weight 0 do not count
        is_seen = (codes.array >= 0).any(axis=1)
        if self.first_impossible is None and not is_possible.all():
            self.first_impossible = self.n_rows + int(is_possible.argmin())
        self.n_rows += codes.n_rows
        self.n_empty += int((~is_seen).sum())
        self.n_impossible += int((~is_possible).sum())
        counts = is_possible & is_seen & (weights > 0)
        self.weight += float(weights[is_seen].sum())
        self.log_likelihood += float(weights[counts] @ logs[counts])
        self.components.add(posterior[counts], weights[counts])

    @property
    def n_observed(self) -> int:
        """How many cells are observed."""
        return int(self.n_cells.sum())

    @property
    def shares_missing(self) -> np.ndarray:
        """The share of each variable's cells that is missing."""
        return 1 - self.n_cells / self.n_rows if self.n_rows else np.zeros(len(self.levels))

    @property
    def share_missing(self) -> float:
        """The share of all cells that is missing."""
        return float(self.shares_missing.mean()) if len(self.levels) else 0.0

    @property
    def sharpness(self) -> float | None:
        """How clearly rows belong to one component: 1 is certain, 0 not at all; None at rank 1."""
        if self.pmf.rank == 1 or not self.components.total:
            return None
        return self.components.relative_entropy

    @property
    def typical_probability(self) -> tuple[float, float] | None:
        """The probability of an observed cell by the model, and by its variable's own frequencies.

        Geometric means; None where a row is impossible or nothing is observed.
        """
        total = float(sum(counts.sum() for counts in self.levels))
        if self.n_impossible or not total:
            return None
        alone = 0.0
        for counts in self.levels:
            seen = counts[counts > 0]
            alone += float((seen * np.log(seen / seen.sum())).sum())
        return math.exp(self.log_likelihood / total), math.exp(alone / total)
