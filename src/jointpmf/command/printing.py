"""What the command shows: tables with bars for people, plain objects for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from jointpmf.domain import Domain, Variable, listing_of_texts, text_of
from jointpmf.pmf import JointPMF
from jointpmf.show.text import percent
from jointpmf.solvers.loop import Step

BAR_WIDTH = 30
EIGHTHS = " ▏▎▍▌▋▊▉█"

MAX_COLUMNS = 8
"""Levels of the second variable up to which two variables are shown as a crossed table."""

LOOK_BACK = 10
"""Iterations over which the pace of a fit is measured."""


def json_text(content: Any) -> str:
    """Return what a machine reads: levels that JSON does not have are text, no number is NaN.

    Examples
    --------
    >>> json_text({"level": True, "objective": float("-inf")})
    '{"level": true, "objective": null}'
    """
    return json.dumps(_for_json(content), ensure_ascii=False, allow_nan=False)


def _for_json(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(key): _for_json(item) for key, item in content.items()}
    if isinstance(content, (list, tuple)):
        return [_for_json(item) for item in content]
    if isinstance(content, np.generic):
        return _for_json(content.item())
    if isinstance(content, float) and not math.isfinite(content):
        return None
    if content is None or isinstance(content, (str, bool, int, float)):
        return content
    return text_of(content)


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """Return a bar that is `share` of the width long, to an eighth of a character.

    Examples
    --------
    >>> bar(0.5, width=5)
    '██▌'
    """
    eighths = round(8 * width * share)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


class Answer(NamedTuple):
    """What a query gives: the joint table of what was asked, and what was given."""

    pmf: JointPMF
    """Over the variables that were asked for, in the order asked."""
    given: Mapping[str, Sequence[Any]]

    @property
    def title(self) -> str:
        """What is shown, in words."""
        asked = " and ".join(self.pmf.domain.names)
        known = [f"{name} = {' or '.join(map(text_of, one))}" for name, one in self.given.items()]
        return f"{asked}, given {', '.join(known)}" if known else asked

    def rows(self) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Yield every combination of levels with its probability."""
        levels = product(*(variable.levels for variable in self.pmf.domain))
        return zip(levels, self.pmf.table().ravel().tolist(), strict=True)

    def moments(self) -> tuple[float, float] | None:
        """Return the mean and the standard deviation of a single variable that has values."""
        (first, *others) = self.pmf.domain
        if others or first.values is None or set(map(type, first.levels)) == {bool}:
            return None
        values, shares = np.array(first.values), self.pmf.table()
        mean = float(shares @ values)
        return mean, math.sqrt(max(float(shares @ (values - mean) ** 2), 0.0))

    def for_json(self) -> dict[str, Any]:
        """Return all of it as plain objects."""
        names = self.pmf.domain.names
        found: dict[str, Any] = {
            "of": names,
            "given": self.given,
            "distribution": [
                {"levels": dict(zip(names, levels, strict=True)), "probability": share}
                for levels, share in self.rows()
            ],
        }
        if moments := self.moments():
            found["mean"], found["standard_deviation"] = moments
        return found

    def show(self, console: Console, top: int) -> None:
        """Print it as a table."""
        console.print(Text(self.title, style="bold"))
        domain = self.pmf.domain
        if len(domain) == 2 and domain.sizes[1] <= MAX_COLUMNS and domain.sizes[0] <= top:
            console.print(self._crossed())
            return
        rows = list(self.rows())
        if len(domain) > 1 or len(rows) > top:
            rows = sorted(rows, key=lambda row: -row[1])
        console.print(_bar_table(domain.names, rows[:top]))
        if len(rows) > top:
            rest = sum(share for _, share in rows[top:])
            console.print(f"… and {len(rows) - top} less likely ones, {rest:.1%} together (--top)")
        if moments := self.moments():
            mean, deviation = moments
            console.print(f"mean {mean:.4g}, standard deviation {deviation:.4g}")

    def _crossed(self) -> Table:
        first, second = self.pmf.domain
        table = plain_table(first.name)
        for level in second.levels:
            table.add_column(Text(f"{second.name}\n{text_of(level)}"), justify="right")
        table.add_column("all", justify="right")
        shares = self.pmf.table()
        for level, row in zip(first.levels, shares, strict=True):
            table.add_row(Text(text_of(level)), *map(percent, row), percent(row.sum()))
        table.add_section()
        table.add_row("all", *map(percent, shares.sum(axis=0)), percent(1.0))
        return table


def plain_table(*headings: str) -> Table:
    """Return an empty table without lines around its cells."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(Text(heading))
    return table


def _bar_table(names: Iterable[str], rows: Sequence[tuple[tuple[Any, ...], float]]) -> Table:
    table = plain_table(*names)
    table.add_column("probability", justify="right")
    table.add_column("")
    most = max(share for _, share in rows) or 1.0
    for levels, share in rows:
        cells = [Text(text_of(level)) for level in levels]
        table.add_row(*cells, percent(share), Text(bar(share / most), style="cyan"))
    return table


def domain_table(domain: Domain) -> Table:
    """Return the variables and their levels as a table for people."""
    table = plain_table("variable")
    table.add_column("levels", justify="right")
    table.add_column("")
    for variable in domain:
        table.add_row(
            Text(variable.name, style="bold"),
            str(variable.size),
            Text(listing_of_texts(variable.levels)),
        )
    return table


def variable_for_json(variable: Variable) -> dict[str, Any]:
    """Return a variable as plain objects.

    Examples
    --------
    >>> variable_for_json(Variable("vote", ("no", "yes")))
    {'name': 'vote', 'levels': ('no', 'yes'), 'values': None, 'edges': None}
    """
    return {
        "name": variable.name,
        "levels": variable.levels,
        "values": variable.values,
        "edges": variable.edges,
    }


class FitWatch:
    """What follows a fit: it keeps the best model so far, and shows how far the fit is.

    Parameters
    ----------
    bar : Progress or None
        Where to show it.
    max_iter, tol : int, float
        The fit's budget and tolerance, from which the time that is left is estimated.

    Examples
    --------
    >>> watch = FitWatch(None, max_iter=100, tol=1e-6)
    >>> watch(Step(1, 5.0, 0.1, 0.0, 0.0), "a model")
    >>> watch.best, watch.step.objective
    ('a model', 5.0)
    """

    def __init__(self, bar: Progress | None, max_iter: int, tol: float) -> None:
        self.bar, self.max_iter, self.tol = bar, max_iter, tol
        self.task = None if bar is None else bar.add_task("finding a start", total=None, left="")
        self.best: JointPMF | None = None
        self.step: Step | None = None
        self.history: list[Step] = []

    def __call__(self, step: Step, pmf: JointPMF) -> None:
        """Take note of one iteration."""
        if self.step is None or step.objective <= self.step.objective:
            self.best, self.step = pmf, step
        if self.history and step.iteration <= self.history[-1].iteration:
            self.history.clear()  # another start
        self.history.append(step)
        if self.bar is not None and self.task is not None:
            total = step.iteration + self.steps_left()
            self.bar.update(
                self.task,
                completed=step.iteration,
                total=total,
                description=f"iteration {step.iteration}, objective {step.objective:.6f}",
                left=f"about {_duration(self.steps_left() * step.seconds / step.iteration)} left",
            )

    def hide(self) -> None:
        """Show nothing: something else shows the progress."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def steps_left(self) -> int:
        """Return how many iterations are left if improvements go on shrinking as they do."""
        last = self.history[-1]
        budget = max(self.max_iter - last.iteration, 0)
        if len(self.history) < 2 * LOOK_BACK:
            return budget
        before, between = self.history[-2 * LOOK_BACK], self.history[-LOOK_BACK]
        earlier = (before.objective - between.objective) / LOOK_BACK
        recent = (between.objective - last.objective) / LOOK_BACK
        if not 0 < recent < earlier or self.tol <= 0:
            return budget
        shrinking = math.log(recent / earlier) / LOOK_BACK
        return min(max(math.ceil(math.log(self.tol / recent) / shrinking), 1), budget)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def watched(console: Console, max_iter: int, tol: float) -> Iterator[FitWatch]:
    """Give what follows a fit; it is shown live if the console is a terminal."""
    if not console.is_terminal:
        yield FitWatch(None, max_iter, tol)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield FitWatch(progress, max_iter, tol)
