"""Small charts as SVG, in the colour of the text unless a page's style says otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jointpmf.judge.rank_text import curve_sentences
from jointpmf.judge.text import share_text
from jointpmf.show.html import Html, element, escaped, html_table, joined
from jointpmf.show.text import amount_text, number_text

if TYPE_CHECKING:
    from jointpmf.judge.curve import RankCurve, RankScore

_MOST_BARS = 40
"""Bars of the smallest charts; where there are more levels, neighbours share a bar."""

_CHART_WIDTH, _CHART_HEIGHT = 400, 180
_RIGHT, _TOP, _BOTTOM = 14, 26, 38
"""A chart and its margins, in units of the drawing, which are about pixels."""

_DIGIT = 7.5
"""Room for a character of a label, in the same units."""


def bar(share: float, interval: tuple[float, float] | None = None) -> Html:
    """Return a bar that is this part of its width long; the number beside it says the same.

    A whisker goes from end to end of the interval.

    Examples
    --------
    >>> 'width="25"' in bar(0.25)
    True
    """
    length = 100 * _within(share) if math.isfinite(share) else 0.0
    whisker = _whiskers([interval] if interval else [], lanes=[5], cap=3.5)
    return Html(
        '<svg class="bar" width="100" height="10" viewBox="0 0 100 10" '
        'preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="rail" width="100" height="10" fill="currentColor" fill-opacity=".1"/>'
        f'<rect class="length" width="{length:.4g}" height="10" fill="currentColor" '
        f'fill-opacity=".55"/>{whisker}</svg>'
    )


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _whiskers(intervals: Iterable[tuple[float, float]], lanes: Sequence[float], cap: float) -> str:
    """Return lines across a bar that is 10 high, each with a stroke at both ends.

    A whisker goes to the first lane, which is so far from the top, where none is in its way.
    """
    free, paths = [0.0] * len(lanes), []
    for pair in intervals:
        low, high = (100 * _within(one) for one in pair)
        lane = next((k for k, end in enumerate(free) if end <= low), free.index(min(free)))
        free[lane], at = high + 1, lanes[lane]
        cross = f"{at - cap:g}V{at + cap:g}"
        paths.append(f"M{low:.4g} {cross}M{low:.4g} {at:g}H{high:.4g}M{high:.4g} {cross}")
    if not paths:
        return ""
    return (
        f'<path class="whisker" d="{"".join(paths)}" fill="none" stroke="currentColor" '
        'vector-effect="non-scaling-stroke"/>'
    )


def stacked(
    shares: Sequence[float],
    texts: Sequence[str],
    ends: Iterable[tuple[float, float]] = (),
) -> Html:
    """Return a distribution as one bar of parts, from light to dark, each with its text to hover.

    A whisker shows between what numbers a part may end.

    Examples
    --------
    >>> stacked([0.25, 0.75], ["no: 25 %", "yes: 75 %"]).count("<rect")
    2
    """
    begin, parts = 0.0, []
    for k, (share, text) in enumerate(zip(shares, texts, strict=True)):
        said = element("title", text)
        parts.append(
            f'<rect x="{100 * begin:.4g}" width="{100 * share:.5g}" height="10" '
            f'fill-opacity="{_tone(k, len(shares))}">{said}</rect>'
        )
        begin += share
    parts.append(_whiskers(ends, lanes=[5, 2, 8], cap=1.6))
    return Html(
        '<svg class="stacked" width="100" height="10" viewBox="0 0 100 10" fill="currentColor" '
        f'preserveAspectRatio="none" aria-hidden="true">{"".join(parts)}</svg>'
    )


def swatch(k: int, size: int) -> Html:
    """Return the tone of one of several levels as a small square.

    Examples
    --------
    >>> swatch(0, 3) == swatch(2, 3)
    False
    """
    return Html(
        '<svg class="swatch" width="10" height="10" aria-hidden="true">'
        f'<rect width="10" height="10" fill="currentColor" fill-opacity="{_tone(k, size)}"/></svg>'
    )


def _tone(k: int, size: int) -> str:
    """Return how dark a level is, in few characters: the first one light, the last one full."""
    return f"{0.2 + 0.8 * k / max(size - 1, 1):.2g}".lstrip("0")


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
    group = math.ceil(len(shares) / _MOST_BARS) or 1
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
            f'<svg class="chart" viewBox="0 0 {_CHART_WIDTH} {_CHART_HEIGHT}" role="img" '
            f'aria-label="{escaped(self.text, 1000)}" font-size="12" fill="currentColor">'
            + "".join([*self._frame(), *self._error_bars(), *self._line(), *self._dots()])
            + "</svg>"
        )

    @cached_property
    def _left(self) -> float:
        """Room for the longest number beside the y axis."""
        return 14 + _DIGIT * max((len(label) for _, label in self.y_ticks), default=0)

    def _x(self, x: float) -> float:
        return self._left + (_CHART_WIDTH - self._left - _RIGHT) * _part(x, *self._width)

    def _y(self, y: float) -> float:
        return _TOP + (_CHART_HEIGHT - _TOP - _BOTTOM) * (1 - _part(y, *self._height))

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
        end, floor = _CHART_WIDTH - _RIGHT, _CHART_HEIGHT - _BOTTOM
        for tick, label in self.y_ticks:
            y = self._y(tick)
            yield (
                f'<path class="grid" d="M{self._left:g} {y:.1f}H{end}" stroke="currentColor" '
                'stroke-opacity=".18"/>'
            )
            yield _label(self._left - 6, y + 4, label, "end")
        for tick, label in self.x_ticks:
            yield _label(self._x(tick), floor + 16, label, "middle")
        yield _label(self._left, _TOP - 12, self.y_name, "start")
        yield _label(end, _CHART_HEIGHT - 5, self.x_name, "end")

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


def curve_html(curve: RankCurve) -> Html:
    """Return a curve as a chart and a table, the best rank marked in both.

    Examples
    --------
    >>> import numpy as np
    >>> from jointpmf.judge.curve import RankCurve, RankScore
    >>> scores = (RankScore(1, -2.5, 0.1, -2.4, 5, 0.1), RankScore(2, -2.0, 0.1, -1.9, 11, 0.2))
    >>> "best" in curve_html(RankCurve("validation", scores, np.zeros((2, 1))))
    True
    """
    is_held_out = curve.criterion == "validation"
    name = "log-likelihood per held-out row" if is_held_out else curve.criterion_name
    parts = [_table(curve, "held-out" if is_held_out else name, is_held_out)]
    finite = [s for s in curve.scores if math.isfinite(s.score)]
    if len(finite) > 1:
        better = "higher" if is_held_out else "lower"
        chart = _chart(finite, curve.rank, f"{name}, {better} is better")
        parts.insert(0, element("div", chart))
    parts += [element("p", sentence) for sentence in curve_sentences(curve)]
    return joined(parts)


def _table(curve: RankCurve, score_name: str, is_held_out: bool) -> Html:
    best = curve.rank if curve.has_best else None
    has_models = any(math.isfinite(s.smallest) for s in curve.scores)
    headings = ["rank", score_name, *["± error"] * is_held_out, "fitted", "gain", "parameters"]
    headings += ["smallest", "entropy"] * has_models
    rows: list[list[Any]] = [
        [
            _marked(s.rank) if s.rank == best else s.rank,
            _digits(s.score) if is_held_out else amount_text(s.score),
            *[_digits(s.standard_error)] * is_held_out,
            _digits(s.log_likelihood),
            _digits(gain) if math.isfinite(gain) else "",
            f"{s.n_parameters:,}",
            *[share_text(s.smallest), _digits(s.relative_entropy)] * has_models,
        ]
        for s, gain in zip(curve.scores, curve.gains, strict=True)
    ]
    return html_table(headings, rows, numbers=range(len(headings)))


def _marked(rank: int) -> Html:
    """Return the best rank with its mark in front, where a narrow screen shows it too."""
    return joined([element("span", "best", class_="choice"), f" {rank}"])


def _digits(number: float) -> str:
    return f"{number:.4f}".replace("-", "−") if math.isfinite(number) else number_text(number)


def _chart(scores: Sequence[RankScore], best: int, name: str) -> Html:
    heights = [s.score for s in scores]
    errors = [0.0 if math.isnan(s.standard_error) else s.standard_error for s in scores]
    low = min(score - error for score, error in zip(heights, errors, strict=True))
    high = max(score + error for score, error in zip(heights, errors, strict=True))
    ranks = [s.rank for s in scores]
    ticks = [t for t in round_ticks(min(ranks), max(ranks), 8) if t.is_integer()]
    chart = Chart(
        text=f"{name}, by rank: from {heights[0]:.4g} at rank {ranks[0]} to {heights[-1]:.4g} at "
        f"rank {ranks[-1]}; the best is rank {best}.",
        points=[(float(s.rank), s.score) for s in scores],
        x_name="rank",
        y_name=name,
        x_ticks=[(tick, f"{tick:.0f}") for tick in ticks],
        y_ticks=[(tick, number_text(tick, 6)) for tick in round_ticks(low, high)],
        errors=errors,
        marked=ranks.index(best),
        has_dots=True,
    )
    return chart.svg()
