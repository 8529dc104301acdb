"""Programs that are started, watched and killed, and what is left of their answers.

Only processes that a program has started are killed: its own group, or descendants of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import accumulate, pairwise
from pathlib import Path

import pyarrow.parquet as pq

from tests.faults.query import spec

ROOT = Path(__file__).parents[2]
MOMENT = 0.05  # seconds between two looks at a program


class Program:
    """A run of the query, in a group of processes of its own."""

    def __init__(self, folder, master, emit):
        self.folder = folder
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SASH_JIT": "0"}
        command = [sys.executable, "-m", "tests.faults.query", str(folder), master, emit]
        self._log = (folder / f"log-{len(list(folder.glob('log-*')))}").open("wb")
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=self._log, stderr=self._log, start_new_session=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.kill()
        self._log.close()

    @property
    def is_running(self):
        return self.process.poll() is None

    def wait(self, seconds):
        """Let it run; whether it still does."""
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def wait_until(self, holds, seconds=float("inf")):
        """Let it run until something holds, or some time is over; whether it still runs."""
        end = time.monotonic() + seconds
        while self.is_running and time.monotonic() < end and not holds():
            self.wait(MOMENT)
        return self.is_running

    def wait_for_query(self):
        """Let it run until its query has begun; whether it still runs."""
        return self.wait_until((self.folder / f"started-{self.process.pid}").exists)

    def kill(self):
        """End it as a power cut would: Python, Java, and all else in its group."""
        if self.is_running:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def finish(self):
        """Let it run to its end, or until the machine was too busy for it: Spark waits ten seconds for a worker."""
        assert self.process.wait() == 0 or "Python worker failed to connect back" in self.said(), self.said()

    def said(self):
        """What it has said, or the end of it."""
        return Path(self._log.name).read_text()[-20_000:]

    def descendants(self, *words):
        """The processes it has started, directly or not, whose commands hold these words: numbers."""
        lines = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in lines.splitlines()[1:]]
        parents = {int(pid): int(parent) for pid, parent, *_ in rows}
        commands = {int(pid): "".join(rest) for pid, _, *rest in rows}
        own = [pid for pid in parents if self.process.pid in _ancestors(pid, parents)]
        return {pid: parents[pid] for pid in own if all(word in commands[pid] for word in words)}


def _ancestors(pid, parents):
    found = []
    while pid in parents and parents[pid] not in found:
        pid = parents[pid]
        found.append(pid)
    return found


def committed(folder):
    """The last micro-batch that is done, -1 if none is."""
    commits = folder / "checkpoint" / "commits"
    return max((int(each.name) for each in commits.glob("[0-9]*")), default=-1) if commits.is_dir() else -1


def verdict(folder, table, emit):
    """How many answers are lost, doubled and wrong, against batch over the same rides, or those that had come."""
    found = pq.read_table(folder / "answers.parquet").to_pylist()
    names = [*table.schema.names, *(name for name, _ in spec(emit).aggregates)]
    given = Counter((row["id"], row.get("revision", 0)) for row in found if row["id"] >= 0)
    last = {row["id"]: row for row in sorted(found, key=lambda row: row.get("revision", 0))}
    wanted = {row["id"]: row for row in _answers(folder, table, emit)}
    return {
        "lost": len(wanted.keys() - last.keys()),
        "doubled": sum(n - 1 for n in given.values()) + len(last.keys() - wanted.keys() - {-1}),
        "wrong": sum(
            any(last[each][name] != row[name] for name in names) for each, row in wanted.items() if each in last
        ),
    }


def _answers(folder, table, emit):
    """What batch answers; for rides that are answered at once, over all that had come with their file."""
    if emit != "eager":
        return spec(emit)(table).to_pylist()
    files = sorted((folder / "in").glob("*.parquet"))[:-1]
    edges = [0, *accumulate(pq.read_metadata(file).num_rows for file in files)]
    parts = [spec(emit)(table.slice(0, end)).slice(begin) for begin, end in pairwise(edges)]
    return [row for part in parts for row in part.to_pylist()]


NONE = {"lost": 0, "doubled": 0, "wrong": 0}
