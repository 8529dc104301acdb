"""What a pipeline will do, without doing it: the types of its files decide, if they can be read without Spark."""

from __future__ import annotations

import importlib
from typing import Any

from sash.cli.exits import PipelineError
from sash.cli.pipelines import FILES, Pipeline


def explained(pipeline: Pipeline) -> str:
    """The source, the spec as the engine sees it, the sink."""
    source, sink, stream = pipeline.source, pipeline.sink, pipeline.stream
    how = "as a stream" if stream is not None else "once"
    lines = [
        f"{'source':<12}{source.format} {source.path or ''} {how}, by {pipeline.engine}",
        f"{'sink':<12}{sink.format} {sink.path or ''}".rstrip(),
    ]
    if stream is not None:
        lines.append(f"{'stream':<12}checkpoint {stream.checkpoint}, trigger {stream.trigger}")
        if stream.seed is not None:
            lines.append(f"{'seed':<12}{stream.seed.format} {stream.seed.path or ''}")
    return "\n".join(lines) + "\n\n" + str(pipeline.spec.explain(_rows_of(pipeline)))


def require_names(pipeline: Pipeline) -> None:
    """Complain of columns that the files do not have, if that can be told without Spark."""
    _rows_of(pipeline)


def _rows_of(pipeline: Pipeline) -> Any:
    """A table of the source's types without rows; None if its types are only known to Spark."""
    if pipeline.source.format not in FILES or pipeline.source.schema is not None:
        return None
    try:
        schema = importlib.import_module("sash.cli.batches").dataset_of(pipeline).schema
    except (PipelineError, ModuleNotFoundError, OSError, ValueError):
        return None  # files that are still to come, or that only Spark can read
    pipeline.require_columns(schema.names)
    return schema.empty_table()
