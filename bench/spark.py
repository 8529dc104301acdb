"""Spark: our windows against its own, and against the least any Python can do: shuffle, sort, hand the rows over.

Each ratio is of one run, the shortest of a few measurements. `identity` is the same plan with a function that gives
batches back as they are; `tree` is Spark's segment tree, off by default, which gets a fifth of the rows, as functions
of PySpark do, and is compared by row; `default` re-aggregates every frame, and is only asked for few rows, where it
ends this day, beside ours over the same few rows. A DataFrame keeps its plan, so each is built anew after a setting has
changed.

Hot keys are measured by Spark's own task metrics: the longest task of each stage, added up, is the time a cluster with
cores enough would take. For that, tasks run one at a time (local[1]): two at once would share the cores that the single
one has to itself. Processor time is that of all processes below this one, Java and Python together.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sash
from bench.bars import at_least, at_most, noise_of, of
from bench.experiments.contract import Claim, Row
from bench.measuring import Spent, spent_of

NAME = "spark"
TREE = "spark.sql.window.segmentTree.enabled"
SETTINGS = {
    "spark.ui.enabled": True,  # task metrics are read from it
    "spark.ui.port": 0,
    "spark.ui.retainedTasks": 100_000,
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # the default is a type that Parquet has given up
}
OURS = {
    "total": sash.sum("x"), "top": sash.max("x"), "spread": sash.std("x"), "which": sash.argmax("x", "id")
}  # fmt: skip
THEIRS = {
    "total": "sum(x)", "top": "max(x)", "spread": "stddev_samp(x)", "which": "max_by(id, x)"
}  # fmt: skip
ROWS, MINUTES = (10, 100, 1_000, 10_000, 100_000), (1, 60, 30 * 24 * 60)
WITH_TREE = (100, 10_000, 60)  # of both, those that the tree is asked for too
FEW_LENGTHS = (10, 100, 10_000, 60, 30 * 24 * 60)  # for tables of one key and of very many
FEWER = 5  # times fewer rows for what takes long: Spark's tree and functions in Python, whose time goes with the rows
RANGES = 8


PARTS = ("memory", "sweep", "many keys", "default", "python", "hot key", "hot tasks")


def run(quick: bool = False, n: int | None = None, parts: Sequence[str] = PARTS) -> Iterator[dict[str, Any]]:
    """Rows of ratios, one bar after the other."""
    n = n or (1_000_000 if quick else 10_000_000)
    spark = sash.spark.session("bench", memory="6g", settings=SETTINGS)
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
            "memory": lambda: memory(spark, n, folder),
            "sweep": lambda: sweeps(spark, n, folder, quick=quick),
            "many keys": lambda: many_keys(spark, n, folder),
            "default": lambda: against_default(spark, folder, quick=quick),
            "python": lambda: against_python(spark, folder, quick=quick),
            "hot key": lambda: hot_key(spark, n, folder, repeats=1 if quick else 2),
        }
        for part in PARTS[:-1]:
            if part in parts:
                yield from ways[part]()
        if "hot tasks" in parts:
            rides(spark, n, 1, folder)  # written by two
            spark.stop()
            alone = sash.spark.session("bench", master="local[1]", memory="6g", settings=SETTINGS)
            yield from hot_tasks(alone, n, folder)


# --- tables and clocks -----------------------------------------------------------------------------


def rides(spark: Any, n: int, keys: int, folder: str) -> Any:
    """Rows a second apart, keys by turns, in files."""
    path = Path(folder) / f"{n} by {keys}"
    columns = (
        f"id % {keys} AS k", "CAST(id AS timestamp) AS ts", "rand(1) AS x", "id"
    )  # fmt: skip
    if not path.exists():
        spark.range(0, n, 1, 8).selectExpr(*columns).write.parquet(str(path))
    return spark.read.parquet(str(path))


def seconds(build: Callable[[], Any], repeats: int = 2) -> float:
    """The time of a job that writes nowhere; the plan is built anew each time."""
    shortest = float("inf")
    for _ in range(repeats):
        before = time.perf_counter()
        build().write.format("noop").mode("overwrite").save()
        shortest = min(shortest, time.perf_counter() - before)
    return shortest


def by_turns(ours: Callable[[], Any], other: Callable[[], Any], repeats: int = 2) -> tuple[Spent, Spent]:
    """The times of two jobs that take turns, so that what the machine does else is shared."""
    turns = [(seconds(ours, 1), seconds(other, 1)) for _ in range(repeats)]
    return spent_of([each for each, _ in turns]), spent_of([each for _, each in turns])


def beside_identity(n: int, ours: Spent, least: Spent) -> dict[str, Any]:
    """What is shown of ours beside the least that Python can do."""
    return {
        "us a row": round(ours.best / n * 1e6, 2), "x identity": round(ours.best / least.best, 2),
        "noise": round(ours.spread + least.spread, 2),
    }  # fmt: skip


def identity(table: Any, order: str = "ts, id") -> Any:
    """The least that Python can do."""
    arranged = table.repartition("k").sortWithinPartitions("k", *order.split(", "))
    return arranged.mapInArrow(lambda batches: batches, table.schema)


def spec_of(*, rows: int = 0, minutes: int = 0) -> Any:
    window = sash.window(by="k", order_by=["ts", "id"])
    return (window.rows(rows) if rows else window.range(f"{minutes} minutes")).agg(**OURS)


def native(spark: Any, table: Any, *, tree: bool, rows: int = 0, minutes: int = 0) -> float:
    """The time of Spark's own."""
    spark.conf.set(TREE, str(tree).lower())
    return seconds(lambda: over(table, tree=tree, rows=rows, minutes=minutes), repeats=1)


def over(table: Any, *, tree: bool, rows: int = 0, minutes: int = 0) -> Any:
    """Spark's own; of the four aggregates its tree knows three, and one more would spoil them all."""
    frame = f"ORDER BY ts, id ROWS BETWEEN {rows - 1} PRECEDING AND CURRENT ROW"
    if minutes:
        frame = f"ORDER BY ts RANGE BETWEEN INTERVAL {minutes} MINUTES PRECEDING AND CURRENT ROW"
    names = [name for name in THEIRS if not tree or name != "which"]
    return table.selectExpr("*", *(f"{THEIRS[name]} OVER (PARTITION BY k {frame}) AS {name}" for name in names))


def require_same_answers(spark: Any, folder: str) -> None:
    """Ours, whole and split, against Spark's own with its tree and without, before anything is timed."""
    table = rides(spark, 20_000, 2, folder)
    for length in ({"rows": 1_000}, {"minutes": 60}):
        for tree in (False, True):
            spark.conf.set(TREE, str(tree).lower())
            theirs = over(table, tree=tree, **length).drop("k", "ts", "x").toPandas()
            for spec in (spec_of(**length), spec_of(**length).split_hot_keys(RANGES)):
                ours = spec(table).select(*theirs.columns).toPandas().sort_values("id", ignore_index=True)
                unlike = (ours - theirs.sort_values("id", ignore_index=True)).abs().max().max()
                if not unlike < 1e-9:
                    raise AssertionError(f"answers differ by {unlike}, with its tree {tree}: {spec!r}")


# --- bars ------------------------------------------------------------------------------------------


def sweeps(spark: Any, n: int, folder: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """All lengths of windows over tables of one, many and very many keys."""
    require_same_answers(spark, folder)
    for keys in (1, 100, 10_000):
        yield from sweep(spark, n, keys, folder, quick=quick)


def sweep(spark: Any, n: int, keys: int, folder: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """All lengths of windows over one table: at most 1.5 times identity, flat, ahead of the tree from 100 rows on."""
    table = rides(spark, n, keys, folder)
    seconds(lambda: spec_of(rows=10)(table.limit(1_000)), repeats=1)  # loads the machine code
    seconds(lambda: identity(table), repeats=1)
    times, ratios = [], []
    windows = [("rows", each) for each in ROWS] + [("minutes", each) for each in MINUTES]
    windows = [each for each in windows if keys == 100 or each[1] in FEW_LENGTHS]
    part = rides(spark, n // FEWER, keys, folder)
    for unit, length in windows[1::3] if quick else windows:
        spec = spec_of(**{unit: length})
        ours, least = by_turns(lambda spec=spec: spec(table), lambda: identity(table))
        times.append(ours.best)
        ratios.append(ours.best / least.best)
        found = beside_identity(n, ours, least)
        if length in WITH_TREE:
            taken = native(spark, part, tree=True, **{unit: length}) * FEWER
            found["tree / ours"] = round(taken / ours.best, 2)
        yield {"what": f"{keys} keys, {length} {unit}", **found}
    found = {"longest / shortest": round(max(times) / min(times), 2)}
    found["the same of ratios"] = round(max(ratios) / min(ratios), 2)  # what the machine did else falls out
    yield {"what": f"{keys} keys, all lengths", **found}


def many_keys(spark: Any, n: int, folder: str) -> Iterator[dict[str, Any]]:
    """A tenth as many keys as rows."""
    table = rides(spark, n, n // 10, folder)
    ours, least = by_turns(lambda: spec_of(rows=10)(table), lambda: identity(table))
    yield {"what": f"{n // 10} keys of 10 rows", **beside_identity(n, ours, least)}


def against_default(spark: Any, folder: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """The frame of every row once more: 10 times ours at 1,000 rows, 100 times at 10,000. Few rows: it is slow."""
    for rows, n in ((1_000, 300_000), (10_000, 100_000)):
        n = n // 10 if quick else n
        table = rides(spark, n, 1, folder)
        ours = seconds(lambda rows=rows, table=table: spec_of(rows=rows)(table))
        default = native(spark, table, tree=False, rows=rows)
        yield {"what": f"1 key, {rows} of {n} rows", "default / ours": round(default / ours, 1)}


@sash.aggregate(state={"n": "i8", "total": "f8"})
class Mean:
    """A mean, written in Python."""

    identity = (0, 0.0)

    def lift(x):
        return (1, x)

    def combine(older, newer):
        return (older[0] + newer[0], older[1] + newer[1])

    def lower(state):
        return state[1] / state[0] if state[0] else None


@sash.aggregate(state={"high": "f8", "low": "f8", "fall": "f8"})
class LargestFall:
    """How far values have fallen below an earlier one at most."""

    identity = (-math.inf, math.inf, 0.0)

    def lift(x):
        return (x, x, 0.0)

    def combine(older, newer):
        fall = max(older[2], newer[2], older[0] - newer[1])
        return (max(older[0], newer[0]), min(older[1], newer[1]), fall)

    def lower(state):
        return state[2]


def against_python(spark: Any, folder: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Aggregates in Python against all ways that PySpark has for one over a window: 30 times, in any window.

    One that Arrow has in C++ too, and one that nobody has; short and long windows get fewer rows.
    """
    n = 40_000 if quick else 2_000_000
    cases = [(Mean, _means(), 1_000, n), (LargestFall, _largest_falls(), 1_000, n)]
    cases += [(LargestFall, _largest_falls(), rows, n // 4) for rows in (10, 10_000)]
    for aggregate, ways, rows, n_rows in cases:
        n_theirs = n // FEWER if n_rows == n else n_rows  # seconds at least: a job has its own, which must not count
        tables = {each: rides(spark, each, 10, folder) for each in (n_rows, n_theirs)}
        yield _beside_python(tables, rows, aggregate, ways)


def _beside_python(tables: dict[int, Any], rows: int, aggregate: Any, ways: dict[str, Any]) -> dict[str, Any]:
    """Ours over the larger of some tables, by their rows, beside theirs over the smaller, by row."""
    from pyspark.sql import Window

    n, n_theirs = max(tables), min(tables)
    table, part = tables[n], tables[n_theirs]
    frame = Window.partitionBy("k").orderBy("ts", "id").rowsBetween(1 - rows, 0)
    spec = sash.window(by="k", order_by=["ts", "id"]).rows(rows).agg(y=sash.agg(aggregate, "x"))
    _require_alike(spec, ways, frame, table.where("id < 3000"))
    ours, least = by_turns(lambda: spec(table), lambda: identity(table), repeats=3)
    found = beside_identity(n, ours, least)
    for name, function in ways.items():
        if function is None:
            found[f"{name} / ours"] = "not in this PySpark"
            continue
        theirs = seconds(lambda function=function: part.withColumn("y", function("x").over(frame)), repeats=1)
        found[f"{name} / ours"] = round(theirs / n_theirs * n / ours.best, 1)
    return {"what": f"in Python: {aggregate.__name__}, {rows:,} rows", **found}


def _require_alike(spec: Any, ways: dict[str, Any], frame: Any, table: Any) -> None:
    ours = {row["id"]: row["y"] for row in spec(table).collect()}
    for name, function in ways.items():
        theirs = {} if function is None else table.withColumn("y", function("x").over(frame)).collect()
        if any(abs(ours[row["id"]] - row["y"]) > 1e-9 for row in theirs):
            raise AssertionError(f"answers of {name} differ: {spec!r}")


def _means() -> dict[str, Any]:
    """Means over windows as PySpark lets one write them; None: not in this version."""
    import pyarrow.compute as pc

    return {
        **_in_columns(lambda values: float(values.mean()), lambda values: pc.mean(values).as_py()),
        "Aggregator": _incremental(),
    }


def _largest_falls() -> dict[str, Any]:
    """The same of largest falls, by numpy, as fast as it can be said."""

    def fall(values: Any) -> float:
        return float((np.maximum.accumulate(values) - values).max())

    return _in_columns(lambda values: fall(values.to_numpy()), lambda values: fall(values.to_numpy()))


def _in_columns(by_pandas: Any, by_arrow: Any) -> dict[str, Any]:
    """Functions of a window as a column of pandas, and of Arrow."""
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import functions

    by_pandas.__annotations__ = {"values": pd.Series, "return": float}
    by_arrow.__annotations__ = {"values": pa.Array, "return": float}
    return {
        "pandas_udf": functions.pandas_udf(by_pandas, "double"),
        "arrow_udf": functions.arrow_udf(by_arrow, "double") if hasattr(functions, "arrow_udf") else None,
    }


def _incremental() -> Any:
    """The incremental Aggregator, which PySpark has in versions after 4.3."""
    with contextlib.suppress(ImportError):
        from pyspark.sql.aggregator import Aggregator, udaf

        class Incremental(Aggregator):
            zero = (0, 0.0)

            def reduce(self, state, x):
                return (state[0] + 1, state[1] + x)

            def merge(self, older, newer):
                return (older[0] + newer[0], older[1] + newer[1])

            def finish(self, state):
                return state[1] / state[0] if state[0] else None

        return udaf(Incremental(), "double")
    return None


# --- hot keys --------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """One call of a spec and its job, the look at the table included."""

    clock: float
    cpu: float  # of all processes
    tasks: float  # the longest task of each stage, added up
    jvm: float  # processor time of all tasks, as Spark has it


def hot_key(spark: Any, n: int, folder: str, repeats: int) -> Iterator[dict[str, Any]]:
    """One key in ranges: processor time at most 1.5 times that of the single task, the clock not slower."""
    for name, whole, split in _whole_and_split(spark, n, folder, repeats):
        yield {
            "what": f"1 key in {RANGES} ranges, {name}",
            "cpu": round(split.cpu / whole.cpu, 2),
            "clock": round(split.clock / whole.clock, 2),
            "jvm": round(split.jvm / whole.jvm, 2),
            "whole s": [round(each, 2) for each in whole],
            "split s": [round(each, 2) for each in split],
        }


def hot_tasks(alone: Any, n: int, folder: str) -> Iterator[dict[str, Any]]:
    """The same, tasks one at a time: the longest of each stage at most 0.3 times the single one."""
    for name, whole, split in _whole_and_split(alone, n, folder, 1):
        found = {"tasks": round(split.tasks / whole.tasks, 2), "s": [round(whole.tasks, 2), round(split.tasks, 2)]}
        yield {"what": f"tasks of {RANGES} ranges, {name}", **found}


def _whole_and_split(spark: Any, n: int, folder: str, repeats: int) -> Iterator[tuple[str, Measured, Measured]]:
    spark.conf.set("spark.sql.files.minPartitionNum", RANGES)  # as on the eight cores that eight ranges are for
    table = rides(spark, n, 1, folder)
    lengths = {"1,000 rows": {"rows": 1_000}, f"{n // 10:,} rows": {"rows": n // 10}}
    lengths[f"{n * 864 // 10_000:,} seconds"] = {"minutes": n * 864 // 600_000}  # 10 days of 10^7 rows
    for name, length in lengths.items():
        spec = spec_of(**length)
        yield (
            name,
            *measured(
                spark, lambda spec=spec: spec(table), lambda spec=spec: spec.split_hot_keys(RANGES)(table), repeats
            ),
        )


def measured(spark: Any, whole: Callable[[], Any], split: Callable[[], Any], repeats: int) -> list[Measured]:
    """The least of each over some turns, after one that makes Spark's code."""
    turns = [(_measured(spark, whole), _measured(spark, split)) for _ in range(repeats + 1)][1:]
    return [Measured(*(min(each) for each in zip(*runs, strict=True))) for runs in zip(*turns, strict=True)]


def _measured(spark: Any, build: Callable[[], Any]) -> Measured:
    known = {(stage["stageId"], stage["attemptId"]) for stage in _status(spark, "/stages")}
    cpu, clock = _cpu_below(), time.perf_counter()
    build().write.format("noop").mode("overwrite").save()
    clock, cpu = time.perf_counter() - clock, _cpu_below() - cpu
    tasks, jvm = 0.0, 0.0
    for metrics in _tasks_since(spark, known):
        tasks += max(each["executorRunTime"] for each in metrics) / 1e3
        jvm += sum(each["executorCpuTime"] for each in metrics) / 1e9
    return Measured(clock, cpu, tasks, jvm)


def _tasks_since(spark: Any, known: set[Any]) -> Iterator[list[Any]]:
    """The metrics of all tasks of each stage that is new. Spark's bookkeeping lags behind: wait until it has ended."""
    while True:
        new = [each for each in _status(spark, "/stages") if (each["stageId"], each["attemptId"]) not in known]
        if new and not any(each["status"] in ("ACTIVE", "PENDING") for each in new):
            break
        time.sleep(0.1)
    for stage in new:
        if stage["status"] == "COMPLETE":
            tasks = _status(spark, f"/stages/{stage['stageId']}/{stage['attemptId']}/taskList?length=100000")
            yield [task["taskMetrics"] for task in tasks if "taskMetrics" in task]


def _status(spark: Any, what: str) -> Any:
    context = spark.sparkContext
    with urllib.request.urlopen(f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}{what}") as answer:
        return json.load(answer)


def _processes() -> dict[int, list[tuple[int, list[str]]]]:
    """All processes by their parents: number, and what the system says of each."""
    found: dict[int, list[tuple[int, list[str]]]] = {}
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if path.name.isdigit():
                said = (path / "stat").read_text()
                fields = [said[said.index("(") + 1 : said.rindex(")")], *said[said.rindex(")") + 1 :].split()]
                found.setdefault(int(fields[2]), []).append((int(path.name), fields))
    return found


def _below() -> Iterator[tuple[int, list[str]]]:
    """The processes that this one has started, and theirs."""
    processes, parents = _processes(), [os.getpid()]
    while parents:
        for number, fields in processes.get(parents.pop(), []):
            parents.append(number)
            yield number, fields


def _cpu_below() -> float:
    """Processor time of Spark and its Python, in seconds, with that of processes that have ended."""
    ticks = sum(int(each) for _, fields in _below() for each in fields[12:16])
    return ticks / os.sysconf("SC_CLK_TCK")


# --- memory ----------------------------------------------------------------------------------------


def memory(spark: Any, n: int, folder: str) -> Iterator[dict[str, Any]]:
    """The most that a Python worker has held, before and after ten times the rows; first, while workers are new."""
    peaks = []
    for rows in (n // 10, n):
        table = rides(spark, rows, 100, folder)
        seconds(lambda table=table: spec_of(rows=1_000)(table), repeats=1)
        peaks.append(max(_peak(number) for number, fields in _below() if fields[0].startswith("python")))
    yield {
        "what": "memory of a worker",
        "MB": [round(peak / 1024) for peak in peaks],
        "x 10 rows": round(peaks[1] / peaks[0], 2),
    }


def _peak(process: int) -> int:
    """The most memory it ever had, in kB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return 0


# --- what is claimed -------------------------------------------------------------------------------


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The bars of tables on Spark."""

    def bar(hold: Any, said: str, column: str, limit: float, what: str = "", why: str = "") -> Claim:
        among = [row for row in rows if column in row and what in row["what"]]
        return hold(said, of(among, column, "what"), limit, noise=noise_of(among), why=why)

    same = [row for row in rows if "x identity" in row and not row["what"].startswith("in Python")]
    said = "at most 1.5 times the same plan with a function that does nothing"
    return [
        at_most(said, of(same, "x identity", "what"), 1.5, noise=noise_of(same)),
        bar(at_most, "flat in W: from the least to the most at most 1.5 times, by turns with that plan",
            "the same of ratios", 1.5),
        bar(at_least, "ahead of Spark's segment tree from 100 rows on", "tree / ours", 1),
        bar(at_least, "10 times ahead of Spark's default at 1,000 rows", "default / ours", 10, "key, 1000 of"),
        bar(at_least, "100 times ahead of Spark's default at 10,000 rows", "default / ours", 100, "key, 10000 of"),
        *(
            bar(at_least, f"{name} in Python: 30 times ahead of {way}, whatever the window", f"{way} / ours", 30, name,
                why=_why_not_further(rows, name, f"{way} / ours"))
            for name in ("Mean", "LargestFall") for way in ("pandas_udf", "arrow_udf")
        ),
        bar(at_most, f"a hot key in {RANGES} ranges: the longest tasks at most 0.3 times the single one", "tasks", 0.3),
        bar(at_most, "a hot key in ranges: processor time at most 1.5 times", "cpu", 1.5),
        bar(at_most, "a hot key in ranges: never slower on 2 cores", "clock", 1),
    ]  # fmt: skip


def _why_not_further(rows: Sequence[Row], name: str, column: str) -> str:
    """How far ahead a function that does nothing would be: it takes what ours takes by `x identity`."""
    among = [row for row in rows if column in row and name in row["what"]]
    floor = min((row[column] * row["x identity"] for row in among), default=0.0)
    return f"a function in Python that does nothing, by the same plan, is {floor:.0f} times ahead of it at the least"


def main() -> int:
    """Run it as `sash bench spark` does; parts of it, or over other rows, without noting them."""
    from bench import running

    parser = argparse.ArgumentParser(prog="bench.spark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, fewer windows, noted in build/")
    parser.add_argument("--rows", type=int, help="so many rows, nothing noted")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some parts, nothing noted")
    given = parser.parse_args()
    if given.rows is None and given.only is PARTS:
        return running.main([NAME], everything=False, quick=given.quick)
    begin = time.perf_counter()
    for row in run(given.quick, given.rows, given.only):
        shown = "  ".join(f"{key} {value}" for key, value in row.items() if key != "what")
        print(f"{(time.perf_counter() - begin) / 60:5.1f} min  {row['what']:<28}  {shown}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
