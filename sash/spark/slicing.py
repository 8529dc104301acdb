"""Slices: the pieces of a hot key. Rows are packed by slice where they are read, before anything is sorted.

    rows as they are read --> slice of each, by its order value --> packed --> the range that has the slice
                                                                           --> ranges whose windows begin in it

A slice is a stretch of order values: a part of one range, small enough to be sorted in the memory of a task. Windows of
a range begin with a slice too, so that its front is a number of whole slices, and rows before it are never needed.
Spark moves a packed batch at the speed of memory and sorts a few hundred of them, not millions of rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from sash.errors import DataError
from sash.frames.measuring import measure
from sash.spark.pieces import pieces_of
from sash.spark.reaching import HotKey

if TYPE_CHECKING:
    from sash.frames.spec import Spec

SLOT, KEY = "_sash_slot", "_sash_key"  # which range of which key, and which key: columns that are added
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
PACKED, MOST_BYTES = 1 << 17, 1 << 25  # rows that are packed at once, or fewer if they are wide


class Slices(NamedTuple):
    """The slices of a key."""

    starts: Any  # the numbers that slices 1, 2, ... begin with; slice 0 has the rows without a number too
    owners: tuple[int, ...]  # the range of each
    fronts: tuple[tuple[int, ...], ...] | None  # for each spec and range: the slice its windows begin in.
    # None: what lies between it and the range has to be combined first, so that rows must be cut


class Split(NamedTuple):
    """What tasks must know of a table whose hot keys are split."""

    keys: tuple[HotKey, ...]
    slices: tuple[Slices, ...]
    portable: tuple[bool, ...]  # for each spec: whether its partials can be sent

    @property
    def n_slots(self) -> int:
        """How many ranges there are, of all keys."""
        return sum(each.n_ranges for each in self.keys)

    @property
    def is_cut(self) -> bool:
        """Whether rows are cut between packing and joining."""
        return any(each.fronts is None for each in self.slices)

    def first_slot(self, key: int) -> int:
        """The slot of the first range of a key."""
        return sum(each.n_ranges for each in self.keys[:key])

    def range_of(self, slot: int) -> tuple[HotKey, int]:
        """The key of a slot, and the number of the range."""
        for each in self.keys:
            if slot < each.n_ranges:
                return each, slot
            slot -= each.n_ranges
        raise AssertionError(slot)


class Places:
    """Where rows lie among stretches of order values, of all keys together."""

    def __init__(self, order_by: str, starts: Sequence[Any]) -> None:
        self._order_by, self._starts = order_by, starts
        self.firsts = np.cumsum([0, *(len(each) + 1 for each in starts)])
        self._dtype = np.int16 if self.firsts[-1] < 1 << 15 else np.int64  # short numbers are sorted by counting

    def of(self, batch: Any) -> Any:
        """The number of the stretch of each row; of a row without a number, that of the first stretch of its key."""
        order = measure(self._order_by, batch.column(self._order_by))
        if KEY not in batch.schema.names:
            return self._within(0, order.values, order.valid)
        keys, places = batch.column(KEY).to_numpy(), np.empty(batch.num_rows, self._dtype)
        for key in np.unique(keys).tolist():
            own = keys == key
            places[own] = self._within(key, order.values[own], None if order.valid is None else order.valid[own])
        return places

    def _within(self, key: int, numbers: Any, valid: Any) -> Any:
        places = np.searchsorted(self._starts[key], numbers, "right")
        if valid is not None:
            places[~valid] = 0
        return (places + self.firsts[key]).astype(self._dtype)


def runs(values: Any) -> Iterator[tuple[int, int]]:
    """Where the same value stands several times in a row: first and stop of each."""
    edges = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    return (each for each in itertools.pairwise(edges) if each[0] < each[1])


# --- packing ---------------------------------------------------------------------------------------


class Packing:
    """Rows as they are read in, records out."""

    def __init__(self, specs: Sequence[Spec], split: Split, task: int = 0) -> None:
        self._split, self._number = split, task << 32  # so that rows that are the same in order stay as they were read
        self._places = Places(specs[0].window.order_by[0], [each.starts for each in split.slices])
        self._columns = [needed_columns(spec, spec.window.order_by) for spec in specs]
        self._where = [
            list(self._sent_to(k, s)) for k, each in enumerate(split.slices) for s in range(len(each.owners))
        ]
        self._held: list[tuple[Any, Any]] = []

    def _sent_to(self, key: int, s: int) -> Iterator[tuple[int, int, int, int]]:
        """Where rows of a slice go: slot, stage, lane, slice."""
        slices, first = self._split.slices[key], self._split.first_slot(key)
        own = slices.owners[s]
        yield first + own, OWN, 0, s
        fronts = () if self._split.is_cut or slices.fronts is None else slices.fronts
        for lane, begins in enumerate(fronts):
            for r in range(own + 1, len(begins)):
                if begins[r] <= s:
                    yield first + r, FRONT, lane, s

    def push(self, batch: Any) -> Iterator[Any]:
        """Take a batch; a batch of records now and then."""
        places = self._places.of(batch)
        self._held.append((batch.drop_columns([KEY]) if KEY in batch.schema.names else batch, places))
        rows = [each for each, _ in self._held]
        if sum(each.num_rows for each in rows) >= PACKED or sum(each.nbytes for each in rows) >= MOST_BYTES:
            yield self._packed()

    def finish(self) -> Iterator[Any]:
        """Pack the last rows."""
        if self._held:
            yield self._packed()

    def _packed(self) -> Any:
        rows, places = joined([each for each, _ in self._held]), np.concatenate([each for _, each in self._held])
        self._held = []
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            rows, places = rows.take(pa.array(order)), places[order]
        records = Records(self._number)
        for first, stop in runs(places):
            for piece in pieces_of(rows.slice(first, stop - first)):
                for where in self._where[places[first]]:
                    records.add(where, piece if where[1] == OWN else piece.select(self._columns[where[2]]))
        self._number = records.number
        return records.batch()


def needed_columns(spec: Spec, order_by: Sequence[str]) -> list[str]:
    """The columns that rows of an earlier range are needed with."""
    names: Mapping[str, None] = dict.fromkeys(order_by)
    for _, aggregate in spec.aggregates:
        names = {**names, **dict.fromkeys(name for name in (*aggregate.columns, aggregate.condition) if name)}
    return list(names)


class Records:
    """A batch of records in the making: what they hold is written once, one after the other."""

    def __init__(self, number: int) -> None:
        self.number = number  # of the next record of the task
        self._columns: list[tuple[int, ...]] = []
        self._sink = pa.BufferOutputStream()
        self._offsets = [0]

    def add(self, where: tuple[int, int, int, int], data: Any) -> None:
        """Add rows with their schema, or bytes: for a slot, as a stage, of a lane, from a source."""
        if isinstance(data, bytes):
            self._sink.write(data)
        else:
            with pa.ipc.new_stream(self._sink, data.schema) as writer:
                writer.write_batch(data)
        self._columns.append((*where, self.number))
        self._offsets.append(self._sink.tell())
        self.number += 1

    @property
    def n_bytes(self) -> int:
        """How many bytes they hold."""
        return self._offsets[-1]

    def batch(self) -> Any:
        """All of them."""
        n = len(self._columns)
        columns = np.array(self._columns, np.int64).reshape(n, len(RECORD) - 1).T
        arrays = [pa.array(column).cast(each.type) for column, each in zip(columns, RECORD, strict=False)]
        offsets = pa.py_buffer(np.array(self._offsets, np.int32))
        arrays.append(pa.Array.from_buffers(pa.binary(), n, [None, offsets, self._sink.getvalue()]))
        return pa.RecordBatch.from_arrays(arrays, schema=RECORD)


class Holding:
    """A pass that gets the records of its range in order, though they come in any: what a range is sent is held."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._records: list[tuple[tuple[int, ...], Any]] = []

    def push(self, batch: Any) -> Iterator[Any]:
        """Take a batch of records."""
        places = zip(*(batch.column(k).to_pylist() for k in range(len(RECORD) - 1)), strict=True)
        self._records += [(place, batch.slice(k, 1)) for k, place in enumerate(places)]
        return iter(())

    def finish(self) -> Iterator[Any]:
        """Hand them on."""
        for _, record in sorted(self._records, key=lambda each: each[0]):
            yield from self._inner.push(record)
        yield from self._inner.finish()


def unpacked(data: Any) -> Any:
    """The rows of a record, without copying them."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


def with_constants(rows: Any, hot: HotKey) -> Any:
    """Rows of a key with the columns that they have travelled without."""
    for place, name, value in hot.constants:
        rows = rows.add_column(place, pa.field(name, value.type), pa.repeat(value[0], rows.num_rows))
    return rows


def joined(batches: Sequence[Any]) -> Any:
    """Batches as one."""
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()
    if len(whole) != 1:  # texts of more than 2 GB are several arrays
        raise DataError(
            f"{sum(each.num_rows for each in whole)} rows that are sorted at once have texts of more than 2 GB; select "
            "the columns that are needed before the spec, and join the others to its answers"
        )
    return whole[0]
