"""From rows to a joint PMF: open the source, then fit the model to it, wherever it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.encode import ReadOptions
from jointpmf.data.ratings import Ratings
from jointpmf.errors import JointPMFError
from jointpmf.fit import settings
from jointpmf.fit.checkpoint import generator_and_runs
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.memory import Room, bytes_of
from jointpmf.fit.opening import kept, opened
from jointpmf.fit.progress import watched_loop
from jointpmf.fit.rank_by_cells import fit_by_cells
from jointpmf.fit.rank_by_rows import fit_by_rows
from jointpmf.fit.repeated import average_of_fits, best_of_starts
from jointpmf.fit.settings import (
    Checkpoint,
    HiddenCells,
    Likelihood,
    Search,
    checked_objective,
    checked_rank,
    checked_search,
)
from jointpmf.fit.solution import Callback, FittedTo, Reopen, Solution
from jointpmf.fit.stopping import BestSoFar, stoppable
from jointpmf.fit.unrated import fit_rated_items
from jointpmf.fit.validation import are_cells, plain_validation, splitter
from jointpmf.rows.parts import fingerprint_of
from jointpmf.rows.reading import Batches, FileReading, Reading, Stream
from jointpmf.rows.source import Source, Table, check_levels, check_table
from jointpmf.rows.spool import SpooledRows
from jointpmf.solvers.loop import Loop
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    import os

    from jointpmf.domain import Domain

logger = logging.getLogger("jointpmf")

_MOST_FOR_RANK = 10**6
"""Rows on which the rank is found when not all are in memory."""


def fit_rows(
    source: Any,
    rank: int | str = "auto",
    *,
    objective: Likelihood | None = None,
    search: Search | None = None,
    validation: Any = None,
    sample_weight: Any = None,
    max_iter: int | None = None,
    tol: float | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    verbose: bool = False,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    domain: Domain | None = None,
    bins: Any = None,
    levels: Any = None,
    missing_code: Any = None,
) -> Solution:
    """Return the joint PMF of an incomplete table.

    Parameters
    ----------
    source : table, Ratings, path, Files, batches, or Dask or Spark DataFrame
        One row per sample. Missing cells are summed out; rows without any observed cell are
        ignored. A table is a pandas, Polars or PyArrow table, an array or Codes. A path, or several
        of them, are tables on disk, which may be larger than memory (`Files` has options). Batches
        are a list of tables, or a callable that returns a fresh iterator of tables each time; an
        iterator itself can be read once, so that every row is used once and should come in random
        order. The rows of Dask and Spark stay with their workers (docs/scale.md).
    rank : int or "auto"
        Number of components. By default it is chosen by what is held out, fits are stopped early,
        and several are averaged.
    objective : Likelihood, optional
        Settings of the maximum likelihood fit: smoothing, a target, traits.
    search : Search, optional
        Where to begin, from how many starts, and how many fits to average.
    validation : float, table, array of bool, HiddenCells or callable, optional
        What to stop by, which is not fitted: a fraction of the rows; other rows; cells to hide and
        to predict from the rest of their rows; or a function that is called as `validation(pmf)`
        and returns how badly a model does. The model that does best is returned. With
        `rank="auto"` it chooses the rank too: `HiddenCells` searches for what predicts cells best,
        which is the default for Ratings.
    sample_weight : array of shape (rows,), optional
        What each row counts for; in a file it is a column, `Files(path, weights="name")`.
    max_iter, tol : int, float, optional
        Budget of iterations, and the improvement of the mean log-likelihood, in nats per row,
        below which a fit has converged. By default 2000 and 1e-10, and 300 and 1e-7 for the fits
        of `rank="auto"`.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits, whatever the number of threads.
    callback : callable, optional
        Called as `callback(step, pmf)` after every iteration; returning True stops.
    verbose : bool
        Whether to show a progress bar.
    checkpoint : path or Checkpoint, optional
        A folder in which the fit leaves how far it has come; the same call goes on from there, to
        the same bits.
    domain, bins, levels, missing_code
        How the table is read, see `encode`: what can happen, how to cut numbers and times, the
        order of levels, and what means missing.

    Returns
    -------
    Solution
        Its objective is minus the mean log-likelihood per row: of the rows that were fitted, with
        smoothing; for an average, of all rows, without.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4] * 6), rank=2, random_state=0)
    >>> rows = truth.sample(1000, random_state=0, backend="codes")
    >>> solution = jp.fit_rows(rows, rank=2, random_state=0)
    >>> bool(-solution.objective > truth.log_probability(rows).mean())
    True
    >>> jp.fit_rows(rows, random_state=0).status.name
    'VALIDATED'
    """
    asked = _Asked(
        checked_rank(rank),
        checked_objective(objective),
        checked_search(search),
        _default_validation(source, rank, validation),
        source if isinstance(source, Ratings) else None,
        random_state,
        checkpoint,
    )
    asked.check()
    options = ReadOptions(domain, bins, levels, missing_code)
    if asked.ratings is not None and asked.hides_cells and domain is not None:
        raise JointPMFError("Ratings have a domain of their own")
    limits = (max_iter, tol, callback, verbose)

    def fit(best: BestSoFar) -> Solution:
        with opened(source, options, sample_weight) as rows:
            with watched_loop(*limits, rows.domain, asked.default_limits(), best) as loop:
                found = best.concluded(_Fitting(asked, loop).run(rows))
            way_back = _way_back(rows, asked, (source, options, sample_weight))
            fingerprint = fingerprint_of(rows) if isinstance(rows, Table) else None
            return best.concluded(replace(found, reopen=way_back, fingerprint=fingerprint))

    return stoppable(fit)


def _way_back(
    rows: Source | FileReading | Batches, asked: _Asked, given: tuple[Any, ReadOptions, Any]
) -> Reopen | None:
    """Return what opens the rows of a fit again: those in memory stay there."""
    if isinstance(rows, Table):
        return partial(_in_memory, rows)
    is_gone = isinstance(rows, Batches) and rows.is_read_once
    return None if is_gone else partial(_reopened, asked, given)


@contextmanager
def _in_memory(table: Table) -> Iterator[Source]:
    yield table


@contextmanager
def _reopened(asked: _Asked, given: tuple[Any, ReadOptions, Any]) -> Iterator[Source]:
    with opened(*given) as rows:
        if isinstance(rows, (FileReading, Batches)):
            with _Fitting(asked, Loop(0, 0.0))._kept(rows, _room_of(rows)) as source:
                yield source
        else:
            yield rows


def _default_validation(source: Any, rank: Any, validation: Any) -> Any:
    """Return what was asked for; to find the rank of Ratings, cells are hidden."""
    if isinstance(source, Ratings) and isinstance(rank, str):
        if validation is None:
            return HiddenCells(scoring="error")
        if isinstance(validation, HiddenCells) and validation.scoring is None:
            return replace(validation, scoring="error")
    return validation


@dataclass(frozen=True)
class _Asked:
    """What was asked for, except the rows and what watches the fit."""

    rank: int | None
    objective: Likelihood
    search: Search
    validation: Any
    ratings: Ratings | None
    random_state: Any
    checkpoint: Any

    def check(self) -> None:
        """Raise if what was asked for contradicts itself."""
        if self.rank is not None and self.objective.target is not None:
            raise JointPMFError("a target needs rank='auto'")
        if self.objective.traits is not None:
            self._check_traits()
        if self.rank is None and (self.search.n_starts or 1) > 1:
            raise JointPMFError("n_starts needs a rank, not rank='auto'")

    def _check_traits(self) -> None:
        if self.rank is None:
            raise JointPMFError(
                "traits need a rank, the number of points; with rank='auto' they are tried anyway"
            )
        if self.search.start != "auto" or (self.search.n_starts or 1) > 1:
            raise JointPMFError("traits begin along the main directions: leave the start out")

    @property
    def hides_cells(self) -> bool:
        """Whether the rank is found by hidden cells."""
        return self.rank is None and are_cells(self.validation)

    def default_limits(self) -> tuple[int, float]:
        """Return the budget of iterations and the tolerance of such fits."""
        if self.rank is not None:
            return 2000, 1e-10
        return (200 if self.hides_cells else 300), 1e-7


@dataclass(frozen=True)
class _Fitting:
    """A fit on its way: what was asked for, and the loop."""

    asked: _Asked
    loop: Loop
    room: Room | None = None
    """The memory that rows may take while they are fitted, where that is limited."""

    def run(self, rows: Source | FileReading | Batches) -> Solution:
        """Return the fit to rows, which are read first if they must be."""
        with one_blas_thread:
            if isinstance(rows, (FileReading, Batches)):
                return self._of_reading(rows)
            return self._of_source(rows)

    def _of_reading(self, reading: FileReading | Batches) -> Solution:
        """Return the fit to rows that are read some at a time."""
        asked, domain = self.asked, reading.domain
        room = _room_of(reading)
        if reading.is_read_once:
            self._check_in_memory("rows that come once")
            if self.asked.objective.traits is not None:
                raise JointPMFError("traits need rows that can be read again: give a callable")
            generator, runs = self._generator_and_runs(lambda: {"table": "rows that come once"})
            stream = Stream(reading)
            found = self._em_fit(domain, runs).run_once(stream, generator)
            return self._told(found, FittedTo("rows", n_rows=stream.n_rows))
        if room is not None:
            room.check_model(domain, asked.rank or 1)
        with self._kept(reading, room) as source:
            return replace(self, room=room)._of_source(source)

    def _kept(self, reading: Reading, room: Room | None) -> AbstractContextManager[Source]:
        block_bytes = settings.EFFORT.block_bytes
        if room is None:
            return kept(reading, None, block_bytes)
        return kept(reading, lambda n_rows: n_rows <= room.n_rows(reading.domain), block_bytes)

    def _of_source(self, source: Source) -> Solution:
        """Return the fit to rows that stay where they are."""
        if source.n_empty:
            logger.info("%d rows have no observed cell and are ignored", source.n_empty)
        may_lack_items = self.asked.ratings is not None and self.asked.hides_cells
        is_sampled = self.asked.rank is None and isinstance(source, SpooledRows)
        if isinstance(source, Table) and not may_lack_items:
            check_table(source.codes, source.weights)
        elif not isinstance(source, Table) and not is_sampled:
            self._check_in_memory("rows that are not in memory")
        validation = self.asked.validation
        generator, runs = self._generator_and_runs(
            lambda: {
                "table": source.digest,
                "sample_weight": source.weights if isinstance(source, Table) else None,
                "validation": plain_validation(validation, source.domain),
            }
        )
        fit = self._em_fit(source.domain, runs)
        if self.asked.rank is None:
            return self._of_any_rank(source, fit, generator)
        if not isinstance(source, Table):
            return self._told(fit.run(source, generator), _rows_of(source))
        if fit.rank > len(source.rows):
            logger.warning(
                "the rank %d is larger than the number of distinct rows, %d",
                fit.rank,
                len(source.rows),
            )
        split = splitter(source, validation, bool(fit.smoothing))
        search = self.asked.search
        if search.n_average is not None and search.n_average > 1:
            found = average_of_fits(fit, split, search.n_average, generator, source)
        else:
            found = best_of_starts(fit, split(generator), generator)
        return self._told(found, _rows_of(source))

    def _of_any_rank(self, source: Source, fit: EMFit, generator: np.random.Generator) -> Solution:
        """Return the fit whose rank is found by what is held out: hidden cells, or rows."""
        if isinstance(source, SpooledRows):
            return self._of_sample(source, fit, generator)
        if not isinstance(source, Table):
            raise JointPMFError("rank='auto' needs rows in memory: give a rank")
        asked = self.asked
        if not asked.hides_cells:
            split = None
            if asked.validation is not None:
                split = splitter(source, asked.validation, is_smoothed=True)
            found = fit_by_rows(source, fit, self.asked.objective, asked.search, generator, split)
            return self._told(found, _rows_of(source))

        def fit_to(table: Table, cells: HiddenCells) -> Solution:
            split = splitter(table, cells, is_smoothed=True, patience=6)(generator)

            def fitted(best: BestSoFar) -> Solution:  # of its own: it may have fewer items
                own = replace(fit, loop=replace(fit.loop, best=best))
                return fit_by_cells(split, own, asked.search, generator)

            return stoppable(fitted)

        cells = asked.validation
        cells = cells if isinstance(cells, HiddenCells) else HiddenCells(cells)
        found = fit_rated_items(source, asked.ratings, cells, fit_to, generator)
        return self._told(found, _rows_of(source))

    def _of_sample(
        self, source: SpooledRows, fit: EMFit, generator: np.random.Generator
    ) -> Solution:
        """Return the fit to as many rows of a file as there is room for, its rank found on them."""
        check_levels(source.domain, source.counts)
        room = self.room or Room()
        size = max(int(min(room.n_rows(source.domain), _MOST_FOR_RANK)), 1)
        codes, weights = source.sample(size, int(generator.integers(2**31)))
        found = self._of_any_rank(Table.of_codes(codes, weights), fit, generator)
        if source.n_rows <= size:  # these are all distinct rows
            return found
        logger.warning(
            "a sample of %d of the %d rows was fitted, because to find the rank on all of them "
            "would take more memory; with a given rank all are fitted",
            codes.n_rows,
            source.n_read,
        )
        told = FittedTo("rows", n_rows=source.n_read, n_sampled=codes.n_rows)
        return replace(found, source=told)

    def _em_fit(self, domain: Domain, runs: Any) -> EMFit:
        """Return how one fit by likelihood is done, with the defaults that the rank implies."""
        asked, objective = self.asked, self.asked.objective
        is_auto = asked.rank is None
        kinds, start = ("auto", "rows", "random"), asked.search.start
        asked.search.check_start(kinds, domain, asked.rank, "table's")
        smoothing = objective.smoothing
        if smoothing is None:
            smoothing = 0.01 if asked.hides_cells else 0.0
        return EMFit(
            asked.rank or 1,
            replace(self.loop, runs=runs),
            smoothing,
            objective.towards or ("marginal" if is_auto else "uniform"),
            "rows" if is_auto and start == "auto" else start,
            settings.EFFORT,
            asked.search.n_starts,
            objective.traits,
        )

    def _generator_and_runs(
        self, data: Callable[[], dict[str, Any]]
    ) -> tuple[np.random.Generator, Any]:
        """Return what the fit draws from and where it is saved, known by all that was asked."""
        asked = self.asked

        def identity() -> dict[str, Any]:
            return {
                "fit": "rows",
                "objective": asked.objective,
                "rank": asked.rank,
                "search": asked.search,
                "max_iter": self.loop.max_iter,
                "tol": self.loop.tol,
                **data(),
            }

        return generator_and_runs(asked.checkpoint, identity, asked.random_state)

    def _told(self, solution: Solution, source: FittedTo) -> Solution:
        """Return a solution with what was fitted, and how."""
        settings = solution.settings or self.asked.objective
        return replace(solution, source=solution.source or source, settings=settings)

    def _check_in_memory(self, what: str) -> None:
        """Raise if something was asked for that needs all rows in memory."""
        asked = self.asked
        needs = {
            "validation": asked.validation is not None,
            "n_starts": (asked.search.n_starts or 1) > 1,
            "n_average": (asked.search.n_average or 1) > 1,
        }
        for name, is_asked in needs.items():
            if is_asked:
                raise JointPMFError(f"{name} does not apply to {what}: leave it out")


def _rows_of(source: Source) -> FittedTo:
    if isinstance(source, SpooledRows):
        return FittedTo("rows", n_rows=source.n_read)
    n_rows = source.codes.n_rows if isinstance(source, Table) else int(source.total)
    return FittedTo("rows", n_rows=n_rows)


def _room_of(reading: Reading) -> Room | None:
    """Return the memory that rows of a file may take; batches always go to disk."""
    if not isinstance(reading, FileReading):
        return None
    memory = reading.files.memory
    return Room(bytes_of(memory) if isinstance(memory, str) else memory)
