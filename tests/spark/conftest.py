"""One Spark session for all tests, small and quiet."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

import sash


@pytest.fixture(scope="session")
def spark():
    """Two cores, two partitions: small enough for tables of a few hundred rows."""
    settings = {"spark.sql.shuffle.partitions": 2, "spark.executorEnv.SASH_JIT": 0}
    session = sash.spark.session("tests", master="local[2]", memory="1g", settings=settings)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    """The same source, interpreted: compiling takes longer than these tables; test_kernels runs it compiled."""
    monkeypatch.setenv("SASH_JIT", "0")


@pytest.fixture
def configured(spark):
    """Set options of the session for one test."""
    before = {}

    def configure(**options):
        for name, value in options.items():
            key = NAMES[name]
            before.setdefault(key, spark.conf.get(key))
            spark.conf.set(key, str(value))

    yield configure
    for key, value in before.items():
        spark.conf.set(key, value)


NAMES = {
    "partitions": "spark.sql.shuffle.partitions",
    "batch": "spark.sql.execution.arrow.maxRecordsPerBatch",
    "partition_bytes": "spark.sql.files.maxPartitionBytes",
    "open_cost": "spark.sql.files.openCostInBytes",
    "adaptive": "spark.sql.adaptive.enabled",
    "segment_tree": "spark.sql.window.segmentTree.enabled",
    "zone": "spark.sql.session.timeZone",
}
