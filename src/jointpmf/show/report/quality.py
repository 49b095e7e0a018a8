"""How well the model fits: whole rows, and the marginals that fit worst."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jointpmf.domain import text_of
from jointpmf.judge.summary import criterion_name, information_criteria
from jointpmf.show.html import (
    Html,
    element,
    facts,
    html_table,
    joined,
    name_of,
    paragraph,
    scroller,
)
from jointpmf.show.text import amount_text, number_text, percent

if TYPE_CHECKING:
    from jointpmf.judge.goodness import Goodness
    from jointpmf.show.report.comparison import Comparison, Misfit
    from jointpmf.show.report.findings import Findings

MOST_WORST = 10
"""Marginals that are listed."""


def quality(found: Findings) -> Iterator[Html]:
    """Yield the section on how well the model fits."""
    tally = found.tally
    if known := list(_likelihood(found)):
        yield facts(known)
        yield paragraph("Of the information criteria, smaller is better.", note=True)
    if tally is not None and (typical := tally.typical_probability) is not None:
        by_model, alone = typical
        yield paragraph(
            f"The model gives a typical observed cell of the table a probability of "
            f"{percent(by_model)}; the variables' own frequencies, each taken alone, give it "
            f"{percent(alone)}."
        )
    yield from _whole_rows(found)
    if found.comparison is None or not found.comparison.misfits:
        yield paragraph(_why_nothing_is_compared(found))
        return
    compared = found.comparison
    meaning = _MEANING if compared.has_residuals else ""
    yield paragraph(
        f"{_which_are_compared(compared)}. {meaning}The distance is the share of rows that would "
        "have to be in another cell of the table."
    )
    yield scroller("Worst fitted marginals", _worst(compared))
    if any(misfit.chance is not None for misfit in compared.misfits):
        order = "" if compared.has_residuals else _ORDER
        yield paragraph(
            f"By chance: the mean distance of as many rows drawn from the model itself.{order}",
            note=True,
        )


def _likelihood(found: Findings) -> Iterator[tuple[object, object]]:
    """Yield what is known of the likelihood of the rows, if all of them are possible."""
    tally = found.tally
    if tally is None or tally.n_impossible or not tally.weight:
        return
    yield "Log-likelihood", amount_text(tally.log_likelihood)
    if known := criteria(found):
        yield "Free parameters", f"{found.n_parameters:,}"
        for name, criterion in known.items():
            yield criterion_name(name), amount_text(criterion)
    if found.subject.has_components and tally.sharpness is not None:
        yield "Relative entropy (entropy R²)", f"{tally.sharpness:.3f}"


def criteria(found: Findings) -> dict[str, float]:
    """Return the criteria, where all rows are possible and the parameters can be counted."""
    tally = found.tally
    if tally is None or tally.n_impossible or not tally.weight or not found.subject.has_components:
        return {}
    return information_criteria(tally.log_likelihood, found.n_parameters, tally.weight)


_MEANING = (
    "χ²/df, the bivariate residual, is about one where the model holds, and above three or four "
    "where the two variables depend on each other in a way that the components do not explain; "
    "the more rows, the smaller a dependence it shows. "
)

_ORDER = " Marginals are ordered by how far they go beyond it."


def _whole_rows(found: Findings) -> Iterator[Html]:
    """Yield how well whole rows fit, or why that is not told."""
    if found.goodness is None:
        if found.tally is not None:
            yield paragraph(_why_no_statistics(found), note=True)
        return
    yield facts(_statistics(found.goodness))
    holds = found.goodness.has_chi2
    yield paragraph(
        "G² and X² compare how often each combination of all variables occurs with what the model "
        "expects.",
        " Where the model holds, both are about as large as the degrees of freedom." * holds,
    )
    if said := found.goodness.sentences(_ADVICE):
        yield paragraph(" ".join(said), note=True)


_ADVICE = (
    "summary(…).goodness_of_fit(n_bootstrap=99) simulates p-values, and the pairs below can be "
    "read as they are"
)


def _statistics(goodness: Goodness) -> Iterator[tuple[str, str]]:
    """Yield the statistics of whole rows, with p-values where there are some."""
    for name, statistic, p_value in (
        ("G²", goodness.g_squared, goodness.g_p_value),
        ("X²", goodness.x_squared, goodness.x_p_value),
    ):
        yield name, amount_text(statistic) + f" (p = {p_value:.3g})" * goodness.has_chi2
    yield "Degrees of freedom", goodness.df_text.replace("-", "−")


def _why_no_statistics(found: Findings) -> str:
    subject = found.subject
    if subject.n_averaged > 1:
        return (
            f"G² and X² are not told of an average of {subject.n_averaged:,} fits, whose "
            "parameters cannot be counted."
        )
    if not found.is_most_likely:
        return "G² and X² are told of models that are fitted to all rows by maximum likelihood."
    return "G² and X² are not told: the table has too many distinct rows to keep them all."


def _worst(compared: Comparison) -> Html:
    """Return the worst marginals as a table."""
    misfits = compared.misfits
    has_chance = any(misfit.chance is not None for misfit in misfits)
    headings: list[object] = ["marginal, and its worst cell"]
    headings += [element("span", "χ²/df", class_="sign")] if compared.has_residuals else []
    headings += ["distance"]
    headings += ["by chance"] if has_chance else []
    headings += ["observed", "fitted"]
    headings += ["rows"] if has_chance else []
    rows = [_misfit_cells(one, compared.has_residuals, has_chance) for one in misfits[:MOST_WORST]]
    return html_table(headings, rows, numbers=range(1, len(headings)))


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
    worst = f"the worst {min(MOST_WORST, len(misfits))} first"
    return f"The observed marginals ({which} {what}) beside the model's, {worst}"


def _misfit_cells(misfit: Misfit, has_residuals: bool, has_chance: bool) -> list[object]:
    pairs = zip(misfit.names, misfit.levels, strict=True)
    cell = joined(
        [joined([name_of(name), " = ", name_of(text_of(level))]) for name, level in pairs], ", "
    )
    names = joined([name_of(name) for name in misfit.names], ", ")
    chance = "–" if misfit.chance is None else percent(misfit.chance)
    return [
        joined([names, element("span", cell, class_="under")]),
        *[_residual_text(misfit.residual)] * has_residuals,
        percent(misfit.distance),
        *[chance] * has_chance,
        percent(misfit.observed),
        percent(misfit.fitted),
        *[number_text(misfit.n_obs)] * has_chance,
    ]


def _residual_text(residual: float | None) -> str:
    if residual is None or math.isinf(residual):
        return number_text(residual)
    return f"{residual:.2f}"
