"""Commands that write HTML pages: `explore`, `report`."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jointpmf.command.console import console, say, warn
from jointpmf.command.models import check_replaces_nothing, check_stdin, read_model, read_pmf
from jointpmf.command.options import (
    Data,
    Json,
    Missing,
    Model,
    Opened,
    Seed,
    Unknown,
    Weights,
    check_choice,
    page_output,
)
from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes
    from jointpmf.domain import Domain
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.pmf import JointPMF


def explore(
    model: Model,
    output: Annotated[str | None, page_output("the model's name with .html")] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="A table, to show which pairs of variables depend on each other in it beyond what "
            "the model explains.",
            show_default=False,
        ),
    ] = None,
    is_opened: Opened = False,
    missing: Missing = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page in which the model answers clicks; it needs no network.

    The page holds the whole model: whoever has the page has the model. Bars have whiskers if there
    are replicates beside the model, which fit --replicates writes. It holds no rows.
    """
    from jointpmf.show.explorer.page import page_bytes

    source = _source(model)
    output = os.path.splitext(source)[0] + ".html" if output is None else output
    # pages are shared: they should not tell where files are on this machine
    name = os.path.basename(source) if os.path.isabs(source) else source
    _check_page(output, is_opened, model, rows or "")
    check_stdin(model, rows or "")
    pmf = read_pmf(model)
    codes = None if rows is None else _codes(rows, pmf.domain, missing or [])
    content = page_bytes(pmf, name, _replicates(model, pmf), codes)
    _put_page(content, output, {"output": output}, f"Written to {output}.", as_json, is_opened)


def report(
    model: Model,
    data: Data,
    output: Annotated[str | None, page_output("the model's name with -report.html")] = None,
    ranks: Annotated[
        str | None,
        typer.Option(
            metavar="1-6",
            help="Also try these ranks, and show which one predicts held-out rows best.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(help="What stands above it all.", show_default="the model's name"),
    ] = None,
    is_opened: Opened = False,
    unknown: Unknown = "error",
    missing: Missing = None,
    weights: Weights = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write one HTML page on a model and the table it was fitted to, for a colleague to read.

    It says what to watch out for, what the components are, how well the model fits, how the
    variables are distributed, whether the fit is unique and converged. It holds no rows. A file
    whose name ends with .json is written as plain data. Bars have whiskers if there are replicates
    beside the model, which fit --replicates writes.
    """
    from jointpmf.command.arguments import ranks_of
    from jointpmf.command.report import findings_in
    from jointpmf.show.report.page import content_for
    from jointpmf.show.report.subject import Subject

    check_choice(unknown, "unknown", ("error", "missing"))
    asked = None if ranks is None else ranks_of(ranks)
    source = _source(model)
    output = os.path.splitext(source)[0] + "-report.html" if output is None else output
    _check_page(output, is_opened, model, data)
    check_stdin(model, data)
    subject = Subject.of_file(read_model(model))
    is_shown = console(stderr=True).is_terminal
    found = findings_in(subject, data, missing or [], unknown, asked, seed, is_shown, weights)
    found = replace(found, uncertainty=_replicates(model, subject.pmf))
    content = content_for(output, found, title or os.path.splitext(os.path.basename(source))[0])
    rows = None if found.tally is None else found.tally.n_rows
    said = {"output": output, "rows": rows, "warnings": found.warnings}
    warned = f"{len(found.warnings) or 'nothing'} to watch out for"
    _put_page(content, output, said, f"Written to {output}; {warned}.", as_json, is_opened)


def _replicates(model: str, pmf: JointPMF) -> Uncertainty | None:
    """Return the replicates beside a model's file; None, which is said, if they are of no use."""
    from jointpmf.judge.replicate_file import read_beside, replicates_path
    from jointpmf.judge.uncertainty import Uncertainty

    if model == "-" or not os.path.exists(replicates_path(model)):
        return None
    try:
        return Uncertainty(*read_beside(model, pmf))
    except JointPMFError as error:
        warn(f"{error}; no intervals are shown")
        return None


def _codes(data: str, domain: Domain, missing: list[str]) -> Codes:
    """Return the rows of a table on disk."""
    import numpy as np

    from jointpmf.data.codes import Codes
    from jointpmf.data.file_codes import coded_batches
    from jointpmf.data.table_files import open_table

    with open_table(data, missing) as table:
        parts = [codes.array for _, codes in coded_batches(table, domain)]
    if not sum(map(len, parts)):
        raise JointPMFError(f"{data} has no rows")
    return Codes(domain, np.concatenate(parts))


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
    say(output, said, sentence, as_json)
    if is_opened:
        _open(output)


def _check_page(output: str, is_opened: bool, model: str, data: str = "") -> None:
    """Raise if a page cannot be opened, or would replace what it is made from."""
    from jointpmf.judge.replicate_file import replicates_path

    if output == "-" and is_opened:
        raise JointPMFError("--open needs a file; stdout cannot be opened")
    beside = "" if model == "-" else str(replicates_path(model))
    sources = {"model": model, "replicates": beside, "data": data}
    check_replaces_nothing(output, "page", sources)


def _open(path: str) -> None:
    import webbrowser
    from pathlib import Path

    if not webbrowser.open(Path(path).resolve().as_uri()):
        logging.getLogger("jointpmf").warning("no browser was found; open %s in one", path)
