"""The command: a list of its parts, and how any of them ends.

Nothing heavy is imported before a command runs, so that help and completion are quick.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer

from jointpmf.command import asking, checking, fitting, identifying, pages, population
from jointpmf.command.console import complain, open_streams, warn
from jointpmf.errors import JointPMFError

BAD_INPUT, INTERRUPTED = 2, 130
"""Exit codes; `fitting.NOT_CONVERGED` is another."""

_COMMAND_EXAMPLES: dict[Callable[..., Any], str] = {
    fitting.fit: "fit survey.csv -o survey.safetensors --classes --bins age=6 --drop person",
    asking.query: 'query survey.safetensors --of vote --given "age=<30|30..44"',
    pages.explore: "explore survey.safetensors --open",
    pages.report: "report survey.safetensors survey.csv --open",
    asking.impute: "impute survey.safetensors holes.csv -o tables.csv --draws 20",
    checking.check: "check tables.toml",
    asking.sample: "sample survey.safetensors -n 5 --given vote=Dole",
    population.population: "population survey.safetensors -n 999 --match tables.toml -o people.csv",
    asking.score: "score survey.safetensors survey.csv --worst 20",
    asking.classes: "classes survey.safetensors survey.csv -o classes.csv --keep person",
    asking.info: "info survey.safetensors",
    identifying.identify: "identify --sizes 10,10,10,10,10 --order 3 --rank 5",
    identifying.demo: "demo",
    identifying.version: "version",
}
"""All commands in the order in which the help lists them, and an example of each."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command, _example in _COMMAND_EXAMPLES.items():
    app.command(epilog=f"Example:  jointpmf {_example}")(_command)


@app.callback(epilog="Try it on a real survey:  jointpmf demo")
def options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error was raised.")
    ] = False,
) -> None:
    """Learn the joint distribution of many discrete variables, and ask it anything.

    Exit codes: 0 fine, 2 usage or bad input, 3 not converged.
    """


class _Sentences(logging.Handler):
    """Shows what the library warns of, a line each on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one warning."""
        warn(record.getMessage())


@cache
def _command_line() -> Any:
    """Return the command with all its options, which take longer to read than many an answer."""
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; bad input is one sentence on stderr and exit code 2.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line by default.
    """
    open_streams()
    is_process = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    handler = _Sentences(logging.WARNING)
    logging.getLogger("jointpmf").addHandler(handler)
    try:
        code = _command_line()(
            args=[argument for argument in arguments if argument != "--debug"],
            prog_name="jointpmf",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except SystemExit as ended:  # what typer and rich make of a reader that has had enough
        code = _exit_code(ended.__context__ or ended)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        if debug:
            raise
        code = _exit_code(error)
    finally:
        logging.getLogger("jointpmf").removeHandler(handler)
    if is_process:  # nothing is left to interrupt, and Python would show where in its end it was
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if code == INTERRUPTED:
        complain("interrupted before there was anything to write")
    raise SystemExit(code or 0)


def _exit_code(error: BaseException) -> int:
    """Say what was wrong in one sentence, and return the code to end with."""
    if isinstance(error, JointPMFError):
        complain(str(error))
    elif hasattr(error, "format_message"):  # the usage was wrong; typer has no public name for that
        if error.format_message():  # without any argument the help was shown, which is enough
            complain(_usage_sentence(error))
    elif isinstance(error, OSError):
        _forget_stdout()
        if "Broken pipe" in str(error):  # whoever reads the output has had enough of it
            return 0
        closed = os.strerror(errno.EBADF) in str(error)
        complain(f"cannot write the output: {'stdout is closed' if closed else _reason(error)}")
    elif isinstance(error, MemoryError):
        complain(f"there is not enough memory: {error}")
    else:
        complain(f"unexpected {type(error).__name__}: {error} (--debug shows where)")
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


def _forget_stdout() -> None:
    """Send what is still buffered nowhere, or Python would complain again at its end."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
