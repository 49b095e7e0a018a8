"""The map of traits: where rows lie in the first two, and where variables point."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.domain import name_list, text_of
from jointpmf.errors import JointPMFError
from jointpmf.pmf import JointPMF
from jointpmf.show.plots.canvas import (
    BLUE,
    GREY,
    HEAT,
    cell_points,
    check_kind,
    drawing,
    heat_colours,
    ink,
    short,
)
from jointpmf.show.plots.chosen import how_many

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ARROWS = 50
"""Arrows that are drawn unless the caller names the variables: the longest."""

_MOST_DOTS = 2000
"""Rows that are drawn one by one; of more, the density is."""

_REACH = 2.6
"""How long the longest arrow is, in standard deviations of a trait."""

_LINE_POINTS, _LABEL_SIZE, _LABEL_WIDTH = 9.5, 7.5, 44
"""The height of a line of labels and of its letters in points, and its letters at most."""

_GOLDEN = (math.sqrt(5) - 1) / 2


class _Arrow(NamedTuple):
    """What one arrow shows."""

    label: str
    begin: tuple[float, float]
    tip: tuple[float, float]

    @property
    def is_right(self) -> bool:
        """Whether it points to the right."""
        return self.tip[0] >= 0

    def aim(self, reach: float) -> float:
        """Return the height at which it would leave a picture of this half width."""
        rise, run = self.tip[1] - self.begin[1], max(abs(self.tip[0]), 1e-9 * reach)
        return float(np.clip(self.begin[1] + rise * reach / run, -reach, reach))


def traits(
    pmf: JointPMF,
    rows: Any = None,
    names: Iterable[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw rows and variables in the first two traits, and return the Axes.

    A dot is a row, at its posterior mean (`JointPMF.traits`); of more than two thousand rows the
    density is drawn, and without rows the points of the model by their weights. An arrow is a
    variable, or a level of a variable whose levels have no order, and points to where its log-odds
    grow (`JointPMF.loadings`): rows that lie there have high values, or that level. Arrows share a
    scale of their own, which is written above. Of many, the fifty longest are drawn. With one
    trait, heights mean nothing.

    Parameters
    ----------
    pmf : JointPMF
        A model whose components lie in a space of traits.
    rows : pandas, Polars or PyArrow table, array, or Codes, optional
        The rows.
    names : iterable of str, optional
        Which variables have arrows.
    ax : Axes, optional
        Where to draw; by default in a new figure that has room for all names.

    Examples
    --------
    >>> import jointpmf as jp
    >>> table = jp.random_pmf(jp.Domain.of_sizes([2] * 6), rank=4, random_state=0).sample(200)
    >>> model = jp.fit_rows(table, rank=64, objective=jp.Likelihood(traits=2), max_iter=5).pmf
    >>> ax = jp.plots.traits(model, table)
    >>> len(ax.texts)
    6
    """
    check_kind(pmf, JointPMF, "traits")
    arrows, length, n_all = _arrows(pmf, names)
    where, sizes = _cloud(pmf, rows)
    n_lines = max(len(side) for side in _sides(arrows))
    height = max(4.6, 1.0 + n_lines * _LINE_POINTS / 72)
    width = height + 0.075 * sum(max(map(len, _labels(side)), default=0) for side in _sides(arrows))
    with drawing(ax, width, height) as ax:
        _draw_cloud(ax, where, sizes)
        _frame(ax, pmf, where)
        _draw_arrows(ax, arrows)
        counted = how_many(len(arrows), n_all, "arrows", "the longest")
        ax.set_title(
            ", ".join(filter(None, [f"longest arrow: {length:.2g} log-odds per sd", counted]))
        )
    return ax


def _arrows(pmf: JointPMF, names: Iterable[str] | None) -> tuple[list[_Arrow], float, int]:
    """Return the arrows to be drawn, what the longest stands for, and how many there are."""
    domain, lines = pmf.domain, pmf.trait_axes.lines
    if names is not None:
        asked = set(domain.indices(name_list(names)))
        lines = [line for line in lines if line.variable in asked]
    if not lines:
        raise JointPMFError("there is no variable to draw")
    slopes = np.array([line.slopes[:2] for line in lines])
    sizes = np.hypot.reduce(slopes, axis=1)
    longest = np.sort(np.argsort(-sizes, kind="stable")[: _MOST_ARROWS if names is None else None])
    scale = _REACH / max(float(sizes.max()), np.finfo(float).tiny)
    heights = _spread(len(longest)) if slopes.shape[1] == 1 else None
    arrows = []
    for k, at in enumerate(longest[np.argsort(slopes[longest, 0], kind="stable")]):
        level, variable = lines[at].level, domain.variables[lines[at].variable]
        of_level = "" if level is None else f": {text_of(variable.levels[level])}"
        x = scale * float(slopes[at, 0])
        y = scale * float(slopes[at, 1]) if heights is None else float(heights[k])
        begin = (0.0, 0.0 if heights is None else y)
        arrows.append(_Arrow(short(variable.name + of_level, _LABEL_WIDTH), begin, (x, y)))
    return arrows, float(sizes.max()), len(lines)


def _spread(count: int) -> np.ndarray:
    """Return heights for arrows that have none."""
    return np.linspace(-_REACH, _REACH, count + 2)[1:-1]


def _cloud(pmf: JointPMF, rows: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return where rows lie; or the points of the model, and how much they weigh."""
    if rows is None:
        where, n_points = pmf.trait_axes.positions[:, :2], len(pmf.trait_axes.positions)
        sizes = pmf.weights[:n_points]
    else:
        frame, sizes = pmf.traits(rows), None
        where = frame.select([name for name in frame.columns[:4] if not name.endswith("sd")])
        where = where.to_numpy()
    if where.shape[1] == 1:  # rows spread evenly over heights that mean nothing
        heights = _REACH * (2 * (np.arange(len(where)) * _GOLDEN % 1) - 1)
        where = np.column_stack([where, heights])
    return where, sizes


def _draw_cloud(ax: Axes, where: np.ndarray, sizes: np.ndarray | None) -> None:
    x, y = where.T
    if sizes is None and len(where) > _MOST_DOTS:
        from matplotlib.colors import PowerNorm

        light = HEAT[: len(HEAT) // 2 + 1][1:]  # so that arrows are seen on it
        looks: dict[str, Any] = {"gridsize": 42, "mincnt": 1, "linewidths": 0.2}
        ax.hexbin(x, y, cmap=heat_colours(light), norm=PowerNorm(0.5), **looks)
        return
    area: Any = 7.0
    if sizes is not None:
        area = 900 * sizes / max(sizes.max() * math.sqrt(len(sizes)), np.finfo(float).tiny)
    ax.scatter(x, y, s=area, color=GREY, alpha=0.4, linewidths=0)


def _frame(ax: Axes, pmf: JointPMF, where: np.ndarray) -> None:
    """Name the axes, and show most of the rows and all of every arrow."""
    shares = pmf.trait_axes.shares
    far = np.quantile(np.abs(where), 0.998) if where.size else 0.0
    reach = 1.06 * max(_REACH, float(far))
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_xlabel(f"trait 0 ({shares[0]:.0%} of what the traits move)")
    ax.axvline(0, color=GREY, lw=0.5, zorder=0)
    ax.spines["left"].set_visible(False)
    inside: dict[str, Any] = {"rotation": 0, "ha": "left", "va": "top"}  # names are outside
    ax.yaxis.set_label_coords(0.0, 1.0)
    if len(shares) > 1:
        ax.set_ylabel(f"trait 1 ({shares[1]:.0%}) ↑", **inside)
        ax.axhline(0, color=GREY, lw=0.5, zorder=0)
        ax.tick_params(axis="y", direction="in", pad=-6, labelsize=_LABEL_SIZE, labelcolor=GREY)
        for label in ax.get_yticklabels():
            label.set_horizontalalignment("left")
    else:
        ax.set_yticks([])
        ax.set_ylabel("heights mean nothing", **inside)


def _sides(arrows: Sequence[_Arrow]) -> list[list[_Arrow]]:
    """Return the arrows whose labels stand at the left, and at the right."""
    return [[one for one in arrows if one.is_right is side] for side in (False, True)]


def _labels(arrows: Iterable[_Arrow]) -> list[str]:
    return [arrow.label for arrow in arrows]


def _draw_arrows(ax: Axes, arrows: Sequence[_Arrow]) -> None:
    """Draw arrows, and their names in two columns beside the picture, where none is on another."""
    begins = np.array([arrow.begin for arrow in arrows])
    tips = np.array([arrow.tip for arrow in arrows])
    looks: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.0032}
    ax.quiver(*begins.T, *(tips - begins).T, color=BLUE, zorder=3, **looks)
    reach = ax.get_xlim()[1]
    room = cell_points(ax, (1, 1))[1] / _LINE_POINTS
    for side, is_right in zip(_sides(arrows), (False, True), strict=True):
        ordered = sorted(side, key=lambda arrow: arrow.aim(reach))
        wanted = [(arrow.aim(reach) / reach + 1) / 2 for arrow in ordered]
        step = min(1.5 * len(side), max(room, len(side))) / max(len(side), 1) / room
        for arrow, y in zip(ordered, _apart(wanted, step), strict=True):
            _label(ax, arrow, y, is_right)


def _label(ax: Axes, arrow: _Arrow, y: float, is_right: bool) -> None:
    """Write a name beside the picture, with a line to its arrow."""
    end = (0.0, 0.5) if is_right else (1.0, 0.5)
    line = {"arrowstyle": "-", "color": GREY, "lw": 0.5, "shrinkA": 1, "shrinkB": 0}
    ax.annotate(
        arrow.label,
        arrow.tip,
        (1.03 if is_right else -0.03, y),
        textcoords="axes fraction",
        ha="left" if is_right else "right",
        va="center",
        fontsize=_LABEL_SIZE,
        color=ink(ax),
        annotation_clip=False,
        arrowprops={**line, "relpos": end},
    )


def _apart(wanted: Sequence[float], step: float) -> np.ndarray:
    """Return heights near the wanted ones, which increase, that are at least a step apart."""
    count = len(wanted)
    step = min(step, 1 / max(count - 1, 1))
    # without their steps the heights need only increase: neighbours that do not are pooled
    pools: list[list[float]] = []
    for k, height in enumerate(wanted):
        pools.append([height - k * step, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, size = pools.pop()
            before, n_before = pools[-1]
            pools[-1] = [(before * n_before + mean * size) / (n_before + size), n_before + size]
    flat = np.repeat([mean for mean, _ in pools], [int(size) for _, size in pools])
    return flat.clip(0, 1 - (count - 1) * step) + step * np.arange(count)
