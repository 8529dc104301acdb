"""Curves as numbers: ratios between them, and the slopes that tell one complexity from another.

On axes that are both logarithmic a cost of O(n) has slope 1, O(1) slope 0, and O(log n) a slope that falls towards 0;
which is told from O(1) by a straight line over log n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Fit(NamedTuple):
    """A straight line: its slope with standard error, its value at 0, and the share of variance it explains."""

    slope: float
    error: float
    start: float
    explained: float

    def __str__(self) -> str:
        return f"{self.slope:.2f} ± {self.error:.2f}" if self.slope == self.slope else "(too few points)"


class Ratio(NamedTuple):
    """How often one curve is the other: least, middle and most over their points, and the noise of repeats in it."""

    low: float
    middle: float
    high: float
    noise: float

    def __str__(self) -> str:
        if self.middle != self.middle:
            return "(no points)"
        if self.low == self.high:
            return f"{number(self.middle)} times (noise {self.noise:.0%})"
        return f"{number(self.middle)} times ({number(self.low)} to {number(self.high)}, noise {self.noise:.0%})"


def line(x: Sequence[float], y: Sequence[float]) -> Fit:
    """The least-squares line through some points."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    if len(x) < 2:
        return Fit(*(float("nan"),) * 4)
    slope, start = np.polyfit(x, y, 1)
    rest, apart = y - (slope * x + start), x - x.mean()
    error = float(np.sqrt((rest**2).sum() / max(len(x) - 2, 1) / (apart**2).sum()))
    around = float(((y - y.mean()) ** 2).sum())
    return Fit(float(slope), error, float(start), 1.0 - float((rest**2).sum()) / around if around else 1.0)


def number(value: float) -> str:
    """Three digits, and no more places than they need."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


class Curves:
    """Rows as curves: (panel, series) -> x -> y."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self.points: dict[tuple[str, str], dict[float, tuple[float, float]]] = {}
        for row in rows:
            if row.get("y") is not None:
                self.points.setdefault((row["panel"], row["series"]), {})[row["x"]] = row["y"], row.get("spread", 0.0)

    @property
    def panels(self) -> list[str]:
        """The panels, in order of appearance."""
        return list(dict.fromkeys(panel for panel, _ in self.points))

    def series(self, panel: str) -> list[str]:
        """The curves of a panel, in order of appearance."""
        return [series for each, series in self.points if each == panel]

    def xs(self, panel: str, series: str) -> list[float]:
        """Where a curve has points."""
        return sorted(self.points.get((panel, series), {}))

    def y(self, panel: str, series: str, x: float | None = None) -> float:
        """A point of a curve, the last one unless said; NaN if there is none."""
        curve = self.points.get((panel, series), {})
        if x is None:
            x = max(curve, default=None)
        return curve.get(x, (float("nan"), 0.0))[0]

    def has(self, panel: str, *series: str) -> bool:
        """Whether a panel has all of these curves."""
        return all((panel, each) in self.points for each in series)

    def ratio(self, panel: str, series: str, other: str, low: float = 0, high: float = float("inf")) -> Ratio:
        """One curve by another, where both have points between two bounds."""
        one, two = self.points.get((panel, series), {}), self.points.get((panel, other), {})
        common = [x for x in one if x in two and low <= x <= high]
        if not common:
            return Ratio(*(float("nan"),) * 4)
        ratios = [one[x][0] / two[x][0] for x in common]
        noise = max(one[x][1] + two[x][1] for x in common)
        return Ratio(min(ratios), float(np.median(ratios)), max(ratios), noise)

    def slope(self, panel: str, series: str, low: float = 1, high: float = float("inf")) -> Fit:
        """The exponent of a curve: its slope on axes that are both logarithmic."""
        xs = [x for x in self.xs(panel, series) if low <= x <= high]
        return line(np.log2(xs), np.log2([self.y(panel, series, x) for x in xs]))

    def log_line(self, panel: str, series: str, low: float = 1, high: float = float("inf")) -> Fit:
        """A curve as a straight line over log2 of x: what each doubling adds."""
        xs = [x for x in self.xs(panel, series) if low <= x <= high]
        return line(np.log2(xs), [self.y(panel, series, x) for x in xs])

    def crossing(self, panel: str, series: str, other: str, factor: float = 1.0) -> float | None:
        """The least x from which on one curve stays at or below another by a factor, between points by their logs."""
        xs = [x for x in self.xs(panel, series) if x in self.points.get((panel, other), {})]
        excess = [np.log(self.y(panel, series, x) * factor / self.y(panel, other, x)) for x in xs]
        above = [k for k, each in enumerate(excess) if each > 0]
        if not xs or (above and above[-1] == len(xs) - 1):
            return None
        if not above:
            return xs[0]
        k = above[-1]
        part = excess[k] / (excess[k] - excess[k + 1])
        return float(xs[k] * (xs[k + 1] / xs[k]) ** part)
