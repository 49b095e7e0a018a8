"""Sums over the patterns of missing cells: what the coupled objective asks of Gram matrices.

A pattern says which variables were observed. Its e_1 … e_k follow from its power sums, and those
are a product of two matrices: which variables it has, and the powers of their numbers. So many
patterns cost what matrix products cost (docs/math.md, eq. 30).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.compiled.cells import n_observed
from jointpmf.threads import one_blas_thread, run_all

if TYPE_CHECKING:
    from jointpmf.rows.table import ColumnRows

_BLOCK = 512
"""Patterns that are worked on at once: what they touch stays in the cache."""

_MAX_CHUNKS, _CHUNK_BYTES = 32, 2**26
"""Parts into which blocks are shared out at most, and the memory of their sums; fixed, so that the
bits do not depend on the number of threads."""


class Patterns(NamedTuple):
    """Which variables rows observe: an array of booleans, variables by patterns, and weights."""

    observed: np.ndarray
    weights: np.ndarray

    @classmethod
    def of_rows(cls, rows: ColumnRows) -> Patterns:
        """Return the distinct patterns of rows."""
        columns = rows.columns
        if (n_observed(columns) == len(columns)).all():
            return cls(np.ones((len(columns), 1), bool), np.array([rows.total]))
        bits = np.concatenate(
            [np.packbits(columns[n : n + 8] >= 0, axis=0) for n in range(0, len(columns), 8)]
        )
        keys = np.ascontiguousarray(bits.T).view(np.dtype((np.void, len(bits))))[:, 0]
        _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
        weights = np.bincount(inverse, rows.weights, minlength=len(firsts))
        return cls(columns[:, firsts] >= 0, weights)

    def some(self, size: int) -> Patterns:
        """Return at most this many patterns, drawn by their weights if there are more."""
        if len(self.weights) <= size:
            return self
        shares = self.weights / self.weights.sum()
        drawn = np.random.default_rng(0).choice(len(shares), size, p=shares)
        some, counts = np.unique(drawn, return_counts=True)
        return Patterns(self.observed[:, some], counts * (self.weights.sum() / size))


def _powers(table: np.ndarray, count: int) -> list[np.ndarray]:
    """Return the first powers of numbers."""
    return list(np.multiply.accumulate([table] * count)) if count else []


def _elementary(sums: Sequence[np.ndarray], order: int) -> list[np.ndarray]:
    """Return e_1 … e_k from power sums, by Newton's identities; sums that are not given are zero.

    Examples
    --------
    >>> [float(e[0]) for e in _elementary([np.array([5.0]), np.array([13.0])], 2)]  # of 2 and 3
    [5.0, 6.0]
    """
    found: list[np.ndarray] = []
    for j in range(1, order + 1):
        total = sums[j - 1] if j <= len(sums) else np.zeros_like(sums[0])
        total = total if j % 2 else -total
        for i, power_sum in enumerate(sums[: j - 1]):
            step = power_sum * found[j - 2 - i]
            total = total - step if i % 2 else total + step
        found.append(total / j)
    return found


class PatternSums:
    """Sums over patterns of e_1 … e_k of a table with a row of numbers per variable.

    Only powers up to k − 2 are summed for each pattern. What e_1 … e_k have of the two highest is
    linear in a power sum or a product of two, and so follows from how many observe each pair.

    Parameters
    ----------
    patterns : Patterns
        Which variables each pattern has, and what it counts for.
    n_numbers, order : int
        Numbers per variable, and k.
    """

    def __init__(self, patterns: Patterns, n_numbers: int, order: int) -> None:
        self.patterns, self.n_numbers, self.order = patterns, n_numbers, order
        n_all, count = patterns.observed.shape
        self._n_kept = order - 2
        self._sums = np.empty((count, self._n_kept * n_numbers))
        size = 8 * n_all * max(n_all, order * n_numbers)
        n_chunks = max(min(count // _BLOCK, _MAX_CHUNKS, _CHUNK_BYTES // size), 1)
        self._bounds = np.linspace(0, count, n_chunks + 1).astype(int)
        self._pairs = self._summed((n_all, n_all), self._pairs_of)
        self.load(np.zeros((n_all, n_numbers)))

    def load(self, table: np.ndarray) -> None:
        """Take a table of shape (variables, n_numbers); patterns follow when next looked at."""
        self._table = table.copy()
        self._change, self._changed = self._kept_powers(table), (0, len(table))
        self._is_new = True

    def exchange(self, begin: int, end: int, table: np.ndarray) -> None:
        """Take new numbers of the variables begin:end."""
        self._bring_up_to_date()
        old, new = (self._kept_powers(one[begin:end]) for one in (self._table, table))
        self._table[begin:end] = table[begin:end]
        self._change, self._changed = new - old, (begin, end)

    def without(self, begin: int, end: int) -> np.ndarray:
        """Return Σ over the patterns with a variable of e_{k−1} of their others, for begin:end."""
        shape = (end - begin, self._n_kept * self.n_numbers)
        curved = self._summed(shape, partial(self._added, begin, end))
        self._changed, self._is_new = (0, 0), False
        own, pairs = self._table[begin:end], self._pairs[begin:end]
        found = pairs @ self._table - own * np.diag(self._pairs)[begin:end, None]
        parts = np.split(curved, max(self._n_kept, 1), axis=1)
        for j, power in enumerate(_powers(self._table, self.order - 1)[1:], 2):  # eq. 29
            found = parts[j - 2] - (-1) ** j / j * (pairs @ power) - own * found
        return found

    def whole(self) -> np.ndarray:
        """Return Σ over patterns of e_k, in shape (n_numbers,)."""
        self._bring_up_to_date()
        *_, highest, top = _powers(self._table, self.order)
        pairs = np.einsum("nf,nf->f", highest, self._pairs @ self._table) / max(self.order - 1, 2)
        sign = (-1) ** self.order
        curved = self._summed((self.n_numbers,), self._curved_whole)
        return curved + sign * (pairs - np.diag(self._pairs) @ top / self.order)

    def _kept_powers(self, table: np.ndarray) -> np.ndarray:
        return np.concatenate([table[:, :0], *_powers(table, self._n_kept)], axis=1)

    def _bring_up_to_date(self) -> None:
        if self._changed != (0, 0):
            self.without(0, 0)

    def _summed(self, shape: tuple[int, ...], part: Callable[[slice], np.ndarray]) -> np.ndarray:
        """Return the sum over all blocks of patterns of what each adds."""
        found = np.zeros((len(self._bounds) - 1, *shape))

        def chunk(k: int) -> None:
            begin, end = self._bounds[k : k + 2]
            for first in range(begin, end, _BLOCK):
                found[k] += part(slice(first, min(first + _BLOCK, end)))

        with one_blas_thread:
            run_all([partial(chunk, k) for k in range(len(found))])
        return found.sum(axis=0)

    def _pairs_of(self, block: slice) -> np.ndarray:
        """Return what the patterns of a block that have two variables count for."""
        observed = self.patterns.observed[:, block] * np.sqrt(self.patterns.weights[block])
        return observed @ observed.T

    def _added(self, begin: int, end: int, block: slice) -> np.ndarray:
        """Bring a block up to date; return what it adds to the sums of its variables begin:end.

        Those are e_2 … e_{k−1} but for what is linear in power sums.
        """
        first, last = self._changed
        if first < last and self._n_kept:
            moved = self.patterns.observed[first:last, block].T.astype(float) @ self._change
            if not self._is_new:
                moved += self._sums[block]
            self._sums[block] = moved
        if begin == end or not self._n_kept:
            return np.zeros((end - begin, self._n_kept * self.n_numbers))
        return self.patterns.observed[begin:end, block].astype(float) @ self._curved(block)

    def _curved(self, block: slice) -> np.ndarray:
        sums = np.split(self._sums[block], self._n_kept, axis=1)
        found = _elementary(sums, self.order - 1)[1:]
        for j, power_sum in enumerate(sums[1:], 2):
            found[j - 2] += (-1) ** j / j * power_sum
        return np.concatenate(found, axis=1) * self.patterns.weights[block, None]

    def _curved_whole(self, block: slice) -> np.ndarray:
        if not self._n_kept:
            return np.zeros(self.n_numbers)
        sums = np.split(self._sums[block], self._n_kept, axis=1)
        return self.patterns.weights[block] @ _elementary(sums, self.order)[-1]


class PatternCurvature:
    """e_{k−1} of the matrices of all variables but one, and e_k of all, and how they move.

    Parameters
    ----------
    patterns : Patterns
        Few patterns, over which both are summed.
    grams : array of shape (variables, rank, rank)
        The matrix of each variable.
    order : int
        k.
    """

    def __init__(self, patterns: Patterns, grams: np.ndarray, order: int) -> None:
        self._shape, self._table = grams.shape, grams.reshape(len(grams), -1)
        self._weights = patterns.weights
        self._observed = patterns.observed.astype(float)
        self._weighted = self._observed * patterns.weights
        self._powers = [np.ones_like(self._table), *_powers(self._table, order)]
        sums = [self._observed.T @ power for power in self._powers]
        self._elementary = [np.ones_like(sums[0]), *_elementary(sums[1:], order)]
        self._without = [self._weighted @ self._elementary[0]]
        for elementary in self._elementary[1:order]:
            self._without.append(self._weighted @ elementary - self._table * self._without[-1])

    @property
    def others(self) -> np.ndarray:
        """Σ of e_{k−1} of all variables but one, for each."""
        return self._without[-1].reshape(self._shape)

    @property
    def whole(self) -> np.ndarray:
        """Σ of e_k of all variables."""
        return (self._weights @ self._elementary[-1]).reshape(self._shape[1:])

    def moved(self, changes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how both move when the matrices move like this."""
        change = changes.reshape(self._table.shape)
        order = len(self._without)
        sums = [self._observed.T @ (power * change) for power in self._powers[:order]]
        speeds = [
            sum((-1) ** i * self._elementary[j - 1 - i] * sums[i] for i in range(j))
            for j in range(1, order + 1)
        ]
        found = np.zeros_like(change)
        for speed, without in zip(speeds[:-1], self._without[:-1], strict=True):
            found = self._weighted @ speed - change * without - self._table * found
        return found.reshape(self._shape), (self._weights @ speeds[-1]).reshape(self._shape[1:])
