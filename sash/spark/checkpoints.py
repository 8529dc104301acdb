"""What a checkpoint says of the stream it was made by, read from its state: the number of shards.

Rows are packed by shard before any state is seen, so their number has to be known when a query is planned. Every shard
notes it in its head, which Spark's reader of state finds wherever the checkpoint is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import SparkRuntimeException

from sash.spark.seven_bits import from_texts
from sash.spark.shards import KINDS
from sash.streams.plans import Plan
from sash.streams.shard import HEAD, Head
from sash.streams.slices import signature_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTHING_YET = "STDS_COMMITTED_BATCH_UNAVAILABLE"


def recorded_shards(session: SparkSession, checkpoint: str, plan: Plan) -> int | None:
    """Into how many shards the state of a checkpoint is divided; None if there is no state of this plan.

    None also if there is a space in its path, which Spark's reader writes as %20 and then does not find.
    """
    wanted = {**signature_of(plan), "shards": ""}
    for number in _operators(session, checkpoint):
        head = _head(session, checkpoint, number)
        if head is not None and {**head.signature, "shards": ""} == wanted:
            return int(head.signature["shards"])
    return None


def _operators(session: SparkSession, checkpoint: str) -> list[int]:
    """The operators of a checkpoint that have state like Sash's: a query can have other ones beside."""
    found = session.read.format("state-metadata").load(checkpoint).select("operatorId", "operatorProperties").collect()
    return [row[0] for row in found if all(f'"{kind}"' in (row[1] or "") for kind in (HEAD, *KINDS))]


def _head(session: SparkSession, checkpoint: str, operator: int) -> Head | None:
    """The head of any shard; None if no micro-batch was committed."""
    reader = session.read.format("statestore").option("operatorId", operator).option("stateVarName", HEAD)
    try:
        rows = reader.load(checkpoint).select("value.data").limit(1).collect()
    except SparkRuntimeException as error:
        if error.getCondition() == NOTHING_YET:
            return None
        raise
    return Head.load(bytes(from_texts([rows[0]["data"]])[0])) if rows else None
