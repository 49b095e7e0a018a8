"""How well a model fits each pair of variables: Pearson's χ² of its table, over its df.

Tables of pairs are counted and compared for one variable and all that follow it at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.marginals.counting import count_tables

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes
    from jointpmf.pmf import JointPMF

_TIE = 1 - 1e-9
"""Residuals above this part of the largest one are ties, of which the first cell is named: which
of them rounding favours must not show."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of variables, by their positions; each attribute is an array with one entry per pair.

    Attributes
    ----------
    first, second : array
        The two variables.
    n_rows : array
        Rows that observe both, or the sum of their weights.
    chi2, df : array
        Pearson's statistic of the table of the pair, and (I − 1)(J − 1).
    first_level, second_level : array
        The cell with the largest residual (observed − expected) / √expected.
    observed, expected : array
        What is counted in that cell, and what the model expects.
    bootstrap_p : array
        How often a simulated table fits as badly; NaN without simulated tables.
    """

    first: np.ndarray
    second: np.ndarray
    n_rows: np.ndarray
    chi2: np.ndarray
    df: np.ndarray
    first_level: np.ndarray
    second_level: np.ndarray
    observed: np.ndarray
    expected: np.ndarray
    bootstrap_p: np.ndarray

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.first)

    @property
    def residual(self) -> np.ndarray:
        """The bivariate residual of each pair: χ² / df."""
        return self.chi2 / self.df

    def at(self, k: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the variables of a pair, and the levels of its worst cell."""
        variables = int(self.first[k]), int(self.second[k])
        return variables, (int(self.first_level[k]), int(self.second_level[k]))

    def worst_first(self, bootstrap_p: np.ndarray) -> Pairs:
        """Return the pairs with these p-values, the largest residual first."""
        whole = replace(self, bootstrap_p=bootstrap_p)
        order = np.argsort(-self.residual, kind="stable")
        return Pairs(*(getattr(whole, one.name)[order] for one in fields(whole)))


def cell_residuals(observed: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return (observed − expected) / √expected of counts, whose squares add up to Pearson's χ².

    Examples
    --------
    >>> cell_residuals(np.array([6.0, 1.0, 0.0]), np.array([4.0, 0.0, 0.0])).tolist()
    [1.0, inf, 0.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = (observed - expected) / np.sqrt(expected)
    return np.where(expected > 0, residuals, np.where(observed > 0, math.inf, 0.0))


class _Block(NamedTuple):
    """The tables of one variable with all that follow it, side by side."""

    first: int
    begins: np.ndarray
    """Where the table of each following variable begins."""
    n_rows: np.ndarray
    observed: np.ndarray
    expected: np.ndarray
    is_compared: np.ndarray
    """Whether a pair has rows and degrees of freedom."""

    def residuals(self) -> np.ndarray:
        """Return the residuals of all cells."""
        return cell_residuals(self.observed, self.expected)

    def chi2(self) -> np.ndarray:
        """Return Pearson's statistic of each pair that is compared."""
        sums = (self.residuals() ** 2).sum(axis=0)
        return np.add.reduceat(sums, self.begins)[self.is_compared]


def _blocks(pmf: JointPMF, codes: Codes, weights: np.ndarray) -> Iterator[_Block]:
    """Yield what was counted and what a model expects, one variable after the other (eq. 55)."""
    sizes, starts = np.array(pmf.domain.sizes), pmf.domain.offsets
    levels = np.concatenate([np.zeros((0, pmf.rank)), *pmf.factors])
    for n in range(len(sizes) - 1):
        following = range(n + 1, len(sizes))
        tables = count_tables(codes, [(n, m) for m in following], weights)
        observed = np.concatenate([np.asarray(table, float) for table in tables], axis=1)
        begins = starts[n + 1 : -1] - starts[n + 1]
        n_rows = np.add.reduceat(observed.sum(axis=0), begins)
        shares = (pmf.factors[n] * pmf.weights) @ levels[starts[n + 1] :].T
        expected = shares * np.repeat(n_rows, sizes[n + 1 :])
        is_compared = (n_rows > 0) & (sizes[n + 1 :] > 1) & (sizes[n] > 1)
        yield _Block(n, begins, n_rows, observed, expected, is_compared)


def pair_residuals(pmf: JointPMF, codes: Codes, weights: np.ndarray) -> np.ndarray:
    """Return χ² / df of each pair that some row observes, in the order of the variables."""
    df = np.array(pmf.domain.sizes) - 1
    parts = [
        block.chi2() / (df[block.first] * df[block.first + 1 :])[block.is_compared]
        for block in _blocks(pmf, codes, weights)
    ]
    return np.concatenate([np.zeros(0), *parts])


def pairs_of(pmf: JointPMF, codes: Codes, weights: np.ndarray) -> Pairs:
    """Return each pair that some row observes, in the order of the variables."""
    df = np.array(pmf.domain.sizes) - 1
    whole, real = np.zeros(0, int), np.zeros(0)
    parts = [[whole, whole, real, real, whole, whole, whole, real, real]]
    for block in _blocks(pmf, codes, weights):
        second = block.first + 1 + np.flatnonzero(block.is_compared)
        first = np.full(len(second), block.first)
        own = [first, second, block.n_rows[block.is_compared], block.chi2()]
        parts.append([*own, df[first] * df[second], *_worst_cells(block)])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Pairs(*columns, *[np.full(len(columns[0]), math.nan)])


def no_pairs() -> Pairs:
    """Return what there is where pairs are not compared."""
    return Pairs(*[np.zeros(0)] * len(fields(Pairs)))


def _worst_cells(block: _Block) -> list[np.ndarray]:
    """Return the cell with the largest residual of each pair, what it has and what it should."""
    size = np.abs(block.residuals())
    highest = size.max(axis=0)
    widths = np.diff(np.append(block.begins, size.shape[1]))
    worst = np.repeat(np.maximum.reduceat(highest, block.begins), widths)
    is_worst = highest >= _TIE * worst
    places = np.where(is_worst, np.arange(len(highest)), len(highest))
    place = np.minimum.reduceat(places, block.begins)[block.is_compared]
    level = (size[:, place] >= _TIE * highest[place]).argmax(axis=0)
    cells = level, place
    second_level = place - block.begins[block.is_compared]
    return [level, second_level, block.observed[cells], block.expected[cells]]
