"""A model that predicts cells from the rest of their rows: several kinds of fits, averaged.

Some cells are hidden. Fits differ in rank, in where they begin and in how alike neighbouring
levels are made; each stops where it predicts the hidden cells best. Of each start the best kind is
averaged, and the averages are blended as the hidden cells say. In the end the model is made as
sure of its predictions as it may be (docs/math.md, eq. 27).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from jointpmf.data.binning import Bins
from jointpmf.data.codes import Codes, checked_weights, some_cells
from jointpmf.data.encode import encode
from jointpmf.data.ratings import Ratings
from jointpmf.domain import MISSING, Domain
from jointpmf.errors import JointPMFError, one_of, seeded_generator, whole_number
from jointpmf.fit.plan import FitData, FitPlan, hiding_cells
from jointpmf.fit.progress import progress_bar
from jointpmf.fit.rows import loop_options
from jointpmf.fit.unrated import with_unrated_items
from jointpmf.pmf import JointPMF, average
from jointpmf.rows.table import mean_log_likelihood
from jointpmf.solvers.held_out import Answers, HeldOutCells
from jointpmf.solvers.loop import Restart, Solution, Status
from jointpmf.solvers.ordinal import is_ordered
from jointpmf.solvers.point import Point
from jointpmf.threads import one_blas_thread

RANKS = {"rows": (10, 20, 40, 80), "factors": (32, 256, 1024, 4096)}
"""Ranks that are tried for each start, upwards; a factor more needs four times the points, and so
do rows with many cells, which tell much about where they lie."""

BANDWIDTHS = {"rows": (0.6, 0.4, 0.0), "factors": (0.4, 0.0)}
"""How far counts spread to neighbours: the first while ranks are tried, all at the best rank."""

WORSE_RANKS = {"rows": 2, "factors": 1}
"""Ranks in a row without improvement after which no larger one is tried."""

MIN_GAIN = 5e-4
"""Part of the cost that a larger rank must save."""

MAX_RANK = 4096
"""Components of an average from one start, unless a single fit has more."""

N_TRIED = 2
"""Fits whose average a kind is judged by."""

SMOOTHING, MAX_ITER, TOL, PATIENCE = 0.01, 200, 1e-7, 6
"""What all fits have in common: smoothing towards the marginals, and when they end."""

N_AVERAGED = 6
"""Fits of the best kind of each start that are averaged."""

BLENDS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Parts of the average that may be from factors; the rest is from rows."""

POWERS = (0.7, 0.8, 0.9, 1.0, 1.1)
"""Powers of an average's columns that are tried, by the likelihood of the hidden cells."""


def fit_cells(
    table: Any,
    *,
    validation: Any = 0.1,
    scoring: str | None = None,
    n_average: int = N_AVERAGED,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: bool = False,
    domain: Domain | None = None,
    bins: Bins | None = None,
) -> Solution:
    """Return the average of fits that together predict hidden cells best from their rows.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, Codes or Ratings
        One row per sample or user, cells may be missing. An item of Ratings that is never rated is
        predicted as all ratings together are distributed.
    validation : float or array of bool
        What is hidden and predicted: a fraction of the observed cells, or which cells.
    scoring : {"likelihood", "error"}, optional
        What is best: the log-probability of the hidden levels, or the root of the mean squared
        difference between their values and the expected ones, of all variables together. By
        default error for Ratings, whose items have one scale, and else likelihood.
    n_average : int
        Fits of the best kind of each start that are averaged.
    sample_weight : array of shape (rows,), optional
        What each row counts for.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits, whatever the number of threads.
    progress : bool
        Whether to show a progress bar.
    domain, bins
        How the table is read, see `encode`.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([5] * 6), rank=3, random_state=0)
    >>> rows = truth.sample(200, random_state=0, backend="codes")
    >>> solution = jp.fit_cells(rows, n_average=2, random_state=0)
    >>> solution.status.name, len(solution.restarts) > 2
    ('VALIDATED', True)
    """
    n_average = whole_number(n_average, "n_average", 1)
    if isinstance(table, Ratings) and domain is not None:
        raise JointPMFError("Ratings have a domain of their own")
    codes = encode(table, domain, bins=bins)
    if scoring is None:
        scoring = "error" if isinstance(table, Ratings) else "likelihood"
    one_of(scoring, ("likelihood", "error"), "scoring")
    weights = checked_weights(sample_weight, codes.n_rows)
    generator = seeded_generator(random_state)
    hidden = hidden_cells(codes, validation, generator)
    if isinstance(table, Ratings):
        visible = table.without(hidden)
        known = _is_seen(visible.codes, weights)
        codes, hidden = _some_variables(codes, known), hidden[:, known]
    with one_blas_thread:
        plan = FitPlan(1, "rows", SMOOTHING, "marginal", loop_options(MAX_ITER, TOL))
        data = hiding_cells(codes, weights, hidden, plan, scoring, PATIENCE)
        search = _Search(data, plan, n_average, generator)
        with progress_bar("predicting hidden cells", search.n_fits, progress) as advance:
            for kind in search.fits():
                advance(str(kind))
        solution = search.averaged()
    if isinstance(table, Ratings):
        pmf = with_unrated_items(solution.pmf, visible)
        solution = replace(solution, pmf=pmf.marginal(table.items))
    return solution


def hidden_cells(codes: Codes, validation: Any, generator: np.random.Generator) -> np.ndarray:
    """Return which cells to hide: those given, or a random part of the observed ones."""
    hidden: np.ndarray
    if isinstance(validation, Real) and not isinstance(validation, bool):
        n_observed = int((codes.array != MISSING).sum())
        fraction = float(validation)
        n_hidden = round(fraction * n_observed) if 0 < fraction < 1 else 0
        if not 0 < n_hidden < n_observed:
            raise JointPMFError(
                f"validation must be a fraction that leaves some of the {n_observed} observed "
                f"cells on both sides, not {fraction:g}"
            )
        hidden = some_cells(codes, n_hidden, generator)
        hidden[:, (hidden | (codes.array == MISSING)).all(axis=0)] = False  # some of each is seen
        return hidden
    try:
        hidden = np.array(validation)
    except ValueError:
        hidden = np.zeros(0)  # rows of unequal lengths
    if hidden.dtype != bool or hidden.shape != codes.array.shape:
        raise JointPMFError(
            f"validation must be a fraction, or truth values in the table's shape "
            f"{codes.array.shape}"
        )
    return hidden


class _Kind(NamedTuple):
    """What a fit is like."""

    start: str
    rank: int
    bandwidth: float

    def __str__(self) -> str:
        return f"{self.start}, rank {self.rank}, bandwidth {self.bandwidth:g}"


class _Member(NamedTuple):
    """A fit, and what it says about the hidden cells."""

    kind: _Kind
    solution: Solution
    answers: Answers


class _Search:
    """The search for fits that together predict hidden cells best."""

    def __init__(
        self, data: FitData, plan: FitPlan, n_average: int, generator: np.random.Generator
    ) -> None:
        assert isinstance(data.held_out, HeldOutCells)
        self.data, self.plan, self.n_average = data, plan, n_average
        self.cells: HeldOutCells = data.held_out
        self._generator = generator
        self._members: list[_Member] = []
        self._is_stopped = False
        self._has_order = any(map(is_ordered, data.rows.domain))
        self._starts = tuple(RANKS) if self._has_order else ("rows",)

    @property
    def n_fits(self) -> int:
        """How many fits there will be at most."""
        n_kinds = sum(len(RANKS[start]) + len(BANDWIDTHS[start]) for start in self._starts)
        return N_TRIED * n_kinds + len(self._starts) * self.n_average

    def fits(self) -> Iterator[_Kind]:
        """Make fits of all kinds that may help, and more of the best of each start."""
        for start in self._starts:
            if self._is_stopped:
                return
            yield from self._climb(start)
            if self._has_order:
                best = self._best(start)
                for bandwidth in BANDWIDTHS[start]:
                    yield from self._tried(best._replace(bandwidth=bandwidth))
        for start in self._starts:
            best = self._best(start)
            while len(self._of(best)) < self._n_averaged(best) and not self._is_stopped:
                yield self._fit(best)

    def _n_averaged(self, kind: _Kind) -> int:
        return min(self.n_average, max(MAX_RANK // kind.rank, 1))

    def _climb(self, start: str) -> Iterator[_Kind]:
        bandwidth = BANDWIDTHS[start][0] if self._has_order else 0.0
        n_worse = 0
        for rank in RANKS[start]:
            kind = _Kind(start, rank, bandwidth)
            yield from self._tried(kind)
            n_worse = 0 if self._best(start) == kind else n_worse + 1
            if n_worse == WORSE_RANKS[start] or rank > len(self.data.rows):
                return

    def _tried(self, kind: _Kind) -> Iterator[_Kind]:
        while len(self._of(kind)) < N_TRIED and not self._is_stopped:
            yield self._fit(kind)

    def _fit(self, kind: _Kind) -> _Kind:
        plan = replace(self.plan, **kind._asdict())
        seed = int(self._generator.integers(2**63))
        try:
            solution = plan.run(self.data, np.random.default_rng(seed))
            answers = self.cells.answers(Point.of_pmf(solution.pmf))
        except KeyboardInterrupt:
            if not self._members:
                raise
            self._is_stopped = True
            return kind
        self._members.append(_Member(kind, solution, answers))
        self._is_stopped = solution.status is Status.STOPPED
        return kind

    def _of(self, kind: _Kind) -> list[_Member]:
        return [member for member in self._members if member.kind == kind]

    def _best(self, start: str) -> _Kind:
        """Return the kind that predicts best; a larger rank must be worth it."""
        kinds = dict.fromkeys(m.kind for m in self._members if m.kind.start == start)
        best, *others = sorted(kinds, key=lambda kind: kind.rank)
        for other in others:
            gain = MIN_GAIN if other.rank > best.rank else 0.0
            if self._cost_of(other) < (1 - gain) * self._cost_of(best):
                best = other
        return best

    def _cost_of(self, kind: _Kind) -> float:
        return self._cost(self._of(kind)[:N_TRIED])

    def _cost(self, members: list[_Member], shares: np.ndarray | None = None) -> float:
        return self.cells.cost_of(Answers.of_all([m.answers for m in members]), shares)

    def averaged(self) -> Solution:
        """Return the blend of the best kinds that predicts best, with a record of all fits."""
        begun = {member.kind.start for member in self._members}
        bests = [self._best(start) for start in self._starts if start in begun]
        members = [m for kind in bests for m in self._of(kind)[: self._n_averaged(kind)]]
        blends = [self._shares(members, part) for part in BLENDS] if len(bests) > 1 else [None]
        costs = [self._cost(members, shares) for shares in blends]
        shares = blends[int(np.argmin(costs))]
        shares = np.ones(len(members)) if shares is None else shares
        used = np.flatnonzero(shares)
        pmf = self._calibrated(average([members[k].solution.pmf for k in used], shares[used]))
        kinds = Counter(members[k].kind for k in used)
        return Solution(
            pmf,
            Status.STOPPED if self._is_stopped else Status.VALIDATED,
            -mean_log_likelihood(self.data.rows, pmf),
            members[used[0]].solution.history,
            start="the average of " + " and ".join(f"{n} fits from {k}" for k, n in kinds.items()),
            validation=self.cells.cost(Point.of_pmf(pmf)),
            restarts=tuple(
                Restart(str(kind), solution.objective, solution.status, solution.validation)
                for kind, solution, _ in self._members
            ),
        )

    def _calibrated(self, pmf: JointPMF) -> JointPMF:
        """Return the model with columns to the power under which hidden cells are most likely."""
        judge = self.cells.scored_by("likelihood")
        found = []
        for power in POWERS:
            columns = [factor**power for factor in pmf.factors]
            factors = [column / column.sum(axis=0) for column in columns]
            found.append(JointPMF(pmf.domain, pmf.weights, factors))
        return min(found, key=lambda model: judge.cost(Point.of_pmf(model)))

    def _shares(self, members: list[_Member], part: float) -> np.ndarray:
        """Return what each member counts for if those from factors have this part in all."""
        along = np.array([member.kind.start == "factors" for member in members])
        return np.where(along, part / max(along.sum(), 1), (1 - part) / max((~along).sum(), 1))


def _is_seen(codes: Codes, weights: np.ndarray | None) -> np.ndarray:
    """Tell which variables have an observed cell in a row that counts."""
    seen = codes.array != MISSING
    counted = seen if weights is None else seen[weights > 0]
    if not counted.any():
        raise JointPMFError("no item has a rating that can be fitted")
    return counted.any(axis=0)


def _some_variables(codes: Codes, which: np.ndarray) -> Codes:
    if which.all():
        return codes
    names = [name for name, kept in zip(codes.domain.names, which, strict=True) if kept]
    return Codes(codes.domain.project(names), codes.array[:, which])
