"""Inserting one entry: search, insert into a leaf, split what overflows on the way up, repair.

An entry appended to the right finger costs one combine: a right aggregate ends with its own entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.fiba.balancing import Balancing
from sash.aggregators.fiba.layout import (
    ARITY,
    COUNT,
    HEIGHT,
    LIFTED,
    PARENT,
    RIGHT_FINGER,
    ROOT,
    Kit,
    Nodes,
    Supply,
    Tree,
)  # fmt: skip
from sash.aggregators.fiba.repairing import Repairing
from sash.aggregators.fiba.searching import Searching
from sash.algebra.monoid import Function


class Inserting(NamedTuple):
    """The operations that insert."""

    insert: Function  # (tree, key, columns, row) -> False if there was no room: nothing has been done then
    split_up: Function  # (tree, node, level) -> (node, level): splits it and what overflows above it


def inserting_of(
    kit: Kit, nodes: Nodes, supply: Supply, search: Searching, balance: Balancing, repairs: Repairing
) -> Inserting:
    """Make the operations that insert."""
    width, max_arity, has_fingers = kit.width, 2 * kit.min_arity, kit.has_fingers
    combine, lift, less, load, store = kit.cells.combine, kit.cells.lift, kit.keys.less, kit.keys.load, kit.keys.store
    get, put, open_entry, has_room = nodes.get, nodes.put, nodes.open, supply.has_room
    finish, settle, find = repairs.finish, repairs.settle, search.search
    split_up = _upward_splitter(kit, nodes, balance, repairs)

    @kit.apart
    def insert_anywhere(s: Tree, key: Any, columns: object, row: int) -> bool:
        node, i, is_found = find(s, key)
        place, arity, level = node * width + 1 + i, get(s.links, node, ARITY), 0
        if is_found:
            lift(s.pool, LIFTED, columns, row)
            combine(s.pool, place, place, LIFTED)
        else:
            if arity == max_arity and not has_room(s, s.at[HEIGHT] + 2):
                return False
            open_entry(s, node, i)
            store(s.keys, place, key)
            lift(s.pool, place, columns, row)
            if arity == max_arity:
                node, level = split_up(s, node, 0)
        finish(s, node, level)
        settle(s)
        return True

    @kit.jit
    def insert(s: Tree, key: Any, columns: object, row: int) -> bool:
        if has_fingers:
            node = s.at[RIGHT_FINGER]
            arity, place = get(s.links, node, ARITY), node * width + get(s.links, node, ARITY)
            if 1 < arity < max_arity and less(load(s.keys, place - 1), key):
                store(s.keys, place, key)
                lift(s.pool, place, columns, row)
                combine(s.pool, node * width, node * width, place)
                put(s.links, node, ARITY, arity + 1)
                put(s.links, node, COUNT, get(s.links, node, COUNT) + 1)
                return True
        return bool(insert_anywhere(s, key, columns, row))

    return Inserting(insert, split_up)


def _upward_splitter(kit: Kit, nodes: Nodes, balance: Balancing, repairs: Repairing) -> Function:
    max_arity, get, tidy, grow, split = 2 * kit.min_arity, nodes.get, repairs.tidy, balance.grow, balance.split

    def split_up(s: Tree, node: int, level: int) -> Any:
        """Give the first node on the way up that does not overflow (restores I2)."""
        while get(s.links, node, ARITY) > max_arity:
            if node == s.at[ROOT]:
                grow(s)
            right = split(s, node)
            tidy(s, node, level)
            tidy(s, right, level)
            node, level = get(s.links, node, PARENT), level + 1
        return node, level

    return kit.jit(split_up)
