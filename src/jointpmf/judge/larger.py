"""Fits of a larger rank that may begin at a smaller model, with components added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.fit.search import Trials
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.solvers.starts.random import enlarged_point

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.fit.solution import Solution
    from jointpmf.rows.source import Table

_N_ENLARGED, _FEW_CELLS = 3, 10**6
"""Fits that begin at the smaller model, where cells times components are fewer than the second
number; else one, and it is not compared with a fit from the default start."""


def fit_larger(
    fit: EMFit, table: Table, smaller: Solution | None, generator: np.random.Generator
) -> Solution:
    """Return the best of a fit from the default start and some that begin at a smaller model.

    Where a fit takes long it is only one, from the smaller model.
    """
    is_small = table.rows.n_cells * fit.rank < _FEW_CELLS
    fits = [fit] if is_small or smaller is None else []
    if smaller is not None:
        count = _N_ENLARGED if is_small else 1
        fits += enlarged_fits(fit, table, smaller.pmf, generator, count)
    return best_unstopped(fits, table, generator)


def enlarged_fits(
    fit: EMFit,
    table: Table,
    smaller: JointPMF,
    generator: np.random.Generator,
    count: int = _N_ENLARGED,
) -> list[EMFit]:
    """Return fits that begin at a smaller model, each with other components added."""
    point = Point.of_pmf(smaller)
    starts = [enlarged_point(point, table.rows, fit.rank, generator) for _ in range(count)]
    return [replace(fit, start=JointPMF.at(start, table.domain)) for start in starts]


def best_unstopped(fits: list[EMFit], table: Table, generator: np.random.Generator) -> Solution:
    """Return the best of several fits; one that someone stopped ends the search."""

    def candidates() -> Iterator[tuple[int, Callable[[], Solution]]]:
        for k, fit in enumerate(fits):
            yield k, partial(fit.run, table, generator)

    trials: Trials[int] = Trials(is_tolerant=False)
    trials.run(candidates())
    if trials.is_stopped:
        raise KeyboardInterrupt
    return trials.best
