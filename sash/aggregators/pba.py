"""Parallel Boundary Aggregator: SBA whose suffixes are computed by a second thread.

    this thread     | prefix of chunk i - 1 | prefix of chunk i, answers from the suffixes of i - 2, i - 1 | ...
    second thread                           | suffixes of chunk i - 1      |

A window never needs prefix and suffix of the same chunk, so the two are independent. With the chunk
length of theorem 1 or 2 the suffixes of a chunk are ready before a window starts inside it; whoever
comes too early waits. The compiled pass over a chunk releases the interpreter's lock, so the second
thread really runs beside the first; interpreted, it takes turns.

Invariants: those of SBA, where I1 holds for a chunk once its suffixes are done. Its first slot, the
total of the chunk, is written by the thread of the caller; nobody reads the others before.

Cost in calls of combine, on the thread of the caller: insert 1, answer 1 or 2, so never more than 3;
on the second thread b - 2 for each chunk of b slices. Space: as SBA.

Paper: Zhang, Akbarinia, Toumani, "Efficient incremental computation of aggregations over sliding
windows", KDD (2021), sections 4.2 to 4.4.
Departures: none; the waiting that the theorems rule out on an idle machine is allowed, and counted.
"""

from __future__ import annotations

from dataclasses import replace

from sash.aggregators import sba
from sash.aggregators.contract import Algorithm

ALGORITHM = Algorithm(
    replace(sba.ALGORITHM.card, name="pba", title="Parallel Boundary Aggregator", amortised="< 3", worst="3"),
    sba.SHAPE,
    sba.build,  # type: ignore[arg-type]
    sba.check,
)
