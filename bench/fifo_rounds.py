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

from bench.cycles import clock
from sash.aggregators import find
from sash.aggregators.contract import END, OLDEST, Algorithm, Fifo, State
from sash.algebra.monoid import Function, Monoid
from sash.compiling.cells import Cells
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.jit import compiled, entry, interpreted
from sash.engine.binding import bind
from sash.engine.building import Built, interpreted_product, nested, new_state, product, require_algebra
from sash.engine.driving import rows_driver

SEED = 20261115
BLOCK = 4096
Options = tuple[tuple[str, Any], ...]


class Drivers(NamedTuple):
    """The loops over one algorithm and some aggregates."""

    built: Built
    rounds: Function  # (state, columns, n, rows, results)
    clocked: Function  # (the same, spent): and the ticks of each round
    firings: Function  # (state, columns, n, change, results): n changes, answered once in `change` of them
    fill: Function  # (state, columns, n)

    @property
    def cells(self) -> Cells:
        """The cells of its pool."""
        return self.built.cells

    def new_state(self, n: int) -> State:
        """Empty state with room for n elements."""
        return new_state(self.built, 1 << max(3, (n + 1).bit_length()))


class FifoRounds:
    """A window of n elements and rounds over it."""

    def __init__(self, algorithm: str | Algorithm, aggregate: Any, n: int, **options: Any) -> None:
        dtype, self.block = options.pop("dtype", "f8"), options.pop("block", BLOCK)
        found = find(algorithm) if isinstance(algorithm, str) else algorithm
        bound = bind(aggregate, dtype, compiled=True)
        self.drivers = drivers(found, bound.monoids, tuple(sorted(options.items())), bound.is_compiled)
        self.n, self.columns = n, columns_of(bound.monoids, self.block, dtype, is_compiled=bound.is_compiled)
        self.results = self.drivers.cells.results(self.block)
        self.state = self.drivers.new_state(n)
        for length in _blocks(n, self.block):
            self.drivers.fill(self.state, self.columns, length)

    def rounds(self, count: int | None = None) -> Callable[[], None]:
        """Prepare rounds: a block of them, or as many."""
        blocks = _blocks(count or self.block, self.block)

        def take() -> None:
            for length in blocks:
                self.drivers.rounds(self.state, self.columns, length, self.n, self.results)

        return take

    def firings(self, count: int, change: int) -> Callable[[], None]:
        """Prepare evictions and insertions that are answered once in `change` of them."""
        blocks = _blocks(count, max(self.block // change * change, change))

        def take() -> None:
            for length in blocks:
                self.drivers.firings(self.state, self.columns, length, change, self.results)

        return take

    def clocked(self, count: int, repeats: int = 5) -> Any:
        """The ticks of each of so many rounds: the median of several repeats, each from the same window.

        The same rounds do the same work, so what differs between repeats is the machine's; an eviction that moves
        the whole window is slow in all of them.
        """
        spent, begun = np.zeros((repeats, count), np.int64), self.state
        for row in spent:
            self.state = copied(begun)
            for begin in range(0, count, self.block):
                part = row[begin : begin + self.block]
                self.drivers.clocked(self.state, self.columns, len(part), self.n, self.results, part)
        return np.median(spent, axis=0)


def copied(state: Any) -> Any:
    """The same state in memory of its own."""
    if not isinstance(state, tuple):
        return state.copy()
    parts = map(copied, state)
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def _blocks(count: int, block: int) -> list[int]:
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
    jit, outer = (compiled, entry) if is_compiled else (interpreted, interpreted)
    if is_compiled:
        cells = product([compiled_cells(monoid.narrow or monoid) for monoid in monoids], compiled)
    else:
        cells = interpreted_product(algorithm, monoids, chosen)
    fifo = algorithm.build(cells, jit, **chosen)
    loops = (
        rows_driver(fifo, cells, outer),
        outer(_clocked(fifo, cells, clock(is_compiled))),
        outer(_firings(fifo, cells)),
    )
    return Drivers(Built(algorithm, cells, fifo, is_compiled), *loops, outer(_filler(fifo)))


def _clocked(fifo: Fifo, cells: Cells, now: Function) -> Function:
    insert, evict, query, lower = fifo.insert, fifo.evict, fifo.query, cells.lower

    def clocked(s: State, columns: Any, n: int, rows: int, results: Any, spent: Any) -> None:
        for i in range(n):
            before = now()
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
