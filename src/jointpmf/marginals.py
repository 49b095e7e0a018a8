"""Marginals: the low-order tables that a joint distribution is learned from.

`Marginal` is one table with the names of its axes, `MarginalSet` is several over one domain, and
`MarginalCounts` is how a table of rows becomes one: counting is addition.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np

from jointpmf.counting import Subset, count_tables
from jointpmf.domain import Domain, check_distinct
from jointpmf.encoding import MAX_NUMERIC_LEVELS, Bins, Codes, Unknown, encode
from jointpmf.errors import JointPMFError, listing, whole_number
from jointpmf.tables import SparseTable, Table, add, sum_onto, transpose

logger = logging.getLogger("jointpmf")

TOTAL_TOLERANCE = 1e-6
"""How far, relatively, totals that should be equal may lie apart."""


@dataclass(frozen=True, eq=False)
class Marginal:
    """The joint table of a few variables, as probabilities.

    Parameters
    ----------
    names : sequence of str
        The variables, in the order of the table's axes.
    table : array or SparseTable
        Probabilities or counts; kept as probabilities.
    n_obs : float, optional
        How many rows (or what total weight) the table was counted over. A table of counts knows
        its own. Give it to say that tables of one set were counted over different rows.

    Examples
    --------
    >>> marginal = Marginal(("vote", "sex"), [[30, 20], [10, 40]])
    >>> marginal.table.tolist(), marginal.n_obs
    ([[0.3, 0.2], [0.1, 0.4]], 100.0)
    """

    names: Sequence[str]
    table: Any
    n_obs: float | None = None
    own_rows: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if isinstance(self.names, str):
            raise JointPMFError(f"give the names as a list, such as [{self.names!r}]")
        object.__setattr__(self, "names", tuple(self.names))
        check_distinct(self.names, "a marginal")
        if not self.names:
            raise JointPMFError("a marginal needs at least one variable")
        table = self.table if isinstance(self.table, SparseTable) else self._as_array()
        if len(table.shape) != len(self.names):
            raise JointPMFError(
                f"the table of {listing(self.names)} has {len(table.shape)} axes "
                f"for {len(self.names)} variables"
            )
        total = self._checked_total(table)
        object.__setattr__(self, "own_rows", self.n_obs is not None)
        if self.n_obs is None and abs(total - 1) > TOTAL_TOLERANCE:
            object.__setattr__(self, "n_obs", total)
        rounding = abs(total - 1) < 1e-13  # a table that was divided before stays as it is
        object.__setattr__(self, "table", table if rounding else table / total)

    def _as_array(self) -> np.ndarray:
        try:
            array = np.asarray(self.table)
            if array.dtype.kind == "c":
                raise TypeError
            return np.ascontiguousarray(array, dtype=np.float64)
        except (TypeError, ValueError):
            raise JointPMFError(
                f"the table of {listing(self.names)} is not an array of numbers"
            ) from None

    def _checked_total(self, table: Table) -> float:
        cells = table.values if isinstance(table, SparseTable) else table
        what = f"the table of {listing(self.names)}"
        if not np.isfinite(cells).all():
            raise JointPMFError(f"{what} has a cell that is NaN or infinite")
        if (cells < 0).any():
            raise JointPMFError(f"{what} has a negative cell")
        total = float(table.sum())
        if total <= 0:
            raise JointPMFError(f"{what} is zero everywhere")
        if self.n_obs is not None:
            if not (isinstance(self.n_obs, Real) and 0 < self.n_obs < math.inf):
                raise JointPMFError(f"{what} has n_obs={self.n_obs!r}; it must be positive")
            if not (_same_total(total, 1.0) or _same_total(total, self.n_obs)):
                raise JointPMFError(
                    f"{what} sums to {total:g}, which is neither one nor its n_obs={self.n_obs:g}"
                )
        return total

    @property
    def order(self) -> int:
        """Number of variables."""
        return len(self.names)

    def __repr__(self) -> str:
        """Name the variables and the size of the table."""
        size = "×".join(map(str, self.table.shape))
        counted = "" if self.n_obs is None else f", n_obs={self.n_obs:g}"
        return f"Marginal({', '.join(self.names)}: {size}{counted})"


def _same_total(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=TOTAL_TOLERANCE)


@dataclass(frozen=True)
class Disagreement:
    """Two marginals that tell different things of a variable that both have.

    Its text is the sentence for the user.
    """

    variable: str
    level: object
    first: tuple[str, ...]
    second: tuple[str, ...]
    first_probability: float
    second_probability: float

    @property
    def by(self) -> float:
        """How far apart the two probabilities of the level are."""
        return abs(self.first_probability - self.second_probability)

    def __str__(self) -> str:
        """Say which marginals disagree, on what and by how much."""
        return (
            f"{', '.join(self.first)} gives {self.variable}={self.level!r} probability "
            f"{self.first_probability:.6g}, {', '.join(self.second)} gives it "
            f"{self.second_probability:.6g} (difference {self.by:.2g})"
        )


@dataclass(frozen=True, eq=False)
class MarginalSet:
    """Marginals of any subsets of one domain, of any mix of orders.

    Axes are brought into the domain's order. Where two tables disagree on a variable that both
    have, by more than rounding and sampling explain, a warning is logged and `disagreements()`
    has the details; the fit is then the least-squares compromise.

    Parameters
    ----------
    domain : Domain
        All variables. Each must appear in at least one marginal.
    marginals : sequence of Marginal
        The tables.

    Examples
    --------
    >>> domain = Domain.of_sizes([2, 2])
    >>> MarginalSet(domain, [Marginal(("x0", "x1"), [[0.1, 0.2], [0.3, 0.4]])])
    MarginalSet(1 marginals of order 2 over 2 variables)
    """

    domain: Domain
    marginals: Sequence[Marginal]

    def __post_init__(self) -> None:
        given = tuple(self.marginals)
        if not given:
            raise JointPMFError("a set of marginals needs at least one marginal")
        object.__setattr__(self, "marginals", tuple(self._in_domain_order(m) for m in given))
        seen = {name for marginal in self.marginals for name in marginal.names}
        absent = [name for name in self.domain.names if name not in seen]
        if absent:
            raise JointPMFError(f"no marginal has the variable {listing(absent)}")
        self._check_totals()
        found = self.disagreements()
        if found:
            logger.warning("%d variables on which marginals disagree: %s", len(found), found[0])

    def _in_domain_order(self, marginal: Marginal) -> Marginal:
        if not isinstance(marginal, Marginal):
            raise JointPMFError(f"a set is made of Marginals, not of {type(marginal).__name__}")
        position = self.domain.indices(marginal.names)
        sizes = tuple(self.domain.sizes[n] for n in position)
        if marginal.table.shape != sizes:
            raise JointPMFError(
                f"the table of {listing(marginal.names)} has shape {marginal.table.shape}, "
                f"but its variables have {sizes} levels"
            )
        axes = tuple(int(k) for k in np.argsort(position))
        if axes == tuple(range(len(axes))):
            return marginal
        names = tuple(marginal.names[k] for k in axes)
        return _with_own_rows(names, transpose(marginal.table, axes), marginal)

    def _check_totals(self) -> None:
        """Tables that do not say n_obs themselves must be about the same rows."""
        alike = [m for m in self.marginals if not m.own_rows]
        for marginal in alike[1:]:
            first, other = alike[0].n_obs or 1.0, marginal.n_obs or 1.0
            if not _same_total(first, other):
                raise JointPMFError(
                    f"the table of {listing(alike[0].names)} sums to {first:g} and that of "
                    f"{listing(marginal.names)} to {other:g}; give n_obs= to tables that were "
                    "counted over different rows"
                )

    @classmethod
    def from_table(
        cls,
        table: Any,
        order: int = 3,
        sample_weight: Any = None,
        domain: Domain | None = None,
        *,
        subsets: Iterable[Sequence[str]] | None = None,
        bins: Bins | None = None,
        unknown: Unknown = "error",
        max_levels: int = MAX_NUMERIC_LEVELS,
    ) -> MarginalSet:
        """Return the marginals of an incomplete table: each over the rows that observe all of it.

        Parameters
        ----------
        table : pandas, Polars or PyArrow table, array, or Codes
            One row per sample.
        order : int
            How many variables each marginal has: all subsets of that many are counted.
        sample_weight : array of shape (rows,), optional
            What each row counts for.
        domain : Domain, optional
            What can happen; learned from the table by default.
        subsets : iterable of sequences of names, optional
            Which subsets to count, instead of all of one order.
        bins, unknown, max_levels
            How the table is read, see `encode`.

        Examples
        --------
        >>> import polars as pl
        >>> rows = pl.DataFrame({"a": ["n", "y", "y", None], "b": [1, 2, 2, 1]})
        >>> pairs = MarginalSet.from_table(rows, order=2)
        >>> pairs[0].table.round(2).tolist(), pairs[0].n_obs
        ([[0.33, 0.0], [0.0, 0.67]], 3.0)
        """
        codes = encode(table, domain, bins=bins, unknown=unknown, max_levels=max_levels)
        counts = MarginalCounts(codes.domain, subsets_of(codes.domain, order, subsets))
        counts.add(codes, sample_weight)
        return counts.to_marginals()

    def disagreements(self, tolerance: float = TOTAL_TOLERANCE) -> list[Disagreement]:
        """Return, for each variable, the two marginals that disagree most on it, worst first.

        Only those are listed that differ by more than `tolerance`, and by more than four standard
        errors where the tables say how many rows they were counted over.
        """
        found = [self._disagreement(n, tolerance) for n in range(len(self.domain))]
        return sorted((d for d in found if d is not None), key=lambda d: -d.by)

    def _disagreement(self, n: int, tolerance: float) -> Disagreement | None:
        variable = self.domain.variables[n]
        holders = [m for m in self.marginals if variable.name in m.names]
        single = np.array([sum_onto(m.table, m.names.index(variable.name)) for m in holders])
        high, low = single.argmax(axis=0), single.argmin(axis=0)
        level = int(np.ptp(single, axis=0).argmax())
        first, second = holders[high[level]], holders[low[level]]
        worst = Disagreement(
            variable.name,
            variable.levels[level],
            first.names,
            second.names,
            float(single[high[level], level]),
            float(single[low[level], level]),
        )
        middle = (worst.first_probability + worst.second_probability) / 2
        noise = sum(1 / m.n_obs for m in (first, second) if m.n_obs is not None)
        return (
            worst if worst.by > tolerance + 4 * math.sqrt(middle * (1 - middle) * noise) else None
        )

    @property
    def subsets(self) -> list[Subset]:
        """The positions of each marginal's variables, increasing."""
        return [self.domain.indices(marginal.names) for marginal in self.marginals]

    def __len__(self) -> int:
        """Return the number of marginals."""
        return len(self.marginals)

    def __iter__(self) -> Iterator[Marginal]:
        """Iterate over the marginals."""
        return iter(self.marginals)

    def __getitem__(self, position: int) -> Marginal:
        """Return the marginal at a position."""
        return self.marginals[position]

    def __repr__(self) -> str:
        """Say how many marginals of which orders there are."""
        orders = ", ".join(map(str, sorted({marginal.order for marginal in self.marginals})))
        over = f"over {len(self.domain)} variables"
        return f"MarginalSet({len(self)} marginals of order {orders} {over})"


def _with_own_rows(names: tuple[str, ...], table: Table, like: Marginal) -> Marginal:
    """Return a marginal that differs from `like` in the order of its axes only."""
    marginal = replace(like, names=names, table=table)
    object.__setattr__(marginal, "own_rows", like.own_rows)
    return marginal


def subsets_of(
    domain: Domain, order: int, subsets: Iterable[Sequence[str]] | None = None
) -> list[Subset]:
    """Return the positions of the asked subsets, or of all subsets of one order."""
    if subsets is not None:
        positions = [tuple(sorted(domain.indices(names))) for names in subsets]
        if () in positions:
            raise JointPMFError("a marginal needs at least one variable")
        return positions
    order = whole_number(order, "the order", 1)
    if order > len(domain):
        raise JointPMFError(
            f"marginals of order {order} need {order} variables; there are {len(domain)}"
        )
    return list(combinations(range(len(domain)), order))


class MarginalCounts:
    """Counts of several subsets, to which rows can be added and other counts merged.

    Parameters
    ----------
    domain : Domain
        What can happen.
    subsets : sequence of tuples of int
        The positions of each subset's variables, increasing.

    Examples
    --------
    >>> domain = Domain.of_sizes([2, 2])
    >>> counts = MarginalCounts(domain, [(0, 1)])
    >>> counts.add(encode(np.array([[0, 1], [1, -1], [0, 1]]), domain))
    >>> counts.to_marginals()[0].table.tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    def __init__(self, domain: Domain, subsets: Sequence[Subset]) -> None:
        self.domain = domain
        self.subsets = list(subsets)
        self.tables: list[Table] | None = None

    def add(self, codes: Codes, sample_weight: Any = None) -> None:
        """Count more rows."""
        if codes.domain != self.domain:
            raise JointPMFError("the rows were encoded for another domain")
        weights = checked_weights(sample_weight, codes.n_rows)
        self._add_tables(count_tables(codes, self.subsets, weights))

    def merge(self, other: MarginalCounts) -> None:
        """Add the counts of the same subsets over other rows."""
        if other.domain != self.domain or other.subsets != self.subsets:
            raise JointPMFError("only counts of the same subsets of the same domain can be merged")
        if other.tables is not None:
            self._add_tables(other.tables)

    def _add_tables(self, tables: list[Table]) -> None:
        if self.tables is None:
            self.tables = list(tables)
        else:
            self.tables = [add(mine, more) for mine, more in zip(self.tables, tables, strict=True)]

    def to_marginals(self) -> MarginalSet:
        """Return the counts as marginals; every subset needs at least one row that observes it."""
        if self.tables is None:
            raise JointPMFError("nothing has been counted yet")
        marginals = []
        for subset, table in zip(self.subsets, self.tables, strict=True):
            names = tuple(self.domain.names[n] for n in subset)
            total = float(table.sum())
            if total <= 0:
                raise JointPMFError(f"no row observes all of {listing(names)} together")
            marginals.append(Marginal(names, table, n_obs=total))
        return MarginalSet(self.domain, tuple(marginals))


def checked_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return weights of rows as an array, or None for ones."""
    if sample_weight is None:
        return None
    try:
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise JointPMFError("the sample weights are not numbers") from None
    if weights.shape != (n_rows,):
        raise JointPMFError(f"there are {weights.size} sample weights for {n_rows} rows")
    if not np.isfinite(weights).all() or (weights < 0).any():
        row = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
        raise JointPMFError(
            f"the sample weight of row {row} is {weights[row]}; it must be at least 0"
        )
    return weights
