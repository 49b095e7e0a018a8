"""Any table ⇄ Codes: column-major small integers, −1 where a cell was not observed.

The only file that knows narwhals. A data frame or an array goes in with the user's own levels;
inside the house there are only codes, and `decode` brings the user's levels back.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from jointpmf.domain import MISSING, Domain, Variable, check_distinct, is_missing
from jointpmf.errors import JointPMFError, listing

Unknown = Literal["error", "missing"]
Bins = Mapping[str, "int | Sequence[float]"]

MAX_NUMERIC_LEVELS = 100
"""A numeric column with more distinct values than this is taken for a continuous one."""


@dataclass(frozen=True)
class Codes:
    """An incomplete table as integers: `array[row, n]` is a level's position, or −1 for missing.

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
        array = np.asarray(self.array)
        if array.ndim != 2 or array.shape[1] != len(self.domain):
            raise JointPMFError(
                f"codes of shape {array.shape} do not fit {len(self.domain)} variables"
            )
        if array.size and (array.min() < MISSING or (array.max(axis=0) >= self.domain.sizes).any()):
            raise JointPMFError("a code lies outside of its variable's levels")
        dtype = code_dtype(max(self.domain.sizes, default=1))
        object.__setattr__(self, "array", np.asfortranarray(array, dtype=dtype))

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
    table : pandas, Polars or PyArrow table, or array of shape (rows, variables)
        Every spelling of a missing value becomes MISSING; in arrays of numbers −1 does too.
    domain : Domain, optional
        What can happen. Without one it is learned from the table: levels in their type's own
        order where it has one, sorted otherwise. A column that the domain has and the table
        has not is missing in every row; columns that the domain does not have are left out.
    bins : mapping of name to int or edges, optional
        How to cut continuous columns: into that many parts of about equal count, or at edges.
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
        raise JointPMFError(f"unknown must be 'error' or 'missing', not {unknown!r}")
    if isinstance(table, Codes):
        return _recode(table, domain)
    names, column_of = _columns(table, domain)
    n_rows = len(column_of[names[0]]) if names else 0
    if domain is None:
        if n_rows == 0 or not names:
            raise JointPMFError("the table is empty: there is nothing to learn the levels from")
        _check_bins(bins, names)
        domain = Domain(
            tuple(
                _learn_variable(column_of[name], (bins or {}).get(name), max_levels)
                for name in names
            )
        )
    elif bins is not None:
        raise JointPMFError("bins belong to the learning of a domain; the given domain has its own")
    array = np.full((n_rows, len(domain)), MISSING, code_dtype(max(domain.sizes, default=1)), "F")
    for n, variable in enumerate(domain):
        if variable.name in column_of:
            array[:, n] = _encode_column(column_of[variable.name], variable, unknown)
    return Codes(domain, array)


def _recode(codes: Codes, domain: Domain | None) -> Codes:
    if domain is None or domain == codes.domain:
        return codes
    if (
        set(domain.names) <= set(codes.domain.names)
        and codes.domain.project(domain.names) == domain
    ):
        return Codes(domain, codes.array[:, codes.domain.indices(domain.names)])
    raise JointPMFError("the codes were made for another domain; encode the table itself again")


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
            f"backend must be 'polars', 'pandas', 'pyarrow' or 'codes', not {backend!r}"
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
    position = column.astype(np.int64)
    if (column == MISSING).any():
        levels.append(None)
        position[column == MISSING] = variable.size
    series = nw.new_series(variable.name, levels, backend=backend)[position]
    return nw.maybe_reset_index(series)


# --- from any kind of table to named columns -----------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """One column of a table, from a data frame or from an array: one of the two is there."""

    name: str
    series: nw.Series[Any] | None
    array: np.ndarray | None

    def __len__(self) -> int:
        return len(self.series) if self.series is not None else len(self.array)  # type: ignore[arg-type]

    @property
    def holds_numbers(self) -> bool:
        if self.series is not None:
            return self.series.dtype.is_numeric()
        return self.array.dtype.kind in "iuf"  # type: ignore[union-attr]

    @cached_property
    def missing(self) -> np.ndarray:
        """Where the column is missing, in every spelling of it."""
        if self.array is not None:
            return _missing_in_array(self.array)
        missing = self.series.is_null().to_numpy()  # type: ignore[union-attr]
        if self.series.dtype.is_float():  # type: ignore[union-attr]
            # a NaN is null in pandas only
            missing = missing | self.series.is_nan().fill_null(True).to_numpy()  # type: ignore[union-attr]
        return missing

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the cells of these rows as an array of numbers."""
        if self.array is not None:
            return self.array[rows]
        return self.series.filter(rows.tolist()).to_numpy()  # type: ignore[union-attr]

    def first_row(self, level: Any) -> int:
        """Return the first row that holds a level."""
        cells = self.array.tolist() if self.array is not None else self.series.to_list()  # type: ignore[union-attr]
        return next(row for row in np.flatnonzero(~self.missing).tolist() if cells[row] == level)


def _columns(table: Any, domain: Domain | None) -> tuple[list[str], dict[str, _Column]]:
    if isinstance(table, (np.ndarray, list, tuple)):
        return _array_columns(table, domain)
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
            raise JointPMFError(f"column names must be strings, not {name!r}")
    if domain is not None and names and not any(name in domain for name in names):
        raise JointPMFError(
            f"the table has none of the variables {listing(domain.names)}; "
            f"its columns are {listing(names)}"
        )
    return names, {name: _Column(name, _series_of(frame[name]), None) for name in names}


def _native_names(table: Any) -> list[Any]:
    """Return the column names of a table that may have one twice, as pandas and PyArrow allow."""
    lazy = hasattr(table, "collect")
    return [] if lazy else list(getattr(table, "column_names", getattr(table, "columns", [])))


def _series_of(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return a column of numbers in Python objects, as pandas may have it, as numbers."""
    if series.dtype != nw.Object or not all(map(_is_number, series.drop_nulls().to_list())):
        return series
    return series.cast(nw.Float64)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, Real) and not isinstance(cell, (bool, np.bool_))


def _without_objects(array: np.ndarray) -> np.ndarray:
    """Return an array of numbers and missing cells in Python objects as numbers."""
    if array.dtype != object:
        return array
    missing = _missing_in_array(array)
    if missing.all() or not all(map(_is_number, array[~missing])):
        return array
    numbers = np.array(array[~missing].tolist())
    as_whole = numbers.dtype.kind == "i" and numbers.min() >= MISSING
    filled = np.full(len(array), MISSING if as_whole else np.nan)
    filled[~missing] = numbers
    return filled.astype(np.int64) if as_whole else filled


def _array_columns(table: Any, domain: Domain | None) -> tuple[list[str], dict[str, _Column]]:
    try:
        array = np.asfortranarray(table)  # every pass below is over one column
    except ValueError:
        raise JointPMFError("the rows of the table do not all have the same length") from None
    if array.ndim != 2:
        raise JointPMFError(f"an array of rows must have two dimensions, not {array.ndim}")
    if array.dtype.kind in "mM" and np.datetime_data(array.dtype)[0] in ("ns", "ps", "fs", "as"):
        array = array.astype(f"{array.dtype.kind}8[us]")  # what Python's own times can hold
    names = list(domain.names) if domain is not None else [f"x{n}" for n in range(array.shape[1])]
    if len(names) != array.shape[1]:
        raise JointPMFError(f"the array has {array.shape[1]} columns for {len(names)} variables")
    columns = (_without_objects(array[:, n]) for n in range(len(names)))
    return names, {
        name: _Column(name, None, column) for name, column in zip(names, columns, strict=True)
    }


# --- one column ----------------------------------------------------------------------------------


def _encode_column(column: _Column, variable: Variable, unknown: Unknown) -> np.ndarray:
    _check_minus_one(column, variable)
    if variable.edges is not None and column.holds_numbers:
        return _encode_numbers_in_bins(column, variable, unknown)
    code_of: dict[Hashable, int] = {}
    for level in _distinct(column):
        try:
            code_of[level] = variable.code(level)
        except JointPMFError:
            if unknown == "error":
                row = column.first_row(level)
                raise JointPMFError(
                    f"column {variable.name!r} holds {level!r} in row {row}, "
                    f"which is not one of its levels {listing(variable.levels)}"
                ) from None
            code_of[level] = MISSING
    return _map_column(column, code_of)


def _encode_numbers_in_bins(column: _Column, variable: Variable, unknown: Unknown) -> np.ndarray:
    observed = ~column.missing
    cells, edges = column.numbers(observed).astype(float), np.array(variable.edges)
    if unknown == "error":
        _check_inside(column, observed, cells, edges)
    inside = (cells >= edges[0]) & (cells <= edges[-1])
    codes = np.full(len(column), MISSING, np.int32)
    codes[observed] = np.where(inside, _bin_positions(cells, edges), MISSING)
    return codes


def _bin_positions(cells: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.clip(np.searchsorted(edges, cells, side="right") - 1, 0, len(edges) - 2)


def _distinct(column: _Column) -> list[Any]:
    """Return the distinct observed levels of a column."""
    try:
        return _distinct_cells(column)
    except TypeError:
        raise JointPMFError(
            f"column {column.name!r} holds cells that cannot be levels, such as lists"
        ) from None


def _distinct_cells(column: _Column) -> list[Any]:
    observed = ~column.missing
    if column.series is not None and not column.holds_numbers:
        return column.series.drop_nulls().unique().to_list()
    cells = column.numbers(observed)
    if cells.dtype == object:
        return list(dict.fromkeys(cells.tolist()))
    if cells.dtype.kind in "iu" and len(cells) and int(cells.max()) - int(cells.min()) < len(cells):
        low = int(cells.min())  # few different integers: count them rather than sort
        return (np.flatnonzero(np.bincount(cells.astype(np.int64) - low)) + low).tolist()
    return np.unique(cells).tolist()


def _missing_in_array(array: np.ndarray) -> np.ndarray:
    kind = array.dtype.kind
    if kind == "f":
        return np.isnan(array) | (array == MISSING)
    if kind == "i":
        return array == MISSING
    if kind in "mM":
        return np.isnat(array)
    if kind == "O":
        return np.fromiter(map(is_missing, array), bool, len(array))
    return np.zeros(len(array), bool)


def _check_minus_one(column: _Column, variable: Variable | None) -> None:
    """Raise where −1 in an array of numbers could mean missing or itself."""
    array = column.array
    if array is None or array.dtype.kind not in "if" or not (array == MISSING).any():
        return
    others_below = ((array < 0) & (array != MISSING)).any()
    if others_below or (variable is not None and MISSING in variable):
        raise JointPMFError(
            f"column {column.name!r} holds -1, which means missing in an array, but it has "
            "negative levels too; pass a data frame, where -1 is a level"
        )


def _map_column(column: _Column, code_of: dict[Hashable, int]) -> np.ndarray:
    """Return the codes of a column, given the code of every level that it holds."""
    codes = np.full(len(column), MISSING, np.int32)
    observed = ~column.missing
    if not code_of:
        return codes
    if column.series is not None and not column.holds_numbers:
        mapped = column.series.replace_strict(
            list(code_of), list(code_of.values()), default=None, return_dtype=nw.Int32
        )
        return mapped.fill_null(MISSING).to_numpy().astype(np.int32)
    cells = column.numbers(observed)
    if cells.dtype == object:
        codes[observed] = [code_of[level] for level in cells]
        return codes
    keys = sorted(code_of)  # type: ignore[type-var]
    code_in_order = np.array([code_of[key] for key in keys], np.int32)
    codes[observed] = code_in_order[np.searchsorted(np.array(keys), cells)]
    return codes


# --- learning a variable from a column -----------------------------------------------------------


def _learn_variable(
    column: _Column, bins: int | Sequence[float] | None, max_levels: int
) -> Variable:
    _check_minus_one(column, None)
    levels = _distinct(column)
    if not levels:
        raise JointPMFError(f"column {column.name!r} has no observed cell")
    if bins is not None:
        return _binned_variable(column, bins)
    own = _own_order(column)
    if own is not None:
        return Variable(column.name, tuple(own))
    try:
        levels = sorted(levels)
    except TypeError:
        kinds = sorted({type(level).__name__ for level in levels})
        raise JointPMFError(
            f"column {column.name!r} mixes cells of types {', '.join(kinds)}, which have no order"
        ) from None
    if all(map(_is_number, levels)) and len(levels) > max_levels:
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


def _own_order(column: _Column) -> list[Any] | None:
    """Return the levels that the column's type lists itself, in its order, if it does."""
    if column.series is None:
        return None
    series = column.series
    native = series.to_native()
    pandas_categories = series.implementation.is_pandas_like() and series.dtype == nw.Categorical
    if series.dtype == nw.Enum or pandas_categories:
        return list(map(_plain_time, native.dtype.categories))
    is_dictionary = series.implementation.is_pyarrow() and series.dtype == nw.Categorical
    if is_dictionary and native.type.ordered:
        return native.unify_dictionaries().chunk(0).dictionary.to_pylist()
    return None


def _binned_variable(column: _Column, bins: int | Sequence[float]) -> Variable:
    name, observed = column.name, ~column.missing
    if not column.holds_numbers:
        raise JointPMFError(f"column {name!r} cannot be binned: it does not hold numbers")
    cells = column.numbers(observed).astype(float)
    if isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
        if bins < 1:
            raise JointPMFError(f"column {name!r} needs at least one bin, not {bins}")
        inner = np.unique(np.quantile(cells, np.arange(1, bins) / bins))
        inner = inner[inner > cells.min()]  # ties at the minimum would leave the first bin empty
        edges = np.concatenate([[-np.inf], inner, [np.inf]])
    else:
        edges = np.asarray(bins, float)
        if (
            edges.ndim != 1
            or len(edges) < 2
            or np.isnan(edges).any()
            or (np.diff(edges) <= 0).any()
        ):
            raise JointPMFError(f"the edges of column {name!r} must increase, not {bins!r}")
        _check_inside(column, observed, cells, edges)
    position = _bin_positions(cells, edges)
    values = tuple(
        _bin_value(cells[position == b], edges[b : b + 2]) for b in range(len(edges) - 1)
    )
    return Variable(name, _bin_labels(edges), values, tuple(edges))


def _check_inside(
    column: _Column, observed: np.ndarray, cells: np.ndarray, edges: np.ndarray
) -> None:
    outside = (cells < edges[0]) | (cells > edges[-1])
    if outside.any():
        row = int(np.flatnonzero(observed)[outside.argmax()])
        raise JointPMFError(
            f"column {column.name!r} holds {cells[outside.argmax()]:g} in row {row}, outside of "
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


def _check_bins(bins: Bins | None, names: Sequence[str]) -> None:
    for name in bins or {}:
        if name not in names:
            raise JointPMFError(
                f"bins name {name!r}, which is no column; columns are {listing(names)}"
            )
