"""Pieces of HTML: what is not `Html` already is escaped, so that names and levels stay text.

Notebooks and pages use the same pieces. They set no text colour, need no script and fetch nothing.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence

from jointpmf.show.text import shortened, unicode_text

_NOTEBOOK_STYLE = (
    ".jointpmf table td,.jointpmf table th{text-align:left;vertical-align:top;max-width:28em;"
    "overflow-wrap:anywhere;padding:.2em .7em .2em 0}"
    ".jointpmf table .number{text-align:right;white-space:nowrap;"
    "font-variant-numeric:tabular-nums}"
    ".jointpmf table{margin:.5em 0}.jointpmf p{margin:.3em 0;max-width:48em}"
    ".jointpmf svg{vertical-align:middle}.jointpmf .chart{width:100%;max-width:420px}"
)


class Html(str):
    """Markup: text that may stand in a page as it is."""

    __slots__ = ()


def escaped(content: object, width: int = 80) -> Html:
    """Return markup as it is, and everything else as text that is only shown.

    Examples
    --------
    >>> escaped("</script>"), escaped(Html("<b>5</b>")), escaped("a" * 9, width=5)
    ('&lt;/script&gt;', '<b>5</b>', 'aaaa…')
    """
    if isinstance(content, Html):
        return content
    return Html(html.escape(shortened(unicode_text(str(content)), width)))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """Return an element; `class_` stands for class, and what is None is left out.

    Examples
    --------
    >>> element("p", "1 < 2, ", element("b", "really"), class_="note")
    '<p class="note">1 &lt; 2, <b>really</b></p>'
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(setting, 1000)}"'
        for name, setting in attributes.items()
        if setting is not None
    )
    return Html(f"<{tag}{given}>{joined(content)}</{tag}>")


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Return pieces one after the other; texts are escaped, and not cut.

    Examples
    --------
    >>> joined(["a & b", Html("<br>")])
    'a &amp; b<br>'
    """
    return Html(escaped(between).join(escaped(part, 10**9) for part in parts))


def name_of(name: str) -> Html:
    """Return a name or a level, cut if it is long, whose direction of writing stays its own.

    Examples
    --------
    >>> name_of("a<b"), name_of(" ")
    ('<bdi>a&lt;b</bdi>', '<bdi>“ ”</bdi>')
    """
    return element("bdi", escaped(name if name.strip() else f"“{name}”"))


def html_table(
    headings: Sequence[object], rows: Iterable[Sequence[object]], numbers: Iterable[int] = ()
) -> Html:
    """Return a table whose rows begin with a heading each.

    Parameters
    ----------
    headings : sequence
        Of the columns.
    rows : iterable of sequences
        The cells.
    numbers : iterable of int
        The columns that are numbers, which are aligned at their end.

    Examples
    --------
    >>> html_table(["level", "share"], [["yes", "60.0 %"]], numbers=[1]).count("number")
    2
    """
    classes = dict.fromkeys(numbers, "number")
    head = [
        element("th", cell, scope="col", class_=classes.get(k)) for k, cell in enumerate(headings)
    ]
    lines = [
        element(
            "tr",
            *(
                element("td", cell, class_=classes.get(k))
                if k
                else element("th", cell, scope="row", class_=classes.get(k))
                for k, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    return element("table", element("thead", element("tr", *head)), element("tbody", *lines))


def facts(pairs: Iterable[tuple[object, object]]) -> Html:
    """Return a list of what is known, each with its topic."""
    return element(
        "table",
        element(
            "tbody",
            *(
                element("tr", element("th", topic, scope="row"), element("td", fact))
                for topic, fact in pairs
            ),
        ),
        class_="facts",
    )


def fragment(*parts: object) -> str:
    """Return pieces as a notebook shows them.

    Examples
    --------
    >>> fragment(element("p", "1 < 2")).endswith("<p>1 &lt; 2</p></div>")
    True
    """
    style = Html(f"<style>{_NOTEBOOK_STYLE}</style>")
    return str(element("div", style, *parts, class_="jointpmf"))


def page(title: str, style: str, body: Html) -> bytes:
    """Return a whole page: one file that runs nothing and fetches nothing.

    Examples
    --------
    >>> page("a < b", "p{margin:0}", element("p", "text"))[:15]
    b'<!doctype html>'
    """
    head = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escaped(title)}</title>",
        f"<style>{style}</style>\n</head>\n<body>",
    ]
    return "\n".join([*head, body, "</body>\n</html>\n"]).encode()


def policy(style: str, script: str | None = None) -> str:
    """Return a policy by which nothing is fetched, and only what we wrote runs.

    Examples
    --------
    >>> policy("p{margin:0}").split(";")[0]
    "default-src 'none'"
    """
    allowed = [f"style-src '{_hash(style)}'"]
    if script is not None:
        allowed.append(f"script-src '{_hash(script)}'")
    return "; ".join(
        [
            "default-src 'none'",
            *allowed,
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ]
    )


def _hash(content: str) -> str:
    return f"sha256-{base64_text(hashlib.sha256(content.encode()).digest())}"


def base64_text(content: bytes) -> str:
    """Return bytes as text that may stand in a page.

    Examples
    --------
    >>> base64_text(b"page")
    'cGFnZQ=='
    """
    return base64.b64encode(content).decode()


def paragraph(*content: object, note: bool = False) -> Html:
    """Return a paragraph; a note is smaller."""
    return element("p", *content, class_="note" if note else None)


def scroller(label: str, content: Html) -> Html:
    """Return a region that scrolls where it is wider than the screen, with the keyboard too."""
    return element("div", content, class_="scroller", role="region", aria_label=label, tabindex=0)
