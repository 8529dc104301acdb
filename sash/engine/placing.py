"""Rows of a table by time, brought together by key and put back: passes that read and write in streams.

    table     a b a c b a ...          by time; the code of a key is a small integer
    places    0 3 1 5 4 2 ...          where each row goes: the rows of a key follow one another, as they came
    sorted    a a a b b c ...          sorted[places[i]] = table[i]; answers come back by table[i] = sorted[places[i]]

Every pass goes through the table from end to end and has, on the side of the sorted rows, one stream for each key. By
the numbers of the sorted rows it would be the other way round: a pass would go through the table once for each key,
and with a thousand keys every step would miss the cache.

Memory comes from a `Room`: fresh pages cost more than these passes, and who calls may have some that were used before.

Cost: a step for each row and pass, and one for each code. One thread does all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.monoid import Function
from sash.compiling.jit import entry, is_enabled
from sash.engine.batches import in_one_form

SMALLEST = 50_000  # rows; NumPy takes 3 ms to sort them, machine code 0.2 and, once for a process, 20 to be loaded
LARGEST = 2**31 - 1  # places are integers of 32 bits: half the way to memory
WORDS = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}

ORDER_FALLS, ROWS_FALL = 1, 2  # what is true somewhere: a row is before the last one; before it, or of a smaller code

Room = Callable[[int, Any], Any]  # (length, dtype) -> an array, whatever is in it


class Placed(NamedTuple):
    """Where rows go, and which of the sorted ones are the first of their key."""

    places: Any
    begins: Any


def is_placeable(n: int, n_codes: int) -> bool:
    """Whether rows are few enough for places, and enough for machine code to be worth loading."""
    return SMALLEST <= n <= LARGEST and n_codes <= LARGEST and is_enabled()


def falls(codes: Any, order: Any) -> int:
    """Whether rows fall by order, and by code and order: ORDER_FALLS and ROWS_FALL added up."""
    return int(_kernels().falls(in_one_form(codes), in_one_form(order)))


def place(codes: Any, n_codes: int, room: Room = np.empty) -> Placed:
    """Find the places of rows, stably."""
    n = len(codes)
    starts, placed = np.zeros(n_codes, np.int32), Placed(room(n, np.int32), np.zeros(n, np.bool_))
    _kernels().place(in_one_form(codes), starts, *placed)
    return placed


def brought(values: Any, places: Any, room: Room = np.empty) -> Any:
    """Something for each row of the table, as rows are sorted."""
    if not _is_word(values):
        out = np.empty_like(values)
        out[places] = values
        return out
    return _passed(_kernels().scatter, values, places, room)


def put_back(values: Any, places: Any, room: Room = np.empty) -> Any:
    """Something for each sorted row, as rows are in the table."""
    return _passed(_kernels().gather, values, places, room) if _is_word(values) else values[places]


def _is_word(values: Any) -> bool:
    return values.ndim == 1 and values.dtype.kind in "biuf" and values.dtype.itemsize in WORDS


def _passed(kernel: Function, values: Any, places: Any, room: Room) -> Any:
    """Move values as words of their size: machine code need not be made for each type."""
    word = WORDS[values.dtype.itemsize]
    out = room(len(values), word)
    kernel(in_one_form(values).view(word), places, out)
    return out.view(values.dtype)


class Kernels(NamedTuple):
    """The passes."""

    falls: Function  # (codes, order) -> what is true of some row and the one before it
    place: Function  # (codes, starts, places, begins); starts, one for each code, are zero
    scatter: Function  # (values, places, out)
    gather: Function  # the same, the other way


@lru_cache(maxsize=1)
def _kernels() -> Kernels:
    def falls(codes: Any, order: Any) -> int:
        by_order = by_code = False
        for i in range(1, len(codes)):
            code, before = codes[np.uintp(i)], codes[np.uintp(i - 1)]
            is_less = order[np.uintp(i)] < order[np.uintp(i - 1)]
            by_order |= is_less
            by_code |= (code < before) | ((code == before) & is_less)
        return ORDER_FALLS * int(by_order) + ROWS_FALL * int(by_code)

    def place(codes: Any, starts: Any, places: Any, begins: Any) -> None:
        for i in range(len(codes)):
            starts[np.uintp(codes[np.uintp(i)])] += 1
        total = 0
        for code in range(len(starts)):
            count = starts[np.uintp(code)]
            starts[np.uintp(code)] = total
            if count > 0:
                begins[np.uintp(total)] = True
            total += count
        for i in range(len(codes)):
            own = np.uintp(codes[np.uintp(i)])
            places[np.uintp(i)] = starts[own]
            starts[own] += 1

    def scatter(values: Any, places: Any, out: Any) -> None:
        for i in range(len(places)):
            out[np.uintp(places[np.uintp(i)])] = values[np.uintp(i)]

    def gather(values: Any, places: Any, out: Any) -> None:
        for i in range(len(places)):
            out[np.uintp(i)] = values[np.uintp(places[np.uintp(i)])]

    return Kernels(*(entry(each) for each in (falls, place, scatter, gather)))
