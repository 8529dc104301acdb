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

from sash.aggregators.contract import END, MASK, OLDEST, State
from sash.algebra import codec
from sash.algebra.monoid import Monoid, ungraded
from sash.engine.building import Built, new_state, unnested
from sash.errors import FormatError

MAGIC, VERSION = b"SASH", 1
HEADER = struct.Struct(">4sBQ")


def write(built: Built, monoids: tuple[Monoid, ...], state: State) -> bytes:
    """Write a state to bytes."""
    pools = [dump_pool(pool, monoid) for pool, monoid in zip(unnested(state.pool, len(monoids)), monoids, strict=True)]
    registers, links = [int(x) for x in state.at], [int(x) for x in state.links]
    return seal([_signature(built, monoids), registers, links, pools])


def read(built: Built, monoids: tuple[Monoid, ...], data: bytes) -> State:
    """Read a state written by `write` for the same algorithm and aggregates."""
    signature, registers, links, pools = unseal(data, n_parts=4)
    wanted = _signature(built, monoids)
    if signature != wanted:
        raise FormatError(f"this snapshot is of {signature}, but the window is of {wanted}")
    try:
        return _fill(built, monoids, registers, links, pools)
    except FormatError:
        raise
    except Exception as error:  # whatever a codec makes of bytes that are none of its own
        raise FormatError(f"a snapshot whose parts do not fit together: {error!r}") from error


def seal(parts: list[Any]) -> bytes:
    """Put plain data behind the header."""
    body = codec.encode(parts)
    return HEADER.pack(MAGIC, VERSION, xxhash.xxh3_64_intdigest(body)) + body


def unseal(data: bytes, *, n_parts: int) -> list[Any]:
    """Read what `seal` wrote, or raise FormatError."""
    if len(data) < HEADER.size or data[:4] != MAGIC:
        raise FormatError("not a snapshot: it does not begin with SASH")
    _, version, checksum = HEADER.unpack(data[: HEADER.size])
    if version != VERSION:
        raise FormatError(f"a snapshot of version {version}; this Sash reads version {VERSION}")
    body = data[HEADER.size :]
    if xxhash.xxh3_64_intdigest(body) != checksum:
        raise FormatError("a damaged snapshot: its checksum does not match")
    parts = codec.decode(body)
    if not isinstance(parts, list) or len(parts) != n_parts:
        raise FormatError(f"not this kind of snapshot: it has not {n_parts} parts")
    return parts


def _fill(built: Built, monoids: tuple[Monoid, ...], registers: Any, links: Any, pools: Any) -> State:
    capacity = _capacity(built, registers, pools)
    state = new_state(built, capacity)
    _require(len(links) == len(state.links), "it has too few or too many links")
    for register, value in enumerate(registers):
        state.at[register] = value
    for place, value in enumerate(links):
        state.links[place] = value
    for pool, dumped, monoid in zip(unnested(state.pool, len(monoids)), pools, monoids, strict=True):
        load_pool(pool, dumped, monoid)
    return state


def _capacity(built: Built, registers: Any, pools: Any) -> int:
    """Slots of the ring, checked against what was written before anything is allocated."""
    numbers = isinstance(registers, list) and all(isinstance(value, int) for value in registers)
    _require(numbers and len(registers) == built.algorithm.shape.n_registers, "it has other registers")
    oldest, end, capacity = registers[OLDEST], registers[END], int(registers[MASK]) + 1
    _require(capacity > 0 and capacity & (capacity - 1) == 0, f"it has {capacity} slots, which is no power of two")
    _require(0 <= oldest <= end <= oldest + capacity, f"its window is {oldest} to {end}")
    n_cells = built.empty_cell(capacity) + 1
    _require(all(len(part) == n_cells for pool in pools for part in pool), f"its pools have not {n_cells} cells")
    return capacity


def _require(claim: bool, found: str) -> None:
    if not claim:
        raise FormatError(f"a snapshot whose parts do not fit together: {found}")


def _signature(built: Built, monoids: tuple[Monoid, ...]) -> list[Any]:
    form = "compiled" if built.is_compiled else "interpreted"
    options = [list(option) for option in built.options]
    aggregates = [[monoid.name, str(ungraded(monoid).state)] for monoid in monoids]
    return [built.algorithm.card.name, form, options, *aggregates]


def dump_pool(pool: Any, monoid: Monoid) -> Any:
    """The pool of one aggregate as plain data."""
    return [_dump_objects(part, monoid) if isinstance(part, list) else part for part in arrays_of(pool)]


def _dump_objects(partials: list[Any], monoid: Monoid) -> list[Any]:
    if monoid.codec is None:
        return partials
    return [None if partial is None else monoid.codec.encode(partial) for partial in partials]


def load_pool(pool: Any, dumped: Any, monoid: Monoid) -> None:
    """Fill a pool with what `dump_pool` gave."""
    for part, values in zip(arrays_of(pool), dumped, strict=True):
        if isinstance(part, list):
            part[:] = _load_objects(values, monoid)
        else:
            _require(values.dtype == part.dtype and values.shape == part.shape, "its cells are of another type")
            np.copyto(part, values)


def _load_objects(dumped: list[Any], monoid: Monoid) -> list[Any]:
    if monoid.codec is None:
        return dumped
    return [None if partial is None else monoid.codec.decode(partial) for partial in dumped]


def arrays_of(pool: Any) -> Any:
    """The arrays, and the lists of objects, of a nested pool, in order."""
    if isinstance(pool, tuple):
        for part in pool:
            yield from arrays_of(part)
    else:
        yield pool
