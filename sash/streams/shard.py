"""A shard: the keys of one hash, their rows, and what to answer when some more rows have come.

    rows --> sifted: late, far ahead, without a time, failing, or fit --> emission (final, eager or revise) --> answers
                                                                                |
                                                  pages of window data, pieces of rows that wait: blocks of bytes

A shard knows neither Spark nor a clock. It is given the rows of a micro-batch and the watermark before them, and reads
and writes blocks; the same rows and blocks give the same answers and blocks. How far its own rows will move the
watermark it knows already, so it answers and forgets a micro-batch earlier than if it waited to be told. Work and
bytes follow the keys that are touched, and not the number of keys there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sash.engine import snapshot
from sash.errors import DataError, FormatError
from sash.frames import buffers
from sash.streams.contract import FAILURE, HASH, IS_LATE, Blocks, Counting, Counts
from sash.streams.emissions import EMISSIONS, absorb
from sash.streams.failing import failures
from sash.streams.large import LargeKeys
from sash.streams.pages import Pages
from sash.streams.plans import Plan
from sash.streams.signing import differing
from sash.streams.situation import Situation
from sash.streams.slices import N_ROWS, PARTIAL, Slicing, signature_of, slicing_of
from sash.streams.timing import NEVER, due_at, instants_of, times_of, watermark_after
from sash.streams.waiting import Waiting

HEAD = "head"


@dataclass(frozen=True)
class Head:
    """What a shard knows of itself; everything else is in blocks of its own."""

    signature: dict[str, str]
    watermark: int = NEVER
    n_pages: int = 1
    n_bytes: int = 0
    pieces: tuple[tuple[int, ...], ...] = ()
    next_piece: int = 0
    large: tuple[tuple[int, int], ...] = ()  # numbers and hashes of large keys
    next_large: int = 0
    swept: int = 0  # how often a page, and a large key, was looked at for rows out of reach

    def dump(self) -> bytes:
        """As bytes."""
        return snapshot.seal([getattr(self, each.name) for each in fields(self)])

    @classmethod
    def load(cls, data: bytes) -> Head:
        """Read what `dump` wrote."""
        parts = dict(
            zip((each.name for each in fields(cls)), snapshot.unseal(data, n_parts=len(fields(cls))), strict=True)
        )
        nested = {name: tuple(tuple(each) for each in parts[name]) for name in ("pieces", "large")}
        return cls(**{**parts, **nested})


class Outcome(NamedTuple):
    """What a micro-batch gives out."""

    tables: list[Any]  # with the columns of the plan's out_schema
    counts: Counts
    next_due: int | None  # the watermark at which the shard wants to be asked again, without rows too
    was_due: int | None  # the same as it was before this micro-batch


def take(plan: Plan, blocks: Blocks, rows: Any, watermark: int | None) -> Outcome:
    """Give a shard the rows of a micro-batch (None: there are none) at a watermark, in microseconds.

    Where a plan is answered by slices, rows may come as they are, or put together already.
    """
    counts = Counts()
    blocks = Counting(blocks, counts)
    head, slicing = _head(plan, blocks), slicing_of(plan)
    before = max(head.watermark, NEVER if watermark is None else watermark)
    plan, rows = _in_slices(plan, slicing, rows)
    sifted = Sifted(plan, rows, before, counts)
    sifted.try_rows()
    after = max(before, watermark_after(plan, sifted.newest))  # at the least
    emission = EMISSIONS[plan.streaming.emit]
    tables, next_due, was_due = _work(
        plan, slicing, blocks, head, (before, after), counts, lambda now: emission(now, sifted.fit)
    )
    tables += sifted.aside()
    counts.answers = sum(each.num_rows for each in tables)
    return Outcome([each for each in tables if each.num_rows], counts, next_due, was_due)


def seed(plan: Plan, blocks: Blocks, rows: Any, end: int | None) -> Outcome:
    """Give a new shard all its rows of history (None: there are none), which windows to come will hold.

    `end` is the newest time in the history of all shards: so each of them takes the same rows of the stream for late.
    """
    assert blocks.get(HEAD, 0) is None, "what is in reach of a window is only known of all rows of history at once"
    counts, head, slicing = Counts(), Head(signature_of(plan)), slicing_of(plan)
    plan, rows = _in_slices(plan, slicing, rows)
    fit, watermarks = Sifted(plan, rows, NEVER, counts).fit, (NEVER, _settled_by(plan, end))
    _, next_due, was_due = _work(plan, slicing, blocks, head, watermarks, counts, lambda now: absorb(now, fit))
    return Outcome([], counts, next_due, was_due)


def _in_slices(plan: Plan, slicing: Slicing | None, rows: Any) -> tuple[Plan, Any]:
    """The plan that a shard works by, and rows as it wants them."""
    if slicing is None:
        return plan, rows
    return slicing.plan, None if rows is None else slicing.fold(rows)


def _settled_by(plan: Plan, end: int | None) -> int:
    """The watermark that history leaves: as if its rows had come in a stream.

    A policy has been asked about all rows of history, and what it left is all that is kept: no row may come before.
    """
    return end + 1 if plan.has_policy and end is not None else watermark_after(plan, end)


def _work(
    plan: Plan, slicing: Slicing | None, blocks: Blocks, head: Head, watermarks: tuple[int, int], counts: Counts,
    work: Callable[[Situation], list[Any]],
) -> tuple[list[Any], int | None, int | None]:  # fmt: skip
    """Let something be done to the state of a shard between two watermarks, and write the head anew.

    Gives the tables, and when the next row that waits is due: after, and before.
    """
    pages = Pages(blocks, plan.kept_schema, plan.window.by, head.n_pages, head.n_bytes)
    waiting = Waiting(blocks, plan.waiting_schema, [list(piece) for piece in head.pieces], head.next_piece)
    large = LargeKeys(plan, blocks, dict(head.large), head.next_large)
    now = Situation(plan, *watermarks, instants_of(plan), pages, waiting, large, counts, head.swept, slicing)
    was_due, tables = waiting.next_due, work(now)
    large.sweep(now.swept, now.watermark)
    counts.waiting, counts.pages, counts.large = waiting.n_rows, pages.n_pages, len(large.hashes)
    after = replace(
        head, watermark=now.watermark, n_pages=pages.n_pages, n_bytes=pages.n_bytes, next_piece=waiting.next_number,
        pieces=tuple(map(tuple, waiting.pieces)), large=tuple(large.hashes.items()), next_large=large.next_number,
        swept=now.swept,
    )  # fmt: skip
    if after != head:
        blocks.put(HEAD, 0, after.dump())
    return tables, waiting.next_due, was_due


def _head(plan: Plan, blocks: Blocks) -> Head:
    data, wanted = blocks.get(HEAD, 0), signature_of(plan)
    if data is None:
        return Head(wanted)
    head = Head.load(data)
    if differing(head.signature, wanted):
        raise FormatError(_difference(head.signature, wanted))
    return replace(head, signature=wanted)


def _difference(found: dict[str, str], wanted: dict[str, str]) -> str:
    names = differing(found, wanted)
    pairs = [(name, found.get(name, "nothing"), wanted.get(name, "nothing")) for name in names]
    told = "; ".join(f"{name} was {was}, now it is {now}" for name, was, now in pairs)
    if names == ["shards"]:
        told += ", and stream(checkpoint=...) takes it over"
    return (
        f"this checkpoint is of another query: {told}. Go on with what it was, or begin anew with another "
        "checkpointLocation"
    )


class Sifted:
    """The rows of a micro-batch: those that fit, those that cannot be placed any more, and those that fail."""

    def __init__(self, plan: Plan, rows: Any, watermark: int, counts: Counts) -> None:
        self._plan, self._counts, self.newest = plan, counts, None
        self._unfit = self._failed = self.fit = plan.waiting_schema.empty_table()
        self._reasons: list[str] = []
        if rows is None or rows.num_rows == 0:
            return
        array = buffers.single(rows.column(plan.time))
        times, there = times_of(array), buffers.booleans(array.is_valid())
        far = there & buffers.booleans(buffers.single(rows.column(HASH)).is_null())
        late = (due_at(times, instants_of(plan)) <= watermark) & there & ~far
        n_rows = rows.column(N_ROWS).to_numpy() if N_ROWS in rows.schema.names else np.ones(len(times), np.int64)
        counts.rows, counts.without_time = int(n_rows.sum()), int(n_rows[~there].sum())
        counts.late, counts.far = int(n_rows[late].sum()), int(n_rows[far].sum())
        fits = there & ~late & ~far
        self.newest = int(times[fits].max()) if fits.any() else None
        schema = plan.waiting_schema  # in which everything may be null
        rows = pa.table([rows.column(name) for name in schema.names], schema=schema)
        if fits.all():
            self.fit = rows.combine_chunks()
            return
        self.fit, self._unfit = rows.filter(pa.array(fits)), rows.filter(pa.array(~fits))
        if plan.streaming.late == "raise":
            raise DataError(self._complaint(watermark))

    def _complaint(self, watermark: int) -> str:
        names = [name for name in self._plan.read if not name.startswith(PARTIAL)]
        row = self._unfit.select(names).slice(0, 1).to_pylist()[0]
        counts = self._counts
        return (
            f"{counts.late} rows are behind the watermark ({np.datetime64(watermark, 'us')}), {counts.far} too far "
            f"ahead and {counts.without_time} without a time; the first is {row}. With late='drop' or 'aside' the "
            "stream goes on; more lateness waits longer for such rows"
        )

    def try_rows(self) -> None:
        """Take out rows that an aggregate cannot take, unless they are to end the query when they are answered."""
        if self._plan.failing == "raise" or self.fit.num_rows == 0:
            return
        failed = failures(self._plan, self.fit)
        if failed:
            self._counts.failed, fails = len(failed), np.zeros(self.fit.num_rows, np.bool_)
            fails[list(failed)] = True
            self._failed, self._reasons = self.fit.filter(pa.array(fails)), [failed[place] for place in sorted(failed)]
            self.fit = self.fit.filter(pa.array(~fails))

    def aside(self) -> list[Any]:
        """Rows that cannot be placed, and rows that failed, without answers, if they are wanted."""
        tables = []
        if self._plan.streaming.late == "aside":
            tables.append(_unanswered(self._plan, self._unfit, {IS_LATE: np.ones(self._unfit.num_rows, np.bool_)}))
        if self._plan.failing == "aside":
            own = {IS_LATE: np.zeros(len(self._reasons), np.bool_), FAILURE: self._reasons}
            tables.append(_unanswered(self._plan, self._failed, own))
        return tables


def _unanswered(plan: Plan, rows: Any, own: dict[str, Any]) -> Any:
    """Rows in the form that is given out, without answers."""
    columns = {name: rows.column(name) for name in plan.schema.names}
    for name, each in ((field.name, field.type) for field in plan.out_schema if field.name not in columns):
        columns[name] = pa.array(own[name], each) if name in own else pa.nulls(rows.num_rows, each)
    return pa.table([columns[name] for name in plan.out_schema.names], schema=plan.out_schema)
