"""Log MTA, the monoid tree: one balanced tree whose two edges are kept up to date.

    TOP        [ HEAD ..........................)[ TAIL ................... )
    level 1    [ HEAD )[ node )[ node )[ node   )[ node  )[ node )[ TAIL    )
    level 0    [ HEAD )..elements.........................................TAIL

The levels are those of `levels.py`. On each level the first node may have lost elements and the last
may still wait for some: HEAD and TAIL hold what the window has of them. The tree ends at the level where
these two are all there is,
and their sum is the answer. An insertion renews the tails, from the element up; an eviction, of one
element or of millions, renews the heads.

Invariants, with lo(l) = OLDEST >> l and hi(l) = (END - 1) >> l
    I1  TOP is the lowest level with hi - lo <= 1, if the window holds anything
    I2  node k of level l <= TOP holds its elements, if lo < k and (k + 1) << l <= END
    I3  HEAD of level l holds [OLDEST, (lo + 1) << l)   for l <= TOP
    I4  TAIL of level l holds [hi << l, END)            for l <= TOP, if that node is not whole

Cost in calls of combine: insert at most 2 log n, evict log n whatever the number of elements, query 1.
Space: 2n + 2 log n.

Paper: Villalba, Berral, Carrera, "Constant-time sliding window framework with reduced memory footprint
and efficient bulk evictions", IEEE TPDS 30 (2019), section 4.1, algorithms 1 and 2.
Departures: places are those of the whole stream; both edges are apart from the nodes, which are thus
written once, so that a store never rewrites one.
"""

from __future__ import annotations

from sash.aggregators.contract import (
    ASSOCIATIVE,
    END,
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
from sash.aggregators.levels import N_LEVELS, Levels, Place, in_rings, place_in, rings_mover
from sash.compiling.cells import Cells

TOP, CACHED = N_COMMON, N_COMMON + 1
ANSWER, HEAD, TAIL = 0, 1, 1 + N_LEVELS

SHAPE = Shape(n_scratch=TAIL + N_LEVELS, cells_per_slot=2, n_registers=N_COMMON + 2)


def build(cells: Cells, jit: Jit, where: Place = in_rings) -> Fifo:
    """Make the operations for one kind of cell, with nodes wherever `where` puts them."""
    combine, lift, transfer = cells.combine, cells.lift, cells.transfer
    place = where(jit, SHAPE.n_scratch)

    @jit
    def tail(s: State, level: int) -> int:
        """The cell of the last node of a level: a tail, or a node if it is whole."""
        end = s.at[END]
        is_whole = end & ((1 << level) - 1) == 0
        cell: int = place(s, level, (end >> level) - 1) if is_whole else TAIL + level
        return cell

    @jit
    def renew_tail(s: State, level: int) -> None:
        """The last node of a level, from its children (restores I2 and I4)."""
        last, below = (s.at[END] - 1) >> (level - 1), tail(s, level - 1)
        if last & 1:
            combine(s.pool, tail(s, level), place(s, level - 1, last - 1), below)
        else:
            transfer(s.pool, tail(s, level), s.pool, below)

    @jit
    def renew_head(s: State, level: int) -> None:
        """The first node of a level, from its children (restores I3)."""
        if level == 0:
            transfer(s.pool, HEAD, s.pool, place(s, 0, s.at[OLDEST]))
            return
        first = s.at[OLDEST] >> (level - 1)
        if first & 1:
            transfer(s.pool, HEAD + level, s.pool, HEAD + level - 1)
        else:
            combine(s.pool, HEAD + level, HEAD + level - 1, place(s, level - 1, first + 1))

    @jit
    def is_top(s: State, level: int) -> bool:
        return bool(((s.at[END] - 1) >> level) - (s.at[OLDEST] >> level) <= 1)

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        at, end = s.at, s.at[END]
        lift(s.pool, place(s, 0, end), columns, i)
        at[END] = end + 1
        at[CACHED] = 0
        if end == at[OLDEST]:
            at[TOP] = 0
            renew_head(s, 0)
            return
        for level in range(1, at[TOP] + 1):
            renew_tail(s, level)
        if not is_top(s, at[TOP]):
            at[TOP] += 1
            renew_head(s, at[TOP])
            renew_tail(s, at[TOP])

    @jit
    def evict_to(s: State, oldest: int) -> None:
        """Remove everything before an element."""
        at = s.at
        at[OLDEST] = oldest
        at[CACHED] = 0
        if oldest == at[END]:
            return
        while at[TOP] > 0 and is_top(s, at[TOP] - 1):
            at[TOP] -= 1
        for level in range(at[TOP] + 1):
            renew_head(s, level)

    @jit
    def evict(s: State) -> None:
        evict_to(s, s.at[OLDEST] + 1)

    @jit
    def query(s: State) -> int:
        at = s.at
        if at[END] - at[OLDEST] == 1:
            return HEAD
        if at[CACHED] == 0:
            combine(s.pool, ANSWER, HEAD + at[TOP], tail(s, at[TOP]))
            at[CACHED] = 1
        return ANSWER

    return Fifo(insert, evict, query, rings_mover(cells, SHAPE.n_scratch, jit), evict_to)


def check(view: View) -> None:
    """Check I1 to I4."""
    oldest, end, top = view.at[OLDEST], view.at[END], view.at[TOP]
    if oldest == end:
        return
    spans = [((end - 1) >> level) - (oldest >> level) for level in range(N_LEVELS)]
    view.require("I1", next(level for level, span in enumerate(spans) if span <= 1) == top, f"spans {spans}")
    place = place_in(view, SHAPE.n_scratch)
    for level in range(top + 1):
        for node in range((oldest >> level) + 1, end >> level):
            view.require_cell("I2", place(level, node), node << level, (node + 1) << level)
        view.require_cell("I3", HEAD + level, oldest, ((oldest >> level) + 1) << level)
        if level > 0 and end & ((1 << level) - 1):
            view.require_cell("I4", TAIL + level, (end - 1) >> level << level, end)


def n_whole(end: int, level: int) -> int:
    """How many nodes of a level are whole."""
    return end >> level


def written_at(level: int, node: int) -> int:
    """END when a node became whole."""
    return (node + 1) << level


def levels(jit: Jit, where: Place = in_rings) -> Levels:
    """How the nodes are read; the first of a level may never have been written."""

    def top(s: State) -> int:
        return int(s.at[TOP])

    return Levels(where(jit, SHAPE.n_scratch), jit(top), jit(n_whole))


ALGORITHM = Algorithm(
    Card(
        "log_mta",
        title="Log MTA",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="3 log n",
        worst="3 log n",
        space="2n + 2 log n",
        bulk="evict log n",
        paper="Villalba, Berral, Carrera, IEEE TPDS 30 (2019)",
    ),
    SHAPE,
    build,
    check,
    levels,
)
