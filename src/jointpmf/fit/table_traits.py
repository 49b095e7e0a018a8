"""Components at points of a space of traits, fitted to tables of any kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.fit.progress import in_stage
from jointpmf.fit.solution import Solution, Start
from jointpmf.pmf import JointPMF
from jointpmf.solvers.loop import iterate
from jointpmf.solvers.starts.traits import flat_model
from jointpmf.solvers.table_traits import TraitSecants
from jointpmf.solvers.traits import Ridge
from jointpmf.traits import Scores, Space, TraitModel, has_width

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.solvers.loop import Loop
    from jointpmf.solvers.table_cells import TableCells

_N_TRAIT_POINTS, _MOST_TABLE_TRAITS, _N_WAVES, _PACE = 512, 6, 32, 0.7
"""The space of every kind of traits; there are no more traits than variables."""

_RIDGES = (0.5, 4.0, 32.0)
"""How strongly coefficients are pulled to zero. Tables that show little need more."""

_EXACT_ROWS = 10_000
"""How many rows a table that knows no number of rows counts for, beside the ridge."""

_FIRST_SIZE, _FIRST_WIDTH = 0.5, 0.1
"""Log-odds per standard deviation at the start, and which part of that the widths begin with."""


class TableKind(NamedTuple):
    """Traits of one kind."""

    ridge: float
    has_order: bool
    """Whether levels that stand for numbers move together."""

    def __str__(self) -> str:
        return f"ridge {self.ridge:g}{'' if self.has_order else ', levels without order'}"

    def begin(self, cells: TableCells, generator: np.random.Generator) -> TraitModel:
        """Return a random start, near independence."""
        domain, n_traits = cells.domain, min(_MOST_TABLE_TRAITS, len(cells.domain))
        scores = Scores.of(domain, cells.marginal) if self.has_order else Scores.unordered(domain)
        space = Space.drawn(_N_TRAIT_POINTS, n_traits, _N_WAVES, _PACE, generator)
        flat = flat_model(scores, space, _EXACT_ROWS * cells.marginal)
        size = _FIRST_SIZE / np.sqrt(n_traits)
        coefficients = np.zeros_like(flat.coefficients)
        coefficients[:, :n_traits] = size * generator.normal(size=(len(coefficients), n_traits))
        coefficients[scores.widths] *= _FIRST_WIDTH
        return replace(flat, coefficients=coefficients)


def kinds_of(domain: Domain) -> list[TableKind]:
    """Return the kinds of traits that may suit variables, whose numbers may be mere names.

    Examples
    --------
    >>> from jointpmf import Domain
    >>> len(kinds_of(Domain.of_sizes([2, 2, 2]))), len(kinds_of(Domain.of_sizes([2, 2, 5])))
    (3, 6)
    """
    has_order = any(map(has_width, domain))
    orders = (False, True) if has_order else (False,)
    return [TableKind(ridge, order) for order in orders for ridge in _RIDGES]


class Ends(NamedTuple):
    """When a fit of traits ends."""

    n_steps: int
    tol: float


@dataclass(frozen=True)
class TableTraitFit:
    """How traits are fitted to tables: everything but the tables.

    Attributes
    ----------
    loop : Loop
        Its budget and who watches.
    is_counted : bool
        Whether tables know how many rows they stand for.
    """

    loop: Loop
    is_counted: bool

    def run(
        self, kind: TableKind, cells: TableCells, generator: np.random.Generator, ends: Ends
    ) -> Solution:
        """Return one fit, with points of its own."""
        return self.from_model(kind, kind.begin(cells, generator), ends, cells)

    def from_model(
        self, kind: TableKind, begin: TraitModel, ends: Ends, cells: TableCells
    ) -> Solution:
        """Return the fit from a model, with its points."""
        unit = 1.0 if self.is_counted else float(cells.n_shown.max()) / _EXACT_ROWS
        ridge = Ridge(unit * kind.ridge, unit * kind.ridge, unit * Ridge().intercepts)
        solver = TraitSecants.on_tables(cells, begin, ridge)
        loop = in_stage(self.loop, f"traits, {kind}")
        loop = replace(loop, max_iter=min(loop.max_iter, ends.n_steps), tol=ends.tol)
        outcome = iterate(solver, begin.point(), loop)
        found = Solution.of(outcome, cells.domain, Start("traits", str(kind)))
        models = [begin.of_point(outcome.point)]
        pmf = JointPMF.at(outcome.point, cells.domain, trait_models=models)
        return replace(found, pmf=pmf)
