"""Shards in Spark's words: rows packed by shard, the state of a shard in Spark's store, answers unpacked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sash.errors import UnsupportedError
from sash.spark.calls import AT_ONCE, line_to
from sash.spark.pieces import PIECE_BYTES, pieces_of
from sash.spark.planes import compress, expand
from sash.spark.seven_bits import from_texts, to_text
from sash.spark.shipping import pack, unpack
from sash.spark.workers import end_task
from sash.streams.blocks import read_table, write_table
from sash.streams.contract import HASH
from sash.streams.pages import HOT, PAGE
from sash.streams.plans import Plan
from sash.streams.shard import HEAD, Outcome, seed, take
from sash.streams.slices import Slicing, slicing_of
from sash.streams.timing import newest_of

PACKED, NEWEST = "packed", "newest"
MILLISECOND = 1_000  # microseconds
ROWS_PACKED = 1 << 16  # at least, before they are sent on: while Java takes them, the next are packed
ROWS_FOLDED = 1 << 18  # at least, where they are put together by slices: the more, the fewer slices
ROWS_UNPACKED = 1 << 16  # at least, in a batch of answers
TO_COMPRESS = 2 * PIECE_BYTES  # in a piece: seldom half of it is left
N_PIECES = "n_pieces"  # in which the history of a shard comes
KINDS = (HEAD, HOT, PAGE, "piece", "spine", "chunk")  # of blocks, by their place among those of their number
BLOCKS = "head"  # the map of them all; earlier versions kept something else by this name, so Spark refuses theirs
IN_PARTS = (
    "Spark gives a stream with seed(...) the rows of a shard in parts of spark.sql.execution.arrow.maxRecordsPerBatch "
    "packed pieces, and this micro-batch has more of a shard: rows of later parts would be taken for late. Set it to "
    "65536, as sash.spark.session() does, and start the query again"
)
NUMBER, DATA = StructType([StructField("number", LongType())]), StructType([StructField("data", StringType())])


def packable(rows: Any) -> Iterator[Any]:
    """Rows in pieces, each to be written by itself."""
    return pieces_of(rows, TO_COMPRESS)


def write(rows: Any) -> bytes:
    """Rows as they travel and wait in Java: compressed, which takes less time than to copy them a few times more."""
    return compress(write_table(rows))


def read(data: Any) -> Any:
    """Read what `write` wrote."""
    return read_table(expand(data))


def packing(
    plan: Plan, label: Callable[[int], int] = int, n_called: int = 1
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What packs the rows of a partition: for each shard its label, Arrow's bytes, and the newest time of all.

    Rows of a plan that is answered by slices are put together first. So many shards have a piece also if there is no
    row of theirs: one at the least, because some shard has to know that a checkpoint is of another query.
    """
    shipped, time, n_shards = Shipped(plan), plan.time, plan.n_shards
    enough = ROWS_PACKED if slicing_of(plan) is None else ROWS_FOLDED

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        slicing = slicing_of(shipped.plan)
        gathered: list[Any] = []
        n_rows = 0
        for batch in batches:
            gathered.append(batch)
            n_rows += batch.num_rows
            if n_rows >= enough:
                yield pack_rows(gathered, slicing)
                gathered, n_rows = [], 0
        if n_rows:
            yield pack_rows(gathered, slicing)
        end_task()

    def pack_rows(batches: list[Any], slicing: Slicing | None) -> Any:
        rows = pa.Table.from_batches(batches)
        if slicing is not None:
            rows = slicing.fold(rows)
        shards, parts = _packed(rows, n_shards, n_called)
        labels = pa.array([label(each) for each in shards], pa.int32())
        newest = pa.array([newest_of(time, rows)] * len(parts), pa.int64())
        return pa.RecordBatch.from_arrays(
            [labels, newest, pa.array(parts, pa.binary())], names=["shard", NEWEST, PACKED]
        )

    return run


class Shipped:
    """A plan on its way to a worker."""

    def __init__(self, plan: Plan) -> None:
        self._packed, self._rest = pack(plan.specs), (plan.schema, dict(plan.types), plan.n_shards)

    @property
    def plan(self) -> Plan:
        """The plan, where it has arrived."""
        return Plan(unpack(self._packed), *self._rest)


def _packed(rows: Any, n_shards: int, n_called: int) -> tuple[list[int], list[bytes]]:
    """The shards that rows belong to, and the rows of each; rows too far ahead have no hash, and go to the first."""
    hashes = rows.column(HASH).fill_null(0).to_numpy().view(np.uint64)
    shards = (hashes % np.uint64(n_shards)).astype(np.min_scalar_type(n_shards))
    order = np.argsort(shards, kind="stable")
    rows = rows.take(pa.array(order)).combine_chunks()
    edges = np.searchsorted(shards[order], np.arange(n_shards + 1)).tolist()
    labelled = [
        (shard, piece)
        for shard, (begin, end) in enumerate(pairwise(edges))
        if begin < end or shard < n_called
        for piece in packable(rows.slice(begin, end - begin))
    ]
    return [shard for shard, _ in labelled], [write(piece) for _, piece in labelled]


def unpacking() -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What unpacks answers."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        gathered: list[Any] = []
        for batch in batches:
            for packed in batch.column(PACKED).drop_null():
                gathered.extend(read(packed.as_buffer()).to_batches())
                if sum(each.num_rows for each in gathered) >= ROWS_UNPACKED:
                    yield from joined(gathered)
                    gathered = []
        yield from joined(gathered)
        end_task()

    def joined(batches: list[Any]) -> Iterable[Any]:
        return pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else ()

    return run


class SparkBlocks:
    """Blocks in Spark's state of a shard, compressed: all in one map, as Java takes some milliseconds to open each.

    What was written may still be under way until `settle` is called.
    """

    def __init__(self, handle: Any) -> None:
        self._line = line_to(handle, BLOCKS, NUMBER, DATA)

    def get(self, kind: str, number: int) -> bytes | None:  # noqa: D102
        return self.get_many(kind, [number])[0]

    def get_many(self, kind: str, numbers: Sequence[int]) -> list[bytes | None]:  # noqa: D102
        found: list[bytes | None] = []
        for begin in range(0, len(numbers), AT_ONCE):
            places = [place_of(kind, number) for number in numbers[begin : begin + AT_ONCE]]
            found += _read(list(self._line.values(places)))
        return found

    def put(self, kind: str, number: int, data: bytes) -> None:  # noqa: D102
        self._line.update(place_of(kind, number), (to_text(compress(data)),))

    def delete(self, kind: str, number: int) -> None:  # noqa: D102
        self._line.remove(place_of(kind, number))

    def settle(self) -> None:
        """Wait until Spark has all that was written; whoever calls its state in another way needs this before."""
        self._line.settle()


def place_of(kind: str, number: int) -> tuple[int]:
    """Where a block is in the map of them all."""
    return (number * len(KINDS) + KINDS.index(kind),)


def _read(values: Sequence[tuple[str] | None]) -> list[bytes | None]:
    """Blocks out of their values."""
    bodies = iter(from_texts([value[0] for value in values if value is not None]))
    return [None if value is None else bytes(expand(next(bodies))) for value in values]


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    """What Spark calls with the packed rows of a shard, and when the watermark has passed a row that waits."""

    def __init__(self, plan: Plan) -> None:
        self._shipped = Shipped(plan)

    def init(self, handle: Any) -> None:  # noqa: D102
        self._plan = self._shipped.plan
        self._blocks = SparkBlocks(handle)
        self._handle = handle
        self._history: list[Any] = []  # pieces of a shard, until all are there
        self._called: set[Any] = set()  # shards that this task has been given rows of

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: D102, N802, N803
        is_in_task = TaskContext.get() is not None  # PySpark's tester calls one processor again and again
        if key in self._called and is_in_task:
            raise UnsupportedError(IN_PARTS)
        self._called.add(key)
        tables = [read(row[1]) for row in rows]
        return self._answer(pa.concat_tables(tables), timerValues)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: D102, N802, N803
        self._history.append(initialState)
        if len(self._history) == initialState[N_PIECES]:
            pieces, self._history = self._history, []
            rows = pa.concat_tables([read(each[PACKED]) for each in pieces])
            end = max((each[NEWEST] for each in pieces if each[NEWEST] is not None), default=None)
            self._set_timer(seed(self._plan, self._blocks, rows, end))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: D102, N802, N803
        return self._answer(None, timerValues)

    def _answer(self, rows: Any, timer_values: Any) -> Iterator[Any]:
        watermark = timer_values.getCurrentWatermarkInMs() * MILLISECOND
        outcome = take(self._plan, self._blocks, rows, watermark if watermark > 0 else None)
        self._set_timer(outcome)
        counts = outcome.counts.as_dict()
        for table in outcome.tables:
            for piece in packable(table):
                yield Row(**{PACKED: write(piece)}, **counts)
                counts = dict.fromkeys(counts, 0)
        if any(counts.values()):
            yield Row(**{PACKED: None}, **counts)

    def _set_timer(self, outcome: Outcome) -> None:
        """Ask to be called when the watermark passes the next row that waits, also if nothing comes by then."""
        self._blocks.settle()
        before, after = _timer_at(outcome.was_due), _timer_at(outcome.next_due)
        if before == after:
            return
        if before is not None:
            self._handle.deleteTimer(before)
        if after is not None:
            self._handle.registerTimer(after)

    def close(self) -> None:  # noqa: D102
        end_task()


def _timer_at(due: int | None) -> int | None:
    """In milliseconds; not before the watermark that Spark begins with: such a timer is over, and forgotten."""
    return None if due is None else max(1, -(-due // MILLISECOND))
