"""The components: their profile plot, words for each, and how many there should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.components import component_titles
from jointpmf.domain import text_of
from jointpmf.show.charts import bar, curve_html
from jointpmf.show.html import Html, element, joined, name_of, paragraph, scroller
from jointpmf.show.intervals import error_text, size_intervals
from jointpmf.show.report.profile_plot import profile_plot
from jointpmf.show.report.profiles import MOST_COMPONENTS, numbers
from jointpmf.show.text import count_text, percent

if TYPE_CHECKING:
    from jointpmf.domain import Variable
    from jointpmf.judge.curve import RankCurve
    from jointpmf.pmf import JointPMF
    from jointpmf.show.report.findings import Findings

MOST_TELLING = 5
"""Variables in the words for each component."""


def components(found: Findings) -> Iterator[Html]:
    """Yield the section on what each component is."""
    pmf = found.subject.pmf
    if pmf.rank == 1:
        yield paragraph("The only component: every variable has the same distribution in all rows.")
        yield from numbers(found)
        return
    is_single = found.subject.n_averaged == 1  # each fit of an average has its own components
    if is_single:
        yield from profile_plot(pmf, found.uncertainty)
    order = sorted(range(pmf.rank), key=lambda f: -pmf.weights[f])[:MOST_COMPONENTS]
    yield paragraph(
        "What sets each component apart from all rows. The share among all rows is in brackets."
    )
    telling = telling_levels(pmf, order, MOST_TELLING)
    items = [
        _component(_heading(pmf, f), size, words)
        for f, size, words in zip(order, _sizes(found, order), telling, strict=True)
    ]
    yield element("ol", *items, class_="components")
    if pmf.rank > len(order):
        rest = 1 - float(sum(pmf.weights[f] for f in order))
        yield paragraph(
            f"The {len(order)} largest are described; the other {pmf.rank - len(order):,} have "
            f"{percent(max(rest, 0.0))} of the weight together.",
            note=True,
        )
    if found.tally is not None and (sharpness := found.tally.sharpness) is not None:
        yield paragraph(
            f"How clearly rows belong to one component: {sharpness:.2f} (relative entropy, "
            "also called entropy R²: 1 is certain, 0 not at all).",
            note=True,
        )
    if is_single:
        yield from numbers(found)


def _heading(pmf: JointPMF, f: int) -> Html:
    title = component_titles(pmf.rank, pmf.component_names)[f]
    return element("h3", name_of(title if pmf.component_names else title.capitalize()))


def _sizes(found: Findings, order: Sequence[int]) -> Iterator[Html]:
    """Yield the weight of each component as text and as a bar; the largest has the whole width."""
    weights, n_rows = found.subject.pmf.weights, found.n_fitted
    sizes = size_intervals(found.uncertainty)
    most = float((weights if sizes is None else np.maximum(sizes.high, weights)).max())
    for f in order:
        rows = "" if n_rows is None else count_text(round(weights[f] * n_rows), "row")
        about = f", about {rows}" if rows else ""
        ends = None if sizes is None else (sizes.low[f] / most, sizes.high[f] / most)
        text = element("span", f"{percent(float(weights[f]))}{about}")
        yield joined([text, error_text(sizes, f), bar(float(weights[f]) / most, ends)])


def _component(heading: Html, size: Html, words: Sequence[Telling]) -> Html:
    return element("li", element("div", heading, size), paragraph(*_sentence(words)))


def _sentence(words: Sequence[Telling]) -> Iterator[object]:
    """Yield the pieces of a sentence on the levels that tell a component from the rest."""
    if not words:
        yield "Much like all rows together."
    for k, one in enumerate(words):
        yield "; " if k else ""
        yield element("b", name_of(one.name))
        yield " is "
        if one.is_run and len(one.levels) > 2:
            yield joined([name_of(one.levels[0]), " to ", name_of(one.levels[-1])])
        else:
            yield joined(map(name_of, one.levels), " or ")
        yield f" in {_rounded(one.within)} ({_rounded(one.overall)})"
    yield "." if words else ""


def _rounded(share: float) -> str:
    """Return a share as people say it.

    Examples
    --------
    >>> [_rounded(share).replace("\N{NO-BREAK SPACE}", " ") for share in (0.004, 0.423, 0.9999, 1)]
    ['less than 1 %', '42 %', 'over 99 %', '100 %']
    """
    if 0 < share < 0.01:
        return "less than 1\N{NO-BREAK SPACE}%"
    text = "over 99" if 0.99 < share < 1 - 1e-6 else f"{100 * share:.0f}"
    return f"{text}\N{NO-BREAK SPACE}%"


def ranks(found: Findings, curve: RankCurve) -> Iterator[Html]:
    """Yield the section on how many components there should be."""
    how = (
        "Each rank was fitted to a part of the rows and judged by rows that it had not seen: more "
        "components fit better, but predict worse from some point on."
        if curve.criterion == "validation"
        else f"Each rank was fitted to all rows and judged by {curve.criterion_name}, which "
        "weighs the fit against the number of parameters."
    )
    own = f"This model has {found.subject.pmf.rank}."
    if found.subject.n_averaged > 1:
        own = f"This model is an average of {found.subject.n_averaged:,} fits."
    yield paragraph(f"{how} {_best_rank(curve)} {own}")
    yield scroller("Rank curve", curve_html(curve))
    if found.curve_note:
        yield paragraph(found.curve_note, note=True)


def _best_rank(curve: RankCurve) -> str:
    if not curve.has_best:
        return "None is best: no rank has a finite score."
    best = f"The best is rank {curve.rank}."
    if curve.simplest_rank == curve.rank:
        return best
    return f"{best} Rank {curve.simplest_rank} does as well within one standard error."


_TELLING = 0.05
"""Levels that say less about their component, in nats, are not worth a word."""


class Telling(NamedTuple):
    """Levels of a variable that tell a component from the rest."""

    name: str
    levels: tuple[str, ...]
    is_run: bool
    """Whether they are neighbours among levels that have an order."""
    within: float
    overall: float


def telling_levels(pmf: JointPMF, components: Sequence[int], most: int) -> list[list[Telling]]:
    """Return, for some components, the levels by which each differs most from all rows.

    Those with the largest P(level | component) · log(P(level | component) / P(level)): likely
    there, and more likely than elsewhere. Neighbouring numeric levels are taken together.
    """
    found: list[list[tuple[float, Telling]]] = [[] for _ in components]
    for variable, factor in zip(pmf.domain, pmf.factors, strict=True):
        overall = np.maximum(factor @ pmf.weights, np.finfo(float).tiny)
        within = factor[:, list(components)]
        information = _information(within, overall[:, None])
        for k, best in enumerate(information.argmax(axis=0).tolist()):
            if information[best, k] >= _TELLING / variable.size:
                found[k].append(_around(variable, best, within[:, k], overall))
    ordered = [sorted(one, key=lambda pair: -pair[0])[:most] for one in found]
    return [[telling for gain, telling in one if gain >= _TELLING] for one in ordered]


def _information(within: np.ndarray, overall: np.ndarray) -> np.ndarray:
    return within * np.log(np.maximum(within, np.finfo(float).tiny) / overall)


def _around(
    variable: Variable, best: int, within: np.ndarray, overall: np.ndarray
) -> tuple[float, Telling]:
    """Return how much a level tells, and the level; with its neighbours if levels are numbers."""
    begin, end = best, best + 1
    is_ordered = variable.values is not None and variable.size > 2
    if is_ordered:
        while begin > 0 and within[begin - 1] > overall[begin - 1]:
            begin -= 1
        while end < variable.size and within[end] > overall[end]:
            end += 1
    inside, outside = float(within[begin:end].sum()), float(overall[begin:end].sum())
    levels = tuple(text_of(level) for level in variable.levels[begin:end])
    gain = float(_information(np.array(inside), np.array(outside)))
    return gain, Telling(variable.name, levels, is_ordered, inside, outside)
