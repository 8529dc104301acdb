"""AMTA beside the queues that cannot evict in bulk: rounds at any window size.

Log MTA, DABA and recalculation are in mta-exp1, bulk evictions and their bar in mta-exp2, many aggregates in one window
in mta-exp5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import sash
from bench.bars import at_most, of
from bench.experiments.contract import Claim, Row
from bench.measuring import best_ns

NAME = "mta"
N_TURNS = 3  # mta-exp1 measures the same rounds at length


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Constant sizes."""
    n = 1_000_000 if quick else 4_000_000
    for exponent in (0, 10, 17) if quick else (0, 4, 10, 16, 20, 22):
        yield constant_size(exponent, max(n, 2 << exponent))


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What AMTA is for: it evicts in bulk and works in a store, and costs little where neither is needed."""
    large = [row for row in rows if row["n"] not in ("2^0", "2^4")]
    said = (
        "AMTA takes at most twice a round of Two-Stacks Lite, from 2^10 elements on (ours: DESIGN.md has no bar for it)"
    )
    return [at_most(said, of(large, "amta to two_stacks_lite", "n"), 2)]


def constant_size(exponent: int, n: int) -> dict[str, Any]:
    """Nanoseconds a round of each algorithm, in turns, so that noise meets all of them alike."""
    values = np.random.default_rng(20261115).random(n)
    row: dict[str, Any] = {"what": "constant size", "n": f"2^{exponent}"}
    names = ["two_stacks_lite", "daba_lite", "amta"]
    best = dict.fromkeys(names, float("inf"))
    for _ in range(N_TURNS):
        for name in names:
            best[name] = min(best[name], _round_ns(name, values, 1 << exponent))
    row |= {name: round(ns, 2) for name, ns in best.items()}
    return row | {"amta to two_stacks_lite": round(best["amta"] / best["two_stacks_lite"], 2)}


def _round_ns(name: str, values: Any, rows: int) -> float:
    return best_ns(lambda: sash.slide(values, sash.sum(), rows=rows, algorithm=name), len(values), repeats=1)
