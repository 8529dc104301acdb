"""Clocks, machines and lines of history."""

from __future__ import annotations

import gc
import json
import platform
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HISTORY = Path(__file__).parent / "history"
QUICK = Path("build/bench-quick")  # where quick runs are noted, each over the one before
Way = Callable[[], Callable[[], Any]]  # prepares a turn, and gives what is to be timed
PACKAGES = ("numpy", "numba", "bottleneck", "pandas", "polars", "duckdb", "river", "lmdb", "pyspark")


def best_ns(run: Callable[[], Any], n: int, *, repeats: int = 5, budget_s: float = 20.0) -> float:
    """Nanoseconds an item, best of several runs after one to warm up; fewer if a run is long, and that one if it is."""
    started, shortest = time.perf_counter(), float("inf")
    run()
    if time.perf_counter() - started > budget_s:
        return (time.perf_counter() - started) / n * 1e9
    started = time.perf_counter()
    for _ in range(repeats):
        gc.collect()
        before = time.perf_counter()
        run()
        now = time.perf_counter()
        shortest = min(shortest, now - before)
        if now - started > budget_s:
            break
    return shortest / n * 1e9


class Spent(NamedTuple):
    """Nanoseconds an item: the best of several turns, and how far above it the middle one was."""

    best: float
    spread: float  # 0.1: half of the turns took at most 10 % more than the best


def turns_of(*ways: Way, n_turns: int = 12, clock: Any = time.thread_time_ns) -> Any:
    """Nanoseconds of each turn (a row) of each way (a column), after one turn to warm up.

    What is compared takes turns, timed by the processor time of the thread, so that what else the machine does falls on
    all alike.
    """
    turns = np.zeros((n_turns + 1, len(ways)))
    for turn in turns:
        for k, way in enumerate(ways):
            prepared = way()
            before = clock()
            prepared()
            turn[k] = clock() - before
    return turns[1:]


def in_turns(
    ways: dict[str, Way], items: float | dict[str, float], *, n_turns: int = 5, clock: Any = time.thread_time_ns
) -> dict[str, Spent]:
    """Nanoseconds an item of each way, by turns; the number of items of a turn may differ from way to way."""
    turns = turns_of(*ways.values(), n_turns=n_turns, clock=clock)
    return {
        name: spent_of(turns[:, k] / (items[name] if isinstance(items, dict) else items)) for k, name in enumerate(ways)
    }


def spent_of(times: Any) -> Spent:
    """The best of some times, and their spread."""
    best = float(np.min(times))
    return Spent(best, float(np.median(times)) / best - 1 if best else 0.0)


def record(
    name: str, rows: list[dict[str, Any]], *, folder: Path = HISTORY, again: bool = True, **further: Any
) -> Path:
    """Append one line of JSON for this run; `again=False` begins the file anew."""
    line = {
        "name": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": f"{platform.machine()} {_processor()}",
        "python": platform.python_version(),
        "versions": {package: _version(package) for package in PACKAGES},
        **further,
        "rows": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    with path.open("a" if again else "w") as file:
        file.write(json.dumps(line) + "\n")
    return path


def last_run(name: str, folder: Path = HISTORY) -> dict[str, Any] | None:
    """The last line of history of a name, None if there is none."""
    path = folder / f"{name}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return json.loads(lines[-1]) if lines else None


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"
