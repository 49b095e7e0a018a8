"""Spreadsheets: one sheet read as text, and tables written as a sheet of an .xlsx file."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import polars as pl

from jointpmf.domain import text_of
from jointpmf.errors import JointPMFError, listing, shown
from jointpmf.output import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

_SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
"""How the names of spreadsheets end."""

_MOST_ROWS, _MOST_COLUMNS = 2**20, 2**14
"""What fits in a sheet, of which the header takes a row."""

_LARGEST_EXACT = 2**53
"""Whole numbers up to this are exact in a sheet, whose numbers are floats."""


def is_sheet(path: str) -> bool:
    """Tell by its name whether a file is a spreadsheet."""
    return path.lower().endswith(_SHEETS)


def read_sheet(path: str, sheet: str | int | None = None) -> pl.DataFrame:
    """Return all cells of a sheet, those of its header too, as text."""
    try:
        import fastexcel
    except ImportError:
        raise JointPMFError(
            f"{path} is a spreadsheet, which needs the extra: pip install 'jointpmf[excel]'"
        ) from None
    try:
        if not os.path.isfile(path):
            os.stat(path)
            raise JointPMFError(f"cannot read {path}: it is not a file")
        names = fastexcel.read_excel(path).sheet_names
        chosen = _chosen_sheet(path, sheet, names)
        options: dict[str, Any] = {"read_options": {"dtypes": "string"}, "has_header": False}
        options |= {"raise_if_empty": False, "drop_empty_rows": False}
        return pl.read_excel(path, sheet_name=chosen, **options)
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


def check_sheet_writer() -> None:
    """Raise if the package that writes spreadsheets is not installed."""
    try:
        import xlsxwriter  # noqa: F401
    except ImportError:
        raise JointPMFError(
            "writing an .xlsx file needs the extra: pip install 'jointpmf[excel]'; or write .csv, "
            ".parquet or .arrow"
        ) from None


@contextmanager
def sheet_output(file: BinaryIO) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Give a function that writes batches of rows below each other into one sheet.

    Numbers and booleans stay what they are; all else is text, which never runs as a formula.
    xlsxwriter is called directly: `DataFrame.write_excel` makes an Excel table, which refuses
    column names that differ only by case and reads back with the digits that it shows.
    """
    import xlsxwriter

    n_rows = 0
    with xlsxwriter.Workbook(file, {"constant_memory": True}) as book:
        sheet = book.add_worksheet("table")

        def write(batch: pl.DataFrame) -> None:
            nonlocal n_rows
            rows = [*([] if n_rows else [tuple(batch.columns)]), *batch.rows()]
            if n_rows + len(rows) > _MOST_ROWS or batch.width > _MOST_COLUMNS:
                raise JointPMFError(
                    f"a sheet holds {_MOST_ROWS - 1:,} rows of {_MOST_COLUMNS:,} columns, and this "
                    "table has more: write .csv, .parquet or .arrow"
                )
            for i, row in enumerate(rows, n_rows):
                for k, cell in enumerate(row):
                    _write_cell(sheet, i, k, cell)
            n_rows += len(rows)

        yield write


def _write_cell(sheet: Any, row: int, column: int, cell: Any) -> None:
    is_exact = isinstance(cell, int) and abs(cell) <= _LARGEST_EXACT
    if cell is None:
        return
    if isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif is_exact or (isinstance(cell, float) and math.isfinite(cell)):
        sheet.write_number(row, column, cell)
    elif sheet.write_string(row, column, text_of(cell)):
        raise JointPMFError(
            f"a cell of a sheet holds 32,767 characters, and {shown(cell)} has more: write .csv, "
            ".parquet or .arrow"
        )
