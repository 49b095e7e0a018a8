"""Codes → a table of the user's own levels, and the user's own table with its holes filled."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from polars.exceptions import PanicException, PolarsError

from jointpmf.data.columns import columns_of
from jointpmf.domain import MISSING, Domain, Variable
from jointpmf.errors import JointPMFError, is_unicode, listing, one_of, rectangle, shown
from jointpmf.times import kind_of_times

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes

_UNFIT = (TypeError, ValueError, ArithmeticError, RuntimeError, PolarsError, PanicException)
"""What libraries raise where a column cannot hold a cell."""

_MOST_DIGITS = 38
"""Digits of a Decimal of Polars."""

_CELLS = (str, bytes, int, float, Decimal, datetime.date, datetime.time, datetime.timedelta)
"""The types of levels for which the columns of all libraries have a type of their own."""


def decode(codes: Codes, backend: str = "polars") -> Any:
    """Return codes as a table of the user's own levels.

    Parameters
    ----------
    codes : Codes
        What to write out.
    backend : {"polars", "pandas", "pyarrow", "codes"}
        The kind of table; "codes" is the integer array itself.

    Examples
    --------
    >>> from jointpmf import Codes, Domain
    >>> codes = Codes(Domain([Variable("vote", ("no", "yes"))]), np.array([[1], [0]]))
    >>> decode(codes)["vote"].to_list()
    ['yes', 'no']
    """
    if one_of(backend, ("polars", "pandas", "pyarrow", "codes"), "backend") == "codes":
        return codes.array
    if not len(codes.domain):
        raise JointPMFError("there is no variable left to make a table of")
    columns = [
        _decode_column(codes.array[:, n], variable, backend)
        for n, variable in enumerate(codes.domain)
    ]
    return columns[0].to_frame().with_columns(*columns[1:]).to_native()


def table_of(columns: Mapping[str, Any], backend: str) -> Any:
    """Return a table of columns that are arrays of numbers, or pairs of levels and codes.

    Examples
    --------
    >>> columns = {"item": (["x", "y"], np.array([1, 0, -1])), "mean": np.array([4.5, 2.0, 1.0])}
    >>> table_of(columns, "pandas").shape
    (3, 2)
    """
    one_of(backend, ("polars", "pandas", "pyarrow"), "backend")
    series = [
        _decode_column(cells[1], Variable(name, cells[0]), backend)
        if isinstance(cells, tuple)
        else nw.new_series(name, cells, backend=backend)  # type: ignore[arg-type]
        for name, cells in columns.items()
    ]
    return series[0].to_frame().with_columns(*series[1:]).to_native()


def frame_of_rows(
    domain: Domain,
    codes: Iterable[np.ndarray],
    probabilities: np.ndarray,
    column: str,
    backend: str,
) -> Any:
    """Return rows, given as one column of codes per variable, and their probabilities as a frame.

    Examples
    --------
    >>> domain = Domain([Variable("vote", ("no", "yes"))])
    >>> frame_of_rows(domain, [np.array([1, 0])], np.array([0.75, 0.25]), "p", "polars").rows()
    [('yes', 0.75), ('no', 0.25)]
    """
    if not isinstance(column, str) or not is_unicode(column):
        raise JointPMFError(f"column must be a name, not {shown(column)}")
    if column in domain:
        raise JointPMFError(
            f"a variable is called {column!r}: give the column of probabilities another name, "
            "such as column='p'"
        )
    cells = zip(domain, codes, strict=True)
    columns = {variable.name: (variable.levels, part) for variable, part in cells}
    return table_of({**columns, column: probabilities}, backend)


def _decode_column(column: np.ndarray, variable: Variable, backend: Any) -> nw.Series[Any]:
    position = column.astype(np.int64)
    missing = column == MISSING
    position[missing] = variable.size
    try:
        series = series_of_levels(variable, backend, [None] * bool(missing.any()))
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        raise JointPMFError(
            f"a {backend} column cannot hold the levels of variable {variable.name!r}, "
            f"{listing(variable.levels)}"
        ) from None
    return nw.maybe_reset_index(series[position])


def series_of_levels(variable: Variable, backend: Any, more: Sequence[None] = ()) -> nw.Series[Any]:
    """Return a variable's levels as a column, and `more` missing cells below; raise if it cannot.

    Examples
    --------
    >>> series_of_levels(Variable("vote", ("no", "yes")), "polars", [None]).to_list()
    ['no', 'yes', None]
    """
    levels: list[Any] = [*variable.levels, *more]
    kinds = set(map(type, variable.levels))
    if kinds == {int, float}:
        numbers: Sequence[Any] = variable.levels
        levels, kinds = [*map(float, numbers), *more], {float}
    dtype = _dtype_of_large(variable.levels, backend)
    if any(not issubclass(kind, _CELLS) for kind in kinds):  # would become lists, floats or nothing
        dtype = nw.Object
    if backend == "polars" and _n_digits(variable.levels) > _MOST_DIGITS:
        raise OverflowError("Polars would make them missing, or panic")
    series = nw.new_series(variable.name, levels, dtype, backend=backend)
    may_differ = len(kinds) > 1 or datetime.timedelta in kinds  # Polars cuts those that are long
    if may_differ and series.to_list()[: variable.size] != list(variable.levels):
        raise TypeError("the library has turned one type into another, or has cut it")
    return series


def _n_digits(levels: Iterable[Any]) -> int:
    """Return how many digits a column of Decimals needs, before the point and behind it.

    Examples
    --------
    >>> _n_digits([Decimal("100.5"), Decimal("0.25"), 7])
    5
    """
    decimals = [level for level in levels if isinstance(level, Decimal)]
    before = max((one.adjusted() + 1 for one in decimals), default=0)
    behind = max((-int(one.as_tuple().exponent) for one in decimals), default=0)
    return max(before, 0) + max(behind, 0)


def _dtype_of_large(levels: Sequence[Any], backend: str) -> Any:
    """Return the type of a column of whole numbers that a library would not find itself."""
    if any(type(level) is not int for level in levels) or max(map(abs, levels)) <= 2**53:
        return None
    if backend == "pandas":
        return nw.Object  # beside a missing cell pandas would round them to floats
    return nw.UInt64 if min(levels) >= 0 and 2**63 <= max(levels) < 2**64 else None


def filled(
    table: Any,
    values: Mapping[str, np.ndarray],
    domain: Domain | None = None,
    missing_code: Any = None,
) -> Any:
    """Return a table of the same kind whose missing cells have been filled.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, or array
        What to fill; it is not changed.
    values : mapping of name to array of shape (rows,)
        What to put where a column's cell is missing; columns that are not named stay as they are.
    domain : Domain, optional
        The columns of an array; without it they are named x0, x1, …
    missing_code : number or text, optional
        What means missing besides, as in `encode`.

    Examples
    --------
    >>> filled(np.array([[0.0, np.nan], [1.0, 5.0]]), {"x1": np.array([7.0, 8.0])}).tolist()
    [[0.0, 7.0], [1.0, 5.0]]
    """
    columns = columns_of(table, domain, missing_code)[1]
    missing = {name: np.flatnonzero(columns[name]().missing) for name in values if name in columns}
    if isinstance(table, (np.ndarray, list, tuple)):
        return _filled_array(_array_of(table), list(columns), values, missing)
    frame = nw.from_native(table)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    new = [
        _filled_series(frame[name], rows, values[name][rows])
        for name, rows in missing.items()
        if len(rows)
    ]
    return (frame.with_columns(*new) if new else frame).to_native()


def _array_of(table: Any) -> np.ndarray:
    """Return rows as an array; a list that mixes types keeps them, as objects."""
    if isinstance(table, np.ndarray):
        return table
    cells, array = (rectangle(table, "table", dtype) for dtype in (object, None))
    if array.dtype == object:  # whose cells may be of a kind that cannot be compared
        return cells
    kinds = set(map(type, cells.ravel()))
    is_same = (array == cells) | (array != array)  # NaN is not equal to itself
    return array if (len(kinds) < 2 or kinds == {int, float}) and is_same.all() else cells


def _filled_array(
    table: np.ndarray,
    names: Sequence[str],
    values: Mapping[str, np.ndarray],
    missing: Mapping[str, np.ndarray],
) -> np.ndarray:
    cells = {name: values[name][rows] for name, rows in missing.items() if len(rows)}
    if table.dtype.kind in "mM":
        cells = {name: _in_unit(some, table.dtype) for name, some in cells.items()}
    dtypes = [some.dtype for some in cells.values()]
    out = table.astype(np.result_type(table.dtype, *dtypes), copy=True)
    for n, name in enumerate(names):
        if name in cells:
            out[missing[name], n] = cells[name]
    return np.asarray(out)


def _in_unit(cells: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return times in the unit of an array, or in a finer one if that would lose something."""
    if kind_of_times(map(type, cells)) is None:
        return cells
    times = cells.astype(f"{dtype.kind}8[us]")
    coarse = times.astype(dtype)
    return coarse if (coarse == times).all() else times


def _filled_series(series: nw.Series[Any], rows: np.ndarray, cells: np.ndarray) -> nw.Series[Any]:
    """Return a column with some cells set, of its own type if that can hold them."""
    if series.dtype == nw.Object and series.implementation.is_polars():
        raise JointPMFError(f"Polars cannot fill column {series.name!r}, which has no type")
    try:
        found = _with_cells(series, rows, cells)
        are_decimals = isinstance(cells[0], Decimal)  # whose digits Polars cuts
        is_whole = not are_decimals or found[rows.tolist()].to_list() == cells.tolist()
    except _UNFIT:
        is_whole = False
    if not is_whole:
        raise JointPMFError(
            f"column {series.name!r} cannot hold what it would be filled with, such as "
            f"{shown(cells[0])}"
        )
    return found


def _with_cells(series: nw.Series[Any], rows: np.ndarray, cells: np.ndarray) -> nw.Series[Any]:
    """Return a column with some cells set, or raise what its library raises."""
    library: Any = series.implementation
    if series.dtype == nw.Unknown and len(rows) == len(series):  # of a type that holds nothing
        return nw.new_series(series.name, cells.tolist(), backend=library)
    if series.dtype.is_integer() and cells.dtype.kind == "f":
        if (cells % 1 == 0).all():
            cells = cells.astype(np.int64)
        else:
            series = series.cast(nw.Float64)
    if library.is_polars() and series.dtype.is_temporal():
        typed = nw.new_series(series.name, cells.tolist(), series.dtype, backend="polars")
        return series.scatter(rows.tolist(), typed)  # else the unit would be taken for its own
    if not library.is_pyarrow():
        return series.scatter(rows.tolist(), cells.tolist())
    native = series.to_native()
    values = native.to_pylist()  # PyArrow itself cannot replace in all of its types
    for row, cell in zip(rows.tolist(), cells.tolist(), strict=True):
        values[row] = cell
    import pyarrow as pa

    array = pa.chunked_array([pa.array(values, native.type)])
    return nw.from_native(array, series_only=True).alias(series.name)
