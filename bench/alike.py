"""Several windows that are alike, in compiled code: which of them takes part is known only in the loop.

Numba picks from a tuple by a jump for each of its places, which costs more than a round. Here the tuple is put in
memory once, and a window is loaded from there.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def _stored(typing_context, alike):
    """Where a tuple stands in memory, from now on until the function returns."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = cgutils.alloca_once_value(builder, arguments[0])
        return builder.ptrtoint(place, context.get_value_type(types.intp))

    return types.intp(alike), generate


@intrinsic
def _loaded(typing_context, place, number, alike):
    """One of a tuple that is stored."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        stored = builder.inttoptr(arguments[0], context.get_value_type(alike).as_pointer())
        return builder.load(builder.gep(stored, [ir.Constant(ir.IntType(64), 0), arguments[1]]))

    return alike.dtype(types.intp, types.intp, alike), generate


def picking(is_compiled: bool) -> tuple[Any, Any]:
    """What a loop over windows calls: store(alike) -> place, once, and pick(place, number, alike) -> window."""
    return (_stored, _loaded) if is_compiled else (_nowhere, _picked)


def _nowhere(alike: Any) -> int:
    return 0


def _picked(place: int, number: int, alike: Any) -> Any:
    return alike[number]
