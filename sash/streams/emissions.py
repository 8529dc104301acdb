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
from sash.streams.revising import answered_large, insert, revised_large
from sash.streams.situation import Situation


def final(now: Situation, rows: Any) -> list[Any]:
    """Answer rows that are due, those that waited first; let the others wait."""
    released = now.waiting.release(now.watermark, now.due_of)
    due_of = now.due_of(rows)
    is_due = due_of <= now.watermark
    if not is_due.all():
        now.waiting.add(rows.filter(pa.array(~is_due)), due_of[~is_due])
        rows = rows.filter(pa.array(is_due))
    return _answered(now, pa.concat_tables([released, rows]))


def eager(now: Situation, rows: Any) -> list[Any]:
    """Answer rows over all that have come."""
    return _answered(now, rows)


def _answered(now: Situation, rows: Any) -> list[Any]:
    rows, large = now.large.take_out(rows)
    numbers, stored = now.stored(rows)
    held = Held.of(now, stored, rows.select(now.plan.kept_schema.names))
    now.counts.keys += held.n_keys + len(large)
    out = held.on_grid() if now.plan.is_grid else held.with_answers(rows)
    now.pages.save(numbers, now.large.promote(held))
    return [out, *(answered_large(now, chunks, own) for chunks, own in large)]


def revise(now: Situation, rows: Any) -> list[Any]:
    """Answer rows over all that have come, and others again whose answers have changed."""
    zeros = pa.array(np.zeros(rows.num_rows, np.int32))
    rows = rows.append_column(pa.field(REVISION, pa.int32()), zeros)
    rows, large = now.large.take_out(rows)
    numbers, stored = now.stored(rows)
    change = take_changes(now.plan, stored, rows, now.counts)
    before, after = Held.of(now, stored, rows.slice(0, 0)), Held.of(now, change.kept, change.added)
    now.counts.keys += after.n_keys + len(large)
    out, after = changed(now, before, after, change)
    now.pages.save(numbers, now.large.promote(after))
    return [out, *(revised_large(now, chunks, own) for chunks, own in large)]


def absorb(now: Situation, rows: Any) -> list[Any]:
    """Take rows of history: into windows to come, and not answered."""
    if now.plan.streaming.emit == "revise":
        zeros = pa.array(np.zeros(rows.num_rows, np.int32))
        rows = rows.append_column(pa.field(REVISION, pa.int32()), zeros)
    rows, large = now.large.take_out(rows)
    numbers, stored = now.stored(rows)
    now.pages.save(numbers, now.large.promote(Held.of(now, stored, rows.select(now.plan.kept_schema.names))))
    for chunks, own in large:
        insert(now, chunks, own)
        now.large.keep(chunks, now.watermark)
    return []


EMISSIONS: dict[str, Callable[[Situation, Any], list[Any]]] = {"final": final, "eager": eager, "revise": revise}
