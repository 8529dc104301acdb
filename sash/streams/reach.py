"""Reach: which rows a window of the future may still look at. All others are forgotten.

Rows to come have times at or after the watermark. So a row before it is *settled*: no row will be put before it any
more. For each kind of window the settled rows still in reach are a last part of their key:

    rows(n)          the last n - 1, to which a row will come
    range(span)      those at most span (and lag) before the watermark
    session(gap)     all since the last silence, if a row at the watermark would still join them
    since(column)    all since the last mark
    delta(c, d)      those within d of the last one
    everything()     all
    evict_while(...) those that the policy has left
    on a grid        those in a window after the last instant answered, and the last one, which says which that was

Rows at or after the watermark are always kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sash.errors import UnsupportedError
from sash.frames.answering import Reader, require_truths
from sash.frames.measuring import Bound, bind, mark_column, measure, scale_of
from sash.streams.plans import Plan, microseconds

if TYPE_CHECKING:
    from sash.frames.extents import Extent
    from sash.streams.timing import Instants


def numbers_of_keys(begins: Any) -> Any:
    """The number of each row's key, of sorted rows of which the first of each key is marked."""
    starts = np.flatnonzero(begins)
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=len(begins)))


@dataclass(frozen=True)
class Settled:
    """Rows sorted by key and time, and how many of each key are settled."""

    reader: Reader
    times: Any  # in microseconds
    begins: Any
    watermark: int
    left: Any = None  # for each row the first that a policy has left in its window; null: none

    @cached_property
    def starts(self) -> Any:
        """The place of the first row of each key."""
        return np.flatnonzero(self.begins)

    @cached_property
    def keys(self) -> Any:
        """The number of each row's key."""
        return numbers_of_keys(self.begins)

    @cached_property
    def ends(self) -> Any:
        """One after the last settled row of each key."""
        return self.count(self.times < self.watermark)

    @cached_property
    def last(self) -> Any:
        """The last settled row of each key; its first row if there is none."""
        return np.maximum(self.ends - 1, self.starts)

    def count(self, before: Any) -> Any:
        """For each key, the place of the first row not in `before`, which is a first part of each key."""
        return self.starts + np.add.reduceat(before, self.starts, dtype=np.int64)

    def latest(self, marked: Any) -> Any:
        """For each key, the last place up to its last settled row that is marked, or where it begins."""
        places = np.where(marked | self.begins, np.arange(len(marked)), 0)
        return np.maximum.accumulate(places)[self.last]


def kept(plan: Plan, rows: Settled, instants: Instants | None) -> Any:
    """Which rows are still in reach of a window to come."""
    if len(rows.times) == 0:
        return np.zeros(0, np.bool_)
    first = np.minimum.reduce([_first(extent, plan, rows, instants) for extent in plan.extents])
    first = np.minimum(first, rows.ends)
    grid = plan.window.grid
    if instants is not None:
        first = np.minimum(first, rows.last)
    elif grid is not None and grid.rows is not None:  # answers are counted from the first row of a key
        first -= (first - rows.starts) % grid.rows
    if plan.streaming.idle is not None:
        next_row = rows.watermark if instants is None else instants.open_from(rows.watermark)
        silent = rows.times[rows.last] < next_row - microseconds(plan.streaming.idle)
        first = np.where(silent, rows.ends, first)
    return np.arange(len(rows.times)) >= first[rows.keys]


def _first(extent: Extent, plan: Plan, rows: Settled, instants: Instants | None) -> Any:
    return FIRST[extent.kind](extent, plan, rows, instants)


def _of_rows(extent: Extent, plan: Plan, rows: Settled, instants: Instants | None) -> Any:
    assert extent.rows is not None
    n = extent.rows - 1 if instants is None else extent.rows  # at an instant there need be no row
    return np.maximum(rows.ends - n, rows.starts)


def _of_range(extent: Extent, plan: Plan, rows: Settled, instants: Instants | None) -> Any:
    far = microseconds(extent.length) + microseconds(extent.lag)
    if instants is None:
        return rows.count(rows.times < rows.watermark - far)
    following = instants.of(rows.times[rows.last]) + instants.step
    return rows.count(rows.times < (following - far)[rows.keys])


def _of_session(extent: Extent, plan: Plan, rows: Settled, instants: Instants | None) -> Any:
    gap = microseconds(extent.length)
    silences = np.zeros(len(rows.times), np.bool_)
    silences[1:] = np.diff(rows.times) > gap
    is_over = rows.watermark - rows.times[rows.last] > gap
    return np.where(is_over, rows.ends, rows.latest(silences))


def _of_since(extent: Extent, plan: Plan, rows: Settled, instants: Instants | None) -> Any:
    assert extent.column is not None
    return rows.latest(require_truths(extent.column, rows.reader.array(extent.column), "since"))


def _of_delta(extent: Extent, plan: Plan, rows: Settled, instants: Instants | None) -> Any:
    assert extent.column is not None
    array = rows.reader.array(extent.column)
    bound: Bound = bind(extent, None, scale_of(plan.time, plan.schema.field(plan.time).type),
                        scale_of(extent.column, array.type), None)  # fmt: skip
    marks = mark_column(measure(extent.column, array), bound.mark_factor).values
    return rows.count(marks < (marks[rows.last] - bound.bounds.delta)[rows.keys])


def _of_everything(extent: Extent, plan: Plan, rows: Settled, instants: Instants | None) -> Any:
    return rows.starts


def _of_policy(extent: Extent, plan: Plan, rows: Settled, instants: Instants | None) -> Any:
    assert rows.left is not None
    array = rows.left.combine_chunks().take(pa.array(rows.last))
    return np.where(array.is_null().to_numpy(zero_copy_only=False), rows.ends, array.fill_null(0).to_numpy())


FIRST: dict[str, Callable[[Extent, Plan, Settled, Any], Any]] = {
    "rows": _of_rows, "range": _of_range, "session": _of_session, "since": _of_since, "delta": _of_delta,
    "everything": _of_everything, "evict_while": _of_policy,
}  # fmt: skip


def require_reach(plan: Plan) -> None:
    """Refuse what would need more than the rows in reach."""
    for extent in plan.extents:
        if extent.kind == "delta" and extent.ties == "peers" and plan.streaming.emit != "eager":
            raise UnsupportedError(_endless(extent, plan.streaming.emit))
    if plan.has_policy:
        _require_policy(plan)


def _endless(extent: Extent, emit: str) -> str:
    """Of equal times none come after the watermark; of equal marks they may, as long as the mark stands still."""
    return (
        f"{extent!r} with emit={emit!r}: a row's window holds all rows of the same {extent.column!r}, later ones too, "
        f"and for how long such rows come no watermark says. Write delta({extent.column!r}, {extent.length!r}, "
        "ties='upto'), whose windows end with their row, or use emit='eager'"
    )


def _require_policy(plan: Plan) -> None:
    if len(plan.specs) > 1 or plan.window.grid is not None:
        raise UnsupportedError(
            "a slide policy on a stream stands alone: which rows it has left is only known for one window, at every "
            "row. Answer the specs in queries of their own, without every(...)"
        )
    if plan.streaming.emit != "final":
        raise UnsupportedError(
            f"a slide policy with emit={plan.streaming.emit!r}: a late row would change what the policy left in all "
            "windows after it. Use emit='final', where rows are taken in order"
        )
