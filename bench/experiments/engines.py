"""Other engines of streams on the same rows: a window that ends at every row, on Flink and Pathway, and ours on Spark.

Each engine reads the same rows from files of text and gives its answers to nobody; its process and its code are warm.
Times are of whole queries, from start to end; rows are so many that starting is a small part of it.
Flink and Pathway need environments of their own (`make bench-engines`): they refuse the Arrow and pandas that Spark
needs. An engine shows its answers to few rows first; one that gives others is reported and not timed. Each has one
process for all its windows, shortest first, and a limit of time: what it has not reached by then is reported as such.
Pathway pairs every row with each of its window, so it gets fewer rows the longer windows are, and fewer keys, so that
windows are full. bytewax is not here: its windows begin at times that are known before, so none can end at every row.
Scotty is not here either: its windows are made for engines of Java and have no Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

import sash
from bench.children import run_within
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
LIMIT_S = 300  # of one engine, with its start, its answers to few rows and all its windows
OTHERS = {  # series: environment, program, way
    "Flink SQL OVER, stream": ("flink", "flink.py", "stream"),
    "Flink SQL OVER, batch": ("flink", "flink.py", "batch"),
    "Pathway": ("pathway", "pathway_.py", "static"),
}
BY_PAIRS = {10: (50_000, KEYS), 100: (10_000, 50), 1_000: (2_000, 1)}  # seconds: rows and keys for Pathway
OURS = ("sash, Spark stream", "sash, Spark batch")
FUNCTIONS = ("max", "sum")
DIFFER, OVER = "answers differ", f"over {LIMIT_S} s"


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


class Ask(NamedTuple):
    """What an engine is asked: a window over the rows of a folder, so many times; never, and it tells its answers."""

    folder: Path
    n: int
    function: str
    seconds: int
    repeats: int


def write_rows(folder: Path, n: int, keys: int = KEYS) -> Path:
    """Rows of keys by turns, a second apart within a key: in files by key, by time, and by key with names above."""
    number = np.arange(n)
    x = np.random.default_rng(SEED).integers(0, 1_000_000, n) / 4
    table = pa.table({"k": number % keys, "ts_ms": BEGIN_MS + number // keys * 1_000, "x": x, "row": number})
    for layout, part in (("by_key", number % CORES), ("by_time", number * PARTS // n), ("named", number % CORES)):
        (folder / layout).mkdir(parents=True)
        for k in np.unique(part).tolist():
            options = csv.WriteOptions(include_header=layout == "named")
            csv.write_csv(table.filter(part == k), folder / layout / f"{k}.csv", options)
    return folder


def told(series: str, asks: Sequence[Ask], limit_s: float = LIMIT_S) -> list[Any]:
    """What the program of an engine prints for each of what it is asked; less, if its time is over before."""
    engine, program, mode = OTHERS[series]
    layout = "named" if engine == "pathway" else "by_key"
    given = [
        {"path": str(each.folder / layout), "function": each.function, "seconds": each.seconds, "repeats": each.repeats}
        for each in asks
    ]
    command = [
        str(python_of(engine)),
        str(PROGRAMS / program),
        json.dumps({"mode": mode, "cores": CORES, "asks": given}),
    ]
    with tempfile.TemporaryFile("w+") as complaints:
        try:
            done = run_within(command, limit_s, stdout=subprocess.PIPE, stderr=complaints, env=_with_java())
            printed, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as over:
            printed, code = str(over.stdout), 0
        complaints.seek(0)
        if code:
            raise RuntimeError(f"{series} ended with {code}: {complaints.read()[-2_000:]}")
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{") and line.endswith("}")]


def _with_java() -> dict[str, str]:
    from sash.spark.java import find_java

    home = find_java()
    return {**os.environ, **({} if home is None else {"JAVA_HOME": str(home)})}


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
    n, repeats = size.of(2_000_000, 100_000, 2_000), size.of(1, 2, 1)
    windows = size.of((10, 100, 1_000), (10, 100), (10,))
    with running() as bench:
        folders = Folders(bench.folder)
        for seconds in windows:
            for function in FUNCTIONS:
                yield from _ours(bench, folders.of(n), n, function, seconds, repeats)
        for series in (each for each, (engine, *_) in OTHERS.items() if python_of(engine)):
            first = [Ask(folders.of(FEW), FEW, function, 10, 0) for function in FUNCTIONS]
            asks = [
                Ask(*folders.share(series, n, seconds), function, seconds, repeats)
                for seconds in windows for function in FUNCTIONS
            ]  # fmt: skip
            yield from _theirs(bench, series, first, asks)


class Folders:
    """Files of rows, made when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, n: int, keys: int = KEYS) -> Path:
        """Those of so many rows and keys."""
        path = self.folder / f"{n} of {keys}"
        return path if path.exists() else write_rows(path, n, keys)

    def share(self, series: str, n: int, seconds: int) -> tuple[Path, int]:
        """Those that an engine can stand, and how many there are."""
        rows, keys = BY_PAIRS[seconds] if series == "Pathway" else (n, KEYS)
        return self.of(min(rows, n), keys), min(rows, n)


def _ours(bench: Bench, folder: Path, n: int, function: str, seconds: int, repeats: int) -> Iterator[Row]:
    spec = spec_of(function, seconds)
    ways: dict[str, Callable[[], Any]] = {
        OURS[0]: lambda: bench.batches(stream(bench, folder, spec)),
        OURS[1]: lambda: batch(bench, folder, spec).write.format("noop").mode("overwrite").save(),
    }
    for series, work in ways.items():
        yield point(function, series, seconds, rate(work, n, repeats), RATE)


def _theirs(bench: Bench, series: str, first: Sequence[Ask], asks: Sequence[Ask]) -> Iterator[Row]:
    """Rows a second of another engine, of functions whose answers are ours; `over` stands for what it did not reach."""
    version, found = version_of(OTHERS[series][0]), told(series, [*first, *asks])
    same = {ask.function: _agrees(bench, ask, answers["answers"]) for ask, answers in zip(first, found, strict=False)}
    reached = dict(zip(asks, found[len(first) :], strict=False))
    for ask in asks:
        shown, spent = f"{series}, {OVER}", Spent(0.0, 0.0)
        if not same.get(ask.function, True):
            shown = f"{series}, {DIFFER}"
        elif ask in reached:
            shown, spent = series, _rate_of(reached[ask]["seconds"], ask.n)
        yield point(ask.function, shown, ask.seconds, spent, RATE) | {"version": version, "rows": ask.n}


def _agrees(bench: Bench, ask: Ask, told: Sequence[Any]) -> bool:
    found = sorted(map(tuple, told))
    answers = sorted(map(tuple, batch(bench, ask.folder, spec_of(ask.function, ask.seconds)).collect()))
    return len(found) == len(answers) and np.allclose(found, answers, rtol=1e-9)


def _claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for function in curves.panels:
        for series in (each for each in OTHERS if any(there.startswith(each) for there in curves.series(function))):
            if curves.has(function, f"{series}, {DIFFER}"):
                claims.append(Claim(f"{function}: the same answers by {series}", "others", False))
                continue
            ours, over = OURS["batch" in series], curves.xs(function, f"{series}, {OVER}")
            ahead = curves.ratio(function, ours, series)
            slower = f"; {OVER} at {', '.join(f'{each:,}' for each in over)} rows" if over else ""
            claims.append(
                Claim(
                    f"{function}: {ours} is faster than {series} at every window",
                    f"{ahead}{slower}",
                    ahead.low > 1,
                    "it has not reached any window in its time" * (not curves.has(function, series)),
                )
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
