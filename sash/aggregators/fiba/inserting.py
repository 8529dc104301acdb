"""Inserting one entry, anywhere: search, insert into a leaf, split what overflows on the way up, repair.

An entry that is younger than all others is appended, without a search; see ends.
"""

from __future__ import annotations

from typing import Any

from sash.aggregators.fiba.ends import Ends
from sash.aggregators.fiba.layout import (
    ARITY,
    GAP,
    HEIGHT,
    LIFTED,
    RECENT,
    ROOT,
    Kit,
    Nodes,
    Supply,
    Tree,
)  # fmt: skip
from sash.aggregators.fiba.rebalancing import Rebalancing
from sash.aggregators.fiba.searching import Searching
from sash.algebra.monoid import Function


def inserter(kit: Kit, nodes: Nodes, supply: Supply, search: Searching, upward: Rebalancing, ends: Ends) -> Function:
    """Make insert(tree, key, columns, row) -> False if there was no room: nothing has been done then."""
    width, max_arity, has_fingers, append = kit.width, 2 * kit.min_arity, kit.has_fingers, ends.append
    combine, lift, store, has_room = kit.cells.combine, kit.cells.lift, kit.keys.store, supply.has_room
    get, first, open_entry, close_gap, find = nodes.get, nodes.first, nodes.open, nodes.close_gap, search.search
    less, trim = kit.keys.less, upward.trim

    @kit.jit
    def insert_anywhere(s: Tree, key: Any, columns: object, row: int) -> bool:
        if s.at[GAP] != 0 and not less(first(s, s.at[ROOT]), key):
            close_gap(s)
        node, i, is_found = find(s, key)
        place = node * width + 1 + i
        if is_found:
            lift(s.pool, LIFTED, columns, row)
            combine(s.pool, place, place, LIFTED)
        else:
            if get(s.links, node, ARITY) == max_arity:
                if not has_room(s, s.at[HEIGHT] + 2):
                    return False
                close_gap(s)  # a new root changes the left finger too
            open_entry(s, node, i)
            store(s.keys, place, key)
            lift(s.pool, place, columns, row)
            s.at[RECENT] = node
        trim(s, node)
        return True

    @kit.jit
    def insert(s: Tree, key: Any, columns: object, row: int) -> bool:
        if has_fingers and append(s, key, columns, row):
            return True
        return bool(insert_anywhere(s, key, columns, row))

    return insert
