"""The arguments and options that several commands share, and groups of options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from jointpmf.errors import JointPMFError

TABLES = (
    "CSV, TSV, NDJSON (also .gz, .zst), Parquet, Arrow IPC or a spreadsheet, a folder of Parquet "
    "files, or - for stdin."
)

MOST = 10**9
"""What an option that counts something may be at most: more could not be counted to."""

Model = Annotated[str, typer.Argument(help="A model file, or - for stdin.", show_default=False)]
Data = Annotated[str, typer.Argument(help=TABLES, show_default=False)]
Opened = Annotated[bool, typer.Option("--open", help="Open it in the browser.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.", min=0)]
Given = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=LEVEL",
        help="What is known; several possible levels as NAME=one|other. May be repeated.",
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
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A column that holds what each row counts for; it is not a variable of the model.",
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
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write: .csv, .tsv, .ndjson (also .gz, .zst), .parquet, .arrow or .xlsx; - "
        "is stdout, as CSV.",
    ),
]
Escaped = Annotated[
    bool,
    typer.Option(
        "--escape",
        help="For spreadsheets: in CSV and TSV, put an apostrophe before each name and cell of "
        "text that begins with =, +, - or @ and is no number, which would run as a formula.",
    ),
]


def page_output(default: str) -> Any:
    """Return the option that says where a page is written."""
    return typer.Option(
        "--output", "-o", metavar="FILE", help="Where to write; - is stdout.", show_default=default
    )


def check_choice(text: str, option: str, choices: Sequence[str]) -> None:
    """Raise unless an option has one of the values that it may have."""
    if text not in choices:
        raise JointPMFError(f"--{option} must be {' or '.join(choices)}, not {text!r}")


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command for typer in which each parameter that is a dataclass becomes its options.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int
    ...     height: int = 1
    >>> def area(size: Size, scale: int) -> int:
    ...     return scale * size.width * size.height
    >>> list(inspect.signature(grouped(area)).parameters)
    ['width', 'height', 'scale']
    >>> grouped(area)(width=3, height=2, scale=10)
    60
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for one in _parameters(command, hints):
        kind = groups.get(one.name)
        own = get_type_hints(kind, include_extras=True) if kind else {}
        parameters += _parameters(kind, own) if kind else [one]

    @wraps(command)
    def run(**given: Any) -> Any:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameters(function: Callable[..., Any], hints: Mapping[str, Any]) -> list[inspect.Parameter]:
    """Return what a function takes, with the types themselves instead of their names."""
    return [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name])
        for one in inspect.signature(function).parameters.values()
    ]
