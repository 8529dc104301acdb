"""Every exception Sash raises on purpose.

    SashError
    ├── DeclarationError (ValueError)   an aggregate, window or option that makes no sense
    │   ├── UnknownNameError            no such algorithm, aggregate or column; names the nearest
    │   └── UnsupportedError            this algorithm cannot do that; names one that can
    ├── EmptyWindowError (IndexError)   evict() with nothing to evict
    ├── DataError (ValueError)          columns of the wrong length, type or order
    │   └── SumOverflowError            an integer sum that does not fit into 64 bits (OverflowError)
    ├── FormatError (ValueError)        bytes that are not a snapshot, or not of this window
    └── StoreError                      a store refused; what it held before is as it was
        ├── StoreUnavailableError       closed, gone or too slow; it may come back (ConnectionError)
        ├── StoreFullError              no room for what was to be written
        ├── StoreReadOnlyError          it can be read, or not even that, but not written
        └── StoreAccessError            wrong user or password, or not permitted (PermissionError)

A message says what was found, what was wanted, and what to do about it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Self


class SashError(Exception):
    """The root of all errors raised on purpose."""


class DeclarationError(SashError, ValueError):
    """An aggregate, window or option that makes no sense."""


class UnknownNameError(DeclarationError):
    """A name nobody knows."""

    @classmethod
    def among(cls, kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
        """Build the message: what kind of thing, which name, and the nearest known one."""
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."
        return cls(f"unknown {kind} {name!r}. {hint}")


class UnsupportedError(DeclarationError):
    """Something this algorithm or aggregate cannot do."""


class EmptyWindowError(SashError, IndexError):
    """An eviction from an empty window."""


class DataError(SashError, ValueError):
    """Input columns that do not fit what was asked of them."""


class SumOverflowError(DataError, OverflowError):
    """An integer sum beyond 64 bits; Sash never wraps around."""


class FormatError(SashError, ValueError):
    """Bytes that are not what they should be."""


class StoreError(SashError):
    """A store that refused an operation, and still holds what it held before."""

    @classmethod
    def refused(cls, store: str, operation: str, *, found: str, remedy: str) -> Self:
        """Build the message: which store, what it should have done, why it did not, what to do."""
        return cls(f"{store}: cannot {operation}: {found}. {remedy}")


class StoreUnavailableError(StoreError, ConnectionError):
    """A store that is closed, gone or too slow."""


class StoreFullError(StoreError):
    """A store without room for what was to be written."""


class StoreReadOnlyError(StoreError):
    """A store that cannot be written."""


class StoreAccessError(StoreError, PermissionError):
    """A store that does not know this user, or does not permit this to them."""
