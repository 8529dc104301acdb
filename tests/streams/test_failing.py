"""Rows that an aggregate cannot take: set aside, dropped, or the end; however the stream is cut."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.streams.plans import Plan
from sash.streams.shard import take
from tests.streams.rows import LATENESS_US, SCHEMA, arrivals, cuts
from tests.streams.simulating import Memory, Stream, announced, multiset, split, with_hash

pytestmark = pytest.mark.usefixtures("interpreted")


@sash.aggregate(state=object)
class Inverses:
    """What 12 is divided by each of them, in order; raises at zero."""

    def lift(x):
        return (12 // x,)

    def combine(older, newer):
        return older + newer

    def lower(partial):
        return ",".join(map(str, partial))


@sash.aggregate(state=object)
class Chain:
    """Raises where a row meets an earlier one that is greater: no single row is to blame."""

    def lift(x):
        return x

    def combine(older, newer):
        if older > newer:
            raise ArithmeticError(f"{newer} after {older}")
        return newer


W = sash.window(by="k", order_by=["ts", "q", "id"])
SPEC = W.range("4 ms", lag="1 ms").agg(n=sash.count(), inverses=sash.agg(Inverses, "i"))
TYPES = {"n": pa.int64(), "inverses": pa.string()}


def fails(row):
    return row["i"] == 0


@settings(max_examples=25)
@given(arrivals(), cuts, st.sampled_from(["final", "revise"]), st.integers(1, 3))
def test_the_others_are_answered_as_if_a_row_that_fails_had_not_come(table, sizes, emit, n_shards):
    spec = SPEC.stream(emit=emit, lateness=f"{LATENESS_US} us", failing="aside")
    stream = Stream(spec, SCHEMA, TYPES, n_shards)
    steps = [stream.push(part) for part in split(table, sizes)] + [stream.finish()]
    given_out = [row for step in steps for row in step.rows()]
    aside = [row for row in given_out if row["failure"] is not None]
    last = {row["id"]: row for row in sorted(given_out, key=lambda row: row.get("revision") or 0)}
    taken = pa.Table.from_pylist([row for row in table.to_pylist() if not fails(row)], SCHEMA)
    wanted = {row["id"]: row for row in SPEC(taken).to_pylist()}
    assert sorted(row["id"] for row in aside) == sorted(row["id"] for row in table.to_pylist() if fails(row))
    assert all(row["n"] is row["inverses"] is None for row in aside)
    assert {row["failure"].partition(",")[0] for row in aside} <= {
        "ZeroDivisionError: integer division or modulo by zero", "ZeroDivisionError: integer division by zero"
    }  # fmt: skip
    answered = {number: row for number, row in last.items() if row["failure"] is None}
    assert {number: (row["n"], row["inverses"]) for number, row in answered.items()} == {
        number: (row["n"], row["inverses"]) for number, row in wanted.items()
    }
    assert sum(step.counts["failed"] for step in steps) == len(aside)


def pushed(spec, *rows, types):
    """Rows of (id, key, milliseconds, x) in one micro-batch."""
    given_rows = [dict(zip(("id", "k", "ts", "x"), (n, k, ms * 1_000, x), strict=True)) for n, k, ms, x in rows]
    schema = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us")), ("x", pa.int64())])
    table = with_hash(pa.Table.from_pylist(given_rows, schema), ["k"])
    return take(Plan((spec,), schema, types), Memory(), table, None)


ROWS = sash.window(by="k", order_by="ts").rows(2)


def test_rows_that_fail_are_dropped_and_counted_if_asked_for():
    spec = ROWS.agg(inverses=sash.agg(Inverses, "x")).stream(emit="eager", failing="drop")
    outcome = pushed(spec, (0, 1, 1, 3), (1, 1, 2, 0), (2, 1, 3, 4), types={"inverses": pa.string()})
    assert outcome.counts.failed == 1
    assert [(row["id"], row["inverses"]) for table in outcome.tables for row in table.to_pylist()] == [
        (0, "4"), (2, "4,3")
    ]  # fmt: skip


def test_where_two_rows_do_not_go_together_none_is_set_aside():
    spec = ROWS.agg(chain=sash.agg(Chain, "x")).stream(emit="eager", failing="aside")
    with pytest.raises(sash.DataError, match=r"ArithmeticError: 2 after 5, in one of chain=.*'id': 1|'x': 2"):
        pushed(spec, (0, 1, 1, 5), (1, 1, 2, 2), types={"chain": pa.int64()})


def test_rows_that_fail_end_the_stream_by_default():
    spec = ROWS.agg(inverses=sash.agg(Inverses, "x")).stream(emit="eager")
    with pytest.raises(sash.DataError, match=r"ZeroDivisionError.*at the row k=1.*'x': 0"):
        pushed(spec, (0, 1, 1, 3), (1, 1, 2, 0), types={"inverses": pa.string()})


def test_columns_of_ones_own_may_be_called_as_those_of_a_stream():
    schema = pa.schema(
        [("k", pa.int64()), ("ts", pa.timestamp("us")), ("failure", pa.string()), ("is_late", pa.bool_())]
    )
    row = {"k": 1, "ts": 5, "failure": "flat tyre", "is_late": True}
    rows = pa.Table.from_pylist([row], schema)
    spec = ROWS.agg(n=sash.count()).stream(emit="eager")
    outcome = take(Plan((spec,), schema, announced(spec, rows)), Memory(), with_hash(rows, ["k"]), None)
    assert multiset(outcome.tables[0].to_pylist()) == multiset(spec(rows).to_pylist())
