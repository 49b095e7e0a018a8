"""Commands that ask a model: `query`, `sample`, `score`, `classes`, `impute`, `info`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from jointpmf.command.console import console, print_json, say, warn
from jointpmf.command.models import read_model, read_pmf
from jointpmf.command.options import (
    MOST,
    Data,
    Escaped,
    Given,
    Json,
    Missing,
    Model,
    Output,
    Seed,
    Unknown,
    Weights,
    check_choice,
)
from jointpmf.command.unmatched import Unmatched
from jointpmf.errors import JointPMFError, listing

if TYPE_CHECKING:
    import polars as pl

    from jointpmf.pmf import JointPMF

_LEFT_OUT = "left out"
"""What becomes of columns that the model does not know."""


def query(
    model: Model,
    of: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="A variable to ask for; several give their joint distribution. "
            "'component' is the model's component.",
            show_default=False,
        ),
    ],
    given: Given = None,
    top: Annotated[int, typer.Option(help="Rows to show, the most likely first.", min=1)] = 40,
    level: Annotated[
        float | None,
        typer.Option(
            metavar="0.9",
            help="Show how sure the answer is: standard errors, and intervals that hold the truth "
            "this often. It needs the replicates that fit --replicates 200 writes.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the distribution of some variables, given what is known of others.

    With --level, how sure that is: jointpmf query survey.safetensors --of vote --level 0.9

    If the model is an average of fits, the range of each probability over its members is shown too.
    """
    from jointpmf import JointPMF
    from jointpmf.command.printing import Answer
    from jointpmf.show.text import whole_in

    found = read_model(model)
    pmf = JointPMF(*found.model)
    pmf.marginal(of)  # raises now if there is no such variable
    evidence = _evidence(pmf, given or [])
    for name in of:
        if name in evidence:
            raise JointPMFError(f"{name!r} is both asked for and given")
    answer = Answer(pmf.condition(evidence).marginal(of), evidence)
    if level is not None:
        from jointpmf.command.sureness import errors_of

        answer = answer._replace(errors=errors_of(answer, pmf, model, level))
    if (n_averaged := whole_in(found.about.get("averaged", "")) or 1) > 1:
        answer = answer.with_members(pmf, n_averaged)
    if as_json:
        print_json(answer.for_json())
    else:
        answer.show(console(), top)


def _evidence(pmf: JointPMF, given: Sequence[str]) -> dict[str, list[Hashable]]:
    """Return evidence from texts; the component is a variable among the others."""
    from jointpmf.components import of_own_variable
    from jointpmf.domain import evidence_of

    if "component" not in pmf.domain:
        return evidence_of(pmf.marginal([*pmf.domain.names, "component"]).domain, given)
    try:
        return evidence_of(pmf.domain, given)
    except JointPMFError as error:
        if any(text.strip().startswith("component") for text in given):
            raise of_own_variable(error) from None
        raise


def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", "--rows", help="How many rows.", min=0)] = 10,
    given: Given = None,
    output: Output = "-",
    seed: Seed = 0,
    is_escaped: Escaped = False,
    as_json: Json = False,
) -> None:
    """Draw rows from the model, given what is known."""
    from jointpmf.command.writing import check_table_output, written_table

    check_table_output(output, {"model": model})
    pmf = read_pmf(model)
    rows: pl.DataFrame = pmf.sample(n, _evidence(pmf, given or []) or None, seed)
    with written_table(output, as_json, is_escaped) as write:
        write(rows)
    say(output, {"rows": n, "output": output}, f"{n} rows written to {output}.", as_json)


def score(
    model: Model,
    data: Data,
    worst: Annotated[
        int | None,
        typer.Option(
            help="Only this many rows, the least likely first.",
            min=1,
            max=MOST,
            show_default=False,
        ),
    ] = None,
    output: Output = "-",
    unknown: Unknown = "error",
    missing: Missing = None,
    is_escaped: Escaped = False,
    as_json: Json = False,
) -> None:
    """Print the log-likelihood of each row, or show the least likely rows.

    Rows are counted from 0. Missing cells are summed out.
    """
    from jointpmf.command.score import scored_batches, worst_rows, worst_table
    from jointpmf.command.writing import check_table_output, written_table
    from jointpmf.data.table_files import open_table

    check_table_output(output, {"model": model, "data": data})
    check_choice(unknown, "unknown", ("error", "missing"))
    pmf = read_pmf(model, data)
    n_rows, total = 0, 0.0
    with open_table(data, missing or []) as table:
        unmatched = Unmatched.of(pmf.domain.names, table.columns)
        batches = scored_batches(pmf, table, unknown)
        if worst is not None:
            rows = worst_rows(batches, worst)
            if output == "-" and not as_json:
                where = console()
                shown, hidden = worst_table(rows, where.width)
                where.print(shown)
                if hidden:
                    warn(f"not shown: {listing(hidden)}, for want of room; -o FILE writes all")
                unmatched.say(_LEFT_OUT)
                return
            batches = iter([rows])
        with written_table(output, as_json, is_escaped) as write:
            for batch in batches:
                n_rows += len(batch)
                total += float(batch["log_probability"].sum())
                write(batch if worst is not None else batch.select("row", "log_probability"))
    mean = total / n_rows if n_rows else 0.0
    content = {"rows": n_rows, "mean_log_probability": mean, "output": output}
    sentence = f"{n_rows} rows, {mean:.4f} on average; written to {output}."
    _say_with(unmatched, _LEFT_OUT, output, content, sentence, as_json)


def classes(
    model: Model,
    data: Data,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write the components of each row; - is stdout, as CSV.",
            show_default="how large the components are is printed",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A column of the table to write beside; may be repeated.",
            show_default=False,
        ),
    ] = None,
    weights: Weights = None,
    unknown: Unknown = "error",
    missing: Missing = None,
    is_escaped: Escaped = False,
    as_json: Json = False,
) -> None:
    """Say to which components (latent classes) the rows of a table belong.

    With -o each row gets its number, counted from 0, the probability of each component given its
    observed cells, and the most likely component. Without, how large the components are is shown.
    """
    from jointpmf.command.classes import ClassedRows
    from jointpmf.command.writing import check_table_output, written_table
    from jointpmf.data.table_files import open_table

    check_choice(unknown, "unknown", ("error", "missing"))
    if output is not None:
        check_table_output(output, {"model": model, "data": data})
    pmf = read_pmf(model, data)
    with open_table(data, missing or []) as table:
        unmatched = Unmatched.of(pmf.domain.names, table.columns, [weights, *(keep or [])])
        rows = ClassedRows(pmf, table, keep or (), weights)
        place = nullcontext() if output is None else written_table(output, as_json, is_escaped)
        with place as write:
            for batch in rows.batches(unknown):
                if write is not None:
                    write(batch)
    content = {"rows": rows.n_rows, "components": rows.components.sizes(), "output": output}
    sentence = f"{rows.n_rows} rows written to {output}."
    if output is None and not as_json:
        console().print(rows.size_table())
        sentence = f"{rows.n_rows} rows{', by weight' if weights else ''}."
    _say_with(unmatched, _LEFT_OUT, output or "stdout", content, sentence, as_json)


def _say_with(
    unmatched: Unmatched,
    fate: str,
    output: str,
    content: dict[str, Any],
    sentence: str,
    as_json: bool,
) -> None:
    """Say what was written, and what of the table and of the model does not match."""
    say(output, content | unmatched._asdict(), sentence, as_json)
    if not as_json or output == "-":
        unmatched.say(fate)


def impute(
    model: Model,
    data: Data,
    output: Output = "-",
    strategy: Annotated[
        str,
        typer.Option(
            metavar="auto|mode|median|expectation|sample",
            help="The most likely level, the median one, the expected value, or a draw; auto is "
            "the median of numbers, and the most likely level of all else.",
        ),
    ] = "auto",
    draws: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            help="For multiple imputation: write M completed tables below each other, with a "
            "column 'draw' from 1 to M before the others. Cells are drawn, those of each table "
            "from another of the replicates that fit --replicates 200 wrote beside the model; "
            "without these from the one model, whose standard errors are too small.",
            min=1,
            max=MOST,
            show_default=False,
        ),
    ] = None,
    is_in_place: Annotated[
        bool, typer.Option("--in-place", help="Let the completed table replace DATA itself.")
    ] = False,
    unknown: Unknown = "error",
    missing: Missing = None,
    seed: Seed = 0,
    is_escaped: Escaped = False,
    as_json: Json = False,
) -> None:
    """Fill the missing cells of a table; columns that the model does not know stay as they are."""
    import numpy as np

    from jointpmf.command.imputing import Filling, models_for, place_of_filled
    from jointpmf.command.writing import check_table_output, written_table
    from jointpmf.data.table_files import open_table
    from jointpmf.predict.filling import check_strategy

    if is_in_place:
        output = place_of_filled(data, output)
    sources = {"model": model} if is_in_place else {"model": model, "data": data}
    check_table_output(output, sources, "give another --output, or say --in-place")
    check_choice(unknown, "unknown", ("error", "missing"))
    check_strategy(strategy)
    pmf = read_pmf(model, data)
    filling = Filling(pmf, np.random.default_rng(seed))
    place = written_table(output, as_json, is_escaped)
    with open_table(data, missing or []) as table, place as write:
        unmatched = Unmatched.of(pmf.domain.names, table.columns)
        if draws is None:
            batches = filling.once(table, unknown, strategy)
        else:
            models = models_for(pmf, model, draws, filling.generator)
            batches = filling.often(models, table, unknown, strategy)
        for batch in batches:
            write(batch)
    content: dict[str, Any] = {"rows": filling.n_rows, "filled": filling.n_filled, "output": output}
    sentence = f"{filling.n_filled} cells of {filling.n_rows} rows filled; written to {output}."
    if draws is not None:
        content["draws"] = draws
        sentence = sentence.replace("filled;", f"drawn {draws} times;")
    _say_with(unmatched, "unchanged", output, content, sentence, as_json)


def info(model: Model, as_json: Json = False) -> None:
    """Show what a model is about: its variables, their levels, its rank, how it was fitted.

    Of a file of replicates, also how many there are and how the data were resampled.
    """
    from jointpmf.command.printing import domain_table, plain_table, variable_for_json
    from jointpmf.command.sureness import replicates_in

    found, replicates = replicates_in(model) or (read_model(model), None)
    spaces = [
        {"traits": space.n_traits, "waves": len(space.phases), "points": len(space.points)}
        for space in (one.space for one in found.trait_models)
    ]
    if as_json:
        content = {
            "rank": len(found.weights),
            "components": found.component_names,
            **({"traits": spaces} if spaces else {}),
            "variables": [variable_for_json(variable) for variable in found.domain],
            "about": found.about,
            **({} if replicates is None else {"replicates": replicates}),
        }
        print_json(content)
        return
    where = console()
    where.print(domain_table(found.domain))
    table = plain_table("fitted" if replicates is None else "replicates", "")
    topics: Mapping[str, Any] = replicates or found.about or {"rank": len(found.weights)}
    for key, fact in topics.items():
        table.add_row(key, Text(str(fact)))
    if found.component_names is not None:
        table.add_row("components", Text(", ".join(found.component_names)))
    for space in spaces:
        table.add_row("space", Text(", ".join(f"{n} {what}" for what, n in space.items())))
    where.print()
    where.print(table)
