"""How tables scatter that were counted over the same people, and what they tell of a model.

Their joint covariance follows from the model in closed form: what two cells share is the
probability of both (docs/math.md, eqs. 47 to 49). It is never formed: products with it are sums
over the variables that two tables share, and a few of them give the information in the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import qr

from jointpmf.solvers.jacobian import positive_rank, spread_model
from jointpmf.solvers.table_jacobian import Slice, SliceAtPoint, factors_of

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.point import Point

Subset = tuple[int, ...]

_REDUNDANT = 1e-9
"""Combinations of cells that have less than this part of the largest variance are known twice, by
tables of the same people. If it were larger, information would be lost."""

_MAX_COUNTED = 1500
"""Cells up to which independent numbers are counted exactly."""

_MAX_HELD = 20_000_000
"""Numbers that a product with the covariance holds at once: more columns are taken in parts."""


class TableNoise:
    """The covariance of all published cells of tables at a model.

    Parameters
    ----------
    domain, slices, point
        The variables, the slices of all tables, and the model.
    observed : array of shape (variables,), or None
        The part of all rows that observes each variable; None if no two tables share people.
    n_rows : float, optional
        Of how many rows all tables are; otherwise as many as each slice says.
    """

    def __init__(
        self,
        domain: Domain,
        slices: Sequence[Slice],
        point: Point,
        observed: np.ndarray | None = None,
        n_rows: float | None = None,
    ) -> None:
        self._weights, self._factors = point.weights, factors_of(point, domain.offsets)
        self.slices = [SliceAtPoint(each, point, domain.offsets) for each in slices]
        part = np.ones(len(domain)) if observed is None else observed
        parts = np.array([np.prod(part[list(each.variables)]) for each in slices])
        bases = np.array([each.base for each in self.slices])
        rows = np.full(len(slices), n_rows or 0.0)
        if n_rows is None:
            rows = np.array([each.n_obs for each in slices]) / (parts * np.maximum(bases, 1e-300))
        self._met = _who_meets(slices, rows, part, observed is not None)
        self._ways = {
            (t, common): self._way(t, common)
            for common, (members, _) in self._met.items()
            for t in members
        }
        n_each = np.repeat(rows * parts * bases, [each.published.size for each in self.slices])
        self.published = np.concatenate([each.published for each in self.slices])
        is_possible = self.published > 0
        self.scale = np.sqrt(np.where(is_possible, n_each, 0.0))
        self.scale /= np.sqrt(np.where(is_possible, self.published, 1.0))
        self._ends = np.cumsum([each.published.size for each in self.slices])[:-1]

    def times(self, columns: np.ndarray) -> np.ndarray:
        """Return the covariance times columns of numbers about the published cells (eq. 48)."""
        largest = max(each.cells.size for each in self.slices) * len(self._weights)
        n_parts = -(-columns.shape[1] * largest * len(self.slices) // _MAX_HELD)
        return np.hstack([self._times(part) for part in np.array_split(columns, n_parts, axis=1)])

    def _times(self, columns: np.ndarray) -> np.ndarray:
        parts = np.split(columns, self._ends)
        pulled = [each.centred_back(part) for each, part in zip(self.slices, parts, strict=True)]
        sums = [np.zeros_like(each) for each in pulled]
        for common, (members, meeting) in self._met.items():
            gathered = np.stack([self._gathered(t, common, pulled[t]) for t in members])
            met = (meeting @ gathered.reshape(len(members), -1)).reshape(gathered.shape)
            for s, each in zip(members, met, strict=True):
                sums[s] += self._spread(s, common, each)
        return np.concatenate(
            [each.centred(cells) for each, cells in zip(self.slices, sums, strict=True)]
        )

    def _way(self, t: int, common: Subset) -> _Way:
        """Return how to go between a table and the levels of some of its variables."""
        found, rank = self.slices[t].slice, len(self._weights)
        inside = [found.variables.index(n) for n in common]
        outside = [k for k in range(len(found.sets)) if k not in inside]
        rest = np.ones((1, rank))
        for k in outside:
            covered = found.sets[k] @ self._factors[found.variables[k]]
            rest = (rest[:, None] * covered).reshape(-1, rank)
        shape = [len(sets) for sets in found.sets]
        sets = [None if found.is_plain[k] else found.sets[k] for k in inside]
        return _Way(shape, inside, outside, rest, sets)

    def _gathered(self, t: int, common: Subset, cells: np.ndarray) -> np.ndarray:
        """Return the sums over a table's other variables, for each level of the common ones."""
        way, n_columns = self._ways[t, common], cells.shape[1]
        ordered = cells.reshape(*way.shape, n_columns).transpose(*way.inside, *way.outside, -1)
        out = way.rest.T @ ordered.reshape(-1, len(way.rest), n_columns)
        out = out.reshape(*(way.shape[k] for k in way.inside), *out.shape[1:])
        for k, sets in enumerate(way.sets):
            if sets is not None:
                out = np.moveaxis(np.tensordot(sets, out, (0, k)), 0, k)
        return out

    def _spread(self, s: int, common: Subset, met: np.ndarray) -> np.ndarray:
        """Return for each cell of a table what those in it have met in the other tables."""
        way, n_columns = self._ways[s, common], met.shape[-1]
        shares = self._weights
        for n in common:
            shares = shares[..., None, :] * self._factors[n]
        met = met * shares[..., None]
        for k, sets in enumerate(way.sets):
            if sets is not None:
                met = np.moveaxis(np.tensordot(sets, met, (1, k)), 0, k)
        out = way.rest @ met.reshape(-1, *met.shape[-2:])
        axes = [*way.inside, *way.outside]
        out = out.reshape(*(way.shape[k] for k in axes), n_columns)
        return out.transpose(*np.argsort(axes), -1).reshape(-1, n_columns)


class _Way(NamedTuple):
    """Between the cells of a table and the levels of the variables that it has in common."""

    shape: list[int]
    inside: list[int]
    outside: list[int]
    rest: np.ndarray
    """What each component gives the entries of the axes outside, all together."""
    sets: list[np.ndarray | None]
    """For each axis inside, which levels its entries cover; None if they are the levels."""


def _who_meets(
    slices: Sequence[Slice], rows: np.ndarray, observed: np.ndarray, same_people: bool
) -> dict[Subset, tuple[list[int], np.ndarray]]:
    """Return, by the variables that tables have in common, which tables these are.

    And for each two of them how many rows are in both, over the product of how many are in each;
    zero if they have more in common (eq. 47).
    """
    found: dict[Subset, list[tuple[int, int]]] = {}
    names = [frozenset(each.variables) for each in slices]
    for (s, first), (t, second) in product(enumerate(names), repeat=2):
        if same_people or s == t:
            found.setdefault(tuple(sorted(first & second)), []).append((s, t))
    meets = {}
    for common, pairs in found.items():
        members = sorted({s for s, _ in pairs})
        place = {s: k for k, s in enumerate(members)}
        meeting = np.zeros((len(members), len(members)))
        for s, t in pairs:
            meeting[place[s], place[t]] = 1 / max(rows[s], rows[t])
        meets[common] = members, meeting / np.prod(observed[list(common)])
    return meets


def count_independent(
    domain: Domain, slices: Sequence[Slice], generator: np.random.Generator
) -> int:
    """Return how many independent numbers tables of any kind hold: the rank of their covariance.

    Of many cells it is at most as many as their slices leave free.
    """
    if sum(int(each.is_known.sum()) for each in slices) > _MAX_COUNTED:
        return sum(each.n_free for each in slices)
    point, everyone = spread_model(domain, 2, generator), np.ones(len(domain))
    noise = TableNoise(domain, slices, point, everyone, n_rows=1.0)
    return positive_rank(noise.times(np.diag(noise.scale)) * noise.scale[:, None])


class Projection:
    """The best linear estimates from tables: from combinations of their cells (eq. 49).

    The combinations are J, the covariance times J, times it again, …, each cell scaled by what it
    would be known by on its own. Each block of them adds what the tables know in common.

    Attributes
    ----------
    information : array
        The information in the combinations about the directions of J.
    """

    def __init__(self, noise: TableNoise, jacobian: np.ndarray) -> None:
        self._noise = noise
        self._jacobian = noise.scale[:, None] * jacobian
        self._basis = np.zeros((len(jacobian), 0))
        self._products = np.zeros((len(jacobian), 0))
        self._next = self._jacobian
        self._parts = np.zeros((0, 0))
        self._estimates = np.zeros((0, jacobian.shape[1]))
        self.information = np.zeros((jacobian.shape[1],) * 2)

    def add_block(self) -> bool:
        """Use one more block of combinations; return whether there were any."""
        new = self._orthogonal(self._next)
        if not new.shape[1]:
            return False
        scale = self._noise.scale[:, None]
        self._next = scale * self._noise.times(scale * new)
        self._basis = np.hstack([self._basis, new])
        self._products = np.hstack([self._products, self._next])
        seen = self._basis.T @ self._jacobian
        values, vectors = np.linalg.eigh(self._basis.T @ self._products)
        is_new = values > _REDUNDANT * values[-1]
        self._parts = vectors[:, is_new] / np.sqrt(values[is_new])
        self._estimates = self._parts @ (self._parts.T @ seen)
        self.information = seen.T @ self._estimates
        return True

    def _orthogonal(self, new: np.ndarray) -> np.ndarray:
        """Return an orthonormal basis of what columns add to the combinations."""
        before = np.linalg.norm(new)
        for _ in range(2):  # once is not enough where little is left
            new = new - self._basis @ (self._basis.T @ new)
        found, triangle, _ = qr(new, mode="economic", pivoting=True, check_finite=False)
        is_new = np.abs(np.diag(triangle)) > _REDUNDANT * before
        return found[:, is_new][:, : len(found) - self._basis.shape[1]]

    def score(self, residual: np.ndarray) -> np.ndarray:
        """Return what residuals of the published cells say of the directions of J."""
        return self._estimates.T @ (self._basis.T @ (self._noise.scale * residual))

    def misfit(self, residual: np.ndarray) -> float:
        """Return the squares of residuals, as the combinations see them, by their covariance."""
        seen = self._basis.T @ (self._noise.scale * residual)
        return float(((self._parts.T @ seen) ** 2).sum())
