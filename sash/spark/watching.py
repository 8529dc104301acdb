"""Watching a query: by rich, if it is there."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sash.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery


def watch(query: StreamingQuery) -> None:
    """Show a query while it runs, on standard error, until it ends: a line for each micro-batch.

    On a terminal the last ones are redrawn in place, with the times of all that were seen: median, 99th percentile
    and maximum. An error of the query is raised; Ctrl-C leaves it running.
    """
    try:
        watching = importlib.import_module("sash.streams.watching")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "watch(query) needs the rich package, which is missing. Install it with: pip install 'sash[cli]'; or ask "
            "sash.spark.metrics(query)"
        ) from error
    watching.watch(query)
