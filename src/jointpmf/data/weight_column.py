"""The column of a file that says what each row counts for."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import polars as pl

from jointpmf.errors import JointPMFError, listing, shown

if TYPE_CHECKING:
    import numpy as np


class WeightColumn:
    """What each row of a file counts for, read some rows at a time.

    Parameters
    ----------
    name : str
        The column.
    columns : sequence of str
        All columns of the file.
    variables : Domain or names
        The variables of the model, which the column is none of.
    most : float
        No weight may be larger: products with it would overflow.

    Examples
    --------
    >>> from jointpmf import Domain
    >>> column = WeightColumn("w", ["a", "w"], Domain.of_sizes([2], names=["a"]))
    >>> column.weights(pl.DataFrame({"a": [0, 1], "w": ["2", "0.5"]})).tolist()
    [2.0, 0.5]
    >>> column.weights(pl.DataFrame({"a": [0], "w": ["many"]}))
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: column 'w' holds 'many' in row 2, but a weight must be a number
    """

    def __init__(
        self, name: str, columns: Sequence[str], variables: Container[str], most: float = 1e50
    ) -> None:
        if name not in columns:
            raise JointPMFError(
                f"there is no column {name!r} of weights; there are {listing(columns)}"
            )
        if name in variables:
            raise JointPMFError(f"{name!r} is a variable of the model, and cannot be its weights")
        self.name, self.most = name, most
        self._n_rows = 0
        self._has_weight = False

    def weights(self, batch: pl.DataFrame) -> np.ndarray:
        """Return the weights of the next rows, or raise naming the first row whose is none."""
        cells = batch[self.name]
        numbers = _numbers(cells)
        is_text = cells.is_not_null() & (numbers.is_null() | numbers.is_nan())
        self._refuse(cells, is_text, "a weight must be a number")
        self._refuse(cells, cells.is_null(), "every row needs a weight")
        is_outside = (numbers < 0) | (numbers > self.most)
        self._refuse(cells, is_outside, f"a weight must be from 0 to {self.most:g}")
        self._n_rows += len(cells)
        self._has_weight = self._has_weight or bool((numbers > 0).any())
        return numbers.to_numpy()

    def _refuse(self, cells: pl.Series, where: pl.Series, rule: str) -> None:
        if where.any():
            first = int(where.arg_true()[0])
            held = "no number" if cells[first] is None else shown(cells[first])
            row = self._n_rows + first
            raise JointPMFError(f"column {self.name!r} holds {held} in row {row}, but {rule}")

    def finish(self) -> None:
        """Raise if none of the rows that were read counts for anything."""
        if self._n_rows and not self._has_weight:
            raise JointPMFError(f"the weights in column {self.name!r} are all zero")


def _numbers(cells: pl.Series) -> pl.Series:
    """Return cells as numbers, null where one is none."""
    if cells.dtype.is_numeric():
        return cells.cast(pl.Float64)
    if cells.dtype == pl.String:
        return cells.str.strip_chars().cast(pl.Float64, strict=False)
    return pl.Series([None] * len(cells), dtype=pl.Float64)
