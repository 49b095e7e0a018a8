"""`Codes`: an incomplete table as small integers, −1 where a cell was not observed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jointpmf.domain import MISSING, Domain, Variable, checked_domain, some_names
from jointpmf.errors import (
    JointPMFError,
    check_size,
    float_array,
    items_of,
    rectangle,
    text_of_count,
    whole_number,
)

_LOWEST = 1e-300
"""If all weights are below it, products with them come near the smallest numbers that there are."""


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
    >>> codes = Codes(Domain.of_sizes([2, 3]), np.array([[0, 2], [1, -1]]))
    >>> codes.array.tolist(), codes.n_rows
    ([[0, 2], [1, -1]], 2)
    """

    domain: Domain
    array: np.ndarray

    def __post_init__(self) -> None:
        checked_domain(self.domain)
        array = rectangle(self.array, "codes")
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

    @classmethod
    def of_columns(cls, domain: Domain, n_rows: int, columns: Iterable[Any]) -> Codes:
        """Return columns of codes side by side, each an array, or one code for all rows."""
        checked_domain(domain)
        n_rows, coded = (
            whole_number(n_rows, "n_rows", 0),
            items_of(columns, "give a list of columns"),
        )
        if len(coded) != len(domain):
            raise JointPMFError(f"there are {len(coded)} columns for {len(domain)} variables")
        check_size(n_rows * len(domain), f"codes of {text_of_count(n_rows)} rows")
        array = np.empty((n_rows, len(domain)), code_dtype(max(domain.sizes, default=1)), "F")
        for n, codes in enumerate(coded):
            array[:, n] = _column_of(codes, n_rows, domain.variables[n])
        return cls(domain, array)

    def _refuse(self, array: np.ndarray, where: np.ndarray, why: str) -> None:
        if where.any():
            row, n = np.argwhere(where)[0].tolist()
            raise JointPMFError(
                f"the code {array[row, n]} of column {self.domain.names[n]!r} in row {row} {why}"
            )

    def __repr__(self) -> str:
        """Say how many rows there are of which variables."""
        names = some_names(self.domain.names)
        return f"Codes({names}; {len(self.domain)} variables, {self.n_rows} rows)"

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.array.shape[0]

    @cached_property
    def columns(self) -> np.ndarray:
        """The same codes as a C-ordered array of shape (variables, rows): one pass per column."""
        return self.array.T


def _column_of(codes: Any, n_rows: int, variable: Variable) -> np.ndarray:
    """Return the codes of a variable as an array of its rows, or one for all of them."""
    column = rectangle(codes, f"codes of {variable.name!r}")
    if column.dtype.kind not in "iu" or column.shape not in ((), (n_rows,)):
        raise JointPMFError(
            f"the codes of {variable.name!r} must be whole numbers, one for each of {n_rows} rows"
        )
    if column.min(initial=0) < MISSING or column.max(initial=0) >= variable.size:
        raise JointPMFError(f"a code of column {variable.name!r} lies outside of its levels")
    return column


def code_dtype(size: int) -> type[np.signedinteger]:
    """Return the smallest integer type that holds the codes of a variable of this size."""
    return np.int8 if size <= 127 else np.int16 if size <= 32767 else np.int32


def some_cells(codes: Codes, count: int, generator: np.random.Generator) -> np.ndarray:
    """Return a random choice of `count` observed cells, as booleans in the shape of the table.

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


def checked_weights(
    sample_weight: Any, n_rows: int, what: str = "sample weight of row", most: float = 1e50
) -> np.ndarray | None:
    """Return the weights of rows, or of what else `what` says, as an array; None if all are one.

    No weight may be larger than `most`: products with it would overflow. Not all may be so small
    that products with them have few digits.
    """
    if sample_weight is None:
        return None
    kind, _, of = what.partition(" of ")
    weights = np.ascontiguousarray(float_array(sample_weight, f"the {kind}s are not numbers"))
    if weights.shape != (n_rows,):
        raise JointPMFError(f"there are {weights.size} {kind}s for {n_rows} {of}s")
    if not np.isfinite(weights).all() or (weights < 0).any():
        bad = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
        raise JointPMFError(f"the {what} {bad} is {weights[bad]}; it must be at least 0")
    largest = weights.max(initial=0.0)
    if largest > most:
        raise JointPMFError(f"the {kind}s go beyond {most:.0e}; divide them by their mean")
    if 0 < largest < _LOWEST:
        raise JointPMFError(f"the {kind}s are all below {_LOWEST:.0e}; divide them by their mean")
    return weights
