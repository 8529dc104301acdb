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
from sash.cli.exits import CommandError
from sash.cli.explaining import require_names
from sash.cli.pipelines import FILES, ONCE, Pipeline, Sink, Source, Stream
from sash.cli.watching import Log, Watch
from sash.frames.spec import Together
from sash.streams.progress import ALGORITHM, METRICS


@contextmanager
def session(app: str, *, master: str = "local[*]", memory: str = "2g",
            settings: Mapping[str, Any] | None = None) -> Iterator[Any]:  # fmt: skip
    """A Spark session whose Java keeps its talk to a log; stopped at the end, also after Ctrl-C."""
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    logging.getLogger().addFilter(_is_no_interrupt)
    log = Path(tempfile.gettempdir()) / f"sash-spark-{os.getuid()}-{os.getpid()}.log"
    with waiting("starting Spark"), _deferred() as asked_to_stop, apart(str(log)):
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
    here = os.dup(2)  # meanwhile, standard error leads elsewhere

    def note(number: int, _: Any) -> None:
        asked.append(number)
        os.write(here, b"\nstopping as soon as Spark has started\n")

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(here)


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
        seed = "" if pipeline.stream.seed is None else f", seeded by {pipeline.stream.seed.path}"
        require_same(pipeline.stream.checkpoint, pipeline.spec, f"{pipeline.source.path}{seed}")
    with session("sash run", master=pipeline.master, memory=pipeline.memory, settings=pipeline.settings) as spark:
        table = table_of(pipeline.source, spark, is_stream=pipeline.stream is not None)
        pipeline.require_columns(table.columns)
        if pipeline.stream is None:
            _write(pipeline, pipeline.spec(table))
        else:
            start = _start_stored if pipeline.stream.is_stored else _start
            follow(start(pipeline, pipeline.stream, table, spark), Watch(Log(log)))


def _require_source(pipeline: Pipeline) -> None:
    """Before Java starts: is there anything to read, and has it the columns?"""
    seed = pipeline.stream.seed if pipeline.stream is not None else None
    for source, where in ((pipeline.source, ("source", "path")), (seed, ("stream", "seed", "path"))):
        path = None if source is None else source.path
        place = None if path is None or any(sign in path for sign in "*?[") else local(path)
        if source is not None and source.format in FILES and place is not None and not place.exists():
            raise pipeline.file.wrong(where, f"{'.'.join(where)}: there is nothing at {place}")
    require_names(pipeline)


def table_of(source: Source, spark: Any, *, is_stream: bool) -> Any:
    """The table of a source, or its stream."""
    options = {"header": "true", "inferSchema": "true"} if source.format == "csv" else {}
    options |= {name: str(value) for name, value in source.options.items()}
    schema = source.schema
    if is_stream and schema is None and source.format in FILES:
        schema = spark.read.format(source.format).options(**options).load(source.path).schema  # of what is there now
    reader = (spark.readStream if is_stream else spark.read).format(source.format).options(**options)
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


def _start(pipeline: Pipeline, stream: Stream, table: Any, spark: Any) -> Any:
    """Start a stream whose state Spark keeps."""
    sink, spec = pipeline.sink, pipeline.spec
    answers = spec(table) if stream.seed is None else spec.seed(table_of(stream.seed, spark, is_stream=False))(table)
    form = "console" if sink.format == "show" else sink.format
    writer = answers.writeStream.format(form).options(**sink.options).option("checkpointLocation", stream.checkpoint)
    if sink.path is not None:
        writer = writer.option("path", sink.path)
    return writer.queryName(stream.name).trigger(**_trigger(stream)).start()


def _trigger(stream: Stream) -> dict[str, Any]:
    return {"availableNow": True} if stream.trigger == ONCE else {"processingTime": stream.trigger}


def _start_stored(pipeline: Pipeline, stream: Stream, table: Any, spark: Any) -> Any:
    """Start a stream whose state is in a store."""
    specs = pipeline.spec.specs if isinstance(pipeline.spec, Together) else (pipeline.spec,)
    if "batch" in (*table.columns, *(name for each in specs for name, _ in each.aggregates)):
        raise CommandError("answers with stream.state are told apart by a column 'batch', but there is one; rename it")
    counts: dict[int, dict[str, int]] = {}
    query = importlib.import_module("sash.spark").run(
        pipeline.spec, table, _replacing(pipeline.sink), checkpoint=stream.checkpoint, name=stream.name,
        trigger=_trigger(stream), counted=counts.__setitem__,
    )  # fmt: skip
    return Counted(query, counts)


def _replacing(sink: Sink) -> Any:
    """What writes each batch to a directory of its own, or shows it: done again, it replaces itself."""

    def write(answers: Any, number: int) -> None:
        if sink.path is None:
            answers.show(truncate=False)
        else:
            writer = answers.write.format(sink.format).options(**sink.options)
            writer.mode("overwrite").save(f"{sink.path}/batch={number}")

    return write


class Counted:
    """A query whose progress has what was counted beside it: Spark knows nothing of a store."""

    def __init__(self, query: Any, counts: dict[int, dict[str, int]]) -> None:
        self._query, self._counts = query, counts
        self.awaitTermination, self.stop = query.awaitTermination, query.stop

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - Spark's name
        """The last micro-batches."""
        return [
            {**each, "observedMetrics": {METRICS: self._counts[each["batchId"]] | {ALGORITHM: None}}}
            if each["batchId"] in self._counts else each
            for each in self._query.recentProgress
        ]  # fmt: skip


def follow(query: Any, watch: Watch) -> None:
    """Follow a query to its end; Ctrl-C stops it between two writes, and whoever runs it again goes on from there."""
    try:
        watch.follow(query)
    except KeyboardInterrupt:
        with _undisturbed(), waiting("stopping; what is committed stays"):
            query.stop()
        raise
