"""Rows of some keys, stored ones and new ones, sorted by key and order, and what the engine answers over them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sash.errors import DataError
from sash.frames.answering import Reader, answer, arrange
from sash.frames.arrow_tables import Source
from sash.frames.casting import as_type
from sash.streams.blaming import naming_rows
from sash.streams.contract import FAILURE, IS_LATE, REVISION
from sash.streams.plans import KEY, MICROSECOND, Plan, microseconds
from sash.streams.policing import BEGIN, PLACE, SETTLED
from sash.streams.reach import Settled, kept, numbers_of_keys
from sash.streams.timing import Instants, times_of
from sash.windows.durations import Duration

if TYPE_CHECKING:
    from sash.streams.situation import Situation

MOST_INSTANTS = 1 << 22  # of a key in a micro-batch: beyond, a time is wrong, or nobody wants to know of the silence


@dataclass(frozen=True)
class Held:
    """Sorted rows, and where each came from."""

    now: Situation
    rows: Any  # sorted
    begins: Any  # which are the first of their key
    numbers: Any  # of each sorted row among stored and new ones, the stored first
    n_stored: int

    @classmethod
    def of(cls, now: Situation, stored: Any, new: Any) -> Held:
        """Sort stored and new rows together; among equals, the stored come first."""
        rows = pa.concat_tables([stored, new]).combine_chunks()
        by_rows = replace(now.plan.window, grid=None)
        arranged = arrange(by_rows, Reader(Source(rows)))
        numbers = arranged.numbers
        if numbers is None:
            numbers = np.arange(rows.num_rows)
        else:
            rows = rows.take(pa.array(numbers)).combine_chunks()
        begins = arranged.begins | _silences(now, rows)
        return cls(now, rows, begins, numbers, stored.num_rows)

    @cached_property
    def is_new(self) -> Any:
        """Which of the sorted rows are new."""
        return self.numbers >= self.n_stored

    @cached_property
    def times(self) -> Any:
        """The times of the sorted rows."""
        return times_of(self.rows.column(self.now.plan.time))

    @cached_property
    def keys(self) -> Any:
        """The number of each row's key."""
        return numbers_of_keys(self.begins)

    @property
    def n_keys(self) -> int:
        """How many keys have new rows."""
        return int((np.add.reduceat(self.is_new, np.flatnonzero(self.begins)) > 0).sum()) if len(self.begins) else 0

    @cached_property
    def answers(self) -> Any:
        """A table of answers: with the places of rows they are of, or on a grid with keys and times."""
        table = self.rows.select(self.now.plan.read)
        table = table.append_column(KEY, pa.array(self.keys))
        if not self.now.plan.is_grid:
            table = table.append_column(PLACE, pa.array(np.arange(table.num_rows)))
        if self.now.plan.has_policy:
            table = table.append_column(SETTLED, pa.array((~self.is_new).astype(np.int64)))
        answers = self.now.timed(
            lambda: naming_rows(self.now.plan, table, lambda specs, rows: answer(specs, Source(rows)))
        )
        return self.now.lower(answers)

    def answer_columns(self, rows: Any = None) -> dict[str, Any]:
        """The answers by name, in the types announced; some of them, by their places in `answers`."""
        types = self.now.plan.types
        table = self.answers.select(list(types))
        if rows is not None:
            table = table.take(pa.array(rows))
        return {name: as_type(name, table.column(name).combine_chunks(), types) for name in types}

    def with_answers(self, new: Any) -> Any:
        """New rows, as they came, with their answers."""
        places = self.answers.column(PLACE).to_numpy()
        answered = np.flatnonzero(self.is_new[places])
        given = self._taken(new.select(self.now.plan.schema.names), places[answered])
        return in_form(self.now.plan, given, self.answer_columns(answered))

    def _taken(self, new: Any, places: Any) -> Any:
        """New rows by their places among the sorted ones; columns that are kept are sorted already."""
        sorted_ones, others = pa.array(places), pa.array(self.numbers[places] - self.n_stored)
        columns = [
            self.rows.column(name).take(sorted_ones)
            if name in self.rows.schema.names
            else new.column(name).take(others)
            for name in new.schema.names
        ]
        return pa.table(columns, schema=new.schema)

    def on_grid(self) -> Any:
        """Keys, instants and answers, of instants after the last one that each key has answered."""
        plan, instants = self.now.plan, self.now.instants
        assert instants is not None
        starts = np.flatnonzero(self.begins)
        answered = self._answered(instants, starts)
        keys = self.answers.column(KEY).to_numpy()
        when = times_of(self.answers.column(plan.time))
        fresh = np.flatnonzero(when > answered[keys])
        given = self.rows.select(list(plan.window.by)).take(pa.array(starts[keys[fresh]]))
        columns = dict(zip(plan.window.by, given.columns, strict=True)) | self.answer_columns(fresh)
        return pa.table([columns[name] for name in plan.out_schema.names], schema=plan.out_schema)

    def _answered(self, instants: Instants, starts: Any) -> Any:
        """The last instant that each key has answered; an error if too many have come after it."""
        if len(starts) == 0:
            return starts
        never = np.iinfo(np.int64).min
        last = np.maximum.reduceat(np.where(self.is_new, never, self.times), starts)
        answered = np.where(last == never, last, instants.of(last))
        since = np.where(last == never, instants.of(self.times[starts]) - instants.step, answered)
        n_due = (instants.of(np.maximum.reduceat(self.times, starts)) - since) // instants.step
        if n_due.max() > MOST_INSTANTS:
            own = self.rows.filter(pa.array(self.keys == n_due.argmax()))
            raise DataError(_too_many(self.now.plan, own, int(n_due.max())))
        return answered

    @cached_property
    def reach(self) -> Any:
        """Which rows a window to come may look at."""
        left = self.answers.column(BEGIN) if self.now.plan.has_policy else None
        settled = Settled(Reader(Source(self.rows)), self.times, self.begins, self.now.watermark, left)
        return kept(self.now.plan, settled, self.now.instants)

    def in_reach(self, mask: Any) -> Any:
        """Some of the rows."""
        return self.rows if mask.all() else self.rows.filter(pa.array(mask))


def _silences(now: Situation, rows: Any) -> Any:
    """Where a key has been silent for so long that it is forgotten: it begins anew, as another key."""
    begins = np.zeros(rows.num_rows, np.bool_)
    if now.plan.streaming.idle is not None:
        begins[1:] = np.diff(times_of(rows.column(now.plan.time))) > microseconds(now.plan.streaming.idle)
    return begins


def in_form(plan: Plan, given: Any, answers: dict[str, Any]) -> Any:
    """Rows with answers, in the form that is given out."""
    n = given.num_rows
    extra = {IS_LATE: pa.array(np.zeros(n, np.bool_)), FAILURE: pa.nulls(n, pa.string())}
    if REVISION in given.schema.names:
        extra[REVISION] = given.column(REVISION)
    columns = extra | {name: given.column(name) for name in plan.schema.names} | answers
    return pa.table([columns[name] for name in plan.out_schema.names], schema=plan.out_schema)


def _too_many(plan: Plan, rows: Any, n_due: int) -> str:
    """What to say of the rows of a key with too many instants between them."""
    times, key = times_of(rows.column(plan.time)), rows.select(list(plan.window.by)).slice(0, 1).to_pylist()
    whose = f" for the key {key[0]}" if plan.window.by else ""
    first, last = (np.datetime64(int(each), "us") for each in times[[0, -1]])
    return (
        f"{n_due} instants of {plan.window.grid!r} are due at once{whose}, with rows from {first} to {last} and a "
        f"silence of {Duration(MICROSECOND * int(np.diff(times).max()))} between two of them; a stream answers at most "
        f"{MOST_INSTANTS} for a key in a micro-batch. With idle='1 hour' a key that was silent for longer begins anew; "
        "or use a coarser grid"
    )
