"""Types: of a Spark table in Arrow's words, and of answers in Spark's, before any job starts.

What type an answer has follows from the types of the columns, for most aggregates. An aggregate of the user's own may
answer anything. So the specs are tried on a few rows of made-up values, right here: this also finds columns that
are missing or of a wrong type, and functions that cannot be compiled, before a cluster is troubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from sash.errors import DataError, DeclarationError, SashError
from sash.frames import buffers
from sash.frames.answering import require_names, time_names
from sash.frames.arrow_tables import Source
from sash.frames.carriers import is_plain, is_ticks
from sash.frames.extents import Extent, show_aggregate
from sash.frames.rules import rule_of
from sash.spark.passing import Pass

if TYPE_CHECKING:
    from sash.frames.spec import Spec

WIDER = {  # Spark has no unsigned numbers, and one width of halves, texts and times
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(), pa.large_string(): pa.string(), pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}  # fmt: skip
N_ROWS = 20  # enough for rings to grow, so that all machine code of a pass is made here


def arrow_schema(schema: StructType, zone: str) -> Any:
    """A Spark schema as Arrow's, as its batches reach a worker; times are in the zone of the session."""
    return to_arrow_schema(schema, timezone=zone)


def answer_schema(specs: Sequence[Spec], schema: StructType, zone: str) -> tuple[StructType, dict[str, Any]]:
    """The schema of what comes out, and the Arrow types of the columns that are new."""
    known = arrow_schema(schema, zone)
    sample = _sample(known)
    require_names(tuple(specs), Source(sample))
    found = _tried(specs, sample)
    is_new_table = specs[0].window.grid is not None and specs[0].window.grid.rows is None
    kept = list(specs[0].window.by) if is_new_table else schema.names
    types = {name: in_spark(each, zone) for name, each in found.items() if name not in kept}
    nullable = _is_nullable(specs)
    fields = [schema[name] for name in kept]
    fields += [StructField(name, _spark_type(specs, name, each), nullable[name]) for name, each in types.items()]
    return StructType(fields), types


def _sample(schema: Any) -> Any:
    """A few rows."""
    columns = [_values(field.type, N_ROWS) for field in schema]
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def _values(arrow_type: Any, n: int) -> Any:
    """Ascending values of a type; nulls where none are known."""
    numbers, types = np.arange(1, n + 1), pa.types
    if types.is_boolean(arrow_type):
        return pa.array(numbers > n // 2)
    if is_plain(arrow_type):
        return pa.array(numbers).cast(arrow_type)
    if is_ticks(arrow_type):
        return buffers.to_fixed(arrow_type, numbers.astype(buffers.tick_dtype(arrow_type)), None)
    if types.is_decimal(arrow_type):
        return buffers.decimals(arrow_type, numbers, None)
    if types.is_string(arrow_type) or types.is_binary(arrow_type):
        return pa.array([f"{number:04}" for number in numbers]).cast(arrow_type)
    if types.is_list(arrow_type):
        offsets = pa.array(np.arange(n + 1, dtype=np.int32))
        return pa.ListArray.from_arrays(offsets, _values(arrow_type.value_type, n), arrow_type)
    if types.is_struct(arrow_type):
        return pa.StructArray.from_arrays([_values(each.type, n) for each in arrow_type], fields=list(arrow_type))
    return pa.nulls(n, arrow_type)


def _tried(specs: Sequence[Spec], sample: Any) -> dict[str, Any]:
    """The types of the columns that the specs make of the sample."""
    tried = Pass(specs)
    try:
        batches = [*tried.push(_one_key(specs, sample)), *tried.finish()]
    except DataError as error:
        if not isinstance(error.__cause__, Exception) or isinstance(error.__cause__, SashError | pa.ArrowException):
            raise
        raise DeclarationError(
            f"before a job starts, Sash tries a spec on made-up rows, to learn the types of its answers. {error}. "
            "Let the functions take such values too"
        ) from error
    found = {field.name: field.type for batch in batches for field in batch.schema}
    if all(name in found and not pa.types.is_null(found[name]) for spec in specs for name, _ in spec.aggregates):
        return found
    return {**found, **_types_of_any_window(specs, sample)}


def _one_key(specs: Sequence[Spec], sample: Any) -> Any:
    """The same rows with one key."""
    for name in specs[0].window.by:
        place = sample.schema.get_field_index(name)
        same = sample.column(place).take(pa.array(np.zeros(N_ROWS, np.int64)))
        sample = sample.set_column(place, name, same)
    return sample


def _types_of_any_window(specs: Sequence[Spec], sample: Any) -> dict[str, Any]:
    """For windows that hold none of so few rows: types do not depend on the window, so take everything."""
    tried = Pass([replace(spec, window=replace(spec.window, extent=Extent("everything"), grid=None)) for spec in specs])
    batches = [*tried.push(_one_key(specs, sample)), *tried.finish()]
    return {name: batches[0].schema.field(name).type for spec in specs for name, _ in spec.aggregates}


def _is_nullable(specs: Sequence[Spec]) -> dict[str, bool]:
    """Which answers may be null; times never are."""
    found = dict.fromkeys(time_names(specs[0].window), False)
    for spec in specs:
        extent = spec.window.extent
        assert extent is not None
        found |= {name: rule_of(each).is_nullable or extent.min_rows > 0 for name, each in spec.aggregates}
    return found


def _spark_type(specs: Sequence[Spec], name: str, arrow_type: Any) -> DataType:
    try:
        if not pa.types.is_null(arrow_type):
            return from_arrow_type(arrow_type)
        cause = None
    except PySparkException as error:
        cause = error
    shown = next((show_aggregate(each) for spec in specs for own, each in spec.aggregates if own == name), "times")
    raise DeclarationError(
        f"{name}={shown}: on made-up rows its answers were {arrow_type}, and Spark has no such type. Let its "
        "functions answer numbers, texts, or lists or records of them"
    ) from cause


def in_spark(arrow_type: Any, zone: str) -> Any:
    """The nearest type that Spark has."""
    types = pa.types
    if arrow_type in WIDER:
        return WIDER[arrow_type]
    if types.is_timestamp(arrow_type):
        return pa.timestamp("us", zone if arrow_type.tz is not None else None)
    if types.is_duration(arrow_type):
        return pa.duration("us")
    if types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type):
        return pa.list_(pa.field("element", in_spark(arrow_type.value_type, zone)))
    if types.is_struct(arrow_type):
        return pa.struct([pa.field(each.name, in_spark(each.type, zone)) for each in arrow_type])
    return arrow_type


def quoted(name: str) -> str:
    """A column by its name, whatever letters it has."""
    return "`" + name.replace("`", "``") + "`"
