"""Two threads over one column: the driver of the parallel boundary scan."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from sash.aggregators.parallel_scan import ParallelScan, Part, build
from sash.aggregators.sba import chunk_by_count
from sash.algebra.monoid import Monoid
from sash.compiling.cells import Values
from sash.compiling.compiled_cells import values
from sash.compiling.jit import compiled, entry

SHORTEST = 4096  # rows of a window: below, waking a thread costs more than a chunk


@lru_cache(maxsize=64)
def _passes(monoid: Monoid) -> tuple[Values, ParallelScan]:
    ops = values(monoid)
    passes = build(ops, compiled)
    return ops, ParallelScan(*(entry(each) for each in passes))


def scan_in_parallel(monoid: Monoid, columns: Any, n: int, rows: int) -> Any:
    """Windows of the last `rows` rows, suffixes on a second thread."""
    ops, passes = _passes(monoid)
    chunk = min(chunk_by_count(rows, 1), n)
    rooms = tuple(ops.allocate(chunk) for _ in range(3))
    totals, results = ops.allocate(2), ops.results(n)
    under_way: Future[None] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="sash-pba") as second:
        for number, begin in enumerate(range(0, n, chunk)):
            end = min(begin + chunk, n)
            # From row `later` on windows start in the chunk before; those that start with row 0 always did.
            later = min(max(begin, begin - chunk + rows - 1), end) if begin > chunk else begin
            if later > begin:
                passes.answers(columns, Part(rows, chunk, begin, later), rooms, totals, results)
            if under_way is not None:
                under_way.result()
            if later < end:
                passes.answers(columns, Part(rows, chunk, later, end), rooms, totals, results)
            under_way = second.submit(passes.suffixes, columns, begin, end, rooms[number % 3])
    return results
