"""Any table ⇄ Codes: column-major small integers, −1 where a cell was not observed.

The only file that knows narwhals. A data frame or an array goes in with the user's own levels;
inside the house there are only codes, and `decode` brings the user's levels back.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from jointpmf.domain import MISSING, Domain, Variable, check_distinct, is_missing
from jointpmf.errors import JointPMFError, listing, shown, whole_number

Unknown = Literal["error", "missing"]
Bins = Mapping[str, "int | Sequence[float]"]

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
        _check_is_domain(self.domain)
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
) -> Codes:
    """Return a table's codes, and with them its domain.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array or list of rows, or Codes
        Every spelling of a missing value becomes MISSING; in arrays of numbers −1 does too.
    domain : Domain, optional
        What can happen. Without one it is learned from the table: levels in their type's own
        order where it has one, sorted otherwise. A column that the domain has and the table
        has not is missing in every row; columns that the domain does not have are left out.
    bins : mapping of name to int or edges, optional
        How to cut continuous columns: into that many parts of about equal count (fewer where
        many cells are equal), or at edges.
    unknown : {"error", "missing"}
        What to do with a level that the given domain does not have.
    max_levels : int
        A numeric column with more distinct values must be binned.

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
        _check_is_domain(domain)
    if bins is not None and (domain is not None or isinstance(table, Codes)):
        raise JointPMFError("bins belong to the learning of a domain, which is given already")
    if isinstance(table, Codes):
        return table if domain is None else _recode(table, domain)
    named = _named_columns(table, domain)
    if domain is None:
        return _learn(named, {} if bins is None else bins, max_levels)
    coded = {
        variable.name: _encode_column(named.column(variable.name), variable, unknown)
        for variable in domain
        if variable.name in named.names
    }
    return _gather(domain, named.n_rows, coded)


def _learn(named: _NamedColumns, bins: Bins, max_levels: int) -> Codes:
    if not named.names or not named.n_rows:
        raise JointPMFError("the table is empty: there is nothing to learn the levels from")
    _check_bins(bins, named.names)
    max_levels = whole_number(max_levels, "max_levels", 0)
    variables, coded = [], {}
    for name in named.names:
        column = named.column(name)
        variables.append(_learn_variable(column, bins.get(name), max_levels))
        coded[name] = _encode_column(column, variables[-1], "error")
    return _gather(Domain(variables), named.n_rows, coded)


def _gather(domain: Domain, n_rows: int, coded: Mapping[str, np.ndarray]) -> Codes:
    """Return columns of codes side by side, and MISSING for the variables that have none."""
    array = np.full((n_rows, len(domain)), MISSING, code_dtype(max(domain.sizes, default=1)), "F")
    for name, codes in coded.items():
        array[:, domain.index(name)] = codes
    return Codes(domain, array)


def _recode(codes: Codes, domain: Domain) -> Codes:
    _check_shares(codes.domain.names, domain)
    shared = [variable for variable in domain if variable.name in codes.domain]
    for variable in shared:
        if variable != codes.domain[variable.name]:
            raise JointPMFError(
                f"the codes were made for another domain, with other levels of variable "
                f"{variable.name!r}; encode the table itself again"
            )
    coded = {one.name: codes.array[:, codes.domain.index(one.name)] for one in shared}
    return _gather(domain, codes.n_rows, coded)


def _check_is_domain(domain: object) -> None:
    if not isinstance(domain, Domain):
        raise JointPMFError(f"a domain must be a Domain, not {shown(domain)}")


def _check_shares(names: Sequence[str], domain: Domain) -> None:
    if names and len(domain) and not any(name in domain for name in names):
        raise JointPMFError(
            f"the table has none of the variables {listing(domain.names)}; "
            f"its columns are {listing(names)}"
        )


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


@dataclass(frozen=True)
class _NamedColumns:
    """A table of any kind: its columns' names, its number of rows, and its columns one by one."""

    names: Sequence[str]
    n_rows: int
    column: Callable[[str], _Column]


def _named_columns(table: Any, domain: Domain | None) -> _NamedColumns:
    if isinstance(table, (np.ndarray, list, tuple)):
        return _columns_of_array(table, domain)
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
    names = list(frame.columns)
    for name in names:
        if not isinstance(name, str):
            raise JointPMFError(f"column names must be strings, not {shown(name)}")
    if domain is not None:
        _check_shares(names, domain)
    return _NamedColumns(names, len(frame), lambda name: _column_of_series(name, frame[name]))


def _native_names(table: Any) -> list[Any]:
    """Return the column names of a table that may have one twice, as pandas and PyArrow allow."""
    lazy = hasattr(table, "collect")
    return [] if lazy else list(getattr(table, "column_names", getattr(table, "columns", [])))


def _columns_of_array(table: Any, domain: Domain | None) -> _NamedColumns:
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
    masked = np.ma.getmaskarray(table) if isinstance(table, np.ma.MaskedArray) else None

    def column(name: str) -> _ArrayColumn:
        n = names.index(name)
        hidden = np.zeros(len(array), bool) if masked is None else masked[:, n]
        return _column_of_cells(name, array[:, n], hidden, domain)

    return _NamedColumns(names, len(array), column)


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

    def own_order(self) -> list[Any] | None:
        """Return the levels that the column's type lists itself: none does."""
        return None

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
        if series.dtype == nw.Enum or of_pandas:
            return list(map(_plain_time, native.dtype.categories))
        of_pyarrow = series.implementation.is_pyarrow() and series.dtype == nw.Categorical
        if of_pyarrow and native.type.ordered:
            return native.unify_dictionaries().chunk(0).dictionary.to_pylist()
        return None

    def distinct(self) -> list[Any]:
        """Return the levels that the column holds."""
        return self.series.drop_nulls().unique().to_list()

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


def _column_of_series(name: str, series: nw.Series[Any]) -> _Column:
    if series.dtype.is_nested():
        raise _no_levels(name)
    if series.dtype == nw.Object or series.dtype in (nw.Int128, nw.UInt128):
        cells = _object_array(series.to_list())
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
    name: str, cells: np.ndarray, masked: np.ndarray, domain: Domain | None
) -> _ArrayColumn:
    missing = masked | _missing_in_array(cells)
    observed = _narrowed(cells[~missing] if missing.any() else cells)
    if _are_numbers(observed) and (minus_one := observed == MISSING).any():
        observed = observed[~minus_one]
        if (observed < 0).any() or (domain is not None and MISSING in domain[name]):
            raise JointPMFError(
                f"column {name!r} holds -1, which means missing in an array, but it has "
                "negative levels too; pass a data frame, where -1 is a level"
            )
        missing[~missing] = minus_one
    return _ArrayColumn(name, observed, missing)


def _object_array(cells: Sequence[Any]) -> np.ndarray:
    """Return cells as they are: numpy would look into those that are lists."""
    array = np.empty(len(cells), object)
    array[:] = cells
    return array


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


def _encode_column(column: _Column, variable: Variable, unknown: Unknown) -> np.ndarray:
    if variable.edges is not None and (numbers := column.numbers) is not None:
        edges = np.array(variable.edges)
        if unknown == "error":
            _check_inside(column, numbers, edges)
        inside = (numbers >= edges[0]) & (numbers <= edges[-1])
        codes = np.where(inside, _bin_positions(numbers, edges), MISSING)
        return _spread(codes.astype(np.int32), column.missing)
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


def _bin_positions(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)


def _distinct(column: _Column) -> list[Any]:
    try:
        return column.distinct()
    except TypeError:
        raise _no_levels(column.name) from None


def _no_levels(name: str) -> JointPMFError:
    return JointPMFError(f"column {name!r} holds cells that cannot be levels, such as lists")


def _learn_variable(
    column: _Column, bins: int | Sequence[float] | None, max_levels: int
) -> Variable:
    levels = _distinct(column)
    if not levels:
        raise JointPMFError(f"column {column.name!r} has no observed cell")
    if bins is not None:
        return _binned_variable(column, bins)
    own = column.own_order()
    if own is not None:
        return Variable(column.name, own)
    try:
        levels = sorted(levels)
    except TypeError:
        kinds = sorted({type(level).__name__ for level in levels})
        raise JointPMFError(
            f"column {column.name!r} mixes cells of types {', '.join(kinds)}, which have no order"
        ) from None
    if len(levels) > max_levels and column.numbers is not None:
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


def _binned_variable(column: _Column, bins: int | Sequence[float]) -> Variable:
    numbers = column.numbers
    if numbers is None:
        raise JointPMFError(f"column {column.name!r} cannot be binned: it does not hold numbers")
    if not np.isfinite(numbers).all():
        raise JointPMFError(f"column {column.name!r} cannot be binned: it holds infinite numbers")
    if isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
        if bins < 1:
            raise JointPMFError(f"column {column.name!r} needs at least one bin, not {bins}")
        edges = _edges_by_count(numbers, int(bins))
    else:
        edges = _given_edges(column.name, bins)
        _check_inside(column, numbers, edges)
    position = _bin_positions(numbers, edges)
    values = tuple(
        _bin_value(numbers[position == b], edges[b : b + 2]) for b in range(len(edges) - 1)
    )
    return Variable(column.name, _bin_labels(edges), values, tuple(edges))


def _edges_by_count(numbers: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the edges of bins of about equal count, none of them empty."""
    numbers = np.sort(numbers)
    cuts = np.quantile(numbers, np.arange(1, n_bins) / n_bins)
    above_minimum = numbers[numbers > numbers[0]]
    if not len(above_minimum):
        return np.array([-np.inf, np.inf])
    cuts = np.where(cuts > numbers[0], cuts, above_minimum[0])
    _, cut_of_bin = np.unique(np.searchsorted(numbers, cuts), return_index=True)
    return np.concatenate([[-np.inf], cuts[cut_of_bin], [np.inf]])


def _given_edges(name: str, bins: Any) -> np.ndarray:
    try:
        edges = np.asarray(bins, float)
    except (TypeError, ValueError):
        edges = np.array(np.nan)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise JointPMFError(
            f"the edges of column {name!r} must increase and be numbers, not {shown(bins)}"
        )
    return edges


def _check_inside(column: _Column, numbers: np.ndarray, edges: np.ndarray) -> None:
    outside = (numbers < edges[0]) | (numbers > edges[-1])
    if outside.any():
        row = int(np.flatnonzero(~column.missing)[outside.argmax()])
        raise JointPMFError(
            f"column {column.name!r} holds {numbers[outside.argmax()]:g} in row {row}, outside of "
            f"its bins from {edges[0]:g} to {edges[-1]:g}"
        )


def _bin_value(cells: np.ndarray, edges: np.ndarray) -> float:
    """Return the mean of what fell in a bin; of an empty one, its middle or its finite end."""
    if len(cells):
        return float(cells.mean())
    finite = edges[np.isfinite(edges)]
    return float(finite.mean()) if len(finite) else 0.0


def _bin_labels(edges: np.ndarray) -> tuple[str, ...]:
    digits = next((d for d in range(3, 17) if len({f"{e:.{d}g}" for e in edges}) == len(edges)), 17)
    text = [f"{edge:.{digits}g}" for edge in edges]
    labels = [f"{low}..{high}" for low, high in pairwise(text)]
    if np.isinf(edges[0]):
        labels[0] = f"<{text[1]}"
    if np.isinf(edges[-1]):
        labels[-1] = f">={text[-2]}"
    return ("all",) if np.isinf(edges).all() else tuple(labels)


def _check_bins(bins: Bins, names: Sequence[str]) -> None:
    if not isinstance(bins, Mapping):
        raise JointPMFError(
            f"bins must map a column's name to a number of bins or to edges, not {shown(bins)}"
        )
    for name in bins:
        if name not in names:
            raise JointPMFError(
                f"bins name {shown(name)}, which is no column; columns are {listing(names)}"
            )
