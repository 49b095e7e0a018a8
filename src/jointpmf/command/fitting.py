"""`jointpmf fit`: its options, and what it says when the fit is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from jointpmf.command.console import console, print_json
from jointpmf.command.models import check_place, put_model
from jointpmf.command.options import TABLES, Json, Method, Missing, Seed, check_choice, grouped
from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from jointpmf.command.fit import Fitted

NOT_CONVERGED = 3
"""Exit code of a fit that ended too early; its model is written all the same."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are used, and how they are read."""

    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=8",
            help="Cut a column of numbers or dates into this many bins, each with about as many "
            "rows, or at given edges: NAME=0,18,65,120. May be repeated.",
            show_default=False,
        ),
    ] = None
    levels: Annotated[
        list[str] | None,
        typer.Option(
            metavar='"a<b<c"',
            help="Levels in their order, for all columns of text that have one of them, or for "
            'one column: "NAME=a<b<c". Well-known scales are put in order by themselves. May be '
            "repeated.",
            show_default=False,
        ),
    ] = None
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A column to use; may be repeated.", show_default="all columns"
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A column to leave out; may be repeated.", show_default=False
        ),
    ] = None
    missing: Missing = None


@dataclass(frozen=True)
class Limits:
    """When a fit ends, what it may take, and where it is saved."""

    max_iter: Annotated[
        int | None, typer.Option(help="Largest number of iterations.", show_default=False)
    ] = None
    tol: Annotated[
        float | None,
        typer.Option(
            help="Stop when an iteration improves the objective by less.", show_default=False
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="A folder to save progress in: after a kill, the same command continues there.",
            show_default=False,
        ),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="2GB",
            help="What the whole command may take; rows that do not fit are kept on disk, as "
            "codes, in the folder that TMPDIR names.",
            show_default="half of what is free",
        ),
    ] = None
    seed: Seed = 0


@grouped
def fit(
    *,
    data: Annotated[
        list[str],
        typer.Argument(
            help=f"A table of rows, which may have missing cells: {TABLES} With --marginals: "
            "tables of counts.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="MODEL",
            help="Where to write the model; - is stdout.",
            show_default=False,
        ),
    ],
    rank: Annotated[
        str,
        typer.Option(
            metavar="auto|N", help="Number of components; auto finds it by rows held out."
        ),
    ] = "auto",
    method: Method = "likelihood",
    marginals: Annotated[
        bool,
        typer.Option(
            "--marginals",
            help="The files are tables of counts: a column per variable and a last one named "
            "count or probability, or wide ones; spreadsheets too. Or one tables.toml lists them.",
        ),
    ] = False,
    order: Annotated[
        int, typer.Option(help="Variables in each marginal, for --method marginals.", min=1)
    ] = 3,
    columns: Columns,
    smoothing: Annotated[
        float | None,
        typer.Option(
            help="Pseudo-counts per level and component.",
            show_default="chosen with --rank auto and for tables, else 0",
        ),
    ] = None,
    limits: Limits,
    as_json: Json = False,
) -> int:
    """Learn a model from a table of rows, or from published tables, and write it to a file.

    Ctrl-C writes the best model so far. Files may be larger than memory, for instance with
    jointpmf fit rows.parquet -o model.safetensors --rank 5 --memory 1GB
    """
    from jointpmf.command.arguments import rank_of
    from jointpmf.command.fit import fit_published, fit_table
    from jointpmf.fit.settings import Coupled, Likelihood

    check_place(output)
    asked = rank_of(rank)
    check_choice(method, "method", ("likelihood", "marginals"))
    if smoothing is not None and method == "marginals":
        raise JointPMFError("--smoothing belongs to --method likelihood")
    if marginals or _is_list(data):
        if columns.bins or columns.levels or columns.only or columns.drop or limits.memory:
            raise JointPMFError(
                "--bins, --levels, --only, --drop and --memory belong to rows, not to --marginals"
            )
        fitted = fit_published(data, asked, smoothing, columns, limits)
    else:
        objective = Likelihood(smoothing) if method == "likelihood" else Coupled(order)
        fitted = fit_table(_one_table(data), asked, objective, columns, limits)
    put_model(output, fitted.solution.pmf, fitted.about)
    _say_how_it_went(fitted, output, as_json)
    return 0 if fitted.is_finished else NOT_CONVERGED


def _is_list(data: Sequence[str]) -> bool:
    """Tell whether the data are lists of published tables, which need no --marginals."""
    return all(path.endswith(".toml") for path in data)


def _one_table(data: Sequence[str]) -> str:
    if len(data) != 1:
        raise JointPMFError(
            f"give one table of rows, not {len(data)}; tables of counts need --marginals"
        )
    return data[0]


def _say_how_it_went(fitted: Fitted, output: str, as_json: bool) -> None:
    where = console(stderr=output == "-")
    solution, about = fitted.solution, fitted.about
    pmf = solution.pmf
    if as_json:
        content = {
            "model": output,
            "status": solution.status.name,
            "converged": fitted.is_finished,
            "objective": solution.objective,
            "rank": pmf.rank,
            "variables": pmf.domain.names,
            "about": about,
        }
        print_json(content, where)
        return
    where.print(solution.status.value, style=None if fitted.is_finished else "yellow")
    parts = [f"{about[topic]} {topic}" for topic in ("rows", "tables") if topic in about]
    parts += [f"{len(pmf.domain)} variables", f"rank {pmf.rank}"]
    if solution.n_averaged > 1:
        parts.append(f"the average of {solution.n_averaged} fits")
    start = f" ({solution.start})" if solution.start else ""
    where.print(Text(f"{', '.join(parts)}, objective {solution.objective:.6g}{start}"))
    where.print(Text(f"Written to {'stdout' if output == '-' else output}."))
