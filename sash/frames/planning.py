"""Plans: what a spec becomes for the types of a table, without looking at a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sash.engine.explaining import explain_run
from sash.frames.answering import Columns, Reader, arrange, bound_for, policy_aggregates, require_names
from sash.frames.arrow_tables import Source
from sash.frames.extents import Instant
from sash.frames.sources import Table
from sash.windows.durations import Duration

if TYPE_CHECKING:
    from sash.frames.spec import Spec

TAKEN = {  # what aggregates take that take no floats
    "any": pa.bool_(), "all": pa.bool_(), "concat": pa.string(),
    "bit_or": pa.int64(), "bit_and": pa.int64(), "bit_xor": pa.int64(),
}  # fmt: skip


def plan(spec: Spec, source: Table, *, is_assumed: bool) -> str:
    """A text: the spec, the types, and for each group of aggregates what will run."""
    require_names((spec,), source)
    reader = Reader(source.take(np.empty(0, np.int64)))
    rows = arrange(spec.window, reader)
    columns = Columns(reader, rows)
    coded = {name: columns.code(aggregate).aggregate for name, aggregate in spec.aggregates}
    bounds = bound_for(spec, reader, rows, columns).bounds
    is_exact = rows.order.values.dtype.kind == "i"
    parts = explain_run(bounds, coded, columns.columns, is_exact=is_exact, algorithm=spec.forced)
    lines = [repr(spec), f"{'assumed' if is_assumed else 'types':<12}{_types(spec, reader)}"]
    return "\n".join([*lines, *(str(part._replace(window=_window(spec))) for part in parts)])


def _window(spec: Spec) -> str:
    extent, grid = spec.window.extent, spec.window.grid
    return repr(extent) if grid is None else f"{extent!r}, answered {grid!r}"


def _types(spec: Spec, reader: Reader) -> str:
    read = [*spec.window.by, *spec.window.order_by, *(name for _, each in spec.aggregates for name in each.columns)]
    return ", ".join(f"{name} {reader.given(name).type}" for name in dict.fromkeys(read))


def assumed(specs: tuple[Spec, ...]) -> Table:
    """A table without rows, of types that the specs could run on."""
    types: dict[str, Any] = {}
    for spec in specs:
        extent = spec.window.extent
        assert extent is not None
        types |= {name: pa.string() for name in spec.window.by}
        types |= {name: _order_type(spec) for name in spec.window.order_by}
        if extent.column is not None:
            types[extent.column] = pa.bool_() if extent.kind == "since" else _measured_type([extent.length])
    for spec in specs:
        for _, aggregate in (*policy_aggregates(spec), *spec.aggregates):
            for name in aggregate.columns:
                types.setdefault(name, TAKEN.get(aggregate.name, pa.float64()))
            if aggregate.condition is not None:
                types.setdefault(aggregate.condition, pa.bool_())
    return Source(pa.schema(list(types.items())).empty_table())


def _order_type(spec: Spec) -> Any:
    extent, grid = spec.window.extent, spec.window.grid
    assert extent is not None
    measured = [extent.length, extent.lag] if extent.measures_order else []
    return _measured_type(measured if grid is None else [*measured, grid.step, grid.origin])


def _measured_type(lengths: list[Any]) -> Any:
    """Numbers are measured on integers; times, and what is not measured at all, on timestamps."""
    given = [length for length in lengths if length is not None and length != 0]
    if given and not any(isinstance(length, (Duration, Instant)) for length in given):
        return pa.int64()
    zone = "UTC" if any(isinstance(length, Instant) and length.is_aware for length in given) else None
    return pa.timestamp("us", zone)
