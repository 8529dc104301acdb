"""open_store(url): from an address to a store.

A client library is imported when the first store of its kind is opened, and not before.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from sash.errors import DeclarationError, UnknownNameError
from sash.stores import urls
from sash.stores.contract import Store


class Kind(NamedTuple):
    """Where the stores of a scheme are, and the extra that brings their client."""

    module: str
    extra: str | None = None


SCHEMES = {
    "memory": Kind("sash.stores.memory"),
    "lmdb": Kind("sash.stores.lmdb", extra="lmdb"),
    "redis": Kind("sash.stores.redis", extra="redis"),
    "rediss": Kind("sash.stores.redis", extra="redis"),
    "sqlite": Kind("sash.stores.sqlite"),
}


def open_store(url: str, **options: Any) -> Store:
    """Open the store at an address.

        memory:                                          gone when closed
        lmdb:///path?map_size=64M&max_size=1T            a directory; pip install 'sash[lmdb]'
        sqlite:///path                                   a file
        redis://user:password@host:port/db?prefix=sash:  any server of that protocol; pip install 'sash[redis]'
        rediss://...?ca=/path/of/ca.pem                  the same over TLS, always verified

    Options may be given in the address or by name; a password is better given by name.

    >>> with sash.open_store("memory:") as store:
    ...     store.put_many({b"a": b"1", b"b": b"2"})
    ...     store.get_many([b"b", b"c"])
    [b'2', None]
    """
    scheme = url.partition(":")[0].lower()
    if scheme not in SCHEMES:
        raise _unknown_scheme(scheme)
    opener, parsed = _opener(scheme), urls.parse(url)
    wanted = {**parsed.options, **options}
    known = list(inspect.signature(opener).parameters)[1:]
    for name in wanted:
        if name not in known:
            raise UnknownNameError.among(f"option of a {scheme} store", name, known or ["none"])
    store: Store = opener(parsed, **wanted)
    return store


def _opener(scheme: str) -> Callable[..., Store]:
    module, extra = SCHEMES[scheme]
    try:
        opener: Callable[..., Store] = importlib.import_module(module).open_url
    except ImportError as error:
        raise DeclarationError(
            f"cannot open a {scheme} store: the {extra} package is missing. "
            f"Install it with: pip install 'sash[{extra}]'"
        ) from error
    return opener


def _unknown_scheme(scheme: str) -> DeclarationError:
    """Not the rest of the address: there may be a password in it."""
    if not scheme.isidentifier():
        return DeclarationError(f"the address of a store begins with its kind and a colon: {', '.join(SCHEMES)}")
    return UnknownNameError.among("kind of store", scheme, SCHEMES)
