"""Putting aggregates right, each in the direction it is made in.

    up     of a node off the spines      all below it
    inner  of the root                   all below it, without its first and last child
    left   of a node on the left spine   all below the root's first child, without the node's first child
    right  of a node on the right spine  the mirror image

Up-aggregates are made from below, left and right aggregates from above, along a spine and down to its
finger. An update repairs the up-aggregates on its way, and *marks* the nodes of spines that have
changed: the highest one on each spine, and the root. `settle` then repairs what is marked and the
spine below it. There, nodes have not changed as a rule, only what is above them. So an inner node on a
spine keeps the aggregate of what is its own, without all above, and says that this is FRESH until it
changes: then one combine repairs it. Counts of entries are kept in just the same way, beside every aggregate.

The classic B-tree has up-aggregates only, and nothing is ever marked.
"""

from __future__ import annotations

from typing import NamedTuple

from sash.aggregators.fiba.layout import (
    ARITY,
    BLOCK,
    COUNT,
    FLAGS,
    FRESH,
    LEFT,
    LEFT_LEVEL,
    LEFT_TOP,
    NONE,
    OWN,
    PARENT,
    PART,
    RIGHT,
    RIGHT_LEVEL,
    RIGHT_TOP,
    ROOT,
    ROOT_MARKED,
    SUFFIXES,
    Kit,
    Nodes,
    Tree,
)  # fmt: skip
from sash.algebra.monoid import Function


class Repairing(NamedTuple):
    """The operations on aggregates. Levels count from the leaves, which have level 0."""

    repair: Function  # (tree, node): its own aggregate and count, from what they are made of
    fold_oldest: Function  # (tree, node): the same for the left finger, if it is not the root and has no gap
    is_up: Function  # (tree, node) -> whether its aggregate is of all below it
    mark: Function  # (tree, node, level): a node of a spine, or the root, has changed
    tidy: Function  # (tree, node, level): repairs it if it is off the spines, else marks it
    finish: Function  # (tree, node, level): repairs what follows upward from a change of the node
    settle: Function  # (tree): repairs what is marked, and downward from there


def repairing_of(kit: Kit, nodes: Nodes) -> Repairing:
    """Make the operations on aggregates."""
    jit, get, has_fingers = kit.jit, nodes.get, kit.has_fingers
    fold_oldest, lean = _oldest_folder(kit, nodes), _leaner(kit, nodes)
    repair, mark = _repairer(kit, nodes, fold_oldest, lean), _marker(kit, nodes)

    @jit
    def is_up(s: Tree, node: int) -> bool:
        if has_fingers:
            return bool(node != s.at[ROOT] and get(s.links, node, FLAGS) == 0)
        return bool(node != NONE)

    @jit
    def tidy(s: Tree, node: int, level: int) -> None:
        if is_up(s, node):
            repair(s, node)
        else:
            mark(s, node, level)

    @jit
    def finish(s: Tree, node: int, level: int) -> None:
        while is_up(s, node):
            repair(s, node)
            node, level = get(s.links, node, PARENT), level + 1
        if has_fingers:
            mark(s, node, level)

    return Repairing(repair, fold_oldest, is_up, mark, tidy, finish, _settler(kit, nodes, repair, lean))


def _oldest_folder(kit: Kit, nodes: Nodes) -> Function:
    width, get, put, combine, transfer = kit.width, nodes.get, nodes.put, kit.cells.combine, kit.cells.transfer

    def fold_oldest(s: Tree, node: int) -> None:
        """Fold the left finger from its young end, and keep what comes of it on the way (restores I8 and I14)."""
        pool, aggregate, parent = s.pool, node * width, get(s.links, node, PARENT)
        n = get(s.links, node, ARITY) - 1
        done, after, count = 0, parent * width, n
        if parent == s.at[ROOT]:
            done, after = 1, aggregate if n == 1 else SUFFIXES + 1
            transfer(pool, after, pool, aggregate + n)
        else:
            count += get(s.links, parent, COUNT)
        for j in range(done + 1, n):
            combine(pool, SUFFIXES + j, aggregate + n + 1 - j, after)
            after = SUFFIXES + j
        if done < n:
            combine(pool, aggregate, aggregate + 1, after)
        put(s.links, node, COUNT, count)

    return kit.jit(fold_oldest)


def _leaner(kit: Kit, nodes: Nodes) -> Function:
    width, get, put, combine, transfer = kit.width, nodes.get, nodes.put, kit.cells.combine, kit.cells.transfer

    def lean(s: Tree, node: int) -> None:
        """Repair a fresh node: what is its own, and all above (restores I8 or I9)."""
        links, pool, aggregate, parent = s.links, s.pool, node * width, get(s.links, node, PARENT)
        own, above, count = aggregate + width - 1, parent * width, get(links, node, OWN)
        if parent == s.at[ROOT]:
            transfer(pool, aggregate, pool, own)
        else:
            if get(links, node, FLAGS) & LEFT:
                combine(pool, aggregate, own, above)
            else:
                combine(pool, aggregate, above, own)
            count += get(links, parent, COUNT)
        put(links, node, COUNT, count)

    return kit.jit(lean)


def _repairer(kit: Kit, nodes: Nodes, fold_oldest: Function, lean: Function) -> Function:
    jit, get, put, width, has_fingers = kit.jit, nodes.get, nodes.put, kit.width, kit.has_fingers
    combine, transfer, clear = kit.cells.combine, kit.cells.transfer, kit.cells.clear
    fold_inner = _inner_folder(kit, nodes)

    @jit
    def fold_leaf(s: Tree, node: int, n: int, parent: int) -> None:
        """Fold the entries of a leaf, after all above it, if that is not NONE."""
        aggregate, begin, count = node * width, 0, n
        if parent != NONE:
            transfer(s.pool, aggregate, s.pool, parent * width)
            count += get(s.links, parent, COUNT)
        elif n == 0:
            clear(s.pool, aggregate)
        else:
            transfer(s.pool, aggregate, s.pool, aggregate + 1)
            begin = 1
        for i in range(begin, n):
            combine(s.pool, aggregate, aggregate, aggregate + 1 + i)
        put(s.links, node, COUNT, count)

    def repair(s: Tree, node: int) -> None:
        links, n, parent, flags = s.links, get(s.links, node, ARITY) - 1, NONE, 0
        if has_fingers:
            flags = get(links, node, FLAGS)
            if flags & RIGHT and get(links, node, PARENT) != s.at[ROOT]:
                parent = get(links, node, PARENT)
        if get(links, node, BLOCK) != NONE:
            count = fold_inner(s, node, n)
            put(links, node, COUNT, count)
            if flags != 0:
                transfer(s.pool, node * width + width - 1, s.pool, node * width)
                put(links, node, OWN, count)
                put(links, node, FLAGS, flags | FRESH)
                lean(s, node)
        elif flags & LEFT:
            fold_oldest(s, node)
        else:
            fold_leaf(s, node, n, parent)

    return jit(repair)


def _inner_folder(kit: Kit, nodes: Nodes) -> Function:
    jit, get, child, width, has_fingers = kit.jit, nodes.get, nodes.child, kit.width, kit.has_fingers
    combine, transfer = kit.cells.combine, kit.cells.transfer

    def fold_inner(s: Tree, node: int, n: int) -> int:
        """Fold entries and children into the aggregate, without the children that stand on a spine."""
        links, pool, aggregate, count = s.links, s.pool, node * width, n
        skip = 0
        if has_fingers:
            skip = LEFT | RIGHT if node == s.at[ROOT] else get(links, node, FLAGS)
        if skip & LEFT == 0:
            oldest = child(s, node, 0)
            count += get(links, oldest, COUNT)
            combine(pool, aggregate, oldest * width, aggregate + 1)
        else:
            transfer(pool, aggregate, pool, aggregate + 1)
        for i in range(1, n):
            below = child(s, node, i)
            count += get(links, below, COUNT)
            combine(pool, PART, below * width, aggregate + 1 + i)  # apart, so that one chain waits half as often
            combine(pool, aggregate, aggregate, PART)
        if skip & RIGHT == 0:
            youngest = child(s, node, n)
            count += get(links, youngest, COUNT)
            combine(pool, aggregate, aggregate, youngest * width)
        return count

    return jit(fold_inner)


def _marker(kit: Kit, nodes: Nodes) -> Function:
    get, has_fingers, touch = nodes.get, kit.has_fingers, nodes.touch

    def mark(s: Tree, node: int, level: int) -> None:
        """Remember the highest changed node of a spine; at equal height the later one, which may have replaced it."""
        if not has_fingers:
            return
        at, flags = s.at, get(s.links, node, FLAGS)
        touch(s, node)
        if node == at[ROOT]:
            at[ROOT_MARKED] = 1
        elif flags & LEFT:
            if at[LEFT_TOP] == NONE or level >= at[LEFT_LEVEL]:
                at[LEFT_TOP], at[LEFT_LEVEL] = node, level
        elif at[RIGHT_TOP] == NONE or level >= at[RIGHT_LEVEL]:
            at[RIGHT_TOP], at[RIGHT_LEVEL] = node, level

    return kit.jit(mark)


def _settler(kit: Kit, nodes: Nodes, repair: Function, lean: Function) -> Function:
    jit, get, child, has_fingers = kit.jit, nodes.get, nodes.child, kit.has_fingers

    @jit
    def renew(s: Tree, node: int) -> None:
        if get(s.links, node, FLAGS) & FRESH:
            lean(s, node)
        else:
            repair(s, node)

    def settle(s: Tree) -> None:
        if not has_fingers:
            return
        at = s.at
        if at[ROOT_MARKED]:
            repair(s, at[ROOT])
            at[ROOT_MARKED] = 0
        node = at[LEFT_TOP]
        while node != NONE:
            renew(s, node)
            node = NONE if get(s.links, node, BLOCK) == NONE else child(s, node, 0)
        node = at[RIGHT_TOP]
        while node != NONE:
            renew(s, node)
            node = NONE if get(s.links, node, BLOCK) == NONE else child(s, node, get(s.links, node, ARITY) - 1)
        at[LEFT_TOP] = at[RIGHT_TOP] = NONE

    return jit(settle)
