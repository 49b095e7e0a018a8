"""Progress is a callback: what the user gave, a bar on stderr, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jointpmf.errors import JointPMFError, at_least_zero, shown, true_or_false, whole_number
from jointpmf.pmf import JointPMF
from jointpmf.solvers.loop import Best, Loop, Step

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.fit.solution import Callback
    from jointpmf.point import Point


@contextmanager
def progress_bar(title: str, total: int | None, is_shown: bool) -> Iterator[Callable[[str], None]]:
    """Show a bar that is gone when the work is done, and give what moves it on by one.

    Examples
    --------
    >>> with progress_bar("fitting", 2, is_shown=False) as advance:
    ...     advance("rank 1")
    """
    if not true_or_false(is_shown, "verbose"):
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    # no time that is left: steps take very different times, and a fit ends when it has converged
    counted = () if total is None else (MofNCompleteColumn(),)
    columns = (TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=total)
        yield lambda what: bar.update(task, advance=1, description=f"{title}: {what}")


@contextmanager
def watched_loop(
    max_iter: Any,
    tol: Any,
    callback: Callback | None,
    verbose: bool,
    domain: Domain,
    defaults: tuple[int, float],
    best: Best | None = None,
) -> Iterator[Loop]:
    """Give the loop of a fit: its limits, or the default ones, and what watches it."""
    if callback is not None and not callable(callback):
        raise JointPMFError(f"the callback must be callable, not {shown(callback)}")
    loop = checked_loop(max_iter, tol, defaults)
    with progress_bar("fitting", None, verbose) as advance:

        def watch(step: Step, point: Point) -> Any:
            stage = f"{step.stage}, " if step.stage else ""
            advance(f"{stage}iteration {step.iteration}, objective {step.objective:.6g}")
            return callback is not None and callback(step, JointPMF.at(point, domain))

        is_watched = verbose or callback is not None
        yield replace(loop, callback=watch if is_watched else None, best=best)


def checked_loop(max_iter: Any, tol: Any, defaults: tuple[int, float]) -> Loop:
    """Return a loop with these limits, or the default ones where they are None."""
    return Loop(
        whole_number(defaults[0] if max_iter is None else max_iter, "max_iter", 0),
        at_least_zero(defaults[1] if tol is None else tol, "tol"),
    )


def in_stage(loop: Loop, stage: str) -> Loop:
    """Return a loop whose lines say which of several fits they belong to."""
    if loop.callback is None:
        return loop
    told = loop.callback

    def callback(step: Step, point: Point) -> Any:
        whole = f"{stage}, {step.stage}" if step.stage else stage
        return told(step._replace(stage=whole), point)

    return replace(loop, callback=callback)
