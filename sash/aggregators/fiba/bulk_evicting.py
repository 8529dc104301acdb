r"""Evicting all that is not after a time, at once.

    what goes | what stays                 The way down to the border between them becomes the left
        .     |   __.__                    spine. Each node on it drops its older entries and the
       / \    .--'     \                   subtrees before them; a dropped subtree costs the same
      /   \   |\       /\                  whatever its size. Then the node may be too small, even
     /_____\__| \     /__\                 empty, and is filled up from its right neighbour.

The way begins at the lowest node of a spine that has the border below it. On the right spine, all
outside that node goes, and it becomes the root. On the left spine, all above it stays as it is, but for
an ordinary underflow.

The way is followed from above, and a node on it that still has children to look after gets one child
more than the least: then a merge below leaves it large enough. So the right neighbour of a node on the way
is always a child of the same parent, and one pass will do.
"""

from __future__ import annotations

from typing import Any

from sash.aggregators.fiba.balancing import Balancing
from sash.aggregators.fiba.layout import (
    ARITY,
    BLOCK,
    FLAGS,
    HEIGHT,
    LEFT,
    LEFT_FINGER,
    NONE,
    PARENT,
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


def bulk_evicter(
    kit: Kit,
    nodes: Nodes,
    supply: Supply,
    search: Searching,
    balance: Balancing,
    repairs: Repairing,
    upward: Rebalancing,
) -> Function:
    """Make bulk_evict(tree, key): removes every entry that is not after the key."""
    get, first, less, has_fingers, close_gap = nodes.get, nodes.first, kit.keys.less, kit.has_fingers, nodes.close_gap
    finish, mark, settle, refill = repairs.finish, repairs.mark, repairs.settle, upward.refill
    begin, cut = _beginner(kit, nodes, supply), _cutter(kit, nodes, supply, search)
    fit, mark_root = _fitter(kit, nodes, balance, repairs), _root_marker(kit, nodes, repairs)
    cut_root, follow = _root_cutter(kit, nodes, balance, cut), _follower(kit, nodes, cut, fit)

    def bulk_evict(s: Tree, key: Any) -> None:
        at, old = s.at, s.at[ROOT]
        if has_fingers and (get(s.links, at[LEFT_FINGER], ARITY) == 1 or less(key, first(s, at[LEFT_FINGER]))):
            return
        close_gap(s)
        node, level = begin(s, key)
        top, top_level, is_root = node, level, node == at[ROOT]
        if is_root:
            cut_root(s, key)
            node = at[ROOT]
        else:
            cut(s, node, key)
            parent = get(s.links, node, PARENT)
            fit(s, parent, node, level)
            if at[ROOT] != node:
                above, above_level = refill(s, parent, level + 1)
                finish(s, above, above_level)
        at[LEFT_FINGER] = follow(s, node, key)
        if not has_fingers:
            finish(s, at[LEFT_FINGER], 0)
        elif is_root or at[ROOT] != old:
            mark_root(s)
        else:
            mark(s, top, top_level)
        settle(s)

    return kit.jit(bulk_evict)


def _beginner(kit: Kit, nodes: Nodes, supply: Supply) -> Function:
    less, get, put, first, last = kit.keys.less, nodes.get, nodes.put, nodes.first, nodes.last
    release, has_fingers = supply.release, kit.has_fingers

    def begin(s: Tree, key: Any) -> Any:
        """Find the lowest node of a spine with the border below it; on the right spine, make it the root."""
        at, links, root = s.at, s.links, s.at[ROOT]
        if not has_fingers or get(links, root, BLOCK) == NONE:
            return root, at[HEIGHT]
        node, level = at[LEFT_FINGER], 0
        if less(key, last(s, root)):
            while node != root and not less(key, last(s, node)):
                node, level = get(links, node, PARENT), level + 1
            return node, level
        node = at[RIGHT_FINGER]
        while node != root and less(key, first(s, node)):
            node, level = get(links, node, PARENT), level + 1
        if node != root:
            parent = get(links, node, PARENT)
            put(links, parent, ARITY, get(links, parent, ARITY) - 1)
            release(s, root)
            put(links, node, PARENT, NONE)
            put(links, node, FLAGS, 0)
            at[ROOT], at[HEIGHT] = node, level
        return node, level

    return kit.apart(begin)


def _cutter(kit: Kit, nodes: Nodes, supply: Supply, search: Searching) -> Function:
    width, get, put, child, shift = kit.width, nodes.get, nodes.put, nodes.child, nodes.shift
    after, release, read, write, touch = search.after, supply.release, kit.keys.read, kit.keys.write, nodes.touch

    def cut(s: Tree, node: int, key: Any) -> None:
        """Drop the entries of a node that are not after the key, and the subtrees before them."""
        n, arity, base = after(s, node, key), get(s.links, node, ARITY), node * width + 1
        if n == 0:
            return
        for i in range(n, arity - 1):
            shift(s, base + i, base + i - n)
        if get(s.links, node, BLOCK) != NONE:
            block = get(s.links, node, BLOCK) * width
            for i in range(n):
                release(s, child(s, node, i))
            for i in range(n, arity):
                write(s.children, block + i - n, read(s.children, block + i))
        put(s.links, node, ARITY, arity - n)
        touch(s, node)

    return kit.apart(cut)


def _root_cutter(kit: Kit, nodes: Nodes, balance: Balancing, cut: Function) -> Function:
    get, shrink = nodes.get, balance.shrink

    def cut_root(s: Tree, key: Any) -> None:
        """Cut the root; as long as it has one child only, that becomes the root and is cut."""
        cut(s, s.at[ROOT], key)
        while get(s.links, s.at[ROOT], ARITY) == 1 and get(s.links, s.at[ROOT], BLOCK) != NONE:
            shrink(s)
            cut(s, s.at[ROOT], key)

    return kit.apart(cut_root)


def _follower(kit: Kit, nodes: Nodes, cut: Function, fit: Function) -> Function:
    get, put, child, has_fingers, touch = nodes.get, nodes.put, nodes.child, kit.has_fingers, nodes.touch

    def follow(s: Tree, node: int, key: Any) -> int:
        """Cut and fit what is below a node that is done, down to the leaf that is then the oldest."""
        level = 0  # only told to `tidy`, for nodes on the right spine: they are children of the root, which is marked
        while get(s.links, node, BLOCK) != NONE:
            parent, node = node, child(s, node, 0)
            if has_fingers:
                put(s.links, node, FLAGS, get(s.links, node, FLAGS) | LEFT)
                touch(s, node)  # it may have been on the right spine alone
            cut(s, node, key)
            fit(s, parent, node, level)
        return node

    return kit.apart(follow)


def _fitter(kit: Kit, nodes: Nodes, balance: Balancing, repairs: Repairing) -> Function:
    min_arity, get, child, tidy = kit.min_arity, nodes.get, nodes.child, repairs.tidy
    merge, move_left, shrink = balance.merge, balance.move_left, balance.shrink

    def fit(s: Tree, parent: int, node: int, level: int) -> None:
        """Fill up a first child from its neighbour (restores I2, below the root)."""
        links, neighbour, arity = s.links, child(s, parent, 1), get(s.links, node, ARITY)
        wanted = min_arity if get(links, node, BLOCK) == NONE else min_arity + 1
        if arity >= wanted:
            return
        if arity + get(links, neighbour, ARITY) > 2 * min_arity:
            move_left(s, parent, 0, wanted - arity)
            tidy(s, neighbour, level)
            return
        merge(s, parent, 0)
        if parent == s.at[ROOT] and get(links, parent, ARITY) == 1:
            shrink(s)

    return kit.apart(fit)


def _root_marker(kit: Kit, nodes: Nodes, repairs: Repairing) -> Function:
    get, child, mark = nodes.get, nodes.child, repairs.mark

    def mark_root(s: Tree) -> None:
        """Mark the root and both spines from their beginning."""
        root, level = s.at[ROOT], s.at[HEIGHT] - 1
        mark(s, root, level + 1)
        if get(s.links, root, BLOCK) != NONE:
            mark(s, child(s, root, 0), level)
            mark(s, child(s, root, get(s.links, root, ARITY) - 1), level)

    return kit.apart(mark_root)
