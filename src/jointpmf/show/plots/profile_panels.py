"""The profiles of components: for each variable, how its levels are spread in each component."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.errors import JointPMFError, shown
from jointpmf.pmf import JointPMF
from jointpmf.show.intervals import (
    checked_uncertainty,
    has_components,
    level_text,
    profile_intervals,
)
from jointpmf.show.plots.canvas import cell_points, check_kind, heat_colours, short, style
from jointpmf.show.plots.chosen import by_information, first_of, what_is_drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jointpmf.domain import Variable
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.show.intervals import Interval

_MOST_PANELS, _MOST_SIDE_BY_SIDE = 30, 5
"""Panels, and how many of them stand side by side."""

_BARS_IN_PANEL, _MOST_IN_LEGEND = 12, 8
"""Bars in a panel, and levels in its legend."""

_PANEL_WIDTH, _BAR_HEIGHT, _LINE_HEIGHT = 2.1, 0.19, 0.15
"""Inches of a panel, of a bar in it and of a line of text."""


def profiles(
    pmf: JointPMF,
    names: Iterable[str] | None = None,
    figure: Figure | None = None,
    uncertainty: Uncertainty | None = None,
) -> Figure:
    """Draw the profile of every component (latent class), and return the figure.

    There is a panel for each variable. In it, each component is a bar, with its name or number and
    its weight at the left; the parts of a bar are P(level | component), in the order of the levels
    from light to dark, with their percentages where there is room. The bar of all rows is on top.
    Of a large model, the thirty variables that tell most about the component and the twelve
    heaviest components are drawn.

    Parameters
    ----------
    pmf : JointPMF
        The model. `reordered` gives its components another order, and names.
    names : iterable of str, optional
        Which variables, in this order.
    figure : Figure or SubFigure, optional
        Where to draw; by default in a new figure that has room for all panels.
    uncertainty : Uncertainty, optional
        What `Solution.uncertainty` returned for this model: error bars then show where the end of
        each part may lie, in 90 % intervals; those of more than eight levels have none.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> figure = jp.plots.profiles(pmf.reordered(names=["many", "few"]))
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['x0', 'x1']
    """
    check_kind(pmf, JointPMF, "profiles")
    part = (
        first_of(pmf, by_information(pmf), _MOST_PANELS) if names is None else pmf.marginal(names)
    )
    if not len(part.domain):
        raise JointPMFError("there is no variable to draw")
    drawn = np.sort(np.argsort(-part.weights, kind="stable")[:_BARS_IN_PANEL])
    notes = what_is_drawn(pmf, part, drawn, is_asked=names is not None)
    is_shared = len({variable.levels for variable in part.domain}) == 1
    known = _ends(uncertainty, pmf, part, drawn)
    with style():
        grid = _panels(figure, part, len(drawn) + 1, is_shared)
        whole = grid[0, 0].figure
        for n, (ax, variable) in enumerate(zip(grid.flat, part.domain, strict=False)):
            factor = part.factors[n]
            shares = np.column_stack([factor @ part.weights, factor[:, drawn]])
            parts = _draw(ax, variable, shares)
            if known and variable.size <= _MOST_IN_LEGEND:  # more would lie on each other
                _draw_errors(ax, known[n])
            if not is_shared:
                _legend(ax, variable, parts)
        for ax in grid.flat[len(part.domain) :]:
            ax.remove()
        labels = [short(part.component_labels[f], 22) for f in drawn]
        sizes = [f"{label}  {part.weights[f]:.1%}" for label, f in zip(labels, drawn, strict=True)]
        grid[0, 0].set_yticks(range(len(drawn) + 1), ["all rows", *sizes])
        grid[0, 0].invert_yaxis()
        if is_shared:
            _legend(whole, part.domain.variables[0], parts)
        if known:
            notes.append(f"{level_text()} intervals of the ends of parts")
        said = ", ".join(filter(None, ["P(level | component) in percent", *notes]))
        whole.suptitle(said, fontsize="medium", x=0.01, ha="left")
    return whole


def _panels(figure: Any, part: JointPMF, n_bars: int, is_shared: bool) -> np.ndarray:
    """Return Axes for all variables, in a new figure or in the one that was given."""
    from matplotlib import pyplot as plt
    from matplotlib.figure import FigureBase

    count = len(part.domain)
    n_rows = math.ceil(count / _MOST_SIDE_BY_SIDE)
    n_columns = math.ceil(count / n_rows)
    if figure is None:
        most = 0 if is_shared else min(max(part.domain.sizes), _MOST_IN_LEGEND)
        height = 0.35 + _BAR_HEIGHT * n_bars + _LINE_HEIGHT * most
        figure = plt.figure(figsize=(1.6 + _PANEL_WIDTH * n_columns, 0.5 + height * n_rows))
    elif not isinstance(figure, FigureBase):
        raise JointPMFError(f"figure must be a Figure of matplotlib, not {shown(figure)}")
    return figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)


def _draw(ax: Axes, variable: Variable, shares: np.ndarray) -> Sequence[Any]:
    """Draw a bar for each column of shares, and return one drawn part of each level."""
    colours = heat_colours()(_tones(variable.size))
    ends = shares.cumsum(axis=0)
    at, parts = range(shares.shape[1]), []
    room = cell_points(ax, (1, 1))[0]
    for k, colour in enumerate(colours):
        begins = ends[k] - shares[k]
        parts.append(ax.barh(at, shares[k], 0.82, left=begins, color=colour, lw=0)[0])
        ink = "white" if _tones(variable.size)[k] > 0.55 else "0.15"
        for y, begin, share in zip(at, begins, shares[k], strict=True):
            if share * room > 11:
                middle = begin + share / 2
                ax.text(
                    middle, y, f"{100 * share:.0f}", ha="center", va="center", fontsize=6, color=ink
                )
    ax.axhline(0.5, color=ax.get_facecolor(), lw=1.5)
    ax.set_title(short(variable.name, 34), fontsize="small", pad=3)
    ax.set_xlim(0, 1)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return parts


def _ends(
    uncertainty: Uncertainty | None, pmf: JointPMF, part: JointPMF, drawn: np.ndarray
) -> list[Interval]:
    """Return between where the parts of the bars of each variable may end, if that is known."""
    if uncertainty is None:
        return []
    sure = checked_uncertainty(uncertainty, pmf)
    if not has_components(sure):
        raise JointPMFError("the replicates of an average have other components than the model")
    return [one.ends for one in profile_intervals(sure, part.domain.names, drawn)]


def _draw_errors(ax: Axes, ends: Interval) -> None:
    """Draw an error bar where each part ends, but for the last: above and below the numbers."""
    for k, (low, high) in enumerate(zip(ends.low[:-1], ends.high[:-1], strict=True)):
        at = np.arange(len(low)) + (0.28 if k % 2 else -0.28)
        middle, half = (low + high) / 2, (high - low) / 2
        for width, colour in ((1.5, "white"), (0.7, "black")):  # seen on light and dark parts
            looks: dict[str, Any] = {
                "ecolor": colour,
                "elinewidth": width,
                "capthick": width,
                "capsize": 1.6,
            }
            ax.errorbar(middle, at, xerr=half, fmt="none", zorder=3, **looks)


def _tones(size: int) -> np.ndarray:
    """Return where the colours of levels lie in the heat map's, from light to dark."""
    return np.linspace(0.12, 0.88, size) if size > 2 else np.array([0.15, 0.65])[:size]


def _legend(where: Any, variable: Variable, parts: Sequence[Any]) -> None:
    """Name the levels under a panel or a figure; of many, some, the first and the last of them."""
    size = variable.size
    named = np.unique(np.linspace(0, size - 1, min(size, _MOST_IN_LEGEND)).round().astype(int))
    texts = [short(variable.levels[k], 30) for k in named]
    is_panel = hasattr(where, "spines")
    place = (
        {"loc": "upper left", "bbox_to_anchor": (-0.02, 0.0), "ncols": _columns(texts)}
        if is_panel
        else {"loc": "outside lower center", "ncols": size}
    )
    where.legend(
        [parts[k] for k in named],
        texts,
        fontsize=6.5 if is_panel else 8,
        frameon=False,
        handlelength=0.9,
        handleheight=0.9,
        handletextpad=0.4,
        columnspacing=0.9,
        labelspacing=0.15,
        borderaxespad=0.2,
        borderpad=0.1,
        **place,
    )


def _columns(texts: Sequence[str]) -> int:
    """Return how many columns of these texts there is room for under a panel."""
    return max(1, min(len(texts), int(42 / (max(map(len, texts)) + 4))))
