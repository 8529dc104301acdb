"""Drivers: loops that take whole columns through an in-order algorithm.

Elements of the window are numbered as the rows are, so a frame speaks of both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sash.aggregators.contract import END, MASK, OLDEST, Fifo, Jit, State
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.windows.frames import Frames

ELEMENTS, COLUMNS = 0, 1  # the row numbers of element 0 and of the first row of the columns


class Windows(NamedTuple):
    """Frames of row numbers; the first `n_answers` of them are to be answered."""

    starts: Any
    ends: Any
    n_answers: int
    empty: int  # a cell of no rows, for frames that hold none


def rows_driver(fifo: Fifo, cells: Cells, jit: Jit) -> Function:
    """Make drive(state, columns, n, rows, results): the last `rows` rows at every row."""
    insert, evict, query, lower = fifo.insert, fifo.evict, fifo.query, cells.lower

    def drive_rows(s: State, columns: Any, n: int, rows: int, results: Any) -> None:
        for i in range(n):
            if s.at[END] - s.at[OLDEST] == rows:
                evict(s)
            insert(s, columns, i)
            lower(results, i, s.pool, query(s))

    return jit(drive_rows)


def frames_driver(fifo: Fifo, cells: Cells, jit: Jit) -> Function:
    """Make drive(state, columns, frames, empty, results): the rows of each frame.

    `empty` is a cell of no rows, for frames that hold none.
    """
    insert, evict, query, lower = fifo.insert, fifo.evict, fifo.query, cells.lower

    def drive_frames(s: State, columns: Any, frames: Frames, empty: int, results: Any) -> None:
        for i in range(len(frames.starts)):
            start, end = frames.starts[i], frames.ends[i]
            while s.at[OLDEST] < start and s.at[OLDEST] < s.at[END]:
                evict(s)
            while s.at[END] < end:
                insert(s, columns, s.at[END])
                if s.at[OLDEST] < start:
                    evict(s)
            lower(results, i, s.pool, query(s) if start < end else empty)

    return jit(drive_frames)


def runs_driver(fifo: Fifo, cells: Cells, forget: Function, jit: Jit) -> Function:
    """Make drive(state, place, columns, framed, done, results) -> how many frames are done.

    Rows are numbered over all batches: element 0 is row place[ELEMENTS], and columns begin with row place[COLUMNS]. A
    window that begins after all elements makes `forget` drop them at once, and rows in no window are never inserted.
    Frames beyond `n_answers` are entered, not answered. It stops early where the ring is full; after the ring has
    been replaced by a larger one it goes on with the same frame.
    """
    insert, evict, query, lower = fifo.insert, fifo.evict, fifo.query, cells.lower

    def drive_runs(s: State, place: Any, columns: Any, framed: Windows, done: int, results: Any) -> int:
        starts, ends = framed.starts, framed.ends
        for i in range(done, len(starts)):
            start, end = starts[i] - place[ELEMENTS], ends[i] - place[ELEMENTS]
            if start >= s.at[END]:
                forget(s)
                place[ELEMENTS] = starts[i] - s.at[END]
                end = ends[i] - place[ELEMENTS]
            else:
                while s.at[OLDEST] < start:
                    evict(s)
            shift = place[ELEMENTS] - place[COLUMNS]
            while s.at[END] < end:
                if s.at[END] - s.at[OLDEST] > s.at[MASK]:
                    return i
                insert(s, columns, s.at[END] + shift)
            if i < framed.n_answers:
                lower(results, i, s.pool, query(s) if starts[i] < ends[i] else framed.empty)
        return len(starts)

    return jit(drive_runs)


class Keys(NamedTuple):
    """Rows of many keys, and the length of windows in rows."""

    begins: Any
    order: Any
    rows: int


def keys_driver(fifo: Fifo, cells: Cells, forget: Function, jit: Jit) -> Function:
    """Make drive(state, place, columns, keys, done, results) -> how many rows are done, or ~row out of order.

    The last so many rows of each key at every row: what `runs_driver` does, to the letter, without frames. Row
    `done` is the first of its key, or the one where the ring was full.
    """
    insert, evict, query, lower = fifo.insert, fifo.evict, fifo.query, cells.lower

    def drive_keys(s: State, place: Any, columns: Any, keys: Keys, done: int, results: Any) -> int:
        begins, order, rows = keys
        for i in range(done, len(begins)):
            if begins[np.uintp(i)] or i == 0:
                forget(s)
                place[ELEMENTS] = i - s.at[END]
            elif order[np.uintp(i - 1)] > order[np.uintp(i)]:
                return ~i
            elif s.at[END] - s.at[OLDEST] == rows:
                evict(s)
            if s.at[END] - s.at[OLDEST] > s.at[MASK]:
                return i
            insert(s, columns, i)
            lower(results, i, s.pool, query(s))
        return len(begins)

    return jit(drive_keys)


def forgetter(fifo: Fifo, jit: Jit, *, at_once: bool) -> Function:
    """Make forget(state): the window becomes empty.

    At once is right for algorithms whose empty window is told by registers of zero, whatever cells and links hold.
    """
    evict = fifo.evict

    def forget_all(s: State) -> None:
        mask = s.at[MASK]
        for register in range(len(s.at)):
            s.at[register] = 0
        s.at[MASK] = mask

    def forget_each(s: State) -> None:
        while s.at[OLDEST] < s.at[END]:
            evict(s)

    return jit(forget_all if at_once else forget_each)
