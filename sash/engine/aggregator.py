"""`sash.aggregator`: one window of one key, an event at a time.

The control path around an algorithm: it checks what comes in, sees to room in the ring, and turns
windows into bytes and back. By default the algorithm runs interpreted, on any Python value: for
single events, calling machine code costs more than it saves. `compiled=True` is for bulk work and
large partials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sash.aggregators import find
from sash.aggregators.contract import END, INVERTIBLE, MASK, OLDEST, Algorithm, View
from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import agg
from sash.algebra.monoid import Monoid
from sash.compiling.jit import is_enabled
from sash.engine import snapshot
from sash.engine.boundary import BoundaryAggregator, Sliding
from sash.engine.building import Built, build, nested, new_state, unnested
from sash.engine.events import Folder, OneRow, answer_of_nothing, reader, take_answer
from sash.errors import DataError, DeclarationError, EmptyWindowError, UnsupportedError

SMALLEST = 8  # slots of an empty window


def aggregator(
    algorithm: str,
    aggregate: Any,
    *,
    dtype: Any = None,
    compiled: bool = False,
    **options: Any,
) -> Any:
    """Make a window over single events: insert(value), evict(), query().

    `aggregate` is one aggregate or a dict of them, which share the structure and are answered as a
    dict. `compiled=True` makes machine code for values of `dtype` (float64 unless said).

    >>> window = aggregator("two_stacks_lite", sash.max())
    >>> for value in (3, 1, 2): window.insert(value)
    >>> window.evict(); window.query()
    2
    """
    found = find(algorithm)
    aggregates = named(aggregate)
    inputs = None if dtype is None and not compiled else np.dtype(dtype or "f8")
    monoids = tuple(each.bind(*(inputs,) * each.n_inputs) for each in aggregates.values())
    if found.card.fixed:
        return _sliding_by_itself(found, monoids, inputs, compiled and is_enabled(), options)
    built = build(found, monoids, compiled and is_enabled(), tuple(sorted(options.items())))
    names = tuple(aggregates) if isinstance(aggregate, Mapping) else None
    return InOrderAggregator(built, monoids, names, inputs, inexact=bool(options.get("inexact")))


def _sliding_by_itself(
    algorithm: Algorithm, monoids: tuple[Monoid, ...], dtype: Any, is_compiled: bool, options: dict[str, Any]
) -> BoundaryAggregator:
    if len(monoids) != 1:
        raise UnsupportedError(f"{algorithm.card.name} takes one aggregate; two_stacks_lite takes several")
    try:
        sliding = Sliding(**{"slide": 1, **options})
    except TypeError:
        raise DeclarationError(
            f"{algorithm.card.name} takes range=, slide=, chunk=, by= and combine_time=, got {sorted(options)}"
        ) from None
    return BoundaryAggregator(algorithm, monoids[0], sliding, dtype, is_compiled=is_compiled)


def named(aggregate: Any) -> dict[str, Aggregate]:
    """Read one aggregate, or a dict of them, into a dict."""
    if isinstance(aggregate, Mapping):
        if not aggregate:
            raise DeclarationError("no aggregate given; pass one, or a dict of names to aggregates")
        return {str(name): as_aggregate(each) for name, each in aggregate.items()}
    single = as_aggregate(aggregate)
    return {single.name: single}


def as_aggregate(given: Any) -> Aggregate:
    """Read an aggregate, or a class that declares one."""
    return given if isinstance(given, Aggregate) else agg(given)


class InOrderAggregator:
    """A window over events in order of arrival."""

    __slots__ = ("__weakref__", "_built", "_columns", "_monoids", "_n_values", "_names", "_refuses_floats", "_results", "_rows", "_state")

    def __init__(
        self, built: Built, monoids: tuple[Monoid, ...], names: tuple[str, ...] | None, dtype: Any, *, inexact: bool
    ) -> None:
        self._built = built
        self._monoids = monoids
        self._names = names
        self._n_values = max(monoid.n_inputs for monoid in monoids)
        self._refuses_floats = built.algorithm.card.needs == INVERTIBLE and dtype is None and not inexact
        self._state = new_state(built, SMALLEST)
        self._results = built.cells.results(1)
        self._rows = [OneRow(monoid, dtype, is_compiled=built.is_compiled) for monoid in monoids]
        self._columns = nested([row.columns for row in self._rows])

    def __len__(self) -> int:
        return int(self._state.at[END] - self._state.at[OLDEST])

    def __repr__(self) -> str:
        aggregates = ", ".join(monoid.name for monoid in self._monoids)
        return f"<{self._built.algorithm.card.name} over {aggregates}: {len(self)} elements>"

    def insert(self, *values: Any) -> None:
        """Append one event, None for null; several values if the aggregate takes several."""
        if len(values) != self._n_values and not (self._n_values == 0 and len(values) == 1):
            raise DataError(f"insert takes {self._n_values} value(s), got {len(values)}")
        if len(self) == self._capacity:
            self._resize(2 * self._capacity)
        if self._refuses_floats and any(isinstance(value, float) for value in values):
            raise UnsupportedError(
                f"{self._built.algorithm.card.name} would subtract floats, and the answer would drift. "
                "Use two_stacks_lite, or pass inexact=True to accept the drift"
            )
        for row in self._rows:
            row.put(values)
        self._built.fifo.insert(self._state, self._columns, 0)

    def evict(self) -> None:
        """Remove the oldest event."""
        if len(self) == 0:
            raise EmptyWindowError("evict() on an empty window")
        self._built.fifo.evict(self._state)
        if SMALLEST < self._capacity and 4 * len(self) < self._capacity:
            self._resize(self._capacity // 2)

    def query(self) -> Any:
        """Aggregate everything in the window; null (None) if it holds nothing to aggregate."""
        if len(self) == 0:
            answers = [answer_of_nothing(monoid) for monoid in self._monoids]
        else:
            cell = self._built.fifo.query(self._state)
            self._built.cells.lower(self._results, 0, self._state.pool, cell)
            results = unnested(self._results, len(self._monoids))
            answers = [take_answer(each, monoid) for each, monoid in zip(results, self._monoids, strict=True)]
        return answers[0] if self._names is None else dict(zip(self._names, answers, strict=True))

    def bulk_insert(self, values: Iterable[Any]) -> None:
        """Append many events, each a value or a tuple of values."""
        for value in values:
            self.insert(*value) if isinstance(value, tuple) else self.insert(value)

    def bulk_evict(self, count: int) -> None:
        """Remove the oldest `count` events."""
        if not 0 <= count <= len(self):
            raise EmptyWindowError(f"cannot evict {count} of {len(self)} events")
        for _ in range(count):
            self.evict()

    def snapshot(self) -> bytes:
        """Write the whole window to bytes."""
        return snapshot.write(self._built, self._monoids, self._compact_state())

    def restore(self, data: bytes) -> None:
        """Replace this window by one written by `snapshot` for the same algorithm and aggregates."""
        self._state = snapshot.read(self._built, self._monoids, data)

    def check_invariants(self, lifted: list[Any]) -> None:
        """Check the invariants of the algorithm, given the partial of every element so far inserted.

        Raises AssertionError with the number of the invariant that is broken.
        """
        first = unnested(self._state.pool, len(self._monoids))[0]
        read = reader(first, is_compiled=self._built.is_compiled)
        self._built.algorithm.check(View(self._state, read, Folder(self._monoids[0], lifted)))

    @property
    def _capacity(self) -> int:
        return int(self._state.at[MASK]) + 1

    def _resize(self, capacity: int) -> None:
        larger = new_state(self._built, capacity)
        self._built.fifo.move(self._state, larger)
        self._state = larger

    def _compact_state(self) -> Any:
        capacity = SMALLEST
        while capacity < len(self):
            capacity *= 2
        state = new_state(self._built, capacity)
        self._built.fifo.move(self._state, state)
        return state
