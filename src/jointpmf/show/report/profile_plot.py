"""The profile plot: a line for each component, through what it says of each variable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.components import component_titles
from jointpmf.domain import text_of
from jointpmf.judge.information import component_information
from jointpmf.show.html import Html, element, joined, name_of, paragraph
from jointpmf.show.intervals import has_components, intervals
from jointpmf.show.text import percent

if TYPE_CHECKING:
    from jointpmf.domain import Variable
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.pmf import JointPMF

_MOST_CURVES, _MOST_LANES, _MOST_VARIABLE_LANES = 8, 60, 8
"""Lines, as many as there are colours; lanes of the plot; and lanes of one variable."""

_LANE = 36
"""Height of a lane in pixels: two lines of text."""


class Lane(NamedTuple):
    """One line of the plot: what it shows, and its position of each level."""

    variable: int
    name: str
    what: str
    positions: np.ndarray


def profile_plot(pmf: JointPMF, sure: Uncertainty | None = None) -> Iterator[Html]:
    """Yield the plot of the largest components, and how to read it."""
    drawn = np.sort(np.argsort(-pmf.weights, kind="stable")[:_MOST_CURVES])
    lanes = chosen_lanes(pmf, drawn)
    if not lanes:
        return
    yield paragraph(
        "Each line is a component. A lane shows how likely a level is there; of a variable whose "
        "levels are numbers it shows their mean position, from the first level to the last."
    )
    titles = component_titles(pmf.rank, pmf.component_names)
    legend = [
        element(
            "li",
            element("i", class_=f"key c{k}"),
            " ",
            name_of(titles[f]),
            f" ({percent(float(pmf.weights[f]))})",
        )
        for k, f in enumerate(drawn.tolist())
    ]
    names = [
        element("li", element("p", element("b", name_of(lane.name)), " ", lane.what))
        for lane in lanes
    ]
    drawing = element("ul", *names), _drawing(pmf, lanes, drawn, sure)
    scale = element("div", *(element("span", end) for end in ("0 %", "50 %", "100 %")))
    yield element(
        "figure",
        element("ul", *legend, class_="legend"),
        element("div", *drawing, scale, class_="lanes"),
        class_="plot",
    )
    told = len({lane.variable for lane in lanes})
    cut = [
        f"the {told:,} of {len(pmf.domain):,} variables that tell most"
        if len(pmf.domain) > told
        else "",
        f"the {len(drawn)} largest of {pmf.rank:,} components" if pmf.rank > len(drawn) else "",
    ]
    if said := " and ".join(filter(None, cut)):
        yield paragraph(f"Drawn are {said}; the table has more.", note=True)


def chosen_lanes(pmf: JointPMF, drawn: np.ndarray) -> list[Lane]:
    """Return the lanes of the variables that tell most of the component, in their order."""
    information = component_information(pmf)
    kept: list[Lane] = []
    for n in np.argsort(-information, kind="stable").tolist():
        lanes = list(_lanes(n, pmf.domain.variables[n], pmf.factors[n][:, drawn]))
        if len(kept) + len(lanes) > _MOST_LANES:
            break
        kept += lanes
    return sorted(kept, key=lambda lane: lane.variable)


def _lanes(n: int, variable: Variable, shares: np.ndarray) -> Iterator[Lane]:
    """Yield one lane of a variable that has an order, and else one for each telling level."""
    size, texts = variable.size, [text_of(level) for level in variable.levels]
    if size > 2 and variable.values is not None:
        between = joined([name_of(texts[0]), " to ", name_of(texts[-1])])
        yield Lane(n, variable.name, between, np.arange(size) / (size - 1))
        return
    apart = np.ptp(shares, axis=1)
    levels = [1] if size == 2 else np.argsort(-apart, kind="stable")[:_MOST_VARIABLE_LANES].tolist()
    for level in sorted(levels) if size > 1 else ():
        yield Lane(n, variable.name, name_of(texts[level]), np.eye(size)[level])


def positions(pmf: JointPMF, lanes: Sequence[Lane]) -> np.ndarray:
    """Return where each component lies on each lane, from 0 to 1; shape (lanes, rank)."""
    return np.stack([lane.positions @ pmf.factors[lane.variable] for lane in lanes])


def _drawing(
    pmf: JointPMF, lanes: Sequence[Lane], drawn: np.ndarray, sure: Uncertainty | None
) -> Html:
    at = 100 * positions(pmf, lanes)[:, drawn]
    parts = [f'<path class="grid" d="{"".join(f"M0 {k}H100" for k in range(len(lanes) + 1))}"/>']
    parts.append(f'<path class="grid" d="M0 0V{len(lanes)}M50 0V{len(lanes)}M100 0V{len(lanes)}"/>')
    if sure is not None and has_components(sure):
        found = intervals(sure, lambda one: positions(one, lanes))
        ends = 100 * np.stack([found.low[:, drawn], found.high[:, drawn]], axis=-1)
        for k in range(len(drawn)):
            path = "".join(f"M{a:.3g} {y + 0.5}H{b:.3g}" for y, (a, b) in enumerate(ends[:, k]))
            parts.append(f'<path class="interval c{k}" d="{path}"/>')
    for k in range(len(drawn)):
        corners = [f"{x:.3g} {y + 0.5}" for y, x in enumerate(at[:, k])]
        parts.append(f'<path class="course c{k}" d="M{"L".join(corners)}"/>')
        dots = "".join(f"M{corner}h0" for corner in corners)
        parts.append(f'<path class="point c{k}" d="{dots}"/>')
    return Html(
        f'<svg width="100" height="{_LANE * len(lanes)}" viewBox="0 0 100 {len(lanes)}" '
        'preserveAspectRatio="none" role="img" fill="none" '
        f'aria-label="Profile plot; the table of profiles has its numbers">{"".join(parts)}</svg>'
    )
