"""Curves: scores and errors over the rank, and the course of a fit over its iterations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.errors import JointPMFError, shown
from jointpmf.fit.solution import Restart, Solution
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

    from jointpmf.judge.curve import RankCurve

_REFERENCE_LINES = ("--", "-", ":", "-.")
"""The line styles of methods without a rank, in this order."""

_SMALL = 5.0
"""Percent: smaller components are often few rows that chance brought together."""


def rank_curve(curve: RankCurve, ax: Axes | None = None) -> Axes:
    """Draw how well each rank does, and return the Axes.

    Bars are standard errors. The rank with the best score is marked, and the smallest one whose
    score is within one standard error of it, which the dashed line shows. So is the rank at which
    the fitted log-likelihood bends. The panel below shows the weight of
    the smallest component of each rank; the dashed line is at 5 %.

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
    from jointpmf.judge.curve import RankCurve

    check_kind(curve, RankCurve, "rank_curve")
    ranks = np.array([score.rank for score in curve.scores])
    scores = finite([score.score for score in curve.scores])
    errors = finite([score.standard_error for score in curve.scores])
    is_held_out = curve.criterion == "validation"
    name = "held-out log-likelihood\nper row (nats)" if is_held_out else curve.criterion_name
    with drawing(ax, height=4.6) as ax:
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
        bend = curve.elbow
        if bend is not None:
            height = scores[int(np.searchsorted(ranks, bend))]
            ax.plot(
                bend, height, "s", color=ink(ax), mfc="none", ms=11, label=f"rank {bend}: elbow"
            )
        _mark(ax, ranks[best], scores[best], "o", VERMILION, f"rank {ranks[best]}: best")
        _rank_axis(ax, ranks)
        ax.legend()
        _smallest_panel(ax, ranks, finite([score.smallest for score in curve.scores]))
    return ax


def _smallest_panel(ax: Axes, ranks: np.ndarray, shares: np.ndarray) -> None:
    """Draw the weight of the smallest component of each rank, below the curve if there is room.

    An Axes that is not in a grid keeps its place, and gets no panel.
    """
    several = shares[(ranks > 1) & ~np.isnan(shares)]  # a single component has all the weight
    place = ax.get_subplotspec()
    if not len(several) or place is None:
        return
    grid = place.subgridspec(2, 1, height_ratios=(3, 1))
    ax.set_subplotspec(grid[0])
    panel = ax.figure.add_subplot(grid[1], sharex=ax)
    panel.spines[["top", "right"]].set_visible(False)
    panel.vlines(ranks, 0, 100 * shares, color=BLUE, lw=4)
    panel.axhline(_SMALL, color=GREY, ls="--", lw=1)
    panel.set_ylim(0, max(115 * several.max(), 2 * _SMALL))
    panel.set_ylabel("smallest (%)")
    panel.tick_params(labelbottom=False)


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


def convergence(solution: Solution, ax: Axes | None = None) -> Axes:
    """Draw how the objective fell, iteration by iteration, and return the Axes.

    The best iterate is marked, which is the model of the solution. The objective of the validation
    part is drawn where there is one, with its own scale at the right if it is of another size
    (of hidden cells, say, and not of rows). Marks at the right end show where other starts ended.
    For an average of several fits, the history of one of them is drawn.

    Parameters
    ----------
    solution : Solution
        What a fit returned.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([3] * 4), rank=2, random_state=0)
    >>> rows = truth.sample(500, random_state=0, backend="codes")
    >>> ax = jp.plots.convergence(jp.fit_rows(rows, rank=2, random_state=0))
    >>> ax.get_xlabel()
    'iteration'
    """
    check_kind(solution, Solution, "convergence")
    iterations = np.array([step.iteration for step in solution.history])
    objective = finite([step.objective for step in solution.history])
    held_out = finite([step.validation for step in solution.history])
    is_of_rows = solution.marginals is None
    unit = "−log-likelihood per row (nats)" if is_of_rows else "½ squared error of the marginals"
    with drawing(ax) as ax:
        ax.set(xlabel="iteration", ylabel=unit)
        if np.isnan(objective).all():
            return say(ax, "There is no iteration to draw.")
        right = ax if _is_alike(objective, held_out) else _right_of(ax)
        ax.plot(iterations, objective, color=BLUE, label="objective")
        judged = objective
        best = len(objective) - 1 - int(np.nanargmin(objective[::-1]))  # the last one of equals
        if not np.isnan(held_out).all():
            right.plot(iterations, held_out, color=VERMILION, ls="--", label="validation part")
            judged, best = held_out, int(np.nanargmin(held_out))
        label = f"best: iteration {iterations[best]:,}"
        right.plot(iterations[best], judged[best], "o", color=ink(ax), label=label, zorder=3)
        _mark_ends(ax, int(iterations[-1]), solution.restarts)
        _scale(ax, objective, int(iterations[-1]))
        legend(right, *dict.fromkeys((ax, right)))
    return ax


def _is_alike(objective: np.ndarray, held_out: np.ndarray) -> bool:
    """Tell whether two curves can share a scale; an absent one can."""
    if np.isnan(held_out).all():
        return True
    first, second = np.nanmedian(objective), np.nanmedian(held_out)
    return bool(abs(first - second) < max(abs(first), np.ptp(objective[~np.isnan(objective)])) / 2)


def _right_of(ax: Axes) -> Axes:
    """Return an Axes for the validation part, with its scale at the right."""
    right = ax.twinx()
    right.spines["right"].set_visible(True)
    right.set_ylabel("validation part", color=VERMILION)
    return right


def _mark_ends(ax: Axes, at: int, restarts: Sequence[Restart]) -> None:
    ends = finite([restart.objective for restart in restarts])
    ends = ends[~np.isnan(ends)]
    if len(ends):
        label = f"ends of {len(ends)} starts"
        ax.plot(np.full(len(ends), at), ends, "_", color=GREY, ms=9, label=label, zorder=1)


def _scale(ax: Axes, objective: np.ndarray, n_iter: int) -> None:
    """Use log scales where most of the curve would otherwise lie in a corner."""
    lowest, highest = np.nanmin(objective), np.nanmax(objective)
    heights = objective
    if lowest > 0 and highest > 10 * lowest:
        ax.set_yscale("log")
        heights = np.log(objective)
    elif highest - lowest < 1e-6 * abs(lowest):  # rounding is not progress
        ax.set_ylim(lowest - 1e-3 * abs(lowest), highest + 1e-3 * abs(lowest))
    left = heights - np.nanmin(heights)
    if n_iter > 50 and left[len(left) // 10] < 0.1 * left[0]:
        ax.set_xscale("symlog", linthresh=1)
        ax.set_xlim(0, 1.2 * n_iter)
        ax.xaxis.set_major_formatter("{x:,.0f}")
    else:
        whole_numbers(ax)
