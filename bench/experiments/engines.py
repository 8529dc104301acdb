"""Other engines of streams on the same rows: a window that ends at every row, on Flink and Pathway, and ours on Spark.

Each engine reads the same rows from files of text and gives its answers to nobody; its process and its code are warm.
Flink and Pathway need environments of their own (`make bench-engines`): they refuse the Arrow and pandas that Spark
needs. An engine shows its answers to few rows first; one that gives others is reported and not timed. bytewax is not
here: its windows begin at times that are known before, so none can end at every row. Scotty is not here either: its
windows are made for engines of Java and have no Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import sash
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.fitting import Curves
from bench.experiments.on_spark import RATE, running
from bench.experiments.peers import NO_BAR
from bench.fifo_rounds import SEED
from bench.measuring import Spent, spent_of
from bench.stream import Bench

SCHEMA = "k long, ts_ms long, x double, row long"
KEYS, CORES, PARTS = 100, 2, 4
FEW = 2_000  # rows whose answers are compared
BEGIN_MS = 1_704_067_200_000  # 2024; Flink takes rows of the year 1970 for late ones
ENGINES = Path(os.environ.get("SASH_ENGINES", "build/engines"))
ENVIRONMENTS = {"flink": "apache-flink", "pathway": "pathway"}  # and the package in each
PROGRAMS = Path(__file__).parents[1] / "engines"
BUDGET_S = 40  # of one engine over one window; it runs at least once more than to warm up
OTHERS = {  # series: environment, program, way, most rows that it is given times rows of a window
    "Flink SQL OVER, stream": ("flink", "flink.py", "stream", 10**9),
    "Flink SQL OVER, batch": ("flink", "flink.py", "batch", 10**9),
    "Pathway": ("pathway", "pathway_.py", "static", 10**7),
}
OURS = ("sash, Spark stream", "sash, Spark batch")


def python_of(engine: str) -> Path | None:
    """The Python of an engine's environment, if it was made."""
    path = ENGINES / engine / "bin" / "python"
    return path.absolute() if path.exists() else None


def version_of(engine: str) -> str:
    """The version of an engine in its environment."""
    asked = f"from importlib.metadata import version; print(version({ENVIRONMENTS[engine]!r}))"
    return subprocess.run(
        [str(python_of(engine)), "-c", asked], check=True, capture_output=True, text=True
    ).stdout.strip()


def write_rows(folder: Path, n: int) -> Path:
    """Rows of keys by turns, a second apart within a key: in files by key, by time, and by key with names above."""
    number = np.arange(n)
    x = np.random.default_rng(SEED).integers(0, 1_000_000, n) / 4
    table = pa.table({"k": number % KEYS, "ts_ms": BEGIN_MS + number // KEYS * 1_000, "x": x, "row": number})
    for layout, part in (("by_key", number % CORES), ("by_time", number * PARTS // n), ("named", number % CORES)):
        (folder / layout).mkdir(parents=True)
        for k in np.unique(part).tolist():
            options = csv.WriteOptions(include_header=layout == "named")
            csv.write_csv(table.filter(part == k), folder / layout / f"{k}.csv", options)
    return folder


def told(series: str, folder: Path, function: str, seconds: int, repeats: int) -> Any:
    """What the program of an engine prints."""
    from sash.spark.java import find_java

    engine, program, mode, _ = OTHERS[series]
    path = str(folder / ("named" if engine == "pathway" else "by_key"))
    asked = {"path": path, "mode": mode, "function": function, "seconds": seconds, "cores": CORES, "repeats": repeats}
    asked["budget"] = BUDGET_S
    home = find_java()
    environment = {**os.environ, **({} if home is None else {"JAVA_HOME": str(home)})}
    command = [str(python_of(engine)), str(PROGRAMS / program), json.dumps(asked)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{series} ended with {done.returncode}: {done.stderr[-2_000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def spec_of(function: str, seconds: int) -> Any:
    return sash.window(by="k", order_by="ts").range(f"{seconds} seconds").agg(answer=getattr(sash, function)("x"))


def with_times(table: Any) -> Any:
    from pyspark.sql import functions

    return table.withColumn("ts", functions.timestamp_millis("ts_ms"))


def batch(bench: Bench, folder: Path, spec: Any) -> Any:
    return spec(with_times(bench.spark.read.schema(SCHEMA).csv(str(folder / "by_key")))).select("row", "answer")


def stream(bench: Bench, folder: Path, spec: Any) -> Any:
    reader = bench.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).csv(str(folder / "by_time"))
    return spec.stream(lateness="0 seconds")(with_times(reader)).select("row", "answer")


def rate(work: Callable[[], Any], n: int, repeats: int) -> Spent:
    """Rows a second of work that is done a few times, after once to warm up."""
    times = []
    for _ in range(repeats + 1):
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return _rate_of(times, n)


def _rate_of(times: Sequence[float], n: int) -> Spent:
    best = spent_of(times[1:])
    return Spent(n / best.best, best.spread)


def _engines(size: Size) -> Iterator[Row]:
    n, repeats = size.of(1_000_000, 100_000, 2_000), size.of(3, 2, 1)
    versions = {engine: version_of(engine) for engine in ENVIRONMENTS if python_of(engine)}
    with running() as bench:
        folders = {rows: write_rows(bench.folder / str(rows), rows) for rows in _sizes(size, n)}
        for function in ("max", "sum"):
            there = [each for each, (engine, *_) in OTHERS.items() if python_of(engine)]
            same = {each: _agrees(bench, each, function, folders[FEW]) for each in there}
            for seconds in size.of((10, 100, 1_000), (10, 100), (10,)):
                yield from _ours(bench, folders[n], n, function, seconds, repeats)
                for series, is_same in same.items():
                    shown = series if is_same else f"{series}, answers differ"
                    found = _theirs(series, folders, function, seconds, repeats) if is_same else 0.0
                    yield point(function, shown, seconds, found, RATE) | {"version": versions[OTHERS[series][0]]}


def _ours(bench: Bench, folder: Path, n: int, function: str, seconds: int, repeats: int) -> Iterator[Row]:
    spec = spec_of(function, seconds)
    ways: dict[str, Callable[[], Any]] = {
        OURS[0]: lambda: bench.batches(stream(bench, folder, spec)),
        OURS[1]: lambda: batch(bench, folder, spec).write.format("noop").mode("overwrite").save(),
    }
    for series, work in ways.items():
        yield point(function, series, seconds, rate(work, n, repeats), RATE)


def _theirs(series: str, folders: dict[int, Path], function: str, seconds: int, repeats: int) -> Spent:
    """Rows a second of another engine, which gets as many rows as it can stand."""
    most = OTHERS[series][-1]
    n = max(rows for rows in folders if rows == FEW or rows * seconds <= most)
    return _rate_of(told(series, folders[n], function, seconds, repeats + 1)["seconds"], n)


def _sizes(size: Size, n: int) -> set[int]:
    return {FEW, n, *size.of((10_000, 100_000), (10_000,), ())}


def _agrees(bench: Bench, series: str, function: str, folder: Path) -> bool:
    found = sorted(map(tuple, told(series, folder, function, 10, 0)["answers"]))
    answers = sorted(map(tuple, batch(bench, folder, spec_of(function, 10)).collect()))
    return len(found) == len(answers) and np.allclose(found, answers, rtol=1e-9)


def _claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for function in curves.panels:
        for series in (each for each in curves.series(function) if each not in OURS):
            if "differ" in series:
                claims.append(
                    Claim(f"{function}: the same answers by {series.partition(', answers')[0]}", "others", False)
                )
                continue
            ours = OURS["batch" in series]
            ahead = curves.ratio(function, ours, series)
            claims.append(
                Claim(f"{function}: {ours} is faster than {series} at every window", str(ahead), ahead.low > 1)
            )
    return claims


EXPERIMENTS = (
    Experiment(
        "peers-engines",
        "A window that ends at every row, on other engines of streams",
        _engines,
        *NO_BAR,
        "faster than engines that keep every row of a window, or join each row with its window",
        _claims,
        Axes("rows of a window", log_y=True),
        needs="engines",
    ),
)
