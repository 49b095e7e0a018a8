"""Replicates without refits: one Newton step each from where the fit ended, the delta method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jointpmf.errors import JointPMFError
from jointpmf.fit.settings import Likelihood
from jointpmf.judge.row_information import scores_of_rows
from jointpmf.point import Point, on_simplices
from jointpmf.rows.source import Source, Table
from jointpmf.solvers.jacobian import positive_rank, whole_tangent

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution
    from jointpmf.pmf import JointPMF
    from jointpmf.rows.resampling import Draw
    from jointpmf.solvers.curvature import Tangent

_MOST_PARAMETERS = 2000
"""Parameters of the largest model whose information matrix is made."""

_AT_ZERO = 1e-6
"""A probability below this is at its bound, where no first order tells how far it may be."""

_BLOCK = 4096
"""Rows whose scores are in memory at once."""


def quick_points(solution: Solution, source: Source, draw: Draw, n: int) -> list[Point]:
    """Return replicates of a fit by likelihood to rows in memory, to first order (eq. 71)."""
    pmf, settings = solution.pmf, solution.settings
    is_plain = isinstance(settings, Likelihood) and not settings.smoothing
    if not is_plain or solution.validation is not None or solution.n_averaged > 1:
        raise JointPMFError("quick needs one fit by likelihood, without smoothing and to the end")
    if not isinstance(source, Table):
        raise JointPMFError("quick needs rows in memory")
    point = Point.of_pmf(pmf)
    at = point.vector
    tangent = whole_tangent(pmf.domain, point)
    if (at < _AT_ZERO).any():
        raise JointPMFError(
            f"quick needs a model without zeros, and {int((at < _AT_ZERO).sum())} of its "
            "probabilities are zero: leave quick out"
        )
    if len(tangent.moved) > _MOST_PARAMETERS:
        raise JointPMFError(
            f"quick needs a model of at most {_MOST_PARAMETERS} parameters, not "
            f"{len(tangent.moved)}: leave quick out"
        )
    drawn = [draw(k) for k in range(n)]
    information, pushes = _sums(pmf, source, drawn, tangent)
    if positive_rank(information) < len(information):
        raise JointPMFError(
            "quick needs rows that determine the model, which these do not: leave quick out"
        )
    steps = cho_solve(cho_factor(information), pushes)
    # a step may have led out of bounds
    ahead = (np.maximum(at + tangent.expand(step), 0.0) for step in steps.T)
    return [on_simplices(each, pmf.domain, pmf.rank) for each in ahead]


def _sums(
    pmf: JointPMF, own: Table, drawn: list[Source], tangent: Tangent
) -> tuple[np.ndarray, np.ndarray]:
    """Return the information in all rows, and what the weights of each replicate push to."""
    tables = [table for table in drawn if isinstance(table, Table)]
    rows = tables[0].codes.array
    weights = np.array([table.rows.weights for table in tables])
    plain = own.rows.weights
    information = np.zeros((len(tangent.moved),) * 2)
    pushes = np.zeros((len(tangent.moved), len(tables)))
    for begin in range(0, len(rows), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        scores = scores_of_rows(pmf, rows[part], tangent)
        information += (scores * plain[part, None]).T @ scores
        pushes += scores.T @ weights[:, part].T
    return information, pushes
