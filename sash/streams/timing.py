"""Times as microseconds, instants of a grid, and the watermark at which a row is due.

The watermark says: no row before it will come any more. A row at t is therefore due as soon as the watermark is
after t; on a grid it waits for the first instant that it is inside or before, g, and all rows of that window with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import UnsupportedError
from sash.frames import buffers
from sash.frames.measuring import Bound, bind, scale_of
from sash.streams.contract import HASH
from sash.streams.plans import Plan, microseconds
from sash.windows.bounds import Every

if TYPE_CHECKING:
    from sash.frames.extents import Extent, Grid

DAY = 86_400_000_000
MILLISECOND = 1_000  # microseconds
NEVER = np.iinfo(np.int64).min  # a watermark before all times


def times_of(array: Any) -> Any:
    """The times of a column in microseconds since 1970, whatever stands where there is none."""
    array = buffers.single(array)
    if pa.types.is_date32(array.type):
        return buffers.fixed_values(array, np.int32).astype(np.int64) * DAY
    return buffers.fixed_values(array, np.int64)


def require_time(name: str, arrow_type: Any) -> None:
    """Refuse an order that is no time: a watermark is one."""
    if pa.types.is_date32(arrow_type) or (pa.types.is_timestamp(arrow_type) and arrow_type.unit == "us"):
        return
    raise UnsupportedError(
        f"a stream is ordered by time, and Spark's watermark is a time, but {name!r} is {arrow_type}. Cast it first, "
        f"as in df.withColumn({name!r}, timestamp_seconds({name!r}))"
    )


@dataclass(frozen=True)
class Instants:
    """The instants of a grid, in microseconds."""

    step: int
    origin: int
    is_closed: bool  # whether a row at an instant is inside the window that ends there

    def of(self, times: Any) -> Any:
        """For each row the first instant that it is inside or before."""
        found = self.numbers(times)
        found *= self.step
        found += self.origin
        return found

    def numbers(self, times: Any) -> Any:
        """The same instants, numbered."""
        found = np.subtract(times, self.origin + self.is_closed, out=buffers.room(len(times), np.int64))
        found //= self.step
        found += 1
        return found

    def open_from(self, watermark: int) -> int:
        """The first time whose rows are not due yet: those wait, though they may be before the watermark."""
        last = watermark - (1 if self.is_closed else 0)
        return watermark - (last - self.origin) % self.step


def instants_of(plan: Plan) -> Instants | None:
    """The grid of a plan, if it has one in time."""
    return _instants(tuple(plan.extents), plan.window.grid, plan.schema.field(plan.time)) if plan.is_grid else None


@lru_cache(maxsize=64)
def _instants(extents: tuple[Extent, ...], grid: Grid, time: Any) -> Instants:
    """Found out once for all shards that a worker is given."""
    order = scale_of(time.name, time.type)
    found = {_bound_instants(bind(extent, grid, order, None, None)) for extent in extents}
    if len(found) > 1:
        raise UnsupportedError(
            "these specs answer at other instants of their grid; answer them in queries of their own"
        )
    step, origin, is_closed, factor = found.pop()
    scale = DAY if pa.types.is_date32(order.arrow_type) else 1
    if step * scale % factor or origin * scale % factor:
        raise UnsupportedError(f"the grid {grid!r} is finer than Spark's times, which are in microseconds")
    return Instants(step * scale // factor, origin * scale // factor, is_closed)


def _bound_instants(bound: Bound) -> tuple[int, int, bool, int]:
    every = bound.bounds.every
    assert isinstance(every, Every)
    return int(every.step), int(every.origin), bound.bounds.closed in ("both", "right"), bound.order_factor


def newest_of(time: str, rows: Any) -> int | None:
    """The newest time of some rows, in microseconds; those too far ahead, which have no hash, do not count."""
    array, hashes = (buffers.single(rows.column(name)) for name in (time, HASH))
    counts = buffers.booleans(pc.and_(array.is_valid(), hashes.is_valid()))
    return int(times_of(array)[counts].max()) if counts.any() else None


def watermark_after(plan: Plan, newest: int | None) -> int:
    """What Spark says after it has seen a row: whole milliseconds, rather one too many for rows that are late."""
    if newest is None:
        return NEVER
    lateness = -(-microseconds(plan.streaming.lateness) // MILLISECOND)
    return (newest // MILLISECOND - lateness) * MILLISECOND


def due_at(times: Any, instants: Instants | None) -> Any:
    """The smallest watermark at which each row can be answered."""
    if instants is None:
        return times + 1
    return instants.of(times) + (1 if instants.is_closed else 0)
