"""What a row tells of a model: the Fisher information, of complete and of incomplete rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.errors import JointPMFError, check_size, float_array, seeded_generator

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.pmf import JointPMF
    from jointpmf.solvers.curvature import Tangent

Subset = tuple[int, ...]


@dataclass(frozen=True)
class RowInformation:
    """What one row tells of the directions in which a model can move.

    Attributes
    ----------
    complete, incomplete : array
        The information in a row, and in one with missing cells.
    pull : array or None
        The covariance of what a complete row adds to the gradient of least squares on the tables of
        `subsets`.
    """

    complete: np.ndarray
    incomplete: np.ndarray
    pull: np.ndarray | None
    subsets: Sequence[Subset] | None


def observed_parts(missing: Any, domain: Domain) -> np.ndarray:
    """Return the part of all rows that observes each variable.

    Examples
    --------
    >>> from jointpmf import Domain
    >>> observed_parts(0.25, Domain.of_sizes([2, 3])).tolist()
    [0.75, 0.75]
    """
    otherwise = (
        f"missing must be at least 0 and below 1: a number, or one for each of {len(domain)} "
        "variables"
    )
    lacking = float_array(missing, otherwise)
    if lacking.shape not in ((), (1,), (len(domain),)):
        raise JointPMFError(otherwise)
    part = np.broadcast_to(1.0 - lacking, len(domain))
    if not ((part > 0) & (part <= 1)).all():
        raise JointPMFError(otherwise)
    return part


def information_of_rows(
    pmf: JointPMF,
    observed: np.ndarray,
    subsets: Sequence[Subset] | None,
    tangent: Tangent,
    n_samples: int,
    random_state: object,
) -> RowInformation:
    """Return what a row of a model tells, from all rows that there are or from a sample."""
    generator = seeded_generator(random_state)
    rows, weights = _complete_rows(pmf, n_samples, generator)
    complete, pull = _sums(pmf, rows, weights, subsets, tangent)
    incomplete = complete
    if (observed < 1).any():
        rows, weights = _incomplete_rows(pmf, observed, n_samples, generator)
        incomplete, _ = _sums(pmf, rows, weights, None, tangent)
    return RowInformation(complete, incomplete, pull, subsets)


def _complete_rows(
    pmf: JointPMF, n_samples: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and their weights that stand for the distribution: all cells, or a sample."""
    if math.prod(pmf.domain.sizes) <= n_samples:
        check_size(8 * len(pmf.domain) * math.prod(pmf.domain.sizes), "the rows that there are")
        cells = np.indices(pmf.domain.sizes).reshape(len(pmf.domain), -1).T
        return cells, pmf.table().ravel()
    rows = pmf.sample(n_samples, random_state=generator, backend="codes")
    return rows, np.full(n_samples, 1 / n_samples)


def _incomplete_rows(
    pmf: JointPMF, observed: np.ndarray, n_samples: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of rows with missing cells: all that there are, or a sample."""
    sizes = [size + 1 for size in pmf.domain.sizes]
    if math.prod(sizes) <= n_samples:
        rows = np.indices(sizes).reshape(len(sizes), -1).T - 1
        weights = np.where(rows < 0, 1 - observed, observed).prod(axis=1)
        return rows, weights * pmf.probability(Codes(pmf.domain, rows))
    rows = np.array(pmf.sample(n_samples, random_state=generator, backend="codes"))
    rows[generator.random(rows.shape) >= observed] = -1
    return rows, np.full(n_samples, 1 / n_samples)


def _sums(
    pmf: JointPMF,
    rows: np.ndarray,
    weights: np.ndarray,
    subsets: Sequence[Subset] | None,
    tangent: Tangent,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the information in one row, and the covariance of what it adds to the gradient."""
    information = np.zeros((len(tangent.moved),) * 2)
    second = np.zeros_like(information)
    first = np.zeros(len(tangent.moved))
    seen = weights > 0
    rows, weights = rows[seen], weights[seen]
    for begin in range(0, len(rows), 4096):
        part, weight = rows[begin : begin + 4096], weights[begin : begin + 4096]
        score = scores_of_rows(pmf, part, tangent)
        information += (score * weight[:, None]).T @ score
        if subsets is not None:
            pull = _reduce_rows(tangent, _gradients_of_rows(pmf, part, subsets))
            second += (pull * weight[:, None]).T @ pull
            first += weight @ pull
    return information, None if subsets is None else second - np.outer(first, first)


def _reduce_rows(tangent: Tangent, rows: np.ndarray) -> np.ndarray:
    return rows[:, tangent.moved] - rows[:, tangent.pivots]


def scores_of_rows(pmf: JointPMF, rows: np.ndarray, tangent: Tangent) -> np.ndarray:
    """Return the gradient of the log-probability of each row's observed cells."""
    pulls = _gradients_of_rows(pmf, rows, [tuple(range(len(pmf.domain)))])
    return _reduce_rows(tangent, pulls / pmf.probability(Codes(pmf.domain, rows))[:, None])


def _gradients_of_rows(pmf: JointPMF, rows: np.ndarray, subsets: Sequence[Subset]) -> np.ndarray:
    """Return, for each row, the gradient of the sum of its cells in all marginal tables.

    A missing cell is any level.
    """
    rank, offsets = pmf.rank, pmf.domain.offsets
    is_missing = (rows < 0)[:, :, None]
    factors = [
        np.where(is_missing[:, n], 1.0, pmf.factors[n][rows[:, n]]) for n in range(len(pmf.domain))
    ]
    out = np.zeros((len(rows), rank + int(offsets[-1]) * rank))
    at = np.arange(len(rows))[:, None]
    for subset in subsets:
        out[:, :rank] += math.prod(factors[n] for n in subset)
        for n in subset:
            rest = pmf.weights * math.prod([np.ones(rank)] + [factors[m] for m in subset if m != n])
            columns = rank + (offsets[n] + rows[:, n])[:, None] * rank + np.arange(rank)
            out[at, columns] += np.where(is_missing[:, n], 0.0, rest)
    return out
