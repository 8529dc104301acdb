"""Streams: answers for every event beside Spark's hopping windows, and beside the least any Python can do to a stream.

Rows come from Parquet files, one a micro-batch, each of four row groups, so that two tasks can read it; they go
nowhere (noop). The time of a micro-batch is Spark's own `addBatch`; the shortest of the steady ones counts, and the
noise is how far above it the middle one was. Java's compilers are busy for ten micro-batches or so: where a ratio near
1 is looked for, twenty are taken and ten left out, on both sides. `stateless` is the same stream through repartition
and a mapInArrow that gives batches back as they are. Answers on a grid are compared with Spark's own before either is
timed.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

import sash
from bench.bars import at_least, at_most, noise_of, of
from bench.citibike import FOLDERS
from bench.experiments.contract import Claim, Row
from bench.measuring import Spent, spent_of
from sash.cli import flights

NAME = "stream"
SCHEMA = "k long, ts timestamp, x double"
EPOCH = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1e6)
SECOND = 1_000_000
HOUR = 3_600 * SECOND
OLD = 1_700_000_000  # seconds: when files were changed last, one after the other
N_REAL = 20  # micro-batches of real data
N_TURNS = 2  # of what is compared with a stateless pass
N_STEADY, N_WARM = 20, 10  # micro-batches where Java must have compiled all it will, and how many are left out
GROUPS = 4  # row groups of a file
IN_JAVA = "Spark adds up windows side by side where it reads rows, in Java; ours takes all to a function in Python"
IDLE = "nothing in Python x theirs"
IN_PAGES = (
    "keys of few rows are in a page each, so a shard reads 125 blocks of its state instead of 3, which Java looks up "
    "and sends one by one"
)
THREE_VISITS = (
    "rows visit Python three times, packed, answered and unpacked, where the stateless pass has one visit; and an hour "
    "of them is read from state and written to it in every micro-batch"
)
WINDOW = sash.window(by="k", order_by="ts")
ANSWERS = {"n": sash.count(), "total": sash.sum("x"), "top": sash.max("x")}


def run(quick: bool = False) -> Iterator[dict[str, Any]]:
    """Rows of ratios."""
    spark = sash.spark.session("bench", memory="6g", settings={"spark.sql.shuffle.partitions": 2})
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(spark, Path(folder))
        yield from per_event(bench, 100_000 if quick else 1_000_000)
        yield from few_rows(bench)
        yield from large_states(bench, 10**6 if quick else 10**7)
        require_same_grid(bench, 3_600, 60)
        yield from side_by_side(bench, (10**6,) if quick else (10**6, 4 * 10**6))
        yield from hopping(bench, (60,) if quick else (60, 600, 3_600))
        yield from real(bench)


class Bench:
    """Streams over files made for one measurement each."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self._number = 0

    def write(self, batches: list[Any]) -> str:
        """Files of one micro-batch each, in their order: Spark goes by when a file was changed, to the millisecond."""
        self._number += 1
        path = self.folder / f"rows{self._number}"
        path.mkdir()
        for number, batch in enumerate(batches):
            file = path / f"{number:05}.parquet"
            pq.write_table(batch, file, row_group_size=max(1, -(-batch.num_rows // GROUPS)))
            os.utime(file, (OLD + number, OLD + number))
        return str(path)

    def read(self, path: str, schema: str = SCHEMA) -> Any:
        """A stream of those files."""
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)

    def collected(self, stream: Any, mode: str = "append") -> list[Any]:
        """All rows that a stream gives."""
        self._number += 1
        name, checkpoint = f"collected{self._number}", self.folder / f"checkpoint{self._number}"
        writer = stream.writeStream.format("memory").queryName(name).option("checkpointLocation", str(checkpoint))
        writer.outputMode(mode).trigger(availableNow=True).start().awaitTermination()
        return self.spark.table(name).collect()

    def batches(self, stream: Any, mode: str = "append") -> list[dict[str, Any]]:
        """The progress of each micro-batch with rows."""
        self._number += 1
        checkpoint = self.folder / f"checkpoint{self._number}"
        self.spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", 1000)
        writer = stream.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).outputMode(mode)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        found = [each for each in query.recentProgress if each["numInputRows"]]
        shutil.rmtree(checkpoint, ignore_errors=True)
        return found


def steady(progress: list[dict[str, Any]], *, skip: int = 2) -> Spent:
    """Seconds of the shortest of the steady micro-batches, and how far above it the middle one was."""
    return spent_of([each["durationMs"]["addBatch"] / 1e3 for each in progress[skip:]])


def rows(keys: int, times: Any, random: Any) -> Any:
    """Rows with keys by turns."""
    n = len(times)
    columns = {"k": np.arange(n) % keys, "ts": pa.array(times + EPOCH).cast(pa.timestamp("us", "UTC"))}
    return pa.table({**columns, "x": random.integers(0, 1_000, n) / 4})


def in_hours(n: int, keys: int, n_batches: int, per_batch: int = HOUR) -> list[Any]:
    """Micro-batches of some time each, rows spread evenly over it."""
    random = np.random.default_rng(7)
    return [rows(keys, per_batch * b + np.arange(n) * per_batch // n, random) for b in range(n_batches)]


def per_event(bench: Bench, n: int) -> Iterator[dict[str, Any]]:
    """A window of an hour at every row, 10,000 keys; by turns, as Java grows faster with use, and the best counts."""
    path, spec = bench.write(in_hours(n, 10_000, N_STEADY)), WINDOW.range("1 hour").agg(**ANSWERS)

    def stateless() -> Any:
        return bench.read(path).repartition("k").mapInArrow(lambda batches: batches, SCHEMA)

    def answered(emit: str) -> Any:
        return spec.stream(emit=emit)(bench.read(path))

    ways = {"stateless": stateless, **{emit: partial(answered, emit) for emit in ("final", "eager", "revise")}}
    turns = [{name: steady(bench.batches(way()), skip=N_WARM) for name, way in ways.items()} for _ in range(N_TURNS)]
    found = {name: min(turn[name] for turn in turns) for name in ways}
    plain = found.pop("stateless")
    for emit, spent in found.items():
        yield {
            "what": f"per event, {emit}, {n:.0e} rows", "us a row": round(spent.best / n * 1e6, 2),
            "x stateless": round(spent.best / plain.best, 2), "stateless us": round(plain.best / n * 1e6, 2),
            "noise": round(spent.spread + plain.spread, 2),
        }  # fmt: skip


def few_rows(bench: Bench) -> Iterator[dict[str, Any]]:
    """10,000 keys with one row each in a micro-batch, in a window of 100."""
    keys = 10_000
    path = bench.write([*in_hours(100 * keys, keys, 1), *in_hours(keys, keys, 9, 36 * SECOND)[1:]])
    for emit in ("final", "eager"):
        found = steady(bench.batches(WINDOW.range("1 hour").agg(**ANSWERS).stream(emit=emit)(bench.read(path))))
        yield {
            "what": f"10,000 keys x 1 row, {emit}", "us a key": round(found.best / keys * 1e6, 1),
            "s": round(found.best, 2), "noise": round(found.spread, 2),
        }  # fmt: skip


def large_states(bench: Bench, most: int) -> Iterator[dict[str, Any]]:
    """A micro-batch of 1,000 rows against states of different sizes: few large keys, many small ones."""
    for keys in (lambda n: 10, lambda n: n // 10):
        first, large, last = (_thousand_rows(bench, n, keys(n)) for n in (most // 100, most, most // 100))
        what = "10 keys" if keys(most) == 10 else "keys of 10 rows"
        yield {
            "what": f"1,000 rows, state of {most:.0e}, {what}", "s": round(large.best, 2),
            "x small state": round(large.best / min(first, last).best, 2),
            "noise": round(large.spread + min(first, last).spread, 2),
        }  # fmt: skip


def _thousand_rows(bench: Bench, n: int, keys: int) -> Spent:
    """The time of a micro-batch of 1,000 rows when windows hold n rows."""
    random, span = np.random.default_rng(3), 30 * 24 * HOUR
    n_filling = max(1, n // 1_000_000)
    filling = np.array_split(np.arange(n) * (span // n), n_filling)
    after = [span + np.arange(1_000) * SECOND + b * 1_000 * SECOND for b in range(8)]
    path = bench.write([rows(keys, times, random) for times in [*filling, *after]])
    spec = WINDOW.range("30 days").agg(**ANSWERS).stream(emit="eager")
    return steady(bench.batches(spec(bench.read(path))), skip=n_filling + 2)


def side_by_side(bench: Bench, sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Windows of an hour that share no row, beside Spark's own and beside the least that Python with a state takes."""
    for n in sizes:
        path = bench.write(in_hours(n, 10, N_STEADY))
        theirs = steady(bench.batches(hops(bench.read(path), 3_600, 3_600), "update"), skip=N_WARM)
        ours = steady(bench.batches(grid(3_600, 3_600).stream()(bench.read(path))), skip=N_WARM)
        least = steady(bench.batches(idle(bench.read(path))), skip=N_WARM)
        yield {
            "what": f"range/slide 1, {n:.0e} rows", "ours rows/s": round(n / ours.best),
            "theirs rows/s": round(n / theirs.best), "x theirs": round(theirs.best / ours.best, 2),
            "noise": round(ours.spread + theirs.spread, 2), IDLE: round(theirs.best / least.best, 2),
        }  # fmt: skip


def hopping(bench: Bench, ratios: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Windows of an hour on a grid, beside Spark's own; theirs get fewer rows where they would take hours."""
    theirs_rows = {60: 100_000, 600: 20_000, 3_600: 1_000}
    ours_path = bench.write(in_hours(1_000_000, 10, 6))
    for ratio in ratios:
        slide, n = 3_600 // ratio, theirs_rows[ratio]
        n_batches, skip = (5, 2) if ratio <= 60 else (3 if ratio < 3_600 else 2, 1)
        path = bench.write(in_hours(n, 10, n_batches))
        theirs = steady(bench.batches(hops(bench.read(path), 3_600, slide), "update"), skip=skip)
        ours = steady(bench.batches(grid(3_600, slide).stream()(bench.read(ours_path))))
        rates = 1_000_000 / ours.best, n / theirs.best
        yield {
            "what": f"range/slide {ratio}", "ours rows/s": round(rates[0]), "theirs rows/s": round(rates[1]),
            "x theirs": round(rates[0] / rates[1], 2), "noise": round(ours.spread + theirs.spread, 2),
        }  # fmt: skip


def idle(stream: Any) -> Any:
    """Rows that come to Python, and a state by shard, and nothing done in either: the least that any answer takes."""
    from pyspark.sql.streaming import StatefulProcessor

    class Idle(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            pass

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            yield from ()

        def close(self) -> None:
            pass

    def dropped(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            yield from ()
        yield pa.record_batch({"shard": pa.array(range(8), pa.int32())})

    return stream.mapInArrow(dropped, "shard int").groupBy("shard").transformWithState(
        Idle(), "shard int", "Append", "none"
    )  # fmt: skip


def hops(stream: Any, span: int, slide: int, lateness: int = 0) -> Any:
    """Spark's own windows of some seconds that begin every few."""
    from pyspark.sql import functions as fn

    late = stream.withWatermark("ts", f"{lateness} seconds")
    return late.groupBy(fn.window("ts", f"{span} seconds", f"{slide} seconds"), "k").agg(fn.max("x").alias("top"))


def grid(span: int, slide: int) -> Any:
    """The same windows, ours: those that end on a grid."""
    return WINDOW.range(f"{span} seconds", closed="left").every(f"{slide} seconds").agg(top=sash.max("x"))


def require_same_grid(bench: Bench, span: int, slide: int) -> None:
    """Few rows on a grid by both, before either is timed; values are quarters, so that answers are the same bits."""
    path = bench.write(in_hours(2_000, 3, 3, span * SECOND))
    theirs = {
        (row["k"], row["window"]["end"]): row["top"] for row in bench.collected(hops(bench.read(path), span, slide))
    }
    ours = {(row["k"], row["ts"]): row["top"] for row in bench.collected(grid(span, slide).stream()(bench.read(path)))}
    common = theirs.keys() & ours.keys()  # each ends where its own watermark does
    if len(common) < span // slide or any(theirs[each] != ours[each] for each in common):
        raise AssertionError(f"answers on a grid of {slide} s differ: {len(common)} in common")


def real(bench: Bench) -> Iterator[dict[str, Any]]:
    """Real rides and flights in the order in which they ended or left, where the data are there."""
    for name, found in (("Citi Bike", _citibike()), ("flights", _flights())):
        if found is not None:
            yield from _real(bench, name, found)


def _real(bench: Bench, name: str, found: Any) -> Iterator[dict[str, Any]]:
    edges = np.linspace(0, found.num_rows, N_REAL + 1).astype(int).tolist()
    path = bench.write([found.slice(begin, end - begin) for begin, end in pairwise(edges)])
    for emit in ("final", "eager", "revise"):
        spec = WINDOW.range("1 day").agg(**ANSWERS).stream(emit=emit, lateness="1 day")
        progress = bench.batches(spec(bench.read(path)))
        times = sorted(each["durationMs"]["addBatch"] for each in progress[2:])
        yield {
            "what": f"{name}, {emit}", "rows/s": round(edges[1] * len(times) / sum(times) * 1e3),
            "p50 ms": times[len(times) // 2], "max ms": times[-1],
            "late": sum(sash.spark.metrics(each).get("late", 0) for each in progress),
            "revisions": sum(sash.spark.metrics(each).get("revisions", 0) for each in progress),
        }  # fmt: skip


def _citibike() -> Any:
    """Rides by station in the order in which they ended, event time the beginning; None if there are no data."""
    folder = next((each for each in FOLDERS if each.is_dir()), None)
    if folder is None:
        return None
    parts = []
    for file in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(file) as archive:
            name = next(each for each in archive.namelist() if each.endswith(".csv") and "MACOSX" not in each)
            parts.append(csv.read_csv(io.BytesIO(archive.read(name))))
    names = ("start station id", "starttime", "tripduration", "stoptime")
    table = pa.concat_tables([part.select(names) for part in parts], promote_options="permissive").sort_by("stoptime")
    columns = [
        table.column(names[0]).cast(pa.int64()), table.column(names[1]).cast(pa.timestamp("us", "UTC")),
        table.column(names[2]).cast(pa.float64()),
    ]  # fmt: skip
    return pa.table(columns, names=["k", "ts", "x"]).combine_chunks()


def _flights() -> Any:
    """Flights by airport and by airline in the order in which they left, event time the schedule; None without data."""
    try:
        rows = flights.load().rows
    except ModuleNotFoundError:
        return None
    codes = rows.column("who").combine_chunks().dictionary_encode().indices.cast(pa.int64())
    columns = [codes, rows.column("scheduled"), rows.column("delay").cast(pa.float64())]
    return pa.table(columns, names=["k", "ts", "x"]).combine_chunks()


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The bars of streams."""

    def bar(hold: Any, said: str, column: str, limit: float, what: str = "", why: str = "") -> Claim:
        among = [row for row in rows if column in row and row["what"].startswith(what)]
        return hold(said, of(among, column, "what"), limit, noise=noise_of(among), why=why)

    return [
        bar(at_least, "1,000 times ahead of hopping windows at range/slide = 3,600", "x theirs", 1_000,
            "range/slide 3600"),
        bar(at_least, "not slower than them at any range/slide", "x theirs", 1, why=_why_slower(rows)),
        bar(at_most, "windows at every event take at most twice a stateless pass", "x stateless", 2, why=THREE_VISITS),
        bar(at_most, "a row for each of 10,000 keys takes at most 60 us a key", "us a key", 60),
        bar(at_most, "a micro-batch of 1,000 rows takes at most 1.5 times as long by a state of 10^7 as by one of 10^5",
            "x small state", 1.5, why=IN_PAGES),
    ]  # fmt: skip


def _why_slower(rows: Sequence[Row]) -> str:
    floors = [f"{row[IDLE]} ({row['what']})" for row in rows if IDLE in row]
    return "; ".join([IN_JAVA, *(f"one that does nothing, with a state, has {each} times theirs" for each in floors)])


def main() -> int:
    """Run it as `sash bench stream` does."""
    from bench import running

    parser = argparse.ArgumentParser(prog="bench.stream", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, noted in build/ and not in history")
    return running.main([NAME], everything=False, quick=parser.parse_args().quick)


if __name__ == "__main__":
    sys.exit(main())
