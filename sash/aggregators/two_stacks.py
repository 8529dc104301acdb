"""Two-Stacks: a queue made of two stacks, each of which carries its own running aggregate.

    oldest on top                                                youngest on top
      | s_F[0]  s_F[1]  ...  top ->  |   free   |  <- top  ...  s_B[1]  s_B[0] |
    slot 0             BACK - OLDEST entries      END - BACK entries        slot MASK

An entry is a value and the aggregate of everything from the bottom of its stack up to it. insert
pushes on the back stack, evict pops from the front stack; when the front stack is empty, one flip
pops the whole back stack onto it. The stacks share one array and grow towards each other from its
ends, so that together they have room for as many entries as there are slots.

Invariants
    I1  OLDEST <= BACK <= END
    I2  s_F[k].value     == lifted[BACK - 1 - k]                            for k < BACK - OLDEST
    I3  s_B[k].value     == lifted[BACK + k]                                for k < END - BACK
    I4  s_F[k].aggregate == lifted[BACK - 1 - k] + ... + lifted[BACK - 1]   for k < BACK - OLDEST
    I5  s_B[k].aggregate == lifted[BACK] + ... + lifted[BACK + k]           for k < END - BACK

Cost in calls of combine: insert 1; query 1; evict 0, or n - 1 when it flips, so at most 1 more for
each element over the life of the window. Space: 2n + 1 partials.

Paper: Tangwongsan, Hirzel, Schneider, "Constant-time sliding window aggregation", IBM Research
Report (2015), section 4, figures 3 to 5.
Departures: where a stack is empty the paper combines with the identity; here nothing is combined.
Slots are counted from the bottoms of the stacks, not by the number of the element.
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
)
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells

BACK = N_COMMON
ANSWER, ARRAY = 0, 1
SLOT, VALUE, AGGREGATE = 2, 0, 1  # cells of a slot, and which is which

SHAPE = Shape(n_scratch=1, cells_per_slot=SLOT, n_registers=N_COMMON + 1)


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    combine, lift, transfer = cells.combine, cells.lift, cells.transfer

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        at, n_back = s.at, s.at[END] - s.at[BACK]
        top = ARRAY + SLOT * (at[MASK] - n_back)
        lift(s.pool, top + VALUE, columns, i)
        if n_back == 0:
            transfer(s.pool, top + AGGREGATE, s.pool, top + VALUE)
        else:
            combine(s.pool, top + AGGREGATE, top + SLOT + AGGREGATE, top + VALUE)
        at[END] += 1

    @jit
    def flip(s: State) -> None:
        """Pop every entry of the back stack onto the front stack (restores I2 and I4)."""
        n_back = s.at[END] - s.at[BACK]
        popped = ARRAY + SLOT * (s.at[MASK] + 1 - n_back)
        transfer(s.pool, ARRAY + VALUE, s.pool, popped + VALUE)
        transfer(s.pool, ARRAY + AGGREGATE, s.pool, ARRAY + VALUE)
        for k in range(1, n_back):
            top = ARRAY + SLOT * k
            transfer(s.pool, top + VALUE, s.pool, popped + SLOT * k + VALUE)
            combine(s.pool, top + AGGREGATE, top + VALUE, top - SLOT + AGGREGATE)
        s.at[BACK] = s.at[END]

    @jit
    def evict(s: State) -> None:
        if s.at[OLDEST] == s.at[BACK]:
            flip(s)
        s.at[OLDEST] += 1

    @jit
    def query(s: State) -> int:
        at = s.at
        front: int = ARRAY + SLOT * (at[BACK] - at[OLDEST] - 1) + AGGREGATE
        back: int = ARRAY + SLOT * (at[MASK] + 1 - at[END] + at[BACK]) + AGGREGATE
        if at[OLDEST] == at[BACK]:
            return back
        if at[BACK] == at[END]:
            return front
        combine(s.pool, ANSWER, front, back)
        return ANSWER

    return Fifo(insert, evict, query, _mover(cells, jit))


def _mover(cells: Cells, jit: Jit) -> Function:
    transfer = cells.transfer

    def move(old: State, new: State) -> None:
        """Copy each stack to its end of an array of another size."""
        further = SLOT * (new.at[MASK] - old.at[MASK])
        n_front, n_back = old.at[BACK] - old.at[OLDEST], old.at[END] - old.at[BACK]
        for cell in range(ARRAY + SLOT * n_front):
            transfer(new.pool, cell, old.pool, cell)
        bottom = ARRAY + SLOT * (old.at[MASK] + 1)
        for cell in range(bottom - SLOT * n_back, bottom):
            transfer(new.pool, cell + further, old.pool, cell)
        new.at[OLDEST], new.at[BACK], new.at[END] = old.at[OLDEST], old.at[BACK], old.at[END]

    return jit(move)


def check(view: View) -> None:
    """Check I1 to I5."""
    oldest, back, end, mask = view.at[OLDEST], view.at[BACK], view.at[END], view.at[MASK]
    view.require("I1", oldest <= back <= end)
    for i in range(oldest, back):
        entry = ARRAY + SLOT * (back - 1 - i)
        view.require_cell("I2", entry + VALUE, i, i + 1)
        view.require_cell("I4", entry + AGGREGATE, i, back)
    for i in range(back, end):
        entry = ARRAY + SLOT * (mask - (i - back))
        view.require_cell("I3", entry + VALUE, i, i + 1)
        view.require_cell("I5", entry + AGGREGATE, back, i + 1)


ALGORITHM = Algorithm(
    Card(
        "two_stacks",
        title="Two-Stacks",
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
