"""`jointpmf fit`: its options, and what it says when the fit is done."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from jointpmf.command.console import console, print_json
from jointpmf.command.interrupts import uninterrupted
from jointpmf.command.models import check_place, check_replaces_nothing, put_model
from jointpmf.command.options import (
    MOST,
    TABLES,
    Json,
    Missing,
    Seed,
    Weights,
    check_choice,
    grouped,
)
from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from jointpmf.command.fit import Fitted

_CRITERIA = ("bic", "aic", "abic", "caic", "validation")
"""By what a rank can be chosen for reading."""

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
            'one column: "NAME=a<b<c". Otherwise text is sorted. May be repeated.',
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
    weights: Weights = None


@dataclass(frozen=True)
class Components:
    """How many components there are, how that is found, and from how many starts."""

    rank: Annotated[
        str | None,
        typer.Option(
            metavar="auto|N|1-8",
            help="Number of components (latent classes); auto finds the one that predicts rows "
            "held out best. With --criterion: the ranks to try.",
            show_default="auto",
        ),
    ] = None
    criterion: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(_CRITERIA),
            help="Choose the rank for reading the components, rather than for prediction: fit "
            "ranks 1, 2 and so on until two in a row are no better, or all of --rank 1-8; show how "
            "well each does, and write the best.",
            show_default=False,
        ),
    ] = None
    classes: Annotated[
        bool, typer.Option("--classes", help="For latent classes: short for --criterion bic.")
    ] = False
    traits: Annotated[
        int | None,
        typer.Option(
            help="Place components at points of a space of this many traits, instead of leaving "
            "them free; with a given --rank, the number of points (try 512). With --rank auto "
            "that is tried anyway.",
            min=1,
            show_default=False,
        ),
    ] = None
    starts: Annotated[
        int | None,
        typer.Option(
            help="Fit from this many starts, and say how many of them find the best; with a given "
            "--rank.",
            min=1,
            max=MOST,
            show_default=False,
        ),
    ] = None

    @property
    def chosen_by(self) -> str | None:
        """The criterion that chooses the rank, if one does."""
        if self.criterion is None:
            return "bic" if self.classes else None
        check_choice(self.criterion, "criterion", _CRITERIA)
        if self.classes and self.criterion != "bic":
            raise JointPMFError(f"--classes is --criterion bic, not {self.criterion}")
        return self.criterion

    def asked(self) -> tuple[list[int] | None, int | str]:
        """Return the ranks that a criterion chooses from, and the rank where none does.

        The ranks are None for as many as it takes.
        """
        from jointpmf.command.arguments import rank_of, ranks_of

        text = "auto" if self.rank is None else self.rank
        if self.chosen_by is None:
            return None, rank_of(text)
        ranks = None if text == "auto" else ranks_of(text)
        if ranks is not None and len(ranks) < 2:
            raise JointPMFError(f"--criterion chooses from several ranks, such as 1-8, not {text}")
        return ranks, "auto"


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


@dataclass(frozen=True)
class Sample:
    """How often the data are resampled, and how they were drawn."""

    replicates: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Fit again to this many resamples of the data, such as 200, and write these "
            "models beside MODEL; query --level 0.9 then says how sure answers are.",
            min=2,
            max=MOST,
            show_default=False,
        ),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A column that says which rows were drawn together, such as a school; it is not a "
            "variable of the model, unless --only names it. For --replicates.",
            show_default=False,
        ),
    ] = None
    strata: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A column that says which parts of the population were drawn from separately, as "
            "--groups does.",
            show_default=False,
        ),
    ] = None

    @property
    def columns(self) -> dict[str, str]:
        """The columns that were named, by what they say."""
        named = {"groups": self.groups, "strata": self.strata}
        return {what: name for what, name in named.items() if name is not None}


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
    components: Components,
    marginals: Annotated[
        bool,
        typer.Option(
            "--marginals",
            help="The files are tables of counts: a column per variable and a last one named "
            "count or probability, or wide ones; spreadsheets too. Or one tables.toml lists them.",
        ),
    ] = False,
    columns: Columns,
    smoothing: Annotated[
        float | None,
        typer.Option(
            help="Pseudo-counts per level and component.",
            show_default="chosen with --rank auto and for tables, else 0",
        ),
    ] = None,
    sample: Sample,
    limits: Limits,
    as_json: Json = False,
) -> int:
    """Learn a model from a table of rows, or from published tables, and write it to a file.

    Without --rank the model is the best for prediction; to read its components, use --classes.
    Ctrl-C writes the best model so far. Files may be larger than memory, for instance with
    jointpmf fit rows.parquet -o model.safetensors --rank 5 --memory 1GB

    To know how sure answers are, for instance with the rows of each school drawn together:
    jointpmf fit pupils.csv -o model.safetensors --replicates 200 --groups school
    """
    from jointpmf.command.fit import fit_by_criterion, fit_published, fit_table
    from jointpmf.command.replicating import Replicating, check_sample
    from jointpmf.fit.settings import Likelihood, Search

    check_place(output, limits.checkpoint)
    check_replaces_nothing(output, "model", {"data": data})
    check_sample(sample, output, data)
    criterion, is_published = components.chosen_by, marginals or _is_list(data)
    if is_published and _for_rows(components, columns, sample, limits):
        raise JointPMFError(
            "--bins, --levels, --only, --drop, --weights, --groups, --strata, --criterion, "
            "--starts, --traits and --memory belong to rows, not to --marginals"
        )
    _check_together(components, limits)
    ranks, rank = components.asked()
    objective = Likelihood(smoothing, traits=components.traits)
    search = Search(n_starts=components.starts)
    is_hinted = components.rank is None and not is_published
    with ExitStack() as held:
        replicating = Replicating(sample, limits.seed, held)
        of_rows = (search, columns, limits, replicating)
        if is_published:
            fitted = fit_published(data, rank, smoothing, columns, limits)
        elif criterion is not None:
            fitted = fit_by_criterion(_one_table(data), criterion, ranks, objective, *of_rows)
        else:
            fitted = fit_table(_one_table(data), rank, objective, *of_rows)
        with uninterrupted():
            put_model(output, fitted.solution.pmf, fitted.about)
            if not as_json:
                _say_how_it_went(fitted, output, is_hinted and criterion is None)
        made = replicating.put(fitted.solution, output)
    if as_json:
        print_json(_for_json(fitted, output, made), console(stderr=output == "-"))
    elif made is not None:
        sentence = f"{made['number']} replicates written to {made['file']}."
        console().print(Text(sentence), soft_wrap=True)
    return 0 if fitted.is_finished else NOT_CONVERGED


def _for_rows(components: Components, columns: Columns, sample: Sample, limits: Limits) -> bool:
    """Tell whether something was asked for that only rows can do."""
    asked = (columns.bins, columns.levels, columns.only, columns.drop, columns.weights)
    more = (sample.columns, limits.memory, components.chosen_by)
    return any(asked) or any(more) or any((components.starts, components.traits))


def _check_together(components: Components, limits: Limits) -> None:
    """Raise if options contradict each other."""
    criterion = components.chosen_by
    if components.traits and criterion:
        raise JointPMFError("--traits needs a given --rank")
    if criterion and limits.checkpoint:
        raise JointPMFError("--checkpoint does not apply to --criterion: leave it out")
    is_given = criterion is not None or components.rank not in (None, "auto")
    if components.starts and not is_given:
        raise JointPMFError("--starts needs a given --rank or a --criterion")


def _is_list(data: Sequence[str]) -> bool:
    """Tell whether the data are lists of published tables, which need no --marginals."""
    return all(path.endswith(".toml") for path in data)


def _one_table(data: Sequence[str]) -> str:
    if len(data) != 1:
        raise JointPMFError(
            f"give one table of rows, not {len(data)}; tables of counts need --marginals"
        )
    return data[0]


def _for_json(fitted: Fitted, output: str, replicates: dict[str, Any] | None) -> dict[str, Any]:
    solution, curve = fitted.solution, fitted.curve
    return {
        "model": output,
        "status": solution.status.name,
        "converged": fitted.is_finished,
        "objective": solution.objective,
        "rank": solution.pmf.rank,
        "starts": solution.n_starts,
        "agreed": solution.n_agreed,
        "curve": None if curve is None else curve.to_frame().to_dicts(),
        "variables": solution.pmf.domain.names,
        "about": fitted.about,
        "replicates": replicates,
    }


def _say_how_it_went(fitted: Fitted, output: str, is_hinted: bool) -> None:
    where = console(stderr=output == "-")
    solution, about, curve = fitted.solution, fitted.about, fitted.curve
    pmf = solution.pmf
    if curve is not None:
        where.print(Text(str(curve)))
    where.print(solution.status.value, style=None if fitted.is_finished else "yellow")
    parts = [f"{about[topic]} {topic}" for topic in ("rows", "tables") if topic in about]
    parts += [f"{len(pmf.domain)} variables", f"rank {pmf.rank}"]
    if solution.n_averaged > 1:
        parts.append(f"the average of {solution.n_averaged} fits")
    # of several starts that found the same optimum, which was ahead by a last digit says nothing
    start = f" ({solution.start})" if solution.start and not solution.replication else ""
    where.print(Text(f"{', '.join(parts)}, objective {solution.objective:.6g}{start}"))
    if solution.replication:
        where.print(f"The optimum was {solution.replication}.", highlight=False)
    if is_hinted:
        where.print("The rank is for prediction; to read the components, choose it with --classes.")
    where.print(Text(f"Written to {'stdout' if output == '-' else output}."))
