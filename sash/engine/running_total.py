"""A running total: windows that only grow until they begin anew need one partial, whatever their length.

    | everything since the key, the session or the mark began |
      `--------------------- TOTAL --------------------------'

Nothing ever leaves such a window alone: all of it does, and the next one starts with the row at hand. It is no
algorithm for sliding windows, and so not in the catalogue; runs choose it by the kind of their window.

Invariants
    I1  TOTAL holds lifted[OLDEST] + ... + lifted[END - 1]      unless the window is empty

Cost in calls of combine: insert 1, or 0 into an empty window; query 0. Space: 2 partials.
"""

from __future__ import annotations

from sash.aggregators.contract import (
    ASSOCIATIVE,
    END,
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

TOTAL, NEW = 0, 1
CAPACITY = 1 << 62  # no slots, so there is always room

SHAPE = Shape(n_scratch=2, cells_per_slot=0)


def build(cells: Cells, jit: Jit) -> Fifo:
    """Make the operations for one kind of cell."""
    combine, lift = cells.combine, cells.lift

    @jit
    def insert(s: State, columns: object, i: int) -> None:
        at = s.at
        if at[OLDEST] == at[END]:
            lift(s.pool, TOTAL, columns, i)
        else:
            lift(s.pool, NEW, columns, i)
            combine(s.pool, TOTAL, TOTAL, NEW)
        at[END] += 1

    @jit
    def evict(s: State) -> None:
        s.at[OLDEST] = s.at[END]  # one cannot leave without the others

    @jit
    def query(s: State) -> int:
        return TOTAL

    return Fifo(insert, evict, query, ring_mover(cells, SHAPE, jit))


def check(view: View) -> None:
    """Check I1."""
    if view.at[OLDEST] < view.at[END]:
        view.require_cell("I1", TOTAL, view.at[OLDEST], view.at[END])


ALGORITHM = Algorithm(
    Card(
        "running_total",
        title="Running total",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="1",
        worst="1",
        space="2",
    ),
    SHAPE,
    build,
    check,
)
