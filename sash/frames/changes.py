"""Where a value differs from the one in the row before, over batches: beginnings of keys, and peers.

Null equals null, all NaN are equal, -0.0 equals 0.0, as for Spark's keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.frames import buffers
from sash.frames.carriers import is_plain, is_ticks
from sash.frames.keys import codes_of


class Changes:
    """The last row of the batch before, to compare the first of the next one with."""

    def __init__(self) -> None:
        self._last: list[Any] | None = None

    def take(self, columns: Sequence[Any], n: int) -> Any:
        """For each row of a batch, whether it differs from the row before in any of the columns."""
        changed = np.zeros(n, np.bool_)
        if n == 0:
            return changed
        for column in columns:
            changed[1:] |= changes_within(column)
        firsts = [column.slice(0, 1) for column in columns]
        changed[0] = self._last is None or any(
            changes_within(pa.concat_arrays(pair)).any() for pair in zip(self._last, firsts, strict=True)
        )
        self._last = [column.slice(n - 1, 1) for column in columns]
        return changed


def changes_within(array: Any) -> Any:
    """For each row but the first, whether its value differs from the one before."""
    changed, valid = _unlike_neighbours(array), buffers.valid_of(array)
    if valid is None:
        return changed
    return (changed & valid[1:] & valid[:-1]) | (valid[1:] != valid[:-1])


def _unlike_neighbours(array: Any) -> Any:
    """The same, whatever it says beside a null."""
    if pa.types.is_null(array.type):
        return np.zeros(max(len(array) - 1, 0), np.bool_)
    if pa.types.is_nested(array.type):
        codes = codes_of(array).codes
        return codes[1:] != codes[:-1]
    if pa.types.is_boolean(array.type):
        values = buffers.booleans(array)
    elif is_plain(array.type):
        values = buffers.fixed_values(array, array.type.to_pandas_dtype())
    elif is_ticks(array.type):
        values = buffers.fixed_values(array, buffers.tick_dtype(array.type))
    else:
        unlike = pc.not_equal(array.slice(1), array.slice(0, max(len(array) - 1, 0)))
        return unlike.fill_null(False).to_numpy(zero_copy_only=False)
    unlike = values[1:] != values[:-1]
    if values.dtype.kind == "f":
        unlike &= ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    return unlike
