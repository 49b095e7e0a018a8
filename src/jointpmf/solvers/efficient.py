"""The efficient step: from a fit to tables, one step that knows which of them share people.

The likelihood of cells takes tables as if each were about people of its own. One Gauss–Newton step,
weighted by the joint covariance of all cells, has the smallest error that is possible from these
tables, to first order (docs/math.md, eqs. 49 to 51).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from jointpmf.point import Point, on_simplices
from jointpmf.solvers.jacobian import positive_rank, whole_tangent
from jointpmf.solvers.table_jacobian import Slice, SliceAtPoint, TableCurvature
from jointpmf.solvers.table_noise import Projection, TableNoise
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.marginals.measurement import Measurement
    from jointpmf.solvers.curvature import Tangent

_N_BLOCKS = 2
"""Blocks of combinations of cells that the step is found from. More of them take longer and bring
the error at most two percent nearer to the limit."""

_MAX_STEP_NUMBERS = 20_000_000
"""Numbers in the Jacobian of the largest tables for which the step is taken."""

_KEPT = 0.1
"""A step leaves at least this part of every probability."""

_N_STEP_HALVINGS = 4
"""Times that a step is halved, if the fit is not better after it."""

_RIDGE = 1e-10
"""Added to the information about each direction, as part of it, lest rounding make it negative."""


_SMALLEST_PROBABILITY = 1e-9
"""Smaller probabilities count as this much where a prior is differentiated."""


def can_step(domain: Domain, tables: Sequence[Measurement], rank: int) -> bool:
    """Tell whether tables are small enough for the step to take seconds."""
    n_cells = sum(table.counts.size for table in tables)
    return n_cells * rank * (1 + sum(domain.sizes)) <= _MAX_STEP_NUMBERS


def efficient_step(
    domain: Domain,
    tables: Sequence[Measurement],
    point: Point,
    pseudo_counts: np.ndarray | None = None,
    n_steps: int = 1,
) -> Point:
    """Return the point after a step that weighs all cells by what they know in common.

    Parameters
    ----------
    domain, tables
        The variables and what is known of them.
    point : Point
        A fit to the tables. If they do not determine a model of its rank, it is returned.
    pseudo_counts : array of shape (levels, 1), optional
        Dirichlet smoothing, as rows that each component has seen (eq. 21).
    n_steps : int
        One is enough from a fit that is near its end; from one that stopped early two or three
        lead to where other starts lead too.
    """
    curvature = TableCurvature(domain, tables)
    with one_blas_thread:
        for _ in range(n_steps):
            ahead = _step(curvature, domain, point, _Prior(point, pseudo_counts))
            if ahead is point:
                break
            point = ahead
    return point


class _Prior:
    """The logarithm of a Dirichlet prior, and its derivatives at a point."""

    def __init__(self, point: Point, pseudo_counts: np.ndarray | None) -> None:
        self._counts = np.zeros(len(point.weights) + point.factors.size)
        if pseudo_counts is not None:
            own = np.broadcast_to(pseudo_counts, point.factors.shape)
            self._counts[len(point.weights) :] = own.ravel()
        self._seen = self._counts > 0
        at = np.maximum(point.vector, _SMALLEST_PROBABILITY)
        self.gradient, self.curvature = self._counts / at, self._counts / at**2

    def log(self, point: Point) -> float:
        at = np.maximum(point.vector[self._seen], _SMALLEST_PROBABILITY)
        return float(self._counts[self._seen] @ np.log(at))


def _step(curvature: TableCurvature, domain: Domain, point: Point, prior: _Prior) -> Point:
    tangent = whole_tangent(domain, point)
    if not len(tangent.moved):
        return point  # one component of variables that have one level each
    observed = observed_part(curvature.slices, point, domain)
    noise = TableNoise(domain, curvature.slices, point, observed)
    projection = Projection(noise, curvature.jacobian(point, tangent))
    for _ in range(_N_BLOCKS):
        projection.add_block()
    if positive_rank(projection.information) < len(projection.information):
        return point
    shown = np.concatenate([(each.counts / each.n_obs)[each.is_known] for each in curvature.slices])
    information = projection.information + tangent.reduce_matrix(np.diag(prior.curvature))
    score = projection.score(shown - noise.published) + tangent.reduce_vector(prior.gradient)
    here = point.vector
    ahead = _bounded_step(information, score, here, tangent)

    def cost(at: Point) -> float:
        cells = [SliceAtPoint(each, at, domain.offsets).published for each in curvature.slices]
        return projection.misfit(shown - np.concatenate(cells)) / 2 - prior.log(at)

    before = cost(point)
    for k in range(_N_STEP_HALVINGS):
        new = on_simplices(here + (ahead - here) / 2**k, domain, len(point.weights))
        if cost(new) < before:
            return new
    return point


def _bounded_step(
    information: np.ndarray, score: np.ndarray, here: np.ndarray, tangent: Tangent
) -> np.ndarray:
    """Return the parameters of least weighted squares that keep a part of each of these (eq. 51).

    With A the information and g the score, d minimises ½ dᵀAd − gᵀd over d ≥ −(1 − kept) here.
    """
    scale = np.sqrt(np.diag(information))
    alike = information / np.outer(scale, scale)
    alike[np.diag_indices_from(alike)] += _RIDGE
    factor = cholesky(alike, lower=True)
    room = (1 - _KEPT) * here[tangent.moved]
    wanted = solve_triangular(factor, score / scale, lower=True) + factor.T @ (scale * room)
    found = nnls(factor.T, wanted)[0] / scale
    ahead = here + tangent.expand(found - room)
    return np.maximum(ahead, _KEPT * here)


def observed_part(slices: Sequence[Slice], point: Point, domain: Domain) -> np.ndarray | None:
    """Return which part of all rows observes a variable, by how much tables differ (eq. 51).

    Tables of the same people agree on the variables that they have in common; with missing cells,
    or of other people, they differ by chance. None if they differ as if they shared nobody.
    """
    singles = [_singles(each) for each in slices]
    difference, pairs = 0.0, []
    for (s, first), (t, second) in combinations(enumerate(singles), 2):
        if set(first) == set(second):
            continue
        for n in first.keys() & second.keys():
            begin, end = domain.offsets[n], domain.offsets[n + 1]
            expected = point.factors[begin:end] @ point.weights
            is_there = expected > 0
            square = (first[n] - second[n])[is_there] ** 2 / expected[is_there]
            difference += float(square.sum()) / max(int(is_there.sum()) - 1, 1)
            pairs.append((s, t))
    if not pairs:
        return None
    return _matching_part(slices, pairs, difference, len(domain))


def _matching_part(
    slices: Sequence[Slice], pairs: Sequence[tuple[int, int]], difference: float, n_variables: int
) -> np.ndarray | None:
    """Return the part at which tables are expected to differ as much as they do."""
    n_obs = np.array([each.n_obs for each in slices])
    order = np.array([len(each.variables) for each in slices])
    names = [set(each.variables) for each in slices]
    common = np.array([len(names[s] & names[t]) for s, t in pairs])
    s, t = np.array(pairs).T
    alone = float((1 / n_obs[s] + 1 / n_obs[t]).sum())
    if difference >= alone:
        return None
    low, high = 0.0, 1.0
    for _ in range(30):
        part = (low + high) / 2
        rows = n_obs / part**order
        together = (part ** -common.astype(float) / np.maximum(rows[s], rows[t])).sum()
        low, high = (low, part) if alone - 2 * together < difference else (part, high)
    return np.full(n_variables, high)


def _singles(found: Slice) -> dict[int, np.ndarray]:
    """Return what a table of everyone says of each of its variables whose levels it tells apart."""
    if not (found.is_known.all() and all(found.is_plain)):
        return {}
    table = (found.counts / found.n_obs).reshape([len(sets) for sets in found.sets])
    axes = range(table.ndim)
    return {
        n: table.sum(axis=tuple(a for a in axes if a != k)) for k, n in enumerate(found.variables)
    }
