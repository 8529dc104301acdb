"""Tails: the youngest rows of a column that grows at one end and is forgotten at the other.

    forgotten      kept            room
    .............|xxxxxxxxxxxxxxxx|.......
                base             end             row numbers, counted for ever

Appending copies each row a constant number of times, however small the batches beside what is kept. A batch that
finds nothing kept is not copied at all; what is left of it when it has been worked on must be `settled`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.engine.columns import Column


class Tail:
    """The rows `base` to `end` - 1 of a column."""

    __slots__ = ("_array", "_begin", "_is_own", "_stop", "base")

    def __init__(self, dtype: Any, base: int = 0) -> None:
        self._array = np.empty(0, dtype)
        self._begin = self._stop = 0  # the kept rows are _array[_begin:_stop]
        self._is_own = True  # False: a batch of someone else's, which nothing may be written to
        self.base = base

    def __len__(self) -> int:
        return self._stop - self._begin

    @property
    def end(self) -> int:
        """The number of the next row."""
        return self.base + len(self)

    @property
    def values(self) -> Any:
        """The rows that are kept; valid until the next call."""
        return self._array[self._begin : self._stop]

    def append(self, values: Any) -> None:
        """Add rows at the young end."""
        if len(self) == 0:
            self._array, self._begin, self._stop, self._is_own = values, 0, len(values), False
            return
        if not self._is_own or self._stop + len(values) > len(self._array):
            self._move(2 * (len(self) + len(values)))
        self._array[self._stop : self._stop + len(values)] = values
        self._stop += len(values)

    def forget(self, row: int) -> None:
        """Let go of the rows before `row`."""
        n_gone = min(max(row - self.base, 0), len(self))
        self._begin += n_gone
        self.base += n_gone

    def settle(self) -> None:
        """Copy what is left of a batch of someone else's."""
        if not self._is_own:
            self._move(len(self))

    def dump(self) -> list[Any]:
        """What is kept, as plain data."""
        kept = self.values
        return [self.base, kept.tolist() if kept.dtype.hasobject else kept]

    @classmethod
    def load(cls, dumped: list[Any]) -> Tail:
        """What `dump` wrote."""
        base, kept = dumped
        values = kept
        if isinstance(kept, list):
            values = np.empty(len(kept), object)
            values[:] = kept
        tail = cls(values.dtype, base)
        if len(values):
            tail.append(values)
        return tail

    def _move(self, room: int) -> None:
        kept = self.values
        self._array = np.empty(room, kept.dtype)
        self._array[: len(kept)] = kept
        self._begin, self._stop, self._is_own = 0, len(kept), True


class ColumnTail:
    """A column with its nulls, kept as a tail; validity is only kept while there is any."""

    __slots__ = ("_valid", "_values")

    def __init__(self, dtype: Any, base: int = 0) -> None:
        self._values = Tail(dtype, base)
        self._valid: Tail | None = None

    @property
    def column(self) -> Column:
        """The rows that are kept."""
        return Column(self._values.values, None if self._valid is None else self._valid.values)

    def append(self, column: Column) -> None:
        """Add rows at the young end."""
        if self._valid is None and column.valid is not None:
            self._valid = Tail(np.bool_, self._values.base)
            self._valid.append(np.ones(len(self._values), np.bool_))
        if self._valid is not None:
            self._valid.append(np.ones(len(column.values), np.bool_) if column.valid is None else column.valid)
        self._values.append(column.values)

    def forget(self, row: int) -> None:
        """Let go of the rows before `row`."""
        for tail in self._tails:
            tail.forget(row)
        if len(self._values) == 0:
            self._valid = None

    def settle(self) -> None:
        """Copy what is left of a batch of someone else's."""
        for tail in self._tails:
            tail.settle()

    def dump(self) -> list[Any]:
        """What is kept, as plain data."""
        return [self._values.dump(), None if self._valid is None else self._valid.dump()]

    @classmethod
    def load(cls, dumped: list[Any]) -> ColumnTail:
        """What `dump` wrote."""
        values, valid = dumped
        tail = cls(object)
        tail._values = Tail.load(values)
        tail._valid = None if valid is None else Tail.load(valid)
        return tail

    @property
    def _tails(self) -> tuple[Tail, ...]:
        return (self._values,) if self._valid is None else (self._values, self._valid)
