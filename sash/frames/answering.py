"""Answering specs over a table: read, sort, run, put back.

    table --> keys as codes, order as numbers --> rows sorted by both (once for all specs)
          --> columns carried as numbers ------> engine --> answers back in the types, order and kind of the table

Rows without an order value (null) come first, as in Spark. They have no distance to others, so windows that
measure (range, session) see them as rows of a key of their own, all at the same place; windows that count rows or
take everything see them first; a grid in time has no place for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from sash.algebra.aggregate import Aggregate
from sash.engine.batches import Answered, Batch
from sash.engine.columns import Column
from sash.engine.whole import answer_whole, count_rows
from sash.errors import DataError, DeclarationError, SumOverflowError, UnknownNameError, UnsupportedError
from sash.frames import buffers, carriers
from sash.frames.carriers import Carrier
from sash.frames.extents import Named, show_aggregate
from sash.frames.keys import ByNumbers, ByPlaces, Codes, joint_codes, sort
from sash.frames.measuring import Bound, Measure, bind, in_units, instants_as_times, mark_column, measure, scale_of
from sash.frames.rules import RULES, Input, Rule, rule_of
from sash.frames.sources import Answer, Table
from sash.windows.bounds import Every
from sash.windows.policies import Policy, as_policy

if TYPE_CHECKING:
    from sash.frames.spec import Spec
    from sash.frames.window import Window


def answer(specs: tuple[Spec, ...], source: Table) -> Any:
    """Answer specs with the same keys and order over a table."""
    window = specs[0].window
    require_names(specs, source)
    reader = Reader(source)
    rows = arrange(window, reader)
    outcomes = [_run(spec, reader, rows) for spec in specs]
    if window.grid is None:
        return source.with_columns(_at_rows(outcomes, rows))
    if window.grid.rows is not None:
        return _at_some_rows(outcomes, rows, source)
    return _on_grid(window, outcomes, rows, source)


# --- names -----------------------------------------------------------------------------------------


def require_names(specs: tuple[Spec, ...], source: Table) -> None:
    """Check that every column that is read exists, and that no answer takes the name of a column."""
    known = source.names
    for name, role in _names_read(specs):
        if name not in known:
            if not known:
                raise DataError(f"{role}: the table has no columns whose names are texts, so there is no {name!r}")
            raise UnknownNameError(f"{role}: {UnknownNameError.among('column', name, known)}")
    window = specs[0].window
    is_new_table = window.grid is not None and window.grid.rows is None
    if is_new_table:
        _require_place_for_times(window)
    taken = {*window.by, *time_names(window)} if is_new_table else set(known)
    for name in (name for spec in specs for name, _ in spec.aggregates):
        if name in taken:
            raise DeclarationError(
                f"the answer {name!r} would replace a column of that name. Give it another: agg({name}_window=...)"
            )


def _require_place_for_times(window: Window) -> None:
    for name in time_names(window):
        if name in window.by:
            raise DeclarationError(
                f"the answers have a column {name!r} for instants, but by has one of that name too; rename it first"
            )


def _names_read(specs: tuple[Spec, ...]) -> list[tuple[str, str]]:
    """Every column that is read, and what for."""
    window = specs[0].window
    read = [(name, "by") for name in window.by] + [(name, "order_by") for name in window.order_by]
    for spec in specs:
        extent = spec.window.extent
        assert extent is not None
        if extent.column is not None:
            read.append((extent.column, extent.kind))
        for _, aggregate in (*policy_aggregates(spec), *spec.aggregates):
            read += [(name, show_aggregate(aggregate)) for name in (*aggregate.columns, aggregate.condition) if name]
    return read


def policy_aggregates(spec: Spec) -> Named:
    """The aggregates that the policy of a window looks at."""
    extent = spec.window.extent
    assert extent is not None
    return () if extent.policy is None else as_policy(extent.policy, dict(extent.aggregates)).aggregates


def time_names(window: Window) -> list[str]:
    """The columns that say when, in a table of answers on a grid."""
    name = window.order_by[0]
    return [f"{name}_start", name] if window.grid is not None and window.grid.is_tumbling else [name]


# --- rows in order ---------------------------------------------------------------------------------


class Reader:
    """The columns of a table as Arrow arrays, each read once."""

    def __init__(self, source: Table) -> None:
        self.n_rows = source.n_rows
        self._source = source
        self._given: dict[str, Any] = {}
        self._single: dict[str, Any] = {}

    def given(self, name: str) -> Any:
        """A column as the table has it."""
        if name not in self._given:
            self._given[name] = self._source.array(name)
        return self._given[name]

    def array(self, name: str) -> Any:
        """A column in one piece, of a type that Arrow computes with."""
        if name not in self._single:
            self._single[name] = buffers.single(self.given(name))
        return self._single[name]


@dataclass(frozen=True)
class Arranged:
    """Rows sorted by key and order."""

    moves: ByNumbers | ByPlaces | None  # None: they were sorted already
    begins: Any  # which are the first of their key
    given: Measure  # the order, as the table has it
    n: int

    @property
    def numbers(self) -> Any:
        """The number in the table of each row; None: its own."""
        return None if self.moves is None else self.moves.numbers

    @cached_property
    def order(self) -> Measure:
        """The order, sorted."""
        values, valid, scale = self.given.values, self.given.valid, self.given.scale
        return self.given if self.moves is None else Measure(self.sorted(values), self.sorted(valid), scale)

    def sorted(self, values: Any) -> Any:
        """Something for each row of the table, in order."""
        return values if self.moves is None or values is None else self.moves.sorted(values)

    def put_back(self, values: Any) -> Any:
        """Something for each of these rows, in the order of the table."""
        return values if self.moves is None or values is None else self.moves.put_back(values)


def arrange(window: Window, reader: Reader) -> Arranged:
    """Sort rows by key, then order_by, then as they came; nulls in order_by come first."""
    codes = joint_codes([reader.array(name) for name in window.by], reader.n_rows)
    measures = [measure(name, reader.array(name)) for name in window.order_by]
    time = measures[0]
    on_time_grid = window.grid is not None and window.grid.rows is None
    kept = None
    if time.valid is not None and on_time_grid:
        kept = np.flatnonzero(time.valid)
        codes = Codes(codes.codes[kept], codes.n_codes)
        measures = [_picked(each, kept) for each in measures]
    moves, begins = sort(codes, [column for each in measures for column in _sortable(each)])
    if kept is not None:
        moves = ByNumbers(kept if moves is None else kept[moves.numbers])
    return Arranged(moves, begins, time, len(begins))


def _picked(each: Measure, rows: Any) -> Measure:
    return Measure(each.values[rows], None if each.valid is None else each.valid[rows], each.scale)


def _sortable(each: Measure) -> list[Any]:
    """Columns by which values sort, nulls first."""
    if each.valid is None:
        return [each.values]
    return [each.valid, np.where(each.valid, each.values, 0)]


# --- running ---------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What the engine answered to a spec, with what is needed to read it."""

    spec: Spec
    bound: Bound
    answered: Answered
    decoders: list[Decoder]


class Decoder(NamedTuple):
    """How the answers of one aggregate are read."""

    name: str
    aggregate: Aggregate
    rule: Rule
    inputs: tuple[Carrier, ...]
    is_nullable: bool

    def answer(self, column: Column) -> Answer:
        """A column of answers in its type."""
        columns = self.aggregate.columns
        like = None if self.rule.like is None else columns[self.rule.like]
        array = self.rule.decode(column, self.inputs)
        return Answer(array, like, columns[0] if columns else None, self.is_nullable)


def _run(spec: Spec, reader: Reader, rows: Arranged) -> Outcome:
    extent = spec.window.extent
    assert extent is not None
    columns = Columns(reader, rows)
    coded = {name: columns.code(aggregate) for name, aggregate in spec.aggregates}
    bound = bound_for(spec, reader, rows, columns)
    begins, order = rows.begins, rows.given.values
    if rows.given.valid is not None or not count_rows(bound.bounds):  # else nobody looks at the order
        begins, order = _in_bounds(rows, bound, is_measured=extent.measures_order)
    batch = Batch(begins, order, columns.columns, _mark(spec, reader, rows, bound))
    aggregates = {name: each.aggregate for name, each in coded.items()}
    try:
        answered = answer_whole(bound.bounds, aggregates, batch, spec.forced, is_sorted=True, room=buffers.room)
    except SumOverflowError as error:
        raise SumOverflowError(f"{error}. Rows are numbered here as the window sees them, by key and order") from error
    decoders = [
        Decoder(
            name, aggregate, coded[name].rule, coded[name].inputs, coded[name].rule.is_nullable or extent.min_rows > 0
        )
        for name, aggregate in spec.aggregates
    ]
    return Outcome(spec, bound, answered, decoders)


def bound_for(spec: Spec, reader: Reader, rows: Arranged, columns: Columns) -> Bound:
    """The window of a spec in numbers, for the types of the columns it measures."""
    extent = spec.window.extent
    assert extent is not None
    policy, mark = None, None
    if extent.policy is not None:
        policy = columns.code_policy(as_policy(extent.policy, dict(extent.aggregates)))
    if extent.kind == "delta" and extent.column is not None:
        mark = scale_of(extent.column, reader.array(extent.column).type)
    return bind(extent, spec.window.grid, rows.order.scale, mark, policy)


def _in_bounds(rows: Arranged, bound: Bound, *, is_measured: bool) -> tuple[Any, Any]:
    """Where keys begin, and the order in the unit of the bounds; see the header for rows without one."""
    order, valid = in_units(rows.order, bound.order_factor), rows.order.valid
    if valid is None or valid.all():
        return rows.begins, order
    if not valid.any():
        return rows.begins, np.zeros(rows.n, order.dtype)
    if not is_measured:
        before = max(order[valid].min() - 1, np.iinfo(np.int64).min) if order.dtype.kind == "i" else -np.inf
        return rows.begins, np.where(valid, order, before)
    begins = rows.begins.copy()
    begins[1:] |= valid[1:] & ~valid[:-1]
    return begins, np.where(valid, order, 0)


def _mark(spec: Spec, reader: Reader, rows: Arranged, bound: Bound) -> Column | None:
    """The column that decides beside the order, for delta and since."""
    extent = spec.window.extent
    assert extent is not None
    if extent.column is None:
        return None
    array = reader.array(extent.column)
    if extent.kind == "since":
        return Column(rows.sorted(require_truths(extent.column, array, "since")), None)
    marks = rows.sorted(mark_column(measure(extent.column, array), bound.mark_factor).values)
    _require_rising(extent.column, marks, rows, array)
    return Column(marks, None)


def _require_rising(name: str, marks: Any, rows: Arranged, array: Any) -> None:
    falls = (marks[1:] < marks[:-1]) & ~rows.begins[1:]
    if not falls.any():
        return
    place = int(falls.argmax()) + 1
    row, before = (place, place - 1) if rows.numbers is None else (int(rows.numbers[k]) for k in (place, place - 1))
    raise DataError(
        f"delta({name!r}) needs a column that never falls within a key, but row {row} has {array[row].as_py()!r} after "
        f"{array[before].as_py()!r} in row {before}. Order by it: order_by={name!r}"
    )


def require_truths(name: str, array: Any, what: str) -> Any:
    """Read a boolean column, null as false."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    if not pa.types.is_boolean(array.type):
        raise DataError(
            f"{what}({name!r}) needs a boolean column, but it is {array.type}. Compare it with something first"
        )
    return buffers.booleans(array)


class Coded(NamedTuple):
    """An aggregate over carried columns."""

    aggregate: Aggregate
    rule: Rule
    inputs: tuple[Carrier, ...]


def _whole(carried: str) -> Any:
    """How columns are carried that are there from end to end."""
    return carriers


class Columns:
    """The columns of a run: what aggregates read, carried as numbers, sorted, each once."""

    def __init__(self, reader: Reader, rows: Arranged | None, carrying: Callable[[str], Any] = _whole) -> None:
        """`rows`: in which order; None: as they come."""
        self._carrying = carrying
        self.columns: dict[str, Column] = {}
        self._carriers: dict[str, Carrier] = {}
        self._reader, self._rows = reader, rows

    def code(self, aggregate: Aggregate) -> Coded:
        """The same aggregate, reading carried columns."""
        rule = rule_of(aggregate)
        if rule is RULES["count"] and not aggregate.columns and aggregate.condition is not None:
            return self._code_conditional_count(aggregate)
        names = []
        for name, coder in zip(aggregate.columns, rule.coders, strict=False):
            carried = f"{name}, {coder.__name__.strip('_')}"
            if carried not in self._carriers:
                array = self._reader.array(name)
                if pa.types.is_null(array.type):
                    array = array.cast(pa.float64())
                kept = _kept_type(self._reader.given(name).type)
                carrier = coder(Input(aggregate, name, array, kept, self._carrying(carried)))
                self._carriers[carried] = carrier
                self.columns[carried] = self._sorted(carrier.column)
            names.append(carried)
        inputs = tuple(self._carriers[name] for name in names)
        return Coded(replace(aggregate, columns=tuple(names), condition=self._condition(aggregate)), rule, inputs)

    def _code_conditional_count(self, aggregate: Aggregate) -> Coded:
        """A count of rows where a column is true is a count of its values, false ones being null."""
        name = f"{aggregate.condition}, true ones"
        truths = self.columns[self._condition(aggregate) or ""].values
        self.columns[name] = Column(np.zeros(len(truths), np.uint8), truths)
        return Coded(replace(aggregate, columns=(name,), condition=None, n_inputs=1), RULES["count"], ())

    def code_policy(self, policy: Policy) -> Policy:
        """The same policy, over aggregates that read carried columns."""
        aggregates = tuple((name, self.code(aggregate).aggregate) for name, aggregate in policy.aggregates)
        return replace(policy, aggregates=aggregates)

    def _condition(self, aggregate: Aggregate) -> str | None:
        name = aggregate.condition
        if name is None:
            return None
        condition = f"{name}, condition"
        if condition not in self.columns:
            truths = require_truths(name, self._reader.array(name), f"{aggregate.name}(...).where")
            self.columns[condition] = self._sorted(Column(truths, None))
        return condition

    def _sorted(self, column: Column) -> Column:
        if self._rows is None:
            return column
        return Column(self._rows.sorted(column.values), self._rows.sorted(column.valid))


def _kept_type(arrow_type: Any) -> Any:
    """The type of answers that are values of a column of this type."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    if pa.types.is_run_end_encoded(arrow_type):
        arrow_type = arrow_type.value_type
    return pa.float64() if pa.types.is_null(arrow_type) else arrow_type


# --- answers back ----------------------------------------------------------------------------------


def _at_rows(outcomes: list[Outcome], rows: Arranged) -> dict[str, Answer]:
    """Answers in the order of the table."""
    return _answers(outcomes, rows.put_back)


def _answers(outcomes: list[Outcome], moved: Callable[[Any], Any]) -> dict[str, Answer]:
    """All answers, moved to where they belong."""
    answers: dict[str, Answer] = {}
    for outcome in outcomes:
        for decoder, (values, valid) in zip(outcome.decoders, outcome.answered.answers, strict=True):
            answers[decoder.name] = decoder.answer(Column(moved(values), None if valid is None else moved(valid)))
    return answers


def _at_some_rows(outcomes: list[Outcome], rows: Arranged, source: Table) -> Any:
    """Every so many rows of a key: those rows of the table, in its order."""
    answered = outcomes[0].answered.rows
    numbers = answered if rows.numbers is None else rows.numbers[answered]
    places = np.argsort(numbers, kind="stable")
    return source.take(numbers[places]).with_columns(_answers(outcomes, lambda values: values[places]))


def _on_grid(window: Window, outcomes: list[Outcome], rows: Arranged, source: Table) -> Any:
    """A table of keys, instants and answers: keys in the order of their first rows, instants ascending."""
    first = outcomes[0]
    for other in outcomes[1:]:
        if not _has_same_instants(first, other):
            raise UnsupportedError(
                "these specs answer at different instants of their grid; call them one after the other"
            )
    answered, every = first.answered, first.bound.bounds.every
    assert isinstance(every, Every)
    places = np.argsort(_first_rows(rows, answered.rows), kind="stable")
    numbers = answered.rows if rows.numbers is None else rows.numbers[answered.rows]
    scale, factor, instants = rows.order.scale, first.bound.order_factor, answered.instants[places]
    times = dict.fromkeys(time_names(window), instants)
    if len(times) == 2:
        times[time_names(window)[0]] = instants - every.step
    like = window.order_by[0]
    when = {name: Answer(instants_as_times(each, factor, scale, every), None, like) for name, each in times.items()}
    return source.new(window.by, numbers[places], when | _answers(outcomes, lambda values: values[places]))


def _has_same_instants(one: Outcome, other: Outcome) -> bool:
    if one.bound.order_factor != other.bound.order_factor:
        return False
    return np.array_equal(one.answered.rows, other.answered.rows) and np.array_equal(
        one.answered.instants, other.answered.instants
    )


def _first_rows(rows: Arranged, among: Any) -> Any:
    """For some sorted rows, the number in the table of the first row of the key of each."""
    if rows.n == 0:
        return np.empty(0, np.int64)
    starts = np.flatnonzero(rows.begins)
    numbers = np.arange(rows.n) if rows.numbers is None else rows.numbers
    return np.minimum.reduceat(numbers, starts)[np.searchsorted(starts, among, "right") - 1]
