"""Bars as claims: the most or the least of what rows of a suite say, held against a number.

The table "What it must reach" of DESIGN.md has the numbers. A bar that a run has no rows for does not hold: nothing
was shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bench.experiments.contract import Claim, Row
from bench.experiments.fitting import number

Measured = Iterable[tuple[str, Any]]  # where, and the number found there, or a word for why there is none
NOISE = "noise"  # of a row: how far above the best its middle repeat was


def at_most(said: str, found: Measured, bar: float, *, noise: float = 0.0, why: str = "") -> Claim:
    """A claim that the largest of some numbers is no larger than a bar."""
    return _claim(said, list(found), bar, is_most=True, noise=noise, why=why)


def at_least(said: str, found: Measured, bar: float, *, noise: float = 0.0, why: str = "") -> Claim:
    """A claim that the least of some numbers is no smaller than a bar."""
    return _claim(said, list(found), bar, is_most=False, noise=noise, why=why)


def _claim(said: str, found: Sequence[tuple[str, Any]], bar: float, *, is_most: bool, noise: float, why: str) -> Claim:
    words = [f"{value} ({where})" for where, value in found if isinstance(value, str)]
    numbers = [(value, where) for where, value in found if not isinstance(value, str)]
    if not numbers:
        return Claim(said, ", ".join(words) or "nothing", False, why or "these rows are not in this run")
    worst, where = (max if is_most else min)(numbers)
    holds = worst <= bar if is_most else worst >= bar
    shown = f"{'at most' if is_most else 'at least'} {number(worst)} ({where}) of {len(numbers)}"
    shown += f", noise {noise:.0%}" if noise else ""
    return Claim(said, ", ".join([shown, *words]), holds and not words, why)


def of(rows: Sequence[Row], column: str, *where: str, **like: Any) -> Iterator[tuple[str, Any]]:
    """A column of the rows that have it and are like that; where each was found, by other columns of it."""
    for row in rows:
        if column in row and all(row.get(key) == value for key, value in like.items()):
            yield (
                ", ".join(f"{row[key]:,}" if isinstance(row[key], int) else str(row[key]) for key in where),
                row[column],
            )


def noise_of(rows: Sequence[Row]) -> float:
    """The most that repeats of any of these rows differed."""
    return max((row[NOISE] for row in rows if NOISE in row), default=0.0)
