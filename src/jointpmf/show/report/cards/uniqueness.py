"""Whether the model is the only one that fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jointpmf.show.html import Html, element
from jointpmf.show.report.cards.parts import paragraph

if TYPE_CHECKING:
    from jointpmf.show.report.findings import Findings


def uniqueness(found: Findings) -> Iterator[Html]:
    """Yield the section."""
    subject = found.subject
    if subject.n_averaged > 1:
        yield paragraph(
            f"This is not judged for an average of {subject.n_averaged:,} fits: each of them has "
            "its own components, and other fits would have others. Trust what the average "
            "predicts, and do not read much into single components."
        )
        return
    words = {True: "Yes, among all models near it. ", False: "No. "}
    if found.identified is not None and found.identified.identifiable is not None:
        lead = words[found.identified.identifiable]
        holds_more = subject.is_by_rows and len(subject.pmf.domain) > 3
        if not found.identified.identifiable and holds_more:
            lead = "Not certain. "
        yield paragraph(element("b", lead), str(found.identified))
        if holds_more:
            yield paragraph(
                "The model was fitted to whole rows, which tell more than their triples: what "
                "triples determine is determined, and what they leave open may be too.",
                note=True,
            )
    elif found.is_unique is not None:
        yield paragraph(element("b", words[found.is_unique]), _known_from_the_fit(found.is_unique))
    elif subject.about.get("tables"):
        yield paragraph("Not known: the tables that were fitted are not in the model's file.")
    else:
        yield paragraph("This model is too large to tell.")
    if found.is_unique is not True:
        yield paragraph(
            "Where other models fit as well, predictions of what was observed together still "
            "hold, but the components are not the only way to describe the data.",
            note=True,
        )


def _known_from_the_fit(is_unique: bool) -> str:
    if is_unique:
        return "The tables that were fitted determine the model."
    return "Other models of this rank fit the same tables as well."
