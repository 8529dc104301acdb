"""The monoid trees at a constant size of 2^25 elements, which takes gigabytes: `make bench-large`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.mta import constant_size

NAME = "mta-large"


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row: each algorithm slides twice its window."""
    exponent = 20 if quick else 25
    yield constant_size(exponent, 2 << exponent)
