"""The column of a file that says to which group or stratum each row belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from jointpmf.data.table_files import TableFile


def labels_in(table: TableFile, name: str, what: str) -> np.ndarray:
    """Return what a column says of each row, as text, or raise naming the first row without.

    Parameters
    ----------
    table : TableFile
        A table with at least one row.
    name : str
        The column.
    what : str
        What its labels are: groups or strata.

    Examples
    --------
    >>> class Table:
    ...     def batches(self, columns):
    ...         yield pl.DataFrame({"school": [3, 5]})
    ...         yield pl.DataFrame({"school": [3]})
    >>> labels_in(Table(), "school", "groups").tolist()
    ['3', '5', '3']
    """
    labels = pl.concat([_texts(batch[name], what) for batch in table.batches([name])])
    missing = labels.is_null()
    if missing.any():
        raise JointPMFError(
            f"column {name!r} holds no label in row {missing.arg_true()[0]}, but every row "
            f"belongs to one of the {what}"
        )
    return labels.to_numpy().astype(str)


def _texts(cells: pl.Series, what: str) -> pl.Series:
    if cells.dtype.is_nested():
        raise JointPMFError(f"column {cells.name!r} holds lists, which cannot be {what}")
    known = cells.fill_nan(None) if cells.dtype.is_float() else cells
    return known.cast(pl.String)
