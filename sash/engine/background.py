"""Writes and reads of a store beside the work: one thread, in order, nothing lost on failure.

Chunks on their way to the store are remembered until they have arrived, so that a read finds them and a
failed write can be made again. A store that is gone is noticed at the latest when too much waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from sash.errors import StoreError
from sash.stores.contract import Store

N_WAITING_MAX = 4096  # chunks, 16 MB
N_DELETED_AT_ONCE = 1024


class Background:
    """A store, with a thread of its own for what nobody waits for."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sash-store")
        self._waiting: dict[bytes, bytes] = {}  # chunks not known to have arrived
        self._jobs: list[tuple[Future[None], dict[bytes, bytes]]] = []
        self._reads: dict[bytes, tuple[Future[list[bytes | None]], int]] = {}

    def put(self, chunks: dict[bytes, bytes]) -> None:
        """Write chunks soon."""
        self._waiting.update(chunks)
        self._collect()
        self._jobs.append((self._thread.submit(self.store.write, chunks), chunks))

    def make_room(self) -> None:
        """Let more chunks come; raises if too many wait for a store that takes none."""
        self._collect()
        if len(self._waiting) > N_WAITING_MAX:
            self.drain()

    def prefetch(self, keys: list[bytes]) -> None:
        """Read chunks soon, these and no others."""
        self._reads = {key: read for key, read in self._reads.items() if key in keys}
        wanted = [key for key in keys if key not in self._waiting and key not in self._reads]
        if wanted:
            future = self._thread.submit(self.store.get_many, wanted)
            self._reads.update({key: (future, i) for i, key in enumerate(wanted)})

    def get(self, keys: list[bytes]) -> list[bytes | None]:
        """The values of keys: what waits, what was prefetched, and only then what must be read now."""
        found: dict[bytes, bytes | None] = {}
        for key in keys:
            if key in self._waiting:
                found[key] = self._waiting[key]
            elif key in self._reads:
                found[key] = self._prefetched(key)
        missing = [key for key in keys if found.get(key) is None]
        if missing:
            found.update(zip(missing, self.store.get_many(missing), strict=True))
        return [found[key] for key in keys]

    def _prefetched(self, key: bytes) -> bytes | None:
        future, i = self._reads.pop(key)
        try:
            return future.result()[i]
        except StoreError:
            return None  # read again by whoever waits, who then hears of it

    def waiting(self) -> dict[bytes, bytes]:
        """Wait for the writes under way; the chunks that have not arrived."""
        for future, _ in self._jobs:
            future.exception()
        self._collect()
        return dict(self._waiting)

    def drain(self) -> None:
        """Wait until everything has arrived; what failed is written again, and its error raised if it fails again."""
        left = self.waiting()
        if left:
            self.store.write(left)
            self.arrived(left)

    def arrived(self, chunks: Iterable[bytes]) -> None:
        """Forget chunks that are in the store."""
        for key in chunks:
            self._waiting.pop(key, None)

    def delete(self, keys: Iterable[bytes]) -> Future[None]:
        """Delete chunks soon."""
        return self._thread.submit(self._delete, keys)

    def _delete(self, keys: Iterable[bytes]) -> None:
        remaining = iter(keys)
        while some := list(islice(remaining, N_DELETED_AT_ONCE)):
            self.store.delete_many(some)

    def close(self) -> None:
        """Finish what is under way and let the thread go."""
        self._thread.shutdown(wait=True)

    def _collect(self) -> None:
        """Strike off what has been done."""
        under_way = []
        for future, chunks in self._jobs:
            if not future.done():
                under_way.append((future, chunks))
            elif future.exception() is None:
                for key, value in chunks.items():
                    if self._waiting.get(key) is value:
                        del self._waiting[key]
        self._jobs = under_way
