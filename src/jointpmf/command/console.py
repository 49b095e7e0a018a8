"""Where commands print: people get sentences and tables, machines get JSON."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console
from rich.text import Text

_PIPE_WIDTH = 160
"""Characters in a line of output that does not go to a terminal."""


def console(stderr: bool = False, quiet: bool = False) -> Console:
    """Return where to print; output that is not a terminal has room for long lines."""
    found = Console(stderr=stderr, quiet=quiet)
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found.width = _PIPE_WIDTH
    return found


def print_json(content: Any, where: Console | None = None) -> None:
    """Print content on one line that a machine can read."""
    from jointpmf.command.printing import json_text

    text = json_text(content)
    where = where or console()
    where.print(text, soft_wrap=True, markup=False, highlight=False, emoji=False)


def say(output: str, content: dict[str, Any], sentence: str, as_json: bool) -> None:
    """Say what was written to a file; what went to stdout speaks for itself."""
    if output == "-":
        return
    if as_json:
        print_json(content)
    else:
        console().print(Text(sentence), soft_wrap=True)


def warn(sentence: str) -> None:
    """Print a warning on stderr."""
    console(stderr=True).print(Text(f"jointpmf: {sentence}", style="yellow"), soft_wrap=True)


def complain(sentence: str) -> None:
    """Print on stderr, on one line, what was wrong."""
    text = Text.assemble(("jointpmf: ", "bold red"), " ".join(sentence.split()))
    console(stderr=True).print(text, soft_wrap=True)
