"""Rounds of evict, insert and query: every in-order algorithm, compiled, at several window sizes.

Sums and geometric means of most of them are in daba-fig18-throughput; here are maxima, and the algorithms it has not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import sash
from bench.bars import at_most, of
from bench.cycles import IS_READABLE, ticks_per_ns
from bench.experiments.contract import Claim, Row
from bench.fifo_rounds import FifoRounds
from bench.measuring import best_ns
from sash.testing.counting import counting
from sash.testing.monoids import Sum

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
    yield _most_combines(10_000 if quick else 1_000_000)
    if IS_READABLE:
        for rows in WINDOWS[:2]:
            yield _worst(rows, 100_000 if quick else 1_000_000)


def _round_ns(values: Any, aggregate: Any, rows: int, algorithm: str) -> float:
    return best_ns(lambda: sash.slide(values, aggregate, rows=rows, algorithm=algorithm), len(values), repeats=3)


def _aggregates(algorithm: str) -> list[tuple[str, Any]]:
    several = [("max", sash.max()), ("sum", sash.sum()), ("geomean", sash.geomean())]
    return several if algorithm == "flat_fit" else several[:1]


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


def _most_combines(n: int, rows: int = 2**10) -> dict[str, Any]:
    """The most calls of combine in any insert, evict or query of DABA Lite, interpreted and counted."""
    counted, calls = counting(Sum)
    window = sash.aggregator("daba_lite", counted)
    for value in range(rows):
        window.insert(value)
    most = {"insert": 0, "evict": 0, "query": 0}
    calls.take()
    for value in range(n):
        for name, act in (("evict", window.evict), ("insert", lambda value=value: window.insert(value)),
                          ("query", window.query)):  # fmt: skip
            act()
            most[name] = max(most[name], calls.take())
    return {"what": "daba_lite, most combines", "rows": rows, "rounds": n, **most}


def _worst(rows: int, n: int) -> dict[str, Any]:
    """Single rounds of DABA Lite: each the median of repeats of the same round, so that the scheduler falls out."""
    spent = FifoRounds("daba_lite", sash.sum(), rows).clocked(n) / ticks_per_ns()
    median, worst = float(np.median(spent)), float(spent.max())
    return {"what": "daba_lite, single rounds", "rows": rows, "rounds": n, "median ns": round(median, 1),
            "worst ns": round(worst, 1), "worst/median": round(worst / median, 1)}  # fmt: skip


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The bar of DABA Lite."""
    counted = [row for row in rows if row["what"] == "daba_lite, most combines"]
    return [
        *(
            at_most(f"DABA Lite: {act} never combines more than {most} times", of(counted, act, "rounds"), most)
            for act, most in (("insert", 3), ("evict", 2), ("query", 1))
        ),
        *(_worst_claim(row) for row in rows if "worst/median" in row),
    ]


def _worst_claim(row: Row) -> Claim:
    said = f"DABA Lite: the worst of 10^6 rounds takes at most 10 times the median, window of {row['rows']:,}"
    why = f"the worst took {row['worst ns']} ns, and the median, {row['median ns']} ns, is about a step of the clock"
    why = f"no round combines more than 6 times, as counted above, so the rest is the machine's: {why}"
    return at_most(said, of([row], "worst/median", "rows"), 10, why=why)
