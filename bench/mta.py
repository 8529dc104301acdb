"""The monoid trees: rounds at any window size, bulk evictions, and many aggregates in one window."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import sash
from bench.bars import at_least, at_most, of
from bench.experiments.contract import Claim, Row
from bench.measuring import best_ns

NAME = "mta"
N_TURNS = 3  # mta-exp1 measures the same rounds at length


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Constant sizes, then bulk evictions, then figure 9."""
    n = 1_000_000 if quick else 4_000_000
    for exponent in (0, 10, 17) if quick else (0, 4, 10, 16, 20, 22):
        yield constant_size(exponent, max(n, 2 << exponent))
    yield from _evictions(18 if quick else 23)
    for k in (1, 2, 5) if quick else (1, 2, 5, 10, 20, 50):
        yield _dimensions(k, 200_000 if quick else 1_000_000)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The bar of bulk evictions in memory, and many aggregates in one window."""
    evictions = [row for row in rows if row["what"] == "bulk eviction, amta"]
    half = [row for row in evictions if row["n"] == f"2^{math.log2(2 * row['evicted']):g}"]
    return [
        at_most("AMTA evicts half of 2^23 in at most 1 ms", of(half, "us", "n", "evicted"), 1_000),
        at_most("and any other part of it", of(evictions, "us", "n", "evicted"), 1_000),
        at_least("aggregates in one window take no longer than as many windows", of(rows, "ratio", "k"), 1),
    ]


def constant_size(exponent: int, n: int) -> dict[str, Any]:
    """Nanoseconds a round of each algorithm, in turns, so that noise meets all of them alike."""
    values = np.random.default_rng(20261115).random(n)
    row: dict[str, Any] = {"what": "constant size", "n": f"2^{exponent}"}
    names = ["two_stacks_lite", "daba_lite", "amta", "log_mta"] + (["recalc"] if exponent <= 10 else [])
    best = dict.fromkeys(names, float("inf"))
    for _ in range(N_TURNS):
        for name in names:
            best[name] = min(best[name], _round_ns(name, values[: _share(name, n, exponent)], 1 << exponent))
    row |= {name: round(ns, 2) for name, ns in best.items()}
    return row | {"amta to two_stacks_lite": round(best["amta"] / best["two_stacks_lite"], 2)}


def _round_ns(name: str, values: Any, rows: int) -> float:
    return best_ns(lambda: sash.slide(values, sash.sum(), rows=rows, algorithm=name), len(values), repeats=1)


def _share(name: str, n: int, exponent: int) -> int:
    """Fewer rows for those that take long, yet twice the window at least."""
    if name == "recalc":
        return max(20_000, 2 << exponent)
    return max(n // 8, 2 << exponent) if name == "log_mta" else n


def _evictions(exponent: int) -> Iterator[dict[str, Any]]:
    """Bulk evictions out of a full window, each from the same window, restored."""
    size = 1 << exponent
    values = np.random.default_rng(1).random(size)
    for name in ("amta", "log_mta", "two_stacks", "recalc"):
        for count in [1 << k for k in range(0, exponent, 4)] + [size // 2, size - 1]:
            if name in ("two_stacks", "recalc") and count not in (1, 256, size // 2):
                continue  # a loop over elements, and a fold over what is left: linear both
            for few in (1, 50, 2000):  # loads machine code
                _evict(_filled(name, values[:4000]), few)
            window = _filled(name, values)
            spent = _evict(window, count)
            row = {"what": f"bulk eviction, {name}", "n": f"2^{exponent}", "evicted": count}
            yield row | {"us": round(spent * 1e6, 1)}


def _filled(name: str, values: Any) -> Any:
    window = sash.aggregator(name, sash.sum(), compiled=True)
    window.bulk_insert(values)
    window.query()
    return window


def _evict(window: Any, count: int) -> float:
    before = time.perf_counter()
    window.bulk_evict(count)
    window.query()
    return time.perf_counter() - before


def _dimensions(k: int, n: int) -> dict[str, Any]:
    """k aggregates in one window beside k windows: the paper's figure 9."""
    values = np.random.default_rng(2).random(n)
    together = [sash.sum() if i % 2 else sash.max() for i in range(k)]
    one = best_ns(lambda: sash.slide(values, together, rows=1024, algorithm="amta"), n, repeats=3)
    apart = best_ns(
        lambda: [sash.slide(values, each, rows=1024, algorithm="amta") for each in together], n, repeats=3
    )  # fmt: skip
    return {"what": "dimensions", "k": k, "one window_ns": round(one, 1), "k windows_ns": round(apart, 1),
            "ratio": round(apart / one, 2)}  # fmt: skip
