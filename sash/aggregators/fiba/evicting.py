"""Evicting one entry, anywhere: remove it, fill up what has become too small on the way up, repair.

An entry of an inner node is replaced by its neighbour in time, which is in a leaf.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.fiba.balancing import Balancing
from sash.aggregators.fiba.layout import ARITY, BLOCK, COUNT, LEFT_FINGER, NONE, PARENT, ROOT, Kit, Nodes, Tree
from sash.aggregators.fiba.repairing import Repairing
from sash.aggregators.fiba.searching import Searching
from sash.algebra.monoid import Function


class Evicting(NamedTuple):
    """The operations that evict."""

    evict: Function  # (tree, key) -> whether there was such an entry
    refill: Function  # (tree, node, level) -> (node, level): fills it up, and what becomes too small above it
    lower_root: Function  # (tree, level): the root has one child, on that level, which becomes the root


def evicting_of(kit: Kit, nodes: Nodes, search: Searching, balance: Balancing, repairs: Repairing) -> Evicting:
    """Make the operations that evict."""
    min_arity, get, close_entry, find = kit.min_arity, nodes.get, nodes.close, search.search
    repair, is_up, finish, settle = repairs.repair, repairs.is_up, repairs.finish, repairs.settle
    lower_root = _root_lowerer(kit, nodes, balance, repairs)
    refill = _refiller(kit, nodes, balance, repairs, lower_root)
    evict_inner, evict_oldest = _inner_evicter(kit, nodes, repairs, refill), _oldest_evicter(kit, nodes)
    has_fingers, less, first = kit.has_fingers, kit.keys.less, nodes.first

    @kit.apart
    def evict_anywhere(s: Tree, key: Any) -> bool:
        node, i, is_found = find(s, key)
        if not is_found:
            return False
        if get(s.links, node, BLOCK) != NONE:
            evict_inner(s, node, i)
            return True
        close_entry(s, node, i)
        if get(s.links, node, ARITY) >= min_arity and not is_up(s, node):
            repair(s, node)  # a finger, or a root that is a leaf: nothing else depends on it
            return True
        node, level = refill(s, node, 0)
        finish(s, node, level)
        settle(s)
        return True

    @kit.jit
    def evict(s: Tree, key: Any) -> bool:
        if has_fingers:
            node = s.at[LEFT_FINGER]
            arity, oldest = get(s.links, node, ARITY), first(s, node)
            least = 2 if node == s.at[ROOT] else min_arity
            if arity > least and not less(oldest, key) and not less(key, oldest):
                evict_oldest(s, node, arity)
                return True
        return bool(evict_anywhere(s, key))

    return Evicting(evict, refill, lower_root)


def _oldest_evicter(kit: Kit, nodes: Nodes) -> Function:
    width, get, put, shift = kit.width, nodes.get, nodes.put, nodes.shift
    combine, transfer = kit.cells.combine, kit.cells.transfer

    def evict_oldest(s: Tree, node: int, arity: int) -> None:
        """Remove the oldest entry of a left finger that can spare it, or of a root that is a leaf.

        What `close` and `repair` would do, without a call: they are handed the whole tree, which takes
        longer than the work itself.
        """
        links, pool, aggregate, parent = s.links, s.pool, node * width, get(s.links, node, PARENT)
        for place in range(aggregate + 2, aggregate + arity):
            shift(s, place, place - 1)
        transfer(pool, aggregate, pool, aggregate + 1)
        for place in range(aggregate + 2, aggregate + arity - 1):
            combine(pool, aggregate, aggregate, place)
        if parent != NONE and parent != s.at[ROOT]:
            combine(pool, aggregate, aggregate, parent * width)
        put(links, node, ARITY, arity - 1)
        put(links, node, COUNT, get(links, node, COUNT) - 1)

    return kit.jit(evict_oldest)


def _root_lowerer(kit: Kit, nodes: Nodes, balance: Balancing, repairs: Repairing) -> Function:
    get, child, shrink, mark = nodes.get, nodes.child, balance.shrink, repairs.mark

    def lower_root(s: Tree, level: int) -> None:
        """Both spines begin one level lower: the new root's children get nothing from above."""
        shrink(s)
        root = s.at[ROOT]
        if get(s.links, root, BLOCK) != NONE:
            mark(s, child(s, root, 0), level - 1)
            mark(s, child(s, root, get(s.links, root, ARITY) - 1), level - 1)

    return kit.apart(lower_root)


def _refiller(kit: Kit, nodes: Nodes, balance: Balancing, repairs: Repairing, lower_root: Function) -> Function:
    min_arity, get, child, index, tidy = kit.min_arity, nodes.get, nodes.child, nodes.index, repairs.tidy
    merge, move_left, move_right = balance.merge, balance.move_left, balance.move_right

    def refill(s: Tree, node: int, level: int) -> Any:
        """Merge with a neighbour that is as small as can be, or take an entry from it (restores I2)."""
        links = s.links
        while node != s.at[ROOT] and get(links, node, ARITY) < min_arity:
            parent = get(links, node, PARENT)
            i = index(s, parent, node)
            is_last = i == get(links, parent, ARITY) - 1
            i = i - 1 if is_last else i
            left, right = child(s, parent, i), child(s, parent, i + 1)
            if get(links, left if is_last else right, ARITY) <= min_arity:
                merge(s, parent, i)
                if parent == s.at[ROOT] and get(links, parent, ARITY) == 1:
                    lower_root(s, level)
                    return left, level
                tidy(s, left, level)
            else:
                if is_last:
                    move_right(s, parent, i)
                else:
                    move_left(s, parent, i, 1)
                tidy(s, left, level)
                tidy(s, right, level)
            node, level = parent, level + 1
        return node, level

    return kit.jit(refill)


def _inner_evicter(kit: Kit, nodes: Nodes, repairs: Repairing, refill: Function) -> Function:
    width, min_arity, get, child, shift = kit.width, kit.min_arity, nodes.get, nodes.child, nodes.shift
    close_entry, tidy, finish, settle = nodes.close, repairs.tidy, repairs.finish, repairs.settle

    def evict_inner(s: Tree, node: int, i: int) -> None:
        """Put the next younger entry in the place of the evicted one, or the next older one."""
        links, height = s.links, 1
        is_younger = get(links, child(s, node, i + 1), ARITY) > min_arity
        leaf = child(s, node, i + 1) if is_younger else child(s, node, i)
        while get(links, leaf, BLOCK) != NONE:
            leaf, height = child(s, leaf, 0 if is_younger else get(links, leaf, ARITY) - 1), height + 1
        j = 0 if is_younger else get(links, leaf, ARITY) - 2
        shift(s, leaf * width + 1 + j, node * width + 1 + i)
        close_entry(s, leaf, j)
        top, level = refill(s, leaf, 0)
        while level < height and top != s.at[ROOT]:
            tidy(s, top, level)
            top, level = get(links, top, PARENT), level + 1
        finish(s, top, level)
        settle(s)

    return kit.apart(evict_inner)
