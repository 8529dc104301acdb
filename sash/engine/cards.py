"""The catalogue as data: `sash.algorithms()`."""

from __future__ import annotations

from sash.aggregators import ALGORITHMS
from sash.aggregators.contract import Card


def algorithms() -> list[Card]:
    """A card for each algorithm: order, needs, costs, bulk, range, paper."""
    return [algorithm.card for algorithm in ALGORITHMS.values()]
