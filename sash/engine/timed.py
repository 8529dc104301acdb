"""`sash.aggregator("fiba", ...)`: a window of timestamped rows, in any order, evicted in any order.

The control path around a tree: it checks what comes in, sees to room, and turns trees into bytes and back.
Interpreted, times are anything with an order: numbers, dates, tuples of them. Compiled, they are of one
kind: "i8", "f8", or "pair" for (time, tie-breaker), which keeps rows of equal times apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from sash.aggregators.fiba.invariants import Check
from sash.aggregators.fiba.keys import FLOAT, INTEGER, OBJECT, PAIR, key_at
from sash.engine import tree_snapshot
from sash.engine.binding import Bound
from sash.engine.building import nested, unnested
from sash.engine.events import Folder, reader
from sash.engine.trees import Trees, Wanted, build_trees, grown, n_bytes, new_tree
from sash.errors import DataError, DeclarationError

LONGEST = np.iinfo(np.int64)
MIN_ARITY = 8  # the fastest of 2 to 8 for rows in order, large states too, and the smallest: `python -m bench disorder`


class TimedAggregator:
    """A window over timestamped rows in any order.

    Cost in calls of combine, d being the distance to the nearer end: insert and evict O(log d), query()
    at most 2, query(first, last) O(log n), bulk_evict of m O(log m).
    """

    __slots__ = ("__weakref__", "_bound", "_checked", "_columns", "_n_values", "_results", "_rows", "_tree", "_trees")

    def __init__(self, trees: Trees, bound: Bound) -> None:
        self._trees = trees
        self._bound = bound
        self._n_values = max(bound.n_values, 1)  # a count of rows is told of each by some value
        self._checked = CHECKS[trees.wanted.key_kind]
        self._tree = new_tree(trees)
        self._results = trees.cells.results(1)
        self._rows = bound.rows()
        self._columns = nested([row.columns for row in self._rows])

    def __len__(self) -> int:
        return int(self._trees.timed.size(self._tree))

    def __repr__(self) -> str:
        aggregates = ", ".join(monoid.name for monoid in self._bound.monoids)
        return f"<{self._trees.algorithm.card.name} over {aggregates}: {len(self)} times>"

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Give each time in order, with the answer of what was inserted at it."""
        for key, place in self._opened().entries():
            yield key, self._answer(place)

    @property
    def oldest(self) -> Any:
        """The oldest time, None if there is none."""
        return next((key for key, _ in self._opened().entries()), None)

    @property
    def youngest(self) -> Any:
        """The youngest time, None if there is none."""
        opened = self._opened()
        places = opened.places(opened.end())
        return key_at(self._tree.keys, places[-1]) if places else None

    def insert(self, time: Any, *values: Any) -> None:
        """Insert one row; one that has the time of another is combined with it, as the newer one."""
        key = self._put(time, values)
        while not self._trees.timed.insert(self._tree, key, self._columns, 0):
            self._tree = grown(self._trees, self._tree)

    def evict(self, time: Any) -> None:
        """Remove what was inserted at a time; nothing, if nothing was."""
        self._trees.timed.evict(self._tree, self._checked(time))

    def query(self, *bounds: Any) -> Any:
        """Aggregate everything, or what lies between two times, both included; null (None) if that is nothing."""
        if not bounds:
            return self._answer(self._trees.timed.query(self._tree))
        if len(bounds) != 2:
            raise DataError(f"a range has a first and a last time, got {bounds!r}")
        first, last = map(self._checked, bounds)
        if last < first:
            raise DataError(f"a range from {bounds[0]!r} to {bounds[1]!r} is reversed: give the older time first")
        return self._answer(self._trees.timed.query_range(self._tree, first, last))

    def bulk_insert(self, times: Iterable[Any], values: Iterable[Any]) -> None:
        """Insert many rows in order of time; values are as for insert, tuples if the aggregate takes several."""
        keys, n = self._sorted_keys(times)
        columns = self._bulk_columns(values, n)
        row = 0
        while row < n:
            row = self._trees.timed.bulk_insert(self._tree, keys, columns, row, n)
            if row < n:
                self._tree = grown(self._trees, self._tree)

    def bulk_evict(self, time: Any) -> None:
        """Remove everything up to a time, that time included."""
        self._trees.timed.bulk_evict(self._tree, self._checked(time))

    def snapshot(self) -> bytes:
        """Write the whole window to bytes."""
        return tree_snapshot.write(self._trees, self._tree)

    def restore(self, data: bytes) -> None:
        """Replace this window by one written by `snapshot` for the same algorithm and aggregates."""
        self._tree = tree_snapshot.read(self._trees, data)

    def check_invariants(self, truth: Iterable[tuple[Any, Any]]) -> None:
        """Check the invariants of the algorithm, given all times in order, each with its partial.

        Raises AssertionError with the number of the invariant that is broken.
        """
        self._opened().all(list(truth))

    @property
    def n_bytes(self) -> int:
        """The memory taken by the tree, room for more nodes included."""
        return n_bytes(self._tree)

    def _opened(self) -> Check:
        first, monoid = unnested(self._tree.pool, len(self._bound.monoids))[0], self._bound.monoids[0]
        read = reader(first, is_compiled=self._bound.is_compiled)
        return Check(self._trees.kit, self._tree, read, lambda older, newer: Folder(monoid, [older, newer])(0, 2))

    def _answer(self, cell: int) -> Any:
        self._trees.lower(self._results, 0, self._tree.pool, cell)
        return self._bound.answer(self._results)

    def _put(self, time: Any, values: tuple[Any, ...]) -> Any:
        """Check one row and write its values into the columns; its key."""
        if len(values) != self._n_values:
            raise DataError(f"insert takes a time and {self._n_values} value(s), got {(time, *values)!r}")
        key = self._checked(time)
        for row in self._rows:
            row.put(values)
        return key

    def _sorted_keys(self, times: Iterable[Any]) -> tuple[Any, int]:
        kind = self._trees.wanted.key_kind
        if kind in (INTEGER, FLOAT) and isinstance(times, np.ndarray):
            array = _sorted_array(times, kind)
            return array if self._bound.is_compiled else array.tolist(), len(array)
        keys = [self._checked(time) for time in times]
        for i, (older, newer) in enumerate(pairwise(keys)):
            if newer < older:
                raise _unsorted(i + 1, newer, older)
        if not self._bound.is_compiled:
            return keys, len(keys)
        if kind == PAIR:
            return tuple(np.array([key[k] for key in keys], np.int64) for k in (0, 1)), len(keys)
        return np.array(keys, kind), len(keys)

    def _bulk_columns(self, values: Iterable[Any], n: int) -> Any:
        given: Any = values if isinstance(values, (np.ndarray, list)) else list(values)
        if len(given) != n:
            raise DataError(f"there are {n} times but {len(given)} values")
        return self._bound.many(given)[1]


def timed_aggregator(
    algorithm: str, bound: Bound, *, min_arity: int = MIN_ARITY, times: str | None = None
) -> TimedAggregator:
    """Make a window over timestamped rows, by fiba or btree; see `TimedAggregator`."""
    return TimedAggregator(build_trees(wanted_tree(algorithm, bound, min_arity, times)), bound)


def wanted_tree(algorithm: str, bound: Bound, min_arity: int, times: str | None) -> Wanted:
    """Check the options of a tree."""
    if isinstance(min_arity, bool) or not isinstance(min_arity, int) or min_arity < 2:
        raise DeclarationError(f"min_arity must be an integer of at least 2, got {min_arity!r}")
    if times is not None and times not in CHECKS:
        raise DeclarationError(f"times must be one of {', '.join(map(repr, CHECKS))}, got {times!r}")
    if bound.is_compiled and times == OBJECT:
        raise DeclarationError("times of any kind cannot be compiled; give times='i8', 'f8' or 'pair'")
    kind = times or (INTEGER if bound.is_compiled else OBJECT)
    return Wanted(algorithm, bound.monoids, bound.is_compiled, kind, min_arity)


def any_key(time: Any) -> Any:
    """Check that a row has a time: not None, and neither NaN nor a tuple with either."""
    for part in time if isinstance(time, tuple) else (time,):
        if part is None or part != part:  # noqa: PLR0124 - NaN
            raise DataError(f"a row without a time: {time!r}; every row needs one")
    return time


def _integer_key(time: Any) -> int:
    try:
        key = operator.index(time)
    except TypeError:
        raise DataError(f"times are int64 here, got {time!r}; pass times='f8' for floats") from None
    if not LONGEST.min <= key <= LONGEST.max:
        raise DataError(f"time {time!r} does not fit into 64 bits")
    return key


def _float_key(time: Any) -> float:
    if time is None:
        raise DataError(f"a row without a time: {time!r}; every row needs one")
    return float(any_key(float(time)))


def _pair_key(time: Any) -> tuple[int, int]:
    if not isinstance(time, tuple) or len(time) != 2:
        raise DataError(f"times are pairs (time, tie-breaker) here, got {time!r}")
    return _integer_key(time[0]), _integer_key(time[1])


CHECKS: dict[str, Callable[[Any], Any]] = {
    OBJECT: any_key, INTEGER: _integer_key, FLOAT: _float_key, PAIR: _pair_key,
}  # fmt: skip


def _sorted_array(times: np.ndarray[Any, Any], kind: str) -> Any:
    if times.dtype.kind not in ("iu" if kind == INTEGER else "iuf") or times.ndim != 1:
        raise DataError(f"times must be a column of {kind}, got {times.dtype} of shape {times.shape}")
    keys = np.ascontiguousarray(times, kind)
    if times.dtype.kind == "u" and times.size and times.max() > LONGEST.max:
        raise DataError(f"time {times.max()!r} does not fit into 64 bits")
    if kind == FLOAT and np.isnan(keys).any():
        raise DataError(f"a row without a time: row {int(np.isnan(keys).argmax())} is NaN; every row needs one")
    falls = keys[1:] < keys[:-1]
    if falls.any():
        i = int(falls.argmax()) + 1
        raise _unsorted(i, keys[i].item(), keys[i - 1].item())
    return keys


def _unsorted(i: int, newer: Any, older: Any) -> DataError:
    return DataError(
        f"bulk_insert takes rows in order of time, but row {i} has {newer!r} after {older!r}. "
        "Sort them, or insert them one by one"
    )
