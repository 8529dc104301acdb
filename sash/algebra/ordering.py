"""Aggregates that compare values, or know their places: extremes, first and last, the largest few.

The order is Spark's: NaN is greater than every number, -0.0 equals 0.0. Of equal values the first
one wins, so `max` of 0.0 and -0.0 is whichever came first.

`argmin` and `argmax` compare *ranks*: integers in the order of the values, computed once for each
row. A rank leaves room below the lowest value for the identity, which must lose against -inf and
be no tie; 64-bit integers leave none, so a third field tells the identity apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cmp_to_key, lru_cache
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.inputs import from_stored, require_count, require_kind, stored, to_float, to_stored
from sash.algebra.monoid import Function, Monoid, ungraded
from sash.algebra.state import Object, Record, Row, Scalar
from sash.errors import SumOverflowError

BIT, INT64, UINT64, FLOAT64 = np.dtype("u1"), np.dtype("i8"), np.dtype("u8"), np.dtype("f8")
WIDEST = {"b": INT64, "i": INT64, "u": UINT64, "f": FLOAT64}

LOWEST_RANK, HIGHEST_RANK = -(2**63), 2**63 - 1
RANK_OF_NAN = 0x7FF8000000000000  # above that of inf, below HIGHEST_RANK

MIN = AggregateCard("min", answer="the least value", state="a value", selective=True)
MAX = AggregateCard("max", answer="the greatest value; NaN is the greatest", state="a value", selective=True)
RANGE = AggregateCard("range", answer="greatest less least value", state="two values")
ARGMIN = AggregateCard(
    "argmin",
    answer="the payload of the first least value",
    state="a rank and a payload",
    commutative=False,
    selective=True,
)
ARGMAX = replace(ARGMIN, name="argmax", answer="the payload of the first greatest value")
MIN_COUNT = AggregateCard("min_count", answer="how many rows have the least value", state="a value and a count")
MAX_COUNT = replace(MIN_COUNT, name="max_count", answer="how many rows have the greatest value")
FIRST = AggregateCard("first", answer="the oldest value", state="a value", commutative=False, selective=True)
LAST = replace(FIRST, name="last", answer="the youngest value")
M4 = AggregateCard("m4", answer="first, least, greatest and last value", state="four values", commutative=False)
NTH_YOUNGEST = AggregateCard(
    "nth_youngest", answer="the n-th value from the end", state="the n youngest values", commutative=False, cost="O(n)"
)
TOP_K = AggregateCard("top_k", answer="the k greatest values, descending", state="the k greatest values", cost="O(k)")


def min(column: str | None = None) -> Aggregate:
    """Take the least value."""
    return declare(MIN, _bind_min, column)


def max(column: str | None = None) -> Aggregate:
    """Take the greatest value; NaN if there is one."""
    return declare(MAX, _bind_max, column)


def range(column: str | None = None) -> Aggregate:
    """Subtract the least value from the greatest; integers raise where 64 bits are not enough."""
    return declare(RANGE, _bind_range, column)


def argmin(column: str | None = None, payload: str | None = None) -> Aggregate:
    """Take the payload of the row with the least value, its position if none is named; first wins."""
    return _with_payload(ARGMIN, _bind_argmin, column, payload)


def argmax(column: str | None = None, payload: str | None = None) -> Aggregate:
    """Take the payload of the row with the greatest value, its position if none is named; first wins."""
    return _with_payload(ARGMAX, _bind_argmax, column, payload)


def min_count(column: str | None = None) -> Aggregate:
    """Count the rows that have the least value."""
    return declare(MIN_COUNT, _bind_min_count, column)


def max_count(column: str | None = None) -> Aggregate:
    """Count the rows that have the greatest value."""
    return declare(MAX_COUNT, _bind_max_count, column)


def first(column: str | None = None) -> Aggregate:
    """Take the oldest value that is not null."""
    return declare(FIRST, _bind_first, column)


def last(column: str | None = None) -> Aggregate:
    """Take the youngest value that is not null."""
    return declare(LAST, _bind_last, column)


def m4(column: str | None = None) -> Aggregate:
    """Take what a line chart needs of a pixel column: the `first`, `min`, `max` and `last` value.

    Paper: Jugel, Jerzak, Hackenbroich, Markl, "M4: a visualization-oriented time series data
    aggregation", PVLDB 7 (2014).
    """
    return declare(M4, _bind_m4, column)


def nth_youngest(column: str | None = None, n: int = 1) -> Aggregate:
    """Take the n-th value from the end, nulls not counted: n=1 is the youngest; null if there are fewer.

    Cost of a combine: O(n).
    """
    require_count("nth_youngest", "n", n, column)
    return declare(NTH_YOUNGEST, _nth_youngest_binder(n), column, n=n)


def top_k(column: str | None = None, k: int = 10) -> Aggregate:
    """Take the k greatest values, descending: a row of k floats, NaN in the places of missing values.

    NaN is the greatest value and comes first. Integers beyond 2**53 are rounded to floats; Python
    values are answered as they are, in a list that is shorter if values are missing. Cost of a
    combine: O(k).
    """
    require_count("top_k", "k", k, column)
    return declare(TOP_K, _top_k_binder(k), column, k=k)


def is_below(x: Any, y: Any) -> Any:
    """Compare as Spark does: NaN is greater than every number, and equal to NaN."""
    return x < y or (y != y and x == x)  # noqa: PLR0124 - only NaN differs from itself


def _lesser(older: Any, newer: Any) -> Any:
    return newer if newer < older or older != older else older  # noqa: PLR0124


def _greater(older: Any, newer: Any) -> Any:
    return newer if newer > older or newer != newer else older  # noqa: PLR0124


def _top_of(dtype: np.dtype[Any]) -> Any:
    """What loses against every value of a type in `_lesser`."""
    return np.nan if dtype.kind == "f" else int(np.iinfo(dtype).max)


def _bottom_of(dtype: np.dtype[Any]) -> Any:
    """What loses against every value of a type in `_greater`."""
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


@lru_cache
def _bind_min(dtype: Dtype) -> Monoid:
    return _extreme("min", dtype, _lesser, _top_of)


@lru_cache
def _bind_max(dtype: Dtype) -> Monoid:
    return _extreme("max", dtype, _greater, _bottom_of)


def _extreme(name: str, dtype: Dtype, combine: Function, identity: Callable[[np.dtype[Any]], Any]) -> Monoid:
    dtype = require_kind(name, dtype)
    return Monoid(
        name,
        Object() if dtype is None else Scalar(stored(dtype)),
        lift=to_stored(dtype),
        combine=combine,
        identity=None if dtype is None else identity(stored(dtype)),
        lower=from_stored(dtype),
        commutative=True,
        selective=True,
    )


@lru_cache
def _bind_range(dtype: Dtype) -> Monoid:
    dtype = require_kind("range", dtype)
    if dtype is None:
        return Monoid("range", Object(), _twice(to_stored(None)), _widen, lower=_difference, commutative=True)
    kept, is_float = stored(dtype), dtype.kind == "f"
    return Monoid(
        "range",
        Record(("low", "high"), (kept, kept)),
        lift=_twice(to_stored(dtype)),
        combine=_widen,
        identity=(_top_of(kept), _bottom_of(kept)),
        lower=_difference if is_float else _integer_difference,
        commutative=True,
        finish=None if is_float else require_63_bits,
    )


def _twice(convert: Function) -> Function:
    def lift(x: Any) -> Any:
        kept = convert(x)
        return (kept, kept)

    return lift


def _widen(older: Any, newer: Any) -> Any:
    return (_lesser(older[0], newer[0]), _greater(older[1], newer[1]))


def _difference(partial: Any) -> Any:
    return partial[1] - partial[0]


def _integer_difference(partial: Any) -> Any:
    return int(partial[1]) - int(partial[0])


def require_63_bits(ranges: Any) -> np.ndarray[Any, Any]:
    """Turn a column of differences into int64, or raise for the first that does not fit.

    A difference is never negative, so one that is has wrapped around.
    """
    column = np.asarray(ranges)
    overflows = (column < 0) | (column > HIGHEST_RANK)
    if overflows.any():
        row, found = int(np.argmax(overflows)), int(column[np.argmax(overflows)])
        raise SumOverflowError(
            f"the range at row {row} is {found % 2**64}, which does not fit into the 64 bits of an integer answer. "
            "Cast the column to float64, or take a smaller window"
        )
    return column.astype(np.int64)


def _with_payload(
    card: AggregateCard, binder: Callable[..., Monoid], column: str | None, payload: str | None
) -> Aggregate:
    """Declare an aggregate of a value and a payload, which is the position of the row if not named."""
    if payload is None:
        return Aggregate(card, binder, () if column is None else (column,), n_inputs=2, position_last=True)
    return replace(declare(card, binder, column, payload), position_last=True)


@lru_cache
def _bind_argmin(dtype: Dtype, payload: Dtype) -> Monoid:
    return _best("argmin", dtype, payload, is_min=True)


@lru_cache
def _bind_argmax(dtype: Dtype, payload: Dtype) -> Monoid:
    return _best("argmax", dtype, payload, is_min=False)


def _best(name: str, dtype: Dtype, payload: Dtype, *, is_min: bool) -> Monoid:
    dtype, payload = require_kind(name, dtype), require_kind(name, payload)
    if dtype is None or payload is None:
        better = _first_lesser if is_min else _first_greater
        return Monoid(name, Object(), _pair, better, lower=_second, n_inputs=2, selective=True)
    rank, keep = _rank_of(dtype, is_min=is_min), to_stored(payload)
    is_full = dtype.kind in "iu" and dtype.itemsize == 8  # every rank is taken
    fields = {"best": INT64, "arg": stored(payload)} | ({"any": BIT} if is_full else {})
    return Monoid(
        name,
        Record(tuple(fields), tuple(fields.values())),
        lift=_ranked_and_marked(rank, keep) if is_full else _ranked(rank, keep),
        combine=_first_best_marked if is_full else _first_best,
        identity=(LOWEST_RANK, 0, 0)[: len(fields)],
        lower=_second_is_set if payload.kind == "b" else _second,
        n_inputs=2,
        selective=True,
    )


def _pair(x: Any, payload: Any) -> Any:
    return (x, payload)


def _second(partial: Any) -> Any:
    return partial[1]


def _second_is_set(partial: Any) -> Any:
    return partial[1] != 0


def _first_lesser(older: Any, newer: Any) -> Any:
    return newer if is_below(newer[0], older[0]) else older


def _first_greater(older: Any, newer: Any) -> Any:
    return newer if is_below(older[0], newer[0]) else older


def _first_best(older: Any, newer: Any) -> Any:
    return newer if newer[0] > older[0] else older


def _first_best_marked(older: Any, newer: Any) -> Any:
    return newer if newer[0] > older[0] or older[2] == 0 else older


def _ranked(rank: Function, keep: Function) -> Function:
    def lift(x: Any, payload: Any) -> Any:
        return (rank(x), keep(payload))

    return lift


def _ranked_and_marked(rank: Function, keep: Function) -> Function:
    def lift(x: Any, payload: Any) -> Any:
        return (rank(x), keep(payload), 1)

    return lift


def _rank_of(dtype: np.dtype[Any], *, is_min: bool) -> Function:
    """From a value to an integer in the same order, or in the opposite one."""
    if dtype.kind == "f":
        rank = _rank_of_float
    else:
        rank = _rank_of_unsigned if dtype == UINT64 else _rank_of_integer

    def falling(x: Any) -> Any:
        return ~rank(x)

    return falling if is_min else rank


def _rank_of_integer(x: Any) -> int:
    return int(np.int64(x))


def _rank_of_unsigned(x: Any) -> int:
    return int(np.int64(int(x) - 2**63))


def _rank_of_float(x: Any) -> int:
    """Read the bits as an integer: right for positive floats; negative ones need theirs turned over."""
    if x != x:  # noqa: PLR0124 - only NaN differs from itself
        return RANK_OF_NAN
    bits = int(np.float64(x + 0.0).view(np.int64))  # -0.0 + 0.0 is 0.0
    return bits ^ ((bits >> 63) & HIGHEST_RANK)


@lru_cache
def _bind_min_count(dtype: Dtype) -> Monoid:
    return _counted_extreme("min_count", dtype, _count_least, _top_of)


@lru_cache
def _bind_max_count(dtype: Dtype) -> Monoid:
    return _counted_extreme("max_count", dtype, _count_greatest, _bottom_of)


def _counted_extreme(name: str, dtype: Dtype, combine: Function, identity: Callable[[np.dtype[Any]], Any]) -> Monoid:
    dtype = require_kind(name, dtype)
    return Monoid(
        name,
        Object() if dtype is None else Record(("best", "n"), (stored(dtype), INT64)),
        lift=_marked(to_stored(dtype)),
        combine=combine,
        identity=None if dtype is None else (identity(stored(dtype)), 0),
        lower=_second,
        commutative=True,
    )


def _marked(convert: Function) -> Function:
    def lift(x: Any) -> Any:
        return (convert(x), 1)

    return lift


def _count_least(older: Any, newer: Any) -> Any:
    if is_below(newer[0], older[0]):
        return newer
    return older if is_below(older[0], newer[0]) else (older[0], older[1] + newer[1])


def _count_greatest(older: Any, newer: Any) -> Any:
    if is_below(older[0], newer[0]):
        return newer
    return older if is_below(newer[0], older[0]) else (older[0], older[1] + newer[1])


@lru_cache
def _bind_first(dtype: Dtype) -> Monoid:
    return _end("first", dtype, _first_present, _older)


@lru_cache
def _bind_last(dtype: Dtype) -> Monoid:
    return _end("last", dtype, _last_present, _newer)


def _end(name: str, dtype: Dtype, combine: Function, combine_objects: Function) -> Monoid:
    dtype = require_kind(name, dtype)
    if dtype is None:
        return Monoid(name, Object(), to_stored(None), combine_objects, selective=True)
    return Monoid(
        name,
        Record(("value", "any"), (stored(dtype), BIT)),
        lift=_marked(to_stored(dtype)),
        combine=combine,
        identity=(0, 0),
        lower=_first_is_set if dtype.kind == "b" else _first,
        selective=True,
    )


def _first_present(older: Any, newer: Any) -> Any:
    return older if older[1] != 0 else newer


def _last_present(older: Any, newer: Any) -> Any:
    return newer if newer[1] != 0 else older


def _older(older: Any, newer: Any) -> Any:
    return older


def _newer(older: Any, newer: Any) -> Any:
    return newer


def _first(partial: Any) -> Any:
    return partial[0]


def _first_is_set(partial: Any) -> Any:
    return partial[0] != 0


@lru_cache
def _bind_m4(dtype: Dtype) -> Monoid:
    dtype = require_kind("m4", dtype)
    if dtype is None:
        return replace(ungraded(_m4(FLOAT64)), state=Object(), identity=None)
    return _m4(dtype)


@lru_cache
def _m4(dtype: np.dtype[Any]) -> Monoid:
    convert = to_stored(dtype)

    def lift(x: Any) -> Any:
        kept = convert(x)
        return (kept, kept, kept, kept)

    return Monoid(
        "m4",
        Record(("first", "min", "max", "last"), (stored(dtype),) * 4),
        lift=lift,
        combine=_join_m4,
        identity=(0, 0, 0, 0),
        lower=_four_are_set if dtype.kind == "b" else _four,
        graded=True,
        outputs=("first", "min", "max", "last"),
    )


def _join_m4(older: Any, newer: Any, n_older: float, n_newer: float) -> Any:
    return (older[0], _lesser(older[1], newer[1]), _greater(older[2], newer[2]), newer[3])


def _four(partial: Any, n: float) -> Any:
    return partial


def _four_are_set(partial: Any, n: float) -> Any:
    return (partial[0] != 0, partial[1] != 0, partial[2] != 0, partial[3] != 0)


@lru_cache
def _nth_youngest_binder(n: int) -> Callable[[Dtype], Monoid]:
    def bind(dtype: Dtype) -> Monoid:
        dtype = require_kind("nth_youngest", dtype)
        if dtype is None:
            return _youngest_objects(n)
        return _youngest(n, WIDEST[dtype.kind], to_stored(dtype), is_boolean=dtype.kind == "b")

    return bind


@lru_cache
def _youngest_objects(n: int) -> Monoid:
    def lift(x: Any) -> Any:
        return (x,)

    def combine(older: Any, newer: Any) -> Any:
        return (newer + older)[:n]

    def lower(values: Any) -> Any:
        return values[n - 1] if len(values) == n else None

    return Monoid(f"nth_youngest({n})", Object(), lift, combine, lower=lower)


@lru_cache
def _youngest(n: int, dtype: np.dtype[Any], convert: Function, *, is_boolean: bool) -> Monoid:
    """Rows of a count and as many values, the youngest first; the rest is 0."""

    def lift(x: Any, out: Any) -> None:
        out[:] = 0
        out[0] = 1
        out[1] = convert(x)

    def combine(older: Any, newer: Any, out: Any) -> None:
        n_newer = int(newer[0])
        filled = n_newer + int(older[0])
        filled = filled if filled < n else n
        # From the back: `out` may be `older`, whose values move back by n_newer places.
        place = n
        while place > filled:
            out[place] = 0
            place -= 1
        while place > n_newer:
            out[place] = older[place - n_newer]
            place -= 1
        while place > 0:
            out[place] = newer[place]
            place -= 1
        out[0] = filled

    def lower(row: Any) -> Any:
        return row[n] if row[0] == n else None

    def lower_boolean(row: Any) -> Any:
        return row[n] != 0 if row[0] == n else None

    answer = lower_boolean if is_boolean else lower
    return Monoid(f"nth_youngest({n})", Row(dtype, n + 1), lift, combine, identity=0, lower=answer)


@lru_cache
def _top_k_binder(k: int) -> Callable[[Dtype], Monoid]:
    def bind(dtype: Dtype) -> Monoid:
        dtype = require_kind("top_k", dtype)
        return _top_objects(k) if dtype is None else _top(k)

    return bind


@lru_cache
def _top_objects(k: int) -> Monoid:
    descending = cmp_to_key(lambda x, y: bool(is_below(x, y)) - bool(is_below(y, x)))

    def lift(x: Any) -> Any:
        return (x,)

    def combine(older: Any, newer: Any) -> Any:
        return tuple(sorted(older + newer, key=descending)[:k])

    return Monoid(f"top_k({k})", Object(), lift, combine, lower=list, commutative=True)


@lru_cache
def _top(k: int) -> Monoid:
    """Rows of a count and as many values, the greatest first; the rest is 0."""

    def lift(x: Any, out: Any) -> None:
        out[:] = 0.0
        out[0] = 1.0
        out[1] = to_float(x)

    def combine(older: Any, newer: Any, out: Any) -> None:
        i, j = int(older[0]), int(newer[0])
        filled = i + j if i + j < k else k
        # From the back, the least value first: `out` may be an argument, and a place is written
        # only when every value of it that is still to come lies before that place.
        while i + j > 0:
            place = i + j
            if j == 0 or (i > 0 and is_below(older[i], newer[j])):
                value = older[i]
                i -= 1
            else:
                value = newer[j]
                j -= 1
            if place <= k:
                out[place] = value
        place = k
        while place > filled:
            out[place] = 0.0
            place -= 1
        out[0] = filled

    def finish(rows: Any) -> np.ndarray[Any, Any]:
        """Drop the count, and put NaN where no value is."""
        table = np.asarray(rows)
        return np.where(np.arange(k) < table[..., :1], table[..., 1:], np.nan)

    return Monoid(f"top_k({k})", Row(FLOAT64, k + 1), lift, combine, identity=0.0, commutative=True, finish=finish)
