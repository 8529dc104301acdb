"""Plain data to bytes and back, without ever running what is read.

msgpack carries None, booleans, integers, floats, text, bytes, lists and dicts; extension types add
tuples, sets, integers beyond 64 bits and arrays of numbers. Anything else needs a `Codec` of its
own on the aggregate. No pickle: reading bytes from a file or a store must never execute them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgpack
import numpy as np

from sash.errors import FormatError, UnsupportedError

TUPLE, SET, FROZENSET, INTEGER, ARRAY = 1, 2, 3, 4, 5
DEEPEST = 64  # containers within extension types; reading them recurses, and a stack has an end


def encode(value: Any) -> bytes:
    """Write plain data."""
    return _pack(value, 0)


def decode(data: bytes) -> Any:
    """Read plain data; raises FormatError on anything that is not."""
    return _unpack(data, 0)


def _pack(value: Any, depth: int) -> bytes:
    if depth > DEEPEST:
        raise UnsupportedError(f"data nested more than {DEEPEST} deep cannot be written to bytes; use a flatter state")
    try:
        packed: bytes = msgpack.packb(value, default=partial(_extend, depth=depth + 1), strict_types=True)
    except (ValueError, UnicodeError) as error:
        if isinstance(error, UnsupportedError):
            raise
        raise UnsupportedError(f"this cannot be written to bytes: {error}") from error
    return packed


def _unpack(data: bytes, depth: int) -> Any:
    if depth > DEEPEST:
        raise FormatError(f"data nested more than {DEEPEST} deep")
    try:
        return msgpack.unpackb(data, ext_hook=partial(_restore, depth=depth + 1), strict_map_key=False)
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(f"not plain data: {error}") from error


def _extend(value: Any, depth: int) -> msgpack.ExtType:
    if isinstance(value, tuple):
        return msgpack.ExtType(TUPLE, _pack(list(value), depth))
    if isinstance(value, (set, frozenset)):
        tag = SET if isinstance(value, set) else FROZENSET
        return msgpack.ExtType(tag, b"".join(sorted(_pack([item], depth) for item in value)))
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return msgpack.ExtType(ARRAY, _pack([value.dtype.str, list(value.shape), value.tobytes()], depth))
    if isinstance(value, np.generic):
        return msgpack.ExtType(ARRAY, _pack([value.dtype.str, None, value.tobytes()], depth))
    if isinstance(value, int):
        n_bytes = value.bit_length() // 8 + 1
        return msgpack.ExtType(INTEGER, value.to_bytes(n_bytes, "big", signed=True))
    raise UnsupportedError(
        f"a {type(value).__name__} cannot be written to bytes. Declare a codec on the aggregate: "
        "codec = sash.codec(encode, decode), or use a state of plain data"
    )


def _restore(tag: int, data: bytes, depth: int) -> Any:
    if tag == TUPLE:
        return tuple(_unpack(data, depth))
    if tag in (SET, FROZENSET):
        unpacker = msgpack.Unpacker(ext_hook=partial(_restore, depth=depth + 1), strict_map_key=False)
        unpacker.feed(data)
        items = [item for (item,) in unpacker]
        return set(items) if tag == SET else frozenset(items)
    if tag == INTEGER:
        return int.from_bytes(data, "big", signed=True)
    if tag == ARRAY:
        return _restore_array(*_unpack(data, depth))
    raise FormatError(f"unknown extension type {tag}")


def _restore_array(dtype: str, shape: list[int] | None, data: bytes) -> Any:
    parsed = np.dtype(dtype)
    if parsed.hasobject:
        raise FormatError("an array of objects is not plain data")
    values = np.frombuffer(data, parsed).copy()
    return values[0] if shape is None else values.reshape(shape)
