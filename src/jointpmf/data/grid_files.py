"""Files of published tables → grids: text, NDJSON and Parquet files, and sheets of spreadsheets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import polars as pl

from jointpmf.data.grid import Grid
from jointpmf.data.table_files import open_table
from jointpmf.errors import JointPMFError, listing, shown
from jointpmf.output import reason_of

_SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
"""How the names of spreadsheets end."""


def read_grid(
    path: str, sheet: str | int | None = None, skip: int = 0, missing: Iterable[str] = ()
) -> Grid:
    """Return the table in a file.

    Parameters
    ----------
    path : str
        Where it is, or - for stdin.
    sheet : str or int, optional
        Which sheet of a spreadsheet, by name or from 1 on; needed where it has several.
    skip : int
        How many rows are above the header of a spreadsheet or a text file.
    missing : iterable of str
        More texts that mean missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pl.DataFrame({"a": [1, 2], "count": ["1,000", "*"]}).write_csv(f"{folder}/t.csv")
    ...     grid = read_grid(f"{folder}/t.csv")
    >>> grid.header, grid.columns
    (('a', 'count'), (['1', '2'], ['1,000', '*']))
    """
    if path.lower().endswith(_SHEETS):
        return _below_header(path, _sheet(path, sheet), skip)
    if sheet is not None:
        raise JointPMFError(f"{path} has no sheet {shown(sheet)}: it is no spreadsheet")
    with open_table(path, missing) as file:
        if file.is_text:
            return _below_header(file.name, file.lines(), skip)
        if skip:
            raise JointPMFError(f"{file.name} has no rows above its header to skip")
        batches = [batch.cast(pl.String) for batch in file.batches()]
        table = pl.concat(batches) if batches else pl.DataFrame()
        header, name = file.columns, file.name
    _check_rows(len(table), name)
    return Grid(name, tuple(header), tuple(column.to_list() for column in table))


def _below_header(name: str, cells: pl.DataFrame, skip: int) -> Grid:
    """Return a grid from all cells of a file; rows without any cell are left out."""
    cells = cells[skip:].filter(~pl.all_horizontal(pl.all().is_null()))
    cells = cells.select(column for column in cells if column.null_count() < len(cells))
    _check_rows(len(cells) - 1, name)
    header = tuple("" if label is None else str(label).strip() for label in cells.row(0))
    return Grid(name, header, tuple(column.to_list() for column in cells[1:]))


def _check_rows(count: int, name: str) -> None:
    if count < 1:
        raise JointPMFError(f"{name} has no rows")


def _sheet(path: str, sheet: str | int | None) -> pl.DataFrame:
    try:
        import fastexcel
    except ImportError:
        raise JointPMFError(
            f"{path} is a spreadsheet, which needs the extra: pip install 'jointpmf[datasets]'"
        ) from None
    try:
        if not os.path.isfile(path):
            os.stat(path)
            raise JointPMFError(f"cannot read {path}: it is not a file")
        names = fastexcel.read_excel(path).sheet_names
        chosen = _chosen_sheet(path, sheet, names)
        options: dict[str, Any] = {"read_options": {"dtypes": "string"}, "has_header": False}
        return pl.read_excel(path, sheet_name=chosen, raise_if_empty=False, **options)
    except (OSError, ValueError) as error:
        if isinstance(error, JointPMFError):
            raise
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise JointPMFError(f"cannot read {path}: {reason}") from None
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError):
        raise JointPMFError(f"{path} cannot be read as a spreadsheet") from None


def _chosen_sheet(path: str, sheet: str | int | None, names: list[str]) -> str:
    if sheet is None and len(names) == 1:
        return names[0]
    if isinstance(sheet, int) and 1 <= sheet <= len(names):
        return names[sheet - 1]
    if sheet in names:
        return str(sheet)
    asked = "" if sheet is None else f"no sheet {shown(sheet)} but "
    which = "" if sheet is not None else ": say which one to read with sheet"
    raise JointPMFError(f"{path} has {asked}the sheets {listing(names)}{which}")
