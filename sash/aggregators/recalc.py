"""Recalculation: keep the lifted values and fold them again for every query. The reference.

    oldest              youngest
      | lifted values      |
    OLDEST                END

Invariants
    I1  slot i holds lifted[i]      for OLDEST <= i < END

Cost in calls of combine: insert 0; evict 0; query n - 1. Space: n + 1 partials.

Paper: the baseline "Recalc" of every paper here.
Departures: none.
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
from sash.aggregators.levels import Levels
from sash.compiling.cells import Cells

ANSWER, RING = 0, 1

SHAPE = Shape(n_scratch=1)


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    combine, lift, transfer = cells.combine, cells.lift, cells.transfer

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        lift(s.pool, RING + (s.at[END] & s.at[MASK]), columns, i)
        s.at[END] += 1

    @jit
    def evict(s: State) -> None:
        s.at[OLDEST] += 1

    @jit
    def query(s: State) -> int:
        mask, oldest = s.at[MASK], s.at[OLDEST]
        transfer(s.pool, ANSWER, s.pool, RING + (oldest & mask))
        for i in range(oldest + 1, s.at[END]):
            combine(s.pool, ANSWER, ANSWER, RING + (i & mask))
        return ANSWER

    return Fifo(insert, evict, query, ring_mover(cells, SHAPE, jit))


def check(view: View) -> None:
    """Check I1."""
    for i in range(view.at[OLDEST], view.at[END]):
        view.require_cell("I1", RING + (i & view.at[MASK]), i, i + 1)


def levels(jit: Jit) -> Levels:
    """How the elements are read; there is nothing above them."""

    def place(s: State, level: int, node: int) -> int:
        return int(RING + (node & s.at[MASK]))

    def top(s: State) -> int:
        return 0

    def n_nodes(end: int, level: int) -> int:
        return end

    return Levels(jit(place), jit(top), jit(n_nodes))


ALGORITHM = Algorithm(
    Card(
        "recalc",
        title="Recalculation",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="n",
        worst="n",
        space="n + 1",
        paper="baseline of all papers",
    ),
    SHAPE,
    build,
    check,
    levels,
)
