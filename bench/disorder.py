"""Rows out of order: fiba and btree, compiled, for distances from 0 to the whole window, and in bulk.

As in section 5.1 of the FiBA paper: d rows with high times stay at the young end, and each round evicts
the oldest row and inserts one just before those d.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import sash
from bench.rounds import BloomRows
from sash.engine.binding import bind
from sash.engine.timed_driving import Leaving, drive, rounds_driver
from sash.engine.trees import Trees, Wanted, build_trees, grown, n_bytes, new_tree

NAME = "disorder"
HIGH = 2**40
CHUNK, CHUNKS = 5_000, 40


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each aggregate, min-arity and distance: nanoseconds a round, fiba and btree side by side."""
    yield from _by_size(quick)
    yield from _by_distance(quick)
    yield from _bulk(quick)


def _by_size(quick: bool) -> Iterator[dict[str, Any]]:
    """In order, where a round should take the same for every window."""
    for min_arity in (4,) if quick else (2, 4, 8):
        for log_n in (4, 10, 16) if quick else (4, 7, 10, 13, 16, 19, 22):
            n = 2**log_n
            ns, per_row = _round_ns("fiba", sash.sum(), min_arity, n, 0)
            yield {"what": "fiba in order", "min_arity": min_arity, "rows": n, "ns": ns, "bytes a row": per_row}


def _by_distance(quick: bool) -> Iterator[dict[str, Any]]:
    log_n = 16 if quick else 22
    for name, aggregate in (("sum", sash.sum()), ("geomean", sash.geomean()), ("bloom", BloomRows)):
        for min_arity in (4,) if quick else (2, 4, 8):
            size = min(log_n, 12) if name == "bloom" else log_n  # 2 kB a row
            for log_d in (None, *range(0, size + 1, 4 if quick else 2)):
                d = 0 if log_d is None else 2**log_d
                fiba, _ = _round_ns("fiba", aggregate, min_arity, 2**size, d)
                btree, _ = _round_ns("btree", aggregate, min_arity, 2**size, d)
                row = {"what": f"{name}, min_arity {min_arity}", "rows": 2**size, "d": d}
                yield row | {"fiba ns": fiba, "btree ns": btree, "ahead": round(btree / fiba, 2)}


def _bulk(quick: bool) -> Iterator[dict[str, Any]]:
    """Many rows at once against one by one."""
    n = 2**16 if quick else 2**22
    for log_m in (0, 4, 8, 12) if quick else (0, 4, 8, 12, 16, 20, 21):
        m = 2**log_m
        yield {"what": "bulk", "rows": n, "m": m} | {
            f"{act} {how} us": round(best_of(make, n, m), 1)
            for act, how, make in (
                ("evict", "at once", _evict_at_once), ("evict", "one by one", _evict_singly),
                ("insert", "at once", _insert_at_once), ("insert", "one by one", _insert_singly),
            )
        }  # fmt: skip


def best_of(act: Any, n: int, m: int, repeats: int = 3) -> float:
    """Microseconds, best of several; every one begins with a new window."""
    trees = _trees("fiba", sash.sum(), 8)
    act(trees, _filled(trees, 2 * m, 0), 2 * m, m)()  # compiles
    best = float("inf")
    for _ in range(repeats):
        prepared = act(trees, _filled(trees, n, 0), n, m)
        before = time.perf_counter()
        prepared()
        best = min(best, time.perf_counter() - before)
    return best * 1e6


def _evict_at_once(trees: Trees, tree: Any, n: int, m: int) -> Any:
    trees.timed.bulk_evict(tree, -1)
    return lambda: trees.timed.bulk_evict(tree, m - 1)


def _evict_singly(trees: Trees, tree: Any, n: int, m: int) -> Any:
    driver, nothing = rounds_driver(trees), np.zeros(m)
    leaving = Leaving(np.arange(m), np.full(m, n - 1), (nothing,))  # what is inserted is combined with the youngest
    results = trees.cells.results(m)
    return lambda: drive(trees, tree, driver, leaving, m, results)


def _insert_at_once(trees: Trees, tree: Any, n: int, m: int) -> Any:
    tree, times, values = grown(trees, tree), np.arange(n, n + m), np.ones(m)
    return lambda: _insert(trees, tree, times, values)


def _insert_singly(trees: Trees, tree: Any, n: int, m: int) -> Any:
    driver, tree = rounds_driver(trees), grown(trees, tree)
    leaving = Leaving(np.full(m, -1), np.arange(n, n + m), (np.ones(m),))
    results = trees.cells.results(m)
    return lambda: drive(trees, tree, driver, leaving, m, results)


def _round_ns(algorithm: str, aggregate: Any, min_arity: int, n: int, d: int) -> tuple[float, float]:
    """Nanoseconds a round, and bytes a row."""
    trees = _trees(algorithm, aggregate, min_arity)
    tree, driver = _filled(trees, n, d), rounds_driver(trees)
    values, results, times = np.random.default_rng(2).random(CHUNK) + 0.5, trees.cells.results(CHUNK), []
    for chunk in range(CHUNKS):
        old = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK)
        leaving = Leaving(old if d < n else old - 1, old + n - d, (values,))
        before = time.perf_counter()
        tree = drive(trees, tree, driver, leaving, CHUNK, results)
        times.append(time.perf_counter() - before)
    return round(sorted(times)[2] / CHUNK * 1e9, 1), round(n_bytes(tree) / n, 1)


def _trees(algorithm: str, aggregate: Any, min_arity: int) -> Trees:
    bound = bind(aggregate, "f8", compiled=True)
    return build_trees(Wanted(algorithm, bound.monoids, True, "i8", min_arity, has_nulls=False))


def _filled(trees: Trees, n: int, d: int) -> Any:
    times = np.concatenate([np.arange(n - d), HIGH + np.arange(d)])
    return _insert(trees, new_tree(trees), times, np.random.default_rng(1).random(n) + 0.5)


def _insert(trees: Trees, tree: Any, times: Any, values: Any) -> Any:
    row = 0
    while row < len(times):
        row = trees.timed.bulk_insert(tree, times, (values,), row, len(times))
        if row < len(times):
            tree = grown(trees, tree)
    return tree
