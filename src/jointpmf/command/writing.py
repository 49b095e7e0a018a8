"""Tables that commands write: checked before any work, and harmless to spreadsheets on request."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce

import polars as pl

from jointpmf.command.models import check_replaces_nothing
from jointpmf.data.table_files import kind_of
from jointpmf.data.table_output import check_output, table_output
from jointpmf.errors import JointPMFError, listing, on_line

_FORMULA = r"^\s*[=+\-@]|^[\t\r]"
"""How the cells begin that a spreadsheet takes for a formula, unless they are numbers."""

_TEXTS = (pl.String, pl.Categorical, pl.Enum)
"""The types of columns that can hold such cells."""


def check_table_output(
    output: str,
    sources: Mapping[str, str | Sequence[str]],
    instead: str = "give another --output",
) -> None:
    """Raise if a table cannot be written there, or would replace what it is made from."""
    check_output(output)
    check_replaces_nothing(output, "output", sources, instead)


@contextmanager
def written_table(
    output: str, as_json: bool, is_escaped: bool
) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Give a function that writes batches of rows; text files are escaped if that is asked for.

    On a terminal, characters that would move its cursor are shown instead of sent.
    """
    is_text = (kind_of(output)[0] or ("ndjson" if as_json else "csv")) in ("csv", "tsv")
    with table_output(output, as_json) as write:
        changes = [escaped] if is_escaped and is_text else []
        changes += [_shown] if output == "-" and sys.stdout.isatty() else []
        yield lambda batch: write(reduce(lambda made, change: change(made), changes, batch))


def escaped(batch: pl.DataFrame) -> pl.DataFrame:
    """Return a table in which no cell and no name is a formula: an apostrophe is before each.

    Examples
    --------
    >>> escaped(pl.DataFrame({"@a": ["=1+1", "-1", "b"]})).to_dict(as_series=False)
    {"'@a": ["'=1+1", '-1', 'b']}
    """
    return _with_texts(batch, _without_formulas)


def _shown(batch: pl.DataFrame) -> pl.DataFrame:
    return _with_texts(batch, lambda texts: texts.map_elements(on_line, pl.String))


def _with_texts(batch: pl.DataFrame, change: Callable[[pl.Series], pl.Series]) -> pl.DataFrame:
    """Return a table whose names and cells of text are changed."""
    names = change(pl.Series(batch.columns, dtype=pl.String)).to_list()
    columns = [
        change(column.cast(pl.String)) if column.dtype in _TEXTS else column for column in batch
    ]
    if len(set(names)) < len(names):
        raise JointPMFError(f"names would be the same when they are escaped: {listing(names)}")
    return pl.DataFrame(dict(zip(names, columns, strict=True)))


def _without_formulas(texts: pl.Series) -> pl.Series:
    is_number = texts.cast(pl.Float64, strict=False).is_not_null()
    is_formula = texts.str.contains(_FORMULA) & ~is_number
    return texts.zip_with(~is_formula.fill_null(False), "'" + texts)
