"""`sash.slide`: windows over whole columns, NumPy in and NumPy out.

The control path: it reads columns, chooses an algorithm, allocates, and calls one compiled loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators import boundary_scan, find
from sash.aggregators.contract import Algorithm, Fifo
from sash.algebra.aggregate import Aggregate
from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Scalar
from sash.compiling.cells import Cells, Values
from sash.compiling.compiled_cells import compiled_cells, values
from sash.compiling.jit import compiled, entry, interpreted, is_enabled
from sash.engine import columns as reading
from sash.engine import parallel
from sash.engine.answering import answers_of
from sash.engine.binding import as_aggregate
from sash.engine.building import (
    Built,
    interpreted_product,
    nested,
    new_state,
    nullable,
    product,
    require_algebra,
    unnested,
)  # fmt: skip
from sash.engine.choosing import Question, choose, fits_registers
from sash.engine.driving import frames_driver, rows_driver
from sash.engine.parallel import each_part, parts
from sash.errors import DeclarationError, UnsupportedError
from sash.windows.frames import Frames, time_frames


def slide(
    given: Any,
    aggregate: Any,
    *,
    rows: int | None = None,
    times: Any = None,
    span: Any = None,
    closed: str = "both",
    ties: str = "peers",
    algorithm: str | None = None,
) -> Any:
    """Aggregate a window at every row: the last `rows` rows, or those within `span` of its time.

    `given` is a column, a tuple of columns for aggregates that read several, or a dict of named
    columns. `aggregate` is one aggregate, a list of them (answers come as a list) or a dict (answers
    come as a dict). Windows at the start hold the rows there are. Null answers are NaN among floats
    unless the input has a mask; then, and among other types, the answers are a masked array.

    >>> import numpy as np, sash
    >>> sash.slide(np.array([3.0, 1.0, 2.0, 5.0]), sash.max(), rows=2)
    array([3., 3., 2., 5.])
    """
    n = reading.length_of(given)
    extent = _extent(n, rows, times, span, closed=closed, ties=ties)
    aggregates = _several(aggregate)
    tasks = [_task(given, each) for each in aggregates]
    outcomes = _run(tasks, extent, algorithm) if n else [_nothing(task) for task in tasks]
    if isinstance(aggregate, Mapping):
        return dict(zip(aggregate, outcomes, strict=True))
    return list(outcomes) if isinstance(aggregate, (list, tuple)) else outcomes[0]


class Extent(NamedTuple):
    """How far the windows reach: a number of rows, or a frame for every row."""

    n: int
    rows: int | None
    frames: Frames | None

    @property
    def longest(self) -> int:
        """The most rows that a window holds."""
        if self.frames is None:
            return min(self.n, self.rows or self.n)
        return int((self.frames.ends - self.frames.starts).max(initial=1))

    @property
    def may_be_empty(self) -> bool:
        """Whether some window holds no row at all."""
        return self.frames is not None and bool((self.frames.ends <= self.frames.starts).any())


class Task(NamedTuple):
    """One aggregate with its columns."""

    aggregate: Aggregate
    monoid: Monoid
    columns: tuple[Any, ...]
    valid: Any  # None: no nulls
    is_masked: bool  # the input has a mask, so the answers get one

    @property
    def is_compilable(self) -> bool:
        """Whether machine code can be made for it."""
        return self.monoid.is_compilable and all(column.dtype.kind in "biuf" for column in self.columns)


def _extent(n: int, rows: int | None, times: Any, span: Any, **bounds: str) -> Extent:
    if rows is not None:
        if times is not None or span is not None:
            raise DeclarationError("give either rows, or times and span, not both")
        if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
            raise DeclarationError(f"rows must be a positive integer, got {rows!r}")
        return Extent(n, int(rows), None)
    if times is None or span is None:
        raise DeclarationError("a window needs a length: rows=100, or times=... with span=...")
    if len(times) != n:
        raise DeclarationError(f"there are {n} values but {len(times)} times")
    return Extent(n, None, time_frames(times, span, **bounds))


def _several(aggregate: Any) -> list[Aggregate]:
    if isinstance(aggregate, Mapping):
        given: Sequence[Any] = list(aggregate.values())
    else:
        given = aggregate if isinstance(aggregate, (list, tuple)) else [aggregate]
    if not given:
        raise DeclarationError("no aggregate given")
    return [as_aggregate(each) for each in given]


def _task(given: Any, aggregate: Aggregate) -> Task:
    inputs = reading.choose_columns(given, aggregate)
    condition = reading.condition_of(given, aggregate)
    valid = reading.joint_validity(inputs, condition)
    dtypes = [column.values.dtype if column.is_number else None for column in inputs]
    is_masked = any(column.valid is not None for column in inputs)
    return Task(aggregate, aggregate.bind(*dtypes), tuple(c.values for c in inputs), valid, is_masked)


def _narrowed(task: Task, longest: int) -> Task:
    """Use the narrow form of an integer sum where no window can overflow it."""
    if task.monoid.narrow is None or not task.columns[0].size:
        return task
    column = task.columns[0]
    if longest * max(abs(int(column.min())), abs(int(column.max()))) >= 2**63:
        return task
    return task._replace(monoid=task.monoid.narrow)


def _nothing(task: Task) -> Any:
    """Answers for no rows."""
    if not (task.is_compilable and is_enabled()):
        return np.empty(0, object if not task.is_compilable else np.float64)
    return answers_of(nullable(task.monoid).results(0), task.monoid, masked=task.is_masked)


def _run(tasks: list[Task], extent: Extent, algorithm: str | None) -> list[Any]:
    tasks = [_narrowed(task, extent.longest) for task in tasks]
    is_compiled = is_enabled() and all(task.is_compilable for task in tasks)
    has_nulls = extent.may_be_empty or any(task.valid is not None for task in tasks)
    monoids = [task.monoid for task in tasks]
    name = algorithm or choose(Question(monoids, extent.rows, has_nulls, is_compiled)).algorithm
    found = find(name)
    if found.card.fixed and extent.rows is not None:
        in_parallel = name == "pba" and extent.rows >= parallel.SHORTEST
        if is_compiled and not has_nulls and all(fits_registers(task.monoid) for task in tasks):
            scan = _scanned_in_parallel if in_parallel else _scanned
            return [scan(task, extent.n, extent.rows) for task in tasks]
        found = find("two_stacks_lite")  # the same windows, for what a scan cannot hold in registers
    return _driven(tasks, extent, found, is_compiled, has_nulls)


def _scanned(task: Task, n: int, rows: int) -> Any:
    """One aggregate by the boundary scan, the rows shared out among threads."""
    ops, scan = _scanner(task.monoid)
    cut, results = boundary_scan.plan(rows), ops.results(n)
    each_part(
        parts(n, rows),
        lambda begin, end: scan(task.columns, begin, end, cut, boundary_scan.memory(ops, cut), results),
    )
    return answers_of(results, task.monoid, masked=task.is_masked)


def _scanned_in_parallel(task: Task, n: int, rows: int) -> Any:
    results = parallel.scan_in_parallel(task.monoid, task.columns, n, rows)
    return answers_of(results, task.monoid, masked=task.is_masked)


@lru_cache(maxsize=256)
def _scanner(monoid: Monoid) -> tuple[Values, Function]:
    ops, state = values(monoid), monoid.state
    answers = ops.results(0)[0]
    in_place = isinstance(state, Scalar) and isinstance(answers, np.ndarray) and answers.dtype == state.dtype
    return ops, entry(
        boundary_scan.build(ops, compiled, in_place=in_place, is_answer=in_place and monoid.lower is None)
    )


def _driven(tasks: list[Task], extent: Extent, algorithm: Algorithm, is_compiled: bool, has_nulls: bool) -> list[Any]:
    """All aggregates together, through one structure."""
    if algorithm.card.fixed:
        raise UnsupportedError(
            f"{algorithm.card.name} slides windows of a fixed number of rows; use two_stacks_lite for times"
        )
    cells, driver = _driver(
        algorithm, tuple(task.monoid for task in tasks), extent.rows is not None, is_compiled, has_nulls
    )
    capacity = 1 << max(3, (extent.longest + 1).bit_length())
    built = Built(algorithm, cells, Fifo(*(None,) * 4), is_compiled)  # type: ignore[arg-type]
    state = new_state(built, capacity)
    results = cells.results(extent.n)
    columns = nested([_column(task, extent.n, is_compiled, has_nulls) for task in tasks])
    if extent.frames is None:
        driver(state, columns, extent.n, extent.rows, results)
    else:
        frames = extent.frames if is_compiled else Frames(extent.frames.starts.tolist(), extent.frames.ends.tolist())
        driver(state, columns, frames, built.empty_cell(capacity), results)
    flat = unnested(results, len(tasks))
    return [answers_of(each, task.monoid, masked=task.is_masked) for each, task in zip(flat, tasks, strict=True)]


@lru_cache(maxsize=256)
def _driver(
    algorithm: Algorithm, monoids: tuple[Monoid, ...], by_rows: bool, is_compiled: bool, has_nulls: bool
) -> tuple[Cells, Function]:
    options = require_algebra(algorithm, monoids, inexact=False)
    if is_compiled:
        kind = nullable if has_nulls else compiled_cells
        cells = product([kind(monoid) for monoid in monoids], compiled)
        fifo = algorithm.build(cells, compiled, **options)
    else:
        cells = interpreted_product(algorithm, monoids, options)
        fifo = algorithm.build(cells, interpreted, **options)
    make = rows_driver if by_rows else frames_driver
    return cells, make(fifo, cells, entry if is_compiled else interpreted)


def _column(task: Task, n: int, is_compiled: bool, has_nulls: bool) -> Any:
    """The columns of one aggregate, as its cells want them."""
    if not is_compiled:
        return tuple(_with_none(column, task.valid) for column in task.columns)
    if not has_nulls:
        return task.columns
    return np.ones(n, np.bool_) if task.valid is None else task.valid, task.columns


def _with_none(column: Any, valid: Any) -> list[Any]:
    plain: list[Any] = column.tolist()
    if valid is None:
        return plain
    return [value if present else None for value, present in zip(plain, valid.tolist(), strict=True)]
