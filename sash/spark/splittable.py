"""Whether the windows of specs can be split over ranges of a key, and what that takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StringType

from sash.engine.bridging import partial_bytes
from sash.errors import DataError
from sash.frames.answering import Columns, Reader, arrange, bound_for
from sash.frames.arrow_tables import Source
from sash.frames.extents import show_aggregate
from sash.frames.measuring import scale_of
from sash.spark.carrying import ColumnMemory, Memory
from sash.spark.reaching import HotKey, Reach
from sash.spark.schemas import arrow_schema
from sash.spark.sorting import sortable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from sash.frames.measuring import Bound
    from sash.frames.spec import Placement, Spec

BINARY = "UTF8_BINARY"  # the collation of texts that are compared byte by byte
WIDEST = 256  # bytes of a partial that is worth sending: one is kept for each row that windows begin with


def asked_of(specs: Sequence[Spec]) -> Placement | None:
    """How hot keys are to be split, if they are."""
    return next((spec.placement for spec in specs if spec.placement.ranges not in (None, False)), None)


class Splittable:
    """Whether specs can be split over ranges of a key, and how far their windows reach."""

    def __init__(self, specs: Sequence[Spec], schema: StructType, zone: str) -> None:
        reader = Reader(Source(arrow_schema(schema, zone).empty_table()))
        self.specs = specs
        self.bounds: list[Bound] = []
        self.too_wide: list[str] = []  # for each spec: what cannot be sent of it, and why
        self.reason = _reason(specs, reader) or _unlike_spark(specs[0].window.order_by, schema, reader)
        if self.reason is not None:
            return
        rows = arrange(specs[0].window, reader)
        for spec in specs:
            noted = Noting()
            columns = Columns(reader, rows, noted)
            self.bounds.append(bound_for(spec, reader, rows, columns))
            self.too_wide.append(_too_wide(spec, columns, noted))
        self.reason = next((each for each in map(self._whole, range(len(specs))) if each), None)

    @property
    def portable(self) -> tuple[bool, ...]:
        """For each spec, whether partials of it can be sent."""
        return tuple(not each for each in self.too_wide)

    @property
    def counts_rows(self) -> bool:
        """Whether a window is told by numbers of rows."""
        return any(bound.bounds.rows is not None for bound in self.bounds)

    def is_worthwhile(self, hot: HotKey) -> bool:
        """Whether no window is longer than a range whose rows would all have to be sent."""
        for bound, too_wide in zip(self.bounds, self.too_wide, strict=True):
            reach = Reach(hot, bound, is_portable=True)
            if too_wide and any(reach.has_middle(r) for r in range(hot.n_ranges)):
                return False
        return True

    def _whole(self, k: int) -> str | None:
        extent = self.specs[k].window.extent
        if extent is None or extent.kind != "everything" or not self.too_wide[k]:
            return None
        return f"a window of everything needs a partial of all earlier ranges, and {self.too_wide[k]}"


def _reason(specs: Sequence[Spec], reader: Reader) -> str | None:
    """Why these windows cannot be split, whatever the table holds."""
    window = specs[0].window
    if window.grid is not None:
        return f"{window.grid!r} answers elsewhere than at rows"
    if any(spec.placement.is_presorted for spec in specs):
        return "presorted() says that rows stay where they are"
    for spec in specs:
        extent = spec.window.extent
        if extent is not None and extent.kind not in ("rows", "range", "everything"):
            return f"where windows of {extent!r} begin depends on all rows before"
    name = window.order_by[0]
    if scale_of(name, reader.array(name).type).kind == "rank":
        return f"order_by {name!r} is {reader.array(name).type}, which is no number and no time"
    return None


def _unlike_spark(order_by: Sequence[str], schema: StructType, reader: Reader) -> str | None:
    """Which tie-breaker is ordered in a way that only Spark knows: rows of a range are sorted outside of it."""
    for name in order_by[1:]:
        found = schema[name].dataType
        if isinstance(found, StringType) and getattr(found, "collation", BINARY) != BINARY:
            return f"order_by {name!r} is sorted by the collation {found.collation}"
        try:
            sortable(reader.array(name))
        except DataError:
            return f"order_by {name!r} is {found.simpleString()}, which is sorted by Spark alone"
    return None


class Noting(Memory):
    """A memory that notes columns carried by numbers that mean nothing on another machine."""

    def __init__(self) -> None:
        super().__init__()
        self.local: list[str] = []

    def __call__(self, carried: str) -> ColumnMemory:
        """What carries a column, and notes how."""
        return _NotingColumn(self.local, carried)


class _NotingColumn(ColumnMemory):
    def __init__(self, local: list[str], carried: str) -> None:
        super().__init__()
        self._local, self._carried = local, carried

    def carry_code(self, array: Any, arrow_type: Any) -> Any:
        self._local.append(self._carried)
        return super().carry_code(array, arrow_type)

    def carry_row(self, array: Any, arrow_type: Any) -> Any:
        self._local.append(self._carried)
        return super().carry_row(array, arrow_type)


def _too_wide(spec: Spec, columns: Columns, noted: Noting) -> str:
    """Which aggregate has partials that are not worth sending, or that cannot be; empty: none."""
    for name, aggregate in spec.aggregates:
        coded = columns.code(aggregate).aggregate
        size = partial_bytes(coded, columns.columns)
        if size is None:
            return f"the state of {name}={show_aggregate(aggregate)} has no fixed width"
        if size > WIDEST:
            return f"the state of {name}={show_aggregate(aggregate)} has {size} bytes, more than {WIDEST}"
        if any(carried in noted.local for carried in coded.columns):
            return f"{name}={show_aggregate(aggregate)} keeps values that are no numbers"
    return ""
