"""Grids: windows that end at regular instants and not with rows; which instants, and which rows each holds.

    grid         |         |         |         |         |         |        instants origin + k step, k whole
    rows of a        x x       x                   x x                      one key
    answers           [........)[........)[........)[........)              its instants, from the first one that the
                                                                            first row is inside or before, to the first
                                                                            one that the last row is

Every key stands on the same grid. A window that ends at g holds the rows with g - span <= order <= g, `closed` deciding
about both ends; with closed "left" or "none" a row at g itself is not in it, nor is it inside or before g. Between the
first and the last instant of a key all instants are answered, those whose windows hold no row too. With a lag the
window is the one that ended `lag` before g; which instants are answered stays the same.

An instant is answered when a row comes that is after it, when the key ends, or at the end of all rows.

*Slices*, where windows overlap: rows that leave together, that is, with the same instant at which they are in no window
any more. Where a slice ends, and that instant, is then all that is kept of the rows in the window; and what is
computed over frames may combine the rows of a slice on the way in.

Invariants between calls
    I1  START <= END <= ROW: the frame of the instant NEXT, as far as its rows have come
    I2  all rows before ROW of their key are inside or before the instant NEXT, and the last is so of no earlier one
    I3  slices cover the rows from START or earlier up to ROW; none holds rows of two keys
    I4  IS_OPEN tells whether there is such a key: only before the very first row, or after the end, there is none
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.monoid import Function
from sash.compiling.jit import compiled, entry, interpreted, is_enabled
from sash.errors import DataError
from sash.windows.bounds import Bounds, Every
from sash.windows.frames import Frames, _is_before
from sash.windows.framing import Framed, Rows

ROW, START, END, NEXT, IS_OPEN, SLICE, N_REGISTERS = 0, 1, 2, 3, 4, 5, 6
MOST = 1 << 28  # instants answered at once: beyond, a key is silent for so long that nobody wants its grid
FINEST = 2.0**53  # more steps than this from zero, and floats cannot count them


class GridLengths(NamedTuple):
    """A window and its grid in the type of the order column."""

    reach: Any
    lag: Any
    rows: int
    step: Any
    origin: Any


class _Out(NamedTuple):
    starts: Any
    ends: Any
    rows: Any
    instants: Any


class Slices(NamedTuple):
    """Slices in the order of rows, none without rows."""

    gone: Any  # k of the first instant at which a slice is in no window any more
    stops: Any  # the row after its last one, so far


class GridFraming:
    """Frames of one window at the instants of its grid."""

    __slots__ = ("_bounds", "_cut", "_dtype", "_lengths", "_registers", "_slices", "_walk")

    reads_columns = False  # order values and keys are enough

    def __init__(self, bounds: Bounds, dtype: Any, first_row: int = 0, *, is_sliced: bool = False) -> None:
        assert isinstance(bounds.every, Every)
        self._bounds = bounds
        self._dtype = np.dtype(dtype)
        number: Any = self._dtype.type if is_enabled() else int if self._dtype.kind == "i" else float
        step, origin = bounds.every.step, bounds.every.origin % bounds.every.step
        reach = (bounds.span or 0) + bounds.lag
        self._lengths = GridLengths(
            number(reach), number(bounds.lag), bounds.rows or 0, number(step), number(origin)
        )  # fmt: skip
        closed = bounds.closed
        manner = Manner(
            bounds.span is not None, closed in ("both", "left"), closed in ("both", "right"), bounds.rows is not None,
            is_sliced,
        )  # fmt: skip
        self._walk = _kernel(manner, is_enabled())
        self._cut = _cutter(manner.keeps_first, is_enabled()) if is_sliced else None
        self._slices = Slices(np.empty(0, np.int64), np.empty(0, np.int64))
        self._registers = np.array([first_row] * 3 + [0] * 3, np.int64)

    def dump(self) -> list[Any]:
        """What is carried from one batch to the next, as plain data."""
        return [self._registers, *self._slices]

    def load(self, dumped: list[Any]) -> None:
        """Become what `dump` wrote."""
        self._registers[:], *slices = dumped
        self._slices = Slices(*slices)

    @property
    def needed(self) -> int:
        """The oldest row whose order value is still looked at."""
        before = int(self._registers[ROW]) - 1
        if self._bounds.span is None:
            return max(0, before)
        return max(0, min(before, int(self._registers[START if self._cut is None else END])))

    @property
    def begin(self) -> int:
        """No later window begins before this row."""
        return int(self._registers[START])

    def take(self, rows: Rows, *, is_last: bool) -> Framed:
        """Frames of all instants that can be answered now."""
        self._require_room(rows)
        given = rows if is_enabled() else Rows(rows.base, *(each.tolist() for each in rows[1:]))
        slices = self._with_slices_of(given)
        ahead = self._registers.copy()
        n = int(self._walk(ahead, self._lengths, given, slices, is_last, self._room(0)))
        if n < 0:
            raise self._unsorted(rows, ~n)
        if n > MOST:
            raise DataError(
                f"{n} instants {self._bounds.every} lie between these rows, most of them in silences; "
                "use a coarser grid, or answers at rows"
            )
        out = self._room(n + 1)
        self._walk(self._registers, self._lengths, given, slices, is_last, out)
        n_frames = n + self._has_waiting(out, n)
        stops = None if self._cut is None else self._slices.stops
        self._forget_slices()
        return Framed(n, Frames(out.starts[:n_frames], out.ends[:n_frames]), out.rows[:n], out.instants[:n], stops)

    def _with_slices_of(self, rows: Rows) -> Slices:
        """Cut the rows that are new into slices; the first of them may belong to the last slice there is."""
        if self._cut is None:
            return self._slices
        n_new, n_old = rows.end - int(self._registers[ROW]), len(self._slices.stops)
        room = [np.concatenate([each, np.empty(n_new, np.int64)]) for each in self._slices]
        slices = Slices(*room) if is_enabled() else Slices(*(each.tolist() for each in room))
        n = int(self._cut(self._registers, self._lengths, rows, slices, n_old))
        self._slices = Slices(*(np.array(each[:n], np.int64) for each in slices))
        return self._slices if is_enabled() else Slices(*(each.tolist() for each in self._slices))

    def _forget_slices(self) -> None:
        """Let go of the slices before every window to come."""
        n_gone = int(np.searchsorted(self._slices.stops, self._registers[START], "right"))
        n_gone = min(n_gone, max(0, len(self._slices.stops) - 1))  # the last one may go on
        self._slices = Slices(*(each[n_gone:] for each in self._slices))
        self._registers[SLICE] = 0

    def _room(self, n: int) -> _Out:
        starts, ends, rows = (np.empty(n, np.int64) for _ in range(3))
        return _Out(starts, ends, rows, np.empty(n, self._dtype))

    def _has_waiting(self, out: _Out, n: int) -> bool:
        """Whether the instant that waits has rows already; the walk has left its frame behind the others.

        Of a window of the last so many rows, not even the first row is certain before all have come.
        """
        is_certain = bool(self._registers[IS_OPEN]) and self._bounds.rows is None
        return is_certain and bool(out.starts[n] < out.ends[n])

    def _require_room(self, rows: Rows) -> None:
        """Refuse order values so large that instants near them cannot be counted or told apart."""
        if len(rows.order) == 0:
            return
        low, high = rows.order.min().item(), rows.order.max().item()
        assert isinstance(self._bounds.every, Every)
        step = self._bounds.every.step
        margin = 2 * step + (self._bounds.span or 0) + self._bounds.lag
        if self._dtype.kind == "i":
            fits = low - margin >= -(2**63) and high + margin < 2**63
        else:
            fits = max(abs(low), abs(high), margin) / step < FINEST
        if not fits:
            raise DataError(f"order from {low!r} to {high!r} is too far from zero for a grid {self._bounds.every}")

    def _unsorted(self, rows: Rows, row: int) -> DataError:
        before, after = rows.order[row - 1 - rows.base].item(), rows.order[row - rows.base].item()
        return DataError(f"rows must be sorted by key and order, but row {row} has {after!r} after {before!r}")


class Manner(NamedTuple):
    """What decides which code walks along the rows."""

    has_span: bool
    keeps_first: bool
    keeps_last: bool
    has_rows: bool
    is_sliced: bool


@lru_cache(maxsize=32)
def _kernel(manner: Manner, is_compiled: bool) -> Function:
    """Make walk(registers, lengths, rows, slices, is_last, out) -> how many instants, or ~row of one out of order.

    With no room in `out` it only counts. Room is for one more than there are: the frame of the instant that waits.
    """
    jit, outer = (compiled, entry) if is_compiled else (interpreted, interpreted)
    index_of, frame = jit(_indexer(manner.keeps_last)), jit(_framer(manner))
    answer = jit(_answerer(frame))

    def walk(at: Any, lengths: GridLengths, rows: Rows, slices: Slices, is_last: bool, out: _Out) -> int:
        base, order, begins, n, count = rows.base, rows.order, rows.begins, len(rows.order), 0
        for i in range(at[ROW] - base, n):
            k = index_of(order[i], lengths)
            if begins[i] or not at[IS_OPEN]:
                if at[IS_OPEN]:
                    count = answer(at, lengths, rows, slices, at[NEXT] + 1, i, count, out)
                at[START] = at[END] = i + base
                at[IS_OPEN] = 1
            elif order[i - 1] > order[i]:
                return ~(i + base)
            elif k > at[NEXT]:
                count = answer(at, lengths, rows, slices, k, i, count, out)
            at[NEXT] = k
            if count > MOST:
                return count
        at[ROW] = n + base
        if at[IS_OPEN] and is_last:
            count = answer(at, lengths, rows, slices, at[NEXT] + 1, n, count, out)
            at[IS_OPEN] = 0
        elif at[IS_OPEN] and len(out.starts) > 0:
            frame(at, lengths, rows, slices, at[NEXT], n)
            out.starts[count], out.ends[count] = at[START], at[END]
        return count

    return outer(walk)


def _answerer(frame: Function) -> Function:
    """Make answer(registers, lengths, rows, slices, stop, seen, count, out) -> count: instants NEXT to stop - 1."""

    def answer(
        at: Any, lengths: GridLengths, rows: Rows, slices: Slices, stop: int, seen: int, count: int, out: _Out
    ) -> int:
        for k in range(at[NEXT], stop if len(out.starts) > 0 else at[NEXT]):
            frame(at, lengths, rows, slices, k, seen)
            place = count + k - at[NEXT]
            out.starts[place], out.ends[place] = at[START], at[END]
            out.rows[place] = seen - 1 + rows.base
            out.instants[place] = lengths.origin + k * lengths.step
        return count + (stop - at[NEXT])  # type: ignore[no-any-return]

    return answer


def _framer(manner: Manner) -> Function:
    """Make frame(registers, lengths, rows, slices, k, seen): START and END become those of instant k.

    Of the rows before `seen`, that is.
    """
    has_span, keeps_first, keeps_last, has_rows, is_sliced = manner

    def frame(at: Any, lengths: GridLengths, rows: Rows, slices: Slices, k: int, seen: int) -> None:
        instant, order, base = lengths.origin + k * lengths.step, rows.order, rows.base
        start, end = at[START] - base, at[END] - base
        while end < seen and _is_before(order[end], instant, lengths.lag, not keeps_last):
            end += 1
        while has_span and start < end and _is_before(order[start], instant, lengths.reach, keeps_first):
            start += 1
        if has_rows:
            start = max(start, end - lengths.rows)
        at[START], at[END] = start + base, end + base

    def frame_of_slices(at: Any, lengths: GridLengths, rows: Rows, slices: Slices, k: int, seen: int) -> None:
        instant, order, base = lengths.origin + k * lengths.step, rows.order, rows.base
        start, end, number = at[START], at[END], at[SLICE]
        while end < seen + base and _is_before(order[end - base], instant, lengths.lag, not keeps_last):
            end += 1
        while start < end and (slices.stops[number] <= start or slices.gone[number] <= k):
            start = min(end, max(start, slices.stops[number]))
            number += 1
        at[START], at[END], at[SLICE] = start, end, number

    return frame_of_slices if is_sliced else frame


@lru_cache(maxsize=4)
def _cutter(keeps_first: bool, is_compiled: bool) -> Function:
    """Make cut(registers, lengths, rows, slices, n) -> n: add the slices of the rows from ROW on to the n there are."""
    jit, outer = (compiled, entry) if is_compiled else (interpreted, interpreted)

    @jit
    def is_gone(value: Any, lengths: GridLengths, k: int) -> bool:
        return _is_before(value, lengths.origin + k * lengths.step, lengths.reach, keeps_first)

    @jit
    def gone_at(value: Any, lengths: GridLengths) -> int:
        k = int((value + lengths.reach - lengths.origin) // lengths.step)  # or one more; floats may be off
        while is_gone(value, lengths, k - 1):
            k -= 1
        while not is_gone(value, lengths, k):
            k += 1
        return k

    def cut(at: Any, lengths: GridLengths, rows: Rows, slices: Slices, n: int) -> int:
        base, order = rows.base, rows.order
        for i in range(at[ROW] - base, len(order)):
            if n == 0 or rows.begins[i] or not is_gone(order[i], lengths, slices.gone[n - 1]):
                slices.gone[n] = gone_at(order[i], lengths)
                n += 1
            slices.stops[n - 1] = i + base + 1
        return n

    return outer(cut)


def _indexer(keeps_last: bool) -> Function:
    """Make index_of(value, lengths) -> the first k whose instant the value is inside or before."""

    def is_reached(value: Any, lengths: GridLengths, k: int) -> bool:
        instant = lengths.origin + k * lengths.step
        return bool(value <= instant if keeps_last else value < instant)

    def index_of(value: Any, lengths: GridLengths) -> int:
        k = int((value - lengths.origin) // lengths.step)  # rounded down; floats may be off by one either way
        while is_reached(value, lengths, k - 1):
            k -= 1
        while not is_reached(value, lengths, k):
            k += 1
        return k

    return index_of
