"""What each aggregate takes and gives, by type of column: one table.

A rule says how the inputs are carried and what the answers are. Aggregates of the user's own take
numbers as numbers and everything else as Python values, and their answers are taken as they come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import agg
from sash.engine.columns import Column
from sash.errors import DataError
from sash.frames import buffers, carriers
from sash.frames.carriers import Carrier, Plain, Ticks, is_plain, is_text, is_ticks, presence
from sash.frames.extents import show_aggregate


class Carrying(Protocol):
    """Ways to carry a column: those of whole ones (carriers), or of columns that come in batches."""

    def carry_number(self, array: Any, arrow_type: Any) -> Carrier:
        """Carry booleans, numbers, times or decimals as numbers."""

    def carry_ranked(self, array: Any, arrow_type: Any, what: str) -> Carrier:
        """Carry anything with an order by its rank."""

    def carry_row(self, array: Any, arrow_type: Any) -> Carrier:
        """Carry anything by the number of its row."""

    def carry_code(self, array: Any, arrow_type: Any) -> Carrier:
        """Carry anything by a number that equal values have in common."""

    def carry_python(self, array: Any, arrow_type: Any) -> Carrier:
        """Carry Python objects."""


class Input(NamedTuple):
    """A column that an aggregate reads."""

    aggregate: Aggregate
    name: str
    array: Any  # in a form that Arrow computes with
    arrow_type: Any  # as the user has it
    carrying: Carrying = carriers

    def refuse(self, wanted: str, remedy: str) -> DataError:
        """The error for a column of the wrong type."""
        return DataError(
            f"{show_aggregate(self.aggregate)}: the column {self.name!r} has the type {self.arrow_type}, but "
            f"{self.aggregate.name} takes {wanted}. {remedy}"
        )


Coder = Callable[[Input], Carrier]
Decoder = Callable[[Column, tuple[Carrier, ...]], Any]


@dataclass(frozen=True)
class Rule:
    """How inputs are carried, what the answers are, and which input they are values of."""

    coders: tuple[Coder, ...]
    decode: Decoder
    like: int | None = None  # the answer has the type of this input
    is_nullable: bool = True  # False: a window without rows has an answer too


def rule_of(aggregate: Aggregate) -> Rule:
    """The rule of an aggregate."""
    is_own = getattr(aggregate.binder, "__module__", "") == agg.__module__
    found = None if is_own else RULES.get(aggregate.name)
    return found or Rule((_as_given,) * aggregate.n_inputs, _as_it_comes)


# --- coders ----------------------------------------------------------------------------------------


def _presence(given: Input) -> Carrier:
    """Only whether there is a value."""
    return Plain(Column(np.zeros(len(given.array), np.uint8), buffers.valid_of(given.array)), given.arrow_type)


def _ordered(given: Input) -> Carrier:
    if _is_numeric(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    if is_text(given.array.type):
        return given.carrying.carry_ranked(given.array, given.arrow_type, repr(given.name))
    raise given.refuse("values with an order", "Take a field of it first, or use first, last or collect")


def _measured(given: Input) -> Carrier:
    """Ordered, and with differences."""
    if _is_numeric(given.array.type) and not pa.types.is_boolean(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    raise given.refuse("values that can be subtracted", "Use min and max for the two ends")


def _any(given: Input) -> Carrier:
    if _is_numeric(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    return given.carrying.carry_row(given.array, given.arrow_type)


def _identity(given: Input) -> Carrier:
    """Equal numbers for equal values."""
    if _is_numeric(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    return given.carrying.carry_code(given.array, given.arrow_type)


def _addend(given: Input) -> Carrier:
    if _is_numeric(given.array.type) and not _is_instant(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    raise given.refuse("numbers, decimals or durations", _remedy(given))


def _number_or_duration(given: Input) -> Carrier:
    if pa.types.is_duration(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    return _number(given)


def _number(given: Input) -> Carrier:
    """A number, decimals as floats."""
    if pa.types.is_decimal(given.array.type):
        return given.carrying.carry_number(given.array.cast(pa.float64()), pa.float64())
    if is_plain(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    raise given.refuse("numbers", _remedy(given))


def _remedy(given: Input) -> str:
    if is_text(given.array.type):
        return f"Cast the column to a number; to count its values use count({given.name!r}), to join texts concat"
    if _is_instant(given.array.type):
        return "Subtract a fixed time from it first, which gives durations; or use min, max, first or last"
    if pa.types.is_duration(given.array.type):
        return "Turn it into a number first, for example of seconds"
    return "Take a number out of it first, or use collect"


def _boolean(given: Input) -> Carrier:
    if pa.types.is_boolean(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    raise given.refuse("booleans", "Compare the column with something first")


def _integer(given: Input) -> Carrier:
    if pa.types.is_integer(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    raise given.refuse("integers", "Cast the column; for booleans use any and all")


def _text(given: Input) -> Carrier:
    if is_text(given.array.type) or pa.types.is_nested(given.array.type):
        return given.carrying.carry_python(given.array, given.arrow_type)
    raise given.refuse("texts, bytes or lists", "To list numbers use collect")


def _few(given: Input) -> Carrier:
    """Numbers, or whatever is ordered as Python's integers, which keep their values in a list."""
    if is_plain(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    carried = _ordered(given)
    whole = carried.column.values.astype(object)
    return type(carried)(**{**vars(carried), "column": Column(whole, carried.column.valid)})


def _hashed(given: Input) -> Carrier:
    """Numbers and times as numbers, others as Python values: a hash must be the same everywhere."""
    if is_plain(given.array.type) or is_ticks(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    return given.carrying.carry_python(given.array, given.arrow_type)


def _as_given(given: Input) -> Carrier:
    """For an aggregate of the user's own: numbers as numbers, others as Python values."""
    if is_plain(given.array.type):
        return given.carrying.carry_number(given.array, given.arrow_type)
    return given.carrying.carry_python(given.array, given.arrow_type)


def _is_numeric(arrow_type: Any) -> bool:
    return is_plain(arrow_type) or is_ticks(arrow_type) or bool(pa.types.is_decimal(arrow_type))


def _is_instant(arrow_type: Any) -> bool:
    return is_ticks(arrow_type) and not pa.types.is_duration(arrow_type)


# --- decoders --------------------------------------------------------------------------------------


def _as_it_comes(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    """Numbers, records, rows of numbers or Python values, in the type that fits."""
    values, valid = answers
    if values.dtype == object:
        return _from_objects(values, valid)
    if values.dtype.names is not None:
        fields = [carriers.numbers(np.ascontiguousarray(values[name]), None) for name in values.dtype.names]
        return _struct(fields, values.dtype.names, valid)
    if values.ndim == 2:
        width, flat = values.shape[1], carriers.numbers(np.ascontiguousarray(values).reshape(-1), None)
        return _lists(np.full(len(values), width), flat, valid)
    return carriers.numbers(np.ascontiguousarray(values), valid)


def _from_objects(values: Any, valid: Any) -> Any:
    there = presence(values, valid)
    plain = [_plain(each) if ok else None for each, ok in zip(values, there, strict=True)]
    try:
        return pa.array(plain)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        sample = next((each for each in plain if each is not None), None)
        raise DataError(
            f"answers such as {sample!r} cannot be put into a column: {error}. Let lower give numbers, texts, or "
            "lists or dicts of them"
        ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return value.item() if isinstance(value, np.generic) else value


def _struct(fields: list[Any], names: tuple[str, ...], valid: Any) -> Any:
    mask = None if valid is None else pa.array(~valid)
    return pa.StructArray.from_arrays(fields, names=list(names), mask=mask)


def _lists(lengths: Any, flat: Any, valid: Any) -> Any:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    arrays = pa.LargeListArray if offsets[-1] >= 2**31 else pa.ListArray
    width = pa.int64() if offsets[-1] >= 2**31 else pa.int32()
    mask = None if valid is None else pa.array(~valid)
    return arrays.from_arrays(pa.array(offsets).cast(width), flat, mask=mask)


def _number_answer(dtype: Any) -> Decoder:
    def decode(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
        values, valid = _in_numbers(answers, dtype)
        return carriers.numbers(values.astype(dtype, copy=False), valid)

    return decode


def _in_numbers(answers: Column, dtype: Any = None) -> tuple[Any, Any]:
    """Numbers and validity, also of answers that came as objects."""
    values, valid = answers
    if values.dtype != object:
        return np.ascontiguousarray(values), valid
    there = presence(values, valid)
    filled = [each if ok else 0 for each, ok in zip(values.tolist(), there, strict=True)]
    large = any(isinstance(each, int) and not -(2**63) <= each < 2**64 for each in filled)
    return np.array(filled, object if large else dtype), there


def _value_of(k: int) -> Decoder:
    def decode(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
        if isinstance(inputs[k], carriers.Pythonic):
            return inputs[k].value(*answers)
        return inputs[k].value(*_in_numbers(answers, _dtype_of(inputs[k])))

    return decode


def _dtype_of(carrier: Carrier) -> Any:
    dtype = carrier.column.values.dtype
    return None if dtype.hasobject else dtype


def _difference(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    return inputs[0].difference(*_in_numbers(answers))


def _total(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    return inputs[0].total(*_in_numbers(answers))


def _float_or_duration(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    return (_total if isinstance(inputs[0], Ticks) else FLOAT)(answers, inputs)


def _bits(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    return _number_answer(inputs[0].column.values.dtype)(answers, inputs)


def _four_values(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    parts, valid = _parts(answers, ("first", "min", "max", "last"), _dtype_of(inputs[0]))
    return _struct([inputs[0].value(part, None) for part in parts.values()], tuple(parts), valid)


def _run(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    parts, valid = _parts(answers, ("start", "end", "span", "length"), _dtype_of(inputs[0]))
    time = inputs[0]
    fields = [
        time.value(parts["start"], None), time.value(parts["end"], None), time.difference(parts["span"], None),
        carriers.numbers(parts["length"].astype(np.int64), None),
    ]  # fmt: skip
    return _struct(fields, tuple(parts), valid)


def _line(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    parts, valid = _parts(answers, ("slope", "intercept"), np.dtype(np.float64))
    return _struct([carriers.numbers(part, None) for part in parts.values()], tuple(parts), valid)


def _parts(answers: Column, names: tuple[str, ...], dtype: Any) -> tuple[dict[str, Any], Any]:
    """The fields of a record, also of answers that came as tuples, or of no answer at all."""
    values, valid = answers
    if values.dtype.names is not None:
        return {name: np.ascontiguousarray(values[name]) for name in names}, valid
    there = presence(values, valid) if values.dtype.hasobject else np.zeros(len(values), np.bool_)
    filled = [each if ok else (0,) * len(names) for each, ok in zip(values, there, strict=True)]
    return {name: np.array([each[k] for each in filled], dtype or object) for k, name in enumerate(names)}, there


def _list_of_values(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    values, valid = answers
    there = presence(values, valid)
    lists = [each if ok else () for each, ok in zip(values, there, strict=True)]
    flat = [value for each in lists for value in each]
    column = np.empty(len(flat), object)
    column[:] = flat
    carrier = inputs[0]
    dtype = _dtype_of(carrier)
    return _lists(
        [len(each) for each in lists], carrier.value(column if dtype is None else column.astype(dtype), None), there
    )


def _greatest_few(answers: Column, inputs: tuple[Carrier, ...]) -> Any:
    return _as_it_comes(answers, inputs) if answers.values.dtype != object else _list_of_values(answers, inputs)


VALUE = _value_of(0)
COUNT, FLOAT, TRUTH = _number_answer(np.int64), _number_answer(np.float64), _number_answer(np.bool_)
NUMBERS = Rule((_number,), _as_it_comes)
RULES = {
    "count": Rule((_presence,), COUNT, is_nullable=False),
    "sum": Rule((_addend,), _total),
    "product": Rule((_number,), FLOAT),
    "mean": Rule((_number_or_duration,), _float_or_duration),
    "geomean": Rule((_number,), FLOAT),
    "var": Rule((_number,), FLOAT),
    "std": Rule((_number_or_duration,), _float_or_duration),
    "cov": Rule((_number, _number), FLOAT),
    "corr": Rule((_number, _number), FLOAT),
    "trend": Rule((_number, _number), _line),
    "min": Rule((_ordered,), VALUE, like=0),
    "max": Rule((_ordered,), VALUE, like=0),
    "first": Rule((_any,), VALUE, like=0),
    "last": Rule((_any,), VALUE, like=0),
    "nth_youngest": Rule((_any,), VALUE, like=0),
    "mode": Rule((_ordered,), VALUE, like=0),
    "argmin": Rule((_ordered, _any), _value_of(1), like=1),
    "argmax": Rule((_ordered, _any), _value_of(1), like=1),
    "min_count": Rule((_ordered,), COUNT),
    "max_count": Rule((_ordered,), COUNT),
    "distinct": Rule((_identity,), COUNT, is_nullable=False),
    "range": Rule((_measured,), _difference),
    "m4": Rule((_ordered,), _four_values),
    "top_k": Rule((_few,), _greatest_few),
    "longest_increasing_run": Rule((_measured, _ordered), _run),
    "any": Rule((_boolean,), TRUTH),
    "all": Rule((_boolean,), TRUTH),
    "bit_or": Rule((_integer,), _bits),
    "bit_and": Rule((_integer,), _bits),
    "bit_xor": Rule((_integer,), _bits),
    "collect": Rule((_any,), _list_of_values, is_nullable=False),
    "concat": Rule((_text,), VALUE, like=0),
    "median": Rule((_number_or_duration,), _float_or_duration),
    "quantile": Rule((_number_or_duration,), _float_or_duration),
    "histogram": NUMBERS,
    "moment_sketch": NUMBERS,
    "kll": NUMBERS,
    "tdigest": NUMBERS,
    "bloom": Rule((_hashed,), _as_it_comes),
    "count_min": Rule((_hashed,), _as_it_comes),
    "hyperloglog": Rule((_hashed,), _as_it_comes),
    "theta": Rule((_hashed,), _as_it_comes),
}
