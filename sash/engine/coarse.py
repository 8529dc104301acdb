"""Windows that slide by more than a row: rows that leave together are combined on the way in.

    rows      |..........|..........|..........|..........|....        windows of range 4, slide 1 (in slices)
    slices    [   0     ) [   1    ) [   2    ) [   3    ) [ open
                          `---- window = slices 1, 2 and 3 + the open one ---'

A *slice* reaches from where one window begins to where the next one does, so no window ever holds a part of one,
but at its end. Whole slices are the elements of an in-order algorithm; the open one is added to its
answer. Any range and any slide will do: where windows end inside a slice, where they overlap
or leave gaps, and where times are so sparse that many windows share their rows.

    by rows   windows of r rows end with the rows whose number, counted from 1, leaves the same
              remainder as r when divided by the slide; at the start they hold the rows there are
    by time   windows [k slide, k slide + range), for all whole k, that hold a row

Cost in calls of combine: 1 for each row, that of the algorithm for each slice, and 1 for each window.
Space: the slices of the longest window, that is, range / slide.

Paper: Carbone, Traub, Katsifodimos, Haridi, Markl, "Cutty: aggregate sharing for user-defined windows",
CIKM (2016), for the slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators import find
from sash.aggregators.contract import END, OLDEST, Algorithm, Fifo, Jit, State
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.jit import compiled, entry, inlined, interpreted
from sash.engine.building import Built, interpreted_product, new_state, nullable, product, require_algebra
from sash.engine.sharing import instants_of, require_closed
from sash.engine.tasks import Kind, Task, answers_for, columns_for, kind_of, narrowed
from sash.errors import DataError, DeclarationError, UnsupportedError

SLICE, ROW, ANSWER, N_SCRATCH = 0, 1, 2, 3  # places beside the structure
LARGEST = np.iinfo(np.int64)
FINEST = 2.0**53  # more slides than this from zero, and floats cannot count them


class Grid(NamedTuple):
    """Windows that hold a row: the rows of each, both bounds ascending, and where it ends."""

    starts: Any
    stops: Any
    ends: Any


class Slices(NamedTuple):
    """Windows over slices: slice j begins with row cuts[j]."""

    cuts: Any
    first: Any  # of a window: its first slice
    starts: Any  # and its rows
    stops: Any


def rows_grid(n: int, rows: int, every: Any) -> Grid:
    """Windows of the last `rows` rows, once in `every` rows."""
    if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or every < 1:
        raise DeclarationError(f"every must be a positive number of rows, got {every!r}")
    stops = np.arange(rows % every or every, n + 1, every)
    return Grid(np.maximum(stops - rows, 0), stops, stops)


def times_grid(times: Any, span: Any, every: Any, closed: str) -> Grid:
    """Windows of `span` that begin with every multiple of `every`, over times in ascending order."""
    require_closed(closed)
    if not every > 0 * every:
        raise DeclarationError(f"every must be positive, got {every!r}")
    instants, (length, slide) = instants_of(times, [span, every])
    _require_order(times, instants)
    begins = _multiples(instants, length, slide) * slide
    side: Any = ("left", "right")
    starts = np.searchsorted(instants, begins, side[closed in ("right", "none")])
    stops = np.searchsorted(instants, begins + length, side[closed in ("both", "right")])
    holds = starts < stops
    return Grid(starts[holds], stops[holds], _as_times(begins[holds] + length, np.asarray(times), (span, every)))


def _require_order(times: Any, instants: Any) -> None:
    falls = instants[1:] < instants[:-1]
    if falls.any():
        i = int(falls.argmax()) + 1
        raise DataError(
            f"times must ascend, but row {i} has {times[i]!r} after {times[i - 1]!r}; pass ordered=False, or sort first"
        )


def _multiples(instants: Any, length: Any, slide: Any) -> Any:
    """All k for which a window may hold a row, without looking at the silences between."""
    if len(instants) == 0:
        return instants
    _require_room(instants, length, slide)
    last = np.floor_divide(instants, slide).astype(np.int64) + 1  # one more on either side: rounding, and
    first = np.floor_divide(instants - length, slide).astype(np.int64) - 1  # bounds that belong to a window or not
    first[1:] = np.maximum(first[1:], last[:-1] + 1)
    counts = np.maximum(last - first + 1, 0)
    before = np.cumsum(counts) - counts
    return np.repeat(first - before, counts) + np.arange(counts.sum())


def _require_room(instants: Any, length: Any, slide: Any) -> None:
    low, high = instants[0].item(), instants[-1].item()
    margin = length.item() + 2 * slide.item()
    if instants.dtype.kind == "i":
        fits = low - margin >= LARGEST.min and high + margin <= LARGEST.max
    else:
        fits = max(abs(low), abs(high), margin) / slide < FINEST
    if not fits:
        raise DataError(f"times from {low!r} to {high!r} are too far from zero for windows every {slide.item()!r}")


def _as_times(ends: Any, times: Any, spans: tuple[Any, Any]) -> Any:
    """Ends of windows as the times were given."""
    if times.dtype.kind not in "mM":
        return ends
    units = [np.timedelta64(each).dtype for each in spans if isinstance(each, (timedelta, np.timedelta64))]
    unit, count = np.datetime_data(times.dtype)
    finest = np.result_type(np.dtype(f"m8[{count}{unit}]"), *units)
    unit, count = np.datetime_data(finest)
    return ends.view(f"{times.dtype.kind}8[{count}{unit}]")


def in_time_order(tasks: Sequence[Task], times: Any) -> tuple[list[Task], Any]:
    """The rows sorted by time, those of equal time as they came.

    A window on a grid is answered once, when all of it is there, so that nothing is gained by a
    tree; and slices as its keys would take the rows of a slice in the order they came.
    """
    if np.ma.is_masked(times):
        return list(tasks), times  # refused when they are read
    order = np.argsort(np.asarray(times), kind="stable")
    return [
        task._replace(
            columns=tuple(column[order] for column in task.columns),
            valid=None if task.valid is None else task.valid[order],
        )
        for task in tasks
    ], np.asarray(times)[order]


def slide_coarsely(tasks: Sequence[Task], n: int, grid: Grid, algorithm: str | None) -> list[Any]:
    """The answers of each task, one for each window of the grid."""
    found = find(algorithm or "two_stacks_lite")
    if found.card.fixed:
        raise UnsupportedError(f"{found.card.name} makes its own slices; use two_stacks_lite with every=")
    longest = int((grid.stops - grid.starts).max(initial=1))
    tasks = [narrowed(task, longest) for task in tasks]
    kind = kind_of(tasks, may_be_empty=False)
    slices, capacity = _slices(grid)
    cells, driver = _driver(found, kind)
    state = new_state(Built(found, cells, Fifo(*(None,) * 4), kind.is_compiled), capacity)  # type: ignore[arg-type]
    results = cells.results(len(grid.stops))
    if not kind.is_compiled:
        slices = Slices(*(each.tolist() for each in slices))
    driver(state, cells.allocate(N_SCRATCH), columns_for(tasks, n, kind), slices, results)
    return answers_for(tasks, results)


def _slices(grid: Grid) -> tuple[Slices, int]:
    """Cut where windows begin; and room for the slices of the longest window, a power of two."""
    cuts, first = np.unique(grid.starts, return_inverse=True)
    longest = int((np.searchsorted(cuts, grid.stops) - first).max(initial=1))
    return Slices(cuts, first, grid.starts, grid.stops), 1 << max(3, (longest + 1).bit_length())


@lru_cache(maxsize=256)
def _driver(algorithm: Algorithm, kind: Kind) -> tuple[Cells, Function]:
    options = require_algebra(algorithm, kind.monoids, inexact=False)
    if kind.is_compiled:
        make = nullable if kind.has_nulls else compiled_cells
        cells = product([make(monoid) for monoid in kind.monoids], compiled)
    else:
        cells = interpreted_product(algorithm, kind.monoids, options)
    jit: Any = inlined if kind.is_compiled else interpreted
    fifo = algorithm.build(cells._replace(lift=cells.transfer), jit, **options)  # its rows are slices
    return cells, slices_driver(fifo, cells, entry if kind.is_compiled else interpreted)


def slices_driver(fifo: Fifo, cells: Cells, jit: Jit) -> Function:
    """Make drive(state, scratch, columns, slices, results): every window, from its slices."""
    insert, evict, query, lower = fifo.insert, fifo.evict, fifo.query, cells.lower
    combine, lift, transfer = cells.combine, cells.lift, cells.transfer

    def drive_slices(s: State, scratch: Any, columns: Any, slices: Slices, results: Any) -> None:
        row, n_begun, n_cuts = 0, 0, len(slices.cuts)
        for k in range(len(slices.stops)):
            row = max(row, slices.starts[k])  # rows between two windows are in none
            while s.at[OLDEST] < slices.first[k] and s.at[OLDEST] < s.at[END]:
                evict(s)
            while row < slices.stops[k]:
                if n_begun < n_cuts and row == slices.cuts[n_begun]:
                    if n_begun > 0:
                        insert(s, scratch, SLICE)
                        if s.at[OLDEST] < slices.first[k]:
                            evict(s)
                    lift(scratch, SLICE, columns, row)
                    n_begun += 1
                else:
                    lift(scratch, ROW, columns, row)
                    combine(scratch, SLICE, SLICE, ROW)
                row += 1
            if s.at[OLDEST] == s.at[END]:
                lower(results, k, scratch, SLICE)
            else:
                transfer(scratch, ANSWER, s.pool, query(s))
                combine(scratch, ANSWER, ANSWER, SLICE)
                lower(results, k, scratch, ANSWER)

    return jit(drive_slices)
