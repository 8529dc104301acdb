"""Spark: the same declarations over Spark tables. The only folder that knows PySpark.

A user meets `sash.spark.session()`, for a local Spark that works on a bare machine; `spec(df)` comes here by itself.
"""

from sash.spark.batch import answer
from sash.spark.explaining import explain
from sash.spark.session import SETTINGS, session

__all__ = ["SETTINGS", "answer", "explain", "session"]
