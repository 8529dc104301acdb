"""A window as bytes: a header that says whose it is, then registers, links and cells.

    "SASH" | version (1 byte) | checksum of the rest (8 bytes) | plain data

The plain data are [signature, registers, links, pool]. The signature names the algorithm, its form
and the state of every aggregate; a snapshot of anything else is refused. Pools of numbers are
arrays; pools of objects are lists, written by the codec of the aggregate if it has one.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import xxhash

from sash.aggregators.contract import State
from sash.algebra import codec
from sash.algebra.monoid import Monoid, ungraded
from sash.engine.building import Built, new_state, unnested
from sash.errors import FormatError

MAGIC, VERSION = b"SASH", 1
HEADER = struct.Struct(">4sBQ")


def write(built: Built, monoids: tuple[Monoid, ...], state: State) -> bytes:
    """Write a state to bytes."""
    pools = [_dump(pool, monoid) for pool, monoid in zip(unnested(state.pool, len(monoids)), monoids, strict=True)]
    registers, links = [int(x) for x in state.at], [int(x) for x in state.links]
    body = codec.encode([_signature(built, monoids), registers, links, pools])
    return HEADER.pack(MAGIC, VERSION, xxhash.xxh3_64_intdigest(body)) + body


def read(built: Built, monoids: tuple[Monoid, ...], data: bytes) -> State:
    """Read a state written by `write` for the same algorithm and aggregates."""
    signature, registers, links, pools = _open(data)
    wanted = _signature(built, monoids)
    if signature != wanted:
        raise FormatError(f"this snapshot is of {signature}, but the window is of {wanted}")
    state = new_state(built, registers[2] + 1)
    for register, value in enumerate(registers):
        state.at[register] = value
    for place, value in enumerate(links):
        state.links[place] = value
    for pool, dumped, monoid in zip(unnested(state.pool, len(monoids)), pools, monoids, strict=True):
        _load(pool, dumped, monoid)
    return state


def _open(data: bytes) -> Any:
    if len(data) < HEADER.size or data[:4] != MAGIC:
        raise FormatError("not a snapshot: it does not begin with SASH")
    _, version, checksum = HEADER.unpack(data[: HEADER.size])
    if version != VERSION:
        raise FormatError(f"a snapshot of version {version}; this Sash reads version {VERSION}")
    body = data[HEADER.size :]
    if xxhash.xxh3_64_intdigest(body) != checksum:
        raise FormatError("a damaged snapshot: its checksum does not match")
    return codec.decode(body)


def _signature(built: Built, monoids: tuple[Monoid, ...]) -> list[Any]:
    form = "compiled" if built.is_compiled else "interpreted"
    options = [list(option) for option in built.options]
    return [built.algorithm.card.name, form, options, *([monoid.name, str(ungraded(monoid).state)] for monoid in monoids)]


def _dump(pool: Any, monoid: Monoid) -> Any:
    if not isinstance(pool, list):
        return list(_arrays(pool))
    if monoid.codec is None:
        return pool
    return [None if partial is None else monoid.codec.encode(partial) for partial in pool]


def _load(pool: Any, dumped: Any, monoid: Monoid) -> None:
    if not isinstance(pool, list):
        for array, values in zip(_arrays(pool), dumped, strict=True):
            np.copyto(array, values)
    elif monoid.codec is None:
        pool[:] = dumped
    else:
        pool[:] = [None if partial is None else monoid.codec.decode(partial) for partial in dumped]


def _arrays(pool: Any) -> Any:
    """The arrays of a nested pool, in order."""
    if isinstance(pool, tuple):
        for part in pool:
            yield from _arrays(part)
    else:
        yield pool
