"""Spark: our windows against its own, and against the least any Python can do: shuffle, sort, hand the rows over.

Each ratio is of one run, the shorter of two measurements. `identity` is the same plan with a function that gives
batches back as they are. `default` re-aggregates every frame, and is only asked where it ends this day; `tree` is
Spark's segment tree, off by default. A DataFrame keeps its plan, so each is built anew after a setting has changed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import sash
from bench.measuring import record

NAME = "spark"
TREE = "spark.sql.window.segmentTree.enabled"
MOST_FRAMES = 3e9  # rows times window that Spark's default may re-aggregate
OURS = {
    "total": sash.sum("x"), "top": sash.max("x"), "spread": sash.std("x"), "which": sash.argmax("x", "id")
}  # fmt: skip
THEIRS = {
    "total": "sum(x)", "top": "max(x)", "spread": "stddev_samp(x)", "which": "max_by(id, x)"
}  # fmt: skip


def run(quick: bool = False) -> Iterator[dict[str, Any]]:
    """Rows of ratios: identity, ours, the segment tree and the default, for several keys and windows."""
    n = 1_000_000 if quick else 10_000_000
    spark = sash.spark.session("bench", memory="6g")
    with tempfile.TemporaryDirectory() as folder:
        for keys in (1, 100, 10_000):
            table = rides(spark, n, keys, f"{folder}/{keys}")
            identity = seconds(lambda table=table: arranged(table).mapInArrow(lambda batches: batches, table.schema))
            for rows in (10, 1_000, 100_000) if quick else (10, 100, 1_000, 10_000, 100_000):
                yield {"what": f"{keys} keys, {rows} rows", **ratios(spark, table, identity, n, rows=rows)}
            for minutes in (60,) if quick else (1, 60, 30 * 24 * 60):
                yield {"what": f"{keys} keys, {minutes} min", **ratios(spark, table, identity, n, minutes=minutes)}
        yield {"what": "a Python aggregate", **python_ratios(spark, rides(spark, n // 50, 100, f"{folder}/few"))}


def rides(spark: Any, n: int, keys: int, path: str) -> Any:
    """Rows a second apart, keys by turns, in a file."""
    columns = (
        f"id % {keys} AS k", "CAST(id AS timestamp) AS ts", "rand(1) AS x", "id"
    )  # fmt: skip
    spark.range(0, n, 1, 4).selectExpr(*columns).write.parquet(path)
    return spark.read.parquet(path)


def arranged(table: Any) -> Any:
    return table.repartition("k").sortWithinPartitions("k", "ts", "id")


def seconds(build: Callable[[], Any], repeats: int = 2) -> float:
    """The time of a job that writes nowhere; the plan is built anew each time."""
    shortest = float("inf")
    for _ in range(repeats):
        job = build()
        before = time.perf_counter()
        job.write.format("noop").mode("overwrite").save()
        shortest = min(shortest, time.perf_counter() - before)
    return shortest


def ratios(spark: Any, table: Any, identity: float, n: int, *, rows: int = 0, minutes: int = 0) -> dict[str, Any]:
    window = sash.window(by="k", order_by=["ts", "id"])
    spec = (window.rows(rows) if rows else window.range(f"{minutes} minutes")).agg(**OURS)
    frame = (
        f"ORDER BY ts, id ROWS BETWEEN {rows - 1} PRECEDING AND CURRENT ROW"
        if rows
        else f"ORDER BY ts RANGE BETWEEN INTERVAL {minutes} MINUTES PRECEDING AND CURRENT ROW"
    )
    ours = seconds(lambda: spec(table))
    found = {"us a row": round(ours / n * 1e6, 2), "x identity": round(ours / identity, 2)}
    found["tree / ours"] = round(native(spark, table, frame, tree=True) / ours, 2)
    if rows and n * rows <= MOST_FRAMES:
        found["default / ours"] = round(native(spark, table, frame, tree=False) / ours, 1)
    return found


def native(spark: Any, table: Any, frame: str, *, tree: bool) -> float:
    """Spark's own; of the four aggregates its tree knows three, and one more would spoil them all."""
    spark.conf.set(TREE, str(tree).lower())
    names = [name for name in THEIRS if not tree or name != "which"]
    answers = [f"{THEIRS[name]} OVER (PARTITION BY k {frame}) AS {name}" for name in names]
    return seconds(lambda: table.selectExpr("*", *answers), repeats=2 if tree else 1)


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


def python_ratios(spark: Any, table: Any, rows: int = 1_000) -> dict[str, Any]:
    """An aggregate in Python, against a pandas function over the same window."""
    from pyspark.sql import Window
    from pyspark.sql.functions import PandasUDFType, pandas_udf

    mean = pandas_udf(lambda values: float(values.mean()), "double", PandasUDFType.GROUPED_AGG)
    over = Window.partitionBy("k").orderBy("ts", "id").rowsBetween(1 - rows, 0)
    spec = sash.window(by="k", order_by=["ts", "id"]).rows(rows).agg(mean=sash.agg(Mean, "x"))
    ours = seconds(lambda: spec(table))
    theirs = seconds(lambda: table.withColumn("mean", mean("x").over(over)), repeats=1)
    return {"us a row": round(ours / table.count() * 1e6, 2), "pandas_udf / ours": round(theirs / ours, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.spark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, fewer windows, nothing recorded")
    quick = parser.parse_args().quick
    rows = []
    for row in run(quick):
        print(
            "  ".join(f"{key} {value}" if key != "what" else f"{value:<24}" for key, value in row.items()), flush=True
        )
        rows.append(row)
    if not quick:
        print(f"recorded in {record(NAME, rows)}")


if __name__ == "__main__":
    main()
