"""A query to be killed: bicycle rides from files, as they end, through a window, to files.

    python -m tests.faults.query FOLDER MASTER EMIT

A ride is told when it ends, but counts when it began: so rows come in disorder, as they do. FOLDER/in holds them, a
file for each micro-batch; when all are answered, what was given out is in FOLDER/answers.parquet.

Of several programs on one folder, one runs: the others are ready, and wait for it to end or to be killed. A file
FOLDER/started-<pid> says that the query has begun.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import sash

FOLDERS = (Path("data/citibike_jc"), Path("../shared/data/citibike_jc"), Path("../data/citibike_jc"))
SCHEMA = pa.schema(
    [("id", pa.int64()), ("station", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("seconds", pa.int64())]
)
HOUR = 3_600_000_000  # microseconds; the longest ride
QUICKLY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for a Java that lives for seconds
SETTINGS = {
    "spark.sql.shuffle.partitions": 2, "spark.executorEnv.SASH_JIT": 0, "spark.executor.memory": "512m",
    "spark.sql.streaming.minBatchesToRetain": 4, "spark.python.daemon.module": "tests.faults.daemon",
    "spark.driver.extraJavaOptions": QUICKLY, "spark.executor.extraJavaOptions": QUICKLY,
}  # fmt: skip
AGGREGATES = {"n": sash.count(), "total": sash.sum("seconds"), "longest": sash.argmax("seconds", "id")}


def spec(emit):
    """Rides that began at a station in the last six hours."""
    window = sash.window(by="station", order_by=["ts", "id"]).range("6 hours")
    return window.agg(**AGGREGATES).stream(emit=emit, lateness="1 hour", shards=3)


def rides(n):
    """Rides of up to an hour, in the order of their ends: Citi Bike's, or made up if there are none."""
    folder = next((each for each in FOLDERS if each.is_dir()), None)
    station, begin, seconds = _made_up(n) if folder is None else _of_citi_bike(folder)
    short = seconds < 3_600
    station, begin, seconds = station[short], begin[short], seconds[short]
    order = np.argsort(begin + seconds * 1_000_000, kind="stable")[:n]
    times = pa.array(begin[order]).cast(pa.timestamp("us")).cast(SCHEMA.field("ts").type)
    return pa.table([np.arange(len(order)), station[order], times, seconds[order]], schema=SCHEMA)


def _of_citi_bike(folder):
    names = {"start station id": pa.int64(), "starttime": pa.timestamp("us"), "tripduration": pa.int64()}
    path = sorted(folder.glob("*.zip"))[0]
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        options = pyarrow.csv.ConvertOptions(column_types=names, include_columns=list(names))
        table = pyarrow.csv.read_csv(file, convert_options=options)
    return tuple(table.column(name).cast(pa.int64()).to_numpy() for name in names)


def _made_up(n):
    random = np.random.default_rng(5)
    begin = 1_527_811_200_000_000 + np.cumsum(random.integers(0, 240_000_000, 2 * n))
    return random.integers(0, 50, 2 * n), begin, random.lognormal(6, 1, 2 * n).astype(np.int64)


def write_files(folder, table, n_files):
    """Cut rides into files, and add one of far later, which lets all others be answered."""
    (folder / "in").mkdir()
    edges = [table.num_rows * k // n_files for k in range(n_files + 1)]
    parts = [table.slice(begin, end - begin) for begin, end in pairwise(edges)]
    last = {"id": -1, "station": -1, "ts": table.column("ts")[-1].as_py().replace(year=2020), "seconds": 0}
    for number, part in enumerate([*parts, pa.Table.from_pylist([last], SCHEMA)]):
        place = folder / "in" / f"{number:04}.parquet"
        pq.write_table(part, place)
        os.utime(place, (number + 1, number + 1))


def main(folder, master, emit):
    """Answer what is not answered yet."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    spark = sash.spark.session("faults", master=master, memory="1g", settings=SETTINGS)
    turn = (folder / "turn").open("w")
    fcntl.flock(turn, fcntl.LOCK_EX)  # until this process ends, however it does
    reader = spark.readStream.schema("id long, station long, ts timestamp, seconds long")
    rows = reader.option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    writer = spec(emit)(rows).writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    (folder / f"started-{os.getpid()}").touch()
    query.awaitTermination()
    answers = spark.read.parquet(str(folder / "out")).toArrow()
    pq.write_table(answers, folder / "answers.part")
    (folder / "answers.part").rename(folder / "answers.parquet")
    spark.stop()


def _end_with(parent):
    """End when whoever started it has ended: a test that is stopped leaves nothing running."""
    while os.getppid() == parent:
        threading.Event().wait(1)
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
