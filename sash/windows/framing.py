"""Frames of sorted rows, many keys at once, a batch at a time: which rows the window of each answer holds.

    rows      a a a a a a | b b b | c c c c c          sorted by key, then by order; numbered for ever
    frames        [START ...... END)                   of the row ROW
              both bounds only move forward, from one key into the next as well

Because both bounds ascend over the whole input, what is computed over frames need not know of keys. What
is carried from one batch to the next is four row numbers and the order values from `needed` on.

Invariants between calls, row numbers counting from the first row of all
    I1  FIRST <= START <= END, and FIRST is the first row of the key of row ROW - 1
    I2  START and END are the frame of row ROW - 1, or on the way to that of row ROW
    I3  rows before ROW are answered; row ROW is not known yet, or its window may still grow

A window may grow after its row has come only if it takes in peers of that row; the last row of a batch then waits
for one with a larger order value, for another key or for the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.monoid import Function
from sash.compiling.jit import compiled, entry, interpreted, is_enabled
from sash.errors import DataError
from sash.windows.bounds import Bounds, EveryRows
from sash.windows.frames import Frames, _is_before

ROW, START, END, FIRST, N_REGISTERS = 0, 1, 2, 3, 4
SMALLEST = -(2**63)


class Rows(NamedTuple):
    """Rows from number `base` on: order values, which of them begin a key, and marks if the window needs them."""

    base: int
    order: Any
    begins: Any
    marks: Any  # bool; only read by windows since a mark

    @property
    def end(self) -> int:
        """The number of the next row to come."""
        return self.base + len(self.order)


class Framed(NamedTuple):
    """Frames of answers, ready to be computed over.

    `frames` may have one more frame than there are answers: that of an answer which waits, as far as its rows
    have come. They may be inserted already, as its beginning is certain.
    """

    n: int  # answers
    frames: Frames
    rows: Any  # the row of each answer; None: the next n rows
    instants: Any = None  # on a grid: the instant of each answer
    stops: Any = None  # where rows leave slice by slice: the row after each slice, from the oldest that is needed

    @property
    def answered(self) -> Frames:
        """The frames of the answers alone."""
        return Frames(self.frames.starts[: self.n], self.frames.ends[: self.n])


class RowFraming:
    """Frames of one window at its rows."""

    __slots__ = ("_bounds", "_kernel", "_lengths", "_registers")

    reads_columns = False  # order values and keys are enough

    def __init__(self, bounds: Bounds, dtype: Any, first_row: int = 0) -> None:
        self._bounds = bounds
        self._lengths = lengths_of(bounds, dtype)
        self._kernel = _kernel(_manner(bounds, dtype), is_enabled())
        self._registers = np.full(N_REGISTERS, first_row, np.int64)

    def dump(self) -> list[Any]:
        """What is carried from one batch to the next, as plain data."""
        return [self._registers]

    def load(self, dumped: list[Any]) -> None:
        """Become what `dump` wrote."""
        (self._registers[:],) = dumped

    @property
    def needed(self) -> int:
        """The oldest row whose order value is still looked at: of a window by age, or the one before the next."""
        before = int(self._registers[ROW]) - 1
        return max(0, min(before, int(self._registers[START])) if self._lengths.is_by_age else before)

    @property
    def begin(self) -> int:
        """No later window begins before this row."""
        return int(self._registers[START])

    def take(self, rows: Rows, *, is_last: bool) -> Framed:
        """Frames of all rows that can be answered now."""
        room = rows.end - int(self._registers[ROW]) + 1
        out = _Out(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room * self._is_sparse, np.int64))
        given = rows if is_enabled() else Rows(rows.base, *(each.tolist() for each in rows[1:]))
        n = int(self._kernel(self._registers, self._lengths, given, is_last, out))
        if n < 0:
            raise self._unsorted(rows, ~n)
        n_frames = n + self._has_waiting(rows, out, n)
        frames = Frames(out.starts[:n_frames], out.ends[:n_frames])
        return Framed(n, frames, out.rows[:n] if self._is_sparse else None)

    def _has_waiting(self, rows: Rows, out: _Out, n: int) -> bool:
        """Add the frame of the row that waits, if it is to be answered and begins with a row that has come."""
        row, start, end, first = (int(register) for register in self._registers)
        if row == rows.end or start >= end or (row - first + 1) % self._lengths.every:
            return False
        out.starts[n], out.ends[n] = start, end
        return True

    @property
    def _is_sparse(self) -> bool:
        return isinstance(self._bounds.every, EveryRows)

    def _unsorted(self, rows: Rows, row: int) -> DataError:
        before, after = rows.order[row - 1 - rows.base].item(), rows.order[row - rows.base].item()
        if self._bounds.kind == "delta":
            return DataError(
                f"the mark must not fall within a key, but row {row} of the sorted rows has {after!r} after "
                f"{before!r}; order_by that column"
            )
        return unsorted(rows.order, row - rows.base, row)


def unsorted(order: Any, place: int, row: int | None = None) -> DataError:
    """Say that a row comes before the one it stands behind."""
    before, after = order[place - 1].item(), order[place].item()
    shown = place if row is None else row
    return DataError(f"rows must be sorted by key and order, but row {shown} has {after!r} after {before!r}")


class Lengths(NamedTuple):
    """The lengths of a window, in the type of the order column."""

    reach: Any  # how old the oldest row may be: span and lag together, or the gap
    lag: Any
    rows: int
    every: int
    is_by_age: bool


class _Out(NamedTuple):
    starts: Any
    ends: Any
    rows: Any


def lengths_of(bounds: Bounds, dtype: Any) -> Lengths:
    """Read the lengths of a window off its bounds."""
    number = np.dtype(dtype).type if is_enabled() else int if np.dtype(dtype).kind == "i" else float
    reach = {"span": bounds.span, "gap": bounds.gap, "delta": bounds.delta}.get(bounds.kind)
    every = bounds.every.rows if isinstance(bounds.every, EveryRows) else 1
    is_by_age = bounds.kind in ("span", "delta")
    return Lengths(number((reach or 0) + bounds.lag), number(bounds.lag), bounds.rows or 0, every, is_by_age)


class Manner(NamedTuple):
    """What decides which code walks along the rows."""

    kind: str
    keeps_first: bool
    keeps_last: bool
    ends_with_row: bool
    lags: bool
    has_rows: bool
    every: bool
    is_exact: bool  # order values are integers

    @property
    def may_grow(self) -> bool:
        """Whether rows yet to come can belong to the window of a row that is there."""
        return self.keeps_last and not self.lags and not self.ends_with_row


def _manner(bounds: Bounds, dtype: Any) -> Manner:
    return Manner(
        bounds.kind if bounds.kind != "delta" else "span",
        bounds.closed in ("both", "left"),
        bounds.closed in ("both", "right"),
        bounds.ends_with_row and not bounds.lag,
        bool(bounds.lag),
        bounds.rows is not None,
        isinstance(bounds.every, EveryRows),
        np.dtype(dtype).kind == "i",
    )


@lru_cache(maxsize=64)
def _kernel(manner: Manner, is_compiled: bool) -> Function:
    """Make frames(registers, lengths, rows, is_last, out) -> how many, or ~row of the first out of order."""
    jit, outer = (compiled, entry) if is_compiled else (interpreted, interpreted)
    move_start, move_end = jit(_start_mover(manner, is_compiled)), jit(_end_mover(manner))
    may_grow, has_rows, is_sparse = manner.may_grow, manner.has_rows, manner.every

    def frames(at: Any, lengths: Lengths, rows: Rows, is_last: bool, out: _Out) -> int:
        base, order, begins, n = rows.base, rows.order, rows.begins, len(rows.order)
        start, end, first, count = at[START] - base, at[END] - base, at[FIRST] - base, 0
        for i in range(at[ROW] - base, n):
            if begins[i]:
                first = start = end = i
            elif i > first and order[i - 1] > order[i]:
                return ~(i + base)
            end = move_end(rows, i, end, lengths)
            start = move_start(rows, i, start, end, lengths)
            if has_rows:
                start = max(start, end - lengths.rows)
            at[START], at[END], at[FIRST] = start + base, end + base, first + base
            if may_grow and end == n and not is_last:
                at[ROW] = i + base
                return count
            if not is_sparse or (i - first + 1) % lengths.every == 0:
                out.starts[count], out.ends[count] = start + base, end + base
                if is_sparse:
                    out.rows[count] = i + base
                count += 1
        at[ROW] = n + base
        return count

    return outer(frames)


def _start_mover(manner: Manner, is_compiled: bool) -> Function:
    """Make move(rows, i, start, end, lengths) -> the first row of the window of row i, which is not before `start`."""
    keeps_first = manner.keeps_first

    def by_age(rows: Rows, i: int, start: int, end: int, lengths: Lengths) -> int:
        now = rows.order[i]
        while start < end and _is_before(rows.order[start], now, lengths.reach, keeps_first):
            start += 1
        return start

    def by_silence(rows: Rows, i: int, start: int, end: int, lengths: Lengths) -> int:
        is_late = i > start and _is_before(rows.order[i - 1], rows.order[i], lengths.reach, True)
        return i if is_late else start

    def by_mark(rows: Rows, i: int, start: int, end: int, lengths: Lengths) -> int:
        return i if rows.marks[i] else start

    def by_key(rows: Rows, i: int, start: int, end: int, lengths: Lengths) -> int:
        return start

    if manner.kind == "span" and manner.is_exact:
        return _distance_mover(keeps_first, compiled if is_compiled else interpreted)
    return {"span": by_age, "gap": by_silence, "since": by_mark}.get(manner.kind, by_key)


def _distance_mover(keeps_first: bool, jit: Callable[[Function], Function]) -> Function:
    """The same by age for integers, of which no difference is rounded.

    Four rows are looked at together: how many of them are gone no processor can predict, but it can add.
    """

    @jit
    def is_gone(order: Any, row: int, low: Any) -> int:
        time = order[np.uintp(row)]
        return int(time < low if keeps_first else time <= low)

    def by_distance(rows: Rows, i: int, start: int, end: int, lengths: Lengths) -> int:
        order, now = rows.order, rows.order[np.uintp(i)]
        if now < SMALLEST + lengths.reach:  # what would be too old lies below all integers of 64 bits
            return start
        low = now - lengths.reach
        while start + 3 < i:
            n_gone = is_gone(order, start, low) + is_gone(order, start + 1, low)
            n_gone += is_gone(order, start + 2, low) + is_gone(order, start + 3, low)
            start += n_gone
            if n_gone < 4:
                return min(start, end)
        while start < end and is_gone(order, start, low):
            start += 1
        return min(start, end)

    return by_distance


def _end_mover(manner: Manner) -> Function:
    """Make move(rows, i, end, lengths) -> the row after the last one of the window of row i."""
    keeps_last = manner.keeps_last

    def with_row(rows: Rows, i: int, end: int, lengths: Lengths) -> int:
        return i + 1

    def with_lag(rows: Rows, i: int, end: int, lengths: Lengths) -> int:
        now = rows.order[i]
        while end < i and _is_before(rows.order[end], now, lengths.lag, not keeps_last):
            end += 1
        return end

    def with_peers(rows: Rows, i: int, end: int, lengths: Lengths) -> int:
        now, n = rows.order[i], len(rows.order)
        end = max(end, i + 1)
        while end < n and not rows.begins[end] and rows.order[end] == now:
            end += 1
        return end

    def before_peers(rows: Rows, i: int, end: int, lengths: Lengths) -> int:
        now = rows.order[i]
        while rows.order[end] < now:
            end += 1
        return end

    if manner.lags:
        return with_lag
    if not keeps_last:
        return before_peers
    return with_row if manner.ends_with_row else with_peers
