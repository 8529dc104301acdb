"""Cutting: the first pass over ranges of hot keys. Rows of a range go on to itself, and to later ranges what they need.

    sorted rows of range q  --> own rows, packed           --> range q
                            --> front and back, packed     --> each later range whose windows begin in q
                            --> the middle, one partial    --> each later range whose windows hold it

A record is a batch of rows as bytes, or a partial: few and large, so that Spark moves them at the speed of memory and
sorts a few hundred of them, not millions. How far back windows reach is in reaching.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from sash.engine.batches import Batch
from sash.engine.bridging import Folds
from sash.engine.snapshot import seal
from sash.frames.answering import Arranged, Columns, Reader, bound_for
from sash.frames.arrow_tables import Source
from sash.frames.measuring import in_units, measure
from sash.spark.carrying import Memory
from sash.spark.reaching import HotKey, Reach

if TYPE_CHECKING:
    from sash.frames.spec import Spec

SLOT = "_sash_slot"  # which range of which key: the name of a column that is added, and taken away again
FRONT, MIDDLE, BACK, OWN = range(4)  # what a record is; a range gets them in this order
RECORD = pa.schema(
    [
        (SLOT, pa.int32()),
        ("stage", pa.int32()),
        ("lane", pa.int32()),
        ("source", pa.int32()),
        ("number", pa.int64()),
        ("data", pa.binary()),
    ]
)
SMALLEST = np.iinfo(np.int64).min


class Split(NamedTuple):
    """What tasks must know of a table whose hot keys are split."""

    keys: tuple[HotKey, ...]
    portable: tuple[bool, ...]  # for each spec: whether its partials can be sent

    @property
    def n_slots(self) -> int:
        """How many ranges there are, of all keys."""
        return sum(each.n_ranges for each in self.keys)

    def range_of(self, slot: int) -> tuple[HotKey, int]:
        """The key of a slot, and the number of the range."""
        for each in self.keys:
            if slot < each.n_ranges:
                return each, slot
            slot -= each.n_ranges
        raise AssertionError(slot)


class Cutting:
    """The first pass: batches sorted by slot and order in, records out."""

    def __init__(self, specs: Sequence[Spec], split: Split) -> None:
        self._specs, self._split = specs, split
        self._slot = -1
        self._done: set[int] = set()
        self._cutters: list[Cutter] = []
        self._n_records = 0

    def push(self, batch: Any) -> Iterator[Any]:
        """Take a batch; a batch of records."""
        slots = batch.column(SLOT).to_numpy()
        own, records = batch.drop_columns([SLOT]), Records(self._n_records)
        edges = [0, *(np.flatnonzero(slots[1:] != slots[:-1]) + 1).tolist(), len(slots)]
        for first, stop in itertools.pairwise(edges):
            if first < stop:
                self._take(int(slots[first]), own.slice(first, stop - first), records)
        self._n_records = records.number
        yield records.batch()

    def finish(self) -> Iterator[Any]:
        """Say what is known of the last range now."""
        records = Records(self._n_records)
        self._close(records)
        yield records.batch()

    def _take(self, slot: int, rows: Any, records: Records) -> None:
        if slot != self._slot:
            self._close(records)
            self._begin(slot)
        records.add((slot, OWN, 0, slot), rows)
        for cutter in self._cutters:
            for r, stage, needed in cutter.take(rows):
                records.add((slot - cutter.q + r, stage, cutter.lane, slot), needed)

    def _begin(self, slot: int) -> None:
        if slot in self._done:
            raise AssertionError(f"rows of slot {slot} are not together")
        self._done.add(slot)
        self._slot, (hot, q) = slot, self._split.range_of(slot)
        each = enumerate(zip(self._specs, self._split.portable, strict=True))
        self._cutters = [Cutter(spec, lane, hot, q, is_portable=able) for lane, (spec, able) in each]

    def _close(self, records: Records) -> None:
        for cutter in self._cutters:
            for r, partial in cutter.middles():
                records.add((self._slot - cutter.q + r, MIDDLE, cutter.lane, self._slot), partial)
        self._cutters = []


class Records:
    """A batch of records in the making: what they hold is written once, one after the other."""

    def __init__(self, number: int) -> None:
        self.number = number  # of the next record of the task
        self._columns: list[tuple[int, ...]] = []
        self._sink = pa.BufferOutputStream()
        self._offsets = [0]

    def add(self, where: tuple[int, int, int, int], data: Any) -> None:
        """Add rows with their schema, or bytes: for a slot, as a stage, of a lane, from a slot."""
        if isinstance(data, bytes):
            self._sink.write(data)
        else:
            with pa.ipc.new_stream(self._sink, data.schema) as writer:
                writer.write_batch(data)
        self._columns.append((*where, self.number))
        self._offsets.append(self._sink.tell())
        self.number += 1

    def batch(self) -> Any:
        """All of them."""
        n = len(self._columns)
        columns = np.array(self._columns, np.int64).reshape(n, len(RECORD) - 1).T
        arrays = [pa.array(column).cast(each.type) for column, each in zip(columns, RECORD, strict=False)]
        offsets = pa.py_buffer(np.array(self._offsets, np.int32))
        arrays.append(pa.Array.from_buffers(pa.binary(), n, [None, offsets, self._sink.getvalue()]))
        return pa.RecordBatch.from_arrays(arrays, schema=RECORD)


def unpacked(data: Any) -> Any:
    """The rows of a record, without copying them."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


class Cutter:
    """One spec over the rows of one range: what later ranges need of them."""

    def __init__(self, spec: Spec, lane: int, hot: HotKey, q: int, *, is_portable: bool) -> None:
        self.lane, self.q = lane, q
        self._spec, self._hot, self._is_portable = spec, hot, is_portable
        self._memory = Memory()
        self._later = range(q + 1, hot.n_ranges)
        self._n_rows = 0
        self._bound: Any = None  # known with the first batch
        self._reach: Any = None
        self._folds: Folds | None = None
        self._orders: dict[int, Any] = {}  # of the first row of each middle

    def take(self, rows: Any) -> Iterator[tuple[int, int, Any]]:
        """Fronts and backs in a batch: later range, stage, rows."""
        if not self._later:
            return
        reader, name = Reader(Source(rows)), self._spec.window.order_by[0]
        order = measure(name, reader.array(name))
        arranged = Arranged(None, np.zeros(rows.num_rows, np.bool_), order, rows.num_rows)
        if self._reach is None:
            self._bound = bound_for(self._spec, reader, arranged, Columns(reader, arranged, self._memory))
            self._reach = Reach(self._hot, self._bound, is_portable=self._is_portable)
        numbers = in_units(order, self._bound.order_factor)
        n_null = 0 if order.valid is None else int((~order.valid).sum())  # they come first
        number = self._reach.number(self.q) + self._n_rows
        self._n_rows += rows.num_rows
        cuts = [self._reach.cut(r, numbers, n_null, number) for r in self._later]
        if any(cut.middle < cut.back for cut in cuts):
            if n_null:
                numbers = np.where(order.valid, numbers, SMALLEST if numbers.dtype.kind == "i" else -np.inf)
            self._fold(Columns(reader, arranged, self._memory), numbers, cuts)
        needed = rows.select(needed_columns(self._spec))
        for r, cut in zip(self._later, cuts, strict=True):
            for stage, first, stop in ((FRONT, cut.front, cut.middle), (BACK, cut.back, cut.end)):
                if first < stop:
                    yield r, stage, needed.slice(first, stop - first)

    def _fold(self, columns: Columns, order: Any, cuts: Sequence[Any]) -> None:
        coded = {name: columns.code(aggregate).aggregate for name, aggregate in self._spec.aggregates}
        if self._folds is None:
            self._folds = Folds(self._bound.bounds, coded, len(cuts))
        for k, cut in enumerate(cuts):
            if cut.middle < cut.back:
                self._orders.setdefault(k, order[cut.middle].item())
        batch = Batch(np.zeros(len(order), np.bool_), order, columns.columns)
        self._folds.take(batch, [(cut.middle, cut.back) for cut in cuts])

    def middles(self) -> Iterator[tuple[int, Any]]:
        """The middles that lie in this range: later range, partial."""
        if self._folds is None:
            return
        for k, n_rows in enumerate(self._folds.n_rows):
            if n_rows:
                yield self.q + 1 + k, seal([n_rows, self._orders[k], self._folds.dump(k)])


def needed_columns(spec: Spec) -> list[str]:
    """The columns that rows of an earlier range are needed with."""
    names: Mapping[str, None] = {spec.window.order_by[0]: None}
    for _, aggregate in spec.aggregates:
        names = {**names, **dict.fromkeys(name for name in (*aggregate.columns, aggregate.condition) if name)}
    return list(names)
