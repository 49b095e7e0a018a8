"""Whether the fit converged, and its course."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jointpmf.show.charts import Chart, round_ticks
from jointpmf.show.html import Html, element
from jointpmf.show.report.cards.parts import paragraph
from jointpmf.show.text import count_text, number_text
from jointpmf.solvers.loop import Status

if TYPE_CHECKING:
    from jointpmf.show.report.findings import Findings
    from jointpmf.show.report.subject import Subject
    from jointpmf.solvers.loop import Step

_ZERO = 1e-20
"""Objectives that differ by less are equal: probabilities are then met to ten digits."""

_FEWEST_POINTS, _MOST_POINTS = 4, 200
"""A line of fewer points is not worth drawing; of one with more, some are drawn."""


def course(found: Findings) -> Iterator[Html]:
    """Yield the section."""
    subject = found.subject
    if subject.status is None:
        said = subject.about.get("status")
        yield paragraph(said or "How the fit ended is not in the model's file.")
    else:
        verdict = "No. " if subject.status in (Status.MAX_ITER, Status.STOPPED) else "Yes. "
        if subject.status is Status.ONE_PASS:
            verdict = ""
        yield paragraph(element("b", verdict), subject.status.value)
    if subject.n_averaged > 1:
        yield paragraph(_averages(subject))
    elif subject.restarts:
        yield paragraph(_starts(subject))
    if (chart := _history_chart(subject.history)) is not None:
        if subject.n_averaged > 1:
            yield paragraph("The course of one of them:", note=True)
        yield chart
    elif not subject.history and subject.is_of_file:
        yield paragraph("The course of the fit is not kept in a model's file.", note=True)
    elif not subject.history:
        yield paragraph("The course of the fit was not recorded.", note=True)


def _averages(subject: Subject) -> str:
    rest = len(subject.restarts) - subject.n_averaged
    tried = f"; {count_text(rest, 'other')} did not do as well on what was held out"
    return (
        f"The model is an average of {subject.n_averaged:,} fits, whose components stand side by "
        f"side{tried if rest > 0 else ''}."
    )


def _starts(subject: Subject) -> str:
    made = f"It was fitted from {count_text(len(subject.restarts), 'start')}"
    reached = [r.objective for r in subject.restarts if math.isfinite(r.objective)]
    if not reached:
        return f"{made}; none of them reached a finite objective."
    lowest = min(reached)
    alike = sum(math.isclose(one, lowest, rel_tol=1e-6, abs_tol=_ZERO) for one in reached)
    return f"{made}; {alike:,} of them reached the lowest objective, {number_text(lowest, 6)}."


def _history_chart(history: Sequence[Step]) -> Html | None:
    """Return a chart of the held-out objective, or of how far the objective still had to fall."""
    held_out = [(s.iteration, s.validation) for s in history if s.validation is not None]
    lines = [(float(x), y) for x, y in held_out if math.isfinite(y)]
    if len(lines) >= _FEWEST_POINTS:
        best = min(lines, key=lambda point: point[1])
        return _line_chart(
            lines, "objective of the held-out part, lower is better", best=lines.index(best)
        )
    finite = [(s.iteration, s.objective) for s in history if math.isfinite(s.objective)]
    lowest = min((objective for _, objective in finite), default=math.inf)
    gaps = [(float(x), math.log10(y - lowest)) for x, y in finite if y > lowest]
    if len(gaps) < _FEWEST_POINTS:
        return None
    return _line_chart(gaps, "objective above its lowest value", is_log=True)


def _line_chart(
    points: Sequence[tuple[float, float]],
    name: str,
    *,
    is_log: bool = False,
    best: int | None = None,
) -> Html:
    every = math.ceil(len(points) / _MOST_POINTS)
    kept = [k for k in range(len(points)) if k % every == 0 or k in (best, len(points) - 1)]
    drawn = [points[k] for k in kept]
    xs, ys = zip(*drawn, strict=True)
    if is_log:
        first, last = math.floor(min(ys)), math.ceil(max(ys))
        step = max(math.ceil((last - first) / 4), 1)
        y_ticks = [(float(k), f"1e{k}" if k else "1") for k in range(last, first - 1, -step)]
    else:
        y_ticks = [(tick, number_text(tick, 6)) for tick in round_ticks(min(ys), max(ys))]
    begin, end = (number_text(10**y if is_log else y, 3) for y in (ys[0], ys[-1]))
    x_ticks = [t for t in round_ticks(xs[0], xs[-1]) if t.is_integer()]
    return Chart(
        text=f"{name}: {begin} at iteration {xs[0]:.0f}, {end} at iteration {xs[-1]:.0f}",
        points=drawn,
        x_name="iteration",
        y_name=name,
        x_ticks=[(tick, f"{tick:,.0f}") for tick in x_ticks],
        y_ticks=y_ticks,
        marked=None if best is None else kept.index(best),
    ).svg()
