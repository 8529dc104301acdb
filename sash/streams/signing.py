"""What a user's functions are, by their content: state that was made with some is not gone on with by others.

Partials of large keys are made with `lift` and `combine`, and what a policy has left with the policy. Partials
of two definitions would mix without a sign of it, so a digest of both is part of the signature of a plan. `lower` makes
answers only, and may change.

The digest is of byte code, constants, and whatever a function closes over or calls by name in the user's own package.
It is the same in every process, but not in every version of Python: it is compared only with one that the same version
made. Other packages and Sash itself are named, not spelled out, so that an upgrade does not end a query. (That of
compiling.caching is for machine code, which any upgrade must make anew.)
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sash.algebra.declaring import agg
from sash.frames.answering import policy_aggregates
from sash.frames.extents import show_aggregate
from sash.windows.policies import as_policy

if TYPE_CHECKING:
    from sash.algebra.monoid import Monoid
    from sash.frames.spec import Spec

CODE = "the code of "
VERSION = sys.implementation.cache_tag or "python"  # byte code is of a version of Python
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def codes_of(specs: tuple[Spec, ...]) -> dict[str, str]:
    """A digest for each function of the user's that state depends on, by its name."""
    return {f"{CODE}{name}, by {VERSION}": _digest(parts) for spec in specs for name, parts in _own(spec)}


def differing(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """In what two signatures differ; code by another version of Python, or of before it was looked at, may differ."""
    names = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
    return [name for name in names if not name.startswith(CODE) or (name in found and name in wanted)]


def _own(spec: Spec) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Names of what a user has written, and what its state is made with."""
    for name, aggregate in (*policy_aggregates(spec), *spec.aggregates):
        if getattr(aggregate.binder, "__module__", "") == agg.__module__:
            monoid = aggregate.bind(*[None] * aggregate.n_inputs)
            if monoid.is_compilable:  # of partials that are objects none are kept
                yield f"{name}={show_aggregate(aggregate)}", _parts(monoid)
    policy = None if spec.window.extent is None else spec.window.extent.policy
    if policy is not None and _package(rule := as_policy(policy).rule) != "sash":
        yield f"the policy {as_policy(policy).name}", (rule,)


def _parts(monoid: Monoid) -> tuple[Any, ...]:
    return str(monoid.state), monoid.identity, monoid.lift, monoid.combine


def _digest(parts: tuple[Any, ...]) -> str:
    feed, seen = hashlib.blake2b(digest_size=8), dict[int, tuple[int, Any]]()
    for part in parts:
        for word in _words(part, _package(part), seen):
            feed.update(word.encode(errors="surrogatepass") + b"\0")
    return feed.hexdigest()


def _words(value: Any, home: str, seen: dict[int, tuple[int, Any]]) -> Iterator[str]:
    """Spell a value out, code of the package `home` in full; a thing met before by the order of the first meeting."""
    if isinstance(value, PLAIN):
        yield f"{type(value).__name__}:{value!r}"
        return
    if id(value) in seen:
        yield f"again:{seen[id(value)][0]}"
        return
    seen[id(value)] = len(seen), value  # kept alive: the number of a thing that is gone may be given again
    yield f"{_package(value)}.{getattr(value, '__name__', type(value).__qualname__)}"
    for part in _parts_of(value, home):
        yield from _words(part, home, seen)


def _parts_of(value: Any, home: str) -> Iterator[Any]:
    """What a value consists of, as far as that decides what it does."""
    if isinstance(value, types.CodeType):
        yield from (value.co_code, value.co_names, value.co_consts)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield from (value.dtype.str, value.shape, value.tobytes())
    elif isinstance(value, (np.generic, np.dtype)):
        yield repr(value)
    elif isinstance(value, (tuple, list)):
        yield from value
    elif isinstance(value, (set, frozenset)):
        yield from sorted(value, key=repr)
    elif isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.MethodType):
        yield from (value.__func__, value.__self__)
    elif _package(value) == home and not isinstance(value, types.ModuleType):
        yield from _parts_of_own(value)


def _parts_of_own(value: Any) -> Iterator[Any]:
    """What a function, a class or an object of the user's consists of."""
    value = getattr(value, "py_func", value)  # of a function that Numba has compiled
    if isinstance(value, types.FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, type):
        yield from (part for name, part in sorted(vars(value).items()) if isinstance(part, types.FunctionType))
    else:
        yield type(value)
        yield sorted(vars(value).items()) if hasattr(value, "__dict__") else ()


def _parts_of_function(function: types.FunctionType) -> Iterator[Any]:
    code = function.__code__
    yield from (code.co_code, code.co_names, [each for each in code.co_consts if each != function.__doc__])
    yield from (function.__defaults__, function.__kwdefaults__)
    yield from inspect.getclosurevars(function).nonlocals.values()
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]


def _names(code: types.CodeType) -> list[str]:
    """Names that code looks up, and functions within it."""
    inner = [name for each in code.co_consts if isinstance(each, types.CodeType) for name in _names(each)]
    return sorted({*code.co_names, *inner})


def _package(value: Any) -> str:
    """Where a value comes from: the first part of the name of its module."""
    module = getattr(value, "__module__", None) or getattr(type(value), "__module__", "")
    return str(module).partition(".")[0]
