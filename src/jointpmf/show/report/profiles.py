"""The components in numbers: sizes, and the profile of each as pictures and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.domain import text_of
from jointpmf.judge.information import component_information
from jointpmf.judge.text import shares_text
from jointpmf.show.charts import stacked, swatch
from jointpmf.show.html import (
    Html,
    element,
    html_table,
    joined,
    name_of,
    paragraph,
    scroller,
)
from jointpmf.show.intervals import (
    ProfileIntervals,
    error_text,
    interval_text,
    intervals,
    profile_intervals,
    size_intervals,
)
from jointpmf.show.text import count_text, percent, range_text, shortened

if TYPE_CHECKING:
    from jointpmf.domain import Variable
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.pmf import JointPMF
    from jointpmf.show.report.findings import Findings

MOST_VARIABLES, MOST_COMPONENTS, _MOST_NAMED = 40, 12, 8
"""Variables and components that are drawn, and levels that are named beside a drawing."""

_MOST_PARTS = 6000
"""Parts of bars on a page: more would make its file larger than it is worth."""

_SHORT_LABEL, _MOST_DRAWN_CELLS = 80, 20_000
"""Lines of a table that is open when the page is, and numbers of the largest table."""


def profiles(found: Findings) -> Iterator[Html]:
    """Yield the section on the profiles of the components (latent classes), level by level."""
    if found.subject.n_averaged > 1:
        yield paragraph(
            f"Not shown for an average of {found.subject.n_averaged:,} fits: each has its own "
            "components."
        )
        return
    yield from _pictures(found, _drawn(found.subject.pmf))


def _drawn(pmf: JointPMF) -> np.ndarray:
    """Return the largest components, in their order."""
    return np.sort(np.argsort(-pmf.weights, kind="stable")[:MOST_COMPONENTS])


def numbers(found: Findings) -> Iterator[Html]:
    """Yield the sizes of the components, and the table of all their profiles."""
    pmf = found.subject.pmf
    yield scroller("Sizes of the components", _sizes(found, _drawn(pmf)))
    if found.tally is not None:
        yield paragraph(
            "The weight is that of the model. By posterior: the mean over rows of how likely the "
            "component is. By most likely: the share of rows whose most likely component it is.",
            note=True,
        )
    yield _whole_table(pmf, found.uncertainty)


def _sizes(found: Findings, drawn: np.ndarray) -> Html:
    pmf, tally = found.subject.pmf, found.tally
    headings = ["component", "weight"]
    columns = []
    if tally is not None and tally.components.total:
        headings += ["by posterior", "by most likely"]
        columns = [tally.components.by_posterior, tally.components.by_component]
    sizes = size_intervals(found.uncertainty)
    rows = [
        [
            name_of(pmf.component_labels[f]),
            joined([percent(float(pmf.weights[f])), error_text(sizes, f)]),
            *(percent(float(column[f])) for column in columns),
        ]
        for f in drawn
    ]
    return html_table(headings, rows, numbers=range(1, len(headings)))


def _pictures(found: Findings, drawn: np.ndarray) -> Iterator[Html]:
    """Yield the profiles as bars: a figure for each variable, in it a bar for each component."""
    pmf, sure = found.subject.pmf, found.uncertainty
    told = np.argsort(-component_information(pmf), kind="stable")
    parts = np.cumsum([pmf.domain.sizes[n] for n in told]) * (len(drawn) + 1)
    chosen = np.sort(told[: min(max(int((parts <= _MOST_PARTS).sum()), 1), MOST_VARIABLES)])
    variables = [pmf.domain.variables[n] for n in chosen]
    is_shared = len({variable.levels for variable in variables}) == 1
    labels = ["all rows", *(pmf.component_labels[f] for f in drawn)]
    yield paragraph(
        "For each variable, how its levels are spread in each component, from the first level "
        "(faint) to the last (strong)."
        + (
            ""
            if sure is None
            else f" Whiskers show where the end of a part may lie, of up to {_MOST_NAMED} levels."
        )
    )
    if is_shared:
        yield _levels(variables[0])
    names = [variable.name for variable in variables]
    known = [None] * len(names) if sure is None else profile_intervals(sure, names, drawn)
    figures = [
        _figure(
            variable,
            labels,
            np.column_stack([pmf.factors[n] @ pmf.weights, pmf.factors[n][:, drawn]]),
            known[k],
            has_levels=not is_shared,
        )
        for k, (n, variable) in enumerate(zip(chosen, variables, strict=True))
    ]
    yield element("div", *figures, class_="profiles")
    cut = [
        f"the {len(chosen):,} of {count_text(len(pmf.domain), 'variable')} that tell most"
        if len(pmf.domain) > len(chosen)
        else "",
        f"the {len(drawn):,} largest of {pmf.rank:,} components" if pmf.rank > len(drawn) else "",
    ]
    if said := " and ".join(filter(None, cut)):
        yield paragraph(f"Drawn are {said}.", note=True)


def _figure(
    variable: Variable,
    labels: Sequence[str],
    shares: np.ndarray,
    known: ProfileIntervals | None,
    has_levels: bool,
) -> Html:
    bars = [
        part
        for k, label in enumerate(labels)
        for part in (element("span", name_of(label)), _bar(variable, shares[:, k], known, k))
    ]
    levels = _levels(variable) if has_levels else ""
    return element("figure", element("figcaption", name_of(variable.name)), *bars, levels)


def _bar(variable: Variable, shares: np.ndarray, known: ProfileIntervals | None, k: int) -> Html:
    """Return the bar of a distribution, the `k`-th of its figure."""
    texts = [shortened(text_of(level)) for level in variable.levels]
    said = [f"{text}: {percent(share)}" for text, share in zip(texts, shares, strict=True)]
    if known is None:
        return stacked(shares.tolist(), said)
    _, low, high = known.parts.part(slice(None), k)
    between = map(range_text, low, high)
    said = [f"{one} ({ends})" for one, ends in zip(said, between, strict=True)]
    if variable.size > _MOST_NAMED:  # they would lie on each other
        return stacked(shares.tolist(), said)
    _, low, high = known.ends.part(slice(None, -1), k)  # the last part ends where the bar does
    return stacked(shares.tolist(), said, zip(low, high, strict=True))


def _levels(variable: Variable) -> Html:
    """Return the levels with the tones of their parts; of many, some with the first and last."""
    size = variable.size
    named = np.unique(np.linspace(0, size - 1, min(size, _MOST_NAMED)).round().astype(int))
    items = [
        element("li", swatch(k, size), " ", name_of(text_of(variable.levels[k])))
        for k in named.tolist()
    ]
    return element("ul", *items, class_="levels")


def _whole_table(pmf: JointPMF, sure: Uncertainty | None) -> Html:
    """Return all profiles as a table, which is closed if it is long."""
    room = max(_MOST_DRAWN_CELLS // pmf.rank, 1)
    kept = [n for n, end in enumerate(pmf.domain.offsets[1:]) if end <= room] or [0]
    names = [
        joined([name_of(variable.name), " = ", name_of(text_of(level))])
        for variable in pmf.domain.variables[: len(kept)]
        for level in variable.levels
    ]
    cells = _cells(pmf, len(kept), sure)
    lines: list[list[Any]] = [[name, *row] for name, row in zip(names, cells, strict=True)]
    headings = ["level", *map(name_of, pmf.component_labels)]
    table = html_table(headings, lines, numbers=range(1, len(headings)))
    rest = len(pmf.domain) - len(kept)
    note = f"The first {len(kept):,} variables; summary(…).to_frame() has all." if rest else ""
    return element(
        "details",
        element("summary", "The whole profile table"),
        scroller("Profiles of the components", table),
        paragraph(note, note=True) if note else "",
        open="" if len(lines) <= _SHORT_LABEL else None,
    )


def _cells(pmf: JointPMF, count: int, sure: Uncertainty | None) -> Iterator[list[Any]]:
    """Yield the profiles of the first variables level by level, with their intervals if known."""

    def profiles_of(one: JointPMF) -> np.ndarray:
        return np.concatenate(one.factors[:count])

    shares = profiles_of(pmf)
    if sure is None:
        yield from map(shares_text, shares)
        return
    _, low, high = intervals(sure, profiles_of)
    for row, ends in zip(shares, np.stack([low, high], axis=-1), strict=True):
        between = [interval_text(f"({range_text(*pair)})") for pair in ends]
        yield [joined(pair, " ") for pair in zip(shares_text(row), between, strict=True)]
