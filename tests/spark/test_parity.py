"""Spark answers what the same spec answers in memory, however rows are cut, shuffled and ordered."""

from __future__ import annotations

import pytest

import sash
from tests.spark.rides import as_spark, by_id, rides

W = sash.window(by="k", order_by=["ts", "id"])
AGGREGATES = {"n": sash.count(), "total": sash.sum("i"), "top": sash.max("x"), "who": sash.argmax("x", "s")}


def below_500(total, old):
    return total.moved > 500


@sash.aggregate(state=object)
class Words:
    """The bikes of a window, in order."""

    def lift(s):
        return (s,)

    def combine(older, newer):
        return older + newer

    def lower(partial):
        return " ".join(partial)


WINDOWS = {
    "session": W.session("5 minutes"),
    "since": W.since("b"),
    "delta": W.delta("m", 90),
    "policy": W.evict_while(below_500, moved=sash.sum("i")),
    "closed left, ties upto": W.range("30 minutes", closed="left", ties="upto"),
    "lag": W.range("30 minutes", lag="10 minutes"),
    "two bounds": W.range("1 hour", rows=4, min_rows=2),
    "grid": W.range("1 hour").every("25 minutes", origin="2024-03-30 00:10:00+00:00"),
    "tumbling": W.tumbling("40 minutes"),
    "every 3 rows": W.range("1 hour").every(rows=3),
    "several keys": sash.window(by=["k", "b"], order_by=["local", "id"]).range("1 hour"),
}


@pytest.fixture(scope="module")
def table():
    return rides()


@pytest.fixture(scope="module")
def df(spark, table):
    return as_spark(spark, table).repartition(3).cache()


@pytest.mark.parametrize("name", WINDOWS)
def test_spark_answers_what_the_spec_answers_in_memory(name, table, df):
    spec = WINDOWS[name].agg(**AGGREGATES, words=sash.agg(Words, "s"))
    assert by_id(df.transform(spec).toArrow()) == by_id(spec(table))


@pytest.mark.parametrize(
    "options",
    [
        {"partitions": 1, "batch": 1},
        {"partitions": 7, "batch": 7, "adaptive": "false"},
        {"partitions": 7, "batch": 10_000, "adaptive": "true"},
        {"partitions": 200, "batch": 7, "adaptive": "true"},
    ],
    ids=str,
)
def test_answers_do_not_depend_on_partitions_or_batches(options, table, df, configured):
    configured(**options)
    spec = sash.together(
        W.range("40 minutes").agg(**AGGREGATES, words=sash.agg(Words, "s")),
        W.rows(4).agg(latest=sash.last("s"), kinds=sash.distinct("s"), best=sash.max("s")),
    )
    assert by_id(spec(df).toArrow()) == by_id(spec(table))


def test_answers_do_not_depend_on_the_order_of_the_input(table, df):
    spec = W.range("40 minutes").agg(**AGGREGATES)
    assert by_id(spec(df.orderBy("s", "id")).toArrow()) == by_id(spec(table))


def test_specs_together_share_one_shuffle_and_one_sort(df, capsys):
    together = sash.together(W.rows(4).agg(n=sash.count()), W.range("1 hour").agg(m=sash.count()))
    together(df.select("id", "k", "ts")).explain()
    plan = capsys.readouterr().out.split("InMemory")[0]
    assert plan.count("Exchange") == 1
    assert plan.count("Sort ") == 1
    assert plan.count("MapInArrow") == 1


def test_a_table_that_is_sorted_already_is_neither_shuffled_nor_sorted(table, df, capsys):
    ready = df.repartition(2, "k").sortWithinPartitions("k", "ts", "id")
    spec = W.range("40 minutes").agg(**AGGREGATES).presorted()
    answered = spec(ready)
    answered.explain()
    assert capsys.readouterr().out.split("InMemory")[0].count("Exchange") == 1
    assert by_id(answered.toArrow()) == by_id(spec(table))


def test_times_keep_their_meaning_in_any_zone(table, df, configured):
    configured(zone="America/New_York")
    spec = W.tumbling("1 day", origin="2024-03-30 00:00:00+00:00").agg(n=sash.count(), last=sash.max("ts"))
    found = {
        (row["k"], row["ts"].timestamp(), row["n"], row["last"].timestamp()) for row in spec(df).toArrow().to_pylist()
    }
    wanted = {(row["k"], row["ts"].timestamp(), row["n"], row["last"].timestamp()) for row in spec(table).to_pylist()}
    assert found == wanted


def test_a_table_without_rows_has_answers_without_rows(df):
    spec = W.range("40 minutes").agg(**AGGREGATES)
    empty = spec(df.limit(0))
    assert empty.count() == 0
    assert empty.columns == [*df.columns, *AGGREGATES]
