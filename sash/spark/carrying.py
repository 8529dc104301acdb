"""Carrying columns that come in batches: the same numbers for the same values, from the first batch to the last.

    column                  whole table (frames/carriers)     in batches (here)
    numbers, times          themselves                        themselves
    decimals                64 bits if all fit                64 bits if the type fits, else Python's integers
    texts, for their order  rank in the sorted column         Python's texts: nobody knows yet what is still to come
    texts, for equality     place in a dictionary             a number given out at the first meeting
    anything, as payload    number of its row                 number of its row in the task

What is looked up later is kept for as long as a window may hold its row, and no longer: `forget`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from sash.engine.columns import Column
from sash.frames import buffers, carriers
from sash.frames.carriers import Carrier, Plain
from sash.frames.keys import frozen

DIGITS_IN_64_BITS = 18


class Memory:
    """How the columns of one spec are carried, each by a memory of its own."""

    def __init__(self) -> None:
        self._columns: dict[str, ColumnMemory] = {}

    def __call__(self, carried: str) -> ColumnMemory:
        """What carries a column, under the name it is carried by."""
        return self._columns.setdefault(carried, ColumnMemory())

    def forget(self, row: int) -> None:
        """Let go of what no window looks at any more: everything before `row`."""
        for each in self._columns.values():
            each.forget(row)


class ColumnMemory:
    """The functions of frames/carriers for one column, with what they remember between batches."""

    def __init__(self) -> None:
        self._codes = Codes()
        self._rows = Rows()

    def carry_number(self, array: Any, arrow_type: Any) -> Carrier:
        """Carry booleans, numbers, times or decimals as numbers; which, is told by the type alone."""
        carrier = carriers.carry_number(array, arrow_type)
        if not pa.types.is_decimal(array.type) or array.type.precision <= DIGITS_IN_64_BITS:
            return carrier
        values, valid = carrier.column
        return type(carrier)(Column(values.astype(object), valid), arrow_type)

    def carry_ranked(self, array: Any, arrow_type: Any, what: str) -> Carrier:
        """Carry texts as Python's, which are in the same order as their UTF-8."""
        return carriers.carry_python(array, arrow_type)

    def carry_python(self, array: Any, arrow_type: Any) -> Carrier:
        """Carry Python objects."""
        return carriers.carry_python(array, arrow_type)

    def carry_code(self, array: Any, arrow_type: Any) -> Carrier:
        """Carry anything by a number that equal values have in common."""
        return Plain(Column(self._codes.of(array), buffers.valid_of(array)), arrow_type)

    def carry_row(self, array: Any, arrow_type: Any) -> Carrier:
        """Carry anything by the number of its row, counted from the first batch on."""
        numbers = self._rows.append(array)
        return NumberedInBatches(Column(numbers, buffers.valid_of(array)), arrow_type, self._rows)

    def forget(self, row: int) -> None:
        """Let go of what is only needed for rows before `row`."""
        self._codes.forget(row)
        self._rows.forget(row)


class Codes:
    """Numbers for values, given out at the first meeting.

    Values met since `_since` are in `_young`, those met before it, and not since, in `_old`. When no window can hold a
    row before `_since` any more, the old ones are forgotten and the young ones grow old. So what is kept are the
    different values of about two windows.
    """

    def __init__(self) -> None:
        self._old: dict[Any, int] = {}
        self._young: dict[Any, int] = {}
        self._numbers = count()
        self._since = self._n_rows = 0

    def of(self, array: Any) -> Any:
        """A number for each value of a batch."""
        self._n_rows += len(array)
        if pa.types.is_nested(array.type):
            return np.array([self._number(frozen(value)) for value in array.to_pylist()], np.int64)
        coded = array.dictionary_encode()
        numbers = np.array([self._number(value) for value in coded.dictionary.to_pylist()] or [0], np.int64)
        return numbers[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)]

    def _number(self, value: Any) -> int:
        known = self._young.get(value)
        if known is None:
            known = self._old.get(value)
            known = self._young[value] = next(self._numbers) if known is None else known
        return known

    def forget(self, row: int) -> None:
        """No window holds a row before this one any more."""
        if row >= self._since:
            self._old, self._young, self._since = self._young, {}, self._n_rows


class Rows:
    """The values of the rows that windows may still hold, in the pieces they came in."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        self._firsts: list[int] = []  # the number of the first row of each piece
        self._n_rows = 0

    def append(self, array: Any) -> Any:
        """Take the values of a batch; the numbers of its rows."""
        first, self._n_rows = self._n_rows, self._n_rows + len(array)
        self._pieces.append(array)
        self._firsts.append(first)
        return np.arange(first, self._n_rows)

    def take(self, numbers: Any, valid: Any) -> Any:
        """The values of some rows, null where not valid."""
        places = np.clip(numbers, self._firsts[0], self._n_rows - 1) if valid is not None else numbers
        firsts = np.array(self._firsts)
        piece = np.searchsorted(firsts, places, side="right") - 1
        used = np.flatnonzero(np.bincount(piece, minlength=len(firsts)))
        lengths = [len(self._pieces[each]) for each in used]
        shifts = np.zeros(len(firsts), np.int64)
        shifts[used] = np.cumsum([0, *lengths])[:-1] - firsts[used]
        values = pa.concat_arrays([self._pieces[each] for each in used]) if len(used) else self._pieces[0]
        return values.take(pa.array(places + shifts[piece], mask=None if valid is None else ~valid))

    def forget(self, row: int) -> None:
        """Let go of pieces that end before `row`; the last is kept, for its type."""
        n_gone = max(0, int(np.searchsorted(self._firsts, row, side="right")) - 1)
        del self._pieces[:n_gone], self._firsts[:n_gone]


@dataclass(frozen=True)
class NumberedInBatches(Carrier):
    """Values as the numbers of their rows, in whichever batch they came."""

    rows: Rows = field(repr=False)

    def value(self, values: Any, valid: Any) -> Any:  # noqa: D102
        return self.rows.take(values.astype(np.int64), valid).cast(self.arrow_type)
