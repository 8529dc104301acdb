"""Exact median and quantiles of a window: all its values, kept in order.

A partial is a pair: the values as a sorted tuple, and the number of NaN, which Spark orders above
all numbers. Joining two sorted tuples is one merge (Python's sort finds the two runs by itself).
Quantiles are those of Spark's `percentile`, NumPy and pandas: between the two values around the
position q (n - 1), by linear interpolation.

Cost of a combine: O(n) values copied; of an inverse, one such copy for each value taken away. Whole columns of
numbers are answered without partials, by ranks; see engine/ranks. For long windows over batches,
`moment_sketch`, `kll` and `tdigest` estimate the same in constant space.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.inputs import require_kind
from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Object
from sash.errors import DeclarationError

Sample = tuple[tuple[Any, ...], int]  # values in order, number of NaN

MEDIAN = AggregateCard(
    "median",
    answer="the value in the middle, or the mean of the two",
    state="all values, sorted",
    invertible=True,
    cost="O(rows)",
)
QUANTILE = AggregateCard(
    "quantile",
    answer="the value at a fraction q of the way from smallest to largest",
    state="all values, sorted",
    invertible=True,
    cost="O(rows)",
)


def median(column: str | None = None) -> Aggregate:
    """Find the exact median, as a float. A combine costs O(rows)."""
    return declare(MEDIAN, _quantile_binder("median", 0.5), column)


def quantile(column: str | None = None, q: float = 0.5) -> Aggregate:
    """Find the exact quantile q, interpolated linearly, as a float. A combine costs O(rows)."""
    if not 0 <= q <= 1:
        raise DeclarationError(f"a quantile lies between 0 and 1, got q={q!r}")
    return declare(QUANTILE, _quantile_binder("quantile", float(q)), column, q=q)


@dataclass(frozen=True, eq=False)
class Quantile(Monoid):
    """The monoid of a quantile, which says which one it is. Its answers are floats."""

    q: float = 0.5


@lru_cache
def _quantile_binder(name: str, q: float) -> Function:
    def lower(partial: Sample) -> float:
        return _quantile(partial, q)

    monoid = Quantile(
        name, Object(), lift=_sample, combine=_merged, lower=lower, invert=_without, commutative=True, q=q
    )  # fmt: skip

    def bind(dtype: Dtype) -> Monoid:
        require_kind(name, dtype)
        return monoid

    return bind


def _sample(x: Any) -> Sample:
    return ((), 1) if x != x else ((x,), 0)  # noqa: PLR0124 - only NaN differs from itself


def _merged(older: Sample, newer: Sample) -> Sample:
    return tuple(sorted(older[0] + newer[0])), older[1] + newer[1]


def _without(whole: Sample, older: Sample) -> Sample:
    values = list(whole[0])
    for value in older[0]:
        del values[bisect_left(values, value)]
    return tuple(values), whole[1] - older[1]


def _quantile(partial: Sample, q: float) -> float:
    values, n_nan = partial
    position = q * (len(values) + n_nan - 1)
    below, above = math.floor(position), math.ceil(position)
    left = float(values[below]) if below < len(values) else math.nan
    right = float(values[above]) if above < len(values) else math.nan
    return between(left, right, position)


def between(left: float, right: float, position: float) -> float:
    """Interpolate between the values at the whole positions around a position; on one, `left` is its value."""
    below = math.floor(position)
    if below == position or left == right:
        return left
    return (below + 1 - position) * left + (position - below) * right
