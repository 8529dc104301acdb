"""Rounds of evict, insert and query: every in-order algorithm, compiled, at several window sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import sash
from bench.measuring import best_ns

NAME = "rounds"
WINDOWS = (2**10, 2**17, 2**20)
ALGORITHMS = ("two_stacks", "two_stacks_lite", "aba", "daba", "daba_lite", "flat_fit", "reactive", "slick_deque")


@sash.aggregate(state=("u8", 256))
class BloomRows:
    """Rows of 2^14 bits joined by or; the answer is one word, so that answers cost nothing."""

    identity = 0
    commutative = True

    def lift(x, out):
        for k in range(256):
            out[k] = 0
        out[int(x * 255)] = 1

    def combine(older, newer, out):
        np.bitwise_or(older, newer, out)

    def lower(row):
        return row[0]


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each algorithm and window: nanoseconds a round."""
    n = 1_000_000 if quick else 5_000_000
    values = np.random.default_rng(20261115).random(n) + 0.5
    for algorithm in ALGORITHMS:
        for rows in WINDOWS:
            row: dict[str, Any] = {"what": algorithm, "rows": rows}
            for name, aggregate in _aggregates(algorithm):
                row[name] = round(_round_ns(values, aggregate, rows, algorithm), 2)
            yield row
    yield from _bloom(quick)


def _round_ns(values: Any, aggregate: Any, rows: int, algorithm: str) -> float:
    return best_ns(lambda: sash.slide(values, aggregate, rows=rows, algorithm=algorithm), len(values), repeats=3)


def _aggregates(algorithm: str) -> list[tuple[str, Any]]:
    if algorithm == "slick_deque":
        return [("max", sash.max())]
    return [("max", sash.max()), ("sum", sash.sum()), ("geomean", sash.geomean())]


def _bloom(quick: bool) -> Iterator[dict[str, Any]]:
    """Rows of 2 kB: how fast they move, beside a copy of as many bytes."""
    n, rows = (20_000, 2**10) if quick else (50_000, 2**14)
    values = np.random.default_rng(1).random(n)
    block = np.zeros((rows, 256), "u8")
    target = block.copy()
    copy_ns = best_ns(lambda: np.copyto(target, block), rows)
    for algorithm in ("two_stacks_lite", "daba_lite"):
        ns = _round_ns(values, BloomRows, rows, algorithm)
        to_a_copy = round(ns / copy_ns, 2)
        yield {"what": f"{algorithm} bloom", "rows": rows, "ns": round(ns), "to a copy of a row": to_a_copy}
