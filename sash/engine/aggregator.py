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
from sash.aggregators.contract import END, MASK, OLDEST, View
from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import agg
from sash.algebra.monoid import Monoid, ungraded
from sash.algebra.state import Row
from sash.compiling.jit import is_enabled
from sash.engine import snapshot
from sash.engine.building import Built, build, new_state
from sash.errors import DataError, DeclarationError, EmptyWindowError

SMALLEST = 8  # slots of an empty window


def aggregator(
    algorithm: str,
    aggregate: Any,
    *,
    dtype: Any = None,
    compiled: bool = False,
    **options: Any,
) -> InOrderAggregator:
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
    built = build(found, monoids, compiled and is_enabled(), tuple(sorted(options.items())))
    names = tuple(aggregates) if isinstance(aggregate, Mapping) else None
    return InOrderAggregator(built, monoids, names)


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

    __slots__ = ("_built", "_columns", "_monoids", "_n_values", "_names", "_results", "_state")

    def __init__(self, built: Built, monoids: tuple[Monoid, ...], names: tuple[str, ...] | None) -> None:
        self._built = built
        self._monoids = monoids
        self._names = names
        self._n_values = max(monoid.n_inputs for monoid in monoids)
        self._state = new_state(built, SMALLEST)
        self._results = built.cells.results(1)
        self._columns = _Cell.columns(monoids, built.is_compiled)

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
        for cell in self._columns.cells:
            cell.put(values)
        self._built.fifo.insert(self._state, self._columns.nested, 0)

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
            answers = [self._answer_of_nothing(monoid) for monoid in self._monoids]
        else:
            cell = self._built.fifo.query(self._state)
            self._built.cells.lower(self._results, 0, self._state.pool, cell)
            answers = _answers(self._results, self._monoids, self._built.is_compiled)
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
        self._built.algorithm.check(View(self._state, self._reader(), _Folder(self._monoids[0], lifted)))

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

    def _answer_of_nothing(self, monoid: Monoid) -> Any:
        if not monoid.answers_empty:
            return None
        plain = ungraded(monoid)
        identity = np.full(plain.state.width, plain.identity) if isinstance(plain.state, Row) else plain.identity
        return plain.lower(identity) if plain.lower else identity

    def _reader(self) -> Any:
        """How to read a cell as the partial it holds; of the first aggregate, if there are several."""
        pool = self._state.pool
        for _ in self._monoids[1:]:
            pool = pool[0]
        if not self._built.is_compiled:
            return lambda cell: pool[cell]
        counts, inner = pool
        if isinstance(inner, tuple):
            return lambda cell: tuple(field[cell].item() for field in inner) if counts[cell] else None
        return lambda cell: inner[cell] if counts[cell] else None


class _Folder:
    """Folds the truth, for `check_invariants`."""

    def __init__(self, monoid: Monoid, lifted: list[Any]) -> None:
        self._combine = ungraded(monoid).combine
        self._row = monoid.state if isinstance(monoid.state, Row) else None
        self._lifted = lifted

    def __call__(self, first: int, end: int) -> Any:
        total = None
        for partial in self._lifted[first:end]:
            if total is None or partial is None:
                total = partial if total is None else total
            elif self._row is None:
                total = self._combine(total, partial)
            else:
                out = np.empty(self._row.width, self._row.dtype)
                self._combine(total, partial, out)
                total = out
        return total


class _Columns:
    """Columns of one row, nested as the cells of a product want them."""

    def __init__(self, cells: list[_Cell]) -> None:
        self.cells = cells
        *firsts, nested = [cell.column for cell in cells]
        for first in reversed(firsts):
            nested = (first, nested)
        self.nested = nested


class _Cell:
    """The one-row columns of one aggregate."""

    def __init__(self, monoid: Monoid, is_compiled: bool, dtype: Any) -> None:
        self._n_inputs = monoid.n_inputs
        if is_compiled:
            self._valid = np.ones(1, np.bool_)
            self._values: Any = tuple(np.zeros(1, dtype) for _ in range(monoid.n_inputs))
            self.column: Any = (self._valid, self._values)
        else:
            self._valid = None  # type: ignore[assignment]
            self.column = self._values = tuple([None] for _ in range(monoid.n_inputs))

    def put(self, values: tuple[Any, ...]) -> None:
        wanted = values[: self._n_inputs]
        if self._valid is not None:
            self._valid[0] = all(value is not None for value in wanted)
            if not self._valid[0]:
                return
        for column, value in zip(self._values, wanted, strict=True):
            column[0] = value

    @staticmethod
    def columns(monoids: tuple[Monoid, ...], is_compiled: bool, dtype: Any = np.float64) -> _Columns:
        return _Columns([_Cell(monoid, is_compiled, dtype) for monoid in monoids])


def _answers(results: Any, monoids: tuple[Monoid, ...], is_compiled: bool) -> list[Any]:
    """Unpack the nested results of one row into Python values."""
    answers = []
    for left in range(len(monoids) - 1, -1, -1):
        column, results = (results, None) if left == 0 else results
        values, valid = column
        if not is_compiled:
            answers.append(values[0])
        elif not valid[0]:
            answers.append(None)
            valid[0] = True
        else:
            answers.append(tuple(v[0].item() for v in values) if isinstance(values, tuple) else _python(values[0]))
    return answers


def _python(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value.item()
