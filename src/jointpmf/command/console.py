"""Where commands print: people get sentences and tables, machines get JSON."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from jointpmf.errors import on_lines, sentence

_PIPE_WIDTH = 160
"""Characters in a line of output that does not go to a terminal."""

_PLAIN = {"…": "...", "░": "-", "–": "-", "−": "-", "×": "x"} | dict.fromkeys("▏▎▍▌▋▊▉█", "#")
"""What is printed instead of characters that a terminal of few characters lacks; else a ?."""


class _Screen(Console):
    """A console on which names are only shown: none of their characters moves the cursor."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return what is printed of a text, a table or what else there is."""
        if isinstance(renderable, str):
            renderable = on_lines(renderable)
        elif isinstance(renderable, Text):
            renderable = renderable.copy()
            renderable.plain = on_lines(renderable.plain)
        return super().render(renderable, options)


def open_streams() -> None:
    """Make sure that there is a stdin, stdout and stderr, and that any text can be printed.

    A file that is opened while one of them is closed would take its place. To write to a closed
    stdout stays an error, as it is with any other command.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            flags = os.O_WRONLY if name == "stderr" else os.O_RDONLY
            place = os.open(os.devnull, flags)
            if place != number:
                os.dup2(place, number)
                os.close(place)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    codecs.register_error("jointpmf", _in_plain_characters)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="jointpmf")


def _in_plain_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end


def console(stderr: bool = False, quiet: bool = False) -> Console:
    """Return where to print; output that is not a terminal has room for long lines."""
    found = _Screen(stderr=stderr, quiet=quiet)
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found.width = _PIPE_WIDTH
    return found


def print_json(content: Any, where: Console | None = None) -> None:
    """Print content on one line that a machine can read."""
    from jointpmf.command.printing import json_text

    where = where or console()
    text = json_text(content, is_ascii=not where.encoding.startswith("utf"))
    where.print(text, soft_wrap=True, markup=False, highlight=False, emoji=False)


def say(output: str, content: dict[str, Any], text: str, as_json: bool) -> None:
    """Say what was written to a file; what went to stdout speaks for itself."""
    if output == "-":
        return
    if as_json:
        print_json(content)
    else:
        console().print(Text(text), soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning on stderr, on one line."""
    console(stderr=True).print(Text(f"jointpmf: {sentence(text)}", "yellow"), soft_wrap=True)


def complain(text: str) -> None:
    """Print on stderr, on one line, what was wrong."""
    line = Text.assemble(("jointpmf: ", "bold red"), sentence(" ".join(text.split())))
    console(stderr=True).print(line, soft_wrap=True)
