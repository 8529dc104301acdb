r"""FlatFAT: a complete binary tree of aggregates over n locations, flat in one array.

                          1 g                        node v is cell v; its children are 2v and 2v + 1
                  /                 \
              2 e                     3 f            letters: the names in the paper's figures
            /     \                 /     \
         4 a       5 b           6 c       7 d
        /   \     /   \         /   \     /   \
       8     9  10     11     12    13  14    15     leaves: n + location
      a[1] a[2] a[3] a[4]    a[5] a[6] a[7] a[8]     the paper counts locations from 1,
       0     1   2     3      4     5   6      7     we count from 0

A change of leaves makes their ancestors wrong. They are put right level by level from below, each
once, however many leaves below it have changed. Those to do next form a list threaded through the
links: link[v] is the node after v, v itself for the last, 0 if v is not on the list. Node 0, which
such a numbering leaves free, has the head of the list as its link and a scratch cell as its cell.

The locations in use are OLDEST to END - 1, each modulo n; cells of nodes with no leaf in use below
them mean nothing and are skipped, so that no neutral element is needed. The reactive aggregator
lets this range run around. It is *inverted* when the last location in use lies before the first;
then nodes above both have no meaning either, for their leaves are not in window order.

Invariants, where the list is empty, or else for nodes that are not on it and above none on it
    I1  the leaf of location i holds lifted[i]              for OLDEST <= i < END
    I2  node v holds the aggregate of the leaves in use below it    if there are any, in window order
    I3  the list holds parents of leaves, each once, and links of other inner nodes are 0
    I4  the root holds the aggregate of all locations in use, in window order, if the list is empty

Cost in calls of combine: n - 1 for a new tree; at most m (1 + ceil(log2(n / m))) for m changed
leaves (theorem 4.2); aggregate 0; prefix and suffix at most ceil(log2 n). Space: 2n partials and n
links, n being rounded up to a power of two.

Paper: Tangwongsan, Hirzel, Schneider, Wu, "General incremental sliding-window aggregation", PVLDB 8
(2015), section 4; algorithms 1, 2 and 3.
Departures: n need not be a power of two; the leaves beyond it are never in use. A level's work list
is built by marking nodes, so that it needs neither a set nor an allocation.
"""

from __future__ import annotations

from typing import NamedTuple

from sash.aggregators.contract import (
    ASSOCIATIVE,
    END,
    MASK,
    OLDEST,
    Algorithm,
    Card,
    Fifo,
    Jit,
    Shape,
    State,
    View,
)
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.errors import UnsupportedError

SCRATCH, HEAD, ROOT = 0, 0, 1  # a cell, a link, and a cell and node

SHAPE = Shape(cells_per_slot=2, links_per_slot=2)


class Tree(NamedTuple):
    """The operations on the tree. Locations i are taken modulo n, so that an element's number will do."""

    touch: Function  # (state, i): the leaf of location i has changed
    write: Function  # (state, i, columns, row): the leaf of location i becomes that row, lifted
    repair: Function  # (state): put right what stands above changed leaves
    prefix: Function  # (state, dst, node): dst becomes the aggregate of all that is not right of the node
    suffix: Function  # (state, dst, node, limit): of all not left of it, up to the last node in use on its level


def operations(cells: Cells, jit: Jit) -> Tree:
    """Make the operations for one kind of cell."""
    lift = cells.lift
    enlist = _enlister(jit)

    @jit
    def touch(s: State, i: int) -> None:
        mask = s.at[MASK]
        enlist(s, (mask + 1 + (i & mask)) >> 1)

    @jit
    def write(s: State, i: int, columns: object, row: int) -> None:
        mask = s.at[MASK]
        lift(s.pool, mask + 1 + (i & mask), columns, row)
        enlist(s, (mask + 1 + (i & mask)) >> 1)

    return Tree(touch, write, _repairer(cells, jit), _prefixer(cells, jit), _suffixer(cells, jit))


def _enlister(jit: Jit) -> Function:
    def enlist(s: State, node: int) -> None:
        """Put a node on the list, unless it is there; the root has the free node 0 for its parent."""
        if node > 0 and s.links[node] == 0:
            head = s.links[HEAD]
            s.links[node] = head if head > 0 else node
            s.links[HEAD] = node

    return jit(enlist)


def _repairer(cells: Cells, jit: Jit) -> Function:
    enlist, recompute = _enlister(jit), _recomputer(cells, jit)

    def repair(s: State) -> None:
        """Recompute the nodes on the list, then their parents, and so on up to the root (restores I2)."""
        links, mask = s.links, s.at[MASK]
        first, last = mask + 1 + (s.at[OLDEST] & mask), mask + 1 + ((s.at[END] - 1) & mask)
        inverted = last < first
        while links[HEAD] > 0:
            node, following = 0, links[HEAD]
            links[HEAD] = 0
            while node != following:
                node = following
                following = links[node]
                links[node] = 0
                recompute(s, node, first, last, inverted)
                enlist(s, node >> 1)
            first, last = first >> 1, last >> 1

    return jit(repair)


def _recomputer(cells: Cells, jit: Jit) -> Function:
    combine, transfer = cells.combine, cells.transfer

    def recompute(s: State, node: int, first: int, last: int, inverted: bool) -> None:
        """Aggregate those children of a node that are in use; first and last are nodes on their level."""
        left, right = 2 * node, 2 * node + 1
        if inverted:
            if left <= last and first <= right:
                return
            has_left, has_right = left <= last or first <= left, right <= last or first <= right
        else:
            has_left, has_right = first <= left <= last, first <= right <= last
        if has_left and has_right:
            combine(s.pool, node, left, right)
        elif has_left:
            transfer(s.pool, node, s.pool, left)
        elif has_right:
            transfer(s.pool, node, s.pool, right)

    return jit(recompute)


def _prefixer(cells: Cells, jit: Jit) -> Function:
    combine, transfer = cells.combine, cells.transfer

    def prefix(s: State, dst: int, node: int) -> None:
        """Climb to the root; where the way comes from the right, what stands on the left is older."""
        transfer(s.pool, dst, s.pool, node)
        while node > ROOT:
            if node & 1:
                combine(s.pool, dst, node - 1, dst)
            node >>= 1

    return jit(prefix)


def _suffixer(cells: Cells, jit: Jit) -> Function:
    combine, transfer = cells.combine, cells.transfer

    def suffix(s: State, dst: int, node: int, limit: int) -> None:
        """Climb to the root; where the way comes from the left, what stands on the right is younger."""
        transfer(s.pool, dst, s.pool, node)
        while node > ROOT:
            if node & 1 == 0 and node < limit:
                combine(s.pool, dst, dst, node + 1)
            node, limit = node >> 1, limit >> 1

    return jit(suffix)


def build(cells: Cells, jit: Jit) -> Fifo:
    """Refuse: locations are fixed, there is no oldest one to evict."""
    raise UnsupportedError(
        "flat_fat keeps values at fixed locations; nothing is inserted or evicted. "
        "Use reactive, which slides a window over it, or sash.aggregator('flat_fat', ..., capacity=n)"
    )


def check(view: View) -> None:
    """Check I1 to I4."""
    oldest, end, n = int(view.at[OLDEST]), int(view.at[END]), int(view.at[MASK]) + 1
    for i in range(oldest, end):
        view.require_cell("I1", n + i % n, i, i + 1)
    waiting = _waiting(view, n)
    outdated = {node >> level for node in waiting for level in range(n.bit_length())}
    for node in set(range(1, n)) - outdated:
        below = _in_use_below(node, n, oldest, end)
        if below and below == list(range(below[0], below[-1] + 1)):
            view.require_cell("I2", node, below[0], below[-1] + 1)
    if not waiting and oldest < end:
        view.require_cell("I4", ROOT, oldest, end)


def _waiting(view: View, n: int) -> list[int]:
    """The nodes on the list (checks I3)."""
    node, following, waiting = 0, int(view.links[HEAD]), []
    while node != following:
        node, following = following, int(view.links[following])
        waiting.append(node)
        view.require("I3", n <= 2 * node < 2 * n and len(waiting) <= n, f"{waiting} are on the list")
    listed = [node for node in range(1, n) if view.links[node] != 0]
    view.require("I3", sorted(waiting) == listed, f"{waiting} are on the list, {listed} are marked")
    return waiting


def _in_use_below(node: int, n: int, oldest: int, end: int) -> list[int]:
    """The elements below a node, from left to right."""
    width = n >> (node.bit_length() - 1)
    start = node * width - n
    elements = (oldest + (location - oldest) % n for location in range(start, start + width))
    return [i for i in elements if i < end]


ALGORITHM = Algorithm(
    Card(
        "flat_fat",
        title="FlatFAT",
        order="any",
        needs=ASSOCIATIVE,
        amortised="log2 n",
        worst="log2 n",
        space="2n",
        bulk="m (1 + log2(n / m))",
        range="prefix, suffix",
        paper="Tangwongsan, Hirzel, Schneider, Wu, PVLDB 8 (2015)",
    ),
    SHAPE,
    build,
    check,
)
