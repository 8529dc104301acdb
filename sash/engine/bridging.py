"""Bridges: windows that begin long before the rows at hand, whose middle has been combined elsewhere.

    |  front rows  | middle |  back rows                    one key, in order
       F0 F1 .. Fn     M       B0 B1 B2 ..
       `-- suffixes ---'       `-- prefix --'               window of Bj from Fi = suffix[i] + prefix

No window begins in the middle or behind it, so of the middle one partial is enough, whatever number of rows it stands
for. This is the boundary scan of SBA and PBA with one boundary, for windows of any length: `Folds` makes the partials
of middles, `Bridged` answers over them. Both speak of one key at a time.

Invariants of a bridge with n front rows, cells counted from FRONT
    I1  cell i holds F[i] + ... + F[n - 1] + M     for i <= n
    I2  PREFIX holds B[0] + ... + B[k - 1]         if k = at[NEXT] - at[FIRST_BACK] > 0

Cost in calls of combine: 1 for each front row, 2 for each back row. Space: a partial for each front row.

Paper: Zhang, Akbarinia, Toumani, "Efficient incremental computation of aggregations over sliding windows", KDD (2021),
sections 4.2 to 4.4. Departure: chunks are ranges of rows on different machines, and a window may span any number.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.aggregate import Aggregate
from sash.algebra.monoid import Function
from sash.algebra.state import Object, Record, Row, Scalar
from sash.compiling.cells import Cells
from sash.compiling.interpreted_cells import interpreted_cells
from sash.compiling.jit import compiled, entry, explaining, interpreted
from sash.engine import snapshot
from sash.engine.batches import Answered, Batch, Inputs, prepared
from sash.engine.binding import as_aggregate
from sash.engine.building import nullable, product, unnested
from sash.engine.columns import Column
from sash.engine.groups import Group, framing_of, groups_of
from sash.engine.tasks import Kind, Task, tasks_of
from sash.windows.bounds import Bounds

LIFTED, PREFIX, ANSWER, EMPTY, FRONT = 0, 1, 2, 3, 4  # cells of a bridge
NEXT, FIRST_BACK = 0, 1  # the next row to enter, and the first one behind the middle
FOLDED, OWN = 1, 2  # cells of folds: the rows of a stretch, and the first of those that are kept


def partial_bytes(aggregate: Aggregate, columns: Mapping[str, Column]) -> int | None:
    """How many bytes a partial has; None if that depends on the rows."""
    (task,) = tasks_of(dict(columns), [aggregate])
    state = task.monoid.state
    if isinstance(state, Object) or not task.is_compilable:
        return None
    if isinstance(state, Row):
        return state.dtype.itemsize * state.width
    if isinstance(state, Record):
        return sum(dtype.itemsize for dtype in state.dtypes)
    assert isinstance(state, Scalar)
    return state.dtype.itemsize


class Kernels(NamedTuple):
    """What is made for some aggregates."""

    cells: Cells
    fold: Function  # (pool, into, columns, first, stop): into becomes the rows first to stop - 1, at least one
    join: Function  # (pool, older, newer, is_first): older becomes both; or newer alone
    pick: Function  # (to pool, cell, from pool, cell)
    suffix: Function  # (pool, columns, n): restores I1, the middle being in place
    drive: Function  # (pool, at, columns, windows, results)


class Windows(NamedTuple):
    """Windows of back rows: the front cell each begins with, and the row behind its last one."""

    starts: Any
    ends: Any
    base: int  # the number of the first row of the columns

    def plain(self) -> Windows:
        """The same in Python's integers, for kernels that are interpreted."""
        return Windows(self.starts.tolist(), self.ends.tolist(), self.base)


@lru_cache(maxsize=64)
def kernels(kind: Kind) -> Kernels:
    """Make the kernels for some aggregates; kept for the life of the process."""
    if kind.is_compiled:
        cells = product([nullable(each) for each in kind.monoids], compiled)
    else:
        cells = product([interpreted_cells(each) for each in kind.monoids], interpreted)
    outer = entry if kind.is_compiled else interpreted
    transfer, combine, clear = cells.transfer, cells.combine, cells.clear

    def join(pool: Any, older: int, newer: int, is_first: bool) -> None:
        if is_first:
            transfer(pool, older, pool, newer)
        else:
            combine(pool, older, older, newer)

    def pick(to_pool: Any, dst: int, from_pool: Any, src: int) -> None:
        transfer(to_pool, dst, from_pool, src)

    def empty(pool: Any, cell: int) -> None:
        clear(pool, cell)

    made = (_folder(cells), join, pick, _suffixer(cells), _driver(cells))
    return Kernels(cells._replace(clear=outer(empty)), *(outer(each) for each in made))


def _folder(cells: Cells) -> Function:
    lift, combine = cells.lift, cells.combine

    def fold(pool: Any, into: int, columns: Any, first: int, stop: int) -> None:
        lift(pool, into, columns, first)
        for i in range(first + 1, stop):
            lift(pool, LIFTED, columns, i)
            combine(pool, into, into, LIFTED)

    return fold


def _suffixer(cells: Cells) -> Function:
    lift, combine = cells.lift, cells.combine

    def suffix(pool: Any, columns: Any, n: int) -> None:
        for i in range(n - 1, -1, -1):
            lift(pool, FRONT + i, columns, i)
            combine(pool, FRONT + i, FRONT + i, FRONT + i + 1)

    return suffix


def _driver(cells: Cells) -> Function:
    lift, combine, lower = cells.lift, cells.combine, cells.lower

    def drive(pool: Any, at: Any, columns: Any, windows: Windows, results: Any) -> None:
        starts, ends, base = windows
        for k in range(len(starts)):
            while at[NEXT] < ends[k]:
                if at[NEXT] == at[FIRST_BACK]:
                    lift(pool, PREFIX, columns, at[NEXT] - base)
                else:
                    lift(pool, LIFTED, columns, at[NEXT] - base)
                    combine(pool, PREFIX, PREFIX, LIFTED)
                at[NEXT] += 1
            if starts[k] >= ends[k]:
                lower(results, k, pool, EMPTY)
            elif at[NEXT] == at[FIRST_BACK]:
                lower(results, k, pool, FRONT + starts[k])
            else:
                combine(pool, ANSWER, FRONT + starts[k], PREFIX)
                lower(results, k, pool, ANSWER)

    return drive


def _groups(bounds: Bounds, tasks: Sequence[Task], order: Any) -> list[Group]:
    """Compiled aggregates together, others together; the algorithm named there is not asked."""
    return groups_of(tasks, bounds, has_nulls=True, is_exact=order.kind == "i", forced="two_stacks_lite")


def _pick_dumped(made: Kernels, group: Group, dumped: Sequence[Any], pool: Any, cell: int) -> None:
    """Put a partial that was written as plain data into a cell."""
    alone, monoids = made.cells.allocate(1), group.kind.monoids
    for part, data, monoid in zip(unnested(alone, len(monoids)), dumped, monoids, strict=True):
        snapshot.load_pool(part, data, monoid)
    made.pick(pool, cell, alone, 0)


# --- making middles --------------------------------------------------------------------------------


class Folds:
    """Partials of stretches of rows that come batch after batch, each stretch under a number."""

    def __init__(self, bounds: Bounds, aggregates: Mapping[str, Any], count: int) -> None:
        self._bounds, self._count = bounds, count
        self._aggregates = {name: as_aggregate(each) for name, each in aggregates.items()}
        self._parts: list[tuple[Group, Kernels, Any]] = []
        self.n_rows = [0] * count

    def take(self, batch: Batch, stretches: Sequence[tuple[int, int]]) -> None:
        """Add the rows from, to of a batch to each stretch. A row is folded once, in however many it is."""
        edges = sorted({edge for first, stop in stretches if first < stop for edge in (first, stop)})
        if not edges:
            return
        batch = prepared(batch, self._bounds, self._aggregates.values())
        tasks, n = tasks_of(batch.columns, self._aggregates), len(batch.order)
        with explaining([task.monoid.name for task in tasks]):
            self._begin(tasks, batch)
            given = [group.columns(tasks, n) for group, _, _ in self._parts]
            for first, stop in itertools.pairwise(edges):
                inside = [k for k, (begin, end) in enumerate(stretches) if begin <= first and stop <= end]
                self._fold(given, first, stop, inside)

    def join(self, like: Batch, k: int, dumped: Sequence[Any], n_rows: int) -> None:
        """Add a partial that `dump` gave to a stretch, behind what it has; `like` has the types of its rows."""
        like = prepared(like, self._bounds, self._aggregates.values())
        self._begin(tasks_of(like.columns, self._aggregates), like)
        for (group, made, pool), data in zip(self._parts, dumped, strict=True):
            _pick_dumped(made, group, data, pool, FOLDED)
            made.join(pool, OWN + k, FOLDED, self.n_rows[k] == 0)
        self.n_rows[k] += n_rows

    def _begin(self, tasks: Sequence[Task], batch: Batch) -> None:
        if not self._parts:
            self._parts = [self._part(group) for group in _groups(self._bounds, tasks, batch.order.dtype)]

    def _part(self, group: Group) -> tuple[Group, Kernels, Any]:
        made = kernels(group.kind)
        return group, made, made.cells.allocate(OWN + self._count)

    def _fold(self, given: Sequence[Any], first: int, stop: int, inside: Sequence[int]) -> None:
        for (_, made, pool), columns in zip(self._parts, given, strict=True):
            if inside:
                made.fold(pool, FOLDED, columns, first, stop)
            for k in inside:
                made.join(pool, OWN + k, FOLDED, self.n_rows[k] == 0)
        for k in inside:
            self.n_rows[k] += stop - first

    def dump(self, k: int) -> list[Any]:
        """The partial of a stretch that has rows, as plain data."""
        dumped = []
        for group, made, pool in self._parts:
            alone = made.cells.allocate(1)
            made.pick(alone, 0, pool, OWN + k)
            monoids = group.kind.monoids
            each = zip(unnested(alone, len(monoids)), monoids, strict=True)
            dumped.append([snapshot.dump_pool(part, monoid) for part, monoid in each])
        return dumped


# --- answering over them ---------------------------------------------------------------------------


class Middle(NamedTuple):
    """What lies between front and back."""

    n_rows: int
    order: Any  # of its first row, in the unit of the bounds
    partials: Sequence[Any]  # what `Folds.dump` gave, the oldest first


class Bridged:
    """A window and its aggregates over the rows of one key, the first `n_front` of which are not answered."""

    def __init__(self, bounds: Bounds, aggregates: Mapping[str, Any], n_front: int, middle: Middle) -> None:
        self._bounds = bounds
        self._aggregates = {name: as_aggregate(each) for name, each in aggregates.items()}
        self._n_front, self._middle = n_front, middle
        self._inputs: Inputs | None = None
        self._framing: Any = None
        self._parts: list[tuple[Group, Kernels, Any, Any]] = []
        self._n_framed = self._n_answered = 0

    begin = 0  # nothing is forgotten that a window might look at

    @property
    def n_inserted(self) -> int:
        """The row at fault, if an aggregate raised: where the prefix ends."""
        return min((int(at[NEXT]) - 1 for _, _, _, at in self._parts), default=self._n_front)

    def push(self, batch: Batch) -> Answered:
        """Take more rows; first the front ones, in batches of their own."""
        batch = prepared(batch, self._bounds, self._aggregates.values())
        if self._inputs is None:
            self._inputs = Inputs.like(batch)
            self._framing = framing_of(self._unbounded, batch.order.dtype, self._inputs)
        if self._inputs.n_rows < self._n_front:
            self._inputs.append(batch)
            return self._nothing()
        if not self._parts:
            self._cross(self._inputs, batch)
        self._inputs.append(batch._replace(begins=np.zeros(len(batch.order), np.bool_)))
        return self._answer(self._inputs, is_last=False)

    def finish(self) -> Answered:
        """Answer what still waits."""
        return self._nothing() if self._inputs is None else self._answer(self._inputs, is_last=True)

    @property
    def _unbounded(self) -> Bounds:
        """The same without a number of rows: that one counts what the middle stands for."""
        ties = "upto" if self._bounds.rows is not None else self._bounds.ties
        return replace(self._bounds, rows=None, min_rows=0, ties=ties)

    def _nothing(self) -> Answered:
        return Answered(np.empty(0, np.int64), None, [Column(np.empty(0), None) for _ in self._aggregates])

    def _cross(self, inputs: Inputs, back: Batch) -> None:
        """Put one row in the place of the middle, and make the suffixes (I1)."""
        n, middle = self._n_front, self._middle
        tasks = tasks_of(inputs.columns, self._aggregates)
        with explaining([task.monoid.name for task in tasks]):
            for group in _groups(self._bounds, tasks, inputs.order_dtype):
                made = kernels(group.kind)
                pool = made.cells.allocate(FRONT + n + 1)
                made.cells.clear(pool, EMPTY)
                made.cells.clear(pool, FRONT + n)
                self._load(pool, made, group, len(self._parts))
                made.suffix(pool, group.columns(tasks, n), n)
                at = np.full(2, n + 1, np.int64) if group.kind.is_compiled else [n + 1, n + 1]
                self._parts.append((group, made, pool, at))
        order = middle.order if middle.n_rows else (inputs.rows.order[-1] if n else back.order[0])
        stand_in = {name: Column(np.zeros(1, each.values.dtype), None) for name, each in back.columns.items()}
        inputs.append(Batch(np.array([n == 0]), np.array([order], inputs.order_dtype), stand_in))

    def _load(self, pool: Any, made: Kernels, group: Group, place: int) -> None:
        """Join the partials of the middle, the oldest first, where the suffixes end."""
        for number, dumped in enumerate(self._middle.partials):
            _pick_dumped(made, group, dumped[place], pool, LIFTED)
            made.join(pool, FRONT + self._n_front, LIFTED, number == 0)

    def _answer(self, inputs: Inputs, *, is_last: bool) -> Answered:
        if not self._parts:
            return self._nothing()
        framed = self._framing.take(inputs.rows, is_last=is_last)
        n_skipped = min(framed.n, max(0, self._n_front + 1 - self._n_framed))
        self._n_framed += framed.n
        starts, ends = (each[n_skipped:] for each in framed.answered)
        windows, is_short = self._windows(starts, ends, inputs.base)
        answers = self._answers(inputs, windows, is_short)
        columns_before = min(int(at[NEXT]) for _, _, _, at in self._parts)
        inputs.forget(order_before=self._framing.needed, columns_before=columns_before)
        first, self._n_answered = self._n_answered, self._n_answered + len(starts)
        return Answered(np.arange(first, self._n_answered), None, answers)

    def _windows(self, starts: Any, ends: Any, base: int) -> tuple[Windows, Any]:
        """Where windows begin among the front cells, and which of them are too short."""
        n, rows, least = self._n_front, self._bounds.rows, self._bounds.min_rows
        is_empty = starts >= ends
        if rows is not None:
            starts = np.maximum(starts, self._counted(ends) - rows)
        starts = np.minimum(starts, n)
        is_short = self._counted(ends) - self._counted(starts) < least if least else None
        return Windows(np.where(is_empty, 0, starts), np.where(is_empty, 0, ends), base), is_short

    def _counted(self, places: Any) -> Any:
        """How many rows lie before a place, with what the middle stands for."""
        return np.where(places <= self._n_front, places, places + (self._middle.n_rows - 1))

    def _answers(self, inputs: Inputs, windows: Windows, is_short: Any) -> list[Column]:
        tasks = tasks_of(inputs.columns, self._aggregates)
        answers: dict[int, Column] = {}
        with explaining([task.monoid.name for task in tasks]):
            for group, made, pool, at in self._parts:
                results = made.cells.results(len(windows.starts))
                given = windows if group.kind.is_compiled else windows.plain()
                made.drive(pool, at, group.columns(tasks, inputs.n_rows - inputs.base), given, results)
                answers |= dict(group.answers(results, is_short))
        return [answers[place] for place in range(len(tasks))]
