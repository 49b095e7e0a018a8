"""`Marginal`: the joint table of a few variables, with the names of its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from jointpmf.domain import check_distinct
from jointpmf.errors import JointPMFError, listing
from jointpmf.marginals.tables import DEFAULT_LIMITS, SparseTable, Table, TableLimits, compact


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
    limits : TableLimits
        Which tables are kept sparse.

    Examples
    --------
    >>> marginal = Marginal(("vote", "sex"), [[30, 20], [10, 40]])
    >>> marginal.table.tolist(), marginal.n_obs
    ([[0.3, 0.2], [0.1, 0.4]], 100.0)
    """

    names: Sequence[str]
    table: Any
    n_obs: float | None = None
    limits: InitVar[TableLimits] = DEFAULT_LIMITS
    total: float = field(init=False, default=1.0)
    own_rows: bool = field(init=False, default=False)

    def __post_init__(self, limits: TableLimits) -> None:
        if isinstance(self.names, str):
            raise JointPMFError(f"give the names as a list, such as [{self.names!r}]")
        object.__setattr__(self, "names", tuple(self.names))
        check_distinct(self.names, "a marginal")
        if not self.names:
            raise JointPMFError("a marginal needs at least one variable")
        table = self.table if isinstance(self.table, SparseTable) else self._as_array(limits)
        if len(table.shape) != len(self.names):
            raise JointPMFError(
                f"the table of {listing(self.names)} has {len(table.shape)} axes "
                f"for {len(self.names)} variables"
            )
        total = self._checked_total(table)
        object.__setattr__(self, "own_rows", self.n_obs is not None)
        object.__setattr__(self, "total", 1.0 if is_one(total) else total)
        if self.n_obs is None and self.total != 1 and _is_whole(table):
            object.__setattr__(self, "n_obs", total)
        divided_before = abs(total - 1) < 1e-13
        object.__setattr__(self, "table", table if divided_before else table / total)

    def _as_array(self, limits: TableLimits) -> Table:
        try:
            array = np.asarray(self.table)
            if array.dtype.kind == "c":
                raise TypeError
            return compact(np.ascontiguousarray(array, dtype=np.float64), limits)
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
            if not (is_one(total) or same_total(total, self.n_obs)):
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


def is_one(total: float) -> bool:
    """Tell whether probabilities sum to one; published ones were rounded."""
    return abs(total - 1) <= 0.01


def same_total(first: float, second: float) -> bool:
    """Tell whether two tables were counted over equally many rows."""
    return math.isclose(first, second, rel_tol=1e-6)
