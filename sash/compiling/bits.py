"""Bits of words of 64: where the lowest and the highest one stand.

A processor tells both by one instruction, which Numba has no name for. Words are never zero here; compiled they are
signed integers of 64 bits, interpreted they are Python's own and not negative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.ir
import numba
from numba.extending import intrinsic

from sash.algebra.monoid import Function


class Bits(NamedTuple):
    """Functions of a word that is not zero; places count from 0, the bit of the value 1."""

    lowest: Function
    highest: Function


def bits(is_compiled: bool) -> Bits:
    """The functions for compiled or for interpreted code."""
    return Bits(_lowest_compiled, _highest_compiled) if is_compiled else Bits(_lowest, _highest)


def _lowest(word: int) -> int:
    return (word & -word).bit_length() - 1


def _highest(word: int) -> int:
    return word.bit_length() - 1


@intrinsic  # type: ignore[untyped-decorator]
def _lowest_compiled(context: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], llvmlite.ir.Constant(llvmlite.ir.IntType(1), 1))

    return numba.types.int64(numba.types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _highest_compiled(context: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], llvmlite.ir.Constant(llvmlite.ir.IntType(1), 1))
        return builder.sub(llvmlite.ir.Constant(zeros.type, 63), zeros)

    return numba.types.int64(numba.types.int64), codegen
