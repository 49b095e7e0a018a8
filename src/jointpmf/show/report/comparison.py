"""How far the model is from the observed marginals, and how much of that chance explains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.judge.pairs import cell_residuals

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.marginals.counts import MarginalCounts
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.pmf import JointPMF
    from jointpmf.show.report.subject import Subject
    from jointpmf.show.report.tally import Tally


@dataclass(frozen=True)
class Budget:
    """How much is compared with the model; of more, some at random, always the same."""

    marginals: int = 2000
    """Marginals at most."""
    cells: int = 10**7
    """Cells of all marginals together, at most."""


class Misfit(NamedTuple):
    """One marginal beside the model's: how far apart they are, and where most of all.

    `distance` is the share of rows that would have to be in other cells; `chance` is its average
    if the model were the truth, where the number of rows is known. `residual` is χ² / df of a pair
    that was counted over rows, as in `Summary.goodness_of_fit`.
    """

    names: tuple[str, ...]
    distance: float
    chance: float | None
    n_obs: float | None
    levels: tuple[object, ...]
    observed: float
    fitted: float
    residual: float | None = None

    @property
    def beyond_chance(self) -> float:
        """How much of the distance chance does not explain."""
        return self.distance - (self.chance or 0.0)

    @property
    def is_clear(self) -> bool:
        """Whether it is worth a warning: more than 2 % beyond twice what chance explains."""
        return self.distance > 0.02 + 2 * (self.chance or 0.0)


class Comparison(NamedTuple):
    """How well the marginals are met, the worst first, and how many marginals there are."""

    misfits: list[Misfit]
    n_all: int

    @property
    def has_residuals(self) -> bool:
        """Whether the worst are those with the largest residuals."""
        return any(misfit.residual is not None for misfit in self.misfits)


def compared_pairs(domain: Domain, budget: Budget | None = None) -> list[tuple[str, ...]]:
    """Return the pairs of variables to count for a comparison, or single ones.

    Single variables where there is only one, or where every pair has too many cells.
    """
    budget = budget or Budget()
    pairs = _some_pairs(len(domain), budget.marginals)
    singles = [(k,) for k in range(len(domain))]
    return _countable(domain, pairs, budget) or _countable(domain, singles, budget)


def _some_pairs(n: int, most: int) -> list[tuple[int, ...]]:
    """Return all pairs of `n` variables, or some at random where there are far more than `most`."""
    if math.comb(n, 2) <= 2 * most:
        return list(combinations(range(n), 2))
    drawn = np.random.default_rng(0).integers(0, n, (4 * most, 2))
    return sorted({(min(pair), max(pair)) for pair in drawn.tolist() if len(set(pair)) == 2})


def _countable(
    domain: Domain, subsets: Sequence[tuple[int, ...]], budget: Budget
) -> list[tuple[str, ...]]:
    """Return the names of the subsets whose tables are counted."""
    names, sizes = domain.names, domain.sizes
    kept = _kept([math.prod(sizes[k] for k in subset) for subset in subsets], budget)
    return [tuple(names[k] for k in subsets[position]) for position in kept]


def _kept(n_cells: Sequence[int], budget: Budget) -> list[int]:
    """Return the positions of the tables that the budget has room for, tried in random order."""
    kept: list[int] = []
    room = budget.cells
    for position in np.random.default_rng(0).permutation(len(n_cells)).tolist():
        if n_cells[position] <= room and len(kept) < budget.marginals:
            room -= n_cells[position]
            kept.append(position)
    return sorted(kept)


def comparison(
    subject: Subject, tally: Tally | None, budget: Budget | None = None
) -> Comparison | None:
    """Return how far the model is from the marginals it was fitted to, or from the table's."""
    if subject.marginals is not None:
        n_all = len(subject.marginals)
        observed = _chosen(subject.marginals, budget or Budget())
    elif tally is not None and tally.counts.tables is not None:
        n_all = math.comb(len(subject.pmf.domain), len(tally.counts.subsets[0]))
        observed = _counted(tally.counts)
    else:
        return None
    is_counted = subject.marginals is None
    found = [_misfit(subject.pmf, *one, is_counted) for one in observed]
    found.sort(key=lambda one: (-(one.residual or 0.0), -one.beyond_chance))
    return Comparison(found, n_all)


Observed = tuple[tuple[str, ...], np.ndarray, float | None]
"""Names, table of probabilities, and number of rows."""


def _chosen(marginals: MarginalSet, budget: Budget) -> Iterator[Observed]:
    for position in _kept([math.prod(m.table.shape) for m in marginals], budget):
        marginal = marginals[position]
        yield tuple(marginal.names), np.asarray(marginal.table), marginal.n_obs


def _counted(counts: MarginalCounts) -> Iterator[Observed]:
    """Yield the counted tables as probabilities, without those that no row observes."""
    names = counts.domain.names
    for subset, table in zip(counts.subsets, counts.tables or (), strict=True):
        dense = np.asarray(table)
        if total := float(dense.sum()):
            yield tuple(names[n] for n in subset), dense / total, total


def _misfit(
    pmf: JointPMF,
    names: tuple[str, ...],
    observed: np.ndarray,
    n_obs: float | None,
    is_counted: bool,
) -> Misfit:
    own = pmf.marginal(names)
    fitted = own.table()
    apart = np.abs(observed - fitted)
    cell = np.unravel_index(int(apart.argmax()), apart.shape)
    return Misfit(
        names,
        float(apart.sum()) / 2,
        None if n_obs is None else _chance(fitted, n_obs),
        n_obs,
        tuple(v.levels[int(k)] for v, k in zip(own.domain, cell, strict=True)),
        float(observed[cell]),
        float(fitted[cell]),
        _residual(observed, fitted, n_obs) if is_counted and n_obs is not None else None,
    )


def _residual(observed: np.ndarray, fitted: np.ndarray, n_obs: float) -> float | None:
    """Return χ² / df of the table of a pair (docs/math.md, eq. 55); None where it has no df."""
    df = math.prod(size - 1 for size in observed.shape)
    if observed.ndim != 2 or not df:
        return None
    return float((cell_residuals(n_obs * observed, n_obs * fitted) ** 2).sum()) / df


def _chance(shares: np.ndarray, n_obs: float) -> float:
    """Return the mean distance of `n_obs` rows from the distribution they are drawn from."""
    variance = np.clip(shares * (1 - shares), 0, None)
    return float(np.minimum(np.sqrt(2 * variance / (math.pi * n_obs)), 2 * variance).sum()) / 2
