"""What a fit will cost before it is begun: passes, memory, and seconds on this machine.

The fit is really begun, on two small tables with the variables, levels and rank asked about; what
that takes is extended to all rows along a straight line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jointpmf.errors import JointPMFError, one_of, whole_number
from jointpmf.fit.memory import text_of_bytes
from jointpmf.fit.rehearsal import (
    Cost,
    CoupledTrial,
    LikelihoodTrial,
    extended,
    random_rows,
    timed_and_traced,
)
from jointpmf.fit.subsets import is_better_implicit
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes

_WORK, _FEWEST, _MOST = 2**21, 200, 2**15
"""Cells times components of the larger table that is tried, and its rows at least and at most."""


@dataclass(frozen=True)
class Plan:
    """What a fit will cost; `str` is for people.

    Attributes
    ----------
    what, how : str
        The table and the model; the way that the library would choose.
    n_iter, passes : int
        Iterations that were asked about, and the passes over rows or marginals that they take.
    memory, code_bytes : float
        Bytes that the fit holds at most, and how many of them are the codes.
    seconds_per_pass, start_seconds, seconds : float
        Of one pass, of all that comes before the first iteration, and of the whole fit, on this
        machine.

    Examples
    --------
    >>> import jointpmf as jp
    >>> print(str(jp.plan(1000, 5, 3, rank=2)).splitlines()[0])
    1000 rows of 5 variables with 3 levels, rank 2
    """

    what: str
    how: str
    n_iter: int
    passes: int
    memory: float
    code_bytes: float
    seconds_per_pass: float
    start_seconds: float
    seconds: float

    def __str__(self) -> str:
        """Return the plan as a few lines."""
        memory, codes = text_of_bytes(self.memory), text_of_bytes(self.code_bytes)
        times = self.seconds_per_pass, self.seconds, self.start_seconds
        each, total, start = (_text_of_time(seconds) for seconds in times)
        return (
            f"{self.what}\n  way      {self.how}\n"
            f"  passes   {self.passes} for {self.n_iter} iterations\n"
            f"  memory   {memory}, of which codes {codes}\n"
            f"  time     {each} a pass, {total} in all on this machine,\n"
            f"           {start} of it before the first iteration"
        )


def plan(
    n_rows: int,
    n_variables: int,
    levels: int,
    rank: int,
    method: str = "likelihood",
    order: int = 3,
    n_iter: int = 100,
) -> Plan:
    """Return what a fit to complete rows will cost on this machine, tried on small tables.

    Parameters
    ----------
    n_rows, n_variables, levels, rank : int
        The size of the table, how many levels each variable has, and the number of components.
    method, order : {"likelihood", "marginals"}, int
        The objective, and how many variables each marginal has.
    n_iter : int
        Iterations that the fit is expected to take.

    Examples
    --------
    >>> import jointpmf as jp
    >>> found = jp.plan(10**6, 50, 5, 10)
    >>> found.passes, found.code_bytes
    (200, 50000000.0)
    """
    asked = {"n_rows": n_rows, "n_variables": n_variables, "levels": levels, "the rank": rank}
    for name, number in asked.items():
        whole_number(number, name, 1)
    whole_number(n_iter, "n_iter", 0)
    how, passes = "maximum likelihood by EM", 2
    trial: LikelihoodTrial | CoupledTrial = LikelihoodTrial()
    if one_of(method, ("likelihood", "marginals"), "method") == "marginals":
        if whole_number(order, "the order", 2) > n_variables:
            raise JointPMFError(f"the order {order} is larger than the {n_variables} variables")
        is_implicit = is_better_implicit((levels,) * n_variables, n_rows, 1, rank, order)
        passes = 2 if is_implicit else 1
        way = "implicitly from the rows" if is_implicit else "counted in one pass over the rows"
        how = f"marginals of order {order}, {way}"
        trial = CoupledTrial(order, is_implicit, n_rows)

    def measured(some: Codes) -> list[float]:
        cost, _, memory = timed_and_traced(lambda: trial.begin(rank, some))
        return [*cost, memory]

    with one_blas_thread:
        warm = random_rows(min(n_variables, 4), levels, rank, 20)
        trial.search(rank, warm, trial.begin(rank, warm).kept)  # all is compiled by now
        count = min(max(_WORK // (n_variables * rank), _FEWEST), _MOST, n_rows)
        codes = random_rows(n_variables, levels, rank, count)
        *figures, memory = extended(measured, codes, n_rows)
        cost = Cost(*figures)
        found = trial.search(rank, codes, cost.kept)
    code_bytes = codes.array.nbytes / count * n_rows
    start, n_early = cost.begin + found.seconds, min(n_iter, int(cost.n_early))
    iterating = found.n_runs * (n_early * cost.early + (n_iter - n_early) * cost.late)
    return Plan(
        f"{n_rows} rows of {n_variables} variables with {levels} levels, rank {rank}",
        f"{how}, from {found.n_runs} starts" if found.n_runs > 1 else how,
        n_iter, passes * found.n_runs * n_iter, max(memory, found.memory) + code_bytes, code_bytes,
        cost.early / passes, start, start + iterating,
    )  # fmt: skip


def _text_of_time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
