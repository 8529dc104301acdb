"""Addresses of stores, and what of them may be shown.

    scheme://user:password@host:port/path?option=value

A password that was not written with %-escapes makes an address fall apart in the wrong places, so
that a piece of it can turn up as port, path or option. Errors therefore repeat the scheme and the
names of known options, and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from sash.errors import DeclarationError

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True)
class Url:
    """An address in parts; the secret one is not shown."""

    scheme: str
    user: str | None
    password: str | None = field(repr=False)
    host: str | None
    port: int | None
    path: str
    options: dict[str, str] = field(repr=False)

    def require_nothing_but_a_scheme(self) -> None:
        """Refuse an address with more in it than a scheme."""
        if self.host or self.path:
            raise DeclarationError(f"a {self.scheme} store has no address: write {self.scheme}: and nothing after it")

    def file_path(self) -> str:
        """The path of a store that is a file or directory; relative if there are no slashes before it."""
        if self.host or self.user or not self.path.strip("/"):
            raise DeclarationError(
                f"a {self.scheme} store needs a path, and no host: "
                f"{self.scheme}:///absolute/path or {self.scheme}:relative/path"
            )
        if "\0" in self.path:
            raise DeclarationError(f"the path of a {self.scheme} store has a NUL character in it")
        return self.path


def parse(text: str) -> Url:
    """Take an address apart."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # Not chained: the message of the cause has in it what may be a piece of a password.
        raise _unreadable(text) from None
    if parts.fragment or (parts.netloc and "@" in parts.path + parts.query):
        raise _unreadable(text)
    return Url(
        scheme=parts.scheme,
        user=_decoded(parts.username),
        password=_decoded(parts.password),
        host=parts.hostname,
        port=port,
        path=unquote(parts.path),
        options=dict(parse_qsl(parts.query, keep_blank_values=True)),
    )


def n_bytes(name: str, given: str | int) -> int:
    """A number of bytes: 65536, "65536", "64K", "1G" (powers of 1024)."""
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)(i?B)?", str(given), re.IGNORECASE)
    if found is None or int(found[1]) == 0:
        raise DeclarationError(f"{name} is a number of bytes such as 65536, 64M or 1G, got {given!r}")
    return int(found[1]) * UNITS[found[2].upper()]


def number(name: str, given: str | float, *, least: float) -> float:
    """A number that is not too small."""
    try:
        found = float(given)
    except ValueError:
        found = float("nan")
    if not least <= found < float("inf"):
        raise DeclarationError(f"{name} is a number of at least {least}, got {given!r}")
    return found


def flag(name: str, given: str | bool) -> bool:
    """A yes or no."""
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if str(given).lower() not in known:
        raise DeclarationError(f"{name} is yes or no, got {given!r}")
    return known[str(given).lower()]


def _decoded(part: str | None) -> str | None:
    return None if part is None else unquote(part)


def _unreadable(text: str) -> DeclarationError:
    return DeclarationError(
        f"the address of this {text.partition(':')[0]} store cannot be read. Characters such as / ? # @ : [ in a "
        "user, a password or an option are written with %-escapes: urllib.parse.quote(password, '')"
    )
