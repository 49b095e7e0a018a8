"""The top of the report: its title, its most important numbers, and what to watch out for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jointpmf.show.html import Html, element
from jointpmf.show.report.cards.parts import paragraph
from jointpmf.show.text import count_text, percent

if TYPE_CHECKING:
    from jointpmf.show.report.findings import Findings


def head(found: Findings, title: str) -> Iterator[Html]:
    """Yield the title, one sentence and the numbers."""
    pmf = found.subject.pmf
    yield element("h1", element("bdi", title))
    rows, n_variables = found.n_fitted, len(pmf.domain)
    what = "1 variable" if n_variables == 1 else f"how {n_variables:,} variables go together"
    row = "weighted row" if found.tally is not None and found.tally.is_weighted else "row"
    source = "data" if rows is None else count_text(rows, row)
    yield element("p", f"A model of {what}, fitted to {source}.", class_="lead")
    holes = None if found.tally is None else percent(found.tally.share_missing)
    tiles = [
        *([] if rows is None else [_tile(rows, row)]),
        *([] if holes is None else [(holes, "cells missing")]),
        _tile(n_variables, "variable"),
        _tile(pmf.rank, "component"),
    ]
    care = "care" if found.warnings else None
    warned = element(
        "li",
        element("b", len(found.warnings)),
        " ",
        element("span", "to watch out for"),
        class_=care,
    )
    yield element(
        "ul",
        *(
            element("li", element("b", number), " ", element("span", what))
            for number, what in tiles
        ),
        warned,
        class_="tiles",
    )


def _tile(count: float, what: str) -> tuple[str, str]:
    number, _, things = count_text(count, what).partition(" ")
    return number, things


def watch_out(found: Findings) -> Iterator[Html]:
    """Yield the section of warnings."""
    if found.warnings:
        yield element("ul", *(element("li", warning) for warning in found.warnings))
    else:
        unseen = "" if found.tally else " The rows were not given, so they were not checked."
        yield paragraph(f"None of the checks on this page found anything to warn about.{unseen}")
