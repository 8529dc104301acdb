"""Streams in Spark: from files to files, stopped and started again, against the same spec over all rows at once.

What a shard does is tested without Spark, in tests/streams; here is what only Spark can show: its watermark, timers,
state, schemas and errors.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as fn
from pyspark.sql.streaming import StatefulProcessor

import sash
from sash.spark import streaming
from sash.spark.pieces import PIECE_BYTES
from sash.spark.planes import expand
from sash.spark.seven_bits import from_texts
from sash.spark.shards import BLOCKS, DATA, NUMBER, ROWS_UNPACKED, packing, place_of, read, unpacking
from sash.spark.streaming import planned, with_hashes
from sash.streams.contract import HASH
from sash.streams.plans import Plan
from sash.streams.shard import HEAD, Head

EPOCH = datetime(2024, 3, 30, tzinfo=UTC)
W = sash.window(by="k", order_by=["ts", "id"])
AGGREGATES = {"n": sash.count(), "total": sash.sum("x"), "who": sash.argmax("x", "s"), "ids": sash.collect("id")}
SCHEMA = "id long, k string, ts timestamp, x long, s string, b boolean"
TYPES = pa.schema(
    [
        ("id", pa.int64()), ("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.int64()),
        ("s", pa.string()), ("b", pa.bool_()),
    ]
)  # fmt: skip
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ZONE = "spark.sql.session.timeZone"


def row(number, key, minutes, x=1):
    """A row so many minutes after the beginning."""
    time = None if minutes is None else EPOCH + timedelta(minutes=minutes)
    return {"id": number, "k": key, "ts": time, "x": x, "s": f"bike {number % 7}", "b": number % 5 == 0}


def disordered(n=240, seed=3):
    """Rows in the order of their coming: up to 10 minutes late, a few keys, one of them null; ties in time."""
    random = np.random.default_rng(seed)
    minutes, delays = random.integers(0, 120, n), random.integers(0, 10, n)
    keys = random.choice(["a", "a", "b", "c", "", None], n)
    rows = [row(number, keys[number], int(minutes[number]), int(random.integers(-50, 50))) for number in range(n)]
    order = np.argsort(minutes + delays, kind="stable")
    return pa.Table.from_pylist([rows[place] for place in order], TYPES)


LAST = pa.Table.from_pylist([row(10_000, "last", 10_000)], TYPES)  # moves the watermark past all others


class Folder:
    """A stream of files, its checkpoint and its answers."""

    def __init__(self, spark, path):
        self.spark, self.path, self.n_files = spark, path, 0
        (path / "in").mkdir()

    def add(self, *tables):
        """Let files arrive, one after the other."""
        for table in tables:
            place = self.path / "in" / f"{self.n_files:03}.parquet"
            pq.write_table(table, place)
            self.n_files += 1
            os.utime(place, (self.n_files, self.n_files))

    def stream(self, schema=SCHEMA, n_files=1):
        """The files as a streaming table, so many in each micro-batch."""
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", n_files)
        return reader.parquet(str(self.path / "in"))

    def checkpoint(self, name="answers"):
        """Where the checkpoint of some answers is."""
        return str(self.path / f"checkpoint-of-{name}")

    def start(self, spec, name="answers", schema=SCHEMA):
        """Begin to answer all files that are there and not answered yet."""
        writer = spec(self.stream(schema)).writeStream.format("parquet").trigger(availableNow=True)
        return writer.options(path=str(self.path / name), checkpointLocation=self.checkpoint(name)).start()

    def run(self, spec, name="answers", schema=SCHEMA):
        """Answer them; the progress of each micro-batch."""
        query = self.start(spec, name, schema)
        query.awaitTermination()
        return query.recentProgress

    def answers(self, name="answers"):
        """All rows given out."""
        return self.spark.read.parquet(str(self.path / name)).toArrow().to_pylist()


@pytest.fixture
def folder(spark, tmp_path):
    return Folder(spark, tmp_path)


@pytest.fixture
def setting(spark):
    """Change a setting of the session for one test."""
    before = {}

    def change(name, value):
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.set(name, value)


def cut(table, n):
    return [table.slice(table.num_rows * k // n, table.num_rows * (k + 1) // n - table.num_rows * k // n)
            for k in range(n)]  # fmt: skip


def multiset(rows):
    return Counter(tuple((name, repr(_plain(value))) for name, value in sorted(row.items())) for row in rows)


def _plain(value):
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


def streamed(spec, **options):
    return spec.stream(lateness="10 minutes", shards=3, **options)


RANGE = W.range("25 minutes").agg(**AGGREGATES)


def test_rows_are_counted_in_the_order_of_arrival_by_spark_s_clock(folder):
    rows = disordered(60)
    folder.add(rows.slice(0, 20), rows.slice(20, 20), rows.slice(40, 20))

    def arriving(stream):
        return stream.withColumn("arrived", fn.current_timestamp())

    arrived = sash.window(by="k", order_by=["arrived", "id"])
    spec = arrived.rows(5).agg(ids=sash.collect("id")).stream(emit="eager")
    folder.run(lambda stream: spec(arriving(stream)))
    found = folder.answers()
    batches = {row["id"]: number // 20 for number, row in enumerate(rows.to_pylist())}
    order = sorted(found, key=lambda row: (batches[row["id"]], row["id"]))
    last = {}
    for each in order:
        before = last.setdefault(each["k"], [])
        before.append(each["id"])
        assert each["ids"] == before[-5:]
    assert len(found) == 60


def test_final_answers_over_a_restart_are_those_of_batch(folder):
    table, spec = disordered(), streamed(RANGE)
    first, *others = cut(table, 4)
    folder.add(first, others[0])
    folder.run(spec)
    folder.add(*others[1:], LAST)
    folder.run(spec)
    assert multiset(folder.answers()) == multiset(spec(table).to_pylist())


def test_eager_answers_over_a_restart_are_over_what_has_come(folder):
    table, spec = disordered(), streamed(sash.together(RANGE, W.rows(3).agg(last=sash.collect("id"))), emit="eager")
    parts = cut(table, 4)
    folder.add(*parts[:2])
    folder.run(spec)
    folder.add(*parts[2:])
    folder.run(spec)
    wanted, arrived = [], 0
    for part in parts:
        wanted += spec(table.slice(0, arrived + part.num_rows)).slice(arrived).to_pylist()
        arrived += part.num_rows
    assert multiset(folder.answers()) == multiset(wanted)


def test_the_last_revisions_over_a_restart_are_the_answers_of_batch(folder):
    table, spec = disordered(), streamed(RANGE, emit="revise")
    parts = cut(table, 4)
    folder.add(*parts[:3])
    progress = folder.run(spec)
    folder.add(parts[3])
    progress += folder.run(spec)
    found = sorted(folder.answers(), key=lambda row: row["revision"])
    assert len({(row["id"], row["revision"]) for row in found}) == len(found)
    last = {row["id"]: {name: value for name, value in row.items() if name != "revision"} for row in found}
    assert multiset(last.values()) == multiset(spec(table).to_pylist())
    assert sum(sash.spark.metrics(each).get("revisions", 0) for each in progress) == len(found) - len(last) > 0


def test_rows_that_are_taken_back_are_given_out_without_answers_and_the_rest_is_as_in_batch(folder):
    """Over a restart, with a count, which is never null in batch; one row is corrected, four are deleted."""
    rows = [{**each, "op": "insert"} for each in disordered().to_pylist()]
    first, second, third = rows[:80], rows[80:160], rows[160:]
    at_once, later, corrected = rows[150], [rows[30], rows[100], rows[130]], rows[110]
    second += [{**each, "op": "delete"} for each in (at_once, later[0])]
    third += [{**each, "op": "delete"} for each in later[1:]]
    third += [{**corrected, "op": "update_preimage"}, {**corrected, "x": 777, "op": "update_postimage"}]
    schema, types = f"{SCHEMA}, op string", TYPES.append(pa.field("op", pa.string()))
    spec = W.range("25 minutes").agg(n=sash.count(), total=sash.sum("x"))
    stream = spec.stream(emit="revise", changes="op", lateness="3 hours", shards=3)
    for part in (first, second, third):
        folder.add(pa.Table.from_pylist(part, types))
        folder.run(stream, schema=schema)
    last = {}
    for each in sorted(folder.answers(), key=lambda each: each["revision"]):
        last[each["id"], each["x"]] = {name: value for name, value in each.items() if name != "revision"}
    found = [each for each in last.values() if each.pop("op") != "delete"]
    away = [each["id"] for each in (at_once, *later)]
    left = [{**each, "x": 777} if each is corrected else each for each in rows if each["id"] not in away]
    assert multiset(found) == multiset(spec(pa.Table.from_pylist(left, TYPES)).to_pylist())
    assert [last[each["id"], each["x"]]["n"] for each in later] == [None] * 3


def test_rows_before_1970_keep_none_waiting(folder):
    """The first timer of a shard would be before the watermark that Spark begins with."""
    minutes_to_1970 = (datetime(1970, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(minutes=1)

    def near_1970(number, key, minutes):
        return row(number, key, minutes_to_1970 + minutes)

    first = [near_1970(10 * key + late, f"k{key}", 2 - 7 * late) for key in range(8) for late in range(2)]
    busy = [[near_1970(1000 + k, "busy", 60 * (k + 1))] for k in range(4)]
    folder.add(*(pa.Table.from_pylist(each, TYPES) for each in (first, *busy)))
    folder.run(W.rows(3).agg(n=sash.count()).stream(lateness="10 minutes", shards=8))
    assert sum(each["id"] < 1000 for each in folder.answers()) == 16


def test_streams_are_answered_side_by_side_in_one_query(folder):
    table, one, two = disordered(), streamed(RANGE), streamed(W.rows(3).agg(**AGGREGATES))
    folder.add(*cut(table, 2), LAST)
    progress = folder.run(lambda stream: one(stream).unionAll(two(stream)))
    assert multiset(folder.answers()) == multiset(one(table).to_pylist()) + multiset(two(table).to_pylist())
    assert sum(sash.spark.metrics(each).get("rows", 0) for each in progress) == 2 * (table.num_rows + 1)


def test_a_stream_with_a_watermark_of_its_own_is_refused_with_the_remedy(folder):
    said = "has a watermark already.*Leave withWatermark out.*lateness"
    for stream in (folder.stream().withWatermark("ts", "1 hour"), streamed(RANGE)(folder.stream())):
        with pytest.raises(sash.UnsupportedError, match=said):
            streamed(W.rows(3).agg(m=sash.count()))(stream)


def test_windows_of_keys_that_fall_silent_are_answered_when_time_has_passed(folder):
    silent = [row(number, f"silent {number}", number) for number in range(12)]
    busy = [[row(100 + k, "busy", 40 * k)] for k in range(1, 4)]
    tables = [pa.Table.from_pylist(rows, TYPES) for rows in [silent, *busy]]
    spec = streamed(W.tumbling("15 minutes").agg(n=sash.count(), ids=sash.collect("id")))
    folder.add(*tables)
    folder.run(spec)
    wanted = spec(pa.concat_tables(tables)).to_pylist()
    closed = [
        each for each in wanted if each["ts"] <= EPOCH + timedelta(minutes=90)
    ]  # of rows that are due: 120 minus the lateness
    assert len(closed) > 12
    assert multiset(folder.answers()) == multiset(closed)


def test_slices_are_put_together_before_they_travel(folder):
    table, far = disordered(), {**row(900, "a", 0), "ts": datetime(2090, 1, 1, tzinfo=UTC)}
    bad = pa.Table.from_pylist([row(901, "b", None), far, row(902, "c", -500)], TYPES)
    spec = streamed(W.tumbling("15 minutes").agg(n=sash.count(), total=sash.sum("x"), top=sash.max("x")))
    first, *rest = cut(table, 4)
    folder.add(first, pa.concat_tables([bad, rest[0]]), *rest[1:], LAST)
    found = [sash.spark.metrics(each) for each in folder.run(spec)]
    wanted = [each for each in spec(table).to_pylist() if each["k"] != "last"]
    assert multiset(each for each in folder.answers() if each["k"] != "last") == multiset(wanted)
    counted = {name: sum(each.get(name, 0) for each in found) for name in ("rows", "far", "without_time", "late")}
    assert counted == {"rows": table.num_rows + 4, "far": 1, "without_time": 1, "late": 1}


@pytest.mark.parametrize(("zone", "kind"), [("UTC", "timestamp"), ("America/New_York", "timestamp"), ("UTC", "date")])
def test_no_code_is_generated_anew_from_one_micro_batch_to_the_next(folder, setting, zone, kind):
    setting(ZONE, zone)
    folder.add(*cut(disordered(), 6))
    spec = sash.window(by="k", order_by="ts").rows(2).agg(n=sash.count()).stream(lateness="10 days")
    table = folder.stream().select("k", fn.col("ts").cast(kind).alias("ts"))
    compiled = folder.spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    counts = []

    def note(answers, number):
        answers.write.format("noop").mode("overwrite").save()
        counts.append(compiled.getCount())

    writer = spec(table).writeStream.foreachBatch(note).option("checkpointLocation", folder.checkpoint())
    writer.trigger(availableNow=True).start().awaitTermination()
    assert counts[2] == counts[5] > 0, "the clock of a micro-batch would be in it"


def test_the_first_and_the_last_of_all_times_have_a_place_or_none(folder):
    spec = sash.window(by="k", order_by="ts").rows(2).agg(n=sash.count()).stream()
    ends = ", ".join(f"timestamp_micros({each})" for each in (-(2**63), 2**63 - 1))
    table = folder.spark.range(1).selectExpr("id k", f"explode(array({ends})) ts")
    assert [each[HASH] is None for each in with_hashes(planned((spec,), table)[0], table).select(HASH).collect()] == [
        False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_rows_are_far_ahead_by_the_clock_to_the_minute(folder, setting, zone, kind):
    setting(ZONE, zone)
    for future in ("3 hours", "1 day", "40 days"):
        spec = sash.window(by="k", order_by="ts").rows(2).agg(n=sash.count()).stream(future=future)
        offsets = [
            f"current_timestamp() + INTERVAL {future} - INTERVAL {minutes} MINUTES" for minutes in (1, -1, 90, -90)
        ]
        times = [f"CAST({each} AS {kind})" for each in [*offsets, "current_timestamp() - INTERVAL 9 DAYS"]]
        table = folder.spark.range(1).selectExpr("id k", f"explode(array({', '.join(times)})) ts")
        found = with_hashes(planned((spec,), table)[0], table).collect()
        assert [each[HASH] is None for each in found] == [False, True, False, True, False]


def test_progress_says_what_was_counted(folder, capsys):
    given = [row(0, "a", 0), row(1, "a", 60)], [row(2, "a", 49), row(3, "b", 50), row(4, "b", None)], [row(5, "b", 90)]
    folder.add(*(pa.Table.from_pylist(rows, TYPES) for rows in given))
    query = folder.start(streamed(W.rows(2).agg(n=sash.count())))
    sash.spark.watch(query)
    found = [each for each in map(sash.spark.metrics, query.recentProgress) if each.get("rows")]
    total = sash.spark.metrics(query)
    assert [each["rows"] for each in found] == [2, 3, 1]
    assert (total["rows"], total["late"], total["without_time"], total["answers"]) == (6, 1, 1, 3)
    assert total["bytes_written"] > 0 < total["blocks_written"]
    assert total["keys"] > 0 < total["engine_us"]
    assert found[-1]["state_bytes"] > 0
    assert total["algorithm"] == "subtract_on_evict"
    assert 0 < total["p50_ms"] <= total["p99_ms"] == total["max_ms"] == max(each["batch_ms"] for each in found)
    assert len(folder.answers()) == total["answers"]
    shown = capsys.readouterr().err
    assert "micro-batch 1: 2 rows in" in shown
    assert "micro-batch 2: 3 rows in" in shown


def test_to_be_watched_a_query_needs_rich_and_says_so(monkeypatch):
    monkeypatch.delitem(sys.modules, "sash.streams.watching", raising=False)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(sash.UnsupportedError, match=r"the rich package, which is missing.*sash\[cli\]"):
        sash.spark.watch(None)


def test_rows_that_cannot_be_placed_are_given_out_aside(folder):
    far = 60 * 24 * 365 * 100  # in a hundred years: it must not move the watermark
    given = [row(0, "a", 0), row(1, "a", 60), row(2, "a", far)], [row(3, "a", 49), row(4, None, None), row(5, "a", 55)]
    folder.add(*(pa.Table.from_pylist(rows, TYPES) for rows in given), LAST)
    folder.run(streamed(W.rows(2).agg(ids=sash.collect("id")), late="aside"))
    found = {row["id"]: (row["is_late"], row["ids"]) for row in folder.answers()}
    aside = dict.fromkeys((2, 3, 4), (True, None))
    assert found == {0: (False, [0]), 5: (False, [0, 5]), 1: (False, [5, 1])} | aside


def test_a_late_row_ends_the_query_if_asked_to(folder):
    folder.add(pa.Table.from_pylist([row(0, "a", 60)], TYPES), pa.Table.from_pylist([row(1, "a", 9)], TYPES))
    with pytest.raises(StreamingQueryException, match=r"1 rows are behind the watermark .*the first is .*late='drop'"):
        folder.run(streamed(W.rows(2).agg(n=sash.count()), late="raise"))


def test_a_changed_spec_is_refused_by_an_old_checkpoint(folder):
    folder.add(*cut(disordered(40), 2))
    folder.run(streamed(RANGE))
    folder.add(LAST)
    said = r"this checkpoint is of another query: spec 0 was .*25 minutes.*, now it is .*26 minutes.*checkpointLocation"
    with pytest.raises(StreamingQueryException, match=said):
        folder.run(streamed(W.range("26 minutes").agg(**AGGREGATES)))
    folder.run(streamed(RANGE))
    assert len(folder.answers()) == 40


class Earlier(StatefulProcessor):
    """A shard whose state is as it was when every kind of block had a map of its own."""

    def __init__(self, plan):
        pass

    def init(self, handle):
        self._head, self._pages = handle.getValueState("head", DATA), handle.getMapState("page", NUMBER, DATA)

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803
        self._head.update(("head",))
        return iter(())

    def close(self):
        pass


def test_a_checkpoint_with_state_of_another_form_is_refused(folder, monkeypatch):
    folder.add(disordered(40))
    with monkeypatch.context() as patch:
        patch.setattr(streaming, "ShardProcessor", Earlier)
        folder.run(streamed(RANGE))
    folder.add(LAST)
    for options in ({}, {"checkpoint": folder.checkpoint()}):
        with pytest.raises(StreamingQueryException, match="key schema does not match"):
            folder.run(streamed(RANGE, **options))


def test_a_shard_opens_one_variable_of_state_and_has_the_timer_that_its_head_asks_for(folder):
    folder.add(*cut(disordered(60), 3))
    progress = folder.run(streamed(RANGE))
    (operator,) = progress[-1]["stateOperators"]
    opened = operator["customMetrics"]
    assert opened["numMapStateVars"] == operator["numShufflePartitions"]
    assert opened["numValueStateVars"] == opened["numListStateVars"] == 0
    state = folder.spark.read.format("statestore")
    timers = state.option("readRegisteredTimers", "true").load(folder.checkpoint()).collect()
    blocks = state.option("stateVarName", BLOCKS).option("readRegisteredTimers", "false").load(folder.checkpoint())
    heads = blocks.where(f"user_map_key.number = {place_of(HEAD, 0)[0]}").collect()
    dues = {head["key"]["shard"]: next_due(head["user_map_value"]["data"]) for head in heads}
    asked = {shard: -(-due // 1_000) for shard, due in dues.items() if due is not None}
    assert asked, "the last rows wait"
    there = [(timer["key"]["shard"], timer["expiration_timestamp_ms"]) for timer in timers]
    assert sorted(there) == sorted(asked.items())


def next_due(text):
    """When the first row that waits is due, by the head of a shard as it is stored."""
    head = Head.load(bytes(expand(from_texts([text])[0])))
    return min((first for _, first, *_ in head.pieces), default=None)


def test_a_query_that_goes_on_has_the_shards_of_its_checkpoint(folder):
    table = disordered(60)
    first, second = cut(table, 2)
    spec = RANGE.stream(lateness="10 minutes", shards=3, checkpoint=folder.checkpoint())
    folder.add(first)
    folder.run(spec)  # there is nothing yet to be read from it
    folder.add(second, LAST)
    other = RANGE.stream(lateness="10 minutes", shards=5)
    with pytest.raises(StreamingQueryException, match=r"shards was 3, now it is 5, and stream\(checkpoint="):
        folder.run(other)
    folder.run(RANGE.stream(lateness="10 minutes", shards=5, checkpoint=folder.checkpoint()))
    assert multiset(folder.answers()) == multiset(RANGE(table).to_pylist())


def at_rows(rows, n_shards):
    """A plan that answers at rows like these."""
    spec = sash.window(order_by="ts").rows(2).agg(n=sash.count()).stream()
    return Plan((spec,), rows.drop_columns(HASH).schema, {"n": pa.int64()}, n_shards)


def test_the_first_shard_is_called_in_every_micro_batch():
    rows = pa.table(
        {HASH: pa.array([4, 5, 4], pa.int64()), "x": [1, 2, 3], "ts": pa.array([7, 9, 8], pa.timestamp("us"))}
    )
    (packed,) = packing(at_rows(rows, 3))(rows.to_batches())
    assert packed.column("newest").to_pylist() == [9, 9, 9]
    assert packed.column("shard").to_pylist() == [0, 1, 2]
    found = [read(each.as_py()).column("x").to_pylist() for each in packed.column("packed")]
    assert found == [[], [1, 3], [2]]


def test_rows_are_packed_in_small_pieces_and_unpacked_in_large_batches():
    n = 100_000
    hashes, times = pa.array(np.arange(n) % 2), pa.array(np.arange(n), pa.timestamp("us"))
    rows = pa.table({HASH: hashes, "x": pa.array(range(n)), "ts": times})
    (packed,) = packing(at_rows(rows, 2))(rows.to_batches())
    assert max(len(each.as_py()) for each in packed.column("packed")) < PIECE_BYTES * 1.1
    shards = [read(each.as_py()) for each in packed.column("packed")]
    for shard in (0, 1):  # in the order they came in
        own = [each for each, label in zip(shards, packed.column("shard").to_pylist(), strict=True) if label == shard]
        assert pa.concat_tables(own).column("x").to_pylist() == list(range(shard, n, 2))
    unpacked = list(unpacking()([packed]))
    assert [each.num_rows for each in unpacked][:1] >= [ROWS_UNPACKED]
    assert sum(each.num_rows for each in unpacked) == n


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_times_without_a_zone_are_the_same_in_all_of_them(folder, setting, zone):
    setting(ZONE, zone)
    local = pa.schema([("id", pa.int64()), ("k", pa.string()), ("ts", pa.timestamp("us"))])
    table = disordered(60).select(local.names).cast(local)
    parts = cut(table, 2)
    folder.add(*parts, LAST.select(local.names).cast(local))
    spec = streamed(W.range("25 minutes").agg(ids=sash.collect("id")))
    progress = folder.run(spec, schema="id long, k string, ts timestamp_ntz")
    assert sum(sash.spark.metrics(each).get("late", 0) for each in progress) == 0
    assert multiset(folder.answers()) == multiset(spec(table).to_pylist())


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_days_are_the_same_in_all_zones(folder, setting, zone):
    setting(ZONE, zone)
    days = [[1, 2, 3], [2, 3, 4], [4, 4, 5, 30]]  # the last moves the watermark
    tables = [
        pa.table({"id": pa.array([10 * k + n for n in range(len(each))]), "day": [date(2024, 3, n) for n in each]})
        for k, each in enumerate(days)
    ]
    folder.add(*tables)
    spec = sash.window(order_by="day").range("2 days").agg(ids=sash.collect("id")).stream(lateness="1 day")
    progress = folder.run(spec, schema="id long, day date")
    assert sum(sash.spark.metrics(each).get("late", 0) for each in progress) == 0
    wanted = spec(pa.concat_tables(tables)).to_pylist()
    assert multiset(folder.answers()) == multiset(each for each in wanted if each["day"].day < 29)


def test_names_with_spaces_are_names(folder):
    renamed = {"k": "the key", "ts": "the time", "x": "an x"}
    table = disordered(30).select(["id", *renamed])
    table = table.rename_columns(["id", *renamed.values()])
    folder.add(table)
    spec = sash.window(by="the key", order_by=["the time", "id"]).rows(2).agg(total=sash.sum("an x"))
    folder.run(spec.stream(emit="eager"), schema="id long, `the key` string, `the time` timestamp, `an x` long")
    assert multiset(folder.answers()) == multiset(spec(table).to_pylist())


def heavy(total, old):
    return total.n > 3


REFUSED = {
    "integer order": (sash.window(order_by="x").rows(2).agg(n=sash.count()), {}, "ordered by time.*'x' is int64"),
    "eager grid": (W.tumbling("1 hour").agg(n=sash.count()), {"emit": "eager"}, "is due when they have come.*final"),
    "eager every": (W.rows(3).every(rows=2).agg(n=sash.count()), {"emit": "revise"}, "emit='final'"),
    "policy": (W.evict_while(heavy, n=sash.count()).agg(n=sash.count()), {"emit": "eager"}, "what the policy left"),
    "late grid": (W.tumbling("1 hour").agg(n=sash.count()), {"late": "aside"}, "late='drop'"),
    "failing grid": (W.tumbling("1 hour").agg(n=sash.count()), {"failing": "aside"}, "failing='drop'"),
    "failing": (W.rows(2).agg(failure=sash.count()), {"failing": "aside"}, "'failure'.*rename"),
    "by": (sash.window(by="kk", order_by="ts").rows(2).agg(n=sash.count()), {}, "'kk'.*Did you mean 'k'"),
    "order": (sash.window(order_by="tss").rows(2).agg(n=sash.count()), {}, "'tss'.*Did you mean 'ts'"),
    "column": (W.rows(2).agg(n=sash.sum("xx")), {}, "'xx'.*Did you mean 'x'"),
    "changes": (W.rows(2).agg(n=sash.count()), {"emit": "revise", "changes": "op"}, "changes: .*'op'"),
    "fine grid": (W.range("1 hour").every("1500 ns").agg(n=sash.count()), {}, "microseconds"),
    "fine lateness": (W.rows(2).agg(n=sash.count()), {"lateness": "1500 ns"}, "microseconds"),
    "own name": (W.rows(2).agg(revision=sash.count()), {"emit": "revise"}, "'revision'.*rename"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_stream_cannot_do_is_said_before_it_starts(name, folder):
    spec, options, said = REFUSED[name]
    with pytest.raises(sash.SashError, match=said):
        spec.stream(**options)(folder.stream())


def test_a_column_that_the_stream_lacks_is_named_before_it_starts(folder):
    with pytest.raises(sash.UnknownNameError, match="'s'"):
        streamed(RANGE)(folder.stream("id long, k string, ts timestamp, x long"))


def test_another_state_store_than_rocksdb_is_refused_with_the_remedy(folder, setting):
    setting(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    with pytest.raises(sash.UnsupportedError, match=r"RocksDB.*HDFSBacked.*sash\.spark\.session"):
        streamed(RANGE)(folder.stream())


@sash.aggregate(state=object)
class Reciprocals:
    """Fails at zero."""

    def lift(x):
        return 1 / x

    def combine(older, newer):
        return older + newer


def test_an_aggregate_that_fails_names_itself(folder):
    folder.add(pa.Table.from_pylist([row(0, "a", 0, 4), row(1, "a", 1, 0)], TYPES))
    spec = W.rows(2).agg(parts=sash.agg(Reciprocals, "x"))
    with pytest.raises(StreamingQueryException, match=r"(?s)Reciprocals.*'a'.*division by zero|division by zero.*'a'"):
        folder.run(spec.stream(emit="eager"))


def test_rows_that_an_aggregate_cannot_take_are_given_out_aside_with_the_reason(folder):
    rows = [row(0, "a", 0, 4), row(1, "a", 1, 0), row(2, "a", 2, 2), row(3, "b", 2, 0)]
    folder.add(pa.Table.from_pylist(rows, TYPES), LAST)
    spec = W.rows(2).agg(parts=sash.agg(Reciprocals, "x"))
    progress = folder.run(streamed(spec, late="aside", failing="aside"))
    found = {row["id"]: (row["parts"], row["is_late"], row["failure"]) for row in folder.answers()}
    reason = "ZeroDivisionError: division by zero, in parts=Reciprocals('x')"
    assert found == {0: (0.25, False, None), 2: (0.75, False, None), **dict.fromkeys((1, 3), (None, False, reason))}
    assert sum(sash.spark.metrics(each).get("failed", 0) for each in progress) == 2
