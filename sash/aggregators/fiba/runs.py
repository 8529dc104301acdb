"""Late rows come in runs: what was folded for one serves the next.

A device that was out of reach sends what it has kept: rows that are late, but next to each other. The first of them
changes all aggregates on its way up, and each takes a fold of all children. The next ones take the same way, where
only one child of each node changes. As it changes a second time, the node folds what is before it and what is
after it, and keeps both; from then on two combines repair it, until something else in it changes.

    node                  z0  v0  z1  v1  z2  v2  z3
    LATEST is z2          `---- before --'    `- after
    last place of z2      before
    last place of z0      after                      the first child, or the one after it if the first is LATEST

The node is flagged AROUND then. On a spine, and at the root, the outermost children are not part of it, and not used.
Other runs elsewhere change other nodes, up to where the ways meet. Searches have a hint for one run: the leaf that
the last row went to.
"""

from __future__ import annotations

from typing import NamedTuple

from sash.aggregators.fiba.layout import (
    ARITY,
    AROUND,
    COUNT,
    FLAGS,
    FRESH,
    LATEST,
    LEFT,
    LEFT_LEVEL,
    LEFT_TOP,
    NONE,
    OWN,
    RIGHT,
    RIGHT_LEVEL,
    RIGHT_TOP,
    ROOT,
    ROOT_MARKED,
    Kit,
    Nodes,
    Tree,
)  # fmt: skip
from sash.algebra.monoid import Function


class Around(NamedTuple):
    """Repairs of an inner node where the aggregate of one child off the spines, `below`, is all that has changed."""

    fold_up: Function  # (tree, node, below): the aggregate of a node off the spines
    fold_top: Function  # (tree, node, below, level, n_more) -> whether that of another is repaired, or else has to be


def around_of(kit: Kit, nodes: Nodes, fold_inner: Function, lean: Function) -> Around:
    """Make the repairs after a change of one child."""
    jit, get, put, touch, width, has_fingers = kit.jit, nodes.get, nodes.put, nodes.touch, kit.width, kit.has_fingers
    fold_around, begin_below = _around_folder(kit, nodes, fold_inner), _spine_follower(kit, nodes)

    @jit
    def fold_up(s: Tree, node: int, below: int) -> None:
        if has_fingers:
            if get(s.links, node, LATEST) == below:
                fold_around(s, node, below, 0, node * width)
                return
            touch(s, node)
            put(s.links, node, LATEST, below)
        fold_inner(s, node, node * width, 0, get(s.links, node, ARITY) - 1, 0, False)

    @jit
    def is_marked(s: Tree) -> bool:
        return bool(s.at[ROOT_MARKED] or s.at[LEFT_TOP] != NONE or s.at[RIGHT_TOP] != NONE)

    @jit
    def fold_top(s: Tree, node: int, below: int, level: int, n_more: int) -> bool:
        links, flags, is_root = s.links, get(s.links, node, FLAGS), node == s.at[ROOT]
        is_latest = get(links, node, LATEST) == below
        put(links, node, LATEST, below)
        if not is_latest or get(links, node, ARITY) < 4 or is_marked(s) or not (is_root or flags & FRESH):
            return False
        if is_root:
            fold_around(s, node, below, LEFT | RIGHT, node * width)
            put(links, node, COUNT, get(links, node, COUNT) + n_more)
        else:
            fold_around(s, node, below, flags & (LEFT | RIGHT), node * width + width - 1)
            put(links, node, OWN, get(links, node, OWN) + n_more)
            lean(s, node)
            begin_below(s, node, flags, level)
        return True

    return Around(fold_up, fold_top)


def _spine_follower(kit: Kit, nodes: Nodes) -> Function:
    get, child = nodes.get, nodes.child

    def begin_below(s: Tree, node: int, flags: int, level: int) -> None:
        """Mark the next node of the spine, which has not changed but for what is above it."""
        at = s.at
        if flags & LEFT:
            at[LEFT_TOP], at[LEFT_LEVEL] = child(s, node, 0), level - 1
        else:
            at[RIGHT_TOP], at[RIGHT_LEVEL] = child(s, node, get(s.links, node, ARITY) - 1), level - 1

    return kit.jit(begin_below)


def _around_folder(kit: Kit, nodes: Nodes, fold_inner: Function) -> Function:
    get, child, width, (begin, add, _, end, *_) = nodes.get, nodes.child, kit.width, kit.cells.fold
    set_apart = _apart_setter(kit, nodes, fold_inner)

    def fold_around(s: Tree, node: int, below: int, skip: int, place: int) -> None:
        """Put what is before the changed child, the child and what is after it together."""
        first = 1 if skip & LEFT else 0
        beside = child(s, node, first)
        if beside == below:
            beside = child(s, node, first + 1)
        before, after = below * width + width - 1, beside * width + width - 1
        if get(s.links, node, FLAGS) & AROUND == 0:
            set_apart(s, node, below, skip, before, after)
        held = begin(s.pool, place, before)
        held = add(s.pool, place, held, below * width)
        end(s.pool, place, add(s.pool, place, held, after))

    return kit.jit(fold_around)


def _apart_setter(kit: Kit, nodes: Nodes, fold_inner: Function) -> Function:
    get, put, index, clear = nodes.get, nodes.put, nodes.index, kit.cells.clear

    def set_apart(s: Tree, node: int, below: int, skip: int, before: int, after: int) -> None:
        """Fold what is before a child, and what is after it (restores I17)."""
        i, n = index(s, node, below), get(s.links, node, ARITY) - 1
        if i == 0:
            clear(s.pool, before)
        else:
            fold_inner(s, node, before, 0, i, skip | RIGHT, False)
        if i == n:
            clear(s.pool, after)
        else:
            fold_inner(s, node, after, i, n, skip | LEFT, False)
        put(s.links, node, FLAGS, get(s.links, node, FLAGS) | AROUND)

    return kit.apart(set_apart)
