"""The invariants of a tree, checked one by one; see the package for what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from sash.aggregators.contract import same
from sash.aggregators.fiba.keys import key_at
from sash.aggregators.fiba.layout import (
    ARITY,
    AROUND,
    BLOCK,
    BLOCKS_END,
    COUNT,
    FLAGS,
    FREE_BLOCK,
    FREE_INNER,
    FREE_LEAF,
    FRESH,
    GAP,
    HEIGHT,
    LATEST,
    LEFT,
    LEFT_FINGER,
    LEFT_TOP,
    N_FIELDS,
    N_FREE_BLOCKS,
    N_FREE_INNER,
    N_FREE_LEAVES,
    NODES_END,
    NONE,
    OWN,
    PARENT,
    RECENT,
    RIGHT,
    RIGHT_FINGER,
    RIGHT_TOP,
    ROOT,
    ROOT_MARKED,
    SUFFIXES,
    Kit,
    Tree,
)  # fmt: skip


class Check:
    """A tree laid open: `read` gives the partial in a cell, `join` combines partials, None being none."""

    def __init__(self, kit: Kit, tree: Tree, read: Callable[[int], Any], join: Callable[[Any, Any], Any]) -> None:
        self._kit, self._tree, self._read, self._join = kit, tree, read, join
        self._width, self._least = kit.width, kit.min_arity

    def field(self, node: int, which: int) -> int:
        """One number of a node."""
        return int(self._tree.links[node * N_FIELDS + which])

    def children(self, node: int) -> list[int]:
        """The children of a node; none for a leaf."""
        block = self.field(node, BLOCK) * self._width
        return [int(child) for child in self._tree.children[block : block + self.field(node, ARITY)]] if block else []

    def places(self, node: int) -> list[int]:
        """The places of the entries of a node."""
        gap = int(self._tree.at[GAP]) if node == self._tree.at[LEFT_FINGER] else 0
        begin, n = node * self._width + 1, self.field(node, ARITY) - 1
        return [begin + i + (gap if i else 0) for i in range(n)]

    def entries(self, node: int | None = None) -> Iterator[tuple[Any, int]]:
        """The keys in order, each with its place."""
        node = int(self._tree.at[ROOT]) if node is None else node
        children, places = self.children(node), self.places(node)
        for i, place in enumerate(places):
            if children:
                yield from self.entries(children[i])
            yield key_at(self._tree.keys, place), place
        if children:
            yield from self.entries(children[-1])

    def end(self) -> int:
        """The youngest leaf."""
        node = int(self._tree.at[ROOT])
        while self.children(node):
            node = self.children(node)[-1]
        return node

    def nodes(self, node: int | None = None, level: int | None = None) -> Iterator[tuple[int, int]]:
        """All nodes in use, each with its level, parents first."""
        node = int(self._tree.at[ROOT]) if node is None else node
        level = int(self._tree.at[HEIGHT]) if level is None else level
        yield node, level
        for child in self.children(node):
            yield from self.nodes(child, level - 1)

    def all(self, truth: Sequence[tuple[Any, Any]]) -> None:
        """Check I1 to I18; `truth` has the keys in order, each with its partial."""
        self._shape()
        self._spines()
        for node, _ in self.nodes():
            self._aggregate(node)
            self._around(node)
        self._suffixes()
        self._supply()
        self._recent()
        marks = [int(self._tree.at[register]) for register in (ROOT_MARKED, LEFT_TOP, RIGHT_TOP)]
        self._require("I12", marks == [0, 0, 0], marks)
        found = [(key, self._read(place)) for key, place in self.entries()]
        self._require("I13", [key for key, _ in found] == [key for key, _ in truth], "other keys")
        for (key, partial), (_, wanted) in zip(found, truth, strict=True):
            self._require("I13", same(partial, wanted), f"{partial!r}, not {wanted!r}, at {key!r}")

    def _require(self, invariant: str, claim: bool, detail: object) -> None:
        if not claim:
            raise AssertionError(f"{invariant} is broken: {detail}")

    def _shape(self) -> None:
        root = int(self._tree.at[ROOT])
        self._require("I4", self.field(root, PARENT) == NONE, "the root has a parent")
        for node, level in self.nodes():
            arity, children = self.field(node, ARITY), self.children(node)
            self._require("I1", (level == 0) == (not children), f"node {node} on level {level} has {children}")
            self._require("I2", self._least_arity(node) <= arity <= 2 * self._least, f"node {node} has arity {arity}")
            for child in children:
                self._require("I4", self.field(child, PARENT) == node, f"{child} is a child of {node}")
        keys = [key for key, _ in self.entries()]
        self._require("I3", all(x < y for x, y in pairwise(keys)), keys)

    def _least_arity(self, node: int) -> int:
        if node == self._tree.at[ROOT]:
            return 2 if self.children(node) else 1
        return 2 if self._kit.has_fingers and node == self._tree.at[LEFT_FINGER] else self._least

    def _spines(self) -> None:
        if not self._kit.has_fingers:
            return
        flags = {node: 0 for node, _ in self.nodes()}
        for side, end, finger in ((LEFT, 0, LEFT_FINGER), (RIGHT, -1, RIGHT_FINGER)):
            node = int(self._tree.at[ROOT])
            while self.children(node):
                node = self.children(node)[end]
                flags[node] |= side
            self._require("I5", int(self._tree.at[finger]) == node, f"finger {side} is not {node}")
        for node, wanted in flags.items():
            found = self.field(node, FLAGS)
            may_be_fresh = wanted != 0 and self.children(node) != []
            self._require("I5", found & ~(FRESH | AROUND) == wanted, f"node {node} is flagged {found}")
            self._require("I16", may_be_fresh or not found & FRESH, f"node {node} is flagged {found}")

    def _aggregate(self, node: int) -> None:
        root, flags, parent = int(self._tree.at[ROOT]), self.field(node, FLAGS), self.field(node, PARENT)
        skip = self._skip(node)
        name = "I6" if skip == 0 else "I8" if flags & LEFT else "I9" if flags & RIGHT else "I7"
        terms = self._terms(node, skip)
        if flags & FRESH:
            self._require_sum("I16", node, self._last_place(node), OWN, terms)
        if flags & (LEFT | RIGHT) and parent != root:
            above = (self._read(parent * self._width), self.field(parent, COUNT))
            terms = [*terms, above] if flags & LEFT else [above, *terms]
        self._require_sum(name, node, node * self._width, COUNT, terms)

    def _skip(self, node: int) -> int:
        """The sides of a node where a child stands on a spine."""
        if self._kit.has_fingers and node == self._tree.at[ROOT]:
            return LEFT | RIGHT
        return self.field(node, FLAGS) & (LEFT | RIGHT)

    def _last_place(self, node: int) -> int:
        return (node + 1) * self._width - 1

    def _around(self, node: int) -> None:
        """What is kept of a node around the child that changed last."""
        if not self.field(node, FLAGS) & AROUND:
            return
        skip, latest, children = self._skip(node), self.field(node, LATEST), self.children(node)
        off_spines = children[1 if skip & LEFT else 0 : -1 if skip & RIGHT else None]
        self._require("I17", latest in off_spines, f"child {latest} of node {node} was the latest")
        beside = next(child for child in off_spines if child != latest)
        terms, i = self._terms(node, skip), 2 * children.index(latest) - (1 if skip & LEFT else 0)
        for which, place, part in (("before", latest, terms[:i]), ("after", beside, terms[i + 1 :])):
            found, wanted = self._read(self._last_place(place)), self._total(part)
            self._require("I17", same(found, wanted), f"{found!r}, not {wanted!r}, is {which} child {latest} of {node}")

    def _require_sum(self, name: str, node: int, place: int, field: int, terms: list[tuple[Any, int]]) -> None:
        """That a place holds the sum of some partials, and a field of the node (I10) that of their counts."""
        found, total = self._read(place), self._total(terms)
        self._require(name, same(found, total), f"node {node} holds {found!r}, not {total!r}")
        counted, count = self.field(node, field), sum(n for _, n in terms)
        self._require("I10", counted == count, f"node {node} counts {counted}, not {count}")

    def _total(self, terms: Sequence[tuple[Any, int]]) -> Any:
        total = None
        for partial, _ in terms:
            total = self._joined(total, partial)
        return total

    def _suffixes(self) -> None:
        """What is kept of the left finger: suffixes from its young end on, and the gap in it."""
        finger, root, gap = (int(self._tree.at[register]) for register in (LEFT_FINGER, ROOT, GAP))
        if not self._kit.has_fingers or finger == root:
            self._require("I15", gap == 0, f"a gap of {gap}")
            return
        places, parent = self.places(finger), self.field(finger, PARENT)
        self._require("I15", gap >= 0 and gap + len(places) < 2 * self._least, f"a gap of {gap}")
        total = None if parent == root else self._read(parent * self._width)
        for j, place in enumerate(reversed(places[1:]), start=1):
            total, found = self._joined(self._read(place), total), self._read(SUFFIXES + j)
            self._require("I14", same(found, total), f"suffix {j} is {found!r}, not {total!r}")

    def _terms(self, node: int, skip: int) -> list[tuple[Any, int]]:
        """What an aggregate is made of: partials of children and entries in turn, each with its count."""
        terms: list[tuple[Any, int]] = []
        children = self.children(node)
        for i, child in enumerate(children):
            if not ((i == 0 and skip & LEFT) or (i == len(children) - 1 and skip & RIGHT)):
                terms.append((self._read(child * self._width), self.field(child, COUNT)))
            if i < len(children) - 1:
                terms.append((self._read(self.places(node)[i]), 1))
        return terms if children else [(self._read(place), 1) for place in self.places(node)]

    def _recent(self) -> None:
        recent, in_use = int(self._tree.at[RECENT]), [node for node, level in self.nodes() if level == 0]
        self._require("I18", recent == NONE or recent in in_use, f"node {recent} is no leaf in use")

    def _joined(self, older: Any, newer: Any) -> Any:
        if older is None or newer is None:
            return newer if older is None else older
        return self._join(older, newer)

    def _supply(self) -> None:
        at = self._tree.at
        leaves, inner = self._listed(FREE_LEAF), self._listed(FREE_INNER)
        self._require("I11", (len(leaves), len(inner)) == (at[N_FREE_LEAVES], at[N_FREE_INNER]), "lists and lengths")
        self._require("I11", not any(self.field(node, BLOCK) for node in leaves), "a listed leaf has a block")
        used = [node for root in (int(at[ROOT]), *leaves, *inner) for node in self._all_below(root)]
        self._require("I11", sorted(used) == list(range(1, int(at[NODES_END]))), f"nodes {sorted(used)}")
        blocks, block = [self.field(node, BLOCK) for node in used if self.field(node, BLOCK)], int(at[FREE_BLOCK])
        free = []
        while block:
            free.append(block)
            block = int(self._tree.children[block * self._width])
        self._require("I11", len(free) == at[N_FREE_BLOCKS], "blocks and their number")
        self._require("I11", sorted(blocks + free) == list(range(1, int(at[BLOCKS_END]))), f"blocks {blocks} {free}")

    def _listed(self, head: int) -> list[int]:
        node, listed = int(self._tree.at[head]), []
        while node != NONE:
            listed.append(node)
            node = self.field(node, PARENT)
        return listed

    def _all_below(self, node: int) -> Iterator[int]:
        yield node
        for child in self.children(node):
            yield from self._all_below(child)
