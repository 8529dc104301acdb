"""A pass: specs over Arrow batches of sorted rows, one after the other. This is what a task of Spark does.

    batch of rows  --> where keys begin, order as numbers --> a lane for each spec --> answers as they settle
         |                                                                                   |
         `--> waits until all lanes have answered all of its rows ---------------------------+--> batch of rows
                                                                                                  with answers

Keys may begin and end anywhere in a batch; state crosses from one batch to the next (engine/running). Input rows are
never touched: a batch goes out with the arrays it came with, and answers beside them. What waits is a batch or
two, and more only if a single instant has more rows than a batch.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from sash.algebra.declaring import agg
from sash.engine.batches import Answered, Batch
from sash.engine.columns import Column
from sash.engine.running import Run
from sash.errors import DataError, SashError, SumOverflowError, UnsupportedError
from sash.frames.answering import Arranged, Columns, Decoder, Reader, bound_for, require_truths, time_names
from sash.frames.arrow_tables import Source
from sash.frames.casting import as_type
from sash.frames.changes import Changes
from sash.frames.extents import show_aggregate
from sash.frames.measuring import Bound, Measure, in_units, instants_as_times, mark_column, measure, scale_of
from sash.spark.carrying import Memory
from sash.windows.bounds import Every

if TYPE_CHECKING:
    from sash.frames.spec import Spec
    from sash.frames.window import Window

SMALLEST = np.iinfo(np.int64).min


class Pass:
    """Specs with the same keys and order over batches sorted by both."""

    def __init__(self, specs: Sequence[Spec], types: Mapping[str, Any] | None = None) -> None:
        """`types`: of the answers, by name, as the plan has announced them; None: as they come."""
        window = specs[0].window
        self._rows = SortedRows(window)
        self._lanes = [Lane(spec) for spec in specs]
        self._out = _way_out(window, {} if types is None else types)

    def push(self, batch: Any) -> Iterator[Any]:
        """Take a batch; batches with answers that have settled."""
        if batch.num_rows == 0:
            return
        given = self._rows.take(batch)
        self._out.take(batch)
        for lane in self._lanes:
            with_answers = lane.push(given, self._rows)
            self._out.answer(lane, with_answers)
        yield from self._out.settled()
        self._rows.forget(min(lane.begin for lane in self._lanes))

    def finish(self) -> Iterator[Any]:
        """Answer what still waits."""
        for lane in self._lanes:
            if lane.is_begun:
                self._out.answer(lane, lane.finish(self._rows))
        yield from self._out.settled()


# --- rows in ---------------------------------------------------------------------------------------


class Given:
    """A batch, with what all specs want to know of it."""

    def __init__(self, reader: Reader, rows: Arranged) -> None:
        self.reader, self.rows = reader, rows


class Names(Protocol):
    """Rows as a user knows them."""

    @property
    def first_of_last(self) -> int:
        """The number of the first row of the last batch."""

    def named(self, row: int) -> str:
        """A row by its key and order."""


class SortedRows:
    """Where keys begin, and the order as numbers, from batch to batch."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._keys, self._orders = Changes(), Changes()
        self._rank = 0
        self._batches: deque[tuple[int, Any]] = deque()  # first row, batch: to name a row in an error
        self._n_rows = 0

    def take(self, batch: Any) -> Given:
        """Read what windows need of a batch."""
        reader, n, by = Reader(Source(batch)), batch.num_rows, self._window.by
        begins = self._keys.take([reader.array(name) for name in by], n)
        order = self._order(reader, n)
        self._batches.append((self._n_rows, batch))
        self._n_rows += n
        return Given(reader, Arranged(None, begins, order, n))

    def _order(self, reader: Reader, n: int) -> Measure:
        name = self._window.order_by[0]
        array = reader.array(name)
        scale = scale_of(name, array.type)
        if scale.kind != "rank":
            return measure(name, array)
        # Texts have no distance; which are the same is all that a window asks of them.
        ranks = self._rank + np.cumsum(self._orders.take([array], n))
        self._rank = int(ranks[-1])
        return Measure(ranks, None, scale)

    def forget(self, row: int) -> None:
        """No window holds a row before this one any more; the batch before the last is kept in any case."""
        while len(self._batches) > 2 and self._batches[1][0] <= row:
            self._batches.popleft()

    @property
    def first_of_last(self) -> int:
        """The number of the first row of the last batch."""
        return self._batches[-1][0]

    def named(self, row: int) -> str:
        """A row by its key and order, as a user knows it."""
        for first, batch in self._batches:
            if first <= row < first + batch.num_rows:
                names = [*self._window.by, *self._window.order_by]
                return ", ".join(f"{name}={batch.column(name)[row - first].as_py()!r}" for name in names)
        return f"row {row} of the task"


# --- one spec --------------------------------------------------------------------------------------


class Lane:
    """One spec on its way through the batches."""

    def __init__(self, spec: Spec) -> None:
        extent = spec.window.extent
        assert extent is not None
        self.spec, self._extent = spec, extent
        self._memory = Memory()
        self._run: Any = None
        self._decoders: list[Decoder] = []
        self._was_null = False  # the order of the last row
        self._last_mark: Any = None
        self.bound: Any = None  # known with the first batch, as is the scale of the order
        self.scale: Any = None
        self.n_unasked = 0  # the first so many answers are of rows that are only there for the others

    def new_run(self, aggregates: Mapping[str, Any]) -> Any:
        """What answers, once the types of the columns are known."""
        return Run(self.bound.bounds, aggregates, self.spec.forced)

    @property
    def is_begun(self) -> bool:
        """Whether there was a row."""
        return self._run is not None

    @property
    def begin(self) -> int:
        """No later window begins before this row."""
        return 0 if self._run is None else self._run.begin

    def push(self, given: Given, names: Names) -> LaneAnswers:
        """Take a batch; what has settled."""
        return self._read(self.enter(given, names))

    def enter(self, given: Given, names: Names) -> Answered:
        """Take a batch; what has settled, as numbers."""
        columns = Columns(given.reader, given.rows, self._memory)
        coded = {name: columns.code(aggregate) for name, aggregate in self.spec.aggregates}
        if self._run is None:
            self.bound, self.scale = bound_for(self.spec, given.reader, given.rows, columns), given.rows.order.scale
            self._run = self.new_run({name: each.aggregate for name, each in coded.items()})
        elif self._extent.policy is not None:
            bound_for(self.spec, given.reader, given.rows, columns)  # carries what the policy reads
        is_sometimes_null = self._extent.min_rows > 0
        self._decoders = [
            Decoder(name, each, coded[name].rule, coded[name].inputs, coded[name].rule.is_nullable or is_sometimes_null)
            for name, each in self.spec.aggregates
        ]
        begins, order = self._in_bounds(given.rows, self.bound)
        batch = Batch(begins, order, columns.columns, self._mark(given, names, begins))
        return self._answers(lambda: self._run.push(batch), names)

    def finish(self, names: Names) -> LaneAnswers:
        """Answer what still waits."""
        return self._read(self._answers(self._run.finish, names))

    def _answers(self, work: Any, names: Names) -> Answered:
        try:
            answered: Answered = work()
        except SumOverflowError as error:
            raise SumOverflowError(f"{error}. It is near {names.named(self._run.n_inserted - 1)}") from error
        except SashError:
            raise
        except Exception as error:
            raise self._at_fault(error, names) from error
        return self._asked(answered)

    def _read(self, answered: Answered) -> LaneAnswers:
        """Answers in their types."""
        arrays = {each.name: each.answer(column) for each, column in zip(self._decoders, answered.answers, strict=True)}
        self._memory.forget(self._run.begin)
        return LaneAnswers(answered, arrays)

    def _asked(self, answered: Answered) -> Answered:
        """Drop answers that nobody waits for."""
        n = min(self.n_unasked, len(answered.rows))
        if n == 0:
            return answered
        self.n_unasked -= n
        return answered._replace(rows=answered.rows[n:], answers=[_from(each, n) for each in answered.answers])

    def _at_fault(self, error: Exception, names: Names) -> DataError:
        """Whose function raised, and at which row."""
        codes = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
        culprits = [f"{name}={show_aggregate(each)}" for name, each in self.spec.aggregates if _functions(each) & codes]
        where = names.named(self._run.n_inserted)
        said = ", ".join(culprits) or ", ".join(name for name, _ in self.spec.aggregates)
        return DataError(f"{said} raised {type(error).__name__}: {error}, at {where}")

    def _in_bounds(self, rows: Arranged, bound: Bound) -> tuple[Any, Any]:
        """Where keys begin, and the order in the unit of the bounds; frames/answering says what nulls mean."""
        order, valid = in_units(rows.order, bound.order_factor), rows.order.valid
        was_null, self._was_null = self._was_null, valid is not None and not valid[-1]
        if valid is None and not was_null:
            return rows.begins, order
        valid = np.ones(rows.n, np.bool_) if valid is None else valid
        if not self._extent.measures_order:
            return rows.begins, np.where(valid, order, SMALLEST if order.dtype.kind == "i" else -np.inf)
        begins = rows.begins.copy()
        begins[1:] |= valid[1:] & ~valid[:-1]
        begins[0] |= was_null and valid[0]
        return begins, np.where(valid, order, 0)

    def _mark(self, given: Given, names: Names, begins: Any) -> Column | None:
        """The column that decides beside the order, for delta and since."""
        name = self._extent.column
        if name is None:
            return None
        array = given.reader.array(name)
        if self._extent.kind == "since":
            return Column(require_truths(name, array, "since"), None)
        marks = mark_column(measure(name, array), self.bound.mark_factor).values
        before = np.concatenate([marks[:1] if self._last_mark is None else self._last_mark, marks[:-1]])
        falls = (marks < before) & ~begins
        if falls.any():
            row = int(falls.argmax())
            raise DataError(
                f"delta({name!r}) needs a column that never falls within a key, but it falls to {array[row].as_py()!r} "
                f"at {names.named(names.first_of_last + row)}. Order by it: order_by={name!r}"
            )
        self._last_mark = marks[-1:].copy()
        return Column(marks, None)


def _from(column: Column, n: int) -> Column:
    return Column(column.values[n:], None if column.valid is None else column.valid[n:])


class LaneAnswers:
    """What one spec has answered now."""

    def __init__(self, answered: Answered, arrays: Mapping[str, Any]) -> None:
        self.rows, self.instants, self.arrays = answered.rows, answered.instants, arrays


def _functions(aggregate: Any) -> set[Any]:
    """The code of the functions of an aggregate of the user's own."""
    if getattr(aggregate.binder, "__module__", "") != agg.__module__:
        return set()
    monoid = aggregate.bind(*[None] * aggregate.n_inputs)
    parts = (monoid.lift, monoid.combine, monoid.lower, monoid.invert)
    return {part.__code__ for part in parts if hasattr(part, "__code__")}


# --- rows out --------------------------------------------------------------------------------------


def _way_out(window: Window, types: Mapping[str, Any]) -> Any:
    if window.grid is None:
        return AtRows(types)
    return AtSomeRows(types) if window.grid.rows is not None else OnGrid(window, types)


class Queue:
    """A column of answers on its way out: pieces in, any number of rows out."""

    def __init__(self) -> None:
        self._pieces: deque[Any] = deque()
        self.n = 0

    def append(self, array: Any) -> None:
        """Add answers."""
        if len(array):
            self._pieces.append(array)
            self.n += len(array)

    def take(self, n: int) -> Any:
        """The next n answers."""
        taken = []
        self.n -= n
        while n:
            piece = self._pieces.popleft()
            if len(piece) > n:
                self._pieces.appendleft(piece.slice(n))
                piece = piece.slice(0, n)
            taken.append(piece)
            n -= len(piece)
        return taken[0] if len(taken) == 1 else pa.concat_arrays(taken)


class AtRows:
    """Answers at every row: batches go out as they came, answers beside."""

    def __init__(self, types: Mapping[str, Any]) -> None:
        self._types = types
        self._batches: deque[Any] = deque()
        self._answers: dict[str, Queue] = {}

    def take(self, batch: Any) -> None:
        """Take a batch that waits for answers."""
        self._batches.append(batch)

    def answer(self, lane: Lane, answers: LaneAnswers) -> None:
        """Take what a spec has answered."""
        for name, answer in answers.arrays.items():
            self._answers.setdefault(name, Queue()).append(as_type(name, answer.array, self._types))

    def settled(self) -> Iterator[Any]:
        """Batches that all specs have answered."""
        while self._batches and self._batches[0].num_rows <= min(queue.n for queue in self._answers.values()):
            batch = self._batches.popleft()
            answers = {name: queue.take(batch.num_rows) for name, queue in self._answers.items()}
            yield _batch([*batch.schema.names, *answers], [*batch.columns, *answers.values()])


class AtSomeRows:
    """Answers at every so many rows of a key: those rows go out."""

    def __init__(self, types: Mapping[str, Any]) -> None:
        self._types = types
        self._batches: deque[tuple[int, Any]] = deque()
        self._n_rows = 0
        self._begin = 0
        self._lead: Lane | None = None
        self._rows = Queue()
        self._answers: dict[str, Queue] = {}

    def take(self, batch: Any) -> None:
        """Take a batch of which some rows may be answered."""
        self._batches.append((self._n_rows, batch))
        self._n_rows += batch.num_rows

    def answer(self, lane: Lane, answers: LaneAnswers) -> None:
        """Take what a spec has answered; the rows are the same for all of them."""
        self._lead = self._lead or lane
        if lane is self._lead:
            self._rows.append(pa.array(answers.rows))
            self._begin = lane.begin
        for name, answer in answers.arrays.items():
            self._answers.setdefault(name, Queue()).append(as_type(name, answer.array, self._types))

    def settled(self) -> Iterator[Any]:
        """Rows that all specs have answered."""
        n = min([self._rows.n, *(queue.n for queue in self._answers.values())], default=0)
        if n:
            rows = self._rows.take(n).to_numpy()
            answers = {name: queue.take(n) for name, queue in self._answers.items()}
            for first, batch in self._batches:
                places = np.flatnonzero((rows >= first) & (rows < first + batch.num_rows))
                if len(places):
                    part = slice(int(places[0]), int(places[-1]) + 1)
                    kept = batch.take(pa.array(rows[part] - first))
                    columns = [*kept.columns, *(each[part] for each in answers.values())]
                    yield _batch([*batch.schema.names, *answers], columns)
        while self._batches and self._batches[0][0] + self._batches[0][1].num_rows <= self._begin:
            self._batches.popleft()


class OnGrid:
    """Answers at instants: keys, times and answers, in batches of their own."""

    def __init__(self, window: Window, types: Mapping[str, Any]) -> None:
        self._window, self._types = window, types
        self._keys: deque[tuple[int, Any]] = deque()  # of the last two batches
        self._n_rows = 0
        self._columns: dict[str, Queue] = {}
        self._lead: Lane | None = None

    def take(self, batch: Any) -> None:
        """Take a batch; of all but its keys nothing is needed."""
        self._keys.append((self._n_rows, batch.select(list(self._window.by))))
        self._n_rows += batch.num_rows
        if len(self._keys) > 2:
            self._keys.popleft()

    def answer(self, lane: Lane, answers: LaneAnswers) -> None:
        """Take what a spec has answered; the first one also says where."""
        self._lead = self._lead or lane
        if lane is self._lead:
            self._where(lane, answers)
        elif _instants_of(lane) != _instants_of(self._lead):
            raise UnsupportedError(
                "these specs answer at different instants of their grid; call them one after the other"
            )
        for name, answer in answers.arrays.items():
            self._columns.setdefault(name, Queue()).append(as_type(name, answer.array, self._types))

    def _where(self, lane: Lane, answers: LaneAnswers) -> None:
        """Keys and instants of answers."""
        first = self._keys[0][0]
        places = pa.array(answers.rows - first)
        for k, name in enumerate(self._window.by):
            keys = pa.concat_arrays([batch.column(k) for _, batch in self._keys])
            self._columns.setdefault(name, Queue()).append(keys.take(places))
        every = lane.bound.bounds.every
        assert isinstance(every, Every)
        names = time_names(self._window)
        times = [answers.instants] if len(names) == 1 else [answers.instants - every.step, answers.instants]
        for name, instants in zip(names, times, strict=True):
            array = instants_as_times(instants, lane.bound.order_factor, lane.scale, every)
            self._columns.setdefault(name, Queue()).append(as_type(name, array, self._types))

    def settled(self) -> Iterator[Any]:
        """Instants that all specs have answered."""
        n = min((queue.n for queue in self._columns.values()), default=0)
        if n:
            columns = {name: queue.take(n) for name, queue in self._columns.items()}
            yield _batch(list(columns), list(columns.values()))


def _instants_of(lane: Lane) -> tuple[int, bool]:
    """What decides at which instants a window on a grid answers: its unit, and whether a row at one is inside."""
    return lane.bound.order_factor, lane.bound.bounds.closed in ("both", "right")


def _batch(names: list[str], columns: list[Any]) -> Any:
    return pa.RecordBatch.from_arrays(columns, names=names)
