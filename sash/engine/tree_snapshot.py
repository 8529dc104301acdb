"""A tree as bytes: the same frame as other snapshots, with registers, links, children, keys and pools.

Nodes keep their numbers, so a tree that is read back has the same shape, and gives the same answers to
the last bit. Room that was never used is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.aggregators.fiba.layout import (
    ARITY,
    BLOCK,
    BLOCKS_END,
    FREE_BLOCK,
    FREE_INNER,
    FREE_LEAF,
    GAP,
    LEFT_FINGER,
    N_BLOCKS,
    N_FIELDS,
    N_NODES,
    N_REGISTERS,
    NODES_END,
    PARENT,
    RECENT,
    RIGHT_FINGER,
    ROOT,
    Tree,
)  # fmt: skip
from sash.algebra.monoid import ungraded
from sash.engine.building import unnested
from sash.engine.snapshot import arrays_of, dump_pool, load_pool, seal, unseal
from sash.engine.trees import Trees, new_tree
from sash.errors import FormatError

LAYOUT = 4  # of fields, registers and scratch places; 3 kept nothing for runs, 2 had no fresh nodes, 1 no suffixes
NODE_REGISTERS = (ROOT, LEFT_FINGER, RIGHT_FINGER, FREE_LEAF, FREE_INNER, RECENT)


def write(trees: Trees, tree: Tree) -> bytes:
    """Write a tree to bytes."""
    n_places = int(tree.at[NODES_END]) * trees.kit.width
    pools = unnested(_cut(tree.pool, n_places), len(trees.wanted.monoids))
    dumped = [dump_pool(pool, monoid) for pool, monoid in zip(pools, trees.wanted.monoids, strict=True)]
    keys = _cut(tree.keys, n_places)
    links = _cut(tree.links, int(tree.at[NODES_END]) * N_FIELDS)
    children = _cut(tree.children, int(tree.at[BLOCKS_END]) * trees.kit.width)
    plain_keys = keys if isinstance(keys, list) else list(arrays_of(keys))
    return seal([_signature(trees), [int(x) for x in tree.at], links, children, plain_keys, dumped])


def read(trees: Trees, data: bytes) -> Tree:
    """Read a tree written by `write` for the same algorithm, keys and aggregates."""
    signature, registers, *rest = unseal(data, n_parts=6)
    wanted = _signature(trees)
    if signature != wanted:
        raise FormatError(f"this snapshot is of {signature}, but the window is of {wanted}")
    try:
        return _filled(trees, registers, *rest)
    except FormatError:
        raise
    except Exception as error:  # whatever a codec makes of bytes that are none of its own
        raise FormatError(f"a snapshot whose parts do not fit together: {error!r}") from error


def _filled(trees: Trees, registers: Any, links: Any, children: Any, keys: Any, pools: Any) -> Tree:
    """Fill a new tree; every number in it is checked, for kernels trust them."""
    n_nodes, n_blocks, width = registers[NODES_END], registers[BLOCKS_END], trees.kit.width
    _require(len(registers) == N_REGISTERS and all(isinstance(x, int) for x in registers), "it has other registers")
    _require(len(links) == n_nodes * N_FIELDS and len(children) == n_blocks * width, "it has other nodes")
    rows = np.asarray(links).reshape(n_nodes, N_FIELDS)
    for numbers, end in (
        (rows[:, PARENT], n_nodes), (rows[:, ARITY], width), (rows[:, BLOCK], n_blocks),
        (np.asarray(children), n_nodes),
        (np.asarray([registers[register] for register in NODE_REGISTERS]), n_nodes),
        (np.asarray([registers[FREE_BLOCK]]), n_blocks),
    ):  # fmt: skip
        _require(bool(((numbers >= 0) & (numbers < end)).all()), "it names nodes that it has not")
    n_left = int(rows[registers[LEFT_FINGER], ARITY])
    _require(0 <= registers[GAP] < width - n_left or registers[GAP] == 0, "its gap is too large")
    tree = new_tree(trees, n_nodes, n_blocks)
    tree.at[:] = registers
    tree.at[N_NODES], tree.at[N_BLOCKS] = n_nodes, n_blocks
    tree.links[:], tree.children[:] = links, children
    for part, values in (
        [(tree.keys, keys)] if isinstance(tree.keys, list) else zip(arrays_of(tree.keys), keys, strict=True)
    ):
        _require(len(part) == len(values), "it has other keys")
        part[:] = values
    for pool, dumped, monoid in zip(unnested(tree.pool, len(pools)), pools, trees.wanted.monoids, strict=True):
        _require(all(len(part) == n_nodes * width for part in dumped), "it has other cells")
        load_pool(pool, dumped, monoid)
    return tree


def _require(claim: bool, found: str) -> None:
    if not claim:
        raise FormatError(f"a snapshot whose parts do not fit together: {found}")


def _cut(part: Any, n: int) -> Any:
    if isinstance(part, tuple):
        return tuple(_cut(each, n) for each in part)
    return part[:n]


def _signature(trees: Trees) -> list[Any]:
    wanted = trees.wanted
    form = "compiled" if wanted.is_compiled else "interpreted"
    return [
        wanted.algorithm, LAYOUT, form, wanted.key_kind, wanted.min_arity,
        *([monoid.name, str(ungraded(monoid).state)] for monoid in wanted.monoids),
    ]  # fmt: skip
