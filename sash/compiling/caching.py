"""Machine code kept on disk under a digest of everything it was made from.

Numba's own cache notices a change in the file of the kernel only, and never finds a closure again.
Here the key is a digest of the code of the kernel, of every function, constant and global it
reaches, and of all versions involved; the same lambda hits in another process, and an edit of any
function involved misses. What cannot be digested is not cached: a stale hit is a wrong answer.

Cached machine code is executable, and Numba stores it with pickle: the directory belongs to the
user alone (mode 0700) and is refused otherwise.
"""

from __future__ import annotations

import enum
import hashlib
import logging
import os
import stat
import sys
import types
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

from sash._version import __version__

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
FOREIGN = ("numpy", "math", "numba", "llvmlite", "builtins", "operator", "cmath")  # pinned by their version


Seen = dict[int, tuple[int, Any]]

UNIQUE = "unique"  # how the name of a function begins that has no digest


class Undigestible(Exception):
    """Something whose content cannot be named; code that depends on it is not cached."""


def directory() -> Path:
    """Where machine code is kept: SASH_CACHE_DIR, or a directory in the user's cache."""
    chosen = os.environ.get("SASH_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sash" / "machine-code"


def require_private(path: Path) -> None:
    """Refuse a directory that others could write machine code into."""
    found = path.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(
            f"{path} holds machine code, so it must belong to you alone: "
            "run chmod 700 on it, or set SASH_CACHE_DIR to a private directory"
        )


def digest(function: Any) -> str:
    """Name everything that decides what machine code a function becomes."""
    versions = (__version__, numba.__version__, llvmlite.__version__, np.__version__, sys.version)
    switches = (numba.config.BOUNDSCHECK, numba.config.OPT)
    feed = hashlib.sha256(repr((versions, switches)).encode())
    for word in _words(function, {}):
        feed.update(word)
        feed.update(b"\0")
    return feed.hexdigest()


def named_by_digest(function: Any) -> Any:
    """Put the digest of a function into its name, or something unique if it has none.

    Symbols of machine code are made from the name, the types and a number that counts functions in a
    process. Two kernels of one factory have inner functions of the same name; read back into another
    process, where the number may belong to another kernel's, they would call each other's. Names by
    content cannot be confused.
    """
    try:
        name = digest(function)
    except Undigestible:
        name = UNIQUE + uuid.uuid4().hex
    function.__qualname__ = f"{function.__name__}_{name}"
    return function


def digest_in_name(function: Any) -> str | None:
    """The digest that `named_by_digest` gave a function."""
    name = function.__qualname__.rpartition("_")[2]
    return name if len(name) == 64 else None


def _words(value: Any, seen: Seen) -> Iterator[bytes]:
    """Spell a value out; a thing met before is named by the order of the first meeting."""
    if isinstance(value, PLAIN):
        yield f"{type(value).__name__}:{value!r}".encode()
        return
    if id(value) in seen:
        yield f"again:{seen[id(value)][0]}".encode()
        return
    seen[id(value)] = len(seen), value  # kept alive: the number of a thing that is gone may be given again
    if isinstance(value, Dispatcher):
        yield from _words_of_dispatcher(value, seen)
    elif isinstance(value, types.FunctionType):
        yield from _words_of_function(value, seen)
    elif isinstance(value, _Intrinsic):
        yield from _words(value._defn, seen)  # noqa: SLF001 - what it was made from
    elif isinstance(value, types.CodeType):
        yield from _words_of_code(value, seen)
    elif isinstance(value, (tuple, list, frozenset)):
        yield from _words_of_items(value, seen)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
    elif isinstance(value, (np.generic, np.dtype)):
        yield repr(value).encode()
    elif isinstance(value, type):
        yield from _words_of_class(value, seen)
    elif isinstance(value, (types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        yield _name(value)
    else:
        raise Undigestible(value)


def _words_of_dispatcher(value: Any, seen: Seen) -> Iterator[bytes]:
    yield repr(sorted(value.targetoptions.items())).encode()
    known = digest_in_name(value.py_func)
    yield from [known.encode()] if known else _words(value.py_func, seen)


def _words_of_items(values: tuple[Any, ...] | list[Any] | frozenset[Any], seen: Seen) -> Iterator[bytes]:
    yield type(values).__name__.encode()
    for item in sorted(values, key=repr) if isinstance(values, frozenset) else values:
        yield from _words(item, seen)


def _words_of_code(code: types.CodeType, seen: Seen) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)).encode()
    for constant in code.co_consts:
        yield from _words(constant, seen)


def _words_of_function(function: types.FunctionType, seen: Seen) -> Iterator[bytes]:
    if _is_foreign(function.__module__):
        yield _name(function)
        return
    yield from _words(function.__code__, seen)
    yield from _words(function.__defaults__, seen)
    yield from _words(tuple(sorted((function.__kwdefaults__ or {}).items())), seen)
    for cell in function.__closure__ or ():
        yield from _words(cell.cell_contents, seen)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name.encode()
            yield from _words_of_global(function.__globals__[name], function.__code__, seen)


def _words_of_global(value: Any, code: types.CodeType, seen: Seen) -> Iterator[bytes]:
    """A module stands for those of its members that the code names, in modules within it as well."""
    is_new = id(value) not in seen
    yield from _words(value, seen)
    if is_new and isinstance(value, types.ModuleType) and not _is_foreign(value.__name__):
        for name in sorted(_names(code)):
            if hasattr(value, name):
                yield name.encode()
                yield from _words_of_global(getattr(value, name), code, seen)


def _words_of_class(value: type, seen: Seen) -> Iterator[bytes]:
    """A class of which machine code can know no more than its name, its members or its fields."""
    yield _name(value)
    if issubclass(value, enum.Enum):
        for member in value:
            yield member.name.encode()
            yield from _words(member.value, seen)
    elif issubclass(value, tuple) and hasattr(value, "_fields"):
        yield repr(value._fields).encode()
    elif not (_is_foreign(value.__module__) or issubclass(value, Exception)):
        raise Undigestible(value)


def _name(value: Any) -> bytes:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}".encode()


def _is_foreign(module: str | None) -> bool:
    return (module or "").split(".")[0] in FOREIGN


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Finds the place of a kernel by its digest alone."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._py_file = py_file
        self._digest = digest(py_func)
        if directory().exists():
            require_private(directory())

    def get_cache_path(self) -> str:
        return str(directory())

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return self._digest[:24]

    def ensure_cache_path(self) -> None:
        directory().mkdir(mode=0o700, parents=True, exist_ok=True)
        require_private(directory())

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        # A short name: the qualified names of nested closures overflow the limit of file systems.
        self._filename_base = f"{py_func.__name__}-{self._locator.get_disambiguator()}"


class DigestCache(FunctionCache):  # type: ignore[misc]
    """A Numba cache whose key is the digest; see the top of this file."""

    _impl_class = _Impl

    @staticmethod
    def of(dispatcher: Any) -> Any:
        """The cache for a kernel, or none if it depends on something that cannot be named."""
        try:
            return DigestCache(dispatcher.py_func)
        except Undigestible:
            return NullCache()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Find machine code; what cannot be read is made again."""
        try:
            return super().load_overload(sig, target_context)
        except PermissionError:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, compiling again cures it
            logging.getLogger(__name__).warning("unreadable machine code for %s is made again", self._name)
            return None

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), self._impl.locator.get_source_stamp()
