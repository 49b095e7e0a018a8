"""A table as a person sees it: a header, columns of cells, and where its labels are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")
"""What pandas calls a column whose header was empty."""


@dataclass(frozen=True)
class Grid:
    """The cells of a table, of a file or a frame, before it is known which of them are labels.

    Attributes
    ----------
    name : str
        What the user calls it.
    header : tuple
        What is above each column; a tuple where there are several rows of labels.
    columns : tuple of lists
        The cells of each column.
    n_labels : int or None
        How many columns, the first ones, are known to hold labels of the rows.
    above : tuple of str or None
        The variables whose levels the header shows, as far as they are known.
    """

    name: str
    header: tuple[Any, ...]
    columns: tuple[list[Any], ...]
    n_labels: int | None = None
    above: tuple[Any, ...] = ()

    @property
    def blanks(self) -> list[int]:
        """The columns, from 0 on, that have nothing above them.

        Examples
        --------
        >>> Grid("t", ("age", "", "Unnamed: 2"), ([], [], [])).blanks
        [1, 2]
        """
        return [k for k, label in enumerate(self.header) if is_blank(label)]


def is_blank(label: Any) -> bool:
    """Tell whether a cell of a header is empty."""
    if isinstance(label, tuple):
        return any(map(is_blank, label))
    if isinstance(label, str):
        return not label.strip() or _UNNAMED.fullmatch(label) is not None
    return label is None or label != label


def grid_of_pandas(frame: Any, name: str) -> Grid:
    """Return a frame of pandas as the grid that a person sees, its index as labels."""
    index = frame.index
    is_count = index.names == [None] and index.tolist() == list(range(len(index)))
    labels = [] if is_count else [index.get_level_values(k) for k in range(index.nlevels)]
    if frame.columns.nlevels > 1:  # pivots put the name of their one value above all columns
        constant = [
            k
            for k, name in enumerate(frame.columns.names)
            if name is None and frame.columns.get_level_values(k).nunique() == 1
        ]
        frame = frame.droplevel(constant[: frame.columns.nlevels - 1], axis=1)
    above = tuple(frame.columns.names)
    columns = [frame.iloc[:, k] for k in range(frame.shape[1])]
    return Grid(
        name,
        (*([] if is_count else index.names), *frame.columns.tolist()),
        tuple(cells.tolist() for cells in [*labels, *columns]),
        None if is_count else index.nlevels,
        () if above == (None,) else above,
    )
