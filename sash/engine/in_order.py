"""The control path around an in-order algorithm: one window of one key, an event at a time.

It checks what comes in, sees to room in the ring, and turns windows into bytes and back.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sash.aggregators.contract import ASSOCIATIVE, END, MASK, OLDEST, State, View
from sash.compiling.jit import entry, interpreted
from sash.engine import snapshot
from sash.engine.binding import Bound
from sash.engine.building import Built, nested, new_state, unnested
from sash.engine.events import Folder, reader
from sash.errors import DataError, EmptyWindowError, UnsupportedError

SMALLEST = 8  # slots of an empty window
MANY = 1000  # calls of machine code: as many pay for a loop of its own


class InOrderAggregator:
    """A window over events in order of arrival."""

    __slots__ = (
        "__weakref__", "_bound", "_built", "_columns", "_evict", "_insert", "_is_plain", "_is_single", "_lower",
        "_n_values", "_query", "_refuses_floats", "_results", "_rows", "_state",
    )  # fmt: skip

    def __init__(self, built: Built, bound: Bound, *, inexact: bool = False) -> None:
        self._built = built
        self._insert, self._evict, self._query = built.fifo[:3]  # at hand, on every event's way
        self._lower = built.cells.lower
        self._bound = bound
        subtracts = built.algorithm.card.needs != ASSOCIATIVE and not dict(built.options).get("selective")
        self._refuses_floats = subtracts and not inexact and any(monoid.exact is None for monoid in bound.monoids)
        self._state = new_state(built, SMALLEST)
        self._results = built.cells.results(1)
        self._n_values = values_of_event(bound)
        self._is_plain = not built.is_compiled and bound.has_plain_answers  # answers are read as they stand
        self._is_single = not built.is_compiled and [*map(tuple, bound.reads)] == [(0,)]  # an event is its one column
        self._rows = bound.rows()
        self._columns = nested([row.columns for row in self._rows])

    def __len__(self) -> int:
        at = self._state.at
        n: int = at[END] - at[OLDEST]
        return n

    def __repr__(self) -> str:
        aggregates = ", ".join(monoid.name for monoid in self._bound.monoids)
        return f"<{self._built.algorithm.card.name} over {aggregates}: {len(self)} elements>"

    def insert(self, *values: Any, **named: Any) -> None:
        """Append one event, None for null; several values if the aggregates take several, by name if they name them."""
        if named or self._refuses_floats or len(values) != self._n_values:
            values = self._event(values, named)
        if not self._is_single:
            for row in self._rows:
                row.put(values)
        at = self._state.at
        n, capacity = at[END] - at[OLDEST], at[MASK] + 1
        if n == capacity:
            self._resize(2 * int(capacity))
        elif 4 * n < capacity > SMALLEST:
            self._shrink()
        self._insert(self._state, (values,) if self._is_single else self._columns, 0)

    def _event(self, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        event = event_of(self._bound, values, named)
        if self._refuses_floats and any(isinstance(value, float) for value in event):
            raise UnsupportedError(
                f"{self._built.algorithm.card.name} would subtract floats, and the answer would drift. "
                "Use two_stacks_lite, or pass inexact=True to accept the drift"
            )
        return event

    def evict(self) -> None:
        """Remove the oldest event."""
        at = self._state.at
        if at[END] == at[OLDEST]:
            raise EmptyWindowError("evict() on an empty window")
        self._evict(self._state)
        if 4 * (at[END] - at[OLDEST]) < at[MASK] + 1 > SMALLEST:
            self._shrink()

    def query(self) -> Any:
        """Aggregate everything in the window; null (None) if it holds nothing to aggregate."""
        at = self._state.at
        if at[END] == at[OLDEST]:
            return self._bound.answer_of_nothing()
        return self._answer(self._query(self._state))

    def bulk_insert(self, values: Any) -> None:
        """Append many events: values, tuples of values, an array, or a dict of arrays by column."""
        if not self._built.is_compiled:
            for event in self._bound.events(values):
                self.insert(*event)
            return
        n, columns = self._bound.many(values)
        capacity = self._capacity
        while capacity < len(self) + n:
            capacity *= 2
        if capacity > self._capacity:
            self._resize(capacity)
        inserter(self._built)(self._state, columns, 0, n)
        self._shrink()

    def bulk_evict(self, count: int) -> None:
        """Remove the oldest `count` events; the next event gives back the room that is not needed any more."""
        if not 0 <= count <= len(self):
            raise EmptyWindowError(f"cannot evict {count} of {len(self)} events")
        self._evict_to(int(self._state.at[OLDEST]) + count)

    def _evict_to(self, element: int) -> None:
        fifo, count = self._built.fifo, element - int(self._state.at[OLDEST])
        if fifo.evict_to is not None and count > 1:
            fifo.evict_to(self._state, element)
        elif self._built.is_compiled and count >= MANY:
            evicter(self._built)(self._state, count)
        else:
            for _ in range(count):
                fifo.evict(self._state)

    def bulk_evict_while(self, policy: Any) -> None:
        """Remove what a policy gives up: for windows that keep their elements."""
        raise UnsupportedError(
            f"{self._built.algorithm.card.name} forgets its elements, and a policy asks about them. "
            "Use amta or log_mta, or make the window with policy="
        )

    def snapshot(self) -> bytes:
        """Write the whole window to bytes."""
        return snapshot.write(self._built, self._bound.monoids, self._compact_state())

    def restore(self, data: bytes) -> None:
        """Replace this window by one written by `snapshot` for the same algorithm and aggregates."""
        self._state = snapshot.read(self._built, self._bound.monoids, data)

    def check_invariants(self, lifted: list[Any]) -> None:
        """Check the invariants of the algorithm, given the partial of every element so far inserted.

        Raises AssertionError with the number of the invariant that is broken.
        """
        first = unnested(self._state.pool, len(self._bound.monoids))[0]
        read = reader(first, is_compiled=self._built.is_compiled)
        self._built.algorithm.check(View(self._state, read, Folder(self._bound.monoids[0], lifted)))

    def _answer(self, cell: int) -> Any:
        self._lower(self._results, 0, self._state.pool, cell)
        return self._results[0][0] if self._is_plain else self._bound.answer(self._results)

    @property
    def _capacity(self) -> int:
        return int(self._state.at[MASK]) + 1

    def _resize(self, capacity: int) -> None:
        larger = new_state(self._built, capacity)
        self._built.fifo.move(self._state, larger)
        self._state = larger

    def _shrink(self) -> None:
        """Give back room if less than a quarter of it is in use."""
        capacity = self._capacity
        while SMALLEST < capacity and 4 * len(self) < capacity:
            capacity //= 2
        if capacity < self._capacity:
            self._resize(capacity)

    def _compact_state(self) -> Any:
        capacity = SMALLEST
        while capacity < len(self):
            capacity *= 2
        state = new_state(self._built, capacity)
        self._built.fifo.move(self._state, state)
        return state


def event_of(bound: Bound, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Check the values of one event, given in order or by name."""
    if named:
        if values or set(named) != set(bound.columns):
            raise DataError(
                f"insert takes {', '.join(bound.columns) or 'values without names'}, got {', '.join(named)}"
            )
        values = tuple(named[name] for name in bound.columns)
    if len(values) != values_of_event(bound):
        raise DataError(f"insert takes {values_of_event(bound)} value(s), got {len(values)}")
    return values


def values_of_event(bound: Bound) -> int:
    """How many values insert takes: a count of rows is told of each by some value."""
    return max(bound.n_values, 1)


@lru_cache(maxsize=256)
def inserter(built: Built) -> Any:
    """Make insert(state, columns, begin, end): one call for many rows."""
    insert = built.fifo.insert

    def insert_many(s: State, columns: Any, begin: int, end: int) -> None:
        for i in range(begin, end):
            insert(s, columns, i)

    return (entry if built.is_compiled else interpreted)(insert_many)


@lru_cache(maxsize=256)
def evicter(built: Built) -> Any:
    """Make evict(state, count): one call for many elements."""
    evict = built.fifo.evict

    def evict_many(s: State, count: int) -> None:
        for _ in range(count):
            evict(s)

    return (entry if built.is_compiled else interpreted)(evict_many)
