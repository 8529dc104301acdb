"""The Reactive Aggregator: a window that runs around the leaves of a FlatFAT.

    locations    0    1    2    3    4    5    6    7
               | c  | d  |    |    |    | a  | -  | b  |
                      B                   F                F: OLDEST, B: END - 1, each modulo n

Inserts and evictions only change leaves and note it; a query puts right the nodes above all changed
leaves at once (see flat_fat). The window above is inverted: its order is not that of the leaves, so
its aggregate is that of the leaves from F on, followed by that of the leaves up to B. Since the root
has no meaning of its own then, this goes there, and a query finds its answer in the root either way.

An element evicted from the middle leaves a hole (-): a leaf without a value. The oldest element is
never a hole; a window with holes that finds no room is compacted rather than made larger.

Invariants, beside those of flat_fat, where lifted[i] of a hole is no value
    I5  the link of a leaf in use is 1 + the number of its element in order of arrival, 0 for a hole
    I6  HOLES is the number of holes, and OLDEST is none of them
    I7  links of elements that are no holes ascend from OLDEST to END - 1

Cost in calls of combine: insert 0; evict 0; query, after m changes, at most m (1 + ceil(log2(n / m)))
and, if the window is inverted, at most log2 n more; 0 if nothing has changed. A round of evict, insert
and query takes log2 n on average. At most n - 1 at the next query after growing, shrinking or
compacting. Space: 2n partials and 2n links for n slots.

Paper: Tangwongsan, Hirzel, Schneider, Wu, "General incremental sliding-window aggregation", PVLDB 8
(2015), section 5. Who calls follows its rules: at full, compact if at most 3/4 of the slots hold
elements, else double; below a quarter, halve.
Departures: the paper marks all free slots as without value; here, as in its section 5.2, slots out
of use are skipped and only holes are marked, so that one form serves both kinds of window. For the
same reason a suffix and a prefix need no climb from the leaves, only from where their ways meet.
Compacting moves elements towards the young end, so that END goes on counting arrivals.
"""

from __future__ import annotations

from typing import NamedTuple

from sash.aggregators import flat_fat
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
from sash.aggregators.flat_fat import HEAD, ROOT, SCRATCH
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells

HOLES = N_COMMON

SHAPE = Shape(cells_per_slot=2, links_per_slot=2, n_registers=N_COMMON + 1)


class Middle(NamedTuple):
    """What the reactive aggregator can do beyond other in-order algorithms."""

    locate: Function  # (state, position) -> the element that has so many older ones, holes not counted
    evict_at: Function  # (state, element): any element leaves
    compact: Function  # (state): close all holes


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    tree = flat_fat.operations(cells, jit)
    write, repair, unwind = tree.write, tree.repair, _unwinder(cells, jit)

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        at, end = s.at, s.at[END]
        write(s, end, columns, i)
        s.links[at[MASK] + 1 + (end & at[MASK])] = end + 1
        at[END] = end + 1

    @jit
    def query(s: State) -> int:
        if s.links[HEAD] > 0:
            repair(s)
            mask = s.at[MASK]
            first, last = s.at[OLDEST] & mask, (s.at[END] - 1) & mask
            if last < first:
                unwind(s, mask + 1 + first, mask + 1 + last)
        return ROOT

    return Fifo(insert, _evicter(cells, jit), query, _mover(cells, jit))


def build_middle(cells: Cells, jit: Jit) -> Middle:
    """Make the operations on elements that are not the oldest."""
    clear = cells.clear
    touch, evict = flat_fat.operations(cells, jit).touch, _evicter(cells, jit)

    @jit
    def locate(s: State, position: int) -> int:
        at, mask = s.at, s.at[MASK]
        element: int = at[OLDEST]
        if at[HOLES] == 0:
            return element + position
        while position > 0:
            element += 1
            if s.links[mask + 1 + (element & mask)] > 0:
                position -= 1
        return element

    @jit
    def evict_at(s: State, element: int) -> None:
        at = s.at
        if element == at[OLDEST]:
            evict(s)
            return
        leaf = at[MASK] + 1 + (element & at[MASK])
        clear(s.pool, leaf)
        s.links[leaf] = 0
        touch(s, element)
        at[HOLES] += 1

    return Middle(locate, evict_at, _compacter(cells, jit))


def _unwinder(cells: Cells, jit: Jit) -> Function:
    combine, tree = cells.combine, flat_fat.operations(cells, jit)
    prefix, suffix = tree.prefix, tree.suffix

    def unwind(s: State, first: int, last: int) -> None:
        """Aggregate an inverted window into the root (restores I4).

        Up to where the ways from its ends to the root meet, the nodes on them are ready: beside an
        end, a node aggregates nothing but what the suffix or the prefix needs of it.
        """
        limit = 2 * s.at[MASK] + 1
        while first >> 1 != last >> 1:
            first, last, limit = first >> 1, last >> 1, limit >> 1
        suffix(s, SCRATCH, first, limit)
        prefix(s, ROOT, last)
        combine(s.pool, ROOT, SCRATCH, ROOT)

    return jit(unwind)


def _evicter(cells: Cells, jit: Jit) -> Function:
    touch = flat_fat.operations(cells, jit).touch

    def evict(s: State) -> None:
        """Take the oldest element out of use, and the holes behind it (restores I6)."""
        at, mask, oldest = s.at, s.at[MASK], s.at[OLDEST]
        touch(s, oldest)
        oldest += 1
        while at[HOLES] > 0 and s.links[mask + 1 + (oldest & mask)] == 0:
            oldest += 1
            at[HOLES] -= 1
        at[OLDEST] = oldest

    return jit(evict)


def _compacter(cells: Cells, jit: Jit) -> Function:
    touch, transfer = flat_fat.operations(cells, jit).touch, cells.transfer

    def compact(s: State) -> None:
        """Move elements towards the young end until there are no holes."""
        links, at, mask = s.links, s.at, s.at[MASK]
        target = at[END]
        for i in range(at[END] - 1, at[OLDEST] - 1, -1):
            source = mask + 1 + (i & mask)
            if links[source] > 0:
                target -= 1
                if target > i:
                    transfer(s.pool, mask + 1 + (target & mask), s.pool, source)
                    links[mask + 1 + (target & mask)] = links[source]
                    touch(s, target)
                    touch(s, i)
        at[OLDEST] = target
        at[HOLES] = 0

    return jit(compact)


def _mover(cells: Cells, jit: Jit) -> Function:
    touch, transfer = flat_fat.operations(cells, jit).touch, cells.transfer

    def move(old: State, new: State) -> None:
        """Copy the elements without holes; the next query makes the tree above them (algorithm 1)."""
        old_mask, new_mask, target = old.at[MASK], new.at[MASK], old.at[END]
        for i in range(old.at[END] - 1, old.at[OLDEST] - 1, -1):
            source = old_mask + 1 + (i & old_mask)
            if old.links[source] > 0:
                target -= 1
                leaf = new_mask + 1 + (target & new_mask)
                transfer(new.pool, leaf, old.pool, source)
                new.links[leaf] = old.links[source]
                touch(new, target)
        new.at[OLDEST], new.at[END] = target, old.at[END]

    return jit(move)


def check(view: View) -> None:
    """Check I1 to I7."""
    oldest, end, n = int(view.at[OLDEST]), int(view.at[END]), int(view.at[MASK]) + 1
    flat_fat.check(view)
    links = [int(view.links[n + i % n]) for i in range(oldest, end)]
    live = [link for link in links if link > 0]
    view.require("I5", all(0 <= link <= end for link in links), links)
    view.require("I6", view.at[HOLES] == len(links) - len(live) and links[:1] != [0], links)
    view.require("I7", live == sorted(set(live)), links)


ALGORITHM = Algorithm(
    Card(
        "reactive",
        title="Reactive Aggregator",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="log2 n",
        worst="n",
        space="2n",
        bulk="m (1 + log2(n / m))",
        paper="Tangwongsan, Hirzel, Schneider, Wu, PVLDB 8 (2015)",
    ),
    SHAPE,
    build,
    check,
)
