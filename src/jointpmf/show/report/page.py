"""The report: one HTML page on a fit, for a colleague who has not heard of tensors.

What it says is in findings.py. The page is one file that fetches nothing and runs nothing, and
holds no rows: of the data it shows counts and shares only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from jointpmf import __version__
from jointpmf.data.encode import encode
from jointpmf.domain import Domain, text_of
from jointpmf.errors import JointPMFError, shown
from jointpmf.fit.solution import Solution
from jointpmf.judge.rank import RankCurve
from jointpmf.output import PathLike, atomic_output, checked_path
from jointpmf.show.charts import Chart, bar, round_ticks
from jointpmf.show.html import Html, element, facts, html_table, joined, name_of, page
from jointpmf.show.rank_curve import curve_html
from jointpmf.show.report.findings import (
    Comparison,
    Findings,
    Misfit,
    Subject,
    Tally,
    Telling,
    compared_pairs,
    findings_of,
    telling_levels,
    whole_in,
)
from jointpmf.show.text import count_text, number_text, percent
from jointpmf.solvers.loop import Status, Step

WORST = 10
"""Marginals that are shown, the worst fitted first."""

MOST_VARIABLES, MOST_LEVELS, MOST_COMPONENTS, MOST_TELLING = 40, 10, 12, 5
"""Variables, levels of one, components, and variables in the words for one, that there is room
for."""

ZERO = 1e-20
"""Objectives that differ by less are alike: probabilities are then met to ten digits."""

FEWEST_POINTS, MOST_POINTS = 4, 200
"""Points of a line that is worth drawing, and of one that is drawn."""

METHODS = {
    "likelihood": "Maximum likelihood: the model under which the observed rows are most likely. "
    "Missing cells are summed out, so that no row is thrown away.",
    "marginals": "Least squares on marginals: the model whose tables of a few variables are "
    "closest to the observed ones.",
}

TOPICS = {
    "rows": "Rows",
    "tables": "Tables",
    "order": "Variables per table",
    "source": "Fitted to",
    "start": "Start",
    "objective": "Objective",
    "validation": "Objective, held out",
    "iterations": "Iterations",
    "seconds": "Seconds",
    "seed": "Seed",
    "library": "Fitted by",
}
"""What a model file says of its fit, as the page calls it; `rank` and `status` are said anyway."""


def write_report(
    path: PathLike,
    solution: Solution,
    table: Any = None,
    curve: RankCurve | None = None,
    sample_weight: Any = None,
) -> None:
    """Write the report on a fit; the file appears whole or not at all.

    Parameters
    ----------
    path : path
        Where to.
    solution : Solution
        The fit.
    table : pandas, Polars or PyArrow table, array, or Codes, optional
        The rows that it was fitted to.
    curve : RankCurve, optional
        What `choose_rank` returned.
    sample_weight : array of shape (rows,), optional
        What each row of the table counts for, as in the fit.

    Examples
    --------
    >>> import tempfile
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([3, 3, 3]), rank=2, random_state=0)
    >>> solution = jp.fit_marginals(truth.marginals(order=3), rank=2, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(f"{folder}/fit.html", solution)
    ...     "The objective stopped improving" in Path(folder, "fit.html").read_text()
    True
    """
    title = Path(checked_path(path)).stem
    if curve is not None and not isinstance(curve, RankCurve):
        raise JointPMFError(f"the curve must be what choose_rank returns, not {shown(curve)}")
    if curve is not None and not curve.scores:
        raise JointPMFError("the curve has no ranks to report on")
    if table is None and sample_weight is not None:
        raise JointPMFError("sample_weight belongs to a table, and none is given")
    tally = None if table is None else _tally_of(solution, table, sample_weight)
    found = findings_of(Subject.of_solution(solution), tally, curve)
    content = report_bytes(found, title)
    with atomic_output(path) as file:
        file.write(content)


def _tally_of(solution: Solution, table: Any, sample_weight: Any) -> Tally:
    pmf = solution.pmf
    codes = encode(table, pmf.domain)
    if not codes.n_rows:
        raise JointPMFError("the table has no rows to report on")
    tally = Tally(pmf, compared_pairs(pmf.domain) if solution.marginals is None else ())
    tally.add(codes, sample_weight)
    if tally.is_weighted and not np.any(sample_weight):
        raise JointPMFError("the sample weights of all rows are 0")
    return tally


def report_bytes(found: Findings, title: str) -> bytes:
    """Return the page as it is written to a file.

    Examples
    --------
    >>> from jointpmf.pmf import random_pmf
    >>> from jointpmf.domain import Domain
    >>> pmf = random_pmf(Domain.of_sizes([2, 2]), rank=1, random_state=0)
    >>> b"The only component" in report_bytes(findings_of(Subject(pmf, {})), "coins")
    True
    """
    if not len(found.subject.pmf.domain):
        raise JointPMFError("there is nothing to report on a model without variables")
    sections = [
        _watch_out(found),
        _section("What was fitted", _fitted(found)),
        _section("The data", _data(found)),
        _section("Did the fit converge?", _convergence(found)),
        _section("Is it the only such model?", _uniqueness(found)),
        _section("How well does it fit?", _fit(found)),
        _section("The components in words", _components(found)),
    ]
    if found.curve is not None:
        sections.append(_section("How many components?", _curve(found)))
    body = [
        element("header", *_head(found, title)),
        element("main", *sections),
        element("footer", f"Written by jointpmf {__version__}."),
    ]
    style = files("jointpmf.show.report").joinpath("report.css").read_text(encoding="utf-8")
    return page(title, style, joined(body, "\n"))


def _section(heading: str, content: Iterator[Html], kind: str | None = None) -> Html:
    return element("section", element("h2", heading), *content, class_=kind)


def _p(*content: object, note: bool = False) -> Html:
    return element("p", *content, class_="note" if note else None)


def _head(found: Findings, title: str) -> Iterator[Html]:
    pmf = found.subject.pmf
    yield element("h1", element("bdi", title))
    rows = found.n_fitted
    what = (
        "1 variable" if len(pmf.domain) == 1 else f"how {len(pmf.domain):,} variables go together"
    )
    row = "weighted row" if found.tally is not None and found.tally.is_weighted else "row"
    source = "data" if rows is None else count_text(rows, row)
    yield element("p", f"A model of {what}, fitted to {source}.", class_="lead")
    holes = None if found.tally is None else percent(found.tally.share_missing)
    tiles = [
        *([] if rows is None else [_tile(rows, row)]),
        *([] if holes is None else [(holes, "cells missing")]),
        _tile(len(pmf.domain), "variable"),
        _tile(pmf.rank, "component"),
    ]
    care = "care" if found.warnings else None
    warned = element(
        "li",
        element("b", len(found.warnings)),
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


def _watch_out(found: Findings) -> Html:
    if not found.warnings:
        unseen = "" if found.tally else " The rows were not at hand, so that they were not checked."
        text = f"None of the checks that this page makes found anything to warn of.{unseen}"
        return _section("Nothing to watch out for", iter([_p(text)]), "fine")
    items = [element("li", warning) for warning in found.warnings]
    return _section("What to watch out for", iter([element("ul", *items)]), "care")


def _fitted(found: Findings) -> Iterator[Html]:
    pmf, about = found.subject.pmf, found.subject.about
    yield _p(_in_words(pmf.rank))
    method = about.get("method")
    pairs: list[tuple[object, object]] = []
    if method is not None:
        pairs.append(("Method", METHODS.get(method, method)))
    pairs.append(("Rank", f"{pmf.rank:,}, the number of components"))
    names = joined([name_of(name) for name in pmf.domain.names[:MOST_VARIABLES]], ", ")
    rest = len(pmf.domain) - MOST_VARIABLES
    more = f" and {rest:,} more" if rest > 0 else ""
    pairs.append(("Variables", joined([names, more])))
    for topic, text in about.items():
        if topic not in ("method", "rank", "status"):
            shown_text = _finite(text) if topic in ("objective", "validation") else _figure(text)
            pairs.append((TOPICS.get(topic, topic), shown_text))
    yield facts(pairs)
    if not about:
        yield _p("How it was fitted is not in the model's file.", note=True)
    elif "objective" in about and method in METHODS:
        penalty = "" if found.subject.n_averaged > 1 else ", with the penalty of any smoothing"
        meaning = {
            "likelihood": f"minus the mean log-likelihood of a row{penalty}",
            "marginals": "made of the squared differences between observed and fitted tables",
        }
        yield _p(f"The objective is {meaning[method]}; lower is better.", note=True)


def _in_words(rank: int) -> str:
    if rank == 1:
        return "The model has one component: it takes all variables to be independent."
    return (
        f"The model describes the rows as a mixture of {rank:,} kinds, called components. Each has "
        "a weight, the share of rows of that kind, and says for each variable how likely its "
        "levels are. Within a component the variables are independent; what goes together across "
        "variables comes from rows being of different kinds."
    )


def _figure(text: str) -> str:
    """Return a text of a model file; whole numbers are grouped."""
    number = whole_in(text)
    return text if number is None else f"{number:,}"


def _finite(text: str) -> str:
    """Return an objective as it is written; one that is not finite as people read it.

    Examples
    --------
    >>> _finite("1.25"), _finite("nan"), _finite("inf")
    ('1.25', '–', '∞')
    """
    return text if text.strip("+-").lower() not in ("nan", "inf") else number_text(float(text))


def _data(found: Findings) -> Iterator[Html]:
    tally, domain = found.tally, found.subject.pmf.domain
    order = list(range(len(domain)))
    if tally is None:
        yield _p("The rows were not given to this report, so that their holes are not known.")
    else:
        holes = tally.n_rows * len(domain) - tally.n_observed
        unknown = f", {tally.n_unknown:,} of them of unknown levels" if tally.n_unknown else ""
        weighed = f" By their weights the rows count for {number_text(tally.weight)}."
        yield _p(
            f"{count_text(tally.n_rows, 'row')} of {count_text(len(domain), 'variable')}: "
            f"{tally.n_observed:,} cells are observed, and {holes:,} are missing "
            f"({percent(tally.share_missing)}{unknown}).{weighed if tally.is_weighted else ''}"
        )
        if len(domain) > MOST_VARIABLES:
            shares = tally.shares_missing
            order.sort(key=lambda n: -shares[n])
    yield _scroller("Variables", _variables(domain, tally, order[:MOST_VARIABLES]))
    if len(domain) > MOST_VARIABLES:
        which = "the first" if tally is None else "those with most holes"
        yield _p(f"{MOST_VARIABLES} of {len(domain):,} variables are listed, {which}.", note=True)


def _variables(domain: Domain, tally: Tally | None, order: Sequence[int]) -> Html:
    shares = [] if tally is None else tally.shares_missing.tolist()
    rows: list[list[object]] = []
    for n in order:
        variable = domain.variables[n]
        missing = [joined([percent(shares[n]), bar(shares[n])])] if shares else []
        texts = map(text_of, variable.levels[:MOST_LEVELS])
        more = variable.size - MOST_LEVELS
        rest = f" and {more:,} more" if more > 0 else ""
        levels = joined([joined(map(name_of, texts), ", "), rest])
        first = joined([name_of(variable.name), element("span", levels, class_="under")])
        rows.append([first, f"{variable.size:,}", *missing])
    headings = ["variable", "levels", *(["missing"] if shares else [])]
    return html_table(headings, rows, numbers=range(1, len(headings)))


def _scroller(label: str, content: Html) -> Html:
    """Return what may be wider than a phone, reachable without a mouse too."""
    return element("div", content, class_="scroller", role="region", aria_label=label, tabindex=0)


def _convergence(found: Findings) -> Iterator[Html]:
    subject = found.subject
    if subject.status is None:
        said = subject.about.get("status")
        yield _p(said or "How the fit ended is not in the model's file.")
    else:
        verdict = "No. " if subject.status in (Status.MAX_ITER, Status.STOPPED) else "Yes. "
        if subject.status is Status.ONE_PASS:
            verdict = ""
        yield _p(element("b", verdict), subject.status.value)
    if subject.n_averaged > 1:
        yield _p(_averages(subject))
    elif subject.restarts:
        yield _p(_starts(subject))
    if (chart := _history_chart(subject.history)) is not None:
        if subject.n_averaged > 1:
            yield _p("The course of one of them:", note=True)
        yield chart
    elif not subject.history and subject.is_of_file:
        yield _p("The course of the fit is not kept in a model's file.", note=True)
    elif not subject.history:
        yield _p("The course of the fit was not recorded.", note=True)


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
    alike = sum(math.isclose(one, lowest, rel_tol=1e-6, abs_tol=ZERO) for one in reached)
    return f"{made}; {alike:,} of them reached the lowest objective, {number_text(lowest, 6)}."


def _history_chart(history: Sequence[Step]) -> Html | None:
    """Return the course of a fit: the held-out objective, or how far the objective had to go."""
    held_out = [(s.iteration, s.validation) for s in history if s.validation is not None]
    lines = [(float(x), y) for x, y in held_out if math.isfinite(y)]
    if len(lines) >= FEWEST_POINTS:
        best = min(lines, key=lambda point: point[1])
        return _line_chart(
            lines, "objective of the held-out part, lower is better", best=lines.index(best)
        )
    finite = [(s.iteration, s.objective) for s in history if math.isfinite(s.objective)]
    lowest = min((objective for _, objective in finite), default=math.inf)
    gaps = [(float(x), math.log10(y - lowest)) for x, y in finite if y > lowest]
    if len(gaps) < FEWEST_POINTS:
        return None
    return _line_chart(gaps, "how far the objective was from its lowest", is_log=True)


def _line_chart(
    points: Sequence[tuple[float, float]],
    name: str,
    *,
    is_log: bool = False,
    best: int | None = None,
) -> Html:
    every = math.ceil(len(points) / MOST_POINTS)
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


def _uniqueness(found: Findings) -> Iterator[Html]:
    subject = found.subject
    if subject.n_averaged > 1:
        yield _p(
            f"This is not judged of an average of {subject.n_averaged:,} fits: each of them has "
            "components of its own, and other fits would have others. Trust what the average "
            "predicts, and do not read much into single components."
        )
        return
    words = {True: "Yes, among all models near it. ", False: "No. "}
    if found.identified is not None and found.identified.identifiable is not None:
        lead = words[found.identified.identifiable]
        holds_more = subject.is_by_rows and len(subject.pmf.domain) > 3
        if not found.identified.identifiable and holds_more:
            lead = "Not certainly. "
        yield _p(element("b", lead), str(found.identified))
        if holds_more:
            yield _p(
                "The model was fitted to whole rows, which hold all triples and more: what "
                "triples determine is determined, and what they leave open may be.",
                note=True,
            )
    elif found.is_unique is not None:
        yield _p(element("b", words[found.is_unique]), _known_from_the_fit(found.is_unique))
    elif subject.about.get("tables"):
        yield _p("This cannot be told: the tables that were fitted are not in the model's file.")
    else:
        yield _p("This model is too large to tell.")
    if found.is_unique is not True:
        yield _p(
            "Where other models fit as well, predictions of what was observed together still "
            "hold, but the components are not the only way to describe the data.",
            note=True,
        )


def _known_from_the_fit(is_unique: bool) -> str:
    if is_unique:
        return "The tables that were fitted determine the model."
    return "Other models of this rank fit the same tables as well."


def _fit(found: Findings) -> Iterator[Html]:
    tally = found.tally
    if tally is not None and (typical := tally.typical_probability) is not None:
        by_model, alone = typical
        yield _p(
            f"The model gives a typical observed cell of the table a probability of "
            f"{percent(by_model)}; the variables' own frequencies, each taken alone, give it "
            f"{percent(alone)}."
        )
    if found.comparison is None or not found.comparison.misfits:
        yield _p(_why_nothing_is_compared(found))
        return
    misfits = found.comparison.misfits
    yield _p(
        f"{_which_are_compared(found.comparison)}. The distance is the share of rows that would "
        "have to be in another cell of the table."
    )
    has_chance = any(misfit.chance is not None for misfit in misfits)
    rows = [_misfit_cells(misfit, has_chance) for misfit in misfits[:WORST]]
    headings = ["marginal, and its worst cell", "distance"]
    headings += ["by chance"] if has_chance else []
    headings += ["observed", "fitted"]
    headings += ["rows"] if has_chance else []
    numbers = range(1, len(headings))
    yield _scroller("Worst fitted marginals", html_table(headings, rows, numbers))
    if has_chance:
        yield _p(
            "By chance: the distance that so many rows would have on average if they were drawn "
            "from the model itself. Marginals are ordered by how far they go beyond it.",
            note=True,
        )


def _why_nothing_is_compared(found: Findings) -> str:
    if found.tally is None and found.subject.marginals is None:
        return "There are neither marginals nor rows here that the model could be compared with."
    if found.comparison is not None and found.subject.marginals is None:
        return "No row observes two variables together, so that there is no table to compare with."
    return "The observed tables have too many cells to be compared with the model's."


def _which_are_compared(comparison: Comparison) -> str:
    misfits, n_all = comparison.misfits, comparison.n_all
    kinds = {1: "single variable", 2: "pair of variables"}
    orders = {len(misfit.names) for misfit in misfits}
    what = kinds.get(orders.pop(), "table") if len(orders) == 1 else "table"
    if n_all == 1:
        return f"The one observed marginal, a {what}, beside the model's"
    first, _, rest = what.partition(" of ")
    what = f"{first}s of {rest}" if rest else f"{first}s"
    which = f"all {n_all:,}" if len(misfits) == n_all else f"{len(misfits):,} of {n_all:,}"
    worst = f"the worst {min(WORST, len(misfits))} first"
    return f"The observed marginals ({which} {what}) beside the model's, {worst}"


def _misfit_cells(misfit: Misfit, has_chance: bool) -> list[object]:
    pairs = zip(misfit.names, misfit.levels, strict=True)
    cell = joined(
        [joined([name_of(name), " = ", name_of(text_of(level))]) for name, level in pairs], ", "
    )
    names = joined([name_of(name) for name in misfit.names], ", ")
    first = joined([names, element("span", cell, class_="under")])
    shares = [percent(misfit.observed), percent(misfit.fitted)]
    if not has_chance:
        return [first, percent(misfit.distance), *shares]
    chance = "–" if misfit.chance is None else percent(misfit.chance)
    return [first, percent(misfit.distance), chance, *shares, number_text(misfit.n_obs)]


def _components(found: Findings) -> Iterator[Html]:
    pmf, n_rows = found.subject.pmf, found.n_fitted
    if pmf.rank == 1:
        yield _p("The only component: every variable has its own distribution, whatever the rest.")
        return
    order = sorted(range(pmf.rank), key=lambda f: -pmf.weights[f])[:MOST_COMPONENTS]
    yield _p(
        "By what each component differs most from all rows. The share in brackets is that among "
        "all rows."
    )
    telling = telling_levels(pmf, order, MOST_TELLING)
    items = []
    for f, words in zip(order, telling, strict=True):
        weight = float(pmf.weights[f])
        about = "" if n_rows is None else f"about {count_text(round(weight * n_rows), 'row')}"
        items.append(
            element(
                "li",
                element(
                    "div",
                    element("h3", f"Component {f}"),
                    element("span", joined([percent(weight), f", {about}" if about else ""])),
                    bar(weight / float(pmf.weights[order[0]])),
                ),
                _p(*_sentence(words)),
            )
        )
    yield element("ol", *items, class_="components")
    if pmf.rank > len(order):
        rest = 1 - float(sum(pmf.weights[f] for f in order))
        yield _p(
            f"The {len(order)} largest are described; the other {pmf.rank - len(order):,} have "
            f"{percent(max(rest, 0.0))} of the weight together.",
            note=True,
        )
    if found.tally is not None and (sharpness := found.tally.sharpness) is not None:
        yield _p(
            f"How surely a row belongs to one component: {sharpness:.2f} (1 would be surely, 0 not "
            "at all; the relative entropy).",
            note=True,
        )


def _sentence(words: Sequence[Telling]) -> Iterator[object]:
    """Yield the pieces of a sentence on the levels that tell a component from the rest."""
    if not words:
        yield "Much like all rows together."
    for k, one in enumerate(words):
        yield "; " if k else ""
        yield element("b", name_of(one.name))
        yield " is "
        if one.is_run and len(one.levels) > 2:
            yield joined([name_of(one.levels[0]), " to ", name_of(one.levels[-1])])
        else:
            yield joined(map(name_of, one.levels), " or ")
        yield f" in {_rounded(one.within)} ({_rounded(one.overall)})"
    yield "." if words else ""


def _rounded(share: float) -> str:
    """Return a share as one says it.

    Examples
    --------
    >>> [_rounded(share).replace("\N{NO-BREAK SPACE}", " ") for share in (0.004, 0.423, 0.9999, 1)]
    ['less than 1 %', '42 %', 'over 99 %', '100 %']
    """
    if 0 < share < 0.01:
        return "less than 1\N{NO-BREAK SPACE}%"
    text = "over 99" if 0.99 < share < 1 - 1e-6 else f"{100 * share:.0f}"
    return f"{text}\N{NO-BREAK SPACE}%"


def _curve(found: Findings) -> Iterator[Html]:
    curve = found.curve
    if curve is None:
        return
    how = (
        "Each rank was fitted to a part of the rows and judged by rows that it had not seen: more "
        "components fit better, but predict worse from some point on."
        if curve.criterion == "validation"
        else f"Each rank was fitted to all rows and judged by {curve.criterion.upper()}, which "
        "weighs the fit against the number of parameters."
    )
    own = f"This model has {found.subject.pmf.rank}."
    if found.subject.n_averaged > 1:
        own = f"This model is an average of {found.subject.n_averaged:,} fits."
    yield _p(f"{how} {_best_rank(curve)} {own}")
    yield _scroller("Rank curve", curve_html(curve))
    if found.curve_note:
        yield _p(found.curve_note, note=True)


def _best_rank(curve: RankCurve) -> str:
    if not curve.has_best:
        return "None is best: no rank has a finite score."
    best = f"The best is rank {curve.rank}."
    if curve.simplest_rank == curve.rank:
        return best
    return f"{best} Rank {curve.simplest_rank} does as well within one standard error."
