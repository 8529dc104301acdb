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
from sash.aggregators.fiba.runs import around_of
from sash.algebra.monoid import Function


class Repairing(NamedTuple):
    """The operations on aggregates. Levels count from the leaves, which have level 0."""

    repair: Function  # (tree, node): its own aggregate and count, from what they are made of
    fold_oldest: Function  # (tree, node): the same for the left finger, if it is not the root and has no gap
    is_up: Function  # (tree, node) -> whether its aggregate is of all below it
    mark: Function  # (tree, node, level): a node of a spine, or the root, has changed
    tidy: Function  # (tree, node, level): repairs it if it is off the spines, else marks it
    finish: Function  # (tree, node, level): repairs what follows upward from changes of the node and beside it
    follow: Function  # (tree, node, level): the same where the node and what is below it is all that has changed
    settle: Function  # (tree): repairs what is marked, and downward from there


def repairing_of(kit: Kit, nodes: Nodes) -> Repairing:
    """Make the operations on aggregates."""
    jit, get, put, has_fingers = kit.jit, nodes.get, nodes.put, kit.has_fingers
    fold_oldest, lean = _oldest_folder(kit, nodes), _leaner(kit, nodes)
    fold_inner, mark = _inner_folder(kit, nodes), _marker(kit, nodes)
    repair, around = _repairer(kit, nodes, fold_oldest, fold_inner, lean), around_of(kit, nodes, fold_inner, lean)

    @jit
    def is_up(s: Tree, node: int) -> bool:
        if has_fingers:
            return bool(node != s.at[ROOT] and get(s.links, node, FLAGS) & (LEFT | RIGHT) == 0)
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

    @jit
    def follow(s: Tree, node: int, level: int) -> None:
        links = s.links
        if is_up(s, node):
            n_more = -get(links, node, COUNT)
            repair(s, node)
            n_more += get(links, node, COUNT)
            below, node, level = node, get(links, node, PARENT), level + 1
            while is_up(s, node):  # one aggregate below has changed, and so many entries: no child is asked
                around.fold_up(s, node, below)
                put(links, node, COUNT, get(links, node, COUNT) + n_more)
                below, node, level = node, get(links, node, PARENT), level + 1
            if has_fingers and around.fold_top(s, node, below, level, n_more):
                return
        if has_fingers:
            mark(s, node, level)

    return Repairing(repair, fold_oldest, is_up, mark, tidy, finish, follow, _settler(kit, nodes, repair, lean))


def _oldest_folder(kit: Kit, nodes: Nodes) -> Function:
    width, get, put, transfer = kit.width, nodes.get, nodes.put, kit.cells.transfer
    hold, lead = kit.cells.fold.hold, kit.cells.fold.lead

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
        held = hold(pool, after)
        for j in range(done + 1, n):
            held = lead(pool, SUFFIXES + j, aggregate + n + 1 - j, held)
        if done < n:
            lead(pool, aggregate, aggregate + 1, held)
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


def _repairer(kit: Kit, nodes: Nodes, fold_oldest: Function, fold_inner: Function, lean: Function) -> Function:
    jit, get, put, width, has_fingers = kit.jit, nodes.get, nodes.put, kit.width, kit.has_fingers
    transfer, clear, (begin, add, add_both, end, *_) = kit.cells.transfer, kit.cells.clear, kit.cells.fold

    @jit
    def fold_leaf(s: Tree, node: int, n: int, parent: int) -> None:
        """Fold the entries of a leaf, after all above it, if that is not NONE."""
        aggregate, first, count = node * width, parent * width, n
        if parent != NONE:
            count += get(s.links, parent, COUNT)
        else:
            first = aggregate + 1
        put(s.links, node, COUNT, count)
        if count == 0:
            clear(s.pool, aggregate)
            return
        held, place = begin(s.pool, aggregate, first), aggregate + (1 if parent != NONE else 2)
        while place < aggregate + n:
            held = add_both(s.pool, aggregate, held, place, place + 1, PART)
            place += 2
        if place == aggregate + n:
            held = add(s.pool, aggregate, held, place)
        end(s.pool, aggregate, held)

    def repair(s: Tree, node: int) -> None:
        links, n, parent, flags = s.links, get(s.links, node, ARITY) - 1, NONE, 0
        if has_fingers:
            flags = get(links, node, FLAGS) & (LEFT | RIGHT)
            if flags & RIGHT and get(links, node, PARENT) != s.at[ROOT]:
                parent = get(links, node, PARENT)
        if get(links, node, BLOCK) != NONE:
            skip = LEFT | RIGHT if has_fingers and node == s.at[ROOT] else flags
            count = fold_inner(s, node, node * width, 0, n, skip, True)
            put(links, node, COUNT, count)
            put(links, node, FLAGS, flags | FRESH if flags != 0 else 0)
            if flags != 0:
                transfer(s.pool, node * width + width - 1, s.pool, node * width)
                put(links, node, OWN, count)
                lean(s, node)
        elif flags & LEFT:
            fold_oldest(s, node)
        else:
            fold_leaf(s, node, n, parent)

    return jit(repair)


def _inner_folder(kit: Kit, nodes: Nodes) -> Function:
    get, child, width, (begin, add, add_both, finish, *_) = nodes.get, nodes.child, kit.width, kit.cells.fold

    def fold_inner(s: Tree, node: int, place: int, first: int, end: int, skip: int, counts: bool) -> int:
        """Fold entries from the first on, and the children beside them, but those at the sides that are to be skipped.

        `counts` is known where this is compiled into its callers: they get the count of entries, or nothing of use.
        """
        links, pool, entries, count = s.links, s.pool, node * width + 1, end - first
        if skip & LEFT == 0:
            below = child(s, node, first)
            count += get(links, below, COUNT) if counts else 0
            held = add(pool, place, begin(pool, place, below * width), entries + first)
        else:
            held = begin(pool, place, entries + first)
        for i in range(first + 1, end):
            below = child(s, node, i)
            count += get(links, below, COUNT) if counts else 0
            held = add_both(pool, place, held, below * width, entries + i, PART)  # a chain half as long
        if skip & RIGHT == 0:
            below = child(s, node, end)
            count += get(links, below, COUNT) if counts else 0
            held = add(pool, place, held, below * width)
        finish(pool, place, held)
        return count

    return kit.jit(fold_inner)


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
