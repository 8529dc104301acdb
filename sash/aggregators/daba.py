"""DABA, the De-Amortised Banker's Aggregator: constant work for every insert, evict and query.

    oldest                                                                     youngest
      | ready     | left      | right      | accumulator | back                   |
      | to BACK   | to RIGHT  | from RIGHT | to BACK     | from BACK              |
    OLDEST      LEFT        RIGHT     ACCUMULATOR       BACK                     END
                              `-- RIGHT_TO_BACK --------'

Every slot holds a value and an aggregate: "to" says of the value and all younger ones before that
pointer, "from" of the value and all older ones since it. ABA writes all aggregates anew when the
front runs out; DABA begins when front and back are equally long, and writes one of the left and
one of the right part with every insert and evict, so that it is done just when it must begin again.

Invariants (the paper's F, L, R, A, B and E, in this order)
    I1  OLDEST <= LEFT <= RIGHT <= ACCUMULATOR <= BACK <= END
    I2  value i     == lifted[i]                             for OLDEST <= i < END
    I3  aggregate i == lifted[i] + ... + lifted[BACK - 1]    for OLDEST <= i < LEFT
    I4  aggregate i == lifted[i] + ... + lifted[RIGHT - 1]   for LEFT <= i < RIGHT
    I5  aggregate i == lifted[RIGHT] + ... + lifted[i]       for RIGHT <= i < ACCUMULATOR
    I6  aggregate i == lifted[i] + ... + lifted[BACK - 1]    for ACCUMULATOR <= i < BACK
    I7  aggregate i == lifted[BACK] + ... + lifted[i]        for BACK <= i < END
    I8  |left| == |right|
    I9  the window is empty, or |left| + |right| + |accumulator| + 1 == |front| - |back|,
        where the front is everything before BACK: it is never empty unless the window is
    I10 RIGHT_TO_BACK == lifted[RIGHT] + ... + lifted[BACK - 1]   if LEFT < RIGHT and SUMMED == BACK
    I11 ANSWER == lifted[OLDEST] + ... + lifted[END - 1]          if ANSWERED

Cost in calls of combine: insert at most 3, evict at most 2, query at most 1; on average 2, 1 and 1;
a query repeated 0. With cached=False: at most 4, 3 and 1. Space: 2n + 2 partials.

Paper: Tangwongsan, Hirzel, Schneider, "Constant-time sliding window aggregation", IBM Research
Report (2015), section 6: figure 14, and with the default cached=True figure 17.
Departures: a ring that is replaced by one of another size stands for the paper's chunked queue.
Where a part is empty the paper combines with the identity; here nothing is combined.
Erratum: line 17 of figure 16 says that one element is in the back; there is none when the last
element has been evicted, and the line below it holds all the same.
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

LEFT, RIGHT, ACCUMULATOR, BACK, SUMMED, ANSWERED = range(N_COMMON, N_COMMON + 6)
RIGHT_TO_BACK, ANSWER, RING = 0, 1, 2
SLOT, VALUE, AGGREGATE = 2, 0, 1  # cells of a slot, and which is which

SHAPE = Shape(n_scratch=2, cells_per_slot=SLOT, n_registers=N_COMMON + 6)


def build(cells: Cells, jit: Jit, *, cached: bool = True) -> Fifo:
    """Make the operations for one kind of cell; `cached` keeps the sum a flip needs, and the answer."""
    combine, lift, transfer = cells.combine, cells.lift, cells.transfer
    fixup = _fixer(cells, jit, cached)

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
        at[ANSWERED] = 0
        fixup(s, at[OLDEST], end + 1)

    @jit
    def evict(s: State) -> None:
        at, oldest = s.at, s.at[OLDEST] + 1
        at[OLDEST] = oldest
        at[ANSWERED] = 0
        fixup(s, oldest, at[END])

    @jit
    def query(s: State) -> int:
        at, mask = s.at, s.at[MASK]
        oldest: int = RING + SLOT * (at[OLDEST] & mask) + AGGREGATE
        if at[BACK] == at[END]:
            return oldest
        if not at[ANSWERED]:
            youngest = RING + SLOT * ((at[END] - 1) & mask) + AGGREGATE
            combine(s.pool, ANSWER, oldest, youngest)
            if cached:
                at[ANSWERED] = 1
        return ANSWER

    return Fifo(insert, evict, query, ring_mover(cells, SHAPE, jit))


def _fixer(cells: Cells, jit: Jit, cached: bool) -> Function:
    transfer, shrink = cells.transfer, _shrinker(cells, jit, cached)

    @jit
    def flip(s: State, end: int) -> None:
        """Make front and back the new left and right; RIGHT is already where BACK was."""
        if cached:
            youngest = RING + SLOT * ((end - 1) & s.at[MASK])
            transfer(s.pool, RIGHT_TO_BACK, s.pool, youngest + AGGREGATE)
            s.at[SUMMED] = end
        s.at[BACK] = end

    def fixup(s: State, oldest: int, end: int) -> None:
        """Take one step of the reversal (restores I8 and I9)."""
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

    return jit(fixup)


def _shrinker(cells: Cells, jit: Jit, cached: bool) -> Function:
    combine, transfer = cells.combine, cells.transfer

    def shrink(s: State, left: int, accumulator: int, back: int) -> None:
        """Move the first of left to the ready part and the last of right to the accumulator."""
        at, mask = s.at, s.at[MASK]
        first = RING + SLOT * (left & mask)
        last = RING + SLOT * ((accumulator - 1) & mask)
        after = RING + SLOT * (accumulator & mask)
        if cached:
            combine(s.pool, first + AGGREGATE, first + AGGREGATE, RIGHT_TO_BACK)
        else:
            combine(s.pool, first + AGGREGATE, first + AGGREGATE, last + AGGREGATE)
            if accumulator != back:
                combine(s.pool, first + AGGREGATE, first + AGGREGATE, after + AGGREGATE)
        if accumulator == back:
            transfer(s.pool, last + AGGREGATE, s.pool, last + VALUE)
        else:
            combine(s.pool, last + AGGREGATE, last + VALUE, after + AGGREGATE)
        at[LEFT] = left + 1
        at[ACCUMULATOR] = accumulator - 1

    return jit(shrink)


def check(view: View) -> None:
    """Check I1 to I11."""
    oldest, left, right, accumulator, back, end = (
        int(view.at[register]) for register in (OLDEST, LEFT, RIGHT, ACCUMULATOR, BACK, END)
    )
    view.require("I1", oldest <= left <= right <= accumulator <= back <= end)
    _check_slots(view)
    n_left, n_right, n_accumulator = right - left, accumulator - right, back - accumulator
    n_front, n_back = back - oldest, end - back
    view.require("I8", n_left == n_right)
    view.require("I9", oldest == end or n_left + n_right + n_accumulator + 1 == n_front - n_back)
    if left < right and view.at[SUMMED] == back:
        view.require_cell("I10", RIGHT_TO_BACK, right, back)
    if view.at[ANSWERED]:
        view.require_cell("I11", ANSWER, oldest, end)


def _check_slots(view: View) -> None:
    parts = (  # from register to register, each aggregate is since one register or until another
        ("I3", OLDEST, LEFT, None, BACK),
        ("I4", LEFT, RIGHT, None, RIGHT),
        ("I5", RIGHT, ACCUMULATOR, RIGHT, None),
        ("I6", ACCUMULATOR, BACK, None, BACK),
        ("I7", BACK, END, BACK, None),
    )
    for invariant, start, stop, since, until in parts:
        for i in range(view.at[start], view.at[stop]):
            slot = RING + SLOT * (i & view.at[MASK])
            first = i if since is None else view.at[since]
            end = i + 1 if until is None else view.at[until]
            view.require_cell("I2", slot + VALUE, i, i + 1)
            view.require_cell(invariant, slot + AGGREGATE, first, end)


ALGORITHM = Algorithm(
    Card(
        "daba",
        title="DABA, the De-Amortised Banker's Aggregator",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="4",
        worst="6",
        space="2n + 2",
        paper="Tangwongsan, Hirzel, Schneider, IBM Research Report (2015)",
    ),
    SHAPE,
    build,
    check,
)
