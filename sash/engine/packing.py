"""Nodes of a window as the bytes of a chunk, and back: each array of the pool a run of its own.

Cells of fixed width lie in arrays; n cells side by side are n items of one size, written array by
array. Cells of Python values are written one by one, each by the codec of its aggregate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.algebra import codec
from sash.algebra.monoid import Monoid
from sash.engine.building import unnested
from sash.engine.snapshot import arrays_of
from sash.errors import FormatError
from sash.stores import chunks


class Packing:
    """How the cells of one kind of pool are written."""

    def __init__(self, monoids: tuple[Monoid, ...], pool: Any, *, is_compiled: bool, largest: int) -> None:
        self._monoids = monoids
        self.item_size = sum(part[:1].nbytes for part in arrays_of(pool)) if is_compiled else 0
        fitting = chunks.capacity(self.item_size) if is_compiled else 1
        self.n_items = min(fitting, 1 << largest.bit_length() - 1)  # in a chunk: a power of two

    def pack(self, key: bytes, epoch: int, pool: Any, cell: int, n: int) -> bytes:
        """Write n cells side by side."""
        if self.item_size:
            runs = [part[cell : cell + n].tobytes() for part in arrays_of(pool)]
            return chunks.encode(key, epoch, b"".join(runs), self.item_size)
        return chunks.encode_items(key, epoch, [self.encode(pool, cell + i) for i in range(n)])

    def unpack(self, key: bytes, epoch: int, data: bytes, pool: Any, cell: int, n: int) -> None:
        """Read n cells, or more of which the first n are wanted."""
        if not self.item_size:
            self._unpack_objects(key, chunks.decode_items(key, epoch, data), pool, cell, n)
            return
        payload = chunks.decode(key, epoch, data, self.item_size)
        count = len(payload) // self.item_size
        _require_count(key, count, n)
        begin = 0
        for part in arrays_of(pool):
            run = np.frombuffer(payload, part.dtype, count * part[0].size, begin).reshape(count, *part.shape[1:])
            part[cell : cell + n] = run[:n]
            begin += run.nbytes

    def encode(self, pool: Any, cell: int) -> bytes:
        """Write one cell of Python values."""
        partials = [part[cell] for part in unnested(pool, len(self._monoids))]
        return codec.encode([_encoded(partial, m) for partial, m in zip(partials, self._monoids, strict=True)])

    def _unpack_objects(self, key: bytes, items: list[bytes], pool: Any, cell: int, n: int) -> None:
        _require_count(key, len(items), n)
        for i, item in enumerate(items[:n]):
            partials = codec.decode(item)
            if not isinstance(partials, list) or len(partials) != len(self._monoids):
                raise FormatError(f"the chunk {key!r} has partials of other aggregates")
            for part, partial, monoid in zip(unnested(pool, len(partials)), partials, self._monoids, strict=True):
                part[cell + i] = _decoded(partial, monoid)


def _encoded(partial: Any, monoid: Monoid) -> Any:
    return partial if partial is None or monoid.codec is None else monoid.codec.encode(partial)


def _decoded(partial: Any, monoid: Monoid) -> Any:
    return partial if partial is None or monoid.codec is None else monoid.codec.decode(partial)


def _require_count(key: bytes, found: int, wanted: int) -> None:
    if found < wanted:
        raise FormatError(f"the chunk {key!r} has {found} items, wanted {wanted}: it is older than the window")
