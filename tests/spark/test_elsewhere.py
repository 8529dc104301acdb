"""Other Sparks than one local process: executors of their own, and a server spoken to through Connect."""

from __future__ import annotations

import importlib.util

import pytest

from tests.spark.programs import run

BOTH = """
from tests.spark.rides import as_spark, by_id, rides
table = rides()
spec = sash.window(by="k", order_by=["ts", "id"]).range("40 minutes").agg(
    n=sash.count(), total=sash.sum("i"), who=sash.argmax("x", "s"))
df = as_spark(spark, table)
print(by_id(spec(df).toArrow()) == by_id(spec(table)), spec(df).columns == [*df.columns, "n", "total", "who"])
print("by k, into" in str(spec.explain(df)))
print(by_id(spec.split_hot_keys(2, hotter_than=60)(df).toArrow()) == by_id(spec(table)))
"""


def test_executors_in_processes_of_their_own_give_the_same_answers():
    code = """
import sash
spark = sash.spark.session(master="local-cluster[2,1,1024]", memory="512m", settings={
    "spark.sql.shuffle.partitions": 4, "spark.executorEnv.SASH_JIT": 0, "spark.executor.memory": "512m"})
"""
    assert run(code + BOTH).split() == ["True"] * 4


@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="the client of Spark Connect is not installed")
def test_a_server_through_connect_gives_the_same_answers():
    code = """
import os
from sash.spark.java import find_java
home = find_java()
if home is not None:
    os.environ["JAVA_HOME"] = str(home)
import sash
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", 2).config(
    "spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC").getOrCreate()
assert "connect" in type(spark).__module__
"""
    assert run(code + BOTH).split() == ["True"] * 4
