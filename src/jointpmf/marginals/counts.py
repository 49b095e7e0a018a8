"""`MarginalCounts`: counts that add up, over batches of rows and over machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from jointpmf.data.codes import Codes, checked_weights
from jointpmf.errors import JointPMFError, instance_of
from jointpmf.marginals.counting import count_tables, names_of_order, positions_of
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.marginals.tables import DEFAULT_LIMITS, Table, TableLimits, add

if TYPE_CHECKING:
    from jointpmf.domain import Domain


class MarginalCounts:
    """Counts of several subsets, to which rows can be added and other counts merged.

    Parameters
    ----------
    domain : Domain
        What can happen.
    subsets : sequence of sequences of str
        The names of each subset's variables.
    limits : TableLimits
        Which tables are kept sparse, and how they are counted.

    Examples
    --------
    >>> from jointpmf import Domain
    >>> domain = Domain.of_sizes([2, 2])
    >>> counts = MarginalCounts(domain, [("x0", "x1")])
    >>> counts.add(Codes(domain, [[0, 1], [1, -1], [0, 1]]))
    >>> counts.to_marginals()[0].table.tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        domain: Domain,
        subsets: Iterable[Sequence[str]],
        limits: TableLimits = DEFAULT_LIMITS,
    ) -> None:
        self.limits = instance_of(limits, TableLimits, "limits")
        self.domain = domain
        self.subsets = positions_of(domain, subsets)
        self.tables: list[Table] | None = None

    @classmethod
    def of_order(cls, domain: Domain, order: int) -> MarginalCounts:
        """Return counts of all subsets of so many variables.

        Examples
        --------
        >>> from jointpmf import Domain
        >>> len(MarginalCounts.of_order(Domain.of_sizes([2, 2, 3]), 2).subsets)
        3
        """
        return cls(domain, names_of_order(domain, order))

    def add(self, codes: Codes, sample_weight: Any = None) -> None:
        """Count more rows; codes are made by `encode`."""
        if not isinstance(codes, Codes):
            raise JointPMFError(f"rows are added as Codes, not as {type(codes).__name__}")
        if codes.domain != self.domain:
            raise JointPMFError("the rows were encoded for another domain")
        weights = checked_weights(sample_weight, codes.n_rows)
        self._add_tables(count_tables(codes, self.subsets, weights, self.limits))

    def merge(self, other: MarginalCounts) -> None:
        """Add the counts of the same subsets over other rows."""
        if not isinstance(other, MarginalCounts):
            raise JointPMFError(f"only MarginalCounts can be merged, not {type(other).__name__}")
        if other.domain != self.domain or other.subsets != self.subsets:
            raise JointPMFError("only counts of the same subsets of the same domain can be merged")
        if other.tables is not None:
            self._add_tables(other.tables)

    def _add_tables(self, tables: list[Table]) -> None:
        if self.tables is None:
            self.tables = list(tables)
        else:
            self.tables = [
                add(mine, more, self.limits) for mine, more in zip(self.tables, tables, strict=True)
            ]

    def to_marginals(self) -> MarginalSet:
        """Return the counts as marginals; every subset needs at least one row that observes it."""
        if self.tables is None:
            raise JointPMFError("nothing has been counted yet")
        return MarginalSet.of_counts(self.domain, self.subsets, self.tables, self.limits)
