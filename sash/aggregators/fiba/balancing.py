"""Keeping nodes between min_arity and 2 min_arity children: split, merge and move, and the root's two.

All act on neighbouring children of one parent, named by the place of the left one. Aggregates are left
to the caller.
"""

from __future__ import annotations

from typing import NamedTuple

from sash.aggregators.fiba.layout import (
    ARITY,
    BLOCK,
    FLAGS,
    HEIGHT,
    LEFT,
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
from sash.algebra.monoid import Function


class Balancing(NamedTuple):
    """The operations that change the shape of the tree."""

    grow: Function  # (tree): puts a new root above the old one
    shrink: Function  # (tree): the only child of the root becomes the root
    split: Function  # (tree, node) -> its new right neighbour
    merge: Function  # (tree, parent, i): child i + 1 goes into child i
    move_left: Function  # (tree, parent, i, n): n entries of child i + 1 go to child i
    move_right: Function  # (tree, parent, i): one entry of child i goes to child i + 1


def balancing_of(kit: Kit, nodes: Nodes, supply: Supply) -> Balancing:
    """Make the operations that change the shape of the tree."""
    grow, shrink = _heights(kit, nodes, supply)
    return Balancing(
        grow, shrink, _splitter(kit, nodes, supply), _merger(kit, nodes, supply), _left_mover(kit, nodes),
        _right_mover(kit, nodes),
    )  # fmt: skip


def _heights(kit: Kit, nodes: Nodes, supply: Supply) -> tuple[Function, Function]:
    apart, put, child, adopt, has_fingers = kit.apart, nodes.put, nodes.child, nodes.adopt, kit.has_fingers
    new_inner, release = supply.new_inner, supply.release

    @apart
    def grow(s: Tree) -> None:
        old, root = s.at[ROOT], new_inner(s)
        put(s.links, root, PARENT, NONE)
        put(s.links, root, ARITY, 1)
        adopt(s, root, 0, old)
        if has_fingers:
            put(s.links, old, FLAGS, LEFT | RIGHT)
        s.at[ROOT] = root
        s.at[HEIGHT] += 1

    @apart
    def shrink(s: Tree) -> None:
        old = s.at[ROOT]
        root = child(s, old, 0)
        put(s.links, root, PARENT, NONE)
        put(s.links, root, FLAGS, 0)
        put(s.links, old, ARITY, 0)
        release(s, old)
        s.at[ROOT] = root
        s.at[HEIGHT] -= 1

    return grow, shrink


def _splitter(kit: Kit, nodes: Nodes, supply: Supply) -> Function:
    width, min_arity, get, put, child, adopt = kit.width, kit.min_arity, nodes.get, nodes.put, nodes.child, nodes.adopt
    shift, open_entry, open_child, index, touch = nodes.shift, nodes.open, nodes.open_child, nodes.index, nodes.touch
    new_leaf, new_inner = supply.new_leaf, supply.new_inner

    def split(s: Tree, node: int) -> int:
        """Leave min_arity entries, give the next one to the parent and the rest to a new node."""
        links, parent, is_inner = s.links, get(s.links, node, PARENT), get(s.links, node, BLOCK) != NONE
        right = new_inner(s) if is_inner else new_leaf(s)
        arity, base, target = get(links, node, ARITY), node * width + 1, right * width + 1
        for i in range(min_arity + 1, arity - 1):
            shift(s, base + i, target + i - min_arity - 1)
        if is_inner:
            for i in range(min_arity + 1, arity):
                adopt(s, right, i - min_arity - 1, child(s, node, i))
        elif s.at[RIGHT_FINGER] == node:
            s.at[RIGHT_FINGER] = right
        put(links, node, ARITY, min_arity + 1)
        put(links, right, ARITY, arity - min_arity - 1)
        flags = get(links, node, FLAGS)
        put(links, right, FLAGS, flags & RIGHT)
        put(links, node, FLAGS, flags & LEFT)
        i = get(links, parent, ARITY) - 1 if flags & RIGHT else index(s, parent, node)
        open_entry(s, parent, i)
        open_child(s, parent, i + 1)
        shift(s, base + min_arity, parent * width + 1 + i)
        adopt(s, parent, i + 1, right)
        touch(s, parent)
        return int(right)

    return kit.jit(split)


def _merger(kit: Kit, nodes: Nodes, supply: Supply) -> Function:
    width, get, put, child, adopt, shift = kit.width, nodes.get, nodes.put, nodes.child, nodes.adopt, nodes.shift
    close_entry, close_child, release, touch = nodes.close, nodes.close_child, supply.release, nodes.touch

    def merge(s: Tree, parent: int, i: int) -> None:
        """The entry between two children goes down between theirs."""
        links, left, right = s.links, child(s, parent, i), child(s, parent, i + 1)
        n_left, n_right = get(links, left, ARITY), get(links, right, ARITY)
        target = left * width + n_left
        shift(s, parent * width + 1 + i, target)
        for j in range(n_right - 1):
            shift(s, right * width + 1 + j, target + 1 + j)
        if get(links, left, BLOCK) != NONE:
            for j in range(n_right):
                adopt(s, left, n_left + j, child(s, right, j))
        put(links, left, ARITY, n_left + n_right)
        put(links, left, FLAGS, get(links, left, FLAGS) | get(links, right, FLAGS))
        touch(s, left)
        touch(s, parent)
        if s.at[RIGHT_FINGER] == right:
            s.at[RIGHT_FINGER] = left
        close_entry(s, parent, i)
        close_child(s, parent, i + 1)
        put(links, right, ARITY, 0)
        release(s, right)

    return kit.jit(merge)


def _left_mover(kit: Kit, nodes: Nodes) -> Function:
    read, write = kit.keys.read, kit.keys.write
    width, get, put, child, adopt, shift = kit.width, nodes.get, nodes.put, nodes.child, nodes.adopt, nodes.shift
    touch = nodes.touch

    def move_left(s: Tree, parent: int, i: int, n: int) -> None:
        """The entry between the children goes left, and the n-th of the right one takes its place."""
        links, left, right = s.links, child(s, parent, i), child(s, parent, i + 1)
        n_left, n_right = get(links, left, ARITY), get(links, right, ARITY)
        between, target, source = parent * width + 1 + i, left * width + n_left, right * width + 1
        shift(s, between, target)
        for j in range(n - 1):
            shift(s, source + j, target + 1 + j)
        shift(s, source + n - 1, between)
        for j in range(n, n_right - 1):
            shift(s, source + j, source + j - n)
        if get(links, left, BLOCK) != NONE:
            for j in range(n):
                adopt(s, left, n_left + j, child(s, right, j))
            block = get(links, right, BLOCK) * width
            for j in range(block, block + n_right - n):
                write(s.children, j, read(s.children, j + n))
        put(links, left, ARITY, n_left + n)
        put(links, right, ARITY, n_right - n)
        for node in (left, right, parent):
            touch(s, node)

    return kit.jit(move_left)


def _right_mover(kit: Kit, nodes: Nodes) -> Function:
    width, get, put, child, adopt, shift = kit.width, nodes.get, nodes.put, nodes.child, nodes.adopt, nodes.shift
    open_entry, open_child, touch = nodes.open, nodes.open_child, nodes.touch

    def move_right(s: Tree, parent: int, i: int) -> None:
        """The entry between the children goes right, and the last of the left one takes its place."""
        links, left, right = s.links, child(s, parent, i), child(s, parent, i + 1)
        n_left = get(links, left, ARITY)
        open_entry(s, right, 0)
        shift(s, parent * width + 1 + i, right * width + 1)
        shift(s, left * width + n_left - 1, parent * width + 1 + i)
        if get(links, left, BLOCK) != NONE:
            open_child(s, right, 0)
            adopt(s, right, 0, child(s, left, n_left - 1))
        put(links, left, ARITY, n_left - 1)
        for node in (left, right, parent):
            touch(s, node)

    return kit.jit(move_right)
