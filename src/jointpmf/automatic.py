"""A model without choosing anything: rank by what was held out, stopped early, averaged.

Part of every distinct row is held out by thinning its weight, so that a row of weight two and the
same row twice give the same model. With a target it is the target's cells that are held out, and
predicted from the rest of their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointpmf.domain import MISSING, Domain
from jointpmf.encoding import Bins, Codes, encode
from jointpmf.likelihood import FitData, FitPlan, check_table
from jointpmf.marginals import checked_weights
from jointpmf.pmf import average, seeded_generator
from jointpmf.progress import progress_bar
from jointpmf.solvers.held_out import HeldOut
from jointpmf.solvers.loop import Restart, Solution, Status
from jointpmf.solvers.rows import Rows, distinct_codes, log_likelihoods

RANKS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)
"""Ranks that are tried, upwards, until they no longer help."""

N_TRIED, N_AVERAGED = 3, 6
"""Fits by which a rank is judged, and fits that are averaged at the chosen one."""

PATIENCE = 2
"""Ranks in a row without improvement after which no larger one is tried."""

HELD_OUT_PART = 0.2

MAX_ITER, TOL = 300, 1e-7

MIN_ROWS = 10
"""With fewer rows nothing can be held out, and the variables are taken for independent."""


def fit_auto(
    table: Any,
    *,
    target: str | None = None,
    smoothing: float = 0.1,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: bool = False,
    domain: Domain | None = None,
    bins: Bins | None = None,
) -> Solution:
    """Return an average of fits whose rank is chosen by what was held out of them.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, or Codes
        One row per sample, cells may be missing.
    target : str, optional
        The variable that will be predicted; without one it is the whole row that counts.
    smoothing : float
        Pseudo-counts per level and component, on average, towards the marginals.
    sample_weight : array of shape (rows,), optional
        What each row counts for.
    random_state : int or numpy Generator, optional
        The same seed gives the same bits.
    progress : bool
        Whether to show a progress bar.
    domain, bins
        How the table is read, see `encode`.

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
    search = _Search(
        rows, row_weights, position, smoothing, generator.integers(2**63, size=N_AVERAGED)
    )
    if row_weights.sum() < MIN_ROWS:
        return search.independent()
    with progress_bar("choosing the rank", len(RANKS) * N_TRIED + N_AVERAGED, progress) as advance:
        found = []
        for solution in search.fits():
            advance(f"rank {solution.pmf.rank}")
            found.append(solution)
    return search.averaged(found)


@dataclass(frozen=True)
class _Search:
    """The search for a rank: the distinct rows, and a seed for each split."""

    codes: Codes
    weights: np.ndarray
    target: int | None
    smoothing: float
    seeds: np.ndarray

    def fits(self) -> Iterator[Solution]:
        """Yield fits of growing rank while that helps, then the rest of those at the best."""
        best, best_cost, n_worse = 1, np.inf, 0
        for rank in RANKS:
            found = []
            for k in range(N_TRIED):
                found.append(self.fit(rank, k))
                yield found[-1]
                if found[-1].status is Status.STOPPED:
                    return
            cost = float(np.mean([solution.validation for solution in found]))
            n_worse = 0 if cost < best_cost else n_worse + 1
            if cost < best_cost:
                best, best_cost = rank, cost
            if n_worse == PATIENCE or rank > len(self.weights):
                break
        for k in range(N_TRIED, N_AVERAGED):
            yield self.fit(best, k)

    def fit(self, rank: int, split: int) -> Solution:
        """Return the fit of one rank on one split, stopped by what was held out."""
        generator = np.random.default_rng(self.seeds[split])
        held_out = self._thinned(generator)
        kept = self.weights - held_out
        if self.target is None:
            codes, weights = self.codes, kept
            validation = HeldOut(Rows.of_codes(codes, held_out), rank)
        else:
            array = self.codes.array.copy()
            array[:, self.target] = MISSING
            codes = Codes(self.codes.domain, np.vstack([self.codes.array, array]))
            weights = np.concatenate([kept, held_out])
            is_seen = self.codes.array[:, self.target] != MISSING
            shown = held_out * is_seen
            validation = HeldOut(
                Rows.of_codes(self.codes, shown),
                rank,
                Rows.of_codes(Codes(self.codes.domain, array), shown),
            )
        data = FitData(codes, weights, Rows.of_codes(codes, weights), validation)
        return self._plan(rank, "rows").run(data, generator, is_first=True)

    def _plan(self, rank: int, start: str) -> FitPlan:
        options = {"max_iter": MAX_ITER, "tol": TOL, "callback": None}
        return FitPlan(rank, start, self.smoothing, "marginal", options)

    def _thinned(self, generator: np.random.Generator) -> np.ndarray:
        """Return the weight of each row that is held out: of a whole weight a whole part."""
        trials = np.ceil(self.weights)
        while True:
            part = generator.binomial(trials.astype(np.int64), HELD_OUT_PART) / trials
            seen = self.codes.array[:, self.target] != MISSING if self.target is not None else True
            if (part * seen > 0).any() and (part < 1).any():
                return part * self.weights

    def independent(self) -> Solution:
        """Return the fit of rank one, for a table too small to hold anything out."""
        data = FitData(self.codes, self.weights, Rows.of_codes(self.codes, self.weights))
        generator = np.random.default_rng(self.seeds[0])
        return self._plan(1, "rows").run(data, generator, is_first=True)

    def averaged(self, found: list[Solution]) -> Solution:
        """Return the average of the fits at the rank that was best, with a record of all."""
        rank = found[-1].pmf.rank
        best = [solution for solution in found if solution.pmf.rank == rank]
        pmf = average([solution.pmf for solution in best])
        rows = Rows.of_codes(self.codes, self.weights)
        return Solution(
            pmf,
            best[-1].status if best[-1].status is Status.STOPPED else Status.VALIDATED,
            -float(rows.weights @ log_likelihoods(rows, pmf)) / rows.total,
            best[0].history,
            start=f"the average of {len(best)} fits of rank {rank}, chosen on held-out parts",
            validation=float(np.mean([solution.validation for solution in best])),
            restarts=tuple(
                Restart(f"rank {s.pmf.rank}: {s.start}", s.objective, s.status) for s in found
            ),
        )
