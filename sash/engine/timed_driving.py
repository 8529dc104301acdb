"""Drivers: loops that take whole columns through a tree.

They end where room does and say at which row; whoever calls them makes room and goes on from there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from sash.aggregators.fiba.layout import Tree
from sash.algebra.monoid import Function
from sash.compiling.jit import entry, interpreted
from sash.engine.trees import Trees, grown


class Leaving(NamedTuple):
    """What comes and goes, row by row: the key that leaves, the key that comes, and the row of values."""

    old: Any
    new: Any
    columns: Any


@lru_cache(maxsize=64)
def rounds_driver(trees: Trees) -> Function:
    """Make drive(tree, leaving, begin, end, results) -> row: evict, insert and query, row by row."""
    insert, evict, query, lower = trees.inner.insert, trees.inner.evict, trees.inner.query, trees.cells.lower
    load = trees.keys.load

    def drive_rounds(s: Tree, leaving: Leaving, begin: int, end: int, results: Any) -> int:
        for row in range(begin, end):
            evict(s, load(leaving.old, row))
            if not insert(s, load(leaving.new, row), leaving.columns, row):
                return row
            lower(results, row, s.pool, query(s))
        return end

    return (entry if trees.wanted.is_compiled else interpreted)(drive_rounds)


def drive(trees: Trees, tree: Tree, driver: Function, leaving: Leaving, n: int, results: Any) -> Tree:
    """Run a driver over n rows, with more room whenever it asks for it; the tree may be another one then."""
    row = 0
    while row < n:
        row = driver(tree, leaving, row, n, results)
        if row < n:
            tree = grown(trees, tree)
    return tree
