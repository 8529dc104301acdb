"""Levels: the binary tree that both monoid trees grow over a stream without end.

    level 2            [      0      ]  [      1  ...
    level 1            [  0 ] [  1   ]  [  2 ] [  3 ...
    level 0 (elements)  0  1   2  3      4  5   6  7 ...

Node k of level l aggregates the elements k·2^l to (k + 1)·2^l - 1, counted from the beginning of the
stream, so that a node keeps its name for ever: its parent is node k // 2 one level up, its sibling
node k ^ 1. A node is written once, when all its elements have arrived, and never changes. Nodes that
have lost an element to eviction are dead, and nobody reads them.

Where a node lies is settled here, for windows in memory: level l has a ring of capacity / 2^l cells,
since a window of n elements holds no more than n / 2^l whole nodes of that level. A window in a store
has the same nodes in chunks (engine/stored).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sash.aggregators.contract import END, MASK, OLDEST, Jit, State, View
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.compiling.jit import interpreted

N_LEVELS = 48  # a window of 2^48 elements is more than any machine holds

Place = Callable[[Jit, int], Function]  # (jit, n_scratch) -> place(state, level, node): its cell


class Levels(NamedTuple):
    """What is needed to read the nodes of a window."""

    place: Function  # (state, level, node) -> its cell
    top: Function  # (state) -> the highest level that may be read
    n_nodes: Function  # (end, level) -> how many nodes the level has had


def in_rings(jit: Jit, n_scratch: int) -> Function:
    """Make place(state, level, node) for a ring a level, one after the other in the pool."""

    def place(s: State, level: int, node: int) -> int:
        capacity = s.at[MASK] + 1
        size = capacity >> level
        cell: int = n_scratch + 2 * (capacity - size) + (node & (size - 1))
        return cell

    return jit(place)


def place_in(view: View, n_scratch: int) -> Callable[[int, int], int]:
    """Where nodes are, for `check`: (level, node) -> cell."""
    place = in_rings(interpreted, n_scratch)
    return view.place or (lambda level, node: int(place(view, level, node)))


def rings_mover(cells: Cells, n_scratch: int, jit: Jit) -> Function:
    """Copy scratch, the living nodes of all levels and the registers into rings of another size."""
    transfer, place = cells.transfer, in_rings(jit, n_scratch)

    def move(old: State, new: State) -> None:
        for cell in range(n_scratch):
            transfer(new.pool, cell, old.pool, cell)
        oldest, end, mask = old.at[OLDEST], old.at[END], new.at[MASK]
        for register in range(len(old.at)):
            new.at[register] = old.at[register]
        new.at[MASK] = mask
        level = 0
        while (1 << level) <= end - oldest:
            for node in range(first_whole(oldest, level), end >> level):
                transfer(new.pool, place(new, level, node), old.pool, place(old, level, node))
            level += 1

    return jit(move)


def first_whole(oldest: int, level: int) -> int:
    """The first node of a level that has lost nothing."""
    return (oldest + (1 << level) - 1) >> level


def in_two_rings(n_head: int, n_tail: int) -> Place:
    """Make place for windows of which only the ends of each level are in memory.

    Each level has a ring for its head and one for its tail; `links[level]` is the first node of the tail.
    Nodes between the two are elsewhere, and whoever calls sees to it that none of them is asked for.
    """

    def where(jit: Jit, n_scratch: int) -> Function:
        def place(s: State, level: int, node: int) -> int:
            base = n_scratch + level * (n_head + n_tail)
            if node >= s.links[level]:
                return int(base + n_head + (node & (n_tail - 1)))
            return int(base + (node & (n_head - 1)))

        return jit(place)

    return where
