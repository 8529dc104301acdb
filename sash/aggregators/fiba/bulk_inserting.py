"""Inserting many entries in order of time: a cursor goes through the tree once, from left to right.

The cursor stands on a node. As long as the next key is before its `limit`, the nearest younger key above
it, the key belongs below the cursor; else the cursor climbs to where it does, and down again. Keys come
in order, so a node it leaves upward will not change any more: its up-aggregate is repaired then, once,
however many entries came to be below it. Nodes whose aggregates are wrong all lie between cursor and root.

Entries younger than all others need no cursor: each is appended, as `insert` does it, for a combine or two.

    m entries within d of the end: O(log d + m (1 + log(d / m))), the size of the part of the tree that has
    all their places, against O(m log d) for one by one
"""

from __future__ import annotations

from typing import Any

from sash.aggregators.fiba.layout import (
    ARITY,
    BLOCK,
    FLAGS,
    HEIGHT,
    LIFTED,
    NONE,
    PARENT,
    RIGHT,
    RIGHT_FINGER,
    ROOT,
    Kit,
    Nodes,
    Supply,
    Tree,
)  # fmt: skip
from sash.aggregators.fiba.rebalancing import Rebalancing
from sash.aggregators.fiba.repairing import Repairing
from sash.aggregators.fiba.searching import Searching
from sash.algebra.monoid import Function


def bulk_inserter(
    kit: Kit, nodes: Nodes, supply: Supply, search: Searching, repairs: Repairing, upward: Rebalancing, append: Function
) -> Function:
    """Make bulk_insert(tree, keys, columns, begin, end) -> row: where room ended, or end."""
    max_arity, load, less, get = 2 * kit.min_arity, kit.keys.load, kit.keys.less, nodes.get
    has_fingers, last = kit.has_fingers, nodes.last
    has_room, start, finish, settle = supply.has_room, search.start, repairs.finish, repairs.settle
    locate, close_gap = _locator(kit, nodes, search), nodes.close_gap
    climb, descend = _climber(kit, nodes, repairs), _descender(kit, nodes, locate)
    join, enter = _joiner(kit, repairs), _enterer(kit, nodes, upward, repairs)

    def bulk_insert(s: Tree, keys: Any, columns: object, begin: int, end: int) -> int:
        row, limit, has_limit = begin, load(keys, begin), True
        close_gap(s)
        node, level = start(s, limit)
        while row < end:
            key = load(keys, row)
            if has_fingers and get(s.links, s.at[RIGHT_FINGER], ARITY) > 1 and less(last(s, s.at[RIGHT_FINGER]), key):
                break
            if has_limit and not less(key, limit):
                node, level = climb(s, node, level, key)
                node, level, i, is_found, has_limit, limit = descend(s, node, level, key)
            else:
                i, is_found = locate(s, node, key)
            if is_found:
                join(s, node, i, level, columns, row)
                has_limit, limit = True, key
            elif get(s.links, node, ARITY) == max_arity:
                if not has_room(s, s.at[HEIGHT] + 2):
                    end = row
                    break
                enter(s, node, i, key, columns, row)
                has_limit, limit = True, key  # the key may have gone elsewhere: look for the next one from above
            else:
                enter(s, node, i, key, columns, row)
            row += 1
        finish(s, node, level)
        settle(s)
        while row < end and append(s, load(keys, row), columns, row):
            row += 1
        return row

    return kit.jit(bulk_insert)


def _locator(kit: Kit, nodes: Nodes, search: Searching) -> Function:
    width, load, less, get, last = kit.width, kit.keys.load, kit.keys.less, nodes.get, nodes.last
    not_before = search.not_before

    def locate(s: Tree, node: int, key: Any) -> Any:
        """Find a key among the entries of a node: (i, is_found)."""
        n = get(s.links, node, ARITY) - 1
        if n > 0 and less(last(s, node), key):
            return n, False
        i = not_before(s, node, key)
        return i, i < n and not less(key, load(s.keys, node * width + 1 + i))

    return kit.jit(locate)


def _climber(kit: Kit, nodes: Nodes, repairs: Repairing) -> Function:
    less, get, last, tidy, mark, is_up = kit.keys.less, nodes.get, nodes.last, repairs.tidy, repairs.mark, repairs.is_up

    def climb(s: Tree, node: int, level: int, key: Any) -> Any:
        """Climb to where the key is below; what is left behind is done."""
        while node != s.at[ROOT] and get(s.links, node, FLAGS) & RIGHT == 0 and less(last(s, node), key):
            tidy(s, node, level)
            node, level = get(s.links, node, PARENT), level + 1
        if not is_up(s, node):
            mark(s, node, level)
        return node, level

    return kit.apart(climb)


def _descender(kit: Kit, nodes: Nodes, locate: Function) -> Function:
    width, load, less, get, child, last = kit.width, kit.keys.load, kit.keys.less, nodes.get, nodes.child, nodes.last

    def descend(s: Tree, node: int, level: int, key: Any) -> Any:
        """Go down to the key or the leaf it belongs to: (node, level, i, is_found, has_limit, limit)."""
        has_limit, limit = False, key
        if get(s.links, node, ARITY) > 1 and less(key, last(s, node)):
            has_limit, limit = True, last(s, node)
        while True:
            i, is_found = locate(s, node, key)
            if is_found or get(s.links, node, BLOCK) == NONE:
                return node, level, i, is_found, has_limit, limit
            if i < get(s.links, node, ARITY) - 1:
                has_limit, limit = True, load(s.keys, node * width + 1 + i)
            node, level = child(s, node, i), level - 1

    return kit.apart(descend)


def _joiner(kit: Kit, repairs: Repairing) -> Function:
    width, combine, lift, mark, is_up = kit.width, kit.cells.combine, kit.cells.lift, repairs.mark, repairs.is_up

    def join(s: Tree, node: int, i: int, level: int, columns: object, row: int) -> None:
        """Combine a row with the entry that has its key."""
        place = node * width + 1 + i
        lift(s.pool, LIFTED, columns, row)
        combine(s.pool, place, place, LIFTED)
        if not is_up(s, node):
            mark(s, node, level)

    return kit.apart(join)


def _enterer(kit: Kit, nodes: Nodes, upward: Rebalancing, repairs: Repairing) -> Function:
    width, lift, store, open_entry, split_up = kit.width, kit.cells.lift, kit.keys.store, nodes.open, upward.split_up
    mark, is_up = repairs.mark, repairs.is_up

    def enter(s: Tree, leaf: int, i: int, key: Any, columns: object, row: int) -> None:
        """Insert a row as entry i of a leaf, and split what overflows."""
        place = leaf * width + 1 + i
        open_entry(s, leaf, i)
        store(s.keys, place, key)
        lift(s.pool, place, columns, row)
        top, level = split_up(s, leaf, 0)
        if level > 0 and not is_up(s, top):
            mark(s, top, level)

    return kit.apart(enter)
