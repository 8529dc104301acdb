"""Writes and reads of a store beside the work: one thread, in order, nothing lost on failure.

Chunks wait here until they have arrived in the store, so that a read finds them and a failed write can
be made again. While one batch is being written the next one gathers: the busier the store, the larger
the batches. A store that takes nothing is noticed when too much waits, or at the next flush.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Lock

from sash.errors import StoreError
from sash.stores.contract import Store

N_WAITING_MAX = 4096  # chunks, 16 MB
N_DELETED_AT_ONCE = 1024

Chunks = dict[bytes, bytes]


class Background:
    """A store, with a thread of its own for what nobody waits for."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sash-store")
        self._lock = Lock()  # over the next two
        self._waiting: Chunks = {}  # not known to have arrived
        self._fresh: Chunks = {}  # of these: not yet tried
        self._reads: dict[bytes, tuple[Future[list[bytes | None]], int]] = {}

    def put(self, chunks: Chunks) -> None:
        """Write chunks soon."""
        with self._lock:
            is_idle = not self._fresh
            self._waiting.update(chunks)
            self._fresh.update(chunks)
        if is_idle:
            self._thread.submit(self._write_fresh)

    def _write_fresh(self) -> None:
        with self._lock:
            batch, self._fresh = self._fresh, {}
        try:
            self.store.write(batch)
        except StoreError:
            return  # they go on waiting; whoever drains hears of it
        self.arrived(batch)

    def arrived(self, chunks: Chunks) -> None:
        """Forget chunks that are in the store, unless there are newer ones in their places."""
        with self._lock:
            for key, value in chunks.items():
                if self._waiting.get(key) is value:
                    del self._waiting[key]

    def waiting(self) -> Chunks:
        """Wait for everything under way; the chunks that have not arrived."""
        self._thread.submit(int).result()
        with self._lock:
            return dict(self._waiting)

    def make_room(self) -> None:
        """Let more chunks come; if too many wait, wait for them, and raise if the store takes none."""
        if len(self._waiting) > N_WAITING_MAX:
            left = self.waiting()
            if left:
                self.store.write(left)
                self.arrived(left)

    def prefetch(self, keys: list[bytes]) -> None:
        """Read chunks soon, these and no others."""
        self._reads = {key: read for key, read in self._reads.items() if key in keys}
        with self._lock:
            wanted = [key for key in keys if key not in self._waiting and key not in self._reads]
        if wanted:
            future = self._thread.submit(self.store.get_many, wanted)
            self._reads.update({key: (future, i) for i, key in enumerate(wanted)})

    def get(self, keys: list[bytes]) -> list[bytes | None]:
        """The values of keys: what waits, what was prefetched, and only then what must be read now."""
        with self._lock:
            found: dict[bytes, bytes | None] = {key: self._waiting[key] for key in keys if key in self._waiting}
        for key in keys:
            if key in self._reads and key not in found:
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
