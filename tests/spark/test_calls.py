"""Blocks of a shard in Spark's state, many calls under way at once: what is read is what was written before."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.streaming.tws_tester import TwsTester

from sash.spark.calls import AT_ONCE, Line, OneByOne
from sash.spark.shards import BLOCKS, DATA, NUMBER, SparkBlocks
from sash.streams.pages import HOT, PAGE
from sash.streams.shard import HEAD

MANY = 3 * AT_ONCE + 5


def block(number, turn):
    """A block that tells its number and when it was written; some are larger than what fits a buffer of the line."""
    size = 200_000 if number % 50 == 0 else 20 + number
    return b"%d %d " % (number, turn) + np.random.default_rng(number).bytes(size)


class Walk(StatefulProcessor):
    """Writes, removes and reads blocks, and gives out what it found, by the marks of blocks."""

    def init(self, handle):
        self._blocks, self._own = SparkBlocks(handle), handle.getValueState("own", DATA)

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803
        turn, blocks = sum(1 for _ in rows), self._blocks
        before = blocks.get_many(PAGE, range(MANY))
        for number in range(0, MANY, 2):
            blocks.put(PAGE, number, block(number, turn))
        for number in range(0, MANY, 6):
            blocks.delete(PAGE, number)
        blocks.put(HOT, 0, b"hot")
        blocks.put(HEAD, 0, b"head")
        after = blocks.get_many(PAGE, range(MANY))
        for number in range(1, MANY, 2):
            blocks.put(PAGE, number, block(number, turn))
        blocks.settle()
        is_there = self._own.exists()  # by PySpark's own client, on the same line
        found = {
            "way": type(blocks._line).__name__,
            "before": [marked(each) for each in before],
            "after": [marked(each) for each in after],
            "rest": [blocks.get(kind, 0).decode() for kind in (HOT, HEAD)],
            "chunk": blocks.get("chunk", 7),
            "own": is_there,
        }
        yield Row(found=json.dumps(found))

    def close(self):
        pass


def marked(data):
    return None if data is None else zlib.crc32(data)


def expected(turn):
    """What a block written in a turn is told by."""
    return [zlib.crc32(block(number, turn)) for number in range(MANY)]


def require_right(found, way):
    assert [each["way"] for each in found] == [way] * 2
    first, second = found
    assert first["before"] == [None] * MANY
    assert first["after"] == [mark if n % 2 == 0 and n % 6 else None for n, mark in enumerate(expected(1))]
    assert second["before"] == [None if n % 6 == 0 else mark for n, mark in enumerate(expected(1))]
    news = expected(2)
    assert second["after"] == [
        None if n % 6 == 0 else news[n] if n % 2 == 0 else old for n, old in enumerate(expected(1))
    ]
    assert all((each["rest"], each["chunk"], each["own"]) == (["hot", "head"], None, False) for each in found)


def test_many_calls_under_way_at_once_in_spark(spark, tmp_path):
    (tmp_path / "rows").mkdir()
    for turn in (1, 2):
        spark.range(turn).selectExpr("cast(0 as int) shard", "id").write.parquet(str(tmp_path / f"rows/{turn}"))
    stream = spark.readStream.schema("shard int, id long").option("maxFilesPerTrigger", 1000)
    found = []
    for turn in (1, 2):  # a query that goes on from where the one before ended
        query = (
            stream.parquet(str(tmp_path / f"rows/{{1,{turn}}}"))
            .groupBy("shard")
            .transformWithState(Walk(), "found string", "update", "none")
            .writeStream.foreachBatch(lambda batch, _: found.extend(row["found"] for row in batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .outputMode("update")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    require_right([json.loads(each) for each in found], Line.__name__)


def test_the_same_one_by_one_in_the_tester():
    tester = TwsTester(Walk())
    found = [tester.test(0, [Row(id=n) for n in range(turn)]) for turn in (1, 2)]
    require_right([json.loads(row["found"]) for each in found for row in each], OneByOne.__name__)


class Refusing:
    """A state that refuses what it is asked, as Java does when a state has gone."""

    class sockfile:  # noqa: N801
        write = flush = staticmethod(lambda *_: None)

    def _receive_proto_message(self):
        return 1, "no such state", b""

    def _serialize_to_bytes(self, schema, row):
        return b"key"


def test_a_call_that_is_refused_is_not_lost():
    line = Line(Refusing(), BLOCKS, NUMBER, DATA)
    line.update((1,), ("x",))
    with pytest.raises(PySparkRuntimeError, match="no such state"):
        line.settle()
    with pytest.raises(PySparkRuntimeError, match="no such state"):
        list(line.values([(1,)]))
