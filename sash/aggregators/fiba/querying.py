"""Answers: of the whole window from three aggregates, of a range along its two borders.

A range meets the tree first in one node: there, it holds entries. What lies between those is there as
aggregates; the rest of the range is below, on two ways down, along its older border and along its
younger one. Nodes on a spine, whose aggregates are not of all below them, only ever lie on these ways.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.fiba.layout import (
    ANSWER,
    ARITY,
    BLOCK,
    COUNT,
    LEFT_FINGER,
    NONE,
    PARENT,
    PART,
    RIGHT_FINGER,
    ROOT,
    Kit,
    Nodes,
    Tree,
)  # fmt: skip
from sash.aggregators.fiba.searching import Searching
from sash.algebra.monoid import Function


class Querying(NamedTuple):
    """The operations that answer."""

    query: Function  # (tree) -> the cell with the aggregate of everything
    query_range: Function  # (tree, first, last) -> the cell with that of all keys between, both included
    size: Function  # (tree) -> number of entries


def querying_of(kit: Kit, nodes: Nodes, search: Searching) -> Querying:
    """Make the operations that answer."""
    jit, width, has_fingers, get, (begin, add, _, end, *_) = (
        kit.jit, kit.width, kit.has_fingers, nodes.get, kit.cells.fold
    )  # fmt: skip

    @jit
    def query(s: Tree) -> int:
        root: int = s.at[ROOT]
        if not has_fingers or get(s.links, root, BLOCK) == NONE:
            return root * width
        held = add(s.pool, ANSWER, begin(s.pool, ANSWER, s.at[LEFT_FINGER] * width), root * width)
        end(s.pool, ANSWER, add(s.pool, ANSWER, held, s.at[RIGHT_FINGER] * width))
        return ANSWER

    @jit
    def size(s: Tree) -> int:
        root = s.at[ROOT]
        count: int = get(s.links, root, COUNT)
        if has_fingers and get(s.links, root, BLOCK) != NONE:
            count += get(s.links, s.at[LEFT_FINGER], COUNT) + get(s.links, s.at[RIGHT_FINGER], COUNT)
        return count

    return Querying(query, _range_querier(kit, nodes, search), size)


def _range_querier(kit: Kit, nodes: Nodes, search: Searching) -> Function:
    clear, transfer, get, child = kit.cells.clear, kit.cells.transfer, nodes.get, nodes.child
    close_gap = nodes.close_gap
    not_before, after, fold, cover = search.not_before, search.after, _part_folder(kit, nodes), _coverer(kit, nodes)
    add_older, add_newer = _borders(kit, nodes, search, fold)

    def query_range(s: Tree, first: Any, last: Any) -> int:
        close_gap(s)
        node = cover(s, first, last)
        begin, end = not_before(s, node, first), after(s, node, last)
        while begin == end:
            if get(s.links, node, BLOCK) == NONE:
                clear(s.pool, ANSWER)
                return ANSWER
            node = child(s, node, begin)
            begin, end = not_before(s, node, first), after(s, node, last)
        fold(s, node, begin, end)
        transfer(s.pool, ANSWER, s.pool, PART)
        if get(s.links, node, BLOCK) != NONE:
            add_older(s, child(s, node, begin), first)
            add_newer(s, child(s, node, end), last)
        return ANSWER

    return kit.apart(query_range)


def _borders(kit: Kit, nodes: Nodes, search: Searching, fold: Function) -> tuple[Function, Function]:
    apart, width, combine, get, child = kit.apart, kit.width, kit.cells.combine, nodes.get, nodes.child
    not_before, after = search.not_before, search.after

    @apart
    def add_older(s: Tree, node: int, first: Any) -> None:
        """Go down along the older border; what is met later is older."""
        while node != NONE:
            begin, n = not_before(s, node, first), get(s.links, node, ARITY) - 1
            is_inner = get(s.links, node, BLOCK) != NONE
            if begin < n:
                fold(s, node, begin, n)
                if is_inner:
                    combine(s.pool, PART, PART, child(s, node, n) * width)
                combine(s.pool, ANSWER, PART, ANSWER)
            node = child(s, node, begin) if is_inner else NONE

    @apart
    def add_newer(s: Tree, node: int, last: Any) -> None:
        """Go down along the younger border; what is met later is younger."""
        while node != NONE:
            end, is_inner = after(s, node, last), get(s.links, node, BLOCK) != NONE
            if end > 0:
                fold(s, node, 0, end)
                if is_inner:
                    combine(s.pool, PART, child(s, node, 0) * width, PART)
                combine(s.pool, ANSWER, ANSWER, PART)
            node = child(s, node, end) if is_inner else NONE

    return add_older, add_newer


def _part_folder(kit: Kit, nodes: Nodes) -> Function:
    width, combine, transfer, get, child = kit.width, kit.cells.combine, kit.cells.transfer, nodes.get, nodes.child

    def fold(s: Tree, node: int, begin: int, end: int) -> None:
        """Fold the entries from begin to end - 1 and the children between them."""
        base, is_inner = node * width + 1, get(s.links, node, BLOCK) != NONE
        transfer(s.pool, PART, s.pool, base + begin)
        for i in range(begin + 1, end):
            if is_inner:
                combine(s.pool, PART, PART, child(s, node, i) * width)
            combine(s.pool, PART, PART, base + i)

    return kit.jit(fold)


def _coverer(kit: Kit, nodes: Nodes) -> Function:
    less, get, first_of, last_of, has_fingers = kit.keys.less, nodes.get, nodes.first, nodes.last, kit.has_fingers

    def cover(s: Tree, first: Any, last: Any) -> int:
        """Find a low node of a spine with the whole range below it; the root, if it is far from both ends."""
        root: int = s.at[ROOT]
        if not has_fingers or get(s.links, root, BLOCK) == NONE:
            return root
        if less(last, first_of(s, root)):
            node: int = s.at[LEFT_FINGER]
            while node != root and less(last_of(s, node), last):
                node = get(s.links, node, PARENT)
            return node
        if less(last_of(s, root), first):
            node = s.at[RIGHT_FINGER]
            while node != root and less(first, first_of(s, node)):
                node = get(s.links, node, PARENT)
            return node
        return root

    return kit.jit(cover)
