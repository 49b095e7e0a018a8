"""Traits beside free components where tables leave the model open: what predicts tables best.

Some tables are held out in turn, all but how each variable is distributed. Free components and
traits of several kinds are fitted to the others, and the average counts each for as much as it
predicts of these, and of all tables if they were of other people (docs/math.md, eq. 82).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.fit.members import members_of
from jointpmf.fit.search import concluded
from jointpmf.fit.table_points import check_not_stopped, cost_of, optimism_of, probabilities_of
from jointpmf.fit.table_traits import Ends, TableTraitFit, kinds_of
from jointpmf.mixing import average
from jointpmf.solvers.table_cells import TableCells
from jointpmf.solvers.table_shares import Witness, best_shares

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution
    from jointpmf.fit.table_rank import RankSearch
    from jointpmf.fit.table_traits import TableKind
    from jointpmf.marginals.measurement import Measurement
    from jointpmf.pmf import JointPMF

logger = logging.getLogger("jointpmf")

_FEWEST_TABLES, _N_FOLDS, _ENOUGH_HELD = 6, 5, 25
"""With fewer tables nothing is held out, and components stay free; else how often some are, but no
more often than it takes to hold out as many tables as the last number."""

_MOST_CELLS = 200_000
"""Cells of all tables, each for all of its variables, beyond which traits would take minutes."""

_N_FREE, _N_FITS = 4, 16
"""Free fits that are averaged where tables are held out; and how many fits of traits there would be
in an average of nothing else: each kind has its share of them, one at least."""

_LONG, _SHORT = Ends(120, 1e-7), Ends(60, 1e-6)
"""When fits of traits end: to all tables, and to those by which kinds are compared."""

_N_DRAWN, _SHARED = 2, 0.5
"""How often tables of other people are drawn to see how much kinds adapt to chance, and the part of
that by which held-out tables flatter: they are of the people whom the others count too."""

_NEGLIGIBLE, _LEAST_FREE = 0.1, 0.01
"""Traits of a smaller share are left out. Free components keep the last at least: what only they
hold for possible stays so."""


class _Fold(NamedTuple):
    """Tables of which some are held out."""

    seen: TableCells
    held: TableCells


Fit = tuple[float, "Solution"]
"""How much a fit counts for, and the fit."""


@dataclass(frozen=True)
class Blend:
    """Traits, to be averaged with the free components that a search has found for tables."""

    search: RankSearch

    def applies(self, found: Solution) -> bool:
        """Tell whether traits may help: where many models fit, and nothing is impossible."""
        marginals, cells = self.search.marginals, self.search.cells
        is_open = found.n_averaged > 1 and found.pmf.rank > found.n_averaged
        is_small = len(cells.known.cells) + cells.n_cells <= _MOST_CELLS
        has_room = is_small and not marginals.exclusions
        return is_open and has_room and len(marginals) >= _FEWEST_TABLES

    def with_traits(self, found: Solution) -> Solution:
        """Return the average of free components and of the traits that predict tables."""
        try:
            fits = self._fits(found)
        except KeyboardInterrupt:
            return found.stopped()
        return concluded(partial(self._joined, found, fits)) if fits else found

    def _fits(self, found: Solution) -> list[Fit]:
        """Return fits of traits, and how much each of them is to count for."""
        folds, kinds = list(self._folds()), kinds_of(self.search.cells.domain)
        if not folds:
            return []
        first = {kind: self._fit(kind, self.search.cells, _LONG) for kind in kinds}
        shares, fits = self._shares(found, first, folds), []
        for kind, share in shares.items():
            count = max(round(_N_FITS * share), 1)
            more = [self._fit(kind, self.search.cells, _LONG) for _ in range(count - 1)]
            fits += [(share / count, fit) for fit in (first[kind], *more)]
            logger.info("traits (%s) are %.0f %% of the average", kind, 100 * share)
        return fits

    def _shares(
        self, found: Solution, first: dict[TableKind, Solution], folds: Sequence[_Fold]
    ) -> dict[TableKind, float]:
        """Return how much traits of each kind are to count for; the rest is left to the others."""
        flattery = np.array(self._optimisms(found, first))
        cells, whole = self.search.cells, [found.pmf, *(fit.pmf for fit in first.values())]
        witnesses = []
        for seen, held in folds:
            models = [self._free(found, seen), *(self._fit(k, seen, _SHORT).pmf for k in first)]
            witnesses.append(_witness(held, models, _SHARED * flattery))
        n_held = sum(held.total for _, held in folds)
        witnesses.append(_witness(cells, whole, flattery, n_held / cells.total))
        free, *rest = best_shares(witnesses).tolist()
        kept = {k: share for k, share in zip(first, rest, strict=True) if share > _NEGLIGIBLE}
        scale = (1 - _LEAST_FREE) / max(free + sum(kept.values()), 1e-300)
        return {kind: scale * share for kind, share in kept.items()}

    def _optimisms(self, found: Solution, first: dict[TableKind, Solution]) -> list[float]:
        """Return how much free components, and traits of each kind, adapt to chance."""
        search = self.search
        drawn = search.drawn(found.pmf, _N_DRAWN) if search.marginals.is_counted else []
        member, own = members_of(found.pmf, found.n_averaged)[0], self._trait_fit(is_elsewhere=True)
        found_again = [
            (fit.pmf, partial(own.from_model, kind, fit.trait_models[0], _SHORT))
            for kind, fit in first.items()
        ]
        return [
            search.optimism(member.rank, member, drawn),
            *(optimism_of(pmf, drawn, again) for pmf, again in found_again),
        ]

    def _folds(self) -> Iterator[_Fold]:
        """Yield tables of which some are held out, but not how variables are distributed."""
        domain, tables = self.search.cells.domain, self.search.marginals.measurements
        order = self.search.generator.permutation(len(tables)).tolist()
        n_held = 0
        for k in range(_N_FOLDS):
            out = order[k::_N_FOLDS]
            seen = [table for n, table in enumerate(tables) if n not in out]
            seen += [alone for n in sorted(out) for alone in alone_of(tables[n])]
            known = set().union(*map(_variables_of, seen))
            held = [tables[n] for n in sorted(out) if _variables_of(tables[n]) <= known]
            if held:
                yield _Fold(TableCells(domain, seen), TableCells(domain, held))
            n_held += len(held)
            if n_held >= _ENOUGH_HELD:
                return

    def _trait_fit(self, is_elsewhere: bool) -> TableTraitFit:
        loop = self.search.cell_fit.fit.loop
        loop = loop.elsewhere if is_elsewhere else loop
        return TableTraitFit(loop, self.search.marginals.is_counted)

    def _fit(self, kind: TableKind, cells: TableCells, ends: Ends) -> Solution:
        own = self._trait_fit(is_elsewhere=cells is not self.search.cells)
        found = own.run(kind, cells, self.search.generator, ends)
        check_not_stopped(found)
        return found

    def _free(self, found: Solution, cells: TableCells) -> JointPMF:
        """Return the average of few free fits to some of the tables."""
        rank = found.pmf.rank // found.n_averaged
        fits = [self.search.one_fit(rank, cells) for _ in range(_N_FREE)]
        check_not_stopped(*fits)
        return average([fit.pmf for fit in fits])

    def _joined(self, found: Solution, fits: Sequence[Fit]) -> Solution:
        """Return the average: traits first, then the free components."""
        shares, solutions = zip(*fits, strict=True)
        pmfs = [solution.pmf for solution in solutions]
        pmf = average([*pmfs, found.pmf], [*shares, 1 - sum(shares)])
        return replace(
            found,
            pmf=pmf,
            objective=cost_of(self.search.cells, pmf),
            restarts=(*found.restarts, *(solution.as_restart() for solution in solutions)),
            n_averaged=found.n_averaged + len(fits),
        )


def alone_of(table: Measurement) -> list[Measurement]:
    """Return how each variable of a table is distributed, where the table says that of everyone."""
    is_whole = not (table.where or table.given) and table.noise is None
    are_parts = all((sets.sum(axis=0) == 1).all() for sets in table.sets)
    if not (is_whole and are_parts) or np.isnan(table.counts).any():
        return []
    axes = range(table.counts.ndim)
    return [
        replace(
            table,
            positions=table.positions[k : k + 1],
            sets=table.sets[k : k + 1],
            counts=table.counts.sum(axis=tuple(other for other in axes if other != k)),
            least=0.0,
            most=np.inf,
        )
        for k in axes
    ]


def _variables_of(table: Measurement) -> set[int]:
    return {*table.positions, *(n for n, _ in table.where)}


def _witness(
    cells: TableCells, models: Sequence[JointPMF], flattery: np.ndarray, weight: float = 1.0
) -> Witness:
    return Witness(cells, [probabilities_of(cells, pmf) for pmf in models], flattery, weight)
