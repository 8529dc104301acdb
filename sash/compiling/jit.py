"""Every Numba option Sash uses, and the reason for it. The only place that asks Numba to compile.

    _nrt=False            kernels allocate nothing, so they need no run-time; with it, every call
                          counts references to every array: 214 ns a round instead of 7
    error_model="numpy"   division by zero gives inf or nan, as IEEE says; a check would forbid
                          vector code
    nogil=True            a second thread really runs beside the first (pba)
    no fastmath           it reorders additions: other answers on other machines

Inner functions are compiled into whoever calls them; only `entry` points are kept on disk.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

from sash.compiling.caching import FOREIGN, DigestCache

Function = Callable[..., Any]

OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy", "nogil": True}
INNER = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def is_enabled() -> bool:
    """Whether machine code is wanted: SASH_JIT=0 or NUMBA_DISABLE_JIT=1 switch it off."""
    return os.environ.get("SASH_JIT", "1") != "0" and not numba.config.DISABLE_JIT


def compiled(function: Function) -> Function:
    """Make a function, and the plain functions it calls, callable from compiled code."""
    if isinstance(function, Dispatcher):
        return function
    return numba.njit(**INNER)(_calling_compiled(function))  # type: ignore[no-any-return]


def _calling_compiled(function: Any) -> Any:
    """The same function, with every plain function it closes over or names made compiled.

    Numba calls compiled functions only; nobody should have to decorate the helpers of a combine.
    """
    closed = function.__closure__ or ()
    cells = tuple(types.CellType(_compiled_if_plain(cell.cell_contents)) for cell in closed)
    named = {
        name: compiled(function.__globals__[name])
        for name in function.__code__.co_names
        if _is_plain(function.__globals__.get(name)) and function.__globals__[name] is not function
    }
    space = {**function.__globals__, **named} if named else function.__globals__
    twin = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    twin.__qualname__, twin.__module__ = function.__qualname__, function.__module__
    return twin


def _compiled_if_plain(value: Any) -> Any:
    return compiled(value) if _is_plain(value) else value


def _is_plain(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and (value.__module__ or "").split(".")[0] not in FOREIGN


def entry(function: Function) -> Function:
    """Compile a function that Python calls, and keep its machine code on disk."""
    plain = function.py_func if isinstance(function, Dispatcher) else function
    dispatcher = numba.njit(**OPTIONS)(_calling_compiled(plain))
    dispatcher._cache = DigestCache.of(dispatcher)  # noqa: SLF001 - Numba has no public way to set it
    return dispatcher  # type: ignore[no-any-return]


def interpreted(function: Function) -> Function:
    """Leave a function as it is; stands where `compiled` could stand."""
    return function


def answer_type(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The Numba type a function gives back for arguments like these."""
    dispatcher: Any = compiled(function)
    signature = tuple(numba.typeof(argument) for argument in arguments)
    dispatcher.compile(signature)
    return dispatcher.overloads[signature].signature.return_type
