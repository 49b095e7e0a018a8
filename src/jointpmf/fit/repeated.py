"""Several fits of one kind: the best of them, or their average."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trials, concluded, log_how_often_found
from jointpmf.fit.solution import Solution
from jointpmf.mixing import average
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.rows.table import mean_log_likelihood
from jointpmf.solvers.loop import Status

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.fit.validation import Split, Splitter
    from jointpmf.rows.source import Table

Candidates = Iterator[tuple[str, Callable[[], Solution]]]


def best_of_starts(fit: EMFit, split: Split, generator: np.random.Generator) -> Solution:
    """Return the best of several fits; one that fails is recorded, unless all of them do."""
    held_out = split.judge
    n_starts = fit.n_starts or 1
    if n_starts == 1 or (fit.start == "auto" and held_out is None):
        return fit.run(split.fitted, generator, held_out)

    def candidates() -> Candidates:
        for k in range(n_starts):
            name = f"number {k + 1}"
            own = _numbered(fit, k, f"start {k + 1} of {n_starts}")
            yield name, partial(own.run, split.fitted, _child(generator), held_out)

    trials: Trials[str] = Trials()
    trials.run(candidates())
    near = list(trials.near_best(fit.effort.agreement, relative=True))
    found = trials.told(trials.best, len(near))
    if held_out is None and not trials.is_stopped:
        log_how_often_found(found)
    return found


def average_of_fits(
    fit: EMFit,
    split: Splitter,
    n_average: int,
    generator: np.random.Generator,
    whole: Table,
) -> Solution:
    """Return the average of several fits, each from a start and with a split of its own."""
    if fit.start == "auto":
        fit = replace(fit, start="rows")

    def candidates() -> Candidates:
        for k in range(n_average):
            own = _child(generator)
            numbered = _numbered(fit, k, f"fit {k + 1} of {n_average}")
            yield str(k), partial(best_of_starts, numbered, split(own), own)

    trials: Trials[str] = Trials(is_tolerant=False)
    trials.run(candidates(), _is_any_stopped)
    found = concluded(partial(_averaged, trials, whole))
    return found.stopped() if trials.is_stopped else found


def _averaged(trials: Trials[str], whole: Table) -> Solution:
    found = trials.solutions
    pmf = average([solution.pmf for solution in found])
    unfinished = [s.status for s in found if s.status in (Status.STOPPED, Status.MAX_ITER)]
    held_out = [s.validation for s in found if s.validation is not None]
    return replace(
        trials.best,
        pmf=pmf,
        objective=-mean_log_likelihood(whole.rows, Point.of_pmf(pmf)),
        status=unfinished[-1] if unfinished else found[-1].status,
        validation=float(np.mean(held_out)) if held_out else None,
        restarts=tuple(trials.restarts),
        n_averaged=len(found),
    )


def _is_any_stopped(trials: Trials[str]) -> bool:
    return Status.STOPPED in {restart.status for restart in trials.solutions[-1].restarts}


def _numbered(fit: EMFit, k: int, stage: str) -> EMFit:
    """Return how the k-th fit is done: a start that was given is only for the first."""
    start = "rows" if k and isinstance(fit.start, JointPMF) else fit.start
    return replace(fit, start=start, loop=in_stage(fit.loop, stage))


def _child(generator: np.random.Generator) -> np.random.Generator:
    return np.random.default_rng(generator.integers(2**63))
