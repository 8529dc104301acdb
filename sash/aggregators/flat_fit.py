"""FlatFIT: every slot remembers how far it reaches, and each query makes those it meets reach further.

    oldest                                   youngest
      | .-----------------. .-----. .-----.    |
      i                next[i]  ...         END - 1      slot i aggregates i to next[i] - 1
    OLDEST

A query jumps from the oldest slot to the youngest. On the way back it adds up what it saw, so that
the next query jumps further (path compression, as in union-find).

Invariants
    I1  i < next[i] <= END - 1 for OLDEST <= i < END - 1, and next[END - 1] == END
    I2  slot i holds lifted[i] + ... + lifted[next[i] - 1]      for OLDEST <= i < END

Cost in calls of combine: insert 0; evict 0; query as many as slots it meets, youngest included, less
one: at worst n - 1, and less than 4 on average where each query follows one insert and one evict
(3 for the jumps; every n-th query meets all slots). Space: n + 1 partials and n links.

Paper: Shein, Chrysanthis, Labrinidis, "FlatFIT: Accelerated incremental sliding-window aggregation
for real-time analytics", SSDBM (2017).
Departures: the paper's stack of slots to return to is threaded through the links, which the way back
overwrites anyway. Links are numbers of elements and not slots, so that a ring of another size needs
no renumbering. Nothing is combined with an identity.
"""

from __future__ import annotations

from sash.aggregators.contract import (
    ASSOCIATIVE,
    END,
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
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells

ANSWER, RING = 0, 1

SHAPE = Shape(n_scratch=1, links_per_slot=1)


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    combine, lift = cells.combine, cells.lift
    compress = _compressor(cells, jit)

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        at, end = s.at, s.at[END]
        lift(s.pool, RING + (end & at[MASK]), columns, i)
        s.links[end & at[MASK]] = end + 1
        at[END] = end + 1

    @jit
    def evict(s: State) -> None:
        s.at[OLDEST] += 1

    @jit
    def query(s: State) -> int:
        at, mask = s.at, s.at[MASK]
        oldest, youngest = at[OLDEST], at[END] - 1
        front: int = RING + (oldest & mask)
        if oldest == youngest:
            return front
        compress(s, oldest, youngest)
        combine(s.pool, ANSWER, front, RING + (youngest & mask))
        return ANSWER

    return Fifo(insert, evict, query, ring_mover(cells, SHAPE, jit))


def _compressor(cells: Cells, jit: Jit) -> Function:
    combine = cells.combine

    def compress(s: State, oldest: int, youngest: int) -> None:
        """Make the oldest slot, and all those on its way, reach up to the youngest element."""
        pool, links, mask = s.pool, s.links, s.at[MASK]
        before, here, ahead = oldest, oldest, links[oldest & mask]
        while ahead != youngest:
            links[here & mask] = before
            before, here, ahead = here, ahead, links[ahead & mask]
        while here != oldest:
            back = links[before & mask]
            combine(pool, RING + (before & mask), RING + (before & mask), RING + (here & mask))
            links[before & mask] = youngest
            before, here = back, before

    return jit(compress)


def check(view: View) -> None:
    """Check I1 and I2."""
    oldest, end, mask = view.at[OLDEST], view.at[END], view.at[MASK]
    for i in range(oldest, end):
        reach = view.links[i & mask]
        view.require("I1", i < reach < end or i + 1 == reach == end, f"{i} reaches {reach}")
        view.require_cell("I2", RING + (i & mask), i, reach)


ALGORITHM = Algorithm(
    Card(
        "flat_fit",
        title="FlatFIT",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="4",
        worst="n",
        space="n + 1",
        paper="Shein, Chrysanthis, Labrinidis, SSDBM (2017)",
    ),
    SHAPE,
    build,
    check,
)
