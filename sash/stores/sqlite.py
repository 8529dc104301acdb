"""SQLite: a store in one file, with nothing to install.

One table, one connection behind a lock, a write-ahead log that is synced at every commit. Slower
than LMDB by a factor of three to six, since every value passes through SQL.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sash.errors import StoreError, StoreFullError, StoreReadOnlyError, StoreUnavailableError
from sash.stores.contract import Pairs, Store, checked_keys, checked_puts, closed, page_of, pages
from sash.stores.urls import Url, n_bytes, number

PAGE_SIZE = 4096  # SQLite's own, said here because max_size counts in it
TABLE = "CREATE TABLE IF NOT EXISTS pairs (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
GET = "SELECT value FROM pairs WHERE key = ?"
PUT = "INSERT OR REPLACE INTO pairs VALUES (?, ?)"
DELETE = "DELETE FROM pairs WHERE key = ?"
FROM = "SELECT key, value FROM pairs WHERE key >= ? ORDER BY key"


def open_url(url: Url, timeout: str | float = 30, max_size: str | int = "16T") -> SqliteStore:
    """Open `sqlite:///path`, a file that is made if it is not there."""
    seconds = number("timeout", timeout, least=0)
    return SqliteStore(url.file_path(), timeout_s=seconds, max_size=n_bytes("max_size", max_size))


class SqliteStore(Store):
    """A store in a file; `timeout_s` is how long to wait for another process that writes."""

    def __init__(self, path: str, *, timeout_s: float = 30.0, max_size: int = 2**44) -> None:
        self._path = Path(path).absolute()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        with self._explaining("open"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _connect(self._path, timeout_s, max_size)

    @property
    def url(self) -> str:
        """Where the store is."""
        return f"sqlite://{self._path}"

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """The values of keys, in their order, as of one moment."""
        wanted = checked_keys(keys)
        with self._transaction("get_many", "BEGIN") as connection:
            rows = [connection.execute(GET, (key,)).fetchone() for key in wanted]
        return [row and row[0] for row in rows]

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every key with a prefix and its value; each page of 256 as of one moment."""
        self._open("scan")
        return pages(lambda start: self._page(start, prefix), prefix)

    def write(self, puts: Pairs = (), deletes: Iterable[bytes] = ()) -> None:
        """Delete keys and put pairs, all or nothing; on disk when it returns."""
        new, gone = checked_puts(puts), checked_keys(deletes)
        with self._transaction("write", "BEGIN IMMEDIATE") as connection:
            connection.executemany(DELETE, ((key,) for key in gone))
            connection.executemany(PUT, new.items())

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _page(self, start: bytes, prefix: bytes) -> list[tuple[bytes, bytes]]:
        with self._transaction("scan", "BEGIN") as connection, closing(connection.execute(FROM, (start,))) as rows:
            return page_of(prefix, rows)

    def _open(self, operation: str) -> sqlite3.Connection:
        if self._connection is None:
            raise closed(self.url, operation)
        return self._connection

    @contextmanager
    def _transaction(self, operation: str, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explaining(operation):
            connection = self._open(operation)
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _explaining(self, operation: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, StoreError):
                raise
            kind, found, remedy = _diagnosis(error)
            raise kind.refused(self.url, operation, found=found, remedy=remedy) from error


def _connect(path: Path, timeout_s: float, max_size: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # NORMAL would lose the last commits with the power
        connection.execute(f"PRAGMA max_page_count = {min(max_size // PAGE_SIZE, 2**32 - 2)}")
        connection.execute(TABLE)
    except BaseException:
        connection.close()
        raise
    return connection


def _diagnosis(error: Exception) -> tuple[type[StoreError], str, str]:
    """Which error it is for the user, what was found, and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary one; the rest says more precisely where
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError, f"disk or max_size is full ({error})", "Make room, or open it with a larger ?max_size=."
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM) or isinstance(error, OSError):
        return StoreReadOnlyError, f"the file cannot be written ({error})", "Allow this user to write there."
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailableError, f"another process is writing ({error})", "Wait, or give it a longer ?timeout=."
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreError, f"what is there is no SQLite database, or a damaged one ({error})", "Use another file."
    return StoreError, str(error), "See the cause above."
