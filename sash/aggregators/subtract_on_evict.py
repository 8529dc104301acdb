"""Subtract-on-evict: one running total; what leaves the window is taken away from it.

    oldest              youngest
      | lifted values      |
    OLDEST                END
      `------ TOTAL -------'

Invariants
    I1  slot i holds lifted[i]      for OLDEST <= i < END
    I2  TOTAL holds lifted[OLDEST] + ... + lifted[END - 1]      unless the window is empty

Cost in calls of combine: insert 1, or 0 into an empty window; evict one call of invert, or 0 if
nothing remains; query 0. Space: n + 1 partials.

Paper: Tangwongsan, Hirzel, Schneider, "Constant-time sliding window aggregation", IBM Research
Report (2015), figure 19.
Departures: the paper combines with the inverse of the evicted value at the right end, which is right
only if combine commutes; here `invert` takes the oldest part away from the left, so that groups that
do not commute are right too. An empty window forgets its total: the next insert copies its value.
"""

from __future__ import annotations

from sash.aggregators.contract import (
    END,
    INVERTIBLE,
    MASK,
    OLDEST,
    Algorithm,
    Card,
    Fifo,
    Jit,
    Shape,
    State,
    View,
    ring_mover,
)
from sash.compiling.cells import Cells

TOTAL, RING = 0, 1

SHAPE = Shape(n_scratch=1)


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    combine, lift, transfer, invert = cells.combine, cells.lift, cells.transfer, cells.invert

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        at, end = s.at, s.at[END]
        slot = RING + (end & at[MASK])
        lift(s.pool, slot, columns, i)
        if at[OLDEST] == end:
            transfer(s.pool, TOTAL, s.pool, slot)
        else:
            combine(s.pool, TOTAL, TOTAL, slot)
        at[END] = end + 1

    @jit
    def evict(s: State) -> None:
        at, oldest = s.at, s.at[OLDEST]
        if oldest + 1 < at[END]:
            invert(s.pool, TOTAL, TOTAL, RING + (oldest & at[MASK]))
        at[OLDEST] = oldest + 1

    @jit
    def query(s: State) -> int:
        return TOTAL

    return Fifo(insert, evict, query, ring_mover(cells, SHAPE, jit))


def check(view: View) -> None:
    """Check I1 and I2."""
    oldest, end, mask = view.at[OLDEST], view.at[END], view.at[MASK]
    for i in range(oldest, end):
        view.require_cell("I1", RING + (i & mask), i, i + 1)
    if oldest < end:
        view.require_cell("I2", TOTAL, oldest, end)


ALGORITHM = Algorithm(
    Card(
        "subtract_on_evict",
        title="Subtract-on-evict",
        order="in order",
        needs=INVERTIBLE,
        amortised="2",
        worst="2",
        space="n + 1",
        paper="Tangwongsan, Hirzel, Schneider, IBM Research Report (2015)",
    ),
    SHAPE,
    build,
    check,
)
