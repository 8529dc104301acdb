"""Benchmarks: the experiments of the repository, run from a clone of it; elsewhere a few windows on this machine.

The experiments are no part of the package: they need the peers, minutes, and a place to note what came out.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from rich.table import Table

import sash
from sash.cli.console import waiting
from sash.cli.exits import MISSING, USAGE, CommandError

SIZES = (16, 1_024, 65_536)
RECALCULATED = 2_048  # the largest window that NumPy recalculates in bearable time
REPEATS = 3
CASES = (  # name, aggregate, and how NumPy would recalculate it, where that gives the same bits
    ("max", sash.max(), np.max),
    ("mean", sash.mean(), None),
    ("std", sash.std(), None),
    ("geometric mean", sash.geomean(), None),
)


def is_clone() -> bool:
    """Whether the current directory is a clone of the repository."""
    return Path("bench/registry.py").is_file()


def experiments(names: Sequence[str], *, everything: bool, quick: bool, output: Path | None) -> int:
    """List, run or draw the experiments of the clone in the current directory; an exit code."""
    if not is_clone():
        raise CommandError(
            f"the experiments are in the repository, and {Path.cwd()} is no clone of it; run this in a clone, or "
            "sash bench without a name, which times a few windows here",
            MISSING,
        )
    sys.path.insert(0, str(Path.cwd()))
    try:
        return int(
            importlib.import_module("bench.running").main(names, everything=everything, quick=quick, output=output)
        )
    except LookupError as error:
        raise CommandError(str(error.args[0]), USAGE) from None


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
