"""Parallel boundary scan: PBA over whole columns, suffixes by one thread and answers by another.

    second thread   | suffixes of chunk i - 1          | suffixes of chunk i        |
    this thread     | prefix of chunk i - 1, answers   | prefix of chunk i, answers |

Chunks have the length b of theorem 1, about half a window, so the window of a row in chunk i starts
in chunk i - 2 or i - 1, and never in a chunk whose suffixes are still being computed where it starts:
those of chunk i - 1 are needed from the second half of chunk i on. This thread therefore answers a
chunk in two parts, and waits between them.

Cost in calls of combine: 3 for each row on this thread, 1 on the other. Space: 3 b partials.

Paper: Zhang, Akbarinia, Toumani, "Efficient incremental computation of aggregations over sliding
windows", KDD (2021), section 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.contract import Jit
from sash.algebra.monoid import Function
from sash.compiling.cells import Values

CHUNKS = 3  # whose suffixes are kept: two that windows start in, and one being made


class ParallelScan(NamedTuple):
    """The two passes over a chunk; each releases the interpreter's lock."""

    suffixes: Function  # (columns, first, end, ring, place): suffixes of the rows first to end - 1, from a place on
    answers: Function  # (columns, part, ring, totals, results)


class Part(NamedTuple):
    """Some rows of a chunk: what was combined before them is in the totals."""

    rows: int  # of a window
    chunk: int  # rows of a chunk
    first: int  # row of this part
    end: int


def build(ops: Values, jit: Jit) -> ParallelScan:
    """Make the passes. `ring` has room for the suffixes of CHUNKS chunks, one after the other."""
    load, store, lift, combine, lower = ops.load, ops.store, ops.lift, ops.combine, ops.lower

    def suffixes(columns: Any, first: int, end: int, ring: Any, place: int) -> None:
        older = lift(columns, end - 1)
        store(ring, place + end - 1 - first, older)
        for i in range(end - 2, first - 1, -1):
            older = combine(lift(columns, i), older, 1, end - 1 - i)
            store(ring, place + i - first, older)

    def answers(columns: Any, part: Part, ring: Any, totals: Any, results: Any) -> None:
        """`totals` holds the aggregates of the chunk before (0) and of the rows of this one so far (1)."""
        chunk, begin = part.chunk, part.first // part.chunk * part.chunk
        start = max(0, part.first + 1 - part.rows)
        place = start % (CHUNKS * chunk)  # of the suffix from `start` on; divided once, and then counted
        prefix = lift(columns, part.first)
        if part.first > begin:
            prefix = combine(load(totals, 1), prefix, part.first - begin, 1)
        for i in range(part.first, part.end):
            if i > part.first:
                prefix = combine(prefix, lift(columns, i), i - begin, 1)
            if start + part.rows <= i:
                start, place = start + 1, place + 1 if place + 1 < CHUNKS * chunk else 0
            window, n = prefix, i + 1 - begin
            if start < begin - chunk:
                window, n = combine(load(totals, 0), window, chunk, n), n + chunk
            if start < begin:
                window = combine(load(ring, place), window, i + 1 - start - n, n)
            lower(results, i, window, i + 1 - start)
        store(totals, 1, prefix)
        if part.end == begin + chunk:
            store(totals, 0, prefix)

    return ParallelScan(suffixes, answers)
