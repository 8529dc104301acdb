"""What a store is: bytes to bytes, in order of the keys, written all or nothing.

    get_many(keys)          the values, None for a key that is not there
    write(puts, deletes)    one atomic batch
    scan(prefix)            pairs whose keys begin alike, in order
    close()                 and the store is left as it was after the last write

`put_many`, `delete_many` and the context manager are said in terms of these. A store of one's own
subclasses `Store`, has these four methods and a `url`, and passes `sash.testing.store_suite`.

Guarantees
    G1  A write happens entirely or not at all, for readers and after a crash alike. In one batch
        deletes come first, so a key that is both deleted and put has been put.
    G2  When a write has returned it is as durable as the store is: on disk for LMDB and SQLite; for
        Redis as its server is configured; in memory until `close` for `memory:`.
    G3  A write that raised has changed nothing, with one exception that no network can rule out: the
        answer got lost (StoreUnavailableError). Writing the same batch again is always right.
    G4  `get_many` sees all of a batch or nothing of it.
    G5  `scan` reads a page at a time: a key that was there all the while comes once, in its place; of
        what is written meanwhile any part may show. Writing while scanning is allowed.
    G6  Any number of threads may use a store at once; a read does not wait for the disk of a write,
        except in SQLite.
    G7  A store keeps no buffer of the caller's, and returns `bytes`.
    G8  A store that raised a StoreError can be used again as soon as its trouble is over; one that
        was closed says so.

Keys have 1 to 511 bytes (what LMDB can take, so that a window can move to any store) and sort as
bytes do. Values may be empty.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, takewhile
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from sash.errors import DataError, StoreUnavailableError

KEY_LENGTH_MAX = 511
PAGE = 256  # pairs that a scan reads at once: a megabyte of chunks

Value = bytes | bytearray | memoryview
Pairs = Mapping[bytes, Value] | Iterable[tuple[bytes, Value]]


@runtime_checkable
class Store(Protocol):
    """A map from bytes to bytes; see the guarantees of this module."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where the store is, without any secret."""

    @abstractmethod
    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """The values of keys, in their order."""

    @abstractmethod
    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every key with a prefix and its value, in order of the keys."""

    @abstractmethod
    def write(self, puts: Pairs = (), deletes: Iterable[bytes] = ()) -> None:
        """Delete keys and put pairs, all or nothing; a key to delete need not be there."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store; closing twice is fine."""

    def put_many(self, puts: Pairs) -> None:
        """Put pairs, all or nothing."""
        self.write(puts)

    def delete_many(self, keys: Iterable[bytes]) -> None:
        """Delete keys, all or nothing; they need not be there."""
        self.write(deletes=keys)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


# For those who write a store: the checks and the paging they all share.


def checked_keys(keys: Iterable[bytes]) -> list[bytes]:
    """The keys as a list, none of them empty or too long."""
    found = list(keys)
    for key in found:
        if not isinstance(key, bytes) or not 0 < len(key) <= KEY_LENGTH_MAX:
            raise DataError(_key_refused(key))
    return found


def checked_puts(puts: Pairs) -> dict[bytes, bytes]:
    """The pairs as a dict with values of its own, each checked to be bytes."""
    pairs = dict(puts)
    checked_keys(pairs)
    return {key: value if type(value) is bytes else _copied(key, value) for key, value in pairs.items()}


def pages(read: Callable[[bytes], list[tuple[bytes, bytes]]], prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Scan a prefix by pages; `read` gives the one that begins at a key, there or not."""
    page = read(prefix)
    yield from page
    while len(page) == PAGE:
        page = read(page[-1][0] + b"\0")  # the first key that can come after it
        yield from page


def page_of(prefix: bytes, pairs: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Up to a page of pairs in order, as long as their keys have the prefix."""
    return list(islice(takewhile(lambda pair: pair[0].startswith(prefix), pairs), PAGE))


def closed(store: str, operation: str) -> StoreUnavailableError:
    """Make the error of a store that was closed."""
    return StoreUnavailableError.refused(store, operation, found="it is closed", remedy="Open it again.")


def _copied(key: bytes, value: object) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise DataError(
        f"a store holds bytes, but the value of {key!r} is of type {type(value).__name__}. Encode it first."
    )


def _key_refused(key: object) -> str:
    if not isinstance(key, bytes):
        return f"a key of a store is of type bytes, got {key!r} of type {type(key).__name__}"
    if not key:
        return "a key of a store has at least one byte, got an empty one"
    return f"a key of a store has at most {KEY_LENGTH_MAX} bytes, got {len(key)}: {key[:32]!r}... Use a shorter name."
