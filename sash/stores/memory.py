"""A store in memory: the model of all others, gone when it is closed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from sash.stores.contract import Pairs, Store, checked_keys, checked_puts, closed
from sash.stores.urls import Url


def open_url(url: Url) -> MemoryStore:
    """Open `memory:`, a new and empty store every time."""
    url.require_nothing_but_a_scheme()
    return MemoryStore()


class MemoryStore(Store):
    """A dict behind a lock."""

    def __init__(self) -> None:
        self._pairs: dict[bytes, bytes] | None = {}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where the store is."""
        return "memory:"

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """The values of keys, in their order."""
        wanted = checked_keys(keys)
        with self._lock:
            pairs = self._open("get_many")
            return [pairs.get(key) for key in wanted]

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every key with a prefix and its value; here, all as of this call."""
        with self._lock:
            found = [pair for pair in self._open("scan").items() if pair[0].startswith(prefix)]
        return iter(sorted(found))

    def write(self, puts: Pairs = (), deletes: Iterable[bytes] = ()) -> None:
        """Delete keys and put pairs, all or nothing."""
        new, gone = checked_puts(puts), checked_keys(deletes)
        with self._lock:
            pairs = self._open("write")
            for key in gone:
                pairs.pop(key, None)
            pairs.update(new)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._pairs = None

    def _open(self, operation: str) -> dict[bytes, bytes]:
        if self._pairs is None:
            raise closed(self.url, operation)
        return self._pairs
