"""What the papers ran on Flink, on Spark: figure 8 of PBA, figures 16 to 18 of FiBA.

Streams are micro-batches from files to nowhere, as in bench.stream; Spark's own are its hopping windows, which get
few rows, since each row is in a thousand of them; both answer few rows first, and their answers are compared. In the
paper's 2^13 a micro-batch of a hundred rows takes Spark two
minutes, as it writes code for every window that a row is in. Parallelism is of whole sessions, each in a process of
its own: local[1] and local[2], and clusters of one and two executors with one core each. In figure 8 the paper's PBA
is an operator of the engine; ours there is whatever is chosen for tables of many keys, which PBA is not for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import sash
from bench.experiments import fiba, pba
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.fitting import Curves, number
from bench.measuring import Spent
from bench.stream import SECOND, Bench, grid, hops, in_hours, require_same_grid, rows, steady

WINDOW = 2**10  # items, a second apart
OURS, PER_EVENT, THEIRS = "sash, on the grid", "sash, at every event", "Spark's hopping windows"
RATE = "rows a second"
KEYED = sash.window(by="k", order_by="ts")
BATCHES = 5


@contextmanager
def running() -> Iterator[Bench]:
    """A session, and a folder for its streams."""
    spark = sash.spark.session("bench", memory="4g", settings={"spark.sql.shuffle.partitions": 2})
    with tempfile.TemporaryDirectory() as folder:
        yield Bench(spark, Path(folder))


def arriving(n: int, d: int) -> list[Any]:
    """Micro-batches of rows a second apart; of every 2 d rows the younger half comes first, so half are d late."""
    steps = np.arange(n * BATCHES)
    if d:
        block, place = np.divmod(steps, 2 * d)
        steps = block * 2 * d + (place + d) % (2 * d)
    random = np.random.default_rng(11)
    return [rows(1, part * SECOND, random) for part in np.array_split(steps, BATCHES)]


def at_every_event(bench: Bench, n: int, window: int, d: int = 0) -> Spent:
    """Rows a second that are answered one by one."""
    spec = KEYED.range(f"{window - 1} seconds").agg(top=sash.max("x"))
    stream = spec.stream(emit="eager", lateness=f"{2 * d} seconds")(bench.read(bench.write(arriving(n, d))))
    return _rate(bench, stream, n)


def on_grid(bench: Bench, n: int, window: int, slide: int) -> Spent:
    """Rows a second that are answered on a grid, sliced."""
    return _rate(bench, grid(window, slide).stream()(bench.read(bench.write(arriving(n, 0)))), n)


def hopping(bench: Bench, n: int, window: int, slide: int = 1, d: int = 0) -> Spent:
    """Rows a second of Spark's own."""
    stream = bench.read(bench.write(arriving(n, d)))
    return _rate(bench, hops(stream, window, slide, lateness=2 * d), n, mode="update")


def _rate(bench: Bench, stream: Any, n: int, mode: str = "append") -> Spent:
    found = steady(bench.batches(stream, mode))
    return Spent(n / found.best, found.spread)


def require_same_events(bench: Bench, window: int = 16, slide: int = 1) -> None:
    """Few rows, each at a second of its own: a row is answered what the hopping window that ends after it has."""
    path = bench.write(in_hours(500, 1, 3, 500 * SECOND))
    found = bench.collected(hops(bench.read(path), window, slide))
    theirs = {row["window"]["end"].timestamp(): row["top"] for row in found}
    spec = KEYED.range(f"{window - 1} seconds").agg(top=sash.max("x")).stream(emit="eager")
    ours = {row["ts"].timestamp() + 1: row["top"] for row in bench.collected(spec(bench.read(path)))}
    common = theirs.keys() & ours.keys()  # hopping windows are told when the watermark has passed them
    if len(common) < 500 or any(theirs[each] != ours[each] for each in common):
        raise AssertionError(f"answers at every event differ from those of hopping windows: {len(common)} in common")


def _n_theirs(size: Size, windows: int) -> int:
    """So few rows that a micro-batch of theirs takes seconds."""
    return max(4, min(size.of(100_000, 20_000, 200), size.of(300_000, 100_000, 2_000) // windows))


def _distance(size: Size) -> Iterator[Row]:
    n, window = size.of(200_000, 20_000, 100), size.of(WINDOW, WINDOW, 16)
    with running() as bench:
        require_same_events(bench)
        for d in [0, *size.powers(9, 9, 2, step=4, lowest=1)]:
            yield point("max", PER_EVENT, max(d, 0.5), at_every_event(bench, n, window, d), RATE)
            yield point("max", THEIRS, max(d, 0.5), hopping(bench, _n_theirs(size, window), window, d=d), RATE)


def _distance_claims(found: Sequence[Row]) -> list[Claim]:
    curves = Curves(found)
    ahead = curves.ratio("max", PER_EVENT, THEIRS)
    theirs = curves.slope("max", THEIRS)
    return [
        Claim("the built-in windows are orders of magnitude slower (section 5.3.1)", str(ahead), ahead.low > 100),
        Claim("their throughput does not depend on the distance", f"d to the power of {theirs}",
              abs(theirs.slope) < 0.15),
    ]  # fmt: skip


def _fifo(size: Size) -> Iterator[Row]:
    n = size.of(200_000, 20_000, 100)
    with running() as bench:
        require_same_events(bench)
        for window in size.powers(10, 10, 4, step=3, lowest=1):
            yield point("max", PER_EVENT, window, at_every_event(bench, n, window), RATE)
            yield point("max", THEIRS, window, hopping(bench, _n_theirs(size, window), window), RATE)


def _fifo_claims(found: Sequence[Row]) -> list[Claim]:
    curves = Curves(found)
    ours, theirs = curves.slope("max", PER_EVENT), curves.slope("max", THEIRS, 2**4)
    return [
        Claim("ours takes the same for every window", f"n to the power of {ours}", abs(ours.slope) < 0.1),
        Claim("the built-in windows fall linearly with the window (section 5.3.1)", f"n to the power of {theirs}",
              theirs.slope < -0.7, "a micro-batch has a floor, which few windows do not reach"),
    ]  # fmt: skip


def _coarse(size: Size) -> Iterator[Row]:
    n, window = size.of(200_000, 20_000, 100), size.of(WINDOW, WINDOW, 16)
    with running() as bench:
        require_same_grid(bench, 64, 4)
        plain = at_every_event(bench, n, window)
        for slide in size.powers(9, 9, 3, step=4):
            yield point("max", OURS, slide, on_grid(bench, n, window, slide), RATE)
            yield point("max", PER_EVENT, slide, plain, RATE)
            theirs = hopping(bench, _n_theirs(size, window // slide), window, slide)
            yield point("max", THEIRS, slide, theirs, RATE)


def _coarse_claims(found: Sequence[Row]) -> list[Claim]:
    curves = Curves(found)
    ours, theirs = curves.ratio("max", OURS, PER_EVENT), curves.slope("max", THEIRS, 1, 2**8)
    ahead = curves.ratio("max", OURS, THEIRS)
    return [
        Claim("slices are at least as fast as answers at every event (section 5.3.2)", str(ours), ours.low > 0.9),
        Claim("the built-in windows gain linearly with the slide", f"slide to the power of {theirs}",
              theirs.slope > 0.7),
        Claim("and are never competitive", str(ahead), ahead.low > 1),
    ]  # fmt: skip


# --- parallelism -----------------------------------------------------------------------------------

MASTERS = {"local": "local[{}]", "cluster": "local-cluster[{},1,2048]"}
PLUGS = 84  # keys, as in the paper
TABLES = "sash, as chosen"  # PBA is for one column without keys; on Spark its boundaries are where a hot key is split


def _scaling(size: Size) -> Iterator[Row]:
    n = size.of(6_000_000, 600_000, 2_000)
    for mode, master in MASTERS.items():
        for cores in (1, 2):
            command = [sys.executable, "-m", __spec__.name, master.format(cores), str(n)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for series, best, spread in json.loads(out.splitlines()[-1]):
                yield point(mode, series, cores, (best, spread), RATE)


def _scaling_claims(found: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(found), []
    for mode in curves.panels:
        gain = curves.y(mode, TABLES, 2) / curves.y(mode, TABLES, 1)
        claims.append(
            Claim(
                f"{mode}: throughput grows linearly with parallelism (section 5.2)",
                f"{number(gain)} times with 2",
                gain > 1.6,
                "one task keeps two processes busy, Java and Python, and this machine has two cores",
            )
        )
        ahead = curves.ratio(mode, TABLES, "Spark OVER")
        claims.append(Claim(f"{mode}: ahead of the engine's own windows", str(ahead), ahead.low > 1))
    return claims


def measure_scaling(master: str, n: int) -> None:
    """In a process of its own: rows a second of windows of 2^10 rows with one master, as a line of JSON.

    Spark's own gets fewer of the rows: it takes the same for every one of them, and far longer.
    """
    from pyspark.sql import functions as fn
    from pyspark.sql.window import Window

    spark = sash.spark.session("scaling", master=master, memory="2g", settings={"spark.sql.shuffle.partitions": 8})
    source = spark.range(0, n, 1, 8).selectExpr(f"id % {PLUGS} AS k", "CAST(id AS timestamp) AS ts", "rand(1) AS x")
    with tempfile.TemporaryDirectory() as folder:
        source.write.parquet(f"{folder}/rows")
        table = spark.read.parquet(f"{folder}/rows")
        frame = Window.partitionBy("k").orderBy("ts").rowsBetween(-1023, 0)
        ours = KEYED.rows(1024).agg(top=sash.max("x"))
        n_theirs = n // 15
        part = table.where(f"ts < CAST({n_theirs} AS timestamp)")
        few = table.where(f"ts < CAST({PLUGS * 2_000} AS timestamp) AND k < 2")
        _require_same(ours(few), few.withColumn("top", fn.max("x").over(frame)))
        ways = {
            TABLES: (lambda: ours(table), n),
            "Spark OVER": (lambda: part.withColumn("top", fn.max("x").over(frame)), n_theirs),
        }
        print(json.dumps([(name, *_best_rate(*way)) for name, way in ways.items()]))
    spark.stop()


def _require_same(ours: Any, theirs: Any) -> None:
    """The same answers to the same rows, bit for bit: a maximum is one of the values."""
    found, wanted = (sorted(map(tuple, each.select("k", "ts", "top").collect())) for each in (ours, theirs))
    if not wanted or found != wanted:
        raise AssertionError(f"answers of {len(found)} rows are not those that Spark gives to {len(wanted)}")


def _best_rate(build: Callable[[], Any], n: int) -> tuple[float, float]:
    times = []
    for _ in range(3):
        before = time.perf_counter()
        build().write.format("noop").mode("overwrite").save()
        times.append(time.perf_counter() - before)
    best = min(times[1:])
    return n / best, (float(np.median(times[1:])) - best) / best


EXPERIMENTS = (
    Experiment(
        "pba-fig8", "Windows of 2^10 rows on Spark, with one and two cores, in one process and in a cluster",
        _scaling, pba.PAPER, "figure 8", "Throughput grows linearly with parallelism and nodes, ahead of the engine.",
        _scaling_claims, Axes("cores", log_x=False), needs="spark",
    ),
    Experiment(
        "fiba-fig16", "A window of 2^10 items on a stream, half of the rows d items late, beside Spark's own windows",
        _distance, fiba.PAPER, "figure 16", "The built-in windows do not depend on d, and are far slower.",
        _distance_claims, Axes("distance d", log_y=True), needs="spark",
    ),
    Experiment(
        "fiba-fig17", "Windows of 2 to 2^10 items on a stream in order, beside Spark's own windows",
        _fifo, fiba.PAPER, "figure 17", "Constant for ours; the built-in windows fall linearly with the window.",
        _fifo_claims, Axes("items in the window", log_y=True), needs="spark",
    ),
    Experiment(
        "fiba-fig18", "A window of 2^10 items that slides by 1 to 2^9, beside Spark's own windows",
        _coarse, fiba.PAPER, "figure 18", "Slices gain with the slide; the built-in windows linearly, never enough.",
        _coarse_claims, Axes("slide", log_y=True), needs="spark",
    ),
)  # fmt: skip


if __name__ == "__main__":
    measure_scaling(sys.argv[1], int(sys.argv[2]))
