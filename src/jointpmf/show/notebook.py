"""What a notebook shows of each result: called by its `_repr_html_`, and only then imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.domain import text_of
from jointpmf.judge.text import rows_text, shares_text
from jointpmf.show.charts import bars, curve_html
from jointpmf.show.html import Html, element, facts, fragment, html_table, joined, name_of
from jointpmf.show.intervals import how_made, level_text, profile_intervals
from jointpmf.show.text import count_text, number_text, percent, range_text

if TYPE_CHECKING:
    from jointpmf.domain import Variable
    from jointpmf.fit.solution import Solution
    from jointpmf.judge.bootstrap import BootstrapTest
    from jointpmf.judge.curve import RankCurve
    from jointpmf.judge.goodness import Goodness
    from jointpmf.judge.identifiability import Identifiability
    from jointpmf.judge.summary import Summary
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.marginals.marginal_set import Disagreement, MarginalSet
    from jointpmf.pmf import JointPMF
    from jointpmf.show.intervals import ProfileIntervals

_VARIABLES, _WEIGHTS = 8, 6
"""Variables and components of a model that are shown."""

_MARGINALS, _NAMES_IN_REPR = 8, 6
"""Marginals, and variables of each, that are shown."""

_PROFILED, _LEVELS, _COMPONENTS = 12, 12, 12
"""Variables, levels of each and components of a summary that are shown."""

_PAIRS = 10
"""Pairs of variables that are shown."""


def pmf_html(pmf: JointPMF) -> str:
    """Return the first variables with their distributions, and the largest components."""
    n_variables = len(pmf.domain)
    largest = pmf.reordered()
    shares = [percent(weight) for weight in largest.weights[:_WEIGHTS]]
    if largest.component_names is None:
        weights = joined(shares, ", ")
    else:
        pairs = zip(largest.component_names, shares, strict=False)
        weights = joined([joined([name_of(name), " ", share]) for name, share in pairs], ", ")
    rest = pmf.rank - _WEIGHTS
    more = f" and {rest} smaller" if rest > 0 else ""
    parts = [
        _heading(f"JointPMF: {n_variables} variables, rank {pmf.rank}"),
        element("p", "Weights of the components: ", weights, f"{more}."),
    ]
    if n_variables:
        headings = ("variable", "levels", "distribution", "most likely", "probability")
        rows = (_variable_cells(pmf, n) for n in range(min(_VARIABLES, n_variables)))
        parts.append(html_table(headings, rows, numbers=(1, 4)))
    return fragment(*parts, _rest([(n_variables, _VARIABLES, "variables")]))


def _variable_cells(pmf: JointPMF, n: int) -> list[object]:
    variable, shares = pmf.domain.variables[n], pmf.factors[n] @ pmf.weights
    best = int(shares.argmax())
    return [
        name_of(variable.name),
        f"{variable.size:,}",
        bars(shares.tolist()),
        name_of(text_of(variable.levels[best])),
        percent(float(shares[best])),
    ]


def uncertainty_html(sure: Uncertainty) -> str:
    """Return the first variables, each with the interval of its most likely level."""
    pmf = sure.pmf
    names = pmf.domain.names[:_VARIABLES]
    known = profile_intervals(sure, names, np.array([], int))
    headings = ("variable", "most likely", "probability", "± error", f"{level_text()} interval")
    rows = [_sure_cells(pmf, n, one) for n, one in enumerate(known)]
    return fragment(
        _heading(f"Uncertainty: {count_text(len(sure), 'replicate')}"),
        element("p", f"From {how_made(sure)}."),
        html_table(headings, rows, numbers=(2, 3, 4)),
        _rest([(len(pmf.domain), _VARIABLES, "variables")]),
    )


def _sure_cells(pmf: JointPMF, n: int, known: ProfileIntervals) -> list[object]:
    variable, shares = pmf.domain.variables[n], pmf.factors[n] @ pmf.weights
    best = int(shares.argmax())
    se, low, high = map(float, known.parts.part(best, 0))
    return [
        name_of(variable.name),
        name_of(text_of(variable.levels[best])),
        percent(float(shares[best])),
        f"{100 * se:.1f}",
        range_text(low, high),
    ]


def solution_html(solution: Solution) -> str:
    """Return how the fit ended, and the model."""
    seconds = solution.history[-1].seconds if solution.history else None
    held_out = solution.validation
    known = [
        ("objective", number_text(solution.objective, 6)),
        ("iterations", f"{solution.n_iter:,}"),
        ("seconds", "" if seconds is None else number_text(seconds, 3)),
        ("start", str(solution.start or "")),
        ("validation", "" if held_out is None else number_text(held_out, 6)),
        ("source", str(solution.source or "")),
    ]
    return fragment(
        _heading(solution.status.value),
        facts((topic, fact) for topic, fact in known if fact),
        Html(pmf_html(solution.pmf)),
    )


def marginals_html(marginals: MarginalSet, conflicts: Sequence[Disagreement]) -> str:
    """Return the first marginals, and the worst of the disagreements if there are any."""
    rows = [
        (
            _names(marginal.names),
            "×".join(map(str, marginal.table.shape)),
            number_text(marginal.n_rows),
        )
        for marginal in marginals.marginals[:_MARGINALS]
    ]
    return fragment(
        _heading(repr(marginals)[len("MarginalSet(") : -1]),
        element("p", f"Most of all, {conflicts[0]}.") if conflicts else "",
        html_table(("variables", "levels", "rows"), rows, numbers=(1, 2)),
        _rest([(len(marginals), _MARGINALS, "marginals")]),
    )


def _names(names: Sequence[str]) -> Html:
    more = ["…"] if len(names) > _NAMES_IN_REPR else []
    return joined([*map(name_of, names[:_NAMES_IN_REPR]), *more], between=", ")


def identifiability_html(found: Identifiability) -> str:
    """Return the advice, and below it the numbers that it rests on."""
    verdicts = {True: "identifiable", False: "not identifiable", None: "too large to tell"}
    numbers: list[tuple[str, float | None]] = [
        ("free parameters", found.n_parameters),
        ("seen by the marginals", found.jacobian_rank),
        ("independent equations", found.n_equations),
        ("largest identifiable rank", found.largest_rank),
        ("largest rank by counting", found.counting_bound),
    ]
    if found.condition is not None:
        numbers.append(("condition number", found.condition))
    asked = [("table to ask for", " by ".join(names)) for names in found.tables_to_ask]
    return fragment(
        _heading(f"Rank {found.rank}: {verdicts[found.identifiable]}"),
        element("p", str(found)),
        facts([*((topic, number_text(number)) for topic, number in numbers), *asked]),
    )


def rank_curve_html(curve: RankCurve) -> str:
    """Return the best rank, and the curve as a chart and as a table."""
    best = f"Best rank: {curve.rank}" if curve.has_best else "No rank has a finite score."
    return fragment(_heading(best), curve_html(curve))


def sentence_html(test: BootstrapTest) -> str:
    """Return what a test found."""
    return fragment(element("p", str(test)))


def goodness_html(found: Goodness) -> str:
    """Return how well a model fits, and the pairs that fit worst."""
    headings, *tests = found.test_lines()
    parts: list[Html] = [
        _heading(found.heading),
        html_table(headings, tests, numbers=range(1, len(headings))),
        *(element("p", sentence) for sentence in found.sentences()),
    ]
    if len(found.pairs):
        names, *pairs = found.pair_lines(_PAIRS)
        rows = ([name_of(pair), *cells] for pair, *cells in pairs)
        parts.append(html_table(names, rows, numbers=range(1, len(names))))
    return fragment(*parts, _rest([(len(found.pairs), _PAIRS, "pairs")]))


def summary_html(summary: Summary) -> str:
    """Return the criteria, and the profile of the first variables and components."""
    pmf = summary.pmf
    n_shown = min(pmf.rank, _COMPONENTS)
    rows: list[list[object]] = [
        [name, *shares_text(shares[:n_shown])] for name, shares in summary.told_sizes.items()
    ]
    for variable, factor in zip(pmf.domain.variables[:_PROFILED], pmf.factors, strict=False):
        rows += _profile_rows(variable, [shares_text(row[:n_shown]) for row in factor[:_LEVELS]])
    criteria = [(label, f"{criterion:.2f}") for label, criterion in summary.criteria.items()]
    return fragment(
        _heading(f"{rows_text(summary.n_rows)} rows, rank {pmf.rank}"),
        facts(
            [
                ("free parameters", f"{summary.n_parameters:,}"),
                ("log-likelihood", f"{summary.log_likelihood:.4f}"),
                *criteria,
                ("relative entropy (entropy R²)", f"{summary.relative_entropy:.3f}"),
                *([("optimum", summary.replication)] if summary.replication else []),
            ]
        ),
        html_table(
            ("component", *map(name_of, pmf.component_labels[:n_shown])),
            rows,
            numbers=range(1, n_shown + 1),
        ),
        _rest([(len(pmf.domain), _PROFILED, "variables"), (pmf.rank, _COMPONENTS, "components")]),
    )


def _profile_rows(variable: Variable, shares: Sequence[list[str]]) -> Iterator[list[object]]:
    """Yield one line for each level, with its share in each component."""
    for level, cells in zip(variable.levels, shares, strict=False):
        yield [joined([name_of(variable.name), " = ", name_of(text_of(level))]), *cells]
    if variable.size > len(shares):
        yield [f"… and {variable.size - len(shares)} more levels", *[""] * len(shares[0])]


def _heading(text: str) -> Html:
    return element("p", element("b", text))


def _rest(counts: Iterable[tuple[int, int, str]]) -> Html:
    """Say how many of each kind are not shown, given how many there are and how many are shown."""
    hidden = [f"{count - most} more {what}" for count, most, what in counts if count > most]
    return element("p", f"… and {' and '.join(hidden)}.") if hidden else Html("")
