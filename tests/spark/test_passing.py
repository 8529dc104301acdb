"""A pass over Arrow batches gives what the spec gives on the whole table, wherever they are cut. No Spark here."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

import sash
from sash.spark.passing import Pass
from tests.frames.tables import AGGREGATES, as_table, same, tables

W = sash.window(by="k", order_by="t")
SIZES = (1, 2, 7, 1000)


def keep_three(total, old):
    return total.n - old.n >= 3


AT_ROWS = {
    "rows": W.rows(3),
    "range": W.range(4),
    "range upto": W.range(4, ties="upto", closed="right"),
    "lag": W.range(4, lag=2),
    "two bounds": W.range(6, rows=2),
    "everything": W.everything(),
    "session": W.session(2),
    "delta": W.delta("m", 5),
    "since": W.since("b"),
    "policy": W.evict_while(keep_three, n=sash.count()),
    "min_rows": W.rows(3, min_rows=2),
}
ELSEWHERE = {
    "every 3": W.range(5).every(3),
    "tumbling": W.tumbling(4, origin=1),
    "rows every 2": W.rows(2).every(2),
    "every 2 rows": W.range(4).every(rows=2),
    "session every 2 rows": W.session(2).every(rows=2),
}


def nulls_first(value):
    return (value is not None, 0 if value is None else value)


def sorted_as_spark_does(table):
    rows = table.to_pylist()
    order = sorted(range(len(rows)), key=lambda i: (str(nulls_first(rows[i]["k"])), nulls_first(rows[i]["t"])))
    return table.take(pa.array(order, pa.int64()))


def passed(specs, table, size):
    """What a pass makes of a sorted table in batches of some size."""
    answering = Pass(specs)
    out = [each for batch in table.combine_chunks().to_batches(size) for each in answering.push(batch)]
    out += answering.finish()
    return [row for batch in out for row in batch.to_pylist()]


def as_rows(table):
    return sorted(table.to_pylist(), key=repr)


@pytest.mark.parametrize("name", AT_ROWS)
@given(rows=tables(null_times=True), size=st.sampled_from(SIZES))
def test_a_pass_over_batches_equals_the_spec_on_the_whole_table(name, rows, size):
    table = sorted_as_spark_does(as_table(rows))
    spec = AT_ROWS[name].agg(**AGGREGATES)
    assert same(passed([spec], table, size), spec(table).to_pylist())


@pytest.mark.parametrize("name", ELSEWHERE)
@given(rows=tables(), size=st.sampled_from(SIZES))
def test_answers_on_grids_are_those_of_the_whole_table(name, rows, size):
    table = sorted_as_spark_does(as_table(rows))
    spec = ELSEWHERE[name].agg(**AGGREGATES)
    assert same(sorted(passed([spec], table, size), key=repr), as_rows(spec(table)))


@given(rows=tables(null_times=True), size=st.sampled_from(SIZES))
def test_specs_together_go_through_the_batches_side_by_side(rows, size):
    table = sorted_as_spark_does(as_table(rows))
    some = W.rows(2).agg(n=sash.count(), last=sash.last("x"))
    more = W.range(3).agg(total=sash.sum("i"), top=sash.max("x"))
    assert same(passed([some, more], table, size), sash.together(some, more)(table).to_pylist())


def test_specs_that_answer_at_different_instants_are_refused():
    table = pa.table({"k": [1, 1], "t": [5, 10]})
    some, more = W.range(5).every(5).agg(n=sash.count()), W.range(5, closed="left").every(5).agg(m=sash.count())
    with pytest.raises(sash.UnsupportedError, match="different instants"):
        passed([some, more], table, 10)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("extent", [W.rows(3), W.range(4), W.everything()], ids=repr)
def test_values_of_any_type_find_their_way_back_from_other_batches(extent, size):
    n = 40
    table = pa.table(
        {
            "k": pa.array([None] * 5 + ["a"] * 20 + ["b"] * 15),
            "t": pa.array([*range(5), *[i // 2 for i in range(20)], *range(15)]),
            "x": pa.array([float(i * 7 % 11) for i in range(n)]),
            "s": pa.array([None if i % 9 == 4 else f"text {i * 5 % 13}" for i in range(n)]),
            "l": pa.array([None if i % 7 == 3 else [i, i + 1] for i in range(n)]),
            "d": pa.array([Decimal(i * 3 % 17) / 4 for i in range(n)], pa.decimal128(12, 2)),
            "huge": pa.array([Decimal(10) ** 24 + i for i in range(n)], pa.decimal128(30, 0)),
            "date": pa.array([date(2024, 1, 1 + i * 5 % 28) for i in range(n)]),
            "is_even": pa.array([i % 2 == 0 for i in range(n)]),
            "ts": pa.array([datetime(2024, 1, 1 + i * 11 % 28) for i in range(n)], pa.timestamp("us", "UTC")),
        }
    )
    spec = extent.agg(
        longest=sash.argmax("x", "s"),
        lists=sash.argmin("x", "l"),
        earliest=sash.min("s"),
        latest=sash.max("s"),
        kinds=sash.distinct("s"),
        many=sash.distinct("l"),
        first=sash.first("l"),
        money=sash.sum("d"),
        hoard=sash.sum("huge"),
        most=sash.max("huge"),
        day=sash.max("date").where("is_even"),
        when=sash.last("ts"),
        all=sash.collect("s"),
        few=sash.top_k("s", 2),
        common=sash.mode("s"),
    )
    assert passed([spec], table, size) == spec(table).to_pylist()


@pytest.mark.parametrize("size", SIZES)
def test_texts_can_be_an_order_for_windows_that_do_not_measure(size):
    table = pa.table({"k": [1] * 6 + [2] * 4, "t": list("aabbcdaabb"), "x": list(range(10))})
    spec = W.everything().agg(n=sash.count(), total=sash.sum("x"))
    assert passed([spec], table, size) == spec(table).to_pylist()


def test_keys_of_floats_are_told_apart_as_spark_does():
    keys = pa.array([None, -0.0, 0.0, float("nan"), -float("nan")])
    table = pa.table({"k": keys, "t": [1, 1, 2, 1, 2]})
    spec = W.rows(5).agg(n=sash.count())
    for size in SIZES:
        assert [row["n"] for row in passed([spec], table, size)] == [1, 1, 2, 1, 2]


def test_what_is_remembered_of_payloads_follows_the_window_and_not_the_rows():
    answering = Pass([W.rows(5).agg(first=sash.first("s"), kinds=sash.distinct("s"))])
    sizes = []
    for k in range(40):
        batch = pa.record_batch(
            {"k": [1] * 10, "t": list(range(10 * k, 10 * k + 10)), "s": [f"{k} {i}" for i in range(10)]}
        )
        list(answering.push(batch))
        sizes.append(_remembered(answering))
    assert max(sizes[20:]) <= max(sizes[:20]) < 60


def _remembered(answering):
    (lane,) = answering._lanes
    columns = lane._memory._columns.values()
    values = sum(len(each._codes._old) + len(each._codes._young) for each in columns)
    return values + sum(len(piece) for each in columns for piece in each._rows._pieces)
