"""Kills at random moments: of the driver, of Python workers, of executors. Nothing is lost, doubled or wrong.

SASH_FAULTS is how many times the driver is killed: 5 by default, 100 for the long run.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import numpy as np
import pytest

pytest.importorskip("pyspark")

from tests.faults.killing import MOMENT, NONE, Program, committed, verdict
from tests.faults.query import rides, write_files

KILLS = int(os.environ.get("SASH_FAULTS", "5"))
ROWS = 250  # of a micro-batch


def prepared(folder, n_files):
    table = rides(ROWS * n_files)
    write_files(folder, table, n_files)
    return table


def kill_drivers(folder, emit, n, seed):
    """Start the query n times and kill it in the middle of a micro-batch, or just after one."""
    random = np.random.default_rng(seed)
    for _ in range(n):
        with Program(folder, "local[2]", emit) as program:
            assert program.wait_for_batch(committed(folder) + 1), (folder / "log").read_text()[-3_000:]
            assert program.wait(float(random.uniform(0, 1.5))), "there were too few files to be killed so often"
    with Program(folder, "local[2]", emit) as program:
        program.finish()


def test_a_driver_killed_again_and_again_loses_and_doubles_nothing(tmp_path):
    table = prepared(tmp_path, 3 * KILLS)
    kill_drivers(tmp_path, "final", KILLS, seed=1)
    assert verdict(tmp_path, table, "final") == NONE


@pytest.mark.skipif(KILLS <= 5, reason="the long run only: SASH_FAULTS=100")
@pytest.mark.parametrize("emit", ["eager", "revise"])
def test_drivers_that_answer_at_once_lose_and_double_nothing_either(emit, tmp_path):
    table = prepared(tmp_path, 3 * (KILLS // 5))
    kill_drivers(tmp_path, emit, KILLS // 5, seed=2)
    found = verdict(tmp_path, table, emit)
    assert (found if emit == "revise" else {**found, "wrong": 0}) == NONE


def workers(program):
    """Python workers in which tasks run: children of the daemon that makes them, whose command they share."""
    there = program.descendants("pyspark.daemon", "pyspark.worker")
    return [pid for pid, parent in there.items() if parent in there]


def executors(program):
    """Java processes in which tasks run."""
    return list(program.descendants("java", "CoarseGrainedExecutorBackend"))


def kill_descendants(folder, master, find, n, seed):
    """Run the query and kill n of the processes it has started, at most one in a micro-batch; how many were."""
    random = np.random.default_rng(seed)
    n_killed = 0
    while not (folder / "answers.parquet").exists():
        with Program(folder, master, "revise") as program:
            while n_killed < n and program.wait_for_batch(committed(folder) + 1):
                n_killed += kill_one(program, find, random)
            program.process.wait()
    return n_killed


def kill_one(program, find, random):
    """Kill one in the micro-batch at hand, then let it be done; whether there was one to kill."""
    batch, was_killed = committed(program.folder) + 1, False
    program.wait(float(random.uniform(0, 0.5)))
    while program.is_running and committed(program.folder) < batch:
        there = [] if was_killed else find(program)
        if there:
            with suppress(ProcessLookupError):  # it had ended by itself
                os.kill(int(random.choice(sorted(there))), signal.SIGKILL)
                was_killed = True
        program.wait(MOMENT)
    return was_killed


def test_python_workers_killed_in_their_tasks_lose_and_double_nothing(tmp_path):
    table = prepared(tmp_path, KILLS + 3)
    assert kill_descendants(tmp_path, "local[2,4]", workers, KILLS, seed=3) == KILLS
    assert verdict(tmp_path, table, "revise") == NONE


def test_executors_killed_in_their_tasks_lose_and_double_nothing(tmp_path):
    n = 1 if KILLS <= 5 else 30
    table = prepared(tmp_path, 3 + 2 * n)
    assert kill_descendants(tmp_path, "local-cluster[2,1,1024]", executors, n, seed=4) == n
    assert verdict(tmp_path, table, "revise") == NONE
