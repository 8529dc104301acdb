"""What an experiment is: a workload, the rows it measures, and the claims that the rows are held against.

A row is one point: {"panel", "series", "x", "y", "unit", "spread"}. Panels are plots, series are curves in them;
`spread` is the noise of its repeats, as a part of y. An experiment without `x` is a table, and its rows are shown as
they are. A claim is checked as a ratio or a slope of what was measured; one that does not hold is reported like any
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

Row = dict[str, Any]


class Size(IntEnum):
    """How large the workload is: FULL is recorded, QUICK is for a look, TINY shows in tests that it runs."""

    FULL = 0
    QUICK = 1
    TINY = 2

    def of(self, *choices: Any) -> Any:
        """The choice for this size; the last stands for all smaller ones."""
        return choices[min(self, len(choices) - 1)]

    def powers(self, *highest: int, step: int = 2, lowest: int = 0) -> list[int]:
        """Powers of two up to the highest exponent of this size; larger steps where it is quick."""
        top = self.of(*highest)
        exponents = range(lowest, top + 1, step * self.of(1, 2, 1))
        return [1 << exponent for exponent in sorted({*exponents, top})]


class Claim(NamedTuple):
    """What a paper says, what was measured, whether it holds, and why not, where that is known."""

    said: str
    measured: str
    holds: bool
    why: str = ""


@dataclass(frozen=True)
class Axes:
    """How the rows are drawn: what x is, and which axes are logarithmic, as they are in the paper."""

    x: str
    log_x: bool = True
    log_y: bool = False


def _no_claims(rows: Sequence[Row]) -> list[Claim]:
    return []


@dataclass(frozen=True)
class Experiment:
    """One table or figure, or a suite of our own, which has no paper."""

    name: str
    title: str
    run: Callable[[Size], Iterator[Row]]
    paper: str = ""
    reference: str = ""
    claim: str = ""  # in our words
    claims: Callable[[Sequence[Row]], list[Claim]] = _no_claims
    axes: Axes | None = None  # None: a table
    needs: str = ""  # "spark", "engines", "reference", "x86": what a machine must have; such are left out elsewhere
    is_large: bool = False  # run only if it is named


def point(panel: str, series: str, x: Any, spent: Any, unit: str = "ns") -> Row:
    """A row of a plot; what was spent is a number, or a best time with its spread."""
    y, spread = spent if isinstance(spent, tuple) else (spent, 0.0)
    return {"panel": panel, "series": series, "x": x, "y": _rounded(y), "unit": unit, "spread": round(spread, 3)}


def _rounded(y: float) -> float:
    return float(f"{y:.6g}")
