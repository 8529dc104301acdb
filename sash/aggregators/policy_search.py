"""How much of a window must go: the longest prefix that a slide policy gives up, found by doubling.

    oldest
      |.|..|....|........|  ...       rising: nodes of the next level each time, while the policy says yes
                |    |  |.|           falling: half of what it refused, and half of that

A policy is asked about the whole window and a prefix of it, and says whether at least that prefix
must go. It is monotone: if a prefix goes, every shorter one goes. The prefix grows by whole nodes of the levels; the
first refusal turns the search, which then only gets finer. An algorithm that keeps elements and no
levels above them has level 0 alone, and is searched one element at a time.

Cost: for a prefix of m elements, 2 log m questions and combines with levels, m + 1 without. A window from which nothing
goes, or one element, is asked once or twice.

Paper: Villalba, Berral, Carrera, IEEE TPDS 30 (2019), algorithm 2 and section 4.2.4.
Departure: the paper descends from the root, after log n single evictions; rising from the oldest
element first makes the cost depend on what goes, not on what stays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.contract import END, OLDEST, Jit, State
from sash.aggregators.levels import Levels
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells

OLD, NODE, TRIAL, N_SCRATCH = 0, 1, 2, 3  # cells of a pool beside the window
TOTAL_ROW, OLD_ROW, N_ROWS = 0, 1, 2  # where a policy finds its answers


class Decision(NamedTuple):
    """A policy over rows of answers."""

    decide: Function  # (results) -> whether the old part goes
    clear: Function  # (results, row): make room for the next answers


def build(cells: Cells, levels: Levels, decision: Decision, jit: Jit) -> Function:
    """Make search(state, whole, total, scratch, results, highest): the first element that stays.

    `total` is the cell, in the pool `whole`, of the whole window; `decision` is the policy, over
    answers in two rows; no level above `highest` is looked at.
    """
    combine, lower, transfer = cells.combine, cells.lower, cells.transfer
    place, top, n_nodes = levels
    decide, clear = decision

    @jit
    def level_at(s: State, element: int, level: int, highest: int) -> int:
        """The level of the node to try next: as high as it may be, if the node exists."""
        end = s.at[END]
        if element > s.at[OLDEST]:
            while level < highest and element & ((2 << level) - 1) == 0:
                level += 1
        while level > 0 and n_nodes(end, level) <= element >> level:
            level -= 1
        return level

    @jit
    def search(s: State, whole: Any, total: int, scratch: Any, results: Any, highest: int) -> int:
        clear(results, TOTAL_ROW)
        lower(results, TOTAL_ROW, whole, total)
        element, level, highest = s.at[OLDEST], 0, min(highest, top(s))
        while element < s.at[END]:
            level = level_at(s, element, level, highest)
            transfer(scratch, NODE, s.pool, place(s, level, element >> level))
            if element == s.at[OLDEST]:
                transfer(scratch, TRIAL, scratch, NODE)
            else:
                combine(scratch, TRIAL, OLD, NODE)
            clear(results, OLD_ROW)
            lower(results, OLD_ROW, scratch, TRIAL)
            if decide(results):
                transfer(scratch, OLD, scratch, TRIAL)
                element += 1 << level
            elif level == 0:
                break
            else:
                highest = level - 1  # refused: from now on only finer
                level = highest
        return int(element)

    return search
