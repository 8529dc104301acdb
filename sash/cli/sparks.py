"""Pipelines on Spark, in batch and as streams, through `sash.spark`; PySpark itself is not imported here."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sash.cli.checkpoints import local, require_same
from sash.cli.console import apart, err, out, waiting
from sash.cli.explaining import require_names
from sash.cli.pipelines import FILES, ONCE, Pipeline
from sash.cli.watching import Log, Watch


@contextmanager
def session(app: str, *, master: str = "local[*]", memory: str = "2g",
            settings: Mapping[str, Any] | None = None) -> Iterator[Any]:  # fmt: skip
    """A Spark session whose Java keeps its talk to a log; stopped at the end, also after Ctrl-C."""
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    logging.getLogger().addFilter(
        lambda record: "KeyboardInterrupt while" not in record.getMessage()
    )  # py4j's traceback
    log = Path(tempfile.gettempdir()) / f"sash-spark-{os.getuid()}-{os.getpid()}.log"
    with waiting("starting Spark"), apart(str(log)), _deferred() as asked_to_stop:
        spark = importlib.import_module("sash.spark").session(app, master=master, memory=memory, settings=settings)
    try:
        if asked_to_stop:
            raise KeyboardInterrupt
        yield spark
    except KeyboardInterrupt:
        log.unlink(missing_ok=True)
        raise
    except BaseException:
        err.print(f"what Spark said is in {log}", markup=False)
        raise
    else:
        log.unlink(missing_ok=True)
    finally:
        with _undisturbed():
            spark.stop()


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Py4J tells of Ctrl-C with a traceback; whoever pressed it knows."""
    return "KeyboardInterrupt while" not in record.getMessage()


@contextmanager
def _deferred() -> Iterator[list[int]]:
    """Ctrl-C waits until this is over: a Java that loses its Python while it starts would stay for ever."""
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not break off what puts things in order."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_on_spark(pipeline: Pipeline, log: Path | None = None) -> None:
    """Run a pipeline."""
    _require_source(pipeline)
    if pipeline.stream is not None:
        require_same(pipeline.stream.checkpoint, pipeline.spec, str(pipeline.source.path))
    with session("sash run", master=pipeline.master, memory=pipeline.memory, settings=pipeline.settings) as spark:
        table = table_of(pipeline, spark)
        pipeline.require_columns(table.columns)
        answers = pipeline.spec(table)
        if pipeline.stream is None:
            _write(pipeline, answers)
        else:
            _start(pipeline, answers, log)


def _require_source(pipeline: Pipeline) -> None:
    """Before Java starts: is there anything to read, and has it the columns?"""
    path = pipeline.source.path
    place = None if path is None or any(sign in path for sign in "*?[") else local(path)
    if pipeline.source.format in FILES and place is not None and not place.exists():
        raise pipeline.file.wrong(("source", "path"), f"source.path: there is nothing at {place}")
    require_names(pipeline)


def table_of(pipeline: Pipeline, spark: Any) -> Any:
    """The table of a pipeline's source, or its stream."""
    source = pipeline.source
    options = {"header": "true", "inferSchema": "true"} if source.format == "csv" else {}
    options |= {name: str(value) for name, value in source.options.items()}
    schema = source.schema
    if pipeline.stream is not None and schema is None and source.format in FILES:
        schema = spark.read.format(source.format).options(**options).load(source.path).schema  # of what is there now
    reader = (spark.read if pipeline.stream is None else spark.readStream).format(source.format).options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(source.path) if source.path is not None else reader.load()


def _write(pipeline: Pipeline, answers: Any) -> None:
    sink = pipeline.sink
    if sink.format == "show":
        with waiting("answering"):
            shown = answers.limit(20).toPandas()
        out.print(shown.to_string(index=False), markup=False, soft_wrap=True)
        return
    with waiting(f"answering into {sink.path}"):
        answers.write.format(sink.format).mode(sink.mode).options(**sink.options).save(sink.path)


def _start(pipeline: Pipeline, answers: Any, log: Path | None) -> None:
    stream, sink = pipeline.stream, pipeline.sink
    assert stream is not None
    form = "console" if sink.format == "show" else sink.format
    writer = answers.writeStream.format(form).options(**sink.options).option("checkpointLocation", stream.checkpoint)
    if sink.path is not None:
        writer = writer.option("path", sink.path)
    once = stream.trigger == ONCE
    query = (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=stream.trigger)).start()
    follow(query, Watch(Log(log)))


def follow(query: Any, watch: Watch) -> None:
    """Follow a query to its end; Ctrl-C stops it between two writes, and whoever runs it again goes on from there."""
    try:
        watch.follow(query)
    except KeyboardInterrupt:
        with _undisturbed(), waiting("stopping; what is committed stays"):
            query.stop()
        raise
