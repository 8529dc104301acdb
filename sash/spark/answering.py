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
    _require_own_state(specs)
    return streaming.stream(specs, table, history)


def answer(specs: Sequence[Spec], table: DataFrame) -> DataFrame:
    """Answer specs with the same keys and order over a Spark table, streaming or not."""
    if not table.isStreaming:
        return batch.answer(specs, table)
    _require_own_state(specs)
    return streaming.stream(specs, table)


def _require_own_state(specs: Sequence[Spec]) -> None:
    """Refuse a stream whose state is outside Spark: Spark would not write it together with the answers."""
    if specs[0].streaming.state is not None:
        raise UnsupportedError(
            "a stream with state=... is not a table, but a query that is started by sash.spark.run(spec, df, sink, "
            "checkpoint=..., name=...), without history. Leave state out, and Spark keeps it"
        )
