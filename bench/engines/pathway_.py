"""Pathway over files of rows: `python pathway_.py '{"mode": ..., ...}'` prints answers or times as JSON.

Its windows around every row, `intervals_over`, are a join of each row with those in its window; said as the join,
keys are part of it, which is faster.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pathway as pw


class Event(pw.Schema):
    k: int
    ts_ms: int
    x: float
    row: int


def query(path: str, function: str, seconds: int) -> Any:
    """Of every row its number and its answer."""
    rows = pw.io.csv.read(path, schema=Event, mode="static")
    others, span = rows.copy(), pw.temporal.interval(-1000 * seconds, 0)
    held = pw.temporal.interval_join_inner(rows, others, rows.ts_ms, others.ts_ms, span, rows.k == others.k)
    pairs = held.select(row=pw.left.row, x=pw.right.x)
    reduced = {"max": pw.reducers.max, "sum": pw.reducers.sum}[function]
    return pairs.groupby(pairs.row).reduce(pairs.row, answer=reduced(pairs.x))


def answered(path: str, function: str, seconds: int, repeats: int) -> dict:
    """Answers of all rows, if nothing is to be repeated; else the seconds of each run after one to warm up."""
    if not repeats:
        found = pw.debug.table_to_pandas(query(path, function, seconds))
        return {"answers": list(zip(found.row.tolist(), found.answer.tolist(), strict=True))}
    times = []
    for _ in range(repeats + 1):
        pw.internals.parse_graph.G.clear()
        pw.io.null.write(query(path, function, seconds))
        before = time.perf_counter()
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        times.append(time.perf_counter() - before)
    return {"seconds": times}


def main(mode: str, cores: int, asks: list) -> None:
    """A line for each thing that is asked, as soon as it is known; it has one mode, and one thread unless told else."""
    for ask in asks:
        print(json.dumps(answered(**ask)), flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
