"""A table that hurts, the same every time: ties, nulls, NaN, keys of one row, and types of all kinds."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa

EPOCH = datetime(2024, 3, 30, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("m", pa.int64()),
    ]
)


def rides(n=300, seed=7):
    """Rows in no order; `id` tells them apart, `m` never falls within a key."""
    random = np.random.default_rng(seed)
    rows = [_ride(random, number) for number in range(n)]
    for place, row in enumerate(sorted(rows, key=lambda row: (row["ts"] is not None, row["ts"] or EPOCH, row["id"]))):
        row["m"] = 3 * place
    return pa.Table.from_pylist(rows, SCHEMA)


def _ride(random, number):
    time = EPOCH + timedelta(minutes=int(random.integers(0, 240)))
    has_time = random.random() > 0.03
    return {
        "id": number,
        "k": random.choice(["a", "a", "a", "b", "a long key", "", None, f"alone {number}"]),
        "ts": time if has_time else None,
        "local": time.replace(tzinfo=None),
        "day": date(2024, 1, 1) + timedelta(days=int(random.integers(0, 90))),
        "i": _or_none(random, int(random.integers(-1000, 1000))),
        "x": _or_none(random, random.choice([math.nan, math.inf, -0.0, 0.0, *random.normal(size=20)]).item()),
        "d": _or_none(random, Decimal(int(random.integers(-10_000, 10_000))) / 100),
        "s": _or_none(random, f"bike {random.integers(0, 30)}"),
        "b": _or_none(random, bool(random.random() < 0.2)),
    }


def _or_none(random, value):
    return None if random.random() < 0.1 else value


def as_spark(spark, table):
    """The same as a Spark table; times without a zone stay so."""
    df = spark.createDataFrame(table)
    return df.withColumn("local", df["local"].cast("timestamp_ntz"))


def by_id(table):
    """Rows of an Arrow table in the order of their ids, as dicts that can be compared: NaN is a word."""
    rows = sorted(table.to_pylist(), key=lambda row: tuple(repr(row.get(name)) for name in ("id", "k", "ts")))
    return [{name: _comparable(value) for name, value in row.items()} for row in rows]


def _comparable(value):
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
