"""Streams whose state is in a store of one's own: a runner that does each micro-batch in foreachBatch.

    stream --> hash of the keys --> foreachBatch:
        mapInArrow: pack rows by shard --> kept --> the newest time, and with it the watermark after the batch
        with a row for every shard, by shard --> mapInArrow: each shard takes its rows, commits to the store, gives out
        packed answers --> kept --> sums of what was counted --> sink

Spark's checkpoint says which batch is next, and repeats one that it has not seen through; the store can repeat it
too, to the same answers (streams.stored_blocks). Answers are kept until the sink is done with them, so all shards
have committed before the sink sees a row. The sink may see a batch again: it has to write by number of the batch.

Every shard is called in every batch, and answers what the batch has made due: so no timers are needed. Rows of a shard
are put in the order of partitions in which they were read: so a batch done again has ties in the same order, as
long as the source cuts it into the same partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as fn

from sash.errors import DeclarationError, UnsupportedError
from sash.frames.spec import Spec, Together
from sash.frames.streaming import shown
from sash.spark.shards import NEWEST, PACKED, Shipped, packable, packing, read, unpacking, write
from sash.spark.streaming import planned, with_hashes
from sash.stores import Store, open_store
from sash.streams.contract import COUNTED
from sash.streams.plans import Plan
from sash.streams.stored_blocks import Query, Turn, recorded_shards, take_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

QUERY_ID = "sql.streaming.queryId"  # where Spark says, in a batch, which checkpoint it belongs to
PIECES = f"shard int, part int, place int, {NEWEST} long, {PACKED} binary"
ANSWERED = ", ".join([f"{PACKED} binary", *(f"{name} long" for name in COUNTED)])
BATCH = "batch"  # the column under which a directory of parquet files names it

Sink = Callable[["DataFrame", int], Any]
log = logging.getLogger(__name__)


def run(
    spec: Spec | Together,
    table: DataFrame,
    sink: Sink,
    *,
    checkpoint: str,
    name: str,
    trigger: Mapping[str, Any] | None = None,
    counted: Callable[[int, dict[str, int]], Any] | None = None,
) -> StreamingQuery:
    """Start a stream whose state is in the store that `spec.stream(state=...)` names.

    Parameters
    ----------
    sink
        Is called with a table of answers and the number of the batch, once for each batch, and once more if a batch
        has to be done again: it must then replace what it wrote. `parquet_sink(path)` is one.
    checkpoint
        Where Spark notes what was read; belongs to the state in the store, and only to that.
    name
        Of the query, also in the store.
    trigger
        As Spark's, by name: {"availableNow": True}, {"processingTime": "10 seconds"}.
    counted
        Is called with the number of each batch and what was counted in it; the same is logged.
    """
    specs = spec.specs if isinstance(spec, Together) else (spec,)
    state = _require_runnable(specs, table, sink)
    plan, schema = planned(specs, table)
    with open_store(state) as there:  # that it can be reached is better known now than in the first batch
        plan = plan.in_shards(recorded_shards(there, name))
    query, work = Query(name, plan), Work(state, plan)

    def batch(rows: DataFrame, number: int) -> None:
        own = str(rows.sparkSession.sparkContext.getLocalProperty(QUERY_ID) or checkpoint)
        with open_store(state) as store, _kept(work.packed(rows)) as packed:
            turn = query.begin(store, number, own, packed.agg(fn.max(NEWEST)).collect()[0][0])
            with _kept(work.answered(packed, turn)) as answered:
                sums = answered.agg(*(fn.sum(each) for each in COUNTED)).collect()[0]
                query.end(store, turn)
                _tell(name, number, dict(zip(COUNTED, sums, strict=True)), counted)
                sink(answered.mapInArrow(unpacking(), schema), number)

    writer = with_hashes(plan, table).writeStream.queryName(name).foreachBatch(batch)
    writer = writer.option("checkpointLocation", checkpoint)
    return (writer if trigger is None else writer.trigger(**trigger)).start()


def parquet_sink(path: str) -> Sink:
    """Write each batch to a directory of its own, `path/batch=<number>`; done again, it replaces itself."""

    def write(answers: DataFrame, number: int) -> None:
        if BATCH in answers.columns:
            raise DeclarationError(f"parquet_sink adds a column {BATCH!r} to the answers, but there is one; rename it")
        answers.write.mode("overwrite").parquet(f"{path}/{BATCH}={number}")

    return write


def _require_runnable(specs: tuple[Any, ...], table: Any, sink: Any) -> str:
    """Check what is given, up to the address of the store."""
    if not all(isinstance(each, Spec) for each in specs):
        raise DeclarationError(f"run takes a spec, as in run(spec, df, sink, ...), got {specs[0]!r}")
    state = specs[0].streaming.state
    if state is None:
        raise DeclarationError(
            "this spec has no state=..., so Spark keeps the state: call spec(df) and write that. For a store of your "
            "own, say spec.stream(state='redis://...')"
        )
    if not callable(sink):
        raise DeclarationError(f"the sink is called with answers and the number of a batch, but {sink!r} cannot be")
    if not table.isStreaming:
        raise UnsupportedError("this table is no stream. Call the spec on it")
    if ".connect." in type(table).__module__:
        raise UnsupportedError(
            f"state in {shown(state)} needs a session of the driver's own, and this one is through Spark Connect. "
            "Leave state out, and Spark keeps it"
        )
    return str(state)


@contextmanager
def _kept(table: DataFrame) -> Iterator[DataFrame]:
    """A table that is computed once."""
    table.persist()
    try:
        yield table
    finally:
        table.unpersist()


def _tell(name: str, number: int, counts: dict[str, int], counted: Any) -> None:
    log.info("query %s, batch %d: %s", name, number, ", ".join(f"{each}={n}" for each, n in counts.items() if n))
    if counted is not None:
        counted(number, counts)


_stores: dict[tuple[str, str], tuple[str, Store]] = {}  # of this worker, by address and query


def _opened(address: str, turn: Turn) -> Store:
    """The store at an address, opened once in a worker for each run: between two, others may have replaced it."""
    token, store = _stores.get((address, turn.name), (None, None))
    if store is None or token != turn.token:
        if store is not None:
            store.close()
        store = open_store(address)
        _stores[address, turn.name] = turn.token, store
    return store


class Work:
    """What the shards of a query do, as a plan of Spark's."""

    def __init__(self, state: str, plan: Plan) -> None:
        self._state, self._shipped, self._n_shards = state, Shipped(plan), plan.n_shards
        self._packing = _in_places(plan)

    def packed(self, rows: DataFrame) -> DataFrame:
        """The rows of a batch, packed by shard."""
        return rows.mapInArrow(self._packing, PIECES)

    def answered(self, packed: DataFrame, turn: Turn) -> DataFrame:
        """Packed answers to the rows of a batch, and what was counted; to compute them commits the batch."""
        n = self._n_shards
        none = [f"cast(null as {each.split()[1]}) {each.split()[0]}" for each in PIECES.split(", ")[1:]]
        every_shard = packed.sparkSession.range(n).selectExpr("cast(id as int) shard", *none)
        by_shard = packed.union(every_shard).repartition(n, "shard")
        return by_shard.mapInArrow(self._task(turn), ANSWERED)

    def _task(self, turn: Turn) -> Callable[[Iterable[Any]], Iterator[Any]]:
        state, shipped = self._state, self._shipped

        def run_shards(batches: Iterable[Any]) -> Iterator[Any]:
            plan, store = shipped.plan, _opened(state, turn)
            for shard, rows in sorted(_by_shard(batches).items()):
                yield _answers(plan, store, turn, shard, rows)

        return run_shards


def _in_places(plan: Plan) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What packs the rows of a partition by shard, and notes where they were."""
    pack_rows = packing(plan)

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        part = TaskContext.get().partitionId()
        for place, packed in enumerate(pack_rows(batches)):
            own = [pa.array([each] * packed.num_rows, pa.int32()) for each in (part, place)]
            columns = [packed.column("shard"), *own, packed.column(NEWEST), packed.column(PACKED)]
            yield pa.RecordBatch.from_arrays(columns, names=["shard", "part", "place", NEWEST, PACKED])

    return run


def _by_shard(batches: Iterable[Any]) -> dict[int, Any]:
    """The rows of each shard, in the order in which they were read; None for one without."""
    pieces: dict[int, list[tuple[int, int, Any]]] = {}
    for batch in batches:
        for shard, part, place, _, packed in zip(*batch.columns, strict=True):
            own = pieces.setdefault(shard.as_py(), [])
            if packed.is_valid:
                own.append((part.as_py(), place.as_py(), packed))
    return {shard: _in_order(own) for shard, own in pieces.items()}


def _in_order(pieces: list[tuple[int, int, Any]]) -> Any:
    pieces.sort(key=lambda piece: piece[:2])
    tables = [read(packed.as_buffer()) for *_, packed in pieces]
    return pa.concat_tables(tables) if tables else None


def _answers(plan: Plan, store: Store, turn: Turn, shard: int, rows: Any) -> Any:
    """Let a shard do its part of a batch, and pack what it gives out."""
    outcome = take_stored(plan, store, turn, shard, rows)
    pieces = [piece for each in outcome.tables for piece in packable(each)]
    parts: list[bytes | None] = [write(each) for each in pieces]
    parts = parts or [None]  # which carries what was counted
    rest = [0] * (len(parts) - 1)
    counts = [pa.array([n, *rest], pa.int64()) for n in outcome.counts.as_dict().values()]
    return pa.RecordBatch.from_arrays([pa.array(parts, pa.binary()), *counts], names=[PACKED, *COUNTED])
