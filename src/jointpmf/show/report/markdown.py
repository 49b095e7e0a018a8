"""A report as Markdown: the same facts as text and tables, for a repository or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from jointpmf.errors import on_line
from jointpmf.judge.summary import criterion_name
from jointpmf.judge.text import share_text
from jointpmf.show.text import amount_text, count_text, number_text, percent, shortened

_MOST_VARIABLES, _MOST_COMPONENTS = 40, 12
"""Variables and components that are listed; JSON has all."""

_LISTED, _LONG = 5, 400
"""Names that a warning lists, and characters of a sentence."""


def report_markdown(facts: dict[str, Any]) -> str:
    r"""Return the report of some facts, see `report_facts`.

    Examples
    --------
    >>> import jointpmf as jp
    >>> from jointpmf.show.report.facts import report_facts
    >>> from jointpmf.show.report.findings import findings_of
    >>> from jointpmf.show.report.subject import Subject
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
    >>> facts = report_facts(findings_of(Subject(pmf, {})), "A *first* fit")
    >>> print(report_markdown(facts).splitlines()[0])
    # A \*first\* fit
    """
    parts = [f"# {_text(facts['title'])}", _lead(facts)]
    for heading, content in (
        ("What to watch out for", _warnings(facts)),
        ("The components", _components(facts)),
        ("The traits", _traits(facts)),
        ("How well does it fit?", _quality(facts)),
        ("How many components?", _ranks(facts)),
        ("The variables", _variables(facts)),
        ("What was fitted", _fit(facts)),
    ):
        if written := list(content):
            parts += [f"## {heading}", *written]
    parts.append(f"*Written by jointpmf {facts['library']}.*")
    return "\n\n".join(parts) + "\n"


def _text(text: str, width: int = 80) -> str:
    r"""Return a name that stays text: its signs mean nothing in Markdown or HTML.

    Examples
    --------
    >>> print(_text("a|b <i>"), _text("two\nlines"))
    a\|b \<i\> two lines
    """
    plain = on_line(" ".join(shortened(text, width).split()))
    return re.sub(r"([\\`*_\[\]<>|~$&])", r"\\\1", plain) if plain else "“”"


def _share(share: float | None) -> str:
    return "" if share is None else share_text(share)


def _amount(number: float | None) -> str:
    return "–" if number is None else amount_text(number)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], are_numbers: bool = True) -> str:
    """Return a table; all but its first column are numbers, unless said otherwise."""
    sign = "---:" if are_numbers else "---"
    lines = [headings, ["---", *[sign] * (len(headings) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _lead(facts: dict[str, Any]) -> str:
    model, rows = facts["model"], facts["fit"]["rows"]
    source = "data" if rows is None else count_text(rows, "row")
    variables = count_text(model["variables"], "variable")
    components = count_text(model["rank"], "component")
    missing = facts["rows"]
    holes = "" if missing is None else f", {percent(missing['share_missing'])} of the cells missing"
    return f"A model of {variables} with {components}, fitted to {source}{holes}."


def _warnings(facts: dict[str, Any]) -> Iterator[str]:
    if facts["warnings"]:
        yield "\n".join(map(_warning, facts["warnings"]))


def _warning(caution: dict[str, Any]) -> str:
    parts = [f"- **{_text(caution['text'], _LONG)}.**"]
    if caution["advice"]:
        parts.append(_text(caution["advice"], _LONG))
    if names := caution["names"]:
        rest = len(names) - _LISTED
        more = f"; and {rest:,} more" if rest > 0 else ""
        parts.append(f"({'; '.join(map(_text, names[:_LISTED]))}{more})")
    return " ".join(parts)


def _components(facts: dict[str, Any]) -> Iterator[str]:
    components = facts["components"]
    if components is None:
        return
    order = sorted(range(len(components)), key=lambda f: -components[f]["weight"])
    kept = sorted(order[:_MOST_COMPONENTS])
    yield _table(
        ["component", "weight", "± se", "by posterior", "by most likely"],
        [
            [
                _text(components[f]["name"]),
                *(
                    _share(components[f][name])
                    for name in ("weight", "se", "by_posterior", "by_most_likely")
                ),
            ]
            for f in kept
        ],
    )
    if len(components) > 1:
        yield "\n".join(_words(components[f]) for f in kept)
    yield _table(
        ["variable = level", *(_text(components[f]["name"]) for f in kept)],
        [
            [f"{_text(variable['name'])} = {_text(level)}", *(_share(row[f]) for f in kept)]
            for variable in facts["variables"][:_MOST_VARIABLES]
            for level, row in zip(variable["levels"], variable["profiles"], strict=True)
        ],
    )
    if len(kept) < len(components) or len(facts["variables"]) > _MOST_VARIABLES:
        yield "The largest components and the first variables; the JSON has all."


def _words(component: dict[str, Any]) -> str:
    told = [
        f"{_text(one['variable'])} is {_levels(one['levels'])} in {_share(one['within'])} "
        f"({_share(one['overall'])} of all rows)"
        for one in component["telling"]
    ]
    return f"- **{_text(component['name'])}**: {'; '.join(told) or 'much like all rows together'}."


def _levels(levels: Sequence[str]) -> str:
    """Return levels as words; more than two are neighbours in their order."""
    if len(levels) > 2:
        return f"{_text(levels[0])} to {_text(levels[-1])}"
    return " or ".join(map(_text, levels))


def _traits(facts: dict[str, Any]) -> Iterator[str]:
    if (traits := facts["traits"]) is None:
        return
    lines = [
        [
            _text(line["variable"])
            + ("" if line["level"] is None else f" = {_text(line['level'])}"),
            *(f"{slope:+.2f}".replace("-", "−") for slope in line["loadings"]),
            _share(line["explained"]),
        ]
        for line in traits["loadings"]
    ]
    headings = [f"trait {t}" for t in range(len(traits["shares"]))]
    yield _table(["loading of", *headings, "explained"], lines)


def _quality(facts: dict[str, Any]) -> Iterator[str]:
    lines = []
    if (known := facts["likelihood"]) is not None and known["log_likelihood"] is not None:
        lines.append(["log-likelihood", amount_text(known["log_likelihood"])])
        if known["criteria"]:
            lines.append(["free parameters", f"{facts['model']['parameters']:,}"])
        lines += [[criterion_name(k), amount_text(v)] for k, v in known["criteria"].items()]
        if known["relative_entropy"] is not None:
            lines.append(["relative entropy (entropy R²)", f"{known['relative_entropy']:.3f}"])
    if (goodness := facts["goodness"]) is not None:
        names = {"g_squared": "G²", "x_squared": "X²", "df": "degrees of freedom"}
        lines += [[said, _amount(goodness[name])] for name, said in names.items()]
    if lines:
        yield _table(["", "on the table"], lines)
    if (compared := facts["marginals"]) is not None and compared["worst"]:
        yield f"Worst of {compared['compared']:,} compared tables:"
        yield _table(
            ["worst cell", "χ²/df", "distance", "by chance", "observed", "fitted"],
            [_misfit(one) for one in compared["worst"]],
        )


def _misfit(one: dict[str, Any]) -> list[str]:
    pairs = zip(one["variables"], one["levels"], strict=True)
    cell = ", ".join(f"{_text(name)} = {_text(level)}" for name, level in pairs)
    shares = [_share(one[name]) for name in ("distance", "chance", "observed", "fitted")]
    return [cell, number_text(one["residual"]), *shares]


def _ranks(facts: dict[str, Any]) -> Iterator[str]:
    if (ranks := facts["ranks"]) is None:
        return
    rows = [
        [
            f"**{one['rank']}**" if one["rank"] == ranks["best"] else str(one["rank"]),
            _amount(one["score"]),
            number_text(one["standard_error"]),
            f"{one['parameters']:,}",
        ]
        for one in ranks["scores"]
    ]
    yield _table(["rank", criterion_name(ranks["criterion"]), "± error", "parameters"], rows)


def _variables(facts: dict[str, Any]) -> Iterator[str]:
    shown = facts["variables"][:_MOST_VARIABLES]
    rows = [
        [
            _text(one["name"]),
            _share(one["share_missing"]),
            _distribution(one),
        ]
        for one in shown
    ]
    yield _table(["variable", "missing", "levels"], rows, are_numbers=False)
    if len(shown) < len(facts["variables"]):
        yield f"The first {len(shown)} of {len(facts['variables']):,}; the JSON has all."


def _distribution(variable: dict[str, Any]) -> str:
    shares = variable["observed"] or variable["fitted"]
    pairs = list(zip(variable["levels"], shares, strict=True))
    rest = f" and {len(pairs) - 10:,} more" if len(pairs) > 10 else ""
    return ", ".join(f"{_text(level)} ({_share(share)})" for level, share in pairs[:10]) + rest


def _fit(facts: dict[str, Any]) -> Iterator[str]:
    rows = [
        [_text(topic), _text(str(said))] for topic, said in facts["fit"].items() if said is not None
    ]
    if rows:
        yield _table(["topic", "of the fit"], rows, are_numbers=False)
