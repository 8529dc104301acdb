"""B-Int, the base intervals of Arasu and Widom: what the Reactive Aggregator was compared with.

    level 2   |       0       |       1       |
    level 1   |   0   |   1   |   2   |   3   |       node j of level l aggregates elements j 2^l to (j + 1) 2^l - 1
    level 0   | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
                    `-----------------'               elements 1 to 5 are nodes 1, 1 and 2 of levels 0, 1 and 1

An element completes a node on each level where it is the last one below; a window is cut into the largest nodes that
fit. Only here to be measured, so it stands beside the benchmarks and not in the catalogue.

Invariant
    I1  a node whose elements have all come, and whose first is not older than the ring, aggregates them

Cost in calls of combine: insert 1 amortised, at most log2 n; evict 0; query at most 2 log2 n. Space: 2n partials.

Paper: Arasu, Widom, "Resource sharing in continuous sliding-window aggregates", VLDB (2004), section 3.
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
from sash.compiling.cells import Cells

ANSWER, NODES = 0, 1
SHAPE = Shape(n_scratch=1, cells_per_slot=2)


def place(mask: int, level: int, node: int) -> int:
    """The cell of a node: levels stand one after the other, each a ring half as long as the one before."""
    capacity = mask + 1
    return NODES + 2 * capacity - (2 * capacity >> level) + (node & ((capacity >> level) - 1))


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    combine, lift, transfer, cell = cells.combine, cells.lift, cells.transfer, jit(place)

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        mask, node, level = s.at[MASK], s.at[END], 0
        lift(s.pool, cell(mask, 0, node), columns, i)
        while node & 1 and mask >> level > 1:
            older, newer = cell(mask, level, node - 1), cell(mask, level, node)
            node, level = node >> 1, level + 1
            combine(s.pool, cell(mask, level, node), older, newer)
        s.at[END] += 1

    @jit
    def evict(s: State) -> None:
        s.at[OLDEST] += 1

    @jit
    def query(s: State) -> int:
        mask, begin, end = s.at[MASK], s.at[OLDEST], s.at[END]
        is_first = True
        while begin < end:
            level = 0
            while begin & ((2 << level) - 1) == 0 and begin + (2 << level) <= end and mask >> level > 1:
                level += 1
            if is_first:
                transfer(s.pool, ANSWER, s.pool, cell(mask, level, begin >> level))
                is_first = False
            else:
                combine(s.pool, ANSWER, ANSWER, cell(mask, level, begin >> level))
            begin += 1 << level
        return ANSWER

    return Fifo(insert, evict, query, ring_mover(cells, SHAPE, jit))


def check(view: View) -> None:
    """Check I1 for the elements themselves and the pairs of them."""
    oldest, end, mask = view.at[OLDEST], view.at[END], view.at[MASK]
    for level in (0, 1):
        for node in range(-(-oldest >> level), end >> level):
            view.require_cell("I1", place(mask, level, node), node << level, (node + 1) << level)


ALGORITHM = Algorithm(
    Card(
        "b_int", title="Base intervals", order="in order", needs=ASSOCIATIVE, amortised="2 log2 n", worst="3 log2 n",
        space="2n", paper="Arasu, Widom, VLDB (2004)",
    ),
    SHAPE,
    build,
    check,
)  # fmt: skip
