"""Between Arrow arrays and NumPy arrays, without copying where the bytes are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TICKS = {8: np.dtype("i8"), 4: np.dtype("i4")}
SMALL = 1 << 16  # bytes
VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def single(array: Any) -> Any:
    """One array out of any number of chunks, in a type that Arrow's functions take."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.cast(array.type.storage_type)
    if array.type in VIEWS:
        array = array.cast(VIEWS[array.type])
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if isinstance(array, pa.ChunkedArray):
        array = _joined(array)
    return array


def _joined(array: Any) -> Any:
    if pa.types.is_dictionary(array.type):
        array = array.unify_dictionaries()
    if array.num_chunks > 1 and (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        wide = pa.large_string() if pa.types.is_string(array.type) else pa.large_binary()
        array = array.cast(wide)  # all chunks together may have more than 2**31 bytes
    if array.num_chunks == 1:
        return array.chunk(0)
    return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)


def room(n: int, dtype: Any) -> Any:
    """An array, whatever is in it, in memory that Arrow keeps at hand: pages fresh from the system cost far more."""
    dtype = np.dtype(dtype)
    n_bytes = n * dtype.itemsize
    return np.empty(n, dtype) if n_bytes < SMALL else np.frombuffer(pa.allocate_buffer(n_bytes), dtype)


def valid_of(array: Any) -> Any:
    """Which values are not null; None: all."""
    return None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)


def fixed_values(array: Any, dtype: Any) -> Any:
    """The values of an array of fixed width as they lie in memory; anything may stand under a null."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array)]


def booleans(array: Any) -> Any:
    """A boolean array; null is false."""
    return pc.fill_null(array, False).to_numpy(zero_copy_only=False)


def tick_dtype(arrow_type: Any) -> Any:
    """The integers in which times, dates and durations are kept."""
    return TICKS[arrow_type.bit_width // 8]


def to_fixed(arrow_type: Any, values: Any, valid: Any) -> Any:
    """An Arrow array of fixed width over the bytes of a NumPy array."""
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(arrow_type, len(values), [bitmap(valid), data])


def bitmap(valid: Any) -> Any:
    """Validity as Arrow wants it; None: everything is valid."""
    if valid is None or valid.all():
        return None
    return pa.array(valid).buffers()[1]


def decimal_words(array: Any) -> Any:
    """Decimals as rows of two 64-bit words, the lower one first."""
    wide = array if pa.types.is_decimal128(array.type) else array.cast(pa.decimal128(38, array.type.scale))
    buffer = wide.buffers()[1]
    if buffer is None or len(wide) == 0:
        return np.zeros((len(wide), 2), np.int64)
    return np.frombuffer(buffer, np.int64).reshape(-1, 2)[wide.offset : wide.offset + len(wide)]


def decimals(arrow_type: Any, values: Any, valid: Any) -> Any:
    """Scaled integers, of 64 bits or Python's own, as decimals."""
    words = np.zeros((len(values), 2), np.int64)
    if values.dtype.kind == "f":  # nothing but nulls: then nobody knows what type they would have
        return pa.nulls(len(values), arrow_type)
    if values.dtype == object:
        data = b"".join(int(value or 0).to_bytes(16, "little", signed=True) for value in values)
        words = np.frombuffer(data, np.int64).reshape(-1, 2)
    else:
        words[:, 0], words[:, 1] = values, values >> 63
    return to_fixed(arrow_type, words, valid)
