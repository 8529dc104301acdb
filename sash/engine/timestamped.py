"""A time window over any in-order algorithm: a queue of times beside its queue of rows.

By composition: the algorithm knows nothing of times, and this knows nothing of the algorithm but how to
insert into it and how to evict so many. Rows of equal times are all kept, in order of arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from sash.aggregators import find
from sash.algebra import codec
from sash.engine.aggregator import aggregator
from sash.engine.timed import any_key
from sash.errors import DataError, FormatError, UnsupportedError


class Timestamped:
    """A window over timestamped rows in order of time.

    >>> from sash.testing.monoids import Max
    >>> window = Timestamped("daba_lite", Max)
    >>> window.bulk_insert([10, 20, 20, 35], [3, 9, 1, 2])
    >>> window.bulk_evict(20)
    >>> window.query(), len(window), window.oldest
    (2.0, 1, 35)
    """

    __slots__ = ("_times", "_window")

    def __init__(self, algorithm: str, aggregate: Any, **options: Any) -> None:
        card = find(algorithm).card
        if card.fixed or card.order != "in order":
            raise UnsupportedError(f"{algorithm} is no queue whose oldest rows may leave; use two_stacks_lite")
        self._window = aggregator(algorithm, aggregate, **options)
        self._times: deque[Any] = deque()

    def __len__(self) -> int:
        return len(self._times)

    def __repr__(self) -> str:
        return f"<times from {self.oldest!r} to {self.youngest!r} in {self._window!r}>"

    @property
    def oldest(self) -> Any:
        """The oldest time, None if there is none."""
        return self._times[0] if self._times else None

    @property
    def youngest(self) -> Any:
        """The youngest time, None if there is none."""
        return self._times[-1] if self._times else None

    def insert(self, time: Any, *values: Any) -> None:
        """Append one row, which is not older than the youngest."""
        any_key(time)
        if self._times and time < self._times[-1]:
            raise DataError(f"time {time!r} after {self._times[-1]!r}: this takes rows in order of time, fiba in any")
        self._window.insert(*values)
        self._times.append(time)

    def bulk_insert(self, times: Iterable[Any], values: Iterable[Any]) -> None:
        """Append many rows in order of time; values are as for insert, tuples if the aggregate takes several."""
        for time, value in zip(times, values, strict=True):
            self.insert(time, *value) if isinstance(value, tuple) else self.insert(time, value)

    def evict(self, time: Any) -> None:
        """Remove everything up to a time, that time included."""
        any_key(time)
        count = 0
        while self._times and not time < self._times[0]:
            self._times.popleft()
            count += 1
        self._window.bulk_evict(count)

    bulk_evict = evict

    def query(self) -> Any:
        """Aggregate everything in the window; null (None) if it holds nothing to aggregate."""
        return self._window.query()

    def snapshot(self) -> bytes:
        """Write the whole window to bytes."""
        return codec.encode([list(self._times), self._window.snapshot()])

    def restore(self, data: bytes) -> None:
        """Replace this window by one written by `snapshot` for the same algorithm and aggregates."""
        parts = codec.decode(data)
        if not isinstance(parts, list) or len(parts) != 2:
            raise FormatError("not a snapshot of a window with times")
        self._window.restore(parts[1])
        self._times = deque(parts[0])
