"""Cells of Python values, run as they stand: any aggregate, any object, no machine code.

A pool is a list. Where partials are taken away again, it is (counts, list): None stands for no rows,
and once all valid rows have been subtracted only their number can tell that none is left.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sash.algebra.monoid import Function, Monoid, identity_of, ungraded
from sash.algebra.state import Row
from sash.compiling.cells import Cells, fold_in_place


def interpreted_cells(monoid: Monoid) -> Cells:
    """Cells of Python values; None is the partial of no rows."""
    monoid = ungraded(monoid)
    writes, n_inputs = isinstance(monoid.state, Row), monoid.n_inputs
    lift = _returning(monoid.lift, monoid.state) if writes else monoid.lift
    join = _returning(monoid.combine, monoid.state) if writes else monoid.combine
    lower = monoid.lower
    empty = _lowered(monoid, identity_of(monoid)) if monoid.answers_empty else None
    inverse = _returning(monoid.invert, monoid.state) if writes and monoid.invert else monoid.invert

    def combine(pool: Any, dst: int, older: int, newer: int) -> None:
        x, y = pool[older], pool[newer]
        pool[dst] = y if x is None else x if y is None else join(x, y)

    def clear(pool: Any, dst: int) -> None:
        pool[dst] = None

    def lift_row(pool: Any, dst: int, columns: Any, i: int) -> None:
        if n_inputs == 1 and len(columns) == 1:  # most have one, which needs neither a list nor a search
            value = columns[0][i]
            pool[dst] = None if value is None else lift(value)
            return
        values = [column[i] for column in columns]
        pool[dst] = None if any(value is None for value in values) else lift(*values[:n_inputs])

    def lower_cell(results: Any, i: int, pool: Any, src: int) -> None:
        partial = pool[src]
        results[0][i] = empty if partial is None else partial if lower is None else lower(partial)

    def transfer(to_pool: Any, dst: int, from_pool: Any, src: int) -> None:
        to_pool[dst] = from_pool[src]

    def invert(pool: Any, dst: int, whole: int, older: int) -> None:
        assert inverse is not None
        if pool[older] is not None:
            pool[dst] = inverse(pool[whole], pool[older])

    def newer_wins(pool: Any, older: int, newer: int) -> bool:
        x, y = pool[older], pool[newer]
        if x is None or y is None:
            return x is None
        joined = join(x, y)
        return joined is y or _is_same(joined, y)

    return Cells(
        combine, clear, lift_row, lower_cell, transfer, invert, newer_wins,
        allocate=lambda n: [None] * n,
        results=lambda n: ([None] * n, None),
        fold=fold_in_place(combine, transfer, lambda function: function),
    )  # fmt: skip


def counting_rows(cells: Cells) -> Cells:
    """Interpreted cells from which partials may be taken away: pools are (counts, pool)."""
    join, clear_inner, lift_inner, lower_inner, transfer_inner, invert_inner, wins = cells[:7]

    def combine(pool: Any, dst: int, older: int, newer: int) -> None:
        pool[0][dst] = pool[0][older] + pool[0][newer]
        join(pool[1], dst, older, newer)

    def clear(pool: Any, dst: int) -> None:
        pool[0][dst] = 0
        clear_inner(pool[1], dst)

    def lift(pool: Any, dst: int, columns: Any, i: int) -> None:
        lift_inner(pool[1], dst, columns, i)
        pool[0][dst] = 0 if pool[1][dst] is None else 1

    def lower(results: Any, i: int, pool: Any, src: int) -> None:
        lower_inner(results, i, pool[1], src)

    def transfer(to_pool: Any, dst: int, from_pool: Any, src: int) -> None:
        to_pool[0][dst] = from_pool[0][src]
        transfer_inner(to_pool[1], dst, from_pool[1], src)

    def invert(pool: Any, dst: int, whole: int, older: int) -> None:
        n_left = pool[0][whole] - pool[0][older]
        if n_left == 0:
            clear_inner(pool[1], dst)
        else:
            invert_inner(pool[1], dst, whole, older)
        pool[0][dst] = n_left

    def newer_wins(pool: Any, older: int, newer: int) -> bool:
        return bool(wins(pool[1], older, newer))

    return Cells(
        combine, clear, lift, lower, transfer, invert, newer_wins,
        allocate=lambda n: (np.zeros(n, np.int64), cells.allocate(n)),
        results=cells.results,
        fold=fold_in_place(combine, transfer, lambda function: function),
    )  # fmt: skip


def _is_same(x: Any, y: Any) -> bool:
    """Whether two partials are the same value: NaN is the same as NaN, 0.0 is not the same as -0.0."""
    if isinstance(x, tuple):
        return all(map(_is_same, x, y))
    if isinstance(x, float) and isinstance(y, float):
        return math.copysign(1.0, x) == math.copysign(1.0, y) if x == y else x != x and y != y  # noqa: PLR0124 - NaN
    return bool(np.all(x == y))


def _lowered(monoid: Monoid, partial: Any) -> Any:
    return partial if monoid.lower is None else monoid.lower(partial)


def _returning(function: Function, state: Any) -> Function:
    """Turn a function that writes into `out` into one that gives back a new row."""

    def fresh(*arguments: Any) -> Any:
        out = np.empty(state.width, state.dtype)
        function(*arguments, out)
        return out

    return fresh
