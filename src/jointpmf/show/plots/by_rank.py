"""Curves over the rank: scores of a rank curve, and errors of predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.errors import JointPMFError, shown
from jointpmf.show.plots.canvas import (
    BLUE,
    COLOURS,
    GREY,
    MARKERS,
    ORANGE,
    VERMILION,
    check_kind,
    drawing,
    entry,
    finite,
    ink,
    legend,
    plain,
    say,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jointpmf.judge.rank import RankCurve

_REFERENCE_LINES = ("--", "-", ":", "-.")
"""The line styles of methods without a rank, in this order."""


def rank_curve(curve: RankCurve, ax: Axes | None = None) -> Axes:
    """Draw how well each rank does, and return the Axes.

    Bars are standard errors. The rank with the best score is marked, and the smallest one whose
    score is within one standard error of it, which the dashed line shows.

    Parameters
    ----------
    curve : RankCurve
        What `choose_rank` returned.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([6] * 6), rank=2, random_state=0)
    >>> rows = truth.sample(2000, random_state=0, backend="codes")
    >>> curve = jp.choose_rank(rows, [1, 2, 3], criterion="bic", random_state=0)
    >>> jp.plots.rank_curve(curve).get_ylabel()
    'BIC'
    """
    from jointpmf.judge.rank import RankCurve

    check_kind(curve, RankCurve, "rank_curve")
    ranks = np.array([score.rank for score in curve.scores])
    scores = finite([score.score for score in curve.scores])
    errors = finite([score.standard_error for score in curve.scores])
    is_held_out = curve.criterion == "validation"
    name = "held-out log-likelihood per row (nats)" if is_held_out else curve.criterion.upper()
    with drawing(ax) as ax:
        ax.set(xlabel="rank", ylabel=name)
        if np.isnan(scores).all():
            return say(ax, "No rank has a finite score.")
        bars = None if np.isnan(errors).all() else errors
        ax.errorbar(ranks, scores, bars, color=BLUE, marker="o", capsize=2, zorder=2)
        best, simplest = (int(np.searchsorted(ranks, r)) for r in (curve.rank, curve.simplest_rank))
        if simplest != best:
            ax.axhline(scores[best] - errors[best], color=GREY, ls="--", lw=1)
            label = f"rank {ranks[simplest]}: simplest within one standard error"
            _mark(ax, ranks[simplest], scores[simplest], "D", ORANGE, label)
        _mark(ax, ranks[best], scores[best], "o", VERMILION, f"rank {ranks[best]}: best")
        _rank_axis(ax, ranks)
        ax.legend()
    return ax


def _mark(ax: Axes, x: float, y: float, marker: str, colour: str, label: str) -> None:
    ax.plot(x, y, marker, color=colour, ms=8, label=label, zorder=3)


def _rank_axis(ax: Axes, ranks: np.ndarray) -> None:
    """Show ranks as whole numbers, on a scale of powers of two where the steps grow."""
    steps = np.diff(ranks)
    if len(ranks) > 3 and steps[-1] >= 8 * steps[0]:
        ax.set_xscale("log", base=2)
    if len(ranks) <= 12:
        ax.set_xticks(ranks, [f"{rank:,}" for rank in ranks])
        ax.minorticks_off()
    else:
        whole_numbers(ax)


def error_by_rank(
    ranks: Sequence[int],
    errors: Any,
    *,
    label: str | None = None,
    references: Mapping[str, float] | None = None,
    measure: str = "RMSE",
    ax: Axes | None = None,
) -> Axes:
    """Draw the error of predictions by rank, and return the Axes.

    Call it again with the same Axes to add other methods: each gets a colour and a mark of its own.

    Parameters
    ----------
    ranks : sequence of int
        The ranks, increasing.
    errors : array of shape (ranks,) or (splits, ranks)
        The error at each rank; of several splits the means are drawn, with their standard errors.
    label : str, optional
        The name of the method, for the legend.
    references : mapping of str to float, optional
        Errors of methods without a rank, drawn as horizontal lines.
    measure : str
        What the errors are.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> ax = jp.plots.error_by_rank([5, 10, 20], [[0.9, 0.8, 0.85], [1.0, 0.82, 0.85]], label="EM")
    >>> ax = jp.plots.error_by_rank([5, 10], [0.95, 0.9], references={"mean": 1.0}, ax=ax)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('rank', 'RMSE')
    """
    at, means, spread = _errors_by_rank(ranks, errors)
    levels = _checked_references({} if references is None else references)
    _check_text(measure, "measure")
    if label is not None:
        _check_text(label, "label")
    with drawing(ax) as ax:
        place = len(ax.containers)
        ax.errorbar(
            at,
            means,
            spread,
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            label=None if label is None else entry(plain(label)),
        )
        for (name, level), line in zip(levels.items(), cycle(_REFERENCE_LINES), strict=False):
            ax.axhline(level, color=ink(ax), ls=line, lw=1.2, label=entry(plain(name)))
        ax.margins(y=0.08)
        ax.set(xlabel="rank", ylabel=plain(measure))
        whole_numbers(ax)
        legend(ax)
    return ax


def _checked_references(references: Any) -> dict[str, float]:
    if not isinstance(references, Mapping):
        raise JointPMFError(f"references must map names to errors, not {shown(references)}")
    for name, level in references.items():
        _check_text(name, "the name of a reference")
        if not isinstance(level, Real) or not math.isfinite(level):
            raise JointPMFError(f"the error of {shown(name)} must be a number, not {shown(level)}")
    return dict(references)


def _check_text(given: Any, what: str) -> None:
    if not isinstance(given, str):
        raise JointPMFError(f"{what} must be text, not {shown(given)}")


def _errors_by_rank(ranks: Any, errors: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the ranks, the mean error of each, and its standard error if there are splits."""
    try:
        at, splits = np.asarray(ranks, float), np.atleast_2d(np.asarray(errors, float))
    except (TypeError, ValueError):
        raise JointPMFError("ranks and errors must be numbers") from None
    if at.ndim != 1 or splits.ndim != 2 or not splits.size or splits.shape[1] != len(at):
        raise JointPMFError(
            f"errors must be of shape ({at.size},) or (splits, {at.size}), "
            f"one for each rank, not {np.shape(errors)}"
        )
    splits = finite(splits.ravel()).reshape(splits.shape)
    if len(splits) == 1:
        return at, splits[0], None
    return at, splits.mean(axis=0), splits.std(axis=0, ddof=1) / math.sqrt(len(splits))
