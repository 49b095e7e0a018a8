"""What the sections of the report are made of."""

from __future__ import annotations

from jointpmf.show.html import Html, element


def paragraph(*content: object, note: bool = False) -> Html:
    """Return a paragraph; a note is smaller."""
    return element("p", *content, class_="note" if note else None)


def scroller(label: str, content: Html) -> Html:
    """Return a region that scrolls where it is wider than the screen, with the keyboard too."""
    return element("div", content, class_="scroller", role="region", aria_label=label, tabindex=0)
