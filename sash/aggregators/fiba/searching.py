"""Finding a key: from the nearer finger up to where it must be below, and down again.

A finger is the leaf at an end of the tree. Climbing from it, a node on the right spine holds all keys
not before its first, and a node on the left spine all keys not after its last; so a key d places from
an end is found in O(log d).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.fiba.layout import (
    ARITY,
    BLOCK,
    HEIGHT,
    LEFT_FINGER,
    NONE,
    PARENT,
    RECENT,
    RIGHT_FINGER,
    ROOT,
    Kit,
    Nodes,
    Tree,
)  # fmt: skip
from sash.algebra.monoid import Function

A_LINE = 8  # numbers in a line of the caches


class Searching(NamedTuple):
    """The operations that find keys."""

    not_before: Function  # (tree, node, key) -> the first entry of the node that is not before the key
    after: Function  # (tree, node, key) -> its first entry that is after the key
    start: Function  # (tree, key) -> (node, level): the key is below that node, or would be
    search: Function  # (tree, key) -> (node, i, is_found): its entry, or where in which leaf it belongs


def searching_of(kit: Kit, nodes: Nodes) -> Searching:
    """Make the operations that find keys."""
    jit, width, get, child = kit.jit, kit.width, nodes.get, nodes.child
    load, less = kit.keys.load, kit.keys.less
    start = _starter(kit, nodes)
    near, ask_ahead = _nearer(kit, nodes, start), _asking(kit, nodes)

    @jit
    def not_before(s: Tree, node: int, key: Any) -> int:
        n, base = get(s.links, node, ARITY) - 1, node * width + 1
        i: int = n
        while i > 0 and not less(load(s.keys, base + i - 1), key):
            i -= 1
        return i

    @jit
    def after(s: Tree, node: int, key: Any) -> int:
        n, base = get(s.links, node, ARITY) - 1, node * width + 1
        i = 0
        while i < n and not less(key, load(s.keys, base + i)):
            i += 1
        return i

    @jit
    def search(s: Tree, key: Any) -> Any:
        node, is_far = near(s, key)
        while True:
            i = not_before(s, node, key)
            if i < get(s.links, node, ARITY) - 1 and not less(key, load(s.keys, node * width + 1 + i)):
                return node, i, True
            if get(s.links, node, BLOCK) == NONE:
                return node, i, False
            if is_far:
                ask_ahead(s, node, i)
            node = child(s, node, i)

    return Searching(not_before, after, start, search)


def _nearer(kit: Kit, nodes: Nodes, start: Function) -> Function:
    less, get, first, last, has_fingers = kit.keys.less, nodes.get, nodes.first, nodes.last, kit.has_fingers

    @kit.jit
    def spans(s: Tree, node: int, key: Any) -> bool:
        if get(s.links, node, ARITY) == 1:
            return False
        return not less(key, first(s, node)) and not less(last(s, node), key)

    def near(s: Tree, key: Any) -> Any:
        """Find a node that the key is below: the leaf of the last insert or its parent, else from a finger.

        Whether that is far from where rows have come of late: then the way down may be in none of the caches.
        """
        node = s.at[RECENT]
        if has_fingers and node != NONE:
            if spans(s, node, key):
                return node, False
            node = get(s.links, node, PARENT)
            if node != NONE and spans(s, node, key):
                return node, False
        node, level = start(s, key)
        return node, level > 1

    return kit.jit(near)


def _asking(kit: Kit, nodes: Nodes) -> Function:
    width, get, child, fetch = kit.width, nodes.get, nodes.child, kit.fetch

    def ask_ahead(s: Tree, node: int, i: int) -> None:
        """Ask for what will be read below: the entries of a child, and the aggregates of leaves beside it."""
        below = child(s, node, i)
        for place in range(below * width, below * width + width, A_LINE):
            fetch(s.keys, place)
            fetch(s.pool, place)
        if get(s.links, below, BLOCK) == NONE:
            for j in range(get(s.links, node, ARITY)):
                fetch(s.pool, child(s, node, j) * width)

    return kit.jit(ask_ahead)


def _starter(kit: Kit, nodes: Nodes) -> Function:
    less, get, first, last = kit.keys.less, nodes.get, nodes.first, nodes.last
    has_fingers = kit.has_fingers

    def start(s: Tree, key: Any) -> Any:
        """Find the lowest node of a spine that the key is below; the root if it is far from both ends."""
        root, node, level = s.at[ROOT], s.at[RIGHT_FINGER], 0
        if not has_fingers or node == root:
            return root, s.at[HEIGHT]
        if less(key, first(s, root)):
            node = s.at[LEFT_FINGER]
            while node != root and less(last(s, node), key):
                node, level = get(s.links, node, PARENT), level + 1
            return node, level
        if less(last(s, root), key):
            while node != root and less(key, first(s, node)):
                node, level = get(s.links, node, PARENT), level + 1
            return node, level
        return root, s.at[HEIGHT]

    return kit.jit(start)
