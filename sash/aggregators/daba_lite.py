"""DABA Lite: constant work for every insert and evict, with one partial an element.

    oldest                                                                     youngest
      | ready     | left      | right     | accumulator | back                    |
      | to BACK   | to RIGHT  | values    | to BACK     | values                  |
    OLDEST      LEFT        RIGHT    ACCUMULATOR       BACK                      END
                              `------- MIDDLE ---------' `----- BACK_TOTAL -----'

"to BACK" says that a slot aggregates its element and all younger ones before BACK. Two-Stacks Lite
flips the whole back at once; here each insert and evict turns one slot of the left part and one of
the right part, and the turning is done just when the next one must begin.

Invariants
    I1  OLDEST <= LEFT <= RIGHT <= ACCUMULATOR <= BACK <= END
    I2  slot i == lifted[i] + ... + lifted[BACK - 1]    for OLDEST <= i < LEFT
    I3  slot i == lifted[i] + ... + lifted[RIGHT - 1]   for LEFT <= i < RIGHT
    I4  slot i == lifted[i]                             for RIGHT <= i < ACCUMULATOR
    I5  slot i == lifted[i] + ... + lifted[BACK - 1]    for ACCUMULATOR <= i < BACK
    I6  slot i == lifted[i]                             for BACK <= i < END
    I7  MIDDLE == lifted[RIGHT] + ... + lifted[BACK - 1]      if LEFT < RIGHT
    I8  BACK_TOTAL == lifted[BACK] + ... + lifted[END - 1]    if BACK < END
    I9  |left| == |right|
    I10 the window is empty, or |left| + |right| + |accumulator| + 1 == |front| - |back|,
        where the front is everything before BACK: it is never empty unless the window is

Cost in calls of combine: insert at most 3, evict at most 2, query at most 1; on average 2, 1 and 1.
Space: n + 3 partials.

Paper: Tangwongsan, Hirzel, Schneider, "In-order sliding-window aggregation in worst-case constant
time", VLDB Journal 30 (2021), section on DABA Lite.
Departures: the totals of empty parts are never read, so they are never reset to the identity, and
MIDDLE is not kept up once left and right are used up. A single element goes straight to the ready
part, without a flip.
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
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells

LEFT, RIGHT, ACCUMULATOR, BACK = range(N_COMMON, N_COMMON + 4)
MIDDLE, BACK_TOTAL, ANSWER, RING = 0, 1, 2, 3

SHAPE = Shape(n_scratch=3, n_registers=N_COMMON + 4)


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    combine, lift, transfer = cells.combine, cells.lift, cells.transfer
    step = _stepper(cells, jit)

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
        step(s, at[OLDEST], end + 1)

    @jit
    def evict(s: State) -> None:
        at, oldest = s.at, s.at[OLDEST] + 1
        at[OLDEST] = oldest
        step(s, oldest, at[END])

    @jit
    def query(s: State) -> int:
        at = s.at
        oldest: int = RING + (at[OLDEST] & at[MASK])
        if at[BACK] == at[END]:
            return oldest
        combine(s.pool, ANSWER, oldest, BACK_TOTAL)
        return ANSWER

    return Fifo(insert, evict, query, ring_mover(cells, SHAPE, jit))


def _stepper(cells: Cells, jit: Jit) -> Function:
    combine, transfer = cells.combine, cells.transfer

    @jit
    def shrink(s: State, left: int, accumulator: int, back: int) -> None:
        """Move the first of left to the ready part and the last of right to the accumulator."""
        at, mask = s.at, s.at[MASK]
        first, last = RING + (left & mask), RING + ((accumulator - 1) & mask)
        combine(s.pool, first, first, MIDDLE)
        if accumulator != back:
            combine(s.pool, last, last, RING + (accumulator & mask))
        at[LEFT] = left + 1
        at[ACCUMULATOR] = accumulator - 1

    @jit
    def flip(s: State, end: int) -> None:
        """Make front and back the new left and right (restores I7); RIGHT is already where BACK was."""
        transfer(s.pool, MIDDLE, s.pool, BACK_TOTAL)
        s.at[BACK] = end

    def step(s: State, oldest: int, end: int) -> None:
        """Take one step of the reversal (restores I9 and I10)."""
        at, left, back = s.at, s.at[LEFT], s.at[BACK]
        if oldest == back:
            at[LEFT] = at[RIGHT] = at[ACCUMULATOR] = at[BACK] = end
        elif left == back:
            flip(s, end)
            shrink(s, oldest, end, end)
        elif left == at[RIGHT]:
            at[LEFT] = at[RIGHT] = at[ACCUMULATOR] = left + 1
        else:
            shrink(s, left, at[ACCUMULATOR], back)

    return jit(step)


def check(view: View) -> None:
    """Check I1 to I10."""
    oldest, left, right, accumulator, back, end = (
        int(view.at[register]) for register in (OLDEST, LEFT, RIGHT, ACCUMULATOR, BACK, END)
    )
    view.require("I1", oldest <= left <= right <= accumulator <= back <= end)
    _check_slots(view)
    if left < right:
        view.require_cell("I7", MIDDLE, right, back)
    if back < end:
        view.require_cell("I8", BACK_TOTAL, back, end)
    n_left, n_right, n_accumulator = right - left, accumulator - right, back - accumulator
    n_front, n_back = back - oldest, end - back
    view.require("I9", n_left == n_right)
    view.require("I10", oldest == end or n_left + n_right + n_accumulator + 1 == n_front - n_back)


def _check_slots(view: View) -> None:
    parts = (
        ("I2", OLDEST, LEFT, BACK),
        ("I3", LEFT, RIGHT, RIGHT),
        ("I4", RIGHT, ACCUMULATOR, None),
        ("I5", ACCUMULATOR, BACK, BACK),
        ("I6", BACK, END, None),
    )
    for invariant, start, stop, until in parts:
        for i in range(view.at[start], view.at[stop]):
            end = i + 1 if until is None else view.at[until]
            view.require_cell(invariant, RING + (i & view.at[MASK]), i, end)


ALGORITHM = Algorithm(
    Card(
        "daba_lite",
        title="DABA Lite",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="4",
        worst="6",
        space="n + 3",
        paper="Tangwongsan, Hirzel, Schneider, VLDB Journal 30 (2021)",
    ),
    SHAPE,
    build,
    check,
)
