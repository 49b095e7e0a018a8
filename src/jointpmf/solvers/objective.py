"""Coupled least squares as a solver sees it: gram and cross of every block, and the cost.

    ½ Σ_S w_S ‖X_S − [[weights; factors of S]]‖²                      (docs/math.md, eq. 5)

Work is shared between the modes of a marginal and between marginals. The variables of a subset,
in order, are split in a *head* and a *tail*, and its table is a matrix, head cells by tail cells.
In a sweep over the variables every head is updated before its tails, so two products per table
serve all of its modes (eq. 10): tables against the tails of the last sweep, for the heads; then,
as soon as a head is done, tables against the new heads, for the tails. Small tables with one tail
stand under each other in one matrix; large ones stay where they are, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from jointpmf import kernels
from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError
from jointpmf.marginals import MarginalSet
from jointpmf.pmf import JointPMF
from jointpmf.tables import SparseTable, Table, matrix_shape
from jointpmf.threads import run_all

STACK_BELOW = 2**16
"""Tables of fewer cells are copied into one matrix with their neighbours."""

THREAD_ABOVE = 2**22
"""Multiplications below which threads cost more than they bring."""

N_CHUNKS = 4
"""Parts of the work on heads, each with sums of its own; fixed, so that the bits are too."""

COST_ROWS = 2**18
"""Cells of the largest block of residuals that is formed at once."""


@dataclass
class Point:
    """Where a solver is: weights (rank,) and the factors of all variables, one row per level."""

    weights: np.ndarray
    factors: np.ndarray

    @classmethod
    def of_pmf(cls, pmf: JointPMF) -> Point:
        """Return the point at which a joint PMF lies."""
        return cls(pmf.weights.copy(), np.concatenate(pmf.factors))

    def to_pmf(self, domain: Domain) -> JointPMF:
        """Return the joint PMF of this point."""
        return JointPMF(domain, self.weights, np.split(self.factors, domain.offsets[1:-1]))

    def copy(self) -> Point:
        """Return a point that can be changed on its own."""
        return Point(self.weights.copy(), self.factors.copy())


@dataclass(frozen=True)
class Block:
    """The least-squares problem of one block while the others are held, eq. 6 and 7.

    `rows` are the block's rows of the factors, or None for the weights; `cross` has shape
    (rank, size).
    """

    rows: slice | None
    gram: np.ndarray
    cross: np.ndarray


class _Groups:
    """Distinct groups of variables whose joint cells lie one after the other in buffers."""

    def __init__(self, groups: set[tuple[int, ...]], sizes: np.ndarray) -> None:
        # by last variable first: all heads below a tail are then neighbours
        self.members = sorted(groups, key=lambda group: group[::-1])
        self.id_of = {group: g for g, group in enumerate(self.members)}
        self.variables = np.array([n for group in self.members for n in group], np.int64)
        self.ptr = _cumulative([len(group) for group in self.members])
        self.starts = _cumulative([int(np.prod(sizes[list(group)])) for group in self.members])

    @property
    def n_cells(self) -> int:
        return int(self.starts[-1])

    def rows(self, g: int) -> slice:
        return slice(int(self.starts[g]), int(self.starts[g + 1]))

    def where(self, condition: Callable[[tuple[int, ...]], bool]) -> np.ndarray:
        return np.array([g for g, group in enumerate(self.members) if condition(group)], np.int64)


@dataclass(frozen=True)
class _Run:
    """Tables with one tail and neighbouring heads, as one matrix: head rows by tail cells."""

    rows: slice
    matrix: np.ndarray | SparseTable
    weight: Any  # a number, or one per row

    @property
    def n_entries(self) -> int:
        return self.matrix.values.size if isinstance(self.matrix, SparseTable) else self.matrix.size


class CoupledLeastSquares:
    """The coupled objective over the tables of a MarginalSet, at a given rank.

    Parameters
    ----------
    marginals : MarginalSet
        The tables; they are not copied unless they are small.
    rank : int
        Number of components.
    weighting : None, "counts" or array
        Weight of each marginal: one, its share of the rows, or as given.
    """

    def __init__(self, marginals: MarginalSet, rank: int, weighting: Any = None) -> None:
        self.domain = marginals.domain
        self.rank = rank
        self.weights = marginal_weights(marginals, weighting)
        self._sizes = np.array(self.domain.sizes, np.int64)
        subsets = marginals.subsets
        self._heads = _Groups({s[: len(s) // 2] for s in subsets}, self._sizes)
        self._tails = _Groups({s[len(s) // 2 :] for s in subsets}, self._sizes)
        self._runs = self._build_runs(subsets, [m.table for m in marginals])
        self.norm = float(sum(w * _square(m.table) for w, m in zip(self.weights, marginals, strict=True)))
        self._index(subsets)
        self._allocate()

    # --- what does not change ------------------------------------------------------------------

    def _build_runs(self, subsets: Sequence[tuple[int, ...]], tables: list[Table]) -> list[list[_Run]]:
        """Return the runs of every tail, heads in order."""
        pieces: list[list[_Run]] = [[] for _ in self._tails.members]
        for subset, table, weight in zip(subsets, tables, self.weights, strict=True):
            half = len(subset) // 2
            rows = self._heads.rows(self._heads.id_of[subset[:half]])
            matrix = table if isinstance(table, SparseTable) else table.reshape(matrix_shape(table.shape))
            pieces[self._tails.id_of[subset[half:]]].append(_Run(rows, matrix, float(weight)))
        return [_stacked(sorted(runs, key=lambda run: run.rows.start)) for runs in pieces]

    def _index(self, subsets: Sequence[tuple[int, ...]]) -> None:
        """Note which groups and subsets each variable is in, and how work is split."""
        n_all = len(self.domain)
        self._subsets = np.array([n for s in subsets for n in s], np.int64)
        self._subset_ptr = _cumulative([len(s) for s in subsets])
        self._all_subsets = np.arange(len(subsets))
        holders: list[list[int]] = [[] for _ in range(n_all)]
        for s, subset in enumerate(subsets):
            for n in subset:
                holders[n].append(s)
        self._subsets_with = [np.array(h, np.int64) for h in holders]
        self._heads_with = _groups_by(self._heads, n_all, lambda group: group)
        self._tails_with = _groups_by(self._tails, n_all, lambda group: group)
        self._heads_ending = _groups_by(self._heads, n_all, lambda group: group[-1:])
        self._tails_starting = _groups_by(self._tails, n_all, lambda group: group[:1])
        self._work = np.array([sum(run.n_entries for run in runs) for runs in self._runs]) * self.rank
        n_chunks = N_CHUNKS if self._work.sum() > THREAD_ABOVE else 1
        self._chunks: list[list[int]] = [[] for _ in range(n_chunks)]
        load = np.zeros(n_chunks)
        for t in np.argsort(-self._work, kind="stable"):
            self._chunks[load.argmin()].append(int(t))
            load[load.argmin()] += self._work[t]

    def _allocate(self) -> None:
        width = -(-self.rank // kernels.LANES) * kernels.LANES
        self._factors = _aligned_zeros(int(self.domain.offsets[-1]), width)
        self._grams = np.zeros((len(self.domain), self.rank, self.rank))
        self._head_joint = _aligned_zeros(self._heads.n_cells, width)
        self._tail_joint = _aligned_zeros(self._tails.n_cells, width)
        self._tail_sums = _aligned_zeros(self._tails.n_cells, width)
        self._chunk_sums = [_aligned_zeros(self._heads.n_cells, width) for _ in self._chunks]
        self._column_parts = [
            (first, (0.0,) * min(kernels.MAX_LANES, width - first))
            for first in range(0, width, kernels.MAX_LANES)
        ]

    # --- a sweep -------------------------------------------------------------------------------

    def sweep(self, point: Point) -> Iterator[Block]:
        """Yield the block of each variable in turn, then that of the weights.

        Whoever iterates may write the block's new value into `point` before asking for the next:
        every block is seen with the newest values of all others.
        """
        self._load(point)
        self._contract_tails()
        for n in range(len(self.domain)):
            self._contract_heads(self._tails_starting[n])
            rows = slice(int(self.domain.offsets[n]), int(self.domain.offsets[n + 1]))
            yield Block(rows, self._factor_gram(n, point.weights), self._factor_cross(n, point.weights))
            self._factors[rows, : self.rank] = point.factors[rows]
            kernels.factor_grams(self._factors, self.domain.offsets, np.array([n]), self._grams)
            self._join(self._heads, self._heads_ending[n], self._head_joint)
        self._join(self._tails, self._tails.where(bool), self._tail_joint)
        yield Block(None, self._subset_gram(self._all_subsets, -1), self._weight_cross())

    def _load(self, point: Point) -> None:
        self._factors[:, : self.rank] = point.factors
        everything = np.arange(len(self.domain))
        kernels.factor_grams(self._factors, self.domain.offsets, everything, self._grams)
        self._join(self._heads, np.arange(len(self._heads.members)), self._head_joint)
        self._join(self._tails, np.arange(len(self._tails.members)), self._tail_joint)

    def _join(self, groups: _Groups, chosen: np.ndarray, joint: np.ndarray) -> None:
        kernels.khatri_rao(
            self._factors, self.domain.offsets, self._sizes,
            groups.variables, groups.ptr, groups.starts, chosen, joint,
        )  # fmt: skip

    def _contract_tails(self) -> None:
        """Sum the tails out of all tables, for the heads: one product per run."""
        tasks: list[Callable[[], None]] = [
            partial(self._contract_tails_of, tails, sums)
            for tails, sums in zip(self._chunks, self._chunk_sums, strict=True)
        ]
        run_all(tasks)
        for sums in self._chunk_sums[1:]:
            self._chunk_sums[0] += sums

    def _contract_tails_of(self, tails: list[int], sums: np.ndarray) -> None:
        sums[:] = 0.0
        for t in tails:
            joint = self._tail_joint[self._tails.rows(t)]
            for run in self._runs[t]:
                if isinstance(run.matrix, SparseTable):
                    self._sparse(kernels.sparse_times, run, joint, sums[run.rows])
                else:
                    sums[run.rows] += np.dot(run.matrix, joint) * run.weight

    def _contract_heads(self, tails: np.ndarray) -> None:
        """Sum the heads out of the tables of these tails, for the tails."""
        tasks: list[Callable[[], None]] = [partial(self._contract_heads_of, int(t)) for t in tails]
        if self._work[tails].sum() > THREAD_ABOVE:
            run_all(sorted(tasks, key=lambda task: -self._work[task.args[0]]))  # type: ignore[attr-defined]
        else:
            for task in tasks:
                task()

    def _contract_heads_of(self, t: int) -> None:
        sums = self._tail_sums[self._tails.rows(t)]
        sums[:] = 0.0
        for run in self._runs[t]:
            joint = self._head_joint[run.rows]
            if isinstance(run.matrix, SparseTable):
                self._sparse(kernels.sparse_transposed_times, run, joint, sums)
            else:
                sums += np.dot(run.matrix.T, joint * run.weight)

    def _sparse(self, product: Callable[..., None], run: _Run, joint: np.ndarray, out: np.ndarray) -> None:
        table = run.matrix
        for first, lanes in self._column_parts:
            product(table.ptr, table.columns, table.values, run.weight, joint, out, first, lanes)  # type: ignore[union-attr]

    # --- the blocks ----------------------------------------------------------------------------

    def _subset_gram(self, chosen: np.ndarray, skip: int) -> np.ndarray:
        gram = np.empty((self.rank, self.rank))
        kernels.gram_of_subsets(
            self._grams, self._subsets, self._subset_ptr, self.weights, chosen, skip, gram
        )
        return gram

    def _factor_gram(self, n: int, weights: np.ndarray) -> np.ndarray:
        return self._subset_gram(self._subsets_with[n], n) * np.outer(weights, weights)

    def _factor_cross(self, n: int, weights: np.ndarray) -> np.ndarray:
        total = np.zeros((self._sizes[n], self._factors.shape[1]))
        for groups, holders, sums in (
            (self._heads, self._heads_with, self._chunk_sums[0]),
            (self._tails, self._tails_with, self._tail_sums),
        ):
            kernels.contract_groups(
                sums, self._factors, self.domain.offsets, self._sizes,
                groups.variables, groups.ptr, groups.starts, holders[n], n, total,
            )  # fmt: skip
        return np.ascontiguousarray(total[:, : self.rank].T) * weights[:, None]

    def _weight_cross(self) -> np.ndarray:
        products = np.einsum("cf,cf->f", self._tail_sums, self._tail_joint)
        return products[: self.rank, None]

    # --- the cost ------------------------------------------------------------------------------

    def cost(self, point: Point) -> float:
        """Return the objective, from residuals: exact however small it is."""
        self._load(point)
        totals = np.zeros(len(self._runs))

        def of_tail(t: int) -> None:
            totals[t] = sum(self._cost_of_run(run, self._tails.rows(t), point.weights) for run in self._runs[t])

        tasks: list[Callable[[], None]] = [partial(of_tail, t) for t in range(len(self._runs))]
        if self._work.sum() > THREAD_ABOVE:
            run_all(tasks)
        else:
            for task in tasks:
                task()
        return 0.5 * float(totals.sum())

    def _cost_of_run(self, run: _Run, tail: slice, weights: np.ndarray) -> float:
        left = self._head_joint[run.rows, : self.rank] * weights
        right = self._tail_joint[tail, : self.rank]
        if isinstance(run.matrix, SparseTable):
            table = run.matrix
            stored = kernels.sparse_cost(table.ptr, table.columns, table.values, left, right)
            return run.weight * (stored + np.vdot(left.T @ left, right.T @ right))
        step = max(1, COST_ROWS // run.matrix.shape[1])
        total = 0.0
        for begin in range(0, len(left), step):
            rows = slice(begin, begin + step)
            residual = run.matrix[rows] - left[rows] @ right.T
            weight = run.weight if isinstance(run.weight, float) else run.weight[rows]
            total += np.vdot(residual * weight, residual)
        return float(total)


def marginal_weights(marginals: MarginalSet, weighting: Any) -> np.ndarray:
    """Return the weight of each marginal in the objective."""
    if weighting is None:
        return np.ones(len(marginals))
    if isinstance(weighting, str):
        if weighting != "counts":
            raise JointPMFError(f"weighting must be None, 'counts' or an array, not {weighting!r}")
        unknown = [m for m in marginals if m.n_obs is None]
        if unknown:
            raise JointPMFError(f"weighting by counts needs n_obs, which {unknown[0]!r} does not have")
        counts = np.array([m.n_obs for m in marginals], float)
        return counts / counts.mean()
    try:
        weights = np.array(weighting, dtype=float)
    except (TypeError, ValueError):
        raise JointPMFError("weighting must be None, 'counts' or an array of numbers") from None
    if weights.shape != (len(marginals),):
        raise JointPMFError(f"there are {weights.size} weights for {len(marginals)} marginals")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise JointPMFError("the weights of marginals must be finite, at least 0 and not all 0")
    return weights


def _stacked(runs: list[_Run]) -> list[_Run]:
    """Return the runs of one tail with small neighbours put into one matrix."""
    stacks: list[list[_Run]] = []
    for run in runs:
        last = stacks[-1][-1] if stacks else None
        if last and _is_small(last) and _is_small(run) and last.rows.stop == run.rows.start:
            stacks[-1].append(run)
        else:
            stacks.append([run])
    return [stack[0] if len(stack) == 1 else _one_matrix(stack) for stack in stacks]


def _is_small(run: _Run) -> bool:
    return isinstance(run.matrix, np.ndarray) and run.matrix.size < STACK_BELOW


def _one_matrix(stack: list[_Run]) -> _Run:
    rows = slice(stack[0].rows.start, stack[-1].rows.stop)
    matrix = np.concatenate([run.matrix for run in stack])  # type: ignore[list-item]
    same = all(run.weight == stack[0].weight for run in stack)
    lengths = [run.rows.stop - run.rows.start for run in stack]
    weight = stack[0].weight if same else np.repeat([run.weight for run in stack], lengths)[:, None]
    return _Run(rows, matrix, weight)


def _groups_by(
    groups: _Groups, n_variables: int, keys: Callable[[tuple[int, ...]], Sequence[int]]
) -> list[np.ndarray]:
    """Return, for each variable, the groups that list it among their keys."""
    found: list[list[int]] = [[] for _ in range(n_variables)]
    for g, group in enumerate(groups.members):
        for n in keys(group):
            found[n].append(g)
    return [np.array(chosen, np.int64) for chosen in found]


def _cumulative(counts: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _square(table: Table) -> float:
    cells = table.values if isinstance(table, SparseTable) else table
    return float(np.vdot(cells, cells))


def _aligned_zeros(rows: int, width: int) -> np.ndarray:
    """Return zeros whose rows begin on vector boundaries."""
    line = 8  # doubles in a cache line
    memory = np.zeros(rows * width + line)
    start = (-memory.ctypes.data // memory.itemsize) % line
    return memory[start : start + rows * width].reshape(rows, width)
