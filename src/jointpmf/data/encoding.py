"""Any table ⇄ Codes: column-major small integers, −1 where a cell was not observed.

The only file that knows narwhals. A data frame or an array goes in with the user's own levels;
inside the house there are only codes, and `decode` brings the user's levels back.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from numbers import Integral, Real
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from jointpmf.data.binning import Bins as Bins
from jointpmf.data.binning import bin_codes, binned_variable, bins_by_name, check_inside
from jointpmf.domain import MISSING, Domain, Variable, check_distinct, is_missing
from jointpmf.errors import JointPMFError, listing, one_of, shown, whole_number

Unknown = Literal["error", "missing"]

MAX_NUMERIC_LEVELS = 100
"""A numeric column with more distinct values than this is taken for a continuous one."""


@dataclass(frozen=True)
class Codes:
    """An incomplete table as integers: `array[row, n]` is a level's position, or −1 for missing.

    Parameters
    ----------
    domain : Domain
        What the codes are positions in.
    array : array of shape (rows, variables)
        Integers, or whole floats with NaN for MISSING.

    Examples
    --------
    >>> import numpy as np
    >>> codes = encode(np.array([[0, 2], [1, -1]]), Domain.of_sizes([2, 3]))
    >>> codes.array.tolist(), codes.n_rows
    ([[0, 2], [1, -1]], 2)
    """

    domain: Domain
    array: np.ndarray

    def __post_init__(self) -> None:
        check_is_domain(self.domain)
        array = _rectangle(self.array, "codes")
        if array.shape[1:] != (len(self.domain),):
            raise JointPMFError(
                f"codes of shape {array.shape} do not fit {len(self.domain)} variables"
            )
        if array.dtype.kind not in "iuf":
            raise JointPMFError(f"codes must be whole numbers, not of type {array.dtype}")
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), MISSING, array)
            self._refuse(array, array != np.floor(array), "is not a whole number")
        if array.size and (array.min() < MISSING or (array.max(axis=0) >= self.domain.sizes).any()):
            outside = (array < MISSING) | (array >= self.domain.sizes)
            self._refuse(array, outside, "lies outside of its variable's levels")
        dtype = code_dtype(max(self.domain.sizes, default=1))
        object.__setattr__(self, "array", np.asfortranarray(array, dtype=dtype))

    def _refuse(self, array: np.ndarray, where: np.ndarray, why: str) -> None:
        if where.any():
            row, n = np.argwhere(where)[0].tolist()
            raise JointPMFError(
                f"the code {array[row, n]} of column {self.domain.names[n]!r} in row {row} {why}"
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.array.shape[0]

    @cached_property
    def columns(self) -> np.ndarray:
        """The same codes as a C-ordered array of shape (variables, rows): one pass per column."""
        return self.array.T


def code_dtype(size: int) -> type[np.signedinteger]:
    """Return the smallest integer type that holds the codes of a variable of this size."""
    return np.int8 if size <= 127 else np.int16 if size <= 32767 else np.int32


def encode(
    table: Any,
    domain: Domain | None = None,
    *,
    bins: Bins | None = None,
    unknown: Unknown = "error",
    max_levels: int = MAX_NUMERIC_LEVELS,
    missing_code: int | None = MISSING,
) -> Codes:
    """Return a table's codes, and with them its domain.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array or list of rows, Codes or Ratings
        Every spelling of a missing value becomes MISSING; in arrays of numbers −1 does too.
    domain : Domain, optional
        What can happen. Without one it is learned from the table: levels in their type's own
        order where it has one, sorted otherwise. A column that the domain has and the table
        has not is missing in every row; columns that the domain does not have are left out.
    bins : int, or mapping of name to int or edges, optional
        How to cut continuous columns: into that many parts of about equal count (fewer where
        many cells are equal), or at edges. A single number is for all columns of numbers with
        more than `max_levels` of them.
    unknown : {"error", "missing"}
        What to do with a level that the given domain does not have.
    max_levels : int
        A numeric column with more distinct values must be binned.
    missing_code : int or None
        The number that means missing in arrays; with None only NaN does.

    Examples
    --------
    >>> import polars as pl
    >>> codes = encode(pl.DataFrame({"vote": ["yes", None, "no"]}))
    >>> codes.domain["vote"].levels, codes.array[:, 0].tolist()
    (('no', 'yes'), [1, -1, 0])
    """
    if unknown not in ("error", "missing"):
        raise JointPMFError(f"unknown must be 'error' or 'missing', not {shown(unknown)}")
    if domain is not None:
        check_is_domain(domain)
    if isinstance(getattr(table, "codes", None), Codes):
        table = table.codes  # of Ratings
    if bins is not None and (domain is not None or isinstance(table, Codes)):
        raise JointPMFError("bins belong to the learning of a domain, which is given already")
    if isinstance(table, Codes):
        return table if domain is None else _recode(table, domain)
    n_rows, columns = _columns_of(table, domain, missing_code)
    if domain is None:
        return _learn(n_rows, columns, bins, max_levels)
    check_shares(columns, domain)
    coded = {
        variable.name: _encode_column(columns[variable.name](), variable, unknown)
        for variable in domain
        if variable.name in columns
    }
    return _gather(domain, n_rows, coded)


class LevelUnion:
    """The columns and levels of a table that comes in batches, as if it came at once.

    Examples
    --------
    >>> union = LevelUnion()
    >>> union.add(np.array([["b"]])), union.add(np.array([["a"], ["b"]]))
    (1, 2)
    >>> union.domain()["x0"].levels
    ('a', 'b')
    """

    def __init__(self) -> None:
        self._found: dict[str, ColumnLevels] = {}
        self._with_codes: set[str] = set()
        self._given: Domain | None = None

    def add(self, table: Any) -> int:
        """Take one more batch into account; return how many rows it has."""
        if isinstance(getattr(table, "codes", None), Codes):
            table = table.codes  # of Ratings
        if isinstance(table, Codes):
            if table.domain != (self._given or table.domain):
                raise JointPMFError("the codes are over another domain than those before")
            self._given = table.domain
            return table.n_rows
        n_rows, columns = _columns_of(table, None, None)
        if n_rows:
            for found in column_levels(table, list(columns)):
                if isinstance(table, (np.ndarray, list, tuple)):
                    found = self._without_code(found)
                before = self._found.get(found.name)
                self._found[found.name] = found if before is None else before.merged(found)
                self._check_count(self._found[found.name])
        return n_rows

    def _without_code(self, column: ColumnLevels) -> ColumnLevels:
        """Return the levels of an array's column: among numbers, −1 is none of them."""
        if not (column.are_numbers and MISSING in column.levels):
            return column
        self._with_codes.add(column.name)
        return replace(column, levels=[level for level in column.levels if level != MISSING])

    @staticmethod
    def _check_count(column: ColumnLevels) -> None:
        if len(column.levels) > MAX_NUMERIC_LEVELS and column.are_numbers:
            raise JointPMFError(
                f"column {column.name!r} has more than {MAX_NUMERIC_LEVELS} distinct numbers: give "
                f"a domain in which it is binned, such as encode(some rows, "
                f"bins={{{column.name!r}: 8}}).domain"
            )

    def domain(self) -> Domain:
        """Return the domain of all batches."""
        if self._given is not None:
            return self._given
        if not self._found:
            raise JointPMFError("the batches are empty: there is nothing to learn the levels from")
        for name in self._with_codes:
            column = self._found[name]
            if column.are_numbers and any(level < 0 for level in column.levels):
                raise _ambiguous(name, MISSING)
        return Domain([found.variable() for found in self._found.values()])


@dataclass(frozen=True)
class ColumnLevels:
    """The levels that a column holds, as far as it has been read.

    Attributes
    ----------
    levels : list
        All that were seen, in any order.
    own : list or None
        All that the column's type lists itself, in its order, if it does.

    Examples
    --------
    >>> ColumnLevels("a", [3, 1], None).merged(ColumnLevels("a", [2.0], None)).variable().levels
    (1.0, 2.0, 3.0)
    """

    name: str
    levels: list[Any]
    own: list[Any] | None

    def merged(self, other: ColumnLevels) -> ColumnLevels:
        """Return the levels of both; types that list different ones do not count."""
        if not other.levels and other.own is None:
            return self
        if not self.levels and self.own is None:
            return other
        both = replace(self, levels=[*self.levels, *other.levels])._column.distinct()
        return ColumnLevels(self.name, both, self.own if self.own == other.own else None)

    @property
    def are_numbers(self) -> bool:
        """Whether all levels are numbers."""
        return _are_numbers(self._column.cells)

    def variable(self) -> Variable:
        """Return the variable that the whole column is, as `encode` learns it."""
        if self.levels and self.own is not None:
            return Variable(self.name, self.own)
        return _learn_variable(self._column, None, None, MAX_NUMERIC_LEVELS)

    @property
    def _column(self) -> _ArrayColumn:
        """The levels as a column of their own; whole numbers beside others become floats."""
        cells = np.empty(len(self.levels), object)
        cells[:] = self.levels
        return _ArrayColumn(self.name, _narrowed(cells), np.zeros(len(cells), bool))


def column_levels(table: Any, names: Sequence[str]) -> list[ColumnLevels]:
    """Return the levels of some columns of a part of a table.

    Examples
    --------
    >>> import polars as pl
    >>> column_levels(pl.DataFrame({"vote": ["yes", None, "no"]}), ["vote"])
    [ColumnLevels(name='vote', levels=['yes', 'no'], own=None)]
    """
    columns = _columns_of(table, None, None)[1]
    found = []
    for name in names:
        column = columns[name]()
        own = column.own_order() if isinstance(column, _SeriesColumn) else None
        found.append(ColumnLevels(name, _distinct(column), own))
    return found


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
    >>> codes = Codes(Domain([Variable("vote", ("no", "yes"))]), np.array([[1], [0]]))
    >>> decode(codes)["vote"].to_list()
    ['yes', 'no']
    """
    if backend == "codes":
        return codes.array
    if backend not in ("polars", "pandas", "pyarrow"):
        raise JointPMFError(
            f"backend must be 'polars', 'pandas', 'pyarrow' or 'codes', not {shown(backend)}"
        )
    if not len(codes.domain):
        raise JointPMFError("there is no variable left to make a table of")
    columns = [
        _decode_column(codes.array[:, n], variable, backend)
        for n, variable in enumerate(codes.domain)
    ]
    return columns[0].to_frame().with_columns(*columns[1:]).to_native()


def filled(table: Any, values: Mapping[str, np.ndarray], missing_code: int | None = MISSING) -> Any:
    """Return a table of the same kind whose missing cells have been filled.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, or array
        What to fill; it is not changed.
    values : mapping of name to array of shape (rows,)
        What to put where a column's cell is missing; columns that are not named stay as they are.
        The columns of an array are named x0, x1, …
    missing_code : int or None
        The number that means missing in arrays.

    Examples
    --------
    >>> filled(np.array([[0.0, np.nan], [1.0, 5.0]]), {"x1": np.array([7.0, 8.0])}).tolist()
    [[0.0, 7.0], [1.0, 5.0]]
    """
    columns = _columns_of(table, None, missing_code)[1]
    missing = {name: np.flatnonzero(columns[name]().missing) for name in values if name in columns}
    if isinstance(table, (np.ndarray, list, tuple)):
        return _filled_array(_rectangle(table, "table", None), list(columns), values, missing)
    frame = nw.from_native(table)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    new = [
        _filled_series(frame[name], rows, values[name][rows])
        for name, rows in missing.items()
        if len(rows)
    ]
    return (frame.with_columns(*new) if new else frame).to_native()


def _filled_array(
    table: np.ndarray,
    names: Sequence[str],
    values: Mapping[str, np.ndarray],
    missing: Mapping[str, np.ndarray],
) -> np.ndarray:
    dtypes = [values[name].dtype for name, rows in missing.items() if len(rows)]
    out = table.astype(np.result_type(table.dtype, *dtypes), copy=True)
    for n, name in enumerate(names):
        if name in missing:
            out[missing[name], n] = values[name][missing[name]]
    return np.asarray(out)


def _filled_series(series: nw.Series[Any], rows: np.ndarray, cells: np.ndarray) -> nw.Series[Any]:
    """Return a column with some cells set, of its own type if that can hold them."""
    if series.dtype.is_integer() and cells.dtype.kind == "f":
        if (cells % 1 == 0).all():
            cells = cells.astype(np.int64)
        else:
            series = series.cast(nw.Float64)
    if series.implementation.is_polars() and series.dtype.is_temporal():
        typed = nw.new_series(series.name, cells.tolist(), series.dtype, backend="polars")
        return series.scatter(rows.tolist(), typed)  # else the unit would be taken for its own
    if not series.implementation.is_pyarrow():
        return series.scatter(rows.tolist(), cells.tolist())
    native = series.to_native()
    values = native.to_pylist()  # PyArrow itself cannot replace in all of its types
    for row, cell in zip(rows.tolist(), cells.tolist(), strict=True):
        values[row] = cell
    import pyarrow as pa

    array = pa.chunked_array([pa.array(values, native.type)])
    return nw.from_native(array, series_only=True).alias(series.name)


def _recode(codes: Codes, domain: Domain) -> Codes:
    check_shares(codes.domain.names, domain)
    coded = {}
    for variable in domain:
        if variable.name not in codes.domain:
            continue
        if variable != codes.domain[variable.name]:
            raise JointPMFError(
                f"the codes were made for another domain, with other levels of variable "
                f"{variable.name!r}; encode the table itself again"
            )
        coded[variable.name] = codes.array[:, codes.domain.index(variable.name)]
    return _gather(domain, codes.n_rows, coded)


def _learn(n_rows: int, columns: _Columns, bins: Bins | None, max_levels: int) -> Codes:
    if not columns or not n_rows:
        raise JointPMFError("the table is empty: there is nothing to learn the levels from")
    named = bins_by_name(bins, list(columns))
    otherwise = int(bins) if isinstance(bins, (int, np.integer)) else None
    max_levels = whole_number(max_levels, "max_levels", 0)
    variables, coded = [], {}
    for name, read in columns.items():
        column = read()
        variables.append(_learn_variable(column, named.get(name), otherwise, max_levels))
        coded[name] = _encode_column(column, variables[-1], "error")
    return _gather(Domain(variables), n_rows, coded)


def _learn_variable(
    column: _Column, bins: int | Sequence[float] | None, otherwise: int | None, max_levels: int
) -> Variable:
    levels = _distinct(column)
    if not levels:
        raise JointPMFError(f"column {column.name!r} has no observed cell")
    if bins is not None:
        if (numbers := column.numbers) is None:
            raise JointPMFError(
                f"column {column.name!r} cannot be binned: it does not hold numbers"
            )
        return binned_variable(column.name, numbers, column.missing, bins)
    own = column.own_order() if isinstance(column, _SeriesColumn) else None
    if own is not None:
        return Variable(column.name, own)
    try:
        levels = sorted(levels)
    except TypeError:
        kinds = sorted({type(level).__name__ for level in levels})
        raise JointPMFError(
            f"column {column.name!r} mixes cells of types {', '.join(kinds)}, which have no order"
        ) from None
    if len(levels) > max_levels and (numbers := column.numbers) is not None:
        if otherwise is not None:
            return binned_variable(column.name, numbers, column.missing, otherwise)
        raise JointPMFError(
            f"column {column.name!r} has {len(levels)} distinct numbers, more than {max_levels}: "
            f"bin it with bins={{{column.name!r}: 8}}, or raise max_levels"
        )
    return Variable(column.name, tuple(map(_plain_time, levels)))


def _plain_time(level: Any) -> Any:
    """Return a pandas Timestamp or Timedelta as the standard library's own object."""
    if isinstance(level, datetime.datetime) and hasattr(level, "to_pydatetime"):
        return level.to_pydatetime()
    return level.to_pytimedelta() if hasattr(level, "to_pytimedelta") else level


def _encode_column(column: _Column, variable: Variable, unknown: Unknown) -> np.ndarray:
    if variable.edges is not None and (numbers := column.numbers) is not None:
        if unknown == "error":
            check_inside(variable.name, numbers, column.missing, variable.edges)
        return _spread(bin_codes(numbers, variable.edges), column.missing)
    code_of: dict[Hashable, int] = {}
    for level in _distinct(column):
        try:
            code_of[level] = variable.code(level)
        except JointPMFError:
            if unknown == "error":
                raise JointPMFError(
                    f"column {variable.name!r} holds {shown(level)} in row "
                    f"{column.first_row(level)}, which is not one of its levels "
                    f"{listing(variable.levels)}"
                ) from None
            code_of[level] = MISSING
    return column.codes(code_of)


def _distinct(column: _Column) -> list[Any]:
    try:
        return column.distinct()
    except TypeError:
        raise _no_levels(column.name) from None


def _no_levels(name: str) -> JointPMFError:
    return JointPMFError(f"column {name!r} holds cells that cannot be levels, such as lists")


def _gather(domain: Domain, n_rows: int, coded: Mapping[str, np.ndarray]) -> Codes:
    """Return columns of codes side by side, and MISSING for the variables that have none."""
    array = np.full((n_rows, len(domain)), MISSING, code_dtype(max(domain.sizes, default=1)), "F")
    for name, codes in coded.items():
        array[:, domain.index(name)] = codes
    return Codes(domain, array)


def check_is_domain(domain: object) -> None:
    """Raise if something else was given as a domain."""
    if not isinstance(domain, Domain):
        raise JointPMFError(f"a domain must be a Domain, not {shown(domain)}")


def check_shares(names: Collection[str], domain: Domain) -> None:
    """Raise if a table has none of a domain's variables."""
    check_is_domain(domain)
    if names and len(domain) and not any(name in domain for name in names):
        raise JointPMFError(
            f"the table has none of the variables {listing(domain.names)}; "
            f"its columns are {listing(names)}"
        )


def _columns_of(
    table: Any, domain: Domain | None, missing_code: int | None
) -> tuple[int, _Columns]:
    """Return a table's number of rows, and for each of its columns what reads it."""
    if isinstance(table, (np.ndarray, list, tuple)):
        return _columns_of_array(table, domain, missing_code)
    try:
        check_distinct(_native_names(table), "the table")
        frame = nw.from_native(table)
    except TypeError:
        raise JointPMFError(
            "a table must be a pandas, Polars or PyArrow table or an array, "
            f"not {type(table).__name__}"
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    for name in frame.columns:
        if not isinstance(name, str):
            raise JointPMFError(f"column names must be strings, not {shown(name)}")
    return len(frame), {name: partial(_column_of_series, frame, name) for name in frame.columns}


def _native_names(table: Any) -> list[Any]:
    """Return the column names of a table that may have one twice, as pandas and PyArrow allow."""
    lazy = hasattr(table, "collect")
    return [] if lazy else list(getattr(table, "column_names", getattr(table, "columns", [])))


def _columns_of_array(
    table: Any, domain: Domain | None, missing_code: int | None
) -> tuple[int, _Columns]:
    if isinstance(table, np.ndarray):
        array = np.asfortranarray(table)  # every pass below is over one column
    elif len(table):
        array = _rectangle(table, "table", object)  # a list may mix types
    else:
        array = np.empty((0, 0 if domain is None else len(domain)), object)
    if array.ndim != 2:
        raise JointPMFError(f"an array of rows must have two dimensions, not {array.ndim}")
    names = [f"x{n}" for n in range(array.shape[1])] if domain is None else list(domain.names)
    if len(names) != array.shape[1]:
        raise JointPMFError(f"the array has {array.shape[1]} columns for {len(names)} variables")
    masked = np.broadcast_to(False, array.shape)
    if isinstance(table, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(table)
    return len(array), {
        name: partial(_column_of_cells, name, array[:, n], masked[:, n], domain, missing_code)
        for n, name in enumerate(names)
    }


def _rectangle(rows: Any, what: str, dtype: Any = None) -> np.ndarray:
    """Return rows as an array, or raise if they are not all of the same length."""
    try:
        array = np.asarray(rows, dtype)
        ragged = array.ndim == 1 and any(
            isinstance(row, (list, tuple, np.ndarray)) for row in array
        )
    except ValueError:
        ragged = True
    if ragged:
        raise JointPMFError(f"the rows of the {what} do not all have the same length")
    return array


def _column_of_series(frame: nw.DataFrame[Any], name: str) -> _Column:
    series = frame[name]
    if series.dtype.is_nested():
        raise _no_levels(name)
    if series.dtype == nw.Object or series.dtype in (nw.Int128, nw.UInt128):
        cells = np.empty(len(series), object)
        cells[:] = series.to_list()  # np.array would look into those that are lists
        missing = _missing_in_array(cells)
        return _ArrayColumn(name, _narrowed(cells[~missing]), missing)
    if not series.dtype.is_numeric():
        return _SeriesColumn(name, series)
    missing, cells = series.is_null().to_numpy().astype(bool), series.drop_nulls().to_numpy()
    if series.dtype.is_float():  # a NaN is null in pandas only
        missing = missing | series.is_nan().fill_null(True).to_numpy()
        cells = cells[~np.isnan(cells)]
    return _ArrayColumn(name, cells, missing)


def _column_of_cells(
    name: str,
    cells: np.ndarray,
    masked: np.ndarray,
    domain: Domain | None,
    missing_code: int | None,
) -> _ArrayColumn:
    missing = masked | _missing_in_array(cells)
    observed = _narrowed(cells[~missing] if missing.any() else cells)
    if missing_code is None or not _are_numbers(observed):
        return _ArrayColumn(name, observed, missing)
    is_code = observed == missing_code
    if is_code.any():
        observed = observed[~is_code]
        if (observed < 0).any() or (domain is not None and missing_code in domain[name]):
            raise _ambiguous(name, missing_code)
        missing[~missing] = is_code
    return _ArrayColumn(name, observed, missing)


def _ambiguous(name: str, missing_code: int) -> JointPMFError:
    return JointPMFError(
        f"column {name!r} holds {missing_code}, which means missing in an array, but it has "
        "negative levels too; pass a data frame, where it is a level, or missing_code=None"
    )


def _missing_in_array(cells: np.ndarray) -> np.ndarray:
    kind = cells.dtype.kind
    if kind == "O" and not set(map(type, cells)) <= {int, str, bool}:
        return np.fromiter(map(is_missing, cells), bool, len(cells))
    if kind == "f":
        return np.isnan(cells)
    return np.isnat(cells) if kind in "mM" else np.zeros(len(cells), bool)


def _narrowed(cells: np.ndarray) -> np.ndarray:
    """Return observed cells in numpy's type for them where it has one that loses nothing."""
    if cells.dtype == object and len(cells):
        cells = _narrowed_objects(cells)
    if cells.dtype.kind in "mM" and np.datetime_data(cells.dtype)[0] in ("ns", "ps", "fs", "as"):
        return cells.astype(f"{cells.dtype.kind}8[us]")  # what Python's own times can hold
    return cells


def _narrowed_objects(cells: np.ndarray) -> np.ndarray:
    if _all_of(cells, np.datetime64) or _all_of(cells, np.timedelta64):
        return np.array(cells.tolist())
    whole = _all_of(cells, Integral)
    for dtype in (np.int64, np.uint64) if whole else (np.float64,) if _all_of(cells, Real) else ():
        try:
            numbers = np.array(list(map(int, cells)) if whole else cells, dtype)
        except OverflowError:
            continue
        if (numbers == cells).all():
            return numbers
    return cells


def _all_of(cells: np.ndarray, kind: Any) -> bool:
    """Tell whether all objects are of a kind; truth values are no numbers here."""
    return all(issubclass(one, kind) and one is not bool for one in set(map(type, cells)))


def _are_numbers(cells: np.ndarray) -> bool:
    return _all_of(cells, (Real, Decimal)) if cells.dtype == object else cells.dtype.kind in "iuf"


@dataclass(frozen=True)
class _ArrayColumn:
    """A column whose observed cells are an array: of numbers, text, times or Python objects."""

    name: str
    cells: np.ndarray
    missing: np.ndarray

    @property
    def numbers(self) -> np.ndarray | None:
        """The observed cells as floats, if they are numbers."""
        try:
            return self.cells.astype(float) if _are_numbers(self.cells) else None
        except OverflowError:
            raise JointPMFError(f"column {self.name!r} holds a number beyond all floats") from None

    def distinct(self) -> list[Any]:
        """Return the levels that the column holds."""
        cells = self.cells
        if cells.dtype == object:
            return list(dict.fromkeys(cells))
        if _is_dense(cells):  # few different integers: count them rather than sort
            low = int(cells.min())
            return [low + k for k in np.flatnonzero(np.bincount(_above(cells, low))).tolist()]
        return np.unique(cells).tolist()

    def first_row(self, level: Any) -> int:
        """Return the first row that holds a level."""
        return int(np.flatnonzero(~self.missing)[self.cells.tolist().index(level)])

    def codes(self, code_of: Mapping[Any, int]) -> np.ndarray:
        """Return the codes of all rows, given the code of every level that the column holds."""
        return _spread(self._observed_codes(code_of), self.missing)

    def _observed_codes(self, code_of: Mapping[Any, int]) -> np.ndarray:
        cells = self.cells
        if cells.dtype == object or not code_of:
            return np.array([code_of[cell] for cell in cells], np.int32)
        levels = np.array(sorted(code_of), cells.dtype)
        codes = np.array([code_of[level] for level in sorted(code_of)], np.int32)
        if not _is_dense(cells):
            return codes[np.searchsorted(levels, cells)]
        low = int(levels[0])
        code_above = np.zeros(int(levels[-1]) - low + 1, np.int32)
        code_above[_above(levels, low)] = codes
        return code_above[_above(cells, low)]


def _spread(codes: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the codes of all rows, given those of the observed ones."""
    if len(codes) == len(missing):
        return codes
    spread = np.full(len(missing), MISSING, np.int32)
    spread[~missing] = codes
    return spread


def _is_dense(cells: np.ndarray) -> bool:
    """Tell whether cells are integers that lie closer together than there are cells."""
    whole = cells.dtype.kind in "iu" and len(cells) > 0
    return whole and int(cells.max()) - int(cells.min()) < len(cells)


def _above(cells: np.ndarray, low: int) -> np.ndarray:
    """Return how far integers lie above the lowest of them."""
    if cells.dtype == np.uint64:
        return (cells - np.uint64(low)).astype(np.int64)
    return cells.astype(np.int64) - low


@dataclass(frozen=True)
class _SeriesColumn:
    """A column of a data frame that does not hold numbers; its own library does the work."""

    name: str
    series: nw.Series[Any]
    numbers: None = None

    @property
    def missing(self) -> np.ndarray:
        """Where the column is missing."""
        return self.series.is_null().to_numpy().astype(bool)

    def own_order(self) -> list[Any] | None:
        """Return the levels that the column's type lists itself, in its order, if it does."""
        series, native = self.series, self.series.to_native()
        of_pandas = series.implementation.is_pandas_like() and series.dtype == nw.Categorical
        if series.dtype == nw.Enum or (of_pandas and hasattr(native.dtype, "categories")):
            return list(map(_plain_time, native.dtype.categories))
        of_pyarrow = series.implementation.is_pyarrow() and series.dtype == nw.Categorical
        if of_pyarrow and native.type.ordered:
            return native.unify_dictionaries().chunk(0).dictionary.to_pylist()
        return None

    def distinct(self) -> list[Any]:
        """Return the levels that the column holds."""
        return self.series.drop_nulls().unique(maintain_order=True).to_list()

    def first_row(self, level: Any) -> int:
        """Return the first row that holds a level."""
        cells = self.series.to_list()
        return next(row for row in np.flatnonzero(~self.missing).tolist() if cells[row] == level)

    def codes(self, code_of: Mapping[Any, int]) -> np.ndarray:
        """Return the codes of all rows, given the code of every level that the column holds."""
        if not code_of:
            return np.full(len(self.series), MISSING, np.int32)
        codes = self.series.replace_strict(
            list(code_of), list(code_of.values()), default=None, return_dtype=nw.Int32
        )
        return codes.fill_null(MISSING).to_numpy().astype(np.int32)


_Column = _ArrayColumn | _SeriesColumn
_Columns = Mapping[str, Callable[[], _Column]]


def _decode_column(column: np.ndarray, variable: Variable, backend: Any) -> nw.Series[Any]:
    levels: list[Any] = list(variable.levels)
    kinds = set(map(type, levels))
    if kinds == {int, float}:
        levels, kinds = list(map(float, levels)), {float}
    dtype = _dtype_of_large(levels, backend)
    position = column.astype(np.int64)
    if (column == MISSING).any():
        levels.append(None)
        position[column == MISSING] = variable.size
    try:
        series = nw.new_series(variable.name, levels, dtype, backend=backend)
        if len(kinds) > 1 and series.to_list() != levels:
            raise TypeError("the library has turned one type into another")
    except (TypeError, ValueError, OverflowError):
        raise JointPMFError(
            f"a {backend} column cannot hold the levels of variable {variable.name!r}, "
            f"{listing(variable.levels)}"
        ) from None
    return nw.maybe_reset_index(series[position])


def _dtype_of_large(levels: Sequence[Any], backend: str) -> Any:
    """Return the type of a column of whole numbers that a library would not find itself."""
    if any(type(level) is not int for level in levels) or max(map(abs, levels)) <= 2**53:
        return None
    if backend == "pandas":
        return nw.Object  # beside a missing cell pandas would round them to floats
    return nw.UInt64 if min(levels) >= 0 and 2**63 <= max(levels) < 2**64 else None


def some_cells(codes: Codes, count: int, generator: np.random.Generator) -> np.ndarray:
    """Return, in the shape of the table, a random choice of so many of its observed cells.

    Examples
    --------
    >>> codes = Codes(Domain.of_sizes([2, 2]), np.array([[0, 1], [1, -1]]))
    >>> some_cells(codes, 3, np.random.default_rng(0)).tolist()
    [[True, True], [True, False]]
    """
    observed = np.flatnonzero(codes.array != MISSING)
    chosen = np.zeros(codes.array.size, bool)
    chosen[generator.choice(observed, count, replace=False)] = True
    return chosen.reshape(codes.array.shape)


def levels_and_codes(table: Any, names: Sequence[str]) -> list[tuple[list[Any], np.ndarray]]:
    """Return, for each of these columns, its distinct levels in order and every row's code.

    Nothing but None, NaN, NaT and NA is missing, in arrays too. Levels of several types that have
    no order between them are ordered by type, then by their text.

    Examples
    --------
    >>> import polars as pl
    >>> levels_and_codes(pl.DataFrame({"user": ["b", "a", None, "b"]}), ["user"])
    [(['a', 'b'], array([ 1,  0, -1,  1], dtype=int32))]
    """
    columns = _columns_of(table, None, None)[1]
    found = []
    for name in names:
        if name not in columns:
            raise JointPMFError(
                f"the table has no column {shown(name)}; its columns are {listing(columns)}"
            )
        column = columns[name]()
        levels = _distinct(column)
        try:
            levels = sorted(levels)
        except TypeError:
            levels = sorted(levels, key=lambda level: (type(level).__name__, str(level)))
        codes = column.codes({level: code for code, level in enumerate(levels)})
        found.append((list(map(_plain_time, levels)), codes))
    return found


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
