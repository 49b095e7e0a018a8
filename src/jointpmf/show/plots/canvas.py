"""What all pictures share: colours, style, the Axes to draw on, labels and legends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.domain import text_of
from jointpmf.errors import JointPMFError, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILION, ORANGE = "#0072B2", "#D55E00", "#E69F00"

COLOURS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#56B4E9", ORANGE)
"""The colours of curves, in the order in which they are taken."""

MARKERS = "oDv^sP"
"""The marks on curves, for readers who do not see the colours."""

GREY = "0.55"
"""For what stays in the background: visible on white and on black."""

HEAT = (
    "#F7FAFC",
    "#CCDFEE",
    "#A2C4E0",
    "#77A9D2",
    "#4A8EC2",
    "#0673B3",
    "#0A588D",
    "#0D3D68",
    "#0B2545",
)
"""The colours of heat maps from zero up, at equal distances in Oklab."""

_STYLE: dict[Any, Any] = {
    "axes.prop_cycle": f"cycler(color={list(COLOURS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "font.size": 9.0,
    "legend.edgecolor": "none",
    "legend.facecolor": "inherit",
    "legend.framealpha": 0.75,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of this library inside the context; the settings are restored after it.

    Examples
    --------
    >>> import jointpmf as jp
    >>> from matplotlib.figure import Figure
    >>> with jp.plots.style():
    ...     ax = Figure().subplots()
    >>> ax.spines["top"].get_visible()
    False
    """
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError:
        raise JointPMFError("plots need the extra: pip install 'jointpmf[plots]'") from None
    with rc_context(_STYLE):
        yield


def whole_numbers(ax: Axes) -> None:
    """Put ticks of the horizontal axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def finite(numbers: Iterable[float | None]) -> np.ndarray:
    """Return numbers, with NaN for those that cannot be drawn."""
    array = np.array([math.nan if number is None else number for number in numbers], float)
    return np.where(np.isfinite(array), array, math.nan)


def check_kind(given: Any, kind: type, where: str) -> None:
    """Refuse what the function `where` does not draw."""
    if not isinstance(given, kind):
        raise JointPMFError(f"plots.{where} draws a {kind.__name__}, not {shown(given)}")


@contextmanager
def drawing(ax: Axes | None, width: float = 6.0, height: float = 3.8) -> Iterator[Axes]:
    """Give the Axes to draw on, in our style: the one that was given, or that of a new figure."""
    with style():
        from matplotlib import pyplot as plt
        from matplotlib.axes import Axes

        if ax is None:
            ax = plt.subplots(figsize=(width, height))[1]
        elif not isinstance(ax, Axes):
            raise JointPMFError(f"ax must be one Axes of matplotlib, not {shown(ax)}")
        elif ax.name != "rectilinear":
            raise JointPMFError(f"ax must have two straight axes; this one is {ax.name!r}")
        ax.spines[["top", "right"]].set_visible(False)
        yield ax


def ink(ax: Axes) -> Any:
    """Return the text colour, which is visible on the user's background."""
    return ax.xaxis.label.get_color()


def legend(ax: Axes, *drawn: Axes, **where: Any) -> None:
    """Add a legend for what was drawn here or on several Axes, if anything has a label."""
    entries = [one.get_legend_handles_labels() for one in drawn or (ax,)]
    handles = [handle for some, _ in entries for handle in some]
    if handles:
        ax.legend(handles, [label for _, some in entries for label in some], **where)


def say(ax: Axes, sentence: str) -> Axes:
    """Write a sentence where there is nothing to draw."""
    ax.text(0.5, 0.5, sentence, ha="center", va="center", transform=ax.transAxes, color=GREY)
    return ax


def short(item: object, width: int) -> str:
    """Return a name or a level as a label of at most `width` characters on one line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text_of(item)).split())
    return plain(line if len(line) <= width else line[: width - 1] + "…")


def plain(text: str) -> str:
    """Return text that matplotlib does not read as a formula."""
    return text.replace("$", r"\$")


def entry(text: str) -> str:
    """Return text for a legend, which would skip a label that begins with an underscore."""
    return f"\u200b{text}" if text.startswith("_") else text


def heat_colours(colours: Sequence[str] = HEAT) -> Any:
    """Return a colour map through these colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("heat", colours)


def cell_points(ax: Axes, shape: tuple[int, ...]) -> tuple[float, float]:
    """Return about how wide and high the cells of a heat map are, in points."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return 72 * box.width / shape[1], 72 * box.height / shape[0]
