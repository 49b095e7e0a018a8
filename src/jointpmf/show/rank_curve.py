"""A rank curve as a chart and a table, for notebooks and the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jointpmf.show.charts import Chart, round_ticks
from jointpmf.show.html import Html, element, html_table, joined
from jointpmf.show.text import number_text

if TYPE_CHECKING:
    from jointpmf.judge.rank import RankCurve, RankScore


def curve_html(curve: RankCurve) -> Html:
    """Return a curve as a chart and a table, the best rank marked in both.

    Examples
    --------
    >>> import numpy as np
    >>> from jointpmf.judge.rank import RankCurve, RankScore
    >>> scores = (RankScore(1, -2.5, 0.1, -2.4, 5, 0.1), RankScore(2, -2.0, 0.1, -1.9, 11, 0.2))
    >>> "best" in curve_html(RankCurve("validation", scores, np.zeros((2, 1))))
    True
    """
    is_held_out = curve.criterion == "validation"
    name = "log-likelihood per held-out row" if is_held_out else curve.criterion.upper()
    parts = [_table(curve, "held-out" if is_held_out else name, has_errors=is_held_out)]
    finite = [s for s in curve.scores if math.isfinite(s.score)]
    if len(finite) > 1:
        better = "higher" if is_held_out else "lower"
        chart = _chart(finite, curve.rank, f"{name}, {better} is better")
        parts.insert(0, element("div", chart))
    return joined(parts)


def _table(curve: RankCurve, score_name: str, has_errors: bool) -> Html:
    headings = ["rank", score_name, *(["± error"] if has_errors else []), "fitted", "parameters"]
    best = curve.rank if curve.has_best else None
    rows: list[list[Any]] = [
        [
            _marked(s.rank) if s.rank == best else s.rank,
            _digits(s.score),
            *([_digits(s.standard_error)] if has_errors else []),
            _digits(s.log_likelihood),
            f"{s.n_parameters:,}",
        ]
        for s in curve.scores
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
