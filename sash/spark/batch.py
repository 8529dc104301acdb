"""Batch: a spec over a Spark table is one shuffle by key, one sort by key and order, and one pass over each partition.

    table --> repartition by `by` --> sort by (by, order_by) --> mapInArrow: a pass (passing) --> table with answers

Everything is said in terms of DataFrames, so that it works through Spark Connect too. Nothing is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sash.errors import UnsupportedError
from sash.spark.passing import Pass
from sash.spark.schemas import answer_schema
from sash.spark.shipping import pack, unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.frames.spec import Spec

ZONE = "spark.sql.session.timeZone"


def answer(specs: Sequence[Spec], table: DataFrame) -> DataFrame:
    """Answer specs with the same keys and order over a Spark table."""
    require_batch(table)
    schema, types = answer_schema(specs, table.schema, str(table.sparkSession.conf.get(ZONE)))
    return arranged(specs, table).mapInArrow(task(pack(specs), types), schema)


def require_batch(table: DataFrame) -> None:
    """Refuse a stream."""
    if table.isStreaming:
        raise UnsupportedError(
            "this version of Sash does not answer streams. Call the spec on a batch table, or inside foreachBatch"
        )


def arranged(specs: Sequence[Spec], table: DataFrame) -> DataFrame:
    """The rows of a key in one partition, in order."""
    window = specs[0].window
    if window.grid is not None and window.grid.rows is None:
        table = table.where(table[window.order_by[0]].isNotNull())  # a grid in time has no place for them
    if all(spec.placement.is_presorted for spec in specs):
        return table
    table = table.repartition(*window.by) if window.by else table.repartition(1)
    return table.sortWithinPartitions(*window.by, *window.order_by)


def task(packed: bytes, types: dict[str, Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a task does with the batches of its partition."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        answering = Pass(unpack(packed), types)
        for batch in batches:
            yield from answering.push(batch)
        yield from answering.finish()

    return run
