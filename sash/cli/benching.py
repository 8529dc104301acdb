"""Windows of several sizes on this machine: nanoseconds a row. The full benchmarks are in the repository."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from rich.table import Table

import sash
from sash.cli.console import waiting

SIZES = (16, 1_024, 65_536)
RECALCULATED = 2_048  # the largest window that NumPy recalculates in bearable time
REPEATS = 3
CASES = (  # name, aggregate, and how NumPy would recalculate it, where that gives the same bits
    ("max", sash.max(), np.max),
    ("mean", sash.mean(), None),
    ("std", sash.std(), None),
    ("geometric mean", sash.geomean(), None),
)


def table(n_rows: int) -> Table:
    """Time a few aggregates over windows of a few sizes."""
    values = np.random.default_rng(2013).lognormal(size=n_rows)
    shown = Table("aggregate", "rows in the window", "sash, ns a row", "NumPy, ns a row", "same answers")
    for name, aggregate, recalculate in CASES:
        for size in SIZES:
            with waiting(f"{name} over {size} rows"):
                shown.add_row(name, f"{size:,}", *_measured(values, aggregate, recalculate, size))
    return shown


def _measured(values: Any, aggregate: Any, recalculate: Any, size: int) -> tuple[str, str, str]:
    answers, ours = _best(lambda: sash.slide(values, aggregate, rows=size), len(values))
    if recalculate is None or size > RECALCULATED:
        return f"{ours:,.1f}", "", ""
    truth, theirs = _best(lambda: recalculate(sliding_window_view(values, size), axis=1), len(values))
    same = bool(np.array_equal(answers[size - 1 :], truth))
    return f"{ours:,.1f}", f"{theirs:,.1f}", "yes" if same else "NO"


def _best(run: Callable[[], Any], n: int) -> tuple[Any, float]:
    """The result, and nanoseconds a row of the best of a few runs after one to warm up."""
    run()
    shortest = float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        result = run()
        shortest = min(shortest, time.perf_counter() - began)
    return result, 1e9 * shortest / n
