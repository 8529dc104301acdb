"""Columns that are measured: order columns, and the column of `delta`, as numbers with a unit.

    type                       number                 unit
    timestamp, with zone or    ticks since 1970 UTC   of the type, in seconds
      not; date, time, duration
    integer                    itself                 1
    decimal(p, s)              scaled integer         10^-s
    float                      itself                 none: lengths are floats
    text, binary, boolean      rank of the value      none: ordered, but not measured

A length is turned into a number of a unit in which both it and the column are whole: "500 ms" over
seconds makes half seconds of both, 2.5 over integers halves. Nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.engine.columns import Column
from sash.errors import DataError, DeclarationError
from sash.frames import buffers
from sash.frames.carriers import ranks_of
from sash.frames.extents import Extent, Grid, Instant, Origin
from sash.windows.bounds import Bounds, Every, EveryRows
from sash.windows.durations import Duration, Length

SECOND = 1_000_000_000
UNITS = {"s": Fraction(1), "ms": Fraction(1, 1_000), "us": Fraction(1, 1_000_000), "ns": Fraction(1, SECOND)}
DAY = Fraction(86_400)
FARTHEST = 2**62  # leaves room for a difference


@dataclass(frozen=True)
class Scale:
    """What the numbers of a measured column mean."""

    name: str  # of the column
    arrow_type: Any
    kind: str  # time, number, float or rank
    unit: Fraction  # in seconds for times, in ones for numbers


@dataclass(frozen=True)
class Measure:
    """A measured column: its numbers, which are not null, and what they mean."""

    values: Any
    valid: Any
    scale: Scale


def scale_of(name: str, arrow_type: Any) -> Scale:
    """What the numbers of a column of some type mean."""
    types = pa.types
    if types.is_timestamp(arrow_type) or types.is_duration(arrow_type) or types.is_time(arrow_type):
        return Scale(name, arrow_type, "time", UNITS[arrow_type.unit])
    if types.is_date(arrow_type):
        return Scale(name, arrow_type, "time", DAY if types.is_date32(arrow_type) else UNITS["ms"])
    if types.is_integer(arrow_type):
        return Scale(name, arrow_type, "number", Fraction(1))
    if types.is_decimal(arrow_type):
        return Scale(name, arrow_type, "number", Fraction(1, 10**arrow_type.scale))
    if types.is_floating(arrow_type):
        return Scale(name, arrow_type, "float", Fraction(1))
    return Scale(name, arrow_type, "rank", Fraction(1))


def measure(name: str, array: Any) -> Measure:
    """Read a column as numbers in order."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        array = array.cast(pa.int64())
    scale, valid = scale_of(name, array.type), buffers.valid_of(array)
    if scale.kind == "time":
        ticks = buffers.fixed_values(array, buffers.tick_dtype(array.type))
        return Measure(ticks.astype(np.int64, copy=False), valid, scale)
    if pa.types.is_decimal(array.type):
        return Measure(_scaled(name, array, valid), valid, scale)
    if scale.kind == "number":
        return Measure(_int64(name, array, valid), valid, scale)
    if scale.kind == "float":
        return Measure(_float64(name, array, valid), valid, scale)
    return Measure(ranks_of(array, f"order_by {name!r}")[0], valid, scale)


def _scaled(name: str, array: Any, valid: Any) -> Any:
    words = buffers.decimal_words(array)
    fits = words[:, 1] == words[:, 0] >> 63
    if not (fits if valid is None else fits | ~valid).all():
        raise DataError(f"order_by {name!r} has decimals beyond 64 bits; cast it to decimal(18, s) or to float64")
    return np.ascontiguousarray(words[:, 0])


def _int64(name: str, array: Any, valid: Any) -> Any:
    values = buffers.fixed_values(array, array.type.to_pandas_dtype())
    if values.dtype == np.uint64:
        large = values > np.iinfo(np.int64).max
        if (large if valid is None else large & valid).any():
            raise DataError(f"order_by {name!r} has values beyond 2**63; cast it to float64, or to a timestamp")
    return values.astype(np.int64, copy=False)


def _float64(name: str, array: Any, valid: Any) -> Any:
    values = buffers.fixed_values(array, array.type.to_pandas_dtype()).astype(np.float64, copy=False)
    strange = ~np.isfinite(values) if valid is None else ~np.isfinite(values) & valid
    if strange.any():
        row = int(strange.argmax())
        raise DataError(
            f"row {row} has {values[row]!r} in order_by {name!r}, which is no place in an order; drop such rows, "
            "or make them null"
        )
    return values


@dataclass(frozen=True)
class Bound:
    """A window in numbers: bounds, and by what the numbers of the order column are multiplied for them."""

    bounds: Bounds
    order_factor: int = 1
    mark_factor: int = 1


def bind(extent: Extent, grid: Grid | None, order: Scale, mark: Scale | None, policy: Any) -> Bound:
    """Turn a declared window into numbers for columns of these types."""
    lengths: dict[str, Length] = {}
    if extent.measures_order:
        lengths["gap" if extent.kind == "session" else "span"] = extent.length  # type: ignore[assignment]
        lengths["lag"] = extent.lag
    origin: Origin = 0
    if grid is not None and grid.step is not None:
        lengths["step"], origin = grid.step, grid.origin
    factor, numbers = _in_common_unit(order, lengths, origin)
    marked: dict[str, Any] = {}
    mark_factor = 1
    if extent.kind == "delta":
        assert mark is not None
        mark_factor, marked = _in_common_unit(mark, {"delta": extent.length}, 0)  # type: ignore[dict-item]
    bounds = Bounds(
        rows=extent.rows,
        span=numbers.get("span"),
        closed=extent.closed,
        ties=extent.ties,
        lag=numbers.get("lag", 0),
        min_rows=extent.min_rows,
        gap=numbers.get("gap"),
        delta=marked.get("delta"),
        since=extent.kind == "since",
        policy=policy,
        every=_every(grid, numbers),
    )
    return Bound(bounds, factor, mark_factor)


def _every(grid: Grid | None, numbers: dict[str, Any]) -> Every | EveryRows | None:
    if grid is None:
        return None
    return EveryRows(grid.rows) if grid.rows is not None else Every(numbers["step"], numbers["origin"])


def _in_common_unit(scale: Scale, lengths: dict[str, Length], origin: Origin) -> tuple[int, dict[str, Any]]:
    """A factor for the column, and the lengths in the unit that results."""
    if not lengths:
        return 1, {}
    for name, length in lengths.items():
        if length != 0:
            _require_measurable(scale, name, length)
    wanted: dict[str, Any] = {**lengths, "origin": _offset(scale, origin)}
    if scale.kind == "float":
        return 1, {name: float(value) for name, value in wanted.items()}
    exact = {name: _exactly(value) for name, value in wanted.items()}
    unit = _common([scale.unit, *exact.values()])
    numbers = {name: int(value / unit) for name, value in exact.items()}
    if any(abs(number) > FARTHEST for number in numbers.values()):
        raise DataError(f"{scale.name!r} cannot be measured in 64 bits in steps of {unit}; use coarser lengths")
    return int(scale.unit / unit), numbers


def _require_measurable(scale: Scale, name: str, length: Length) -> None:
    """Refuse a duration on numbers, a number on times, and any length on what has none."""
    column, found = f"{scale.name!r}", str(scale.arrow_type)
    said = f"{name} {length!r}" if isinstance(length, Duration) else f"{name} {length}"
    if scale.kind == "rank":
        raise DataError(
            f"{said} needs a column with distances, but {column} is {found}. Parse it into a timestamp or a number "
            "first, or count rows with rows(...)"
        )
    if scale.kind == "time" and not isinstance(length, Duration):
        raise DeclarationError(
            f"{said} has no unit, but {column} is {found}. Write '{length} seconds', or whatever you meant"
        )
    if scale.kind != "time" and isinstance(length, Duration):
        raise DeclarationError(
            f"{said} is a length of time, but {column} is {found}, whose unit only you know. Pass a plain number "
            f"in that unit (if it counts seconds, {_plain(length)}), or cast the column to a timestamp"
        )


def _plain(length: Duration) -> str:
    seconds = Fraction(length.nanoseconds, SECOND)
    return str(seconds.numerator) if seconds.denominator == 1 else str(float(seconds))


def _exactly(value: Any) -> Fraction:
    if isinstance(value, Duration):
        return Fraction(value.nanoseconds, SECOND)
    return value if isinstance(value, Fraction) else Fraction(Decimal(str(value)))


def _common(lengths: Iterable[Fraction]) -> Fraction:
    """The greatest unit of which all are whole multiples."""
    unit = Fraction(0)
    for each in lengths:
        top = gcd(unit.numerator * each.denominator, each.numerator * unit.denominator)
        unit = Fraction(top, unit.denominator * each.denominator)
    return unit


def _offset(scale: Scale, origin: Origin) -> Length | Fraction:
    """The origin of a grid as a length from where the column counts from."""
    if isinstance(origin, Instant):
        return _since_epoch(scale, origin)
    if origin != 0:
        _require_measurable(scale, "origin", origin)
    return origin


def _since_epoch(scale: Scale, origin: Instant) -> Fraction:
    types, found = pa.types, scale.arrow_type
    if not (types.is_timestamp(found) or types.is_date(found)):
        raise DeclarationError(
            f"origin {origin!r} is a time, but {scale.name!r} is {found}; give a number or a duration"
        )
    zone = found.tz if types.is_timestamp(found) else None
    if origin.is_aware and zone is None:
        raise DeclarationError(
            f"origin {origin!r} has a time zone, but {scale.name!r} has none. Give it as the clock on the wall shows it"
        )
    if origin.is_aware or zone is None:
        return Fraction(origin.nanoseconds, SECOND)
    wall = pa.array([origin.nanoseconds], pa.timestamp("ns"))
    return Fraction(pc.assume_timezone(wall, zone).cast(pa.int64())[0].as_py(), SECOND)


def in_units(measured: Measure, factor: int) -> Any:
    """The numbers of a column in the unit of its bounds."""
    values = measured.values
    if factor == 1 or values.size == 0:
        return values
    present = values if measured.valid is None else values[measured.valid]
    if present.size and max(abs(int(present.min())), abs(int(present.max()))) * factor > FARTHEST:
        raise DataError(
            f"{measured.scale.name!r} ({measured.scale.arrow_type}) does not fit into 64 bits at the precision of the "
            "window; use lengths that are whole multiples of the column's unit"
        )
    return values * factor


def mark_column(measured: Measure, factor: int) -> Column:
    """The column of `delta`, in the unit of its bounds."""
    if measured.valid is not None and not measured.valid.all():
        row = int((~measured.valid).argmax())
        raise DataError(
            f"row {row} has no {measured.scale.name!r}, so nothing is within a distance of it; drop such rows first"
        )
    return Column(in_units(measured, factor), None)


def instants_as_times(instants: Any, factor: int, scale: Scale, every: Every) -> Any:
    """Points of a grid as values of the type of the order column, or of a finer one if they lie between its values."""
    if scale.kind == "float":
        return pa.array(instants).cast(scale.arrow_type)
    if every.step % factor == 0 and every.origin % factor == 0:
        return _as_type(instants // factor, scale.arrow_type)
    if pa.types.is_decimal(scale.arrow_type) or scale.kind == "number":
        return pa.array([Decimal(int(each)) * _decimal(scale.unit / factor) for each in instants])
    return _finer(instants, scale.unit / factor, scale.arrow_type)


def _decimal(unit: Fraction) -> Decimal:
    return Decimal(unit.numerator) / Decimal(unit.denominator)


def _as_type(ticks: Any, arrow_type: Any) -> Any:
    if pa.types.is_decimal(arrow_type):
        return buffers.decimals(pa.decimal128(38, arrow_type.scale), ticks, None).cast(arrow_type)
    if pa.types.is_integer(arrow_type):
        return pa.array(ticks, pa.int64()).cast(arrow_type)
    return buffers.to_fixed(arrow_type, ticks.astype(buffers.tick_dtype(arrow_type)), None)


def _finer(instants: Any, unit: Fraction, arrow_type: Any) -> Any:
    """Times in the coarsest unit of Arrow that holds them."""
    name, size = next((name, size) for name, size in UNITS.items() if (unit / size).denominator == 1)
    zone = arrow_type.tz if pa.types.is_timestamp(arrow_type) else None
    finer = pa.duration(name) if pa.types.is_duration(arrow_type) else pa.timestamp(name, zone)
    return buffers.to_fixed(finer, instants * int(unit / size), None)
