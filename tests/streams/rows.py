"""Random rows that hurt: few keys and times, so that ties are many; nulls, NaN, infinities, times before 1970."""

from __future__ import annotations

import math

import pyarrow as pa
from hypothesis import strategies as st

import sash

TICK = 500  # microseconds: finer than the watermark, which is in milliseconds
LATENESS_US = 3_000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),  # tells rows apart
        ("k", pa.string()),
        ("j", pa.int32()),
        ("ts", pa.timestamp("us")),
        ("q", pa.int64()),  # breaks ties, not all of them
        ("i", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("m", pa.int64()),  # never falls within a key
    ]
)

floats = st.sampled_from([None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, 1e300, -1e300, 1e-300, 0.1])
events = st.tuples(
    st.sampled_from(["a", "a", "b", "", None]),
    st.sampled_from([1, 2, None]),
    st.integers(-12, 30),  # ticks
    st.integers(0, 2),
    st.none() | st.integers(-9, 9),
    floats,
    st.none() | st.sampled_from(["u", "v", "ww", ""]),
    st.none() | st.booleans(),
)


@sash.aggregate(state={"a": "i8", "b": "i8"})
class Affine:
    """Composition of x -> a x + b modulo a small prime: any lost or swapped row shows."""

    identity = (1, 0)

    def lift(x):
        return (x % 997 + 1, (x * 31 + 7) % 1009)

    def combine(older, newer):
        return (older[0] * newer[0] % 65521, (newer[0] * older[1] + newer[1]) % 65521)

    def lower(partial):
        return partial[0] * 65536 + partial[1]


AGGREGATES = {
    "n": sash.count(),
    "total": sash.sum("i"),
    "exactly": sash.sum("x", exact=True),
    "top": sash.max("x"),
    "who": sash.argmax("x", "s"),
    "listed": sash.collect("id"),
    "joined": sash.concat("s"),
    "middle": sash.median("i"),
    "own": sash.agg(Affine, "i"),
    "marked": sash.count("i").where("b"),
}


@st.composite
def arrivals(draw, *, within=LATENESS_US, max_size=24):
    """Rows in the order in which they come: each at most `within` microseconds late, if each came alone.

    Times are drawn at will, and rows come in the order of time plus a delay. With delays below the lateness no row
    is late, however the stream is cut: at a row's coming no other has been more than its own delay ahead of it.
    """
    drawn = draw(st.lists(st.tuples(events, st.integers(0, within // TICK)), max_size=max_size))
    rows = [
        dict(zip(SCHEMA.names[1:-1], (k, j, ticks * TICK, *rest), strict=True)) for (k, j, ticks, *rest), _ in drawn
    ]
    order = sorted(range(len(rows)), key=lambda place: (rows[place]["ts"] + drawn[place][1] * TICK, place))
    rows = [{"id": number, **rows[place]} for number, place in enumerate(order)]
    return as_table(rows)


def as_table(rows):
    """Rows as a table; the mark of delta windows rises with their rank in time, and stands still at times."""
    ranked = sorted(rows, key=lambda row: (row["ts"], row["q"], row["id"]))
    for rank, row in enumerate(ranked):
        row["m"] = 2 * (rank // 3) + rank // 7
    return pa.Table.from_pylist(rows, SCHEMA)


cuts = st.lists(st.integers(0, 6), max_size=8)
