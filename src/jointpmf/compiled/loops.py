"""The loops that exist twice: in vector registers (`vectors`) and in plain numba (`plain`).

`lanes` is a tuple whose length is the number of columns that a call works on, from column `first`
on. Its type chooses the form: whole numbers mean vector registers, booleans mean plain. Arrays are
C-contiguous, `cells` and what is `listed` are unsigned, and no array is written that is also read.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

_INDEX = types.intp


def _loop(name: str, result: Any, *arguments: Any) -> Any:
    """Return a loop's signature, and what generates its code in the form that its lanes ask for."""
    from jointpmf.compiled import plain, vectors

    signature = result(*arguments)
    if any(isinstance(k, types.UniTuple) and k.dtype == types.boolean for k in arguments):
        twin = getattr(plain, name)
        return signature, lambda context, builder, kinds, values: context.compile_internal(
            builder, twin, kinds, values
        )
    return signature, getattr(vectors, name)


@intrinsic
def fetch_row(_, rows, row, lanes):
    """Bring rows[row], which has those columns alone, near the processor; nothing changes."""
    return _loop("fetch_row", types.void, rows, _INDEX, lanes)


@intrinsic
def multiply_row(_, out, row, factors, prior, first, cells, begin, end, lanes):
    """Set out[row] to factors[prior] · Π over cells begin:end of factors[cell]; return its sum."""
    return _loop(
        "multiply_row", types.float64,
        out, _INDEX, factors, _INDEX, _INDEX, cells, _INDEX, _INDEX, lanes,
    )  # fmt: skip


@intrinsic
def multiply_long_row(
    _, out, exponents, row, factors, prior, first, cells, begin, end, step, lanes
):
    """Do as `multiply_row`, but so that out[row] · 2**exponents[row] is the product.

    Powers of two are set aside after every `step` cells; a step's product must not underflow.
    """
    return _loop(
        "multiply_long_row", types.void,
        out, exponents, _INDEX, factors, _INDEX, _INDEX, cells, _INDEX, _INDEX, _INDEX, lanes,
    )  # fmt: skip


@intrinsic
def add_row(_, out, prior, rows, row, scale, first, cells, begin, end, lanes):
    """Add scale · rows[row] to out[prior], unless that is −1, and to out[cell] of begin:end."""
    return _loop(
        "add_row", types.void,
        out, _INDEX, rows, _INDEX, types.float64, _INDEX, cells, _INDEX, _INDEX, lanes,
    )  # fmt: skip


@intrinsic
def add_rows(_, out, row, rows, listed, begin, end, lanes):
    """Add rows[listed[begin:end]] to out[row], in this order; both have those columns alone."""
    return _loop("add_rows", types.void, out, _INDEX, rows, listed, _INDEX, _INDEX, lanes)


@intrinsic
def add_dots(_, out, row, left, scale, right, lanes):
    """Add scale · left[row] · right[i] to out[row], for each i; both have those columns alone.

    Each inner product stays a vector, whose numbers sum to it: out[row] has one for each i.
    """
    return _loop("add_dots", types.void, out, _INDEX, left, types.float64, right, lanes)


@intrinsic
def add_sparse_row(_, out, row, right, first, columns, values, scale, begin, end, lanes):
    """Add scale · Σ over entries begin:end of values[entry] · right[columns[entry]] to out[row]."""
    return _loop(
        "add_sparse_row", types.void,
        out, _INDEX, right, _INDEX, columns, values, types.float64, _INDEX, _INDEX, lanes,
    )  # fmt: skip
