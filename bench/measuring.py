"""Clocks, machines and lines of history."""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HISTORY = Path(__file__).parent / "history"
QUICK = Path("build/bench-quick")  # where quick runs are noted, each over the one before
Way = Callable[[], Callable[[], Any]]  # prepares a turn, and gives what is to be timed
PACKAGES = (
    "sash", "numpy", "numba", "pyarrow", "bottleneck", "pandas", "polars", "duckdb", "river", "lmdb", "pyspark"
)  # fmt: skip


class Spent(NamedTuple):
    """Nanoseconds an item: the best of several turns, and how far above it the middle one was."""

    best: float
    spread: float  # 0.1: half of the turns took at most 10 % more than the best


def best_ns(run: Callable[[], Any], n: int, *, repeats: int = 5, budget_s: float = 20.0) -> float:
    """Nanoseconds an item: the best of `timed`."""
    return timed(run, n, repeats=repeats, budget_s=budget_s).best


def timed(run: Callable[[], Any], n: int, *, repeats: int = 5, budget_s: float = 20.0) -> Spent:
    """Nanoseconds an item of several runs; fewer if a run is long, yet one after the first, which may compile."""
    run()
    return spent_of(np.array(list(_times(run, repeats, budget_s))) / n * 1e9)


def _times(run: Callable[[], Any], most: int, budget_s: float) -> Iterator[float]:
    """Seconds of run after run, until there are enough of them or they have taken long enough."""
    started = time.perf_counter()
    for _ in range(most):
        gc.collect()
        before = time.perf_counter()
        run()
        yield time.perf_counter() - before
        if time.perf_counter() - started > budget_s:
            return


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
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {**{package: _version(package) for package in PACKAGES}, "java": _java()},
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
    """The commit; with a + after it if a file that is measured is not as it is there. History grows as it is noted."""
    found = _git("rev-parse", "--short", "HEAD")
    return found + "+" * bool(_git("status", "--porcelain", "--", ".", ":!bench/history")) if found else "unknown"


def _git(*words: str) -> str:
    root = Path(__file__).parents[1]
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError):  # not on this system
        return None


def last_cache_mb() -> float | None:
    """The cache before memory, as the system has it; None if it does not say."""
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(size.removesuffix("K")) / 1024 for size in sizes), default=None)


def _java() -> str:
    """The version of the Java that Spark takes: that of JAVA_HOME, or the one on the path."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    try:
        said = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return "absent"
    found = re.search(r'version "([^"]+)"', said)
    return found[1] if found else "unknown"


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
