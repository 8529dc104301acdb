r"""A classic B-tree with an aggregate in every node: the baseline of the FiBA paper.

                 root: everything
                /       |        \
              up       up        up        each the aggregate of all below it
             / | \    / | \     / | \
            up up up up up up  up up up

The same nodes and the same balancing as fiba, without its two ideas: searches begin at the root, and
every change is carried up to the root. A query reads the root. The source is that of fiba, made with a kit
that has no fingers.

Invariants: I1 to I4 and I11 to I13 of fiba, and I6 and I10 for every node, the root included.

Cost in calls of combine: insert and evict O(log n); query 0; range O(log n); bulk_evict O(log n);
bulk_insert of m about O(log n + m (1 + log(n / m))). Space: at most 2 (1 + 1 / min_arity) partials a row.

Paper: Tangwongsan, Hirzel, Schneider, "Optimal and general out-of-order sliding-window aggregation",
PVLDB 12 (2019), section 3.1.
"""

from __future__ import annotations

from sash.aggregators import fiba
from sash.aggregators.contract import ASSOCIATIVE, Algorithm, Card, Shape

ALGORITHM = Algorithm(
    Card(
        "btree",
        title="B-tree with aggregates",
        order="any",
        needs=ASSOCIATIVE,
        amortised="log n",
        worst="log n",
        space="2n (1 + 1/min_arity)",
        bulk="evict log n; insert log n + m (1 + log(n / m))",
        range="any",
        paper="Tangwongsan, Hirzel, Schneider, PVLDB 12 (2019)",
    ),
    Shape(),
    fiba.refuse_queue("btree"),
    fiba.check_queue,
)
