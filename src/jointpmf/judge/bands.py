"""Where tables of bands disagree with each other, on what the bands of both can tell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from jointpmf.domain import Variable
from jointpmf.marginals.marginal_set import Disagreement, MarginalSet

_ERRORS = 4.0
"""Standard errors by which two tables may differ by chance."""


class _Shares(NamedTuple):
    """What a table says of one variable: the share of each of its entries, and how far it is off.

    `variances` are those of added noise, and `slack` how far rounding may have moved a share.
    """

    names: tuple[str, ...]
    sets: np.ndarray
    shares: np.ndarray
    variances: np.ndarray
    slack: float
    n_obs: float
    is_plain: bool

    def of(self, block: np.ndarray) -> tuple[float, float, float]:
        """Return the share of a block of levels, its variance, and how far rounding may go."""
        inside = (self.sets & block).any(axis=1)
        share = float(self.shares @ inside)
        variance = float(self.variances @ inside) + max(share * (1 - share), 0) / self.n_obs
        return share, variance, self.slack * int(inside.sum())


def band_disagreements(marginals: MarginalSet, tolerance: float = 1e-6) -> list[Disagreement]:
    """Return where a table of bands contradicts another on a variable, worst first.

    Two tables are compared on the smallest sets of levels that are unions of bands of both. Tables
    of part of the population, of percentages within levels, or with cells that were not published
    say nothing here.

    Examples
    --------
    >>> import jointpmf as jp
    >>> age = jp.Variable("age", ("0-4", "5-9", "10+"))
    >>> fine = jp.Marginal(("age",), [200, 300, 500])
    >>> coarse = jp.Marginal(("age",), [600, 400], levels={"age": [("0-4", "5-9"), "10+"]})
    >>> print(band_disagreements(jp.MarginalSet(jp.Domain([age]), [fine, coarse]))[0])
    age gives age=('0-4', '5-9') probability 0.5, age gives it 0.6 (difference 0.1)
    """
    found: list[Disagreement] = []
    for n, variable in enumerate(marginals.domain):
        tables = list(_tables_of(marginals, n))
        for first, second in combinations(tables, 2):
            if not (first.is_plain and second.is_plain):
                found += _compared(variable, first, second, tolerance)
    return sorted(found, key=lambda one: -one.by)


def _tables_of(marginals: MarginalSet, n: int) -> Iterator[_Shares]:
    """Yield what each whole table says of a variable."""
    for marginal, table in zip(marginals, marginals.measurements, strict=True):
        if n not in table.positions or table.where or table.given:
            continue
        if not all((sets.sum(axis=0) == 1).all() for sets in table.sets):
            continue  # it leaves levels out, or has bands that overlap
        k = table.positions.index(n)
        others = tuple(axis for axis in range(len(table.positions)) if axis != k)
        counts = table.counts.sum(axis=others)
        if not np.isnan(counts).any():
            noise = np.zeros(table.counts.shape) if table.noise is None else table.noise
            yield _Shares(
                tuple(marginal.names),
                table.sets[k],
                counts / counts.sum(),
                (noise**2).sum(axis=others) / counts.sum() ** 2,
                marginal.slack * table.counts.size / len(counts),
                marginal.n_rows or math.inf,
                marginal.is_of_everyone,
            )


def _compared(
    variable: Variable, first: _Shares, second: _Shares, tolerance: float
) -> Iterator[Disagreement]:
    """Yield the block of levels on which two tables differ most, if they do."""
    worst, most = None, 0.0
    for block in _blocks(first.sets, second.sets):
        (a, a_variance, a_slack), (b, b_variance, b_slack) = first.of(block), second.of(block)
        chance = _ERRORS * math.sqrt(a_variance + b_variance)
        excess = abs(a - b) - tolerance - chance - a_slack - b_slack
        if excess > most:
            levels = tuple(np.array(variable.levels, object)[block])
            level = levels if len(levels) > 1 else levels[0]
            worst = Disagreement((variable.name,), (level,), first.names, second.names, a, b)
            most = excess
    if worst is not None:
        yield worst


def _blocks(first: np.ndarray, second: np.ndarray) -> list[np.ndarray]:
    """Return the smallest sets of levels that are unions of entries of both axes."""
    entries = np.concatenate([first, second])
    blocks: list[np.ndarray] = []
    for entry in entries:
        touched = [block for block in blocks if (block & entry).any()]
        blocks = [block for block in blocks if not (block & entry).any()]
        blocks.append(np.logical_or.reduce([entry, *touched]))
    return blocks
