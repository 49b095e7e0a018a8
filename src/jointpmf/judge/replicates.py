"""Replicates of a fit: the same fit to data as other samples would have given them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.data.codes import checked_weights
from jointpmf.data.encode import encode
from jointpmf.errors import (
    JointPMFError,
    one_of,
    repeats,
    seeded_generator,
)
from jointpmf.fit.progress import progress_bar
from jointpmf.judge.matching import matched
from jointpmf.judge.replicate_file import FEWEST
from jointpmf.judge.resampled_tables import tables_drawn
from jointpmf.judge.uncertainty import Uncertainty
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.rows.parts import fingerprint_of
from jointpmf.rows.resampling import resampled
from jointpmf.rows.source import Source, Table
from jointpmf.threads import interrupts, one_blas_thread, run_all

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution

logger = logging.getLogger("jointpmf")

_SAME = 1e-6
"""The part by which the objective of the same rows may differ."""

_AT_A_TIME = 8
"""Numbers that compiled loops multiply in the time in which numpy goes through one."""

Replicate = Callable[[int], Point]


def uncertainty_of(
    solution: Solution,
    n: Any,
    random_state: Any,
    resample: str,
    groups: Any,
    strata: Any,
    data: Any,
    sample_weight: Any,
    verbose: bool,
) -> Uncertainty:
    """Return replicates of a fit; see `Solution.uncertainty`."""
    n = repeats(n, "n", FEWEST)
    one_of(resample, ("auto", "bayesian", "multinomial", "counts", "model"), "resample")
    asked = _Asked(n, int(seeded_generator(random_state).integers(2**63)), resample, verbose)
    with one_blas_thread:
        if solution.source is not None and solution.source.kind == "marginals":
            if data is not None:
                raise JointPMFError("data are for fits to rows: this one is to tables")
            if groups is not None or strata is not None:
                raise JointPMFError("groups and strata are for fits to rows")
            found = _of_tables(solution, asked)
        else:
            with _rows_of(solution, data, sample_weight) as source:
                found = _of_rows(solution, source, asked, groups, strata)
    return _together(solution, *found)


class _Asked(NamedTuple):
    """How many replicates are made, from which seed, how, and whether a bar is shown."""

    n: int
    seed: int
    resample: str
    verbose: bool


def _of_rows(
    solution: Solution, source: Source, asked: _Asked, groups: Any, strata: Any
) -> tuple[list[Point], Point, str]:
    """Return replicates, where the same way leads without resampling, and its name."""
    how = "bayesian" if asked.resample == "auto" else asked.resample
    one_of(how, ("bayesian", "multinomial"), "resample of a fit to rows")
    draw = resampled(source, how, groups, strata, asked.seed)
    from jointpmf.fit.again import RowsAgain

    again = RowsAgain(solution)
    n_cells = len(source.rows) * len(source.domain) if isinstance(source, Table) else math.inf
    points = _all(lambda k: again.fitted(draw(k)), asked, n_cells * _rank_of_one(solution))
    return points, again.fitted(source), how


def _of_tables(solution: Solution, asked: _Asked) -> tuple[list[Point], Point, str]:
    one_of(asked.resample, ("auto", "counts", "model"), "resample of a fit to tables")
    from jointpmf.fit.tables_again import TablesAgain

    again = TablesAgain(solution)
    assert solution.marginals is not None
    drawn = tables_drawn(solution.marginals, solution.pmf, asked.resample, asked.seed)
    draw, expected, how = drawn
    n_cells = sum(marginal.table.size * len(marginal.names) for marginal in solution.marginals)
    points = _all(lambda k: again.fitted(draw(k)), asked, n_cells * _rank_of_one(solution))
    return points, again.fitted(expected), how


def _rank_of_one(solution: Solution) -> float:
    """Return the rank of a fit, or of one of those that were averaged."""
    return solution.pmf.rank / solution.n_averaged


def _together(solution: Solution, points: list[Point], reference: Point, how: str) -> Uncertainty:
    """Return replicates, with their components in the model's order where it is one fit."""
    pmf = solution.pmf
    weights = np.array([point.weights for point in points])
    factors = np.array([point.factors for point in points])
    is_clear = np.zeros(len(points), bool)
    if solution.n_averaged == 1 and not solution.trait_models:
        weights, factors, is_clear = matched(pmf, weights, factors)
    names = pmf.component_names if len(reference.weights) == pmf.rank else None
    around = JointPMF.at(reference, pmf.domain, names)
    return Uncertainty(pmf, weights, factors, is_clear, around, how)


@contextmanager
def _rows_of(solution: Solution, data: Any, sample_weight: Any) -> Iterator[Source]:
    """Give the rows of a fit: those it can open again, or those that are given and are the same."""
    if data is not None:
        codes = encode(data, solution.pmf.domain)
        weights = checked_weights(sample_weight, codes.n_rows)
        yield _checked(Table.of_codes(codes, weights), solution)
        return
    if sample_weight is not None:
        raise JointPMFError("sample_weight goes with data: the solution knows its own weights")
    if solution.reopen is None:
        raise JointPMFError(
            "the solution does not keep the rows that it was fitted to: give them as data="
        )
    with solution.reopen() as source:
        yield _checked(source, solution)


def _checked(source: Source, solution: Solution) -> Source:
    """Return rows, unless they are not those of the fit."""
    from jointpmf.fit.again import cost_again

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
    if solution.fingerprint is not None and isinstance(source, Table):
        if fingerprint_of(source) != solution.fingerprint:
            raise JointPMFError("the rows are not those of the fit: some cells or weights differ")
        return source
    cost = cost_again(solution, source)
    if cost is not None and not math.isclose(cost, solution.objective, rel_tol=_SAME):
        raise JointPMFError(
            "the rows are not those of the fit: the model's objective is "
            f"{cost:.8g} on them, and was {solution.objective:.8g}"
        )
    return source


def _all(replicate: Replicate, asked: _Asked, work: float) -> list[Point]:
    """Return replicates; after Ctrl-C those that were done.

    All threads make them, unless one step of a fit has little work: cells times components.
    """
    found: dict[int, Point] = {}
    n = asked.n
    with progress_bar("replicates", n, asked.verbose) as advance:

        def make(k: int) -> None:
            try:
                found[k] = replicate(k)
            except JointPMFError as error:
                raise JointPMFError(f"replicate {k} cannot be fitted: {error}") from None
            advance(f"{len(found)} done")

        try:
            with interrupts():
                run_all([partial(make, k) for k in range(n)], work / _AT_A_TIME)
        except KeyboardInterrupt:
            if len(found) < FEWEST:
                raise
            logger.warning("stopped after %d of %d replicates", len(found), n)
    return [found[k] for k in sorted(found)]
