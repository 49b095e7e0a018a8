"""A model that predicts cells from the rest of their rows: several kinds of fits, averaged.

Some cells are hidden. Fits differ in rank, in where they begin and in how alike neighbouring
levels are made; each stops where it predicts the hidden cells best. Of each start the best kind is
averaged, and the averages are blended as the hidden cells say. In the end the model is made as
sure of its predictions as it may be (docs/math.md, eq. 27).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trial, Trials, concluded
from jointpmf.fit.settings import Likelihood, Search
from jointpmf.fit.solution import Solution, Start
from jointpmf.mixing import average
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.rows.table import mean_log_likelihood
from jointpmf.solvers.held_out import Answers, HeldOutCells
from jointpmf.solvers.loop import Status
from jointpmf.traits import is_ordered

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.fit.validation import Split
    from jointpmf.rows.source import Table

_WORSE_RANKS = {"rows": 2, "factors": 1}
"""Ranks in a row without improvement after which no larger one is tried."""

_MIN_GAIN = 5e-4
"""Part of the cost that a larger rank must save."""

_MAX_RANK = 4096
"""Components of an average from one start, unless a single fit has more."""

_N_TRIED = 2
"""Fits whose average a kind is judged by."""

_N_AVERAGED = 6
"""Fits of the best kind of each start that are averaged."""


def fit_by_cells(
    split: Split, fit: EMFit, search: Search, generator: np.random.Generator
) -> Solution:
    """Return the average of fits that together predict hidden cells best from their rows."""
    assert split.judge is not None
    cells = split.judge(1)
    assert isinstance(cells, HeldOutCells)
    kinds = _CellSearch(split.fitted, cells, fit, search, generator)
    kinds.trials.run(kinds.candidates())
    return concluded(kinds.averaged)


class _Kind(NamedTuple):
    """What a fit is like."""

    start: str
    rank: int
    bandwidth: float

    def __str__(self) -> str:
        return f"{self.start}, rank {self.rank}, bandwidth {self.bandwidth:g}"


Candidates = Iterator[tuple[_Kind, Callable[[], Solution]]]


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
        self.table, self.cells, self.fit, self.kinds = table, cells, fit, search.kinds
        self.n_average = search.n_average or _N_AVERAGED
        self.trials: Trials[_Kind] = Trials(is_tolerant=False)
        self._generator = generator
        self._answers: dict[int, Answers] = {}
        self._has_order = any(map(is_ordered, table.domain))
        kinds = search.kinds
        self._ranks = {"rows": kinds.row_ranks, "factors": kinds.factor_ranks}
        self._bandwidths = {"rows": kinds.row_bandwidths, "factors": kinds.factor_bandwidths}
        self._starts = ("rows", "factors") if self._has_order else ("rows",)

    def candidates(self) -> Candidates:
        """Yield fits of all kinds that may help, and more of the best of each start."""
        for start in self._starts:
            yield from self._climb(start)
            if self._has_order:
                best = self._best(start)
                for bandwidth in self._bandwidths[start]:
                    yield from self._tried(best._replace(bandwidth=bandwidth))
        for start in self._starts:
            best = self._best(start)
            while len(self.trials.of(best)) < self._n_averaged(best):
                yield best, partial(self._fit, best)

    def _n_averaged(self, kind: _Kind) -> int:
        return min(self.n_average, max(_MAX_RANK // kind.rank, 1))

    def _climb(self, start: str) -> Candidates:
        bandwidth = self._bandwidths[start][0] if self._has_order else 0.0
        n_worse = 0
        for rank in self._ranks[start]:
            kind = _Kind(start, rank, bandwidth)
            yield from self._tried(kind)
            n_worse = 0 if self._best(start) == kind else n_worse + 1
            if n_worse == _WORSE_RANKS[start] or rank > len(self.table.rows):
                return

    def _tried(self, kind: _Kind) -> Candidates:
        while len(self.trials.of(kind)) < _N_TRIED:
            yield kind, partial(self._fit, kind)

    def _fit(self, kind: _Kind) -> Solution:
        loop = in_stage(self.fit.loop, str(kind))
        fit = replace(self.fit, **kind._asdict(), loop=loop)
        seed = int(self._generator.integers(2**63))
        solution = fit.run(self.table, np.random.default_rng(seed), self.cells)
        self._answers[id(solution)] = self.cells.answers(Point.of_pmf(solution.pmf))
        return solution

    def _best(self, start: str) -> _Kind:
        """Return the kind that predicts best; a larger rank must be worth it."""
        kinds = [kind for kind in self.trials.kinds if kind.start == start]
        best, *others = sorted(kinds, key=lambda kind: kind.rank)
        for other in others:
            gain = _MIN_GAIN if other.rank > best.rank else 0.0
            if self._cost_of(other) < (1 - gain) * self._cost_of(best):
                best = other
        return best

    def _cost_of(self, kind: _Kind) -> float:
        return self._cost(self.trials.of(kind)[:_N_TRIED])

    def _cost(self, fits: list[Solution], shares: np.ndarray | None = None) -> float:
        answers = Answers.of_all([self._answers[id(solution)] for solution in fits])
        return self.cells.cost_of(answers, shares)

    def averaged(self) -> Solution:
        """Return the blend of the best kinds that predicts best, with a record of all fits."""
        begun = {kind.start for kind in self.trials.kinds}
        bests = [self._best(start) for start in self._starts if start in begun]
        members = [
            Trial(kind, solution)
            for kind in bests
            for solution in self.trials.of(kind)[: self._n_averaged(kind)]
        ]
        fits = [member.solution for member in members]
        blends = (
            [_shares(members, part) for part in self.kinds.blends] if len(bests) > 1 else [None]
        )
        costs = [self._cost(fits, shares) for shares in blends]
        shares = blends[int(np.argmin(costs))]
        shares = np.ones(len(members)) if shares is None else shares
        used = np.flatnonzero(shares)
        pmf = self._calibrated(average([fits[k].pmf for k in used], shares[used]))
        point = Point.of_pmf(pmf)
        kinds = Counter(members[k].kind for k in used)
        reason = " and ".join(f"{n} fits from {kind}" for kind, n in kinds.items())
        return Solution(
            pmf,
            Status.STOPPED if self.trials.is_stopped else Status.VALIDATED,
            -mean_log_likelihood(self.table.rows, point),
            fits[used[0]].history,
            start=Start(" and ".join(kind.start for kind in kinds), reason),
            validation=self.cells.cost(point),
            restarts=tuple(
                trial.solution.as_restart()._replace(start=str(trial.kind))
                for trial in self.trials.found
            ),
            n_averaged=len(used),
            settings=Likelihood(self.fit.smoothing, self.fit.towards),
        )

    def _calibrated(self, pmf: JointPMF) -> JointPMF:
        """Return the model with columns to the power under which hidden cells are most likely."""
        judge = self.cells.scored_by("likelihood")
        found = []
        for power in self.kinds.powers:
            columns = [factor**power for factor in pmf.factors]
            factors = [column / column.sum(axis=0) for column in columns]
            found.append(JointPMF(pmf.domain, pmf.weights, factors))
        return min(found, key=lambda model: judge.cost(Point.of_pmf(model)))


def _shares(members: list[Trial], part: float) -> np.ndarray:
    """Return what each member counts for if those from factors have this part in all."""
    along = np.array([member.kind.start == "factors" for member in members])
    return np.where(along, part / max(along.sum(), 1), (1 - part) / max((~along).sum(), 1))
