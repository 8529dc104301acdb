"""Fixed windows over a column of 10^7 float64: Sash beside its peers and beside a copy of the array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import sash
from bench.measuring import best_ns
from bench.peers import AGGREGATES, peers

NAME = "slide"
WINDOWS = (16, 1024, 2**17, 2**20)


@sash.aggregate(state="f8")
class UsersMax:
    """A user's copy of the built-in max."""

    identity = -np.inf

    def lift(x):
        return x

    def combine(older, newer):
        return newer if newer > older or newer != newer else older  # noqa: PLR0124 - NaN


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each aggregate and window: nanoseconds a row, and ratios to Sash."""
    n = 1_000_000 if quick else 10_000_000
    values = np.random.default_rng(20261115).random(n)
    copy = np.empty(n)
    copy_ns = best_ns(lambda: np.copyto(copy, values), n, repeats=9)
    fresh_ns = best_ns(lambda: np.copy(values), n, repeats=9)
    yield {"what": "copyto", "sash_ns": round(copy_ns, 2)}
    yield {"what": "copy into a new array", "sash_ns": round(fresh_ns, 2)}
    table = peers()
    for name in AGGREGATES:
        for rows in (w for w in WINDOWS if w <= n):
            yield _compare(name, rows, values, table[name], copy_ns)
    for rows in WINDOWS:
        builtin = best_ns(lambda rows=rows: sash.slide(values, sash.max(), rows=rows), n)
        users = best_ns(lambda rows=rows: sash.slide(values, UsersMax, rows=rows), n)
        ratio = round(users / builtin, 2)
        yield {"what": "a user's max", "rows": rows, "sash_ns": round(users, 2), "to built-in": ratio}


def _compare(name: str, rows: int, values: Any, rivals: dict[str, Any], copy_ns: float) -> dict[str, Any]:
    n, aggregate = len(values), getattr(sash, name)()
    answers = sash.slide(values, aggregate, rows=rows)
    sash_ns = best_ns(lambda: sash.slide(values, aggregate, rows=rows), n)
    row: dict[str, Any] = {"what": name, "rows": rows, "sash_ns": round(sash_ns, 2)}
    row["to a copy"] = round(sash_ns / copy_ns, 2)
    for peer, run_peer in rivals.items():
        found = run_peer(values, rows)
        if peer == "bottleneck" and name == "argmax":  # it counts back from the row
            found = np.arange(n) - found
        if not np.allclose(found, answers, rtol=1e-6, atol=1e-9, equal_nan=True):
            row[peer] = "differs"
            continue
        row[peer] = round(best_ns(lambda run_peer=run_peer: run_peer(values, rows), n, repeats=3) / sash_ns, 2)
    return row
