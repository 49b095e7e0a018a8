"""To which components (latent classes) the rows of a table on disk belong, and their sizes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from rich.table import Table

from jointpmf.command.printing import label, plain_table
from jointpmf.data.as_it_came import AsItCame
from jointpmf.data.codes import Codes
from jointpmf.data.file_codes import Batched, weighted_batches
from jointpmf.errors import JointPMFError, listing
from jointpmf.evidence import posterior_of_rows
from jointpmf.judge.posteriors import (
    ComponentTally,
    most_likely,
    posterior_frame,
    posterior_names,
)
from jointpmf.judge.text import shares_text
from jointpmf.show.text import count_text

if TYPE_CHECKING:
    from jointpmf.data.table_files import TableFile
    from jointpmf.pmf import JointPMF

logger = logging.getLogger("jointpmf")

_NUMBER = "row"
"""The column of a row's number, counted from 0."""

_MAX_POSTERIORS = 2**22
"""Probabilities that are in memory at a time."""


class ClassedRows:
    """The rows of a table with the probability of each component, some at a time.

    What they add up to is known when all were read.

    Parameters
    ----------
    pmf : JointPMF
        The model.
    table : TableFile
        The rows.
    keep : sequence of str
        Columns of the table that are carried along.
    weights : str, optional
        The column of the table that says what each row counts for.
    max_numbers : int
        Probabilities that are in memory at a time.
    """

    def __init__(
        self,
        pmf: JointPMF,
        table: TableFile,
        keep: Sequence[str] = (),
        weights: str | None = None,
        max_numbers: int = _MAX_POSTERIORS,
    ) -> None:
        self.pmf, self.table, self.weights = pmf, table, weights
        self.keep = list(dict.fromkeys(keep))
        self.max_numbers = max_numbers
        self.n_rows = self.n_empty = 0
        self.components = ComponentTally(pmf)
        self._factors = np.concatenate([np.zeros((0, pmf.rank)), *pmf.factors])
        self._impossible: list[int] = []
        written = [_NUMBER, *posterior_names(pmf, _NUMBER)]
        for name in self.keep:
            if name not in table.columns:
                raise JointPMFError(
                    f"there is no column {name!r}; there are {listing(table.columns)}"
                )
            if name in written:
                raise JointPMFError(
                    f"column {name!r} of the table cannot be kept: a column of that name is written"
                )

    def batches(self, unknown: Any) -> Iterator[pl.DataFrame]:
        """Yield the number of each row, the probability of each component, and the most likely."""
        read = _AsRead(AsItCame(self.table, {*self.pmf.domain.names, self.weights or ""}))
        size = max(self.max_numbers // self.pmf.rank, 1)
        for _, codes, own in weighted_batches(read, self.pmf.domain, unknown, self.weights):
            kept = read.batch.select(self.keep)
            for begin in range(0, codes.n_rows, size):
                part = slice(begin, begin + size)
                weights = np.ones(len(codes.array[part])) if own is None else own[part]
                classed = self._classed(Codes(codes.domain, codes.array[part]), weights)
                yield classed.hstack(kept[part])
        if not self.n_rows:
            raise JointPMFError(f"{self.table.name} has no rows")
        if self.n_empty:
            rows = count_text(self.n_empty, "row")
            logger.warning("%s without any observed cell: no most likely component", rows)
        if self._impossible:
            logger.warning(
                "%d rows have probability zero, row %d first; they get the weights of the model",
                len(self._impossible),
                self._impossible[0],
            )

    def _classed(self, codes: Codes, weights: np.ndarray) -> pl.DataFrame:
        posterior, logs = posterior_of_rows(codes, self.pmf.weights, self._factors)
        self._impossible += (self.n_rows + np.flatnonzero(logs == -np.inf)).tolist()
        likely = most_likely(codes, posterior)
        self.components.add(posterior, weights * (likely >= 0))
        numbers = np.arange(self.n_rows, self.n_rows + codes.n_rows)
        self.n_rows += codes.n_rows
        self.n_empty += int((likely < 0).sum())
        beside = {_NUMBER: numbers}
        classed: pl.DataFrame = posterior_frame(self.pmf, posterior, likely, "polars", beside)
        return classed

    def size_table(self) -> Table:
        """Return the sizes as a table for people."""
        table = plain_table("component")
        for heading in ("weight", "by posterior", "by most likely"):
            table.add_column(heading, justify="right")
        for name, *shares in (size.values() for size in self.components.sizes()):
            table.add_row(label(str(name)), *shares_text(shares))
        return table


class _AsRead:
    """A table whose last batch is kept as it was read, before levels were looked up."""

    def __init__(self, table: Batched) -> None:
        self.table, self.batch = table, pl.DataFrame()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.table.columns

    def batches(self) -> Iterator[pl.DataFrame]:
        """Yield the rows, some at a time."""
        for batch in self.table.batches():
            self.batch = batch
            yield batch
