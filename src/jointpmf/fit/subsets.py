"""From rows to the coupled fit of all marginals of an order: counted or implicit, as costs less."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, seeded_generator, whole_number
from jointpmf.fit.checkpoint import Checkpoint
from jointpmf.fit.coupled import (
    COUPLED_STARTS,
    VALLEY_TOL,
    default_solver,
    fit_marginals,
    is_unique,
    mixed_with_uniform,
    stopped_at,
)
from jointpmf.judge.identifiability import MAX_PARAMETERS
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.output import PathLike
from jointpmf.pmf import JointPMF
from jointpmf.rows.table import ColumnRows
from jointpmf.solvers.curvature import Curvature
from jointpmf.solvers.implicit import REFRESH, ImplicitLeastSquares
from jointpmf.solvers.loop import Solution, Status, iterate
from jointpmf.solvers.point import Point
from jointpmf.solvers.starts.candidates import checked_start, point_of_all_subsets, random_point
from jointpmf.threads import one_blas_thread

logger = logging.getLogger("jointpmf")

COUNTED_CELL, IMPLICIT_CELL, COUNTED_ROW = 1.0, 0.5, 0.5
"""Nanoseconds, roughly, per component: of a table's cell in a sweep, and of a row's cell in an
implicit one; and of a row that is counted for one subset."""

EXPECTED_SWEEPS = 50
"""Sweeps for which counting pays off or does not."""

LEAST_SAVED = 1e8
"""Nanoseconds of counting and sweeps that are never worth avoiding: tables are the surer way."""

MOST_TABLE_CELLS = 2**27
"""Cells of all tables together that are counted at most; more would fill the memory."""

MANY_SUBSETS = 20_000
"""Tables of which there are more are hardly worth counting."""

MOST_TABLES = 300_000
"""Subsets that are listed at most, to tell whether the model is unique, or to count them where the
rows are not in memory: more would take minutes."""

N_RANDOM = 3
"""Random starts where the closed form does not apply."""


def fit_subsets(
    codes: Codes,
    weights: np.ndarray | None,
    rank: int,
    order: int,
    *,
    start: str | JointPMF,
    random_state: Any,
    checkpoint: PathLike | None = None,
    checkpoint_every: int = 10,
    **options: Any,
) -> Solution:
    """Return the least-squares fit to all marginals of an order, weighted by their counts.

    `options` are those of the loop: max_iter, tol, callback.
    """
    order = whole_number(order, "the order", 1)
    if not is_cheaper_implicitly(codes, rank, order):
        return fit_counted(
            MarginalSet.from_table(codes, order, weights), rank, start=start,
            random_state=random_state, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
            **options,
        )  # fmt: skip
    with one_blas_thread:
        rows = ColumnRows.of_codes(codes, weights)
        problem = ImplicitLeastSquares(rows, rank, order, REFRESH if checkpoint is None else 1)
        source = f"all {problem.n_subsets} marginals of order {order}, implicitly from the rows"
        logger.info("%s: counting them would take longer", source)
        generator = seeded_generator(random_state)
        if checkpoint is not None:
            identity = {
                "function": "fit_rows, implicitly",
                "table": codes,
                "sample_weight": weights,
                "rank": rank,
                "order": order,
                "start": start,
                "max_iter": options["max_iter"],
                "tol": options["tol"],
            }
            saved = Checkpoint(checkpoint, checkpoint_every, identity, random_state)
            options["checkpoint"], generator = saved, saved.generator
        solution = _fit_implicitly(problem, start, generator, options)
        cost = problem.cost(Point.of_pmf(solution.pmf))
    return replace(solution, objective=cost, source=source)


def fit_counted(marginals: MarginalSet, rank: int, **options: Any) -> Solution:
    """Return the fit to marginals that were counted over rows, weighted by their counts."""
    solution = fit_marginals(marginals, rank, weighting="counts", **options)
    return replace(solution, source=f"{len(marginals)} marginals counted over the rows")


def check_countable(domain: Domain, order: int) -> None:
    """Raise if there are more marginals of an order than can be counted and kept."""
    order = whole_number(order, "the order", 1)
    n_subsets, n_cells = math.comb(len(domain), order), n_table_cells(domain.sizes, order)
    if n_subsets > MOST_TABLES or n_cells > MOST_TABLE_CELLS:
        raise JointPMFError(
            f"the {n_subsets} marginals of order {order} have {n_cells:.2g} cells, too many to "
            "count: lower the order, take fewer variables, or use method='likelihood'"
        )


def is_cheaper_implicitly(codes: Codes, rank: int, order: int) -> bool:
    """Tell whether sweeps over the rows cost less than counting all tables and sweeps over them."""
    n_patterns = 1 if codes.array.min(initial=0) >= 0 else codes.n_rows  # no second table
    return is_better_implicit(codes.domain.sizes, codes.n_rows, n_patterns, rank, order)


def is_better_implicit(
    sizes: Sequence[int], n_rows: int, n_patterns: int, rank: int, order: int
) -> bool:
    """Tell the same of a table that has so many rows and patterns of missing cells."""
    n_all = len(sizes)
    if not 2 <= order <= n_all:
        return False  # for the counting to complain about
    if are_many(sizes, order):
        return True
    n_cells = n_table_cells(sizes, order)
    counting = COUNTED_ROW * n_rows * math.comb(n_all, order)
    counted = EXPECTED_SWEEPS * COUNTED_CELL * n_cells * rank + counting
    row_and_gram = n_rows + n_patterns * rank / 2
    implicit = EXPECTED_SWEEPS * IMPLICIT_CELL * row_and_gram * n_all * rank
    return counted > LEAST_SAVED and implicit < counted


def are_many(sizes: Sequence[int], order: int) -> bool:
    """Tell whether a table has so many marginals of an order that they should not be counted."""
    n_cells = n_table_cells(sizes, order)
    return math.comb(len(sizes), order) > MANY_SUBSETS or n_cells > MOST_TABLE_CELLS


def n_table_cells(sizes: Sequence[int], order: int) -> float:
    """Return the number of cells of all tables of an order: e_k of the sizes."""
    sums = np.zeros(order + 1)
    sums[0] = 1.0
    for size in sizes:
        sums[1:] += size * sums[:-1]
    return float(sums[order])


def _fit_implicitly(
    problem: ImplicitLeastSquares,
    start: str | JointPMF,
    generator: np.random.Generator,
    options: dict[str, Any],
) -> Solution:
    domain, rank = problem.domain, problem.rank
    point, reason = None, "as asked"
    start = checked_start(start, COUPLED_STARTS, domain, rank, "table's")
    if isinstance(start, JointPMF):
        point, reason = Point.of_pmf(start), "given: a JointPMF"
    elif start != "random":
        try:
            found = point_of_all_subsets(problem, generator)
        except KeyboardInterrupt:
            point = random_point(domain, rank, generator)
            return stopped_at(default_solver(problem), point)
        if found is not None:
            point = mixed_with_uniform(found, domain)
            reason = "algebraic: some triples, the rest by one pass over the rows"
        else:
            reason = "the closed form does not apply"
    unique = _is_unique(problem, generator)
    if unique is False:
        options = options | {"tol": max(options["tol"], VALLEY_TOL)}
    if point is not None:
        solution = replace(iterate(default_solver(problem), point, **options), start=reason)
    else:
        solution = _best_of_random(problem, generator, options, reason)
    if unique is False and solution.status is Status.CONVERGED:
        solution = replace(solution, status=Status.NOT_UNIQUE)
    return replace(solution, is_unique=unique)


def _best_of_random(
    problem: ImplicitLeastSquares,
    generator: np.random.Generator,
    options: dict[str, Any],
    reason: str,
) -> Solution:
    found: list[Solution] = []
    while len(found) < N_RANDOM and not (found and found[-1].status is Status.STOPPED):
        point = random_point(problem.domain, problem.rank, generator)
        found.append(iterate(default_solver(problem), point, **options))
    best = min(found, key=lambda s: problem.relative_cost(Point.of_pmf(s.pmf)))
    best = replace(best, start=f"random: the best of {len(found)}, {reason}")
    is_stopped = found[-1].status is Status.STOPPED
    return replace(best, status=Status.STOPPED) if is_stopped else best


def _is_unique(problem: ImplicitLeastSquares, generator: np.random.Generator) -> bool | None:
    """Tell whether all marginals of the order determine the model; None if that takes too long."""
    domain = problem.domain
    n_parameters = problem.rank * (1 + sum(domain.sizes))
    if n_parameters > MAX_PARAMETERS or problem.n_subsets > MOST_TABLES:
        return None
    subsets = list(combinations(range(len(domain)), problem.order))
    return is_unique(Curvature(domain, subsets, np.ones(len(subsets))), problem.rank, generator)
