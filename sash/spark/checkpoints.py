"""What a checkpoint says of the stream it was made by, read from its state: the number of shards.

Rows are packed by shard before any state is seen, so their number has to be known when a query is planned. Every shard
notes it in its head, which Spark's reader of state finds wherever the checkpoint is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.errors import SparkRuntimeException

from sash.spark.planes import expand
from sash.spark.seven_bits import from_texts
from sash.spark.shards import BLOCKS, place_of
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
    return [number for number, properties in found if _is_ours(json.loads(properties or "{}"))]


def _is_ours(properties: dict[str, Any]) -> bool:
    variables = {each["stateName"]: each["stateVariableType"] for each in properties.get("stateVariables", ())}
    return {name: kind for name, kind in variables.items() if not name.startswith("$")} == {BLOCKS: "MapState"}


def _head(session: SparkSession, checkpoint: str, operator: int) -> Head | None:
    """The head of any shard; None if no micro-batch was committed."""
    reader = session.read.format("statestore").option("operatorId", operator).option("stateVarName", BLOCKS)
    try:
        blocks = reader.load(checkpoint).where(f"user_map_key.number = {place_of(HEAD, 0)[0]}")
        rows = blocks.select("user_map_value.data").limit(1).collect()
    except SparkRuntimeException as error:
        if error.getCondition() == NOTHING_YET:
            return None
        raise
    return Head.load(bytes(expand(from_texts([rows[0]["data"]])[0]))) if rows else None
