"""The rank by what is held out: fits of growing rank, stopped early, the best kind averaged.

Part of every distinct row is held out by thinning its weight, so that a row of weight two and the
same row twice give the same model. With a target it is the target's cells that are held out, and
predicted from the rest of their rows; where they are fitted they may count several times.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.domain import MISSING
from jointpmf.fit import settings
from jointpmf.fit.progress import in_stage
from jointpmf.fit.search import Trials, badness, concluded
from jointpmf.fit.settings import Likelihood, Search, Traits, emphasis_of
from jointpmf.fit.solution import Solution, Start
from jointpmf.fit.table_rank import PATIENCE
from jointpmf.fit.trait_search import TraitClimb, TraitKind
from jointpmf.mixing import average
from jointpmf.point import Point
from jointpmf.rows.distinct import distinct_codes
from jointpmf.rows.source import Table
from jointpmf.rows.table import Rows, mean_log_likelihood
from jointpmf.solvers.held_out import HeldOut
from jointpmf.solvers.loop import Status, Validation

if TYPE_CHECKING:
    from jointpmf.fit.likelihood import EMFit
    from jointpmf.fit.validation import Splitter
    from jointpmf.pmf import JointPMF

_SMOOTHINGS = (0.1, 1.0)
"""Smoothing that is tried: more of it where that is better than less."""

_FEW_CELLS, _N_TRIED = 20_000, 6
"""Tables of fewer cells stay with free components, and a rank is judged by the mean held-out cost
of this many fits. In larger tables it is judged by one fit."""

_MIN_AVERAGED, _MAX_AVERAGED, _AVERAGE_WORK = 4, 24, 10**8
"""Fits that are averaged at the chosen rank: as many as cells times components allow."""

_LEAST_NATS = 5e-4
"""A larger rank must predict better by this, in nats per row or per cell of the target."""

_STEP_PATIENCE, _STEP_GAIN = 5, 1e-4
"""One fit ends when this many iterations gain less than this on what is held out, in nats: a part
of what a larger rank must gain."""

_PLAIN_STEPS = 20
"""EM steps to a target before extrapolations begin: a fit that is best after a few steps should not
jump past them."""

_HELD_OUT_PART = 0.2

_MAX_TRIALS = 1e9
"""Draws by which the weight of one row is thinned, at most."""

_MIN_VARIABLES_OF_TRAITS = 4
"""Tables of fewer variables stay with free components."""

_PROMISE = 0.8
"""Part of what free components gain over independence that a first space of traits must gain."""

_TRAIT_GAIN = 1e-4
"""Part of the cost that a change of the space of traits must save."""

_TRAIT_WORK = 8e9
"""Cells times points of the largest fit of traits; tables for which the fewest points are more than
this stay with free components."""

_ROWS_PER_POINT = 2
"""Distinct rows per point, at least, where there are more points than the fewest."""

_SCREEN_ITER, _TRAIT_ITER = 25, 60
"""Iterations of a fit of traits while spaces are compared, and in the end."""

_TRAITS_AVERAGED, _TRAITS_AVERAGE_WORK = (5, 6), 10**10
"""Fits of traits that are averaged, at least and at most: as many as cells times points allow."""

_SHARES, _N_SHARED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), 3
"""What free components may count for beside traits, and the splits by which that is judged."""

_MIN_ROWS = 10
"""With fewer rows nothing can be held out, and the variables are taken for independent."""


def fit_by_rows(
    table: Table,
    fit: EMFit,
    objective: Likelihood,
    search: Search,
    generator: np.random.Generator,
    split: Splitter | None = None,
) -> Solution:
    """Return an average of fits whose rank is chosen by what was held out of them.

    With `split` it is what was asked to be held out; else a part of every distinct row.
    """
    position = None if objective.target is None else table.domain.index(objective.target)
    codes, weights = distinct_codes(table.codes, table.weights)
    seeds = generator.integers(2**63, size=max(_MAX_AVERAGED, search.n_average or 0))
    generators = [np.random.default_rng(seed) for seed in seeds]
    ranks = _RankSearch(codes, weights, position, generators, fit, split)
    tried = _SMOOTHINGS if objective.smoothing is None else (objective.smoothing,)
    if max(weights.sum(), len(weights)) < _MIN_ROWS:
        return ranks.independent(tried[0])
    ranks.trials.run(ranks.candidates(tried, objective.emphasis, search))
    return concluded(ranks.averaged)


class _Kind(NamedTuple):
    """What a fit is like; `emphasis` is how often a cell of the target counts."""

    rank: int
    smoothing: float
    emphasis: int = 1

    def __str__(self) -> str:
        return f"rank {self.rank}"


class _Seeded(NamedTuple):
    """What is fitted and what is held out, and the seed of the fits to it."""

    fitted: Table
    judge: Validation
    seed: int


AnyKind = _Kind | TraitKind
Candidates = Iterator[tuple[AnyKind, Callable[[], Solution]]]


class _RankSearch:
    """The search for the best kind of fit, and all fits that were made on the way."""

    def __init__(
        self,
        codes: Codes,
        weights: np.ndarray,
        target: int | None,
        generators: list[np.random.Generator],
        fit: EMFit,
        splitter: Splitter | None,
    ) -> None:
        self.codes, self.weights, self.target, self.fit = codes, weights, target, fit
        self.trials: Trials[AnyKind] = Trials(is_tolerant=False)
        self.chosen: AnyKind | None = None
        self._best: _Kind | None = None
        self._generators = generators
        self._splitter = splitter
        self._splits: list[_Seeded] = []
        self.n_cells = int((codes.array != MISSING).sum())
        self.n_tried = _N_TRIED if self.n_cells < _FEW_CELLS else 1

    def candidates(
        self, smoothings: tuple[float, ...], emphasis: int | None, search: Search
    ) -> Candidates:
        """Yield fits of growing rank while that helps, then the rest of those of the best kind."""
        ranks = settings.KINDS.ranks
        yield from self._climb(ranks, _Kind(ranks[0], smoothings[0], emphasis or 1), PATIENCE)
        for smoothing in smoothings[1:]:
            yield from self._climb(ranks, self.best._replace(smoothing=smoothing), 1)
        if self.target is not None and emphasis is None:
            several = emphasis_of(len(self.codes.domain) - 1)
            yield from self._climb(ranks, self.best._replace(emphasis=several), PATIENCE)
        self.chosen = best = self.best
        if points := self._points():
            assert settings.KINDS.traits is not None
            self.chosen = yield from self._trait_candidates(best, settings.KINDS.traits, points)
        count = search.n_average or self._n_averaged(self.chosen)
        for kind in dict.fromkeys([self.chosen, best]):
            yield from self._fits(kind, count)

    def _n_averaged(self, kind: AnyKind) -> int:
        """Return how many fits are averaged, as the work of one suggests."""
        least, most, work = _MIN_AVERAGED, _MAX_AVERAGED, _AVERAGE_WORK
        if isinstance(kind, TraitKind):
            (least, most), work = _TRAITS_AVERAGED, _TRAITS_AVERAGE_WORK
        return min(max(work // (self.n_cells * kind.rank), least), most)

    def _points(self) -> tuple[int, ...]:
        """Return how many points traits may have, upwards; none if they are not tried."""
        n_variables = len(self.codes.domain)
        is_small = self.n_cells < _FEW_CELLS or n_variables < _MIN_VARIABLES_OF_TRAITS
        if settings.KINDS.traits is None or self.target is not None or is_small:
            return ()
        most = min(_TRAIT_WORK / self.n_cells, len(self.weights) / _ROWS_PER_POINT)
        first, *more = settings.KINDS.points
        return (
            (first, *(n for n in more if n <= most)) if first * self.n_cells <= _TRAIT_WORK else ()
        )

    def _trait_candidates(
        self, free: _Kind, traits: Traits, points: tuple[int, ...]
    ) -> Generator[Any, None, AnyKind]:
        """Yield fits of traits while they promise more than free components; return the best."""
        n_traits = min(traits.count, len(self.codes.domain))
        first = TraitKind(points[0], replace(traits, count=n_traits))
        yield from self._fits(first, 1)
        by_free, independent = self._cost(free), self._cost(self.trials.kinds[0])
        if independent - self._cost(first) < _PROMISE * (independent - by_free):
            return free
        min_gain = _TRAIT_GAIN * abs(by_free)
        tried = partial(self._fits, count=1)  # which varies little
        climb = TraitClimb(self.codes.domain, tried, self._cost, min_gain)
        best = yield from climb.candidates(first, points[1:])
        return best if self._cost(best) < by_free else free

    def _fits(self, kind: AnyKind, count: int) -> Candidates:
        """Yield the fits of a kind that are missing from some."""
        for k in range(len(self.trials.of(kind)), count):
            yield kind, partial(self._fit, kind, k)

    def _climb(self, ranks: tuple[int, ...], first: _Kind, patience: int) -> Candidates:
        """Yield fits of growing rank from a kind on, until ranks in a row do not help."""
        n_worse = 0
        for rank in ranks[ranks.index(first.rank) :]:
            kind = first._replace(rank=rank)
            if self.trials.of(kind):
                return
            yield from self._fits(kind, self.n_tried)
            if self._cost(kind) < self._cost(self.best) - _LEAST_NATS:
                self._best = kind
            n_worse = 0 if self.best == kind else n_worse + 1
            if n_worse == patience or rank > len(self.weights):
                return

    @property
    def best(self) -> _Kind:
        """The kind of free components whose fits predict best what they have not seen."""
        if self._best is None:
            first = self.trials.kinds[0]
            assert isinstance(first, _Kind)
            self._best = first
        return self._best

    def _cost(self, kind: AnyKind) -> float:
        """Return the mean held-out cost of the fits that a kind is judged by."""
        return float(np.mean([badness(fit) for fit in self._ended(kind)[: self.n_tried]]))

    def _ended(self, kind: AnyKind) -> list[Solution]:
        """Return the fits of a kind, without one that was stopped where there are others."""
        fits = self.trials.of(kind)
        return [fit for fit in fits if fit.status is not Status.STOPPED] or fits

    def _fit(self, kind: AnyKind, k: int) -> Solution:
        """Return the fit of one kind on one split, stopped by what was held out."""
        while len(self._splits) <= k:
            self._splits.append(self._split(self._generators[len(self._splits)]))
        split = self._splits[k]
        table = split.fitted
        if isinstance(kind, _Kind) and kind.emphasis > 1:
            assert self.target is not None
            table = replace(table, rows=table.rows.emphasised(self.target, kind.emphasis))
        return self._of(kind).run(table, np.random.default_rng(split.seed), split.judge)

    def _of(self, kind: AnyKind) -> EMFit:
        loop = in_stage(self.fit.loop, str(kind))
        if isinstance(kind, _Kind):
            n_plain = None if self.target is None else _PLAIN_STEPS
            fit = replace(self.fit, rank=kind.rank, smoothing=kind.smoothing, loop=loop)
            return replace(fit, n_plain=n_plain)
        traits = kind.traits if kind.is_final else replace(kind.traits, pulls=())
        most = _TRAIT_ITER if kind.is_final else _SCREEN_ITER
        loop = replace(loop, max_iter=min(loop.max_iter, most))
        return replace(self.fit, rank=kind.rank, traits=traits, loop=loop)

    def _split(self, generator: np.random.Generator) -> _Seeded:
        if self._splitter is not None:
            fitted, judge = self._splitter(generator)
            assert judge is not None
            return _Seeded(fitted, judge, int(generator.integers(2**63)))
        held_out = self._thinned(generator)
        seed = int(generator.integers(2**63))
        kept = self.weights - held_out
        if self.target is None:
            table = Table(self.codes, kept, Rows.of_codes(self.codes, kept))
            return _Seeded(table, _held_out(Rows.of_codes(self.codes, held_out)), seed)
        array = self.codes.array.copy()
        array[:, self.target] = MISSING
        hidden = Codes(self.codes.domain, array)
        both = Codes(self.codes.domain, np.vstack([self.codes.array, array]))
        weights = np.concatenate([kept, held_out])
        seen = held_out * (self.codes.array[:, self.target] != MISSING)
        judge = _held_out(Rows.of_codes(self.codes, seen), Rows.of_codes(hidden, seen))
        return _Seeded(Table(both, weights, Rows.of_codes(both, weights)), judge, seed)

    def _thinned(self, generator: np.random.Generator) -> np.ndarray:
        """Return the weight of each row that is held out: of a whole weight a whole part."""
        trials = np.minimum(np.ceil(self.weights), _MAX_TRIALS)
        while True:
            part = generator.binomial(trials.astype(np.int64), _HELD_OUT_PART) / trials
            seen = self.codes.array[:, self.target] != MISSING if self.target is not None else True
            if (part * seen > 0).any() and (part < 1).any():
                return part * self.weights

    def independent(self, smoothing: float) -> Solution:
        """Return the fit of rank one, for a table too small to hold anything out."""
        table = Table.of_codes(self.codes, self.weights)
        return self._of(_Kind(1, smoothing)).run(table, self._generators[0])

    def averaged(self) -> Solution:
        """Return the average of the fits of the best kind, with a record of all."""
        kind = self.chosen or self.best
        best = self._ended(kind)
        pmf = self._with_free(best) if isinstance(kind, TraitKind) else _average_of(best)
        rows = Rows.of_codes(self.codes, self.weights)
        restarts = (
            trial.solution.as_restart()._replace(start=f"{trial.kind}: {trial.solution.start}")
            for trial in self.trials.found
        )
        return Solution(
            pmf,
            Status.STOPPED if self.trials.is_stopped else Status.VALIDATED,
            -mean_log_likelihood(rows, Point.of_pmf(pmf)),
            best[0].history,
            start=self._start(kind),
            validation=self._cost(kind),
            restarts=tuple(restarts),
            n_averaged=len(best),
            settings=self._settings(kind),
        )

    def _with_free(self, of_traits: list[Solution]) -> JointPMF:
        """Return the average of traits, with a share of free components where that helps."""
        free = self.trials.of(self.best)
        pairs = list(zip(of_traits, free, self._splits, strict=False))[:_N_SHARED]

        def cost(share: float) -> float:
            both = [average([one.pmf, other.pmf], [1 - share, share]) for one, other, _ in pairs]
            costs = (
                split.judge.cost(Point.of_pmf(pmf))
                for pmf, (_, _, split) in zip(both, pairs, strict=True)
            )
            return float(np.mean(list(costs)))

        share = min(_SHARES, key=cost)
        whole = _average_of(of_traits)
        return average([whole, _average_of(free)], [1 - share, share]) if share else whole

    def _start(self, kind: AnyKind) -> Start:
        if isinstance(kind, TraitKind):
            return Start("traits", f"{kind.traits}, chosen by what was held out")
        reason = f"of rank {kind.rank}, smoothing {kind.smoothing:g}, chosen by what was held out"
        return Start(self.fit.start if isinstance(self.fit.start, str) else "given", reason)

    def _settings(self, kind: AnyKind) -> Likelihood:
        if isinstance(kind, TraitKind):
            return Likelihood(traits=kind.traits)
        return Likelihood(kind.smoothing, self.fit.towards)


def _average_of(solutions: list[Solution]) -> JointPMF:
    return average([solution.pmf for solution in solutions])


def _held_out(rows: Rows, given: Rows | None = None) -> HeldOut:
    return HeldOut(rows, given, _STEP_PATIENCE, _STEP_GAIN)
