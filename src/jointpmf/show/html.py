"""Pieces of HTML: what is not `Html` already is escaped, so that names and levels stay text.

The pieces serve notebooks and pages alike. They set no colour of text, need no script and fetch
nothing; bars and charts are SVG in the colour of the text unless a page's style says otherwise.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

WIDTH = 80
"""Characters of a name or a level that are shown; of longer ones the beginning."""

MOST_BARS = 40
"""Bars of the smallest charts; more levels share them."""

CHART_WIDTH, CHART_HEIGHT = 400, 180
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 26, 38
"""A chart and its margins, in the units of its drawing, which are about pixels."""

NOTEBOOK_STYLE = (
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


def escaped(content: object, width: int = WIDTH) -> Html:
    """Return markup as it is, and everything else as text that is only shown.

    Examples
    --------
    >>> escaped("</script>"), escaped(Html("<b>5</b>")), escaped("a" * 9, width=5)
    ('&lt;/script&gt;', '<b>5</b>', 'aaaa…')
    """
    if isinstance(content, Html):
        return content
    return Html(html.escape(shortened(unicode_text(str(content)), width)))


def unicode_text(text: str) -> str:
    """Return text that can be written: what stands for any bytes, or half a character, is `?`."""
    return text.encode(errors="replace").decode()


def shortened(text: str, width: int = WIDTH) -> str:
    """Return the beginning of a text that is too long.

    Examples
    --------
    >>> shortened("a very long name", width=7)
    'a very…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


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


def percent(share: float) -> str:
    """Return a probability for people: more digits where it is small.

    Examples
    --------
    >>> percent(0.5), percent(0.00012)
    ('50.0 %', '0.012 %')
    """
    return f"{100 * share:.1f} %" if share >= 0.001 or share == 0 else f"{100 * share:.2g} %"


def bar(share: float) -> Html:
    """Return a bar that is this part of its width long; the number beside it says the same.

    Examples
    --------
    >>> 'width="25"' in bar(0.25)
    True
    """
    length = 100 * min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    return Html(
        '<svg class="bar" width="100" height="10" viewBox="0 0 100 10" '
        'preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="rail" width="100" height="10" fill="currentColor" fill-opacity=".1"/>'
        f'<rect class="length" width="{length:.4g}" height="10" fill="currentColor" '
        'fill-opacity=".55"/></svg>'
    )


def bars(shares: Sequence[float]) -> Html:
    """Return a distribution as a row of small bars, the most likely level the highest.

    Examples
    --------
    >>> bars([0.2, 0.8]).count("<rect")
    2
    """
    shares = _pooled(shares)
    most = max(shares, default=0.0) or 1.0
    step = min(8.0, 120 / max(len(shares), 1))
    drawn = "".join(
        f'<rect x="{k * step:.4g}" y="{18 - height:.4g}" width="{0.8 * step:.4g}" '
        f'height="{height:.4g}"/>'
        for k, height in enumerate(0.5 + 17.5 * share / most for share in shares)
    )
    width = math.ceil(step * len(shares))
    return Html(
        f'<svg class="bars" width="{width}" height="18" viewBox="0 0 {width} 18" '
        f'fill="currentColor" fill-opacity=".6" aria-hidden="true">{drawn}</svg>'
    )


def _pooled(shares: Sequence[float]) -> list[float]:
    """Return as many sums of neighbouring shares as there is room for."""
    group = math.ceil(len(shares) / MOST_BARS) or 1
    return [float(sum(shares[k : k + group])) for k in range(0, len(shares), group)]


@dataclass(frozen=True)
class Chart:
    """A line through points; `text` says what it shows to those who do not see it."""

    text: str
    points: Sequence[tuple[float, float]]
    x_name: str
    y_name: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    errors: Sequence[float] = ()
    """Half the height of an error bar at each point."""
    marked: int | None = None
    """The position of the point that matters."""
    has_dots: bool = False

    def svg(self) -> Html:
        """Return the drawing.

        Examples
        --------
        >>> chart = Chart("up", [(0, 1), (1, 2)], "x", "y", [(0, "0")], [(1, "1"), (2, "2")])
        >>> 'aria-label="up"' in chart.svg()
        True
        """
        return Html(
            f'<svg class="chart" viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}" role="img" '
            f'aria-label="{escaped(self.text, 1000)}" font-size="12" fill="currentColor">'
            + "".join([*self._frame(), *self._error_bars(), *self._line(), *self._dots()])
            + "</svg>"
        )

    def _x(self, x: float) -> float:
        return LEFT + (CHART_WIDTH - LEFT - RIGHT) * _part(x, *self._width)

    def _y(self, y: float) -> float:
        return TOP + (CHART_HEIGHT - TOP - BOTTOM) * (1 - _part(y, *self._height))

    @cached_property
    def _width(self) -> tuple[float, float]:
        return _ends([*(x for x, _ in self.points), *(tick for tick, _ in self.x_ticks)])

    @cached_property
    def _height(self) -> tuple[float, float]:
        found = [*(y for _, y in self.points), *(tick for tick, _ in self.y_ticks)]
        for (_, height), error in zip(self.points, self.errors, strict=False):
            found += [height - error, height + error]
        return _ends(found)

    def _frame(self) -> Iterable[str]:
        end, floor = CHART_WIDTH - RIGHT, CHART_HEIGHT - BOTTOM
        for tick, label in self.y_ticks:
            y = self._y(tick)
            yield (
                f'<path class="grid" d="M{LEFT} {y:.1f}H{end}" stroke="currentColor" '
                'stroke-opacity=".18"/>'
            )
            yield _label(LEFT - 6, y + 4, label, "end")
        for tick, label in self.x_ticks:
            yield _label(self._x(tick), floor + 16, label, "middle")
        yield _label(LEFT, TOP - 12, self.y_name, "start")
        yield _label(end, CHART_HEIGHT - 5, self.x_name, "end")

    def _error_bars(self) -> Iterable[str]:
        for (x, y), error in zip(self.points, self.errors, strict=False):
            if math.isfinite(error):
                low, high = self._y(y - error), self._y(y + error)
                yield (
                    f'<path class="error" d="M{self._x(x):.1f} {low:.1f}V{high:.1f}" '
                    'stroke="currentColor" stroke-opacity=".5" stroke-width="2"/>'
                )

    def _line(self) -> Iterable[str]:
        if self.points:
            path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in self.points)
            yield (
                f'<polyline class="line" points="{path}" fill="none" stroke="currentColor" '
                'stroke-width="2" stroke-linejoin="round"/>'
            )

    def _dots(self) -> Iterable[str]:
        for k, (x, y) in enumerate(self.points):
            if self.has_dots or k == self.marked:
                kind, radius = ("marked", 5) if k == self.marked else ("dot", 3)
                yield (
                    f'<circle class="{kind}" cx="{self._x(x):.1f}" cy="{self._y(y):.1f}" '
                    f'r="{radius}"/>'
                )


def _ends(numbers: Sequence[float]) -> tuple[float, float]:
    """Return the smallest and the largest of some numbers that is finite."""
    finite = [one for one in numbers if math.isfinite(one)]
    return min(finite), max(finite)


def _part(number: float, low: float, high: float) -> float:
    """Return where a number lies between two."""
    return (number - low) / (high - low) if high > low else 0.5


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text class="label" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'fill-opacity=".75">{escaped(text)}</text>'
    )


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers that lie from one number to another, a few.

    Examples
    --------
    >>> round_ticks(0, 47), round_ticks(0.12, 0.13), round_ticks(3, 3)
    ([0.0, 20.0, 40.0], [0.12, 0.1225, 0.125, 0.1275, 0.13], [3])
    """
    if not high > low:
        return [low]
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 2.5, 5, 10) if n * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def fragment(*parts: object) -> str:
    """Return pieces as a notebook shows them.

    Examples
    --------
    >>> fragment(element("p", "1 < 2")).endswith("<p>1 &lt; 2</p></div>")
    True
    """
    style = Html(f"<style>{NOTEBOOK_STYLE}</style>")
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


def count_text(count: float, what: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count_text(1, "row"), count_text(2000, "variable or pair")
    ('1 row', '2,000 variables or pairs')
    """
    things = what if count == 1 else "s or ".join(what.split(" or ")) + "s"
    return f"{number_text(count)} {things}"


def number_text(number: Any, digits: int = 4) -> str:
    """Return a number for people, also one that is not finite.

    Examples
    --------
    >>> number_text(12345), number_text(0.123456), number_text(float("inf")), number_text(None)
    ('12,345', '0.1235', '∞', '–')
    """
    if number is None or math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if float(number).is_integer() and abs(number) < 1e15:
        return f"{number:,.0f}".replace("-", "−")
    return f"{number:.{digits}g}".replace("-", "−")
