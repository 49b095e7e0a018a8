"""The coupled fit of all marginals of rows: counted, or never formed, whichever costs less."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.fit.solution import FittedTo, Solution
from jointpmf.marginals.orders import are_many, check_countable, n_table_cells
from jointpmf.rows.source import Source, Table
from jointpmf.rows.table import ColumnRows
from jointpmf.solvers.implicit import ImplicitLeastSquares, Limits
from jointpmf.solvers.least_squares import CoupledLeastSquares

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes
    from jointpmf.fit.coupled import Problem, TableFit
    from jointpmf.fit.settings import Coupled
    from jointpmf.marginals.marginal_set import MarginalSet

logger = logging.getLogger("jointpmf")

_COUNTED_CELL, _IMPLICIT_CELL, _COUNTED_ROW = 1.0, 0.5, 0.5
"""Nanoseconds, roughly, per component: of a table's cell in a sweep, and of a row's cell in an
implicit one; and of a row that is counted for one subset."""

_EXPECTED_SWEEPS = 50
"""Sweeps over which counting pays off or does not."""

_LEAST_SAVED = 1e8
"""Nanoseconds that counting and sweeping may always take: tables are the surer way."""


def fit_subsets(
    source: Source,
    rank: int | None,
    objective: Coupled,
    fit: TableFit,
    generator: np.random.Generator,
) -> Solution:
    """Return the least-squares fit to all marginals of an order, weighted by their counts."""
    if rank is not None and isinstance(source, Table) and _is_implicit(source, rank, objective):
        return _fit_implicitly(source, rank, objective, fit, generator)
    check_countable(source.domain, objective.order)
    return fit_counted(source.marginals(objective.order), rank, fit, generator)


def _is_implicit(table: Table, rank: int, objective: Coupled) -> bool:
    if objective.is_implicit is None:
        return is_cheaper_implicitly(table.codes, rank, objective.order)
    return objective.is_implicit


def coupled_problem(source: Source, rank: int, objective: Coupled) -> Problem:
    """Return the problem of all marginals of rows: counted, or never formed where that is less."""
    if isinstance(source, Table):
        limits = Limits() if _is_implicit(source, rank, objective) else None
        return problem_of(source, rank, objective.order, limits)[0]
    return CoupledLeastSquares(source.marginals(objective.order), rank, "counts")


def fit_counted(
    marginals: MarginalSet, rank: int | None, fit: TableFit, generator: np.random.Generator
) -> Solution:
    """Return the fit to marginals that were counted over rows, weighted by their counts."""
    solution = replace(fit, weighting="counts").run(marginals, rank, generator)
    order = max(map(len, marginals.subsets))
    return replace(solution, source=FittedTo("counted", n_marginals=len(marginals), order=order))


def _fit_implicitly(
    table: Table, rank: int, objective: Coupled, fit: TableFit, generator: np.random.Generator
) -> Solution:
    order = objective.order
    # a run that is saved must depend on its point alone, so that it can go on from there
    limits = Limits() if fit.fit.loop.runs is None else Limits(refresh=1)
    problem, _ = problem_of(table, rank, order, limits)
    source = FittedTo("implicit", n_marginals=math.comb(len(table.domain), order), order=order)
    logger.info("%s: counting them would take longer", source)
    solution = fit.fit.run(problem, None, generator, fit.judge)
    return replace(solution, source=source, settings=objective)


def problem_of(
    table: Table, rank: int, order: int, limits: Limits | None
) -> tuple[Problem, MarginalSet | None]:
    """Return the problem of all marginals: never formed, within limits, or counted without any."""
    if limits is not None:
        rows = ColumnRows.of_codes(table.codes, table.weights)
        return ImplicitLeastSquares(rows, rank, order, limits), None
    marginals = table.marginals(order)
    return CoupledLeastSquares(marginals, rank, "counts"), marginals


def is_cheaper_implicitly(codes: Codes, rank: int, order: int) -> bool:
    """Tell whether sweeps over the rows cost less than counting all tables and sweeps over them."""
    n_patterns = 1 if codes.array.min(initial=0) >= 0 else codes.n_rows  # no second table
    return is_better_implicit(codes.domain.sizes, codes.n_rows, n_patterns, rank, order)


def is_better_implicit(
    sizes: Sequence[int], n_rows: int, n_patterns: int, rank: int, order: int
) -> bool:
    """Tell the same of a table with this many rows and patterns of missing cells."""
    n_all = len(sizes)
    if not 2 <= order <= n_all:
        return False  # for the counting to complain about
    if are_many(sizes, order):
        return True
    n_cells = n_table_cells(sizes, order)
    counting = _COUNTED_ROW * n_rows * math.comb(n_all, order)
    counted = _EXPECTED_SWEEPS * _COUNTED_CELL * n_cells * rank + counting
    row_and_gram = n_rows + n_patterns * rank / 2
    implicit = _EXPECTED_SWEEPS * _IMPLICIT_CELL * row_and_gram * n_all * rank
    return counted > _LEAST_SAVED and implicit < counted
