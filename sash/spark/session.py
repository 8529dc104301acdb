"""`sash.spark.session()`: a local Spark session that works on a bare machine. Every setting with its reason."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession

from sash.errors import DeclarationError
from sash.spark.java import find_java

EXECUTORS = "spark.executorEnv."  # before the name of a variable of their environment
SETTINGS = {  # setting: (value, why); {cores} is the number of cores
    "spark.sql.session.timeZone": ("UTC", "times mean the same on every machine"),
    "spark.sql.execution.arrow.pyspark.enabled": ("true", "toPandas and createDataFrame by column, not by row"),
    "spark.sql.execution.arrow.maxBytesPerBatch": (
        "2147483647",
        "a limit is looked at after every row, half of the way to Python; the rows of a batch are limited anyway",
    ),
    "spark.sql.execution.arrow.maxRecordsPerBatch": (
        "65536",
        "a batch costs Python a millisecond however few rows it has, and Spark's default is 10,000",
    ),
    "spark.sql.shuffle.partitions": (
        "{cores}",
        "200 tasks, Spark's default, take longer to start than small data takes",
    ),
    "spark.ui.enabled": ("false", "no port is opened, and no second session fights for it"),
    "spark.log.level": ("ERROR", "warnings of a local Spark are about the cluster it is not"),
    "spark.ui.showConsoleProgress": ("false", "bars of progress do not mix with what a program prints"),
    "spark.driver.bindAddress": ("127.0.0.1", "nobody else can reach it"),
    "spark.driver.host": ("127.0.0.1", "machines whose name leads nowhere work too"),
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "windows over streams need it: Spark's default store refuses them",
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": (
        "true",
        "a micro-batch writes what it changed, not the files of its state; those follow in the background",
    ),
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": ("false", "else every write reads first"),
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
        "the default starts five processes for every file that it renames here: a third of a small micro-batch",
    ),
    "spark.python.worker.reuse": ("true", "a worker that lives on keeps its machine code loaded"),
    "spark.python.unix.domain.socket.enabled": (
        "true",
        "rows go to Python and back without TCP, which takes longer and, full both ways, has been seen to stand still",
    ),
    "spark.executorEnv.MALLOC_ARENA_MAX": ("1", "memory that a thread hands back is there for the others"),
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": (
        "1073741824",
        "large memory is used once more instead of handed back: fresh pages take longer than what is written to them",
    ),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": ("1073741824", "the same, for memory at the end of the heap"),
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": (
        "10000",
        "the same, for Arrow's memory: in milliseconds, so that the next micro-batch finds it; the default is 10",
    ),
}


def session(
    app: str = "sash", *, master: str = "local[*]", memory: str = "2g", settings: Mapping[str, Any] | None = None
) -> SparkSession:
    """Start a local Spark session, with `settings` above those in the table `sash.spark.SETTINGS`.

    A session that is running already is given back as it is: whoever made it chose its settings. If it has other
    ones than you ask for in `settings`, that is an error.
    """
    asked = {name: _text(value) for name, value in (settings or {}).items()}
    running = SparkSession.getActiveSession()
    if running is not None:
        return _unchanged(running, asked)
    _prepare_environment()
    builder = SparkSession.builder.appName(app).master(master).config("spark.driver.memory", memory)
    chosen = {name: value.format(cores=os.cpu_count() or 1) for name, (value, _) in SETTINGS.items()}
    for name, value in {**chosen, **_executor_environment(), **asked}.items():
        builder = builder.config(name, value)
    with _environment_of_java():
        return builder.getOrCreate()


def _unchanged(running: SparkSession, asked: Mapping[str, str]) -> SparkSession:
    different = {name: (running.conf.get(name, None), value) for name, value in asked.items()}
    different = {name: each for name, each in different.items() if each[0] != each[1]}
    if different:
        said = "; ".join(f"{name} is {found!r}, not {wanted!r}" for name, (found, wanted) in different.items())
        raise DeclarationError(
            f"a Spark session is running already, and Sash does not change it: {said}. Stop it first, "
            "or leave these settings out"
        )
    logging.getLogger(__name__).info("a Spark session is running already and is given back unchanged")
    return running


def _prepare_environment() -> None:
    """What must be known before Java starts: which Java, and which Python its workers are."""
    home = find_java()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are whatever python3 the path has
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


@contextlib.contextmanager
def _environment_of_java() -> Iterator[None]:
    """While Java starts, what executors have in their environment: a local session has them in the same process."""
    said = {name.removeprefix(EXECUTORS): value for name, (value, _) in SETTINGS.items() if name.startswith(EXECUTORS)}
    added = {name: value for name, value in said.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _executor_environment() -> dict[str, str]:
    """Where machine code is kept, for executors in processes of their own."""
    kept = os.environ.get("SASH_CACHE_DIR")
    return {} if kept is None else {EXECUTORS + "SASH_CACHE_DIR": kept}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
