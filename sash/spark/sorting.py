"""Sorting: the rows of a slice in Spark's order, outside of Spark.

Most slices come in order, as files are written in order of time; then small batches are joined, and no row is moved.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sash.frames import buffers
from sash.frames.carriers import is_ticks, ranks_of
from sash.frames.measuring import measure
from sash.spark.slicing import MOST_BYTES, joined

PIECE = 1 << 15  # rows that the engine gets at once: what it reads stays in the cache of a core


class Sorting:
    """Packed rows, slice after slice, in; rows in order out. What is sorted already goes through as it comes."""

    def __init__(self, order_by: Sequence[str], *, is_sorted: bool = False) -> None:
        self._order_by, self._is_sorted = order_by, is_sorted
        self._slice = -1
        self._held: list[Any] = []

    def take(self, slice_: int, rows: Any) -> Iterator[Any]:
        """Take rows; those of the slice before, if it has ended."""
        if self._is_sorted:
            yield rows
            return
        if slice_ != self._slice:
            yield from self.finish()
            self._slice = slice_
        self._held.append(rows)

    def finish(self) -> Iterator[Any]:
        """The last slice."""
        held, self._held = self._held, []
        for rows in in_groups(held) if are_in_order(held, self._order_by) else [in_order(joined(held), self._order_by)]:
            yield from (rows.slice(first, PIECE) for first in range(0, rows.num_rows, PIECE))


def in_groups(batches: Sequence[Any]) -> Iterator[Any]:
    """Batches as fewer, each of about as many rows as the engine gets at once."""
    group: list[Any] = []
    for each in batches:
        group.append(each)
        if sum(rows.num_rows for rows in group) >= PIECE or sum(rows.nbytes for rows in group) >= MOST_BYTES:
            yield joined(group)
            group = []
    if group:
        yield joined(group)


def are_in_order(batches: Sequence[Any], order_by: Sequence[str]) -> bool:
    """Whether rows have come in order, as they do from most files: then they need not be moved."""
    ordered = operator.gt if len(order_by) > 1 else operator.ge
    last = None
    for rows in batches:
        order = measure(order_by[0], rows.column(order_by[0]))
        if order.valid is not None or not ordered(order.values[1:], order.values[:-1]).all():
            return False
        if last is not None and not ordered(order.values[0], last):
            return False
        last = order.values[-1]
    return True


def in_order(rows: Any, order_by: Sequence[str]) -> Any:
    """Rows sorted as Spark sorts: nulls first, NaN last, texts by their bytes; what is the same stays as it was."""
    columns = [column for name in order_by for column in sortable(rows.column(name))]
    return rows.take(pa.array(np.lexsort(columns[::-1])))


def sortable(array: Any) -> list[Any]:
    """Columns of numbers by which values sort."""
    valid, types = buffers.valid_of(array), pa.types
    if types.is_floating(array.type):
        values = buffers.fixed_values(array, array.type.to_pandas_dtype())
    elif types.is_integer(array.type) or is_ticks(array.type):
        values = measure("", array).values
    else:
        values = ranks_of(array, "a column of order_by")[0]
    return [values] if valid is None else [valid, np.where(valid, values, 0)]
