"""Kills at random moments: of the driver, of Python workers, of executors. Nothing is lost, doubled or wrong.

SASH_FAULTS is how many times the driver is killed. Up to 5, the default, all are killed in turn over one stream; above
that each kind has a stream of its own, and is killed that often.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress

import numpy as np
import pytest

pytest.importorskip("pyspark")

from tests.faults.killing import NONE, Program, committed, verdict
from tests.faults.query import rides, write_files

KILLS = int(os.environ.get("SASH_FAULTS", "5"))
ROWS = 250  # of a micro-batch
SECONDS = 6.0  # within which a process is killed, after its query has begun
THREADS, ONE_EXECUTOR, TWO_EXECUTORS = "local[2,4]", "local-cluster[1,2,1024]", "local-cluster[2,1,1024]"

quick = pytest.mark.skipif(KILLS > 5, reason="the quick run only")
long = pytest.mark.skipif(KILLS <= 5, reason="the long run only: SASH_FAULTS=100")


def prepared(folder, n_files):
    table = rides(ROWS * n_files)
    write_files(folder, table, n_files)
    return table


def workers(program):
    """Python workers in which tasks run: children of the daemon that makes them, whose command they share."""
    there = program.descendants("tests.faults.daemon", "pyspark.worker")
    return [pid for pid, parent in there.items() if parent in there]


def executors(program):
    """Java processes in which tasks run."""
    return list(program.descendants("java", "CoarseGrainedExecutorBackend"))


def kill_drivers(folder, emit, n, seed, *, find=None):
    """Start the query n times and kill it: in its first micro-batch or, every other time, soon after that is committed.

    `find`: also kill one of these processes before. How many of them were killed. The next run starts up meanwhile.
    """
    random, n_killed = np.random.default_rng(seed), 0
    with ExitStack() as programs:
        following = programs.enter_context(Program(folder, THREADS, emit))
        for k in range(n):
            program = following
            program.wait_for_query()
            if k + 1 < n:
                following = programs.enter_context(Program(folder, THREADS, emit))
            before, moment = committed(folder), float(random.uniform(0, SECONDS))
            n_killed += find is not None and kill_one(program, find, random, before, moment)
            program.wait_until(lambda before=before: committed(folder) > before, moment)
            if k % 2:
                program.wait_until(lambda before=before: committed(folder) > before)
                program.wait(moment / SECONDS)
            if program.is_running:
                program.kill()
            else:
                program.finish()
                assert not (folder / "answers.parquet").exists(), "there were too few files to be killed so often"
    return n_killed


def kill_one(program, find, random, before, seconds):
    """Kill one of the processes that a program has started, before the next commit; whether there was one in time."""
    there = []
    program.wait_until(lambda: committed(program.folder) > before, float(random.uniform(0, seconds)))
    program.wait_until(lambda: there.extend(find(program)) or there or committed(program.folder) > before)
    with suppress(ProcessLookupError):  # it had ended by itself
        if there and program.is_running:
            os.kill(int(random.choice(sorted(there))), signal.SIGKILL)
            return True
    return False


def kill_descendants(folder, master, find, n, seed, emit="revise"):
    """Run the query to its end and kill n of the processes it has started, at most one in a micro-batch; how many."""
    random, n_killed = np.random.default_rng(seed), 0
    while not (folder / "answers.parquet").exists():
        with Program(folder, master, emit) as program:
            program.wait_for_query()
            while n_killed < n and program.is_running:
                before = committed(folder)
                n_killed += kill_one(program, find, random, before, 0.5)
                program.wait_until(lambda before=before: committed(folder) > before)
            program.finish()
    return n_killed


@quick
def test_drivers_workers_and_an_executor_killed_in_turn_lose_and_double_nothing(tmp_path):
    table = prepared(tmp_path, 3 * KILLS + 1)  # more than are done by drivers that are killed
    assert kill_drivers(tmp_path, "revise", KILLS, seed=1, find=workers) > 0
    assert kill_descendants(tmp_path, ONE_EXECUTOR, executors, 1, seed=4) == 1
    assert verdict(tmp_path, table, "revise") == NONE


@long
@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_a_driver_killed_again_and_again_loses_and_doubles_nothing(emit, tmp_path):
    n = KILLS if emit == "final" else KILLS // 5
    table = prepared(tmp_path, 3 * n + 1)
    kill_drivers(tmp_path, emit, n, seed=2)
    assert committed(tmp_path) >= n // 3, "drivers are killed in one micro-batch after the other"
    assert kill_descendants(tmp_path, THREADS, workers, 0, seed=2, emit=emit) == 0
    assert verdict(tmp_path, table, emit) == NONE


@long
def test_python_workers_killed_in_their_tasks_lose_and_double_nothing(tmp_path):
    table = prepared(tmp_path, KILLS + 3)
    assert kill_descendants(tmp_path, THREADS, workers, KILLS, seed=3) == KILLS
    assert verdict(tmp_path, table, "revise") == NONE


@long
def test_executors_killed_in_their_tasks_lose_and_double_nothing(tmp_path):
    table = prepared(tmp_path, 63)
    assert kill_descendants(tmp_path, TWO_EXECUTORS, executors, 30, seed=4) == 30
    assert verdict(tmp_path, table, "revise") == NONE
