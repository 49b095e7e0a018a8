"""What follows a fit: it keeps the best model so far, and shows how far the fit is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from jointpmf.errors import on_line
from jointpmf.pmf import JointPMF
from jointpmf.solvers.loop import Step

_FIRST = "reading, and finding a start"
"""What a fit does before its first iteration."""


class FitWatch:
    """The callback of a fit.

    Parameters
    ----------
    show : callable
        Called with a line that says how far the fit is.

    Examples
    --------
    >>> lines = []
    >>> watch = FitWatch(lines.append)
    >>> watch(Step(1, 5.0, 0.1, 0.0, 0.0, stage="rank 2"), "a model")
    >>> watch.best, lines
    ('a model', ['rank 2, iteration 1, objective 5.000000'])
    """

    def __init__(self, show: Callable[[str], object]) -> None:
        self.show = show
        self.best: JointPMF | None = None
        self.step: Step | None = None
        self.history: list[Step] = []

    def __call__(self, step: Step, pmf: JointPMF) -> None:
        """Take note of one iteration."""
        if self.step is None or _cost(step) <= _cost(self.step):
            self.best, self.step = pmf, step
        if self.history and step.iteration <= self.history[-1].iteration:
            self.history.clear()  # another fit
        self.history.append(step)
        stage = f"{step.stage}, " if step.stage else ""
        self.show(f"{stage}iteration {step.iteration}, objective {step.objective:.6f}")


def _cost(step: Step) -> float:
    """Return what tells the better of two models, also of different ranks."""
    return step.objective if step.validation is None else step.validation


@contextmanager
def watched(console: Console) -> Iterator[FitWatch]:
    """Give what follows a fit; it is shown live if the console is a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    is_shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not is_shown) as bar:
        task = bar.add_task(_FIRST, total=None)

        def show(line: str) -> None:
            bar.update(task, description=on_line(line))

        watch = FitWatch(show)
        with _finds_shown(watch) if is_shown else nullcontext():
            yield watch


class _Finds(logging.Handler):
    """Shows what the library finds, and what it begins, until the next iteration is shown."""

    def __init__(self, watch: FitWatch) -> None:
        super().__init__(logging.INFO)
        self.watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        """Show one sentence; warnings are printed by themselves."""
        is_first = self.watch.step is None
        is_end = record.module == "loop"  # which says no more than the last iteration did
        if record.levelno < logging.WARNING and (is_first or not is_end):
            self.watch.show(f"{_FIRST}: {record.getMessage()}" if is_first else record.getMessage())


@contextmanager
def _finds_shown(watch: FitWatch) -> Iterator[None]:
    """Show what the library logs: to find a start may take longer than many iterations."""
    logger, handler = logging.getLogger("jointpmf"), _Finds(watch)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
