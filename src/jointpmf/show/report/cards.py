"""The sections of the report: each takes the Findings and returns its HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jointpmf.judge.summary import criterion_name
from jointpmf.show.charts import Chart, round_ticks
from jointpmf.show.html import Html, element, facts, joined, paragraph
from jointpmf.show.report.traits import has_traits
from jointpmf.show.text import count_text, number_text, percent, whole_in
from jointpmf.solvers.loop import Status

if TYPE_CHECKING:
    from jointpmf.pmf import JointPMF
    from jointpmf.show.report.cautions import Caution
    from jointpmf.show.report.findings import Findings
    from jointpmf.show.report.subject import Subject
    from jointpmf.solvers.loop import Step


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
    care = "care" if found.cautions else None
    warned = element(
        "li",
        element("b", len(found.cautions)),
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
    if found.cautions:
        yield element("ul", *map(_caution, found.cautions))
    else:
        unseen = "" if found.tally else " The rows were not given, so they were not checked."
        yield paragraph(f"None of the checks on this page found anything to warn about.{unseen}")


_MOST_NAMES = 50
"""Names that a warning lists when it is opened; the rest is counted."""


def _caution(caution: Caution) -> Html:
    """Return a warning as a line and advice; whom it concerns opens on a click."""
    parts: list[object] = [element("b", f"{caution.text}.")]
    if caution.advice:
        parts += [" ", element("span", caution.advice)]
    if caution.names:
        listed = "; ".join(caution.names[:_MOST_NAMES])
        rest = len(caution.names) - _MOST_NAMES
        more = f"; and {rest:,} more" if rest > 0 else ""
        names = element("p", element("bdi", joined([listed, more])))
        parts.append(element("details", element("summary", "Which?"), names))
    return element("li", *parts)


_METHODS = {
    "likelihood": "Maximum likelihood: the model under which the observed rows are most likely. "
    "Missing cells are summed out, so no row is thrown away.",
    "marginals": "Least squares on marginals: the model whose tables of a few variables are "
    "closest to the observed ones.",
}


_TOPICS = {
    "rows": "Rows",
    "tables": "Tables",
    "order": "Variables per table",
    "loss": "Loss",
    "criterion": "Rank chosen by",
    "source": "Fitted to",
    "start": "Start",
    "starts": "Starts",
    "agreed": "Starts that found it",
    "averaged": "Fits averaged",
    "objective": "Objective",
    "validation": "Objective, held out",
    "iterations": "Iterations",
    "seconds": "Seconds",
    "seed": "Seed",
    "library": "Fitted by",
}
"""The topics of a model file as the page names them; `rank` and `status` are shown elsewhere."""


def fitted(found: Findings) -> Iterator[Html]:
    """Yield the section on what was fitted."""
    pmf, about = found.subject.pmf, found.subject.about
    yield paragraph(_in_words(pmf))
    method = about.get("method")
    pairs: list[tuple[object, object]] = []
    if method is not None:
        pairs.append(("Method", _METHODS.get(method, method)))
    pairs.append(("Rank", f"{pmf.rank:,}, the number of components"))
    for topic, text in about.items():
        is_said = topic in ("method", "rank", "status") or (topic == "loss" and text == method)
        if not is_said:
            pairs.append((_TOPICS.get(topic, topic), _topic_text(topic, text)))
    yield facts(pairs)
    if not about:
        yield paragraph("How it was fitted is not in the model's file.", note=True)
    elif "objective" in about and method in _METHODS:
        penalty = "" if found.subject.n_averaged > 1 else ", with the penalty of any smoothing"
        meaning = {
            "likelihood": f"minus the mean log-likelihood of a row{penalty}",
            "marginals": "made of the squared differences between observed and fitted tables",
        }
        yield paragraph(f"The objective is {meaning[method]}; lower is better.", note=True)


def _in_words(pmf: JointPMF) -> str:
    rank = pmf.rank
    if has_traits(pmf):
        return (
            "The model describes the rows by a few traits, numbers that every row has and nobody "
            "observes, and says for each variable how likely its levels are at each of "
            f"{rank:,} points along them (components). At a point the variables are independent; "
            "what goes together across variables comes from rows lying at different points."
        )
    if rank == 1:
        return "The model has one component: according to it, all variables are independent."
    return (
        f"The model describes the rows as a mixture of {rank:,} kinds, called components. Each has "
        "a weight, the share of rows of that kind, and says for each variable how likely its "
        "levels are. Within a component the variables are independent; what goes together across "
        "variables comes from rows being of different kinds."
    )


def _topic_text(topic: str, text: str) -> str:
    if topic == "criterion":
        return criterion_name(text)
    return _finite(text) if topic in ("objective", "validation") else _figure(text)


def _figure(text: str) -> str:
    """Return a text of a model file; whole numbers get separators of thousands."""
    number = whole_in(text)
    return text if number is None else f"{number:,}"


def _finite(text: str) -> str:
    """Return an objective as it was written, or a sign where it is not finite.

    Examples
    --------
    >>> _finite("1.25"), _finite("nan"), _finite("inf")
    ('1.25', '–', '∞')
    """
    return text if text.strip("+-").lower() not in ("nan", "inf") else number_text(float(text))


_ZERO = 1e-20
"""Objectives that differ by less are equal: probabilities are then met to ten digits."""

_FEWEST_POINTS, _MOST_CURVE_POINTS = 4, 200
"""A line of fewer points is not worth drawing; of one with more, some are drawn."""


def course(found: Findings) -> Iterator[Html]:
    """Yield the section on whether the fit converged, and its course."""
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
    if (chart := _held_out_chart(subject.history)) is not None:
        if subject.n_averaged > 1:
            yield paragraph("The course of one of them:", note=True)
        yield chart
    elif subject.history:
        yield paragraph(_fall(subject), note=True)
    elif subject.is_of_file:
        yield paragraph("The course of the fit is not kept in a model's file.", note=True)
    else:
        yield paragraph("The course of the fit was not recorded.", note=True)


def _fall(subject: Subject) -> str:
    """Say how far the objective fell; a chart of it would show steps of its last digits."""
    finite = [step for step in subject.history if math.isfinite(step.objective)]
    count = count_text(subject.history[-1].iteration, "iteration")
    if not finite:
        return f"In {count} the objective was never finite."
    first, last = (number_text(one.objective, 6) for one in (finite[0], finite[-1]))
    return f"In {count} the objective went from {first} to {last}."


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


def _held_out_chart(history: Sequence[Step]) -> Html | None:
    """Return a chart of the objective of what was held out, if it was watched."""
    held_out = [(s.iteration, s.validation) for s in history if s.validation is not None]
    points = [(float(x), y) for x, y in held_out if math.isfinite(y)]
    if len(points) < _FEWEST_POINTS:
        return None
    best = min(range(len(points)), key=lambda k: points[k][1])
    every = math.ceil(len(points) / _MOST_CURVE_POINTS)
    kept = [k for k in range(len(points)) if k % every == 0 or k in (best, len(points) - 1)]
    drawn = [points[k] for k in kept]
    (first, begin), (last, end) = drawn[0], drawn[-1]
    heights = [y for _, y in drawn]
    name = "objective of the held-out part, lower is better"
    ticks = round_ticks(min(heights), max(heights))
    return Chart(
        text=f"{name}: {number_text(begin, 3)} at iteration {first:.0f}, {number_text(end, 3)} at "
        f"iteration {last:.0f}",
        points=drawn,
        x_name="iteration",
        y_name=name,
        x_ticks=[(tick, f"{tick:,.0f}") for tick in round_ticks(first, last) if tick.is_integer()],
        y_ticks=[(tick, number_text(tick, 6)) for tick in ticks],
        marked=kept.index(best),
    ).svg()


def uniqueness(found: Findings) -> Iterator[Html]:
    """Yield the section on whether other models fit as well."""
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
