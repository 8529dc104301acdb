"""Ranges of a hot key, and what of earlier ranges the windows of a range reach back to.

    range        q                              q + 1            r
    rows    ..|..[ front for r ][ middle for r .......... ]|[ own rows of r  ]|..
                  windows of r begin here   none begins here

Windows begin later and later, so the rows that windows of r begin with are one stretch: the front. Rows between it and
r are in every window of r, and one partial stands for them. Both follow from where ranges begin: by the clock for
windows of time, by the numbers of rows for windows of rows.

    window            front: from                  middle: from                            has a middle if
    range(span)       first of r - reach           after last of r - reach                 that is before r - lag
    rows(n)           number of first of r - n     after number of first of r + 1 - n      that is before r
    both              both                         both                                    both
    everything()      nowhere                      the beginning                           always

`reach` is span + lag. Rows less than `lag` older than r enter its windows one by one: they are sent beside the front.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sash.frames.measuring import Bound, Measure, in_units

ROUNDING = 8  # units in the last place by which distances of floats may be off


@dataclass(frozen=True)
class HotKey:
    """A key that is split: where its ranges begin, and how many rows they have."""

    key: str  # as it is named in errors
    edges: Measure = field(repr=False)  # the numbers that ranges 1, 2, ... begin with, then the last one of all
    last: str  # as it is named in errors
    counts: tuple[int, ...] | None  # rows of each range, if a window counts rows
    constants: tuple[tuple[int, str, Any], ...] = ()  # columns of the key that rows travel without: place, name, value

    @property
    def n_ranges(self) -> int:
        """How many ranges there are; some may be empty."""
        return len(self.edges.values)


class Cut(NamedTuple):
    """Rows of a batch for one later range: front from `front` to `middle`, middle to `back`, and the rest."""

    front: int
    middle: int
    back: int
    end: int


class Reach:
    """How far back the windows of each range of a hot key reach."""

    def __init__(self, hot: HotKey, bound: Bound, *, is_portable: bool) -> None:
        """`is_portable`: whether a partial can stand for rows on another machine; if not, there is no middle."""
        bounds, edges = bound.bounds, in_units(hot.edges, bound.order_factor)
        self._is_measured = bounds.span is not None
        self._lag, self._reach = bounds.lag, (bounds.span or 0) + bounds.lag
        self._edges = [each.item() for each in edges]
        self._factor = bound.order_factor
        self._margin = 0 if edges.dtype.kind == "i" else self._rounding()
        self._dtype = edges.dtype
        self._rows = None if bounds.lag else bounds.rows
        self._numbers = None if hot.counts is None else np.cumsum([0, *hot.counts]).tolist()
        self._may_have_middle = is_portable and (bounds.rows is None or not bounds.lag)

    def _rounding(self) -> float:
        largest = max(abs(self._reach), *(abs(edge) for edge in self._edges))
        return float(ROUNDING * np.finfo(np.float64).eps * largest)

    def has_middle(self, r: int) -> bool:
        """Whether windows of range r may hold rows before it that none of them begins with."""
        if r == 0 or not self._may_have_middle:
            return False
        by_time = not self._is_measured or self._last_begin(r) < self._edges[r - 1] - self._lag
        return by_time and (self._rows is None or self._number(r + 1) - self._rows + 1 < self._number(r))

    def earliest(self, r: int) -> Any:
        """No window of range r begins before this number of the order column; None if they do not measure."""
        if not self._is_measured:
            return None
        begin = self._edges[r - 1] - self._reach - self._margin
        return begin if self._factor == 1 else begin // self._factor

    def first_row(self, r: int) -> int | None:
        """No window of range r begins before the row of this number; None if they do not count."""
        return None if self._rows is None else self._number(r) - self._rows

    def cut(self, r: int, order: Any, n_null: int, number: int) -> Cut:
        """What range r needs of sorted rows before it, the first of which has some number among all of the key.

        The first `n_null` of them have no order: windows that measure never reach them.
        """
        n = len(order)
        front = 0
        if self._is_measured:
            front = n_null + self._place(order[n_null:], self._edges[r - 1] - self._reach - self._margin, "left")
        if self._rows is not None:
            front = max(front, self._number(r) - self._rows - number)
        front = min(max(front, 0), n)
        if not self.has_middle(r):
            return Cut(front, n, n, n)
        middle = front
        if self._is_measured:
            middle = max(middle, n_null + self._place(order[n_null:], self._last_begin(r), "right"))
        if self._rows is not None:
            middle = max(middle, self._number(r + 1) - self._rows + 1 - number)
        middle = min(middle, n)
        back = n
        if self._lag:
            entering = self._edges[r - 1] - self._lag - self._margin
            back = max(middle, n_null + self._place(order[n_null:], entering, "left"))
        return Cut(front, middle, back, n)

    def number(self, q: int) -> int:
        """The number of the first row of range q, if windows count rows."""
        return 0 if self._numbers is None else self._number(q)

    def _number(self, r: int) -> int:
        assert self._numbers is not None
        return int(self._numbers[r])

    def _last_begin(self, r: int) -> Any:
        """No window of range r begins with a row after this order value."""
        return self._edges[r] - self._reach + self._margin

    def _place(self, order: Any, value: Any, side: Any) -> int:
        """Where a value lies among rows; values beyond 64 bits lie outside."""
        if self._dtype.kind == "i":
            least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
            if value < least:
                return 0
            value = min(value, most)
        return int(np.searchsorted(order, self._dtype.type(value), side))
