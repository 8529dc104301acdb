"""Stores around a store: one counts, one is slow, one fails, all on purpose.

They can be nested: CountingStore(FailingStore(store)). Operations are called "get_many", "scan" and
"write"; put_many and delete_many are writes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sash.errors import StoreError, StoreUnavailableError
from sash.stores.contract import Pairs, Store, checked_puts

Found = TypeVar("Found")

OPERATIONS = ("get_many", "scan", "write")


@dataclass
class Accesses:
    """How often a store was used, with how many keys and how many bytes of values."""

    gets: int = 0
    keys_got: int = 0
    bytes_got: int = 0
    scans: int = 0
    keys_scanned: int = 0
    bytes_scanned: int = 0
    writes: int = 0
    keys_put: int = 0
    bytes_put: int = 0
    keys_deleted: int = 0


class WrappingStore(Store):
    """A store that hands everything on to another; the wrappers change one thing each."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def url(self) -> str:
        """Where the wrapped store is."""
        return self.store.url

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """Hand on."""
        return self.store.get_many(keys)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Hand on."""
        return self.store.scan(prefix)

    def write(self, puts: Pairs = (), deletes: Iterable[bytes] = ()) -> None:
        """Hand on."""
        self.store.write(puts, deletes)

    def close(self) -> None:
        """Hand on."""
        self.store.close()


class CountingStore(WrappingStore):
    """Counts what succeeds, in `accesses`: costs are claims about numbers of accesses.

    >>> store = CountingStore(sash.open_store("memory:"))
    >>> store.put_many({b"a": b"1", b"b": b"22"})
    >>> store.accesses.writes, store.accesses.keys_put, store.accesses.bytes_put
    (1, 2, 3)
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.accesses = Accesses()
        self._lock = threading.Lock()

    def take(self) -> Accesses:
        """Give the counts since the last time, and begin again."""
        with self._lock:
            taken, self.accesses = self.accesses, Accesses()
        return taken

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """Get, and count a get, its keys and the bytes that came."""
        found = self.store.get_many(keys)
        self._count(gets=1, keys_got=len(found), bytes_got=sum(len(value) for value in found if value is not None))
        return found

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Scan, and count a scan now, keys and bytes as they come."""
        found = self.store.scan(prefix)
        self._count(scans=1)
        return self._counted(found)

    def write(self, puts: Pairs = (), deletes: Iterable[bytes] = ()) -> None:
        """Write, and count a write, its keys and the bytes that went."""
        new, gone = checked_puts(puts), list(deletes)
        self.store.write(new, gone)
        n_bytes = sum(len(value) for value in new.values())
        self._count(writes=1, keys_put=len(new), bytes_put=n_bytes, keys_deleted=len(gone))

    def _counted(self, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for key, value in pairs:
            self._count(keys_scanned=1, bytes_scanned=len(value))
            yield key, value

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                setattr(self.accesses, name, getattr(self.accesses, name) + number)


class DelayingStore(WrappingStore):
    """Waits before every operation: some seconds, or for as long as a function of its name takes.

    A function that waits for an event holds a background write until a test lets it go.
    """

    def __init__(self, store: Store, delay: float | Callable[[str], object]) -> None:
        super().__init__(store)
        self._delay = delay

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """Wait, then get."""
        self._wait("get_many")
        return self.store.get_many(keys)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Wait, then scan."""
        self._wait("scan")
        return self.store.scan(prefix)

    def write(self, puts: Pairs = (), deletes: Iterable[bytes] = ()) -> None:
        """Wait, then write."""
        self._wait("write")
        self.store.write(puts, deletes)

    def _wait(self, operation: str) -> None:
        if callable(self._delay):
            self._delay(operation)
        else:
            time.sleep(self._delay)


class FailingStore(WrappingStore):
    """Fails as long as `failing` is true, and at the nth of the operations it was told to fail.

    `nth` counts from 1, over `operations` alone. With `after`, the operation happens and its answer
    gets lost, as when a connection breaks at the wrong moment.
    """

    def __init__(
        self,
        store: Store,
        *,
        nth: int | None = None,
        operations: Collection[str] = OPERATIONS,
        after: bool = False,
        error: type[StoreError] = StoreUnavailableError,
    ) -> None:
        super().__init__(store)
        self.failing = False
        self.after = after
        self.n_operations = 0
        self._nth, self._operations, self._error = nth, operations, error
        self._lock = threading.Lock()

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """Get, or fail."""
        return self._do("get_many", lambda: self.store.get_many(keys))

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Scan, or fail at once."""
        return self._do("scan", lambda: self.store.scan(prefix))

    def write(self, puts: Pairs = (), deletes: Iterable[bytes] = ()) -> None:
        """Write, or fail before or after it."""
        self._do("write", lambda: self.store.write(puts, deletes))

    def _do(self, operation: str, work: Callable[[], Found]) -> Found:
        is_due = self._is_due(operation)
        if is_due and not self.after:
            raise self._failure(operation)
        found = work()
        if is_due:
            raise self._failure(operation)
        return found

    def _is_due(self, operation: str) -> bool:
        if operation not in self._operations:
            return False
        with self._lock:
            self.n_operations += 1
            return self.failing or self.n_operations == self._nth

    def _failure(self, operation: str) -> StoreError:
        return self._error.refused(
            self.url, operation, found="it fails on purpose", remedy="Set failing = False and try again."
        )
