"""Spark: the same declarations over Spark tables. The only folder that knows PySpark.

A user meets `sash.spark.session()`, for a local Spark that works on a bare machine; `spec(df)` comes here by itself.
`run` starts a stream whose state is in a store of the user's own. `metrics` and `watch` tell how any query does.
"""

from sash.spark.answering import answer, seeded
from sash.spark.explaining import explain
from sash.spark.external import parquet_sink, run
from sash.spark.session import SETTINGS, session
from sash.spark.watching import watch
from sash.streams.progress import metrics

__all__ = ["SETTINGS", "answer", "explain", "metrics", "parquet_sink", "run", "seeded", "session", "watch"]
