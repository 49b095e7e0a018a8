"""The most probable rows of a joint PMF, exactly, by branch and bound (docs/math.md, eq. 34).

A node is a partial row: some variables have a level, the others are free. A bound says how
probable its best completion can be. The node with the best bound is extended first, so a complete
row that comes up is certain to be the next most probable one.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from jointpmf.errors import JointPMFError
from jointpmf.threads import one_blas_thread

_FREE = -1
"""The code of a variable that has no level yet."""

_DIGITS = 10
"""Decimals of a log-probability that are compared: rows that agree in them count as equal."""

_SLACK = 2 * 10.0**-_DIGITS
"""How much worse than the rows already known a node must be to be dropped: more than rounding."""

_FREE_VARIABLES = 3, 9, 27
"""How many free variables a bound combines. More of them cost more time and save nodes where
there are many variables or the components are alike."""

_SETTLED_SHARE = 0.99
"""The share of one component in a partial row beyond which the sum is bound enough: no bound is
less than that component's part."""

_AT_ONCE = 16
"""Nodes extended together: more of them save overhead, but some may turn out to be needless."""


class _Node(NamedTuple):
    """A partial row. Nodes compare by their bound, then by the order of their levels."""

    key: float
    """Minus the log of the bound, rounded."""
    order: bytes
    """The codes, with zero for free variables: bytes that compare as the codes do."""
    n_free: int
    parts: np.ndarray
    """What each component gives to the row, if its own best levels are taken for the rest."""
    codes: np.ndarray


def most_likely_codes(
    weights: np.ndarray, factors: Sequence[np.ndarray], n: int, max_nodes: int
) -> np.ndarray:
    """Return the codes of the n most probable rows, or of all possible ones if they are fewer.

    Examples
    --------
    >>> factors = [np.array([[0.9, 0.2], [0.1, 0.8]]), np.array([[0.7, 0.1], [0.3, 0.9]])]
    >>> most_likely_codes(np.array([0.5, 0.5]), factors, 2, 100).tolist()
    [[1, 1], [0, 0]]
    """
    if not factors:
        return np.zeros((1, 0), np.int32)
    with one_blas_thread:
        return _Search(weights, factors, n).rows(max_nodes)


class _Search:
    """One search: the model relative to each component's best row, and the nodes still open."""

    def __init__(self, weights: np.ndarray, factors: Sequence[np.ndarray], n: int) -> None:
        self._n, self._n_nodes = n, 0
        possible = weights > 0
        tops = np.array([factor[:, possible].max(axis=0) for factor in factors])
        logs = np.log(weights[possible]) + np.log(tops).sum(axis=0)
        start = np.exp(logs - logs.max())  # products over many variables would underflow
        pairs = zip(factors, tops, strict=True)
        self._levels = np.vstack([factor[:, possible] / top for factor, top in pairs])
        sizes = [len(factor) for factor in factors]
        self._variable_of = np.repeat(np.arange(len(sizes)), sizes)
        self._offsets = np.cumsum([0, *sizes[:-1]])
        self._code_of = np.arange(len(self._levels)) - self._offsets[self._variable_of]
        self._powers = [
            (power, self._levels.T**power) for power in _FREE_VARIABLES if power < 3 * len(sizes)
        ]
        root = np.full((1, len(sizes)), _FREE, np.int32)
        key = float(_keys(start.sum()))
        self._open = [_Node(key, _orders(root)[0], len(sizes), start, root[0])]
        self._best = self._known_rows(start)
        self._known = {order for _, order in self._best}

    def _known_rows(self, start: np.ndarray) -> list[tuple[float, bytes]]:
        """Return the keys and orders of n rows to beat, or of fewer, best first.

        They are each component's most probable row, and the best of them with one level changed.
        """
        parts, own = start, []
        for begin, levels in zip(
            self._offsets, np.split(self._levels, self._offsets[1:]), strict=True
        ):
            own.append(levels.argmax(axis=0))
            parts = parts * self._levels[begin + own[-1]]
        sums = parts.sum(axis=1)
        best = np.array(own)[:, sums.argmax()]
        changed = (self._without_each(start, best)[self._variable_of] * self._levels).sum(axis=1)
        chosen = changed.argsort()[::-1][: self._n + len(best)]  # each variable has one unchanged
        rows = np.tile(best, (len(chosen), 1))
        rows[np.arange(len(chosen)), self._variable_of[chosen]] = self._code_of[chosen]
        keys = _keys(np.concatenate([sums, changed[chosen]])).tolist()
        orders = _orders(np.vstack([np.transpose(own), rows]))
        known = dict(zip(orders, keys, strict=True))
        return sorted((key, order) for order, key in known.items() if key < np.inf)

    def _without_each(self, start: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Return, for each variable, what the components give to the rest of a row."""
        levels = self._levels[self._offsets + row]
        before = np.cumprod(np.vstack([start, levels[:-1]]), axis=0)
        after = np.cumprod(np.vstack([np.ones_like(start), levels[:0:-1]]), axis=0)[::-1]
        return before * after

    def rows(self, max_nodes: int) -> np.ndarray:
        """Return the codes of the rows asked for, or raise if there are too many nodes."""
        found: list[np.ndarray] = []
        while self._open and len(found) < self._n:
            if not self._open[0].n_free:
                found.append(heappop(self._open).codes)
                continue
            if self._n_nodes >= max_nodes:
                raise JointPMFError(
                    f"only {len(found)} of the {self._n} most likely rows are certain after "
                    f"{self._n_nodes:,} partial rows; raise max_nodes, give more evidence, or "
                    "ask a marginal of fewer variables"
                )
            nodes = [heappop(self._open)]
            while self._open and self._open[0].n_free and len(nodes) < _AT_ONCE:
                nodes.append(heappop(self._open))
            self._extend(nodes)
        return np.array(found)

    def _extend(self, nodes: list[_Node]) -> None:
        """Open the nodes that have one more level each, for the variable that tells most."""
        parts = np.array([node.parts for node in nodes])
        codes = np.array([node.codes for node in nodes])
        chosen = self._best_levels(parts @ self._levels.T, codes).argmin(axis=1)
        parent, level = np.nonzero(self._variable_of == chosen[:, None])
        self._n_nodes += len(parent)
        parts = parts[parent] * self._levels[level]
        kept = _keys(parts.sum(axis=1)) <= self._limit
        parent, level, parts = parent[kept], level[kept], parts[kept]
        codes = codes[parent]
        codes[np.arange(len(codes)), chosen[parent]] = self._code_of[level]
        keys = np.maximum(_keys(self._bounds(parts, codes)), [nodes[p].key for p in parent])
        n_free = (codes == _FREE).sum(axis=1).tolist()
        for node in map(_Node, keys.tolist(), _orders(codes), n_free, parts, codes):
            if node.key <= self._limit:
                heappush(self._open, node)
                if not node.n_free and node.order not in self._known:
                    insort(self._best, node[:2])
                    del self._best[self._n :]

    @property
    def _limit(self) -> float:
        """The key beyond which a node has none of the rows asked for; finite, as zero has none."""
        if len(self._best) < self._n:
            return np.finfo(float).max
        return self._best[self._n - 1][0] + _SLACK

    def _best_levels(self, sums: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the largest sum among a variable's levels, of each node; infinite if not free."""
        most = np.maximum.reduceat(sums, self._offsets, axis=1)
        most[codes != _FREE] = np.inf
        return most

    def _bounds(self, parts: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return what no completion exceeds: Hölder's inequality over free variables (eq. 34)."""
        sums = parts.sum(axis=1)
        mixed = parts.max(axis=1) < _SETTLED_SHARE * sums
        parts, codes, logs = parts[mixed], codes[mixed], np.zeros(mixed.sum())
        for power, levels in self._powers:
            shares = self._best_levels(parts @ levels, codes) / sums[mixed, None]
            least = np.sort(np.minimum(shares, 1.0), axis=1)[:, :power]
            logs = np.minimum(logs, np.log(least).sum(axis=1) / power)
        sums[mixed] *= np.exp(logs)
        return sums


def _keys(bounds: np.ndarray) -> np.ndarray:
    """Return minus the logs of bounds, rounded; what is impossible is infinite."""
    with np.errstate(divide="ignore"):
        return np.round(-np.log(bounds), _DIGITS)


def _orders(codes: np.ndarray) -> list[bytes]:
    """Return bytes that compare as rows of codes do."""
    whole = np.maximum(codes, 0).astype(">i4", order="C")
    return whole.view(f"V{whole.shape[1] * 4}").ravel().tolist()
