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

Invariants between calls
    I1  START <= END <= ROW: the frame of the instant NEXT, as far as its rows have come
    I2  all rows before ROW of their key are inside or before the instant NEXT, and the last is so of no earlier one
    I3  IS_OPEN tells whether there is such a key: only before the very first row, or after the end, there is none
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

ROW, START, END, NEXT, IS_OPEN, N_REGISTERS = 0, 1, 2, 3, 4, 5
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


class GridFraming:
    """Frames of one window at the instants of its grid."""

    __slots__ = ("_bounds", "_dtype", "_lengths", "_registers", "_walk")

    reads_columns = False  # order values and keys are enough

    def __init__(self, bounds: Bounds, dtype: Any, first_row: int = 0) -> None:
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
            bounds.span is not None, closed in ("both", "left"), closed in ("both", "right"), bounds.rows is not None
        )  # fmt: skip
        self._walk = _kernel(manner, is_enabled())
        self._registers = np.array([first_row] * 3 + [0, 0], np.int64)

    def dump(self) -> list[Any]:
        """What is carried from one batch to the next, as plain data."""
        return [self._registers]

    def load(self, dumped: list[Any]) -> None:
        """Become what `dump` wrote."""
        (self._registers[:],) = dumped

    @property
    def needed(self) -> int:
        """The oldest row whose order value is still looked at."""
        before = int(self._registers[ROW]) - 1
        return max(0, min(before, int(self._registers[START])) if self._bounds.span is not None else before)

    @property
    def begin(self) -> int:
        """No later window begins before this row."""
        return int(self._registers[START])

    def take(self, rows: Rows, *, is_last: bool) -> Framed:
        """Frames of all instants that can be answered now."""
        self._require_room(rows)
        given = rows if is_enabled() else Rows(rows.base, *(each.tolist() for each in rows[1:]))
        ahead = self._registers.copy()
        n = int(self._walk(ahead, self._lengths, given, is_last, self._room(0)))
        if n < 0:
            raise self._unsorted(rows, ~n)
        if n > MOST:
            raise DataError(
                f"{n} instants {self._bounds.every} lie between these rows, most of them in silences; "
                "use a coarser grid, or answers at rows"
            )
        out = self._room(n + 1)
        self._walk(self._registers, self._lengths, given, is_last, out)
        n_frames = n + self._has_waiting(out, n)
        return Framed(n, Frames(out.starts[:n_frames], out.ends[:n_frames]), out.rows[:n], out.instants[:n])

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


@lru_cache(maxsize=32)
def _kernel(manner: Manner, is_compiled: bool) -> Function:
    """Make walk(registers, lengths, rows, is_last, out) -> how many instants, or ~row of the first out of order.

    With no room in `out` it only counts. Room is for one more than there are: the frame of the instant that waits.
    """
    jit, outer = (compiled, entry) if is_compiled else (interpreted, interpreted)
    index_of, frame = jit(_indexer(manner.keeps_last)), jit(_framer(manner))
    answer = jit(_answerer(frame))

    def walk(at: Any, lengths: GridLengths, rows: Rows, is_last: bool, out: _Out) -> int:
        base, order, begins, n, count = rows.base, rows.order, rows.begins, len(rows.order), 0
        for i in range(at[ROW] - base, n):
            k = index_of(order[i], lengths)
            if begins[i] or not at[IS_OPEN]:
                if at[IS_OPEN]:
                    count = answer(at, lengths, rows, at[NEXT] + 1, i, count, out)
                at[START] = at[END] = i + base
                at[IS_OPEN] = 1
            elif order[i - 1] > order[i]:
                return ~(i + base)
            elif k > at[NEXT]:
                count = answer(at, lengths, rows, k, i, count, out)
            at[NEXT] = k
            if count > MOST:
                return count
        at[ROW] = n + base
        if at[IS_OPEN] and is_last:
            count = answer(at, lengths, rows, at[NEXT] + 1, n, count, out)
            at[IS_OPEN] = 0
        elif at[IS_OPEN] and len(out.starts) > 0:
            start, end = frame(lengths, rows, at[NEXT], at[START] - base, at[END] - base, n)
            out.starts[count] = at[START] = start + base
            out.ends[count] = at[END] = end + base
        return count

    return outer(walk)


def _answerer(frame: Function) -> Function:
    """Make answer(registers, lengths, rows, stop, seen, count, out) -> count: the instants NEXT to stop - 1."""

    def answer(at: Any, lengths: GridLengths, rows: Rows, stop: int, seen: int, count: int, out: _Out) -> int:
        for k in range(at[NEXT], stop if len(out.starts) > 0 else at[NEXT]):
            start, end = frame(lengths, rows, k, at[START] - rows.base, at[END] - rows.base, seen)
            place = count + k - at[NEXT]
            out.starts[place] = at[START] = start + rows.base
            out.ends[place] = at[END] = end + rows.base
            out.rows[place] = seen - 1 + rows.base
            out.instants[place] = lengths.origin + k * lengths.step
        return count + (stop - at[NEXT])  # type: ignore[no-any-return]

    return answer


def _framer(manner: Manner) -> Function:
    """Make frame(lengths, rows, k, start, end, seen) -> the window of instant k, of the rows before `seen`."""
    has_span, keeps_first, keeps_last, has_rows = manner

    def frame(lengths: GridLengths, rows: Rows, k: int, start: int, end: int, seen: int) -> Any:
        instant, order = lengths.origin + k * lengths.step, rows.order
        while end < seen and _is_before(order[end], instant, lengths.lag, not keeps_last):
            end += 1
        while has_span and start < end and _is_before(order[start], instant, lengths.reach, keeps_first):
            start += 1
        if has_rows:
            start = max(start, end - lengths.rows)
        return start, end

    return frame


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
