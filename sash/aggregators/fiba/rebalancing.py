"""What a change leaves too large is split, and what it leaves too small is filled up, on the way up.

A node that is too small merges with a neighbour that has none to spare, else it takes an entry from it. On
the left spine, below the children of the root, it also merges with one that has one to spare, if both fit
into one: rows in order then make one change where they would make two. That costs no more over a whole
life. A split leaves min_arity + 1 children on the left spine, so two must go before the next merge.
Let a node there keep 3 coins when it has min_arity children and 2 when it has twice as many, and let losing
a child bring 3 and gaining one 2: a merge finds 6 and needs 1, 3 for the parent and at most 2 for the node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.fiba.balancing import Balancing
from sash.aggregators.fiba.layout import ARITY, BLOCK, FLAGS, LEFT, NONE, PARENT, ROOT, Kit, Nodes, Tree
from sash.aggregators.fiba.repairing import Repairing
from sash.algebra.monoid import Function


class Rebalancing(NamedTuple):
    """The operations that restore the size of nodes, from one node upward."""

    split_up: Function  # (tree, node, level) -> (node, level): splits it and what overflows above it
    refill: Function  # (tree, node, level) -> (node, level): fills it up, and what becomes too small above it
    trim: Function  # (tree, node): a leaf has changed, and may be too large: split_up, and repair all
    fill: Function  # (tree, node, level): a node has changed, and may be too small: refill, and repair all


def rebalancing_of(kit: Kit, nodes: Nodes, balance: Balancing, repairs: Repairing) -> Rebalancing:
    """Make the operations that restore the size of nodes."""
    lower_root = _root_lowerer(kit, nodes, balance, repairs)
    split_up = _upward_splitter(kit, nodes, balance, repairs)
    refill = _refiller(kit, nodes, balance, repairs, lower_root)
    follow, settle = repairs.follow, repairs.settle

    @kit.apart
    def trim(s: Tree, node: int) -> None:
        top, level = split_up(s, node, 0)
        follow(s, top, level)
        settle(s)

    @kit.apart
    def fill(s: Tree, node: int, level: int) -> None:
        top, level = refill(s, node, level)
        follow(s, top, level)
        settle(s)

    return Rebalancing(split_up, refill, trim, fill)


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
    merge, move_left, move_right, has_fingers = balance.merge, balance.move_left, balance.move_right, kit.has_fingers

    def refill(s: Tree, node: int, level: int) -> Any:
        """Merge with a neighbour, or take an entry from it (restores I2)."""
        links = s.links
        while node != s.at[ROOT] and get(links, node, ARITY) < min_arity:
            parent = get(links, node, PARENT)
            i = index(s, parent, node)
            is_last = i == get(links, parent, ARITY) - 1
            i = i - 1 if is_last else i
            left, right = child(s, parent, i), child(s, parent, i + 1)
            is_left = has_fingers and get(links, node, FLAGS) & LEFT != 0 and parent != s.at[ROOT]
            if get(links, left if is_last else right, ARITY) <= (min_arity + 1 if is_left else min_arity):
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
