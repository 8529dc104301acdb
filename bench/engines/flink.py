"""Flink's SQL OVER over files of rows: `python flink.py '{"mode": ..., ...}'` prints answers or times as JSON.

Its OVER takes what leaves a window back out of its state: sums subtract, and max keeps every value. State is on the
heap, which is its fastest.
"""

from __future__ import annotations

import json
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment


def tables(mode: str, cores: int) -> TableEnvironment:
    """An environment with a sink that forgets rows."""
    settings = EnvironmentSettings.in_batch_mode() if mode == "batch" else EnvironmentSettings.in_streaming_mode()
    found = TableEnvironment.create(settings)
    found.get_config().set("parallelism.default", str(cores))
    found.get_config().set("table.local-time-zone", "UTC")
    found.execute_sql("CREATE TABLE nowhere (`row` BIGINT, answer DOUBLE) WITH ('connector' = 'blackhole')")
    return found


def read(found: TableEnvironment, path: str) -> None:
    """Let it have the rows of some files."""
    found.execute_sql("DROP TABLE IF EXISTS events")
    found.execute_sql(f"""
        CREATE TABLE events (
            k BIGINT, ts_ms BIGINT, x DOUBLE, `row` BIGINT, ts AS TO_TIMESTAMP_LTZ(ts_ms, 3), WATERMARK FOR ts AS ts
        ) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')""")


def query(mode: str, function: str, seconds: int) -> str:
    """Of every row its number and its answer; in batches it orders by numbers, as it cannot subtract from times."""
    minutes, rest = divmod(seconds, 60)  # a number of seconds alone may have three digits
    order, span = ("ts", f"INTERVAL '0 {minutes // 60:02}:{minutes % 60:02}:{rest:02}' DAY TO SECOND")
    if mode == "batch":
        order, span = ("ts_ms", f"{1_000 * seconds}")
    over = f"PARTITION BY k ORDER BY {order} RANGE BETWEEN {span} PRECEDING AND CURRENT ROW"
    return f"SELECT `row`, {function.upper()}(x) OVER ({over}) AS answer FROM events"


def answered(found: TableEnvironment, asked: str, repeats: int) -> dict:
    """Answers of all rows, if nothing is to be repeated; else the seconds of each run after one to warm up."""
    if not repeats:
        with found.execute_sql(asked).collect() as answers:
            return {"answers": [[row[0], row[1]] for row in answers]}
    times = []
    for _ in range(repeats + 1):
        before = time.perf_counter()
        found.execute_sql(f"INSERT INTO nowhere {asked}").wait()
        times.append(time.perf_counter() - before)
    return {"seconds": times}


def main(mode: str, cores: int, asks: list) -> None:
    """A line for each thing that is asked, as soon as it is known."""
    found = tables(mode, cores)
    for ask in asks:
        read(found, ask["path"])
        print(json.dumps(answered(found, query(mode, ask["function"], ask["seconds"]), ask["repeats"])), flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
