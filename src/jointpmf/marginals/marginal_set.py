"""Marginals: the low-order tables that a joint distribution is learned from.

`Marginal` is one table with the names of its axes, `MarginalSet` is several over one domain, and
`MarginalCounts` is how a table of rows becomes one: counting is addition.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np

from jointpmf.data.encoding import MAX_NUMERIC_LEVELS, Bins, Codes, Unknown, encode
from jointpmf.domain import Domain, check_distinct
from jointpmf.errors import JointPMFError, listing, whole_number
from jointpmf.marginals.counting import Subset, count_tables
from jointpmf.marginals.tables import SparseTable, Table, add, compact, low_order_sums, transpose

logger = logging.getLogger("jointpmf")

HUGE = 1e50
"""No weight may be larger: products with them would overflow."""

TOTAL_TOLERANCE = 1e-6
"""How far, relatively, totals that should be equal may lie apart."""

ROUNDING = 0.01
"""How far published probabilities may be from summing to one: they were rounded."""


@dataclass(frozen=True, eq=False)
class Marginal:
    """The joint table of a few variables, as probabilities.

    Parameters
    ----------
    names : sequence of str
        The variables, in the order of the table's axes.
    table : array or SparseTable
        Probabilities or counts; kept as probabilities, sparse if it is large and mostly zeros.
        Probabilities are not copied: do not change the array afterwards.
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
    total: float = field(init=False, default=1.0)
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
        object.__setattr__(self, "total", 1.0 if abs(total - 1) <= ROUNDING else total)
        if self.n_obs is None and self.total != 1 and _is_whole(table):
            object.__setattr__(self, "n_obs", total)
        divided_before = abs(total - 1) < 1e-13
        object.__setattr__(self, "table", table if divided_before else table / total)

    def _as_array(self) -> Table:
        try:
            array = np.asarray(self.table)
            if array.dtype.kind == "c":
                raise TypeError
            return compact(np.ascontiguousarray(array, dtype=np.float64))
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
        if not math.isfinite(total):
            raise JointPMFError(f"{what} sums to more than a number can hold")
        if self.n_obs is not None:
            if not (isinstance(self.n_obs, Real) and 0 < self.n_obs < math.inf):
                raise JointPMFError(f"{what} has n_obs={self.n_obs!r}; it must be positive")
            if not (abs(total - 1) <= ROUNDING or _same_total(total, self.n_obs)):
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


def _is_whole(table: Table) -> bool:
    cells = table.values if isinstance(table, SparseTable) else table
    return bool((cells == np.floor(cells)).all())


def _same_total(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=TOTAL_TOLERANCE)


@dataclass(frozen=True)
class Disagreement:
    """Two marginals that tell different things of a variable, or a pair, that both have.

    Its text is the sentence for the user.
    """

    variables: tuple[str, ...]
    levels: tuple[object, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    first_probability: float
    second_probability: float

    @property
    def by(self) -> float:
        """How far apart the two probabilities are."""
        return abs(self.first_probability - self.second_probability)

    def __str__(self) -> str:
        """Say which marginals disagree, on what and by how much."""
        pairs = zip(self.variables, self.levels, strict=True)
        cell = ", ".join(f"{name}={level!r}" for name, level in pairs)
        return (
            f"{', '.join(self.first)} gives {cell} probability {self.first_probability:.6g}, "
            f"{', '.join(self.second)} gives it {self.second_probability:.6g} "
            f"(difference {self.by:.2g})"
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
        if not isinstance(self.domain, Domain):
            raise JointPMFError(f"a set needs a Domain, not {type(self.domain).__name__}")
        given = tuple(self.marginals)
        if not given:
            raise JointPMFError("a set of marginals needs at least one marginal")
        object.__setattr__(self, "marginals", tuple(self._in_domain_order(m) for m in given))
        seen = {name for marginal in self.marginals for name in marginal.names}
        absent = [name for name in self.domain.names if name not in seen]
        if absent:
            raise JointPMFError(f"no marginal has the variable {listing(absent)}")
        self._check_totals()
        if self._worst_disagreements:
            logger.warning(
                "marginals disagree on %d variables or pairs, most of all: %s",
                len(self._worst_disagreements),
                self._worst_disagreements[0],
            )

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
        reordered = copy.copy(marginal)
        object.__setattr__(reordered, "names", tuple(marginal.names[k] for k in axes))
        object.__setattr__(reordered, "table", transpose(marginal.table, axes))
        return reordered

    def _check_totals(self) -> None:
        """Tables that do not say n_obs themselves must be about the same rows."""
        alike = [m for m in self.marginals if not m.own_rows]
        for marginal in alike[1:]:
            first, other = alike[0].total, marginal.total
            if not _same_total(first, other):
                raise JointPMFError(
                    f"the table of {listing(alike[0].names)} sums to {first:g} and that of "
                    f"{listing(marginal.names)} to {other:g}; give n_obs= to tables that were "
                    "counted over different rows"
                )

    @classmethod
    def _exact(cls, domain: Domain, marginals: Sequence[Marginal]) -> MarginalSet:
        """Return the marginals of one joint, which need no checks: they agree."""
        exact = cls.__new__(cls)
        object.__setattr__(exact, "domain", domain)
        object.__setattr__(exact, "marginals", tuple(marginals))
        exact.__dict__["_worst_disagreements"] = []
        return exact

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
        names = names_of_order(codes.domain, order) if subsets is None else subsets
        counts = MarginalCounts(codes.domain, names)
        counts.add(codes, sample_weight)
        return counts.to_marginals()

    def disagreements(self, tolerance: float = TOTAL_TOLERANCE) -> list[Disagreement]:
        """Return where marginals disagree on variables, or pairs of them, that they share.

        For each variable and pair, the marginal that differs most from the one that was counted
        over most rows; only differences of more than `tolerance`, and of more than four standard
        errors where the tables say how many rows they were counted over. Worst first.

        Examples
        --------
        >>> domain = Domain.of_sizes([2, 2, 2])
        >>> first = Marginal(("x0", "x1"), [[0.3, 0.2], [0.1, 0.4]])
        >>> second = Marginal(("x1", "x2"), [[0.3, 0.3], [0.2, 0.2]])
        >>> worst = MarginalSet(domain, [first, second]).disagreements()[0]
        >>> worst.variables, worst.first, worst.second, round(worst.by, 6)
        (('x1',), ('x0', 'x1'), ('x1', 'x2'), 0.2)
        """
        found = [
            self._disagreement(shared, holders, tolerance)
            for shared, holders in self._shared_tables().items()
            if len(holders) > 1
        ]
        return sorted((d for d in found if d is not None), key=lambda d: -d.by)

    def _shared_tables(self) -> dict[Subset, list[tuple[Marginal, np.ndarray]]]:
        """Return, for each variable and each pair, what every marginal that has it says of it."""
        tables: dict[Subset, list[tuple[Marginal, np.ndarray]]] = {}
        for subset, marginal in zip(self.subsets, self.marginals, strict=True):
            for axes, table in low_order_sums(marginal.table).items():
                shared = tuple(subset[k] for k in axes)
                tables.setdefault(shared, []).append((marginal, table.ravel()))
        return tables

    def _disagreement(
        self, shared: Subset, holders: list[tuple[Marginal, np.ndarray]], tolerance: float
    ) -> Disagreement | None:
        rows = np.array([marginal.n_obs or math.inf for marginal, _ in holders])
        tables = np.array([table for _, table in holders])
        reference = int(rows.argmax())
        middle = np.clip((tables + tables[reference]) / 2, 0, 1)
        noise = np.sqrt(middle * (1 - middle) * (1 / rows + 1 / rows[reference])[:, None])
        excess = np.abs(tables - tables[reference]) - tolerance - 4 * noise
        worst, cell = divmod(int(excess.argmax()), excess.shape[1])
        if excess[worst, cell] <= 0:
            return None
        variables = [self.domain.variables[n] for n in shared]
        levels = map(int, np.unravel_index(cell, [variable.size for variable in variables]))
        return Disagreement(
            tuple(variable.name for variable in variables),
            tuple(v.levels[i] for v, i in zip(variables, levels, strict=True)),
            tuple(holders[reference][0].names),
            tuple(holders[worst][0].names),
            float(tables[reference, cell]),
            float(tables[worst, cell]),
        )

    @cached_property
    def _worst_disagreements(self) -> list[Disagreement]:
        return self.disagreements()

    @cached_property
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
        conflicts = len(self._worst_disagreements)
        warning = f", {conflicts} disagreements" if conflicts else ""
        return f"MarginalSet({len(self)} marginals of order {orders} {over}{warning})"

    def _repr_html_(self) -> str:
        """Return the first marginals, and the worst disagreement if there is one."""
        from jointpmf.show.notebook import marginals_html

        return marginals_html(self, self._worst_disagreements)


def names_of_order(domain: Domain, order: int) -> list[tuple[str, ...]]:
    """Return the names of all subsets of so many variables."""
    order = whole_number(order, "the order", 1)
    if order > len(domain):
        raise JointPMFError(
            f"marginals of order {order} need {order} variables; there are {len(domain)}"
        )
    return list(combinations(domain.names, order))


def positions_of(domain: Domain, subsets: Iterable[Sequence[str]]) -> list[Subset]:
    """Return the positions of each subset's variables, increasing."""
    positions = [tuple(sorted(domain.indices(names))) for names in subsets]
    if () in positions:
        raise JointPMFError("a marginal needs at least one variable")
    return positions


class MarginalCounts:
    """Counts of several subsets, to which rows can be added and other counts merged.

    Parameters
    ----------
    domain : Domain
        What can happen.
    subsets : sequence of sequences of str
        The names of each subset's variables.

    Examples
    --------
    >>> domain = Domain.of_sizes([2, 2])
    >>> counts = MarginalCounts(domain, [("x0", "x1")])
    >>> counts.add(encode(np.array([[0, 1], [1, -1], [0, 1]]), domain))
    >>> counts.to_marginals()[0].table.tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    def __init__(self, domain: Domain, subsets: Iterable[Sequence[str]]) -> None:
        self.domain = domain
        self.subsets = positions_of(domain, subsets)
        self.tables: list[Table] | None = None

    def add(self, codes: Codes, sample_weight: Any = None) -> None:
        """Count more rows; codes are made by `encode`."""
        if not isinstance(codes, Codes):
            raise JointPMFError(f"rows are added as Codes, not as {type(codes).__name__}")
        if codes.domain != self.domain:
            raise JointPMFError("the rows were encoded for another domain")
        weights = checked_weights(sample_weight, codes.n_rows)
        self._add_tables(count_tables(codes, self.subsets, weights))

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


def checked_weights(
    sample_weight: Any, n_rows: int, what: str = "sample weight of row", most: float = HUGE
) -> np.ndarray | None:
    """Return weights of rows, or of what else is said, as an array, or None for ones."""
    if sample_weight is None:
        return None
    kind, _, of = what.partition(" of ")
    try:
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise JointPMFError(f"the {kind}s are not numbers") from None
    if weights.shape != (n_rows,):
        raise JointPMFError(f"there are {weights.size} {kind}s for {n_rows} {of}s")
    if not np.isfinite(weights).all() or (weights < 0).any():
        bad = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
        raise JointPMFError(f"the {what} {bad} is {weights[bad]}; it must be at least 0")
    if weights.max(initial=0.0) > most:
        raise JointPMFError(f"the {kind}s go beyond {most:.0e}; divide them by their mean")
    return weights
