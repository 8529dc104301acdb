r"""FiBA, the finger B-tree aggregator: rows in any order, each for the logarithm of how late it is.

                            root: inner
                           /     |     \
            left spine: left    up     right :right spine
                       /  |   / | \     |  \
        left finger: left up up up up  up  right :right finger

A B-tree with values in all nodes and keys that are times. An ordinary tree of aggregates must repair the
way to the root whenever anything changes. Here the nodes of both spines aggregate what lies *inward* of
them (see repairing), so a change near an end of the window reaches no further than its finger, and the
whole window is left finger + root + right finger. Searches begin at the fingers too.

Invariants; node y has arity a, entries v[0] to v[a-2] and, unless it is a leaf, children z[0] to z[a-1]
    I1   all leaves are on level 0, and the root is on level HEIGHT
    I2   min_arity <= a <= 2 min_arity; but the root has at least 2 children, or is a leaf, and the left finger
         has at least one entry
    I3   keys increase strictly, from left to right
    I4   every child knows its parent, and the root has none
    I5   non-root nodes that have the oldest or youngest key below them are flagged LEFT or RIGHT, no others
         are; the leaves among them, or a root that is a leaf, are the fingers
    I6   off the spines   y == z[0] + v[0] + z[1] + ... + v[a-2] + z[a-1]
    I7   the root         y == v[0] + z[1] + ... + v[a-2], and without children the sum of its entries
    I8   on the left      y == v[0] + z[1] + ... + v[a-2] + z[a-1] + parent       without parent, if that is
    I9   on the right     y == parent + z[0] + v[0] + ... + z[a-2] + v[a-2]       the root
    I10  counts of entries obey I6 to I9, every entry counting 1
    I11  every node is in the tree, or not in use and on a list or below a node on one, or was never used;
         so is every block of children
    I12  nothing is marked between operations
    I13  the entries are the rows that were inserted and not evicted, those of equal key combined
    I14  with n entries in a left finger that is not the root, suffix j, for 0 < j < n, is the sum of its last j
         entries, + parent, if that is not the root
    I15  entries of a node are side by side; in a left finger that is not the root, all but the oldest are GAP
         places further on, within the node
    I16  an inner node flagged FRESH is on a spine; its last place is what I8 or I9 say without the parent
    I17  an inner node flagged AROUND has a child LATEST off the spines: of what I6 to I9 say without the parent, the
         last place of LATEST holds what is before it, and that of the first other child off the spines what is after
    I18  RECENT is a leaf in use, or none

Cost in calls of combine, d being the distance to the nearer end: insert and evict amortised O(log d), so
O(1) in order, where an append takes 1 and an eviction 0 until a finger is full or empty; query 2; range
O(log); bulk_evict of m amortised O(log m); bulk_insert of m about O(log d + m (1 + log(d / m))). At worst
O(log n). Space: at most 2 (1 + 1 / min_arity) partials a row.

Paper: Tangwongsan, Hirzel, Schneider, "Optimal and general out-of-order sliding-window aggregation",
PVLDB 12 (2019). Bulk operations: the same authors, "Out-of-order sliding-window aggregation with
efficient bulk evictions and insertions", PVLDB 16 (2023).
Errata: figure 7, line 61, must also see whether the *left* spine is hit by way of the sibling. Figure 10,
line 20, leaves out a child: the condition must be i + 1 < arity - 1. In theorems 6 and 7, i_from is the
smallest such index, and i_to the largest.
Departures: instead of two booleans, the highest changed node of each spine is kept. A range is folded
along its two borders, without recursion. bulk_evict goes from the top down and never meets a neighbour
that is not a sibling; bulk_insert moves a cursor instead of collecting lists, and needs no memory.
Evictions take from a right neighbour where there is one. A left finger that may run down, its suffixes and its
gap (see ends), earlier merges on the left spine (see rebalancing), what nodes of the spines keep of their own
(see repairing), and what is kept for late rows that come in runs (see runs) are ours.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from sash.aggregators.contract import ASSOCIATIVE, Algorithm, Card, Jit, Shape, View
from sash.aggregators.fiba.balancing import balancing_of
from sash.aggregators.fiba.bulk_evicting import bulk_evicter
from sash.aggregators.fiba.bulk_inserting import bulk_inserter
from sash.aggregators.fiba.ends import ends_of
from sash.aggregators.fiba.evicting import evicter
from sash.aggregators.fiba.inserting import inserter
from sash.aggregators.fiba.layout import Kit, nodes_of, supply_of
from sash.aggregators.fiba.querying import querying_of
from sash.aggregators.fiba.rebalancing import rebalancing_of
from sash.aggregators.fiba.repairing import repairing_of
from sash.aggregators.fiba.searching import searching_of
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.errors import UnsupportedError


class Timed(NamedTuple):
    """The operations of an algorithm that takes rows in any order of time."""

    insert: Function  # (tree, key, columns, row) -> False if there was no room: nothing has been done then
    evict: Function  # (tree, key) -> whether there was such an entry
    query: Function  # (tree) -> the cell that holds the aggregate
    query_range: Function  # (tree, first, last) -> the cell with that of all keys between, both included
    bulk_insert: Function  # (tree, keys, columns, begin, end) -> row: where room ended, or end
    bulk_evict: Function  # (tree, key): all that is not after the key
    size: Function  # (tree) -> number of entries


def build(kit: Kit) -> Timed:
    """Make the operations for one kind of cell and key."""
    nodes = nodes_of(kit)
    supply, search, repairs = supply_of(kit, nodes), searching_of(kit, nodes), repairing_of(kit, nodes)
    balance = balancing_of(kit, nodes, supply)
    upward = rebalancing_of(kit, nodes, balance, repairs)
    ends = ends_of(kit, nodes, supply, repairs, upward)
    insert = inserter(kit, nodes, supply, search, upward, ends)
    answers = querying_of(kit, nodes, search)
    return Timed(
        insert,
        evicter(kit, nodes, search, repairs, upward, ends),
        answers.query,
        answers.query_range,
        bulk_inserter(kit, nodes, supply, search, repairs, upward, insert),
        bulk_evicter(kit, nodes, supply, search, balance, repairs, upward),
        answers.size,
    )


def refuse_queue(name: str) -> Any:
    """What to say where a queue is wanted."""

    def build_queue(cells: Cells, jit: Jit) -> NoReturn:
        raise UnsupportedError(
            f"{name} holds rows by time, in any order; it is no queue. Use two_stacks_lite for rows in order, "
            f"or sash.aggregator({name!r}, ...), whose insert takes a time and a value"
        )

    return build_queue


def check_queue(view: View) -> None:
    """Nothing: trees are checked by `invariants`."""


ALGORITHM = Algorithm(
    Card(
        "fiba",
        title="Finger B-tree aggregator",
        order="any",
        needs=ASSOCIATIVE,
        amortised="log d",
        worst="log n",
        space="2n (1 + 1/min_arity)",
        bulk="evict log m; insert log d + m (1 + log(d / m))",
        range="any",
        paper="Tangwongsan, Hirzel, Schneider, PVLDB 12 (2019)",
    ),
    Shape(),
    refuse_queue("fiba"),
    check_queue,
)
