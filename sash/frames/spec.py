"""Specs: a window with named aggregates, ready to be called on a table; and several of them together.

A spec holds no data and no compiled code. Everything it needs to know of a table it finds out when
it is called, so the same spec serves pandas, Polars, Arrow and plain arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from sash.aggregators import ALGORITHMS
from sash.errors import DeclarationError, UnknownNameError
from sash.frames.dispatching import answer_columns, answer_seeded, answer_table
from sash.frames.explaining import Explanation, explain
from sash.frames.extents import Named, require_rows, show_aggregate
from sash.frames.streaming import AS_BY_DEFAULT, Streaming, read_streaming

if TYPE_CHECKING:
    from sash.frames.window import Window

MOST_RANGES = 64  # of a hot key: tasks enough for one


class Options(TypedDict, total=False):
    """Further options of `stream`."""

    future: Any
    idle: Any
    changes: str | None
    shards: int
    state: str | None
    failing: str
    checkpoint: str | None


@dataclass(frozen=True, repr=False)
class Placement:
    """Where Spark works on which rows; tables in memory do not look at it."""

    is_presorted: bool = False
    ranges: int | str | None = None  # into how many a hot key is split: a number, "auto", False; None: nothing was said
    hotter_than: int | None = None  # rows; None: whatever suits `ranges`

    def __repr__(self) -> str:
        hotter = "" if self.hotter_than is None else f", hotter_than={self.hotter_than}"
        split = "" if self.ranges is None else f".split_hot_keys({self.ranges!r}{hotter})"
        return split + (".presorted()" if self.is_presorted else "")


@dataclass(frozen=True, repr=False)
class Spec:
    """What to compute over which window; call it on a table."""

    window: Window
    aggregates: Named
    forced: str | None = None  # an algorithm, if one was asked for
    streaming: Streaming = AS_BY_DEFAULT
    placement: Placement = Placement()

    def __call__(self, table: Any) -> Any:
        """Answer for every row of a table: the same kind of table, with the named columns added.

        With `every` or `tumbling` the answer is a new table: the columns of `by`, the time, the answers.
        """
        return answer_table((self,), table)

    def columns(self, given: Mapping[str, Any] | None = None, /, **arrays: Any) -> Any:
        """Answer for columns that are no table: NumPy or Arrow arrays or lists, by name; NumPy arrays out.

        >>> import sash
        >>> spec = sash.window(order_by="t").range(10).agg(total=sash.sum("x"))
        >>> spec.columns(t=[1, 5, 20], x=[1, 2, 4])
        {'total': array([1, 3, 4])}
        """
        return answer_columns((self,), given, arrays)

    def algorithm(self, name: str) -> Spec:
        """The same, by an algorithm of one's own choice; see `sash.algorithms()`."""
        return replace(self, forced=_require_algorithm(name))

    def stream(
        self, *, emit: str = "final", lateness: Any = "0 seconds", late: str = "drop", **options: Unpack[Options]
    ) -> Spec:
        """The same, with how a stream should answer; a batch does not look at it.

        Parameters
        ----------
        emit
            "final": one answer for each row, once no row before it can come any more; "eager": at once, over what has
            come; "revise": at once, and again whenever a late row changes it, with a revision number.
        lateness
            How far behind the newest row a row may be and still count.
        late
            What to do with rows that are later: "drop" and count them, "raise" an error, or give them out "aside", in
            the column `is_late`.
        future
            How far ahead of the clock a row may be ("1 day"); one that is further is treated as late, so that
            a single wrong time does not push all others behind the watermark. None: any time is taken.
        idle
            Forget a key that has been silent for so long; None: never, as long as a window may hold its rows.
        changes
            A column that says which rows are deletions or corrections of earlier ones; with "revise" only.
        shards
            Into how many parts keys are divided; fixed for the life of a checkpoint.
        checkpoint
            The checkpointLocation that the query will be started with. If it has state already, the number of shards is
            read from there, whatever `shards` says.
        failing
            What to do with rows that an aggregate of your own cannot take, because its `lift` raises: "raise" an error
            that names the row, "drop" and count them, or give them out "aside", with the reason in the column
            `failure`.
        state
            The address of a store that keeps the state, as in "redis://host:6379/0" or "lmdb:///path"; such a stream
            is started by `sash.spark.run`. None: Spark keeps it, beside its checkpoint.
        """
        return replace(self, streaming=read_streaming(emit, lateness, late, dict(options)))

    def seed(self, history: Any) -> Seeded:
        """The same, for a stream that goes on where a batch table ends: its windows hold rows of that table.

        Call what this gives on the stream. Rows of history are not answered; those of the stream that are more than
        the lateness before the end of history are late. Only the first start of a query reads history.
        """
        return Seeded((self,), history)

    def presorted(self) -> Spec:
        """The same, for a Spark table that need not be shuffled or sorted: you vouch for its rows.

        All rows of a key must be in one partition, and each partition sorted by `by`, then `order_by`. Rows out of
        order are an error; a key in two partitions goes unnoticed, and is answered as if it were two keys.
        """
        return replace(self, placement=replace(self.placement, is_presorted=True))

    def split_hot_keys(self, ranges: Any = "auto", *, hotter_than: int | None = None) -> Spec:
        """The same, with keys too large for one task of Spark split into ranges of time, a task for each.

        When the spec is called, it looks at the table for keys of more than `hotter_than` rows and for where their
        ranges should begin: two or three small jobs. "auto" takes a million for hot, and makes a range for each
        million rows. A number forces so many ranges on the largest keys, of whatever size, if `hotter_than` is not
        given. False leaves them whole. Answers are the same.
        """
        return replace(self, placement=_split(self.placement, ranges, hotter_than))

    def explain(self, table: Any = None) -> Explanation:
        """Say what will run, which algorithm and why, and what it costs.

        Types decide; without a table every column is taken for 64-bit floats and times for microseconds.
        """
        return explain((self,), table)

    def __repr__(self) -> str:
        aggregates = ", ".join(f"{name}={show_aggregate(each)}" for name, each in self.aggregates)
        text = f"{self.window!r}.agg({aggregates})"
        if self.forced is not None:
            text += f".algorithm({self.forced!r})"
        if self.streaming != AS_BY_DEFAULT:
            text += f".{self.streaming!r}"
        return text + repr(self.placement)


@dataclass(frozen=True)
class Seeded:
    """Specs for a stream that goes on where a batch table ends; call it on the stream."""

    specs: tuple[Spec, ...]
    history: Any

    def __call__(self, stream: Any) -> Any:
        """Answer for every row of a stream, over windows that hold rows of history too."""
        return answer_seeded(self.specs, stream, self.history)


@dataclass(frozen=True, repr=False)
class Together:
    """Specs over the same keys in the same order: sorted once, answered side by side."""

    specs: tuple[Spec, ...]

    def __call__(self, table: Any) -> Any:
        """Answer all specs for every row of a table."""
        return answer_table(self.specs, table)

    def columns(self, given: Mapping[str, Any] | None = None, /, **arrays: Any) -> Any:
        """Answer all specs for columns that are no table."""
        return answer_columns(self.specs, given, arrays)

    def algorithm(self, name: str) -> Together:
        """The same, each by an algorithm of one's own choice."""
        return Together(tuple(spec.algorithm(name) for spec in self.specs))

    def stream(self, **options: Any) -> Together:
        """The same, with how a stream should answer."""
        return Together(tuple(spec.stream(**options) for spec in self.specs))

    def seed(self, history: Any) -> Seeded:
        """The same, for a stream that goes on where a batch table ends."""
        return Seeded(self.specs, history)

    def presorted(self) -> Together:
        """The same, for a Spark table that need not be shuffled or sorted."""
        return Together(tuple(spec.presorted() for spec in self.specs))

    def split_hot_keys(self, ranges: Any = "auto", *, hotter_than: int | None = None) -> Together:
        """The same, with keys too large for one task of Spark split into ranges of time."""
        return Together(tuple(spec.split_hot_keys(ranges, hotter_than=hotter_than) for spec in self.specs))

    def explain(self, table: Any = None) -> Explanation:
        """Say what will run for each spec."""
        return explain(self.specs, table)

    def __repr__(self) -> str:
        return f"sash.together({', '.join(repr(spec) for spec in self.specs)})"


def together(*specs: Spec | Together) -> Together:
    """Put specs with the same `by` and `order_by` together: one sort, one table of answers."""
    several = tuple(each for spec in specs for each in _specs_of(spec))
    if not several:
        raise DeclarationError("together() needs specs, as in sash.together(hour, day)")
    first = several[0].window
    for spec in several[1:]:
        if (spec.window.by, spec.window.order_by) != (first.by, first.order_by):
            raise DeclarationError(
                f"specs that go together have the same by and order_by, but {spec.window!r} differs from {first!r}. "
                "Call them one after the other; on a stream, in queries of their own"
            )
        if spec.window.grid != first.grid:
            raise DeclarationError(
                "specs that go together answer at the same rows or instants, but one answers "
                f"{first.grid or 'at every row'} and another {spec.window.grid or 'at every row'}. "
                "Call them one after the other; on a stream, in queries of their own"
            )
        if spec.streaming != several[0].streaming:
            raise DeclarationError(
                "specs that go together answer a stream alike; call stream(...) on what together gives"
            )
    _require_distinct_names(several)
    return Together(several)


def _specs_of(given: Any) -> tuple[Spec, ...]:
    if isinstance(given, Together):
        return given.specs
    if isinstance(given, Spec):
        return (given,)
    hint = ". Add .agg(...) to the window first" if hasattr(given, "agg") else ""
    raise DeclarationError(f"together() takes specs, got {given!r}{hint}")


def _require_distinct_names(specs: tuple[Spec, ...]) -> None:
    seen: set[str] = set()
    for name in (name for spec in specs for name, _ in spec.aggregates):
        if name in seen:
            raise DeclarationError(f"two specs both answer {name!r}; give one of them another name")
        seen.add(name)


def _split(placement: Placement, ranges: Any, hotter_than: Any) -> Placement:
    if ranges is False:
        return replace(placement, ranges=False, hotter_than=None)
    if ranges != "auto":
        is_number = isinstance(ranges, int) and not isinstance(ranges, bool)
        if not is_number or not 1 <= ranges <= MOST_RANGES:
            raise DeclarationError(
                f"split_hot_keys takes 'auto', False or a number of ranges from 1 to {MOST_RANGES}, got {ranges!r}"
            )
    least = None if hotter_than is None else require_rows("hotter_than", hotter_than, least=0)
    return replace(placement, ranges=ranges, hotter_than=least)


def _require_algorithm(name: Any) -> str:
    if name not in ALGORITHMS:
        raise UnknownNameError.among("algorithm", name, ALGORITHMS)
    return str(name)
