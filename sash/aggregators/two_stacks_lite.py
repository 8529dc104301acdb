"""Two-Stacks Lite: a queue made of two stacks, in one ring.

    oldest                                                  youngest
      | front: suffix aggregates     | back: lifted values      |
    OLDEST                          BACK                       END
                                     `----- BACK_TOTAL --------'

The front is a stack of ready answers: its first cell already aggregates the whole front. When it
runs out, one flip turns the back into a new front.

Invariants
    I1  OLDEST <= BACK <= END
    I2  slot i holds lifted[i] + ... + lifted[BACK - 1]     for OLDEST <= i < BACK
    I3  slot i holds lifted[i]                              for BACK <= i < END
    I4  BACK_TOTAL holds lifted[BACK] + ... + lifted[END - 1]   if BACK < END

Cost in calls of combine: insert 1; query 1; evict 0, or n - 1 when it flips, so at most 1 more for
each element over the life of the window. Space: n + 2 partials.

Paper: Tangwongsan, Hirzel, Schneider, "In-order sliding-window aggregation in worst-case constant
time", VLDB Journal 30 (2021), section 4.
Departure: the first element of the back is copied, not combined with an identity.
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
BACK_TOTAL, ANSWER, RING = 0, 1, 2

SHAPE = Shape(n_scratch=2, n_registers=N_COMMON + 1)


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    combine, lift, transfer = cells.combine, cells.lift, cells.transfer

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        at, end = s.at, s.at[END]
        slot = RING + (end & at[MASK])
        lift(s.pool, slot, columns, i)
        if at[BACK] == end:
            transfer(s.pool, BACK_TOTAL, s.pool, slot)
        else:
            combine(s.pool, BACK_TOTAL, BACK_TOTAL, slot)
        at[END] = end + 1

    @jit
    def flip(s: State) -> None:
        """Make the whole back the new front (restores I2)."""
        at, mask = s.at, s.at[MASK]
        after = RING + ((at[END] - 1) & mask)  # carried along: the compiler keeps its value in a register
        for i in range(at[END] - 2, at[OLDEST] - 1, -1):
            slot = RING + (i & mask)
            combine(s.pool, slot, slot, after)
            after = slot
        at[BACK] = at[END]

    @jit
    def evict(s: State) -> None:
        if s.at[OLDEST] == s.at[BACK]:
            flip(s)
        s.at[OLDEST] += 1

    @jit
    def query(s: State) -> int:
        at = s.at
        if at[OLDEST] == at[BACK]:
            return BACK_TOTAL
        oldest: int = RING + (at[OLDEST] & at[MASK])
        if at[BACK] == at[END]:
            return oldest
        combine(s.pool, ANSWER, oldest, BACK_TOTAL)
        return ANSWER

    return Fifo(insert, evict, query, ring_mover(cells, SHAPE, jit))


def check(view: View) -> None:
    """Check I1 to I4."""
    oldest, back, end, mask = view.at[OLDEST], view.at[BACK], view.at[END], view.at[MASK]
    view.require("I1", oldest <= back <= end)
    for i in range(oldest, back):
        view.require_cell("I2", RING + (i & mask), i, back)
    for i in range(back, end):
        view.require_cell("I3", RING + (i & mask), i, i + 1)
    if back < end:
        view.require_cell("I4", BACK_TOTAL, back, end)


ALGORITHM = Algorithm(
    Card(
        "two_stacks_lite",
        title="Two-Stacks Lite",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="3",
        worst="n + 1",
        space="n + 2",
        paper="Tangwongsan, Hirzel, Schneider, VLDB Journal 30 (2021)",
    ),
    SHAPE,
    build,
    check,
)
