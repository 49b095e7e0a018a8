"""What `jointpmf report` learns from a table on disk: read once, in batches, only counts kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import jointpmf as jp
from jointpmf.data.codes import Codes
from jointpmf.data.file_codes import Batched, weighted_batches
from jointpmf.data.table_files import open_table
from jointpmf.errors import JointPMFError
from jointpmf.rows.weighted import WeightedCodes, joined
from jointpmf.show.report.comparison import compared_pairs
from jointpmf.show.report.findings import Findings, findings_of
from jointpmf.show.report.tally import Tally

if TYPE_CHECKING:
    from jointpmf.show.report.subject import Subject


def findings_in(
    subject: Subject,
    data: str,
    missing: Iterable[str],
    unknown: Any,
    ranks: Sequence[int] | None,
    seed: int,
    verbose: bool,
    weights: str | None = None,
    most_for_ranks: int = 50_000,
    **sizes: int,
) -> Findings:
    """Return what a report says of a model and a table; with `ranks`, also how well each does.

    `weights` is the column that holds what each row counts for. Ranks are tried on at most
    `most_for_ranks` rows; `sizes` are those of a batch, as in `TableFile`.
    """
    domain = subject.pmf.domain
    tally = Tally(subject.pmf, compared_pairs(domain))
    some = _SomeRows(seed, most_for_ranks)
    with open_table(data, missing, **sizes) as table:
        read = _Read(table, domain.names)
        for _, codes, own in weighted_batches(read, domain, unknown, weights):
            tally.add(codes, own)
            if ranks is not None:
                some.add(codes, own)
    tally.n_unknown = read.n_observed - tally.n_observed
    if not tally.n_rows:
        raise JointPMFError(f"{data} has no rows to report on")
    if ranks is None:
        return findings_of(subject, tally)
    codes, own = joined(some.kept)
    curve = jp.choose_rank(codes, ranks, sample_weight=own, random_state=seed, verbose=verbose)
    note = ""
    if tally.n_rows > most_for_ranks:
        note = f"Tried on {most_for_ranks:,} of the {tally.n_rows:,} rows, drawn at random."
    return findings_of(subject, tally, curve, note)


class _Read:
    """A table whose observed cells are counted as they are read, before levels are looked up."""

    def __init__(self, table: Batched, names: Iterable[str]) -> None:
        self.table, self.names = table, set(names)
        self.n_observed = 0

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.table.columns

    def batches(self) -> Iterator[pl.DataFrame]:
        """Yield the rows, some at a time."""
        for batch in self.table.batches():
            for column in batch.get_columns():
                if column.name in self.names:
                    cells = column.fill_nan(None) if column.dtype.is_float() else column
                    self.n_observed += len(cells) - cells.null_count()
            yield batch


class _SomeRows:
    """A random sample of the rows that are added, of limited size."""

    def __init__(self, seed: int, most: int) -> None:
        self.most = most
        self.generator = np.random.default_rng(seed)
        self.kept: list[WeightedCodes] = []
        self.keys = np.empty(0)

    def add(self, codes: Codes, weights: np.ndarray | None) -> None:
        """Add rows; some of them replace rows of the sample."""
        self.kept.append((codes, weights))
        self.keys = np.concatenate([self.keys, self.generator.random(codes.n_rows)])
        if len(self.keys) > self.most:
            chosen = np.sort(np.argpartition(self.keys, self.most)[: self.most])
            whole, own = joined(self.kept)
            part = Codes(codes.domain, whole.array[chosen])
            self.kept = [(part, None if own is None else own[chosen])]
            self.keys = self.keys[chosen]
