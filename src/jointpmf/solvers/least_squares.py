"""Coupled least squares as a solver sees it: gram and cross of every block, and the cost.

    ½ Σ_S w_S ‖X_S − [[weights; factors of S]]‖²                      (docs/math.md, eq. 5)

Work is shared between the modes of a marginal and between marginals. The variables of a subset,
in order, are split in a *head* and a *tail*, and its table is a matrix, head cells by tail cells.
In a sweep over the variables every head is updated before its tails, so two products per table
serve all of its modes (eq. 10): tables against the tails of the last sweep, for the heads; then,
as soon as a head is done, tables against the new heads, for the tails. Small tables are copied
under each other and multiplied in one compiled pass; large ones stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.compiled import grams
from jointpmf.compiled import least_squares as kernels
from jointpmf.compiled.blas import gemm_address
from jointpmf.compiled.panels import aligned_zeros, padded_width, panels
from jointpmf.errors import JointPMFError, float_array, listing
from jointpmf.marginals.tables import CompressedRows, SparseTable, Table, matrix_shape
from jointpmf.solvers.curvature import Curvature, factor_grams
from jointpmf.threads import run_all

if TYPE_CHECKING:
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.point import Point

_N_CHUNKS = 2
"""Parts into which large tables are shared out, each with sums of its own; fixed, so that the
bits do not depend on the number of threads."""

CANCELLATION = 1e-7
"""Below this part of ‖X‖² a cost from inner products has lost its digits; residuals have not."""


@dataclass(frozen=True)
class Block:
    """The least-squares problem of one block while the others are held, eqs. 6 and 7.

    `rows` are the block's rows of the factors, or None for the weights; `cross` has shape
    (rank, size).
    """

    rows: slice | None
    gram: np.ndarray
    cross: np.ndarray


class _Groups:
    """Distinct groups of variables, and their layout in buffers with a row per joint cell."""

    def __init__(self, groups: set[tuple[int, ...]], sizes: Sequence[int]) -> None:
        # by last variable first: all heads below a tail are then neighbours
        self.members = sorted(groups, key=lambda group: group[::-1])
        self.id_of = {group: g for g, group in enumerate(self.members)}
        self.longest = max(map(len, self.members), default=0)
        self.all = np.arange(len(self.members))
        self.layout = (
            np.array([n for group in self.members for n in group], np.int64),
            _cumulative([len(group) for group in self.members]),
            _cumulative([math.prod(sizes[n] for n in group) for group in self.members]),
        )

    @property
    def n_cells(self) -> int:
        return int(self.layout[2][-1])

    def rows(self, g: int) -> slice:
        return slice(int(self.layout[2][g]), int(self.layout[2][g + 1]))

    def by_variable(
        self, n_variables: int, keys: Callable[[tuple[int, ...]], Sequence[int]]
    ) -> list[np.ndarray]:
        """Return, for each variable, the groups that list it among their keys."""
        return _positions_by_key([keys(group) for group in self.members], n_variables)


@dataclass(frozen=True)
class _Piece:
    """One table as a matrix: rows of the head buffer by cells of one tail."""

    rows: slice
    tail: int
    tail_rows: slice
    first_of_tail: int
    matrix: np.ndarray | SparseTable
    weight: float

    def is_below(self, n_cells: int) -> bool:
        return isinstance(self.matrix, np.ndarray) and self.matrix.size < n_cells

    @property
    def n_entries(self) -> int:
        if isinstance(self.matrix, SparseTable):
            return self.matrix.entries.values.size
        return self.matrix.size

    @cached_property
    def transposed(self) -> CompressedRows:
        """Of a sparse table, its entries by column: a product then reads where it would scatter."""
        assert isinstance(self.matrix, SparseTable)
        return self.matrix.transposed_entries()


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
    stack_below : int
        Tables of fewer cells are copied into one stack with their neighbours.
    residual_cells : int
        Cells of the largest block of residuals that is formed at once.
    """

    def __init__(
        self,
        marginals: MarginalSet,
        rank: int,
        weighting: Any = None,
        *,
        stack_below: int = 2**15,
        residual_cells: int = 2**18,
    ) -> None:
        self.domain = marginals.domain
        self.rank, self._residual_cells = rank, residual_cells
        self.marginal_weights = marginal_weights(marginals, weighting)
        self.norm = float(
            sum(w * _square(m.table) for w, m in zip(self.marginal_weights, marginals, strict=True))
        )
        self.floor = 1e-30 * self.norm
        self.subsets = subsets = marginals.subsets
        self._heads = _Groups({s[: len(s) // 2] for s in subsets}, self.domain.sizes)
        self._tails = _Groups({s[len(s) // 2 :] for s in subsets}, self.domain.sizes)
        pieces = self._pieces(subsets, [m.table for m in marginals])
        self._stack_small([piece for piece in pieces if piece.is_below(stack_below)])
        self._share_large([piece for piece in pieces if not piece.is_below(stack_below)])
        self._index(subsets)
        self._allocate()

    def _pieces(self, subsets: Sequence[tuple[int, ...]], tables: list[Table]) -> list[_Piece]:
        """Return all tables as matrices, in the order in which a sweep needs their tails."""
        pieces = []
        for subset, table, weight in zip(subsets, tables, self.marginal_weights, strict=True):
            if not weight:
                continue
            half = len(subset) // 2
            rows = self._heads.rows(self._heads.id_of[subset[:half]])
            tail = self._tails.id_of[subset[half:]]
            if isinstance(table, np.ndarray):
                table = table.reshape(matrix_shape(table.shape))
            pieces.append(
                _Piece(rows, tail, self._tails.rows(tail), subset[half], table, float(weight))
            )
        return sorted(pieces, key=lambda p: (p.first_of_tail, p.tail, p.rows.start))

    def _stack_small(self, pieces: list[_Piece]) -> None:
        """Copy small tables, weighted, into a stack; neighbours with one tail are a run of it."""
        runs: list[list[_Piece]] = []
        for piece in pieces:
            last = runs[-1][-1] if runs else None
            if last and last.tail == piece.tail and last.rows.stop == piece.rows.start:
                runs[-1].append(piece)
            else:
                runs.append([piece])
        heights = [run[-1].rows.stop - run[0].rows.start for run in runs]
        n_cells = [sum(p.n_entries for p in run) for run in runs]
        self._stack = (
            np.concatenate([np.empty(0)] + [p.weight * p.matrix.reshape(-1) for p in pieces]),  # type: ignore[union-attr]
            _cumulative(n_cells),
            np.array([run[0].rows.start for run in runs], np.int64),
            np.array([run[-1].rows.stop for run in runs], np.int64),
            np.array([run[0].tail for run in runs], np.int64),
            _cumulative(heights),
            np.repeat([p.weight for p in pieces], [p.rows.stop - p.rows.start for p in pieces]),
        )
        firsts = [run[0].first_of_tail for run in runs]
        rows, cells = max(heights, default=0), max(n_cells, default=0)
        self._room_of_run = np.empty(rows * self.rank), np.empty(cells)
        self._runs_until = np.searchsorted(firsts, np.arange(len(self.domain) + 1))

    def _share_large(self, pieces: list[_Piece]) -> None:
        """Deal the large tables out in chunks of equal work, for each first variable of a tail."""
        n_chunks = _N_CHUNKS if pieces else 1
        self._large: list[list[list[_Piece]]] = [
            [[] for _ in range(n_chunks)] for _ in range(len(self.domain))
        ]
        for first, chunks in enumerate(self._large):
            load = np.zeros(n_chunks)
            mine = [piece for piece in pieces if piece.first_of_tail == first]
            for piece in sorted(mine, key=lambda p: -p.n_entries):
                chunks[load.argmin()].append(piece)
                load[load.argmin()] += piece.n_entries

    @property
    def _large_pieces(self) -> list[_Piece]:
        return [piece for chunks in self._large for chunk in chunks for piece in chunk]

    def _index(self, subsets: Sequence[tuple[int, ...]]) -> None:
        """Note which groups and subsets each variable is in."""
        n_all = len(self.domain)
        self._subsets = np.array([n for s in subsets for n in s], np.int64)
        self._subset_ptr = _cumulative([len(s) for s in subsets])
        self._all_subsets = np.arange(len(subsets))
        self._subsets_with = _positions_by_key(subsets, n_all)
        self._heads_with = self._heads.by_variable(n_all, lambda group: group)
        self._tails_with = self._tails.by_variable(n_all, lambda group: group)
        self._heads_ending = self._heads.by_variable(n_all, lambda group: group[-1:])
        self._tails_starting = self._tails.by_variable(n_all, lambda group: group[:1])

    def _allocate(self) -> None:
        width = padded_width(self.rank)
        self._factors = aligned_zeros(int(self.domain.offsets[-1]), width)
        self._grams = np.zeros((len(self.domain), self.rank, self.rank))
        self._head_joint = aligned_zeros(self._heads.n_cells, width)
        self._tail_joint = aligned_zeros(self._tails.n_cells, width)
        n_chunks = len(self._large[0])
        self._head_sums = [aligned_zeros(self._heads.n_cells, width) for _ in range(n_chunks)]
        self._tail_sums = [aligned_zeros(self._tails.n_cells, width) for _ in range(n_chunks)]
        self._column_parts = panels(width)
        self._ones = np.ones(self.rank)
        self._room_of_gram = np.empty((self.rank, self.rank))
        self._is_current = False

    def sweep(self, point: Point) -> Iterator[Block]:
        """Yield the block of each variable in turn, then that of the weights.

        Whoever iterates may write the block's new value into `point` before asking for the next:
        every block is seen with the newest values of all others.
        """
        offsets = self.domain.offsets
        self._load(point)
        self._is_current = False  # until the last block: a sweep may be abandoned
        self._contract_tails()
        for sums in self._tail_sums:
            sums[:] = 0.0
        for n in range(len(self.domain)):
            self._contract_heads(n)
            rows = slice(int(offsets[n]), int(offsets[n + 1]))
            gram = self._gram(self._subsets_with[n], n, point.weights)
            yield Block(rows, gram, self._factor_cross(n, point))
            self._factors[rows, : self.rank] = point.factors[rows]
            self._grams[n] = point.factors[rows].T @ point.factors[rows]
            self._join(self._heads, self._heads_ending[n], self._head_joint)
        self._join(self._tails, self._tails.all, self._tail_joint)
        self._is_current = True
        yield Block(None, self._gram(self._all_subsets, -1, self._ones), self._weight_cross())

    @cached_property
    def curvature(self) -> Curvature:
        """What JᵀJ is made from, at any point."""
        return Curvature(self.domain, self.subsets, self.marginal_weights)

    def _load(self, point: Point) -> None:
        """Bring everything that depends on the factors alone up to date, if it is not already."""
        if self._is_current and np.array_equal(self._factors[:, : self.rank], point.factors):
            return  # a sweep ends with everything it needs to begin again
        self._factors[:, : self.rank] = point.factors
        self._grams[:] = factor_grams(point.factors, self.domain.offsets)
        self._join(self._heads, self._heads.all, self._head_joint)
        self._join(self._tails, self._tails.all, self._tail_joint)
        self._is_current = True

    def _join(self, groups: _Groups, chosen: np.ndarray, joint: np.ndarray) -> None:
        kernels.khatri_rao(self._factors, self.domain.offsets, groups.layout, chosen, joint)

    def _contract_tails(self) -> None:
        """Sum the tails out of all tables, for the heads."""
        run_all([partial(self._contract_tails_of, c) for c in range(len(self._head_sums))])
        total = self._head_sums[0]
        for sums in self._head_sums[1:]:
            total += sums
        self._add_stack(0, len(self._stack[4]), self._tail_joint, total, is_transposed=False)

    def _contract_tails_of(self, chunk: int) -> None:
        sums = self._head_sums[chunk]
        sums[:] = 0.0
        for piece in chain.from_iterable(chunks[chunk] for chunks in self._large):
            joint = self._tail_joint[piece.tail_rows]
            if isinstance(piece.matrix, SparseTable):
                self._add_sparse(piece, piece.matrix.entries, joint, sums[piece.rows])
            else:
                _add_product(joint, piece.weight, piece.matrix.T, sums[piece.rows])

    def _contract_heads(self, n: int) -> None:
        """Sum the heads out of the tables whose tails begin with variable n, for those tails."""
        total = self._tail_sums[0]
        if any(self._large[n]):
            run_all([partial(self._contract_heads_of, n, c) for c in range(len(self._tail_sums))])
            for t in self._tails_starting[n]:
                for sums in self._tail_sums[1:]:
                    total[self._tails.rows(t)] += sums[self._tails.rows(t)]
        begin, end = int(self._runs_until[n]), int(self._runs_until[n + 1])
        self._add_stack(begin, end, self._head_joint, total, is_transposed=True)

    def _add_stack(
        self, begin: int, end: int, joint: np.ndarray, out: np.ndarray, *, is_transposed: bool
    ) -> None:
        layout = self._tails.layout
        kernels.stack_times(
            gemm_address(), self._stack, begin, end, layout, joint, out, is_transposed
        )

    def _contract_heads_of(self, n: int, chunk: int) -> None:
        for piece in self._large[n][chunk]:
            joint = self._head_joint[piece.rows]
            sums = self._tail_sums[chunk][piece.tail_rows]
            if isinstance(piece.matrix, SparseTable):
                self._add_sparse(piece, piece.transposed, joint, sums)
            else:
                _add_product(joint, piece.weight, piece.matrix, sums)

    def _add_sparse(
        self, piece: _Piece, entries: CompressedRows, joint: np.ndarray, out: np.ndarray
    ) -> None:
        scale = piece.weight * piece.matrix.scale  # type: ignore[union-attr]
        for first, lanes in self._column_parts:
            kernels.add_sparse_product(*entries, scale, joint, out, first, lanes)

    def _gram(self, chosen: np.ndarray, skip: int, scale: np.ndarray) -> np.ndarray:
        out = np.empty((self.rank, self.rank))
        grams.subset_gram(
            self._grams, self._subsets, self._subset_ptr, self.marginal_weights, chosen, skip,
            scale, self._room_of_gram, out,
        )  # fmt: skip
        return out

    def _factor_cross(self, n: int, point: Point) -> np.ndarray:
        """Return, of shape (rank, size), what all groups with variable n say of it, eq. 7."""
        size = self.domain.sizes[n]
        total, out = np.zeros((size, self._factors.shape[1])), np.empty((self.rank, size))
        heads = self._head_sums[0], self._heads.layout, self._heads_with[n]
        tails = self._tail_sums[0], self._tails.layout, self._tails_with[n]
        model = self._factors, self.domain.offsets, n, total
        for groups, given in ((self._heads, heads), (self._tails, tails)):
            if groups.longest > 2:
                kernels.contract_many(*given, *model)
        kernels.factor_cross(*heads, *tails, *model, point.weights, out)
        return out

    def _weight_cross(self) -> np.ndarray:
        """Return, of shape (rank, 1), the tables against all factors."""
        both = self._tail_sums[0], self._tail_joint
        return np.einsum("cf,cf->f", *both)[: self.rank, None]

    def cost(self, point: Point) -> float:
        """Return the objective, from residuals: exact however small it is."""
        self._load(point)
        large = self._large_pieces
        costs = np.zeros(len(large))

        def of_piece(k: int) -> None:
            costs[k] = self._cost_of_piece(large[k], point.weights)

        run_all([partial(of_piece, k) for k in range(len(large))])
        unused = np.empty((0, self._head_joint.shape[1]))
        small = self._stack_residuals(point.weights, unused, unused)
        return 0.5 * float(costs.sum() + small)

    def gradient(self, point: Point) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient, weights first, both from residuals (eq. 16)."""
        self._load(point)
        head_sums, tail_sums = self._head_sums[0], self._tail_sums[0]
        head_sums[:] = tail_sums[:] = 0.0
        cost = self._stack_residuals(point.weights, head_sums, tail_sums)
        for piece in self._large_pieces:
            cost += self._add_residuals(piece, point.weights)
        parts = [self._weight_cross()[:, 0]]
        parts += [self._factor_cross(n, point).T.ravel() for n in range(len(self.domain))]
        return 0.5 * float(cost), -np.concatenate(parts)

    def _stack_residuals(
        self, weights: np.ndarray, head_sums: np.ndarray, tail_sums: np.ndarray
    ) -> float:
        """Add the small tables' residuals, contracted; return their weighted square."""
        return kernels.stack_residuals(
            gemm_address(), self._stack, self._tails.layout, self._head_joint, self._tail_joint,
            weights, self._room_of_run, head_sums, tail_sums,
        )  # fmt: skip

    def _add_residuals(self, piece: _Piece, weights: np.ndarray) -> float:
        """Add a large table's residuals, contracted, to the sums; return their weighted square."""
        left = np.zeros_like(self._head_joint[piece.rows])
        left[:, : self.rank] = self._head_joint[piece.rows, : self.rank] * weights
        right = self._tail_joint[piece.tail_rows]
        heads, tails = self._head_sums[0][piece.rows], self._tail_sums[0][piece.tail_rows]
        if isinstance(piece.matrix, SparseTable):
            self._add_sparse(piece, piece.matrix.entries, right, heads)
            self._add_sparse(piece, piece.transposed, self._head_joint[piece.rows], tails)
            heads -= piece.weight * left @ (right.T @ right)
            tails -= piece.weight * right @ (left.T @ self._head_joint[piece.rows])
            return self._cost_of_piece(piece, weights)
        total = 0.0
        for rows, residual in self._residual_blocks(piece, left, right):
            total += float(np.vdot(residual, residual))
            heads[rows] += piece.weight * residual @ right
            tails += piece.weight * residual.T @ self._head_joint[piece.rows][rows]
        return piece.weight * total

    def _cost_of_piece(self, piece: _Piece, weights: np.ndarray) -> float:
        left = self._head_joint[piece.rows, : self.rank] * weights
        right = self._tail_joint[piece.tail_rows, : self.rank]
        if isinstance(piece.matrix, SparseTable):
            table = piece.matrix
            fitted_square = float(np.vdot(left.T @ left, right.T @ right))
            cost = kernels.sparse_cost(*table.entries, table.scale, left, right) + fitted_square
            if cost > CANCELLATION * fitted_square:
                return piece.weight * float(cost)
        residuals = (residual for _, residual in self._residual_blocks(piece, left, right))
        return piece.weight * sum(float(np.vdot(block, block)) for block in residuals)

    def _residual_blocks(
        self, piece: _Piece, left: np.ndarray, right: np.ndarray
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield a table minus its model, a few rows at a time, so that no second one is formed."""
        step = max(1, self._residual_cells // len(right))
        for begin in range(0, len(left), step):
            rows = slice(begin, begin + step)
            table = piece.matrix
            block = table.dense_rows(rows) if isinstance(table, SparseTable) else table[rows]
            yield rows, block - left[rows] @ right.T


def marginal_weights(marginals: MarginalSet, weighting: Any) -> np.ndarray:
    """Return the weight of each marginal in the objective."""
    if weighting is None:
        return np.ones(len(marginals))
    if isinstance(weighting, str):
        if weighting != "counts":
            raise JointPMFError(f"weighting must be None, 'counts' or an array, not {weighting!r}")
        unknown = [m for m in marginals if m.n_obs is None]
        if unknown:
            raise JointPMFError(
                f"weighting by counts needs n_obs, which {unknown[0]!r} does not have"
            )
        counts = np.array([m.n_obs for m in marginals], float)
        return counts / counts.mean()
    weights = float_array(weighting, "weighting must be None, 'counts' or an array of numbers")
    if weights.shape != (len(marginals),):
        raise JointPMFError(f"there are {weights.size} weights for {len(marginals)} marginals")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise JointPMFError("the weights of marginals must be finite, at least 0 and not all 0")
    seen = {n for s, w in zip(marginals.subsets, weights, strict=True) if w > 0 for n in s}
    unseen = [name for n, name in enumerate(marginals.domain.names) if n not in seen]
    if unseen:
        raise JointPMFError(f"all marginals with the variable {listing(unseen)} have weight 0")
    return weights / weights.max()


def _add_product(joint: np.ndarray, weight: float, matrix: np.ndarray, out: np.ndarray) -> None:
    """Add weight · matrixᵀ joint to `out`."""
    # BLAS needs two thirds of the time where the narrow factor is the left one
    out += np.dot(weight * joint.T, matrix).T


def _positions_by_key(keys: Sequence[Sequence[int]], n_keys: int) -> list[np.ndarray]:
    """Return, for each key, the positions of the lists that hold it."""
    found: list[list[int]] = [[] for _ in range(n_keys)]
    for position, held in enumerate(keys):
        for key in held:
            found[key].append(position)
    return [np.array(positions, np.int64) for positions in found]


def _cumulative(counts: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _square(table: Table) -> float:
    cells = table.values if isinstance(table, SparseTable) else table
    return float(np.vdot(cells, cells))
