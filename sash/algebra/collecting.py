"""Aggregates that keep what they saw: concat, collect, distinct and mode.

Partials are Python values and grow with the rows they stand for, so a combine is not O(1): it
copies. Concat and collect copy every row, distinct and mode the different values among them, each
with the number of its occurrences. None of them is compiled.

Values are told apart by ==, as in a dict: 1, 1.0 and True are one value. As in Spark, -0.0 is 0.0
and NaN is one value; a dict of counts holds NaN as None, which no row can be, because two NaN are
the same key only while they are the same object, and bytes do not keep objects.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.monoid import Monoid
from sash.algebra.state import Object

Counts = dict[Any, int]

CONCAT = AggregateCard(
    "concat",
    answer="the values joined by +, in order",
    state="a text, or any sequence",
    invertible=True,
    commutative=False,
    cost="O(length)",
)
COLLECT = AggregateCard(
    "collect",
    answer="the list of the values, in order",
    state="a tuple of all values",
    invertible=True,
    commutative=False,
    cost="O(rows)",
)
DISTINCT = AggregateCard(
    "distinct",
    answer="the number of different values",
    state="a dict from each value to its count",
    invertible=True,
    cost="O(different values)",
)
MODE = AggregateCard(
    "mode",
    answer="the most frequent value, the smallest of them if there are several",
    state="a dict from each value to its count",
    invertible=True,
    cost="O(different values)",
)


def concat(column: str | None = None) -> Aggregate:
    """Join texts, or any sequences, by +. A combine costs O(length of its answer)."""
    return declare(CONCAT, _concat, column)


@lru_cache
def _concat(dtype: Dtype) -> Monoid:
    return Monoid("concat", Object(), lift=_same, combine=_joined, invert=_rest)


def collect(column: str | None = None) -> Aggregate:
    """List the values, in order; an empty window answers []. A combine costs O(rows)."""
    return declare(COLLECT, _collect, column)


@lru_cache
def _collect(dtype: Dtype) -> Monoid:
    return Monoid(
        "collect",
        Object(),
        lift=_single,
        combine=_joined,
        identity=(),
        lower=list,
        invert=_rest,
        answers_empty=True,
    )


def distinct(column: str | None = None) -> Aggregate:
    """Count the different values, exactly; 0 in an empty window.

    A combine costs O(different values); `hyperloglog` estimates the same in constant space.
    """
    return declare(DISTINCT, _distinct, column)


@lru_cache
def _distinct(dtype: Dtype) -> Monoid:
    return Monoid(
        "distinct",
        Object(),
        lift=_once,
        combine=_merged,
        identity={},
        lower=len,
        invert=_without,
        commutative=True,
        answers_empty=True,
    )


def mode(column: str | None = None) -> Aggregate:
    """Find the most frequent value; of several, the smallest, NaN being the largest as in Spark.

    Values of equal frequency must be comparable with each other. A combine costs O(different
    values), and so does a query.
    """
    return declare(MODE, _mode, column)


@lru_cache
def _mode(dtype: Dtype) -> Monoid:
    return Monoid(
        "mode",
        Object(),
        lift=_once,
        combine=_merged,
        lower=_most_frequent,
        invert=_without,
        commutative=True,
    )


def _same(x: Any) -> Any:
    return x


def _single(x: Any) -> tuple[Any, ...]:
    return (x,)


def _joined(older: Any, newer: Any) -> Any:
    return older + newer


def _rest(whole: Any, older: Any) -> Any:
    return whole[len(older) :]


def _once(x: Any) -> Counts:
    if x != x:  # noqa: PLR0124 - only NaN differs from itself
        return {None: 1}
    if isinstance(x, (float, np.floating)):
        return {x + 0.0: 1}  # makes 0.0 of -0.0
    return {x: 1}


def _merged(older: Counts, newer: Counts) -> Counts:
    """Add counts; the larger dict is copied as a whole, only the smaller one is walked through."""
    larger, smaller = (older, newer) if len(older) >= len(newer) else (newer, older)
    counts = dict(larger)
    for value, n in smaller.items():
        counts[value] = counts.get(value, 0) + n
    return counts


def _without(whole: Counts, older: Counts) -> Counts:
    counts = dict(whole)
    for value, n in older.items():
        counts[value] -= n
        if counts[value] == 0:
            del counts[value]
    return counts


def _most_frequent(counts: Counts) -> Any:
    most = max(counts.values())
    numbers = [value for value, n in counts.items() if n == most and value is not None]
    return min(numbers) if numbers else math.nan
