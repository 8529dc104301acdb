"""Answering specs over a Spark table: in batch, or as a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sash.spark import batch, streaming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.frames.spec import Spec


def answer(specs: Sequence[Spec], table: DataFrame) -> DataFrame:
    """Answer specs with the same keys and order over a Spark table, streaming or not."""
    return streaming.stream(specs, table) if table.isStreaming else batch.answer(specs, table)
