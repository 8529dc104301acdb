"""The longest increasing run: where values rise from row to row, and for how long.

    value   1  4  |  2  5  7  |  3  |  3  8
                     `-----'               the longest run
            `--'                           prefix: the run the part begins with
                                     `--'  suffix: the run it ends with

A partial keeps the best run inside it, and the runs at its ends, because a neighbour may make them
longer: if the last value of the older part is below the first of the newer one, the suffix of the
one and the prefix of the other are a single run. A part that rises throughout is its own prefix and
suffix; the count of rows, left to whoever keeps the window, tells.

Of runs of one length the earliest wins: inside the older part, then across, then in the newer part.

Paper: the longest increasing subsequence (LIS) of experiment 3 in Villalba, Berral, Carrera,
"Constant-time sliding window framework with reduced memory footprint and efficient bulk evictions",
IEEE TPDS 30 (2019), measured there but not defined.
Departure: ours has no gaps; with gaps no partial of fixed size would do.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.inputs import require_kind, stored, to_stored
from sash.algebra.monoid import Function, Monoid, ungraded
from sash.algebra.ordering import is_below
from sash.algebra.state import Object, Record

INT64 = np.dtype("i8")
WIDEST = {"b": INT64, "i": INT64, "u": np.dtype("u8"), "f": np.dtype("f8")}
OUTPUTS = ("start", "end", "span", "length")
FIELDS = (
    "first", "last",  # values
    "prefix", "prefix_end", "suffix", "suffix_start",  # lengths and times
    "best", "best_start", "best_end",
)  # fmt: skip

CARD = AggregateCard(
    "longest_increasing_run",
    answer="start, end, span and length of the longest run of rising values",
    state="the best run, the runs at both ends and a count",
    commutative=False,
)


def longest_increasing_run(time: str | None = None, value: str | None = None) -> Aggregate:
    """Find the longest run of consecutive rows whose values strictly increase.

    The answers are `start` and `end`, the times of its first and last row, `span`, the time
    between them, and `length`, its number of rows. NaN is greater than every number.
    """
    return declare(CARD, _bind, time, value)


@lru_cache
def _bind(time: Dtype, value: Dtype) -> Monoid:
    time, value = require_kind(CARD.name, time), require_kind(CARD.name, value)
    if time is None or value is None:
        return replace(ungraded(_monoid(INT64, INT64)), state=Object(), identity=None)
    return _monoid(WIDEST[time.kind], value)


@lru_cache
def _monoid(time: np.dtype[Any], value: np.dtype[Any]) -> Monoid:
    kept, lengths = stored(value), INT64
    return Monoid(
        CARD.name,
        Record(FIELDS, (kept, kept, lengths, time, lengths, time, lengths, time, time)),
        lift=_lift(to_stored(value)),
        combine=_combine,
        identity=(0,) * len(FIELDS),
        lower=_lower,
        n_inputs=2,
        graded=True,
        outputs=OUTPUTS,
    )


def _lift(convert: Function) -> Function:
    def lift(time: Any, value: Any) -> Any:
        kept = convert(value)
        return (kept, kept, 1, time, 1, time, 1, time, time)

    return lift


def _combine(older: Any, newer: Any, n_older: float, n_newer: float) -> Any:
    rises = is_below(older[1], newer[0])
    prefix, prefix_end = older[2], older[3]
    if rises and prefix == n_older:
        prefix, prefix_end = prefix + newer[2], newer[3]
    suffix, suffix_start = newer[4], newer[5]
    if rises and suffix == n_newer:
        suffix, suffix_start = older[4] + suffix, older[5]
    best, start, end = older[6], older[7], older[8]
    if rises and older[4] + newer[2] > best:
        best, start, end = older[4] + newer[2], older[5], newer[3]
    if newer[6] > best:
        best, start, end = newer[6], newer[7], newer[8]
    return (older[0], newer[1], prefix, prefix_end, suffix, suffix_start, best, start, end)


def _lower(partial: Any, n: float) -> Any:
    return (partial[7], partial[8], partial[8] - partial[7], partial[6])
