"""What `jointpmf fit` does: read what is to be fitted, fit it, and say how that went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import Console

from jointpmf import __version__
from jointpmf.arguments import bins_of, kept_names
from jointpmf.automatic import fit_auto, fit_marginals_auto
from jointpmf.domain import Domain
from jointpmf.encoding import Codes
from jointpmf.errors import JointPMFError
from jointpmf.files import domain_to_json
from jointpmf.fit import fit_marginals
from jointpmf.likelihood import fit_rows
from jointpmf.marginals import MarginalCounts, MarginalSet, names_of_order
from jointpmf.printing import FitWatch, watched
from jointpmf.solvers.loop import Solution, Status
from jointpmf.table_files import (
    TableFile,
    all_codes,
    coded_batches,
    learned_domain,
    open_table,
    read_marginals,
)

MAX_ITER, TOL = 2000, 1e-10
"""The library's own limits, by which the time that is left is estimated."""


class Fitted(NamedTuple):
    """A fit, and in words how it was made."""

    solution: Solution
    about: dict[str, str]

    @property
    def is_finished(self) -> bool:
        """Whether more iterations would change nothing."""
        return self.solution.status not in (Status.MAX_ITER, Status.STOPPED)


@dataclass(frozen=True)
class FitJob:
    """Everything that was asked of `jointpmf fit`; None is "as you think best"."""

    data: Sequence[str]
    is_marginals: bool
    rank: int | None
    method: str
    order: int
    bins: Sequence[str]
    only: Sequence[str]
    drop: Sequence[str]
    missing: Sequence[str]
    seed: int
    smoothing: float | None
    max_iter: int | None
    tol: float | None
    checkpoint: str | None

    def run(self, console: Console) -> Fitted:
        """Return the fit, with its progress on the console if that is a terminal."""
        self._check()
        with watched(console, self.max_iter or MAX_ITER, self.tol or TOL) as watch:
            try:
                return self._fitted(console, watch)
            except KeyboardInterrupt:
                if watch.best is None or watch.step is None:
                    raise
                stopped = Solution(watch.best, Status.STOPPED, watch.step.objective, watch.history)
                return Fitted(stopped, self._about(stopped, {}))

    def _check(self) -> None:
        by_marginals = self.is_marginals or self.method == "marginals"
        if self.method not in ("likelihood", "marginals"):
            raise JointPMFError(f"--method must be likelihood or marginals, not {self.method!r}")
        if by_marginals and self.smoothing is not None:
            raise JointPMFError("--smoothing belongs to --method likelihood")
        if self.rank is None and (self.max_iter is not None or self.tol is not None):
            raise JointPMFError(
                "--max-iter and --tol need --rank N: with --rank auto the rows "
                "that are held out say when to stop"
            )
        if self.is_marginals and (self.bins or self.only or self.drop):
            raise JointPMFError("--bins, --only and --drop belong to rows, not to --marginals")
        if not self.is_marginals and len(self.data) != 1:
            raise JointPMFError(
                f"give one table of rows, not {len(self.data)}; tables of counts need --marginals"
            )

    def _fitted(self, console: Console, watch: FitWatch) -> Fitted:
        if self.is_marginals:
            marginals = read_marginals(self.data, self.missing)
            solution = self._of_marginals(marginals, watch)
            return Fitted(solution, self._about(solution, {"tables": str(len(marginals))}))
        with open_table(self.data[0], self.missing) as table:
            names = kept_names(table.columns, self.only, self.drop)
            if "" in names:
                raise JointPMFError(
                    f"column {table.columns.index('') + 1} of {table.name} has no name; "
                    'leave it out with --drop ""'
                )
            domain = learned_domain(table, names, bins_of(self.bins, names))
            domain_to_json(domain)  # rather now than after the fit
            return self._of_rows(table, domain, console, watch)

    def _of_rows(
        self, table: TableFile, domain: Domain, console: Console, watch: FitWatch
    ) -> Fitted:
        if self.method == "marginals":
            marginals, n_rows = self._counted(table, domain)
            solution = self._of_marginals(marginals, watch)
        else:
            codes = all_codes(table, domain)
            n_rows = codes.n_rows
            solution = self._by_likelihood(codes, console, watch)
        return Fitted(solution, self._about(solution, {"rows": str(n_rows)}))

    def _counted(self, table: TableFile, domain: Domain) -> tuple[MarginalSet, int]:
        """Return the counted marginals: only the counts are ever in memory."""
        counts = MarginalCounts(domain, names_of_order(domain, self.order))
        n_rows = 0
        for _, codes in coded_batches(table, domain):
            counts.add(codes)
            n_rows += codes.n_rows
        return counts.to_marginals(), n_rows

    def _of_marginals(self, marginals: MarginalSet, watch: FitWatch) -> Solution:
        if self.rank is None:
            return fit_marginals_auto(
                marginals, random_state=self.seed, callback=watch, checkpoint=self.checkpoint
            )
        return fit_marginals(
            marginals,
            self.rank,
            random_state=self.seed,
            callback=watch,
            checkpoint=self.checkpoint,
            **self._limits(),
        )

    def _by_likelihood(self, codes: Codes, console: Console, watch: FitWatch) -> Solution:
        if self.rank is None:
            watch.hide()
            return fit_auto(
                codes,
                smoothing=self.smoothing,
                random_state=self.seed,
                progress=console.is_terminal,
                checkpoint=self.checkpoint,
            )
        return fit_rows(
            codes,
            self.rank,
            smoothing=self.smoothing or 0.0,
            random_state=self.seed,
            callback=watch,
            checkpoint=self.checkpoint,
            **self._limits(),
        )

    def _limits(self) -> dict[str, Any]:
        asked = {"max_iter": self.max_iter, "tol": self.tol}
        return {name: limit for name, limit in asked.items() if limit is not None}

    def _about(self, solution: Solution, size: Mapping[str, str]) -> dict[str, str]:
        how = "marginals" if self.is_marginals or self.method == "marginals" else "likelihood"
        if how == "marginals" and not self.is_marginals:
            size = {**size, "order": str(self.order)}
        return {
            "method": how,
            **size,
            "rank": str(solution.pmf.rank),
            "start": solution.start,
            "status": solution.status.value,
            "objective": f"{solution.objective:.10g}",
            "iterations": str(solution.n_iter),
            "seed": str(self.seed),
            "library": f"jointpmf {__version__}",
        }
