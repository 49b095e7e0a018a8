"""Components at points of a space of traits, fitted to rows: coefficients, weights, then columns.

First the coefficients, with points that count alike; then the weights of the points, of which those
without rows are dropped; and where something is held out and says so, columns that may leave what
the traits predict, but are pulled to it (docs/math.md, eqs. 72 to 79).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.fit.memory import Room
from jointpmf.fit.solution import Solution, Start
from jointpmf.pmf import JointPMF
from jointpmf.point import Point, columns_of_one
from jointpmf.rows.source import Source, Table
from jointpmf.solvers.loop import Loop, Outcome, Status, Validation, iterate, one_history
from jointpmf.solvers.starts.traits import along_directions, correlations_of_rows, flat_model
from jointpmf.solvers.trait_sums import LevelSums, RowSums, Summing
from jointpmf.solvers.traits import PulledEM, RedrawnEM, Ridge, TraitEM, WeightEM
from jointpmf.traits import Scores, Space, TraitModel, check_n_traits, parts_of

if TYPE_CHECKING:
    from jointpmf.fit.settings import Likelihood, Traits

_START_ROWS = 20_000
"""Rows that the main directions are found on."""

_FEWEST_ROWS = 0.01
"""Points at which fewer rows are expected are dropped."""

_MOST_AGAIN, _STEPS_AGAIN = 2, 8
"""How many of the fits that are averaged a replicate does again, and how many steps of each."""

_WEIGHT_STEPS, _PULLED_STEPS = 30, 25
"""Iterations of weights, where something is held out, and those in which columns may leave the
traits, at most: more gain little."""

_PULL_GAIN = 2e-3
"""Part of the cost of what is held out that columns must save to leave the traits."""

_LEAST_TOL = 1e-6
"""Nats per row that single precision can tell apart."""

_WAVE_RIDGE = 10.0
"""How many times stronger the ridge is on waves than on coordinates."""


@dataclass(frozen=True)
class TraitFit:
    """How one fit of traits is done: everything but the rows."""

    rank: int
    traits: Traits
    loop: Loop

    def run(
        self, source: Source, generator: np.random.Generator, held_out: Validation | None = None
    ) -> Solution:
        """Return the fit to rows, wherever they are; a validation part needs them in memory."""
        begin = self._begin(source, generator)
        observed, ridge = _observed(source, begin), _ridge_of(self.traits)
        solver = TraitEM(observed, begin, ridge, source.total)
        loop = replace(self.loop, tol=max(self.loop.tol, _LEAST_TOL))
        stages = [iterate(solver, begin.point(), loop, validation=held_out)]
        model = begin.of_point(stages[0].point)
        if _goes_on(stages):
            weighing = WeightEM(observed, model, source.total)
            if held_out is not None:
                loop = replace(loop, max_iter=min(loop.max_iter, _WEIGHT_STEPS))
            stages.append(iterate(weighing, model.point(), loop, validation=held_out))
        kept = np.flatnonzero(stages[-1].point.weights * source.total >= _FEWEST_ROWS)
        model, point = model.taken(kept), _taken(stages[-1].point, kept)
        if held_out is not None and _goes_on(stages):
            assert isinstance(source, Table)
            stages += self._pulled(source, point, held_out, stages[-1])
        best = stages[-1]
        return self._solution(stages, model, point if best.point.made_of else best.point)

    def redrawn(self, table: Table, generator: np.random.Generator, n_points: int) -> Solution:
        """Return the fit whose points are others in every step, and in the end this many others.

        Its coefficients fit the space, and not where a few points happen to lie (eq. 25).
        """
        begin = self._begin(table, generator)
        ridge, seed = _ridge_of(self.traits), int(generator.integers(2**63))
        solver = RedrawnEM(_observed(table, begin), begin, ridge, table.total, seed)
        found = iterate(solver, begin.point(), self.loop)
        model = begin.of_point(found.point).at(begin.space.redrawn(n_points, seed))
        return self._solution([found], model, model.point())

    def _begin(self, source: Source, generator: np.random.Generator) -> TraitModel:
        asked, domain = self.traits, source.domain
        check_n_traits(asked.count, domain)
        Room().check_points(domain, self.rank)
        scores = Scores.of(domain, source.marginal)
        space = Space.drawn(self.rank, asked.count, asked.waves, asked.pace, generator)
        codes, weights = source.sample(_START_ROWS, int(generator.integers(2**31)))
        correlations = correlations_of_rows(codes.columns, weights, scores)
        return along_directions(flat_model(scores, space, source.counts), correlations)

    def _pulled(
        self, table: Table, point: Point, held_out: Validation, best: Outcome
    ) -> list[Outcome]:
        """Return where EM ends whose columns may leave the traits, if that helps (eq. 79)."""
        loop, found = replace(self.loop, max_iter=min(self.loop.max_iter, _PULLED_STEPS)), best
        for pull in self.traits.pulls:
            solver = PulledEM(table.rows, point, pull)
            outcome = iterate(solver, point, loop, validation=held_out)
            if outcome.status is Status.STOPPED:  # perhaps before anything was validated
                return [found._replace(status=Status.STOPPED)]
            assert outcome.validation is not None
            assert found.validation is not None
            if outcome.validation >= found.validation - _PULL_GAIN * abs(found.validation):
                break
            found = outcome
        return [] if found is best else [found]

    def _solution(self, stages: list[Outcome], model: TraitModel, point: Point) -> Solution:
        last = stages[-1]
        start = Start("traits", str(self.traits))
        return Solution(
            JointPMF.at(point, model.domain, trait_models=(model,)),
            last.status,
            last.objective,
            one_history([stage.history for stage in stages]),
            start,
            validation=last.validation,
        )


def _observed(source: Source, model: TraitModel) -> Summing:
    """Return what sums up rows, by products of matrices where they are in memory."""
    if isinstance(source, Table):
        return RowSums(source.rows, model.scores)
    return LevelSums(source, model.scores, len(model.space.points))


def _ridge_of(traits: Traits) -> Ridge:
    return Ridge(traits.ridge, _WAVE_RIDGE * traits.ridge, widths=traits.widths)


def traits_again(source: Source, solution: Solution, settings: Likelihood) -> list[Point]:
    """Return where some fits of an average end on other rows, after a few steps from the model.

    Columns that have left the traits move as far as the traits do.
    """
    points, pmf, models = [], solution.pmf, solution.trait_models[:_MOST_AGAIN]
    for model, own in zip(models, parts_of(models), strict=True):
        weights = pmf.weights[own] / pmf.weights[own].sum()
        solver = TraitEM(_observed(source, model), model, _ridge_of(settings.traits), source.total)
        state = solver.start(model.point(weights))
        for _ in range(_STEPS_AGAIN):
            state = solver.step(state)
        factors = np.concatenate(pmf.factors)[:, own] * (state.point.factors / model.factors)
        points.append(Point(weights, columns_of_one(factors, pmf.domain)))
    return points


def _goes_on(stages: list[Outcome]) -> bool:
    return stages[-1].status is not Status.STOPPED


def _taken(point: Point, which: np.ndarray) -> Point:
    weights = point.weights[which]
    return Point(weights / weights.sum(), point.factors[:, which])
