"""Groups: aggregates that go through one structure together, and answers as columns.

All aggregates that machine code can be made for are one group: a row is then read once for all of them. Others, of
Python values, are a group of their own, so that one of them does not make all the others slow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.monoid import Monoid
from sash.algebra.quantiles import Quantile
from sash.compiling.jit import is_enabled
from sash.engine.answering import answers_of
from sash.engine.building import unnested
from sash.engine.choosing import Choice, Question, choose_run, is_sliced
from sash.engine.columns import Column
from sash.engine.policy_framing import PolicyFraming, Source
from sash.engine.sliced import SlicedStructure
from sash.engine.structures import PLAIN, Structure, find_in_order
from sash.engine.tasks import Kind, Task, columns_for
from sash.errors import DataError
from sash.windows.bounds import Bounds
from sash.windows.frames import Frames
from sash.windows.framing import RowFraming
from sash.windows.grids import GridFraming


class Group(NamedTuple):
    """Aggregates of one kind: their places among all, and how they are computed."""

    places: tuple[int, ...]
    kind: Kind
    choice: Choice
    is_sliced: bool = False  # rows that leave together are combined on the way in

    @property
    def is_shareable(self) -> bool:
        """Whether threads may take a key each: then its answers do not depend on where its rows stand."""
        return self.kind.is_compiled and self.choice.algorithm in PLAIN

    def structure(self) -> Structure | SlicedStructure:
        """An empty structure for them."""
        return (SlicedStructure if self.is_sliced else Structure)(find_in_order(self.choice.algorithm), self.kind)

    def columns(self, tasks: Sequence[Task], n: int) -> Any:
        """The columns that they read, n rows long, as the structure wants them."""
        own = [tasks[place] for place in self.places]
        if tuple(task.monoid for task in own) != self.kind.monoids:
            raise DataError("columns changed their types between batches; cast them to one type")
        return columns_for(own, n, self.kind)

    def answers(self, results: Any, is_short: Any) -> Iterator[tuple[int, Column]]:
        """The place and the column of each aggregate; answers of windows too short are null."""
        each = unnested(results, len(self.places))
        for place, monoid, found in zip(self.places, self.kind.monoids, each, strict=True):
            yield place, column_of(found, monoid, is_short)


def groups_of(
    tasks: Sequence[Task],
    bounds: Bounds,
    *,
    has_nulls: bool,
    is_exact: bool,
    forced: str | None,
    besides: Collection[int] = (),
) -> list[Group]:
    """Part the aggregates by whether machine code can be made for them, and choose an algorithm for each part.

    Those whose places are `besides` need no structure.
    """
    groups = []
    for is_compiled in (True, False):
        places = tuple(
            place
            for place, task in enumerate(tasks)
            if place not in besides and (task.is_compilable and is_enabled()) == is_compiled
        )
        if not places:
            continue
        kind = Kind(tuple(tasks[place].monoid for place in places), is_compiled, has_nulls)
        question = Question(kind.monoids, None, has_nulls, is_compiled)
        choice = choose_run(question, bounds, is_exact=is_exact) if forced is None else _forced(forced)
        groups.append(Group(places, kind, choice, is_sliced(bounds, is_exact=is_exact)))
    return groups


def _forced(name: str) -> Choice:
    return Choice(name, "asked for by name")


def framing_of(bounds: Bounds, dtype: Any, source: Source, first_row: int = 0) -> Any:
    """What computes the frames of a window over an order of this type; `source` has the columns."""
    if bounds.policy is not None:
        return PolicyFraming(bounds, source)
    if not bounds.is_grid:
        return RowFraming(bounds, dtype, first_row)
    sliced = is_sliced(bounds, is_exact=np.dtype(dtype).kind == "i")
    return GridFraming(bounds, dtype, first_row, is_sliced=sliced)


def too_short(frames: Frames, min_rows: int) -> Any:
    """Which windows hold too few rows to be answered; None: none can."""
    return None if min_rows == 0 else frames.ends - frames.starts < min_rows


def without(column: Column, is_short: Any) -> Column:
    """The same answers, null where windows are too short."""
    if is_short is None or not is_short.any():
        return column
    valid = ~is_short if column.valid is None else column.valid & ~is_short
    return Column(np.where(valid, column.values, column.values.dtype.type(0)), valid)


def column_of(results: Any, monoid: Monoid, is_short: Any) -> Column:
    """Answers and their validity: as `sash.slide` gives them, but nulls are never NaN."""
    values, valid = results
    if isinstance(values, list):
        return _column_of_objects(values, monoid, is_short)
    if is_short is not None:
        valid = ~is_short if len(valid) == 0 else valid & ~is_short
    is_complete = len(valid) == 0 or bool(valid.all())
    answers = np.ma.getdata(answers_of((values, valid), monoid, masked=True))
    return Column(answers, None if is_complete else valid)


def _column_of_objects(values: list[Any], monoid: Monoid, is_short: Any) -> Column:
    """The same for interpreted answers; where all are null, nobody knows what type they would have."""
    if is_short is not None:
        values = [None if short else value for value, short in zip(values, is_short.tolist(), strict=True)]
    valid = np.array([value is not None for value in values], np.bool_)
    if isinstance(monoid, Quantile):
        floats = np.array([0.0 if value is None else value for value in values], np.float64)
        return Column(floats, None if valid.all() else valid)
    if not valid.any():
        return Column(np.zeros(len(values)) if monoid.is_compilable else np.full(len(values), None), valid)
    answers = np.ma.getdata(answers_of((values, valid), monoid, masked=True))
    return Column(answers, None if valid.all() else valid)
