"""Shards are spread evenly over partitions: Spark's hash of a shard's label is its number."""

from __future__ import annotations

from pyspark.sql import functions as fn

from sash.spark.labels import label_of

NUMBERS = [*range(100), 2**20, 2**31 - 1]


def test_spark_hashes_a_label_to_the_number_of_its_shard(spark):
    table = spark.createDataFrame([(number, label_of(number)) for number in NUMBERS], "number int, label int")
    assert [tuple(row) for row in table.select("number", fn.hash("label")).collect()] == [(n, n) for n in NUMBERS]


def test_shards_are_in_partitions_by_turns(spark):
    table = spark.createDataFrame([(number, label_of(number)) for number in range(20)], "number int, label int")
    for n in (2, 3, 7):
        placed = table.repartition(n, "label").select("number", fn.spark_partition_id()).collect()
        assert all(number % n == partition for number, partition in placed)
