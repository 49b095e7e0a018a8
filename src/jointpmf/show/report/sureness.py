"""How sure a report is: where its intervals come from, and a box that hides them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jointpmf.show.html import Html, element, paragraph
from jointpmf.show.intervals import has_components, how_made, level_text

if TYPE_CHECKING:
    from jointpmf.judge.uncertainty import Uncertainty


def sureness(sure: Uncertainty) -> Iterator[Html]:
    """Yield the section on intervals, with a box that hides them; the page needs no script."""
    if not has_components(sure):
        yield paragraph(
            f"There are {how_made(sure)}, which give intervals to answers of the model. The "
            "components on this page have none: an average has others than its replicates."
        )
        return
    yield paragraph(
        f"Whiskers, and ranges such as 12.3–15.6\N{NO-BREAK SPACE}%, are {level_text()} intervals, "
        "and ± is a standard error: how much numbers would differ had others been in the sample. "
        f"They are from {how_made(sure)}. Whether the model is right, and why cells are missing, "
        "is not in them."
    )
    if n_unclear := len(sure) - int(sure.is_clear.sum()):
        yield paragraph(
            f"In {n_unclear:,} of these fits it is not clear which component is which.", note=True
        )
    box = Html('<input type="checkbox" id="intervals" checked/>')
    yield element("p", element("label", box, " Show intervals"), class_="switch")
