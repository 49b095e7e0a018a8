"""Files of published tables → grids: text, NDJSON and Parquet files, and sheets of spreadsheets."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from jointpmf.data.grid import Grid
from jointpmf.data.sheets import is_sheet, read_sheet
from jointpmf.data.table_files import open_table
from jointpmf.errors import JointPMFError, shown


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
    if is_sheet(path):
        return _below_header(path, read_sheet(path, sheet), skip)
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
