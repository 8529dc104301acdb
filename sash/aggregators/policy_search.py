"""How much of a window must go: the longest prefix that a slide policy gives up, found by doubling.

    oldest
      |.|.|..|....|........|  ...     rising: nodes of higher and higher levels, while the policy says yes
                  |    |  |.|         falling: half of what it refused, and half of that

A policy is asked about the whole window and a prefix of it, and says whether at least that prefix
must go. It is monotone: if a prefix goes, every shorter one goes. The prefix grows by whole nodes of the
levels, by two levels at a step at most: higher ones would be asked about in vain wherever the oldest
element happens to stand before a large node, and with one level at a step some would be needed twice.
The first refusal turns the search, which then asks once on each level below. An algorithm that keeps
elements and no levels above them has level 0 alone, and is searched one element at a time.

Cost: for a prefix of m elements, 2 log m + 4 questions and combines with levels, m + 1 without. If nothing
goes, one question; if one element goes, two.

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


class Search(NamedTuple):
    """What can be asked of a policy; `total` is the cell, in the pool `whole`, of the whole window."""

    find: Function  # (state, whole, total, scratch, results) -> the first element that stays
    census: Function  # (the same) -> how many prefixes go, asking about each; -1 if one goes and a shorter one stays


def build(cells: Cells, levels: Levels, decision: Decision, jit: Jit) -> Search:
    """Make the search for the first element that stays, and the census that tells if it can be trusted."""
    combine, lower, transfer = cells.combine, cells.lower, cells.transfer
    place, top, n_nodes = levels
    decide, clear = decision

    @jit
    def risen(s: State, element: int, level: int) -> int:
        """The level of the node to try next, if the policy has said yes so far."""
        if element > s.at[OLDEST] + 1:
            highest = min(level + 2, top(s))
            while level < highest and element & ((2 << level) - 1) == 0:
                level += 1
        while level > 0 and n_nodes(s.at[END], level) <= element >> level:
            level -= 1
        return level

    @jit
    def goes(s: State, scratch: Any, results: Any, element: int, level: int) -> bool:
        """Ask about the old part and one more node, which begins with an element."""
        transfer(scratch, NODE, s.pool, place(s, level, element >> level))
        if element == s.at[OLDEST]:
            transfer(scratch, TRIAL, scratch, NODE)
        else:
            combine(scratch, TRIAL, OLD, NODE)
        clear(results, OLD_ROW)
        lower(results, OLD_ROW, scratch, TRIAL)
        return bool(decide(results))

    @jit
    def ask_about(results: Any, whole: Any, total: int) -> None:
        clear(results, TOTAL_ROW)
        lower(results, TOTAL_ROW, whole, total)

    @jit
    def find(s: State, whole: Any, total: int, scratch: Any, results: Any) -> int:
        ask_about(results, whole, total)
        element, level, is_rising = s.at[OLDEST], 0, True
        while level >= 0 and element < s.at[END]:
            if is_rising:
                level = risen(s, element, level)
            if goes(s, scratch, results, element, level):
                transfer(scratch, OLD, scratch, TRIAL)
                element += 1 << level
            else:
                is_rising = False
            if not is_rising:
                level -= 1
        return int(element)

    @jit
    def census(s: State, whole: Any, total: int, scratch: Any, results: Any) -> int:
        ask_about(results, whole, total)
        oldest, count = s.at[OLDEST], 0
        for element in range(oldest, s.at[END]):
            if goes(s, scratch, results, element, 0):
                if count < element - oldest:
                    return -1
                count += 1
            transfer(scratch, OLD, scratch, TRIAL)
        return count

    return Search(find, census)
