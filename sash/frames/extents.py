"""How far back a window reaches and when it answers, as declared: before any column is known.

Lengths are kept as durations or plain numbers. Which number of ticks an hour is depends on the type
of the column it is measured on; `measuring` finds that out when a table comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate
from sash.errors import DeclarationError
from sash.windows.durations import Duration, Length, read_duration, read_length
from sash.windows.frames import CLOSED, TIES
from sash.windows.policies import Policy

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Named = tuple[tuple[str, Aggregate], ...]


@dataclass(frozen=True, repr=False)
class Extent:
    """Which rows belong to the window of a row; `kind` is the method that declared it."""

    kind: str
    column: str | None = None  # of delta and since
    rows: int | None = None
    length: Length | None = None  # of range, session and delta
    closed: str = "both"
    ties: str = "peers"
    lag: Length = 0
    min_rows: int = 0
    policy: Callable[..., Any] | Policy | None = None
    aggregates: Named = ()  # those the policy looks at

    @property
    def measures_order(self) -> bool:
        """Whether it subtracts values of the order column."""
        return self.kind in ("range", "session")

    def __repr__(self) -> str:
        policy = () if self.policy is None else (getattr(self.policy, "__name__", repr(self.policy)),)
        given = {field.name: getattr(self, field.name) for field in fields(self)[1:-2]}
        first = ["column", "length", *(["rows"] if self.kind == "rows" else [])]
        plain = [repr(given.pop(name)) for name in first if given[name] is not None]
        changed = [f"{name}={value!r}" for name, value in given.items() if value != DEFAULTS.get(name, value)]
        aggregates = [f"{name}={show_aggregate(each)}" for name, each in self.aggregates]
        return f"{self.kind}({', '.join([*policy, *plain, *changed, *aggregates])})"


DEFAULTS = {field.name: field.default for field in fields(Extent)[1:]}


@dataclass(frozen=True)
class Instant:
    """A point of time: nanoseconds since 1970, in UTC if it is aware, by the clock on the wall if not."""

    nanoseconds: int
    is_aware: bool

    def __repr__(self) -> str:
        text = str(np.datetime64(self.nanoseconds, "ns")).rstrip("0").rstrip(".")
        return repr(text + ("+00:00" if self.is_aware else ""))


Origin = Instant | Length


@dataclass(frozen=True, repr=False)
class Grid:
    """When a window answers: at origin + k step, or at every so many rows of a key."""

    step: Length | None = None
    rows: int | None = None
    origin: Origin = 0
    is_tumbling: bool = False

    def __repr__(self) -> str:
        if self.rows is not None:
            return f"every(rows={self.rows})"
        origin = f", origin={self.origin!r}" if self.origin != 0 else ""
        return f"{'tumbling' if self.is_tumbling else 'every'}({self.step!r}{origin})"


def show_aggregate(aggregate: Aggregate) -> str:
    """An aggregate as it was written."""
    options = [f"{name}={value!r}" for name, value in aggregate.options]
    text = f"{aggregate.name}({', '.join([*(repr(name) for name in aggregate.columns), *options])})"
    return text if aggregate.condition is None else f"{text}.where({aggregate.condition!r})"


def require_choice(name: str, given: Any, known: tuple[str, ...]) -> None:
    """Check an option that is one of a few words."""
    if given not in known:
        raise DeclarationError(f"{name} must be one of {', '.join(known)}, got {given!r}")


def require_edges(closed: Any, ties: Any) -> None:
    """Check what belongs to a window of time."""
    require_choice("closed", closed, CLOSED)
    require_choice("ties", ties, TIES)


def require_rows(name: str, given: Any, *, least: int = 1) -> int:
    """Check a number of rows."""
    if isinstance(given, (str, Duration)):
        raise DeclarationError(f"{name} counts rows, got {given!r}. For a length of time use range({given!r})")
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < least:
        raise DeclarationError(f"{name} must be a {'positive' if least else 'non-negative'} integer, got {given!r}")
    return int(given)


def read_grid(step: Any, rows: Any, origin: Any, *, is_tumbling: bool) -> Grid:
    """Read the arguments of `every` and `tumbling`."""
    if (step is None) == (rows is None):
        raise DeclarationError(
            "every(...) takes a step of time, as in every('1 minute'), or rows, as in every(rows=10)"
        )
    if rows is not None:
        if origin is not None:
            raise DeclarationError("every(rows=...) counts the rows of each key from 1; it has no origin")
        return Grid(rows=require_rows("every(rows=...)", rows))
    length = read_length(step, "the step of a grid")
    return Grid(length, origin=0 if origin is None else read_origin(origin), is_tumbling=is_tumbling)


def read_origin(given: Any) -> Origin:
    """Read where a grid has one of its points: a time, an offset from 1970, or a number."""
    if isinstance(given, str):
        return _origin_of_text(given)
    if hasattr(given, "to_datetime64"):  # pandas: a datetime that keeps nanoseconds beside its own fields
        aware = given.tzinfo is not None
        plain = given.tz_convert("UTC").tz_localize(None) if aware else given
        return Instant(int(plain.to_datetime64().astype("M8[ns]").astype(np.int64)), aware)
    if isinstance(given, np.datetime64):
        return Instant(int(given.astype("M8[ns]").astype(np.int64)), is_aware=False)
    if isinstance(given, datetime):
        wall = given if given.tzinfo is not None else given.replace(tzinfo=UTC)
        return Instant(read_duration(wall - EPOCH).nanoseconds, given.tzinfo is not None)
    if isinstance(given, date):
        return Instant(
            read_duration(datetime(given.year, given.month, given.day, tzinfo=UTC) - EPOCH).nanoseconds, False
        )
    return read_length(given, "the origin of a grid", zero=True)


def _origin_of_text(text: str) -> Origin:
    try:
        return read_origin(datetime.fromisoformat(text))
    except ValueError:
        return read_length(text, "the origin of a grid", zero=True)
