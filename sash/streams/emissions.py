"""The three ways a stream answers, over the rows that have come.

    final    rows wait until the watermark has passed them; then they are answered, once, as batch would
    eager    rows are answered at once, over all rows that have come so far, those of the same micro-batch included
    revise   eager, and rows whose answers have changed are answered again, with the next revision number

All three put rows beside those of their keys that are still in reach, let the engine for whole tables answer, give
out the answers that are due, and keep what is in reach of a window to come (reach). So a stream gives what batch
gives, because it is the same code on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from sash.streams.changes import changed, take_changes
from sash.streams.contract import REVISION
from sash.streams.held import Held
from sash.streams.revising import answered_large, revised_large
from sash.streams.situation import Situation


def final(now: Situation, rows: Any) -> list[Any]:
    """Answer rows that are due, those that waited first; let the others wait."""
    released = now.waiting.release(now.watermark, now.due_of)
    return _answered(now, pa.concat_tables([released, _due(now, rows)]))


def _due(now: Situation, rows: Any) -> Any:
    """Rows that are due; the others are left to wait."""
    due_of = now.due_of(rows)
    is_due = due_of <= now.watermark
    if is_due.all():
        return rows
    now.waiting.add(rows.filter(pa.array(~is_due)), due_of[~is_due])
    return rows.filter(pa.array(is_due))


def eager(now: Situation, rows: Any) -> list[Any]:
    """Answer rows over all that have come."""
    return _answered(now, rows)


def _answered(now: Situation, rows: Any) -> list[Any]:
    rows, large = now.large.take_out(rows)
    numbers, stored = now.stored(rows, is_whole=not now.plan.may_wait_hot)
    new = rows.select(now.plan.kept_schema.names)
    held = Held.of(now, stored, new)
    now.counts.keys += held.n_keys + len(large)
    out = held.on_grid() if now.plan.is_grid else held.with_answers(rows)
    now.pages.save_hot(new)
    now.pages.save(numbers, now.large.promote(held))
    return [out, *(answered_large(now, chunks, own) for chunks, own in large)]


def revise(now: Situation, rows: Any) -> list[Any]:
    """Answer rows over all that have come, and others again whose answers have changed."""
    rows, large = now.large.take_out(_unrevised(rows))
    numbers, stored = now.stored(rows)
    change = take_changes(now.plan, stored, rows, now.counts)
    after = Held.of(now, change.kept, change.added)
    now.counts.keys += after.n_keys + len(large)
    out, after = changed(now, lambda: Held.of(now, stored, rows.slice(0, 0)), after, change)
    now.pages.save(numbers, now.large.promote(after))
    return [out, *(revised_large(now, chunks, own) for chunks, own in large)]


def _unrevised(rows: Any) -> Any:
    """Rows with the number of their first revision."""
    return rows.append_column(pa.field(REVISION, pa.int32()), pa.array(np.zeros(rows.num_rows, np.int32)))


def absorb(now: Situation, rows: Any) -> list[Any]:
    """Take all rows of history into the windows of a new shard, and answer none.

    On a grid they wait for the first instant that is not settled: it may hold rows of the stream, and is answered.
    """
    if now.plan.is_grid:
        rows = _due(now, rows)
    if now.plan.streaming.emit == "revise":
        rows = _unrevised(rows)
    numbers, stored = now.stored(rows)
    change = take_changes(now.plan, stored, rows, now.counts)
    held = Held.of(now, change.kept, change.added.select(now.plan.kept_schema.names))
    now.pages.save(numbers, now.large.promote(held))
    return []


EMISSIONS: dict[str, Callable[[Situation, Any], list[Any]]] = {"final": final, "eager": eager, "revise": revise}
