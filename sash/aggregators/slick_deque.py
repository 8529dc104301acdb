"""SlickDeque: only elements that can still be an answer are kept; the oldest of them is it now.

    the window   OLDEST  3   1   4   1   5   9   2   6   END      (max)
    the deque                            9       6                entries FIRST <= d < LAST
                                   link: 5       7                where in the window they stand
                                         FIRST    `-- LAST - 1

Of a selection x + y, which is x or y, the younger one makes the older one useless if it is chosen:
it stays longer. A new value therefore removes from the young end what it beats, and takes its place.
Entries are a ring of their own, entry d in slot d & MASK, because there are far fewer of them than
elements: a random window of n keeps about ln n of them.

For an aggregate with an inverse and no such choice there is another form, one running answer to
which the new value is added and from which the expired one is taken: that of subtract_on_evict.

Invariants, selective form, writing at[d] for the link of entry d
    I1  0 <= LAST - FIRST <= END - OLDEST, and the deque is empty only if the window is
    I2  OLDEST <= at[FIRST] < ... < at[LAST - 1] == END - 1
    I3  entry d holds lifted[at[d]]
    I4  entry d holds lifted[i] + ... + lifted[END - 1]     for at[d - 1] < i <= at[d], OLDEST <= i
Invariants, invertible form
    I5  FIRST == LAST == 0, and slot i holds lifted[i]      for OLDEST <= i < END
    I6  ANSWER holds lifted[OLDEST] + ... + lifted[END - 1]     unless the window is empty

Cost in calls of combine: selective form, insert 1 for each element it removes and 1 more, so less
than 2 over the life of the window, at worst n; evict and query 0. Invertible form: insert 1, evict
one call of invert, query 0. Space: at most n + 1 partials and n links.

Paper: Shein, Chrysanthis, Labrinidis, "SlickDeque: High throughput and low latency incremental
sliding-window aggregation", EDBT (2018).
Departures: the paper slides a window of fixed length and compares positions with its bound; here
evict says which element leaves, so that windows of any length work. One window, not several that
share the deque. What ties do is left to combine: equal values are removed, but of two records that
differ only in what stands beside the maximum, the one that combine chooses stays.
"""

from __future__ import annotations

from sash.aggregators import subtract_on_evict
from sash.aggregators.contract import (
    END,
    MASK,
    N_COMMON,
    OLDEST,
    SELECTIVE_OR_INVERTIBLE,
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

FIRST, LAST = N_COMMON, N_COMMON + 1
NEW, ANSWER, RING = 0, 0, 1  # the forms use the one scratch cell each for its own purpose

SHAPE = Shape(n_scratch=1, links_per_slot=1, n_registers=N_COMMON + 2)


def build(cells: Cells, jit: Jit, selective: bool) -> Fifo:
    """Make the operations for one kind of cell: the deque, or the running answer."""
    if not selective:
        return subtract_on_evict.build(cells, jit)
    lift, transfer, newer_wins = cells.lift, cells.transfer, cells.newer_wins

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        pool, at = s.pool, s.at
        mask, first, last, end = at[MASK], at[FIRST], at[LAST], at[END]
        lift(pool, NEW, columns, i)
        while first < last and newer_wins(pool, RING + ((last - 1) & mask), NEW):
            last -= 1
        transfer(pool, RING + (last & mask), pool, NEW)
        s.links[last & mask] = end
        at[LAST] = last + 1
        at[END] = end + 1

    @jit
    def evict(s: State) -> None:
        at, oldest, first = s.at, s.at[OLDEST], s.at[FIRST]
        if s.links[first & at[MASK]] == oldest:
            at[FIRST] = first + 1
        at[OLDEST] = oldest + 1

    @jit
    def query(s: State) -> int:
        front: int = RING + (s.at[FIRST] & s.at[MASK])
        return front

    return Fifo(insert, evict, query, _mover(cells, jit))


def _mover(cells: Cells, jit: Jit) -> Function:
    transfer = cells.transfer

    def move(old: State, new: State) -> None:
        """Copy the entries of the deque, not the elements of the window, and the registers."""
        old_mask, new_mask = old.at[MASK], new.at[MASK]
        for d in range(old.at[FIRST], old.at[LAST]):
            transfer(new.pool, RING + (d & new_mask), old.pool, RING + (d & old_mask))
            new.links[d & new_mask] = old.links[d & old_mask]
        for register in range(len(old.at)):
            new.at[register] = old.at[register]
        new.at[MASK] = new_mask

    return jit(move)


def check(view: View) -> None:
    """Check I1 to I4, or I5 and I6: which form it is shows in whether a window has a deque."""
    oldest, end, first, last = view.at[OLDEST], view.at[END], view.at[FIRST], view.at[LAST]
    if first == last == 0 and oldest < end:
        _check_answer(view)
        return
    view.require("I1", first <= last <= first + end - oldest and (first < last) == (oldest < end))
    before = oldest - 1
    for d in range(first, last):
        cell, position = RING + (d & view.at[MASK]), view.links[d & view.at[MASK]]
        view.require("I2", before < position < end and (d + 1 < last or position == end - 1), position)
        view.require_cell("I3", cell, position, position + 1)
        for i in range(before + 1, position + 1):
            view.require_cell("I4", cell, i, end)
        before = position


def _check_answer(view: View) -> None:
    for i in range(view.at[OLDEST], view.at[END]):
        view.require_cell("I5", RING + (i & view.at[MASK]), i, i + 1)
    view.require_cell("I6", ANSWER, view.at[OLDEST], view.at[END])


ALGORITHM = Algorithm(
    Card(
        "slick_deque",
        title="SlickDeque",
        order="in order",
        needs=SELECTIVE_OR_INVERTIBLE,
        amortised="2",
        worst="n",
        space="n + 1",
        paper="Shein, Chrysanthis, Labrinidis, EDBT (2018)",
    ),
    SHAPE,
    build,
    check,
)
