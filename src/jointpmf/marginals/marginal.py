"""`Marginal`: a table of a few variables as it was published, with the names of its axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np

from jointpmf.domain import Domain, Variable, check_distinct, checked_domain, name_list
from jointpmf.errors import (
    JointPMFError,
    at_least_zero,
    float_array,
    float_of,
    instance_of,
    listing,
    shown,
)
from jointpmf.marginals.measurement import (
    Measurement,
    bounds_of,
    check_bounds,
    is_permutation,
    likely_given,
    noise_of,
    parts_of,
    sets_of,
)
from jointpmf.marginals.tables import DEFAULT_LIMITS, SparseTable, Table, TableLimits, compact

_NOISE_PART = 10.0
"""Times that the noise of a table of unknown size has the variance of sampling: if it were larger,
the noise of each cell would matter more beside its size, and fits would take more iterations."""


@dataclass(frozen=True, eq=False)
class Marginal:
    """A table of a few variables: of all people or a part, of all levels or sets of them.

    Parameters
    ----------
    names : sequence of str
        The variables, in the order of the table's axes.
    table : array or SparseTable
        Probabilities or counts; kept as probabilities, sparse if it is large and mostly zeros.
        NaN is a cell that was not published. Probabilities are not copied: do not change the array
        afterwards.
    n_obs : float or array, optional
        How many rows (or what total weight) the table was counted over; with `given`, one number
        for each slice. A table of counts knows its own. Give it to say that tables of one set were
        counted over different rows, or what suppressed cells are a part of.
    limits : TableLimits
        Which tables are kept sparse.
    levels : mapping of names to sequences, optional
        What the entries of an axis stand for: levels, or tuples of several of them. Bands may be
        coarse, overlap, or leave levels out. By default all levels in the domain's order.
    where : mapping of names to levels, optional
        The part of the population that the table is about.
    given : sequence of str, optional
        Variables whose every level has a distribution of its own: row percentages. Slices sum to
        one or to 100, or are counts.
    bounds : pair of numbers or str, optional
        What suppressed counts are known to be between, such as (0, 5), or as printed: "<6".
    noise : float or array, optional
        Standard deviation of what was added to each cell, in the unit of the table: differential
        privacy, or a survey's sampling error. Negative cells are then data.
    rounding : float, optional
        Cells were rounded to multiples of this, in the unit of the table: 5 for counts in fives,
        0.1 for percent with one decimal. Differences that rounding explains are no disagreement.

    Examples
    --------
    >>> marginal = Marginal(("vote", "sex"), [[30, 20], [10, 40]])
    >>> marginal.table.tolist(), marginal.n_obs
    ([[0.3, 0.2], [0.1, 0.4]], 100.0)
    >>> Marginal(("vote", "age"), [[60, 45], [40, 55]], given=["age"], n_obs=[80, 120])
    Marginal(vote | age: 2×2, n_obs=200)
    """

    names: Sequence[str]
    table: Any
    n_obs: float | None = None
    limits: InitVar[TableLimits] = DEFAULT_LIMITS
    levels: Mapping[str, Sequence[Any]] = field(default_factory=dict, kw_only=True)
    where: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    given: Sequence[str] = field(default=(), kw_only=True)
    bounds: Any = field(default=None, kw_only=True)
    noise: Any = field(default=None, kw_only=True)
    rounding: float = field(default=0.0, kw_only=True)
    total: float = field(init=False, default=1.0)
    own_rows: bool = field(init=False, default=False)
    is_whole: np.ndarray | None = field(init=False, default=None)
    unit: np.ndarray | None = field(init=False, default=None)
    of_sums: bool = field(init=False, default=True)

    def __post_init__(self, limits: TableLimits) -> None:
        object.__setattr__(self, "names", tuple(name_list(self.names)))
        check_distinct(self.names, "a marginal")
        instance_of(limits, TableLimits, "limits")
        if not self.names:
            raise JointPMFError("a marginal needs at least one variable")
        table = self.table if isinstance(self.table, SparseTable) else self._as_array(limits)
        if len(table.shape) != len(self.names):
            raise JointPMFError(
                f"the table of {listing(self.names)} has {len(table.shape)} axes "
                f"for {len(self.names)} variables"
            )
        self._check_axes()
        has_holes = isinstance(table, np.ndarray) and bool(np.isnan(table).any())
        if self.levels or self.where or self.given or has_holes or self.noise is not None:
            self._set_parts(table)
        else:
            self._set_probabilities(table)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        names: Sequence[str] | None = None,
        value: str | None = None,
        domain: Domain | None = None,
        **what: Any,
    ) -> Marginal:
        """Return the marginal in a frame, matched by labels: a crosstab, a wide or a long table.

        Totals are left out, which the log says. Cells may be text as offices print them: `1,234`,
        `12.5%`, `<6`, or `*` where a number was suppressed.

        Parameters
        ----------
        frame : pandas, Polars or PyArrow frame
            A crosstab of pandas knows its variables. A long frame has a column per variable and one
            of numbers; a wide one has labels in its first columns, and levels above the others.
        names : sequence of str, optional
            The variables; in a wide frame the one whose levels are above the columns is the one
            that no column is called.
        value : str, optional
            The column of numbers of a long frame, if it is not called count or probability.
        domain : Domain, optional
            What can happen: labels become its levels, also where it spells them otherwise.
        **what
            The other arguments of a Marginal. `levels` here maps labels to the levels that each
            covers, or lists the labels to use.

        Examples
        --------
        >>> import polars as pl
        >>> votes = {"age": ["old", "young", "Total"], "no": [4, 3, 7], "yes": [2, 1, 3]}
        >>> marginal = Marginal.from_frame(pl.DataFrame(votes), names=["age", "vote"])
        >>> marginal.levels, marginal.n_rows
        ({'age': ['old', 'young'], 'vote': ['no', 'yes']}, 10.0)
        """
        from jointpmf.marginals.reading import arguments_of_frame

        return cls(**arguments_of_frame(frame, names, value, domain, what))

    def _check_axes(self) -> None:
        what = f"the table of {listing(self.names)}"
        for name in ("levels", "where"):
            if not isinstance(getattr(self, name), Mapping):
                raise JointPMFError(f"{name} of {what} must be a mapping of names to levels")
        asked = dict.fromkeys(name_list(self.given))
        given = (*(n for n in self.names if n in asked), *asked.keys() - set(self.names))
        object.__setattr__(self, "given", given)
        object.__setattr__(self, "bounds", bounds_of(self.bounds, what))
        at_least_zero(self.rounding, f"rounding of {what}")
        for what, names in (("levels", self.levels), ("given", self.given)):
            unknown = [name for name in names if name not in self.names]
            if unknown:
                raise JointPMFError(
                    f"{what} of the table of {listing(self.names)} names {listing(unknown)}, "
                    "which is none of its axes"
                )
        if set(self.given) == set(self.names):
            raise JointPMFError(f"all axes of the table of {listing(self.names)} are given")

    def _set_parts(self, table: Table) -> None:
        """Keep each slice as parts of what it stands for."""
        array = np.asarray(table)
        what = f"the table of {listing(self.names)}"
        noise = None if self.noise is None else noise_of(self.noise, array.shape, what)
        if np.isinf(array).any() or (noise is None and (array < 0).any()):
            raise JointPMFError(f"{what} has a negative or infinite cell")
        axes = tuple(self.names.index(name) for name in self.given)
        parts = parts_of(array, self.n_obs, axes, what, noise)
        object.__setattr__(self, "own_rows", True)
        object.__setattr__(self, "noise", parts.noise)
        object.__setattr__(self, "total", float(np.nansum(array) / np.nansum(parts.table)))
        object.__setattr__(self, "n_obs", parts.n_obs)
        object.__setattr__(self, "table", parts.table)
        object.__setattr__(self, "is_whole", parts.is_whole)
        object.__setattr__(self, "unit", parts.unit)
        object.__setattr__(self, "of_sums", parts.of_sums)
        if noise is None and parts.n_obs is not None:
            is_shares = not _is_whole(array[~np.isnan(array)])
            slack = array.size * self.slack + (0.01 if is_shares else 1e-6)
            check_bounds(parts, axes, self.bounds, slack, what)

    def _set_probabilities(self, table: Table) -> None:
        """Keep a table of everyone as probabilities."""
        total = self._checked_total(table)
        given = likely_given(table) if self.n_obs is None and isinstance(table, np.ndarray) else ()
        if given:
            names = [self.names[k] for k in given]
            raise JointPMFError(
                f"the table of {listing(self.names)} looks like percentages within each level of "
                f"{listing(names)}: pass given={names!r}, or n_obs= if these are counts"
            )
        object.__setattr__(self, "own_rows", self.n_obs is not None)
        object.__setattr__(self, "total", 1.0 if is_one(total) else total)
        if self.n_obs is None and self.total != 1 and _is_whole(table):
            object.__setattr__(self, "n_obs", total)
        divided_before = abs(total - 1) < 1e-13
        object.__setattr__(self, "table", table if divided_before else table / total)

    def _as_array(self, limits: TableLimits) -> Table:
        otherwise = f"the table of {listing(self.names)} is not an array of numbers"
        return compact(np.ascontiguousarray(float_array(self.table, otherwise)), limits)

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
            n_obs = float_of(self.n_obs)
            if not 0 < n_obs < math.inf:
                raise JointPMFError(
                    f"{what} has n_obs={shown(self.n_obs)}; it must be a positive number"
                )
            if not (is_one(total) or same_total(total, n_obs)):
                raise JointPMFError(
                    f"{what} sums to {total:g}, which is neither one nor its n_obs="
                    f"{n_obs:g}; divide weighted counts by their sum"
                )
        return total

    @property
    def is_of_everyone(self) -> bool:
        """Whether it is the whole table of all levels, for the whole population."""
        return self.is_whole is None

    @property
    def slack(self) -> float:
        """How far rounding may have moved each probability."""
        return self.rounding / 2 / self.total

    @property
    def n_rows(self) -> float | None:
        """How many rows all slices together stand for, if that is known."""
        return None if self.n_obs is None else float(np.nansum(self.n_obs))

    def in_order(self, domain: Domain) -> Marginal:
        """Return the table with its entries in the order of the domain's levels, if they are those.

        A table of bands, of a part of the population or of slices stays as it is.
        """
        checked_domain(domain)
        found = self.measured(domain, 1.0)
        is_partial = self.where or self.given or self.noise is not None
        if is_partial or np.isnan(np.asarray(self.table)).any():
            return self
        if not all(is_permutation(sets) for sets in found.sets):
            return self
        orders = [sets.argmax(axis=0) for sets in found.sets]
        axes = np.argsort(found.positions)
        table = np.asarray(self.table)[np.ix_(*orders)].transpose(axes)
        names = [self.names[k] for k in axes]
        return Marginal(names, table, self.n_rows, rounding=self.rounding / self.total)

    def measured(self, domain: Domain, n_obs: float) -> Measurement:
        """Return what the table says, in the codes of a domain.

        `n_obs` is how many rows it stands for where it does not know that itself, nor says by its
        noise how much it is to count for.
        """
        positions = tuple(domain.index(name) for name in self.names)
        sets = [
            sets_of(domain[name], self.levels.get(name, domain[name].levels)) for name in self.names
        ]
        sizes = tuple(map(len, sets))
        if self.table.shape != sizes:
            raise JointPMFError(
                f"the table of {listing(self.names)} has shape {self.table.shape}, "
                f"but its axes have {sizes} entries"
            )
        where = {name: self._part(domain[name], levels) for name, levels in self.where.items()}
        for k, name in enumerate(self.names):
            if name in where:
                sets[k] = sets[k] & where.pop(name)
                self._check_left(k, sets[k], domain[name])
        axes = tuple(self.names.index(name) for name in self.given)
        shape = [sizes[k] for k in axes]
        others = tuple(k for k in range(self.order) if k not in axes)
        n_each = np.asarray(self.n_obs, float)
        if self.n_obs is None and self.noise is not None:
            n_cells = math.prod(sizes[k] for k in others)
            n_each = np.asarray(_NOISE_PART / n_cells * np.mean(self.noise**-2.0, axis=others))
        elif self.n_obs is None:
            n_each = np.full(shape, n_obs / max(math.prod(shape), 1))
        least, most = self.bounds
        scale = np.expand_dims(n_each, others if self.given else ())
        return Measurement(
            positions,
            tuple(sets),
            np.asarray(self.table) * scale,
            tuple((domain.index(name), mask) for name, mask in where.items()),
            axes,
            None if self.is_whole is None else np.where(self.is_whole, n_each, np.nan),
            least,
            most,
            None if self.noise is None else self.noise * scale,
        )

    def _part(self, variable: Variable, levels: Any) -> np.ndarray:
        if isinstance(levels, (tuple, list, set, frozenset)) and not levels:
            raise JointPMFError(
                f"where of the table of {listing(self.names)} leaves nobody: "
                f"it names no level of {variable.name!r}"
            )
        return sets_of(variable, [levels])[0]

    def _check_left(self, k: int, sets: np.ndarray, variable: Variable) -> None:
        """Refuse entries of an axis that people are counted in, but that `where` leaves out."""
        others = tuple(axis for axis in range(self.order) if axis != k)
        is_used = np.nansum(np.abs(np.asarray(self.table)), axis=others) > 0
        wrong = np.flatnonzero(~sets.any(axis=1) & (is_used | (variable.name in self.given)))
        if len(wrong):
            entry = list(self.levels.get(variable.name, variable.levels))[wrong[0]]
            raise JointPMFError(
                f"where of the table of {listing(self.names)} leaves nobody in its entry "
                f"{entry!r} of {variable.name!r}: leave that out of the table, and of levels"
            )

    @property
    def order(self) -> int:
        """Number of variables."""
        return len(self.names)

    def __repr__(self) -> str:
        """Name the variables and the size of the table."""
        size = "×".join(map(str, self.table.shape))
        counted = "" if self.n_rows is None else f", n_obs={self.n_rows:g}"
        names = ", ".join(name for name in self.names if name not in self.given)
        given = f" | {', '.join(self.given)}" if self.given else ""
        return f"Marginal({names}{given}: {size}{counted})"


def _is_whole(table: Table) -> bool:
    cells = table.values if isinstance(table, SparseTable) else table
    return bool((cells == np.floor(cells)).all())


def is_one(total: float) -> bool:
    """Tell whether probabilities sum to one; published ones were rounded."""
    return abs(total - 1) <= 0.01


def same_total(first: float, second: float) -> bool:
    """Tell whether two tables were counted over equally many rows."""
    return math.isclose(first, second, rel_tol=1e-6)
