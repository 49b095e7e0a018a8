"""The traits, where components lie in a space of some: what moves with each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.domain import text_of
from jointpmf.show.html import Html, element, html_table, joined, name_of, paragraph, scroller
from jointpmf.show.text import count_text, percent

if TYPE_CHECKING:
    from jointpmf.pmf import JointPMF
    from jointpmf.show.report.findings import Findings
    from jointpmf.trait_axes import Line

_MOST_TRAITS_SHOWN, _MOST_LOADINGS, _MOST_LINES = 6, 6, 300
"""Traits that are described, what is named of each, and lines of the table."""

_SLIGHT = 0.1
"""Part of the largest loading on a trait below which one is not worth a word."""


def has_traits(pmf: JointPMF) -> bool:
    """Tell whether the components are points along traits, and not to be read one by one."""
    return bool(pmf.trait_models) and len(pmf.trait_models[0].space.points) > 1


def traits(found: Findings) -> Iterator[Html]:
    """Yield the section on what each trait is."""
    pmf = found.subject.pmf
    axes, n_averaged = pmf.trait_axes, len(pmf.trait_models)
    n_traits = axes.positions.shape[1]
    yield paragraph(
        f"Every row lies somewhere along {count_text(n_traits, 'trait')}, which nobody observes. "
        "Numbers are loadings: by how much log-odds grow per standard deviation of the trait, for "
        "one more standard deviation of a variable whose levels are ordered, and for a level "
        "against the others where they are not."
    )
    if n_averaged > 1:
        yield paragraph(
            f"The model is the average of {n_averaged} such fits; these are the traits of the "
            "first.",
            note=True,
        )
    items = [
        _trait(pmf, t, axes.lines, float(share))
        for t, share in enumerate(axes.shares[:_MOST_TRAITS_SHOWN])
    ]
    yield element("ol", *items, class_="components")
    yield _whole_table(pmf, axes.lines, n_traits)


def _trait(pmf: JointPMF, t: int, lines: list[Line], share: float) -> Html:
    heading = element("h3", f"Trait {t}")
    size = element("span", f"{percent(share)} of what all traits move")
    words = element("div", *_sentences(pmf, t, lines))
    return element("li", element("div", heading, size), words)


def _sentences(pmf: JointPMF, t: int, lines: list[Line]) -> Iterator[Html]:
    slopes = np.array([line.slopes[t] for line in lines])
    least = _SLIGHT * np.abs(slopes).max(initial=0.0)
    for sign, word in ((1, "Up: "), (-1, "Down: ")):
        ordered = np.argsort(-sign * slopes, kind="stable")[:_MOST_LOADINGS]
        told = [k for k in ordered if sign * slopes[k] > least]
        parts = [joined([_title(pmf, lines[k]), f" ({_signed(float(slopes[k]))})"]) for k in told]
        if parts:
            yield paragraph(element("b", word), joined(parts, "; "), ".")


def _title(pmf: JointPMF, line: Line) -> Html:
    variable = pmf.domain.variables[line.variable]
    if line.level is None:
        return name_of(variable.name)
    level = name_of(text_of(variable.levels[line.level]))
    return joined([name_of(variable.name), " = ", level])


def _signed(number: float) -> str:
    """Return a number with its sign.

    Examples
    --------
    >>> _signed(0.5), _signed(-0.251)
    ('+0.50', '−0.25')
    """
    return f"{number:+.2f}".replace("-", "−")


def _whole_table(pmf: JointPMF, lines: list[Line], n_traits: int) -> Html:
    """Return the loadings on all traits, and how straight they are."""
    headings = ["variable", *(f"trait {t}" for t in range(n_traits)), "explained"]
    rows = [
        [_title(pmf, line), *map(_signed, line.slopes.tolist()), percent(line.explained)]
        for line in lines[:_MOST_LINES]
    ]
    table = html_table(headings, rows, numbers=range(1, len(headings)))
    rest = len(lines) - len(rows)
    return element(
        "details",
        element("summary", "All loadings"),
        scroller("Loadings", table),
        paragraph(f"The first {_MOST_LINES}; loadings() has all.", note=True) if rest else "",
        paragraph(
            "Explained: the part of the variance over all rows that lies on a straight line.",
            note=True,
        ),
    )
