"""`MarginalSet`: tables over one domain, and where they disagree."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.codes import checked_weights
from jointpmf.domain import Domain, checked_domain
from jointpmf.errors import JointPMFError, at_least_zero, items_of, listing, true_or_false
from jointpmf.marginals.counting import Subset, count_tables, names_of_order, positions_of
from jointpmf.marginals.exclusions import Exclusions
from jointpmf.marginals.marginal import Marginal, same_total
from jointpmf.marginals.measurement import Measurement
from jointpmf.marginals.tables import (
    DEFAULT_LIMITS,
    SparseTable,
    Table,
    TableLimits,
    low_order_sums,
    transpose,
)

if TYPE_CHECKING:
    from jointpmf.data.binning import Bins
    from jointpmf.data.encode import Unknown

logger = logging.getLogger("jointpmf")


@dataclass(frozen=True)
class Disagreement:
    """Two marginals that contradict each other on a variable, or a pair, that both have.

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
    impossible : sequence of mappings, optional
        Combinations that cannot happen, such as {"sex": "male", "pregnant": "yes"}; a tuple of
        levels stands for any of them. Fitted models give them probability zero.
    strict : bool
        Whether tables that disagree, or whose totals differ, are refused.

    Examples
    --------
    >>> domain = Domain.of_sizes([2, 2])
    >>> MarginalSet(domain, [Marginal(("x0", "x1"), [[0.1, 0.2], [0.3, 0.4]])])
    MarginalSet(1 marginals of order 2 over 2 variables)
    """

    domain: Domain
    marginals: Sequence[Marginal]
    impossible: Sequence[Mapping[str, Any]] = ()
    strict: bool = False

    def __post_init__(self) -> None:
        checked_domain(self.domain)
        true_or_false(self.strict, "strict")
        given = tuple(items_of(self.marginals, "the marginals must be a list"))
        if not given:
            raise JointPMFError("a set of marginals needs at least one marginal")
        object.__setattr__(self, "marginals", tuple(self._in_domain_order(m) for m in given))
        seen = {name for marginal in self.marginals for name in (*marginal.names, *marginal.where)}
        absent = [name for name in self.domain.names if name not in seen]
        if absent:
            raise JointPMFError(f"no marginal has the variable {listing(absent)}")
        object.__setattr__(
            self, "impossible", tuple(items_of(self.impossible, "impossible must be a list"))
        )
        self.exclusions.check(self.measurements if self.impossible else ())
        found = [] if (totals := self._totals()) is None else [totals]
        if worst := self._worst_disagreements:
            found.append(
                f"marginals disagree on {len(worst)} variables or pairs, most of all: {worst[0]}"
            )
        if found and self.strict:
            raise JointPMFError("; ".join(found))
        for sentence in found:
            logger.warning("%s", sentence)

    def _in_domain_order(self, marginal: Marginal) -> Marginal:
        if not isinstance(marginal, Marginal):
            raise JointPMFError(f"a set is made of Marginals, not of {type(marginal).__name__}")
        position = self.domain.indices(marginal.names)
        if not marginal.is_of_everyone:
            return marginal.in_order(self.domain)
        sizes = tuple(self.domain.sizes[n] for n in position)
        if marginal.table.shape != sizes:
            turned = sizes[::-1] == marginal.table.shape
            hint = "; are its names in the order of its axes?" if turned else ""
            raise JointPMFError(
                f"the table of {listing(marginal.names)} has shape {marginal.table.shape}, "
                f"but its variables have {sizes} levels{hint}"
            )
        self._warn_of_totals(marginal)
        axes = tuple(int(k) for k in np.argsort(position))
        if axes == tuple(range(len(axes))):
            return marginal
        reordered = copy.copy(marginal)
        object.__setattr__(reordered, "names", tuple(marginal.names[k] for k in axes))
        object.__setattr__(reordered, "table", transpose(marginal.table, axes))
        return reordered

    def _warn_of_totals(self, marginal: Marginal) -> None:
        """Warn of a first or last level that is the sum of all others, in every cell."""
        if not isinstance(marginal.table, np.ndarray) or marginal.table.ndim < 2:
            return
        for k, name in enumerate(marginal.names):
            table = np.moveaxis(marginal.table, k, 0)
            twice = np.abs(2 * table - table.sum(axis=0)) <= 2 * len(table) * marginal.slack + 1e-9
            is_total = twice.all(axis=tuple(range(1, table.ndim)))
            is_total[1:-1] = False
            if len(table) > 2 and is_total.any() and np.count_nonzero(table[is_total]) > 1:
                level = self.domain[name].levels[int(is_total.argmax())]
                logger.warning(
                    "in the table of %s, %r of %r is the sum of all other levels: leave it out of "
                    "the table and the domain if it is a total",
                    listing(marginal.names),
                    level,
                    name,
                )

    def _totals(self) -> str | None:
        """Return which tables that do not say n_obs themselves are not about the same rows."""
        alike = [m for m in self.marginals if not m.own_rows and m.total != 1]
        for marginal in alike[1:]:
            first, other = alike[0].total, marginal.total
            slack = sum(m.rounding * math.prod(m.table.shape) for m in (alike[0], marginal))
            if not same_total(first, other) and abs(first - other) > slack / 2:
                return (
                    f"the table of {listing(alike[0].names)} sums to {first:g} and that of "
                    f"{listing(marginal.names)} to {other:g}; each counts for its own rows"
                )
        return None

    @cached_property
    def exclusions(self) -> Exclusions:
        """What cannot happen, in the codes of the domain."""
        return Exclusions.of(self.domain, self.impossible)

    @classmethod
    def _exact(cls, domain: Domain, marginals: Sequence[Marginal]) -> MarginalSet:
        """Return the marginals of one joint, which need no checks: they agree."""
        exact = cls.__new__(cls)
        object.__setattr__(exact, "domain", domain)
        object.__setattr__(exact, "marginals", tuple(marginals))
        object.__setattr__(exact, "impossible", ())
        object.__setattr__(exact, "strict", False)
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
        max_levels: int = 100,
        limits: TableLimits = DEFAULT_LIMITS,
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
        limits : TableLimits
            Which tables are kept sparse, and how they are counted.

        Examples
        --------
        >>> import polars as pl
        >>> rows = pl.DataFrame({"a": ["n", "y", "y", None], "b": [1, 2, 2, 1]})
        >>> pairs = MarginalSet.from_table(rows, order=2)
        >>> pairs[0].table.round(2).tolist(), pairs[0].n_obs
        ([[0.33, 0.0], [0.0, 0.67]], 3.0)
        """
        from jointpmf.data.encode import encode

        codes = encode(table, domain, bins=bins, unknown=unknown, max_levels=max_levels)
        names = names_of_order(codes.domain, order) if subsets is None else subsets
        positions = positions_of(codes.domain, names)
        weights = checked_weights(sample_weight, codes.n_rows)
        tables = count_tables(codes, positions, weights, limits)
        return cls.of_counts(codes.domain, positions, tables, limits)

    @classmethod
    def of_counts(
        cls,
        domain: Domain,
        subsets: Sequence[Subset],
        tables: Sequence[Table],
        limits: TableLimits = DEFAULT_LIMITS,
    ) -> MarginalSet:
        """Return tables of counts, of variables at increasing positions, as marginals."""
        marginals = []
        for subset, table in zip(subsets, tables, strict=True):
            names = tuple(domain.names[n] for n in subset)
            total = float(table.sum())
            if total <= 0:
                raise JointPMFError(f"no row observes all of {listing(names)} together")
            marginals.append(Marginal(names, table, total, limits))
        return cls(domain, tuple(marginals))

    def disagreements(self, tolerance: float = 1e-6) -> list[Disagreement]:
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
        tolerance = at_least_zero(tolerance, "the tolerance")
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
            if not marginal.is_of_everyone:
                continue
            for axes, table in low_order_sums(marginal.table).items():
                shared = tuple(subset[k] for k in axes)
                tables.setdefault(shared, []).append((marginal, table.ravel()))
        return tables

    def _disagreement(
        self, shared: Subset, holders: list[tuple[Marginal, np.ndarray]], tolerance: float
    ) -> Disagreement | None:
        rows = np.array([marginal.n_obs or math.inf for marginal, _ in holders])
        slack = np.array([m.slack * math.prod(m.table.shape) / table.size for m, table in holders])
        tables = np.array([table for _, table in holders])
        reference = int(rows.argmax())
        middle = np.clip((tables + tables[reference]) / 2, 0, 1)
        noise = np.sqrt(middle * (1 - middle) * (1 / rows + 1 / rows[reference])[:, None])
        allowed = tolerance + (slack + slack[reference])[:, None] + 4 * noise
        excess = np.abs(tables - tables[reference]) - allowed
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
        return [tuple(sorted(self.domain.indices(m.names))) for m in self.marginals]

    @property
    def is_plain(self) -> bool:
        """Whether all tables are whole ones of all levels, and anything can happen."""
        return not self.impossible and all(m.is_of_everyone for m in self.marginals)

    @property
    def is_counted(self) -> bool:
        """Whether it is known how many rows each table stands for."""
        return all(marginal.n_rows is not None for marginal in self.marginals)

    def check_plain(self, what: str) -> None:
        """Refuse tables that are not whole ones of all levels, which `what` needs."""
        other = [marginal for marginal in self.marginals if not marginal.is_of_everyone]
        if self.impossible:
            raise JointPMFError(f"{what} cannot keep combinations impossible")
        if other:
            raise JointPMFError(f"{what} needs whole tables of all levels, unlike {other[0]!r}")

    @cached_property
    def measurements(self) -> list[Measurement]:
        """What each table says in the domain's codes, as counts.

        One that does not know how many rows it stands for counts as much as the others do.
        """
        known = [m.n_rows for m in self.marginals if m.n_rows is not None]
        usual = float(np.median(known)) if known else 1.0
        return [marginal.measured(self.domain, usual) for marginal in self.marginals]

    def content(self) -> list[Any]:
        """Return what tells one set from another, as names and arrays."""
        parts: list[Any] = []
        for marginal in self.marginals:
            table = marginal.table
            sparse = isinstance(table, SparseTable)
            parts += [
                marginal.names,
                *([table.shape, *table.entries, table.scale] if sparse else [table]),
            ]
        for found in () if self.is_plain else self.measurements:
            parts += [*found.sets, *(each for pair in found.where for each in pair), found.given]
            sizes = [each for each in (found.n_obs, found.noise) if each is not None]
            parts += [found.counts, found.least, found.most, *sizes]
        cells = [cell.items() for cell in self.exclusions.cells]
        return [*parts, *(each for cell in cells for pair in cell for each in pair)]

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
