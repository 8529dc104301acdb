"""Work in a process of its own: to see what memory it takes, what it does where memory is limited, or for so long."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def in_child(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call work(tell, *arguments) in a new process; the last thing it told, None if it ended before it told any."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(sender.send, *arguments), daemon=True)  # ends with this one
    process.start()
    sender.close()  # so that the pipe ends with the child, however that ends
    told = None
    try:
        while True:
            told = receiver.recv()
    except EOFError:
        process.join()
    return told


def run_within(command: Sequence[str], limit_s: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program; TimeoutExpired if its time is over, with what it had printed.

    Spark and Flink start Java, which would live on and hold the pipe open, so all that it started ends with it.
    """
    with subprocess.Popen(command, start_new_session=True, text=True, **options) as process:
        try:
            printed, _ = process.communicate(timeout=limit_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                error.output = process.communicate()[0]
            raise
    return subprocess.CompletedProcess(command, process.returncode, printed)


def peak_mb() -> int:
    """The most this process has had in memory; Linux lets a new process inherit what getrusage says of its parent."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20  # macOS counts bytes
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) >> 10


def limit_data(mb: int) -> None:
    """Let this process have so many megabytes more than it has now; asking for more is a MemoryError.

    Files that are mapped, such as those of LMDB, do not count.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    now_kb = int(next(line.split()[1] for line in lines if line.startswith("VmData")))
    resource.setrlimit(resource.RLIMIT_DATA, ((now_kb + 1024 * mb) * 1024, resource.RLIM_INFINITY))
