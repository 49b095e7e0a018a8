"""The body of the report: its sections, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jointpmf import __version__
from jointpmf.show.html import Html, element, joined
from jointpmf.show.report.cards.components import components, ranks
from jointpmf.show.report.cards.course import course
from jointpmf.show.report.cards.data import data
from jointpmf.show.report.cards.fitted import fitted
from jointpmf.show.report.cards.head import head, watch_out
from jointpmf.show.report.cards.quality import quality
from jointpmf.show.report.cards.uniqueness import uniqueness

if TYPE_CHECKING:
    from jointpmf.show.report.findings import Findings


def body(found: Findings, title: str) -> Html:
    """Return all that stands on the page."""
    what, kind = ("What", "care") if found.warnings else ("Nothing", "fine")
    sections = [
        _section(f"{what} to watch out for", watch_out(found), kind),
        _section("What was fitted", fitted(found)),
        _section("The data", data(found)),
        _section("Did the fit converge?", course(found)),
        _section("Is it the only such model?", uniqueness(found)),
        _section("How well does it fit?", quality(found)),
        _section("The components in words", components(found)),
    ]
    if found.curve is not None:
        sections.append(_section("How many components?", ranks(found, found.curve)))
    parts = [
        element("header", *head(found, title)),
        element("main", *sections),
        element("footer", f"Written by jointpmf {__version__}."),
    ]
    return joined(parts, "\n")


def _section(heading: str, content: Iterable[Html], kind: str | None = None) -> Html:
    return element("section", element("h2", heading), *content, class_=kind)
