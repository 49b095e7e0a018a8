"""`jointpmf check`: what published tables can tell, before any fit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from jointpmf.command.console import console, print_json
from jointpmf.command.options import Json, Missing


def check(
    tables: Annotated[
        list[str],
        typer.Argument(
            help="A tables.toml that lists tables of counts, or such tables themselves.",
            show_default=False,
        ),
    ],
    missing: Missing = None,
    as_json: Json = False,
) -> None:
    """Say where tables disagree, what they leave open, and which tables would help."""
    from jointpmf.judge.tables import check_tables
    from jointpmf.marginals.published import read_marginals

    report = check_tables(read_marginals(tables, missing or ()))
    if as_json:
        print_json({**asdict(report), "text": str(report)})
    else:
        console().print(Text(str(report)))
