"""One block of AO-ADMM: least squares over probability simplices, eq. 8."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointpmf.compiled import admm as kernels


class BlockResult(NamedTuple):
    """How far one block was solved."""

    n_iter: int
    primal_gap: float
    dual_gap: float
    moved: float
    """How far the block went in all, relative to its norm."""


def solve_block(
    gram: np.ndarray,
    cross: np.ndarray,
    value: np.ndarray,
    dual: np.ndarray,
    *,
    per_row: bool,
    max_iter: int,
    tol: float,
) -> BlockResult:
    """Bring one block to its feasible least-squares solution, in place.

    Parameters
    ----------
    gram : array of shape (rank, rank)
        What the other blocks say together, eq. 6.
    cross : array of shape (rank, size)
        The other blocks against the observed tables, eq. 7.
    value, dual : arrays of shape (rank, size)
        Where to start, and where the result is left; `value` is feasible before and after.
    per_row : bool
        Each row is a simplex (a factor) or the one column is (the weights).
    max_iter, tol : int, float
        Inner budget, and the relative gap below which the block counts as solved.

    Examples
    --------
    >>> value, dual = np.full((1, 2), 0.5), np.zeros((1, 2))
    >>> solve_block(np.eye(1), np.array([[0.9, 0.1]]), value, dual, per_row=True,
    ...             max_iter=100, tol=1e-12).n_iter < 100
    True
    >>> value.round(6).tolist()
    [[0.9, 0.1]]
    """
    return BlockResult(*kernels.solve_block(gram, cross, value, dual, per_row, max_iter, tol))
