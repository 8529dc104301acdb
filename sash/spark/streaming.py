"""Streams: a spec over a streaming table, by shard.

    stream --> hash of the keys --> mapInArrow: pack rows, or slices of them, by shard into bytes (shards) --> watermark
           --> groupBy(shard).transformWithState: one call a shard and micro-batch (shards.ShardProcessor)
           --> observe: what shards counted --> mapInArrow: unpack

Spark calls Python once for each group and micro-batch, and takes a tenth of a millisecond for each call of its state.
So a group is not a key but a shard of many. State is Spark's alone (RocksDB), and so is exactly-once; the watermark and
timers are Spark's too. Packed rows carry no event time, so Spark drops none of them: late ones are counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as fn
from pyspark.sql.types import BooleanType, IntegerType, StringType, StructField, StructType

from sash.errors import DeclarationError, UnknownNameError, UnsupportedError
from sash.spark.checkpoints import recorded_shards
from sash.spark.labels import label_of
from sash.spark.schemas import answer_schema, arrow_schema, quoted
from sash.spark.shards import MILLISECOND, N_PIECES, NEWEST, PACKED, ShardProcessor, packing, unpacking
from sash.streams.algorithms import algorithms
from sash.streams.contract import COUNTED, FAILURE, HASH, IS_LATE, REVISION
from sash.streams.plans import Plan, microseconds
from sash.streams.progress import ALGORITHM, METRICS
from sash.streams.reach import require_reach
from sash.streams.slices import slicing_of
from sash.streams.timing import DAY, instants_of, require_time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, GroupedData

    from sash.frames.spec import Spec

ZONE = "spark.sql.session.timeZone"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"
WATERMARK = "EventTimeWatermark"  # what Spark calls it in its plans
EVENT = "__sash_event"  # the time that the watermark follows
END = "__sash_end"  # the newest time of history
LONG_AGO = -62_135_596_800_000_000  # the year 1, in microseconds
NUMBERS = count(1)  # of streams: what a query observes has a name of its own for each
PIECES = f"shard int, {NEWEST} long, {PACKED} binary"


def stream(specs: Sequence[Spec], table: DataFrame, history: DataFrame | None = None) -> DataFrame:
    """Answer specs with the same keys and order over a stream, which may begin with rows of history."""
    _require_rocksdb(str(table.sparkSession.conf.get(PROVIDER)))
    _require_no_watermark(table)
    plan, schema = planned(tuple(specs), table)
    checkpoint = plan.streaming.checkpoint
    if checkpoint is not None:
        plan = plan.in_shards(recorded_shards(table.sparkSession, checkpoint, plan))
    packed = with_hashes(plan, table).mapInArrow(packing(plan, label_of), PIECES)
    answered = _with_watermark(plan, packed).groupBy("shard").transformWithState(
        ShardProcessor(plan), _answered_schema(), "Append", "EventTime",
        None if history is None else seeded(plan, table, history),
    )  # fmt: skip
    told = [*(fn.sum(name).alias(name) for name in COUNTED), fn.lit(algorithms(plan)).alias(ALGORITHM)]
    return answered.observe(f"{METRICS}_{next(NUMBERS)}", *told).mapInArrow(unpacking(), schema)


def planned(specs: tuple[Spec, ...], table: DataFrame) -> tuple[Plan, StructType]:
    """Check everything that can be checked before a query starts."""
    zone = str(table.sparkSession.conf.get(ZONE))
    schema, types = answer_schema(specs, table.schema, zone)
    rows = pa.schema([field.with_nullable(True) for field in arrow_schema(table.schema, zone)])
    plan = Plan(specs, rows, types, specs[0].streaming.shards)
    require_time(plan.time, plan.schema.field(plan.time).type)
    require_reach(plan)
    instants_of(plan)
    _require_emission(plan)
    return plan, _with_own_columns(plan, schema)


def _require_rocksdb(provider: str) -> None:
    if provider != ROCKSDB:
        raise UnsupportedError(
            f"windows over streams need Spark's RocksDB state store, but {PROVIDER} is {provider}. Set it to "
            f"{ROCKSDB}, or use sash.spark.session()"
        )


def _require_no_watermark(table: DataFrame) -> None:
    """Refuse a stream with a watermark, or with state, before it runs: Spark finds out when it does, and says less.

    Without a plan to be looked at, as with Connect, it is left to Spark.
    """
    plan = getattr(table, "_jdf", None)
    if plan is None or str(table.sparkSession.conf.get(MULTIPLE)).lower() == "false":
        return
    if WATERMARK in plan.queryExecution().analyzed().toString():
        raise UnsupportedError(
            "this stream has a watermark already, by withWatermark(...) or by another spec, and Spark takes no second "
            "one. Leave withWatermark out and say spec.stream(lateness=...); join specs by sash.together, or answer "
            "them in queries of their own"
        )


def _require_emission(plan: Plan) -> None:
    streaming, grid = plan.streaming, plan.window.grid
    if grid is not None and streaming.emit != "final":
        raise UnsupportedError(
            f"{grid!r} with emit={streaming.emit!r}: an answer at a grid point is over all rows before it, and is due "
            "when they have come. Use emit='final', or answer at rows"
        )
    for name, chosen in (("late", streaming.late), ("failing", plan.failing)):
        if plan.is_grid and chosen == "aside":
            raise UnsupportedError(
                f"{name}='aside' gives out rows, but this spec answers at instants; use {name}='drop'"
            )
    changes = streaming.changes
    if changes is not None and changes not in plan.schema.names:
        raise UnknownNameError(f"changes: {UnknownNameError.among('column', changes, plan.schema.names)}")


def _with_own_columns(plan: Plan, schema: StructType) -> StructType:
    """The schema of what comes out, with the columns that a stream adds."""
    own = {REVISION: IntegerType(), IS_LATE: BooleanType(), FAILURE: StringType()}
    added = [name for name in plan.out_schema.names if name in own and name not in schema.names]
    taken = [name for name in own if name in schema.names and plan.out_schema.names.count(name) > 1]
    taken += [name for name in plan.schema.names if name.startswith("__sash_")]
    if taken:
        raise DeclarationError(f"a stream adds a column {taken[0]!r} to its answers, but there is one; rename it first")
    may_lack_answers = "aside" in (plan.streaming.late, plan.failing) or plan.streaming.changes is not None
    if may_lack_answers:  # rows aside, and rows that are taken back
        schema = StructType([StructField(each.name, each.dataType, True) for each in schema])
    return StructType([*schema, *(StructField(name, own[name], name != IS_LATE) for name in added)])


def with_hashes(plan: Plan, table: DataFrame) -> DataFrame:
    """Rows with the hash of their keys, which is null if they are too far ahead: a column less for a million rows.

    What is put together by slices is not given out, so only columns that are read are taken along.
    """
    names = plan.schema.names if slicing_of(plan) is None else plan.read
    future, hashed = plan.streaming.future, _hash(plan)
    if future is not None:
        zone = str(table.sparkSession.conf.get(ZONE))
        hashed = fn.when(fn.expr(_far_ahead(plan, microseconds(future), zone)), None).otherwise(hashed)
    return table.select(*map(quoted, names), hashed.alias(HASH))


def _far_ahead(plan: Plan, future: int, zone: str) -> str:
    """Whether a row is further ahead of the clock than so many microseconds.

    Spark writes the clock of a micro-batch into the code that it generates. So that code would be compiled anew in
    every micro-batch, and Java would run most of it before it knows it well: 0.2 s of a processor, however few rows
    there are. The date changes once a day, so rows are held against the beginning of the day first; only those after
    it, and `future`, are held against the clock, by a function that Spark does not generate code for.
    """
    time, kind = _clock_time(plan)
    if kind == "timestamp" and zone == "UTC":  # what the other way finds, without asking for the zone at every row
        is_near = f"unix_micros({time}) <= unix_date(current_date()) * {DAY} + {future}"
    else:
        is_near = f"{time} <= CAST(date_add(current_date(), {future // DAY}) AS {kind})"
    clock = f"CAST(current_timestamp() + INTERVAL {future} MICROSECOND AS {kind})"
    return f"NOT {is_near} AND zip_with(array({time}), array({clock}), (each, now) -> each > now)[0]"


def _with_watermark(plan: Plan, packed: DataFrame) -> DataFrame:
    """Packed rows with the watermark set by the newest of them, which Spark then sees a few of instead of all."""
    event = fn.timestamp_micros(fn.coalesce(NEWEST, fn.lit(LONG_AGO))).alias(EVENT)
    delay = -(-microseconds(plan.streaming.lateness) // MILLISECOND)  # in milliseconds: rather one too many
    return packed.select("shard", PACKED, event).withWatermark(EVENT, f"{delay} milliseconds").drop(EVENT)


def seeded(plan: Plan, table: DataFrame, history: DataFrame) -> GroupedData:
    """Rows of history, packed by shard, as the first state; those no window can reach are left out beforehand.

    Every shard has pieces, also one without history, because all have to know when history ended. Each piece says how
    many there are of its shard: Spark gives them to Python one by one.
    """
    if history.isStreaming:
        raise UnsupportedError("seed(...) takes rows that are there, but this is a stream; read it in batch")
    for name in table.columns:
        if name not in history.columns:
            raise DeclarationError(f"seed(...): history has no column {name!r}, but {', '.join(history.columns)}")
    casts = [fn.col(quoted(field.name)).cast(field.dataType).alias(field.name) for field in table.schema]
    rows, time = with_hashes(plan, history.select(*casts)), fn.unix_micros(_event_time(plan))
    far = reach_into_history(plan)
    if far is not None:
        end = rows.where(fn.col(HASH).isNotNull()).agg(fn.max(time).alias(END))
        is_near = fn.coalesce(time >= fn.col(END) - far, fn.lit(True))  # those without a time are told by the shard
        rows = rows.crossJoin(fn.broadcast(end)).where(is_near).drop(END)
    packed = rows.mapInArrow(packing(plan, label_of, n_called=plan.n_shards), PIECES)
    n_pieces = fn.count("*").over(Window.partitionBy("shard")).alias(N_PIECES)
    return packed.select("*", n_pieces).groupBy("shard")


def reach_into_history(plan: Plan) -> int | None:
    """How many microseconds before its end a row of history may be in reach of the stream; None: any number."""
    if plan.window.grid is not None or any(extent.kind != "range" for extent in plan.extents):
        return None
    far = max(microseconds(extent.length) + microseconds(extent.lag) for extent in plan.extents)
    return far + microseconds(plan.streaming.lateness) + 2 * MILLISECOND  # what a watermark is rounded by


def _clock_time(plan: Plan) -> tuple[str, str]:
    """The time of a row as a clock would show it, and the type that such times have."""
    time = quoted(plan.time)
    return (time, "timestamp") if _has_zone(plan) else (f"CAST({time} AS timestamp_ntz)", "timestamp_ntz")


def _event_time(plan: Plan) -> Column:
    """The time of a row for the watermark, in the microseconds that a shard sees, whatever the zone of the session.

    Spark's watermark wants times with a zone. Those without are taken as if they were in UTC: counted out of their
    parts, because every cast goes by the zone of the session, and by the hours that it leaves out in spring.
    """
    if _has_zone(plan):
        return fn.col(quoted(plan.time))
    time, _ = _clock_time(plan)
    days = f"CAST(datediff(CAST({time} AS date), DATE'1970-01-01') AS bigint)"
    minutes = f"({days} * 24 + hour({time})) * 60 + minute({time})"
    seconds = f"CAST(extract(SECOND FROM {time}) * 1000000 AS bigint)"
    return fn.expr(f"timestamp_micros(({minutes}) * 60000000 + {seconds})")


def _has_zone(plan: Plan) -> bool:
    arrow_type = plan.schema.field(plan.time).type
    return bool(pa.types.is_timestamp(arrow_type)) and arrow_type.tz is not None


def _hash(plan: Plan) -> Column:
    return fn.xxhash64(*map(quoted, plan.window.by)) if plan.window.by else fn.lit(0).cast("long")


def _answered_schema() -> str:
    return ", ".join([f"{PACKED} binary", *(f"{name} long" for name in COUNTED)])
