"""The data: how many rows, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jointpmf.domain import text_of
from jointpmf.show.charts import bar
from jointpmf.show.html import Html, element, html_table, joined, name_of
from jointpmf.show.report.cards.parts import paragraph, scroller
from jointpmf.show.text import count_text, number_text, percent

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.show.report.findings import Findings
    from jointpmf.show.report.tally import Tally

_MOST_VARIABLES, _MOST_LEVELS = 40, 10
"""Variables, and levels of each, that are listed."""


def data(found: Findings) -> Iterator[Html]:
    """Yield the section."""
    tally, domain = found.tally, found.subject.pmf.domain
    order = list(range(len(domain)))
    if tally is None:
        yield paragraph("The rows were not given to this report, so what is missing is not known.")
    else:
        holes = tally.n_rows * len(domain) - tally.n_observed
        unknown = f", {tally.n_unknown:,} of them of unknown levels" if tally.n_unknown else ""
        weighed = f" By their weights the rows count for {number_text(tally.weight)}."
        yield paragraph(
            f"{count_text(tally.n_rows, 'row')} of {count_text(len(domain), 'variable')}: "
            f"{tally.n_observed:,} cells are observed, and {holes:,} are missing "
            f"({percent(tally.share_missing)}{unknown}).{weighed if tally.is_weighted else ''}"
        )
        if len(domain) > _MOST_VARIABLES:
            shares = tally.shares_missing
            order.sort(key=lambda n: -shares[n])
    yield scroller("Variables", _variables(domain, tally, order[:_MOST_VARIABLES]))
    if len(domain) > _MOST_VARIABLES:
        which = "the first" if tally is None else "those with most missing"
        yield paragraph(
            f"{_MOST_VARIABLES} of {len(domain):,} variables are listed, {which}.", note=True
        )


def _variables(domain: Domain, tally: Tally | None, order: Sequence[int]) -> Html:
    shares = [] if tally is None else tally.shares_missing.tolist()
    rows: list[list[object]] = []
    for n in order:
        variable = domain.variables[n]
        missing = [joined([percent(shares[n]), bar(shares[n])])] if shares else []
        texts = map(text_of, variable.levels[:_MOST_LEVELS])
        more = variable.size - _MOST_LEVELS
        rest = f" and {more:,} more" if more > 0 else ""
        levels = joined([joined(map(name_of, texts), ", "), rest])
        first = joined([name_of(variable.name), element("span", levels, class_="under")])
        rows.append([first, f"{variable.size:,}", *missing])
    headings = ["variable", "levels", *(["missing"] if shares else [])]
    return html_table(headings, rows, numbers=range(1, len(headings)))
