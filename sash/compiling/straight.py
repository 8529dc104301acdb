"""Whether a function is plain arithmetic, which processors do for many rows at a time.

A compiler makes vector code of loops whose bodies have no branches, and calls of nothing but such functions. What a
function does is read from the code that Python has made of it; a doubt counts as no.
"""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Iterator
from typing import Any

OPERATORS = frozenset("+-*/&|^")  # a remainder takes as long as all of these together, and has no vector form
DEEPEST = 8  # calls within calls


def is_straight(function: Any, depth: int = 0) -> bool:
    """Whether a function has no branch and no loop, and calls types and functions alike alone."""
    function = getattr(function, "py_func", function)
    if not isinstance(function, types.FunctionType) or depth > DEEPEST:
        return False
    steps = list(dis.get_instructions(function))
    if any("JUMP" in step.opname or step.opname in ("FOR_ITER", "YIELD_VALUE") for step in steps):
        return False
    if any(step.opname == "BINARY_OP" and step.argrepr.rstrip("=") not in OPERATORS for step in steps):
        return False
    return all(isinstance(each, type | int | float) or is_straight(each, depth + 1) for each in _named(function))


def _named(function: types.FunctionType) -> Iterator[Any]:
    """What a function takes from elsewhere; of modules, what it takes from them."""
    found = inspect.getclosurevars(function)
    for value in (*found.nonlocals.values(), *found.globals.values(), *found.builtins.values()):
        if isinstance(value, types.ModuleType):
            yield from (getattr(value, name, None) for name in found.unbound)
        else:
            yield value
