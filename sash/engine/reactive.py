"""The Reactive Aggregator as a window: any element may leave, not only the oldest.

The control path of an in-order window (see aggregator), with the paper's rules for room: a full
buffer with a quarter of holes or more is compacted, any other full one doubles, and one that is less
than a quarter full halves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sash.aggregators.contract import END, OLDEST, View
from sash.aggregators.reactive import HOLES, Middle, build_middle
from sash.compiling.jit import compiled as machine_code
from sash.compiling.jit import entry, interpreted
from sash.engine.binding import Bound
from sash.engine.building import Built, unnested
from sash.engine.events import Folder, reader
from sash.engine.in_order import SMALLEST, InOrderAggregator
from sash.errors import EmptyWindowError


class ReactiveAggregator(InOrderAggregator):
    """A window over events in order of arrival that may leave in any order.

    >>> import sash
    >>> window = sash.aggregator("reactive", sash.concat())
    >>> window.bulk_insert("abcd")
    >>> window.evict_at(2)
    >>> window.query(), len(window)
    ('abd', 3)
    """

    __slots__ = ("_middle",)

    def __init__(self, built: Built, bound: Bound, *, inexact: bool = False) -> None:
        super().__init__(built, bound, inexact=inexact)
        self._middle = _middle(built)

    def __len__(self) -> int:
        return super().__len__() - int(self._state.at[HOLES])

    def insert(self, *values: Any) -> None:
        """Append one event, None for null; several values if the aggregate takes several."""
        if super().__len__() == self._capacity:
            self._make_room()
        super().insert(*values)

    def evict_at(self, position: int) -> None:
        """Remove the event that has `position` older ones: 0 is the oldest, len - 1 the youngest.

        No call of combine; where events have left the middle before, holes are counted on the way.
        """
        if not 0 <= position < len(self):
            raise EmptyWindowError(f"evict_at({position}) in a window of {len(self)} events")
        element = self._middle.locate(self._state, position)
        self._middle.evict_at(self._state, element)
        if self._capacity > SMALLEST and 4 * len(self) < self._capacity:
            self._resize(self._capacity // 2)

    def check_invariants(self, lifted: list[Any]) -> None:
        """Check the invariants of the algorithm, given the partial of every element so far inserted.

        Raises AssertionError with the number of the invariant that is broken.
        """
        at, n = self._state.at, self._capacity
        truth = [None] * int(at[OLDEST])
        for i in range(at[OLDEST], at[END]):
            arrival = int(self._state.links[n + i % n])
            truth.append(lifted[arrival - 1] if arrival else None)
        first = unnested(self._state.pool, len(self._bound.monoids))[0]
        read = reader(first, is_compiled=self._built.is_compiled)
        self._built.algorithm.check(View(self._state, read, Folder(self._bound.monoids[0], truth)))

    def _make_room(self) -> None:
        if 4 * len(self) <= 3 * self._capacity:
            self._middle.compact(self._state)
        else:
            self._resize(2 * self._capacity)


@lru_cache(maxsize=256)
def _middle(built: Built) -> Middle:
    if not built.is_compiled:
        return build_middle(built.cells, interpreted)
    operations: Any = build_middle(built.cells, machine_code)
    return Middle(*(entry(operation) for operation in operations))
