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

import inspect
import os
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

from sash.compiling.caching import FOREIGN, DigestCache, digest_in_name, named_by_digest
from sash.compiling.inner import InnerCompiler
from sash.errors import DeclarationError

Function = Callable[..., Any]

OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy", "nogil": True}
INNER = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": InnerCompiler}


def is_enabled() -> bool:
    """Whether machine code is wanted: SASH_JIT=0 or NUMBA_DISABLE_JIT=1 switch it off."""
    return os.environ.get("SASH_JIT", "1") != "0" and not numba.config.DISABLE_JIT


def compiled(function: Function) -> Function:
    """Make a function, and the plain functions it calls, callable from compiled code."""
    return _compiled(function, frozenset())


def _compiled(function: Function, callers: frozenset[Function]) -> Function:
    if isinstance(function, Dispatcher):
        if digest_in_name(function.py_func):
            return function
        function = function.py_func  # compiled by the user; ours are told apart by their names
    return numba.njit(**INNER)(_calling_compiled(function, callers))  # type: ignore[no-any-return]


def _calling_compiled(function: Any, callers: frozenset[Function] = frozenset()) -> Any:
    """The same function, with every plain function it closes over or names made compiled.

    Numba calls compiled functions only; nobody should have to decorate the helpers of a combine.
    Functions that call one another in a circle stay plain, and Numba says what it makes of that.
    """
    if not isinstance(function, types.FunctionType):
        return _wrapped(function)
    callers = callers | {function}

    def replaced(value: Any) -> Any:
        return _compiled(value, callers) if _is_plain(value) and value not in callers else value

    cells = tuple(types.CellType(replaced(cell.cell_contents)) for cell in function.__closure__ or ())
    space = function.__globals__
    named = {name: space[name] for name in function.__code__.co_names if _is_plain(space.get(name))}
    if named:
        space = {**space, **{name: replaced(value) for name, value in named.items()}}
    twin = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    twin.__module__ = __name__  # imported when machine code is read back; that of the original may not exist then
    return named_by_digest(twin)


def _wrapped(function: Any) -> Any:
    """A function of Python's own, such as math.log, which Numba knows but cannot take for a kernel."""

    def call_one(x: Any) -> Any:
        return function(x)

    def call_two(x: Any, y: Any) -> Any:
        return function(x, y)

    try:
        n_parameters = len(inspect.signature(function).parameters)
    except ValueError:  # math.log has none to show
        n_parameters = 1
    return call_two if n_parameters == 2 else call_one


def _is_plain(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and (value.__module__ or "").split(".")[0] not in FOREIGN


def inlined(function: Function) -> Function:
    """Compile a function into whoever calls it.

    Algorithms are made of such: a state is some thirty words, and handing it over takes longer than most steps. Left to
    the optimiser, a round of DABA over standard deviations took 58 ns instead of 22.
    """
    dispatcher: Any = compiled(function)
    dispatcher.targetoptions["forceinline"] = True
    return dispatcher  # type: ignore[no-any-return]


def entry(function: Function) -> Function:
    """Compile a function that Python calls, and keep its machine code on disk."""
    plain = function.py_func if isinstance(function, Dispatcher) else function
    dispatcher = numba.njit(**OPTIONS)(_calling_compiled(plain))
    dispatcher._cache = DigestCache.of(dispatcher)  # noqa: SLF001 - Numba has no public way to set it
    return dispatcher  # type: ignore[no-any-return]


@contextmanager
def explaining(names: Sequence[str]) -> Iterator[None]:
    """Say whose functions Numba could not compile, why, and what to do about it."""
    try:
        yield
    except NumbaError as error:
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in said if not line.startswith("Failed in")), "")
        raise DeclarationError(
            f"{', '.join(names)} cannot be compiled: {reason} Use numbers, tuples, loops and the functions of "
            "math, or declare state=object to have it interpreted"
        ) from error


def interpreted(function: Function) -> Function:
    """Leave a function as it is; stands where `compiled` could stand."""
    return function


def answer_type(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The Numba type a function gives back for arguments like these."""
    dispatcher: Any = compiled(function)
    signature = tuple(numba.typeof(argument) for argument in arguments)
    dispatcher.compile(signature)
    return dispatcher.overloads[signature].signature.return_type
