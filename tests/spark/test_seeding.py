"""History before a stream: how it comes to the shards in pieces, in PySpark's tester; and once from files, in Spark.

What a shard makes of its history is tested without Spark, in tests/streams/test_seeding.py.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

import sash
from sash.spark.shards import N_PIECES, PACKED, ShardProcessor, packing, read
from sash.spark.streaming import reach_into_history
from sash.streams.contract import HASH
from sash.streams.plans import Plan
from tests.spark.test_streaming import LAST, Folder, cut, disordered, multiset, row
from tests.spark.test_streaming import TYPES as RIDES
from tests.streams.simulating import announced

N_SHARDS, NEVER_LATE = 3, 10**12
W = sash.window(by="k", order_by=["ts", "id"])
TYPES = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us")), ("b", pa.bool_())])
LATENESS = "5 ms"


def first_too_old(total, old):
    return total.n > 4


WINDOWS = {
    "rows": W.rows(4),
    "range": W.range("9 ms"),
    "session": W.session("3 ms"),
    "since": W.since("b"),
    "everything": W.everything(),
    "every 3 rows": W.rows(4).every(rows=3),
    "policy": W.evict_while(first_too_old, n=sash.count()),
    "tumbling": W.tumbling("8 ms"),
}
ON_GRIDS = ("tumbling",)


def rows_of(times, first=0):
    """Rows of a few keys at these milliseconds, in this order."""
    rows = [
        {"id": first + n, "k": (first + n) % 4, "ts": 1_000 * time, "b": time % 7 == 0} for n, time in enumerate(times)
    ]
    return pa.Table.from_pylist(rows, TYPES)


def packed_in(plan, rows, sizes, **options):
    """Rows as they are packed in partitions of these sizes, and the rest in one: the pieces of each shard."""
    pieces = {shard: [] for shard in range(N_SHARDS)}
    hashed, begin = rows.append_column(HASH, rows.column("k")), 0
    for size in [*sizes, rows.num_rows]:
        for batch in packing(plan, **options)(hashed.slice(begin, size).to_batches()):
            for piece in batch.to_pylist():
                pieces[piece["shard"]].append(piece)
        begin += size
    return pieces


class Seeded:
    """A stream in PySpark's tester, which has been given pieces of history."""

    def __init__(self, spec, history, sizes):
        self.plan = Plan((spec,), TYPES, announced(spec, rows_of([1])), N_SHARDS)
        state = [
            (shard, Row(**piece, **{N_PIECES: len(pieces)}))
            for shard, pieces in packed_in(self.plan, history, sizes, n_called=N_SHARDS).items()
            for piece in pieces
        ]
        processor = ShardProcessor(self.plan)
        self.tester = TwsTester(processor, state, timeMode="EventTime", eventTimeExtractor=lambda row: NEVER_LATE)

    def answers(self, stream):
        """What it gives out for the rows of one micro-batch, and when the watermark has passed all."""
        found = []
        for shard, pieces in packed_in(self.plan, stream, []).items():
            if pieces:
                found += self.tester.test(shard, [Row(shard=shard, **{PACKED: each[PACKED]}) for each in pieces])
        found += self.tester.setWatermark(10**9)
        return [row for each in found if each[PACKED] for row in read(each[PACKED]).to_pylist()]


@pytest.mark.parametrize("name", WINDOWS)
@given(times=st.permutations(range(0, 60, 2)), n=st.integers(1, 30), sizes=st.lists(st.integers(0, 9), max_size=5))
def test_history_in_any_pieces_is_the_same_history(name, times, n, sizes):
    spec = WINDOWS[name].agg(ids=sash.collect("id"), n=sash.count()).stream(lateness=LATENESS)
    history, stream = rows_of(times[:n]), rows_of(range(60, 90), first=n)
    found = Seeded(spec, history, sizes).answers(stream)
    assert multiset(found) == multiset(Seeded(spec, history, []).answers(stream))
    if name not in ON_GRIDS:
        wanted = spec(pa.concat_tables([history, stream])).to_pylist()
        assert multiset(found) == multiset(row for row in wanted if row["id"] >= n)


def test_what_no_window_can_reach_is_not_shipped_unless_rows_are_counted():
    def reach(window):
        return reach_into_history(Plan((window.agg(n=sash.count()).stream(lateness=LATENESS),), TYPES, {}))

    assert reach(W.range("1 second", lag="1 ms")) == 1_001_000 + 5_000 + 2_000
    assert [reach(WINDOWS[name]) for name in WINDOWS if name != "range"] == [None] * (len(WINDOWS) - 1)
    assert reach(W.range("1 second").every(rows=2)) is None


@pytest.fixture
def folder(spark, tmp_path):
    return Folder(spark, tmp_path)


def seeding(spec, history):
    """What is called on a stream, with history in several partitions."""
    return spec.stream(lateness="10 minutes", shards=4).seed(history.repartition(5))


def history_of(folder, table):
    """A table in a file, with a date that nobody can have meant, and a row without one."""
    wrong = [{**row(-1, "a", 0), "ts": datetime(2999, 1, 1, tzinfo=UTC)}, row(-2, "b", None)]
    pq.write_table(pa.concat_tables([table, pa.Table.from_pylist(wrong, RIDES)]), folder.path / "history.parquet")
    return folder.spark.read.parquet(str(folder.path / "history.parquet"))


def test_a_stream_after_history_answers_as_batch_over_both(folder):
    table = disordered()
    others = pa.Table.from_pylist([row(9_000 + n, f"new {n}", 100) for n in range(8)], RIDES)
    history, *parts = cut(table, 3)
    early = pa.Table.from_pylist([row(9_100 + n, f"early {n}", 1) for n in range(8)], RIDES)
    folder.add(pa.concat_tables([parts[0], early]), pa.concat_tables([parts[1], others]), LAST)
    w = sash.window(by="k", order_by=["ts", "id"])
    spec = sash.together(
        w.session("4 minutes").agg(ids=sash.collect("id")),
        w.everything().agg(first=sash.first("id"), n=sash.count()),
        w.rows(5).agg(top=sash.argmax("x", "s")),
    )
    progress = folder.run(seeding(spec, history_of(folder, history)))
    wanted = spec(pa.concat_tables([table, others])).to_pylist()
    known = set(history.column("id").to_pylist())
    assert multiset(folder.answers()) == multiset(each for each in wanted if each["id"] not in known)
    assert sum(sash.spark.metrics(each).get("late", 0) for each in progress) == early.num_rows


def test_the_instant_in_which_history_ends_is_answered_also_for_keys_that_do_not_go_on(folder):
    history = pa.Table.from_pylist([row(n, f"silent {n}", 52 + n) for n in range(6)], RIDES)
    folder.add(pa.Table.from_pylist([row(10, "silent 5", 58), row(11, "busy", 63)], RIDES), LAST)
    spec = sash.window(by="k", order_by=["ts", "id"]).tumbling("15 minutes").agg(ids=sash.collect("id"))
    folder.run(seeding(spec, history_of(folder, history)))
    assert sorted(each["ids"] for each in folder.answers()) == [[0], [1], [2], [3], [4], [5, 10], [11]]


def test_of_history_only_what_windows_can_reach_is_read_into_them(folder):
    table, w = disordered(), sash.window(by="k", order_by=["ts", "id"])
    history, *parts = cut(table, 3)
    folder.add(*parts, LAST)
    spec = w.range("25 minutes").agg(ids=sash.collect("id"))
    folder.run(seeding(spec, history_of(folder, history)))
    known = set(history.column("id").to_pylist())
    assert multiset(folder.answers()) == multiset(each for each in spec(table).to_pylist() if each["id"] not in known)


def test_rows_that_spark_would_give_in_parts_end_the_query_instead_of_being_late(spark, tmp_path, configured):
    """With history, Spark cuts the pieces of a shard by the size of Arrow's batches; each part would move its time."""
    configured(batch=2, partition_bytes="1k", open_cost=100_000)
    folder = Folder(spark, tmp_path)
    folder.add(*(pa.Table.from_pylist([row(10 * k, "a", 100 - 10 * k)], RIDES) for k in range(6)))
    pq.write_table(pa.Table.from_pylist([row(1000, "a", 0)], RIDES), tmp_path / "history.parquet")
    spec = W.rows(3).agg(ids=sash.collect("id")).stream(emit="eager", shards=1)
    history, stream = spark.read.parquet(str(tmp_path / "history.parquet")), folder.stream(n_files=6)

    def run():
        writer = spec.seed(history)(stream).writeStream.format("parquet").trigger(availableNow=True)
        writer.options(
            path=str(tmp_path / "out"), checkpointLocation=str(tmp_path / "checkpoint")
        ).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match=r"in parts of spark\.sql\..*maxRecordsPerBatch"):
        run()
    configured(batch=65_536)
    run()
    assert {each["id"] for each in folder.answers("out")} == {0, 10, 20, 30, 40, 50}
