"""What `jointpmf fit` asks of the library, and how the fit was made, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jointpmf as jp
from jointpmf.command.arguments import bins_of, levels_of
from jointpmf.command.console import console
from jointpmf.command.watch import FitWatch, watched
from jointpmf.errors import JointPMFError
from jointpmf.fit.memory import Room, bytes_of
from jointpmf.fit.opening import kept, opened_files
from jointpmf.judge.climb import climbing_curves
from jointpmf.marginals.published import read_marginals
from jointpmf.model_file import domain_to_json
from jointpmf.rows.source import Table

if TYPE_CHECKING:
    from jointpmf.command.fitting import Columns, Limits
    from jointpmf.command.replicating import Replicating
    from jointpmf.judge.curve import RankCurve
    from jointpmf.rows.reading import FileReading


class Fitted(NamedTuple):
    """A fit, and in words how it was made."""

    solution: jp.Solution
    about: dict[str, str]
    curve: RankCurve | None = None
    """How well each rank does, if a criterion chose among them."""

    @property
    def is_finished(self) -> bool:
        """Whether more iterations would change nothing."""
        return self.solution.status not in (jp.Status.MAX_ITER, jp.Status.STOPPED)


def fit_table(
    path: str,
    rank: int | str,
    objective: jp.Likelihood,
    search: jp.Search,
    columns: Columns,
    limits: Limits,
    replicating: Replicating,
) -> Fitted:
    """Return the fit to a table of rows on disk, which stays open for the replicates."""
    room = _room(limits)

    def fit(watch: FitWatch) -> jp.Solution:
        reading = replicating.held.enter_context(_opened(path, columns, room, replicating))
        options = _options(limits, watch)
        return jp.fit_rows(reading, rank, objective=objective, search=search, **options)

    return _fitted(fit, "likelihood", limits.seed)


def fit_by_criterion(
    path: str,
    criterion: str,
    ranks: Sequence[int] | None,
    objective: jp.Likelihood,
    search: jp.Search,
    columns: Columns,
    limits: Limits,
    replicating: Replicating,
) -> Fitted:
    """Return the fit of the rank that a criterion chooses, and how well each rank does."""
    room = _room(limits)
    curves: list[RankCurve] = []

    def fit(watch: FitWatch) -> jp.Solution:
        options = _options(limits, watch) | {"objective": objective, "search": search}
        del options["checkpoint"]
        held = replicating.held
        reading = held.enter_context(_opened(path, columns, room, replicating))
        table = held.enter_context(_in_memory(reading, room))
        options["sample_weight"] = table.weights
        try:
            for curve in climbing_curves(table.codes, criterion, ranks, **options):
                curves.append(curve)
        except KeyboardInterrupt:
            if not curves:
                raise
            return curves[-1][curves[-1].rank].stopped()
        return replace(curves[-1][curves[-1].rank], reopen=lambda: nullcontext(table))

    found = _fitted(fit, "likelihood", limits.seed)
    about = found.about | {"criterion": criterion}
    return found._replace(about=about, curve=curves[-1] if curves else None)


def _room(limits: Limits) -> Room:
    """Return the memory that is to be used, or raise now if it is too little."""
    room = Room(None if limits.memory is None else bytes_of(limits.memory))
    _ = room.free
    return room


@contextmanager
def _opened(
    path: str, columns: Columns, room: Room, replicating: Replicating
) -> Iterator[FileReading]:
    """Give a table of rows on disk."""
    only, drop = columns.only or (), [*(columns.drop or ()), *replicating.left_out(columns)]
    files = jp.Files(path, columns.missing or (), only, drop, room.memory, columns.weights)
    bins, levels = partial(bins_of, columns.bins or ()), partial(levels_of, columns.levels or ())
    with opened_files(files, None, bins, levels) as reading:
        domain_to_json(reading.domain)  # raises now if the model could not be written
        replicating.read_labels(reading, room)
        yield reading


@contextmanager
def _in_memory(reading: FileReading, room: Room) -> Iterator[Table]:
    """Give the rows of a file in memory, or raise if there is no room for them."""

    def can_hold(n_rows: int) -> bool:
        if n_rows > room.n_rows(reading.domain):
            raise JointPMFError(
                f"the rows of {reading.table.name} are too many for {room}, and --criterion needs "
                "all of them there: give a --rank"
            )
        return True

    with kept(reading, can_hold) as source:
        assert isinstance(source, Table)
        yield source


def fit_published(
    paths: Sequence[str],
    rank: int | str,
    smoothing: float | None,
    columns: Columns,
    limits: Limits,
) -> Fitted:
    """Return the fit to tables of counts or probabilities on disk."""
    marginals = read_marginals(paths, columns.missing or ())

    def fit(watch: FitWatch) -> jp.Solution:
        return jp.fit_marginals(marginals, rank, smoothing=smoothing, **_options(limits, watch))

    return _fitted(fit, "marginals", limits.seed)


def _options(limits: Limits, watch: FitWatch) -> dict[str, Any]:
    return {
        "max_iter": limits.max_iter,
        "tol": limits.tol,
        "random_state": limits.seed,
        "callback": watch,
        "checkpoint": limits.checkpoint,
    }


def _fitted(fit: Callable[[FitWatch], jp.Solution], method: str, seed: int) -> Fitted:
    """Return the fit, with its progress on stderr; after Ctrl-C, the best model so far."""
    with watched(console(stderr=True)) as watch:
        try:
            solution = fit(watch)
        except KeyboardInterrupt:
            if watch.best is None or watch.step is None:
                raise
            solution = jp.Solution(
                watch.best, jp.Status.STOPPED, watch.step.objective, watch.history
            )
    return Fitted(solution, {**solution.about, "method": method, "seed": str(seed)})
