"""Drivers: loops that take whole columns through an in-order algorithm.

Elements of the window are numbered as the rows are, so a frame speaks of both.
"""

from __future__ import annotations

from typing import Any

from sash.aggregators.contract import END, OLDEST, Fifo, Jit, State
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.windows.frames import Frames


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
