"""A compiled window over single events: one short call of machine code for each.

The control path of `in_order`, with what it does for every event inside the kernels: whether there is room, whether
there are events, and the answer. They are handed the addresses of all arrays (see addresses), because handing over
the arrays takes ten times as long as all they do.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators.contract import END, MASK, OLDEST, State
from sash.algebra.monoid import Function
from sash.compiling.addresses import restorer, table_of
from sash.compiling.jit import compiled, entry, inlined
from sash.engine.binding import Bound
from sash.engine.building import Built, nested, new_state
from sash.engine.in_order import SMALLEST, InOrderAggregator
from sash.errors import EmptyWindowError

EMPTY, NULL, DONE, LARGE = 0, 1, 2, 3  # what a kernel found, or did
KINDS = {np.dtype(np.float64): float, np.dtype(np.int64): int}  # of values that are the same in machine code


class Kernels(NamedTuple):
    """What machine code does for an event, each given the table of the window's arrays."""

    insert_row: Function  # (table) -> whether there was room for the row that was put
    insert_value: Function  # (table, value) -> the same, and puts it
    evict: Function  # (table) -> EMPTY, DONE, or LARGE if there is too much room now
    answer: Function  # (table) -> EMPTY, NULL, or DONE if the answer has been written


class CompiledAggregator(InOrderAggregator):
    """A window over events in order of arrival, in machine code."""

    __slots__ = ("_insert_row", "_kind", "_registers", "_shown", "_table")

    def __init__(self, built: Built, bound: Bound, *, inexact: bool = False) -> None:
        super().__init__(built, bound, inexact=inexact)
        self._insert_row, self._insert, self._evict, self._query = _kernels(built, bound)
        self._kind = _kind(bound) if not self._refuses_floats else None
        self._shown = memoryview(self._results[0]) if _is_number(bound, self._results) else None
        self._lay_out()

    def __len__(self) -> int:
        return self._registers[END] - self._registers[OLDEST]

    def insert(self, *values: Any, **named: Any) -> None:
        """Append one event, None for null; several values if the aggregates take several, by name if they name them."""
        if len(values) == 1 and type(values[0]) is self._kind and not named:
            while not self._insert(self._table, values[0]):
                self._make_room()
            return
        event = self._event(values, named)
        for row in self._rows:
            row.put(event)
        while not self._insert_row(self._table):
            self._make_room()

    def evict(self) -> None:
        """Remove the oldest event."""
        found = self._evict(self._table)
        if found == EMPTY:
            raise EmptyWindowError("evict() on an empty window")
        if found == LARGE:
            self._shrink()

    def query(self) -> Any:
        """Aggregate everything in the window; null (None) if it holds nothing to aggregate."""
        found = self._query(self._table)
        if found == EMPTY:
            return self._bound.answer_of_nothing()
        if self._shown is None:
            return self._bound.answer(self._results)
        return self._shown[0] if found == DONE else None

    def restore(self, data: bytes) -> None:
        """Replace this window by one written by `snapshot` for the same algorithm and aggregates."""
        super().restore(data)
        self._lay_out()

    def _make_room(self) -> None:
        if len(self) == self._capacity:
            self._resize(2 * self._capacity)
        else:
            self._shrink()

    def _resize(self, capacity: int) -> None:
        super()._resize(capacity)
        self._lay_out()

    def _lay_out(self) -> None:
        """Note where the arrays of the window are."""
        self._table = table_of((tuple(self._state), self._columns, self._results))
        self._registers = memoryview(self._state.at)


def _kind(bound: Bound) -> type | None:
    """The type of Python's values that events have if each aggregate reads one column; None: they are put apart."""
    read = {bound.dtype_of(place) for reads in bound.reads for place in reads}
    if bound.n_values > 1 or len(read) != 1 or max(map(len, bound.reads)) > 1:
        return None
    return KINDS.get(read.pop())


def _is_number(bound: Bound, results: Any) -> bool:
    """Whether there is one answer, and it is read as it stands."""
    answers = results[0]
    return bound.has_plain_answers and isinstance(answers, np.ndarray) and answers.ndim == 1 and answers.dtype in KINDS


@lru_cache(maxsize=256)
def _kernels(built: Built, bound: Bound) -> Kernels:
    fifo = built.algorithm.build(built.cells, inlined, **dict(built.options))
    insert, evict, query, lower = fifo.insert, fifo.evict, fifo.query, built.cells.lower
    columns, results = nested([row.columns for row in bound.rows()]), built.cells.results(1)
    restore = restorer((tuple(new_state(built, SMALLEST)), columns, results))
    put, is_number = _putter(columns), _is_number(bound, results)

    @compiled
    def has_room(s: State) -> bool:
        n, capacity = s.at[END] - s.at[OLDEST], s.at[MASK] + 1
        return bool(n < capacity and (4 * n >= capacity or capacity <= SMALLEST))

    def insert_row(table: Any) -> bool:
        arrays, columns, _ = restore(table)
        s = State(*arrays)
        if not has_room(s):
            return False
        insert(s, columns, 0)
        return True

    def insert_value(table: Any, value: Any) -> bool:
        arrays, columns, _ = restore(table)
        s = State(*arrays)
        if not has_room(s):
            return False
        put(columns, value)
        insert(s, columns, 0)
        return True

    def evict_oldest(table: Any) -> int:
        arrays, _, _ = restore(table)
        s = State(*arrays)
        if s.at[END] == s.at[OLDEST]:
            return EMPTY
        evict(s)
        return LARGE if 4 * (s.at[END] - s.at[OLDEST]) < s.at[MASK] + 1 > SMALLEST else DONE

    def answer(table: Any) -> int:
        arrays, _, results = restore(table)
        s = State(*arrays)
        if s.at[END] == s.at[OLDEST]:
            return EMPTY
        lower(results, 0, s.pool, query(s))
        if is_number and not results[1][0]:
            results[1][0] = True
            return NULL
        return DONE

    return Kernels(entry(insert_row), entry(insert_value), entry(evict_oldest), entry(answer))


def _putter(columns: Any) -> Function:
    """Make put(columns, value): the value of an event, for all aggregates that read one."""
    if not isinstance(columns[0], np.ndarray):
        return compiled(_both(*map(_putter, columns)))
    return compiled(_put_one if len(columns[1]) else _put_none)


def _both(first: Function, second: Function) -> Function:
    def put(columns: Any, value: Any) -> None:
        first(columns[0], value)
        second(columns[1], value)

    return put


def _put_one(columns: Any, value: Any) -> None:
    columns[0][0] = True
    columns[1][0][0] = value


def _put_none(columns: Any, value: Any) -> None:
    columns[0][0] = True
