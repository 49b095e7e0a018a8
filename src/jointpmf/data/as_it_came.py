"""A table file of which only some columns are looked at: the cells of all others are as they came.

In a text file NA means missing, but not in a column that nobody asked about and that is carried
along.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from jointpmf.data.table_files import TableFile


@dataclass(frozen=True)
class AsItCame:
    """A table, read some rows at a time, in which only some columns have texts that mean missing.

    Parameters
    ----------
    table : TableFile
        What to read.
    names : collection of str
        The columns whose missing cells are wanted; the table need not have them.
    """

    table: TableFile
    names: Collection[str]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.table.columns

    def batches(self) -> Iterator[pl.DataFrame]:
        """Yield the rows, some at a time."""
        if not self.table.is_text:
            yield from self.table.batches()
            return
        wanted = [name for name in self.columns if name in self.names]
        texts = pl.Series(self.table.missing, dtype=pl.String)
        for batch in replace(self.table, missing=()).batches():
            yield batch.with_columns(
                batch[name].set(batch[name].is_in(texts.implode()), None) for name in wanted
            )
