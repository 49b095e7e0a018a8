"""Is a rank enough: a likelihood-ratio test, calibrated by simulation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.codes import Codes, checked_weights
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING
from jointpmf.errors import repeats, seeded_generator, whole_rank
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.progress import checked_loop, progress_bar
from jointpmf.fit.search import Trials
from jointpmf.fit.solution import Solution
from jointpmf.pmf import JointPMF
from jointpmf.point import Point
from jointpmf.rows.source import Table, check_table
from jointpmf.solvers.starts.random import LIFT, enlarged_point, mixed, point_of_merged_rows
from jointpmf.threads import interrupts, one_blas_thread

if TYPE_CHECKING:
    from jointpmf.domain import Domain

logger = logging.getLogger("jointpmf")

_N_ENLARGED = 3
"""Fits that begin at the smaller model, each with other components added."""

_FEWEST_TABLES = 19
"""Simulated tables with which a p-value can be as small as 0.05."""

_TOL = 1e-8
"""How far simulated tables are fitted: a likelihood ratio need not have ten digits."""


@dataclass(frozen=True)
class BootstrapTest:
    """A likelihood-ratio test of one rank against the next, calibrated by simulation.

    Attributes
    ----------
    rank : int
        The rank under test; the alternative has one component more.
    statistic : float
        Twice the gain in log-likelihood by the further component.
    p_value : float
        How often data simulated from the smaller model gain as much.
    replicates : array
        The statistic of each simulated table.
    """

    rank: int
    statistic: float
    p_value: float
    replicates: np.ndarray = field(repr=False)

    def __str__(self) -> str:
        """Say what the test found."""
        verdict = "is not enough" if self.p_value <= 0.05 else "may be enough"
        if len(self.replicates) < _FEWEST_TABLES:
            verdict = "cannot be refuted with so few tables"
        return (
            f"Rank {self.rank} against {self.rank + 1}: likelihood ratio {self.statistic:.3f}, "
            f"p = {self.p_value:.3g} from {len(self.replicates)} simulated tables; "
            f"rank {self.rank} {verdict}."
        )

    def _repr_html_(self) -> str:
        """Return what the test found."""
        from jointpmf.show.notebook import sentence_html

        return sentence_html(self)


def bootstrap_test(
    table: Any,
    rank: int,
    *,
    n_bootstrap: int = 99,
    sample_weight: Any = None,
    max_iter: int | None = None,
    tol: float | None = None,
    random_state: Any = None,
    verbose: bool = False,
    domain: Domain | None = None,
    bins: Any = None,
    levels: Any = None,
    missing_code: Any = None,
) -> BootstrapTest:
    """Test whether a rank is enough: the parametric bootstrap of the likelihood ratio.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array, or Codes
        One row per sample, cells may be missing; simulated tables miss the same cells.
    rank : int
        The rank under test, against one component more.
    n_bootstrap : int
        How many tables are simulated from the fit of the smaller rank. After Ctrl-C the p-value is
        that of the tables that were done.
    sample_weight : array of shape (rows,), optional
        What each row counts for, in the table and in every simulated one: the statistic is the
        weighted likelihood ratio. A row is one observation, whatever its weight, as in a survey
        with weights; repeat the rows of a table of distinct rows and how often each was seen.
    max_iter, tol, random_state, verbose
        As in `choose_rank`; the tolerance is 1e-8 by default.
    domain, bins, levels, missing_code
        How the table is read, see `encode`.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([4] * 5), rank=2, random_state=0)
    >>> rows = truth.sample(1000, random_state=0, backend="codes")
    >>> jp.bootstrap_test(rows, rank=1, n_bootstrap=19, random_state=0).p_value
    0.05
    """
    rank = whole_rank(rank)
    n_bootstrap = repeats(n_bootstrap, "n_bootstrap")
    codes = encode(table, domain, bins=bins, levels=levels, missing_code=missing_code)
    weights = checked_weights(sample_weight, codes.n_rows)
    check_table(codes, weights)
    generator = seeded_generator(random_state)
    replicates: list[float] = []
    with one_blas_thread:
        fit = EMFit(rank, checked_loop(max_iter, tol, (2000, _TOL)))
        whole = Table.of_codes(codes, weights)
        small = _best_unstopped([fit], whole, generator).pmf
        statistic = _likelihood_ratio(whole, small, fit, generator)

        def compare(simulated: Table) -> None:
            replicates.append(_likelihood_ratio(simulated, small, fit, generator))

        if not simulate(small, whole, n_bootstrap, compare, generator, verbose):
            raise KeyboardInterrupt
    n_above = sum(replicate >= statistic for replicate in replicates)
    p_value = (1 + n_above) / (1 + len(replicates))
    return BootstrapTest(rank, statistic, p_value, np.array(replicates))


def simulate(
    pmf: JointPMF,
    table: Table,
    count: int,
    use: Callable[[Table], None],
    generator: np.random.Generator,
    verbose: bool,
) -> int:
    """Draw tables from a model, with the weights and the missing cells of a table, and use each.

    Returns how many were used: after Ctrl-C those that were done.
    """
    is_missing = table.codes.array == MISSING
    done = 0
    with progress_bar("simulating", count, verbose) as advance:
        try:
            with interrupts():
                for _ in range(count):
                    drawn = pmf.sample(len(is_missing), random_state=generator, backend="codes")
                    drawn = np.where(is_missing, MISSING, drawn)
                    use(Table.of_codes(Codes(table.domain, drawn), table.weights))
                    done += 1
                    advance(f"table {done}")
        except KeyboardInterrupt:
            logger.warning("stopped after %d of %d simulated tables", done, count)
    return done


def refitted(pmf: JointPMF, table: Table, generator: np.random.Generator) -> JointPMF:
    """Return the fit to a simulated table that begins near the model that it came from."""
    start = JointPMF.at(mixed(Point.of_pmf(pmf), table.rows.marginal, LIFT), table.domain)
    fit = EMFit(pmf.rank, checked_loop(None, None, (2000, _TOL)), start=start)
    return _best_unstopped([fit], table, generator).pmf


def _likelihood_ratio(
    table: Table, start: JointPMF, fit: EMFit, generator: np.random.Generator
) -> float:
    """Return twice the gain by one component more.

    The real table and the simulated ones are fitted alike: the smaller model from the one that was
    fitted first, which the simulated tables came from, and from merged rows; the larger one from
    the smaller one with components added.
    """
    merged = JointPMF.at(point_of_merged_rows(table.rows, fit.rank, generator), table.domain)
    starts = [replace(fit, start=start), replace(fit, start=merged)]
    small = _best_unstopped(starts, table, generator)
    larger = replace(fit, rank=fit.rank + 1)
    fits = _enlarged_fits(larger, table, small.pmf, generator)
    large = _best_unstopped(fits, table, generator)
    return 2 * (small.objective - large.objective) * table.total


def _enlarged_fits(
    fit: EMFit,
    table: Table,
    smaller: JointPMF,
    generator: np.random.Generator,
) -> list[EMFit]:
    """Return fits that begin at a smaller model, each with other components added."""
    point = Point.of_pmf(smaller)
    starts = [enlarged_point(point, table.rows, fit.rank, generator) for _ in range(_N_ENLARGED)]
    return [replace(fit, start=JointPMF.at(start, table.domain)) for start in starts]


def _best_unstopped(fits: list[EMFit], table: Table, generator: np.random.Generator) -> Solution:
    """Return the best of several fits; one that someone stopped ends the search."""

    def candidates() -> Iterator[tuple[int, Callable[[], Solution]]]:
        for k, fit in enumerate(fits):
            yield k, partial(fit.run, table, generator)

    trials: Trials[int] = Trials(is_tolerant=False)
    trials.run(candidates())
    if trials.is_stopped:
        raise KeyboardInterrupt
    return trials.best
