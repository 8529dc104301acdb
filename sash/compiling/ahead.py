"""Asking for memory ahead: a processor is told what will be read soon, and does not wait for it.

A step down a large tree waits for its node, and what it finds there decides what is read next: one wait after the
other. All that is known to be read is asked for at once instead, so that the waits are one. Nothing is read or
written by it, and where a cell lies is all that matters: pools of all kinds are asked in the same way.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from sash.algebra.monoid import Function

NUMBER, BYTE_ADDRESS = ir.IntType(32), ir.IntType(8).as_pointer()
TO_READ, SOON_AND_OFTEN, DATA = (NUMBER(each) for each in (0, 3, 1))
SIGNATURE = ir.FunctionType(ir.VoidType(), [BYTE_ADDRESS, NUMBER, NUMBER, NUMBER])


def ahead(is_compiled: bool) -> Function:
    """The function fetch(pool, place) for compiled or for interpreted code, which has nothing to ask."""
    return _fetch_compiled if is_compiled else _fetch


def _fetch(pool: Any, place: int) -> None:
    pass


@intrinsic  # type: ignore[untyped-decorator]
def _fetch_compiled(context: Any, pool: Any, place: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = context.cast(builder, arguments[1], signature.args[1], types.intp)
        _ask(context, builder, signature.args[0], arguments[0], number)
        return context.get_dummy_value()

    return types.none(pool, place), codegen


def _ask(context: Any, builder: Any, kind: Any, pool: Any, place: Any) -> None:
    """Ask for the place in every array of a pool; of rows of a matrix, for where they begin."""
    if isinstance(kind, types.BaseTuple):
        for k in range(len(kind)):
            _ask(context, builder, kind[k], builder.extract_value(pool, k), place)
        return
    array = arrayobj.make_array(kind)(context, builder, pool)
    start = builder.ptrtoint(array.data, place.type)
    step = builder.extract_value(array.strides, 0)
    address = builder.inttoptr(builder.add(start, builder.mul(place, step)), BYTE_ADDRESS)
    prefetch = cgutils.get_or_insert_function(builder.module, SIGNATURE, "llvm.prefetch.p0i8")
    builder.call(prefetch, [address, TO_READ, SOON_AND_OFTEN, DATA])
