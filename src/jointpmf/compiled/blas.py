"""Products of matrices inside compiled loops, by the BLAS of scipy.

`np.dot` can be called in them too, but takes long to compile, once more for each layout of its
arguments.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import get_cython_function_address, intrinsic

_INT, _DOUBLE = ir.IntType(32), ir.DoubleType()
_CHAR_AT, _INT_AT, _DOUBLE_AT = (kind.as_pointer() for kind in (ir.IntType(8), _INT, _DOUBLE))

_DGEMM = ir.FunctionType(
    ir.VoidType(),
    [_CHAR_AT] * 2
    + [_INT_AT] * 3
    + [_DOUBLE_AT, _DOUBLE_AT, _INT_AT, _DOUBLE_AT, _INT_AT, _DOUBLE_AT, _DOUBLE_AT, _INT_AT],
)


@cache
def gemm_address() -> int:
    """Return where BLAS's product is: an argument, since loops on disk outlive the process."""
    return get_cython_function_address("scipy.linalg.cython_blas", "dgemm")


@intrinsic
def add_product(_, gemm, scale, shape, left, right, out):
    """Add scale · left · right to `out`.

    `gemm` is `gemm_address()`, and `shape` is (rows, inner, columns). A matrix is the tuple
    (array of doubles, place of its first number, numbers from row to row, whether it is
    transposed); `out` never is, and has no such entry.
    """
    size = types.UniTuple(types.intp, 3)
    kinds = [
        types.Tuple((matrix[0], types.intp, types.intp, types.boolean)[: len(matrix)])
        for matrix in (left, right, out)
    ]
    return types.void(types.intp, types.float64, size, *kinds), _call_gemm


def _call_gemm(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Call BLAS, to which all matrices are transposed: outᵀ += scale · rightᵀ · leftᵀ."""

    def at(number: Any) -> Any:
        return cgutils.alloca_once_value(builder, number)

    def size_at(number: Any) -> Any:
        return at(builder.trunc(number, _INT))

    def flag_at(is_transposed: Any) -> Any:
        yes, no = (ir.Constant(ir.IntType(8), ord(letter)) for letter in "TN")
        return at(builder.select(is_transposed, yes, no))

    gemm, scale, shape, *matrices = args
    rows, inner, columns = cgutils.unpack_tuple(builder, shape)
    flags, places = [], []
    for kind, matrix in zip(signature.args[3:], matrices, strict=True):
        array, begin, width, *is_transposed = cgutils.unpack_tuple(builder, matrix)
        data = context.make_array(kind[0])(context, builder, array).data
        places.append([builder.gep(data, [begin]), size_at(width)])
        flags += [flag_at(flag) for flag in is_transposed]
    left, right, out = places
    sizes = [size_at(number) for number in (columns, rows, inner)]
    one = at(ir.Constant(_DOUBLE, 1.0))
    builder.call(
        builder.inttoptr(gemm, _DGEMM.as_pointer()),
        [*flags[::-1], *sizes, at(scale), *right, *left, one, *out],
    )
    return context.get_dummy_value()
