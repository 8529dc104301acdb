"""FiBA, compiled: rows in order and the memory of its trees, and rows in bulk beside one by one.

FiBA beside the B-tree for rows at any distance is fiba-fig11-distance. What is compared takes turns on the same rows:
times are the best turn, ratios the median over the turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import sash
from bench.bars import at_least, at_most, of
from bench.experiments.contract import Claim, Row
from bench.measuring import turns_of
from bench.tree_rounds import CHUNK, GAP, TreeRounds, trees_of
from sash.engine.timed import MIN_ARITY
from sash.engine.timed_driving import Leaving, drive, rounds_driver
from sash.engine.trees import Trees, grown, n_bytes
from sash.testing.counting import counting
from sash.testing.monoids import Sum

NAME = "disorder"
N_TURNS = 10
IN_ORDER = 2**16  # rounds of a turn: the call itself takes 10 us, and after the other's turn the caches are cold
ROW_BYTES = 16  # an int64 time and a float64 value


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each min-arity and size: nanoseconds a round and bytes a row; then what comes and leaves in bulk."""
    yield from _by_size(quick)
    yield from _bulk_times(quick)
    yield from _bulk_combines(quick)


def _by_size(quick: bool) -> Iterator[dict[str, Any]]:
    """In order, where a round should take the same for every window; beside Two-Stacks Lite, and its memory."""
    values = np.random.default_rng(3).random(2**18)
    for min_arity in (MIN_ARITY,) if quick else (2, 4, MIN_ARITY):  # those of fiba-fig11, so none is compiled for this
        for log_n in (4, 10, 16) if quick else (4, 7, 10, 13, 16, 19, 22) if min_arity == MIN_ARITY else (10, 16, 22):
            n = 2**log_n
            rounds = TreeRounds(trees_of("fiba", sash.sum(), min_arity), n, IN_ORDER)
            queue = partial(sash.slide, values, sash.sum(), rows=min(n, 2**16), algorithm="two_stacks_lite")
            turns = turns_of(rounds.in_order, lambda queue=queue: queue, n_turns=5 if quick else N_TURNS)
            turns = turns / (IN_ORDER, len(values))
            per_row = n_bytes(rounds.tree) / n
            yield {
                "what": f"in order, min_arity {min_arity}", "rows": n, "fiba ns": _best(turns, 0),
                "two_stacks_lite ns": _best(turns, 1), "to two_stacks_lite": _ratio(turns, 0, 1),
                "bytes a row": round(per_row, 1), "to time and value": round(per_row / ROW_BYTES, 2),
            }  # fmt: skip


def _best(turns: Any, k: int) -> float:
    return round(float(turns[:, k].min()), 1)


def _ratio(turns: Any, k: int, other: int) -> float:
    return round(float(np.median(turns[:, k] / turns[:, other])), 2)


def _bulk_times(quick: bool) -> Iterator[dict[str, Any]]:
    """Many rows at once against one by one, in microseconds; each begins with the same window."""
    n, trees = 2**16 if quick else 2**22, trees_of("fiba", sash.sum(), 8)
    filled = TreeRounds(trees, n, CHUNK).tree
    for log_m in (0, 4, 8, 12) if quick else (0, 8, 12, 16, 21):
        m = 2**log_m
        spent = {
            act.__name__.strip("_"): _best_us(act, trees, filled, n, m)
            for act in ACTS
            if m <= n // 4 or "evict" in act.__name__
        }
        yield {"what": "bulk, us", "rows": n, "m": m} | spent


def _best_us(act: Any, trees: Trees, filled: Any, n: int, m: int) -> float:
    best = float("inf")
    for repeat in range(4):  # the first one compiles
        prepared = act(trees, grown(trees, filled), n, m)
        before = time.thread_time_ns()
        prepared()
        best = min(best, time.thread_time_ns() - before) if repeat else best
    return round(best / 1e3, 1)


def _evict_at_once(trees: Trees, tree: Any, n: int, m: int) -> Any:
    return lambda: trees.timed.bulk_evict(tree, (m - 1) * GAP)


def _evict_singly(trees: Trees, tree: Any, n: int, m: int) -> Any:
    # what is inserted is combined with the youngest
    leaving = Leaving(np.arange(m) * GAP, np.full(m, (n - 1) * GAP), (np.zeros(m),))
    results, driver = trees.cells.results(m), rounds_driver(trees)
    return lambda: drive(trees, tree, driver, leaving, m, results)


def _insert_at_once(trees: Trees, tree: Any, n: int, m: int) -> Any:
    times, columns = np.arange(n, n + m) * GAP, (np.ones(m),)
    return lambda: _bulk_insert(trees, tree, times, columns)


def _insert_singly(trees: Trees, tree: Any, n: int, m: int) -> Any:
    leaving = Leaving(np.full(m, -1), np.arange(n, n + m) * GAP, (np.ones(m),))
    results, driver = trees.cells.results(m), rounds_driver(trees)
    return lambda: drive(trees, tree, driver, leaving, m, results)


ACTS = (_evict_at_once, _evict_singly, _insert_at_once, _insert_singly)


def _bulk_insert(trees: Trees, tree: Any, times: Any, columns: Any) -> None:
    row = 0
    while row < len(times):
        row = trees.timed.bulk_insert(tree, times, columns, row, len(times))
        if row < len(times):
            tree = grown(trees, tree)


def _bulk_combines(quick: bool) -> Iterator[dict[str, Any]]:
    """The same counted in calls of combine, interpreted: rows that leave, and rows that come among the youngest 2 m."""
    n = 2**12 if quick else 2**15
    for log_m in (0, 4, 8) if quick else (0, 4, 8, 12):
        m = 2**log_m
        times = np.sort(np.random.default_rng(m).choice(4 * m, m, replace=False)).tolist()
        late = [n - 2 * m + each / 2 + 0.25 for each in times]
        row = {"what": "bulk, combines", "rows": n, "m": m}
        row["evict at once"] = _combines(n, lambda window, m=m: window.bulk_evict(m - 1))
        row["evict singly"] = _combines(n, lambda window, m=m: [window.evict(each) for each in range(m)])
        row["insert at once"] = _combines(n, lambda window, late=late: window.bulk_insert(late, [1] * len(late)))
        row["insert singly"] = _combines(n, lambda window, late=late: [window.insert(each, 1) for each in late])
        yield row


def _combines(n: int, act: Any) -> int:
    counted, calls = counting(Sum)
    window = sash.aggregator("fiba", counted, min_arity=8)
    window.bulk_insert(range(n), [1] * n)
    calls.take()
    act(window)
    return calls.take()


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Flat in n where rows are in order; at once better than one by one."""
    in_order = [row for row in rows if row["what"] == f"in order, min_arity {MIN_ARITY}" and row["rows"] >= 2**10]
    least = min((row["fiba ns"] for row in in_order), default=1.0)
    ratios = [(f"{row['rows']:,} rows", row["fiba ns"] / least) for row in in_order]
    said = "in order, FiBA is flat in n: at most 1.5 times from the least to the most of 2^10 to 2^22 (log n: 2.2)"
    found = [at_most(said, ratios, 1.5)]
    bulk = [{**row, "ahead": row["evict singly"] / row["evict at once"]} for row in rows if row.get("m", 0) >= 256
            and "evict at once" in row]  # fmt: skip
    found.append(at_least("evicting 256 or more at once combines less than one by one", of(bulk, "ahead", "m"), 1))
    return found


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
