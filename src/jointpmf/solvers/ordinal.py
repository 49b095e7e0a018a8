"""What order among levels adds: counts that spread to neighbours, and starts along a few factors.

Ratings and answers on a scale are mostly one or two continuous tastes. A factor model of the
levels' values finds them from incomplete rows in a second; points of its space, each with the
distribution of every variable there, are the components of a start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from scipy.sparse import block_diag, csr_array, eye_array, sparray
from scipy.special import ndtri

from jointpmf.errors import JointPMFError
from jointpmf.point import Point
from jointpmf.rows.table import Rows, TableRows
from jointpmf.traits import is_ordered

if TYPE_CHECKING:
    from jointpmf.domain import Domain, Variable

_LEAST_POPULAR = 1e-4
"""What is added to the popularity of every level: one that was never seen may be a neighbour."""

_FAR = 1e3
"""Bandwidths beyond which nothing spreads, whatever the number."""

_FACTOR_STEPS, _FACTOR_RIDGE, _LEAST_NOISE = 100, 10.0, 0.05
"""EM steps of the factor model, rows that its prior is worth, and the part of a variable's
variance that factors cannot explain."""

_FIRST_LOADING, _OTHER_LOADINGS = 0.5, 0.3
"""Where the factor model begins: all variables alike on the first factor, at random on others."""

_MAX_FACTORS = 8

_TAIL = 1e-4
"""Probability beyond which no point lies, on either side of a factor."""


class Counted(Protocol):
    """Rows whose levels were counted, wherever they are."""

    @property
    def domain(self) -> Domain:
        """What can happen."""

    @property
    def marginal(self) -> np.ndarray:
        """The probability of each level of each variable."""


def neighbour_kernel(rows: Counted, bandwidth: float) -> sparray:
    """Return how counts of ordered variables spread to neighbouring levels (docs/math.md, eq. 25).

    Column j says where a count of level j goes: K(i, j) ∝ P(i) exp(−(i − j)² / 2 bandwidth²).
    Variables without numeric values keep their counts as they are.
    """
    blocks: list[sparray] = []
    for n, variable in enumerate(rows.domain):
        if not is_ordered(variable):
            blocks.append(eye_array(variable.size))
            continue
        level = np.arange(variable.size)
        distance = np.minimum(np.abs(level[:, None] - level) / bandwidth, _FAR)
        weight = _popularity(rows, n)[:, None] * np.exp(-(distance**2) / 2)
        blocks.append(csr_array(weight / weight.sum(axis=0)))
    return csr_array(block_diag(blocks, format="csr"))


def _popularity(rows: Counted, n: int) -> np.ndarray:
    first, end = rows.domain.offsets[n : n + 2]
    return rows.marginal[first:end] + _LEAST_POPULAR


class FactorModel(NamedTuple):
    """Values of variables as a mean, a few standard normal factors times loadings, and noise."""

    means: np.ndarray
    loadings: np.ndarray
    noise: np.ndarray


def n_factors(rank: int, n_variables: int) -> int:
    """Return how many factors this many points can show: at least four points for each."""
    return max(min(int(np.log2(rank)) // 2, n_variables - 1, _MAX_FACTORS), 1)


def point_along_factors(
    rows: TableRows,
    rank: int,
    generator: np.random.Generator,
    models: dict[int, FactorModel] | None = None,
    max_rows: int = 20_000,
) -> Point:
    """Return components spread over the space of a factor model of the values (eq. 26).

    Variables that are not ordered begin as they are distributed. `models` keeps what was found for
    these rows, by the number of factors; what differs from start to start is where the points lie.
    Of more than `max_rows` rows the model is made from a sample.
    """
    domain = rows.domain
    ordered = [n for n, variable in enumerate(domain) if is_ordered(variable)]
    if not ordered:
        raise JointPMFError("a start along factors needs variables with increasing values")
    models = {} if models is None else models
    count = n_factors(rank, len(ordered))
    if count not in models:
        models[count] = factor_model(*_values(_sample_of(rows, max_rows), ordered), count)
    model = models[count]
    from scipy.stats import qmc  # takes longer to load than all the rest together

    spread = qmc.Halton(model.loadings.shape[1], rng=generator).random(rank)
    points = ndtri(spread.clip(_TAIL, 1 - _TAIL))
    factors = np.repeat(rows.marginal[:, None], rank, axis=1)
    for k, n in enumerate(ordered):
        first, end = domain.offsets[n : n + 2]
        factors[first:end] = _columns(domain, n, _popularity(rows, n), model, k, points)
    return Point(np.full(rank, 1 / rank), factors)


def _sample_of(rows: TableRows, size: int) -> Rows:
    if len(rows) <= size:
        return rows if isinstance(rows, Rows) else rows.taken(np.arange(len(rows)))
    chosen = np.random.default_rng(0).choice(len(rows), size, replace=False)
    return rows.taken(np.sort(chosen))


def _scaled(variable: Variable) -> np.ndarray:
    """Return the values of an ordered variable in a unit of their own: from zero to one."""
    values = np.asarray(variable.values)
    return (values - values[0]) / ((values[-1] - values[0]) or 1.0)


def _values(rows: Rows, ordered: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of the ordered variables, NaN where missing, and the rows' weights."""
    domain = rows.domain
    value = np.full(int(domain.offsets[-1]), np.nan)
    place = np.full(len(value), -1)
    for k, n in enumerate(ordered):
        first, end = domain.offsets[n : n + 2]
        value[first:end], place[first:end] = _scaled(domain.variables[n]), k
    owner = np.repeat(np.arange(len(rows)), np.diff(rows.ptr))
    used = place[rows.cells] >= 0
    values = np.full((len(rows), len(ordered)), np.nan)
    cells = rows.cells[used]
    values[owner[used], place[cells]] = value[cells]
    return values, rows.weights


def factor_model(values: np.ndarray, weights: np.ndarray, n_factors: int) -> FactorModel:
    """Return the factor model of incomplete rows, by EM with a ridge on the loadings.

    Every sum over rows is a product of the mask, or of the values, with what is known of each row.
    """
    mask = (~np.isnan(values)).astype(float)
    values = np.nan_to_num(values)
    n_rows, n_variables = values.shape
    weighted = mask * weights[:, None]
    counts = np.maximum(weighted.sum(axis=0), 1e-300)
    means = (weighted * values).sum(axis=0) / counts
    squares = (weighted * values**2).sum(axis=0)
    variances = squares / counts - means**2
    variances[variances <= 1e-12 * (1 + means**2)] = 1.0  # a constant: nothing to explain
    shape = np.random.default_rng(0).normal(0, _OTHER_LOADINGS, (n_variables, n_factors))
    shape[:, 0] += _FIRST_LOADING
    loadings, noise = np.sqrt(variances)[:, None] * shape, variances / 2
    ridge = np.diag([1e-9] + [_FACTOR_RIDGE] * n_factors)
    for _ in range(_FACTOR_STEPS):
        scaled = loadings / noise[:, None]
        products = (scaled[:, :, None] * loadings[:, None, :]).reshape(n_variables, -1)
        precision = (mask @ products).reshape(n_rows, n_factors, n_factors) + np.eye(n_factors)
        covariance = np.linalg.inv(precision)
        seen = (mask * (values - means)) @ scaled
        position = np.hstack([np.ones((n_rows, 1)), np.einsum("rij,rj->ri", covariance, seen)])
        moments = position[:, :, None] * position[:, None, :]
        moments[:, 1:, 1:] += covariance
        gram = (weighted.T @ moments.reshape(n_rows, -1)).reshape(n_variables, *moments.shape[1:])
        cross = (weighted * values).T @ position
        prior = (noise / variances)[:, None, None] * ridge
        found = np.linalg.solve(gram + prior, cross[:, :, None])[:, :, 0]
        fitted = np.einsum("ni,nij,nj->n", found, gram, found)
        noise = (squares - 2 * (found * cross).sum(axis=1) + fitted) / counts
        noise = np.maximum(noise, _LEAST_NOISE * variances)
        means, loadings = found[:, 0], found[:, 1:]
    return FactorModel(means, loadings, noise)


def _columns(
    domain: Domain, n: int, popularity: np.ndarray, model: FactorModel, k: int, points: np.ndarray
) -> np.ndarray:
    """Return P(level | point): what is popular, times how much more likely it is at the point."""
    values = _scaled(domain.variables[n])[:, None]
    mean, loadings, noise = model.means[k], model.loadings[k], model.noise[k]
    there = -((values - mean - points @ loadings) ** 2) / noise
    anywhere = -((values - mean) ** 2) / (noise + loadings @ loadings)
    logs = np.log(popularity)[:, None] + (there - anywhere) / 2
    columns = np.exp(logs - logs.max(axis=0))
    return columns / columns.sum(axis=0)
