"""AMTA, the amortised monoid tree: a forest that grows by carrying, with the answer in two halves.

    window      [ oldest ................. front ................... end )
                `--------- LEFT ----------'`---------- RIGHT -------'
    stack         [ ..................... )
                       [ ................ )      suffixes of the left half, the longest on top
                                [ ....... )

The elements are the lowest of the levels of `levels.py`. Nodes of a level come in pairs, and a pair gets
its parent when the next pair begins: END + 1 counts in binary, an insertion carries, and level l has

    n(l) = ((END + 1) >> l) - 1     definite nodes.

The pair at the highest level that reaches into the window is the root of the leftmost tree, which
ends at the front. LEFT is what is left of that tree, RIGHT is everything after it. The stack
holds what LEFT will be without the first element of each level: evicting an element pops it, and where the
evicted element was the last of its pair, descending to the next pair pushes as often as a binary counter carries.

Invariants
    I1  OLDEST < FRONT <= END if the window holds anything, and FRONT = n(TOP) << TOP unless MOVED
    I2  TOP is the highest level with n(TOP) << TOP > OLDEST
    I3  node k of level l, k < n(l), holds its elements if OLDEST <= k << l
    I4  LEFT holds [OLDEST, FRONT), RIGHT holds [FRONT, END) if it is not empty
    I5  the stack holds, from the top, [(h + 1) << l, FRONT) for every level l whose head h = OLDEST >> l
        is even and has its sibling before the front
    I6  ANSWER holds [OLDEST, END) if CACHED

Cost in calls of combine, amortised: insert 2, evict 1, query 1; in the worst case insert 1 + log n,
evict and query 3 log n. Evicting any number of elements: at most 3 log n. Space: 2n + log n.

Paper: Villalba, Berral, Carrera, "Constant-time sliding window framework with reduced memory footprint
and efficient bulk evictions", IEEE TPDS 30 (2019), section 4.2, algorithms 3 to 7; optimisations of section 5.2.
Departures: pairs stand at even places of the whole stream, not of the window; nodes that have lost
elements are never written, so that stored nodes never change. Section 4.2.1 says that evictions pop the
stack onto R1; its example and algorithm 6 say R0, which is right.
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
from sash.aggregators.levels import N_LEVELS, Levels, Place, first_whole, in_rings, place_in, rings_mover
from sash.compiling.cells import Cells

FRONT, TOP, DEPTH, MOVED, CACHED = range(N_COMMON, N_COMMON + 5)
LEFT, RIGHT, ANSWER, STACK = 0, 1, 2, 3

SHAPE = Shape(n_scratch=STACK + N_LEVELS, cells_per_slot=2, n_registers=N_COMMON + 5)


def n_definite(end: int, level: int) -> int:
    """How many nodes of a level have their place in the forest."""
    return ((end + 1) >> level) - 1


def written_at(level: int, node: int) -> int:
    """END when a node got its place."""
    return ((node + 2) << level) - 1


def build(cells: Cells, jit: Jit, where: Place = in_rings) -> Fifo:
    """Make the operations for one kind of cell, with nodes wherever `where` puts them."""
    combine, lift, transfer = cells.combine, cells.lift, cells.transfer
    place = where(jit, SHAPE.n_scratch)

    @jit
    def carry(s: State) -> int:
        """Give parents to the pairs that have just been completed; the highest level that grew."""
        oldest, grown, level = s.at[OLDEST], s.at[END] + 1, 0
        while grown & 1 == 0:
            node = (grown >> 1) - 2
            children = place(s, level, 2 * node)  # two cells side by side: rings have even sizes below the top
            grown, level = grown >> 1, level + 1
            if oldest <= node << level:
                combine(s.pool, place(s, level, node), children, children + 1)
            elif (node + 1) << level <= oldest:
                return level - 1
        return level

    @jit
    def begin(s: State) -> None:
        """The first element of an empty window is its leftmost tree."""
        at = s.at
        at[FRONT], at[TOP], at[DEPTH], at[MOVED] = at[END], 0, 0, 0
        transfer(s.pool, LEFT, s.pool, place(s, 0, at[OLDEST]))

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        at, end = s.at, s.at[END]
        leaf = place(s, 0, end)
        lift(s.pool, leaf, columns, i)
        at[END] = end + 1
        at[CACHED] = 0
        if end == at[OLDEST]:
            begin(s)
            return
        if at[FRONT] == end:
            transfer(s.pool, RIGHT, s.pool, leaf)
        else:
            combine(s.pool, RIGHT, RIGHT, leaf)
        grown = carry(s)
        if grown > at[TOP]:
            at[TOP] += 1
        elif grown == at[TOP]:
            at[MOVED] = 1

    @jit
    def push(s: State, node: int) -> None:
        """The suffix that begins with a node, from the one on top of the stack."""
        depth = s.at[DEPTH]
        if depth == 0:
            transfer(s.pool, STACK, s.pool, node)
        else:
            combine(s.pool, STACK + depth, node, STACK + depth - 1)
        s.at[DEPTH] = depth + 1

    @jit
    def compute_left(s: State) -> None:
        at, oldest = s.at, s.at[OLDEST]
        at[DEPTH] = 0
        for level in range(at[TOP], -1, -1):
            sibling = (oldest >> level) + 1
            if sibling & 1 and (sibling + 1) << level <= at[FRONT]:
                push(s, place(s, level, sibling))
        if at[DEPTH] == 0:
            transfer(s.pool, LEFT, s.pool, place(s, 0, oldest))
        else:
            combine(s.pool, LEFT, place(s, 0, oldest), STACK + at[DEPTH] - 1)

    @jit
    def compute_right(s: State) -> None:
        """Fold the pairs at the ends of the levels, the highest and oldest first."""
        at, end = s.at, s.at[END]
        is_first = True
        for level in range(at[TOP] - 1, -1, -1):
            for node in range(2 * n_definite(end, level + 1), n_definite(end, level)):
                if is_first:
                    transfer(s.pool, RIGHT, s.pool, place(s, level, node))
                else:
                    combine(s.pool, RIGHT, RIGHT, place(s, level, node))
                is_first = False

    @jit
    def settle(s: State) -> None:
        """Find the leftmost tree and compute both halves anew (restores I1, I2, I4, I5)."""
        at, end = s.at, s.at[END]
        while n_definite(end, at[TOP]) << at[TOP] <= at[OLDEST]:
            at[TOP] -= 1
        at[FRONT] = n_definite(end, at[TOP]) << at[TOP]
        at[MOVED] = 0
        compute_left(s)
        compute_right(s)

    @jit
    def descend(s: State) -> None:
        """The oldest element begins a pair: push the siblings of the heads below it."""
        oldest, depth, level = s.at[OLDEST], s.at[DEPTH], 1
        while (oldest >> level) & 1 == 0:
            level += 1
        s.at[DEPTH] = depth + level
        while level > 0:
            level -= 1
            node = place(s, level, (oldest >> level) + 1)
            if depth == 0:
                transfer(s.pool, STACK, s.pool, node)
            else:
                combine(s.pool, STACK + depth, node, STACK + depth - 1)
            depth += 1

    @jit
    def evict(s: State) -> None:
        at = s.at
        oldest = at[OLDEST] + 1
        at[OLDEST] = oldest
        at[CACHED] = 0
        if oldest == at[FRONT]:
            if oldest < at[END]:
                settle(s)
            return
        at[DEPTH] -= 1
        transfer(s.pool, LEFT, s.pool, STACK + at[DEPTH])
        if oldest & 1 == 0:
            descend(s)

    @jit
    def evict_to(s: State, oldest: int) -> None:
        """Remove everything before an element, in a number of steps that does not depend on how much it is."""
        s.at[OLDEST] = oldest
        s.at[CACHED] = 0
        if oldest < s.at[END]:
            settle(s)

    @jit
    def evict_few_or_many(s: State, oldest: int) -> None:
        """Few elements one by one, so that evicting two at a time costs twice what one does; many at once."""
        if oldest - s.at[OLDEST] > s.at[TOP]:
            evict_to(s, oldest)
            return
        while s.at[OLDEST] < oldest:
            evict(s)

    @jit
    def query(s: State) -> int:
        at = s.at
        if at[MOVED]:
            settle(s)
        if at[FRONT] == at[END]:
            return LEFT
        if at[CACHED] == 0:
            combine(s.pool, ANSWER, LEFT, RIGHT)
            at[CACHED] = 1
        return ANSWER

    evict_many = evict_few_or_many if where is in_rings else evict_to  # elsewhere, each eviction may be a journey
    return Fifo(insert, evict, query, rings_mover(cells, SHAPE.n_scratch, jit), evict_many)


def check(view: View) -> None:
    """Check I1 to I6."""
    oldest, end, front, top = view.at[OLDEST], view.at[END], view.at[FRONT], view.at[TOP]
    if oldest == end:
        return
    view.require("I1", oldest < front <= end)
    view.require("I1", bool(view.at[MOVED]) or front == n_definite(end, top) << top, f"front {front}")
    view.require("I2", n_definite(end, top) << top > oldest and n_definite(end, top + 1) << (top + 1) <= oldest)
    _check_nodes(view)
    view.require_cell("I4", LEFT, oldest, front)
    if front < end:
        view.require_cell("I4", RIGHT, front, end)
    _check_stack(view)
    if view.at[CACHED]:
        view.require_cell("I6", ANSWER, oldest, end)


def _check_nodes(view: View) -> None:
    oldest, end, place = view.at[OLDEST], view.at[END], place_in(view, SHAPE.n_scratch)
    for level in range(view.at[TOP] + 1):
        for node in range(first_whole(oldest, level), n_definite(end, level)):
            view.require_cell("I3", place(level, node), node << level, (node + 1) << level)


def _check_stack(view: View) -> None:
    oldest, front = view.at[OLDEST], view.at[FRONT]
    siblings = [((oldest >> level) + 1, level) for level in range(N_LEVELS)]
    begins = [k << level for k, level in siblings if k & 1 and (k + 1) << level <= front]
    view.require("I5", len(begins) == view.at[DEPTH], f"{len(begins)} suffixes")
    for place, begin in enumerate(reversed(begins)):
        view.require_cell("I5", STACK + place, begin, front)


def levels(jit: Jit, where: Place = in_rings) -> Levels:
    """How the nodes are read."""

    def top(s: State) -> int:
        return int(s.at[TOP])

    return Levels(where(jit, SHAPE.n_scratch), jit(top), jit(n_definite))


ALGORITHM = Algorithm(
    Card(
        "amta",
        title="Amortised MTA",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="4",
        worst="5 log n",
        space="2n + log n",
        bulk="evict 3 log n",
        paper="Villalba, Berral, Carrera, IEEE TPDS 30 (2019)",
    ),
    SHAPE,
    build,
    check,
    levels,
)
