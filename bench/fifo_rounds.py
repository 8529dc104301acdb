"""Rounds of evict, insert and query over one window in order, compiled: how every in-order algorithm is timed here.

A window is filled once and then moves on from turn to turn, so that a turn of a few thousand rounds meets a window of
2^22 elements as it is in the long run. Values are a block of seeded numbers, read again and again. With SASH_JIT=0 the
same runs interpreted: no use for measuring, but for testing that it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bench.alike import picking
from bench.cycles import clock
from sash.aggregators import find
from sash.aggregators.contract import END, OLDEST, Algorithm, Fifo, State
from sash.algebra.monoid import Function, Monoid
from sash.compiling.cells import Cells
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.jit import compiled, entry, inlined, interpreted
from sash.engine.binding import bind
from sash.engine.building import Built, interpreted_product, nested, new_state, product, require_algebra
from sash.engine.driving import rows_driver

SEED = 20261115
BLOCK = 4096
STAGGER = 40  # elements: five lines of a cache, if they have 8 bytes
LINE = 64  # bytes of a line of a cache
MOVABLE = 32 << 20  # bytes that are moved from turn to turn
Options = tuple[tuple[str, Any], ...]


class Drivers(NamedTuple):
    """The loops over one algorithm and some aggregates."""

    built: Built
    rounds: Function  # (state, columns, n, rows, results)
    clocked: Function  # (states, columns, n, rows, results, spent): the ticks of each round of all states together
    firings: Function  # (state, columns, n, change, results): n changes, answered once in `change` of them
    fill: Function  # (state, columns, n)

    @property
    def cells(self) -> Cells:
        """The cells of its pool."""
        return self.built.cells

    def new_state(self, n: int) -> State:
        """Empty state with room for n elements, as much as the engine takes: rounds evict before they insert."""
        return new_state(self.built, 1 << max(3, (n - 1).bit_length()))


class FifoRounds:
    """A window of n elements and rounds over it."""

    def __init__(self, algorithm: str | Algorithm, aggregate: Any, n: int, **options: Any) -> None:
        dtype, self.block = options.pop("dtype", "f8"), options.pop("block", BLOCK)
        found = find(algorithm) if isinstance(algorithm, str) else algorithm
        bound = bind(aggregate, dtype, compiled=True)
        self.drivers = drivers(found, bound.monoids, tuple(sorted(options.items())), bound.is_compiled)
        self.n, self.columns = n, columns_of(bound.monoids, self.block, dtype, is_compiled=bound.is_compiled)
        self.results = self.drivers.cells.results(self.block)
        self.state, self.n_moves = copied(self.drivers.new_state(n)), 0
        for length in blocks_of(n, self.block):
            self.drivers.fill(self.state, self.columns, length)

    def rounds(self, count: int | None = None) -> Callable[[], None]:
        """Prepare rounds: a block of them, or as many."""
        blocks = blocks_of(count or self.block, self.block)

        def take() -> None:
            for length in blocks:
                self.drivers.rounds(self.state, self.columns, length, self.n, self.results)

        return take

    @property
    def answers(self) -> Any:
        """Those of the last block of rounds."""
        return self.results[0]

    def move(self) -> None:
        """Go on in other memory, unless it is too much: which lines of a cache a window competes for is luck as well.

        A window of four rows of 2 kB takes a tenth longer in one of twenty places.
        """
        if nbytes(self.state) <= MOVABLE:
            self.n_moves += 1
            self.state = copied(self.state, self.n_moves % 8)

    def firings(self, count: int, change: int) -> Callable[[], None]:
        """Prepare evictions and insertions that are answered once in `change` of them."""
        blocks = blocks_of(count, max(self.block // change * change, change))

        def take() -> None:
            for length in blocks:
                self.drivers.firings(self.state, self.columns, length, change, self.results)

        return take

    def clocked(self, count: int, repeats: int = 5, n_windows: int | None = None) -> Any:
        """The ticks of each of so many rounds: the median of several repeats, each from the same window.

        The clock is read once for a round of several windows that are alike, and a round is one's share of it, as one
        alone may take less than a step of the clock. A share may be less than a round alone takes, as windows do not
        wait for each other, or more, as they share the caches; the mean of whole turns tells. The same rounds do the
        same work, so what differs between repeats is the machine's; an eviction that moves the whole window is slow in
        all of them.
        """
        spent, n_windows = np.zeros((repeats, count), np.int64), n_windows or self.n_alike
        for row in spent:
            states = tuple(copied(self.state, number) for number in range(n_windows))
            for begin in range(0, count, self.block):
                part = row[begin : begin + self.block]
                self.drivers.clocked(states, self.columns, len(part), self.n, self.results, part)
        return np.median(spent, axis=0) / n_windows

    @property
    def n_alike(self) -> int:
        """How many windows are clocked together: as many as stay in a cache."""
        return alike(self.state)


def copied(state: Any, number: int = 0) -> Any:
    """The same state in memory of its own, which begins where a line of the caches does.

    Those of several states begin at other places in their pages, as the same places of all would compete for a few
    lines of the first cache.
    """
    if isinstance(state, tuple):
        parts = (copied(part, number) for part in state)
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    if isinstance(state, list):
        return state.copy()
    shift = number * STAGGER
    copy = _from_a_line((len(state) + shift, *state.shape[1:]), state.dtype)[shift:]
    copy[:] = state
    return copy


def _from_a_line(shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory for an array. Where malloc puts one within a line is luck, and decides whether vectors lie across lines.

    A combine of rows of 2 kB takes half as long again if they do: more than what algorithms differ by.
    """
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.empty(n_bytes + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    return room[begin : begin + n_bytes].view(dtype).reshape(shape)


def alike(state: Any) -> int:
    """How many windows like this one are clocked together: at most 16, of 4 MB in all."""
    return max(1, min(16, (4 << 20) // max(nbytes(state), 1)))


def nbytes(state: Any) -> int:
    """What a state takes."""
    if isinstance(state, tuple):
        return sum(map(nbytes, state))
    return int(getattr(state, "nbytes", 8 * len(state)))


def blocks_of(count: int, block: int) -> list[int]:
    """So many rounds as lengths of one block, the last of which may be shorter."""
    return [min(block, count - begin) for begin in range(0, count, block)]


def columns_of(monoids: tuple[Monoid, ...], n: int, dtype: str, *, is_compiled: bool) -> Any:
    """Seeded numbers for every input of some aggregates: above 0 and at most 1, or integers below 1000."""
    values = np.random.default_rng(SEED).random(n)
    column: Any = 1.0 - values if np.dtype(dtype).kind == "f" else (values * 1000).astype(dtype)
    column = column if is_compiled else column.tolist()
    return nested([(column,) * monoid.n_inputs for monoid in monoids])


@lru_cache(maxsize=256)
def drivers(algorithm: Algorithm, monoids: tuple[Monoid, ...], options: Options, is_compiled: bool) -> Drivers:
    """Make the loops; each is compiled when it is first called."""
    chosen = require_algebra(algorithm, monoids, inexact=False) | dict(options)
    jit, outer = (inlined, entry) if is_compiled else (interpreted, interpreted)
    if is_compiled:
        cells = product([compiled_cells(monoid.narrow or monoid) for monoid in monoids], compiled)
    else:
        cells = interpreted_product(algorithm, monoids, chosen)
    fifo = algorithm.build(cells, jit, **chosen)
    loops = (
        rows_driver(fifo, cells, outer),
        outer(_clocked(fifo, cells, clock(is_compiled), *picking(is_compiled))),
        outer(_firings(fifo, cells)),
    )
    return Drivers(Built(algorithm, cells, fifo, is_compiled), *loops, outer(_filler(fifo)))


def _clocked(fifo: Fifo, cells: Cells, now: Function, store: Function, pick: Function) -> Function:
    insert, evict, query, lower = fifo.insert, fifo.evict, fifo.query, cells.lower

    def clocked(states: tuple[State, ...], columns: Any, n: int, rows: int, results: Any, spent: Any) -> None:
        place = store(states)
        for i in range(n):
            before = now()
            for number in range(len(states)):
                s = pick(place, number, states)
                if s.at[END] - s.at[OLDEST] == rows:
                    evict(s)
                insert(s, columns, i)
                lower(results, i, s.pool, query(s))
            spent[i] = now() - before

    return clocked


def _firings(fifo: Fifo, cells: Cells) -> Function:
    insert, evict, query, lower = fifo.insert, fifo.evict, fifo.query, cells.lower

    def firings(s: State, columns: Any, n: int, change: int, results: Any) -> None:
        n_rows = len(columns[0])
        for i in range(0, n, change):
            for _ in range(change):
                evict(s)
            for k in range(i, i + change):
                insert(s, columns, k % n_rows)
            lower(results, i % n_rows, s.pool, query(s))

    return firings


def _filler(fifo: Fifo) -> Function:
    insert = fifo.insert

    def fill(s: State, columns: Any, n: int) -> None:
        for i in range(n):
            insert(s, columns, i)

    return fill
