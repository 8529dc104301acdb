"""Answering specs over a Spark table: in batch, or as a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sash.errors import UnsupportedError
from sash.spark import batch, streaming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.frames.spec import Spec


def seeded(specs: Sequence[Spec], table: DataFrame, history: DataFrame) -> DataFrame:
    """Answer specs over a stream whose windows begin with rows of history."""
    if not table.isStreaming:
        raise UnsupportedError("seed(...) is for a stream, but this table is none. Put both into one, with union")
    return streaming.stream(specs, table, history)


def answer(specs: Sequence[Spec], table: DataFrame) -> DataFrame:
    """Answer specs with the same keys and order over a Spark table, streaming or not."""
    return streaming.stream(specs, table) if table.isStreaming else batch.answer(specs, table)
