"""What was fitted, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jointpmf.show.html import Html, facts, joined, name_of
from jointpmf.show.report.cards.parts import paragraph
from jointpmf.show.text import number_text, whole_in

if TYPE_CHECKING:
    from jointpmf.show.report.findings import Findings


_MOST_NAMES = 40
"""Variables that are named; the rest is counted."""


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
    "source": "Fitted to",
    "start": "Start",
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
    """Yield the section."""
    pmf, about = found.subject.pmf, found.subject.about
    yield paragraph(_in_words(pmf.rank))
    method = about.get("method")
    pairs: list[tuple[object, object]] = []
    if method is not None:
        pairs.append(("Method", _METHODS.get(method, method)))
    pairs.append(("Rank", f"{pmf.rank:,}, the number of components"))
    names = joined([name_of(name) for name in pmf.domain.names[:_MOST_NAMES]], ", ")
    rest = len(pmf.domain) - _MOST_NAMES
    more = f" and {rest:,} more" if rest > 0 else ""
    pairs.append(("Variables", joined([names, more])))
    for topic, text in about.items():
        if topic not in ("method", "rank", "status"):
            shown_text = _finite(text) if topic in ("objective", "validation") else _figure(text)
            pairs.append((_TOPICS.get(topic, topic), shown_text))
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


def _in_words(rank: int) -> str:
    if rank == 1:
        return "The model has one component: according to it, all variables are independent."
    return (
        f"The model describes the rows as a mixture of {rank:,} kinds, called components. Each has "
        "a weight, the share of rows of that kind, and says for each variable how likely its "
        "levels are. Within a component the variables are independent; what goes together across "
        "variables comes from rows being of different kinds."
    )


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
