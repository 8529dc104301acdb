"""Splitting hot keys: a look at the table, then two passes instead of one. Every core works on one key.

    look:  rows and last order value of each key (a groupBy); a sample of the largest for where ranges begin;
           if a window counts rows, the rows of each range
    table --> slot of each row: which range of which key --> repartition by slot --> sort by (slot, order_by)
          --> first pass (cutting)  --> repartition records by slot --> second pass (joining) --> table with answers

Rows of the same order value are in one range, whatever it is that they begin with. Keys that are not hot go the
ordinary way, beside. Nothing is collected but the keys, the sample and the counts; all of it is DataFrames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import BinaryType, DataType, IntegerType, LongType, StructField, StructType

from sash.engine.bridging import partial_bytes
from sash.errors import UnsupportedError
from sash.frames.answering import Columns, Reader, arrange, bound_for
from sash.frames.arrow_tables import Source
from sash.frames.extents import show_aggregate
from sash.frames.measuring import measure, scale_of
from sash.frames.spec import MOST_RANGES
from sash.spark.carrying import ColumnMemory, Memory
from sash.spark.cutting import RECORD, SLOT, Cutting, Split
from sash.spark.joining import Joining
from sash.spark.reaching import HotKey, Reach
from sash.spark.schemas import arrow_schema, quoted
from sash.spark.shipping import unpack

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from sash.frames.measuring import Bound
    from sash.frames.spec import Placement, Spec

MOST_KEYS = 16  # of more, each a task of its own, there are enough to keep every core busy
HOT = 1_000_000  # rows: a task of about a second
SAMPLE = 1_000  # rows for each range: then one in ten ranges is 5 % too large
WIDEST = 256  # bytes of a partial that is worth sending: one is kept for each row that windows begin with
ROWS, LAST, KEY, EDGE = "_sash_rows", "_sash_last", "_sash_key", "_sash_edge"
TYPES = {pa.int32(): IntegerType(), pa.int64(): LongType(), pa.binary(): BinaryType()}
RECORD_TYPE = StructType([StructField(each.name, TYPES[each.type]) for each in RECORD])


# --- whether ---------------------------------------------------------------------------------------


def asked_of(specs: Sequence[Spec]) -> Placement | None:
    """How hot keys are to be split, if they are."""
    return next((spec.placement for spec in specs if spec.placement.ranges not in (None, False)), None)


class Splittable:
    """Whether specs can be split over ranges of a key, and how far their windows reach."""

    def __init__(self, specs: Sequence[Spec], schema: StructType, zone: str) -> None:
        reader = Reader(Source(arrow_schema(schema, zone).empty_table()))
        rows = arrange(specs[0].window, reader)
        self.specs = specs
        self.bounds: list[Bound] = []
        self.too_wide: list[str] = []  # for each spec: what cannot be sent of it, and why
        self.reason = _reason(specs, reader)
        if self.reason is not None:
            return
        for spec in specs:
            noted = Noting()
            columns = Columns(reader, rows, noted)
            self.bounds.append(bound_for(spec, reader, rows, columns))
            self.too_wide.append(_too_wide(spec, columns, noted))
        self.reason = next((each for each in map(self._whole, range(len(specs))) if each), None)

    @property
    def portable(self) -> tuple[bool, ...]:
        """For each spec, whether partials of it can be sent."""
        return tuple(not each for each in self.too_wide)

    @property
    def counts_rows(self) -> bool:
        """Whether a window is told by numbers of rows."""
        return any(bound.bounds.rows is not None for bound in self.bounds)

    def is_worthwhile(self, hot: HotKey) -> bool:
        """Whether no window is longer than a range whose rows would all have to be sent."""
        for bound, too_wide in zip(self.bounds, self.too_wide, strict=True):
            reach = Reach(hot, bound, is_portable=True)
            if too_wide and any(reach.has_middle(r) for r in range(hot.n_ranges)):
                return False
        return True

    def _whole(self, k: int) -> str | None:
        extent = self.specs[k].window.extent
        if extent is None or extent.kind != "everything" or not self.too_wide[k]:
            return None
        return f"a window of everything needs a partial of all earlier ranges, and {self.too_wide[k]}"


def _reason(specs: Sequence[Spec], reader: Reader) -> str | None:
    """Why these windows cannot be split, whatever the table holds."""
    window = specs[0].window
    if window.grid is not None:
        return f"{window.grid!r} answers elsewhere than at rows"
    if any(spec.placement.is_presorted for spec in specs):
        return "presorted() says that rows stay where they are"
    for spec in specs:
        extent = spec.window.extent
        if extent is not None and extent.kind not in ("rows", "range", "everything"):
            return f"where windows of {extent!r} begin depends on all rows before"
    name = window.order_by[0]
    if scale_of(name, reader.array(name).type).kind == "rank":
        return f"order_by {name!r} is {reader.array(name).type}, which is no number and no time"
    return None


class Noting(Memory):
    """A memory that notes columns carried by numbers that mean nothing on another machine."""

    def __init__(self) -> None:
        super().__init__()
        self.local: list[str] = []

    def __call__(self, carried: str) -> ColumnMemory:
        """What carries a column, and notes how."""
        return _NotingColumn(self.local, carried)


class _NotingColumn(ColumnMemory):
    def __init__(self, local: list[str], carried: str) -> None:
        super().__init__()
        self._local, self._carried = local, carried

    def carry_code(self, array: Any, arrow_type: Any) -> Any:
        self._local.append(self._carried)
        return super().carry_code(array, arrow_type)

    def carry_row(self, array: Any, arrow_type: Any) -> Any:
        self._local.append(self._carried)
        return super().carry_row(array, arrow_type)


def _too_wide(spec: Spec, columns: Columns, noted: Noting) -> str:
    """Which aggregate has partials that are not worth sending, or that cannot be; empty: none."""
    for name, aggregate in spec.aggregates:
        coded = columns.code(aggregate).aggregate
        size = partial_bytes(coded, columns.columns)
        if size is None:
            return f"the state of {name}={show_aggregate(aggregate)} has no fixed width"
        if size > WIDEST:
            return f"the state of {name}={show_aggregate(aggregate)} has {size} bytes, more than {WIDEST}"
        if any(carried in noted.local for carried in coded.columns):
            return f"{name}={show_aggregate(aggregate)} keeps values that are no numbers"
    return ""


# --- the look --------------------------------------------------------------------------------------


class Found(NamedTuple):
    """Hot keys: what tasks must know, a table of keys and where their ranges begin, whether all rows are theirs."""

    split: Split
    edges: DataFrame
    is_all: bool


def look(specs: Sequence[Spec], table: DataFrame, zone: str) -> Found | None:
    """Find hot keys. None: there are none, or splitting them is no gain."""
    asked = asked_of(specs)
    if asked is None:
        return None
    splittable = Splittable(specs, table.schema, zone)
    if splittable.reason is not None:
        if asked.ranges != "auto":
            raise UnsupportedError(f"these windows cannot be split: {splittable.reason}. Leave out split_hot_keys(...)")
        return None
    largest = _largest(specs, table)
    least = _least(asked, largest)
    kept = [k for k, (n, last) in enumerate(zip(largest[ROWS], largest[LAST], strict=True)) if _is_hot(n, last, least)]
    kept = kept[:MOST_KEYS]
    if not kept:
        return None
    hot = largest.take(pa.array(kept))
    is_all = hot.num_rows == largest.num_rows
    counts = [_n_ranges(n, asked.ranges, least) for n in hot[ROWS].to_pylist()]
    keys = _keys_with_ranges(specs, table, hot, counts, is_all=is_all)
    if splittable.counts_rows:
        split = Split(tuple(keys), splittable.portable)
        keys = _counted(specs, table, Found(split, _edges_table(specs, table, hot, keys), is_all))
    worthwhile = [k for k, key in enumerate(keys) if asked.ranges != "auto" or splittable.is_worthwhile(key)]
    if not worthwhile:
        return None
    split = Split(tuple(keys[k] for k in worthwhile), splittable.portable)
    edges = _edges_table(specs, table, hot.take(pa.array(worthwhile)), split.keys)
    return Found(split, edges, is_all and len(worthwhile) == len(keys))


def _least(asked: Placement, largest: Any) -> int:
    """A key of more rows is hot. If ranges are forced and nothing was said, a tenth of the largest one makes it so."""
    if asked.hotter_than is not None:
        return asked.hotter_than
    return HOT if asked.ranges == "auto" else max(largest[ROWS].to_pylist(), default=0) // 10


def _is_hot(n: Any, last: Any, least: int) -> bool:
    return bool(n.as_py() > least and last.as_py() is not None)


def _largest(specs: Sequence[Spec], table: DataFrame) -> Any:
    """The keys with most rows, one more than can be split."""
    by, order = specs[0].window.by, specs[0].window.order_by[0]
    keys, last = [functions.col(quoted(name)) for name in by], functions.col(quoted(order))
    counted = table.groupBy(*keys).agg(functions.count(functions.lit(1)).alias(ROWS), functions.max(last).alias(LAST))
    return counted.orderBy(functions.desc(ROWS)).limit(MOST_KEYS + 1).toArrow()


def _keys_with_ranges(
    specs: Sequence[Spec], table: DataFrame, hot: Any, counts: Sequence[int], *, is_all: bool
) -> list[HotKey]:
    """Hot keys in so many ranges each, by a sample of their rows."""
    by, order = specs[0].window.by, specs[0].window.order_by[0]
    sample = _sample(specs, table, hot, SAMPLE * sum(counts) / sum(hot[ROWS].to_pylist()), is_all=is_all)
    owner = sample[KEY].to_numpy()
    keys = []
    for k, n_ranges in enumerate(counts):
        values = sample[order].filter(pa.array(owner == k)).combine_chunks()
        edges = pa.concat_arrays([_edges(order, values, n_ranges), hot[LAST].combine_chunks().slice(k, 1)])
        named = ", ".join(f"{name}={hot[name][k].as_py()!r}" for name in by) or "all rows"
        keys.append(HotKey(named, order, edges, None))
    return keys


def _sample(specs: Sequence[Spec], table: DataFrame, hot: Any, fraction: float, *, is_all: bool) -> Any:
    """Order values of some rows of hot keys, and the number of their key."""
    by, order = specs[0].window.by, quoted(specs[0].window.order_by[0])
    if is_all and hot.num_rows == 1:
        rows = table.select(functions.lit(0).alias(KEY), functions.col(order))
    else:
        numbers = _key_table(specs, table, hot, {KEY: pa.array(range(hot.num_rows), pa.int32())})
        rows = _beside(table, numbers, by).select(KEY, functions.col(order))
    rows = rows.where(functions.col(order).isNotNull())
    return (rows if fraction >= 1 else rows.sample(fraction, seed=1)).toArrow()


def _n_ranges(n_rows: int, ranges: Any, least: int) -> int:
    if ranges != "auto":
        return int(ranges)
    return min(MOST_RANGES, max(2, -(-n_rows // max(least, 1))))


def _edges(name: str, values: Any, n_ranges: int) -> Any:
    """The values that the second and later ranges begin with, so that ranges have about as many rows each."""
    numbers = measure(name, values).values
    order = np.argsort(numbers, kind="stable")
    places = np.unique(np.arange(1, n_ranges) * len(order) // n_ranges)
    places = places[places < len(order)]
    ascending = numbers[order[places]]
    is_new = np.concatenate([[True], ascending[1:] > ascending[:-1]]) if len(places) else np.empty(0, np.bool_)
    return values.take(pa.array(order[places[is_new]], pa.int64()))


def _counted(specs: Sequence[Spec], table: DataFrame, found: Found) -> list[HotKey]:
    """The same keys, with the rows of each range."""
    by, order, keys = specs[0].window.by, specs[0].window.order_by[0], found.split.keys
    read = [order] if found.is_all and len(keys) == 1 else dict.fromkeys([*by, order])
    slotted = with_slots(table.select(*(functions.col(quoted(name)) for name in read)), found, specs)
    counted = slotted.groupBy(SLOT).count().toArrow().to_pydict()
    counts = dict(zip(counted[SLOT], counted["count"], strict=True))
    firsts = np.cumsum([0, *(key.n_ranges for key in keys)]).tolist()
    return [
        replace(key, counts=tuple(counts.get(first + r, 0) for r in range(key.n_ranges)))
        for key, first in zip(keys, firsts, strict=False)
    ]


# --- the plan --------------------------------------------------------------------------------------


def _key_table(specs: Sequence[Spec], table: DataFrame, hot: Any, more: dict[str, Any]) -> DataFrame:
    """Hot keys under names that clash with nothing, with more columns beside."""
    by, schema = specs[0].window.by, table.schema
    order = schema[specs[0].window.order_by[0]].dataType
    columns = {_key_name(k): hot[name] for k, name in enumerate(by)} | more
    fields = [StructField(_key_name(k), schema[name].dataType) for k, name in enumerate(by)]
    fields += [StructField(name, order if name.startswith(EDGE) else IntegerType()) for name in more]
    return table.sparkSession.createDataFrame(pa.table(columns), schema=StructType(fields))


def _key_name(k: int) -> str:
    return f"_sash_by_{k}"


def _edges_table(specs: Sequence[Spec], table: DataFrame, hot: Any, keys: Sequence[HotKey]) -> DataFrame:
    """For each hot key its first slot, and where its ranges begin."""
    firsts = np.cumsum([0, *(key.n_ranges for key in keys)])[:-1]
    more: dict[str, Any] = {KEY: pa.array(firsts, pa.int32())}
    for r in range(1, max(key.n_ranges for key in keys)):
        edges = [key.edges.slice(r - 1, 1) if r < key.n_ranges else pa.nulls(1, key.edges.type) for key in keys]
        more[f"{EDGE}_{r}"] = pa.concat_arrays(edges)
    return _key_table(specs, table, hot, more)


def _beside(rows: DataFrame, keys: DataFrame, by: Sequence[str]) -> DataFrame:
    """Rows of hot keys, with what is known of their key."""
    keys = functions.broadcast(keys)
    return rows.join(keys, _same_key(by), "inner") if by else rows.crossJoin(keys)


def _same_key(by: Sequence[str]) -> Column:
    condition = functions.lit(True)
    for k, name in enumerate(by):
        condition &= functions.col(quoted(name)).eqNullSafe(functions.col(_key_name(k)))
    return condition


def with_slots(rows: DataFrame, found: Found, specs: Sequence[Spec]) -> DataFrame:
    """Rows of hot keys with their slots."""
    window, keys = specs[0].window, found.split.keys
    order, columns = functions.col(quoted(window.order_by[0])), [functions.col(quoted(name)) for name in rows.columns]
    if found.is_all and len(keys) == 1:
        return rows.select(*columns, _slot_of_only_key(order, keys[0], rows.schema[window.order_by[0]].dataType))
    slot = functions.col(KEY)  # that of the first range, and one more for each edge that is not after the row
    for r in range(1, max(key.n_ranges for key in keys)):
        slot = slot + functions.when(order >= functions.col(f"{EDGE}_{r}"), 1).otherwise(0)
    return _beside(rows, found.edges, window.by).select(*columns, slot.alias(SLOT))


def _slot_of_only_key(order: Column, key: HotKey, data_type: DataType) -> Column:
    """The same where all rows are of one key: edges are literals, and no row is looked up. Nulls come first."""
    slot = functions.when(order.isNull(), 0)
    for r in range(key.n_ranges - 1):
        slot = slot.when(order < _literal(key.edges[r], data_type), r)
    return slot.otherwise(key.n_ranges - 1).cast("int").alias(SLOT)


def _literal(value: Any, data_type: DataType) -> Column:
    """An Arrow value as a literal of Spark's, exactly; zones and calendars of Python have no say in it."""
    if pa.types.is_timestamp(value.type):
        micros = value.cast(pa.timestamp("us", value.type.tz)).value
        if value.type.tz is not None:
            return functions.timestamp_micros(functions.lit(micros))
        return functions.lit(str(np.datetime64(micros, "us"))).cast(data_type)
    if pa.types.is_date(value.type):
        return functions.date_from_unix_date(functions.lit(value.cast(pa.int32()).as_py()))
    if pa.types.is_duration(value.type):
        return functions.make_dt_interval(
            secs=(functions.lit(value.value).cast("decimal(20, 0)") / 1_000_000).cast("decimal(18, 6)")
        )
    return functions.lit(str(value.as_py())).cast(data_type)


def answer_split(specs: Sequence[Spec], table: DataFrame, found: Found, packed: bytes, announced: Any) -> DataFrame:
    """Answer the rows of hot keys; `announced` has the schema of answers and their types."""
    split, (schema, types) = found.split, announced
    rows = with_slots(table, found, specs).repartitionById(split.n_slots, functions.col(SLOT))
    # A partition is one slot, so that its rows are sorted by time alone, which Spark does by numbers and not by rows.
    rows = rows.sortWithinPartitions(*(functions.col(quoted(name)) for name in specs[0].window.order_by))
    records = rows.mapInArrow(task(lambda: Cutting(unpack(packed), split)), RECORD_TYPE)
    records = records.repartitionById(split.n_slots, functions.col(SLOT))
    records = records.sortWithinPartitions(SLOT, "stage", "lane", "source", "number")
    return records.mapInArrow(task(lambda: Joining(unpack(packed), split, types)), schema)


def others(specs: Sequence[Spec], table: DataFrame, edges: DataFrame) -> DataFrame:
    """The rows of keys that are not hot."""
    return table.join(functions.broadcast(edges), _same_key(specs[0].window.by), "left_anti")


def task(begin: Callable[[], Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a task does with the batches of its partition."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        answering = begin()
        for batch in batches:
            if batch.num_rows:
                yield from answering.push(batch)
        yield from answering.finish()

    return run
