"""Several aggregates in one window: what one more costs, against a window of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import sash
from bench.bars import at_most, of
from bench.experiments.contract import Claim, Row
from bench.measuring import best_ns

NAME = "products"


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each number of aggregates that share a structure."""
    n = 300_000 if quick else 2_000_000
    values = np.random.default_rng(20261115).random(n)
    times = np.arange(n)
    several = [sash.max(), sash.sum(), sash.min(), sash.mean(), sash.first(), sash.last(), sash.var(), sash.range()]
    window = {"times": times, "span": 1000, "algorithm": "two_stacks_lite"}
    alone = [best_ns(lambda: sash.slide(values, each, **window), n, repeats=3) for each in several]  # noqa: B023
    previous = 0.0
    for k in (1, 2, 4, 8):
        together = best_ns(lambda: sash.slide(values, several[:k], **window), n, repeats=3)  # noqa: B023
        yield {
            "what": f"{k} together", "ns": round(together, 1), "apart_ns": round(sum(alone[:k]), 1),
            "together/apart": round(together / sum(alone[:k]), 2),
            "one more_ns": round((together - previous) / (k - k // 2), 1),
        }  # fmt: skip
        previous = together


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What sharing is for."""
    return [at_most("together never take longer than apart", of(rows, "together/apart", "what"), 1)]
