"""ABA, the Amortised Banker's Aggregator: two stacks laid into one queue, bottom to bottom.

    oldest                                                  youngest
      | front: suffix aggregates     | back: prefix aggregates  |
    OLDEST                          BACK                       END

Every slot holds a value and an aggregate: in the front, of the value and all younger ones in the
front; in the back, of the value and all older ones in the back. When the front runs out, one flip
writes the aggregates anew in place, without moving a value.

Invariants (the paper's F, B and E are OLDEST, BACK and END)
    I1  OLDEST <= BACK <= END
    I2  value i     == lifted[i]                             for OLDEST <= i < END
    I3  aggregate i == lifted[i] + ... + lifted[BACK - 1]    for OLDEST <= i < BACK
    I4  aggregate i == lifted[BACK] + ... + lifted[i]        for BACK <= i < END

Cost in calls of combine: insert 1; query 1; evict 0, or n - 1 when it flips, so at most 1 more for
each element over the life of the window. Space: 2n + 1 partials.

Paper: Tangwongsan, Hirzel, Schneider, "Constant-time sliding window aggregation", IBM Research
Report (2015), section 5, figures 6 to 9.
Departures: a ring that is replaced by one of another size stands for the paper's chunked queue.
Where a sublist is empty the paper combines with the identity; here nothing is combined.
"""

from __future__ import annotations

from sash.aggregators.contract import (
    ASSOCIATIVE,
    END,
    MASK,
    N_COMMON,
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

BACK = N_COMMON
ANSWER, RING = 0, 1
SLOT, VALUE, AGGREGATE = 2, 0, 1  # cells of a slot, and which is which

SHAPE = Shape(n_scratch=1, cells_per_slot=SLOT, n_registers=N_COMMON + 1)


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    combine, lift, transfer = cells.combine, cells.lift, cells.transfer

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        at, end, mask = s.at, s.at[END], s.at[MASK]
        slot, before = RING + SLOT * (end & mask), RING + SLOT * ((end - 1) & mask)
        lift(s.pool, slot + VALUE, columns, i)
        if at[BACK] == end:
            transfer(s.pool, slot + AGGREGATE, s.pool, slot + VALUE)
        else:
            combine(s.pool, slot + AGGREGATE, before + AGGREGATE, slot + VALUE)
        at[END] = end + 1

    @jit
    def flip(s: State) -> None:
        """Make the whole back the new front (restores I3)."""
        oldest, end, mask = s.at[OLDEST], s.at[END], s.at[MASK]
        youngest = RING + SLOT * ((end - 1) & mask)
        transfer(s.pool, youngest + AGGREGATE, s.pool, youngest + VALUE)
        after = youngest + AGGREGATE  # carried along: the compiler keeps its value in a register
        for i in range(end - 2, oldest - 1, -1):
            slot = RING + SLOT * (i & mask)
            combine(s.pool, slot + AGGREGATE, slot + VALUE, after)
            after = slot + AGGREGATE
        s.at[BACK] = end

    @jit
    def evict(s: State) -> None:
        if s.at[OLDEST] == s.at[BACK]:
            flip(s)
        s.at[OLDEST] += 1

    @jit
    def query(s: State) -> int:
        at, mask = s.at, s.at[MASK]
        oldest: int = RING + SLOT * (at[OLDEST] & mask) + AGGREGATE
        youngest: int = RING + SLOT * ((at[END] - 1) & mask) + AGGREGATE
        if at[OLDEST] == at[BACK]:
            return youngest
        if at[BACK] == at[END]:
            return oldest
        combine(s.pool, ANSWER, oldest, youngest)
        return ANSWER

    return Fifo(insert, evict, query, ring_mover(cells, SHAPE, jit))


def check(view: View) -> None:
    """Check I1 to I4."""
    oldest, back, end, mask = view.at[OLDEST], view.at[BACK], view.at[END], view.at[MASK]
    view.require("I1", oldest <= back <= end)
    for i in range(oldest, end):
        view.require_cell("I2", RING + SLOT * (i & mask) + VALUE, i, i + 1)
    for i in range(oldest, back):
        view.require_cell("I3", RING + SLOT * (i & mask) + AGGREGATE, i, back)
    for i in range(back, end):
        view.require_cell("I4", RING + SLOT * (i & mask) + AGGREGATE, back, i + 1)


ALGORITHM = Algorithm(
    Card(
        "aba",
        title="ABA, the Amortised Banker's Aggregator",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="3",
        worst="n + 1",
        space="2n + 1",
        paper="Tangwongsan, Hirzel, Schneider, IBM Research Report (2015)",
    ),
    SHAPE,
    build,
    check,
)
