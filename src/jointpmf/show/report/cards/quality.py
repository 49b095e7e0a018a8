"""How well the model fits: the worst marginals beside the model's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jointpmf.domain import text_of
from jointpmf.show.html import Html, element, html_table, joined, name_of
from jointpmf.show.report.cards.parts import paragraph, scroller
from jointpmf.show.text import number_text, percent

if TYPE_CHECKING:
    from jointpmf.show.report.comparison import Comparison, Misfit
    from jointpmf.show.report.findings import Findings


_WORST = 10
"""Marginals that are listed."""


def quality(found: Findings) -> Iterator[Html]:
    """Yield the section."""
    tally = found.tally
    if tally is not None and (typical := tally.typical_probability) is not None:
        by_model, alone = typical
        yield paragraph(
            f"The model gives a typical observed cell of the table a probability of "
            f"{percent(by_model)}; the variables' own frequencies, each taken alone, give it "
            f"{percent(alone)}."
        )
    if found.comparison is None or not found.comparison.misfits:
        yield paragraph(_why_nothing_is_compared(found))
        return
    misfits = found.comparison.misfits
    yield paragraph(
        f"{_which_are_compared(found.comparison)}. The distance is the share of rows that would "
        "have to be in another cell of the table."
    )
    has_chance = any(misfit.chance is not None for misfit in misfits)
    rows = [_misfit_cells(misfit, has_chance) for misfit in misfits[:_WORST]]
    headings = ["marginal, and its worst cell", "distance"]
    headings += ["by chance"] if has_chance else []
    headings += ["observed", "fitted"]
    headings += ["rows"] if has_chance else []
    numbers = range(1, len(headings))
    yield scroller("Worst fitted marginals", html_table(headings, rows, numbers))
    if has_chance:
        yield paragraph(
            "By chance: the mean distance of as many rows drawn from the model itself. Marginals "
            "are ordered by how far they go beyond it.",
            note=True,
        )


def _why_nothing_is_compared(found: Findings) -> str:
    if found.tally is None and found.subject.marginals is None:
        return "There are neither marginals nor rows here to compare the model with."
    if found.comparison is not None and found.subject.marginals is None:
        return "No row observes two variables together, so there is no table to compare with."
    return "The observed tables have too many cells to be compared with the model's."


def _which_are_compared(comparison: Comparison) -> str:
    misfits, n_all = comparison.misfits, comparison.n_all
    kinds = {1: "single variable", 2: "pair of variables"}
    orders = {len(misfit.names) for misfit in misfits}
    what = kinds.get(orders.pop(), "table") if len(orders) == 1 else "table"
    if n_all == 1:
        return f"The one observed marginal, a {what}, beside the model's"
    first, _, rest = what.partition(" of ")
    what = f"{first}s of {rest}" if rest else f"{first}s"
    which = f"all {n_all:,}" if len(misfits) == n_all else f"{len(misfits):,} of {n_all:,}"
    worst = f"the worst {min(_WORST, len(misfits))} first"
    return f"The observed marginals ({which} {what}) beside the model's, {worst}"


def _misfit_cells(misfit: Misfit, has_chance: bool) -> list[object]:
    pairs = zip(misfit.names, misfit.levels, strict=True)
    cell = joined(
        [joined([name_of(name), " = ", name_of(text_of(level))]) for name, level in pairs], ", "
    )
    names = joined([name_of(name) for name in misfit.names], ", ")
    first = joined([names, element("span", cell, class_="under")])
    shares = [percent(misfit.observed), percent(misfit.fitted)]
    if not has_chance:
        return [first, percent(misfit.distance), *shares]
    chance = "–" if misfit.chance is None else percent(misfit.chance)
    return [first, percent(misfit.distance), chance, *shares, number_text(misfit.n_obs)]
