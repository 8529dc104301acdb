"""LMDB: a store in a directory, shared by processes; the embedded default.

    write ── one write transaction, on disk when it returns
               map full?  abort, double the map, once more ... up to max_size
    get_many, a page of a scan ── one read transaction: a snapshot that no writer disturbs

An LMDB database lives in a map of memory whose size is set beforehand. It costs address space only;
the file grows with the data. A larger map needs a moment without any transaction in this process:
`_Gate` provides it. LMDB allows one environment per directory and process, so all stores of a process
at one path share it.

Whatever is read through the map counts as memory of this process until the system wants it back, up
to the size of the file; a write reads the pages that it changes. So the map is made anew after every
few thousand keys, which lets go of it; the pages stay in the cache of the system. Reading 80 MB of
chunks in order thus adds a few MB; without it, all 80.

Values of 4,080 bytes take exactly a page with its header; one byte more takes two.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from sash.errors import DeclarationError, StoreError, StoreFullError, StoreReadOnlyError
from sash.stores.contract import Pairs, Store, checked_keys, checked_puts, closed, page_of, pages
from sash.stores.urls import Url, n_bytes

FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
READ_ONLY = {errno.EACCES, errno.EROFS, errno.EPERM}

KEYS_PER_MAP = 1000  # the system maps up to 16 pages around one that is read: 64 MB at worst
PATIENCE = 8  # so many times as many keys, before waiting for others to let the map be changed

Found = TypeVar("Found")


def open_url(url: Url, map_size: str | int = "64M", max_size: str | int = "1T") -> LmdbStore:
    """Open `lmdb:///path`, a directory that is made if it is not there."""
    return LmdbStore(url.file_path(), map_size=n_bytes("map_size", map_size), max_size=n_bytes("max_size", max_size))


class LmdbStore(Store):
    """A store in a directory."""

    def __init__(self, path: str | os.PathLike[str], *, map_size: int = 2**26, max_size: int = 2**40) -> None:
        if map_size > max_size:
            raise DeclarationError(
                f"map_size={map_size} is more than max_size={max_size}, up to which the map may grow"
            )
        self._path = Path(path).absolute()
        self._max_size = max_size
        with self._explaining("open"):
            self._shared: _Environment | None = _acquire(self._path, map_size)

    @property
    def url(self) -> str:
        """Where the store is."""
        return f"lmdb://{self._path}"

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """The values of keys, in their order, as of one moment."""
        wanted = checked_keys(keys)
        return self._read("get_many", lambda txn: [txn.get(key) for key in wanted])

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every key with a prefix and its value; each page of 256 as of one moment."""
        # A transaction that stayed open between two pages could see its map replaced, and would
        # keep the pages that others free from being used again.
        self._environment("scan")
        return pages(lambda start: self._read("scan", lambda txn: _page(txn, start, prefix)), prefix)

    def write(self, puts: Pairs = (), deletes: Iterable[bytes] = ()) -> None:
        """Delete keys and put pairs, all or nothing; on disk when it returns."""
        new, gone = checked_puts(puts), checked_keys(deletes)

        def change(txn: Any) -> None:
            for key in gone:
                txn.delete(key)
            for key, value in sorted(new.items()):  # neighbours share pages
                txn.put(key, value)

        environment = self._environment("write")
        with self._explaining("write"), environment.writing:
            self._transact(environment, change, write=True)
            environment.count_keys(len(new) + len(gone))

    def close(self) -> None:
        """Let go of the directory."""
        shared, self._shared = self._shared, None
        if shared is not None:
            _release(shared)

    def _environment(self, operation: str) -> _Environment:
        if self._shared is None:
            raise closed(self.url, operation)
        return self._shared

    def _read(self, operation: str, work: Callable[[Any], list[Found]]) -> list[Found]:
        environment = self._environment(operation)
        with self._explaining(operation):
            found = self._transact(environment, work, write=False)
            environment.count_keys(len(found))
            return found

    def _transact(self, environment: _Environment, work: Callable[[Any], Found], *, write: bool) -> Found:
        """Do something in a transaction, and again whenever the map had to change."""
        while True:
            try:
                return environment.transact(work, write=write)
            except lmdb.MapResizedError:
                environment.resize(lambda size: 0)  # another process has: 0 takes over its size
            except lmdb.MapFullError:
                environment.resize(self._doubled)

    def _doubled(self, size: int) -> int:
        if size >= self._max_size:
            raise StoreFullError.refused(
                self.url,
                "write",
                found=f"its map of {size:,} bytes is full, and may not grow beyond max_size={self._max_size:,}",
                remedy="Delete something, or open it with a larger ?max_size=.",
            )
        return min(2 * size, self._max_size)

    @contextmanager
    def _explaining(self, operation: str) -> Iterator[None]:
        try:
            yield
        except (lmdb.Error, OSError) as error:
            kind, found, remedy = _diagnosis(error)
            raise kind.refused(self.url, operation, found=found, remedy=remedy) from error


class _Gate:
    """Any number inside at once, or one alone."""

    def __init__(self) -> None:
        self._entrance = threading.Lock()
        self._left = threading.Condition()
        self._n_inside = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._entrance, self._left:
            self._n_inside += 1
        try:
            yield
        finally:
            with self._left:
                self._n_inside -= 1
                self._left.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._entrance, self._left:
            self._left.wait_for(lambda: self._n_inside == 0)
            yield

    def is_empty(self) -> bool:
        return self._n_inside == 0


class _Environment:
    """The one environment of this process for a directory, and how many stores use it."""

    def __init__(self, path: str, map_size: int) -> None:
        self.path = path
        self.n_stores = 0
        self.writing = threading.Lock()  # before the gate, so that a thread waiting for its turn is not inside
        self._gate = _Gate()
        self._n_keys = 0
        self._lmdb = lmdb.open(path, map_size=map_size, max_readers=1024)

    def transact(self, work: Callable[[Any], Found], *, write: bool) -> Found:
        """Do something in a transaction of its own."""
        with self._gate.shared(), self._lmdb.begin(write=write) as txn:
            return work(txn)

    def count_keys(self, more: int) -> None:
        """Let go of the pages that were read, once they are many; if others are busy, rather later."""
        self._n_keys += more  # two threads may lose a count, which only delays it
        is_urgent = self._n_keys >= PATIENCE * KEYS_PER_MAP
        if self._n_keys >= KEYS_PER_MAP and (is_urgent or self._gate.is_empty()):
            self._n_keys = 0
            self.resize(lambda size: size)

    def resize(self, wanted: Callable[[int], int]) -> None:
        """Change the size of the map when no transaction is open."""
        with self._gate.alone():
            self._lmdb.set_mapsize(wanted(self._lmdb.info()["map_size"]))

    def close(self) -> None:
        with self._gate.alone():
            self._lmdb.close()


_environments: dict[str, _Environment] = {}
_opening = threading.Lock()


def _acquire(path: Path, map_size: int) -> _Environment:
    with _opening:
        path.mkdir(parents=True, exist_ok=True)
        name = os.path.realpath(path)
        if name not in _environments:
            _environments[name] = _Environment(name, map_size)
        _environments[name].n_stores += 1
        return _environments[name]


def _release(environment: _Environment) -> None:
    with _opening:
        environment.n_stores -= 1
        if environment.n_stores == 0:
            del _environments[environment.path]
            environment.close()


def _page(txn: Any, start: bytes, prefix: bytes) -> list[tuple[bytes, bytes]]:
    cursor = txn.cursor()
    return page_of(prefix, cursor.iternext()) if cursor.set_range(start) else []


def _diagnosis(error: Exception) -> tuple[type[StoreError], str, str]:
    """Which error it is for the user, what was found, and what to do."""
    code = error.errno if isinstance(error, OSError) else getattr(error, "code", None)
    if isinstance(error, lmdb.DiskError) or code in FULL:
        return StoreFullError, f"the disk is full ({error})", "Make room and do it again; nothing was changed."
    if code == errno.EIO:  # LMDB's word for a page written in part, which is how most disks say that they are full
        return (
            StoreFullError,
            f"the disk is full, or fails ({error})",
            "Make room and do it again; nothing was changed.",
        )
    if isinstance(error, lmdb.ReadonlyError) or code in READ_ONLY:
        return StoreReadOnlyError, f"the directory cannot be written ({error})", "Allow this user to write there."
    if isinstance(error, (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError)):
        return StoreError, f"what is there is no LMDB database, or a damaged one ({error})", "Use another directory."
    if isinstance(error, lmdb.PanicError):
        return StoreError, f"LMDB could not write its own pages ({error})", "Close every store there and open it again."
    return StoreError, str(error), "See the cause above."
