"""One column of any table: its levels, where it is missing, and its codes.

Columns of numbers, and all columns of arrays, are numpy arrays here. The other columns of a data
frame stay with its own library, which narwhals speaks to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from jointpmf.data.array_cells import are_numbers, names_number, narrowed
from jointpmf.data.grid import Grid, grid_of_pandas
from jointpmf.data.own_codes import (
    OwnCodes,
    codes_of_numbers,
    codes_of_pandas,
    codes_of_polars,
    codes_of_pyarrow,
)
from jointpmf.domain import (
    MISSING,
    Domain,
    check_distinct,
    checked_domain,
    holding_times,
    is_missing,
)
from jointpmf.errors import JointPMFError, float_of, listing, rectangle, shown
from jointpmf.threads import n_threads, run_all
from jointpmf.times import (
    TooFineError,
    kind_of_times,
    narrowed_times,
    plain_time,
    seconds_of_array,
)


@dataclass(frozen=True)
class ArrayColumn:
    """A column whose observed cells are an array: of numbers, text, times or Python objects."""

    name: str
    cells: np.ndarray
    missing: np.ndarray
    own_order: None = None
    is_ordered: bool = False

    @property
    def n_observed(self) -> int:
        """How many cells are observed."""
        return len(self.cells)

    @cached_property
    def time(self) -> str | None:
        """Which kind of time the observed cells are, if they are times."""
        cells = self.cells
        if cells.dtype.kind == "M":
            unit, _ = np.datetime_data(cells.dtype)
            return "date" if unit in ("Y", "M", "W", "D") else "datetime"
        if cells.dtype.kind == "m":
            return "duration"
        return kind_of_times(set(map(type, cells))) if cells.dtype == object else None

    @property
    def is_measured(self) -> bool:
        """Whether all observed cells are numbers, or all are times."""
        return are_numbers(self.cells) or self.time is not None

    @property
    def numbers(self) -> np.ndarray | None:
        """The observed cells as floats, if they are numbers; times are in seconds."""
        if self.time is not None:
            return seconds_of_array(self.cells, self.time)
        try:
            return self.cells.astype(float) if are_numbers(self.cells) else None
        except OverflowError:
            raise JointPMFError(f"column {self.name!r} holds a number beyond all floats") from None

    @cached_property
    def _above(self) -> tuple[float, OwnCodes] | None:
        return codes_of_numbers(self.cells)

    @cached_property
    def distinct(self) -> list[Any]:
        """The levels that the column holds."""
        cells = self.cells
        if cells.dtype == object:
            try:
                return list(dict.fromkeys(cells))
            except TypeError:
                raise _no_levels(self.name) from None
        if self._above is not None:  # few different numbers: look for them rather than sort
            low, own = self._above
            return [low + k for k in np.flatnonzero(own.first_rows >= 0).tolist()]
        return self._sorted.tolist()

    @cached_property
    def _sorted(self) -> np.ndarray:
        return np.unique(self.cells)

    def get_ready(self) -> ArrayColumn:
        """Return the column itself, after the passes over its cells that need no other thread."""
        _ = self._above
        return self

    def first_row(self, level: Any) -> int:
        """Return the first row that holds a level."""
        return int(np.flatnonzero(~self.missing)[self.cells.tolist().index(level)])

    def codes(self, code_of: Mapping[Any, int]) -> np.ndarray:
        """Return the codes of all rows, given the code of every level that the column holds."""
        return spread(self._observed_codes(code_of), self.missing)

    def _observed_codes(self, code_of: Mapping[Any, int]) -> np.ndarray:
        cells = self.cells
        if cells.dtype == object or not code_of:
            return np.array([code_of[cell] for cell in cells], np.int32)
        if self._above is not None:
            low, own = self._above
            return own.recoded(code_of.get(low + k, MISSING) for k in range(len(own.first_rows)))
        codes = np.array([code_of[level] for level in self.distinct], np.int32)
        return codes[np.searchsorted(self._sorted, cells)]


@dataclass(frozen=True)
class SeriesColumn:
    """A column of a data frame that does not hold numbers; its own library does the work."""

    name: str
    series: nw.Series[Any]
    missing_code: Any = None

    @cached_property
    def _own(self) -> tuple[OwnCodes, list[Any]]:
        """The library's own codes, and the level of each, or None if no cell holds it."""
        try:
            own = _own_codes(self.series)
        except TypeError:
            raise _no_levels(self.name) from None
        levels: list[Any] = [None] * len(own.first_rows)
        held = np.flatnonzero(own.first_rows >= 0)
        cells = self.series[own.first_rows[held].tolist()].to_list()
        for code, cell in zip(held.tolist(), self._plain(cells), strict=True):
            is_level = not (is_missing(cell) or self._is_code(cell))
            levels[code] = cell if is_level else None
        return own, levels

    @cached_property
    def missing(self) -> np.ndarray:
        """Where the column is missing."""
        if self.time is not None:  # a time means missing nowhere
            return self.series.is_null().to_numpy().astype(bool)
        own, levels = self._own
        if len(self.distinct) == np.count_nonzero(own.first_rows >= 0):
            return own.codes == MISSING
        return own.recoded(MISSING if level is None else 0 for level in levels) == MISSING

    @property
    def n_observed(self) -> int:
        """How many cells are observed."""
        return len(self.series) - int(np.count_nonzero(self.missing))

    @property
    def time(self) -> str | None:
        """Which kind of time the cells are, if they are times."""
        return next((kind for dtype, kind in _TIMES.items() if self.series.dtype == dtype), None)

    @property
    def is_measured(self) -> bool:
        """Whether the cells are times; numbers have columns of another kind."""
        return self.time is not None

    @property
    def numbers(self) -> np.ndarray | None:
        """The observed times, if that is what they are, in seconds."""
        if self.time is None:
            return None
        cells = self.series.drop_nulls().to_numpy()
        if cells.dtype.kind not in "mM":
            cells = np.empty(self.n_observed, object)
            cells[:] = self.series.drop_nulls().to_list()
        return seconds_of_array(cells, self.time)

    @property
    def own_order(self) -> list[Any] | None:
        """The levels that the column's type lists itself, in its order, if it does."""
        series, native = self.series, self.series.to_native()
        of_pandas = series.implementation.is_pandas_like() and series.dtype == nw.Categorical
        levels = None
        if series.dtype == nw.Enum or (of_pandas and hasattr(native.dtype, "categories")):
            levels = self._plain(native.dtype.categories)
        of_pyarrow = series.implementation.is_pyarrow() and series.dtype == nw.Categorical
        if of_pyarrow and native.type.ordered:
            levels = native.unify_dictionaries().chunk(0).dictionary.to_pylist()
        return None if levels is None else [one for one in levels if not self._is_code(one)]

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the levels that the type lists is meant; pandas also just lists."""
        dtype = getattr(self.series.to_native(), "dtype", None)
        return self.own_order is not None and bool(getattr(dtype, "ordered", True))

    @cached_property
    def distinct(self) -> list[Any]:
        """The levels that the column holds, in the order of their first rows."""
        own, levels = self._own
        held = [code for code, level in enumerate(levels) if level is not None]
        return [levels[code] for code in sorted(held, key=own.first_rows.__getitem__)]

    def _plain(self, cells: Iterable[Any]) -> list[Any]:
        with holding_times(f"column {self.name!r}"):
            return list(map(plain_time, cells))

    def _is_code(self, level: Any) -> bool:
        code = self.missing_code
        return code is not None and (_is_same(level, code) or names_number(level, code))

    def get_ready(self) -> SeriesColumn:
        """Return the column itself, after the passes over its cells that need no other thread."""
        if self.time is None:  # times may be cut, without codes of their own
            _ = self._own
        return self

    def first_row(self, level: Any) -> int:
        """Return the first row that holds a level."""
        cells = self.series.to_list()
        return next(row for row in np.flatnonzero(~self.missing).tolist() if cells[row] == level)

    def codes(self, code_of: Mapping[Any, int]) -> np.ndarray:
        """Return the codes of all rows, given the code of every level that the column holds."""
        own, levels = self._own
        return own.recoded(code_of.get(level, MISSING) for level in levels)


def _own_codes(series: nw.Series[Any]) -> OwnCodes:
    if series.implementation.is_pyarrow():
        return codes_of_pyarrow(series.to_native())
    if not series.implementation.is_polars():
        return codes_of_pandas(series.to_native())
    return codes_of_polars(series.to_native(), series.dtype in (nw.Categorical, nw.Enum))


_TIMES: dict[Any, str] = {
    nw.Date: "date",
    nw.Datetime: "datetime",
    nw.Time: "time",
    nw.Duration: "duration",
}

Column = ArrayColumn | SeriesColumn
Columns = Mapping[str, Callable[[], Column]]


def columns_of(table: Any, domain: Domain | None, missing_code: Any) -> tuple[int, Columns]:
    """Return a table's number of rows, and for each of its columns a function that reads it.

    What means missing besides None, NaN, NaT and NA is said by `missing_code`. With None nothing
    does, except that −1 in an array is missing where the domain's variable does not have it.

    Examples
    --------
    >>> n_rows, columns = columns_of([["yes", 1], [None, 2]], None, None)
    >>> n_rows, {name: read().distinct for name, read in columns.items()}
    (2, {'x0': ['yes'], 'x1': [1, 2]})
    """
    check_missing_code(missing_code, domain)
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
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    for name in frame.columns:
        if not isinstance(name, str):
            raise JointPMFError(f"column names must be strings, not {shown(name)}")
    if frame.implementation.is_polars():  # which finds the levels of all columns at once
        frame = frame.with_columns(nw.selectors.string().cast(nw.Categorical))
    code = None if is_missing(missing_code) else missing_code
    read = partial(_column_of_series, frame, code)
    return len(frame), {name: partial(read, name) for name in frame.columns}


def columns_ready(columns: Columns) -> Iterator[Column]:
    """Yield columns, read as many at a time as there are threads; errors come in their order."""
    waiting, step = list(columns.values()), n_threads()
    for begin in range(0, len(waiting), step):
        some = waiting[begin : begin + step]
        found: list[Column | None] = [None] * len(some)
        run_all([partial(_get_ready, read, found, k) for k, read in enumerate(some)])
        while some:  # a column is let go before the next one is read
            column, again = found.pop(0), some.pop(0)
            yield again() if column is None else column


def _get_ready(read: Callable[[], Column], found: list[Column | None], k: int) -> None:
    with suppress(JointPMFError):  # it comes again when it is the column's turn
        found[k] = read().get_ready()


def check_missing_code(missing_code: Any, domain: Domain | None) -> None:
    """Raise if something cannot mean missing: what is no number or text, or a level of a domain."""
    if missing_code is None or is_missing(missing_code):
        return
    if not isinstance(missing_code, str) and np.isnan(float_of(missing_code)):
        raise JointPMFError(f"missing_code must be a number or a text, not {shown(missing_code)}")
    for variable in domain or ():
        if any(_is_same(level, missing_code) for level in variable.levels):
            raise JointPMFError(
                f"missing_code is {shown(missing_code)}, which is a level of variable "
                f"{variable.name!r}: it cannot mean missing too"
            )


def _is_same(level: Any, missing_code: Any) -> bool:
    """Tell whether a level is the one that means missing; a boolean is no number."""
    kind: Any = str if isinstance(missing_code, str) else (Real, Decimal)
    return isinstance(level, kind) and not isinstance(level, bool) and level == missing_code


def grid_of(frame: Any, name: str = "the frame") -> Grid:
    """Return a data frame, or a Series of pandas, as the grid that a person sees.

    The index of pandas, where it has a name or is not just a count, holds labels of the rows.

    Examples
    --------
    >>> import polars as pl
    >>> grid_of(pl.DataFrame({"age": ["young", "old"], "count": [3, 1]})).header
    ('age', 'count')
    """
    try:
        found = nw.from_native(frame, allow_series=True)
    except TypeError:
        raise JointPMFError(
            f"a table must be a pandas, Polars or PyArrow frame, not {type(frame).__name__}"
        ) from None
    if isinstance(found, nw.Series):
        if not found.implementation.is_pandas_like():
            raise JointPMFError("a column alone has no labels: give a frame with them")
        found, frame = found.to_frame(), frame.to_frame()
    if found.implementation.is_pandas_like():
        return grid_of_pandas(frame, name)
    eager = found.collect() if isinstance(found, nw.LazyFrame) else found
    return Grid(
        name, tuple(eager.columns), tuple(eager[column].to_list() for column in eager.columns)
    )


def check_shares(names: Collection[str], domain: Domain) -> None:
    """Raise if a table has none of a domain's variables."""
    checked_domain(domain)
    if names and len(domain) and not any(name in domain for name in names):
        raise JointPMFError(
            f"the table has none of the variables {listing(domain.names)}; "
            f"its columns are {listing(names)}"
        )


def spread(codes: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the codes of all rows, given those of the observed ones."""
    if len(codes) == len(missing):
        return codes
    all_codes = np.full(len(missing), MISSING, codes.dtype)
    all_codes[~missing] = codes
    return all_codes


def _no_levels(name: str) -> JointPMFError:
    return JointPMFError(f"column {name!r} holds cells that cannot be levels, such as lists")


def _native_names(table: Any) -> list[Any]:
    """Return the column names of a table that may have one twice, as pandas and PyArrow allow."""
    lazy = hasattr(table, "collect")
    return [] if lazy else list(getattr(table, "column_names", getattr(table, "columns", [])))


def _columns_of_array(table: Any, domain: Domain | None, missing_code: Any) -> tuple[int, Columns]:
    if isinstance(table, np.ndarray):
        array = np.asfortranarray(table)  # every pass below is over one column
    elif len(table):
        array = rectangle(table, "table", object)  # a list may mix types
    else:
        array = np.empty((0, 0 if domain is None else len(domain)), object)
    if array.ndim != 2:
        raise JointPMFError(f"an array of rows must have two dimensions, not {array.ndim}")
    names = [f"x{n}" for n in range(array.shape[1])] if domain is None else list(domain.names)
    if len(names) != array.shape[1]:
        raise JointPMFError(f"the array has {array.shape[1]} columns for {len(names)} variables")
    masked = np.ma.getmaskarray(table) if isinstance(table, np.ma.MaskedArray) else None
    codes = [_code_in_array(missing_code, domain, name) for name in names]
    return len(array), {
        name: partial(
            _column_of_cells, name, array[:, n], codes[n], None if masked is None else masked[:, n]
        )
        for n, name in enumerate(names)
    }


def _code_in_array(missing_code: Any, domain: Domain | None, name: str) -> Any:
    """Return what means missing in a column of an array: −1, if its variable has no such level."""
    if missing_code is not None or domain is None:
        return None if is_missing(missing_code) else missing_code
    try:
        domain[name].code(MISSING)
    except JointPMFError:
        return MISSING
    return None


def _column_of_series(frame: nw.DataFrame[Any], missing_code: Any, name: str) -> Column:
    series = frame[name]
    if series.dtype.is_nested():
        raise _no_levels(name)
    if series.dtype == nw.Object or series.dtype in (nw.Int128, nw.UInt128):
        cells = np.empty(len(series), object)
        cells[:] = series.to_list()  # np.array would look into those that are lists
        return _column_of_cells(name, cells, missing_code)
    if not series.dtype.is_numeric():
        with holding_times(f"column {name!r}"):
            _check_times(series)
        return SeriesColumn(name, series, missing_code)
    of_numpy = isinstance(getattr(series.to_native(), "dtype", None), np.dtype)
    if of_numpy or series.dtype.is_float() or not series.null_count():
        return _column_of_cells(name, series.to_numpy(), missing_code)
    missing = series.is_null().to_numpy().astype(bool)
    return _without_code(name, series.drop_nulls().to_numpy(), missing, missing_code)


def _check_times(series: nw.Series[Any]) -> None:
    """Raise if a column holds times finer than a microsecond."""
    dtype = series.dtype
    if dtype == nw.Time and (series.dt.nanosecond() % 1000 != 0).any():
        raise TooFineError
    if isinstance(dtype, (nw.Datetime, nw.Duration)) and dtype.time_unit == "ns":
        cells = series.to_numpy()
        if cells.dtype.kind in "mM":
            narrowed_times(cells)


def _column_of_cells(
    name: str, cells: np.ndarray, missing_code: Any, masked: np.ndarray | None = None
) -> ArrayColumn:
    missing = _missing_in_array(cells)
    if masked is not None:
        missing |= masked
    observed = cells[~missing] if missing.any() else cells
    return _without_code(name, observed, missing, missing_code)


def _without_code(
    name: str, observed: np.ndarray, missing: np.ndarray, missing_code: Any
) -> ArrayColumn:
    """Return the column of some observed cells, those left out that mean missing."""
    with holding_times(f"column {name!r}"):
        observed = narrowed(observed)
    if missing_code is None:
        return ArrayColumn(name, observed, missing)
    is_code = np.zeros(len(observed), bool)
    if observed.dtype == object:
        is_code[:] = [_is_same(cell, missing_code) for cell in observed]
    elif observed.dtype.kind in ("U" if isinstance(missing_code, str) else "iuf"):
        is_code = observed == missing_code
    if not is_code.any():
        return ArrayColumn(name, observed, missing)
    missing = missing.copy()
    missing[~missing] = is_code
    return ArrayColumn(name, narrowed(observed[~is_code]), missing)


def _missing_in_array(cells: np.ndarray) -> np.ndarray:
    kind = cells.dtype.kind
    if kind == "O" and not set(map(type, cells)) <= {int, str, bool}:
        return np.fromiter(map(is_missing, cells), bool, len(cells))
    if kind == "f":
        return np.isnan(cells)
    return np.isnat(cells) if kind in "mM" else np.zeros(len(cells), bool)
