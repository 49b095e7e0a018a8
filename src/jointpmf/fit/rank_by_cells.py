"""A model that predicts cells from the rest of their rows: the best of several kinds of fits.

Some cells are hidden. Fits are of free components that begin at rows, of several ranks, and where
variables have an order also of components in a space of traits. The kind that predicts the hidden
cells best is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.fit import settings
from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trials, concluded
from jointpmf.fit.settings import Likelihood, Search, Traits
from jointpmf.fit.solution import Solution, Start
from jointpmf.fit.trait_search import TraitClimb, TraitKind
from jointpmf.fit.traits import TraitFit
from jointpmf.mixing import average
from jointpmf.pmf import JointPMF
from jointpmf.point import Point, columns_of_one
from jointpmf.rows.table import mean_log_likelihood
from jointpmf.solvers.held_out import Answers, HeldOutCells
from jointpmf.solvers.loop import Status
from jointpmf.traits import is_ordered

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.fit.validation import Split
    from jointpmf.rows.source import Table

_WORSE_RANKS = 2
"""Ranks in a row without improvement after which no larger one is tried."""

_LEAST_SAVING = 5e-4
"""Part of the cost that a larger rank must save."""

_CHANCE = 0.1
"""Part of the cost by which fits differ by chance, over the root of the number of hidden cells:
another space of traits, or more points in it, must save more."""

_N_JUDGED = 2
"""Fits whose average a rank is judged by; a space of traits is judged by one."""

_N_AVERAGED = 6
"""Fits of free components that are averaged; one of traits is as good as several."""

_MAX_RANK = 8192
"""Components of an average, unless a single fit has more."""

_MOST_NUMBERS = 2e7
"""Levels times points beyond which there are no more points."""

_LIFT = 1e-4
"""Part of the marginals that is mixed into free components with levels that cannot happen."""

_CELL_SCREEN_ITER, _CELL_TRAIT_ITER = 10, 30
"""Iterations of a fit of traits while spaces are compared, and in the end."""

_CHANGES = (
    ("count", (2.0, 0.5)),
    ("ridge", (1 / 3, 3.0)),
    ("widths", (0.03,)),
    ("count", (1.5,)),
)
"""What of the space is changed in turn, and the factors by which."""


def fit_by_cells(
    split: Split, fit: EMFit, search: Search, generator: np.random.Generator
) -> Solution:
    """Return the average of fits that together predict hidden cells best from their rows."""
    cells = split.judge
    assert isinstance(cells, HeldOutCells)
    kinds = _CellSearch(split.fitted, cells, fit, search, generator)
    kinds.trials.run(kinds.candidates())
    return concluded(kinds.averaged)


class _RowKind(NamedTuple):
    """Free components that begin at rows."""

    rank: int

    def __str__(self) -> str:
        return f"rows, rank {self.rank}"


Kind = _RowKind | TraitKind
Candidates = Iterator[tuple[Kind, Callable[[], Solution]]]


class _CellSearch:
    """The search for fits that together predict hidden cells best."""

    def __init__(
        self,
        table: Table,
        cells: HeldOutCells,
        fit: EMFit,
        search: Search,
        generator: np.random.Generator,
    ) -> None:
        self.table, self.cells, self.fit, self.kinds = table, cells, fit, settings.KINDS
        self.n_average = search.n_average
        self.trials: Trials[Kind] = Trials(is_tolerant=False)
        self._generator = generator
        self._answers: dict[int, Answers] = {}
        self._chosen: Kind | None = None

    def candidates(self) -> Candidates:
        """Yield fits of all kinds that may help, and more of the best."""
        yield from self._climb()
        chosen: Kind = self._best_rank()
        if self.kinds.cell_traits is not None and any(map(is_ordered, self.table.domain)):
            space = yield from self._best_space(self.kinds.cell_traits)
            chosen = min(chosen, space, key=self._cost)
        self._chosen = chosen
        while len(self.trials.of(chosen)) < self._n_averaged(chosen):
            yield chosen, partial(self._fit, chosen)

    def _climb(self) -> Candidates:
        """Yield fits that begin at rows, of growing rank while that helps."""
        n_worse = 0
        for rank in self.kinds.row_ranks:
            kind = _RowKind(rank)
            while len(self.trials.of(kind)) < _N_JUDGED:
                yield kind, partial(self._fit, kind)
            n_worse = 0 if self._best_rank() == kind else n_worse + 1
            if n_worse == _WORSE_RANKS or rank > len(self.table.rows):
                return

    def _best_space(self, first: Traits) -> Generator[Any, None, TraitKind]:
        """Yield fits in spaces that help, then one to the end, and that at more points."""
        domain, points = self.table.domain, self.kinds.cell_points
        best = TraitKind(points[0], replace(first, count=min(first.count, len(domain))))
        yield from self._tried(best)
        min_gain = _CHANCE / np.sqrt(self.cells.total) * self._cost(best)
        climb = TraitClimb(domain, self._tried, self._cost, min_gain)
        for field, factors in _CHANGES:
            best = yield from climb.along(best, field, factors)
        best = best._replace(is_final=True)
        yield from self._tried(best)
        for n_points in points[1:]:
            more = best._replace(rank=n_points)
            if n_points * sum(domain.sizes) > _MOST_NUMBERS:
                break
            yield more, partial(self._with_more_points, best, n_points)
            if self._cost(more) > self._cost(best) - min_gain:
                break
            best = more
        return best

    def _tried(self, kind: TraitKind) -> Candidates:
        if not self.trials.of(kind):
            yield kind, partial(self._fit, kind)

    def _n_averaged(self, kind: Kind) -> int:
        default = _N_AVERAGED if isinstance(kind, _RowKind) else 1
        return min(self.n_average or default, max(_MAX_RANK // kind.rank, 1))

    def _fit(self, kind: Kind) -> Solution:
        generator = np.random.default_rng(int(self._generator.integers(2**63)))
        loop = in_stage(self.fit.loop, str(kind))
        if isinstance(kind, _RowKind):
            fit = replace(self.fit, rank=kind.rank, loop=loop)
            return self._answered(self._lifted(fit.run(self.table, generator, self.cells)))
        most = _CELL_TRAIT_ITER if kind.is_final else _CELL_SCREEN_ITER
        loop = replace(loop, max_iter=min(loop.max_iter, most))
        traits = TraitFit(self.kinds.step_points, kind.traits, loop)
        found = traits.redrawn(self.table, generator, kind.rank)
        return self._answered(found)

    def _with_more_points(self, kind: TraitKind, n_points: int) -> Solution:
        """Return the first fit of a kind at more points of its space."""
        seed = int(self._generator.integers(2**63))
        solution = self.trials.of(kind)[0]
        (model,) = solution.trait_models
        more = model.at(model.space.redrawn(n_points, seed))
        pmf = JointPMF.at(more.point(), more.domain, trait_models=(more,))
        return self._answered(replace(solution, pmf=pmf))

    def _lifted(self, solution: Solution) -> Solution:
        """Return a fit under which all levels may happen: a start at rows excludes some."""
        if not self.fit.smoothing or all(factor.all() for factor in solution.pmf.factors):
            return solution
        domain, point = self.table.domain, Point.of_pmf(solution.pmf)
        prior = self.fit.pseudo_counts(domain, self.table.rows.marginal)
        factors = (1 - _LIFT) * point.factors + _LIFT * columns_of_one(prior, domain)
        return replace(solution, pmf=JointPMF.at(Point(point.weights, factors), domain))

    def _answered(self, solution: Solution) -> Solution:
        """Return a solution with what it costs, and note what it says about hidden cells."""
        answers = self.cells.answers(Point.of_pmf(solution.pmf))
        solution = replace(solution, validation=self.cells.cost_of(answers))
        self._answers[id(solution)] = answers
        return solution

    def _best_rank(self) -> _RowKind:
        """Return the free components that predict best; a larger rank must be worth it."""
        best, *others = [kind for kind in self.trials.kinds if isinstance(kind, _RowKind)]
        for other in others:
            if self._cost(other) < (1 - _LEAST_SAVING) * self._cost(best):
                best = other
        return best

    def _cost(self, kind: Kind) -> float:
        """Return the cost of the average of the fits that a kind is judged by."""
        fits = self.trials.of(kind)[: _N_JUDGED if isinstance(kind, _RowKind) else 1]
        return self.cells.cost_of(Answers.of_all([self._answers[id(fit)] for fit in fits]))

    def averaged(self) -> Solution:
        """Return the average of what was chosen, with a record of all fits."""
        chosen = self._chosen or min(self.trials.kinds, key=self._cost)
        fits = self.trials.of(chosen)[: self._n_averaged(chosen)]
        pmf = average([fit.pmf for fit in fits])
        point = Point.of_pmf(pmf)
        is_free = isinstance(chosen, _RowKind)
        reason = f"{len(fits)} fits from {_text(chosen)}"
        return Solution(
            pmf,
            Status.STOPPED if self.trials.is_stopped else Status.VALIDATED,
            -mean_log_likelihood(self.table.rows, point),
            fits[0].history,
            start=Start("rows" if is_free else "traits", reason),
            validation=self.cells.cost(point),
            restarts=tuple(
                trial.solution.as_restart()._replace(start=_text(trial.kind))
                for trial in self.trials.found
            ),
            n_averaged=len(fits),
            settings=self._settings(chosen),
        )

    def _settings(self, kind: Kind) -> Likelihood:
        if isinstance(kind, _RowKind):
            return Likelihood(self.fit.smoothing, self.fit.towards)
        return Likelihood(traits=kind.traits)


def _text(kind: Kind) -> str:
    return str(kind) if isinstance(kind, _RowKind) else f"{kind.traits}, {kind.rank} points"
