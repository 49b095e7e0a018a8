"""Replicates of a fit: the same fit to data as other samples would have given them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.encode import encode
from jointpmf.errors import JointPMFError, one_of, seeded_generator, whole_number
from jointpmf.fit.again import RowsAgain, TablesAgain
from jointpmf.fit.progress import progress_bar
from jointpmf.judge.matching import matched
from jointpmf.judge.resampled_tables import tables_drawn
from jointpmf.judge.uncertainty import Uncertainty
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.rows.resampling import resampled
from jointpmf.rows.source import Source, Table
from jointpmf.threads import interrupts, one_blas_thread, run_all

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution

logger = logging.getLogger("jointpmf")

_FEWEST = 2
"""Replicates that tell anything."""

_SAME = 1e-6
"""The part by which the objective of the same rows may differ."""

Replicate = Callable[[int], Point]


def uncertainty_of(
    solution: Solution,
    n: Any,
    random_state: Any,
    resample: str,
    groups: Any,
    strata: Any,
    data: Any,
    verbose: bool,
) -> Uncertainty:
    """Return replicates of a fit; see `Solution.uncertainty`."""
    n = whole_number(n, "n", _FEWEST)
    seed = int(seeded_generator(random_state).integers(2**63))
    one_of(resample, ("auto", "bayesian", "multinomial", "counts", "model"), "resample")
    with one_blas_thread, _replicating(solution, resample, groups, strata, data, seed) as found:
        replicate, reference, how = found
        points = _all(replicate, n, verbose)
    weights = np.array([point.weights for point in points])
    factors = np.array([point.factors for point in points])
    weights, factors, is_clear = matched(solution.pmf, weights, factors)
    around = JointPMF.at(reference, solution.pmf.domain)
    return Uncertainty(solution.pmf, weights, factors, is_clear, around, how)


@contextmanager
def _replicating(
    solution: Solution, resample: str, groups: Any, strata: Any, data: Any, seed: int
) -> Iterator[tuple[Replicate, Point, str]]:
    """Give what makes a replicate, where the same way leads without resampling, and its name."""
    if data is None and solution.reopen is None and solution.marginals is not None:
        yield _of_tables(solution, resample, groups, strata, seed)
        return
    how = "bayesian" if resample == "auto" else resample
    one_of(how, ("bayesian", "multinomial"), "resample of a fit to rows")
    with _rows_of(solution, data) as source:
        again = RowsAgain(solution)
        draw = resampled(source, how, groups, strata, seed)
        yield lambda k: again.fitted(draw(k)), again.fitted(source), how


def _of_tables(
    solution: Solution, resample: str, groups: Any, strata: Any, seed: int
) -> tuple[Replicate, Point, str]:
    if groups is not None or strata is not None:
        raise JointPMFError("groups and strata are for fits to rows")
    one_of(resample, ("auto", "counts", "model"), "resample of a fit to tables")
    again = TablesAgain(solution)
    draw, expected, how = tables_drawn(again, resample, seed)
    return lambda k: again.fitted(draw(k)), again.fitted(expected), how


@contextmanager
def _rows_of(solution: Solution, data: Any) -> Iterator[Source]:
    """Give the rows of a fit: those it can open again, or those that are given and are the same."""
    if data is None:
        if solution.reopen is None:
            raise JointPMFError(
                "the solution does not keep the rows that it was fitted to: give them as data="
            )
        with solution.reopen() as source:
            yield _checked(source, solution)
    else:
        codes = encode(data, solution.pmf.domain)
        with nullcontext(Table.of_codes(codes)) as source:
            yield _checked(source, solution)


def _checked(source: Source, solution: Solution) -> Source:
    """Return rows, unless they are not those of the fit."""
    told = solution.source
    n_rows = source.codes.n_rows if isinstance(source, Table) else None
    if source.domain != solution.pmf.domain:
        raise JointPMFError(
            "the rows are not those of the fit: they have other variables or levels"
        )
    if told is not None and None not in (n_rows, told.n_rows) and n_rows != told.n_rows:
        raise JointPMFError(
            f"the rows are not those of the fit: there are {n_rows}, and it was to {told.n_rows}"
        )
    return source


def _all(replicate: Replicate, n: int, verbose: bool) -> list[Point]:
    """Return replicates, made by all threads; after Ctrl-C those that were done."""
    found: dict[int, Point] = {}
    with progress_bar("replicates", n, verbose) as advance:

        def make(k: int) -> None:
            found[k] = replicate(k)
            advance(f"{len(found)} done")

        try:
            with interrupts():
                run_all([partial(make, k) for k in range(n)])
        except KeyboardInterrupt:
            if len(found) < _FEWEST:
                raise
            logger.warning("stopped after %d of %d replicates", len(found), n)
    return [found[k] for k in sorted(found)]
