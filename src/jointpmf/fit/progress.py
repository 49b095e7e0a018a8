"""Progress bars for long work, on stderr and only where they were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_bar(title: str, total: int, is_shown: bool) -> Iterator[Callable[[str], None]]:
    """Show a bar that is gone when the work is done, and give what moves it on by one.

    Examples
    --------
    >>> with progress_bar("fitting", 2, is_shown=False) as advance:
    ...     advance("rank 1")
    """
    if not is_shown:
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=total)
        yield lambda what: bar.update(task, advance=1, description=f"{title}: {what}")


@contextmanager
def iteration_bar(max_iter: int, is_shown: bool) -> Iterator[Callable[[Any, Any], None] | None]:
    """Show the iterations of a fit, and give the callback that does it; or give none."""
    if not is_shown:
        yield None
        return
    with progress_bar("fitting", max_iter, is_shown=True) as advance:
        yield lambda step, pmf: advance(f"objective {step.objective:.6g}")
