"""Structures for windows that slide by slices: rows that leave together are combined on the way in.

    rows      |..........|..........|..........|..........|....        a window of 4 steps, a step later each time
    slices    [   0     ) [   1    ) [   2    ) [   3    ) [ open
                          `---- window = slices 1, 2 and 3 + the open one ---'

Frames on a grid in time begin only where a slice does; windows/grids tells the slices. Whole slices are the elements of
an in-order algorithm, the open one is a running total, and an answer is both together. What is kept is a partial for
each slice, however many rows it has.

Invariants between frames
    I1  the elements are whole slices, in order; element i ends before row stops[i & MASK]
    I2  the open slice is not empty unless all is, and ends before row place[NEXT]

Which rows share a slice does not depend on batches, nor does the order of calls: any cut of the rows gives the same
bytes.

Cost in calls of combine: 1 for each row, that of the algorithm for each slice, and 1 for each answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators.contract import END, MASK, OLDEST, Algorithm, Fifo, Jit, State
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.jit import compiled, entry, inlined, interpreted
from sash.engine import running_total, snapshot
from sash.engine.building import Built, interpreted_product, new_state, nullable, product, require_algebra
from sash.engine.driving import forgetter
from sash.engine.running_total import TOTAL
from sash.engine.structures import PLAIN, SMALLEST
from sash.engine.tasks import Kind
from sash.windows.framing import Framed

NEXT, COLUMNS = 0, 1  # the row to come next, and the first row of the columns
ANSWER, OPEN, N_SCRATCH = 0, 1, 2


class Made(NamedTuple):
    """What was made for an algorithm and some aggregates: for whole slices, for the open one, and the kernel."""

    whole: Built
    open: Built
    drive: Function


class Parts(NamedTuple):
    """Where everything is kept."""

    whole: State
    open: State
    stops: Any  # a ring as the one of `whole`
    scratch: Any
    place: Any


class Windows(NamedTuple):
    """Frames of row numbers, the first `n_answers` of which are to be answered, and where slices end."""

    starts: Any
    ends: Any
    n_answers: int
    empty: int  # a cell of no rows
    stops: Any


@lru_cache(maxsize=256)
def make(algorithm: Algorithm, kind: Kind) -> Made:
    """Make the kernel of an algorithm for some aggregates; kept for the life of the process."""
    options = require_algebra(algorithm, kind.monoids, inexact=False)
    jit, outer = (inlined, entry) if kind.is_compiled else (interpreted, interpreted)
    if kind.is_compiled:
        cells = product([(nullable if kind.has_nulls else compiled_cells)(each) for each in kind.monoids], compiled)
    else:
        cells = interpreted_product(algorithm, kind.monoids, options)
    fifo = algorithm.build(cells._replace(lift=cells.transfer), jit, **options)  # its rows are slices
    total = running_total.build(cells, jit)
    forget = forgetter(fifo, jit, at_once=algorithm.card.name in PLAIN)
    decisive = tuple(sorted(options.items()))
    whole = Built(algorithm, cells, fifo._replace(move=outer(fifo.move)), kind.is_compiled, decisive)
    return Made(
        whole,
        Built(running_total.ALGORITHM, cells, total._replace(move=outer(total.move)), kind.is_compiled),
        slices_driver((fifo, total), cells, forget, outer),
    )


def slices_driver(fifos: tuple[Fifo, Fifo], cells: Cells, forget: Function, jit: Jit) -> Function:
    """Make drive(parts, columns, framed, done, results) -> how many frames are done.

    As `runs_driver`, with slices for rows: it stops early where the ring is full, and goes on with the same frame.
    """
    (insert, evict, query, *_), (add, drop, *_) = fifos
    combine, transfer, lower = cells.combine, cells.transfer, cells.lower

    def drive_slices(parts: Parts, columns: Any, framed: Windows, done: int, results: Any) -> int:
        s, opened, stops, scratch, place = parts
        number = 0  # of the first slice that ends with the next row or later
        for i in range(done, len(framed.starts)):
            start, end = framed.starts[i], framed.ends[i]
            if start >= place[NEXT]:
                forget(s)
                drop(opened)
                place[NEXT] = start
            while s.at[OLDEST] < s.at[END] and stops[s.at[OLDEST] & s.at[MASK]] <= start:
                evict(s)
            for row in range(place[NEXT], end):
                while framed.stops[number] < row:
                    number += 1
                if framed.stops[number] == row and opened.at[OLDEST] < opened.at[END]:
                    if s.at[END] - s.at[OLDEST] > s.at[MASK]:
                        return i
                    stops[s.at[END] & s.at[MASK]] = row
                    insert(s, opened.pool, TOTAL)
                    drop(opened)
                add(opened, columns, row - place[COLUMNS])
                place[NEXT] = row + 1
            if i >= framed.n_answers:
                continue
            if start >= end:
                lower(results, i, s.pool, framed.empty)
            elif s.at[OLDEST] == s.at[END]:
                lower(results, i, opened.pool, TOTAL)
            else:
                transfer(scratch, ANSWER, s.pool, query(s))
                transfer(scratch, OPEN, opened.pool, TOTAL)
                combine(scratch, ANSWER, ANSWER, OPEN)
                lower(results, i, scratch, ANSWER)
        return len(framed.starts)

    return jit(drive_slices)


class SlicedStructure:
    """The slices of the windows at hand, inside an algorithm, and the open one."""

    __slots__ = ("_drive", "_kind", "_open", "_parts", "_whole")

    def __init__(self, algorithm: Algorithm, kind: Kind) -> None:
        self._whole, self._open, self._drive = make(algorithm, kind)
        self._kind = kind
        self._parts = Parts(
            new_state(self._whole, SMALLEST),
            new_state(self._open, running_total.CAPACITY),
            self._integers([0] * SMALLEST),
            self._whole.cells.allocate(N_SCRATCH),
            self._integers([0, 0]),
        )

    def _integers(self, values: list[int]) -> Any:
        return np.array(values, np.int64) if self._kind.is_compiled else values

    @property
    def end(self) -> int:
        """The number of the first row that was not taken in yet."""
        return int(self._parts.place[NEXT])

    @property
    def n_slices(self) -> int:
        """How many whole slices are kept."""
        return int(self._parts.whole.at[END] - self._parts.whole.at[OLDEST])

    @property
    def _capacity(self) -> int:
        return int(self._parts.whole.at[MASK]) + 1

    def results(self, n: int) -> Any:
        """Columns for n answers."""
        return self._whole.cells.results(n)

    def take(self, columns: Any, base: int, framed: Framed, results: Any) -> None:
        """Answer frames over columns whose first row has the number `base`."""
        given, done = (*framed.frames, framed.stops), 0
        if not self._kind.is_compiled:
            given = tuple(each.tolist() for each in given)
        starts, ends, stops = given
        self._parts.place[COLUMNS] = base
        while True:
            windows = Windows(starts, ends, framed.n, self._whole.empty_cell(self._capacity), stops)
            done = int(self._drive(self._parts, columns, windows, done, results))
            if done >= len(starts):
                return
            self._parts = self._moved(2 * self._capacity)

    def dump(self) -> list[Any]:
        """Everything it knows as plain data, in the least room."""
        room = SMALLEST
        while room < self.n_slices:
            room *= 2
        whole = snapshot.write(self._whole, self._kind.monoids, self._moved(room).whole)
        total = snapshot.write(self._open, self._kind.monoids, self._parts.open)
        return [whole, self._capacity, total, self.end, self._live_stops()]

    def load(self, dumped: Sequence[Any]) -> None:
        """Become what `dump` wrote, in the same room: some algorithms answer by where in it a window lies."""
        whole, capacity, total, end, stops = dumped
        state = snapshot.read(self._whole, self._kind.monoids, whole)
        ring = self._ring(stops, int(state.at[OLDEST]), int(state.at[MASK]) + 1)
        opened = snapshot.read(self._open, self._kind.monoids, total)
        self._parts = self._parts._replace(whole=state, open=opened, stops=ring)
        self._parts = self._moved(capacity)
        self._parts.place[NEXT] = end

    def _moved(self, capacity: int) -> Parts:
        old, state = self._parts.whole, new_state(self._whole, capacity)
        self._whole.fifo.move(old, state)
        return self._parts._replace(whole=state, stops=self._ring(self._live_stops(), int(old.at[OLDEST]), capacity))

    def _live_stops(self) -> list[int]:
        at, stops = self._parts.whole.at, self._parts.stops
        return [int(stops[i & at[MASK]]) for i in range(at[OLDEST], at[END])]

    def _ring(self, stops: Sequence[int], oldest: int, capacity: int) -> Any:
        ring = self._integers([0] * capacity)
        for i, stop in enumerate(stops, start=oldest):
            ring[i & (capacity - 1)] = stop
        return ring
