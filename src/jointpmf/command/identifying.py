"""The commands `identify`, `demo` and `version`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from jointpmf.command.console import console, print_json
from jointpmf.command.models import read_model
from jointpmf.command.options import Json
from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from jointpmf.judge.identifiability import Identifiability


def identify(
    model: Annotated[
        str | None, typer.Argument(help="A model file, or - for stdin.", show_default=False)
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="10,10,10", help="Levels of each variable.", show_default=False),
    ] = None,
    order: Annotated[
        int | None,
        typer.Option(
            help="Variables in each marginal.",
            show_default="the tables that the model was learned from, else 3",
            min=1,
        ),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(help="Number of components.", show_default="that of the model", min=1),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell whether a model's tables, or all marginals of an order, determine it."""
    from jointpmf import Domain, identifiability
    from jointpmf.command.arguments import sizes_of

    if (model is None) == (sizes is None):
        raise JointPMFError("give either a model or --sizes")
    if sizes is not None:
        if rank is None:
            raise JointPMFError("--sizes needs --rank")
        report = identifiability(Domain.of_sizes(sizes_of(sizes)), rank, order=order or 3)
        notes: list[str] = []
    else:
        report, notes = _of_model(str(model), order, rank)
    if as_json:
        found = {**asdict(report), "tables_to_ask": report.tables_to_ask}
        print_json({**found, "text": str(report), "notes": notes})
    else:
        console().print(Text(" ".join([str(report), *notes])))


def _of_model(model: str, order: int | None, rank: int | None) -> tuple[Identifiability, list[str]]:
    """Return whether a model's tables determine it, and what to know about the answer."""
    from jointpmf import JointPMF, identifiability
    from jointpmf.fit.about import LearnedFrom
    from jointpmf.fit.members import members_of

    found = read_model(model)
    pmf = JointPMF(*found.model)
    learned = LearnedFrom.of(found.about, pmf.domain)
    notes = learned.notes(order)
    each = members_of(pmf, learned.n_averaged)[0].rank
    at = pmf if (rank or each) == pmf.rank else None
    known = order or learned.subsets or 3
    return identifiability((pmf.domain, known), rank or each, pmf=at), notes


def demo(as_json: Json = False) -> None:
    """Learn a real survey with a fifth of its answers hidden, and guess them."""
    from jointpmf.command.demo import run

    found = run(console(quiet=as_json))
    if as_json:
        print_json({"questions": [one._asdict() for one in found]})


def version(as_json: Json = False) -> None:
    """Print the version."""
    from jointpmf import __version__
    from jointpmf.command.printing import json_text

    typer.echo(json_text({"version": __version__}) if as_json else __version__)
