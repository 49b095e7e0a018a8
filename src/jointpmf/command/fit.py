"""What `jointpmf fit` asks of the library, and how the fit was made, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jointpmf as jp
from jointpmf.command.arguments import bins_of, levels_of
from jointpmf.command.console import console
from jointpmf.command.watch import FitWatch, watched
from jointpmf.fit.memory import Room, bytes_of
from jointpmf.fit.opening import opened_files
from jointpmf.fit.solution import FittedTo
from jointpmf.marginals.published import read_marginals
from jointpmf.model_file import domain_to_json

if TYPE_CHECKING:
    from jointpmf.command.fitting import Columns, Limits


class Fitted(NamedTuple):
    """A fit, and in words how it was made."""

    solution: jp.Solution
    about: dict[str, str]

    @property
    def is_finished(self) -> bool:
        """Whether more iterations would change nothing."""
        return self.solution.status not in (jp.Status.MAX_ITER, jp.Status.STOPPED)


def fit_table(
    path: str,
    rank: int | str,
    objective: jp.Likelihood | jp.Coupled,
    columns: Columns,
    limits: Limits,
) -> Fitted:
    """Return the fit to a table of rows on disk."""
    memory = None if limits.memory is None else bytes_of(limits.memory)
    _ = Room(memory).free  # raises now if it is too little, not after the table has been read
    only, drop = columns.only or (), columns.drop or ()
    files = jp.Files(path, columns.missing or (), only, drop, memory)

    def fit(watch: FitWatch) -> jp.Solution:
        bins = partial(bins_of, columns.bins or ())
        levels = partial(levels_of, columns.levels or ())
        with opened_files(files, None, bins, levels) as reading:
            domain_to_json(reading.domain)  # raises now if the model could not be written
            options = _options(limits, watch)
            return jp.fit_rows(reading, rank, objective=objective, **options)

    method = "marginals" if isinstance(objective, jp.Coupled) else "likelihood"
    return _fitted(fit, method, limits.seed)


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

    found = _fitted(fit, "marginals", limits.seed)
    if found.solution.source is not None:
        return found
    source = FittedTo("marginals", n_marginals=len(marginals))  # after Ctrl-C
    return _told(
        replace(found.solution, source=source, marginals=marginals), "marginals", limits.seed
    )


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
    return _told(solution, method, seed)


def _told(solution: jp.Solution, method: str, seed: int) -> Fitted:
    return Fitted(solution, {**solution.about, "method": method, "seed": str(seed)})
