"""A stream without Spark: micro-batches, shards, blocks in a dict, timers, and the watermark as Spark moves it.

watermark   greatest time of all batches before, minus the lateness, in whole milliseconds; it never falls
timers      a shard without rows is called only when the watermark has reached what it asked for
restarts    each call gets a plan made anew, and blocks that have been copied
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.frames.spec import Spec
from sash.streams.contract import HASH
from sash.streams.plans import Plan
from sash.streams.reach import require_reach
from sash.streams.shard import take
from sash.streams.timing import due_at, instants_of

MILLISECOND = 1_000
FAR_AHEAD = 10**17  # a watermark after all times


class Memory(dict):
    """Blocks in memory."""

    def get(self, kind, number):
        return super().get((kind, number))

    def get_many(self, kind, numbers):
        return [self.get(kind, number) for number in numbers]

    def put(self, kind, number, data):
        assert isinstance(data, bytes)
        self[kind, number] = data

    def delete(self, kind, number):
        self.pop((kind, number), None)

    def copy(self):
        """The same, as another process would read it."""
        return Memory({place: bytes(bytearray(data)) for place, data in self.items()})

    @property
    def n_bytes(self):
        return sum(map(len, self.values()))


def specs_of(given):
    """The specs of what is called: one, or several together."""
    return (given,) if isinstance(given, Spec) else given.specs


def announced(given, table):
    """The types of answers over tables like this one, by name; as Spark is told before rows come."""
    window = specs_of(given)[0].window
    is_grid = window.grid is not None and window.grid.rows is None
    own = set(window.by) if is_grid else set(table.schema.names)
    return {column.name: column.type for column in given(table).schema if column.name not in own}


def far_ahead(rows, which):
    """Rows of which some are too far ahead: those have no hash."""
    place = rows.schema.get_field_index(HASH)
    return rows.set_column(place, HASH, pc.if_else(pa.array(which), None, rows.column(HASH)))


def with_hash(rows, by):
    """Rows with a hash of their keys, which any place computes alike."""
    keys = [repr(tuple(each.values())) for each in rows.select(list(by)).to_pylist()] if by else ["()"] * rows.num_rows
    digests = [hashlib.blake2b(key.encode(), digest_size=8).digest() for key in keys]
    return rows.append_column(
        HASH, pa.array([int.from_bytes(each, "big", signed=True) for each in digests], pa.int64())
    )


class Step(NamedTuple):
    """What a micro-batch gave."""

    tables: list[Any]
    counts: Counter

    def rows(self):
        """All rows given out."""
        return [row for table in self.tables for row in table.to_pylist()]


@dataclass
class Stream:
    """A running query: `spec` over rows of a schema, in shards."""

    spec: Any
    schema: Any
    types: dict[str, Any]
    n_shards: int = 1
    watermark: int | None = None
    newest: int | None = None
    shards: list[Memory] = field(default_factory=list)
    dues: list[int | None] = field(default_factory=list)
    last_counts: list[Any] = field(default_factory=list)

    def __post_init__(self):
        self.shards = [Memory() for _ in range(self.n_shards)]
        self.dues = [None] * self.n_shards
        streaming = specs_of(self.spec)[0].streaming
        self.lateness = streaming.lateness.nanoseconds // 1_000
        require_reach(Plan(specs_of(self.spec), self.schema, self.types))

    @property
    def time(self):
        return specs_of(self.spec)[0].window.order_by[0]

    @property
    def n_bytes(self):
        return sum(each.n_bytes for each in self.shards)

    def push(self, rows):
        """Take a micro-batch, then move the watermark."""
        step = self._call_shards(rows)
        times = [each for each in rows.column(self.time).cast(pa.int64()).to_pylist() if each is not None]
        if times:
            self.newest = max(times) if self.newest is None else max(self.newest, max(times))
            self.watermark = (self.newest - self.lateness) // MILLISECOND * MILLISECOND
        return step

    def finish(self):
        """Let the watermark pass everything."""
        self.watermark = FAR_AHEAD
        return self._call_shards(None)

    def _call_shards(self, rows):
        step = Step([], Counter())
        if rows is not None:
            rows = rows if HASH in rows.schema.names else with_hash(rows, specs_of(self.spec)[0].window.by)
            places = rows.column(HASH).to_numpy().view(np.uint64) % np.uint64(self.n_shards)
        for number, blocks in enumerate(self.shards):
            mine = None if rows is None else rows.filter(pa.array(places == number))
            if mine is not None and mine.num_rows:
                self._call(number, blocks, mine, step)
            if self._is_due(number):
                self._call(number, self.shards[number], None, step)
        return step

    def _is_due(self, number):
        due = self.dues[number]
        return due is not None and self.watermark is not None and -(-due // MILLISECOND) * MILLISECOND <= self.watermark

    def _call(self, number, blocks, rows, step):
        blocks = blocks.copy()
        plan = Plan(specs_of(self.spec), self.schema, self.types, self.n_shards)
        outcome = take(plan, blocks, rows, self.watermark)
        self.shards[number], self.dues[number] = blocks, outcome.next_due
        step.tables.extend(outcome.tables)
        step.counts.update(outcome.counts.as_dict())


def split(table, sizes):
    """A table in micro-batches of these sizes, empty ones included; the last takes the rest."""
    parts, begin = [], 0
    for size in sizes:
        parts.append(table.slice(begin, size))
        begin += size
    return [*parts, table.slice(begin)]


def on_time(parts, time, lateness, due=lambda time: time + 1):
    """For each micro-batch, which of its rows are not late: `due` is the watermark at which a row is answered."""
    newest, found = None, []
    for part in parts:
        times = part.column(time).cast(pa.int64()).to_pylist()
        watermark = None if newest is None else (newest - lateness) // MILLISECOND * MILLISECOND
        found.append([each is not None and (watermark is None or due(each) > watermark) for each in times])
        newest = max([each for each in [newest, *times] if each is not None], default=None)
    return found


def due_of(plan):
    """The watermark at which a row is answered, by its time: on a grid that of its instant."""
    instants = instants_of(plan)
    return lambda time: int(due_at(np.array([time]), instants)[0])


def multiset(rows):
    """Rows that can be counted and compared: NaN equals itself, -0.0 is not 0.0."""
    return Counter(tuple((name, repr(value)) for name, value in row.items()) for row in rows)
