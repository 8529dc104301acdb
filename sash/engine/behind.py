"""`sash.aggregator("daba_behind_fiba", ..., lateness=...)`: timestamped rows that are late by a bound at most.

The control path around the combination: a `TimedAggregator` whose older rows are in a queue. It refuses
rows that are later than was promised, and what a queue cannot do, and says that fiba can.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

import numpy as np

from sash.aggregators import daba_behind_fiba, daba_lite
from sash.aggregators.contract import END, MASK, OLDEST, Fifo, View
from sash.aggregators.daba_behind_fiba import HAS_NEWEST, N_MARKS, N_SCRATCH, Operations, Window
from sash.aggregators.fiba.keys import INTEGER, OBJECT, PAIR, key_at
from sash.compiling.jit import entry
from sash.engine import snapshot, tree_snapshot
from sash.engine.binding import Bound
from sash.engine.building import Built, new_state, unnested
from sash.engine.events import Folder, reader
from sash.engine.timed import CHECKS, MIN_ARITY, TimedAggregator, wanted_tree
from sash.engine.trees import Trees, Wanted, build_trees, grown, n_bytes, new_tree
from sash.errors import DataError, DeclarationError, EmptyWindowError, FormatError, UnsupportedError

SMALLEST = 8  # slots of an empty queue
NAME = daba_behind_fiba.ALGORITHM.card.name


class Parts(NamedTuple):
    """A kind of combination; `timed` is called from Python, `inner` from compiled drivers."""

    trees: Trees
    queues: Built
    inner: Operations
    timed: Operations


@lru_cache(maxsize=64)
def build_parts(wanted: Wanted) -> Parts:
    """Make the operations of a kind of combination; `wanted` is that of its tree."""
    trees = build_trees(wanted)
    inner = daba_behind_fiba.build(trees.kit, trees.inner, is_integer=wanted.key_kind == INTEGER)
    timed = Operations(*map(entry, inner)) if wanted.is_compiled else inner
    queues = Built(daba_lite.ALGORITHM, trees.cells, Fifo(*(None,) * 4), wanted.is_compiled)  # type: ignore[arg-type]
    return Parts(trees, queues, inner, timed)


def new_window(parts: Parts, capacity: int = SMALLEST) -> Window:
    """An empty window whose queue has room for `capacity` elements, a power of two."""
    trees, keys = parts.trees, parts.trees.keys
    return Window(
        new_tree(trees), new_state(parts.queues, capacity), keys.allocate(capacity), keys.allocate(1),
        keys.registers(N_MARKS), trees.cells.allocate(N_SCRATCH),
    )  # fmt: skip


def with_room(parts: Parts, window: Window) -> Window:
    """The same window with more room, where an insert found none: in the ring, or else in the tree."""
    at = window.queue.at
    if at[END] - at[OLDEST] > at[MASK]:
        return resized(parts, window, 2 * (int(at[MASK]) + 1))
    return window._replace(tree=grown(parts.trees, window.tree))


def resized(parts: Parts, window: Window, capacity: int) -> Window:
    """The same window with another number of slots in its queue."""
    queue, times = new_state(parts.queues, capacity), parts.trees.keys.allocate(capacity)
    parts.timed.move(window.queue, queue)
    elements, old_mask = range(int(queue.at[OLDEST]), int(queue.at[END])), int(window.queue.at[MASK])
    if isinstance(times, list):
        for i in elements:
            times[i & (capacity - 1)] = window.times[i & old_mask]
    else:
        numbers = np.arange(elements.start, elements.stop)
        times[numbers & (capacity - 1)] = window.times[numbers & old_mask]
    return window._replace(queue=queue, times=times)


class BehindAggregator(TimedAggregator):
    """A window over timestamped rows that are never older than the newest time less the lateness.

    >>> import sash
    >>> window = sash.aggregator("daba_behind_fiba", sash.max(), lateness=10)
    >>> window.bulk_insert([100, 105, 120], [3, 9, 1])
    >>> window.insert(112, 7)
    >>> window.bulk_evict(105)
    >>> window.query(), len(window), window.oldest
    (7, 2, 112)
    """

    __slots__ = ("_lateness", "_one_key", "_parts", "_window")

    def __init__(self, parts: Parts, bound: Bound, lateness: Any) -> None:
        super().__init__(parts.trees, bound)
        self._parts, self._lateness = parts, lateness
        self._one_key = parts.trees.keys.allocate(1)
        self._take(new_window(parts))

    def _take(self, window: Window) -> None:
        self._window, self._tree = window, window.tree

    def __len__(self) -> int:
        return self._n_queued + super().__len__()

    def __repr__(self) -> str:
        aggregates = ", ".join(monoid.name for monoid in self._bound.monoids)
        return f"<{NAME} over {aggregates}: {len(self)} times, {self._n_queued} of them settled>"

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        _refuse("list its rows: those that are settled are aggregated already")

    @property
    def oldest(self) -> Any:
        """The oldest time, None if there is none."""
        return self._time(0) if self._n_queued else super().oldest

    @property
    def youngest(self) -> Any:
        """The youngest time, None if there is none."""
        youngest = super().youngest
        return self._time(self._n_queued - 1) if youngest is None and self._n_queued else youngest

    def insert(self, time: Any, *values: Any) -> None:
        """Insert one row; one that has the time of another is combined with it, as the newer one."""
        key = self._put(time, values)
        self._require_in_time(key)
        self._one_key[0] = key
        self._insert(self._one_key, self._columns, 1)

    def bulk_insert(self, times: Iterable[Any], values: Iterable[Any]) -> None:
        """Insert many rows in order of time; values are as for insert, tuples if the aggregate takes several."""
        keys, n = self._sorted_keys(times)
        columns = self._bulk_columns(values, n)
        if n:
            self._require_in_time(key_at(keys, 0))  # the others are not older, and so in time if this one is
            self._insert(keys, columns, n)

    def evict(self, *time: Any) -> None:
        """Remove the oldest row, or what was inserted at a time: one that is not settled yet, or the oldest."""
        if not time and len(self) == 0:
            raise EmptyWindowError("evict() on an empty window")
        key, n = self._checked(*time) if time else self.oldest, self._n_queued
        if n == 0 or self._time(n - 1) < key:
            super().evict(key)
        elif key == self._time(0):
            self._expire(key)
        elif key == self._time(bisect_left(range(n), key, key=self._time)):
            _refuse(f"evict time {key!r} alone, which is settled: only the oldest, or by bulk_evict all up to it")

    def bulk_evict(self, time: Any) -> None:
        """Remove everything up to a time, that time included."""
        self._expire(self._checked(time))
        if self._n_queued == 0:
            super().bulk_evict(time)

    def query(self, *bounds: Any) -> Any:
        """Aggregate everything; null (None) if there is nothing to aggregate."""
        if bounds:
            _refuse(f"answer for a part of its window, {bounds!r}")
        self._parts.timed.answer(self._results, 0, self._window)
        return self._bound.answer(self._results)

    def snapshot(self) -> bytes:
        """Write the whole window to bytes."""
        queue = resized(self._parts, self._window, _power_of_two(self._n_queued)).queue
        newest = [] if self._newest is None else [self._newest]
        times = [self._time(i) for i in range(self._n_queued)]
        state = snapshot.write(self._parts.queues, self._bound.monoids, queue)
        return snapshot.seal([self._signature(), newest, times, state, tree_snapshot.write(self._trees, self._tree)])

    def restore(self, data: bytes) -> None:
        """Replace this window by one written by `snapshot` for the same aggregates, kind of times and lateness."""
        signature, newest, times, queue, tree = snapshot.unseal(data, n_parts=5)
        if signature != self._signature():
            raise FormatError(f"this snapshot is of {signature}, but the window is of {self._signature()}")
        state = snapshot.read(self._parts.queues, self._bound.monoids, queue)
        capacity, oldest = int(state.at[MASK]) + 1, int(state.at[OLDEST])
        window = new_window(self._parts, capacity)._replace(queue=state, tree=tree_snapshot.read(self._trees, tree))
        if len(times) != state.at[END] - oldest or len(newest) > 1 or (times and not newest):
            raise FormatError(f"a snapshot whose parts do not fit together: it has {len(times)} times for its queue")
        for i, time in enumerate(times):
            window.times[(oldest + i) & (capacity - 1)] = self._checked(time)
        for time in newest:
            window.newest[0], window.marks[HAS_NEWEST] = self._checked(time), 1
        self._take(window)

    def check_invariants(self, truth: Iterable[tuple[Any, Any]]) -> None:
        """Check the invariants of the algorithm, given all times in order, each with its partial.

        Raises AssertionError with the number of the invariant that is broken.
        """
        rows, n, queue = list(truth), self._n_queued, self._window.queue
        settled, young = [self._time(i) for i in range(n)], [key for key, _ in self._opened().entries()]
        _require("I1", all(x < y for x, y in pairwise(settled)), settled)
        _require("I1", all(time < self._horizon() for time in settled[-1:]), settled[-1:])
        _require("I2", all(settled[-1] < time for time in young[:1]) if settled else True, young[:1])
        _require("I3", not any(time < self._horizon() for time in young[:1]), young[:1])
        _require("I4", not any(self._newest < time for time in young[-1:]), young[-1:])
        _require("I5", settled == [time for time, _ in rows[:n]], settled)
        partials = [None] * int(queue.at[OLDEST]) + [partial for _, partial in rows[:n]]
        read = reader(unnested(queue.pool, len(self._bound.monoids))[0], is_compiled=self._bound.is_compiled)
        daba_lite.check(View(queue, read, Folder(self._bound.monoids[0], partials)))
        super().check_invariants(rows[n:])

    @property
    def n_bytes(self) -> int:
        """The memory taken by tree and queue, room for more included."""
        return n_bytes(tuple(self._window))

    @property
    def _n_queued(self) -> int:
        return int(self._window.queue.at[END] - self._window.queue.at[OLDEST])

    def _time(self, i: int) -> Any:
        """The time of one of the queue, counted from the oldest."""
        at = self._window.queue.at
        return key_at(self._window.times, (int(at[OLDEST]) + i) & int(at[MASK]))

    @property
    def _newest(self) -> Any:
        return key_at(self._window.newest, 0) if self._window.marks[HAS_NEWEST] else None

    def _horizon(self) -> Any:
        return self._newest - self._lateness

    def _require_in_time(self, key: Any) -> None:
        try:
            is_late = key < (key if self._newest is None else self._newest) - self._lateness
        except TypeError:
            raise DataError(
                f"lateness={self._lateness!r} cannot be taken away from a time such as {key!r}; "
                "give it as a difference of times"
            ) from None
        if is_late:
            raise DataError(
                f"time {key!r} is older than {self._horizon()!r}, the newest time less lateness={self._lateness!r}, "
                "and rows before that are settled. Raise the lateness, or use fiba, which takes rows in any order"
            )

    def _insert(self, keys: Any, columns: Any, n: int) -> None:
        row = 0
        while row <= n:
            row = self._parts.timed.bulk_insert(self._window, keys, columns, row, n, self._lateness)
            if row <= n:
                self._take(with_room(self._parts, self._window))

    def _expire(self, key: Any) -> None:
        self._parts.timed.expire(self._window, key)
        capacity = _power_of_two(2 * self._n_queued)
        if 2 * capacity <= self._window.queue.at[MASK]:
            self._take(resized(self._parts, self._window, capacity))

    def _signature(self) -> list[Any]:
        return [NAME, repr(self._lateness)]


def behind_aggregator(
    bound: Bound, *, lateness: Any = None, min_arity: int = MIN_ARITY, times: str | None = None
) -> BehindAggregator:
    """Make a window over timestamped rows that are late by `lateness` at most; see `BehindAggregator`."""
    if lateness is None:
        raise DeclarationError(
            f"{NAME} needs lateness=, by how much a row may be older than the newest one. "
            "Use fiba for rows however late"
        )
    if times == PAIR:
        raise UnsupportedError(f"{NAME} takes times that a lateness can be taken away from, not pairs; fiba takes them")
    wanted = wanted_tree("fiba", bound, min_arity, times)
    return BehindAggregator(build_parts(wanted), bound, _checked_lateness(lateness, wanted.key_kind))


def _checked_lateness(lateness: Any, kind: str) -> Any:
    try:
        given = lateness if kind == OBJECT else CHECKS[kind](lateness)
        is_wrong = given != given or given < given * 0  # noqa: PLR0124 - NaN; times 0, for it may be a timedelta
    except (DataError, TypeError):
        is_wrong = True
    if is_wrong:
        raise DeclarationError(f"lateness must be a difference of times of kind {kind}, not negative, got {lateness!r}")
    return given


def _power_of_two(n: int) -> int:
    """Slots for n elements."""
    return max(SMALLEST, 1 << max(n - 1, 0).bit_length())


def _refuse(act: str) -> NoReturn:
    raise UnsupportedError(f"{NAME} cannot {act}. Use fiba, which can")


def _require(invariant: str, claim: bool, detail: object) -> None:
    if not claim:
        raise AssertionError(f"{invariant} is broken: {detail}")
