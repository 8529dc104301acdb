"""Redis: a store in any server that speaks its protocol (Redis, Valkey, KeyDB, ...).

    write       MULTI, DEL ..., MSET ..., EXEC     all or nothing, for every other client
    get_many    MGET                               one command, so one moment
    scan        SCAN for the keys, sorted here, then MGET by pages

A lost connection is tried again here, a few times with growing pauses, and nowhere else: the
client's own retries are off. Trying again is safe because a batch says what is to be, not what is to
change. How durable a write is, the server decides: with `appendonly yes` and `appendfsync always` it
survives a crash, with `everysec` the last second may be lost, without either everything is.

A server that may evict keys to make room is refused: it would lose parts of windows without a word.
"""

from __future__ import annotations

import ipaddress
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import redis
from redis import exceptions
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.retry import Retry

from sash.errors import (
    DeclarationError,
    StoreAccessError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from sash.stores.contract import PAGE, Pairs, Store, checked_keys, checked_puts, closed
from sash.stores.urls import Url, flag, number

PORT = 6379
SCAN_COUNT = 1000  # keys the server looks at in one step of a scan
PAUSE_S, PAUSE_MAX_S = 0.05, 1.0  # before trying again: 50 ms, doubled each time
SPECIAL = b"\\*?[]^-"  # what means something in a pattern

Found = TypeVar("Found")


def open_url(
    url: Url,
    prefix: str = "sash:",
    password: str | None = None,
    timeout: str | float = 5,
    retries: str | int = 5,
    accept_eviction: str | bool = False,
    ca: str | None = None,
) -> RedisStore:
    """Open `redis://user:password@host:port/database`, or `rediss://` for TLS.

    Every key begins with `prefix`. `timeout` is in seconds, for connecting and for an answer; `ca`
    names a file of certificates to trust instead of the system's.
    """
    _check_encryption(url, password=password, ca=ca)
    seconds = number("timeout", timeout, least=0.001)
    client = redis.Redis(
        host=url.host or "localhost",
        port=url.port or PORT,
        db=_database(url.path),
        username=url.user or None,
        password=password or url.password,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=Retry(NoBackoff(), 0),  # ours is the only one
        protocol=2,  # known to every server
        ssl=url.scheme == "rediss",
        ssl_cert_reqs="required",
        ssl_check_hostname=True,
        ssl_ca_certs=ca,
    )
    tries = int(number("retries", retries, least=0))
    store = RedisStore(client, url=_shown(url, prefix), prefix=prefix.encode(), retries=tries)
    try:
        store.check_server(accept_eviction=flag("accept_eviction", accept_eviction))
    except BaseException:
        store.close()
        raise
    return store


class RedisStore(Store):
    """A store in a server, reached through a client of redis-py that does not retry by itself."""

    def __init__(self, client: redis.Redis, *, url: str, prefix: bytes = b"sash:", retries: int = 5) -> None:
        self._client: redis.Redis | None = client
        self._url = url
        self._prefix = prefix
        self._retry = Retry(ExponentialWithJitterBackoff(base=PAUSE_S, cap=PAUSE_MAX_S), retries)

    @property
    def url(self) -> str:
        """Where the store is, without the password."""
        return self._url

    def check_server(self, *, accept_eviction: bool = False) -> None:
        """Refuse a server that may evict keys; one that does not tell gets a warning."""
        try:
            policy = self._ask("open", lambda client: client.info("memory")).get("maxmemory_policy", "unknown")
        except StoreAccessError as error:
            if not isinstance(error.__cause__, exceptions.NoPermissionError):
                raise
            policy = "unknown"
        if accept_eviction:
            return
        if policy == "unknown":
            warnings.warn(f"{self.url} does not tell its maxmemory-policy; it should be noeviction", stacklevel=4)
        elif policy.startswith("allkeys"):  # those that begin with volatile spare keys that never expire, as ours
            raise StoreError.refused(
                self.url,
                "open",
                found=f"its maxmemory-policy is {policy}, so it may delete parts of a window to make room",
                remedy="Set it to noeviction, or open it with ?accept_eviction=yes if losing windows is fine.",
            )

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """The values of keys, in their order, as of one moment."""
        return self._get("get_many", checked_keys(keys))

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every key with a prefix and its value; costs a walk over all keys of the database."""
        pattern = escaped(self._prefix + prefix) + b"*"
        found = self._ask("scan", lambda client: set(client.scan_iter(pattern, count=SCAN_COUNT)))
        return self._pairs(sorted(key[len(self._prefix) :] for key in found))

    def write(self, puts: Pairs = (), deletes: Iterable[bytes] = ()) -> None:
        """Delete keys and put pairs, all or nothing; as durable as the server is."""
        new = {self._prefix + key: value for key, value in checked_puts(puts).items()}
        gone = [self._prefix + key for key in checked_keys(deletes)]

        def change(client: Any) -> None:
            with client.pipeline(transaction=True) as batch:
                if gone:
                    batch.delete(*gone)
                if new:
                    batch.mset(new)
                batch.execute()

        self._ask("write", change)

    def close(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _pairs(self, keys: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for start in range(0, len(keys), PAGE):
            page = keys[start : start + PAGE]
            for key, value in zip(page, self._get("scan", page), strict=True):
                if value is not None:  # deleted since its key was found
                    yield key, value

    def _get(self, operation: str, keys: list[bytes]) -> list[bytes | None]:
        wanted = [self._prefix + key for key in keys]
        return self._ask(operation, lambda client: client.mget(wanted) if wanted else [])

    def _ask(self, operation: str, question: Callable[[Any], Found]) -> Found:
        """Ask the server, again if the connection was lost."""
        client = self._client
        if client is None:
            raise closed(self.url, operation)
        with self._explaining(operation):
            return self._retry.call_with_retry(lambda: question(client), lambda error: None, _is_worth_a_retry)

    @contextmanager
    def _explaining(self, operation: str) -> Iterator[None]:
        try:
            yield
        except exceptions.RedisError as error:
            kind, found, remedy = _diagnosis(error)
            raise kind.refused(self.url, operation, found=found, remedy=remedy) from error


def escaped(literal: bytes) -> bytes:
    r"""Write bytes as a pattern that only they match.

    >>> escaped(b"a*b[1]")
    b'a\\*b\\[1\\]'
    """
    return b"".join(b"\\" + bytes([byte]) if byte in SPECIAL else bytes([byte]) for byte in literal)


def _check_encryption(url: Url, *, password: str | None, ca: str | None) -> None:
    if url.scheme == "rediss":
        return
    if ca is not None:
        raise DeclarationError("ca= is for TLS: write rediss:// instead of redis://")
    if (password or url.password) and not _is_loopback(url.host or "localhost"):
        # Above here: open_url, open_store, and then whoever called that.
        warnings.warn(f"the password for {url.host} travels unencrypted; rediss:// encrypts", stacklevel=4)


def _shown(url: Url, prefix: str) -> str:
    user = f"{url.user}@" if url.user else ""
    address = f"{user}{url.host or 'localhost'}:{url.port or PORT}/{_database(url.path)}"
    return f"{url.scheme}://{address}?prefix={prefix}"


def _database(path: str) -> int:
    name = path.strip("/")
    if name and not name.isdigit():
        raise DeclarationError("the path of a redis store is the number of a database, as in redis://localhost/0")
    return int(name or 0)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_worth_a_retry(error: Exception) -> bool:
    return not isinstance(error, (exceptions.AuthenticationError, exceptions.AuthorizationError))


REFUSALS: list[tuple[Any, type[StoreError], str, str]] = [
    (
        (exceptions.AuthenticationError, exceptions.AuthorizationError),
        StoreAccessError,
        "the server does not accept this user and password",
        "Check both; a password in an address is written with %-escapes.",
    ),
    (
        exceptions.NoPermissionError,
        StoreAccessError,
        "the server does not permit it to this user",
        "An ACL for it: ~sash:* +mget +mset +del +scan +multi +exec +info (and your own ?prefix=).",
    ),
    (
        exceptions.ReadOnlyError,
        StoreReadOnlyError,
        "the server is a read-only replica",
        "Connect to its primary.",
    ),
    (
        exceptions.OutOfMemoryError,
        StoreFullError,
        "the server has reached its maxmemory",
        "Give it more, or delete something; nothing was changed.",
    ),
    (
        exceptions.BusyLoadingError,
        StoreUnavailableError,
        "the server is still loading its data",
        "Try again when it is up.",
    ),
    (
        exceptions.TimeoutError,
        StoreUnavailableError,
        "the server did not answer in time",
        "Try again, or give it a longer ?timeout=.",
    ),
    (
        exceptions.ConnectionError,
        StoreUnavailableError,
        "the server cannot be reached",
        "Try again when it is up.",
    ),
]


def _diagnosis(error: exceptions.RedisError) -> tuple[type[StoreError], str, str]:
    """Which error it is for the user, what was found, and what to do."""
    said = str(error).rpartition("caused error: ")[2][:200]  # the client puts keys and values before it
    for kinds, refusal, found, remedy in REFUSALS:
        if isinstance(error, kinds):
            return refusal, f"{found} ({said})", remedy
    return StoreError, f"the server answered: {said}", "See the cause above."
