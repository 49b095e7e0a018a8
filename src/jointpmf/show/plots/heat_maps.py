"""Heat maps of a model: its factors, and how much variables tell about each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.errors import JointPMFError
from jointpmf.judge.information import mutual_information
from jointpmf.pmf import JointPMF
from jointpmf.show.plots.canvas import cell_points, check_kind, drawing, heat_colours, short
from jointpmf.show.plots.chosen import (
    TELLING,
    by_information,
    first_of,
    how_many,
    what_is_drawn,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS_DRAWN, _MOST_COLUMNS_DRAWN, _MOST_AXES_DRAWN = 80, 30, 40
"""How much of a large model is shown unless the caller names the variables."""


def factors(pmf: JointPMF, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw P(level | component) as a heat map, and return the Axes.

    A column is a component, under its name or number and its weight, the heaviest first; a row is
    a level.
    Of a model with too many levels or components to read, the variables that tell most about the
    component and the heaviest components are shown.

    Parameters
    ----------
    pmf : JointPMF
        The model.
    names : iterable of str, optional
        Which variables, in this order.
    ax : Axes, optional
        Where to draw; by default in a new figure that has room for all levels.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> ax = jp.plots.factors(pmf)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x0', '0', '1', 'x1', '0', '1', '2']
    """
    check_kind(pmf, JointPMF, "factors")
    part = _part_with_room(pmf) if names is None else pmf.marginal(names)
    if not len(part.domain):
        raise JointPMFError("there is no variable to draw")
    order = np.argsort(-part.weights, kind="stable")[:_MOST_COLUMNS_DRAWN]
    gap = np.full((1, len(order)), np.nan)
    rows = np.vstack([row for factor in part.factors for row in (gap, factor[:, order])])
    labels = [text for v in part.domain for text in (v.name, *v.levels)]
    heads = [part.domain.offsets[n] + n for n in range(len(part.domain))]
    notes = what_is_drawn(pmf, part, order, is_asked=names is not None)
    width = 0.5 if len(order) <= 12 else 0.32
    with drawing(ax, 3.0 + width * max(len(order), 4), 1.3 + 0.19 * len(rows)) as ax:
        _heat_map(ax, rows, 1.0, "P(level | component)")
        _label_rows(ax, [short(text, 24) for text in labels], heads)
        heads_of_columns = [
            f"{short(part.component_labels[f], 9)}\n{part.weights[f]:.1%}" for f in order
        ]
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        size = _label_size(cell_points(ax, rows.shape)[0] / 3)
        ax.set_xticks(np.arange(len(order)) + 0.5, heads_of_columns, fontsize=size)
        ax.tick_params(length=0)
        ax.set(xlabel="component and its weight")
        _note(ax, notes)
    return ax


def _part_with_room(pmf: JointPMF) -> JointPMF:
    """Return the most telling variables that fit; each level and each heading takes a row."""
    told = by_information(pmf)
    n_rows = np.cumsum([pmf.domain.sizes[n] + 1 for n in told])
    return first_of(pmf, told, max(int((n_rows <= _MOST_ROWS_DRAWN).sum()), 1))


def dependencies(pmf: JointPMF, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw how much every two variables tell about each other, and return the Axes.

    It is their mutual information in nats, see `mutual_information`; colours follow its
    square root, so that weak dependencies are seen beside strong ones. Of more than
    forty variables, those that tell most about the component are shown.

    Parameters
    ----------
    pmf : JointPMF
        The model.
    names : iterable of str, optional
        Which variables, in this order.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3, 4]), rank=2, random_state=0)
    >>> ax = jp.plots.dependencies(pmf)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['x0', 'x1', 'x2']
    """
    check_kind(pmf, JointPMF, "dependencies")
    if names is None:
        part = first_of(pmf, by_information(pmf), _MOST_AXES_DRAWN)
    else:
        part = pmf.marginal(names)
    count = len(part.domain)
    if count < 2:
        raise JointPMFError("dependencies need at least two variables")
    information = mutual_information(part)
    np.fill_diagonal(information, np.nan)
    note = how_many(count, len(pmf.domain), "variables", TELLING) if names is None else ""
    side = 2.0 + min(max(0.42 * count, 2.0), 8.0)
    with drawing(ax, side + 0.8, side) as ax:
        _heat_map(ax, information, 0.5, "mutual information (nats)")
        room = min(cell_points(ax, information.shape))
        step = math.ceil(8 / room)  # label every step-th variable, so that names do not overlap
        some, size = np.arange(0, count, step), _label_size(step * room)
        labels = [short(part.domain.names[n], 24) for n in some]
        ax.set_xticks(some + 0.5, labels, fontsize=size, rotation=90)
        ax.set_yticks(some + 0.5, labels, fontsize=size)
        ax.tick_params(length=0)
        ax.set(aspect="equal")
        _note(ax, [note])
    return ax


def _label_rows(ax: Axes, labels: Sequence[str], heads: Sequence[int]) -> None:
    """Label the rows, heads in bold; where rows are too low for text, label the heads only."""
    room = cell_points(ax, (len(labels), 1))[1]
    named = range(len(labels)) if room > 5 else heads
    ax.set_yticks([k + 0.5 for k in named], [labels[k] for k in named], fontsize=_label_size(room))
    for k, text in zip(named, ax.get_yticklabels(), strict=True):
        text.set_fontweight("bold" if k in heads else "normal")


def _note(ax: Axes, notes: Iterable[str]) -> None:
    """Write notes as the title; without any, the user's title stays."""
    if said := ", ".join(filter(None, notes)):
        ax.set_title(said)


def _label_size(room: float) -> float:
    return min(max(0.9 * room, 4.0), 9.0)


def _heat_map(ax: Axes, values: np.ndarray, power: float, label: str) -> None:
    """Draw values from zero up as colours, the first row on top, with numbers where they fit."""
    from matplotlib.colors import PowerNorm

    norm = PowerNorm(power, 0, float(np.nanmax(values)) or 1.0)
    colours = heat_colours()
    mesh = ax.pcolormesh(np.ma.masked_invalid(values), cmap=colours, norm=norm, rasterized=True)
    ax.invert_yaxis()
    ax.spines[:].set_visible(False)
    width, height = cell_points(ax, values.shape)
    shrink = min(0.8, 180 / (height * len(values)))
    ax.figure.colorbar(mesh, ax=ax, label=label, aspect=18, shrink=shrink, anchor=(0, 1))
    if min(width, height) > 6:
        mesh.set(edgecolor=ax.get_facecolor(), linewidth=0.6)
    if width < 24 or height < 9:
        return
    for (row, column), value in np.ndenumerate(values):
        if value >= 0.005:  # NaN is not
            colour = "white" if norm(value) > 0.55 else "0.15"
            at = column + 0.5, row + 0.5
            ax.text(*at, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
