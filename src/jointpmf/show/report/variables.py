"""The data: how many rows, what is missing, and how each variable is distributed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.domain import text_of
from jointpmf.show.charts import bars
from jointpmf.show.html import Html, element, name_of, paragraph
from jointpmf.show.report.profiles import MOST_VARIABLES
from jointpmf.show.text import count_text, number_text, percent

if TYPE_CHECKING:
    from jointpmf.domain import Variable
    from jointpmf.show.report.findings import Findings
    from jointpmf.show.report.tally import Tally

_MOST_LEVELS = 10
"""Levels that have a bar each; more are drawn without names."""


def data(found: Findings) -> Iterator[Html]:
    """Yield the section on the data: how many rows, what is missing, and the distributions."""
    tally, domain = found.tally, found.subject.pmf.domain
    order = list(range(len(domain)))
    if tally is None:
        yield paragraph(
            "The rows were not given to this report, so what is missing is not known. The "
            "distributions are those of the model."
        )
    else:
        yield paragraph(_holes(tally))
        if len(domain) > MOST_VARIABLES:
            shares = tally.shares_missing
            order.sort(key=lambda n: -shares[n])
    figures = [_figure(found, n) for n in order[:MOST_VARIABLES]]
    yield element("div", *figures, class_="profiles")
    if len(domain) > MOST_VARIABLES:
        which = "the first" if tally is None else "those with most missing"
        yield paragraph(
            f"{MOST_VARIABLES} of {len(domain):,} variables are listed, {which}.", note=True
        )


def _holes(tally: Tally) -> str:
    n_variables = len(tally.levels)
    holes = tally.n_rows * n_variables - tally.n_observed
    unknown = f", {tally.n_unknown:,} of them of unknown levels" if tally.n_unknown else ""
    weighed = f" By their weights the rows count for {number_text(tally.weight)}."
    return (
        f"{count_text(tally.n_rows, 'row')} of {count_text(n_variables, 'variable')}: "
        f"{tally.n_observed:,} cells are observed, and {holes:,} are missing "
        f"({percent(tally.share_missing)}{unknown}).{weighed if tally.is_weighted else ''} "
        "Bars are the shares of the levels among the observed cells."
    )


def observed_shares(tally: Tally, n: int) -> np.ndarray | None:
    """Return the shares of a variable's levels among its observed cells, if there are any."""
    counts = tally.levels[n]
    total = float(counts.sum())
    return counts / total if total else None


def _figure(found: Findings, n: int) -> Html:
    pmf, tally = found.subject.pmf, found.tally
    variable = pmf.domain.variables[n]
    shares = pmf.factors[n] @ pmf.weights if tally is None else observed_shares(tally, n)
    missing = 0.0 if tally is None else float(tally.shares_missing[n])
    hole = element("em", f"{percent(missing)} missing") if missing else ""
    caption = element("figcaption", name_of(variable.name), " ", hole)
    return element("figure", caption, *_rows(variable, shares), class_="distribution")


def _rows(variable: Variable, shares: np.ndarray | None) -> Iterator[Html]:
    if shares is None:
        return
    if variable.size > _MOST_LEVELS:
        first, last = (name_of(text_of(variable.levels[k])) for k in (0, -1))
        size = count_text(variable.size, "level")
        yield bars(shares.tolist())
        yield element("span", f"{size}, ", first, " to ", last)
        return
    most = float(shares.max())
    for level, share in zip(variable.levels, shares.tolist(), strict=True):
        yield element("span", name_of(text_of(level)))
        yield _bar(share / most)
        yield element("span", percent(share))


def _bar(part: float) -> Html:
    """Return a bar as short as can be, as a page has hundreds of them."""
    length = f'<rect class="length" width="{100 * part:.3g}%" height="100%"/>'
    return Html(f'<svg class="bar" aria-hidden="true">{length}</svg>')
