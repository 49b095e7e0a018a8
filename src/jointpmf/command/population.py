"""`jointpmf population`: whole rows that meet published tables, and what is left of each table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from jointpmf.command.console import console, print_json
from jointpmf.command.models import read_pmf
from jointpmf.command.options import Escaped, Json, Missing, Model, Output, Seed

if TYPE_CHECKING:
    from jointpmf.predict.population import Population


def population(
    model: Model,
    n: Annotated[int, typer.Option("-n", "--rows", help="How many rows.")],
    match: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A table, or a tables.toml, that the rows should meet, as for fit --marginals. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    output: Output = "-",
    missing: Missing = None,
    seed: Seed = 0,
    is_escaped: Escaped = False,
    as_json: Json = False,
) -> None:
    """Make whole rows that meet published tables as exactly as whole rows can.

    Ctrl-C writes the best rows so far.
    """
    from jointpmf.command.writing import check_table_output, written_table
    from jointpmf.marginals.published import read_marginals

    check_table_output(output, {"model": model, "table": match or ()})
    pmf = read_pmf(model)
    tables = read_marginals(match, missing or (), pmf.domain) if match else None
    found = pmf.population(n, match=tables, random_state=seed, verbose=True)
    with written_table(output, as_json, is_escaped) as write:
        write(found.rows)
    _say_what_is_left(found, output, as_json)


def _say_what_is_left(found: Population, output: str, as_json: bool) -> None:
    where = console(stderr=output == "-")
    if as_json:
        content = {
            "rows": found.n_rows,
            "error": found.error,
            "tables": found.to_frame().to_dicts(),
            "stopped": found.is_stopped,
            "output": output,
        }
        print_json(content, where)
        return
    from jointpmf.command.printing import label, plain_table

    if found.residuals:
        table = plain_table("table")
        table.add_column("of the rows", justify="right")
        table.add_column("largest cell", justify="right")
        for one in found.residuals:
            names = label(", ".join(one.names))
            table.add_row(names, f"{one.error:.3%}", f"{one.largest:.2f}")
        where.print("What is left between the rows and the tables:")
        where.print(table)
    stopped = ", the best until it was interrupted" if found.is_stopped else ""
    where.print(Text(f"{found.n_rows} rows{stopped}, written to {_place(output)}."))


def _place(output: str) -> str:
    return "stdout" if output == "-" else output
