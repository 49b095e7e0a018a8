"""Reliability: how often predicted levels happen, against their probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING
from jointpmf.errors import JointPMFError, seeded_generator
from jointpmf.pmf import JointPMF
from jointpmf.show.plots.canvas import BLUE, GREY, check_kind, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
