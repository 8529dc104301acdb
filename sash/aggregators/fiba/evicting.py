"""Evicting one entry, anywhere: remove it, fill up what has become too small on the way up, repair.

An entry of an inner node is replaced by its neighbour in time, which is in a leaf. The oldest entry of all is
dropped without a search; see ends.
"""

from __future__ import annotations

from typing import Any

from sash.aggregators.fiba.ends import Ends
from sash.aggregators.fiba.layout import ARITY, BLOCK, NONE, PARENT, ROOT, Kit, Nodes, Tree
from sash.aggregators.fiba.rebalancing import Rebalancing
from sash.aggregators.fiba.repairing import Repairing
from sash.aggregators.fiba.searching import Searching
from sash.algebra.monoid import Function


def evicter(kit: Kit, nodes: Nodes, search: Searching, repairs: Repairing, upward: Rebalancing, ends: Ends) -> Function:
    """Make evict(tree, key) -> whether there was such an entry."""
    min_arity, has_fingers, drop, fill = kit.min_arity, kit.has_fingers, ends.drop, upward.fill
    get, close_entry, close_gap, find = nodes.get, nodes.close, nodes.close_gap, search.search
    repair, is_up, evict_inner = repairs.repair, repairs.is_up, _inner_evicter(kit, nodes, repairs, upward.refill)

    @kit.apart
    def evict_anywhere(s: Tree, key: Any) -> bool:
        close_gap(s)
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
        fill(s, node, 0)
        return True

    @kit.jit
    def evict(s: Tree, key: Any) -> bool:
        if has_fingers and drop(s, key):
            return True
        return bool(evict_anywhere(s, key))

    return evict


def _inner_evicter(kit: Kit, nodes: Nodes, repairs: Repairing, refill: Function) -> Function:
    width, min_arity, get, child, shift = kit.width, kit.min_arity, nodes.get, nodes.child, nodes.shift
    close_entry, tidy, follow, settle = nodes.close, repairs.tidy, repairs.follow, repairs.settle

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
        follow(s, top, level)
        settle(s)

    return kit.apart(evict_inner)
