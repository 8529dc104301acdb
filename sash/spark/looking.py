"""The look: which keys of a table are hot, where their ranges begin, and what of them each range is sent.

    keys:    rows, first and last order value of each (a groupBy), of which the largest are hot
    counts:  rows of the hot ones in some thousand stretches of order values; again in stretches that hold too much
    ranges:  whole stretches, so that each range has about as many rows
    slices:  parts of ranges that are small enough to be sorted, and begin where the windows of later ranges begin

Nothing is collected but the keys and the counts. Where ranges begin decides how even tasks are, never an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    IntegralType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sash.errors import UnsupportedError
from sash.frames.measuring import FARTHEST, Measure, measure
from sash.frames.spec import MOST_RANGES
from sash.spark.reaching import HotKey, Reach
from sash.spark.schemas import arrow_schema, quoted
from sash.spark.shipping import task
from sash.spark.slicing import KEY, Places, Slices, Split, needed_columns
from sash.spark.splittable import BINARY, Splittable, asked_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from sash.frames.spec import Placement, Spec

MOST_KEYS = 16  # of more, each a task of its own, there are enough to keep every core busy
HOT = 1_000_000  # rows: a task of about a second
STRETCHES = 4_096  # that rows are counted in; a front of counted rows is at most one of them too long
FINER = 64  # stretches at least for one that holds too much
UNEVEN = 8  # a stretch of more than such a part of a range holds too much
ROUNDS = 5  # of counting: far-off values may hide all others in one stretch, but not more often than that
SLICE = 1 << 17  # rows, about
HELD = 1 << 28  # bytes
ROWS, FIRST, LAST, PLACE = "_sash_rows", "_sash_first", "_sash_last", "_sash_place"


class Found(NamedTuple):
    """Hot keys: what tasks must know, a table of the keys and their numbers, whether all rows are theirs."""

    split: Split
    keys: DataFrame
    is_all: bool
    is_small: bool  # whether a worker may hold what a range is sent

    @property
    def is_single(self) -> bool:
        """Whether all rows are of one key."""
        return self.is_all and len(self.split.keys) == 1


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
    hot, wanted = _hot(asked, largest)
    if not wanted:
        return None
    counted = _counted(specs, table, hot, wanted, is_single=largest.num_rows == 1)
    ranges = [each.ranges(n) for each, n in zip(counted, wanted, strict=True)]
    keys = [_key(specs, table, hot.slice(k, 1), each, splittable) for k, each in enumerate(ranges)]
    worthwhile = [k for k, key in enumerate(keys) if asked.ranges != "auto" or splittable.is_worthwhile(key)]
    if not worthwhile:
        return None
    slices = [slices_of(keys[k], counted[k], splittable.bounds, splittable.portable) for k in worthwhile]
    split = Split(tuple(keys[k] for k in worthwhile), tuple(slices), splittable.portable)
    largest_range = max(int(ranges[k].counts.max()) for k in worthwhile)
    return Found(
        split,
        _key_table(specs, table, hot.take(pa.array(worthwhile))),
        is_all=len(worthwhile) == largest.num_rows,
        # Own rows and as many of others at most, if partials can stand for the rest of a window.
        is_small=all(splittable.portable) and 2 * largest_range * _width(specs, table, zone) <= HELD,
    )


def _width(specs: Sequence[Spec], table: DataFrame, zone: str) -> float:
    """The bytes of a row on its way; infinite if that depends on the row."""
    left_out = constant_columns(specs, table)
    travelling = [each.type for each in arrow_schema(table.schema, zone) if each.name not in left_out]
    try:
        return float(sum(each.bit_width for each in travelling) / 8)
    except ValueError:
        return float("inf")


# --- keys ------------------------------------------------------------------------------------------


def _largest(specs: Sequence[Spec], table: DataFrame) -> Any:
    """The keys with most rows, one more than can be split."""
    by, order = specs[0].window.by, functions.col(quoted(specs[0].window.order_by[0]))
    found = (
        functions.count(functions.lit(1)).alias(ROWS),
        functions.min(order).alias(FIRST),
        functions.max(order).alias(LAST),
    )
    counted = table.groupBy(*(functions.col(quoted(name)) for name in by)).agg(*found)
    return counted.orderBy(functions.desc(ROWS)).limit(MOST_KEYS + 1).toArrow()


def _hot(asked: Placement, largest: Any) -> tuple[Any, list[int]]:
    """Those of the largest keys that are hot, and how many ranges are wanted of each."""
    least, found = _least(asked, largest), zip(largest[ROWS], largest[LAST], strict=True)
    kept = [k for k, (n, last) in enumerate(found) if n.as_py() > least and last.as_py() is not None]
    hot = largest.take(pa.array(kept[:MOST_KEYS], pa.int64()))
    return hot, [_n_ranges(n, asked.ranges, least) for n in hot[ROWS].to_pylist()]


def _least(asked: Placement, largest: Any) -> int:
    """A key of more rows is hot. If ranges are forced and nothing was said, a tenth of the largest one makes it so."""
    if asked.hotter_than is not None:
        return asked.hotter_than
    return HOT if asked.ranges == "auto" else max(largest[ROWS].to_pylist(), default=0) // 10


def _n_ranges(n_rows: int, ranges: Any, least: int) -> int:
    if ranges != "auto":
        return int(ranges)
    return min(MOST_RANGES, max(2, -(-n_rows // max(least, 1))))


def _key(specs: Sequence[Spec], table: DataFrame, hot: Any, ranges: Counts, splittable: Splittable) -> HotKey:
    """One hot key, the only row of a table, in ranges."""
    named = ", ".join(f"{name}={hot[name][0].as_py()!r}" for name in specs[0].window.by) or "all rows"
    last = measure(specs[0].window.order_by[0], hot[LAST].combine_chunks())
    edges = Measure(np.concatenate([ranges.starts, last.values]), None, last.scale)
    counts = tuple(ranges.counts.tolist()) if splittable.counts_rows else None
    places = sorted(table.columns.index(name) for name in constant_columns(specs, table))
    constants = [(place, table.columns[place], hot[table.columns[place]].combine_chunks()) for place in places]
    return HotKey(named, edges, str(hot[LAST][0]), counts, tuple(constants))


def constant_columns(specs: Sequence[Spec], table: DataFrame) -> list[str]:
    """The columns of the key that all its rows have to the letter alike, and that nothing but the key is made of."""
    read = {name for spec in specs for name in needed_columns(spec, spec.window.order_by)}
    return [name for name in specs[0].window.by if name not in read and _is_exact(table.schema[name].dataType)]


def _is_exact(data_type: DataType) -> bool:
    """Whether what Spark takes for the same key is the same value: not 0.0 and -0.0, nor texts by some collation."""
    if isinstance(data_type, StringType):
        return getattr(data_type, "collation", BINARY) == BINARY
    return isinstance(data_type, (IntegralType, BooleanType, DateType, TimestampType, TimestampNTZType, DecimalType))


def _key_table(specs: Sequence[Spec], table: DataFrame, hot: Any) -> DataFrame:
    """Hot keys under names that clash with nothing, and their numbers."""
    by = specs[0].window.by
    columns = {_key_name(k): hot[name] for k, name in enumerate(by)}
    fields = [StructField(_key_name(k), table.schema[name].dataType) for k, name in enumerate(by)]
    numbered = pa.table({**columns, KEY: pa.array(range(hot.num_rows), pa.int32())})
    schema = StructType([*fields, StructField(KEY, IntegerType())])
    return functions.broadcast(table.sparkSession.createDataFrame(numbered, schema=schema))


def _key_name(k: int) -> str:
    return f"_sash_by_{k}"


def same_key(by: Sequence[str]) -> Column:
    """Whether a row is of a hot key."""
    each = (functions.col(quoted(name)).eqNullSafe(functions.col(_key_name(k))) for k, name in enumerate(by))
    return reduce(and_, each, functions.lit(True))


def with_keys(rows: DataFrame, keys: DataFrame, by: Sequence[str], *, is_single: bool) -> DataFrame:
    """Rows of hot keys, with the number of their key; without it if all rows are of a single one."""
    if is_single:
        return rows
    columns = [functions.col(quoted(name)) for name in rows.columns]
    return rows.join(keys, same_key(by), "inner").select(*columns, KEY)


# --- counts ----------------------------------------------------------------------------------------


class Counts(NamedTuple):
    """Rows in stretches of order values: where stretches 1, 2, ... begin, and how many rows each has."""

    starts: Any
    counts: Any

    @property
    def before(self) -> Any:
        """How many rows there are before stretches 1, 2, ..."""
        return np.cumsum(self.counts)[:-1]

    def ranges(self, n: int) -> Counts:
        """The same rows in at most n stretches of about as many rows."""
        total, before = int(self.counts.sum()), self.before
        wanted = np.arange(1, n) * total // n
        behind = np.minimum(np.searchsorted(before, wanted), max(len(before) - 1, 0))
        nearest = [b - 1 if b and before[b] - w > w - before[b - 1] else b for b, w in zip(behind, wanted, strict=True)]
        chosen = [b for b in np.unique(np.array(nearest, np.int64)) if 0 < before[b] < total] if len(before) else []
        return Counts(self.starts[chosen], np.diff(np.concatenate([[0], before[chosen], [total]]).astype(np.int64)))

    def at_row(self, number: int) -> Any:
        """Where the stretch begins that has the row of some number; None for the first."""
        k = int(np.searchsorted(self.before, number, "right"))
        return self.starts[k - 1] if k else None


def _counted(
    specs: Sequence[Spec], table: DataFrame, hot: Any, wanted: Sequence[int], *, is_single: bool
) -> list[Counts]:
    """The rows of hot keys by order value."""
    by, order_by = specs[0].window.by, specs[0].window.order_by[0]
    columns = [functions.col(quoted(name)) for name in dict.fromkeys([*([] if is_single else by), order_by])]
    rows = with_keys(table.select(*columns), _key_table(specs, table, hot), by, is_single=is_single)
    rows = rows.select(*([] if is_single else [KEY]), functions.col(quoted(order_by)))
    ends = [measure(order_by, hot[name].combine_chunks()).values for name in (FIRST, LAST)]
    most = [max(1, n // (parts * UNEVEN)) for n, parts in zip(hot[ROWS].to_pylist(), wanted, strict=True)]
    counts = _evenly(rows, order_by, *ends)
    for _ in range(ROUNDS - 1):
        finer = [
            refined(each, first, last, limit) for each, first, last, limit in zip(counts, *ends, most, strict=True)
        ]
        if all(len(new) == len(old.starts) for new, old in zip(finer, counts, strict=True)):
            break
        counts = _count(rows, order_by, finer)
    return counts


def _evenly(rows: DataFrame, order_by: str, firsts: Any, lasts: Any) -> list[Counts]:
    """Count in stretches of one width. Whole numbers can be divided by it, so that no row has to leave Spark."""
    number, low = _as_number(rows.schema[order_by]), firsts.min()
    if number is None or int(lasts.max()) - int(low) > FARTHEST:
        return _count(rows, order_by, [between(*each, STRETCHES) for each in zip(firsts, lasts, strict=True)])
    width = max(1, -(-int((lasts - firsts).max()) // STRETCHES))
    place = functions.expr(f"({number} - {low}L) div {width}L").alias(PLACE)
    key = functions.col(KEY) if KEY in rows.columns else functions.lit(0).alias(KEY)
    found = rows.select(key, place).groupBy(KEY, PLACE).count().toArrow()
    keys, places = found[KEY].to_numpy(), found[PLACE].fill_null(0).to_numpy()
    counted = []
    for k, (first, last) in enumerate(zip((firsts - low) // width, (lasts - low) // width, strict=True)):
        counts = np.zeros(last - first + 1, np.int64)
        np.add.at(counts, np.clip(places[keys == k] - first, 0, last - first), found["count"].to_numpy()[keys == k])
        counted.append(Counts(low + np.arange(first + 1, last + 1) * width, counts))
    return counted


def _as_number(field: StructField) -> str | None:
    """The number of an order value as Spark computes it, if it can do so exactly and whatever its time zone."""
    if isinstance(field.dataType, IntegralType):
        return f"CAST({quoted(field.name)} AS bigint)"
    functions_of = {TimestampType: "unix_micros", DateType: "unix_date"}
    name = functions_of.get(type(field.dataType))
    return None if name is None else f"{name}({quoted(field.name)})"


def _count(rows: DataFrame, order_by: str, starts: list[Any]) -> list[Counts]:
    """Count in stretches that begin anywhere."""
    counted = rows.mapInArrow(task(lambda: Counting(order_by, starts)), f"{PLACE} int, {ROWS} bigint")
    found = counted.groupBy(PLACE).agg(functions.sum(ROWS).alias(ROWS)).toArrow()
    firsts = Places(order_by, starts).firsts
    counts = np.zeros(firsts[-1], np.int64)
    counts[found[PLACE].to_numpy()] = found[ROWS].to_numpy()
    return [Counts(each, part) for each, part in zip(starts, np.split(counts, firsts[1:-1]), strict=True)]


class Counting:
    """Batches of order values in, rows by stretch out."""

    def __init__(self, order_by: str, starts: Sequence[Any]) -> None:
        self._places = Places(order_by, starts)
        self._counts = np.zeros(self._places.firsts[-1], np.int64)

    def push(self, batch: Any) -> Iterator[Any]:
        """Take a batch."""
        self._counts += np.bincount(self._places.of(batch), minlength=len(self._counts))
        return iter(())

    def finish(self) -> Iterator[Any]:
        """What was counted."""
        found = np.flatnonzero(self._counts)
        yield pa.RecordBatch.from_arrays([pa.array(found, pa.int32()), pa.array(self._counts[found])], [PLACE, ROWS])


def between(first: Any, last: Any, n: int) -> Any:
    """Numbers after the first and up to the last, n - 1 of them at most, evenly."""
    if first.dtype.kind == "i":
        low, high = int(first), int(last)
        values = np.array([low + (high - low) * k // n for k in range(1, n)], np.int64)
    else:
        part = np.arange(1, n) / n
        values = first * (1 - part) + last * part
    return np.unique(values[(values > first) & (values <= last)])


def refined(counts: Counts, first: Any, last: Any, most: int) -> Any:
    """Where stretches begin if those of more than so many rows are cut; the same if none can be."""
    edges = np.concatenate([[first], counts.starts, [last]])
    heavy = np.flatnonzero(counts.counts > most).tolist()
    more = [between(edges[k], edges[k + 1], max(FINER, STRETCHES // len(heavy))) for k in heavy]
    return np.unique(np.concatenate([counts.starts, *more]))


# --- slices ----------------------------------------------------------------------------------------


def slices_of(hot: HotKey, counted: Counts, bounds: Sequence[Any], portable: Sequence[bool]) -> Slices:
    """Cut the ranges of a key into slices."""
    reaches = [Reach(hot, bound, is_portable=able) for bound, able in zip(bounds, portable, strict=True)]
    ranges = hot.edges.values[:-1]
    is_cut = any(reach.has_middle(r) for reach in reaches for r in range(hot.n_ranges))
    begins = [] if is_cut else [[_begin(reach, r, counted) for r in range(hot.n_ranges)] for reach in reaches]
    even = counted.ranges(max(1, int(counted.counts.sum()) // SLICE)).starts
    told = np.array([each for lane in begins for each in lane if each is not None], ranges.dtype)
    starts = np.unique(np.concatenate([ranges, even, told]))
    owners = np.searchsorted(ranges, starts, "right").tolist()
    fronts = tuple(
        tuple(0 if each is None else int(np.searchsorted(starts, each, "right")) for each in lane) for lane in begins
    )
    return Slices(starts, (0, *owners), None if is_cut else fronts)


def _begin(reach: Reach, r: int, counted: Counts) -> Any:
    """Where the front of range r begins, as a number of the order column; None: with the first row."""
    if r == 0:
        return None
    numbers = [reach.earliest(r)]
    row = reach.first_row(r)
    if row is not None:
        numbers.append(counted.at_row(row))
    least = np.iinfo(np.int64).min if counted.starts.dtype.kind == "i" else -np.inf
    return max((each for each in numbers if each is not None and each > least), default=None)
