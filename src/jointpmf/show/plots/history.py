"""The course of a fit: its objective, iteration by iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.fit.solution import Restart, Solution
from jointpmf.show.plots.canvas import (
    BLUE,
    GREY,
    VERMILION,
    check_kind,
    drawing,
    finite,
    ink,
    legend,
    say,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    source = solution.source
    is_coupled = solution.marginals is not None or (source is not None and source.kind != "rows")
    unit = "½ squared error of the marginals" if is_coupled else "−log-likelihood per row (nats)"
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
