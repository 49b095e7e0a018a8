"""The command: arguments → library calls → what a person reads."""

from __future__ import annotations

import typer
from rich.console import Console

from jointpmf import __version__
from jointpmf.errors import JointPMFError

app = typer.Typer(
    no_args_is_help=True,
    help="The joint probability mass function of many discrete variables.\n\n"
    "Try it on a real survey:  jointpmf demo",
)


@app.command()
def demo() -> None:
    """Learn a real survey with a fifth of its answers hidden, and guess them.

    Example:  jointpmf demo
    """
    from jointpmf.demo import run

    run(Console())


@app.command()
def version() -> None:
    """Print the version.

    Example:  jointpmf version
    """
    typer.echo(__version__)


def main() -> None:
    """Run the command; bad input is one sentence on stderr and exit code 2."""
    try:
        app()
    except JointPMFError as error:
        typer.echo(f"jointpmf: {error}", err=True)
        raise SystemExit(2) from None
