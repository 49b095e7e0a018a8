"""How likely each row of a table on disk is, and which rows are the least likely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl
from rich.table import Table

from jointpmf.command.printing import label, plain_table
from jointpmf.data.as_it_came import AsItCame
from jointpmf.data.file_codes import coded_batches
from jointpmf.data.table_files import TableFile
from jointpmf.domain import text_of
from jointpmf.pmf import JointPMF

_GAP = 2
"""Spaces between columns."""


def scored_batches(pmf: JointPMF, table: TableFile, unknown: Any) -> Iterator[pl.DataFrame]:
    """Yield the rows, some at a time, behind their number and their log-probability."""
    n_rows = 0
    rows = AsItCame(table, pmf.domain.names)
    for batch, codes in coded_batches(rows, pmf.domain, unknown):
        numbers = pl.Series("row", range(n_rows, n_rows + len(batch)), pl.Int64)
        logs = pl.Series("log_probability", pmf.log_probability(codes))
        own = batch.drop("row", "log_probability", strict=False)
        yield own.insert_column(0, numbers).insert_column(1, logs)
        n_rows += len(batch)


def worst_rows(batches: Iterable[pl.DataFrame], count: int) -> pl.DataFrame:
    """Return the least likely rows of all batches, the least likely first.

    Examples
    --------
    >>> batch = pl.DataFrame({"row": [0, 1, 2], "log_probability": [-1.0, -9.0, -2.0]})
    >>> worst_rows([batch], 2)["row"].to_list()
    [1, 2]
    """
    worst = pl.DataFrame()
    for batch in batches:
        both = pl.concat([worst, batch], how="vertical_relaxed") if len(worst) else batch
        worst = both.sort("log_probability", maintain_order=True).head(count)
    return worst


def worst_table(rows: pl.DataFrame, width: int) -> tuple[Table, list[str]]:
    """Return the least likely rows as a table for people, and the columns that it has no room for.

    Examples
    --------
    >>> rows = pl.DataFrame({"row": [7], "log_probability": [-9.0], "a": ["x"], "b": ["y" * 90]})
    >>> worst_table(rows, width=80)[1]
    ['b']
    """
    table = plain_table()
    table.add_column("row", justify="right")
    table.add_column("log-likelihood", justify="right")
    cells = [[str(row) for row in rows["row"]], [f"{log:.2f}" for log in rows["log_probability"]]]
    room = width - len("log-likelihood") - max(map(len, ("row", *cells[0]))) - 2 * _GAP
    names = rows.columns[2:]
    while names:
        texts = ["" if cell is None else text_of(cell) for cell in rows[names[0]]]
        room -= max(map(len, (names[0], *texts))) + _GAP
        if room < 0:
            break
        table.add_column(label(names.pop(0)))
        cells.append(texts)
    for row in zip(*cells, strict=True):
        table.add_row(*map(label, row))
    return table, names
