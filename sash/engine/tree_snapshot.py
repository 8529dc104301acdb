"""A tree as bytes: the same frame as other snapshots, with registers, links, children, keys and pools.

Nodes keep their numbers, so a tree that is read back has the same shape, and gives the same answers to
the last bit. Room that was never used is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.aggregators.fiba.layout import BLOCKS_END, N_BLOCKS, N_FIELDS, N_NODES, NODES_END, Tree
from sash.algebra.monoid import ungraded
from sash.engine.building import unnested
from sash.engine.snapshot import _arrays, _dump, _load, seal, unseal
from sash.engine.trees import Trees, new_tree
from sash.errors import FormatError


def write(trees: Trees, tree: Tree) -> bytes:
    """Write a tree to bytes."""
    n_places = int(tree.at[NODES_END]) * trees.kit.width
    pools = unnested(_cut(tree.pool, n_places), len(trees.wanted.monoids))
    dumped = [_dump(pool, monoid) for pool, monoid in zip(pools, trees.wanted.monoids, strict=True)]
    keys = _cut(tree.keys, n_places)
    links = _cut(tree.links, int(tree.at[NODES_END]) * N_FIELDS)
    children = _cut(tree.children, int(tree.at[BLOCKS_END]) * trees.kit.width)
    plain_keys = keys if isinstance(keys, list) else list(_arrays(keys))
    return seal([_signature(trees), [int(x) for x in tree.at], links, children, plain_keys, dumped])


def read(trees: Trees, data: bytes) -> Tree:
    """Read a tree written by `write` for the same algorithm, keys and aggregates."""
    signature, *parts = unseal(data, n_parts=6)
    wanted = _signature(trees)
    if signature != wanted:
        raise FormatError(f"this snapshot is of {signature}, but the window is of {wanted}")
    registers, links, children, keys, pools = parts
    tree = new_tree(trees, registers[NODES_END], registers[BLOCKS_END])
    tree.at[:] = registers
    tree.at[N_NODES], tree.at[N_BLOCKS] = registers[NODES_END], registers[BLOCKS_END]
    tree.links[:] = links
    tree.children[:] = children
    if isinstance(tree.keys, list):
        tree.keys[:] = keys
    else:
        for array, values in zip(_arrays(tree.keys), keys, strict=True):
            np.copyto(array, values)
    for pool, dumped, monoid in zip(unnested(tree.pool, len(pools)), pools, trees.wanted.monoids, strict=True):
        _load(pool, dumped, monoid)
    return tree


def _cut(part: Any, n: int) -> Any:
    if isinstance(part, tuple):
        return tuple(_cut(each, n) for each in part)
    return part[:n]


def _signature(trees: Trees) -> list[Any]:
    wanted = trees.wanted
    form = "compiled" if wanted.is_compiled else "interpreted"
    return [
        wanted.algorithm, form, wanted.key_kind, wanted.min_arity,
        *([monoid.name, str(ungraded(monoid).state)] for monoid in wanted.monoids),
    ]  # fmt: skip
