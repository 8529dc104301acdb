"""Revisions: which rows have other answers than before; and deletions and corrections, if a column names them.

A change column says of each row what it does: nothing or `insert` adds it, `delete` takes back one earlier row that is
equal in all other columns. A correction is both, as change feeds write it: `update_preimage`, `update_postimage`. A row
that is taken back is given out once more, as a deletion, with the next revision number and without answers.

Within a micro-batch a deletion takes back an equal row whichever of them came first. Spark brings rows of several
partitions in any order: to go by it would leave a row for ever whose deletion happened to be seen before it. Where each
deletion is of a row that was there, no split into micro-batches makes a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import DataError
from sash.frames import buffers
from sash.frames.keys import joint_codes
from sash.streams.contract import REVISION, Counts
from sash.streams.held import Held, in_form
from sash.streams.plans import Plan
from sash.streams.touching import is_rounded, touched

if TYPE_CHECKING:
    from sash.streams.situation import Situation

ADDS = ("insert", "update_postimage", "update_after", "i", "c", "+i", "+u")
REMOVES = ("delete", "update_preimage", "update_before", "d", "-d", "-u")


class Change(NamedTuple):
    """What a micro-batch makes of the rows of some pages."""

    kept: Any  # stored rows that stay
    kept_numbers: Any  # and their numbers among those stored
    added: Any
    removed: Any  # stored rows that are taken back


def take_changes(plan: Plan, stored: Any, rows: Any, counts: Counts) -> Change:
    """Apply the rows of a micro-batch to those that are stored."""
    name = plan.streaming.changes
    everything = np.arange(stored.num_rows)
    if name is None or rows.num_rows == 0:
        return Change(stored, everything, rows, stored.slice(0, 0))
    removes = _removes(name, buffers.single(rows.column(name)))
    if not removes.any():
        return Change(stored, everything, rows, stored.slice(0, 0))
    gone_stored, gone_new, unmatched = _taken_back(plan, stored, rows, removes)
    counts.unmatched += unmatched
    stays = np.flatnonzero(~gone_stored)
    added = rows.filter(pa.array(~removes & ~gone_new))
    return Change(stored.take(pa.array(stays)), stays, added, stored.filter(pa.array(gone_stored)))


def _removes(name: str, array: Any) -> Any:
    """Which rows take one back."""
    words = pc.utf8_lower(array.cast(pa.string())).fill_null("insert")
    removes = pc.is_in(words, pa.array(REMOVES)).to_numpy(zero_copy_only=False)
    known = removes | pc.is_in(words, pa.array(ADDS)).to_numpy(zero_copy_only=False)
    if not known.all():
        found = array[int((~known).argmax())].as_py()
        raise DataError(f"the change column {name!r} says {found!r}, but knows only {', '.join(ADDS + REMOVES)}")
    return removes


def _taken_back(plan: Plan, stored: Any, rows: Any, removes: Any) -> tuple[Any, Any, int]:
    """Which stored and new rows are taken back, the youngest of equal ones first; and how many were not found."""
    same = [name for name in plan.schema.names if name != plan.streaming.changes]
    both = pa.concat_tables([stored.select(same), rows.select(same)])
    codes, n_codes = joint_codes([buffers.single(both.column(name)) for name in same], both.num_rows)
    codes = np.unique(codes, return_inverse=True)[1] if n_codes > 2 * len(codes) else codes
    removing = np.concatenate([np.zeros(stored.num_rows, np.bool_), removes])
    wanted = np.bincount(codes[removing], minlength=int(codes.max()) + 1)
    adding = np.flatnonzero(~removing)[::-1]  # the youngest first
    order = adding[np.argsort(codes[adding], kind="stable")]
    in_order = codes[order]
    rank = np.arange(len(order)) - np.searchsorted(in_order, in_order, "left")
    gone = np.zeros(both.num_rows, np.bool_)
    gone[order[rank < wanted[in_order]]] = True
    return gone[: stored.num_rows], gone[stored.num_rows :], int(removes.sum() - gone.sum())


def changed(now: Situation, make_before: Callable[[], Held], after: Held, change: Change) -> tuple[Any, Held]:
    """New rows, rows with other answers than before, and rows that were taken back; and the rows to keep.

    What was there before is put in order only if an answer may have changed: while rows come in order, none has.
    """
    moved = _moved(now, make_before, after, change)
    rows = with_revisions(after.rows, after.rows.column(REVISION).to_numpy() + moved)
    now.counts.revisions += int(moved.sum())
    shown = np.flatnonzero(moved | after.is_new)
    tables = [in_form(now.plan, rows.take(pa.array(shown)), after.answer_columns(shown))]
    if change.removed.num_rows:
        tables.append(_withdrawn(now, change.removed))
    return pa.concat_tables(tables), replace(after, rows=rows)


def with_revisions(rows: Any, revisions: Any) -> Any:
    """Rows with other revision numbers."""
    place = rows.schema.get_field_index(REVISION)
    return rows.set_column(place, rows.schema.field(place), pa.array(revisions, pa.int32()))


def _moved(now: Situation, make_before: Callable[[], Held], after: Held, change: Change) -> Any:
    """Which stored rows have other answers than before."""
    moved = np.zeros(after.rows.num_rows, np.bool_)
    open_rows = _may_move(now, after, change)
    if len(open_rows) == 0:
        return moved
    before = make_before()
    place_before = np.empty(before.rows.num_rows, np.int64)
    place_before[before.numbers] = np.arange(before.rows.num_rows)
    earlier = place_before[change.kept_numbers[after.numbers[open_rows]]]
    differs = np.zeros(len(open_rows), np.bool_)
    old, answered = before.answer_columns(earlier), after.answer_columns(open_rows)
    for name, answers in old.items():
        differs |= differ(answers, answered[name])
    if differs.any() and is_rounded(now.plan):
        differs &= _is_touched(now, before, after, change, earlier, open_rows)
    moved[open_rows[differs]] = True
    return moved


def _may_move(now: Situation, after: Held, change: Change) -> Any:
    """Places of stored rows that are not settled and, if rows only came, not before the first of them in their key."""
    places = np.flatnonzero(~after.is_new & (after.times >= now.before))
    if change.removed.num_rows or len(places) == 0:
        return places
    new = np.where(after.is_new, after.times, np.iinfo(np.int64).max)
    first = np.minimum.reduceat(new, np.flatnonzero(after.begins))
    return places[after.times[places] >= first[after.keys[places]]]


def _is_touched(now: Situation, before: Held, after: Held, change: Change, earlier: Any, open_rows: Any) -> Any:
    """Which open rows had a row in their window that has gone, or have one that has come.

    Unless silences count: by a row that ends one, a key gets back rows of before that are in windows without it.
    """
    if now.plan.streaming.idle is not None:
        return np.ones(len(open_rows), np.bool_)
    is_touched = now.timed(lambda: touched(now.plan, after.rows, after.keys, after.is_new))[open_rows]
    if change.removed.num_rows:
        gone = ~np.isin(before.numbers, change.kept_numbers)
        is_touched |= now.timed(lambda: touched(now.plan, before.rows, before.keys, gone))[earlier]
    return is_touched


def differ(old: Any, new: Any) -> Any:
    """Where two columns are not the same, bit for bit."""
    if pa.types.is_primitive(old.type) and not pa.types.is_boolean(old.type):
        width = np.dtype(f"u{old.type.bit_width // 8}")
        values = buffers.fixed_values(old, width) != buffers.fixed_values(new, width)
        was, is_now = buffers.valid_of(old), buffers.valid_of(new)
        was = np.ones(len(old), np.bool_) if was is None else was
        is_now = np.ones(len(old), np.bool_) if is_now is None else is_now
        return (was != is_now) | (values & was & is_now)
    return np.array([repr(a) != repr(b) for a, b in zip(old.to_pylist(), new.to_pylist(), strict=True)], np.bool_)


def _withdrawn(now: Situation, removed: Any) -> Any:
    """Rows that were taken back: once more, as deletions, without answers."""
    n, name = removed.num_rows, now.plan.streaming.changes
    removed = with_revisions(removed, removed.column(REVISION).to_numpy() + 1)
    field = removed.schema.field(name)
    removed = removed.set_column(removed.schema.get_field_index(name), field, pa.array(["delete"] * n, field.type))
    now.counts.revisions += n
    return in_form(now.plan, removed, {name: pa.nulls(n, each) for name, each in now.plan.types.items()})
