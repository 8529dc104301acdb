"""Trees made ready: operations for some aggregates and a kind of key, and room for their nodes.

Kernels allocate nothing. Where an insert could need more nodes than there are, it does nothing and says
so; then the pools are replaced by larger ones, in which every node keeps its number.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from sash.aggregators import btree, fiba
from sash.aggregators.contract import Algorithm, Jit
from sash.aggregators.fiba.keys import OBJECT, Keys, keys_of
from sash.aggregators.fiba.layout import (
    ARITY,
    BLOCKS_END,
    HEIGHT,
    LEFT_FINGER,
    N_BLOCKS,
    N_FIELDS,
    N_FREE_INNER,
    N_NODES,
    N_REGISTERS,
    NODES_END,
    RIGHT_FINGER,
    ROOT,
    Kit,
    Tree,
)  # fmt: skip
from sash.algebra.monoid import Monoid
from sash.algebra.state import Row
from sash.compiling.ahead import ahead
from sash.compiling.cells import Cells
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.interpreted_cells import interpreted_cells
from sash.compiling.jit import compiled, entry, inlined, interpreted
from sash.engine.building import nullable, product

TREES = {"fiba": fiba.ALGORITHM, "btree": btree.ALGORITHM}
SMALLEST = 8  # nodes of an empty tree, the one that is none included
LARGE = 2**12  # nodes, from which on pools grow by a quarter and not to the double


class Wanted(NamedTuple):
    """What decides how a tree is built."""

    algorithm: str
    monoids: tuple[Monoid, ...]
    is_compiled: bool
    key_kind: str
    min_arity: int
    has_nulls: bool = True


class Trees(NamedTuple):
    """A kind of tree; `timed` is called from Python, `inner` from compiled drivers."""

    algorithm: Algorithm
    kit: Kit
    inner: fiba.Timed
    timed: fiba.Timed
    lower: Any
    wanted: Wanted

    @property
    def cells(self) -> Cells:
        """The cells of its pools."""
        return self.kit.cells

    @property
    def keys(self) -> Keys:
        """Its kind of keys."""
        return self.kit.keys


@lru_cache(maxsize=256)
def build_trees(wanted: Wanted) -> Trees:
    """Make the operations of a kind of tree."""
    jit, apart = _compilers(wanted)
    kinds: Any = (nullable if wanted.has_nulls else compiled_cells) if wanted.is_compiled else interpreted_cells
    cells = product([kinds(monoid) for monoid in wanted.monoids], jit)
    keys = keys_of(wanted.key_kind if wanted.is_compiled else OBJECT, jit)
    fetch = ahead(wanted.is_compiled)
    kit = Kit(cells, keys, jit, apart, fetch, wanted.min_arity, wanted.algorithm == "fiba")
    inner = fiba.build(kit)
    timed, lower = inner, cells.lower
    if wanted.is_compiled:
        timed, lower = fiba.Timed(*(entry(operation) for operation in inner)), entry(lower)
    return Trees(TREES[wanted.algorithm], kit, inner, timed, lower, wanted)


def _compilers(wanted: Wanted) -> tuple[Jit, Jit]:
    """How to compile what is small and what is large.

    What is small goes into its callers, but not with loops over rows of a matrix: copied everywhere they took a minute
    or two to compile, and ten seconds where the optimiser is left to choose.
    """
    if not wanted.is_compiled:
        return interpreted, interpreted
    has_rows = any(isinstance(monoid.state, Row) for monoid in wanted.monoids)
    return compiled if has_rows else inlined, compiled


def new_tree(trees: Trees, n_nodes: int = SMALLEST, n_blocks: int = SMALLEST) -> Tree:
    """An empty tree with room for some nodes and blocks."""
    tree = _room(trees, n_nodes, n_blocks)
    tree.links[N_FIELDS + ARITY] = 1
    for register in (ROOT, LEFT_FINGER, RIGHT_FINGER, BLOCKS_END):
        tree.at[register] = 1
    tree.at[NODES_END] = 2
    return tree


def _room(trees: Trees, n_nodes: int, n_blocks: int) -> Tree:
    width, keys = trees.kit.width, trees.keys
    tree = Tree(
        trees.cells.allocate(n_nodes * width),
        keys.allocate(n_nodes * width),
        keys.numbers(n_nodes * N_FIELDS),
        keys.numbers(n_blocks * width),
        keys.registers(N_REGISTERS),
    )
    tree.at[N_NODES], tree.at[N_BLOCKS] = n_nodes, n_blocks
    return tree


def grown(trees: Trees, tree: Tree) -> Tree:
    """The same tree with room for more nodes, or blocks, or both: whichever an insert may lack."""
    at, wanted = tree.at, int(tree.at[HEIGHT]) + 2
    n_nodes, n_blocks = int(at[N_NODES]), int(at[N_BLOCKS])
    larger_nodes = _larger(n_nodes) + wanted if int(at[NODES_END]) + wanted > n_nodes else n_nodes
    lacks_blocks = int(at[BLOCKS_END]) + wanted > n_blocks + int(at[N_FREE_INNER])
    larger = _room(trees, larger_nodes, _larger(n_blocks) + wanted if lacks_blocks else n_blocks)
    for old, new in zip(tree, larger, strict=True):
        copy(old, new)
    larger.at[N_NODES] = larger_nodes
    larger.at[N_BLOCKS] = len(larger.children) // trees.kit.width
    return larger


def _larger(n: int) -> int:
    return 2 * n if n < LARGE else n + n // 4


def copy(old: Any, new: Any) -> None:
    """Copy pools, or parts of them, to the beginning of larger ones of the same kind."""
    if isinstance(old, tuple):
        for source, target in zip(old, new, strict=True):
            copy(source, target)
    else:
        new[: len(old)] = old


def n_bytes(part: Any) -> int:
    """How much memory a tree, or a part of it, takes; for lists, that of the places alone."""
    if isinstance(part, tuple):
        return sum(n_bytes(each) for each in part)
    return 8 * len(part) if isinstance(part, list) else int(part.nbytes)
