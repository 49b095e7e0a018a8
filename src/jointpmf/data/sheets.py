"""Spreadsheets: one sheet read as text, and tables written as a sheet of an .xlsx file."""

from __future__ import annotations

import math
import os
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO
from xml.sax.saxutils import escape

import polars as pl

from jointpmf.domain import text_of
from jointpmf.errors import JointPMFError, listing, shown
from jointpmf.output import reason_of

_SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
"""How the names of spreadsheets end."""

_MOST_ROWS, _MOST_COLUMNS = 2**20, 2**14
"""What fits in a sheet, of which the header takes a row."""

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships'
    '+xml"/><Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/sheet.xml" ContentType="{_TYPE}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
    '<sheet name="table" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="r1" Type="{_OFFICE}/worksheet" Target="sheet.xml"/></Relationships>',
}
"""All parts of an .xlsx file but the sheet itself."""


def is_sheet(path: str) -> bool:
    """Tell by its name whether a file is a spreadsheet."""
    return path.lower().endswith(_SHEETS)


def read_sheet(path: str, sheet: str | int | None = None) -> pl.DataFrame:
    """Return all cells of a sheet, those of its header too, as text."""
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


@dataclass
class SheetWriter:
    """Writes batches of rows below each other into the only sheet of an .xlsx file.

    Numbers and booleans stay what they are; all else is text, which never runs as a formula.
    """

    file: BinaryIO
    n_rows: int = 0

    def __enter__(self) -> SheetWriter:
        self._archive = zipfile.ZipFile(self.file, "w", zipfile.ZIP_DEFLATED)
        for name, content in _PARTS.items():
            self._archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{content}')
        self._sheet = self._archive.open("xl/sheet.xml", "w", force_zip64=True)
        self._put(f'<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{_MAIN}"><sheetData>')
        return self

    def __exit__(self, *_: object) -> None:
        self._put("</sheetData></worksheet>")
        self._sheet.close()
        self._archive.close()

    def write(self, batch: pl.DataFrame) -> None:
        """Write more rows, the first ones below the names of the columns."""
        rows = [*([] if self.n_rows else [tuple(batch.columns)]), *batch.rows()]
        self.n_rows += len(rows)
        if self.n_rows > _MOST_ROWS or batch.width > _MOST_COLUMNS:
            raise JointPMFError(
                f"a sheet holds {_MOST_ROWS - 1:,} rows of {_MOST_COLUMNS:,} columns, and this "
                "table has more: write .csv, .parquet or .arrow"
            )
        self._put("".join(map(_row, rows)))

    def _put(self, text: str) -> None:
        self._sheet.write(text.encode())


def _row(cells: Iterable[Any]) -> str:
    return f"<row>{''.join(map(_cell, cells))}</row>"


def _cell(cell: Any) -> str:
    if cell is None:
        return "<c/>"
    if isinstance(cell, bool):
        return f'<c t="b"><v>{int(cell)}</v></c>'
    is_exact = isinstance(cell, int) and abs(cell) <= 2**53  # a sheet has floats only
    if is_exact or (isinstance(cell, float) and math.isfinite(cell)):
        return f"<c><v>{cell!r}</v></c>"
    text = re.sub(r"_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", text_of(cell))
    text = re.sub("[\x00-\x08\x0b-\x1f\ufffe\uffff]", lambda found: f"_x{ord(found[0]):04X}_", text)
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'
