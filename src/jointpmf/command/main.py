"""The command: arguments → library calls → what a person or a machine reads.

Nothing heavy is imported before a command runs, so that help and completion are quick.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    import polars as pl

    from jointpmf.command.fit import Fitted
    from jointpmf.model_file import ModelFile
    from jointpmf.pmf import JointPMF

PIPE_WIDTH = 160

BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 2, 3, 130

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[str, typer.Argument(help="A model file, or - for stdin.", show_default=False)]
Data = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, NDJSON (also .gz, .zst) or Parquet, a folder of Parquet files, or - for "
        "stdin.",
        show_default=False,
    ),
]
Opened = Annotated[bool, typer.Option("--open", help="Open it in the browser.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.", min=0)]
Given = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=LEVEL",
        help="What is known; several levels as NAME=one|other. May be repeated.",
        show_default=False,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="What means missing in text files, besides an empty cell, NA, NaN and null.",
        show_default=False,
    ),
]
Unknown = Annotated[
    str,
    typer.Option(
        metavar="error|missing", help="What to do with levels that the model does not know."
    ),
]
Output = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is stdout, as CSV."),
]


@app.callback(epilog="Try it on a real survey:  jointpmf demo")
def options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error was raised.")
    ] = False,
) -> None:
    """Learn the joint distribution of many discrete variables, and ask it anything.

    Exit codes: 0 fine, 2 usage or bad input, 3 not converged.
    """


@app.command(
    epilog='Example:  jointpmf fit survey.csv -o survey.safetensors --bins age=6 --drop "person"'
)
def fit(
    data: Annotated[
        list[str],
        typer.Argument(
            help="A table of rows, with missing cells if need be: CSV, TSV, NDJSON (also .gz, "
            ".zst) or Parquet, a folder of Parquet files, or - for stdin. With --marginals: "
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
        str, typer.Option(metavar="auto|N", help="Components; auto holds rows out to find it.")
    ] = "auto",
    method: Annotated[str, typer.Option(metavar="likelihood|marginals")] = "likelihood",
    marginals: Annotated[
        bool,
        typer.Option(
            "--marginals",
            help="The files are tables of counts: a column per variable, and a last one "
            "count or probability.",
        ),
    ] = False,
    order: Annotated[int, typer.Option(help="Of the marginals, for that method.", min=1)] = 3,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=8",
            help="Cut numbers into so many parts of equal count, or at edges: NAME=0,18,65,120.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Columns to use.", show_default=False),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Columns to leave out.", show_default=False),
    ] = None,
    missing: Missing = None,
    smoothing: Annotated[
        float | None,
        typer.Option(
            help="Pseudo-counts per level and component.",
            show_default="found by itself with --rank auto, else 0",
        ),
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option(help="Budget of iterations.", show_default=False)
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(help="Improvement that ends the fit.", show_default=False),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Leave there how far the fit is: killed, the same command goes on from it.",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="2GB",
            help="What the whole command may take; rows that do not fit are kept on disk, as "
            "codes, in the folder that TMPDIR names.",
            show_default="half of what is free",
        ),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Learn a model from a table of rows, or from published tables, and write it to a file.

    Ctrl-C writes the best model so far. Files may be larger than memory, for instance with
    jointpmf fit rows.parquet -o model.safetensors --rank 5 --memory 1GB
    """
    from jointpmf.command.arguments import bytes_of, rank_of
    from jointpmf.command.fit import FitJob

    _check_place(output)
    job = FitJob(
        data=data,
        is_marginals=marginals,
        rank=rank_of(rank),
        method=method,
        order=order,
        bins=bins or [],
        only=only or [],
        drop=drop or [],
        missing=missing or [],
        seed=seed,
        smoothing=smoothing,
        max_iter=max_iter,
        tol=tol,
        checkpoint=checkpoint,
        memory=None if memory is None else bytes_of(memory),
    )
    fitted = job.run(_console(stderr=True))
    _write_model(output, fitted)
    _say_how_it_went(fitted, output, as_json)
    return 0 if fitted.is_finished else NOT_CONVERGED


def _check_place(output: str) -> None:
    """Raise now rather than after a long fit if a file cannot be written there."""
    folder = os.path.dirname(os.path.realpath(output))
    if output != "-" and not os.path.isdir(folder):
        raise JointPMFError(f"cannot write {output}: there is no directory {folder}")
    if os.path.isdir(output):
        raise JointPMFError(f"cannot write {output}: it is a directory")


def _write_model(output: str, fitted: Fitted) -> None:
    from jointpmf.model_file import model_bytes, write_model

    pmf = fitted.solution.pmf
    if output == "-":
        content = model_bytes(pmf.domain, pmf.weights, pmf.factors, fitted.about)
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    else:
        write_model(output, pmf.domain, pmf.weights, pmf.factors, fitted.about)


def _say_how_it_went(fitted: Fitted, output: str, as_json: bool) -> None:
    from jointpmf.command.printing import json_text

    console = _console(stderr=output == "-")
    solution = fitted.solution
    if as_json:
        _print_json(
            console,
            json_text(
                {
                    "model": output,
                    "status": solution.status.name,
                    "converged": fitted.is_finished,
                    "objective": solution.objective,
                    "rank": solution.pmf.rank,
                    "variables": solution.pmf.domain.names,
                    "about": fitted.about,
                }
            ),
        )
        return
    console.print(solution.status.value, style=None if fitted.is_finished else "yellow")
    size = ", ".join(f"{fitted.about[k]} {k}" for k in ("rows", "tables") if k in fitted.about)
    console.print(
        Text(
            f"{size + ', ' if size else ''}{len(solution.pmf.domain)} variables, "
            f"rank {solution.pmf.rank}, objective {solution.objective:.6g}"
            f"{f' ({solution.start})' if solution.start else ''}"
        )
    )
    console.print(Text(f"Written to {'stdout' if output == '-' else output}."))


@app.command(
    epilog='Example:  jointpmf query survey.safetensors --of vote --given "age=<30|30..44"'
)
def query(
    model: Model,
    of: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="What to ask for; repeated, their joint distribution.",
            show_default=False,
        ),
    ],
    given: Given = None,
    top: Annotated[int, typer.Option(help="Rows to show, the most likely first.", min=1)] = 40,
    as_json: Json = False,
) -> None:
    """Print the distribution of some variables, given what is known of others."""
    from jointpmf.command.printing import Answer, json_text
    from jointpmf.domain import evidence_of

    pmf = _pmf(model)
    pmf.domain.indices(of)
    evidence = evidence_of(pmf.domain, given or [])
    for name in of:
        if name in evidence:
            raise JointPMFError(f"{name!r} is both asked for and given")
    answer = Answer(pmf.condition(evidence).marginal(of), evidence)
    if as_json:
        _print_json(_console(), json_text(answer.for_json()))
    else:
        answer.show(_console(), top)


@app.command(epilog="Example:  jointpmf explore survey.safetensors --open")
def explore(
    model: Model,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write; - is stdout.",
            show_default="the model's name with .html",
        ),
    ] = None,
    is_opened: Opened = False,
    as_json: Json = False,
) -> None:
    """Write one HTML page in which the model answers clicks; it needs no network.

    The page holds the whole model: who has the page has the model.
    """
    from jointpmf.show.explorer.page import page_bytes

    source = _source(model)
    output = os.path.splitext(source)[0] + ".html" if output is None else output
    # a page is shared, and where things lie on this machine is nobody's business
    name = os.path.basename(source) if os.path.isabs(source) else source
    _check_page(output, is_opened, {"model": model})
    found = _model(model)
    content = page_bytes(found.domain, found.weights, found.factors, name)
    _put_page(content, output, {"output": output}, f"Written to {output}.", as_json, is_opened)


@app.command(epilog="Example:  jointpmf report survey.safetensors survey.csv --open")
def report(
    model: Model,
    data: Data,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write; - is stdout.",
            show_default="the model's name with -report.html",
        ),
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(
            metavar="1-6",
            help="Also try these ranks on rows held out, and show which does best.",
            show_default=False,
        ),
    ] = None,
    is_opened: Opened = False,
    unknown: Unknown = "error",
    missing: Missing = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write one HTML page on a model and the table it was fitted to, for a colleague to read.

    What was fitted, how many holes there are, did it converge, is it unique, how well does it
    fit, its components in words, and what to watch out for. The page holds no rows.
    """
    from jointpmf.command.arguments import ranks_of
    from jointpmf.command.report import findings_in
    from jointpmf.show.report.page import report_bytes
    from jointpmf.show.report.subject import Subject

    _check_choice(unknown, "unknown", ("error", "missing"))
    asked = None if ranks is None else ranks_of(ranks)
    source = _source(model)
    output = os.path.splitext(source)[0] + "-report.html" if output is None else output
    _check_page(output, is_opened, {"model": model, "data": data})
    _check_both(model, data)
    subject = Subject.of_file(_model(model))
    found = findings_in(
        subject, data, missing or [], unknown, asked, seed, _console(stderr=True).is_terminal
    )
    content = report_bytes(found, os.path.splitext(os.path.basename(source))[0])
    rows = None if found.tally is None else found.tally.n_rows
    said = {"output": output, "rows": rows, "warnings": found.warnings}
    warned = f"{len(found.warnings) or 'nothing'} to watch out for"
    _put_page(content, output, said, f"Written to {output}; {warned}.", as_json, is_opened)


def _source(model: str) -> str:
    """Return the name of a model's file, also where it comes from stdin."""
    return "model.safetensors" if model == "-" else model


def _put_page(
    content: bytes, output: str, said: dict[str, Any], sentence: str, as_json: bool, is_opened: bool
) -> None:
    """Write a page to a file or to stdout, say so, and show it if that is asked for."""
    from jointpmf.output import atomic_output

    if output == "-":
        sys.stdout.buffer.write(content)
        return
    with atomic_output(output) as file:
        file.write(content)
    _say(output, said, sentence, as_json)
    if is_opened:
        _open(output)


def _check_page(output: str, is_opened: bool, sources: dict[str, str]) -> None:
    """Raise if a page cannot be opened, or would replace what it is made from."""
    if output == "-" and is_opened:
        raise JointPMFError("--open needs a file; stdout cannot be opened")
    for what, path in sources.items():
        is_stream = "-" in (output, path)  # what comes from stdin is not what goes to stdout
        if not is_stream and os.path.realpath(output) == os.path.realpath(path):
            raise JointPMFError(f"the page would replace the {what} {path}; give another --output")


def _open(path: str) -> None:
    import webbrowser
    from pathlib import Path

    if not webbrowser.open(Path(path).resolve().as_uri()):
        logging.getLogger("jointpmf").warning("no browser was found; open %s in one", path)


@app.command(epilog="Example:  jointpmf impute survey.safetensors holes.csv -o whole.csv")
def impute(
    model: Model,
    data: Data,
    output: Output = "-",
    strategy: Annotated[
        str,
        typer.Option(
            metavar="mode|median|expectation|sample",
            help="The most likely level, the median one, the expected value, or a draw.",
        ),
    ] = "mode",
    unknown: Unknown = "error",
    missing: Missing = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fill the missing cells of a table; columns that the model does not know stay as they are."""
    import numpy as np

    from jointpmf.data.file_codes import coded_batches
    from jointpmf.data.table_files import open_table
    from jointpmf.data.table_output import check_output, table_output
    from jointpmf.predict.impute import STRATEGIES
    from jointpmf.predict.impute import impute as impute_cells

    check_output(output)
    _check_choice(unknown, "unknown", ("error", "missing"))
    _check_choice(strategy, "strategy", STRATEGIES)
    pmf = _pmf(model, data)
    generator = np.random.default_rng(seed)
    n_rows = n_filled = 0
    with open_table(data, missing or []) as table, table_output(output, as_json) as write:
        for batch, codes in coded_batches(table, pmf.domain, unknown):  # type: ignore[arg-type]
            known = [name for name in pmf.domain.names if name in batch.columns]
            filled = impute_cells(pmf, batch, _strategies(pmf, known, strategy), generator)
            n_rows += len(batch)
            n_filled += int((codes.array[:, pmf.domain.indices(known)] < 0).sum())
            write(filled.select(batch.columns))
    _say(
        output,
        {"rows": n_rows, "filled": n_filled, "output": output},
        f"{n_filled} cells of {n_rows} rows filled; written to {output}.",
        as_json,
    )


def _strategies(pmf: JointPMF, known: Sequence[str], strategy: str) -> dict[str, str]:
    """Return the strategy of each column: levels without values have a mode, but no mean."""
    if strategy != "expectation":
        return dict.fromkeys(known, strategy)
    return {name: "mode" if pmf.domain[name].values is None else "expectation" for name in known}


@app.command(epilog="Example:  jointpmf plan --rows 1e6 --variables 1000 --levels 4 --rank 10")
def plan(
    rows: Annotated[float, typer.Option(help="Rows of the table.", show_default=False)],
    variables: Annotated[int, typer.Option(help="Its variables.", show_default=False)],
    levels: Annotated[int, typer.Option(help="Levels of each.", show_default=False)],
    rank: Annotated[int, typer.Option(help="Components.", show_default=False)],
    method: Annotated[str, typer.Option(metavar="likelihood|marginals")] = "likelihood",
    order: Annotated[int, typer.Option(help="Of the marginals, for that method.")] = 3,
    iterations: Annotated[int, typer.Option(help="That the fit is expected to take.")] = 100,
    as_json: Json = False,
) -> None:
    """Print what a fit would cost on this machine: passes, memory, work and time."""
    from dataclasses import asdict

    from jointpmf.command.printing import json_text
    from jointpmf.fit.forecast import plan as planned

    if rows != int(rows):
        raise JointPMFError(f"--rows must be a whole number, not {rows:g}")
    found = planned(int(rows), variables, levels, rank, method, order, iterations)
    if as_json:
        _print_json(_console(), json_text(asdict(found)))
    else:
        _console().print(str(found), highlight=False)


@app.command(epilog="Example:  jointpmf sample survey.safetensors -n 5 --given vote=Dole")
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", "--rows", help="How many rows.", min=0)] = 10,
    given: Given = None,
    output: Output = "-",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw rows from the model, given what is known."""
    from jointpmf.data.table_output import check_output, table_output
    from jointpmf.domain import evidence_of

    check_output(output)
    pmf = _pmf(model)
    rows: pl.DataFrame = pmf.sample(n, evidence_of(pmf.domain, given or []) or None, seed)
    with table_output(output, as_json) as write:
        write(rows)
    _say(output, {"rows": n, "output": output}, f"{n} rows written to {output}.", as_json)


@app.command(epilog="Example:  jointpmf score survey.safetensors survey.csv --worst 20")
def score(
    model: Model,
    data: Data,
    worst: Annotated[
        int | None,
        typer.Option(help="Only so many rows, the least likely first.", min=1, show_default=False),
    ] = None,
    output: Output = "-",
    unknown: Unknown = "error",
    missing: Missing = None,
    as_json: Json = False,
) -> None:
    """Print the log-likelihood of each row, or show the least likely rows.

    Rows are counted from 0. Missing cells are summed out.
    """
    from jointpmf.command.score import scored_batches, worst_rows, worst_table
    from jointpmf.data.table_files import open_table
    from jointpmf.data.table_output import check_output, table_output

    check_output(output)
    _check_choice(unknown, "unknown", ("error", "missing"))
    pmf = _pmf(model, data)
    n_rows, total = 0, 0.0
    with open_table(data, missing or []) as table:
        batches = scored_batches(pmf, table, unknown)
        if worst is not None:
            rows = worst_rows(batches, worst)
            if output == "-" and not as_json:
                console = _console()
                console.print(worst_table(rows, console.width))
                return
            batches = iter([rows])
        with table_output(output, as_json) as write:
            for batch in batches:
                n_rows += len(batch)
                total += float(batch["log_probability"].sum())
                write(batch if worst is not None else batch.select("row", "log_probability"))
    mean = total / n_rows if n_rows else 0.0
    _say(
        output,
        {"rows": n_rows, "mean_log_probability": mean, "output": output},
        f"{n_rows} rows, {mean:.4f} on average; written to {output}.",
        as_json,
    )


@app.command(epilog="Example:  jointpmf info survey.safetensors")
def info(model: Model, as_json: Json = False) -> None:
    """Show what a model is about: its variables, their levels, its rank, how it was fitted."""
    from jointpmf.command.printing import domain_table, json_text, plain_table, variable_for_json

    found = _model(model)
    if as_json:
        content = {
            "rank": len(found.weights),
            "variables": [variable_for_json(variable) for variable in found.domain],
            "about": found.about,
        }
        _print_json(_console(), json_text(content))
        return
    console = _console()
    console.print(domain_table(found.domain))
    table = plain_table("fitted", "")
    for key, text in (found.about or {"rank": str(len(found.weights))}).items():
        table.add_row(key, Text(text))
    console.print()
    console.print(table)


@app.command(epilog="Example:  jointpmf identify --sizes 10,10,10,10,10 --order 3 --rank 5")
def identify(
    model: Annotated[
        str | None, typer.Argument(help="A model file, or - for stdin.", show_default=False)
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="10,10,10", help="Levels of each variable.", show_default=False),
    ] = None,
    order: Annotated[int, typer.Option(help="All marginals of so many variables.", min=1)] = 3,
    rank: Annotated[
        int | None,
        typer.Option(help="Number of components.", show_default="that of the model", min=1),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell whether marginals of some order determine a model of some rank."""
    from jointpmf import Domain, identifiability
    from jointpmf.command.arguments import sizes_of
    from jointpmf.command.printing import json_text

    if (model is None) == (sizes is None):
        raise JointPMFError("give either a model or --sizes")
    if sizes is not None:
        if rank is None:
            raise JointPMFError("--sizes needs --rank")
        report = identifiability(Domain.of_sizes(sizes_of(sizes)), rank, order=order)
    else:
        pmf = _pmf(str(model))
        at = pmf if rank in (None, pmf.rank) else None
        report = identifiability(pmf.domain, rank or pmf.rank, order=order, pmf=at)
    if as_json:
        _print_json(_console(), json_text({**asdict(report), "text": str(report)}))
    else:
        _console().print(Text(str(report)))


@app.command(epilog="Example:  jointpmf demo")
def demo(as_json: Json = False) -> None:
    """Learn a real survey with a fifth of its answers hidden, and guess them."""
    from jointpmf.command.demo import run
    from jointpmf.command.printing import json_text

    found = run(_console(quiet=as_json))
    if as_json:
        _print_json(_console(), json_text({"questions": [one._asdict() for one in found]}))


@app.command(epilog="Example:  jointpmf version")
def version(as_json: Json = False) -> None:
    """Print the version."""
    from jointpmf import __version__
    from jointpmf.command.printing import json_text

    typer.echo(json_text({"version": __version__}) if as_json else __version__)


def _console(stderr: bool = False, quiet: bool = False) -> Console:
    """Return where to print; what is not a terminal has room for long lines."""
    console = Console(stderr=stderr, quiet=quiet)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def _model(path: str) -> ModelFile:
    from jointpmf.model_file import read_model_file

    return read_model_file(sys.stdin.buffer if path == "-" else path)


def _pmf(path: str, data: str = "") -> JointPMF:
    from jointpmf.pmf import JointPMF

    _check_both(path, data)
    return JointPMF(*_model(path)[:3])


def _check_both(model: str, data: str) -> None:
    if model == data == "-":
        raise JointPMFError("the model and the data cannot both come from stdin")


def _check_choice(text: str, option: str, choices: Sequence[str]) -> None:
    if text not in choices:
        raise JointPMFError(f"--{option} must be {' or '.join(choices)}, not {text!r}")


def _say(output: str, content: dict[str, Any], sentence: str, as_json: bool) -> None:
    """Say what was written to a file; what went to stdout speaks for itself."""
    from jointpmf.command.printing import json_text

    if output == "-":
        return
    if as_json:
        _print_json(_console(), json_text(content))
    else:
        _console().print(Text(sentence), soft_wrap=True)


def _print_json(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False, emoji=False)


class _Sentences(logging.Handler):
    """Shows what the library warns of, a line each on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one warning."""
        _console(stderr=True).print(
            Text(f"jointpmf: {record.getMessage()}", style="yellow"), soft_wrap=True
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; bad input is one sentence on stderr and exit code 2.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line by default.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    handler = _Sentences(logging.WARNING)
    logging.getLogger("jointpmf").addHandler(handler)
    try:
        code = app(
            args=[argument for argument in arguments if argument != "--debug"],
            prog_name="jointpmf",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except Exception as error:
        if debug:
            raise
        code = _exit_code(error)
    finally:
        logging.getLogger("jointpmf").removeHandler(handler)
    if code == INTERRUPTED:
        _complain("interrupted before there was anything to write")
    raise SystemExit(code or 0)


def _exit_code(error: Exception) -> int:
    """Say what was wrong in one sentence, and return the code to end with."""
    if isinstance(error, JointPMFError):
        _complain(str(error))
    elif hasattr(error, "format_message"):  # the usage was wrong; typer has no public name for that
        if error.format_message():  # without any argument the help was shown, which is enough
            _complain(_usage_sentence(error))
    elif isinstance(error, OSError):
        _forget_stdout()
        if "Broken pipe" in str(error):  # whoever reads the output has had enough of it
            return 0
        _complain(f"cannot write the output: {_reason(error)}")
    elif isinstance(error, MemoryError):
        _complain(f"there is not enough memory: {error}")
    else:
        _complain(f"unexpected {type(error).__name__}: {error} (--debug shows where)")
        return 1
    return BAD_INPUT


def _reason(error: OSError) -> str:
    from jointpmf.output import reason_of

    return reason_of(error)


def _usage_sentence(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "jointpmf"
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message[:1].lower()}{message[1:]}; see {path} --help"


def _complain(sentence: str) -> None:
    _console(stderr=True).print(
        Text.assemble(("jointpmf: ", "bold red"), " ".join(sentence.split())), soft_wrap=True
    )


def _forget_stdout() -> None:
    """Send what is still buffered nowhere, or Python would complain again at its end."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
