"""Arrays by their addresses: all that a kernel works on, handed over as one array of numbers.

To take an array over from Python costs some 40 ns, and a tuple of arrays a microsecond, because its type is found out
anew by every call. A window has the same arrays until it grows. So where they lie is written down once, and a kernel
makes arrays of that again, which costs nothing: their types are settled when it is compiled.

    table   address, rows, columns | address, rows, columns | ...     in the order of arrays in their tuples

Whoever has the table keeps the arrays alive, and makes a new table when one of them is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj, numpy_support

from sash.algebra.monoid import Function


def table_of(arrays: Any) -> Any:
    """Where arrays in nested tuples lie, and how long they are."""
    return np.array([word for each in _leaves(arrays) for word in _words(each)], np.int64)


def restorer(arrays: Any) -> Function:
    """Make restore(table) for compiled code: arrays like these, in tuples like theirs."""
    forms = _forms(arrays)

    @intrinsic  # type: ignore[untyped-decorator]
    def restore(context: Any, table: Any) -> Any:
        wanted = _type(forms)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = arrayobj.make_array(table)(context, builder, arguments[0]).data
            return _built(context, builder, wanted, _loaded(builder, words))

        return wanted(table), codegen

    return restore  # type: ignore[no-any-return]


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for each in arrays for leaf in _leaves(each)] if isinstance(arrays, tuple) else [arrays]


def _words(array: Any) -> tuple[int, int, int]:
    if not array.flags.c_contiguous or array.ndim > 2:
        raise ValueError(f"an array of {array.ndim} dimensions and strides {array.strides} is not told by its address")
    return array.ctypes.data, array.shape[0], array.shape[1] if array.ndim == 2 else 1


def _forms(arrays: Any) -> Any:
    """Tuples of the same form, of the types and dimensions of arrays: what machine code depends on."""
    return tuple(map(_forms, arrays)) if isinstance(arrays, tuple) else f"{arrays.ndim}{arrays.dtype.str}"


def _type(forms: Any) -> Any:
    if isinstance(forms, tuple):
        return types.Tuple(list(map(_type, forms)))
    return types.Array(numpy_support.from_dtype(np.dtype(forms[1:])), int(forms[0]), "C")


def _loaded(builder: Any, words: Any) -> Iterator[Any]:
    """The words of a table, one after the other, as they are asked for."""
    place = 0
    while True:
        yield builder.load(cgutils.gep_inbounds(builder, words, place))
        place += 1


def _built(context: Any, builder: Any, wanted: Any, words: Iterator[Any]) -> Any:
    """Values of a type, out of the words of a table."""
    if isinstance(wanted, types.BaseTuple):
        return context.make_tuple(builder, wanted, [_built(context, builder, each, words) for each in wanted])
    address, lengths = next(words), [next(words), next(words)]
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(wanted.dtype)))
    row = builder.mul(lengths[1], size)
    array = arrayobj.make_array(wanted)(context, builder)
    arrayobj.populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=lengths[: wanted.ndim],
        strides=[row, size][-wanted.ndim :],
        itemsize=size,
        meminfo=None,
    )
    return array._getvalue()  # noqa: SLF001 - how Numba's own code reads it
