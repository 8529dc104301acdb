"""`sash.window`: whose rows, in which order, how far back. A value: immutable, printable, comparable.

    w = sash.window(by="station", order_by="ts")
    hour = w.range("1 hour")
    spec = hour.agg(rides=sash.count(), longest=sash.max("minutes"))

Each method gives a new window; a window that knows how far back it reaches can be aggregated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import MONOID, SPARK_PARTS, agg
from sash.errors import DeclarationError, UnsupportedError
from sash.frames.extents import Extent, Grid, Named, read_grid, require_choice, require_edges, require_rows
from sash.frames.spec import Spec
from sash.windows.durations import read_length
from sash.windows.frames import TIES
from sash.windows.policies import Policy

KINDS = ".rows(100), .range('1 hour'), .everything(), .session('30 minutes'), .tumbling('1 hour')"


def window(*, by: str | Iterable[str] | None = None, order_by: str | Iterable[str] | None = None) -> Window:
    """Begin a window: rows with the same `by`, in the order of `order_by`.

    `by` is a column, several, or None for a window over all rows. `order_by` is the time, or a list
    of the time and tie-breakers; rows it cannot tell apart keep the order of the input.

    >>> import sash
    >>> sash.window(by="station", order_by="ts").range("1 hour", closed="right")
    sash.window(by='station', order_by='ts').range('1 hour', closed='right')
    """
    if order_by is None:
        raise DeclarationError("a window needs an order: name the column of time, as in order_by='ts'")
    order = _names(order_by, "order_by")
    if not order:
        raise DeclarationError("order_by is empty: name the column of time, as in order_by='ts'")
    return Window(() if by is None else _names(by, "by"), order)


@dataclass(frozen=True, repr=False)
class Window:
    """Rows of a key in an order, how far back, and when to answer."""

    by: tuple[str, ...]
    order_by: tuple[str, ...]
    extent: Extent | None = None
    grid: Grid | None = None

    def rows(self, rows: int, *, min_rows: int = 0) -> Window:
        """Take this row and those before it, `rows` in all."""
        n = require_rows("rows(...)", rows)
        return self._reaching(Extent("rows", rows=n, min_rows=_min_rows(min_rows)))

    def range(
        self,
        span: Any,
        *,
        closed: str = "both",
        ties: str = "peers",
        rows: int | None = None,
        lag: Any = None,
        min_rows: int = 0,
    ) -> Window:
        """Take the rows within `span` of this row's order value; with `rows`, at most so many of them.

        `closed` says which ends belong to it: "both" (as Spark's RANGE), "right", "left" or "none".
        `ties="peers"` takes in every row of the same order value, "upto" only those not after this
        one. `lag` ends the window so much before this row.
        """
        require_edges(closed, ties)
        extent = Extent(
            "range",
            rows=None if rows is None else require_rows("rows", rows),
            length=read_length(span, "the span of range"),
            closed=closed,
            ties=ties,
            lag=0 if lag is None else read_length(lag, "lag", zero=True),
            min_rows=_min_rows(min_rows),
        )
        return self._reaching(extent)

    def everything(self, *, ties: str = "peers", min_rows: int = 0) -> Window:
        """Take all rows up to this one; `ties` as in `range`."""
        require_choice("ties", ties, TIES)
        return self._reaching(Extent("everything", ties=ties, min_rows=_min_rows(min_rows)))

    def session(self, gap: Any, *, min_rows: int = 0) -> Window:
        """Take the rows since the last silence of more than `gap`."""
        length = read_length(gap, "the gap of a session")
        return self._reaching(Extent("session", length=length, min_rows=_min_rows(min_rows)))

    def delta(self, column: str, within: Any, *, ties: str = "peers", min_rows: int = 0) -> Window:
        """Take the rows whose `column`, which must not fall, is within `within` of this row's.

        `ties="peers"` takes in every row of the same value, later ones too, "upto" only those not after this one.
        """
        require_choice("ties", ties, TIES)
        name = _name(column, "the column of delta")
        length = read_length(within, "the distance of delta")
        return self._reaching(Extent("delta", name, length=length, ties=ties, min_rows=_min_rows(min_rows)))

    def since(self, column: str, *, min_rows: int = 0) -> Window:
        """Take the rows since the last one whose boolean `column` is true, that row included."""
        name = _name(column, "the column of since")
        return self._reaching(Extent("since", name, min_rows=_min_rows(min_rows)))

    def evict_while(self, policy: Callable[..., Any] | Policy, /, **aggregates: Any) -> Window:
        """Take the rows left when old ones have gone for as long as `policy(total, old)` is true.

        It gets two records with the named aggregates: of the whole window, and of its oldest part.
        """
        if not callable(policy) and not isinstance(policy, Policy):
            raise DeclarationError(
                f"evict_while needs a function policy(total, old) that says whether the oldest part must go, "
                f"got {policy!r}"
            )
        if not aggregates and not isinstance(policy, Policy):
            raise DeclarationError(
                "evict_while needs the aggregates its policy looks at, as in evict_while(policy, n=sash.count())"
            )
        return self._reaching(Extent("evict_while", policy=policy, aggregates=read_named(aggregates, "evict_while")))

    def every(self, step: Any = None, *, rows: int | None = None, origin: Any = None) -> Window:
        """Answer on a grid of order values, or at every so many rows of a key, instead of at every row.

        The grid is origin + k step for all whole k; `origin` is a time, a duration since 1970 or a
        number, and 1970-01-01 (UTC) or 0 if not given.
        """
        extent = self._require_extent("every")
        if self.grid is not None:
            raise DeclarationError(f"this window answers by {self.grid!r} already")
        grid = read_grid(step, rows, origin, is_tumbling=False)
        if grid.step is not None and extent.kind not in ("rows", "range", "everything"):
            raise UnsupportedError(
                f"{extent!r} is told by rows and has no meaning at an instant between them. Use every(rows=...), or a "
                "range on the grid"
            )
        return replace(self, grid=grid)

    def tumbling(self, step: Any, *, origin: Any = None) -> Window:
        """Windows side by side, each `step` long: the beginning belongs to it, the end to the next one."""
        grid = read_grid(step, None, origin, is_tumbling=True)
        return replace(self._reaching(Extent("range", length=grid.step, closed="left")), grid=grid)

    def agg(self, *unnamed: Any, **aggregates: Any) -> Spec:
        """Say what to compute: names of new columns, and aggregates for them."""
        self._require_extent("agg")
        if unnamed:
            raise DeclarationError(
                f"agg got {unnamed[0]!r} without a name. Name each answer, as in agg(rides=sash.count())"
            )
        if not aggregates:
            raise DeclarationError("agg() computes nothing. Name an answer, as in agg(rides=sash.count())")
        return Spec(self, read_named(aggregates, "agg"))

    def _reaching(self, extent: Extent) -> Window:
        if self.extent is not None:
            raise DeclarationError(
                f"this window is {self.extent!r} already, so it cannot be {extent!r} as well. "
                "For two bounds at once write range('1 hour', rows=1000)"
            )
        return replace(self, extent=extent)

    def _require_extent(self, method: str) -> Extent:
        if self.extent is None:
            raise DeclarationError(f".{method}(...) comes after how far back the window reaches: {KINDS}")
        return self.extent

    def __repr__(self) -> str:
        by = f"by={_shown(self.by)}, " if self.by else ""
        text = f"sash.window({by}order_by={_shown(self.order_by)})"
        if self.grid is not None and self.grid.is_tumbling:
            return f"{text}.{self.grid!r}"
        return text + "".join(f".{part!r}" for part in (self.extent, self.grid) if part is not None)


def read_named(aggregates: dict[str, Any], where: str) -> Named:
    """Check named aggregates: each must say which columns it reads."""
    return tuple((name, _read_aggregate(name, given, where)) for name, given in aggregates.items())


def _read_aggregate(name: str, given: Any, where: str) -> Aggregate:
    aggregate = given if isinstance(given, Aggregate) else None
    if aggregate is None and (hasattr(given, MONOID) or all(hasattr(given, part) for part in SPARK_PARTS)):
        aggregate = agg(given)
    if aggregate is None:
        said = getattr(given, "__name__", "")
        hint = f"sash.{said}('x')" if said in ("sum", "min", "max", "any", "all") else "sash.sum('x') or sash.count()"
        raise DeclarationError(f"{where}({name}=...) takes an aggregate such as {hint}, got {given!r}")
    if aggregate.n_inputs and len(aggregate.columns) < aggregate.n_inputs - aggregate.position_last:
        columns = ", ".join(repr(column) for column in "xyz"[: aggregate.n_inputs])
        shown = (
            f"sash.{aggregate.name}({columns})"
            if given is aggregate and _is_built_in(aggregate)
            else (f"sash.agg({aggregate.name}, {columns})")
        )
        raise DeclarationError(f"{where}({name}=...) names no column to read. Write {shown}")
    if len(aggregate.columns) < aggregate.n_inputs:
        raise DeclarationError(
            f"{where}({name}=...) names no payload: rows of a table have no numbers that every engine agrees on. "
            f"Name a column, as in sash.{aggregate.name}({aggregate.columns[0]!r}, 'ride_id')"
        )
    return aggregate


def _is_built_in(aggregate: Aggregate) -> bool:
    return getattr(aggregate.binder, "__module__", "") != agg.__module__


def _min_rows(given: Any) -> int:
    return require_rows("min_rows", given, least=0)


def _names(given: Any, what: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        return (_name(given, what),)
    names = tuple(_name(each, what) for each in given)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DeclarationError(f"{what} names {twice[0]!r} twice")
    return names


def _name(given: Any, what: str) -> str:
    if not isinstance(given, str):
        raise DeclarationError(f"{what} must be the name of a column, got {given!r}")
    return given


def _shown(names: tuple[str, ...]) -> str:
    return repr(names[0]) if len(names) == 1 else repr(list(names))
