"""Structures: an in-order algorithm with its state, which takes batch after batch of frames through one kernel.

The kernel knows nothing of keys or of time: it inserts rows up to the end of a frame, evicts up to its start,
and answers. A frame that begins after everything inserted empties the structure at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators import find
from sash.aggregators.contract import END, MASK, OLDEST, Algorithm, Fifo, State
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.jit import compiled, entry, inlined, interpreted
from sash.engine import running_total, snapshot
from sash.engine.building import Built, interpreted_product, new_state, nullable, product, require_algebra
from sash.engine.driving import COLUMNS, ELEMENTS, Keys, Windows, forgetter, keys_driver, runs_driver
from sash.engine.tasks import Kind
from sash.errors import UnsupportedError
from sash.windows.framing import Framed, Rows

SMALLEST = 8  # slots of an empty window
AT_ONCE = 1 << 12  # slots that are there from the beginning if windows are known to hold so many rows

# An empty window of these is told by their registers alone, so that one can be left at once. Nor does what they
# answer depend on where in the ring a window lies: a key's answers are the same bits wherever its rows stand.
PLAIN = frozenset({
    "recalc", "subtract_on_evict", "two_stacks", "two_stacks_lite", "aba", "daba", "daba_lite", "slick_deque",
    "flat_fit", "running_total",
})  # fmt: skip


class Made(NamedTuple):
    """An algorithm made for some aggregates, and the kernel that drives it."""

    built: Built
    drive: Function
    drive_keys: Function
    inner: tuple[Cells, Fifo]  # to be compiled into other kernels


def find_in_order(name: str) -> Algorithm:
    """Look an algorithm up, and refuse those that rows in order cannot be run through."""
    if name == running_total.ALGORITHM.card.name:
        return running_total.ALGORITHM
    algorithm = find(name)
    if algorithm.card.fixed:
        raise UnsupportedError(
            f"{name} slides windows of a fixed number of rows over one column; use two_stacks_lite, or sash.slide"
        )
    if algorithm.card.order != "in order":
        raise UnsupportedError(f"{name} is for rows in any order, and these are sorted; use two_stacks_lite")
    return algorithm


@lru_cache(maxsize=256)
def make(algorithm: Algorithm, kind: Kind) -> Made:
    """Make the kernel of an algorithm for some aggregates; kept for the life of the process."""
    options = require_algebra(algorithm, kind.monoids, inexact=False)
    jit, outer = (inlined, entry) if kind.is_compiled else (interpreted, interpreted)
    if kind.is_compiled:
        cells = product([(nullable if kind.has_nulls else compiled_cells)(each) for each in kind.monoids], compiled)
    else:
        cells = interpreted_product(algorithm, kind.monoids, options)
    fifo = algorithm.build(cells, jit, **options)
    forget = forgetter(fifo, jit, at_once=algorithm.card.name in PLAIN)
    decisive = tuple(sorted(options.items()))
    built = Built(algorithm, cells, fifo._replace(move=outer(fifo.move)), kind.is_compiled, decisive)
    drive, drive_keys = runs_driver(fifo, cells, forget, outer), keys_driver(fifo, cells, forget, outer)
    return Made(built, drive, drive_keys, (cells, fifo))


class Structure:
    """The rows of the windows at hand, inside an algorithm."""

    __slots__ = ("_built", "_drive", "_drive_keys", "_kind", "_place", "_state")

    def __init__(self, algorithm: Algorithm, kind: Kind) -> None:
        self._built, self._drive, self._drive_keys, _ = make(algorithm, kind)
        self._kind = kind
        self._state = new_state(self._built, self._smallest)
        self._place: Any = np.zeros(2, np.int64) if kind.is_compiled else [0, 0]

    @property
    def end(self) -> int:
        """The number of the first row that was not inserted yet."""
        return int(self._place[ELEMENTS]) + int(self._state.at[END])

    @property
    def _capacity(self) -> int:
        return int(self._state.at[MASK]) + 1

    @property
    def _smallest(self) -> int:
        return running_total.CAPACITY if self._built.algorithm is running_total.ALGORITHM else SMALLEST

    def results(self, n: int) -> Any:
        """Columns for n answers."""
        return self._built.cells.results(n)

    def take(self, columns: Any, base: int, framed: Framed, results: Any) -> None:
        """Answer frames over columns whose first row has the number `base`."""
        starts, ends = framed.frames
        if not self._kind.is_compiled:
            starts, ends = starts.tolist(), ends.tolist()

        def drive(state: State, place: Any, done: int) -> int:
            windows = Windows(starts, ends, framed.n, self._built.empty_cell(self._capacity))
            return int(self._drive(state, place, columns, windows, done, results))

        self.work(drive, base, len(starts))

    def take_rows(self, columns: Any, given: Rows, begin: int, rows: int, results: Any) -> int | None:
        """Answer the last `rows` rows at every row from `begin`, where a key begins; a row out of order, or None."""
        begins, order = given.begins, given.order
        self.reserve(min(rows, len(begins), AT_ONCE))
        keys = Keys(begins, order, rows) if self._kind.is_compiled else Keys(begins.tolist(), order.tolist(), rows)

        def drive(state: State, place: Any, done: int) -> int:
            return int(self._drive_keys(state, place, columns, keys, done, results))

        done = self.work(drive, 0, len(begins), begin)
        return ~done if done < 0 else None

    def reserve(self, rows: int) -> None:
        """Begin with a ring for so many rows, where its size decides nothing: that saves moving from ring to ring."""
        name, room = self._built.algorithm.card.name, 1 << (rows - 1).bit_length()
        if name in PLAIN and self._smallest == SMALLEST and room > self._capacity:
            self._state = self._moved(room)

    def work(self, kernel: Callable[[State, Any, int], int], base: int, goal: int, done: int = 0) -> int:
        """Call kernel(state, place, done) -> done until it is at its goal, in a larger ring each time; or negative."""
        self._place[COLUMNS] = base
        done = kernel(self._state, self._place, done)
        while 0 <= done < goal:
            self._state = self._moved(2 * self._capacity)
            done = kernel(self._state, self._place, done)
        return done

    def dump(self) -> list[Any]:
        """Everything it knows as plain data, in the least room."""
        room, size = self._smallest, int(self._state.at[END] - self._state.at[OLDEST])
        while room < size:
            room *= 2
        window = snapshot.write(self._built, self._kind.monoids, self._moved(room))
        return [window, self._capacity, int(self._place[ELEMENTS])]

    def load(self, dumped: Sequence[Any]) -> None:
        """Become what `dump` wrote, in the same room: some algorithms answer by where in it a window lies."""
        window, capacity, first = dumped
        self._state = snapshot.read(self._built, self._kind.monoids, window)
        self._state = self._moved(capacity)
        self._place[ELEMENTS] = first

    def _moved(self, capacity: int) -> State:
        state = new_state(self._built, capacity)
        self._built.fifo.move(self._state, state)
        return state
