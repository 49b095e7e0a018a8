"""The linear program of all joints that meet tables: its unknowns are the cells of cliques.

Each row says that a combination of cells and units is zero, or at most zero, so that a conditional
needs only another number that is made one (docs/math.md, eqs. 61 and 62).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from math import prod

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, kron, vstack

from jointpmf.errors import JointPMFError
from jointpmf.judge.cliques import Group, Meeting
from jointpmf.judge.linear_query import Weights
from jointpmf.judge.table_limits import Limits, Unit

_TOLERANCE = 1e-9
"""How far rows may be off: if it were larger, small conditionals would be off by more."""

_MANY_ROWS = 1000
"""Rows above which HiGHS is asked for its interior point: with more, the simplex took longer."""

_INFEASIBLE = 2
"""What scipy says of a program without a solution."""


@dataclass
class _Rows:
    """Rows of a sparse matrix, of whose columns there may be more later."""

    blocks: list[coo_array] = field(default_factory=list)

    def add(self, cells: csr_array, first: int, column: int, units: np.ndarray | float) -> None:
        """Add rows of cells that begin at a column, and in one more column minus their units."""
        n_rows = cells.shape[0]
        units = np.broadcast_to(-np.asarray(units, float), n_rows)
        found = cells.tocoo()
        rows = np.concatenate([found.row, np.arange(n_rows)])
        columns = np.concatenate([found.col + first, np.full(n_rows, column)])
        values = np.concatenate([found.data, units])
        self.blocks.append(coo_array((values, (rows, columns)), (n_rows, column + 1)))

    def matrix(self, n_columns: int) -> csr_array:
        """Return all rows."""
        for block in self.blocks:
            block.resize(block.shape[0], n_columns)
        empty = csr_array((0, n_columns))
        return csr_array(vstack([empty, *self.blocks], format="csr"))


class Program:
    """Unknowns: the cells of all cliques, the probability of everyone, and units of slices.

    Parameters
    ----------
    cliques, meetings : sequences
        Which variables are looked at together, and where two of these groups must agree.
    sizes : sequence of int
        How many levels each variable has.
    """

    def __init__(
        self, cliques: Sequence[Group], meetings: Sequence[Meeting], sizes: Sequence[int]
    ) -> None:
        self._sizes = sizes
        self._cliques = [tuple(sorted(clique)) for clique in cliques]
        n_cells = [prod(sizes[n] for n in clique) for clique in self._cliques]
        self._begins = [0, *accumulate(n_cells)]
        self._everyone = self._begins[-1]
        self.n_columns = self._everyone + 1
        self._most = np.full(self._everyone, np.inf)
        self._equal, self._below = _Rows(), _Rows()
        self._add(self._equal, 0, {}, self._everyone, 1.0)
        for meeting in meetings:
            self._tie(meeting)

    def _cells(self, clique: int, weights: Weights) -> csr_array:
        """Return the number of each cell of a clique, for all combinations of rows of numbers.

        Variables without numbers are summed over.
        """
        rows = [
            csr_array(np.atleast_2d(weights.get(n, np.ones(self._sizes[n]))).astype(float))
            for n in self._cliques[clique]
        ]
        return csr_array(reduce(lambda a, b: kron(a, b, format="csr"), rows))

    def _home(self, group: Iterable[int]) -> int:
        """Return the smallest clique that has all variables of a group."""
        having = [k for k, clique in enumerate(self._cliques) if set(group) <= set(clique)]
        return min(having, key=lambda k: self._begins[k + 1] - self._begins[k])

    def _add(
        self, rows: _Rows, clique: int, weights: Weights, column: int, units: np.ndarray | float
    ) -> None:
        rows.add(self._cells(clique, weights), self._begins[clique], column, units)

    def _tie(self, meeting: Meeting) -> None:
        """Let two cliques give the variables that both have the same distribution."""
        same = {n: np.eye(self._sizes[n]) for n in meeting.common}
        a, b = sorted(meeting[:2])
        gap = csr_array((prod(map(len, same.values())), self._begins[b] - self._begins[a + 1]))
        both = hstack([self._cells(a, same), gap, -self._cells(b, same)], format="csr")
        self._equal.add(csr_array(both), self._begins[a], self._everyone, 0.0)

    def limit(self, table: Limits, sets: Sequence[np.ndarray], is_new: np.ndarray) -> None:
        """Keep the cells of a slice within what its table allows.

        `sets` are of the levels that there are here, and `is_new` are the cells to look at.
        """
        weights = dict(zip(table.variables, sets, strict=True))
        home = self._home(weights)
        cells, begin = self._cells(home, weights), self._begins[home]
        column = self._everyone
        if table.unit is not Unit.EVERYONE:
            column, self.n_columns = self.n_columns, self.n_columns + 1
        if table.unit is Unit.SLICE:
            base = csr_array(table.is_base.astype(float)[None, :]) @ cells
            self._equal.add(base, begin, column, 1.0)
        is_exact = table.low == table.high
        has_most, has_least = ~is_exact & (table.high < np.inf), ~is_exact & (table.low > 0)
        is_exact &= is_new
        self._equal.add(cells[is_exact], begin, column, table.low[is_exact])
        self._below.add(cells[has_most], begin, column, table.high[has_most])
        self._below.add(-cells[has_least], begin, column, -table.low[has_least])

    def forbid(self, combination: Weights) -> None:
        """Give a combination of sets of levels probability zero."""
        home = self._home(combination)
        self._most[self._begins[home] + self._cells(home, combination).indices] = 0.0

    def extremes(self, asked: Weights, given: Weights | None = None) -> tuple[float, float] | None:
        """Return the least and the largest sum of cells, by the weights of levels that are asked.

        The sum by the weights `given` is made one; without them, the probability of everyone is.
        None if there is no such joint.
        """
        one, row = self._one(given), self._row(asked)
        low, high = self._least(row, one), self._least(-row, one)
        return None if low is None or high is None else (low, -high)

    def largest(self, asked: Weights) -> float | None:
        """Return the largest probability of an event; None if there is no joint."""
        least = self._least(-self._row(asked), self._one(None))
        return None if least is None else -least

    def _one(self, given: Weights | None) -> np.ndarray:
        """Return the row that is made one."""
        if given is not None:
            return self._row(given)
        one = np.zeros(self.n_columns)
        one[self._everyone] = 1.0
        return one

    def _least(self, row: np.ndarray, one: np.ndarray) -> float | None:
        """Return the least that a row can be if another one is one; None if none can be."""
        equal = vstack([self._equal.matrix(self.n_columns), csr_array(one[None, :])], format="csr")
        below = self._below.matrix(self.n_columns)
        n_rows = equal.shape[0] + below.shape[0]
        most = np.concatenate([self._most, np.full(self.n_columns - self._everyone, np.inf)])
        solved = linprog(
            row,
            below,
            np.zeros(below.shape[0]),
            equal,
            np.concatenate([np.zeros(equal.shape[0] - 1), [1.0]]),
            np.column_stack([np.zeros(self.n_columns), most]),
            method="highs-ipm" if n_rows > _MANY_ROWS else "highs-ds",
            options={"primal_feasibility_tolerance": _TOLERANCE},
        )
        if solved.status not in (0, _INFEASIBLE):
            raise JointPMFError(f"the linear program was not solved: {solved.message}")
        return None if solved.status else float(solved.fun)

    def _row(self, weights: Weights) -> np.ndarray:
        """Return the weights of all columns in a sum over the levels of some variables."""
        home = self._home(weights)
        row = np.zeros(self.n_columns)
        row[self._begins[home] : self._begins[home + 1]] = self._cells(home, weights).toarray()[0]
        return row
