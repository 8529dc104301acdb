"""Splitting hot keys: a look at the table, then packed slices instead of rows. Every core works on one key.

    table --> packed by slice, for each range that needs it (slicing) --> shuffle by range
          --> windows longer than a range: what lies between is combined (cutting) --> shuffle by range
          --> each range sorted, and answered with what earlier ones have sent (joining) --> table with answers

Rows of the same order value are in one range. Keys that are not hot go the ordinary way, beside. What is known before
is from looking. All of it is DataFrames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from sash.spark.cutting import Cutting
from sash.spark.joining import Joining
from sash.spark.looking import Found, constant_columns, same_key, with_keys
from sash.spark.schemas import quoted
from sash.spark.shipping import task, unpack
from sash.spark.slicing import RECORD, SLOT, Holding, Packing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.frames.spec import Spec

TYPES = {pa.int32(): IntegerType(), pa.int64(): LongType(), pa.binary(): BinaryType()}
RECORD_TYPE = StructType([StructField(each.name, TYPES[each.type]) for each in RECORD])


def answer_split(specs: Sequence[Spec], table: DataFrame, found: Found, packed: bytes, announced: Any) -> DataFrame:
    """Answer the rows of hot keys; `announced` has the schema of answers and their types."""
    split, (schema, types) = found.split, announced
    rows = with_keys(table, found.keys, specs[0].window.by, is_single=found.is_single)
    left_out = constant_columns(specs, table)
    rows = rows.select(*(functions.col(quoted(name)) for name in rows.columns if name not in left_out))
    records = rows.mapInArrow(task(lambda: Packing(unpack(packed), split, _task_number())), RECORD_TYPE)
    if split.is_cut:
        records = _by_range(records, found, lambda: Cutting(unpack(packed), split), RECORD_TYPE)
    return _by_range(records, found, lambda: Joining(unpack(packed), split, types), schema)


def _by_range(records: DataFrame, found: Found, begin: Callable[[], Any], schema: StructType) -> DataFrame:
    """A pass over each range, with what it is sent in order. Spark sorts it if a worker may be too small for it."""
    moved = records.repartitionById(found.split.n_slots, functions.col(SLOT))
    if found.is_small:
        return moved.mapInArrow(task(lambda: Holding(begin())), schema)
    return moved.sortWithinPartitions(*RECORD.names[:-1]).mapInArrow(task(begin), schema)


def _task_number() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def others(specs: Sequence[Spec], table: DataFrame, keys: DataFrame) -> DataFrame:
    """The rows of keys that are not hot."""
    return table.join(keys, same_key(specs[0].window.by), "left_anti")
