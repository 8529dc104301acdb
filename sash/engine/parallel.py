"""Threads over one column: rows shared out, or PBA's second thread for suffixes.

Compiled kernels release the interpreter's lock, so threads really run side by side, if the system has them on different
processors: see `_keep_elsewhere`.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

from sash.aggregators.parallel_scan import CHUNKS, ParallelScan, Part, build
from sash.aggregators.sba import chunk_by_count
from sash.algebra.monoid import Monoid
from sash.compiling.cells import Values
from sash.compiling.compiled_cells import values
from sash.compiling.jit import compiled, entry

SHORTEST = 4096  # rows of a window for PBA: below, waking a thread costs more than a chunk
WORTHWHILE = 1 << 19  # rows for each thread: below, waking it costs more than it saves
LEAD = 0.7  # of a window, that the first part is longer: its first windows cost less, and none is read before it


def n_threads() -> int:
    """How many threads a scan may use: SASH_THREADS, or one for each processor this process has."""
    chosen = os.environ.get("SASH_THREADS")
    if chosen:
        return max(1, int(chosen))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parts(n: int, rows: int) -> list[tuple[int, int]]:
    """Cut n rows into ranges for threads; all but the first have a whole window before them."""
    count = min(n_threads(), n // WORTHWHILE)
    if count < 2 or 3 * rows > 2 * (n // count):  # the window before a part is read once more, for its totals
        return [(0, n)]
    length = int(n - LEAD * rows) // count  # of all but the first
    edges = [0, *(n - length * k for k in reversed(range(count)))]
    return list(itertools.pairwise(edges))


def each_part(ranges: list[tuple[int, int]], work: Callable[[int, int], None]) -> None:
    """Do the work for every range, side by side."""
    first, *others = ranges
    if not others:
        work(*first)
        return
    threads, numbers = _threads(os.getpid(), len(others))
    _keep_elsewhere(numbers)
    under_way = [threads.submit(work, *each) for each in others]
    try:
        work(*first)
    finally:
        wait(under_way)  # they write where the caller reads, or what it is about to forget
    for each in under_way:
        each.result()


@lru_cache(maxsize=4)
def _threads(process: int, count: int) -> tuple[ThreadPoolExecutor, list[int]]:
    """Threads that wait for work as long as the process lives: making one takes five times as long as waking it.

    A process that was forked has none of those of its parent, so it gets its own. With the system's numbers of those
    that have been made.
    """
    numbers: list[int] = []

    def note() -> None:
        numbers.append(threading.get_native_id())

    return ThreadPoolExecutor(count, thread_name_prefix="sash-scan", initializer=note), numbers


def _keep_elsewhere(threads: Iterable[int]) -> None:
    """Keep threads that sleep off the processor of this one.

    Linux has been seen, on virtual machines, to wake a thread on the processor of the one that wakes it though another
    had nothing to do, and to take milliseconds to move it there: as long as the whole work. Where that is not allowed,
    they run wherever they do.
    """
    here = _processor()
    with contextlib.suppress(OSError):
        others = set() if here is None else os.sched_getaffinity(0) - {here}
        for each in threads if others else ():
            os.sched_setaffinity(each, others)


def _processor() -> int | None:
    """The processor that runs this thread; None where that cannot be known, or threads not be kept off it."""
    asked = getattr(_c_library(), "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None
    return None if asked is None else int(asked())


@lru_cache(maxsize=1)
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@lru_cache(maxsize=64)
def _passes(monoid: Monoid) -> tuple[Values, ParallelScan]:
    ops = values(monoid)
    passes = build(ops, compiled)
    return ops, ParallelScan(*(entry(each) for each in passes))


def scan_in_parallel(monoid: Monoid, columns: Any, n: int, rows: int) -> Any:
    """Windows of the last `rows` rows, suffixes on a second thread."""
    ops, passes = _passes(monoid)
    chunk = min(chunk_by_count(rows, 1), n)
    ring = ops.allocate(CHUNKS * chunk)
    totals, results = ops.allocate(2), ops.results(n)
    under_way: Future[None] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="sash-pba") as second:
        for number, begin in enumerate(range(0, n, chunk)):
            end = min(begin + chunk, n)
            # From row `later` on windows start in the chunk before; those that start with row 0 always did.
            later = min(max(begin, begin - chunk + rows - 1), end) if begin > chunk else begin
            if later > begin:
                passes.answers(columns, Part(rows, chunk, begin, later), ring, totals, results)
            if under_way is not None:
                under_way.result()
            if later < end:
                passes.answers(columns, Part(rows, chunk, later, end), ring, totals, results)
            under_way = second.submit(passes.suffixes, columns, begin, end, ring, number % CHUNKS * chunk)
    return results
