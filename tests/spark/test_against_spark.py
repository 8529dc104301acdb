"""What Spark's own OVER can say, Sash says too, and the answers are the same."""

from __future__ import annotations

import math

import pytest
from pyspark.sql.functions import expr

import sash
from tests.spark.rides import as_spark, rides

W = sash.window(by="k", order_by=["ts", "id"])
FRAMES = {
    "rows": (W.rows(5), "ORDER BY ts, id ROWS BETWEEN 4 PRECEDING AND CURRENT ROW"),
    "range": (
        sash.window(by="k", order_by="ts").range("20 minutes"),
        "ORDER BY ts RANGE BETWEEN INTERVAL 20 MINUTES PRECEDING AND CURRENT ROW",
    ),
    "range over dates": (
        sash.window(by="k", order_by="day").range("10 days"),
        "ORDER BY day RANGE BETWEEN INTERVAL 10 DAYS PRECEDING AND CURRENT ROW",
    ),
    "range over numbers": (
        sash.window(by="k", order_by="i").range(100),
        "ORDER BY i RANGE BETWEEN 100 PRECEDING AND CURRENT ROW",
    ),
    "everything": (sash.window(by="k", order_by="ts").everything(), "ORDER BY ts"),
    "all rows": (
        sash.window(order_by=["ts", "id"]).rows(7),
        "ORDER BY ts, id ROWS BETWEEN 6 PRECEDING AND CURRENT ROW",
    ),
}
AGGREGATES = {  # ours, theirs
    "rows_": (sash.count(), "count(*)"),
    "n": (sash.count("x"), "count(x)"),
    "total": (sash.sum("i"), "sum(i)"),
    "top": (sash.max("x"), "max(x)"),
    "least": (sash.min("x"), "min(x)"),
    "money": (sash.sum("d"), "sum(d)"),
    "dearest": (sash.max("d"), "max(d)"),
    "mean": (sash.mean("i"), "avg(i)"),
    "spread": (sash.std("i"), "stddev_samp(i)"),
    "text": (sash.max("s"), "max(s)"),
    "when": (sash.max("local"), "max(local)"),
    "which": (sash.min("day"), "min(day)"),
    "any": (sash.any("b"), "bool_or(b)"),
}


@pytest.fixture(scope="module")
def df(spark):
    return as_spark(spark, rides()).repartition(3).cache()


@pytest.mark.parametrize("segment_tree", [False, True])
@pytest.mark.parametrize("name", FRAMES)
def test_answers_are_those_of_over(name, segment_tree, df, configured):
    window, frame = FRAMES[name]
    configured(segment_tree=str(segment_tree).lower())
    clause = f"OVER ({'PARTITION BY k ' if window.by else ''}{frame})"
    theirs = df.select("id", *(expr(f"{each} {clause}").alias(name) for name, (_, each) in AGGREGATES.items()))
    ours = window.agg(**{name: each for name, (each, _) in AGGREGATES.items()})(df).select("id", *AGGREGATES)
    assert [field.dataType for field in ours.schema] == [field.dataType for field in theirs.schema]
    found = {row["id"]: row for row in ours.collect()}
    wanted = {row["id"]: row for row in theirs.collect()}
    assert found.keys() == wanted.keys()
    for number, row in wanted.items():
        for answer in AGGREGATES:
            assert same(found[number][answer], row[answer]), (number, answer, found[number][answer], row[answer])


def same(found, wanted):
    """Equal; floats within rounding, NaN equal to itself, a spread of one row null or not as Spark says."""
    if isinstance(wanted, float) and isinstance(found, float):
        return (math.isnan(found) and math.isnan(wanted)) or found == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    return found == wanted


def test_counts_are_not_null_and_the_columns_of_the_table_stay_as_they_are(df):
    answered = W.rows(3).agg(n=sash.count(), top=sash.max("x"))(df)
    assert answered.schema[: len(df.columns)] == df.schema[:]
    assert not answered.schema["n"].nullable
    assert answered.schema["top"].nullable
    before = {row["id"]: repr(row) for row in df.collect()}
    assert {row["id"]: repr(row) for row in answered.select(df.columns).collect()} == before
