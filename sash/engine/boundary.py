"""The Python face of SBA and PBA: windows that slide by their own rule, an event at a time.

Count-based windows of range r and slide s end with row r, r + s, r + 2 s, and so on, and, while
there are fewer rows, with every row at the same distance before. Time-based windows are
[k s, k s + r) for all k; those that hold no row are passed over.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

from sash.aggregators.contract import END, Algorithm, View
from sash.aggregators.sba import CHUNK, FILLED, SLIDE, Boundaries, chunk_by_count, chunk_by_time, require_window
from sash.algebra.monoid import Monoid
from sash.compiling.interpreted_cells import interpreted_cells
from sash.compiling.jit import entry, inlined, interpreted
from sash.engine import snapshot
from sash.engine.building import Built, new_state, nullable
from sash.engine.events import Folder, OneRow, reader, take_answer
from sash.errors import DataError, DeclarationError, UnsupportedError


class Sliding(NamedTuple):
    """A range and a slide, counted in rows or measured in time."""

    range: Any
    slide: Any
    by: str = "count"
    chunk: int | None = None  # slices a chunk; None: as the theorems say
    combine_time: float = 1.0  # what one combine takes, for theorem 2

    def checked(self) -> Sliding:
        """The same with its chunk decided, or an error."""
        require_window(self.range, self.slide)
        if self.by not in ("count", "time"):
            raise DeclarationError(f"by must be 'count' or 'time', got {self.by!r}")
        chunk = self.chunk
        if chunk is None:
            by_time = self.by == "time"
            chunk = (
                chunk_by_time(self.range, self.slide, self.combine_time)
                if by_time
                else chunk_by_count(self.range, self.slide)
            )
        if not 1 <= chunk <= self.n_slices:
            raise DeclarationError(f"chunk must be between 1 and the {self.n_slices} slices of a window, got {chunk!r}")
        return self._replace(chunk=chunk)

    @property
    def n_slices(self) -> int:
        """The whole slices of a window."""
        return int(self.range // self.slide)

    @property
    def rest(self) -> Any:
        """What a window has of one more slice."""
        return self.range % self.slide


@lru_cache(maxsize=64)
def _build(algorithm: Algorithm, monoid: Monoid, sliding: Sliding, is_compiled: bool) -> tuple[Built, Boundaries]:
    cells = nullable(monoid) if is_compiled else interpreted_cells(monoid)
    operations: Any = algorithm.build(cells, inlined if is_compiled else interpreted)
    if is_compiled:
        operations = Boundaries(*(entry(operation) for operation in operations))
        cells = cells._replace(lower=entry(cells.lower))
    options = (("range", sliding.range), ("slide", sliding.slide), ("chunk", sliding.chunk), ("by", sliding.by))
    return Built(algorithm, cells, operations, is_compiled, options), operations


class BoundaryAggregator:
    """A window of fixed range and slide over events in order."""

    def __init__(
        self, algorithm: Algorithm, monoid: Monoid, sliding: Sliding, dtype: Any, *, is_compiled: bool
    ) -> None:
        self._sliding = sliding.checked()
        self._monoid = monoid
        self._built, self._operations = _build(algorithm, monoid, self._sliding, is_compiled)
        self._row = OneRow(range(monoid.n_inputs), [dtype] * monoid.n_inputs, is_compiled=is_compiled)
        self._results = self._built.cells.results(1)
        self._suffixes = _SecondThread() if algorithm.card.name == "pba" else _SameThread()
        self._n_rows = 0
        self._last: Any = None  # time of the youngest row
        self._first_slice: Any = 0
        self._is_told = False  # whether the window that ends inside the slice being filled is answered
        self._restart()

    def __repr__(self) -> str:
        name, by = self._built.algorithm.card.name, self._sliding.by
        return f"<{name} over {self._monoid.name}: range {self._sliding.range}, slide {self._sliding.slide} by {by}>"

    @property
    def waited(self) -> int:
        """How often an answer had to wait for the second thread."""
        return self._suffixes.waited

    def insert(self, *event: Any) -> list[tuple[Any, Any]]:
        """Append a value, or a time and a value; the windows that this completes, as (end, answer)."""
        n_values = self._monoid.n_inputs + (self._sliding.by == "time")
        if len(event) != n_values:
            raise DataError(f"insert takes {n_values} value(s), got {len(event)}")
        if self._sliding.by == "count":
            return self._insert_counted(event)
        return self._insert_timed(event[0], event[1:])

    def query(self) -> Any:
        """The whole slices of a window before this moment, and the rows since the last of them."""
        return self._answer() if self._n_rows else None

    def evict(self) -> None:
        """Refuse: the window slides by its range and slide."""
        raise UnsupportedError(
            f"{self._built.algorithm.card.name} slides by its range and slide; use two_stacks_lite to evict at will"
        )

    def close(self) -> None:
        """Stop the second thread, if there is one."""
        self._suffixes.close()

    def snapshot(self) -> bytes:
        """Write the whole window to bytes."""
        self._suffixes.wait_before(1 << 62)
        window = snapshot.write(self._built, (self._monoid,), self._state)
        return snapshot.seal([window, self._n_rows, self._last, self._first_slice, self._is_told])

    def restore(self, data: bytes) -> None:
        """Replace this window by one written by `snapshot` for the same range, slide and aggregate."""
        window, *place = snapshot.unseal(data, n_parts=5)
        self._state = snapshot.read(self._built, (self._monoid,), window)
        self._n_rows, self._last, self._first_slice, self._is_told = place

    def check_invariants(self, lifted: list[Any]) -> None:
        """Check the invariants, given the partial of every row so far (windows by count)."""
        self._suffixes.wait_before(self._state.at[END])
        read = reader(self._state.pool, is_compiled=self._built.is_compiled)
        self._built.algorithm.check(View(self._state, read, Folder(self._monoid, lifted)))

    def _insert_counted(self, values: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        self._add(values)
        if self._state.at[FILLED] == self._sliding.slide:
            self._close_slice()
        if self._n_rows % self._sliding.slide == self._sliding.rest:
            return [(self._n_rows, self._answer())]
        return []

    def _insert_timed(self, time: Any, values: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        if time is None or time != time:  # noqa: PLR0124 - NaN
            raise DataError(f"an event without a time: {(time, *values)!r}")
        if self._n_rows and time < self._last:
            raise DataError(f"time {time!r} after {self._last!r}: this takes events in order of time, fiba in any")
        if self._n_rows:
            due = self._advance(time)
        else:
            due = []
            self._begin_at(time)
        self._last = time
        self._add(values)
        return due

    def _advance(self, time: Any) -> list[tuple[Any, Any]]:
        """Close the slices that end by `time`; the windows that end by it and hold a row."""
        slide, rest = self._sliding.slide, self._sliding.rest
        due: list[tuple[Any, Any]] = []
        while True:
            begin = (self._first_slice + int(self._state.at[END])) * slide  # of the slice being filled
            if begin + rest - self._sliding.range > self._last:  # silence: no row is in any window any more
                self._restart()
                self._begin_at(time)
                return due
            if rest and not self._is_told and begin + rest <= time:
                due.append((begin + rest, self._answer()))
                self._is_told = True
            if begin + slide > time:
                return due
            self._close_slice()
            if not rest and begin + slide - self._sliding.range <= self._last:
                due.append((begin + slide, self._answer()))

    def _begin_at(self, time: Any) -> None:
        """The first row since the beginning, or since a silence; a window that ends before it is empty."""
        self._first_slice = time // self._sliding.slide
        self._is_told = time - self._first_slice * self._sliding.slide >= self._sliding.rest

    def _restart(self) -> None:
        self._suffixes.wait_before(1 << 62)
        capacity = 1 << (self._sliding.n_slices + 2 * self._sliding.chunk + 1).bit_length()  # type: ignore[operator]
        self._state = new_state(self._built, capacity)
        self._state.at[CHUNK] = self._sliding.chunk
        self._state.at[SLIDE] = self._sliding.slide if self._sliding.by == "count" else 0

    def _add(self, values: tuple[Any, ...]) -> None:
        self._row.put(values)
        self._operations.add(self._state, self._row.columns, 0)
        self._n_rows += 1

    def _close_slice(self) -> None:
        self._is_told = False
        if self._operations.close(self._state):
            first = int(self._state.at[END]) - int(self._state.at[CHUNK])
            self._suffixes.start(first, self._operations.finish, self._state)

    def _answer(self) -> Any:
        start = int(self._state.at[END]) - self._sliding.n_slices
        self._suffixes.wait_before(start)
        cell = self._operations.answer(self._state, self._sliding.n_slices, True)
        self._built.cells.lower(self._results, 0, self._state.pool, cell)
        return take_answer(self._results, self._monoid)


class _SameThread:
    """Suffixes are computed at once (SBA)."""

    waited = 0

    def start(self, first: int, finish: Any, state: Any) -> None:
        finish(state, first)

    def wait_before(self, start: int) -> None:
        """Nothing is ever under way."""

    def close(self) -> None:
        """Nothing to stop."""


class _SecondThread:
    """Suffixes are computed by another thread, chunk after chunk (PBA)."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sash-pba")
        self._under_way: list[tuple[int, Future[None]]] = []
        self.waited = 0

    def start(self, first: int, finish: Any, state: Any) -> None:
        self._under_way.append((first, self._thread.submit(finish, state, first)))

    def wait_before(self, start: int) -> None:
        """Wait for the chunks that begin before slice `start`; the first suffix of a chunk is there at once."""
        while self._under_way and self._under_way[0][0] < start:
            _, future = self._under_way.pop(0)
            self.waited += not future.done()
            future.result()

    def close(self) -> None:
        self._thread.shutdown(wait=True)
