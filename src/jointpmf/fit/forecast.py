"""What a fit will cost before it is begun: passes, memory, and seconds on this machine.

The fit is really begun, on two small tables; what that takes is extended along a line to all rows.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.domain import Domain
from jointpmf.errors import (
    JointPMFError,
    check_size,
    text_of_count,
    text_of_size,
    whole_number,
    whole_rank,
)
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.memory import text_of_bytes
from jointpmf.fit.settings import Effort
from jointpmf.pmf import random_pmf
from jointpmf.rows.source import Table
from jointpmf.solvers.loop import Loop, Step
from jointpmf.threads import one_blas_thread

_WORK, _FEWEST, _MOST = 2**21, 200, 2**15
"""Cells times components of the larger table that is tried, its rows at least and at most."""

_SEARCHED_FITS = 8.0
"""What the search for the best optimum costs in fits, about: three climbs that agree."""

_PASSES = 2
"""Passes over the rows that one iteration takes."""

_MOST_ITER = 10**9
"""Iterations of the longest fit that is forecast; no fit takes more."""

_MOST_CELLS = 10**16
"""Cells of the largest table that is planned: 9 PiB of codes."""


@dataclass(frozen=True)
class Plan:
    """What a fit will cost; `str` is for people.

    Attributes
    ----------
    what : str
        The table and the model.
    n_iter, passes : int
        Iterations that were asked about, and the passes over the rows that they take.
    memory, code_bytes : float
        Bytes that the fit holds at most, and how many of them are the codes.
    seconds_per_pass, start_seconds, seconds : float
        Of one pass, of all before the first iteration, and of the whole fit, on this machine.
    """

    what: str
    n_iter: int
    passes: int
    memory: float
    code_bytes: float
    seconds_per_pass: float
    start_seconds: float
    seconds: float

    def __str__(self) -> str:
        """Return the plan as a few lines."""
        memory, codes = map(text_of_bytes, (self.memory, self.code_bytes))
        each, total = map(_text_of_time, (self.seconds_per_pass, self.seconds))
        return (
            f"{self.what}\n"
            f"  passes   {self.passes} for {self.n_iter} iterations\n"
            f"  memory   {memory}, of which codes {codes}\n"
            f"  time     {each} a pass, {total} in all on this machine,\n"
            f"           {_text_of_time(self.start_seconds)} of it before the first iteration"
        )


def _text_of_time(seconds: float) -> str:
    minutes = f"{seconds / 60:.2g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
    return f"{seconds:.2g} s" if seconds < 120 else minutes


def plan(
    n_rows: int,
    n_variables: int,
    levels: int,
    rank: int,
    n_iter: int = 100,
) -> Plan:
    """Return what a fit to complete rows will cost on this machine, tried on small tables.

    Parameters
    ----------
    n_rows, n_variables, levels, rank : int
        The size of the table, how many levels each variable has, and the number of components.
    n_iter : int
        Iterations that the fit is expected to take.

    Examples
    --------
    >>> import jointpmf as jp
    >>> jp.plan(10**6, 50, 5, 10).code_bytes
    50000000.0
    """
    numbers = {"n_rows": n_rows, "n_variables": n_variables, "levels": levels, "the rank": rank}
    for name, number in numbers.items():
        whole_number(number, name, 1)
    if whole_number(n_iter, "n_iter", 0) > _MOST_ITER:
        raise JointPMFError(f"no fit takes {text_of_count(n_iter)} iterations")
    _check_sizes(n_rows, n_variables, levels, rank)
    model = random_pmf(Domain.of_sizes([levels] * n_variables), rank, 0)
    count = min(max(_WORK // (n_variables * rank), _FEWEST), _MOST, n_rows)
    codes = Codes(model.domain, model.sample(count, random_state=0, backend="codes"))
    cost_of = _extended(partial(_trial, rank), codes)
    begin, step, n_distinct, memory = cost_of(n_rows)
    n_kept = int(n_distinct)
    n_searched = Effort().n_rows_searched(n_kept, n_kept * n_variables, rank)
    search = _SEARCHED_FITS * n_iter * cost_of(n_searched)[1] if rank > 1 else 0.0
    code_bytes = codes.array.nbytes / count * n_rows
    return Plan(
        f"{n_rows} rows of {n_variables} variables with {levels} levels, rank {rank}",
        n_iter,
        _PASSES * n_iter,
        memory + code_bytes,
        code_bytes,
        step / _PASSES,
        begin + search,
        begin + search + n_iter * step,
    )


def _check_sizes(n_rows: int, n_variables: int, levels: int, rank: int) -> None:
    """Raise if there can be no such table, or no such model."""
    n_levels, n_cells = n_variables * levels, n_rows * n_variables
    if n_cells > _MOST_CELLS:
        raise JointPMFError(
            f"{text_of_count(n_rows)} rows of {text_of_count(n_variables)} variables would take "
            f"{text_of_size(n_cells)} as codes, more than any disk holds"
        )
    whole_rank(rank, n_levels)
    check_size(100 * n_levels, f"a domain of {text_of_count(n_levels)} levels")


def _extended(trial: Callable[..., list[float]], codes: Codes) -> Callable[[int], list[float]]:
    """Return what any number of rows takes: along a line from these rows and an eighth of them."""
    part = Codes(codes.domain, codes.array[: codes.n_rows // 8 + 1])
    was_tracing, costs = tracemalloc.is_tracing(), []
    with one_blas_thread:
        trial(Codes(codes.domain, codes.array[:20]))  # all is compiled by now
        for some in (part, codes):
            cost = trial(some)
            tracemalloc.start()  # which slows a trial down, so that there is one more
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            trial(some)
            costs.append(np.array([*cost, tracemalloc.get_traced_memory()[1] - before]))
            if not was_tracing:
                tracemalloc.stop()
    small, large = costs
    growth = np.clip((large - small) / max(codes.n_rows - part.n_rows, 1), 0, large / codes.n_rows)
    return lambda n_rows: (large + growth * (n_rows - codes.n_rows)).tolist()


def _seconds(history: Sequence[Step]) -> float:
    return float(np.median(np.diff([line.seconds for line in history]))) if history[1:] else 0.0


def _trial(rank: int, codes: Codes) -> list[float]:
    loop = Loop(50, 1e-10, lambda step, _: step.iteration > 2 and step.seconds > 0.05)
    begun = time.perf_counter()
    table = Table.of_codes(codes)
    begin = time.perf_counter() - begun
    few = Effort(most_starts=1, patience=1)
    found = EMFit(rank, loop, effort=few).run(table, np.random.default_rng(0))
    return [begin, _seconds(found.history), table.n_rows]
