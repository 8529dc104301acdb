"""Spark: the same declarations over Spark tables. The only folder that knows PySpark.

A user meets `sash.spark.session()`, for a local Spark that works on a bare machine; `spec(df)` comes here by itself.
"""

from sash.spark.answering import answer, seeded
from sash.spark.explaining import explain
from sash.spark.session import SETTINGS, session
from sash.spark.streaming import metrics

__all__ = ["SETTINGS", "answer", "explain", "metrics", "seeded", "session"]
