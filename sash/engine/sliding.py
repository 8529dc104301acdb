"""`sash.slide`: windows over whole columns, NumPy in and NumPy out.

The control path: it reads columns, chooses an algorithm, allocates, and calls one compiled loop.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from sash.aggregators import beside, boundary_scan, find, four_windows
from sash.aggregators.contract import Algorithm, Fifo
from sash.algebra.monoid import Apart, Function, Monoid
from sash.algebra.state import Scalar
from sash.compiling.cells import Cells, Values
from sash.compiling.compiled_cells import compiled_cells, values
from sash.compiling.jit import compiled, entry, explaining, inlined, interpreted
from sash.engine import columns as reading
from sash.engine import parallel
from sash.engine.answering import answers_of
from sash.engine.building import Built, interpreted_product, new_state, nullable, product, require_algebra
from sash.engine.choosing import Question, choose, fits_registers, is_arithmetic
from sash.engine.coarse import in_time_order, rows_grid, slide_coarsely, times_grid
from sash.engine.disordered import Disorder, slide_disordered
from sash.engine.driving import frames_driver, rows_driver
from sash.engine.parallel import each_part, parts
from sash.engine.ranked import is_rankable, quantiles
from sash.engine.sharing import is_several
from sash.engine.tasks import (
    Kind,
    Task,
    answers_for,
    as_asked,
    columns_for,
    cut_results,
    kind_of,
    narrowed,
    nothing,
    tasks_of,
)
from sash.errors import DeclarationError, UnsupportedError
from sash.windows.frames import Frames, time_frames

AT_ONCE = 1 << 18  # rows, at least, of what is done in steps: fewer take longer to begin
FAR = 2  # times as many rows as a window, at least, too: the scan begins with all of the window before them
SIDE_BY_SIDE = range(49, 1025)  # rows of windows of single numbers where scans side by side beat four windows at a time


class Further(TypedDict, total=False):
    """The less common arguments of `slide`."""

    every: Any
    ordered: bool
    as_of: str
    keys: Any


class Manner(NamedTuple):
    """The same, with what is meant if nothing is said."""

    every: Any = None
    ordered: bool = True
    as_of: str | None = None
    keys: Any = None


class Window(NamedTuple):
    """Which windows are asked for."""

    n: int
    rows: int | None
    times: Any
    span: Any
    closed: str | None
    ties: str
    algorithm: str | None
    manner: Manner


def slide(
    given: Any,
    aggregate: Any,
    *,
    rows: int | None = None,
    times: Any = None,
    span: Any = None,
    closed: str | None = None,
    ties: str = "peers",
    algorithm: str | None = None,
    **further: Unpack[Further],
) -> Any:
    """Aggregate a window at every row: the last `rows` rows, or those within `span` of its time.

    `given` is a column, a tuple of columns for aggregates that read several, or a dict of named
    columns. `aggregate` is one aggregate, a list of them (answers come as a list) or a dict (answers
    come as a dict). Windows at the start hold the rows there are. Null answers are NaN among floats
    unless the input has a mask; then, and among other types, the answers are a masked array.

    `closed` says which ends of a window belong to it: "both", "right", "left" or "none". `span` may be a list;
    the answers are then a list, one for each span.

    `ordered=False` takes rows as they arrived, in any order of time, and answers each as of its arrival:
    `as_of="newest"` ends its window at the newest time seen by then, `as_of="row"` at its own time. `keys`
    is a column that says whose each row is; every key has windows of its own.

    `every=s` answers once in s rows: those whose number, counted from 1, leaves the same remainder by s
    as `rows` does. With times, it answers the windows [k s, k s + span) that hold a row, for all whole
    k (so `closed` is "left" unless said), and gives two columns: where they end, and the answers.

    >>> import numpy as np, sash
    >>> sash.slide(np.array([3.0, 1.0, 2.0, 5.0]), sash.max(), rows=2)
    array([3., 3., 2., 5.])
    >>> sash.slide([1, 2, 4], sash.sum(), times=[10, 30, 15], span=20, ordered=False, as_of="row")
    array([1, 3, 5])
    """
    manner = Manner(**further)
    window = Window(reading.length_of(given), rows, times, span, closed, ties, algorithm, manner)
    _require_window(window)
    tasks, spans = tasks_of(given, aggregate), list(span) if is_several(span) else [span]
    with explaining([task.monoid.name for task in tasks]):
        if manner.every is not None:
            answers = [_on_grid(tasks, window._replace(span=each), aggregate) for each in spans]
        elif not manner.ordered:
            answers = [as_asked(aggregate, each) for each in _as_arrived(tasks, window)]
        else:
            # A queue for each span: one tree for all, asked for ranges, took 4 to 6.5 times as long for 1 to 7 spans.
            answers = [as_asked(aggregate, _at_rows(tasks, window._replace(span=each))) for each in spans]
    return answers if is_several(span) else answers[0]


def _require_window(window: Window) -> None:
    n, rows, times, span, manner = window.n, window.rows, window.times, window.span, window.manner
    if rows is not None:
        if times is not None or span is not None:
            raise DeclarationError("give either rows, or times and span, not both")
        if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
            raise DeclarationError(f"rows must be a positive integer, got {rows!r}")
    if not manner.ordered and (times is None or span is None):
        raise DeclarationError("ordered=False needs times=... and span=...: rows alone have no other order")
    if rows is None and (times is None or span is None):
        raise DeclarationError("a window needs a length: rows=100, or times=... with span=...")
    if times is not None and len(times) != n:
        raise DeclarationError(f"there are {n} values but {len(times)} times")
    if (manner.keys is not None or manner.as_of is not None) and (manner.ordered or manner.every is not None):
        raise UnsupportedError("keys= and as_of= go with ordered=False, which takes rows in order too, without every=")


def _on_grid(tasks: list[Task], window: Window, aggregate: Any) -> Any:
    """Answers once in a while, and, by time, where the windows end."""
    n, rows, times, manner = window.n, window.rows, window.times, window.manner
    if rows is not None:
        grid = rows_grid(n, rows, manner.every)
    else:
        if not manner.ordered:
            tasks, times = in_time_order(tasks, times)
        grid = times_grid(times, window.span, manner.every, window.closed or "left")
    outcomes = slide_coarsely(tasks, n, grid, window.algorithm) if n else [nothing(task) for task in tasks]
    answers = as_asked(aggregate, outcomes)
    return answers if rows is not None else (grid.ends, answers)


def _as_arrived(tasks: list[Task], window: Window) -> list[list[Any]]:
    """Answers for rows in any order of time, for each span."""
    manner = window.manner
    disorder = Disorder(
        window.times, window.span, window.closed or "both", window.ties, manner.as_of or "newest", manner.keys,
        window.algorithm,
    )  # fmt: skip
    return slide_disordered(tasks, disorder)


def _at_rows(tasks: list[Task], window: Window) -> list[Any]:
    """Answers at every row, rows being in order."""
    closed, ties = window.closed or "both", window.ties
    by_rows = window.rows is not None
    frames = None if by_rows else time_frames(window.times, window.span, closed=closed, ties=ties)
    extent = Extent(window.n, int(window.rows) if window.rows is not None else None, frames)
    ranked = {place: task for place, task in enumerate(tasks) if window.algorithm is None and is_rankable(task)}
    others = [task for place, task in enumerate(tasks) if place not in ranked]
    answers = iter(_run(others, extent, window.algorithm) if window.n and others else map(nothing, others))
    return [_ranked(task, extent) if place in ranked else next(answers) for place, task in enumerate(tasks)]


def _ranked(task: Task, extent: Extent) -> Any:
    """A quantile, by ranks."""
    ends = np.arange(1, extent.n + 1)
    frames = extent.frames or Frames(np.maximum(ends - (extent.rows or 0), 0), ends)
    return answers_of(quantiles(task, frames), task.monoid, masked=task.is_masked)


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


def _run(tasks: list[Task], extent: Extent, algorithm: str | None) -> list[Any]:
    tasks = [narrowed(task, extent.longest) for task in tasks]
    kind = kind_of(tasks, may_be_empty=extent.may_be_empty)
    question = Question(kind.monoids, extent.rows, kind.has_nulls, kind.is_compiled)
    name = algorithm or choose(question).algorithm
    found = find(name)
    if found.card.fixed and extent.rows is not None:
        in_parallel = name == "pba" and extent.rows >= parallel.SHORTEST
        if kind.is_compiled and not kind.has_nulls and all(fits_registers(task.monoid) for task in tasks):
            scan = _scanned_in_parallel if in_parallel else _scanned
            return [scan(task, extent.n, extent.rows) for task in tasks]
        found = find("two_stacks_lite")  # the same windows, for what a scan cannot hold in registers
    return _driven(tasks, extent, found, kind)


def _scanned(task: Task, n: int, rows: int) -> Any:
    """One aggregate by the boundary scan, the rows shared out among threads."""
    if task.monoid.apart is not None:
        return _scanned_apart(task, task.monoid.apart, n, rows)
    how, ops, scan = _scanner(task.monoid, rows >= four_windows.SHORTEST, rows in SIDE_BY_SIDE)
    cut, results = how.plan(rows), ops.results(n)
    each_part(parts(n, rows), lambda begin, end: scan(task.columns, begin, end, cut, how.memory(ops, cut), results))
    return answers_of(results, task.monoid, masked=task.is_masked)


def _scanned_apart(task: Task, apart: Apart, n: int, rows: int) -> Any:
    """The same in three steps, for some rows after the other: what a step leaves, the next one finds in a cache."""
    how, ops, scan = _scanner(apart.monoid, rows >= four_windows.SHORTEST, rows in SIDE_BY_SIDE)
    cut, results, (column,) = how.plan(rows), ops.results(n), task.columns
    at_once = max(AT_ONCE, FAR * rows)

    def work(begin: int, end: int) -> None:
        n_before = min(begin, rows)  # rows of the window before those of a step
        prepared = np.empty(min(n_before + end - begin, rows + at_once))
        apart.before(column[begin - n_before : begin], prepared[:n_before])
        for start in range(begin, end, at_once):
            stop = min(start + at_once, end)
            given, own = prepared[: n_before + stop - start], cut_results(results, start - n_before, stop)
            apart.before(column[start:stop], given[n_before:])
            scan((given,), n_before, len(given), cut, how.memory(ops, cut), own)
            apart.after(own[0][n_before:], own[0][n_before:])
            n_before = min(stop, rows)
            if stop < end:
                prepared[:n_before] = given[len(given) - n_before :]

    each_part(parts(n, rows), work)
    return answers_of(results, apart.monoid, masked=task.is_masked)


def _scanned_in_parallel(task: Task, n: int, rows: int) -> Any:
    results = parallel.scan_in_parallel(task.monoid, task.columns, n, rows)
    return answers_of(results, task.monoid, masked=task.is_masked)


@lru_cache(maxsize=256)
def _scanner(monoid: Monoid, are_four: bool, are_beside: bool) -> tuple[Any, Values, Function]:
    """How to scan, with what operations, and by what machine code."""
    ops, state = values(monoid), monoid.state
    answers = ops.results(0)[0]
    in_place = isinstance(state, Scalar) and isinstance(answers, np.ndarray) and answers.dtype == state.dtype
    is_answer = in_place and monoid.lower is None
    if are_four and is_arithmetic(monoid):
        if in_place and are_beside:
            return beside, ops, entry(beside.build(ops, compiled, is_answer=is_answer))
        return four_windows, ops, entry(four_windows.build(ops, compiled))
    return boundary_scan, ops, entry(boundary_scan.build(ops, compiled, in_place=in_place, is_answer=is_answer))


def _driven(tasks: list[Task], extent: Extent, algorithm: Algorithm, kind: Kind) -> list[Any]:
    """All aggregates together, through one structure."""
    if algorithm.card.fixed:
        raise UnsupportedError(
            f"{algorithm.card.name} slides windows of a fixed number of rows; use two_stacks_lite for times"
        )
    cells, driver = _driver(algorithm, kind, extent.rows is not None)
    capacity = 1 << max(3, (extent.longest + 1).bit_length())
    built = Built(algorithm, cells, Fifo(*(None,) * 4), kind.is_compiled)  # type: ignore[arg-type]
    state, results = new_state(built, capacity), cells.results(extent.n)
    columns = columns_for(tasks, extent.n, kind)
    if extent.frames is None:
        driver(state, columns, extent.n, extent.rows, results)
    else:
        starts, ends = extent.frames
        frames = extent.frames if kind.is_compiled else Frames(starts.tolist(), ends.tolist())
        driver(state, columns, frames, built.empty_cell(capacity), results)
    return answers_for(tasks, results)


@lru_cache(maxsize=256)
def _driver(algorithm: Algorithm, kind: Kind, by_rows: bool) -> tuple[Cells, Function]:
    options = require_algebra(algorithm, kind.monoids, inexact=False)
    if kind.is_compiled:
        make_cells = nullable if kind.has_nulls else compiled_cells
        cells = product([make_cells(monoid) for monoid in kind.monoids], compiled)
        fifo = algorithm.build(cells, inlined, **options)
    else:
        cells = interpreted_product(algorithm, kind.monoids, options)
        fifo = algorithm.build(cells, interpreted, **options)
    make = rows_driver if by_rows else frames_driver
    return cells, make(fifo, cells, entry if kind.is_compiled else interpreted)
