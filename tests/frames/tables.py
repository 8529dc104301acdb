"""Random tables that hurt, and windows over them recalculated row by row in plain Python."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import pyarrow as pa
from hypothesis import strategies as st

import sash

EPOCH = datetime(1970, 1, 1)
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("t", pa.int64()),
        ("i", pa.int64()),
        ("x", pa.float64()),
        ("m", pa.int64()),
        ("b", pa.bool_()),
    ]
)
AGGREGATES = {"n": sash.count(), "total": sash.sum("i"), "top": sash.max("x")}

keys = st.sampled_from(["a", "b", "a long key", "", None])
numbers = st.sampled_from([None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.5, 1e300])


@st.composite
def tables(draw, *, null_times=False, max_size=24):
    """Rows in any order: few keys and times, so that ties are many; nulls, NaN, times before 1970."""
    times = st.integers(-12, 12) | (st.none() if null_times else st.nothing())
    row = st.tuples(keys, times, st.none() | st.integers(-9, 9), numbers, st.just(0), st.none() | st.booleans())
    drawn = [dict(zip(SCHEMA.names, each, strict=True)) for each in draw(st.lists(row, max_size=max_size))]
    # The mark never falls within a key, and stands still at every other row.
    for rank, each in enumerate(in_order(drawn)):
        each["m"] = 2 * (rank // 2)
    return drawn


def in_order(rows):
    """Sorted as a window sees them: nulls first, then by time, then as they came."""
    numbered = sorted(enumerate(rows), key=lambda each: (each[1]["t"] is not None, each[1]["t"] or 0, each[0]))
    return [row for _, row in numbered]


def as_table(rows):
    """Rows as an Arrow table; numbers are times and marks."""
    return pa.Table.from_pylist(rows, SCHEMA)


def with_timestamps(table, unit="us", tz=None):
    """The same table, its times being seconds since 1970 of a timestamp type."""
    seconds = table["t"].combine_chunks().cast(pa.timestamp("s")).cast(pa.timestamp(unit, tz))
    return table.set_column(1, "t", seconds)


def to_time(seconds):
    return None if seconds is None else EPOCH + timedelta(seconds=seconds)


def recalculated(rows, frame):
    """The answers of AGGREGATES for each row; `frame(before, row, after)` gives the rows of its window."""
    answers = []
    for row in rows:
        own = [each for each in in_order(rows) if each["k"] == row["k"]]
        place = next(j for j, each in enumerate(own) if each is row)
        answers.append(aggregated(frame(own[:place], row, own[place + 1 :])))
    return answers


def aggregated(window):
    """Count, sum and maximum as Spark defines them; None stands for a window that is not answered."""
    if window is None:
        return {"n": None, "total": None, "top": None}
    integers = [row["i"] for row in window if row["i"] is not None]
    floats = [row["x"] for row in window if row["x"] is not None]
    top = None
    if floats:
        top = math.nan if any(map(math.isnan, floats)) else max(floats)
    return {"n": len(window), "total": sum(integers) if integers else None, "top": top}


def answers_in(table):
    """The answers in a table, as `recalculated` gives them."""
    return table.select(list(AGGREGATES)).to_pylist()


def same(found, wanted):
    """Equal, NaN being equal to itself."""
    return len(found) == len(wanted) and all(
        each.keys() == other.keys() and all(_same(each[name], other[name]) for name in each)
        for each, other in zip(found, wanted, strict=True)
    )


def _same(one, other):
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other and type(one) is type(other)


def range_frame(span, *, closed="both", ties="peers", lag=0, rows=None):
    """The definition of a range window, in words of one row and those around it."""

    keeps_first, keeps_last = closed in ("both", "left"), closed in ("both", "right")

    def frame(before, row, after):
        candidates = [*before, row, *after] if ties == "peers" and rows is None else [*before, row]
        if row["t"] is None:
            return [each for each in candidates if each["t"] is None and keeps_last and lag == 0][-(rows or 0) :]
        last = row["t"] - lag
        first = last - span
        inside = [
            each
            for each in candidates
            if each["t"] is not None
            and (first <= each["t"] if keeps_first else first < each["t"])
            and (each["t"] <= last if keeps_last else each["t"] < last)
        ]
        return inside[-(rows or 0) :]

    return frame
