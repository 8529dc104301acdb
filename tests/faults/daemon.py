"""The process from which Spark forks its Python workers, with what they import loaded once for all of them.

Workers are killed and started often here: half a dozen of them in the first micro-batch of each run.
"""

from __future__ import annotations

import pandas  # noqa: F401 - Spark's workers import it
from pyspark.daemon import manager
from pyspark.sql.streaming import stateful_processor_util  # noqa: F401

import sash.spark  # noqa: F401

if __name__ == "__main__":
    manager()
