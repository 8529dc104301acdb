"""Batch: a spec over a Spark table is one shuffle by key, one sort by key and order, and one pass over each partition.

    table --> repartition by `by` --> sort by (by, order_by) --> mapInArrow: a pass (passing) --> table with answers

Everything is said in terms of DataFrames, so that it works through Spark Connect too. Nothing is collected. A key too
large for one task goes another way, if it is asked for: splitting.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sash.spark.looking import look
from sash.spark.passing import Pass
from sash.spark.schemas import answer_schema
from sash.spark.shipping import pack, task, unpack
from sash.spark.splitting import answer_split, others

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.frames.spec import Spec

ZONE = "spark.sql.session.timeZone"


def answer(specs: Sequence[Spec], table: DataFrame) -> DataFrame:
    """Answer specs with the same keys and order over a Spark table."""
    zone = str(table.sparkSession.conf.get(ZONE))
    announced, packed = answer_schema(specs, table.schema, zone), pack(specs)
    found = look(specs, table, zone)
    if found is None:
        _warn_of_one_task(specs)
        return _passed(specs, table, packed, announced)
    hot = answer_split(specs, table, found, packed, announced)
    return hot if found.is_all else hot.union(_passed(specs, others(specs, table, found.keys), packed, announced))


def _warn_of_one_task(specs: Sequence[Spec]) -> None:
    """Python shows a warning once, however often it is given."""
    placement = specs[0].placement
    if not specs[0].window.by and not placement.is_presorted and placement.ranges is None:
        warnings.warn(
            "this window has no by, so all rows of the Spark table go through one task. For a large table say "
            "spec.split_hot_keys(), or spec.split_hot_keys(False) if that is what you want",
            UserWarning,
            stacklevel=6,
        )


def _passed(specs: Sequence[Spec], table: DataFrame, packed: bytes, announced: tuple[Any, dict[str, Any]]) -> DataFrame:
    schema, types = announced
    return arranged(specs, table).mapInArrow(task(lambda: Pass(unpack(packed), types)), schema)


def arranged(specs: Sequence[Spec], table: DataFrame) -> DataFrame:
    """The rows of a key in one partition, in order."""
    window = specs[0].window
    if window.grid is not None and window.grid.rows is None:
        table = table.where(table[window.order_by[0]].isNotNull())  # a grid in time has no place for them
    if all(spec.placement.is_presorted for spec in specs):
        return table
    table = table.repartition(*window.by) if window.by else table.repartition(1)
    return table.sortWithinPartitions(*window.by, *window.order_by)
