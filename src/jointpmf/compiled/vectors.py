"""The loops of `loops.py` in vector registers, as the LLVM code that each stands for.

A compiler that cannot rule out that two arrays overlap spends more on checking than on adding.
The loops here say outright what to keep in registers. What each computes is in `plain.py`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from jointpmf.compiled.jit import LANES, LINE

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_INT32 = ir.IntType(32)


def _broadcast(builder: Any, scalar: Any) -> Any:
    empty = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(_INT32, 0))
    zeros = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, empty, zeros)


def _multiply_add(builder: Any, sum_: Any, left: Any, right: Any) -> Any:
    product = builder.fmul(left, right, flags=("contract",))
    return builder.fadd(sum_, product, flags=("contract",))


class _Array:
    """An array argument of an intrinsic, as loads and stores of vectors of its rows."""

    def __init__(self, context: Any, builder: Any, kind: Any, argument: Any) -> None:
        struct = context.make_array(kind)(context, builder, argument)
        self.builder, self.kind, self.data = builder, kind, struct.data
        self.shape = cgutils.unpack_tuple(builder, struct.shape)

    def vectors(self, row: Any, first: Any, lanes: int) -> list[Any]:
        """Return pointers to the vectors of a row, from column `first` on."""
        start = self.builder.add(self.builder.mul(row, self.shape[1]), first)
        base = self.builder.bitcast(self.builder.gep(self.data, [start]), _VECTOR.as_pointer())
        return [self.builder.gep(base, [ir.Constant(_INT32, i)]) for i in range(lanes // LANES)]

    def load(self, pointer: Any) -> Any:
        vector = self.builder.load(pointer)
        vector.align = 8
        return vector

    def store(self, vector: Any, pointer: Any) -> None:
        self.builder.store(vector, pointer).align = 8

    def number(self, index: Any) -> Any:
        """Return an entry as a double."""
        entry = self.builder.load(self.builder.gep(self.data, [index]))
        if isinstance(self.kind.dtype, types.Integer):
            return self.builder.uitofp(entry, ir.DoubleType())
        return entry

    def index(self, index: Any) -> Any:
        """Return an unsigned entry as an index."""
        entry = self.builder.load(self.builder.gep(self.data, [index]))
        return self.builder.zext(entry, index.type)


def _unpacked(context: Any, builder: Any, signature: Any, args: Any) -> list[Any]:
    """Return the arguments of a loop: arrays as `_Array`, tuples as their lengths."""
    unpacked = []
    for kind, argument in zip(signature.args, args, strict=True):
        if isinstance(kind, types.Array):
            unpacked.append(_Array(context, builder, kind, argument))
        else:
            unpacked.append(kind.count if isinstance(kind, types.UniTuple) else argument)
    return unpacked


_BITS = ir.VectorType(ir.IntType(64), LANES)
_FRACTION_BITS, _ONE, _BIAS = (1 << 52) - 1, 1023 << 52, 1023


def _repeated(number: int) -> Any:
    return ir.Constant(_BITS, [number] * LANES)


def _split_exponent(builder: Any, number: Any) -> tuple[Any, Any]:
    """Return a non-negative vector as parts in [1, 2) and powers of two; zero stays zero."""
    bits = builder.bitcast(number, _BITS)
    exponent = builder.lshr(bits, _repeated(52))
    fraction = builder.or_(builder.and_(bits, _repeated(_FRACTION_BITS)), _repeated(_ONE))
    is_zero = builder.icmp_unsigned("==", exponent, _repeated(0))
    zero = ir.Constant(_VECTOR, [0.0] * LANES)
    part = builder.select(is_zero, zero, builder.bitcast(fraction, _VECTOR))
    return part, builder.sub(exponent, _repeated(_BIAS))


def _sum_of_lanes(builder: Any, vectors: list[Any]) -> Any:
    total = vectors[0]
    for vector in vectors[1:]:
        total = builder.fadd(total, vector)
    lanes = [builder.extract_element(total, ir.Constant(_INT32, i)) for i in range(LANES)]
    pairs = [builder.fadd(*lanes[i : i + 2]) for i in (0, 2)]
    return builder.fadd(*pairs)


def fetch_row(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """See `loops.fetch_row`."""
    rows, row, width = _unpacked(context, builder, signature, args)
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _INT32, _INT32, _INT32])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    to_read, nearby, data = (ir.Constant(_INT32, number) for number in (0, 2, 1))
    for pointer in rows.vectors(row, ir.Constant(row.type, 0), width)[:: LINE // LANES]:
        builder.call(prefetch, [builder.bitcast(pointer, byte), to_read, nearby, data])
    return context.get_dummy_value()


def multiply_row(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """See `loops.multiply_row`."""
    out, row, factors, prior, first, cells, begin, end, width = _unpacked(
        context, builder, signature, args
    )
    source = factors.vectors(prior, first, width)
    products = [cgutils.alloca_once_value(builder, factors.load(p)) for p in source]
    with cgutils.for_range_slice(builder, begin, end, ir.Constant(begin.type, 1)) as (cell, _):
        source = factors.vectors(cells.index(cell), first, width)
        for product, pointer in zip(products, source, strict=True):
            builder.store(builder.fmul(builder.load(product), factors.load(pointer)), product)
    values = [builder.load(product) for product in products]
    for value, pointer in zip(values, out.vectors(row, first, width), strict=True):
        out.store(value, pointer)
    return _sum_of_lanes(builder, values)


def multiply_long_row(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """See `loops.multiply_long_row`."""
    out, exponents, row, factors, prior, first, cells, begin, end, step, width = _unpacked(
        context, builder, signature, args
    )
    products, powers = [], []
    for pointer in factors.vectors(prior, first, width):
        part, power = _split_exponent(builder, factors.load(pointer))
        products.append(cgutils.alloca_once_value(builder, part))
        powers.append(cgutils.alloca_once_value(builder, power))
    one = ir.Constant(begin.type, 1)
    with cgutils.for_range_slice(builder, begin, end, step) as (start, _):
        stop = builder.add(start, step)
        stop = builder.select(builder.icmp_signed("<", stop, end), stop, end)
        with cgutils.for_range_slice(builder, start, stop, one) as (cell, _):
            source = factors.vectors(cells.index(cell), first, width)
            for product, pointer in zip(products, source, strict=True):
                next_ = builder.fmul(builder.load(product), factors.load(pointer))
                builder.store(next_, product)
        for product, power in zip(products, powers, strict=True):
            part, more = _split_exponent(builder, builder.load(product))
            builder.store(part, product)
            builder.store(builder.add(builder.load(power), more), power)
    for product, pointer in zip(products, out.vectors(row, first, width), strict=True):
        out.store(builder.load(product), pointer)
    for power, pointer in zip(powers, exponents.vectors(row, first, width), strict=True):
        out.store(builder.bitcast(builder.load(power), _VECTOR), pointer)
    return context.get_dummy_value()


def add_row(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """See `loops.add_row`."""
    out, prior, rows, row, scale, first, cells, begin, end, width = _unpacked(
        context, builder, signature, args
    )
    factor = _broadcast(builder, scale)
    source = rows.vectors(row, first, width)
    added = [builder.fmul(factor, rows.load(pointer)) for pointer in source]

    def add_to(target):
        for vector, pointer in zip(added, out.vectors(target, first, width), strict=True):
            out.store(builder.fadd(out.load(pointer), vector), pointer)

    with builder.if_then(builder.icmp_signed(">=", prior, ir.Constant(prior.type, 0))):
        add_to(prior)
    with cgutils.for_range_slice(builder, begin, end, ir.Constant(begin.type, 1)) as (cell, _):
        add_to(cells.index(cell))
    return context.get_dummy_value()


def add_rows(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """See `loops.add_rows`."""
    out, row, rows, listed, begin, end, width = _unpacked(context, builder, signature, args)
    first, one = ir.Constant(begin.type, 0), ir.Constant(begin.type, 1)
    places = out.vectors(row, first, width)
    sums = [cgutils.alloca_once_value(builder, out.load(place)) for place in places]
    with cgutils.for_range_slice(builder, begin, end, one) as (entry, _):
        source = rows.vectors(listed.index(entry), first, width)
        for sum_, pointer in zip(sums, source, strict=True):
            builder.store(builder.fadd(builder.load(sum_), rows.load(pointer)), sum_)
    for sum_, place in zip(sums, places, strict=True):
        out.store(builder.load(sum_), place)
    return context.get_dummy_value()


def add_dots(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """See `loops.add_dots`."""
    out, row, left, scale, right, width = _unpacked(context, builder, signature, args)
    first, one = ir.Constant(row.type, 0), ir.Constant(row.type, 1)
    factor, lanes = _broadcast(builder, scale), ir.Constant(row.type, LANES)
    scaled = [builder.fmul(factor, left.load(at)) for at in left.vectors(row, first, width)]
    with cgutils.for_range_slice(builder, first, right.shape[0], one) as (i, _):
        (place,) = out.vectors(row, builder.mul(i, lanes), LANES)
        sum_ = out.load(place)
        for number, at in zip(scaled, right.vectors(i, first, width), strict=True):
            sum_ = _multiply_add(builder, sum_, number, right.load(at))
        out.store(sum_, place)
    return context.get_dummy_value()


def add_sparse_row(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """See `loops.add_sparse_row`."""
    out, row, right, first, columns, values, scale, begin, end, width = _unpacked(
        context, builder, signature, args
    )
    zero = ir.Constant(_VECTOR, [0.0] * LANES)
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(width // LANES)]
    step = ir.Constant(begin.type, 1)
    with cgutils.for_range_slice(builder, begin, end, step) as (entry, _):
        value = _broadcast(builder, values.number(entry))
        source = right.vectors(columns.index(entry), first, width)
        for sum_, pointer in zip(sums, source, strict=True):
            total = _multiply_add(builder, builder.load(sum_), value, right.load(pointer))
            builder.store(total, sum_)
    factor = _broadcast(builder, scale)
    for sum_, pointer in zip(sums, out.vectors(row, first, width), strict=True):
        total = _multiply_add(builder, out.load(pointer), factor, builder.load(sum_))
        out.store(total, pointer)
    return context.get_dummy_value()
