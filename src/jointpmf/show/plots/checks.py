"""A model against data: observed and fitted cells, and how often predicted levels happen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING
from jointpmf.errors import JointPMFError, seeded_generator
from jointpmf.fit.solution import Solution
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.pmf import JointPMF
from jointpmf.show.plots.canvas import (
    BLUE,
    GREY,
    HEAT,
    MARKERS,
    VERMILION,
    cell_points,
    check_kind,
    drawing,
    entry,
    heat_colours,
    legend,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS, _N_WORST = 2000, 3
"""Cells that are drawn as single points (more are drawn as a density), and cells that are named."""


def marginal_fit(
    pmf: JointPMF | Solution, marginals: MarginalSet | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the observed against the fitted cells of marginals, and return the Axes.

    Both axes show square roots, on which the noise of counting is equally large everywhere: where
    the marginals know their number of observations, a band shows what two standard errors of it
    explain, for the fewest observations if they differ. Of the cells that are farther from the
    diagonal than two standard errors of their own table, the farthest are named. More than two
    thousand cells are drawn as a density.

    Parameters
    ----------
    pmf : JointPMF or Solution
        A model, or a fit to marginals.
    marginals : MarginalSet, optional
        What was observed; by default what the solution was fitted to.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([3] * 4), rank=2, random_state=0)
    >>> rows = truth.sample(500, random_state=0, backend="codes")
    >>> ax = jp.plots.marginal_fit(truth, jp.MarginalSet.from_table(rows, order=2))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('fitted probability', 'observed probability')
    """
    if isinstance(pmf, Solution):
        marginals = pmf.marginals if marginals is None else marginals
        pmf = pmf.pmf
    check_kind(pmf, JointPMF, "marginal_fit")
    if marginals is None:
        raise JointPMFError(
            "give the marginals to compare with, such as MarginalSet.from_table(table, order=2)"
        )
    check_kind(marginals, MarginalSet, "marginal_fit")
    marginals.check_plain("this plot")
    cells = _Cells.of(pmf, marginals)
    top = 1.05 * max(cells.observed.max(), cells.fitted.max())
    with drawing(ax, 5.6, 4.9) as ax:
        _draw_cells(ax, cells, top)
        _draw_diagonal(ax, top)
        _draw_band(ax, [one.n_obs for one in marginals if one.n_obs is not None], top)
        n_named = min(max(int(cell_points(ax, (1, 1))[1]) // 90, 1), _N_WORST)
        worst = cells.worst(math.sqrt(top))[:n_named]
        for k, marker in zip(worst, MARKERS, strict=False):
            at = cells.fitted[k], cells.observed[k]
            ax.plot(*at, marker, color=VERMILION, ms=6, label=entry(cells.name(k)))
        _square_roots(ax, top)
        ax.set(xlabel="fitted probability", ylabel="observed probability", aspect="equal")
        n_above = sum(cells.observed[k] > cells.fitted[k] for k in worst)
        free = "lower right" if 2 * n_above > len(worst) else "upper left"
        legend(ax, loc=free, borderaxespad=0.3, fontsize="small")
    return ax


def _draw_diagonal(ax: Axes, top: float) -> None:
    """Draw where observed and fitted are equal."""
    values = np.linspace(0, math.sqrt(top), 200) ** 2
    ax.plot(values, values, color=GREY, lw=1, zorder=1)


def _draw_band(ax: Axes, n_obs: Sequence[float], top: float) -> None:
    """Draw two standard errors around the diagonal, for the fewest observations."""
    if not n_obs:
        return
    roots = np.linspace(0, math.sqrt(top), 200)
    width = 2 * _standard_error(min(n_obs))
    ends = np.maximum(roots - width, 0) ** 2, (roots + width) ** 2
    of = "" if min(n_obs) == max(n_obs) else f" of {min(n_obs):,.0f} observations"
    label = f"two standard errors{of}"
    ax.fill_between(roots**2, *ends, color=GREY, alpha=0.2, lw=0, label=label)


def _standard_error(n_obs: float | None) -> float:
    """Return the standard error of a cell's square root; 0 where `n_obs` is unknown."""
    return 0.0 if n_obs is None else 0.5 / math.sqrt(n_obs)


class _Cells(NamedTuple):
    """The cells of all marginals, one after the other."""

    marginals: MarginalSet
    observed: np.ndarray
    fitted: np.ndarray

    @classmethod
    def of(cls, pmf: JointPMF, marginals: MarginalSet) -> _Cells:
        """Return the cells of marginals and the model's for the same variables."""
        model = pmf.marginal(marginals.domain.names)
        for own, other in zip(model.domain, marginals.domain, strict=True):
            if own.levels != other.levels:
                raise JointPMFError(f"{own.name!r} has other levels in the model than in the table")
        fitted = model.marginals(subsets=[marginal.names for marginal in marginals])
        return cls(marginals, *map(_flat, (marginals, fitted)))

    @property
    def noise(self) -> np.ndarray:
        """The standard error of each cell's square root, by the observations of its marginal."""
        errors = [_standard_error(marginal.n_obs) for marginal in self.marginals]
        return np.repeat(errors, [math.prod(marginal.table.shape) for marginal in self.marginals])

    def worst(self, top: float) -> list[int]:
        """Return the cells that lie farthest from the diagonal, if far enough to be seen."""
        distance = np.abs(np.sqrt(self.observed) - np.sqrt(self.fitted))
        is_far = distance > np.maximum(2 * self.noise, top / 50)
        order = np.argsort(-distance, kind="stable")
        return [int(k) for k in order[is_far[order]][:_N_WORST]]

    def name(self, cell: int) -> str:
        """Return the variables and levels of a cell, and its observed and fitted probability."""
        ends = np.cumsum([math.prod(marginal.table.shape) for marginal in self.marginals])
        which = int(np.searchsorted(ends, cell, side="right"))
        marginal = self.marginals[which]
        size = math.prod(marginal.table.shape)
        codes = np.unravel_index(cell - (ends[which] - size), marginal.table.shape)
        parts = [
            f"{short(name, 16)} = {short(self.marginals.domain[name].levels[code], 16)}"
            for name, code in zip(marginal.names, codes, strict=True)
        ]
        parts.append(f"{self.observed[cell]:.3g}, fitted {self.fitted[cell]:.3g}")
        return "\n".join(parts)


def _flat(marginals: MarginalSet) -> np.ndarray:
    return np.concatenate([np.asarray(marginal.table).ravel() for marginal in marginals])


def _draw_cells(ax: Axes, cells: _Cells, top: float) -> None:
    n_cells = len(cells.observed)
    if n_cells <= _MOST_POINTS:
        (dots,) = ax.plot(cells.fitted, cells.observed, "o", color=BLUE, label=f"{n_cells:,} cells")
        dots.set(markersize=3.5, markeredgewidth=0, alpha=min(1.0, 0.25 + 20 / n_cells))
        return
    edges = np.linspace(0, math.sqrt(top), 81)
    roots = np.sqrt(cells.fitted), np.sqrt(cells.observed)
    counts = np.histogram2d(*roots, bins=(edges, edges))[0].T
    mesh = ax.pcolormesh(
        edges**2,
        edges**2,
        np.ma.masked_equal(counts, 0),
        cmap=heat_colours(HEAT[2:]),
        norm="log",
        rasterized=True,
    )
    ax.figure.colorbar(mesh, ax=ax, label=f"how many of {n_cells:,} cells", shrink=0.7)


def _square_roots(ax: Axes, top: float) -> None:
    """Scale both axes by square roots up to `top`, with round ticks where they fit."""
    room = max(0.09, 30 / min(cell_points(ax, (1, 1))))
    ticks = [0.0]
    for tick in (digit * 10.0**power for power in range(-7, 1) for digit in (1, 2, 5)):
        if tick <= top and math.sqrt(tick) - math.sqrt(ticks[-1]) > room * math.sqrt(top):
            ticks.append(tick)
    functions = (lambda x: np.sqrt(np.maximum(x, 0)), np.square)
    ax.set_xscale("function", functions=functions)
    ax.set_yscale("function", functions=functions)
    labels = [f"{tick:g}" for tick in ticks]
    ax.set_xticks(ticks, labels)
    ax.set_yticks(ticks, labels)
    ax.set(xlim=(0, top), ylim=(0, top))


_N_BINS = 10
"""Groups of probabilities, and so points of the curve."""


def calibration(
    pmf: JointPMF,
    table: Any,
    target: str | None = None,
    ax: Axes | None = None,
    *,
    max_cells: int = 100_000,
) -> Axes:
    """Draw how often predicted levels happen, against their probability, and return the Axes.

    Every observed cell is predicted from the other observed cells of its row, and every level of
    it is a case: it has a probability, and it happens or not. Cases are grouped by probability, in
    tenths; a point shows their mean probability and how often they happened, with a 95 % interval
    as if cases were independent. On the diagonal probabilities mean what they say; below it they
    are too high. Bars show how many cases there are; the legend has their mean distance to the
    diagonal.

    Use rows that the model was not fitted to. `coverage` tells how often what happens lies in sets
    of a given probability.

    Parameters
    ----------
    pmf : JointPMF
        The model.
    table : pandas, Polars or PyArrow table, array, or Codes
        Rows whose observed cells are predicted.
    target : str, optional
        The variable to predict; all by default.
    ax : Axes, optional
        Where to draw; by default in a new figure.
    max_cells : int
        About how many cells are predicted; from a larger table, rows are drawn at random.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([3] * 4), rank=2, random_state=0)
    >>> ax = jp.plots.calibration(pmf, pmf.sample(500, random_state=0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted probability', 'observed frequency')
    """
    check_kind(pmf, JointPMF, "calibration")
    targets = pmf.domain.names if target is None else (pmf.domain[target].name,)
    cases = _Cases.of(pmf, encode(table, pmf.domain), targets, max_cells)
    with drawing(ax, 4.8, 4.8) as ax:
        ax.plot([0, 1], [0, 1], color=GREY, lw=1, zorder=1)
        heights = np.log10(cases.counts + 1)
        ax.bar(
            (np.arange(_N_BINS) + 0.5) / _N_BINS,
            0.15 * heights / heights.max(),
            0.9 / _N_BINS,
            color=GREY,
            alpha=0.3,
            label=f"{cases.counts.sum():,} cases (log scale)",
        )
        some = cases.counts > 0
        low, middle, high = (part[some] for part in cases.intervals())
        label = f"mean distance {cases.distance:.3f}"
        ax.errorbar(
            cases.predicted[some],
            middle,
            (middle - low, high - middle),
            color=BLUE,
            marker="o",
            label=label,
        )
        ax.set(
            xlabel="predicted probability",
            ylabel="observed frequency",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        ax.legend(loc="upper left")
    return ax


class _Cases(NamedTuple):
    """Predicted levels grouped by their probability: how many, their mean, how many happened."""

    counts: np.ndarray
    predicted: np.ndarray
    happened: np.ndarray

    @classmethod
    def of(cls, pmf: JointPMF, codes: Codes, targets: Sequence[str], max_cells: int) -> _Cases:
        """Return the cases of the targets' observed cells, of all rows or of some at random."""
        places = [pmf.domain.index(target) for target in targets]
        rows = np.flatnonzero((codes.array[:, places] != MISSING).any(axis=1))
        if not len(rows):
            raise JointPMFError("the table has no observed cell to predict")
        n_used = max(max_cells // len(places), 1)
        if len(rows) > n_used:
            rows = np.sort(seeded_generator(0).choice(rows, n_used, replace=False))
        used = Codes(codes.domain, codes.array[rows])
        counts, sums, happened = np.zeros((3, _N_BINS))
        for target, n in zip(targets, places, strict=True):
            seen = np.flatnonzero(used.array[:, n] != MISSING)
            if len(seen):
                chances = pmf.predict_proba(Codes(used.domain, used.array[seen]), target)
                group = np.minimum((chances * _N_BINS).astype(int), _N_BINS - 1)
                own = group[np.arange(len(seen)), used.array[seen, n]]
                counts += np.bincount(group.ravel(), minlength=_N_BINS)
                sums += np.bincount(group.ravel(), chances.ravel(), _N_BINS)
                happened += np.bincount(own, minlength=_N_BINS)
        return cls(counts.astype(int), sums / np.maximum(counts, 1), happened)

    @property
    def distance(self) -> float:
        """The mean distance between what was predicted and what happened."""
        happened = self.happened / np.maximum(self.counts, 1)
        return float(self.counts @ np.abs(self.predicted - happened) / self.counts.sum())

    def intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the lower end, the observed share and the upper end: Wilson's 95 % interval."""
        n, z = np.maximum(self.counts, 1), 1.96
        share = self.happened / n
        middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return np.minimum(middle - half, share), share, np.maximum(middle + half, share)
