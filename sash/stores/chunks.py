"""Chunks: how window data lie in a store.

     0    magic      4   "SWIN"
     4    version    4
     8    checksum   8   xxh3-64 of everything from byte 16 on
    16    epoch      8   of the window that wrote it; the writer of a later one counts on
    24    place      8   xxh3-64 of the key it was written under
    32    count      2   items
    34    length     2   bytes of payload
    36    item size  4   0: items of their own length each
    40    payload        at most 4,040 bytes

Numbers are little-endian. A chunk has at most 4,080 bytes, which in LMDB is one page with its header.
Items are bytes; what they mean, the window knows. Items of one size lie side by side; items of their
own length (objects, as their codec writes them) each have their length before them, in two bytes.

Whoever reads a chunk says under which key and of which epoch, and gets the items or a FormatError
that says what was found: no chunk at all, one of a later version, truncated, damaged, of another key
or stale. Nothing of a payload is ever executed; no pickle is read.

An item too large for a chunk is refused: see docs/decisions/0007.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate

import xxhash

from sash.errors import DataError, FormatError, UnsupportedError

MAGIC, VERSION = b"SWIN", 1
CHUNK_SIZE_MAX = 4080
LEAD = struct.Struct("<4sIQ")
HEAD = struct.Struct("<QQHHI")
PREFIX = struct.Struct("<H")
HEADER_SIZE = LEAD.size + HEAD.size
PAYLOAD_SIZE_MAX = CHUNK_SIZE_MAX - HEADER_SIZE

Payload = bytes | bytearray | memoryview


def capacity(item_size: int) -> int:
    """How many items of a size go into a chunk: the largest power of two that fits.

    A power of two, so that the place of an element is a shift and a mask of its number.

    >>> capacity(8), capacity(16), capacity(4040)
    (256, 128, 1)
    """
    if not 0 < item_size <= PAYLOAD_SIZE_MAX:
        raise _too_large(item_size)
    return 1 << (PAYLOAD_SIZE_MAX // item_size).bit_length() - 1


def encode(key: bytes, epoch: int, items: Payload, item_size: int) -> bytes:
    """Make a chunk of items of one size, side by side in any contiguous buffer.

    >>> chunk = encode(b"w/0", 1, np.arange(3.0).data, 8)
    >>> np.frombuffer(decode(b"w/0", 1, chunk, 8))
    array([0., 1., 2.])
    """
    length = memoryview(items).nbytes
    if length > PAYLOAD_SIZE_MAX or item_size <= 0 or length % item_size:
        raise _misfit(length, item_size)
    return _sealed(key, epoch, length // item_size, item_size, items)


def decode(key: bytes, epoch: int, data: bytes, item_size: int) -> memoryview:
    """The items of a chunk that `encode` made, side by side, not copied; for numpy.frombuffer."""
    count, found = _opened(key, epoch, data)
    if found != item_size or count * item_size + HEADER_SIZE != len(data):
        raise _refused(key, f"it has {count} items of {found} bytes, wanted items of {item_size} bytes")
    return memoryview(data)[HEADER_SIZE:]


def encode_items(key: bytes, epoch: int, items: Sequence[bytes]) -> bytes:
    """Make a chunk of items of their own length each; `n_fitting` says how many go in.

    >>> chunk = encode_items(b"w/0", 1, [b"a", b"", b"long"])
    >>> decode_items(b"w/0", 1, chunk)
    [b'a', b'', b'long']
    """
    if n_fitting(items) < len(items):
        raise DataError(f"{len(items)} items do not fit into a chunk, only the first {n_fitting(items)}")
    payload = b"".join(PREFIX.pack(len(item)) + item for item in items)
    return _sealed(key, epoch, len(items), 0, payload)


def decode_items(key: bytes, epoch: int, data: bytes) -> list[bytes]:
    """The items of a chunk that `encode_items` made."""
    count, item_size = _opened(key, epoch, data)
    if item_size != 0:
        raise _refused(key, f"it has items of {item_size} bytes, wanted items of their own length each")
    items, start = [], HEADER_SIZE
    for _ in range(count):
        end = start + PREFIX.size + int.from_bytes(data[start : start + PREFIX.size], "little")
        items.append(bytes(data[start + PREFIX.size : end]))
        start = end
    if start != len(data):
        raise _refused(key, f"its {count} items do not fill it exactly")
    return items


def epoch_of(data: bytes) -> int | None:
    """The epoch a chunk claims, unchecked; None if this is no chunk at all."""
    if len(data) < HEADER_SIZE or data[:4] != MAGIC:
        return None
    epoch: int = HEAD.unpack_from(data, LEAD.size)[0]
    return epoch


def n_fitting(items: Iterable[bytes]) -> int:
    """How many of these items, from the first on, go into one chunk; an item too large for any is refused."""
    ends = list(accumulate(PREFIX.size + _fitting(len(item)) for item in items))
    return sum(end <= PAYLOAD_SIZE_MAX for end in ends)


def _sealed(key: bytes, epoch: int, count: int, item_size: int, payload: Payload) -> bytes:
    length = memoryview(payload).nbytes
    body = HEAD.pack(epoch, xxhash.xxh3_64_intdigest(key), count, length, item_size) + payload
    return LEAD.pack(MAGIC, VERSION, xxhash.xxh3_64_intdigest(body)) + body


def _opened(key: bytes, epoch: int, data: bytes) -> tuple[int, int]:
    """Count and item size, if the chunk is whole, of this key and of this epoch."""
    if len(data) < HEADER_SIZE or data[:4] != MAGIC:
        raise _refused(key, f"no chunk: {len(data)} bytes that begin with {bytes(data[:4])!r}, not with {MAGIC!r}")
    _, version, checksum = LEAD.unpack_from(data)
    if version != VERSION:
        raise _refused(key, f"it is of version {version}; this Sash reads version {VERSION}")
    found_epoch, place, count, length, item_size = HEAD.unpack_from(data, LEAD.size)
    if xxhash.xxh3_64_intdigest(memoryview(data)[LEAD.size :]) != checksum:
        raise _refused(key, _damage(len(data) - HEADER_SIZE, length))
    if place != xxhash.xxh3_64_intdigest(key):
        raise _refused(key, "it was written under another key")
    if found_epoch != epoch:
        raise _refused(key, f"it is of epoch {found_epoch}, wanted epoch {epoch}")
    return count, item_size


def _damage(found: int, length: int) -> str:
    if found < length:
        return f"it is truncated: {found} of {length} bytes of payload"
    return "it is damaged: its checksum does not match"


def _refused(key: bytes, found: str) -> FormatError:
    return FormatError(f"the chunk {key!r} cannot be used: {found}")


def _fitting(length: int) -> int:
    if PREFIX.size + length > PAYLOAD_SIZE_MAX:
        raise _too_large(length)
    return length


def _misfit(length: int, item_size: int) -> Exception:
    if not 0 < item_size <= PAYLOAD_SIZE_MAX:
        return _too_large(item_size)
    if length % item_size:
        return DataError(f"{length} bytes are no whole number of items of {item_size} bytes")
    return DataError(f"{length} bytes do not fit into a chunk, only {capacity(item_size)} items of {item_size} bytes")


def _too_large(size: int) -> UnsupportedError:
    return UnsupportedError(
        f"an item of {size} bytes does not fit into a chunk: 1 to {PAYLOAD_SIZE_MAX} bytes do, or up to "
        f"{PAYLOAD_SIZE_MAX - PREFIX.size} of an object. Use an aggregate with a smaller state, or keep the "
        "window in memory."
    )
