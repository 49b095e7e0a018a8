"""Which cells of a grid are labels and which are numbers: a grid → cells by their labels.

Long tables have a column per variable and one of numbers. Wide ones have columns of labels, and
above the other columns the levels of one more variable (or of several).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from jointpmf.data.grid import Grid, is_blank
from jointpmf.domain import check_distinct, is_missing, name_list
from jointpmf.errors import JointPMFError, checked_text, listing, shown

logger = logging.getLogger("jointpmf")

_MEASURES = ("count", "probability", "proportion", "len")
"""What the last column of a long table is called, if nothing else is said."""

_TOTALS = frozenset(
    [
        *("all", "total", "totals", "sum", "overall", "grand total", "total population"),
        *("all ages", "all persons", "both sexes", "gesamt", "insgesamt", "ensemble", "totale"),
    ]
)
"""Labels of totals, in small letters."""


@dataclass(frozen=True)
class CellList:
    """The cells of a table, one after the other.

    Attributes
    ----------
    name : str
        The table, for messages.
    names : tuple of str
        The variables.
    labels : list of tuples
        The label of each variable, for each cell.
    numbers : list
        What is in each cell.
    measure : str
        What the numbers are called, if they are.
    noise : list or None
        The standard deviation of each cell, if there is a column of them.
    """

    name: str
    names: tuple[str, ...]
    labels: list[tuple[Any, ...]]
    numbers: list[Any]
    measure: str = ""
    noise: list[Any] | None = None

    def place(self, cell: int) -> str:
        """Return what to call a cell."""
        pairs = zip(self.names, self.labels[cell], strict=True)
        return f"the cell {', '.join(f'{n}={shown(label)}' for n, label in pairs)} of {self.name}"


def is_total(label: Any) -> bool:
    """Tell whether a label is one of those that totals have.

    Examples
    --------
    >>> is_total("Total "), is_total("age 5 to 9")
    (True, False)
    """
    return isinstance(label, str) and label.strip().casefold() in _TOTALS


def cells_of_grid(
    grid: Grid,
    names: Sequence[str] | None = None,
    value: str | None = None,
    layout: str | None = None,
    noise: str | None = None,
) -> CellList:
    r"""Return the cells of a grid by their labels.

    Parameters
    ----------
    grid : Grid
        The table.
    names : sequence of str, optional
        The variables. Those that are no column's name are above the columns.
    value : str, optional
        The column of numbers, of a long table.
    layout : {"long", "wide"}, optional
        By default long where there is a column of numbers with a usual name.
    noise : str, optional
        The column of standard deviations, of a long table.

    Examples
    --------
    >>> grid = Grid("t", ("age \\ vote", "no", "yes"), (["young", "old"], [3, 4], [1, 2]))
    >>> cells = cells_of_grid(grid)
    >>> cells.names, cells.labels[1], cells.numbers
    (('age', 'vote'), ('young', 'yes'), [3, 1, 4, 2])
    """
    if not grid.columns or not grid.columns[0]:
        raise JointPMFError(f"{grid.name} has no rows")
    names = None if names is None else tuple(name_list(names))
    value = None if value is None else checked_text(value, "value")
    header = [label.strip() if isinstance(label, str) else label for label in grid.header]
    filled = [k for k in range(len(header)) if k not in grid.blanks]
    _check_header(grid, range(filled[0] if filled else 0, len(header)))
    if noise is not None:
        grid, header, noises = _without_column(grid, header, noise)
    value = None if layout == "wide" else _value_column(grid, header, names, value)
    found = (
        _long(grid, header, names, value)
        if value is not None
        else _wide(grid, header, names, layout)
    )
    check_distinct(found.names, found.name)
    if noise is None:
        return found
    if value is None:
        raise JointPMFError(f"{grid.name} is not a long table: give noise as a number")
    return replace(found, noise=noises)


def _without_column(grid: Grid, header: list[Any], name: str) -> tuple[Grid, list[Any], list[Any]]:
    """Return a grid and its header without a column, and that column."""
    if name not in header:
        raise JointPMFError(
            f"{grid.name} has no column {shown(name)}; its columns are {listing(header)}"
        )
    k = header.index(name)
    rest = [n for n in range(len(header)) if n != k]
    columns = tuple(grid.columns[n] for n in rest)
    left = replace(grid, header=tuple(grid.header[n] for n in rest), columns=columns)
    return left, [header[n] for n in rest], grid.columns[k]


def _value_column(
    grid: Grid, header: list[Any], names: tuple[str, ...] | None, value: str | None
) -> str | None:
    """Return the name of the column of numbers, if it is a long table."""
    if value is not None:
        if value not in header:
            raise JointPMFError(
                f"{grid.name} has no column {shown(value)}; its columns are {listing(header)}"
            )
        return value
    if any(name is not None for name in grid.above):
        return None
    if str(header[-1]).lower() in _MEASURES:
        return header[-1]
    others = [label for label in header if names is not None and label not in names]
    if names is not None and len(others) == 1 and {*names} < {*header}:
        return others[0]
    is_series = grid.n_labels is not None and len(header) == grid.n_labels + 1
    return header[-1] if is_series and not (names and header[-1] in names) else None


def _long(grid: Grid, header: list[Any], names: tuple[str, ...] | None, value: Any) -> CellList:
    _check_header(grid, range(len(header)))
    check_distinct(list(map(str, header)), grid.name)
    names = tuple(label for label in header if label != value) if names is None else names
    absent = [name for name in names if name not in header]
    if absent or not names:
        raise JointPMFError(
            f"{grid.name} must have a column per variable and one of numbers"
            + (f", but it has no column {listing(absent)}" if absent else "")
        )
    columns = [grid.columns[header.index(name)] for name in names]
    labels = [tuple(map(_plain, row)) for row in zip(*columns, strict=True)]
    _check_labels(grid, names, labels, range(len(labels)))
    return CellList(grid.name, names, labels, grid.columns[header.index(value)], str(value))


def _wide(
    grid: Grid, header: list[Any], names: tuple[str, ...] | None, layout: str | None
) -> CellList:
    beside, above = _axes(grid, header, names, layout)
    n_labels = len(beside)
    across = [label if isinstance(label, tuple) else (label,) for label in header[n_labels:]]
    check_distinct(list(map(str, across)), grid.name)
    down = [tuple(map(_plain, row)) for row in zip(*grid.columns[:n_labels], strict=True)]
    rows = _rows_with_cells(grid, down, n_labels)
    _check_labels(grid, beside, down, rows)
    cells = list(product(rows, range(len(across))))
    labels = [(*down[i], *map(_plain, across[k])) for i, k in cells]
    numbers = [grid.columns[n_labels + k][i] for i, k in cells]
    return CellList(grid.name, _renamed(grid, (*beside, *above), names), labels, numbers)


def _rows_with_cells(grid: Grid, down: list[tuple[Any, ...]], n_labels: int) -> list[int]:
    """Return the rows that are not notes below a table, which have no cell in any column."""
    rows = []
    for row, labels in enumerate(down):
        if all(is_blank(column[row]) for column in grid.columns[n_labels:]):
            logger.warning("%s: the row %s has no cells and was left out", grid.name, labels)
        else:
            rows.append(row)
    return rows


def _axes(
    grid: Grid, header: list[Any], names: tuple[str, ...] | None, layout: str | None
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the variables of the columns of labels, and those whose levels are above the rest."""
    if grid.above and (grid.n_labels or names):
        count = grid.n_labels or sum(label in (names or ()) for label in header)
        return tuple(header[: count or 1]), grid.above
    if grid.above:
        return tuple(header[:1]), grid.above
    corner = header[0] if isinstance(header[0], str) else ""
    if "\\" in corner:
        beside, _, above = corner.partition("\\")
        return (beside.strip(),), (above.strip(),)
    if names is not None and len(names) > 1:
        absent = [name for name in names if name not in header]
        count = grid.n_labels or len(names) - 1
        is_corner = len(absent) == 1 or all(map(is_blank, header[:count]))
        if is_corner and len(header) > count:
            above = absent[0] if len(absent) == 1 else names[-1]
            beside_names = [name for name in names if name != above]
            is_named = all(name in header[:count] for name in beside_names)
            return tuple(header[:count] if is_named else beside_names), (above,)
    if layout is None and names is None:
        raise JointPMFError(
            f"{grid.name} must have a column per variable and a last column 'count' or "
            f"'probability', not {shown(header[-1])}; if its columns are levels of a variable, "
            f'name all variables with names, or write "{header[0] or "age"} \\ other" in the '
            "first cell of its header"
        )
    raise JointPMFError(
        f"{grid.name} does not say which variable's levels are above its columns "
        f"{listing(header[1:])}: name all variables with names, the one above the columns last"
    )


def _renamed(grid: Grid, axes: tuple[Any, ...], names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the names of the axes: their own, or those given for as many."""
    if names is not None and set(names) != set(axes):
        if len(names) != len(axes):
            raise JointPMFError(
                f"{grid.name} has {len(axes)} variables, but there are {len(names)} names for them"
            )
        return names
    unnamed = [k for k, name in enumerate(axes) if not isinstance(name, str) or is_blank(name)]
    if unnamed:
        raise JointPMFError(
            f"variable {unnamed[0] + 1} of the {len(axes)} of {grid.name} has no name: "
            "give all of them with names"
        )
    return tuple(map(str, axes))


def _check_header(grid: Grid, columns: range) -> None:
    empty = [k for k in grid.blanks if k in columns and not _is_of_total(grid.header[k])]
    if empty:
        raise JointPMFError(
            f"column {empty[0] + 1} of {grid.name} has no name: merged cells, or a title above "
            "the table, leave the header with empty cells; write one row with a name in every "
            "column, or say with skip, in a tables.toml, how many rows are above it"
        )


def _is_of_total(label: Any) -> bool:
    return isinstance(label, tuple) and any(map(is_total, label))


def _check_labels(
    grid: Grid, names: Sequence[Any], labels: list[tuple[Any, ...]], rows: Iterable[int]
) -> None:
    """Raise if a label is missing; beside that of a total the others may be."""
    if not any(is_blank(label) for column in zip(*labels, strict=True) for label in set(column)):
        return
    for row in rows:
        each = labels[row]
        if any(map(is_blank, each)) and not any(map(is_total, each)):
            name = next(n for n, label in zip(names, each, strict=True) if is_blank(label))
            raise JointPMFError(
                f"{grid.name} has no {name!r} in row {row}: if its cells are merged, write the "
                "label in every row"
            )


def _plain(label: Any) -> Any:
    if hasattr(label, "item") and hasattr(label, "dtype"):
        label = label.item()
    if isinstance(label, str):
        return label.strip()
    if isinstance(label, (list, dict, set)):
        raise JointPMFError(f"a label must be a text or a number, not {shown(label)}")
    return None if is_missing(label) else label
