"""Where everything of a tree lies: nodes, their entries and their children in flat pools.

Node k has `width` = 2 min_arity + 1 places in keys and pool, from k * width on: the first is that of
its aggregate, the others are those of its entries. An entry has its key and its value at the same
place. One entry more fits than a node may keep: a node overflows before it is split.

    links     parent | arity | flags | count | block | own | latest  seven numbers for each node, and one that is free
    children  a block of 2 min_arity + 1 node numbers for each inner node; leaves have none

Node 0 and block 0 are no node and no block; the places of node 0 serve as scratch, and hold the suffixes of
the left finger (see ends). Entries are side by side, but for a gap after the oldest one of the left finger.
The last place of a node serves too, while it has no entry: see FRESH in repairing, and AROUND in runs.

Nodes that are not in use form two lists, of leaves and of inner nodes, threaded through their parent
fields. A whole subtree is given back by its root alone: its children are listed when the root is
taken into use again, so that giving back costs the same for any size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.contract import Jit
from sash.aggregators.fiba.keys import Keys
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells

PARENT, ARITY, FLAGS, COUNT, BLOCK, OWN, LATEST = range(7)
N_FIELDS = 8  # so that those of a node are in one line of the caches
NONE = 0
LEFT, RIGHT = 1, 2  # flags: on the left or right spine, and not the root
FRESH = 4  # flag of an inner node on a spine: its last place and OWN are of what is its own, without all above
AROUND = 8  # flag of an inner node: last places of its children keep what is before and after the child LATEST

(
    ROOT, LEFT_FINGER, RIGHT_FINGER, HEIGHT,
    N_NODES, NODES_END, FREE_LEAF, FREE_INNER, N_FREE_LEAVES, N_FREE_INNER,
    N_BLOCKS, BLOCKS_END, FREE_BLOCK, N_FREE_BLOCKS,
    ROOT_MARKED, LEFT_TOP, LEFT_LEVEL, RIGHT_TOP, RIGHT_LEVEL,
    GAP, RECENT,
) = range(21)  # fmt: skip
N_REGISTERS = 21

LIFTED, ANSWER, PART = range(3)  # places of node 0
SUFFIXES = 2  # the suffix of j entries is at SUFFIXES + j, up to the last place of node 0


class Tree(NamedTuple):
    """Everything a tree knows."""

    pool: Any
    keys: Any
    links: Any
    children: Any
    at: Any


class Kit(NamedTuple):
    """What every part of the algorithm is made with."""

    cells: Cells
    keys: Keys
    jit: Jit  # for what is compiled into its callers
    apart: Jit  # for what is large and rarely run: calling it costs less than a copy of it in every caller
    fetch: Function  # (keys or pool, place): asks for memory that will be read soon
    min_arity: int
    has_fingers: bool  # False: the classic B-tree, searched from the root, all aggregates upward

    @property
    def width(self) -> int:
        """Places of a node."""
        return 2 * self.min_arity + 1


class Nodes(NamedTuple):
    """The operations on single nodes."""

    get: Function  # (links, node, field) -> number
    put: Function  # (links, node, field, number)
    child: Function  # (tree, node, i) -> node
    adopt: Function  # (tree, node, i, child): makes it child i and tells it so
    index: Function  # (tree, parent, node) -> i
    first: Function  # (tree, node) -> its oldest key
    last: Function  # (tree, node) -> its youngest key
    shift: Function  # (tree, place, other place): copies an entry
    open: Function  # (tree, node, i): makes room for entry i
    close: Function  # (tree, node, i): removes entry i
    open_child: Function  # (tree, node, i): after `open`, makes room for child i
    close_child: Function  # (tree, node, i): after `close`, removes child i
    close_gap: Function  # (tree): puts the entries of the left finger side by side
    touch: Function  # (tree, node): it has changed, and what is kept of it is of no use any more


def nodes_of(kit: Kit) -> Nodes:
    """Make the operations on single nodes."""
    jit, width, transfer = kit.jit, kit.width, kit.cells.transfer
    read, write, load, store = kit.keys.read, kit.keys.write, kit.keys.load, kit.keys.store

    @jit
    def get(links: Any, node: int, field: int) -> Any:
        return read(links, node * N_FIELDS + field)

    @jit
    def put(links: Any, node: int, field: int, number: int) -> None:
        write(links, node * N_FIELDS + field, number)

    @jit
    def child(s: Tree, node: int, i: int) -> Any:
        return read(s.children, get(s.links, node, BLOCK) * width + i)

    @jit
    def adopt(s: Tree, node: int, i: int, offspring: int) -> None:
        write(s.children, get(s.links, node, BLOCK) * width + i, offspring)
        put(s.links, offspring, PARENT, node)

    @jit
    def first(s: Tree, node: int) -> Any:
        return load(s.keys, node * width + 1)

    @jit
    def last(s: Tree, node: int) -> Any:
        return load(s.keys, node * width + get(s.links, node, ARITY) - 1)

    @jit
    def shift(s: Tree, place: int, other: int) -> None:
        store(s.keys, other, load(s.keys, place))
        transfer(s.pool, other, s.pool, place)

    @jit
    def touch(s: Tree, node: int) -> None:
        put(s.links, node, FLAGS, get(s.links, node, FLAGS) & (LEFT | RIGHT))

    shifting = (*_shifting(kit, get, put, shift), touch)
    return Nodes(get, put, child, adopt, _indexer(kit, get), first, last, shift, *shifting)


def _indexer(kit: Kit, get: Function) -> Function:
    read, width = kit.keys.read, kit.width

    def index(s: Tree, parent: int, node: int) -> int:
        """The place of a node among the children of its parent."""
        block, i = get(s.links, parent, BLOCK) * width, 0
        while read(s.children, block + i) != node:
            i += 1
        return i

    return kit.jit(index)


def _shifting(kit: Kit, get: Function, put: Function, shift: Function) -> tuple[Function, ...]:
    jit, width, read, write = kit.jit, kit.width, kit.keys.read, kit.keys.write

    @jit
    def open_entry(s: Tree, node: int, i: int) -> None:
        arity, base = get(s.links, node, ARITY), node * width + 1
        for j in range(arity - 2, i - 1, -1):
            shift(s, base + j, base + j + 1)
        put(s.links, node, ARITY, arity + 1)

    @jit
    def close_entry(s: Tree, node: int, i: int) -> None:
        arity, base = get(s.links, node, ARITY), node * width + 1
        for j in range(i + 1, arity - 1):
            shift(s, base + j, base + j - 1)
        put(s.links, node, ARITY, arity - 1)

    @jit
    def open_child(s: Tree, node: int, i: int) -> None:
        arity, block = get(s.links, node, ARITY), get(s.links, node, BLOCK) * width
        for j in range(arity - 2, i - 1, -1):
            write(s.children, block + j + 1, read(s.children, block + j))

    @jit
    def close_child(s: Tree, node: int, i: int) -> None:
        arity, block = get(s.links, node, ARITY), get(s.links, node, BLOCK) * width
        for j in range(i + 1, arity + 1):
            write(s.children, block + j - 1, read(s.children, block + j))

    return open_entry, close_entry, open_child, close_child, _gap_closer(kit, get, shift)


def _gap_closer(kit: Kit, get: Function, shift: Function) -> Function:
    width, has_fingers = kit.width, kit.has_fingers

    def close_gap(s: Tree) -> None:
        if has_fingers and s.at[GAP] != 0:
            node, gap = s.at[LEFT_FINGER], s.at[GAP]
            base = node * width
            for place in range(base + 2, base + get(s.links, node, ARITY)):
                shift(s, place + gap, place)
            s.at[GAP] = 0

    return kit.jit(close_gap)


class Supply(NamedTuple):
    """Nodes taken into use and given back."""

    has_room: Function  # (tree, n_nodes) -> whether that many nodes, all but one of them inner, are there
    new_leaf: Function  # (tree) -> node
    new_inner: Function  # (tree) -> node
    release: Function  # (tree, node): gives back a node and all nodes below it


def supply_of(kit: Kit, nodes: Nodes) -> Supply:
    """Make the operations that hand out nodes."""
    jit, apart, width, get, put, child = kit.jit, kit.apart, kit.width, nodes.get, nodes.put, nodes.child
    read, write = kit.keys.read, kit.keys.write

    @jit
    def release(s: Tree, node: int) -> None:
        at = s.at
        if get(s.links, node, BLOCK) == NONE:
            put(s.links, node, PARENT, at[FREE_LEAF])
            at[FREE_LEAF] = node
            at[N_FREE_LEAVES] += 1
            if at[RECENT] == node:
                at[RECENT] = NONE
        else:
            at[RECENT] = NONE  # it may be below
            put(s.links, node, PARENT, at[FREE_INNER])
            at[FREE_INNER] = node
            at[N_FREE_INNER] += 1

    @apart
    def take_inner(s: Tree) -> Any:
        """Take an inner node from its list, and list its children in its place."""
        at = s.at
        node = at[FREE_INNER]
        at[FREE_INNER] = get(s.links, node, PARENT)
        at[N_FREE_INNER] -= 1
        for i in range(get(s.links, node, ARITY)):
            release(s, child(s, node, i))
        return node

    @apart
    def dissolve(s: Tree) -> None:
        """Turn an inner node that is not in use into a leaf that is not, and set its block free."""
        node = take_inner(s)
        block = get(s.links, node, BLOCK)
        write(s.children, block * width, s.at[FREE_BLOCK])
        s.at[FREE_BLOCK] = block
        s.at[N_FREE_BLOCKS] += 1
        put(s.links, node, BLOCK, NONE)
        release(s, node)

    @jit
    def new_leaf(s: Tree) -> Any:
        at = s.at
        if at[FREE_LEAF] == NONE and at[NODES_END] == at[N_NODES]:
            dissolve(s)
        node = at[FREE_LEAF]
        if node != NONE:
            at[FREE_LEAF] = get(s.links, node, PARENT)
            at[N_FREE_LEAVES] -= 1
        else:
            node = at[NODES_END]
            at[NODES_END] = node + 1
        put(s.links, node, FLAGS, 0)
        return node

    @jit
    def new_inner(s: Tree) -> Any:
        at = s.at
        if at[FREE_INNER] != NONE:
            node = take_inner(s)
            put(s.links, node, FLAGS, 0)
            return node
        node, block = new_leaf(s), at[FREE_BLOCK]
        if block != NONE:
            at[FREE_BLOCK] = read(s.children, block * width)
            at[N_FREE_BLOCKS] -= 1
        else:
            block = at[BLOCKS_END]
            at[BLOCKS_END] = block + 1
        put(s.links, node, BLOCK, block)
        return node

    @jit
    def has_room(s: Tree, n_nodes: int) -> bool:
        at = s.at
        spare = at[N_NODES] - at[NODES_END]
        while at[FREE_INNER] != NONE and spare + at[N_FREE_LEAVES] + at[N_FREE_INNER] < n_nodes:
            dissolve(s)
        blocks = at[N_BLOCKS] - at[BLOCKS_END] + at[N_FREE_BLOCKS] + at[N_FREE_INNER]
        return bool(spare + at[N_FREE_LEAVES] + at[N_FREE_INNER] >= n_nodes and blocks >= n_nodes)

    return Supply(has_room, new_leaf, new_inner, release)
