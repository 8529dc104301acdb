"""A year of bicycle rides: time windows from six hours to 32 days, in order of stop time and in file order.

Files list the rides of a month station by station, so file order is disorder of up to a month. Finger
trees beside classic ones over the same rides, of other aggregates too, are in fiba-fig15-citibike.
"""

from __future__ import annotations

import csv
import io
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sash
from bench.bars import at_most
from bench.experiments.contract import Claim, Row
from sash.engine.timed import MIN_ARITY

NAME = "citibike"
FOLDERS = (Path("data/citibike_jc"), Path("../shared/data/citibike_jc"), Path("../data/citibike_jc"))
SPANS = {"6 hours": 6, "1 day": 24, "4 days": 96, "16 days": 384, "32 days": 768}
HOUR = 3_600_000_000  # microseconds
BUDGET_NS = 1_000_000_000


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each order, aggregate and span: rows a second; and the memory a value takes."""
    folder = next((each for each in FOLDERS if each.is_dir()), None)
    if folder is None:
        yield {"what": "no data", "wanted": "Citi Bike trips, zipped CSV files, in data/citibike_jc"}
        return
    started = time.perf_counter()
    stops, durations = rides(folder, quick=quick)
    yield {"what": "rides", "rows": len(stops), "read_s": round(time.perf_counter() - started, 1)}
    order = np.argsort(stops, kind="stable")
    columns = {"stop-time order": (stops[order], durations[order]), "file order": (stops, durations)}
    for arrival, (times, values) in columns.items():
        for span, hours in SPANS.items():
            yield _row(f"sum, {arrival}", sash.sum(), values, times, (span, hours))
    yield _memory("sum", sash.sum(), *columns["stop-time order"])


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Rides in order of stop time come in order: what FiBA takes for them must be flat."""
    if any(row["what"] == "no data" for row in rows):
        return []
    in_order = [row for row in rows if row["what"] == "sum, stop-time order"]
    least = min((row["ns"] for row in in_order), default=1.0)
    found = [(row["span"], row["ns"] / least) for row in in_order]
    said = (
        "in order of stop time, FiBA is flat in n: at most 1.5 times from the least to the most of 6 hours to 32 days"
    )
    return [at_most(said, found, 1.5)]


def _row(what: str, aggregate: Any, values: Any, times: Any, length: tuple[str, int]) -> dict[str, Any]:
    span = length[1] * HOUR
    ns = _best_ns(lambda n: sash.slide(values[:n], aggregate, times=times[:n], span=span, ordered=False), len(values))
    sample = np.random.default_rng(1).integers(0, len(times), 200)
    newest = np.maximum.accumulate(times)
    counts = [((times[: i + 1] >= newest[i] - span) & (times[: i + 1] <= newest[i])).sum() for i in sample]
    return {
        "what": what, "span": length[0], "mean rows": round(float(np.mean(counts))), "ns": round(ns, 1),
        "rows a second": round(1e9 / ns),
    }  # fmt: skip


def _best_ns(slide: Callable[[int], Any], n: int) -> float:
    """Nanoseconds of processor time a row, best of three; of fewer, if one takes long."""
    slide(100)  # compiles
    started, shortest = time.thread_time_ns(), float("inf")
    for _ in range(3):
        before = time.thread_time_ns()
        slide(n)
        now = time.thread_time_ns()
        shortest = min(shortest, now - before)
        if now - started > BUDGET_NS:
            break
    return shortest / n


def _memory(name: str, aggregate: Any, times: Any, values: Any) -> dict[str, Any]:
    """The bytes of a tree of the last 32 days, by value."""
    recent = times >= times[-1] - SPANS["32 days"] * HOUR
    window = sash.aggregator("fiba", aggregate, compiled=True, min_arity=MIN_ARITY)
    window.bulk_insert(times[recent], values[recent] / values.max())
    n = len(window)
    return {"what": f"{name}, memory", "values": n, "bytes a value": round(window.n_bytes / n, 1)}


def rides(folder: Path, *, quick: bool) -> tuple[Any, Any]:
    """Stop times in microseconds and durations in seconds, in file order."""
    stops, durations = [], []
    for path in sorted(folder.glob("*.zip"))[: 2 if quick else None]:
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
            for ride in csv.DictReader(io.TextIOWrapper(file, "utf-8")):
                stops.append(ride["stoptime"])
                durations.append(float(ride["tripduration"]))
    return np.array(stops, "M8[us]").astype(np.int64), np.array(durations)


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
