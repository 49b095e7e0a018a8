"""A model without choosing anything: rank by what was held out, stopped early, averaged.

Part of every distinct row is held out by thinning its weight, so that a row of weight two and the
same row twice give the same model. With a target it is the target's cells that are held out, and
predicted from the rest of their rows; where they are fitted they may count several times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jointpmf.data.binning import Bins
from jointpmf.data.codes import Codes, checked_weights
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING, Domain
from jointpmf.errors import at_least_zero, seeded_generator, whole_number
from jointpmf.fit.checkpoint import Checkpoint
from jointpmf.fit.coupled import fit_marginals
from jointpmf.fit.plan import FitData, FitPlan, check_table
from jointpmf.fit.progress import progress_bar
from jointpmf.fit.rows import loop_options
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.output import PathLike
from jointpmf.pmf import average
from jointpmf.rows.table import Rows, distinct_codes, mean_log_likelihood
from jointpmf.solvers.held_out import HeldOut
from jointpmf.solvers.loop import Callback, Restart, Solution, Status
from jointpmf.solvers.starts.algebraic import EXACT
from jointpmf.threads import one_blas_thread

RANKS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Ranks that are tried, upwards, until they no longer help."""

SMOOTHINGS = (0.1, 1.0)
"""Smoothing that is tried: more of it where that is better than less."""

N_TRIED = ((20_000, 10), (100_000, 3))
"""Fits by which a rank is judged: so many for tables of fewer cells than that, else one."""

EMPHASIS = 0.5
"""A target may count for this part of the other variables, if that helps: for one cell among many
no component would be made otherwise."""

MIN_AVERAGED, MAX_AVERAGED, AVERAGE_WORK = 4, 24, 10**8
"""Fits that are averaged at the chosen rank: as many as cells times components allow."""

MIN_GAIN = 5e-4
"""A larger rank must predict better by this, in nats per row or cell of the target."""

PATIENCE = 2
"""Ranks in a row without improvement after which no larger one is tried; one with more smoothing,
which begins at the best rank with less."""

HELD_OUT_PART = 0.2

MAX_ITER, TOL, STEP_PATIENCE = 300, 1e-7, 5
"""When one fit ends: its budget, a small step, or so many steps that do not help what it has not
seen."""

MAX_MARGINAL_RANK, ELBOW = 20, 0.8
"""Ranks that are tried on marginals, and the part of the objective that one more component must
leave less of."""

MAX_TRIALS = 1e9
"""Draws by which the weight of one row is thinned, at most."""

MIN_ROWS = 10
"""With fewer rows nothing can be held out, and the variables are taken for independent."""


def fit_auto(
    table: Any,
    *,
    target: str | None = None,
    emphasis: int | None = None,
    smoothing: float | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: bool = False,
    domain: Domain | None = None,
    bins: Bins | None = None,
    checkpoint: PathLike | None = None,
    checkpoint_every: int = 10,
) -> Solution:
    """Return an average of fits whose rank is chosen by what was held out of them.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, or Codes
        One row per sample, cells may be missing.
    target : str, optional
        The variable that will be predicted; without one it is the whole row that counts.
    emphasis : int, optional
        How often a cell of the target counts; by default once, or for half of the other variables
        if that helps.
    smoothing : float, optional
        Pseudo-counts per level and component, on average, towards the marginals; by default the
        better of 0.1 and 1.
    sample_weight : array of shape (rows,), optional
        What each row counts for.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits.
    progress : bool
        Whether to show a progress bar.
    domain, bins
        How the table is read, see `encode`.
    checkpoint, checkpoint_every : path, int
        Where and how often to leave how far the fits have come, as in `fit_rows`.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4] * 5), rank=3, random_state=0)
    >>> rows = truth.sample(300, random_state=0, backend="codes")
    >>> jp.fit_auto(rows, random_state=0).status.name
    'VALIDATED'
    """
    codes = encode(table, domain, bins=bins)
    weights = checked_weights(sample_weight, codes.n_rows)
    check_table(codes, weights)
    position = None if target is None else codes.domain.index(target)
    rows, row_weights = distinct_codes(codes, weights)
    generator = seeded_generator(random_state)
    if emphasis is not None:
        emphasis = whole_number(emphasis, "emphasis", 1)
    tried = SMOOTHINGS if smoothing is None else (at_least_zero(smoothing, "smoothing"),)
    saved: Checkpoint | None = None
    if checkpoint is not None:
        identity = {
            "function": "fit_auto",
            "table": codes,
            "sample_weight": weights,
            "target": target,
            "emphasis": emphasis,
            "smoothing": smoothing,
        }
        saved = Checkpoint(checkpoint, checkpoint_every, identity, random_state)
        generator = saved.generator
    seeds = generator.integers(2**63, size=MAX_AVERAGED)
    with one_blas_thread:
        generators = [np.random.default_rng(seed) for seed in seeds]
        search = _Search(rows, row_weights, position, generators, saved)
        if max(row_weights.sum(), len(row_weights)) < MIN_ROWS:
            return search.independent(tried[0])
        total = (len(RANKS) + 2) * search.n_tried + MIN_AVERAGED
        with progress_bar("choosing the rank", total, progress) as advance:
            for kind in search.fits(tried, emphasis):
                advance(f"rank {kind.rank}")
        return search.averaged()


def emphasis_of(n_others: int) -> int:
    """Return how often a target counts beside so many other variables."""
    return max(round(EMPHASIS * n_others), 1)


class _Kind(NamedTuple):
    """What a fit is like; `emphasis` is how often a cell of the target counts."""

    rank: int
    smoothing: float
    emphasis: int = 1


class _Split(NamedTuple):
    """What is fitted and what is held out, and the seed of the fits to it."""

    codes: Codes
    weights: np.ndarray
    rows: Rows
    held_out: Rows
    given: Rows | None
    seed: int


class _Search:
    """The search for the best kind of fit, and all fits that were made on the way."""

    def __init__(
        self,
        codes: Codes,
        weights: np.ndarray,
        target: int | None,
        generators: list[np.random.Generator],
        checkpoint: Checkpoint | None,
    ) -> None:
        self.codes, self.weights, self.target = codes, weights, target
        self._checkpoint = checkpoint
        self._generators = generators
        self._splits: list[_Split] = []
        self._found: dict[_Kind, list[Solution]] = {}
        self.n_cells = int((codes.array != MISSING).sum())
        self.n_tried = next((n for limit, n in N_TRIED if self.n_cells < limit), 1)

    def fits(self, smoothings: tuple[float, ...], emphasis: int | None) -> Iterator[_Kind]:
        """Make fits of growing rank while that helps, then the rest of those of the best kind."""
        yield from self._climb(_Kind(RANKS[0], smoothings[0], emphasis or 1), PATIENCE)
        for smoothing in smoothings[1:]:
            yield from self._climb(self._best()._replace(smoothing=smoothing), 1)
        if self.target is not None and emphasis is None:
            several = emphasis_of(len(self.codes.domain) - 1)
            yield from self._climb(self._best()._replace(emphasis=several), PATIENCE)
        if self._is_stopped:
            return
        best = self._best()
        n_averaged = AVERAGE_WORK // (self.n_cells * best.rank)
        for k in range(self.n_tried, min(max(n_averaged, MIN_AVERAGED), MAX_AVERAGED)):
            yield self._fit(best, k)
            if self._is_stopped:
                return

    def _climb(self, first: _Kind, patience: int) -> Iterator[_Kind]:
        """Make fits of growing rank from a kind on, until ranks in a row do not help."""
        n_worse = 0
        for rank in RANKS[RANKS.index(first.rank) :]:
            kind = first._replace(rank=rank)
            if kind in self._found:
                return
            for k in range(self.n_tried):
                if self._found and self._is_stopped:
                    return
                yield self._fit(kind, k)
            n_worse = 0 if self._best() == kind else n_worse + 1
            if n_worse == patience or rank > len(self.weights):
                return

    def _best(self) -> _Kind:
        """Return the kind whose fits predict best what they have not seen."""
        complete = [kind for kind, fits in self._found.items() if len(fits) >= self.n_tried]
        best, *others = sorted(complete or self._found)
        for other in others:
            if self._cost(other) < self._cost(best) - MIN_GAIN:
                best = other
        return best

    def _cost(self, kind: _Kind) -> float:
        return float(np.mean([s.validation for s in self._found[kind][: self.n_tried]]))

    @property
    def _is_stopped(self) -> bool:
        last = next(reversed(self._found.values()))[-1]
        return last.status is Status.STOPPED

    def _fit(self, kind: _Kind, k: int) -> _Kind:
        """Make the fit of one kind on one split, stopped by what was held out."""
        while len(self._splits) <= k:
            self._splits.append(self._split(self._generators[len(self._splits)]))
        split = self._splits[k]
        held_out = HeldOut(split.held_out, kind.rank, split.given, patience=STEP_PATIENCE)
        rows = split.rows
        if self.target is not None and kind.emphasis > 1:
            rows = rows.emphasised(self.target, kind.emphasis)
        data = FitData(split.codes, split.weights, rows, held_out)
        solution = self._plan(kind).run(data, np.random.default_rng(split.seed))
        fits = self._found.pop(kind, [])  # the last kind is the last in order
        self._found[kind] = [*fits, solution]
        return kind

    def _plan(self, kind: _Kind) -> FitPlan:
        options = loop_options(MAX_ITER, TOL) | {"checkpoint": self._checkpoint}
        return FitPlan(kind.rank, "rows", kind.smoothing, "marginal", options)

    def _split(self, generator: np.random.Generator) -> _Split:
        held_out = self._thinned(generator)
        seed = int(generator.integers(2**63))
        kept = self.weights - held_out
        if self.target is None:
            rows = Rows.of_codes(self.codes, kept)
            other = Rows.of_codes(self.codes, held_out)
            return _Split(self.codes, kept, rows, other, None, seed)
        array = self.codes.array.copy()
        array[:, self.target] = MISSING
        hidden = Codes(self.codes.domain, array)
        both = Codes(self.codes.domain, np.vstack([self.codes.array, array]))
        weights = np.concatenate([kept, held_out])
        seen = held_out * (self.codes.array[:, self.target] != MISSING)
        return _Split(
            both,
            weights,
            Rows.of_codes(both, weights),
            Rows.of_codes(self.codes, seen),
            Rows.of_codes(hidden, seen),
            seed,
        )

    def _thinned(self, generator: np.random.Generator) -> np.ndarray:
        """Return the weight of each row that is held out: of a whole weight a whole part."""
        trials = np.minimum(np.ceil(self.weights), MAX_TRIALS)
        while True:
            part = generator.binomial(trials.astype(np.int64), HELD_OUT_PART) / trials
            seen = self.codes.array[:, self.target] != MISSING if self.target is not None else True
            if (part * seen > 0).any() and (part < 1).any():
                return part * self.weights

    def independent(self, smoothing: float) -> Solution:
        """Return the fit of rank one, for a table too small to hold anything out."""
        data = FitData.of_codes(self.codes, self.weights)
        return self._plan(_Kind(1, smoothing)).run(data, self._generators[0])

    def averaged(self) -> Solution:
        """Return the average of the fits of the best kind, with a record of all."""
        kind = self._best()
        best = self._found[kind]
        pmf = average([solution.pmf for solution in best])
        rows = Rows.of_codes(self.codes, self.weights)
        return Solution(
            pmf,
            Status.STOPPED if self._is_stopped else Status.VALIDATED,
            -mean_log_likelihood(rows, pmf),
            best[0].history,
            start=f"the average of {len(best)} fits of rank {kind.rank}, smoothing "
            f"{kind.smoothing:g}, chosen by what was held out",
            validation=self._cost(kind),
            restarts=tuple(
                Restart(f"rank {k.rank}: {s.start}", s.objective, s.status, s.validation)
                for k, fits in self._found.items()
                for s in fits
            ),
        )


def fit_marginals_auto(
    marginals: MarginalSet,
    *,
    random_state: Any = None,
    callback: Callback | None = None,
    checkpoint: PathLike | None = None,
    checkpoint_every: int = 10,
) -> Solution:
    """Return the fit to marginals of the rank from which on more components hardly help.

    Parameters
    ----------
    marginals : MarginalSet
        What is known.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits.
    callback, checkpoint, checkpoint_every : callable, path, int
        As in `fit_marginals`.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4] * 5), rank=3, random_state=0)
    >>> jp.fit_marginals_auto(truth.marginals(order=3), random_state=0).pmf.rank
    3
    """
    generator = seeded_generator(random_state)
    saved: Checkpoint | None = None
    if checkpoint is not None:
        identity = {"function": "fit_marginals_auto", "marginals": marginals}
        saved = Checkpoint(checkpoint, checkpoint_every, identity, random_state)
        generator = saved.generator
    best: Solution | None = None
    for rank in range(1, MAX_MARGINAL_RANK + 1):
        found = fit_marginals(
            marginals, rank, random_state=generator, callback=callback, checkpoint=saved
        )
        if found.status is Status.STOPPED:
            return found if best is None else replace(best, status=Status.STOPPED)
        if best is not None and found.objective > ELBOW * best.objective:
            return best
        best = found
        if best.objective <= EXACT:
            break
    assert best is not None
    return best
