"""The clock of single rounds: the processor's time-stamp counter, read by an instruction inside the compiled loop.

A round of DABA takes some nanoseconds; a call of the system's clock takes more than that, this takes about ten. The
counter ticks at a fixed rate, whatever the core does, so ticks are converted to nanoseconds by a rate measured once;
some processors move it on in steps, of 26 ticks for one. So rounds that are as short are clocked in several windows at
once (bench/alike.py), and what the clock itself takes is shown beside them, and never subtracted. Only x86 lets every
program read it; elsewhere the experiments that need it say so and are left out.
"""

from __future__ import annotations

import platform
import time
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sash.compiling.jit import entry, interpreted, is_enabled

IS_READABLE = platform.machine() in ("x86_64", "AMD64")


@intrinsic
def ticks(typing_context):
    """Read the counter, in compiled code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        read = builder.module.declare_intrinsic("llvm.readcyclecounter", (), ir.FunctionType(ir.IntType(64), ()))
        return builder.call(read, ())

    return types.int64(), generate


def clock(is_compiled: bool) -> Any:
    """What a loop reads: the counter, or, interpreted, the system's nanoseconds."""
    return ticks if is_compiled else time.perf_counter_ns


def ticks_per_ns() -> float:
    """How fast the clock ticks."""
    return _rate() if is_enabled() else 1.0


@lru_cache
def _rate() -> float:
    """Ticks a nanosecond, over a twentieth of a second."""
    read = entry(_now)
    read()
    begun, first = time.perf_counter_ns(), read()
    while time.perf_counter_ns() - begun < 50_000_000:
        pass
    return float((read() - first) / (time.perf_counter_ns() - begun))


def cost_ticks() -> float:
    """What reading the clock twice takes with nothing between: the least a round can show."""
    spent, now = np.zeros(10_001, np.int64), clock(is_enabled())

    def read_twice(spent: Any) -> None:
        for i in range(len(spent)):
            before = now()
            spent[i] = now() - before

    (entry if is_enabled() else interpreted)(read_twice)(spent)
    return float(np.median(spent))


def _now() -> int:
    return ticks()
