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
from typing import Any

HISTORY = Path(__file__).parent / "history"
PACKAGES = ("numpy", "numba", "bottleneck", "pandas", "polars", "duckdb")


def best_ns(run: Callable[[], Any], n: int, *, repeats: int = 5, budget_s: float = 20.0) -> float:
    """Nanoseconds an item, best of several runs after one to warm up; fewer if a run is long."""
    run()
    started, shortest = time.perf_counter(), float("inf")
    for _ in range(repeats):
        gc.collect()
        before = time.perf_counter()
        run()
        now = time.perf_counter()
        shortest = min(shortest, now - before)
        if now - started > budget_s:
            break
    return shortest / n * 1e9


def record(name: str, rows: list[dict[str, Any]]) -> Path:
    """Append one line of JSON for this run."""
    line = {
        "name": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": f"{platform.machine()} {_processor()}",
        "python": platform.python_version(),
        "versions": {package: _version(package) for package in PACKAGES},
        "rows": rows,
    }
    HISTORY.mkdir(exist_ok=True)
    path = HISTORY / f"{name}.jsonl"
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return path


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
