"""What helps to choose a rank beside its score: what each step gains, and what it gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.judge.posteriors import ComponentTally
from jointpmf.threads import one_blas_thread, row_blocks

if TYPE_CHECKING:
    from jointpmf.pmf import JointPMF
    from jointpmf.rows.table import TableRows


def gains(ranks: Sequence[int], heights: Sequence[float]) -> list[float]:
    """Return what each rank gains on the one before, per component added; NaN for the first.

    Examples
    --------
    >>> gains([1, 2, 4], [-5.0, -4.0, -3.0])
    [nan, 1.0, 0.5]
    """
    if not ranks:
        return []
    with np.errstate(invalid="ignore"):  # of two ranks that are impossible neither gains
        return [math.nan, *(np.diff(heights) / np.diff(ranks)).tolist()]


def elbow(ranks: Sequence[int], heights: Sequence[float]) -> int | None:
    """Return the rank farthest above the chord from the first point of a curve to the last.

    None if there are fewer than three ranks, or if no point is above the chord: then the curve has
    no bend (docs/math.md, eq. 58).

    Examples
    --------
    >>> elbow([1, 2, 3, 4, 5], [-9.0, -5.0, -3.0, -2.9, -2.8])
    3
    >>> elbow([1, 2, 3], [-3.0, -2.0, -1.0]) is None
    True
    """
    if len(ranks) < 3 or not np.isfinite(heights).all():
        return None
    along = (np.array(ranks) - ranks[0]) / (ranks[-1] - ranks[0])
    above = np.array(heights) - heights[0] - along * (heights[-1] - heights[0])
    best = int(above.argmax())
    return ranks[best] if above[best] > 1e-9 * (1 + np.abs(heights).max()) else None


def separation(pmf: JointPMF, rows: TableRows) -> float:
    """Return how well components separate (eq. 24), from some rows at a time to save memory."""
    columns, tally = rows.columns, ComponentTally(pmf)
    with one_blas_thread:  # the same bits for any number of threads
        for begin, end in row_blocks(len(rows)):
            some = Codes(pmf.domain, columns[:, begin:end].T)
            tally.add(pmf.responsibilities(some), rows.weights[begin:end])
    return tally.relative_entropy
