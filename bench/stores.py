"""Windows in a store beside windows in memory: rounds, bulk evictions, memory, and what they ask of the store."""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import sash
from bench.bars import at_most, noise_of, of
from bench.children import in_child, peak_mb
from bench.experiments.contract import Claim, Row
from bench.measuring import spent_of
from sash.testing.stores import CountingStore

NAME = "stores"
BATCH = 4096


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Rounds, bulk evictions, then a large window in a process of its own."""
    for exponent in (10, 16) if quick else (10, 14, 18, 22):
        yield _rounds(exponent, 16 if quick else 128)
    yield from _evictions(18 if quick else 23)
    exponent = 20 if quick else 25
    for where in ("lmdb", "memory"):
        with directory() as path:
            found = in_child(_large_window, where, exponent, path)
        yield {"what": f"2^{exponent} of 16 bytes", "in": where, **found}


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The bars of windows in a store."""
    evictions = [row for row in rows if row["what"] == "bulk eviction, lmdb"]
    half = [row for row in evictions if row["n"] == f"2^{math.log2(2 * row['evicted']):g}"]
    large = [row for row in rows if row.get("in") == "lmdb"]
    return [
        at_most(
            "AMTA evicts half of 2^23 out of a store in at most 10 ms",
            of(half, "ms", "n", "evicted"),
            10,
            noise=noise_of(half),
        ),
        at_most("and any other part of it", of(evictions, "ms", "n", "evicted"), 10),
        at_most("a window of 2^25 elements in a store takes at most 512 MB", of(large, "peak_mb", "what"), 512),
    ]


@contextmanager
def directory() -> Iterator[str]:
    """A directory that is gone afterwards."""
    path = tempfile.mkdtemp(prefix="sash-bench-")
    try:
        yield path
    finally:
        shutil.rmtree(path)


def values() -> Any:
    """A batch of seeded numbers."""
    return np.random.default_rng(20261115).random(BATCH)


def fill(window: Any, n: int) -> None:
    """Insert n numbers, in batches."""
    batch = values()
    for begin in range(0, n, BATCH):
        window.bulk_insert(batch[: n - begin])


def _rounds(exponent: int, n_batches: int) -> dict[str, Any]:
    """Batches of insertions, evictions and a query, over LMDB and in memory, alternating."""
    with directory() as path:
        counted = CountingStore(sash.open_store(f"lmdb://{path}/store"))
        stored = sash.aggregator("amta", sash.sum(), store=counted, name="w")
        in_memory = sash.aggregator("amta", sash.sum(), compiled=True)
        batch, spent = values(), {"stored": [], "in_memory": []}
        for window in (stored, in_memory):
            fill(window, 1 << exponent)
            window.bulk_insert(batch)
            window.bulk_evict(BATCH)
        counted.take()
        for _ in range(n_batches):
            for name, window in (("stored", stored), ("in_memory", in_memory)):
                before = time.perf_counter()
                window.bulk_insert(batch)
                window.bulk_evict(BATCH)
                window.query()
                spent[name].append(time.perf_counter() - before)
        stored.flush()
        taken, n = counted.take(), n_batches * BATCH
        stored.close()
        counted.close()
    mean = {name: sum(each) / n * 1e9 for name, each in spent.items()}
    return {
        "what": "rounds in batches",
        "n": f"2^{exponent}",
        "lmdb_ns": round(mean["stored"], 1),
        "memory_ns": round(mean["in_memory"], 1),
        "more_ns": round(mean["stored"] - mean["in_memory"], 1),
        "keys read a round": round(taken.keys_got / n, 5),
        "keys written a round": round(taken.keys_put / n, 5),
        "writes a round": round(taken.writes / n, 6),
    }


def _evictions(exponent: int) -> Iterator[dict[str, Any]]:
    """Bulk evictions of 1, 4, 16 ... out of a full window, over LMDB, each from the same durable state."""
    with directory() as path:
        counted = CountingStore(sash.open_store(f"lmdb://{path}/store"))
        window = sash.aggregator("amta", sash.sum(), store=counted, name="w")
        fill(window, 1 << exponent)
        window.flush()
        counts = [1 << k for k in range(0, exponent, 4)] + [1 << exponent - 1, (1 << exponent) - 1]
        for count in counts:
            times = []
            for _ in range(4):  # the first loads machine code
                again = sash.aggregator("amta", sash.sum(), store=counted, name="w")
                counted.take()
                before = time.perf_counter()
                again.bulk_evict(count)
                times.append(time.perf_counter() - before)
                read = counted.take().keys_got
            spent = spent_of(times[1:])
            yield {"what": "bulk eviction, lmdb", "n": f"2^{exponent}", "evicted": count,
                   "ms": round(spent.best * 1e3, 3), "noise": round(spent.spread, 2), "keys read": read}  # fmt: skip


def _large_window(tell: Callable[[Any], None], where: str, exponent: int, path: str) -> None:
    """Two numbers an element, sum and maximum; a round at the end shows that it works."""
    aggregates = {"sum": sash.sum("x"), "max": sash.max("x")}
    options = {"store": f"lmdb://{path}/store", "name": "w"} if where == "lmdb" else {"compiled": True}
    window = sash.aggregator("amta", aggregates, **options)
    empty = peak_mb()
    before = time.perf_counter()
    for _ in range((1 << exponent) // BATCH):
        window.bulk_insert({"x": values()})
    filled = time.perf_counter() - before
    window.bulk_evict(BATCH)
    window.query()
    tell({
        "peak_mb": peak_mb(), "empty_mb": empty, "fill_ns": round(filled / (1 << exponent) * 1e9, 1),
    })  # fmt: skip
