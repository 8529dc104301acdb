"""Rows that an aggregate cannot take: those of which lift raises.

A row is tried by itself, when it comes and before it is put beside others. So whether it fails depends neither on other
rows nor on how the stream was cut; and a row that fails is in no window, no state and no answer, as if it had not
come. What combine or lower raise is nobody's fault in particular, and ends the query (blaming). Machine code cannot
raise: only aggregates that are interpreted are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sash.compiling.interpreted_cells import interpreted_cells
from sash.compiling.jit import is_enabled
from sash.engine.tasks import Kind, Task, columns_for, tasks_of
from sash.errors import SashError
from sash.frames.answering import Columns, Reader, policy_aggregates
from sash.frames.arrow_tables import Source
from sash.frames.extents import show_aggregate
from sash.streams.plans import Plan


def failures(plan: Plan, rows: Any) -> dict[int, str]:
    """Which rows cannot be taken, by their places, and why: the first reason of each."""
    found: dict[int, str] = {}
    for what, task in _interpreted(plan, rows):
        cells, pool = interpreted_cells(task.monoid), [None]
        columns = columns_for([task], rows.num_rows, Kind((task.monoid,), is_compiled=False, has_nulls=True))
        for place in range(rows.num_rows):
            try:
                cells.lift(pool, 0, columns, place)
            except SashError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a function of the user's raises
                found.setdefault(place, f"{type(error).__name__}: {error}, in {what}")
    return found


def _interpreted(plan: Plan, rows: Any) -> Iterator[tuple[str, Task]]:
    """The aggregates that can raise, each with its columns."""
    columns = Columns(Reader(Source(rows)), None)
    for spec in plan.specs:
        for name, aggregate in (*policy_aggregates(spec), *spec.aggregates):
            coded = columns.code(aggregate).aggregate
            (task,) = tasks_of(columns.columns, coded)
            if not (task.is_compilable and is_enabled()):
                yield f"{name}={show_aggregate(aggregate)}", task
