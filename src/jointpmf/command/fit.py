"""What `jointpmf fit` does: read what is to be fitted, fit it, and say how that went."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from jointpmf import __version__
from jointpmf.command.arguments import bins_of, kept_names, text_of_bytes
from jointpmf.command.printing import FitWatch, watched
from jointpmf.data.codes import Codes, code_dtype
from jointpmf.data.file_codes import codes_in
from jointpmf.data.file_levels import learned_domain
from jointpmf.data.table_files import TableFile, open_table
from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, at_least_zero
from jointpmf.fit.automatic import fit_auto, fit_marginals_auto
from jointpmf.fit.batches import fit_spool
from jointpmf.fit.marginals import fit_marginals
from jointpmf.fit.memory import available_bytes, used_bytes
from jointpmf.fit.plan import FitPlan
from jointpmf.fit.rows import fit_rows, loop_options
from jointpmf.fit.settings import Checkpoint
from jointpmf.fit.solution import Solution
from jointpmf.marginals.counting import names_of_order
from jointpmf.marginals.counts import MarginalCounts
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.marginals.orders import are_many, n_table_cells
from jointpmf.marginals.published import read_marginals
from jointpmf.model_file import domain_to_json
from jointpmf.rows.parts import PartedRows
from jointpmf.rows.spool import Spool
from jointpmf.solvers.implicit import bytes_of_sums
from jointpmf.solvers.loop import Status
from jointpmf.threads import one_blas_thread

logger = logging.getLogger("jointpmf")

CHECKPOINT_EVERY = 10
"""Iterations between two writes of how far a fit is."""

MAX_ITER, TOL = 2000, 1e-10
"""The library's own limits, by which the time that is left is estimated."""

FREE_PART = 0.5
"""Part of the free memory that rows may take without --memory."""

WORKING_BYTES = 280 * 10**6
"""What reading and fitting need, however few rows there are."""

BYTES_PER_COUNT = 40
"""Memory per cell of counted marginals: theirs, those of a batch, and what a fit makes of them."""

BYTES_PER_TABLE = 3000
"""Memory per counted marginal, however small it is."""

MODEL_COPIES = 40
"""Arrays of a model's size that a fit has at a time."""

MOST_FOR_RANK = 10**6
"""Rows on which the rank is found when not all are in memory."""


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
    memory: int | None = None
    """Bytes that the process may take, all in all."""

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
        _ = self._room  # rather now than after the table has been read
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
        if self.is_marginals and (self.bins or self.only or self.drop or self.memory):
            raise JointPMFError(
                "--bins, --only, --drop and --memory belong to rows, not to --marginals"
            )
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
            if self.memory is not None and table.is_read_ahead:
                raise JointPMFError(
                    f"{table.name} is packed by zstandard, which cannot be read within --memory: "
                    "unpack it, or pack it by gzip"
                )
            names = kept_names(table.columns, self.only, self.drop)
            if "" in names:
                raise JointPMFError(
                    f"column {table.columns.index('') + 1} of {table.name} has no name; "
                    'leave it out with --drop ""'
                )
            domain = learned_domain(table, names, bins_of(self.bins, names))
            domain_to_json(domain)  # rather now than after the fit
            logger.info("the levels of %d columns are known", len(domain))
            return self._of_rows(table, domain, console, watch)

    def _of_rows(
        self, table: TableFile, domain: Domain, console: Console, watch: FitWatch
    ) -> Fitted:
        is_counted = self.rank is None or not are_many(domain.sizes, self.order)
        if self.method == "marginals" and is_counted:
            marginals, n_rows = self._counted(table, domain)
            solution = self._of_marginals(marginals, watch, weighting="counts")
            return Fitted(solution, self._about(solution, {"rows": str(n_rows)}))
        with Spool(domain) as spool:
            codes = self._read(table, domain, spool)
            n_rows = spool.n_rows if codes is None else codes.n_rows
            if codes is not None:
                solution = self._of_codes(codes, None, console, watch)
            elif self.method == "likelihood":
                solution = self._by_spool(spool, console, watch)
            else:
                raise JointPMFError(
                    f"the {n_rows} rows do not fit the memory, and their marginals of order "
                    f"{self.order} are too many to count; lower --order or --rank, or use --method "
                    "likelihood"
                )
        return Fitted(solution, self._about(solution, {"rows": str(n_rows)}))

    def _read(self, table: TableFile, domain: Domain, spool: Spool) -> Codes | None:
        """Return the codes of all rows, or put them in the spool if they would take too much."""
        self._check_model(domain)
        n_rows, has_holes = 0, False
        held: list[Codes] = []
        for codes in codes_in(table, domain):
            held.append(codes)
            n_rows += codes.n_rows
            has_holes = has_holes or bool(codes.array.min(initial=0) < 0)
            if n_rows * self._bytes_per_row(domain, has_holes) > self._room:
                for one in held:
                    spool.add(one)
                held.clear()
        if spool.n_rows:
            logger.info("the codes of %d rows are on disk", spool.n_rows)
            return None
        return Codes(domain, np.concatenate([codes.array for codes in held]))

    def _check_model(self, domain: Domain) -> None:
        """Raise if the model alone would take too much."""
        n_levels, rank = sum(domain.sizes), self.rank or 1
        if self.memory is not None and 8 * n_levels * rank * MODEL_COPIES > self._room:
            raise JointPMFError(
                f"a model of rank {rank} over {n_levels} levels is too large for --memory "
                f"{text_of_bytes(self.memory)}"
            )

    def _bytes_per_row(self, domain: Domain, has_holes: bool = False) -> float:
        """Return about what a row takes while it is fitted: its codes several times, and sums."""
        size = np.dtype(code_dtype(max(domain.sizes, default=1))).itemsize
        n_bytes = 5.0 * size * len(domain) + 80
        if self.method == "marginals":
            n_bytes += bytes_of_sums(self.rank or 1, self.order, has_holes)
        return n_bytes

    @cached_property
    def _room(self) -> float:
        """How many bytes there are for what grows with the rows, or with the tables."""
        if self.memory is None:
            free = available_bytes()
            return math.inf if free is None else FREE_PART * free
        room = self.memory - used_bytes() - WORKING_BYTES
        if room <= 0:
            least = text_of_bytes(self.memory - room)
            raise JointPMFError(
                f"--memory {text_of_bytes(self.memory)} is too little: the command itself needs "
                f"about {least}"
            )
        return room

    def _counted(self, table: TableFile, domain: Domain) -> tuple[MarginalSet, int]:
        """Return the counted marginals: only the counts are ever in memory."""
        n_subsets = math.comb(len(domain), self.order)
        n_cells = n_table_cells(domain.sizes, self.order)
        if n_cells * BYTES_PER_COUNT + n_subsets * BYTES_PER_TABLE > self._room:
            room = "the memory" if self.memory is None else f"--memory {text_of_bytes(self.memory)}"
            raise JointPMFError(
                f"the {n_subsets:,} marginals of order {self.order} have {n_cells:,.0f} cells, "
                f"too many for {room}; lower --order"
            )
        counts = MarginalCounts(domain, names_of_order(domain, self.order))
        n_rows = 0
        for codes in codes_in(table, domain):
            counts.add(codes)
            n_rows += codes.n_rows
        return counts.to_marginals(), n_rows

    def _of_marginals(
        self, marginals: MarginalSet, watch: FitWatch, weighting: str | None = None
    ) -> Solution:
        if self.rank is None:
            return fit_marginals_auto(
                marginals, random_state=self.seed, callback=watch, checkpoint=self.checkpoint
            )
        return fit_marginals(
            marginals,
            self.rank,
            weighting=weighting,
            random_state=self.seed,
            callback=watch,
            checkpoint=self.checkpoint,
            **self._limits(),
        )

    def _by_spool(self, spool: Spool, console: Console, watch: FitWatch) -> Solution:
        """Return the fit to rows on disk; to some of them where the rank is to be found."""
        spool.finish()
        if self.rank is None:
            size = min(int(self._room / self._bytes_per_row(spool.domain)), MOST_FOR_RANK)
            rows = PartedRows(spool)
            codes, weights = rows.sample(max(size, 1), self.seed)
            found = self._of_codes(codes, weights, console, watch)
            if rows.levels.n_rows <= size:  # these are all distinct rows
                return found
            logger.warning(
                "a sample of %d of the %d rows was fitted, because to find the rank on all of them "
                "would take more memory; with --rank N all are fitted",
                codes.n_rows,
                spool.n_rows,
            )
            return replace(found, start=f"{found.start}, on a sample of {codes.n_rows} rows")
        limits = {"max_iter": MAX_ITER, "tol": TOL} | self._limits()
        smoothing = at_least_zero(self.smoothing or 0.0, "smoothing")
        options = loop_options(**limits, callback=watch)
        generator = np.random.default_rng(self.seed)
        if self.checkpoint is not None:
            identity = {
                "function": "fit of a file",
                "table": PartedRows(spool).digest,
                "rank": self.rank,
                "smoothing": smoothing,
                "max_iter": options["max_iter"],
                "tol": options["tol"],
            }
            saved = Checkpoint(self.checkpoint, CHECKPOINT_EVERY, identity, self.seed)
            options["checkpoint"], generator = saved, saved.generator
        plan = FitPlan(self.rank, "auto", smoothing, "uniform", options)
        with one_blas_thread:
            return fit_spool(spool, plan, generator)

    def _of_codes(
        self, codes: Codes, weights: np.ndarray | None, console: Console, watch: FitWatch
    ) -> Solution:
        if self.rank is None:
            watch.hide()
            return fit_auto(
                codes,
                sample_weight=weights,
                smoothing=self.smoothing,
                random_state=self.seed,
                progress=console.is_terminal,
                checkpoint=self.checkpoint,
            )
        return fit_rows(
            codes,
            self.rank,
            method=self.method,
            order=self.order,
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
            if solution.source:
                size["source"] = solution.source
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
