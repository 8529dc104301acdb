"""Rows folded by group: one partial for all rows of a group, in the order they come, and nothing is sorted.

    codes      4 0 4 4 0 7 ...        the group of each row
    partials   4 -> [0]  0 -> [1]     one for each group, in the order of their first rows
    NEW        behind them all        the partial of the row at hand

For windows that have all rows of a group, or none of them, so that no structure is needed.

Cost: 1 lift for each row, and 1 call of combine unless it is the first of its group. Space: a partial for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.interpreted_cells import interpreted_cells
from sash.compiling.jit import compiled, entry, interpreted
from sash.engine.batches import in_one_form
from sash.engine.building import nullable, product, unnested
from sash.engine.columns import Column
from sash.engine.groups import column_of
from sash.engine.tasks import Kind, Task, columns_for, kind_of, narrowed

NEW = 0  # place of the row at hand; groups follow it


class Folded(NamedTuple):
    """Groups in the order of their first rows."""

    rows: Any  # the number of the first row of each
    answers: list[Column]  # one for each aggregate


class Made(NamedTuple):
    """What was made for some aggregates."""

    cells: Cells
    fold: Function  # (pool, codes, columns, places, rows) -> how many groups there are
    lower: Function  # (results, pool, n)


def fold_groups(tasks: Sequence[Task], codes: Any, n_codes: int) -> Folded:
    """The answers of aggregates over the rows of each code; codes are below `n_codes`."""
    n, codes = len(codes), in_one_form(codes)
    tasks = [narrowed(_in_one_form(task), n) for task in tasks]
    kind = kind_of(tasks, may_be_empty=False)
    cells, fold, lower = _make(kind)
    most = min(n, n_codes)
    pool, places, rows = cells.allocate(1 + most), np.zeros(n_codes, np.int64), np.empty(most, np.int64)
    given: tuple[Any, ...] = (codes, columns_for(tasks, n, kind), places, rows)
    if not kind.is_compiled:
        given = (codes.tolist(), *given[1:])
    n_groups = int(fold(pool, *given))
    results = cells.results(n_groups)
    lower(results, pool, n_groups)
    found = zip(unnested(results, len(tasks)), kind.monoids, strict=True)
    return Folded(rows[:n_groups], [column_of(each, monoid, None) for each, monoid in found])


def _in_one_form(task: Task) -> Task:
    valid = None if task.valid is None else in_one_form(task.valid)
    return task._replace(columns=tuple(map(in_one_form, task.columns)), valid=valid)


@lru_cache(maxsize=256)
def _make(kind: Kind) -> Made:
    if kind.is_compiled:
        cells = product([(nullable if kind.has_nulls else compiled_cells)(each) for each in kind.monoids], compiled)
    else:
        cells = product([interpreted_cells(each) for each in kind.monoids], interpreted)
    lift, combine, lower = cells.lift, cells.combine, cells.lower
    jit = entry if kind.is_compiled else interpreted

    def fold_rows(pool: Any, codes: Any, columns: Any, places: Any, rows: Any) -> int:
        n_groups = 0
        for i in range(len(codes)):
            code = np.uintp(codes[np.uintp(i)])
            place = places[code]
            if place > 0:
                lift(pool, NEW, columns, i)
                combine(pool, place, place, NEW)
            else:
                rows[np.uintp(n_groups)] = i
                n_groups += 1
                places[code] = n_groups
                lift(pool, n_groups, columns, i)
        return n_groups

    def lower_groups(results: Any, pool: Any, n: int) -> None:
        for k in range(n):
            lower(results, k, pool, k + 1)

    return Made(cells, jit(fold_rows), jit(lower_groups))
